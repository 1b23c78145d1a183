"""The parts of projected Newton steps, each against what it stands for written out coordinate by coordinate."""

import numpy as np
import pytest
from scipy.optimize import lsq_linear

from all_pairs import pairwise
from rankwise.objectives import MatrixQuadratic
from rankwise.solvers.bounded import (
    Bounds,
    bounded_gap,
    minimise_bounded,
)
from rankwise.solvers.solution import Status

REACH = 10.0  # within how many times their size coefficients without a penalty are proved to be best


def random_bounds(rng, size):
    lower = np.where(rng.random(size) < 0.5, -rng.exponential(size=size), -np.inf)
    upper = np.where(rng.random(size) < 0.5, rng.exponential(size=size), np.inf)
    return Bounds(lower, upper)


def lowest_move(w, g, alpha, lower, upper):
    """The least of ``g d + alpha d²`` over the d that a coefficient may move by."""
    ends = [end - w for end in (lower, upper) if np.isfinite(end)]
    free = -g / (2 * alpha) if alpha > 0 else 0.0
    ends += [free] if lower <= w + free <= upper else []
    return min([g * d + alpha * d * d for d in ends], default=0.0)


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("alpha", [1e-3, 0.5, 40.0])
def test_the_gap_is_what_each_coefficient_could_still_gain(seed, alpha):
    rng = np.random.default_rng(seed)
    bounds = random_bounds(rng, 6)
    w, g = bounds.projected(rng.normal(size=6)), rng.normal(size=6)
    expected = -sum(map(lowest_move, w, g, np.full(6, alpha), bounds.lower, bounds.upper))
    assert bounded_gap(w, g, alpha, bounds) == pytest.approx(expected, rel=1e-12)
    # Without a penalty within ten times the size, its own or the one that matters, and inside the bounds.
    units = np.where(np.arange(6) % 2, rng.exponential(size=6), 0.0)
    size = REACH * np.maximum(units, np.abs(w))
    is_out = units > 0
    lower = np.where(is_out, np.maximum(bounds.lower, w - size), bounds.lower)
    upper = np.where(is_out, np.minimum(bounds.upper, w + size), bounds.upper)
    expected = -sum(map(lowest_move, w, g, np.where(is_out, 0.0, alpha), lower, upper))
    assert bounded_gap(w, g, alpha, bounds, units) == pytest.approx(expected, rel=1e-12)


def least_squares(seed, rows=30, columns=6):
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(rows, columns)), rng.normal(size=rows)
    return X, y, MatrixQuadratic(X.T @ X, X.T @ y)


def value_of(objective, w, penalty):
    return float(objective.at(w).value) + (penalty * w**2).sum()


@pairwise(seed=range(6), preconditioned=[False, True], has_start=[False, True])
def test_bounds_on_both_sides_have_the_minimum_of_scipy_and_what_was_gained_is_told(
    seed, preconditioned, has_start
):
    rng = np.random.default_rng(seed)
    X, y, objective = least_squares(seed)
    alpha, bounds = 0.4, Bounds(np.full(6, -0.05), np.linspace(0.0, 0.1, 6))
    expected = lsq_linear(
        np.vstack([X, np.sqrt(alpha) * np.eye(6)]), np.append(y, np.zeros(6)), (bounds.lower, bounds.upper),
        tol=1e-14,
    ).x  # fmt: skip
    start = rng.normal(size=6) if has_start else None
    solution = minimise_bounded(
        objective, alpha, bounds, tol=1e-9, start=start,
        diagonal=2 * objective.diagonal() if preconditioned else None,
    )  # fmt: skip
    assert solution.status is Status.CONVERGED
    np.testing.assert_allclose(solution.coef, expected, atol=1e-5)
    gain = value_of(objective, np.zeros(6), alpha) - value_of(objective, solution.coef, alpha)
    assert solution.gain == pytest.approx(gain + solution.certificate, rel=1e-9)
    assert solution.certificate == solution.history[-1] <= 1e-9 * solution.gain
    assert len(solution.history) == solution.n_iter + 1
    assert solution.n_iter <= 6


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3])
@pytest.mark.parametrize("with_diagonal", [False, True])
def test_coefficients_without_a_penalty_end_where_their_slope_does(scale, with_diagonal):
    X, y, objective = least_squares(3)
    units = np.array([0.0, 0.0, 1.0, 0.0, 1.0, 0.0]) / scale
    X = X * np.where(units > 0, scale, 1.0)
    objective = MatrixQuadratic(X.T @ X, X.T @ y)
    alpha, bounds = 5.0, Bounds.not_negative(np.arange(6) < 3)
    penalty = np.where(units > 0, 0.0, alpha)
    expected = lsq_linear(
        np.vstack([X, np.diag(np.sqrt(penalty))]), np.append(y, np.zeros(6)), (bounds.lower, bounds.upper),
        tol=1e-14,
    ).x  # fmt: skip
    diagonal = 2 * objective.diagonal() if with_diagonal else None
    solution = minimise_bounded(objective, alpha, bounds, tol=1e-7, units=units, diagonal=diagonal)
    assert solution.status is Status.CONVERGED
    unit = np.where(units > 0, units, 1.0)
    np.testing.assert_allclose(solution.coef / unit, expected / unit, atol=1e-6)
    gain = value_of(objective, np.zeros(6), penalty) - value_of(objective, solution.coef, penalty)
    assert solution.gain == pytest.approx(gain + solution.certificate, rel=1e-9)
    assert solution.n_iter <= 10
