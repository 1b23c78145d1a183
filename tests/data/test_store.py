"""The store: what is written is read again, models are those of memory, and damage is found on opening."""

import gzip
import io
import json
import pickle
import subprocess
import sys
import tempfile
from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from rankwise import AdditiveRanker, RankRLS, RankRLSCV, RankSVM
from rankwise.data import (
    iter_svmlight,
    iter_table,
    load_svmlight,
    mapped,
    open_store,
    save_store,
    save_svmlight,
    save_table,
)
from rankwise.data import svmlight as text_reader
from rankwise.design import OperatorDesign, as_design, dense
from rankwise.exceptions import InvalidInputError
from real_data import NEEDS_REAL_DATA, ROOT

TEXT = b"2 qid:7 1:0.5 3:1\n0 qid:7 2:-1\n1 qid:3 1:2 2:3 3:4\n0 qid:3 1:0\n"


def make(seed=0, rows=60, columns=9, queries=7, kind="int", dtype=np.float64):
    rng = np.random.default_rng(seed)
    X = sp.random(rows, columns, density=0.4, random_state=seed % 2**31, format="csr").astype(dtype)
    number = rng.permutation(queries)[np.sort(rng.integers(queries, size=rows))]
    qid = {
        "none": None,
        "int": number - 3,
        "real": number + 0.1,
        "text": np.array([f"q{i} #é" for i in range(queries)])[number],
    }[kind]
    return X, rng.normal(size=rows), qid


def cut(data, pieces):
    X, y, qid = data
    for a, b in pairwise(np.linspace(0, X.shape[0], pieces + 1).astype(int)):
        yield X[a:b], y[a:b], None if qid is None else qid[a:b]


def dense_of(X):
    return X.toarray() if sp.issparse(X) else np.asarray(X)


def assert_holds(store, data):
    X, y, qid = data
    assert sp.issparse(store.X) == sp.issparse(X)
    assert store.X.dtype == X.dtype
    assert_array_equal(dense_of(store.X), dense_of(X))
    assert store.X.size == X.size  # stored zeros are kept
    assert_array_equal(store.y, y)
    assert (store.qid is None) == (qid is None)
    if qid is not None:
        assert store.qid.dtype.kind == np.asarray(qid).dtype.kind
        assert_array_equal(store.qid, qid)


@settings(max_examples=30, deadline=None)
@given(
    seed=st.integers(0, 2**31 - 1),
    kind=st.sampled_from(["none", "int", "real", "text"]),
    dtype=st.sampled_from([np.float64, np.float32]),
    is_dense=st.booleans(),
    pieces=st.integers(1, 12),
)
def test_blocks_survive_the_disk(seed, kind, dtype, is_dense, pieces):
    X, y, qid = make(seed, kind=kind, dtype=dtype)
    data = (X.toarray() if is_dense else X, y, qid)
    with tempfile.TemporaryDirectory() as folder:
        save_store(cut(data, pieces), f"{folder}/s")
        store = open_store(f"{folder}/s")
        assert_holds(store, data)
        save_store([(store.X, store.y, store.qid)], f"{folder}/copy")
        assert_holds(open_store(f"{folder}/copy"), data)


@settings(max_examples=10, deadline=None)
@given(seed=st.integers(0, 2**31 - 1), block_bytes=st.integers(100, 5000))
def test_text_store_text_is_exact(seed, block_bytes):
    data = make(seed)
    text = io.BytesIO()
    save_svmlight(data[0], data[1], text, qid=data[2])
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(text_reader, "PARSED_AT_ONCE", 200)
        save_store(
            iter_svmlight(io.BytesIO(text.getvalue()), block_bytes=block_bytes, n_features=9), f"{folder}/s"
        )
        store = open_store(f"{folder}/s")
    assert_holds(store, data)
    again = io.BytesIO()
    save_svmlight(store.X, store.y, again, qid=store.qid)
    assert again.getvalue() == text.getvalue()


def test_a_query_that_goes_on_in_the_next_block_is_one_query(tmp_path):
    save_store(cut((np.eye(6), np.arange(6.0), np.array([1, 1, 1, 1, 1, 2])), 6), tmp_path / "s")
    store = open_store(tmp_path / "s")
    assert store.query_start.tolist() == [0, 5, 6]
    assert store.query_ids.tolist() == [1, 2]


