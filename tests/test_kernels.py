"""Every compiled kernel against its dense twin in numpy."""

from functools import cache

import numpy as np
import pytest
import scipy.sparse as sp

from all_pairs import pairwise
from making_blocks import make_blocks, make_folds
from oracles import laplacian_matrix
from rankwise.design import CsrDesign, csr, fused
from rankwise.pairs.blocks import COUPLINGS, laplacian

VALUES = [np.float32, np.float64]
INDICES = [np.int32, np.int64]
THREADS = [1, 2, 3]
WIDTHS = [None, 1, 3, 8, 11]


def close(actual, expected, scale=1.0):
    np.testing.assert_allclose(
        actual, expected, rtol=1e-11, atol=1e-12 * max(scale, np.abs(expected).max(initial=1))
    )


@pytest.fixture(autouse=True)
def always_in_parallel(monkeypatch):
    """Small problems run on one thread; here they must not."""
    monkeypatch.setattr(csr, "MANY_NONZEROS", 0)
    monkeypatch.setattr("rankwise.pairs.blocks.MANY_SCORES", 0)


def random_csr(rows, columns, density=0.3, value=np.float64, index=np.int32, seed=0):
    rng = np.random.default_rng([seed, rows, columns])
    X = sp.random(rows, columns, density, format="csr", random_state=rng, data_rvs=rng.standard_normal)
    X = sp.csr_matrix((X.data.astype(value), X.indices.astype(index), X.indptr.astype(index)), shape=X.shape)
    X.indices, X.indptr = X.indices.astype(index), X.indptr.astype(index)
    return X


def with_duplicates(X, seed=0):
    """The same matrix with columns out of order and each value split in two."""
    rng = np.random.default_rng(seed)
    ids, values, start = [], [], [0]
    for i in range(X.shape[0]):
        row = slice(X.indptr[i], X.indptr[i + 1])
        both = np.concatenate([X.indices[row], X.indices[row]])
        share = rng.random(X.indptr[i + 1] - X.indptr[i])
        halves = np.concatenate([share * X.data[row], (1 - share) * X.data[row]])
        shuffle = rng.permutation(both.size)
        ids.append(both[shuffle])
        values.append(halves[shuffle])
        start.append(start[-1] + both.size)
    out = sp.csr_matrix(X.shape)
    out.data, out.indices = np.concatenate(values), np.concatenate(ids).astype(np.int32)
    out.indptr = np.array(start, dtype=np.int32)
    return out


def block_of(rows, k, seed=1):
    rng = np.random.default_rng(seed)
    return rng.standard_normal(rows if k is None else (rows, k))


