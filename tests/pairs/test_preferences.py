"""The graph of explicit preferences against the incidence matrix of its pairs."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oracles import Pairs
from rankwise.pairs.labels import COSTS, TIES
from rankwise.pairs.listed import PreferenceFolds, PreferencePairs
from rankwise.pairs.plan import Plan
from rankwise.pairs.preferences import preference_graph

SETTINGS = [(ties, cost) for ties in TIES for cost in COSTS if (ties, cost) != ("include", "relative")]
ROWS = 15


def draw(seed, n_pairs=60, rows=ROWS):
    """Pairs with repetitions, contradictions, ties and some of weight 0; the last two rows are in none."""
    rng = np.random.default_rng(seed)
    winner = rng.integers(rows - 2, size=n_pairs)
    loser = (winner + rng.integers(1, rows - 2, size=n_pairs)) % (rows - 2)
    magnitude = rng.integers(0, 4, size=n_pairs) / 2
    weight = rng.integers(0, 3, size=n_pairs) * rng.random(n_pairs)
    return winner, loser, magnitude, weight


def explicit(winner, loser, magnitude, weight, ties="include", cost="magnitude", rows=ROWS):
    kept = [k for k in range(winner.size) if magnitude[k] > 0 or ties == "include"]
    omega = np.array([weight[k] / magnitude[k] ** 2 if cost == "relative" else weight[k] for k in kept])
    z = np.array([np.sign(magnitude[k]) if cost == "unit" else magnitude[k] for k in kept])
    return Pairs(winner[kept], loser[kept], omega, z, rows)


def close(actual, expected):
    np.testing.assert_allclose(actual, expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(("ties", "cost"), SETTINGS)
@pytest.mark.parametrize(("n_threads", "seed"), [(1, 0), (3, 1)])
def test_graph_equals_its_pairs(ties, cost, n_threads, seed):
    winner, loser, magnitude, weight = draw(seed)
    graph = preference_graph(
        winner, loser, ROWS, magnitude=magnitude, weight=weight, ties=ties, cost=cost, n_threads=n_threads
    )
    pairs = explicit(winner, loser, magnitude, weight, ties, cost)
    rng = np.random.default_rng(seed)
    for shape in [(ROWS,), (ROWS, 1), (ROWS, 3), (ROWS, 13)]:
        v = rng.normal(size=shape)
        close(graph.laplacian(v), pairs.laplacian @ v)
        close(graph.laplacian(np.asfortranarray(v)), pairs.laplacian @ v)
    close(graph.pull, pairs.pull)
    close(graph.constant, pairs.constant)
    ordered = pairs.difference > 0
    close(graph.weight, pairs.weight[ordered].sum())
    assert graph.n_pairs == np.sum((weight > 0) & (magnitude > 0))
    assert graph.blocks is None


def test_without_magnitudes_and_weights_every_pair_wants_one():
    winner, loser, *_ = draw(0)
    ones = np.ones(winner.size)
    for cost in COSTS:
        graph = preference_graph(winner, loser, ROWS, cost=cost, ties="exclude")
        pairs = explicit(winner, loser, ones, ones)
        v = np.arange(ROWS) ** 2.0
        close(graph.laplacian(v), pairs.laplacian @ v)
        close(graph.pull, pairs.pull)
        assert graph.constant == graph.weight == winner.size


def test_threads_change_no_bit():
    winner, loser, magnitude, weight = draw(4, n_pairs=5000, rows=300)
    winner[:2000] = 7  # a popular item: rows are no even measure of the work
    loser[:2000] = 8 + np.arange(2000) % 280
    results = []
    for n_threads in (1, 2, 5, 400):
        graph = preference_graph(winner, loser, 300, magnitude=magnitude, weight=weight, n_threads=n_threads)
        results.append(graph.laplacian(np.random.default_rng(0).normal(size=(300, 6))))
    for result in results[1:]:
        np.testing.assert_array_equal(result, results[0])


def test_a_large_common_part_of_the_scores_costs_no_digits():
    winner, loser, *_ = draw(2)
    graph = preference_graph(winner, loser, ROWS)
    v = np.arange(float(ROWS))
    np.testing.assert_array_equal(graph.laplacian(v + 2.0**50), graph.laplacian(v))


def test_components_are_counted_among_rows_with_pairs():
    winner, loser = np.array([0, 1, 5, 3]), np.array([1, 2, 4, 7])
    graph = preference_graph(winner, loser, 9, weight=np.array([1.0, 1.0, 2.0, 0.0]))
    assert graph.component_sizes.tolist() == [3, 2]
    assert PreferencePairs(None, graph).attributes["n_components_"] == 2
    assert (
        PreferencePairs(None, graph).attributes["n_unpaired_rows_"] == 4
    )  # 3 and 7 meet only with weight 0; 6 and 8 not at all


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), ties=st.sampled_from(TIES))
def test_what_must_not_matter_does_not(seed, ties):
    winner, loser, magnitude, weight = draw(seed)
    rng = np.random.default_rng(seed)
    v = rng.normal(size=(ROWS, 2))

    def build(winner, loser, magnitude, weight):
        return preference_graph(winner, loser, ROWS, magnitude=magnitude, weight=weight, ties=ties)

    def same(one, other):
        for name in ("pull", "constant", "weight"):
            close(getattr(one, name), getattr(other, name))
        close(one.laplacian(v), other.laplacian(v))

    graph = build(winner, loser, magnitude, weight)
    order = rng.permutation(winner.size)
    same(graph, build(winner[order], loser[order], magnitude[order], weight[order]))
    twice = [np.concatenate([a, a]) for a in (winner, loser, magnitude)]
    same(build(winner, loser, magnitude, 2 * weight), build(*twice, np.concatenate([weight, weight])))
    heavy = weight > 0
    same(graph, build(winner[heavy], loser[heavy], magnitude[heavy], weight[heavy]))
    # The Laplacian does not know who won; all that a reversed list changes is the sign of the wishes.
    back = build(loser, winner, magnitude, weight)
    close(back.laplacian(v), graph.laplacian(v))
    close(back.pull, -graph.pull)
    # A constant is no preference.
    close(graph.laplacian(v + 3), graph.laplacian(v))
    relabelled = rng.permutation(ROWS)
    moved = build(relabelled[winner], relabelled[loser], magnitude, weight)
    close(moved.laplacian(v)[relabelled], graph.laplacian(v[relabelled]))


def test_a_contradiction_asks_for_a_tie():
    graph = preference_graph(np.array([0, 1]), np.array([1, 0]), 2)
    close(graph.pull, [0.0, 0.0])
    close(graph.laplacian(np.array([1.0, 0.0])), [2.0, -2.0])
    assert graph.weight == 2


@pytest.mark.parametrize("ties", TIES)
def test_masked_columns_lack_their_own_pairs(ties):
    winner, loser, magnitude, weight = draw(3)
    rng = np.random.default_rng(3)
    n_folds = 4
    fold = rng.integers(-1, n_folds, size=winner.size)
    graph = preference_graph(winner, loser, ROWS, magnitude=magnitude, weight=weight, ties=ties, n_threads=2)
    masked = PreferenceFolds(PreferencePairs(None, graph), Plan.of_folds(fold), 0)
    V = rng.normal(size=(ROWS, n_folds))
    image = masked.laplacian(V)
    for c in range(n_folds):
        kept = fold != c
        alone = preference_graph(
            winner[kept], loser[kept], ROWS, magnitude=magnitude[kept], weight=weight[kept], ties=ties
        )
        close(image[:, c], alone.laplacian(V[:, c]))
        close(masked.pull[:, c], alone.pull)


def test_several_folds_may_lack_the_same_pair():
    winner, loser, magnitude, weight = draw(4)
    graph = preference_graph(winner, loser, ROWS, magnitude=magnitude, weight=weight)
    rng = np.random.default_rng(4)
    lacking = rng.random((3, winner.size)) < 0.5
    fold, pair = np.nonzero(lacking)
    masked = PreferenceFolds(PreferencePairs(None, graph), Plan(pair, fold, pair >= 0, winner.size, 3), 0)
    V = rng.normal(size=(ROWS, 3))
    image = masked.laplacian(V)
    for c in range(3):
        kept = ~lacking[c]
        alone = preference_graph(
            winner[kept], loser[kept], ROWS, magnitude=magnitude[kept], weight=weight[kept]
        )
        close(image[:, c], alone.laplacian(V[:, c]))
        close(masked.pull[:, c], alone.pull)