# --- sizes and types ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given_type", "stored"),
    [("float32", 4), ("float64", 8), ("int8", 4), ("uint16", 4), ("int32", 8), ("bool", 4), ("float16", 4)],
)
def test_dense_rows_are_stored_densely_in_their_own_type(given_type, stored, tmp_path):
    X = np.ones((500, 40), dtype=given_type)
    save_store([(X, np.arange(500.0))], tmp_path / "s")
    store = open_store(tmp_path / "s")
    assert store.n_bytes == X.size * stored + 500 * 8
    on_disk = sum(path.stat().st_size for path in (tmp_path / "s").iterdir())
    assert on_disk <= store.n_bytes + 1000
    assert_array_equal(np.load(tmp_path / "s" / "X.npy"), X)


def test_a_block_of_a_wider_type_needs_a_dtype(tmp_path):
    blocks = [(np.eye(2, dtype=np.float32), [1, 0]), (np.eye(2), [1, 0])]
    with pytest.raises(InvalidInputError, match=r"Block 1 has type float64.*Hint: pass dtype"):
        save_store(blocks, tmp_path / "s")
    save_store(blocks, tmp_path / "s", dtype=np.float64)
    assert open_store(tmp_path / "s").X.dtype == np.float64


def test_sparse_blocks_may_grow(tmp_path):
    save_store([(sp.eye(2, format="csr"), [1, 0]), (sp.eye(3, format="csr"), [1, 0, 2])], tmp_path / "s")
    assert open_store(tmp_path / "s").X.shape == (5, 3)


# --- sources ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ending", "kind"), [("parquet", "none"), ("arrow", "text"), ("csv", "none"), ("csv", "text")]
)
def test_tables_become_stores(ending, kind, tmp_path):
    X, y, qid = make(kind=kind)
    save_table(X.toarray(), y, tmp_path / f"t.{ending}", qid=qid)
    save_store(tmp_path / f"t.{ending}", tmp_path / "s")
    assert_holds(open_store(tmp_path / "s"), (X.toarray(), y, qid))


def test_columns_of_a_table_may_have_any_name(tmp_path):
    X, y, qid = make(kind="text")
    frame = pd.DataFrame({"grade": y, "search": qid, "vector": list(X.toarray()), "noise": y})
    save_store(iter_table(frame, label="grade", qid="search", embedding="vector"), tmp_path / "s")
    assert_holds(open_store(tmp_path / "s"), (X.toarray(), y, qid))


def test_missing_values_are_stored_and_fit_refuses_them(tmp_path):
    X = np.array([[1.0, np.nan], [0.0, 2.0]])
    for rows in (X, sp.csr_matrix(X)):
        save_store([(rows, [1, 0])], tmp_path / "s")
        store = open_store(tmp_path / "s")
        assert_array_equal(dense_of(store.X), X)
        with pytest.raises(InvalidInputError, match="contains NaN"):
            RankRLS().fit(store.X, store.y)


@pytest.mark.parametrize(
    ("blocks", "message"),
    [
        ([], "no rows"),
        ([(np.eye(2), [1, 0]), (np.ones((2, 3)), [1, 0])], "Block 1 has 3 columns where 2 are expected"),
        ([(np.eye(2), [1, 0], [1, 1]), (np.eye(2), [1, 0])], "Some blocks have query ids"),
        ([(np.eye(2), [1, 0], [1, 1]), (np.eye(2), [1, 0], ["a", "b"])], "numbers in some blocks and text"),
        ([(np.eye(2), [1, 0], [1, 2]), (np.eye(2), [1, 0], [3, 1])], "Query 1 comes again"),
        ([(np.eye(2), [1, 0, 3])], "y has 3"),
        ([(np.eye(2), [1, np.nan])], "y is NaN"),
        ([np.eye(2)], "not a tuple"),
        ([(np.array([["a"]]), [1])], "not a matrix of numbers"),
        ([(np.ones((2, 2), complex), [1, 0])], "not a matrix of numbers"),
        ([(sp.csr_matrix(([1.0], ([0], [3])), shape=(2, 2**31 + 9)), [1, 0])], "up to 2.31 columns"),
        (3, "cannot be written from int"),
    ],
)
def test_bad_blocks_leave_nothing_behind(blocks, message, tmp_path):
    with pytest.raises(InvalidInputError, match=message) as caught:
        save_store(blocks, tmp_path / "s")
    assert "Hint: " in str(caught.value)
    assert list(tmp_path.iterdir()) == []


