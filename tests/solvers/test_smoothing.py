"""The smoothed hinge: how its width shrinks, what it reads, what it proves; without bounds and inside them."""

import numpy as np
import pytest

from rankwise.design import as_design
from rankwise.losses import HingeLoss
from rankwise.objectives import MarginObjective
from rankwise.pairs.preferences import PreferenceGraph
from rankwise.solvers.newton import minimise_smoothed
from rankwise.solvers.solution import Status

MARGIN = 2.5  # of every pair: the loss at 0


def hinge(seed=0, rows=60, features=5, pairs=300, scale=1.0):
    rng = np.random.default_rng(seed)
    X = scale * rng.normal(size=(rows, features))
    winner = rng.integers(rows, size=pairs)
    loser = (winner + rng.integers(1, rows, size=pairs)) % rows
    swap = (X[winner] - X[loser]).sum(axis=1) + scale * 2 * rng.normal(size=pairs) < 0
    winner, loser = np.where(swap, loser, winner), np.where(swap, winner, loser)
    return MarginObjective(
        as_design(X), PreferenceGraph(rows, winner, loser, np.ones(pairs), np.full(pairs, MARGIN)), HingeLoss
    )


def value(objective, alpha, w):
    return float(objective.at(w).value) + alpha * w @ w


@pytest.mark.parametrize("alpha", [1e-2, 1e-4])
def test_a_tolerance_of_zero_ends_near_rounding(alpha):
    objective = hinge()
    solution = minimise_smoothed(objective, alpha, tol=0.0)
    assert solution.status is Status.STAGNATED
    assert solution.certificate < 1e-10
    assert solution.n_iter < 700


def test_iterations_run_out_and_a_monitor_stops():
    objective = hinge()
    whole = minimise_smoothed(objective, 1e-4, tol=1e-6)
    for n_iter in (0, 1, 5):
        cut = minimise_smoothed(objective, 1e-4, tol=1e-6, max_iter=n_iter)
        assert (cut.status, cut.n_iter, cut.history) == (Status.MAX_ITER, n_iter, whole.history[: n_iter + 1])
        stopped = minimise_smoothed(
            objective, 1e-4, tol=1e-6, monitor=lambda _, __, n, last=n_iter: n == last
        )
        assert (stopped.status, stopped.n_iter) == (Status.STOPPED, n_iter)
        np.testing.assert_array_equal(stopped.coef, cut.coef)
        assert cut.certificate == cut.history[-1]


def test_the_limit_of_a_large_alpha_is_found_from_any_start():
    objective = hinge()
    for start in (None, 1e-3 * np.ones(5), 10.0 * np.ones(5)):
        before = objective.design.reads
        solution = minimise_smoothed(objective, 1e3, tol=1e-6, start=start)
        reads = objective.design.reads - before
        assert solution.status is Status.CONVERGED
        np.testing.assert_allclose(solution.coef, -objective.at(np.zeros(5)).gradient / 2e3, rtol=1e-2)
        if start is None:
            assert reads == 3