def queries(kind, rows, seed=0):
    rng = np.random.default_rng(seed)
    if kind == "one":
        return np.zeros(rows, dtype=int)
    if kind == "interleaved":
        return rng.integers(0, max(1, rows // 5), rows)
    if kind == "huge among small":
        return np.where(rng.random(rows) < 0.7, 3, rng.integers(0, max(1, rows // 4), rows))
    return np.arange(rows)  # "alone": each row is a query


KINDS = ["one", "interleaved", "huge among small", "alone"]


@pairwise(
    shape=[(40, 17), (1, 5), (7, 1), (0, 4), (5, 0), (0, 0)],
    k=WIDTHS,
    n_threads=THREADS,
    index=INDICES,
    value=VALUES,
)
def test_products(value, index, n_threads, k, shape):
    X = random_csr(*shape, value=value, index=index)
    dense = X.toarray().astype(np.float64)
    design = CsrDesign(X, n_threads)
    v, u = block_of(shape[1], k), block_of(shape[0], k)
    for relabel in (False, True):
        if relabel:
            design.relabel_columns()
        close(design.dot(v), dense @ v)
        close(design.tdot(u), dense.T @ u)


def test_products_keep_read_only_arrays_and_mixed_index_widths():
    X = random_csr(30, 12)
    design = CsrDesign(X, 2)
    design.arrays = (X.data, X.indices, X.indptr.astype(np.int64))
    design.prepared = (*design.arrays, None)
    for array in design.arrays:
        array.flags.writeable = False
    v = block_of(12, None)
    v.flags.writeable = False
    close(design.dot(v), X.toarray() @ v)


def test_empty_rows_and_rows_out_of_proportion():
    X = sp.lil_matrix((50, 200))
    X[10] = np.arange(200.0)
    X[30, 7] = 2.0
    X = X.tocsr()
    design = CsrDesign(X, 3)
    v, u = block_of(200, 3), block_of(50, 3)
    close(design.dot(v), X.toarray() @ v, scale=1e4)
    close(design.tdot(u), X.toarray().T @ u, scale=1e4)


@cache
def problem(kind, coupling, weighted, rows=60, seed=0):
    rng = np.random.default_rng(seed)
    weight = rng.integers(0, 3, rows) * rng.random(rows) if weighted else None
    return make_blocks(queries(kind, rows), rng.integers(0, 4, rows), coupling, weight=weight)


@pairwise(weighted=[False, True], k=WIDTHS, n_threads=THREADS, coupling=COUPLINGS, kind=KINDS)
def test_laplacian(kind, coupling, n_threads, k, weighted):
    blocks = problem(kind, coupling, weighted)
    f = block_of(60, k)
    close(laplacian(blocks, f, n_threads=n_threads), problem_laplacian(kind, coupling, weighted) @ f)


@pytest.mark.parametrize("coupling", COUPLINGS)
def test_laplacian_of_as_many_levels_as_rows(coupling):
    blocks = make_blocks(np.zeros(30), np.random.default_rng(0).permutation(30), coupling)
    f = block_of(30, 3)
    close(laplacian(blocks, f, n_threads=3), laplacian_matrix(blocks) @ f)


@cache
def problem_laplacian(kind, coupling, weighted):
    return laplacian_matrix(problem(kind, coupling, weighted))


@cache
def fold_laplacians(held, kind, coupling, weighted, k):
    blocks = problem(kind, coupling, weighted)
    fold = folds_of(held, blocks, 60, k)
    return fold, [laplacian_matrix(blocks, hidden=fold == c) for c in range(k)]


def tiny_chunks(monkeypatch, size):
    monkeypatch.setattr(fused, "chunk_size", lambda _columns: size)
    monkeypatch.setattr(fused, "SUMS_SHARE", 1e9)


@pairwise(
    size=[1, 40, 10**6], weighted=[False, True], k=WIDTHS, n_threads=THREADS, coupling=COUPLINGS, kind=KINDS
)
def test_fused(monkeypatch, kind, coupling, n_threads, k, weighted, size):
    """Chunks of one non-zero make every query a large one; chunks of a million hold everything."""
    tiny_chunks(monkeypatch, size)
    X = random_csr(60, 13)
    blocks = problem(kind, coupling, weighted)
    v = block_of(13, k)
    dense = X.toarray()
    expected = dense.T @ (problem_laplacian(kind, coupling, weighted) @ (dense @ v))
    design = CsrDesign(X, n_threads)
    if size == 10**6 and kind in ("one", "huge among small"):
        chunks = fused.cut(blocks, design.row_lengths()[blocks.order], 13, n_threads)
        assert np.diff(chunks.chunk_start).max() > 30
    close(design.gram_product(blocks)(v), expected, scale=10)
    design.relabel_columns()
    close(design.gram_product(blocks)(v), expected, scale=10)


@pairwise(relabel=[False, True], index=INDICES, value=VALUES)
def test_fused_storage(monkeypatch, value, index, relabel):
    tiny_chunks(monkeypatch, 40)
    X = random_csr(60, 13, value=value, index=index)
    blocks = problem("huge among small", "others", weighted=True)
    dense = X.toarray().astype(np.float64)
    design = CsrDesign(X, 2)
    v = block_of(13, 3)
    if relabel:
        design.relabel_columns()
    close(
        design.gram_product(blocks)(v),
        dense.T @ laplacian_matrix(blocks) @ dense @ v,
        scale=10,
    )
    assert design.arrays[0].base is None or np.shares_memory(design.arrays[0], X.data)
    assert np.shares_memory(design.arrays[1], X.indices)


def test_very_many_columns_take_two_products(monkeypatch):
    monkeypatch.setattr(csr, "MANY_COLUMNS", 5)
    blocks = problem("interleaved", "all", weighted=True)
    design = CsrDesign(random_csr(60, 13), 2)
    assert design.gram_product(blocks) is None
    folds = make_folds(blocks, np.arange(60, dtype=np.int32) % 3, 3)
    assert design.gram_product(blocks, folds) is not None


@pytest.mark.parametrize("columns", [70_000, 65_535, 65_536])
def test_relabelling_many_columns(columns):
    X = random_csr(50, columns, density=20 / columns)
    design = CsrDesign(X, 2)
    blocks = problem("interleaved", "all", weighted=False, rows=50)
    v = block_of(columns, None)
    plain = design.gram_product(blocks)(v)
    design.relabel_columns()
    close(design.gram_product(blocks)(v), plain)
    assert design.prepared[1].dtype == (np.uint16 if columns < 65_536 else np.int32)


@pytest.mark.parametrize("seed", range(3))
def test_fused_of_duplicates_and_rows_without_values(monkeypatch, seed):
    tiny_chunks(monkeypatch, 30)
    X = random_csr(60, 13, density=0.03, seed=seed)
    blocks = problem("huge among small", "others", weighted=True, seed=seed)
    dense, v = X.toarray(), block_of(13, 2)
    product = CsrDesign(with_duplicates(X), 2).gram_product(blocks)
    close(product(v), dense.T @ laplacian_matrix(blocks) @ dense @ v)


@pytest.mark.parametrize("shape", [(1, 5), (0, 4), (5, 0), (0, 0)])
def test_fused_of_small_shapes(shape):
    blocks = (
        problem("one", "all", weighted=False, rows=shape[0])
        if shape[0]
        else problem("alone", "all", False, 0)
    )
    product = CsrDesign(random_csr(*shape), 3).gram_product(blocks)
    assert np.all(product(np.ones(shape[1])) == 0)


def test_a_query_with_too_many_levels_is_not_fused():
    X = random_csr(400, 500, density=0.3)
    many = make_blocks(np.zeros(400), np.arange(400), "others")
    few = make_blocks(np.zeros(400), np.arange(400) % 2, "others")
    assert fused.cut(few, np.diff(X.indptr), 500, 2) is not None
    original = fused.chunk_size
    try:
        fused.chunk_size = lambda _columns: 1000
        assert CsrDesign(X, 2).gram_product(many) is None
        assert CsrDesign(X, 2).gram_product(few) is not None
    finally:
        fused.chunk_size = original


def folds_of(kind, blocks, rows, k, seed=0):
    """Whole queries or single rows held out; some never are."""
    rng = np.random.default_rng(seed)
    if kind == "queries":
        query = np.empty(rows, dtype=int)
        query[blocks.order] = np.repeat(np.arange(blocks.scale.size), np.diff(blocks.query_start))
        return rng.integers(-1, k, blocks.scale.size)[query]
    return rng.integers(-1, k, rows)


@pairwise(
    size=[1, 40, 10**6],
    weighted=[False, True],
    k=[1, 3, 8, 11],
    n_threads=THREADS,
    coupling=["all", "others"],
    kind=["one", "interleaved", "huge among small"],
    held=["queries", "rows"],
)
def test_folds(monkeypatch, held, kind, coupling, n_threads, k, weighted, size):
    tiny_chunks(monkeypatch, size)
    blocks = problem(kind, coupling, weighted)
    fold, laplacians = fold_laplacians(held, kind, coupling, weighted, k)
    folds = make_folds(blocks, fold, k)
    X = random_csr(60, 13)
    dense, V = X.toarray(), block_of(13, k)
    scores = dense @ V
    kept = np.stack([laplacians[c] @ scores[:, c] for c in range(k)], axis=1)
    unseen = np.where(fold >= 0, scores[np.arange(60), fold], np.nan)

    held_out = np.full(60, np.nan)
    product = CsrDesign(X, n_threads).gram_product(blocks, folds)
    close(product(V, held_out), dense.T @ kept, scale=10)
    close(held_out, unseen)

    held_out = np.full(60, np.nan)
    close(laplacian(blocks, scores, n_threads=n_threads, folds=folds, held_out=held_out), kept)
    close(held_out, unseen)


@pairwise(weighted=[False, True], n_threads=THREADS, coupling=COUPLINGS, kind=KINDS)
def test_gram_diagonal(kind, coupling, n_threads, weighted):
    X = random_csr(60, 13)
    blocks = problem(kind, coupling, weighted)
    dense = X.toarray()
    expected = np.diag(dense.T @ laplacian_matrix(blocks) @ dense)
    close(CsrDesign(X, n_threads).gram_diagonal(blocks), expected)
    close(CsrDesign(with_duplicates(X), n_threads).gram_diagonal(blocks), expected)
