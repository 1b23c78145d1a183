"""Cutting planes: the model, its planes, its lines and its reads, against what each of them stands for."""

import numpy as np
import pytest

from all_pairs import pairwise
from oracles import simplex_gap
from rankwise.data.queries import one_query
from rankwise.design import as_design
from rankwise.objectives import HingeObjective
from rankwise.pairs.labels import find_levels, pair_scale
from rankwise.pairs.preferences import PreferenceMargins
from rankwise.pairs.violations import ViolationSweep
from rankwise.solvers import bundle
from rankwise.solvers.bundle import _Best, _LineSearch, _Planes, minimise_by_planes
from rankwise.solvers.solution import Status

MARGIN = 2.5  # of every pair: the loss at 0


def hinge(seed=0, rows=40, features=5, pairs=150, scale=1.0):
    rng = np.random.default_rng(seed)
    X = scale * rng.normal(size=(rows, features))
    winner = rng.integers(rows, size=pairs)
    loser = (winner + rng.integers(1, rows, size=pairs)) % rows
    return HingeObjective(
        as_design(X), PreferenceMargins(rows, winner, loser, np.ones(pairs), np.full(pairs, MARGIN))
    )


def real_valued(rows, features=4, seed=0):
    rng = np.random.default_rng(seed)
    X, queries = rng.normal(size=(rows, features)), one_query(rows)
    y = X @ rng.normal(size=features) + rng.normal(size=rows)
    levels = find_levels(y, queries)
    return HingeObjective(
        as_design(X), ViolationSweep.from_levels(levels, queries, scale=pair_scale(levels, "equal"))
    )


class TestModel:
    def filled(self, alpha=0.3, n_planes=8, *, drops=False):
        rng = np.random.default_rng(0)
        planes = _Planes(alpha, drops=drops)
        vectors, offsets = rng.normal(size=(n_planes, 4)), rng.normal(size=n_planes)
        for vector, offset in zip(vectors, offsets, strict=True):
            planes.add(vector, float(offset))
        return planes, vectors, offsets

    def test_it_holds_the_products_of_its_planes(self):
        planes, vectors, offsets = self.filled()
        np.testing.assert_allclose(planes.gram, vectors @ vectors.T)
        np.testing.assert_array_equal(planes.offset, offsets)
        np.testing.assert_array_equal(planes.weight, np.eye(8)[0])
        np.testing.assert_array_equal(planes.idle, 0.0)

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

    def test_planes_without_weight_are_dropped_after_twenty_times_and_no_bound_is_lost(self):
        planes, _, _ = self.filled(drops=True)
        w, lower = planes.minimise()
        n_used = np.count_nonzero(planes.weight)
        assert n_used < 8
        for _ in range(19):
            planes.minimise()
            assert len(planes.vectors) == 8
        planes.minimise()
        again, bound = planes.minimise()
        assert len(planes.vectors) == n_used == planes.weight.size == planes.idle.size == planes.offset.size
        np.testing.assert_allclose(planes.gram, np.array(planes.vectors) @ np.array(planes.vectors).T)
        np.testing.assert_allclose(again, w, atol=1e-9)
        assert bound == pytest.approx(lower)
        kept, _, _ = self.filled(drops=False)
        for _ in range(30):
            kept.minimise()
        assert len(kept.vectors) == 8

    def test_a_plane_that_is_used_again_is_not_idle(self):
        planes, _, _ = self.filled(drops=True)
        planes.minimise()
        unused = int(np.flatnonzero(planes.weight == 0)[0])
        for _ in range(15):
            planes.minimise()
        assert planes.idle[unused] == 16
        planes.offset[unused] += 100.0  # now it is the highest
        planes.minimise()
        assert planes.idle[unused] == 0

    def test_too_many_planes_are_replaced_by_their_combination_which_proves_as_much(self, monkeypatch):
        monkeypatch.setattr(bundle, "_MOST_PLANES", 6)
        planes, vectors, offsets = self.filled(drops=True)
        w, lower = planes.minimise()
        assert len(planes.vectors) == 4  # half as many, and the combination
        np.testing.assert_array_equal(planes.weight, np.eye(4)[3])
        np.testing.assert_allclose(planes.vectors[-1], -2 * planes.alpha * w)
        assert planes.offset[-1] - planes.vectors[-1] @ planes.vectors[-1] / (
            4 * planes.alpha
        ) == pytest.approx(lower)
        np.testing.assert_allclose(planes.gram, np.array(planes.vectors) @ np.array(planes.vectors).T)
        # The heaviest ones are kept, in their order.
        whole, _, _ = self.filled()
        whole.minimise()
        heaviest = np.sort(np.argsort(-whole.weight)[:3])
        np.testing.assert_array_equal(np.array(planes.vectors[:3]), vectors[heaviest])
        np.testing.assert_array_equal(planes.offset[:3], offsets[heaviest])
        assert planes.minimise()[1] >= lower - 1e-12


