"""Violated pairs against explicit enumeration."""

from dataclasses import dataclass

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings
from numpy.testing import assert_allclose, assert_array_equal

from all_pairs import pairwise
from oracles import (
    hinge_of_pairs,
    laplacian_of_pairs,
    pair_weights,
    smoothed_hinge_of_pairs,
    violated_pairs,
)
from rankwise.data.queries import encode_queries
from rankwise.pairs import violations
from rankwise.pairs.labels import find_levels
from rankwise.pairs.violations import ViolationSweep

METHODS = ("auto", "brute", "levels", "fenwick")
TOLERANCE = 1e-10  # relative to the sum of the absolute terms


@dataclass
class Problem:
    label_ranks: np.ndarray
    query: np.ndarray
    scores: np.ndarray
    row_weight: np.ndarray | None = None
    scale: np.ndarray | None = None

    def sweep(self, method="auto", **options):
        n_queries = self.query.max() + 1
        return counted_by(
            method,
            self.label_ranks,
            np.concatenate(([0], np.cumsum(np.bincount(self.query, minlength=n_queries)))),
            order=np.argsort(self.query, kind="stable"),
            row_weight=self.row_weight,
            scale=self.scale,
            **options,
        )

    def pairs(self, margin=1.0):
        violated = violated_pairs(self.scores, self.label_ranks, self.query, margin)
        return violated, pair_weights(self.query, self.row_weight, self.scale)


def counted_by(method, *arguments, **options):
    """Return a sweep that counts every query in one way."""
    limits = {
        "brute": {"_BRUTE_UP_TO": 1 << 30},
        "levels": {"_BRUTE_UP_TO": 0},
        "fenwick": {"_BRUTE_UP_TO": 0, "_MOST_LEVELS": 0},
    }
    with pytest.MonkeyPatch.context() as patched:
        for name, value in limits.get(method, {}).items():
            patched.setattr(violations, name, value)
        return ViolationSweep(*arguments, **options)


def dense_ranks(labels, query):
    ranks = np.empty(labels.size, dtype=np.int64)
    for q in np.unique(query):
        ranks[query == q] = np.unique(labels[query == q], return_inverse=True)[1]
    return ranks


def score_sets(rng, size):
    """Scores that tempt a sweep to disagree with the explicit comparison."""
    just_off = np.array([np.nextafter(1.0, 0.0), 1.0, np.nextafter(1.0, 2.0)])
    return {
        "random": rng.normal(size=size),
        "tied": rng.integers(-2, 3, size).astype(float),
        "constant": np.full(size, 0.3),
        "one apart": rng.integers(-30, 30, size) / 10,
        "one ulp off": rng.choice(just_off, size) * rng.integers(-2, 3, size),
        "huge": rng.choice([1e17, -1e17, 1e17 + 16], size) + rng.integers(0, 3, size),
        "large and small": np.where(rng.random(size) < 0.3, 1e17, rng.normal(size=size)),
        "denormal": rng.integers(-3, 4, size) * 5e-324 + rng.integers(0, 2, size),
        "offset": 1e6 + rng.normal(size=size),
        "signed zero": rng.choice([0.0, -0.0, 1.0, -1.0], size),
    }


SCORE_KINDS = tuple(score_sets(np.random.default_rng(0), 1))


def make(scores="random", *, size=60, levels=5, queries=1, weighted=False, seed=0):
    rng = np.random.default_rng([seed, size, levels, queries])
    query = rng.integers(0, queries, size)
    query[0] = queries - 1
    labels = rng.permutation(size) if levels == 0 else rng.integers(0, levels, size)
    return Problem(
        dense_ranks(labels, query),
        query,
        score_sets(rng, size)[scores],
        rng.uniform(0.1, 3.0, size) if weighted else None,
        rng.uniform(0.1, 2.0, queries) if weighted else None,
    )


