"""A matrix on disk serves every linear estimator as one in memory does, and is never loaded."""

import errno
import gc
import os
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from joblib import Parallel, delayed
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone

from all_pairs import pairwise
from making_blocks import make_blocks
from rankwise import RankRLS, RankRLSCV, RankSVM, RankSVMCV, _core, objectives
from rankwise.data import mapped, open_store, save_store
from rankwise.data.queries import encode_queries, one_query
from rankwise.design import CsrDesign, OperatorDesign, as_design, csr
from rankwise.design.fused import in_row_order
from rankwise.pairs.blocks import COUPLINGS, laplacian
from rankwise.pairs.labels import label_graph


@pytest.fixture(scope="module")
def data():
    """Queries whose ids are in no order, enough non-zeros for two threads and several windows."""
    rng = np.random.default_rng(0)
    X = sp.random(6000, 300, density=0.1, random_state=1, format="csr", dtype=np.float32)
    qid = rng.permutation(300)[np.sort(rng.integers(300, size=6000))]
    y = np.round(X @ rng.normal(size=300) + rng.normal(size=6000))
    return X, y, qid


@pytest.fixture(scope="module")
def store(data, tmp_path_factory):
    folder = tmp_path_factory.mktemp("store") / "s"
    save_store([data], folder, dtype=np.float32)
    return open_store(folder)


@pytest.fixture(autouse=True)
def small_windows(monkeypatch):
    monkeypatch.setattr(mapped, "READ_AHEAD", 5000)
    monkeypatch.setattr(mapped, "DIRECT_READ", 20_000)


@pytest.fixture
def no_room(monkeypatch):
    """Make every store larger than the memory there is."""
    monkeypatch.setattr(mapped.MemoryBudget, "allows", lambda *_: False)


@pytest.fixture(params=["through the page cache", "past the page cache"])
def reading(request, store):
    """Each way of reading a store."""
    if request.param == "past the page cache":
        if store.X.files is None:
            pytest.skip("this file system has no O_DIRECT")
        request.getfixturevalue("no_room")
    assert as_design(store.X).disk.is_direct == (request.param == "past the page cache")


@pytest.mark.usefixtures("reading")
@pytest.mark.parametrize("n_threads", [1, 2])
def test_products_are_those_of_the_matrix_in_memory(data, store, n_threads):
    X = data[0].astype(np.float64)
    design = as_design(store.X, n_threads)
    rng = np.random.default_rng(1)
    for width in ((), (3,)):
        v, u = rng.normal(size=(300, *width)), rng.normal(size=(6000, *width))
        assert_allclose(design.dot(v), X @ v, rtol=1e-12, atol=1e-12)
        assert_allclose(design.tdot(u), X.T @ u, rtol=1e-12, atol=1e-12)
    rows = rng.permutation(6000)[:500]
    assert_array_equal(design.rows(rows).matrix().toarray(), data[0][rows].toarray())
    assert isinstance(design.arrays[0], np.memmap)
    assert isinstance(design.prepared[1], np.memmap)


@pytest.mark.usefixtures("reading")
@pytest.mark.parametrize("with_ids", [True, False])
def test_products_have_the_same_bits_wherever_the_matrix_lies(data, store, with_ids):
    """A window ends between the chunks of a product, and the sums go in the same order."""
    X, y, qid = data
    queries = encode_queries(qid) if with_ids else one_query(y.size)
    blocks, _ = in_row_order(label_graph(y, queries).blocks)
    on_disk, in_memory = as_design(store.X, 2), as_design(X, 2)
    rng = np.random.default_rng(4)
    for width in ((), (6,)):
        v, u = rng.normal(size=(300, *width)), rng.normal(size=(6000, *width))
        products = [design.gram_product(blocks) for design in (on_disk, in_memory)]
        assert_array_equal(products[0](v), products[1](v))
        assert_array_equal(on_disk.dot(v), in_memory.dot(v))
        assert_array_equal(on_disk.tdot(u), in_memory.tdot(u))
    assert_array_equal(on_disk.gram_diagonal(blocks), in_memory.gram_diagonal(blocks))
    part = slice(1234, 5432)
    assert_array_equal(on_disk.rows(part).dot(v), in_memory.rows(part).dot(v))
    assert_array_equal(
        on_disk.rows(part).rows(slice(7, 99)).dot(v), in_memory.rows(part).rows(slice(7, 99)).dot(v)
    )


