"""Coordinates that must not be negative: against SciPy's L-BFGS-B, with the gap proved."""

import numpy as np
import pytest
from scipy.optimize import minimize, nnls

from rankwise.design import as_design
from rankwise.losses import SquaredHingeLoss
from rankwise.objectives import MarginObjective, MatrixQuadratic
from rankwise.pairs.preferences import PreferenceGraph
from rankwise.solvers.bounded import Bounds, bounded_gap, minimise_bounded, polished
from rankwise.solvers.solution import Status


def make_objective(seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(40, 6)) * 2.0 ** rng.integers(-2, 3, size=6)
    pairs = rng.integers(40, size=(2, 200))
    pairs = pairs[:, pairs[0] != pairs[1]]
    size = pairs.shape[1]
    margins = PreferenceGraph(40, *pairs, rng.uniform(0.5, 2, size=size), np.ones(size))
    return MarginObjective(as_design(X), margins, SquaredHingeLoss)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("alpha", [1e-4, 1e-1])
def test_the_minimum_is_that_of_scipy(seed, alpha):
    objective = make_objective(seed)
    nonnegative = np.array([True, True, True, True, False, False])

    def value(w):
        point = objective.at(w)
        return float(point.value) + alpha * w @ w, point.gradient + 2 * alpha * w

    bounds = [(0, None) if bounded else (None, None) for bounded in nonnegative]
    oracle = minimize(
        value, np.zeros(6), jac=True, bounds=bounds, method="L-BFGS-B",
        options={"maxiter": 10_000, "ftol": 1e-15, "gtol": 1e-10},
    )  # fmt: skip
    found = minimise_bounded(objective, alpha, Bounds.not_negative(nonnegative), tol=1e-10)
    assert found.status is Status.CONVERGED
    assert (found.coef[nonnegative] >= 0).all()
    own, gradient = value(found.coef)
    assert own <= oracle.fun + 1e-9
    # The gap is proved: no point that is allowed lies further below.
    assert (
        own - oracle.fun <= bounded_gap(found.coef, gradient, alpha, Bounds.not_negative(nonnegative)) + 1e-12
    )
    # First-order conditions.
    assert np.abs(gradient[~nonnegative]).max() < 1e-4
    assert gradient[nonnegative].min() > -1e-4
    assert np.abs(gradient * found.coef)[nonnegative].max() < 1e-4


def test_the_gap_bounds_the_distance_everywhere():
    objective, alpha, nonnegative = make_objective(7), 1e-2, np.ones(6, dtype=bool)
    best = minimise_bounded(objective, alpha, Bounds.not_negative(nonnegative), tol=1e-12).coef
    lowest = float(objective.at(best).value) + alpha * best @ best
    rng = np.random.default_rng(0)
    for _ in range(20):
        w = rng.exponential(size=6)
        point = objective.at(w)
        gap = bounded_gap(w, point.gradient + 2 * alpha * w, alpha, Bounds.not_negative(nonnegative))
        assert float(point.value) + alpha * w @ w - lowest <= gap + 1e-12


def test_a_start_outside_the_bounds_is_brought_back():
    objective, nonnegative = make_objective(1), np.ones(6, dtype=bool)
    cold = minimise_bounded(objective, 1e-2, Bounds.not_negative(nonnegative), tol=1e-12)
    warm = minimise_bounded(
        objective, 1e-2, Bounds.not_negative(nonnegative), tol=1e-12, start=np.full(6, -3.0)
    )
    np.testing.assert_allclose(warm.coef, cold.coef, atol=1e-5)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("tol", [1e-1, 1e-4])
def test_what_stands_at_no_bound_is_solved_exactly(seed, tol):
    rng = np.random.default_rng(seed)
    X, y, alpha = rng.normal(size=(30, 6)), rng.normal(size=30), 0.5
    objective = MatrixQuadratic(X.T @ X, X.T @ y)
    bounds = Bounds.not_negative(np.ones(6, dtype=bool))
    rough = minimise_bounded(objective, alpha, bounds, tol=tol)
    found = polished(rough, objective, alpha, bounds)
    root = np.linalg.cholesky(objective.matrix() + alpha * np.eye(6)).T
    wanted = nnls(root, np.linalg.solve(root.T, objective.rhs))[0]
    if np.array_equal(rough.coef > 0, wanted > 0):  # it knew which ones these are
        assert found.status is Status.EXACT
        assert found.certificate <= rough.certificate
        np.testing.assert_allclose(found.coef, wanted, rtol=1e-10, atol=1e-12)
    assert 0 < np.count_nonzero(wanted) < 6
    assert tol > 1e-3 or found.status is Status.EXACT