# --- writing ------------------------------------------------------------------------------------------------


@pytest.fixture(params=["dense", "sparse"])
def data(request):
    X, y, qid = make(kind="text")
    return X.toarray() if request.param == "dense" else X, y, qid


@pytest.fixture
def folder(data, tmp_path):
    X, y, qid = data
    save_store([(X, y, qid)], tmp_path / "s")
    return tmp_path / "s"


def test_an_error_while_writing_leaves_the_old_store(folder, data):
    def broken():
        yield np.eye(2), [1, 0], [1, 1]
        raise RuntimeError("the stream broke inside a query")

    with pytest.raises(RuntimeError, match="inside a query"):
        save_store(broken(), folder)
    cut_off = gzip.compress(TEXT * 200, mtime=0)[:-20]
    with pytest.raises(InvalidInputError, match="cannot be read to its end"):
        save_store(io.BytesIO(cut_off), folder)
    with pytest.raises(FileNotFoundError, match=r"nothing\.parquet"):
        save_store(folder.parent / "nothing.parquet", folder)
    with pytest.raises(InvalidInputError, match="too large for float32"):
        save_store([(np.full((2, 2), 1e300), [1, 0])], folder, dtype=np.float32)
    assert_holds(open_store(folder), data)
    assert [entry.name for entry in folder.parent.iterdir()] == ["s"]


def test_a_full_disk_leaves_the_old_store(tmp_path):
    """The system refuses to let the process write files beyond a limit, as a full disk would."""
    data, folder = make(), tmp_path / "s"
    save_store([data], folder)
    code = f"""
import resource, signal
import numpy as np
from rankwise.data import save_store
from rankwise.exceptions import InvalidInputError
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
try:
    save_store(((np.ones((100, 9)), np.arange(100.0)) for _ in range(1000)), {str(folder)!r})
except InvalidInputError as error:
    print(error)
"""
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert "could not be written: File too large" in said
    assert_holds(open_store(folder), data)
    assert [entry.name for entry in folder.parent.iterdir()] == ["s"]


def test_a_store_in_use_can_be_rewritten(folder, data):
    old = open_store(folder)
    other = make(seed=5, rows=80)
    save_store([other], folder)
    assert_holds(open_store(folder), other)
    assert_holds(old, data)


def test_a_folder_that_is_not_a_store_is_left_alone(tmp_path):
    (tmp_path / "photos").mkdir()
    (tmp_path / "file").write_text("text")
    for name in ("photos", "file"):
        with pytest.raises(InvalidInputError, match="exists and is not a store"):
            save_store([make()], tmp_path / name)
    with pytest.raises(InvalidInputError, match="No such file"):
        save_store([make()], tmp_path / "none" / "s")
    with pytest.raises(InvalidInputError, match="is not a store"):
        open_store(tmp_path / "photos")


def test_memory_is_bounded_while_writing_and_training(tmp_path):
    """240 MB of dense rows are written and trained on, and the process holds less than a quarter of that."""
    code = f"""
import re
import numpy as np
from pathlib import Path
from rankwise import RankRLS
from rankwise.data import mapped, open_store, save_store
def held():
    return int(re.search(r"RssAnon:\\s+(\\d+)", Path("/proc/self/status").read_text())[1]) << 10
def blocks():
    rng = np.random.default_rng(0)
    for q in range(120):
        X = rng.normal(size=(5000, 100)).astype(np.float32)
        yield X, np.round(X[:, 0]), np.repeat(np.arange(50) + 50 * q, 100)
mapped.MemoryBudget.allows = lambda *_: False
RankRLS().fit(np.eye(4), np.arange(4.0))
before = held()
save_store(blocks(), {str(tmp_path / "s")!r})
written = held() - before
store = open_store({str(tmp_path / "s")!r})
RankRLS(solver="direct").fit(store.X, store.y, qid=store.qid)
print(store.n_bytes, written, held() - before)
"""
    if not Path("/proc/self/status").exists():
        pytest.skip("this system does not tell the memory of a process")
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    size, written, trained = map(int, said.split())
    assert size > 2.4 * 10**8
    assert written < size / 8
    assert trained < size / 4


