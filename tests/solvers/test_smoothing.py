"""The smoothed hinge: how its width shrinks, what it reads, what it proves; without bounds and inside them."""

import numpy as np
import pytest

from all_pairs import pairwise
from rankwise.design import as_design
from rankwise.objectives import HingeObjective, HingePoint
from rankwise.pairs.preferences import PreferenceMargins
from rankwise.solvers.bundle import minimise_by_planes
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
    return HingeObjective(
        as_design(X), PreferenceMargins(rows, winner, loser, np.ones(pairs), np.full(pairs, MARGIN))
    )


def value(objective, alpha, w):
    return float(objective.at(w).value) + alpha * w @ w


def noted_widths(monkeypatch):
    widths, smoothed = [], HingePoint.smoothed

    def noted(self, delta):
        widths.append(delta)
        return smoothed(self, delta)

    monkeypatch.setattr(HingePoint, "smoothed", noted)
    return widths


@pairwise(alpha=[1e-1, 1e-3, 1e-5], tol=[1e-3, 1e-7], is_warm=[False, True])
def test_reads_widths_and_proofs(monkeypatch, alpha, tol, is_warm):
    objective = hinge()
    start = np.full(5, 3.0) if is_warm else None  # where some pairs have their margin
    widths, told = noted_widths(monkeypatch), []
    before = objective.n_reads
    solution = minimise_smoothed(
        objective, alpha, tol=tol, start=start, monitor=lambda w, gap, n: told.append((w.copy(), gap, n))
    )
    assert solution.status is Status.CONVERGED
    assert solution.n_reads == objective.n_reads - before
    # The width starts at the mean margin, or at a tenth; then it becomes smaller by a half to a tenth at a time.
    shrinks = np.array(widths[1:]) / np.array(widths[:-1])
    assert widths[0] == pytest.approx(MARGIN * (0.1 if is_warm else 1.0))
    assert ((shrinks == 1) | ((shrinks >= 0.1 - 1e-12) & (shrinks <= 0.5 + 1e-12))).all()
    # An iteration reads twice, and a new width once; the start once or twice, and the limit of a large alpha, which is
    # looked at from 0, once, or thrice where the slope there is small enough.
    n_narrowed = np.count_nonzero(shrinks < 1)
    slope = objective.at(np.zeros(5)).gradient
    limit = 0 if is_warm else 1 if slope @ slope > 2 * alpha * MARGIN else 3
    assert solution.n_reads == 2 * solution.n_iter + n_narrowed + 1 + is_warm + limit
    assert solution.n_iter == len(solution.history) - 1
    assert [n for *_, n in told] == list(range(solution.n_iter))
    assert [gap for _, gap, _ in told] == solution.history[:-1]
    assert (np.diff(solution.history) <= 0).all()
    assert solution.certificate == solution.history[-1] <= tol * solution.gain * (1 + 1e-12)
    assert solution.gain == pytest.approx(
        MARGIN - value(objective, alpha, solution.coef) + solution.certificate, rel=1e-9
    )
    lowest = minimise_by_planes(objective, alpha, tol=1e-9)
    minimum = value(objective, alpha, lowest.coef)
    for w, gap, _ in told:
        assert value(objective, alpha, w) - minimum <= gap + 1e-12


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
        before = objective.n_reads
        solution = minimise_smoothed(objective, 1e3, tol=1e-6, start=start)
        assert solution.status is Status.CONVERGED
        np.testing.assert_allclose(solution.coef, -objective.at(np.zeros(5)).gradient / 2e3, rtol=1e-2)
        assert solution.n_reads == objective.n_reads - before - 2
        if start is None:
            assert solution.n_reads == 3
