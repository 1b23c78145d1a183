"""The simplex quadratic program against an interior-point solver, near-singular Gram matrices included."""

import numpy as np
import piqp
import pytest
import scipy.sparse as sp

from oracles import simplex_gap
from rankwise.solvers.bundle import minimise_on_simplex


def by_interior_point(H, b):
    size = b.size
    solver = piqp.DenseSolver()
    solver.settings.eps_abs = solver.settings.eps_rel = 1e-12
    solver.setup(H, -b, np.ones((1, size)), np.ones(1), x_l=np.zeros(size))
    solver.solve()
    x = np.maximum(solver.result.x, 0)
    return x / x.sum()


def solved(H, b):
    """Return the solution from a vertex."""
    return minimise_on_simplex(H, b, np.eye(b.size)[0])


def value(H, b, x):
    return x @ H @ x / 2 - b @ x


def planes(size, features, noise, seed):
    """Gradients that resemble each other more and more, as late cutting planes do."""
    rng = np.random.default_rng(seed)
    base = rng.normal(size=features)
    A = base + noise * rng.normal(size=(size, features)) * np.geomspace(1, 1e-4, size)[:, None]
    return A @ A.T, rng.random(size) * np.geomspace(1, 1e-6, size)


@pytest.mark.parametrize("size", [1, 2, 10, 50, 200])
@pytest.mark.parametrize(("features", "noise"), [(300, 1.0), (300, 1e-4), (5, 1.0), (3, 1e-6)])
def test_agrees_with_an_interior_point(size, features, noise):
    H, b = planes(size, features, noise, size)
    x = solved(H, b)
    assert x.min() >= 0
    assert x.sum() == pytest.approx(1)
    unit = np.abs(H).max()
    assert simplex_gap(H, b, x) <= 1e-10 * unit
    assert value(H, b, x) <= value(H, b, by_interior_point(H, b)) + 1e-9 * unit


def test_a_warm_start_changes_nothing():
    H, b = planes(40, 8, 0.1, 3)
    cold = solved(H, b)
    warm = minimise_on_simplex(H, b, np.full(40, 1 / 40))
    assert value(H, b, warm) == pytest.approx(value(H, b, cold), abs=1e-12)


def test_degenerate_problems():
    assert solved(np.zeros((1, 1)), np.zeros(1)).tolist() == [1.0]
    x = solved(np.zeros((3, 3)), np.array([0.0, 2.0, 1.0]))
    assert x.tolist() == [0.0, 1.0, 0.0]
    x = solved(np.ones((4, 4)), np.ones(4))
    assert x.sum() == pytest.approx(1)
    H = sp.random(30, 30, density=0.1, random_state=0).toarray()
    H = H @ H.T
    assert simplex_gap(H, np.zeros(30), solved(H, np.zeros(30))) <= 1e-12


@pytest.mark.parametrize("unit", [2.0**-200, 2.0**200])
def test_shifts_and_units_change_nothing(unit):
    H, b = planes(30, 8, 0.5, 1)
    x = solved(H, b)
    np.testing.assert_array_equal(solved(unit * H, unit * b), x)
    moved = solved(H, b + 5.0)
    assert value(H, b, moved) == pytest.approx(value(H, b, x), abs=1e-12)
    lower = solved(H, b - 5.0)
    assert value(H, b, lower) == pytest.approx(value(H, b, x), abs=1e-12)


def factored(monkeypatch):
    """Count the faces that are solved."""
    solve, faces = np.linalg.solve, []

    def counted(matrix, right):
        faces.append(len(matrix))
        return solve(matrix, right)

    monkeypatch.setattr(np.linalg, "solve", counted)
    return faces


def test_from_the_last_solution_a_new_plane_takes_a_few_faces(monkeypatch):
    H, b = planes(41, 60, 1.0, 3)
    before = solved(H[:40, :40], b[:40])
    faces = factored(monkeypatch)
    cold = solved(H, b)
    n_cold = len(faces)
    warm = minimise_on_simplex(H, b, np.append(before, 0.0))
    n_warm = len(faces) - n_cold
    assert value(H, b, warm) == pytest.approx(value(H, b, cold), abs=1e-12)
    assert n_warm <= n_cold / 2
    # A face is solved again and again only where rounding makes it worth while: one coordinate at a time enters.
    assert n_cold <= 3 * np.count_nonzero(cold) + 12


def test_the_solution_as_a_start_ends_at_once_and_is_not_written_to(monkeypatch):
    H, b = planes(30, 40, 1.0, 5)
    x = solved(H, b)
    kept = x.copy()
    faces = factored(monkeypatch)
    again = minimise_on_simplex(H, b, x)
    assert len(faces) == 1
    np.testing.assert_array_equal(x, kept)
    np.testing.assert_allclose(again, x, atol=1e-9)


def test_what_cannot_be_decided_stays_as_it_is():
    start = np.array([0.2, 0.8])
    np.testing.assert_array_equal(minimise_on_simplex(np.zeros((2, 2)), np.full(2, 3.0), start), start)
    np.testing.assert_array_equal(minimise_on_simplex(np.full((2, 2), np.inf), np.zeros(2), start), start)
