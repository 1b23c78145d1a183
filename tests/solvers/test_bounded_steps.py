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