@pytest.mark.usefixtures("no_room")
def test_a_store_that_vanished_is_still_read_past_the_page_cache(data, tmp_path):
    save_store([data], tmp_path / "s", dtype=np.float32)
    X = open_store(tmp_path / "s").X
    save_store([(data[0] * 2, data[1], data[2])], tmp_path / "s", dtype=np.float32)
    assert_allclose(as_design(X).dot(np.ones(300)), data[0].astype(np.float64) @ np.ones(300), rtol=1e-12)


@pytest.mark.usefixtures("no_room")
def test_what_direct_reads_cannot_have_comes_from_the_mapping(data, store):
    """Descriptors of something else: every read fails."""
    folder = os.open(store.path, os.O_RDONLY)
    design = as_design(store.X, 2)
    design.disk = _core.Disk(_core.DirectFiles(folder, os.dup(folder), 128, 128), 0, 5000)
    assert_array_equal(design.dot(np.ones(300)), as_design(data[0], 2).dot(np.ones(300)))


@pytest.mark.usefixtures("no_room")
@pytest.mark.parametrize("size", [0, 100, 4096, 50_000, 50_100, 300_007])
def test_a_file_that_ends_too_early_is_left_to_the_mapping(data, store, tmp_path, size):
    """Direct reads that meet its end give up, and do not begin again for ever."""
    short = tmp_path / "short"
    short.write_bytes(Path(store.path, "data.npy").read_bytes()[:size])
    files = [os.open(path, os.O_RDONLY) for path in (short, Path(store.path, "indices.npy"))]
    design = as_design(store.X, 2)
    design.disk = _core.Disk(_core.DirectFiles(*files, 128, 128), 0, 20_000)
    assert_array_equal(design.dot(np.ones(300)), as_design(data[0], 2).dot(np.ones(300)))


def test_labels_go_to_other_processes(store):
    """As joblib sends them: by the file that they are mapped from, if they are."""
    y, query_start = Parallel(n_jobs=2)(delayed(np.array)(part) for part in (store.y, store.query_start))
    assert_array_equal(y, store.y)
    assert_array_equal(query_start, store.query_start)


@pytest.mark.skipif(not hasattr(os, "O_DIRECT"), reason="this system has no O_DIRECT")
def test_a_file_system_without_direct_reads(data, tmp_path, monkeypatch, no_room):
    save_store([data], tmp_path / "s", dtype=np.float32)
    really_open = os.open

    def refuse(path, flags, *arguments, **options):
        if flags & os.O_DIRECT:
            raise OSError(errno.EINVAL, "Invalid argument")
        return really_open(path, flags, *arguments, **options)

    monkeypatch.setattr(os, "open", refuse)
    X = open_store(tmp_path / "s").X
    assert X.files is None
    design = as_design(X, 2)
    assert not design.disk.is_direct
    assert_array_equal(design.dot(np.ones(300)), as_design(data[0], 2).dot(np.ones(300)))


@pytest.mark.usefixtures("no_room")
def test_descriptors_are_given_back(data, tmp_path):
    save_store([data], tmp_path / "s", dtype=np.float32)
    gc.collect()
    before = len(list(Path("/proc/self/fd").iterdir()))
    for _ in range(3):
        store = open_store(tmp_path / "s")
        as_design(store.X).rows(slice(3, 60)).dot(np.ones(300))
        del store
        gc.collect()
    assert len(list(Path("/proc/self/fd").iterdir())) == before


