"""A design on a cluster gives what the matrix gives, however its rows are cut."""

import numpy as np
import pytest

from on_cluster import in_blocks, ranking_data
from rankwise.data.queries import encode_queries, one_query
from rankwise.design import Shift
from rankwise.distributed import distribute
from rankwise.distributed.cluster import Cluster
from rankwise.distributed.design import DaskDesign
from rankwise.distributed.shares import cut
from rankwise.pairs.blocks import Folds, laplacian
from rankwise.pairs.labels import label_graph


def design_of(client, X, queries, n_shares, cuts=(31, 32, 100, 203)):
    rows = distribute(in_blocks(X, cuts), client=client).X
    shares = cut(rows.survey.work, queries, n_shares)
    return DaskDesign(Cluster(client, rows.source, rows.survey, shares, timeout=60, n_threads=1), 1)


def dense(X):
    return np.asarray(X.toarray() if hasattr(X, "toarray") else X, dtype=np.float64)


CASES = [
    (sparse, dtype, grouping, n_shares)
    for sparse, dtype in ((False, np.float64), (True, np.float32))
    for grouping, n_shares in (("runs", 3), ("scattered", 2), ("one", 2))
]


@pytest.mark.parametrize(("sparse", "dtype", "grouping", "n_shares"), CASES)
def test_everything_equals_the_matrix(client, sparse, dtype, grouping, n_shares):
    X, y, qid = ranking_data(1, sparse=sparse, dtype=dtype)
    rng = np.random.default_rng(2)
    qid = rng.permutation(qid) if grouping == "scattered" else qid
    queries = one_query(y.size) if grouping == "one" else encode_queries(qid)
    design, Z = design_of(client, X, queries, n_shares), dense(X)
    n_rows, n = Z.shape
    assert (design.shape, design.dtype) == (X.shape, X.dtype)
    assert len(design.cluster.shares) == n_shares

    def same(one, other):
        scale = max(np.abs(other).max(), 1.0)
        assert np.allclose(one / scale, other / scale, rtol=0, atol=1e-12)

    v, u = rng.normal(size=(n, 2)), rng.normal(size=n_rows)
    same(design.dot(v), Z @ v)
    same(design.tdot(u), Z.T @ u)
    rows = rng.permutation(n_rows)[:50]
    same(dense(design.gathered(rows).matrix()), Z[rows])
    same(design.rows(rows).dot(v), Z[rows] @ v)
    one, other, weight = rng.integers(n_rows, size=90), rng.integers(n_rows, size=90), rng.random(90)
    same(design.squared_differences(one, other, weight), weight @ (Z[one] - Z[other]) ** 2)
    row_weight = rng.integers(3, size=n_rows).astype(float)
    scored = np.sort(rng.permutation(n_rows)[:40])
    fold = rng.integers(3, size=n_rows).astype(np.int32)
    for ties in ("include", "exclude"):
        graph = label_graph(y, queries, ties=ties, row_weight=row_weight)
        G = Z.T @ laplacian(graph.blocks, Z)
        if grouping == "one" and ties == "exclude":  # scores come to the client
            assert design.gram_product(graph.blocks) is design.gram_diagonal(graph.blocks) is None
            continue
        same(design.gram_product(graph.blocks)(v), G @ v)
        same(design.gram_product(graph.blocks)(v[:, 0]), G @ v[:, 0])
        same(design.gram_matrix(graph.blocks), G)
        same(design.gram_diagonal(graph.blocks), np.diagonal(G))
        without = [label_graph(y, queries, ties=ties, row_weight=row_weight * (fold != c)) for c in range(3)]
        folds = Folds(
            fold,
            np.column_stack([g.blocks.degree for g in without]),
            np.column_stack([g.blocks.scale for g in without]),
            scored,
        )
        V, held_out = rng.normal(size=(n, 3)), np.full(n_rows, np.nan)
        image = design.gram_product(graph.blocks, folds)(V, held_out)
        same(image, np.column_stack([Z.T @ laplacian(g.blocks, Z @ V[:, c]) for c, g in enumerate(without)]))
        same(held_out[scored], (Z @ V)[scored, fold[scored]])
        assert np.isnan(np.delete(held_out, scored)).all()  # of other rows nothing came


def test_columns_far_from_zero_are_shifted_on_the_workers(client):
    X, _y, qid = ranking_data(3)
    X[:, 2] += 1e9
    shift = Shift(np.array([2]), np.array([1e9]))
    design = design_of(client, X, encode_queries(qid), 2).shifted(shift)
    assert design.shift is shift
    assert np.allclose(design.dot(np.eye(10)[:, 2]), X[:, 2] - 1e9, rtol=0, atol=1e-7)