# --- models -------------------------------------------------------------------------------------------------


@pytest.fixture(params=["fits", "larger than memory"])
def room(request, monkeypatch):
    if request.param == "larger than memory":
        monkeypatch.setattr(mapped.MemoryBudget, "allows", lambda *_: False)
    monkeypatch.setattr(mapped, "READ_AHEAD", 500)
    monkeypatch.setattr(mapped, "DIRECT_READ", 5000)
    monkeypatch.setattr(dense, "SELECTED_BLOCK", 2000)
    return request.param


@pytest.mark.parametrize("storage", ["dense", "sparse"])
@pytest.mark.parametrize(
    "model",
    [
        RankRLS(),
        RankRLS(solver="cg", tol=1e-12),
        RankRLS(solver="stochastic", tol=1e-10),
        RankRLSCV(),
        RankSVM(),
        AdditiveRanker(),
    ],
    ids=repr,
)
@pytest.mark.usefixtures("room")
def test_a_store_gives_the_coefficients_of_memory(model, storage, tmp_path):
    rng = np.random.default_rng(0)
    X = np.round(rng.normal(loc=3, size=(600, 12)), 3) * (rng.random((600, 12)) < 0.8)
    y = np.round(X @ rng.normal(size=12) + rng.normal(size=600))
    qid = np.repeat(np.arange(60), 10)
    X = X if storage == "dense" else sp.csr_matrix(X)
    save_store(cut((X, y, qid), 4), tmp_path / "s")
    store = open_store(tmp_path / "s")
    expected = model.__class__(**model.get_params()).fit(X, y, qid=qid)
    found = model.fit(store.X, store.y, qid=store.qid)
    scores = expected.predict(X)
    assert_allclose(found.predict(store.X), scores, rtol=0, atol=1e-8 * np.abs(scores).max())
    if hasattr(expected, "coef_"):
        assert_allclose(found.coef_, expected.coef_, rtol=0, atol=1e-8 * np.abs(expected.coef_).max())


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.usefixtures("room")
def test_products_with_dense_rows_on_disk(room, dtype, tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 12)).astype(dtype)
    save_store([(X, np.arange(600.0))], tmp_path / "s")
    design = as_design(open_store(tmp_path / "s").X)
    assert design.is_on_disk == (room == "larger than memory")
    for width in ((), (3,)):
        v, u = rng.normal(size=(12, *width)), rng.normal(size=(600, *width))
        assert_allclose(design.dot(v), X.astype(np.float64) @ v, rtol=1e-12, atol=1e-12)
        assert_allclose(design.tdot(u), X.T.astype(np.float64) @ u, rtol=1e-11, atol=1e-11)
    rows = rng.permutation(600)[:400]
    chosen = design.rows(rows)
    assert isinstance(chosen, OperatorDesign) == design.is_on_disk
    assert_allclose(chosen.dot(v), X[rows].astype(np.float64) @ v, rtol=1e-12, atol=1e-12)
    assert_allclose(chosen.tdot(u[:400]), X[rows].T.astype(np.float64) @ u[:400], rtol=1e-11, atol=1e-11)


def test_a_pickled_matrix_is_the_path_of_its_store(tmp_path):
    save_store([make()], tmp_path / "s")
    matrix = open_store(tmp_path / "s").X
    pickled = pickle.dumps(matrix)
    assert len(pickled) < 1000
    assert_array_equal(pickle.loads(pickled).toarray(), matrix.toarray())
    save_store([make(seed=1)], tmp_path / "s")
    with pytest.raises(InvalidInputError, match=r"written again after it was opened.*Hint: open it again"):
        pickle.loads(pickled)


# --- damage -------------------------------------------------------------------------------------------------