def assert_matches_pairs(problem, *, delta=0.3, **options):
    """Everything `Violations` offers, against the explicit pairs."""
    sweep = problem.sweep(**options)
    point = sweep.at(problem.scores)
    violated, weights = problem.pairs()
    active = np.where(violated, weights, 0.0)
    is_integer = problem.row_weight is None and problem.scale is None
    same = assert_array_equal if is_integer else lambda a, b: assert_allclose(a, b, rtol=1e-12, atol=0)
    won, lost = active.sum(axis=1), active.sum(axis=0)
    assert_allclose(point.net_wins, won - lost, rtol=0, atol=0 if is_integer else 1e-12 * won.max(initial=1))
    same(point.weight, active.sum())
    same(point.degrees(), active.sum(axis=1) + active.sum(axis=0))
    inner = np.where(problem.pairs(1.0 - delta)[0], weights, 0.0)
    near = np.where(violated & (inner == 0), weights, 0.0)
    exact = 0 if is_integer else 1e-12 * active.sum()
    assert_allclose(point.degrees(delta), near.sum(axis=1) + near.sum(axis=0), rtol=1e-12, atol=exact)

    # The sweeps add scores relative to one of them; their rounding is relative to the largest difference.
    spread = np.ptp(problem.scores) + 1
    expected = hinge_of_pairs(problem.scores, violated, weights)
    assert_allclose(point.hinge(), expected, rtol=TOLERANCE, atol=1e-13 * active.sum() * spread)

    rng = np.random.default_rng(1)
    laplacian = laplacian_of_pairs(violated, weights)
    for v in (rng.normal(size=problem.scores.size), rng.normal(size=(problem.scores.size, 6))):
        assert_allclose(point.laplacian(v), laplacian @ v, rtol=TOLERANCE, atol=TOLERANCE * active.sum())
    assert_array_equal(point.laplacian(np.full(problem.scores.size, 1e5)), np.zeros(problem.scores.size))

    smoothed = point.smoothed(delta)
    value, gradient, slope = smoothed_hinge_of_pairs(problem.scores, violated, weights, delta)
    # Differences of sums over two windows, divided by delta: `Violations.smoothed` states this growth.
    growth = 1e-13 * spread / delta
    assert_allclose(smoothed.value, value, rtol=TOLERANCE, atol=growth * spread * active.sum())
    assert_allclose(smoothed.active, slope, rtol=TOLERANCE, atol=growth * active.sum())
    assert_allclose(smoothed.gradient, gradient, rtol=TOLERANCE, atol=growth * won.max(initial=1))


@pairwise(method=METHODS, scores=SCORE_KINDS, levels=[0, 2, 5, 8, 9], weighted=[False, True])
def test_one_query(scores, levels, weighted, method):
    assert_matches_pairs(make(scores, levels=levels, weighted=weighted), method=method)


@pairwise(method=METHODS, scores=SCORE_KINDS, n_threads=[1, 2])
def test_many_interleaved_queries(scores, method, n_threads):
    problem = make(scores, size=300, queries=37, weighted=n_threads == 2)
    assert_matches_pairs(problem, method=method, n_threads=n_threads)


@pairwise(method=METHODS, size=[1, 2, 3, 7, 199, 201, 500], levels=[0, 3])
def test_sizes(size, levels, method):
    assert_matches_pairs(make(size=size, levels=levels, weighted=size % 2 == 0), method=method)


@pytest.mark.parametrize("levels", [0, 5])
@pytest.mark.parametrize("scores", ["random", "one ulp off"])
def test_counts_of_ten_thousand_rows(levels, scores):
    size = 10_000
    problem = make(scores, size=size, levels=levels)
    point = problem.sweep(n_threads=2).at(problem.scores)
    won, lost = np.zeros(size), np.zeros(size)
    for rows in np.array_split(np.arange(size), 20):
        beaten = problem.label_ranks[rows, None] > problem.label_ranks
        violated = beaten & (problem.scores[rows, None] - problem.scores < 1.0)
        won[rows] = violated.sum(axis=1)
        lost += violated.sum(axis=0)
    assert_array_equal(point.net_wins, won - lost)
    assert_array_equal(point.degrees(), won + lost)


@pairwise(method=METHODS, factor=[1e-3, 0.2, 1.4, 1e3], delta=[1e-3, 0.5, 3.0])
def test_margins_and_smoothing_widths(method, factor, delta):
    """Scores times a factor are the same problem as scores and a margin divided by it."""
    problem = make(weighted=True)
    problem.scores *= factor
    assert_matches_pairs(problem, method=method, delta=delta)


