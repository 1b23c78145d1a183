"""Cutting planes: the model, its planes, its lines and its reads, against what each of them stands for."""

import numpy as np
import pytest

from oracles import simplex_gap
from rankwise.data.queries import one_query
from rankwise.design import as_design
from rankwise.losses import HingeLoss
from rankwise.objectives import MarginObjective
from rankwise.pairs.labels import find_levels, pair_scale
from rankwise.pairs.preferences import PreferenceGraph
from rankwise.pairs.violations import ViolationSweep
from rankwise.solvers.bundle import _Planes, minimise_by_planes
from rankwise.solvers.solution import Status

MARGIN = 2.5  # of every pair: the loss at 0


def hinge(seed=0, rows=40, features=5, pairs=150, scale=1.0):
    rng = np.random.default_rng(seed)
    X = scale * rng.normal(size=(rows, features))
    winner = rng.integers(rows, size=pairs)
    loser = (winner + rng.integers(1, rows, size=pairs)) % rows
    return MarginObjective(
        as_design(X), PreferenceGraph(rows, winner, loser, np.ones(pairs), np.full(pairs, MARGIN)), HingeLoss
    )


def real_valued(rows, features=4, seed=0):
    rng = np.random.default_rng(seed)
    X, queries = rng.normal(size=(rows, features)), one_query(rows)
    y = X @ rng.normal(size=features) + rng.normal(size=rows)
    levels = find_levels(y, queries)
    return MarginObjective(
        as_design(X),
        ViolationSweep.from_levels(levels, queries, scale=pair_scale(levels, "equal")),
        HingeLoss,
    )


class TestModel:
    def filled(self, alpha=0.3, n_planes=8, *, drops=False):
        rng = np.random.default_rng(0)
        planes = _Planes(alpha, drops=drops)
        vectors, offsets = rng.normal(size=(n_planes, 4)), rng.normal(size=n_planes)
        for vector, offset in zip(vectors, offsets, strict=True):
            planes.add(vector, float(offset))
        return planes, vectors, offsets

    @pytest.mark.parametrize("alpha", [0.01, 0.3, 5.0])
    def test_its_minimum_is_that_of_the_highest_plane_and_the_penalty(self, alpha):
        planes, vectors, offsets = self.filled(alpha)
        w, lower = planes.minimise()
        upper = (vectors @ w + offsets).max() + alpha * w @ w
        assert lower == pytest.approx(upper, rel=1e-9, abs=1e-9)
        assert planes.weight.sum() == pytest.approx(1.0)
        assert simplex_gap(vectors @ vectors.T / (2 * alpha), offsets, planes.weight) < 1e-9
        rng = np.random.default_rng(1)
        for v in w + rng.normal(size=(50, 4)):
            assert (vectors @ v + offsets).max() + alpha * v @ v >= lower


class TestReads:
    def test_a_read_for_the_target_and_one_for_the_plane_each_time(self):
        objective = hinge()
        for line_search in (True, False):
            before = objective.design.reads
            solution = minimise_by_planes(objective, 1e-3, tol=1e-5, line_search=line_search)
            assert solution.status is Status.CONVERGED
            # Two at 0, two for each iteration, but no plane after the last.
            assert objective.design.reads - before == 2 + 2 * solution.n_iter - 1
            assert len(solution.history) == solution.n_iter
        before = objective.design.reads
        warm = minimise_by_planes(objective, 1e-3, tol=1e-5, start=solution.coef)
        assert objective.design.reads - before == 4 + 2 * warm.n_iter - 1
        assert warm.n_iter <= solution.n_iter

    @pytest.mark.parametrize("line_search", [True, False])
    def test_what_is_told_is_what_was_found(self, line_search):
        objective, told = hinge(), []

        def watch(coef, gap, n_iter):
            told.append((coef.copy(), gap, n_iter))
            return n_iter == 6

        solution = minimise_by_planes(objective, 1e-4, tol=1e-9, monitor=watch, line_search=line_search)
        assert (solution.status, solution.n_iter) == (Status.STOPPED, 6)
        assert [n_iter for *_, n_iter in told] == [1, 2, 3, 4, 5, 6]
        assert [gap for _, gap, _ in told] == solution.history
        values = [float(objective.at(w).value) + 1e-4 * w @ w for w, *_ in told]
        assert (np.diff(values) <= 1e-15).all()  # the best so far
        assert (np.diff(solution.history) <= 1e-15).all()
        for n_iter in (1, 4):
            cut = minimise_by_planes(objective, 1e-4, tol=1e-9, max_iter=n_iter, line_search=line_search)
            assert (cut.status, cut.n_iter) == (Status.MAX_ITER, n_iter)
            np.testing.assert_array_equal(cut.coef, told[n_iter - 1][0])
            assert cut.history == solution.history[:n_iter]
            gain = MARGIN - values[n_iter - 1] + cut.certificate
            assert cut.gain == pytest.approx(gain, rel=1e-9)

    def test_without_progress_in_a_hundred_iterations_rounding_is_to_blame(self):
        objective = hinge(pairs=40, scale=1e6)
        solution = minimise_by_planes(objective, 1e-3, tol=0.0)
        assert solution.status is Status.STAGNATED
        # It stops at the hundredth iteration after the last that made progress, and no earlier.
        milestone, waits = np.inf, [0]
        for gap in solution.history:
            has_progress = gap <= (1 - 1e-3) * milestone
            milestone = gap if has_progress else milestone
            waits.append(0 if has_progress else waits[-1] + 1)
        assert waits[-1] == 100 > max(waits[:-1])

    @pytest.mark.parametrize("alpha", [1e-2, 1e-3])
    def test_a_line_search_takes_fewer_planes(self, alpha):
        objective = real_valued(300)
        searched = minimise_by_planes(objective, alpha, tol=1e-5)
        plain = minimise_by_planes(objective, alpha, tol=1e-5, line_search=False)
        assert searched.n_iter <= 0.7 * plain.n_iter