def test_files_of_another_size_or_header_are_refused(folder):
    for path in folder.glob("*.npy"):
        whole = path.read_bytes()
        for wrong in (b"", whole[:50], whole[:-1], whole[:20] + b"?" + whole[21:]):
            path.write_bytes(wrong)
            with pytest.raises(InvalidInputError, match=r"is damaged: its files cannot be read .*Hint"):
                open_store(folder)
        path.unlink()
        with pytest.raises(InvalidInputError, match=rf"cannot be read .*{path.name}"):
            open_store(folder)
        path.write_bytes(whole)
        open_store(folder)


@pytest.mark.parametrize(
    "error", [OSError(24, "Too many open files"), PermissionError(13, "no"), MemoryError()]
)
def test_errors_of_the_system_are_not_called_damage(error, folder, monkeypatch):
    def failing(*_args, **_how):
        raise error

    monkeypatch.setattr(np.lib.format, "open_memmap", failing)
    with pytest.raises(type(error)) as caught:
        open_store(folder)
    assert caught.value is error


def test_a_store_that_is_being_replaced_is_opened_again(folder, monkeypatch):
    opened, fails = np.lib.format.open_memmap, [FileNotFoundError(2, "No such file or directory")]

    def failing_once(*args, **how):
        if fails:
            raise fails.pop()
        return opened(*args, **how)

    monkeypatch.setattr(np.lib.format, "open_memmap", failing_once)
    assert open_store(folder).y.size
    assert not fails


@pytest.mark.parametrize(
    ("name", "at", "wrong", "message"),
    [
        ("indices", 5, 9, "indices of the matrix"),
        ("indices", 5, -1, "indices of the matrix"),
        ("indptr", 0, 1, "pointers of the matrix"),
        ("indptr", 3, -(2**40), "pointers of the matrix"),
        ("indptr", 3, 2**62, "pointers of the matrix"),
        ("indptr", -1, 2**40, "does not end with the entries"),
        ("query_start", 0, 1, "query_start.npy is not ascending"),
        ("query_start", 1, -(2**62), "query_start.npy is not ascending"),
        ("query_start", -1, 2**40, "query_start.npy is not ascending"),
        ("y", 2, np.nan, "y.npy has values that are not finite"),
    ],
)
def test_numbers_that_lead_outside_the_arrays_are_refused(name, at, wrong, message, tmp_path):
    X, y, qid = make()
    save_store([(X, y, qid)], tmp_path / "s")
    path = tmp_path / "s" / f"{name}.npy"
    array = np.load(path)
    array[at] = wrong
    np.save(path, array)
    with pytest.raises(InvalidInputError, match=f"damaged: .*{message}"):
        open_store(tmp_path / "s")


def test_a_query_id_that_is_not_text_is_refused(tmp_path):
    save_store([make(kind="text")], tmp_path / "s")
    path = tmp_path / "s" / "query_ids.npy"
    path.write_bytes(path.read_bytes()[:-1] + b"\xff")
    with pytest.raises(InvalidInputError, match=r"query_ids\.npy is not text"):
        open_store(tmp_path / "s")


def test_a_wrong_meta_file_is_refused(folder):
    path = folder / "meta.json"
    whole = path.read_text()
    meta = json.loads(whole)
    changes = (
        {"columns": -1},
        {"columns": True},
        {"columns": 1.5},
        {"columns": 2**40},
        {"is_sparse": not meta["is_sparse"]},
        {"first_column": 7},
        {"version": 99},
        {"format": "model"},
    )
    for wrong in (
        whole[:-5],
        "",
        "[]",
        "{}",
        "3",
        "[" * 10**5,
        *(json.dumps({**meta, **c}) for c in changes),
    ):
        path.write_text(wrong)
        with pytest.raises(InvalidInputError, match="damaged"):
            open_store(folder)
    path.unlink()
    with pytest.raises(InvalidInputError, match="not a store"):
        open_store(folder)


class TestRealData:
    pytestmark = NEEDS_REAL_DATA

    def test_ohsumed_survives_the_disk(self, tmp_path):
        paths = sorted(Path(ROOT, "OHSUMED", "Feature-null").glob("S*.gz"))
        save_store(iter_svmlight(paths, missing="nan"), tmp_path / "s")
        assert_holds(open_store(tmp_path / "s"), load_svmlight(paths, missing="nan"))
