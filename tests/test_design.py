"""Every storage gives the same answers."""

import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.sparse.linalg import aslinearoperator

from all_pairs import pairwise
from making_blocks import make_blocks
from oracles import laplacian_matrix
from rankwise.data.validation import check_qid
from rankwise.design import (
    CsrDesign,
    DenseDesign,
    OperatorDesign,
    as_design,
    csr,
    default_threads,
    dense,
    gram,
)
from rankwise.pairs.blocks import COUPLINGS, laplacian
from rankwise.pairs.labels import label_graph
from rankwise.runtime import threads

ROWS, COLUMNS = 70, 6
STORAGES = {
    "C float64": lambda X: X,
    "F float64": np.asfortranarray,
    "C float32": lambda X: X.astype(np.float32),
    "F float32": lambda X: np.asfortranarray(X.astype(np.float32)),
    "csr float64": sp.csr_matrix,
    "csr float32": lambda X: sp.csr_matrix(X.astype(np.float32)),
    "csr array": sp.csr_array,
    "csc": sp.csc_matrix,
    "int64 csr": lambda X: with_int64(sp.csr_matrix(X)),
    "operator": aslinearoperator,
}


def with_int64(X):
    X.indices, X.indptr = X.indices.astype(np.int64), X.indptr.astype(np.int64)
    return X


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    """Blocks of a few rows, so that every loop over blocks runs."""
    monkeypatch.setattr(gram, "BLOCK_SIZE", 10 * COLUMNS)
    monkeypatch.setattr(dense, "BLOCK_SIZE", 10 * COLUMNS)
    monkeypatch.setattr(csr, "SPARSE_BLOCK", 50)
    monkeypatch.setattr(csr, "MANY_NONZEROS", 0)


@pytest.fixture(scope="module")
def values():
    """Numbers that float32 holds exactly, far from zero, with an empty row and an empty column."""
    rng = np.random.default_rng(0)
    X = np.round(rng.standard_normal((ROWS, COLUMNS)) * 16) / 16 + 8 * (rng.random((ROWS, COLUMNS)) < 0.5)
    X[3], X[:, 2] = 0, 0
    return X


@pytest.fixture(params=STORAGES)
def stored(request, values):
    return as_design(STORAGES[request.param](values), n_threads=2)


def query_ids(kind):
    rng = np.random.default_rng(1)
    if kind == "one":
        return np.zeros(ROWS)
    if kind == "sorted":
        return np.arange(ROWS) // 7
    return np.where(rng.random(ROWS) < 0.5, 2, rng.integers(0, 12, ROWS))


@pytest.fixture(params=["one", "sorted", "huge among small"])
def qid(request):
    return query_ids(request.param)


def blocks_of(qid, coupling, *, weighted, distinct=False):
    rng = np.random.default_rng(2)
    y = rng.permutation(ROWS) if distinct else rng.integers(0, 4, ROWS)
    return make_blocks(qid, y, coupling, weight=rng.integers(0, 3, ROWS) * 0.7 if weighted else None)


@pytest.mark.parametrize("k", [None, 1, 3])
def test_products(stored, values, k):
    rng = np.random.default_rng(3)
    v = rng.standard_normal(COLUMNS if k is None else (COLUMNS, k))
    u = rng.standard_normal(ROWS if k is None else (ROWS, k))
    assert stored.shape == values.shape
    for actual, expected in ((stored.dot(v), values @ v), (stored.tdot(u), values.T @ u)):
        assert actual.dtype == np.float64
        assert actual.shape == expected.shape
        np.testing.assert_allclose(actual, expected, rtol=1e-12, atol=1e-11)
    assert stored.reads == 2


