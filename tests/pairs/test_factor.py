"""The factor of the Laplacian against the Laplacian of explicit pairs."""

import tracemalloc

import numpy as np
import pytest

from oracles import Pairs, label_pairs
from rankwise.data.validation import check_qid
from rankwise.exceptions import MemoryLimitError
from rankwise.pairs.factor import ColumnFactor, ComponentFactor, IncidenceFactor, factor_of
from rankwise.pairs.labels import label_graph
from rankwise.pairs.preferences import preference_graph
from strategies import make_problem

SETTINGS = [
    {"ties": ties, "cost": cost, "query_weight": query_weight}
    for ties, cost in [
        ("include", "magnitude"),
        ("include", "unit"),
        ("exclude", "magnitude"),
        ("exclude", "unit"),
        ("exclude", "relative"),
    ]
    for query_weight in ("size", "pairs", "equal")
]


@pytest.mark.parametrize("settings", SETTINGS, ids=lambda s: "-".join(s.values()))
@pytest.mark.parametrize(("weighted", "queries"), [(False, 6), (True, 6), (True, 1)])
def test_factor_of_explicit_pairs(settings, weighted, queries):
    problem = make_problem(5, weighted=weighted, queries=queries)
    m = problem.y.size
    graph = label_graph(problem.y, check_qid(problem.qid, m), row_weight=problem.sample_weight, **settings)
    pairs = label_pairs(problem.y, problem.qid, sample_weight=problem.sample_weight, **settings)
    factor = factor_of(graph)
    F = factor.apply(np.eye(m))
    np.testing.assert_allclose(F.T @ F, pairs.laplacian, atol=1e-11)
    np.testing.assert_allclose(factor.transposed(np.eye(m)), F.T, atol=1e-12)
    np.testing.assert_allclose(F.T @ factor.target(graph.pull), pairs.pull, atol=1e-10)
    np.testing.assert_allclose(factor.target(F.T @ F[:, 3]), F[:, 3], atol=1e-10)
    v = np.random.default_rng(0).normal(size=m)
    np.testing.assert_allclose(F @ factor.values(F @ v), F @ v, atol=1e-10)
    assert factor.apply(v).shape == (m,)
    K = np.random.default_rng(1).normal(size=(m, m))
    np.testing.assert_allclose(factor.sandwich(K.copy()), F @ K @ F.T, atol=1e-10)


@pytest.mark.parametrize("cost", ["magnitude", "unit", "relative"])
def test_factors_of_listed_pairs(cost):
    rng = np.random.default_rng(0)
    # Three components, rows without a pair, a pair twice, a contradiction, a weight of 0.
    edges = np.concatenate(
        [rng.permuted(np.tile(np.arange(a, a + 6), (9, 1)), axis=1)[:, :2] for a in (0, 6, 12)]
    )
    edges = np.concatenate([edges, edges[:2], edges[3:5, ::-1]])
    magnitude, weight = rng.uniform(0.5, 2, edges.shape[0]), rng.uniform(0.5, 2, edges.shape[0])
    weight[7] = 0.0
    graph = preference_graph(edges[:, 0], edges[:, 1], 20, magnitude=magnitude, weight=weight, cost=cost)
    pairs = Pairs(edges[:, 0], edges[:, 1], graph.pair_weight, graph.difference, 20)
    for factor in (ComponentFactor(graph), IncidenceFactor(graph)):
        F = factor.apply(np.eye(20))
        np.testing.assert_allclose(F.T @ F, pairs.laplacian, atol=1e-11)
        np.testing.assert_allclose(factor.transposed(np.eye(F.shape[0])), F.T, atol=1e-12)
        np.testing.assert_allclose(F.T @ factor.target(graph.pull), pairs.pull, atol=1e-10)
        K = rng.normal(size=(20, 20))
        np.testing.assert_allclose(factor.sandwich(K.copy()), F @ K @ F.T, atol=1e-10)
    symmetric = ComponentFactor(graph)
    v = rng.normal(size=(20, 2))
    kept = graph.pair_weight > 0
    expected = np.where(kept[:, None], v[edges[:, 0]] - v[edges[:, 1]], 0.0)
    for factor in (symmetric, IncidenceFactor(graph)):
        np.testing.assert_allclose(
            np.where(kept[:, None], factor.values(factor.apply(v)), 0.0), expected, atol=1e-10
        )
    whole, other = IncidenceFactor(graph), IncidenceFactor(graph.chosen(np.arange(20)))
    alone = ColumnFactor([whole])
    np.testing.assert_array_equal(alone.apply(v), whole.apply(v))
    u = rng.normal(size=kept.size)
    np.testing.assert_array_equal(alone.transposed(u[:, None])[:, 0], whole.transposed(u))
    np.testing.assert_array_equal(alone.model(1, u), whole.transposed(u))
    pair = ColumnFactor([other, other])
    np.testing.assert_allclose(pair.apply(v), other.apply(v))
    np.testing.assert_allclose(pair.transposed(pair.apply(v)), other.transposed(other.apply(v)))
    assert not symmetric.apply(np.eye(20))[18:].any()


def test_the_relative_cost_takes_no_matrix_of_rows():
    """Its root is a matrix of levels × levels, and keeps what ties inside far levels weigh."""
    rng, m = np.random.default_rng(0), 2000
    y = rng.integers(0, 4, m) * 1e8
    graph = label_graph(y, check_qid(None, m), "exclude", "relative")
    v = rng.normal(size=m)
    tracemalloc.start()
    factor = factor_of(graph, by_products=True)
    image = factor.transposed(factor.apply(v))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8 * m * m / 10
    expected = graph.laplacian(v)
    np.testing.assert_allclose(image, expected, rtol=1e-9, atol=1e-12 * np.abs(expected).max())
    assert np.abs(factor.apply(v)).min() > 0


def test_the_roots_of_too_many_rows_are_refused(monkeypatch):
    monkeypatch.setattr("rankwise.pairs.factor.fits", lambda n_bytes: n_bytes < 8 * 4 * 50**2)
    y = np.arange(60.0)
    factor = factor_of(label_graph(y, check_qid(None, 60), "exclude", "relative"))
    with pytest.raises(MemoryLimitError, match=r"60 different labels takes.*Hint: use a linear model"):
        factor.apply(y)
    with pytest.raises(MemoryLimitError, match="60 rows that pairs connect"):
        factor_of(preference_graph(np.arange(59), np.arange(1, 60), 60))
