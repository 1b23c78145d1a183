"""Leave-pair-out by levels against refits without the two rows."""

import itertools
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics.pairwise import rbf_kernel

from oracles import label_pairs
from rankwise.holdout import LevelRanking, level_pair_out_error, level_pair_out_scores
from rankwise.holdout import levels as levels_module
from rankwise.holdout.spaces import reweighted_features, reweighted_kernel
from rankwise.kernels import Kernel
from rankwise.problems.kernel import KernelProblem
from rankwise.runtime.memory import MemoryBudget

ALPHAS = np.array([1e-3, 0.1, 1.0, 30.0])
SETTINGS = [
    {"ties": "exclude", "cost": "magnitude", "query_weight": "size"},
    {"ties": "exclude", "cost": "magnitude", "query_weight": "equal"},
    {"ties": "exclude", "cost": "unit", "query_weight": "pairs"},
    {"ties": "exclude", "cost": "unit", "query_weight": "equal"},
    {"ties": "exclude", "cost": "relative", "query_weight": "size"},
    {"ties": "exclude", "cost": "relative", "query_weight": "equal"},
    {"ties": "include", "cost": "unit", "query_weight": "size"},
    {"ties": "include", "cost": "magnitude", "query_weight": "equal"},
]


def labels(sizes):
    """So many rows of each level, whose values are not evenly spaced."""
    return np.random.default_rng(0).permutation(np.repeat(np.arange(len(sizes)) ** 1.5, sizes))


def refit_without(K, y, rows, alpha, options):
    kept = np.setdiff1d(np.arange(y.size), rows)
    pairs = label_pairs(y[kept], **options)
    among = K[np.ix_(kept, kept)]
    dual = np.linalg.lstsq(pairs.laplacian @ among + alpha * np.eye(kept.size), pairs.pull, rcond=None)[0]
    return K[np.ix_(rows, kept)] @ dual


def problem_of(kind, y, columns=3):
    """A singular kernel with an offset, and what decomposes it."""
    X = np.random.default_rng(1).normal(size=(y.size, columns))
    X[1] = X[0]
    rows = np.arange(y.size)
    if kind == "features":
        return X @ X.T, partial(reweighted_features, X + 10, rows)
    K = rbf_kernel(X, gamma=0.4)
    problem = KernelProblem(Kernel("precomputed"), K + 10, None, MemoryBudget(), 1)
    return K, partial(reweighted_kernel, problem, rows)


def differences(reweighted, ranking, shares):
    """f(i) - f(j) of every pair with y_i < y_j, (alphas, rows, rows); NaN elsewhere; none comes twice."""
    found = np.full((ALPHAS.size, ranking.level.size, ranking.level.size), np.nan)
    for a, pairs_of_levels, scores in level_pair_out_scores(
        reweighted, ranking, ALPHAS, shares=shares, n_threads=2
    ):
        pairs = np.array([(i, j) for rows, columns in pairs_of_levels for i in rows for j in columns])
        assert np.isnan(found[a, pairs[:, 0], pairs[:, 1]]).all()
        found[a, pairs[:, 0], pairs[:, 1]] = scores[:, 0] - scores[:, 1]
    return found


def check(kind, y, options, shares):
    """Hold differences of scores, and the error, to refits; constants mean nothing."""
    K, reweighted = problem_of(kind, y)
    ranking = LevelRanking.of_labels(y, **options)
    found = differences(reweighted, ranking, shares)
    np.testing.assert_array_equal(np.isfinite(found), np.broadcast_to(y[:, None] < y, found.shape))
    i, j = np.nonzero(y[:, None] < y)
    for a, alpha in enumerate(ALPHAS):
        for p in range(a, i.size, 3):
            f = refit_without(K, y, np.array([i[p], j[p]]), alpha, options)
            np.testing.assert_allclose(found[a, i[p], j[p]], f[0] - f[1], atol=1e-7)
    own = found[:, i, j]
    expected = np.where(np.abs(own) < 1e-9, 0.5, own > 0).mean(axis=1)
    errors = level_pair_out_error(reweighted, ranking, ALPHAS, shares=shares)
    np.testing.assert_allclose(errors, expected, atol=1e-12)