@pairwise(distinct=[False, True], weighted=[False, True], coupling=COUPLINGS)
def test_gram_matrix(stored, values, qid, coupling, weighted, distinct):
    blocks = blocks_of(qid, coupling, weighted=weighted, distinct=distinct)
    expected = values.T @ laplacian_matrix(blocks) @ values
    matrix, diagonal = stored.gram_matrix(blocks), stored.gram_diagonal(blocks)
    if not stored.has_rows:
        assert matrix is None
        assert diagonal is None
        return
    np.testing.assert_allclose(matrix, expected, rtol=1e-11, atol=1e-9)
    np.testing.assert_allclose(diagonal, np.diag(expected), rtol=1e-11, atol=1e-9)


DENSE = [name for name in STORAGES if name.startswith(("C", "F"))]


@pairwise(storage=[*DENSE, "every second column", "backwards"], coupling=COUPLINGS, outputs=[None, 1, 3])
def test_a_system_from_one_read(monkeypatch, values, storage, coupling, outputs):
    """In stripes, queries cut by buffers, and any strides; the bits are those of one thread."""
    rng = np.random.default_rng(6)
    if storage in DENSE:
        X = STORAGES[storage](values)
    elif storage == "backwards":
        X = values[::-1, ::-1]
    else:
        X = np.repeat(values, 2, axis=1)[:, ::2]
    monkeypatch.setattr(gram, "MANY_SCORES", 0)
    for kind in ("one", "sorted", "huge among small"):
        blocks = blocks_of(query_ids(kind), coupling, weighted=True)
        pull = laplacian(blocks, rng.standard_normal(ROWS if outputs is None else (ROWS, outputs)))
        for stripes, block in ((1, 10 * COLUMNS), (3, 10 * COLUMNS), (5, 1), (ROWS + 2, 100 * COLUMNS)):
            monkeypatch.setattr(gram, "n_stripes", lambda *_, stripes=stripes: stripes)
            monkeypatch.setattr(gram, "BLOCK_SIZE", block)
            largest = np.diff(blocks.query_start).max()
            design = as_design(X, n_threads=3)
            system = design.gram_system(blocks, pull)
            if coupling == "relative" or (coupling == "others" and largest > max(block // COLUMNS, 1)):
                assert system is None
                assert design.reads == 0
                continue
            expected = X.T.astype(float) @ laplacian_matrix(blocks) @ X
            np.testing.assert_allclose(system[0], expected, rtol=1e-11, atol=1e-9)
            np.testing.assert_array_equal(system[0], system[0].T)
            np.testing.assert_allclose(system[1], X.T.astype(float) @ pull, rtol=1e-11, atol=1e-9)
            assert design.reads == 1
            for alone, together in zip(
                as_design(X, n_threads=1).gram_system(blocks, pull), system, strict=True
            ):
                np.testing.assert_array_equal(alone, together)


def test_a_cut_ranking_far_from_zero_keeps_its_digits():
    """Pieces are centred each on its own; the means of the pieces are what is far from zero."""
    rng = np.random.default_rng(0)
    X = np.round(rng.standard_normal((ROWS, COLUMNS)) * 64)
    blocks = blocks_of(query_ids("one"), "all", weighted=True)
    pull = laplacian(blocks, rng.standard_normal(ROWS))
    expected = as_design(X).gram_system(blocks, pull)
    for actual, wanted in zip(as_design(X + 1e8).gram_system(blocks, pull), expected, strict=True):
        np.testing.assert_allclose(actual, wanted, rtol=1e-6, atol=1e-5)


def test_the_one_pass_reads_nothing_outside_the_matrix(values):
    blocks = blocks_of(query_ids("sorted"), "all", weighted=False)
    for X in (values[:-1], values[:-1].astype(np.float32)):
        with pytest.raises(ValueError, match="rows that are not there"):
            as_design(X).gram_matrix(blocks)


@pytest.mark.parametrize("odd", ["unaligned", "between values", "no columns", "many columns"])
def test_what_the_one_pass_does_not_take(monkeypatch, values, odd):
    """Then block by block it is."""
    X = values
    if odd == "unaligned":
        X = np.frombuffer(b"\0" + values.tobytes(), np.uint8)[1:].view(np.float64).reshape(values.shape)
    elif odd == "between values":
        X = np.zeros(ROWS, dtype=[("flag", np.int8), ("row", np.float64, COLUMNS)])
        X["row"] = values
        X = X["row"]
    elif odd == "no columns":
        X = values[:, :0]
    else:
        monkeypatch.setattr(gram, "LARGE_MATRIX", COLUMNS)
    blocks = blocks_of(query_ids("sorted"), "all", weighted=True)
    design = as_design(X, n_threads=2)
    assert design.gram_system(blocks, np.zeros(ROWS)) is None
    expected = X.T @ laplacian_matrix(blocks) @ X
    np.testing.assert_allclose(design.gram_matrix(blocks), expected, rtol=1e-11, atol=1e-9)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("coupling", ["all", "others"])
def test_gram_matrix_of_very_sparse_rows(monkeypatch, values, qid, coupling, weighted):
    monkeypatch.setattr(csr, "DENSE_SHARE", 2.0)
    blocks = blocks_of(qid, coupling, weighted=weighted)
    for X in (sp.csr_matrix(values), sp.csr_matrix(values.astype(np.float32))):
        expected = values.T @ laplacian_matrix(blocks) @ values
        np.testing.assert_allclose(as_design(X).gram_matrix(blocks), expected, rtol=1e-11, atol=1e-9)


def test_gram_product_is_the_composition(stored, qid):
    blocks = blocks_of(qid, "others", weighted=True)
    product = stored.gram_product(blocks)
    assert (product is None) == (stored.is_dense or not stored.has_rows)
    if product is not None:
        v = np.random.default_rng(5).standard_normal(COLUMNS)
        composed = stored.tdot(laplacian(blocks, stored.dot(v)))
        reads = stored.reads
        np.testing.assert_allclose(product(v), composed, rtol=1e-11, atol=1e-9)
        assert stored.reads == reads + 1


def test_features_far_from_zero_keep_their_digits():
    """A shift inside a query changes nothing, so a common 1e8 must not cost sixteen digits."""
    rng = np.random.default_rng(0)
    X = np.round(rng.standard_normal((ROWS, COLUMNS)) * 64)
    blocks = blocks_of(query_ids("huge among small"), "others", weighted=True)
    expected = as_design(X).gram_matrix(blocks)
    for shifted in (X + 1e8, (X + 2.0**23).astype(np.float32)):
        np.testing.assert_allclose(as_design(shifted).gram_matrix(blocks), expected, rtol=1e-6, atol=1e-5)


@pytest.mark.parametrize("as_storage", [np.array, sp.csr_matrix])
def test_sums_of_many_levels_are_not_kept_together(as_storage, monkeypatch):
    """One ranking with almost as many levels as rows takes blocks of rows, not a second matrix."""
    m, n = 40_000, 10
    monkeypatch.setattr(gram, "BLOCK_SIZE", 1 << 12)
    X = np.random.default_rng(0).normal(size=(m, n)).astype(np.float32)
    design = as_design(as_storage(X))
    blocks = label_graph(np.arange(m) // 2 / m, check_qid(None, m), "exclude").blocks
    tracemalloc.start()
    matrix = design.gram_matrix(blocks)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8 * m * n / 3
    expected = X.T.astype(np.float64) @ laplacian(blocks, X.astype(np.float64))
    np.testing.assert_allclose(matrix, expected, rtol=1e-9, atol=1e-9 * np.abs(expected).max())


@pytest.mark.parametrize(
    "index",
    [
        slice(5, 20),
        slice(20, 5),
        slice(60, 3, -7),
        np.array([3, 60, 3, 9]),
        np.arange(ROWS) % 3 == 0,
        np.array([], dtype=int),
    ],
)
def test_rows(stored, values, index):
    part = stored.rows(index)
    v, u = np.ones(COLUMNS), np.arange(values[index].shape[0], dtype=float)
    assert part.shape == values[index].shape
    np.testing.assert_allclose(part.dot(v), values[index] @ v, rtol=1e-12)
    np.testing.assert_allclose(part.tdot(u), values[index].T @ u, rtol=1e-12)
    np.testing.assert_allclose(
        part.dot(np.ones((COLUMNS, 2))), values[index] @ np.ones((COLUMNS, 2)), rtol=1e-12
    )


def test_nothing_is_copied(values):
    X = sp.csr_matrix(values.astype(np.float32))
    assert np.shares_memory(as_design(X).arrays[0], X.data)
    assert np.shares_memory(as_design(X).arrays[1], X.indices)
    assert as_design(values).X is values
    design = as_design(values)
    assert as_design(design) is design


def test_integers_become_floats():
    X = np.arange(12).reshape(4, 3)
    for design in (as_design(X), as_design(sp.csr_matrix(X))):
        assert design.dtype == np.float64
        np.testing.assert_array_equal(design.dot(np.ones(3)), X.sum(axis=1))


@pytest.mark.parametrize("shape", [(0, 3), (4, 0), (0, 0), (1, 1)])
@pytest.mark.parametrize("make", [np.ones, sp.csr_matrix, lambda s: np.ones(s, dtype=np.float32)])
def test_shapes_without_entries(make, shape):
    design = as_design(make(shape))
    blocks = make_blocks(np.zeros(shape[0]), np.zeros(shape[0]), "all")
    assert isinstance(design, (DenseDesign, CsrDesign, OperatorDesign))
    np.testing.assert_array_equal(design.gram_matrix(blocks), np.zeros((shape[1], shape[1])))
    np.testing.assert_array_equal(design.gram_diagonal(blocks), np.zeros(shape[1]))
    assert design.dot(np.ones(shape[1])).shape == (shape[0],)
    assert design.tdot(np.ones((shape[0], 2))).shape == (shape[1], 2)


def test_default_threads(monkeypatch):
    monkeypatch.delenv("RANKWISE_NUM_THREADS", raising=False)
    assert default_threads() >= 1
    monkeypatch.setenv("RANKWISE_NUM_THREADS", "3")
    assert default_threads() == 3
    monkeypatch.setenv("RANKWISE_NUM_THREADS", "many")
    monkeypatch.setattr(threads.multiprocessing, "parent_process", lambda: "a parent")
    assert default_threads() == 1


def test_default_threads_inside_joblib(monkeypatch):
    joblib = pytest.importorskip("joblib")
    monkeypatch.delenv("RANKWISE_NUM_THREADS", raising=False)
    for backend in ("loky", "threading"):
        answers = joblib.Parallel(n_jobs=2, backend=backend)(
            joblib.delayed(default_threads)() for _ in range(2)
        )
        assert answers == [1, 1]


@pytest.mark.parametrize("name", STORAGES)
def test_squared_differences_of_listed_pairs(name):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(ROWS, COLUMNS)).astype(np.float32).astype(np.float64) * (
        rng.random((ROWS, COLUMNS)) < 0.5
    )
    one, other = rng.integers(ROWS, size=(2, 333))
    weight = rng.random(333)
    actual = as_design(STORAGES[name](X)).squared_differences(one, other, weight)
    if name == "operator":
        assert actual is None
    else:
        np.testing.assert_allclose(actual, weight @ (X[one] - X[other]) ** 2, rtol=1e-12)


def test_squared_differences_where_a_column_occurs_twice_in_a_row():
    X = sp.csr_matrix((np.array([1.0, 2.0, 4.0]), np.array([1, 1, 0]), np.array([0, 2, 3])), shape=(2, 2))
    actual = as_design(X).squared_differences(np.array([0]), np.array([1]), np.array([2.0]))
    np.testing.assert_array_equal(actual, [32.0, 18.0])