@pytest.mark.parametrize("method", METHODS)
def test_a_pair_at_exactly_the_margin_is_satisfied(method):
    ranks, start = np.array([0, 1]), np.array([0, 2])
    sweep = counted_by(method, ranks, start)
    assert sweep.at(np.array([0.0, 1.0])).weight == 0
    assert sweep.at(np.array([0.0, np.nextafter(1.0, 0.0)])).weight == 1
    # Rounding: 1.4 - 0.4 < 1, although 0.4 + 1 == 1.4; and 0.3 + 0.7 == 1, although -0.7 + 1 > 0.3.
    assert sweep.at(np.array([0.4, 1.4])).weight == 1
    assert sweep.at(np.array([-0.7, 0.3])).weight == 0
    # At 1e17 neighbours are 16 apart: adding the margin to a score would be lost.
    assert sweep.at(np.array([1e17, 1e17])).weight == 1
    assert sweep.at(np.array([1e17, 1e17 + 16])).weight == 0


@pytest.mark.parametrize("method", METHODS)
def test_equal_labels_and_empty_queries_have_no_pairs(method):
    ranks = np.array([0, 0, 0, 1, 0, 0])
    point = counted_by(method, ranks, np.array([0, 0, 3, 3, 5, 6, 6])).at(np.arange(6.0) / 10)
    assert_array_equal(point.net_wins, [0, 0, 0, 1, -1, 0])
    assert_array_equal(point.laplacian(np.arange(6.0)), [0, 0, 0, -1, 1, 0])
    assert_array_equal(point.smoothed(0.5).gradient, [0, 0, 0, -1, 1, 0])


@pytest.mark.parametrize("method", METHODS)
def test_satisfied_pairs_leave_exact_zeros(method):
    problem = make(levels=12, weighted=True)
    point = problem.sweep(method=method).at(1.5 * problem.label_ranks)
    assert point.weight == 0
    assert point.hinge() == 0
    assert_array_equal(point.net_wins, np.zeros(60))
    assert_array_equal(point.laplacian(problem.scores), np.zeros(60))
    assert point.smoothed(0.1).value == 0


@pytest.mark.parametrize("method", METHODS)
def test_gradient_of_smoothed_hinge_by_finite_differences(method):
    problem = make(size=40, levels=9, queries=3, weighted=True)
    sweep = problem.sweep(method=method)
    gradient = sweep.at(problem.scores).smoothed(0.4).gradient
    step = 1e-6
    for row in range(0, 40, 3):
        shift = step * (np.arange(40) == row)
        up = sweep.at(problem.scores + shift).smoothed(0.4).value
        down = sweep.at(problem.scores - shift).smoothed(0.4).value
        assert_allclose((up - down) / (2 * step), gradient[row], rtol=1e-6, atol=1e-6)


def test_squared_hinge_is_the_quadratic_of_the_violated_subgraph():
    problem = make(weighted=True)
    value, gradient = problem.sweep().at(problem.scores).squared_hinge()
    violated, weights = problem.pairs()
    t = 1.0 - (problem.scores[:, None] - problem.scores)
    weighted = np.where(violated, weights * t, 0.0)
    assert_allclose(value, np.sum(weighted * t), rtol=TOLERANCE)
    assert_allclose(gradient, 2 * (weighted.sum(axis=0) - weighted.sum(axis=1)), atol=TOLERANCE * value)


@pairwise(levels=[0, 5], queries=[1, 2, 400], weighted=[False, True])
def test_threads_agree_exactly(levels, queries, weighted):
    # One or two queries beyond kSharedQueryRows, whose two sides two threads share; or one query a thread.
    problem = make(size=70_000, levels=levels, queries=queries, weighted=weighted)
    one, two = (problem.sweep(n_threads=n).at(problem.scores) for n in (1, 2))
    block = np.random.default_rng(2).normal(size=(70_000, 5))
    assert_array_equal(one.net_wins, two.net_wins)
    assert_array_equal(one.degrees(), two.degrees())
    assert_array_equal(one.laplacian(block), two.laplacian(block))
    assert_array_equal(one.smoothed(0.1).gradient, two.smoothed(0.1).gradient)
    assert one.smoothed(0.1).value == two.smoothed(0.1).value