@pytest.mark.parametrize("options", SETTINGS, ids=lambda s: "-".join(s.values()))
@pytest.mark.parametrize("sizes", [(5, 6), (1, 7, 4), (3, 1, 4, 2)], ids=str)
@pytest.mark.parametrize("kind", ["kernel", "features"])
def test_a_decomposition_for_each_pair_of_levels(options, sizes, kind):
    check(kind, labels(sizes), options, shares=False)


@pytest.mark.parametrize("options", SETTINGS[:4], ids=lambda s: "-".join(s.values()))
@pytest.mark.parametrize(
    "sizes", [(5, 6), (3, 5), (1, 2, 5), (1, 6, 4), (1,) * 9, (1, 2, 1, 3, 1, 1, 1, 1, 1, 1)], ids=str
)
@pytest.mark.parametrize("kind", ["kernel", "features"])
def test_one_decomposition_for_all_pairs_of_levels(options, sizes, kind):
    y = labels(sizes)
    assert LevelRanking.of_labels(y, **options).is_multipartite
    check(kind, y, options, shares=True)


@given(
    sizes=st.lists(st.integers(1, 4), min_size=3, max_size=7),
    options=st.sampled_from(SETTINGS[:4]),
    kind=st.sampled_from(["kernel", "features"]),
)
@settings(max_examples=8, deadline=None)
def test_both_ways_agree(sizes, options, kind):
    y = labels(sizes)
    ranking = LevelRanking.of_labels(y, **options)
    if y.size < 3 or not ranking.is_multipartite:
        return
    _, reweighted = problem_of(kind, y)
    apart, shared = (differences(reweighted, ranking, shares) for shares in (False, True))
    np.testing.assert_allclose(apart, shared, atol=1e-7)


@pytest.mark.parametrize("sizes", [(2, 5), (1, 1, 5), (1, 5)], ids=str)
def test_a_level_of_all_rows_but_two_shares_no_decomposition(sizes):
    """There its rows would have the degree 0."""
    for options in SETTINGS[:4]:
        assert not LevelRanking.of_labels(labels(sizes), **options).is_multipartite
        check("kernel", labels(sizes), options, shares=False)


@pytest.mark.parametrize("options", SETTINGS, ids=lambda s: "-".join(s.values()))
def test_an_offset_of_all_labels_changes_nothing(options):
    y = np.random.default_rng(0).integers(0, 4, size=12)
    reweighted = problem_of("features", y)[1]
    near, far = (
        differences(reweighted, LevelRanking.of_labels(y + offset, **options), shares=False)
        for offset in (0.0, 2.0**40)
    )
    np.testing.assert_array_equal(near, far)


def test_nothing_left_to_learn_from():
    """Without the only row of a level no pair is left, and all scores are equal."""
    y = np.array([0.0, 0.0, 0.0, 1.0])
    ranking = LevelRanking.of_labels(y, ties="exclude", cost="magnitude", query_weight="size")
    assert not ranking.is_multipartite
    X = np.random.default_rng(0).normal(size=(4, 2))
    found = level_pair_out_error(partial(reweighted_features, X, np.arange(4)), ranking, ALPHAS, shares=False)
    np.testing.assert_array_equal(found, np.full(ALPHAS.size, 0.5))


@pytest.mark.parametrize("unit", [1e-9, 1e9])
@pytest.mark.parametrize("cost", ["magnitude", "unit", "relative"])
@pytest.mark.parametrize("shares", [False, True])
def test_units_of_the_labels_do_not_matter(cost, shares, unit):
    """Twin rows tie, and others do not; relative cost divides by the square of a label."""
    if cost == "relative" and shares:
        return
    y = labels([3, 4, 5])
    errors = []
    for own in (1.0, unit):
        ranking = LevelRanking.of_labels(y * own, ties="exclude", cost=cost, query_weight="size")
        alphas = ALPHAS / own**2 if cost == "relative" else ALPHAS
        errors.append(level_pair_out_error(problem_of("kernel", y)[1], ranking, alphas, shares=shares))
    np.testing.assert_allclose(errors[1], errors[0], rtol=1e-12)