class TestLine:
    def search(self, objective, alpha, start, target):
        best = _Best(start, objective.scores(start), 0.0)
        direction = target - start
        line = _LineSearch(objective, alpha)
        return line, line.length(best, direction, objective.scores(direction))

    def slope(self, objective, alpha, start, direction, length):
        w = start + length * direction
        return objective.at(w).gradient @ direction + 2 * alpha * w @ direction

    @pairwise(seed=range(8), alpha=[1e-3, 0.1], reach=[0.05, 1.0, 30.0])
    def test_it_ends_near_the_minimum_of_the_line(self, seed, alpha, reach):
        objective = hinge(seed)
        start = np.zeros(5)
        target = -reach * objective.at(start).gradient
        _, length = self.search(objective, alpha, start, target)
        # A bracket of a tenth, a secant inside it.
        assert self.slope(objective, alpha, start, target, 0.85 * length) <= 0
        assert self.slope(objective, alpha, start, target, 1.18 * length) >= 0

    def test_a_parabola_is_met_closely(self):
        """Every pair is inside its margin and the loss is linear: only the penalty curves."""
        objective = hinge(scale=1e-3)
        g = objective.at(np.zeros(5)).gradient
        start = np.full(5, 1e-3)
        for reach in (0.3, 0.5, 3.0):
            target = start - reach * (g + 2 * start) / 2
            _, length = self.search(objective, 1.0, start, target)
            assert length * reach == pytest.approx(1.0, rel=1e-6)

    def test_a_minimum_far_beyond_the_target_is_reached_by_doubling(self):
        objective = hinge(scale=1e-3)
        g = objective.at(np.zeros(5)).gradient
        _, length = self.search(objective, 1.0, np.zeros(5), -g / 2 / 100)
        assert length == pytest.approx(100.0, rel=1e-6)
        # Twelve trials end it, wherever it is by then.
        _, length = self.search(objective, 1.0, np.zeros(5), -g / 2 * 1e-9)
        assert length == 2.0**12

    def test_a_minimum_right_at_the_start_is_reached_by_quarters(self):
        objective = hinge(scale=1e-3)
        g = objective.at(np.zeros(5)).gradient
        _, length = self.search(objective, 1.0, -g / 2, np.ones(5))
        assert length == 0.25**12

    def test_large_rankings_are_searched_on_a_sample_that_grows_until_it_is_everything(self):
        objective = real_valued(8_000)
        line, length = self.search(objective, 1e-3, np.zeros(4), -objective.at(np.zeros(4)).gradient)
        assert line._sample[0].size == 4_000
        whole = bundle._LineSearch.__new__(bundle._LineSearch)
        whole._objective, whole._alpha, whole._sample = objective, 1e-3, None
        direction = -objective.at(np.zeros(4)).gradient
        best = _Best(np.zeros(4), np.zeros(8_000), 0.0)
        exact = whole.length(best, direction, objective.scores(direction))
        assert length == pytest.approx(exact, rel=0.1)
        line.look_closer()
        assert line._sample is None
        line.look_closer()
        assert line._sample is None
        huge = _LineSearch(real_valued(40_000), 1e-3)
        huge.look_closer()
        assert 16_000 <= huge._sample[0].size <= 32_000


class TestReads:
    def test_a_read_for_the_target_and_one_for_the_plane_each_time(self):
        objective = hinge()
        for line_search in (True, False):
            before = objective.n_reads
            solution = minimise_by_planes(objective, 1e-3, tol=1e-5, line_search=line_search)
            assert solution.n_reads == objective.n_reads - before
            assert solution.status is Status.CONVERGED
            # Two at 0, two for each iteration, but no plane after the last.
            assert solution.n_reads == 2 + 2 * solution.n_iter - 1
            assert len(solution.history) == solution.n_iter
        warm = minimise_by_planes(objective, 1e-3, tol=1e-5, start=solution.coef)
        assert warm.n_reads == 4 + 2 * warm.n_iter - 1
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
