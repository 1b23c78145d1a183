"""The graph of labels against the explicit list of its pairs."""

import numpy as np
import pytest

from all_pairs import is_valid_cost, pairwise
from oracles import label_pairs
from rankwise.data.validation import check_qid
from rankwise.pairs.labelled import LabelPairs
from rankwise.pairs.labels import (
    COSTS,
    QUERY_WEIGHTS,
    TIES,
    find_levels,
    label_graph,
    laplacian_depends_on_labels,
)
from strategies import make_problem


def build(problem, ties, cost, query_weight, importance=None, **options):
    queries = check_qid(problem.qid, problem.y.size)
    factors = None
    if importance is not None:
        factors = np.array([importance.get(key, 1.0) for key in queries.ids.tolist()])
    graph = label_graph(
        problem.y,
        queries,
        ties=ties,
        cost=cost,
        query_weight=query_weight,
        row_weight=problem.sample_weight,
        query_importance=factors,
        **options,
    )
    pairs = label_pairs(
        problem.y,
        problem.qid,
        ties=ties,
        cost=cost,
        query_weight=query_weight,
        sample_weight=problem.sample_weight,
        query_importance=importance,
    )
    return graph, pairs


def close(actual, expected):
    np.testing.assert_allclose(actual, expected, rtol=1e-11, atol=1e-11 * max(1.0, np.abs(expected).max()))


@pairwise(
    is_valid_cost, ties=TIES, cost=COSTS, query_weight=QUERY_WEIGHTS,
    weighted=[False, True], queries=[1, 6], real=[False, True], n_threads=[1, 3],
)  # fmt: skip
def test_graph_equals_its_pairs(ties, cost, query_weight, weighted, queries, real, n_threads):
    for seed in range(3):
        problem = make_problem(seed, queries=queries, weighted=weighted, real=real)
        importance = {0: 2.5, 2: 0.0} if queries > 1 else None
        graph, pairs = build(problem, ties, cost, query_weight, importance, n_threads=n_threads)
        L = pairs.laplacian
        rng = np.random.default_rng(seed)
        v, V = rng.normal(size=graph.n_rows), rng.normal(size=(graph.n_rows, 3))
        close(graph.laplacian(v), L @ v)
        close(graph.laplacian(V), L @ V)
        close(graph.pull, pairs.pull)
        close(graph.constant, pairs.constant)
        ordered = problem.y[pairs.winner] > problem.y[pairs.loser]
        close(graph.weight, pairs.weight[ordered].sum())


@pytest.mark.parametrize("cost", ["magnitude", "unit"])
def test_several_outputs_share_the_laplacian(cost):
    problem = make_problem(1)
    other = make_problem(2)
    queries = check_qid(problem.qid, problem.y.size)
    Y = np.column_stack([problem.y, other.y])
    (both,) = LabelPairs(Y, queries, None, None, "include", cost, "pairs").graphs()
    for column, y in enumerate([problem.y, other.y]):
        one = label_graph(y, queries, cost=cost, query_weight="pairs")
        close(both.pull[:, column], one.pull)
        close(both.constant[column], one.constant)


def test_levels_count_only_rows_that_weigh_something():
    y = np.array([0.0, 1.0, 2.0, 2.0])
    queries = check_qid([0, 0, 0, 1], 4)
    levels = find_levels(y, queries, np.array([1.0, 0.0, 3.0, 1.0]))
    assert levels.n_pairs == 1
    assert levels.ordered.tolist() == [True, False]
    assert find_levels(y, queries, None).n_pairs == 3


def test_huge_offsets_do_not_blur_the_labels():
    """Labels such as timestamps differ little compared with their size; only differences may matter."""
    problem = make_problem(3, queries=4)
    plain, _ = build(problem, "include", "magnitude", "size")
    problem.y = problem.y + 2.0**40
    shifted, _ = build(problem, "include", "magnitude", "size")
    np.testing.assert_allclose(shifted.pull, plain.pull, atol=1e-3)


@pairwise(is_valid_cost, ties=TIES, cost=COSTS, query_weight=QUERY_WEIGHTS)
def test_what_makes_pairs_depend_on_labels(ties, cost, query_weight):
    options = {"ties": ties, "cost": cost, "query_weight": query_weight}
    first, second = (label_pairs(y, **options) for y in ([0, 0, 1, 3], [0, 5, 2, 1]))
    differ = not np.allclose(first.laplacian, second.laplacian)
    assert laplacian_depends_on_labels(**options) == differ