@pytest.mark.parametrize("cost", ["magnitude", "unit", "relative"])
@pytest.mark.parametrize("ties", ["include", "exclude"])
def test_what_two_rows_of_levels_weigh(cost, ties):
    if cost == "relative" and ties == "include":
        return
    y = np.array([0.0, 0.0, 2.0, 7.0, 7.0, 7.0])
    ranking = LevelRanking.of_labels(y, ties=ties, cost=cost, query_weight="size")
    pairs = label_pairs(y, ties=ties, cost=cost, query_weight="pairs")
    weight, pull = np.zeros((3, 3)), np.zeros((3, 3))
    for i, j, own, wanted in zip(pairs.winner, pairs.loser, pairs.weight, pairs.difference, strict=True):
        for a, b, sign in ((i, j, 1), (j, i, -1)):
            weight[ranking.level[a], ranking.level[b]] = own
            pull[ranking.level[a], ranking.level[b]] = own * wanted * sign
    differs = ~np.eye(3, dtype=bool)
    np.testing.assert_allclose(ranking.coupling[differs], weight[differs])
    np.testing.assert_allclose(np.diag(ranking.coupling), 1.0 if ties == "include" else 0.0)
    np.testing.assert_allclose(ranking.weighed_difference[differs], pull[differs])


def test_sharing_is_cheaper_for_many_levels_and_dearer_for_few_columns():
    rng = np.random.default_rng(0)
    many, few = (
        LevelRanking.of_labels(
            rng.integers(n, size=500).astype(float), ties="exclude", cost="unit", query_weight="size"
        )
        for n in (60, 3)
    )
    assert many.price(500, 21, shares=True) < many.price(500, 21, shares=False) / 10
    assert few.price(5, 21, shares=False) < few.price(5, 21, shares=True) / 5


@pytest.mark.parametrize("query_weight", ["size", "equal"])
@pytest.mark.parametrize("shares", [True, False])
@pytest.mark.parametrize(("rank", "n_alphas"), [(3, 1), (50, 7)])
def test_the_price_is_what_counting_gives(query_weight, shares, rank, n_alphas):
    """Operations counted one pair of levels after the other: the method is chosen by comparing such prices."""
    y = np.repeat([0.0, 1.0, 2.0, 5.0], [4, 4, 9, 3])
    ranking = LevelRanking.of_labels(y, ties="exclude", cost="unit", query_weight=query_weight)
    m, levels, sizes = 20, 4, [4, 4, 9, 3]
    decomposition = 2 * m * min(rank, m) ** 2 + 9 * min(rank, m) ** 3  # products, and eigenvectors
    inside = 2 * levels**2 * rank + 3 * levels**3  # a system of the levels
    wanted = sum(
        m**2 * (rank + levels + 300) for _ in range(n_alphas)
    )  # what every pair of rows is scored with
    if shares:
        wanted += decomposition
        scales = len(set(sizes)) ** 2 / 2 if query_weight == "equal" else 1  # one for each two sizes
        for _ in range(n_alphas):
            for a, b in itertools.product(sizes, repeat=2):
                wanted += (3 * (a + b) ** 3 + levels_module._SHARED_CALLS) / 2  # each two levels come twice
            wanted += scales * (inside + 4 * m * rank * levels) + 4 * m**2 * (rank + levels)
    else:
        for _ in itertools.combinations(range(levels), 2):
            wanted += decomposition
            for _ in range(n_alphas):
                wanted += inside + 4 * m * rank + levels_module._CALLS
    assert ranking.price(rank, n_alphas, shares=shares) == pytest.approx(wanted)
