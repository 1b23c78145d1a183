"""The Krylov space itself: an orthonormal basis, a tridiagonal matrix, and whatever is read from them."""

import numpy as np
import pytest

from oracles import galerkin
from rankwise.objectives import MatrixQuadratic
from rankwise.solvers.krylov import (
    STORED_TOGETHER,
    Lanczos,
    conjugate_gradients,
)


def matrix_of(eigenvalues, seed=0):
    eigenvalues = np.asarray(eigenvalues, dtype=float)
    Q = np.linalg.qr(np.random.default_rng(seed).normal(size=(eigenvalues.size, eigenvalues.size)))[0]
    return (Q * eigenvalues) @ Q.T


def run_of(H, rhs, steps, **options):
    run, vectors = Lanczos(rhs, **options), []
    for _ in range(steps):
        vectors.append(run.vectors)
        run.advance(H @ run.vectors)
    return run, np.array(vectors)  # steps, features, columns


def tridiagonal(run, column, steps):
    a = [float(d[column]) for d in run.diagonal[:steps]]
    beta = [float(b[column]) for b in run.off_diagonal[: steps - 1]]
    return np.diag(a) + np.diag(beta, 1) + np.diag(beta, -1)


@pytest.mark.parametrize("size", [1e-150, 1.0, 1e150])
@pytest.mark.parametrize("keep_basis", [True, False])
def test_the_recurrence_holds_in_every_column(size, keep_basis):
    H, rhs = size * matrix_of(np.linspace(1, 5, 10)), np.random.default_rng(1).normal(size=(10, 3))
    run, vectors = run_of(H, rhs, 6, keep_basis=keep_basis)
    assert run.n_steps == 6
    np.testing.assert_allclose(run.start_norm, np.linalg.norm(rhs, axis=0))
    for column in range(3):
        V = vectors[:, :, column].T
        np.testing.assert_allclose(V[:, 0], rhs[:, column] / np.linalg.norm(rhs[:, column]), rtol=1e-12)
        np.testing.assert_allclose(V.T @ V, np.eye(6), atol=1e-9)
        T = tridiagonal(run, column, 6)
        left = H / size @ V - V @ (T / size)
        left[:, -1] -= run.off_diagonal[-1][column] / size * run.vectors[:, column]
        np.testing.assert_allclose(left, 0.0, atol=1e-9)


def test_a_stored_basis_stays_orthonormal_where_the_recurrence_alone_does_not():
    H, rhs = matrix_of(np.geomspace(1e-6, 1e3, 50)), np.random.default_rng(1).normal(size=(50, 1))
    loss = {}
    for keep_basis in (True, False):
        V = run_of(H, rhs, 40, keep_basis=keep_basis)[1][:, :, 0]
        loss[keep_basis] = np.abs(V @ V.T - np.eye(40)).max()
    assert loss[True] < 1e-12
    assert loss[False] > 1e-3


@pytest.mark.parametrize("n_distinct", [1, 3, 5])
@pytest.mark.parametrize("size", [1e-100, 1.0, 1e100])
def test_a_space_ends_with_as_many_steps_as_distinct_eigenvalues(n_distinct, size):
    """A column that has ended stays at 0, and the others go on."""
    H = size * matrix_of(np.repeat(np.arange(1.0, n_distinct + 1), 3))
    rhs = np.column_stack([np.ones(3 * n_distinct), np.linalg.eigh(H)[1][:, 0]])
    run, _ = run_of(H, rhs, n_distinct + 2)
    ends = np.array(run.off_diagonal) / size
    assert (ends[: n_distinct - 1, 0] > 0).all()
    np.testing.assert_array_equal(ends[n_distinct - 1 :, 0], 0.0)
    np.testing.assert_array_equal(ends[:, 1], 0.0)
    np.testing.assert_array_equal(run.vectors, 0.0)
    weights = run.projected_solution(0, 0.5 * size, n_distinct + 2)
    np.testing.assert_array_equal(weights[n_distinct:], 0.0)
    exact = np.linalg.solve(H / size + 0.5 * np.eye(len(H)), rhs[:, 0])
    np.testing.assert_allclose(run.combine(0, weights) * size, exact, rtol=1e-9)


@pytest.mark.parametrize("alpha", [0.0, 0.3])
def test_iterates_are_those_of_conjugate_gradients_stored_or_built_again(alpha):
    H, rhs = matrix_of(np.geomspace(0.1, 10, 12)), np.random.default_rng(1).normal(size=(12, 2))
    n_steps = 2 * STORED_TOGETHER + 1
    stored, _ = run_of(H, rhs, n_steps)
    bare, _ = run_of(H, rhs, n_steps, keep_basis=False)
    for column in range(2):
        for steps in range(1, n_steps + 1):
            objective = MatrixQuadratic(H, rhs[:, column])
            expected = conjugate_gradients(objective, alpha, tol=1e-14, max_iter=steps).coef
            weights = stored.projected_solution(column, alpha, steps)
            T = tridiagonal(stored, column, steps) + alpha * np.eye(steps)
            first = np.eye(steps)[0] * np.linalg.norm(rhs[:, column])
            np.testing.assert_allclose(T @ weights, first, atol=1e-9)
            np.testing.assert_allclose(stored.combine(column, weights), expected, rtol=1e-6, atol=1e-8)
            again = bare.replay(lambda v: H @ v, column, bare.projected_solution(column, alpha, steps))
            np.testing.assert_allclose(again, expected, rtol=1e-6, atol=1e-8)
    assert stored.projected_solution(0, alpha, 0).shape == (0,)


@pytest.mark.parametrize("alpha", [0.0, 1e-3])
def test_in_a_singular_space_the_solution_stays_in_the_range(alpha):
    """The start has a component that H does not see: without a penalty nothing may be found along it."""
    H = matrix_of([0.0, 0.0, 1.0, 2.0, 5.0])
    run, vectors = run_of(H, np.ones((5, 1)), 4)
    rhs = H @ np.arange(1.0, 6.0)
    coef = run.galerkin_solution(rhs, alpha)
    if alpha > 0:
        basis = vectors[:, :, 0].T
        np.testing.assert_allclose(basis.T @ (H @ coef + alpha * coef - rhs), 0.0, atol=1e-9)
    else:
        null = np.linalg.eigh(H)[1][:, :2]
        np.testing.assert_allclose(null.T @ coef, 0.0, atol=1e-6)


@pytest.mark.parametrize("steps", [1, 3, 4, 5, 9])
@pytest.mark.parametrize("outputs", [1, 2])
def test_any_right_hand_side_has_its_galerkin_solution_in_the_space(steps, outputs):
    H, start = matrix_of(np.geomspace(0.1, 10, 12)), np.random.default_rng(1).normal(size=(12, 1))
    run, vectors = run_of(H, start, steps)
    rhs = np.random.default_rng(2).normal(size=(12, outputs))
    rhs = rhs[:, 0] if outputs == 1 else rhs
    expected = galerkin(H + 0.3 * np.eye(12), vectors[:, :, 0].T, rhs)
    np.testing.assert_allclose(run.galerkin_solution(rhs, 0.3), expected, atol=1e-9)