def test_many_rows_of_a_matrix_on_disk_stay_there(data, store, monkeypatch):
    monkeypatch.setattr(csr, "SPARSE_BLOCK", 20_000)
    X = data[0].astype(np.float64)
    rows = np.random.default_rng(2).permutation(6000)[:3000]
    chosen = as_design(store.X).rows(rows)
    assert isinstance(chosen, OperatorDesign)
    for width in ((), (3,)):
        v, u = np.ones((300, *width)), np.ones((3000, *width))
        assert_allclose(chosen.dot(v), X[rows] @ v, rtol=1e-12)
        assert_allclose(chosen.tdot(u), X[rows].T @ u, rtol=1e-12)
    few = np.zeros(6000, dtype=bool)
    few[:5] = True
    assert isinstance(as_design(store.X).rows(few), CsrDesign)


@pytest.mark.parametrize("coupling", COUPLINGS)
def test_queries_in_the_order_of_rows_are_the_same_pairs(coupling):
    for seed in range(5):
        rng = np.random.default_rng(seed)
        qid, y = rng.permutation(7)[rng.integers(7, size=40)], rng.integers(4, size=40)
        blocks = make_blocks(qid, y, coupling, weight=rng.random(40))
        moved, _ = in_row_order(blocks)
        first = [
            moved.order[a:b].min()
            for a, b in zip(moved.query_start[:-1], moved.query_start[1:], strict=True)
            if b > a
        ]
        assert_array_equal(first, np.sort(first))
        f = rng.normal(size=40)
        assert_allclose(laplacian(moved, f), laplacian(blocks, f), rtol=1e-12, atol=1e-12)


@pairwise(
    model=[
        RankRLS(alpha=3.0),
        RankRLS(alpha=3.0, solver="cg", tol=1e-12, ties="exclude"),
        RankRLSCV(cv=3),
        RankSVM(alpha=1.0),
        RankSVMCV([1.0, 0.1], cv=3),
    ],
    with_ids=[True, False],
)
@pytest.mark.usefixtures("reading")
def test_estimators_learn_the_same_from_disk(model, with_ids, data, store):
    X, y, qid = data
    in_memory = clone(model).fit(X, y, qid=qid if with_ids else None)
    model = clone(model).fit(store.X, store.y, qid=store.qid if with_ids else None)
    scale = np.abs(in_memory.coef_).max()
    assert_allclose(model.coef_, in_memory.coef_, rtol=0, atol=1e-8 * scale)
    assert_allclose(model.predict(store.X), in_memory.predict(X), atol=1e-6 * scale)
    if hasattr(model, "alpha_"):
        assert model.alpha_ == in_memory.alpha_


@pairwise(
    ids=["ascending", "in no order", "scattered", "none"],
    solver=["stochastic", "egdm-blocks"],
    pairs=[
        {},
        {"ties": "exclude"},
        {"ties": "exclude", "cost": "unit", "query_weight": "equal"},
        {"ties": "exclude", "cost": "relative"},
    ],
)
def test_blocks_of_a_matrix_on_disk(data, store, monkeypatch, ids, solver, pairs):
    """Parts larger than what is copied lightly, whatever order queries and levels put the rows in."""
    monkeypatch.setattr(csr, "SPARSE_BLOCK", 5000)
    monkeypatch.setattr(objectives, "_MOST_ROWS", 700)
    X, y, qid = data
    rng = np.random.default_rng(3)
    qid = {
        "ascending": np.cumsum(np.concatenate(([0], np.diff(qid) != 0))),
        "in no order": qid,
        "scattered": rng.permutation(qid),
        "none": None,
    }[ids]
    weight = rng.integers(3, size=y.size).astype(float)
    expected = RankRLS(2.0, solver="direct", **pairs).fit(X, y, qid=qid, sample_weight=weight).coef_
    model = RankRLS(2.0, solver=solver, tol=1e-10, **pairs).fit(store.X, y, qid=qid, sample_weight=weight)
    assert_allclose(model.coef_, expected, rtol=0, atol=1e-7 * np.abs(expected).max())
