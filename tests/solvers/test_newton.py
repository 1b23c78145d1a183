"""Newton's steps inside their region, against the Krylov spaces and Hessians written out."""

import numpy as np
import pytest
import scipy.optimize

from all_pairs import pairwise
from rankwise.design import as_design
from rankwise.losses import LogisticLoss, SquaredHingeLoss
from rankwise.objectives import MarginObjective
from rankwise.pairs.preferences import PreferenceGraph
from rankwise.solvers.newton import minimise_by_newton
from rankwise.solvers.solution import Status


def preferences(seed=0, rows=40, features=6, pairs=150):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, features)) * np.geomspace(0.3, 3, features)
    winner = rng.integers(rows, size=pairs)
    loser = (winner + rng.integers(1, rows, size=pairs)) % rows
    return X, winner, loser


def objective_of(X, winner, loser, loss=SquaredHingeLoss):
    ones = np.ones(winner.size)
    return MarginObjective(as_design(X), PreferenceGraph(len(X), winner, loser, ones, ones), loss)


def test_a_loss_that_is_a_parabola_all_the_way_takes_one_step_and_four_reads():
    """Columns so small that every pair is inside its margin, and a Hessian that is a multiple of the identity."""
    X = np.vstack([np.eye(4), -np.eye(4)]) * 1e-2
    objective = objective_of(X, np.arange(4), np.arange(4, 8))
    solution = minimise_by_newton(objective, 1e-2, tol=1e-9)
    assert solution.status is Status.CONVERGED
    # The gradient at 0, a product (two reads), the gradient there.
    assert (solution.n_iter, objective.design.reads) == (1, 4)
    # Four pairs of difference 0.02 along a column each: mean of (1 - 0.02 w)² + 0.01 w²
    np.testing.assert_allclose(solution.coef, 0.02 / 4 / (0.02**2 / 4 + 1e-2), rtol=1e-9)
    assert len(solution.history) == 2
    again = minimise_by_newton(objective, 1e-2, tol=1e-9, start=solution.coef)
    assert (again.status, again.n_iter, objective.design.reads) == (Status.CONVERGED, 0, 4 + 2)
    np.testing.assert_array_equal(again.coef, solution.coef)


@pairwise(loss=[SquaredHingeLoss, LogisticLoss], alpha=[1e-5, 1e-2], distance=[0.0, 10.0, 1e3])
def test_from_anywhere_it_ends_at_the_minimum_in_few_steps(loss, alpha, distance):
    """Far away a logistic loss is a plane, and Newton's step leads far beyond the minimum: the region shrinks."""
    X, winner, loser = preferences(1)
    objective = objective_of(X, winner, loser, loss)
    start = distance * np.random.default_rng(0).normal(size=6)
    told = []
    solution = minimise_by_newton(
        objective, alpha, tol=1e-8, start=start, monitor=lambda coef, *_: told.append(coef.copy())
    )
    assert solution.status is Status.CONVERGED
    assert solution.n_iter <= (25 if distance <= 10 else 80)

    def value(w):
        return float(objective.at(w).value) + alpha * w @ w

    found = scipy.optimize.minimize(
        lambda w: (value(w), objective.at(w).gradient + 2 * alpha * w), np.zeros(6), jac=True, method="BFGS",
        options={"gtol": 1e-9},
    )  # fmt: skip
    assert value(solution.coef) <= found.fun + 1e-8 * (value(np.zeros(6)) - found.fun)
    values = [value(w) for w in told]
    assert (np.diff(values) <= 1e-12 * np.abs(values[0])).all()  # never uphill
    at_zero = value(np.zeros(6))
    assert solution.gain == pytest.approx(at_zero - value(solution.coef) + solution.certificate, rel=1e-6)
    slope = objective.at(solution.coef).gradient + 2 * alpha * solution.coef
    assert solution.certificate <= slope @ slope / (4 * alpha) * 1.01


@pytest.mark.parametrize("scale", [1.0, 1e4])
def test_a_tolerance_of_zero_ends_at_what_rounding_leaves(scale):
    X, winner, loser = preferences(2)
    objective = objective_of(scale * X, winner, loser)
    solution = minimise_by_newton(objective, 1e-3, tol=0.0)
    assert solution.status in {Status.STAGNATED, Status.CONVERGED}
    assert solution.n_iter < 40
    assert solution.certificate <= 1e-14 * scale**2


def test_pairs_that_contradict_each_other_exactly_leave_zero():
    X, winner, loser = preferences(3)
    both = np.concatenate([winner, loser]), np.concatenate([loser, winner])
    solution = minimise_by_newton(objective_of(X, *both), 1e-2)
    assert solution.status is Status.CONVERGED
    np.testing.assert_allclose(solution.coef, 0.0, atol=1e-12)
    assert solution.n_iter <= 2