@pytest.mark.parametrize("levels", [0, 3])
def test_levels_of_labels_give_the_same_sweep(levels):
    problem = make(size=50, queries=4, levels=levels, weighted=True)
    queries = encode_queries(problem.query)
    found = find_levels(problem.label_ranks * 2.5 - 1, queries)
    sweep = ViolationSweep.from_levels(found, queries, row_weight=problem.row_weight, scale=problem.scale)
    expected = problem.sweep().at(problem.scores).net_wins
    assert_array_equal(sweep.at(problem.scores).net_wins, expected)


@st.composite
def problems(draw):
    size = draw(st.integers(1, 25))
    rows = st.lists(st.integers(0, 3), min_size=size, max_size=size).map(np.array)
    query = np.unique(draw(rows), return_inverse=True)[1]
    step = draw(st.sampled_from([1.0, 0.1, 0.5, 1e-9]))
    scores = draw(st.lists(st.integers(-20, 20), min_size=size, max_size=size).map(np.array)) * step
    return Problem(dense_ranks(draw(rows), query), query, scores)


@settings(deadline=None, max_examples=60)
@given(problems(), st.randoms(use_true_random=False), st.sampled_from(METHODS))
def test_permuting_rows_permutes_results(problem, random, method):
    rows = np.array(random.sample(range(problem.scores.size), problem.scores.size))
    permuted = Problem(problem.label_ranks[rows], problem.query[rows], problem.scores[rows])
    before = problem.sweep(method=method).at(problem.scores)
    after = permuted.sweep(method=method).at(permuted.scores)
    assert_array_equal(after.net_wins, before.net_wins[rows])
    assert_allclose(after.smoothed(0.5).gradient, before.smoothed(0.5).gradient[rows], rtol=1e-9, atol=1e-9)


@settings(deadline=None, max_examples=60)
@given(problems(), st.sampled_from(METHODS))
def test_a_duplicate_is_a_row_of_weight_two(problem, method):
    size = problem.scores.size
    twice = np.arange(size) % 3 == 0
    rows = np.concatenate((np.arange(size), np.flatnonzero(twice)))
    repeated = Problem(problem.label_ranks[rows], problem.query[rows], problem.scores[rows])
    weighted = Problem(problem.label_ranks, problem.query, problem.scores, 1.0 + twice)
    duplicated = repeated.sweep(method=method).at(repeated.scores)
    once = weighted.sweep(method=method).at(weighted.scores)
    assert_array_equal(np.bincount(rows, duplicated.net_wins), once.net_wins)
    assert duplicated.weight == once.weight
    v = problem.scores**2
    product = np.bincount(rows, duplicated.laplacian(v[rows]))
    assert_allclose(product, once.laplacian(v), rtol=1e-9, atol=1e-9 * np.abs(v).max() * size**2)


@pytest.mark.parametrize("weighted", [False, True])
def test_the_pairs_of_some_queries(weighted):
    """As a worker counts them: rows in ascending order, queries that are mixed and of different sizes."""
    rng = np.random.default_rng(0)
    query = rng.permutation(np.repeat(np.arange(6), [3, 7, 1, 5, 9, 4]))
    labels, scores = rng.integers(0, 4, size=query.size), rng.normal(size=query.size)
    weight = rng.random(query.size) + 0.5 if weighted else None
    queries = encode_queries(query)
    scale = rng.random(6) + 0.5
    whole = ViolationSweep.from_levels(
        find_levels(labels.astype(float), queries, weight), queries, row_weight=weight, scale=scale
    )
    at = whole.at(scores)
    for chosen in ([0, 2, 5], [1, 4], [3]):
        own = np.flatnonzero(np.isin(query, chosen))
        part = whole.part(own, np.array(chosen)).at(scores[own])
        assert_allclose(part.net_wins, at.net_wins[own])
        assert_allclose(part.degrees(), at.degrees()[own])
    everything = whole.part(slice(None), np.arange(6)).at(scores)
    assert_allclose(everything.degrees(), at.degrees())
