"""The factor of the Laplacian against the Laplacian of explicit pairs."""

import numpy as np
import pytest

from oracles import label_pairs
from rankwise.data.validation import check_qid
from rankwise.pairs.factor import LabelFactor
from rankwise.pairs.labels import label_graph
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
    factor = LabelFactor(graph.blocks)
    F = factor.apply(np.eye(m))
    np.testing.assert_allclose(F.T @ F, pairs.laplacian, atol=1e-11)
    np.testing.assert_allclose(factor.transposed(np.eye(m)), F.T, atol=1e-12)
    np.testing.assert_allclose(F.T @ factor.target(graph.pull), pairs.pull, atol=1e-10)
    np.testing.assert_allclose(factor.target(F.T @ F[:, 3]), F[:, 3], atol=1e-10)
    v = np.random.default_rng(0).normal(size=m)
    np.testing.assert_allclose(F @ factor.solve(F @ v), F @ v, atol=1e-10)
    assert factor.apply(v).shape == (m,)
    K = np.random.default_rng(1).normal(size=(m, m))
    np.testing.assert_allclose(factor.sandwich(K.copy()), F @ K @ F.T, atol=1e-10)
