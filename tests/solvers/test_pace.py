"""The pace of descent with momentum: the factors an iteration that theory gives, and what a wrong one costs."""

import numpy as np
import pytest

from all_pairs import pairwise
from counting import counting
from rankwise.objectives import MatrixQuadratic
from rankwise.solvers.momentum import estimated_descent, gradient_descent
from rankwise.solvers.solution import Status


def matrix_of(eigenvalues, seed=0):
    eigenvalues = np.asarray(eigenvalues, dtype=float)
    Q = np.linalg.qr(np.random.default_rng(seed).normal(size=(eigenvalues.size, eigenvalues.size)))[0]
    return (Q * eigenvalues) @ Q.T


def problem(eigenvalues, seed=0):
    H = matrix_of(eigenvalues, seed)
    return MatrixQuadratic(H, np.random.default_rng(seed + 1).normal(size=len(H)))


def factor(pace, eigenvalue):
    """The largest factor an iteration along an eigenvector: of ``w' = (1 + μ - step κ) w - μ w_before``."""
    two_steps = np.array([[1 + pace.momentum - pace.step * eigenvalue, -pace.momentum], [1.0, 0.0]])
    return np.abs(np.linalg.eigvals(two_steps)).max()


@pytest.mark.parametrize("estimator", ["lanczos", "power", "blocks"])
@pytest.mark.parametrize("scale", [2.0**-300, 2.0**-40, 2.0**40, 2.0**300])
def test_nothing_has_units(estimator, scale):
    """Powers of four scale every number exactly, roots included, but for what LAPACK does about large ones."""
    base = problem(np.geomspace(0.1, 10, 15))
    moved = MatrixQuadratic(scale * base.matrix(), base.rhs / scale)

    def solve(objective, alpha):
        if estimator == "blocks":
            return gradient_descent(objective, alpha, tol=1e-8)
        return estimated_descent(objective, alpha, estimator=estimator, tol=1e-8)

    products, products_moved = counting(base), counting(moved)
    one, other = solve(base, 0.5), solve(moved, 0.5 * scale)
    assert one.status is other.status is Status.CONVERGED
    np.testing.assert_allclose(one.history, other.history, rtol=1e-6)  # as many, and any constant would show
    assert sum(products) == sum(products_moved)
    np.testing.assert_allclose(other.coef * scale * scale, one.coef, rtol=1e-9, atol=0)


@pytest.mark.parametrize("factor_", [1.5, 30.0, 1e5])
@pytest.mark.parametrize("momentum", [0.0, 0.9])
def test_a_rate_that_is_too_high_takes_few_restarts(factor_, momentum):
    objective = problem(np.geomspace(1, 100, 30))
    limit = 2 * (1 + momentum) / ((1 - momentum) * 100.0)
    solution = gradient_descent(objective, 0.0, learning_rate=factor_ * limit, momentum=momentum, tol=1e-7)
    assert solution.status is Status.CONVERGED
    alone = gradient_descent(
        objective, 0.0, learning_rate=(1 + np.sqrt(momentum)) ** 2 / ((1 - momentum) * 105.0), momentum=momentum,
        tol=1e-7,
    )  # fmt: skip
    assert solution.n_iter <= 1.5 * alone.n_iter + 200


@pairwise(estimator=["lanczos", "power"], seed=range(2), scale=[2.0**-60, 1.0, 2.0**60])
def test_what_a_tolerance_below_rounding_costs_is_bounded(estimator, seed, scale):
    """Residuals that are rounding alone do not fall, and that is no reason to look for smaller eigenvalues."""
    base = problem(np.linspace(1, 4, 10), seed)
    objective = MatrixQuadratic(scale * base.matrix(), base.rhs)
    solution = estimated_descent(objective, 0.0, estimator=estimator, tol=0.0)
    assert solution.status is Status.STAGNATED
    assert solution.certificate < 1e-14
    assert 500 <= solution.n_iter <= 3000


def test_products_beyond_all_numbers_are_given_up(monkeypatch):
    objective = problem(np.linspace(1, 4, 10))
    monkeypatch.setattr(objective, "product", lambda v: np.full_like(v, np.inf))
    solution = gradient_descent(objective, 0.0, learning_rate=0.1)
    assert solution.status is Status.STAGNATED
    assert solution.n_iter == 101
    np.testing.assert_array_equal(solution.coef, 0.0)
