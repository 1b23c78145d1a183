"""The store: what is written is what is read, and whatever is wrong with it is found on opening."""

import gc
import gzip
import io
import json
import os
import pickle
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from fuzz_corpus import read_corpus
from making_stores import assert_holds, cut, make
from rankwise import _core
from rankwise.data import Store, load_svmlight, open_store, save_store, save_svmlight
from rankwise.data.store import files as store_files
from rankwise.data.store import format as store_format
from rankwise.data.text import reader as text_reader
from rankwise.exceptions import InvalidInputError
from real_data import NEEDS_REAL_DATA, ROOT
from store_checks import check_input

TEXT = b"2 qid:7 1:0.5 3:1\n0 qid:7 2:-1\n1 qid:3 1:2 2:3 3:4\n0 qid:3 1:0\n"


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 2**31 - 1),
    kind=st.sampled_from(["none", "int", "real", "text"]),
    dtype=st.sampled_from([np.float64, np.float32]),
    pieces=st.integers(1, 12),
)
def test_blocks_survive_the_disk(seed, kind, dtype, pieces):
    data = make(seed, kind=kind, dtype=dtype)
    with tempfile.TemporaryDirectory() as folder:
        save_store(cut(data, pieces), f"{folder}/s", dtype=dtype)
        store = open_store(f"{folder}/s")
        assert_holds(store, data)
        again = list(store.blocks(300))
        assert_holds(
            store,
            (sp.vstack([b[0] for b in again], format="csr"), np.concatenate([b[1] for b in again]), data[2]),
        )
        if kind != "none":
            assert sum(len(set(b[2].tolist())) for b in again) == len(set(data[2].tolist()))
        save_store(store, f"{folder}/copy", dtype=dtype)
        assert_holds(open_store(f"{folder}/copy"), data)


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 2**31 - 1), block_bytes=st.integers(100, 5000))
def test_text_store_text_is_exact(seed, block_bytes):
    data = make(seed)
    text = io.BytesIO()
    save_svmlight(data[0], data[1], text, qid=data[2])
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(text_reader, "PARSED_AT_ONCE", 200)
        # So little that there is something to write while the next rows are parsed.
        patch.setattr(store_files, "SEGMENT", 300)
        patch.setattr(store_files, "MOST_BEHIND", 1000)
        save_store(io.BytesIO(text.getvalue()), f"{folder}/s", block_bytes=block_bytes, n_features=9)
        store = open_store(f"{folder}/s")
    assert_holds(store, data)
    again = io.BytesIO()
    save_svmlight(store.X, store.y, again, qid=store.qid)
    assert again.getvalue() == text.getvalue()


@settings(max_examples=30, deadline=None)
@given(
    seed=st.integers(0, 2**31 - 1),
    kind=st.sampled_from(["none", "int", "text"]),
    block_bytes=st.integers(200, 20_000),
)
def test_scattered_queries_are_regrouped_by_first_appearance(seed, kind, block_bytes):
    X, y, qid = make(seed, kind=kind)
    shuffled = np.random.default_rng(seed).permutation(y.size)
    X, y, qid = X[shuffled], y[shuffled], None if qid is None else qid[shuffled]
    with tempfile.TemporaryDirectory() as folder:
        if qid is not None and np.count_nonzero(qid[1:] != qid[:-1]) >= np.unique(qid).size:
            with pytest.raises(InvalidInputError, match=r"comes again .*regroup=True"):
                save_store(cut((X, y, qid), 5), f"{folder}/s")
            assert list(Path(folder).iterdir()) == []
        save_store(cut((X, y, qid), 5), f"{folder}/s", regroup=True, block_bytes=block_bytes)
        assert [entry.name for entry in Path(folder).iterdir()] == ["s"]
        store = open_store(f"{folder}/s")
    if qid is not None:
        first = {query: at for at, query in reversed(list(enumerate(qid.tolist())))}
        order = np.argsort([first[query] for query in qid.tolist()], kind="stable")
        X, y, qid = X[order], y[order], qid[order]
    assert_holds(store, (X, y, qid))


@pytest.mark.parametrize("name", ["ungrouped", "buckets", "old", "s"])
def test_a_store_may_have_any_name(name, tmp_path):
    X, y, qid = make()
    order = np.random.default_rng(0).permutation(y.size)
    for _ in range(2):  # the second time it replaces the first
        save_store([(X[order], y[order], qid[order])], tmp_path / name, regroup=True)
    assert open_store(tmp_path / name).header.queries == np.unique(qid).size
    assert [path.name for path in tmp_path.iterdir()] == [name]


@pytest.mark.parametrize("with_ids", [True, False])
def test_blocks_are_bounded_whatever_the_lengths_of_rows(with_ids, tmp_path):
    """Long rows, then short ones: no block takes more than was said unless it is one query, or one row."""
    rng = np.random.default_rng(0)
    long_rows = sp.random(20, 500, density=0.8, random_state=0, format="csr")
    short_rows = sp.random(2000, 500, density=0.002, random_state=1, format="csr")
    X = sp.vstack([long_rows, short_rows], format="csr")
    qid = np.sort(rng.integers(400, size=X.shape[0])) if with_ids else None
    y = rng.normal(size=X.shape[0])
    save_store([(X, y, qid)] if with_ids else [(X, y)], tmp_path / "s")
    for limit in (1, 3000, 20_000, 10**9):
        blocks = list(open_store(tmp_path / "s").blocks(limit))
        assert sum(block[0].shape[0] for block in blocks) == X.shape[0]
        np.testing.assert_array_equal(np.concatenate([block[1] for block in blocks]), y)
        for block, labels, ids in blocks:
            taken = block.nnz * 12 + labels.size * 16
            assert taken <= limit or (labels.size == 1 if ids is None else np.unique(ids).size == 1)
    assert len(blocks) == 1


def test_a_query_that_goes_on_in_the_next_block_is_one_query(tmp_path):
    data = (sp.csr_matrix(np.eye(6)), np.arange(6.0), np.array([1, 1, 1, 1, 1, 2]))
    save_store(cut(data, 6), tmp_path / "s")
    store = open_store(tmp_path / "s")
    assert store.query_start.tolist() == [0, 5, 6]
    assert store.query_ids.tolist() == [1, 2]


def test_a_mapped_matrix_is_a_sparse_matrix_and_pickles_as_its_path(tmp_path):
    X, y, qid = make()
    save_store([(X, y, qid)], tmp_path / "s")
    mapped = open_store(tmp_path / "s").X
    assert sp.issparse(mapped)
    assert isinstance(mapped.data, np.memmap)
    assert isinstance(mapped.indices, np.memmap)
    np.testing.assert_array_equal((mapped @ np.ones(9)), X @ np.ones(9))
    np.testing.assert_array_equal(mapped[[3, 1]].toarray(), X[[3, 1]].toarray())
    assert mapped.is_on_disk
    assert not mapped[[3, 1]].is_on_disk
    text = pickle.dumps(mapped)
    assert len(text) < 1000
    np.testing.assert_array_equal(pickle.loads(text).toarray(), X.toarray())
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(mapped[:4])).toarray(), X[:4].toarray())


def test_a_pickled_matrix_comes_back_only_from_the_same_rows(tmp_path, monkeypatch):
    save_store([make()], tmp_path / "s")
    monkeypatch.chdir(tmp_path)
    mapped = open_store("s").X
    pickled = pickle.dumps(mapped)
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    save_store([make()], tmp_path / "s")  # the same again
    np.testing.assert_array_equal(pickle.loads(pickled).toarray(), mapped.toarray())
    save_store([make(seed=1)], tmp_path / "s")
    with pytest.raises(InvalidInputError, match=r"written again after its matrix was pickled.*Hint: let"):
        pickle.loads(pickled)
    assert pickle.loads(pickle.dumps(open_store(tmp_path / "s").X)).shape == mapped.shape


# --- what is wrong ------------------------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path):
    save_store([make()], tmp_path / "s")
    return tmp_path / "s"


def test_every_file_is_checked_for_its_size_and_its_checksum(folder):
    for name in store_format.FILES:
        path = folder / name
        whole = path.read_bytes()
        for wrong in (whole[:-1], whole + b"\0"):
            path.write_bytes(wrong)
            for verify in (True, False):
                with pytest.raises(
                    InvalidInputError, match=rf"damaged: {name} has \d+ bytes instead of .*Hint"
                ):
                    open_store(folder, verify=verify)
        for at in (0, len(whole) // 2, len(whole) - 1):
            path.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
            with pytest.raises(InvalidInputError, match="damaged"):
                open_store(folder)
        path.unlink()
        with pytest.raises(InvalidInputError, match=f"{name} cannot be opened"):
            open_store(folder)
        path.write_bytes(whole)
        open_store(folder)


def test_a_pipe_in_place_of_a_file_is_told(folder):
    (folder / "labels.bin").unlink()
    os.mkfifo(folder / "labels.bin")
    with pytest.raises(InvalidInputError, match=r"labels\.bin is no file"):
        open_store(folder)


def test_a_header_that_is_wrong_is_told(folder, tmp_path):
    path = folder / "header.json"
    whole = path.read_text()
    header = json.loads(whole)
    columns = (folder / "columns.bin").stat().st_size
    for wrong in (
        whole.replace('"version": 1', '"version": Infinity'),
        whole[:-5],
        "",
        "[]",
        "{}",
        "3",
        '{"format": 1}',
        whole.replace('"rows": 60', '"rows": 61'),
    ):
        path.write_text(wrong)
        with pytest.raises(InvalidInputError, match=r"damaged|not a store"):
            open_store(folder)
    path.write_text(json.dumps({**header, "version": 99}))
    with pytest.raises(InvalidInputError, match=r"newer rankwise \(format 99.*upgrade"):
        open_store(folder)
    for changed in (
        {"rows": -1},
        {"columns": 1.5},
        {"entries": 10**30},
        {"queries": 0},
        {"value_type": "int8"},
        {"files": 3},
        {"rows": True},
        {"files": {**header["files"], "labels.bin": [[480.0, ""]]}},
        {"files": {**header["files"], "columns.bin": [[2, ""], [columns - 2, ""]]}},
    ):
        content = {key: value for key, value in {**header, **changed}.items() if key != "checksum"}
        path.write_text(json.dumps({**content, "checksum": store_format._own_checksum(content)}))
        with pytest.raises(InvalidInputError, match=r"header\.json makes no sense"):
            open_store(folder)
    path.unlink()
    with pytest.raises(InvalidInputError, match="not a store"):
        open_store(folder)


def test_a_header_of_any_depth_is_refused():
    """Some can just be read and not be written again for their checksum."""
    for depth in range(500, 1100):
        deep = "[" * depth + "]" * depth
        text = f'{{"format": "rankwise store", "version": 1, "checksum": "", "deep": {deep}}}'
        with pytest.raises(InvalidInputError, match="damaged"):
            store_format.read_header(text.encode(), "store")


def test_a_field_of_the_header_that_was_changed_is_found_by_its_checksum(folder):
    """Some changes make sense: nothing else would tell them."""
    path = folder / "header.json"
    whole = path.read_text()
    for old, new in (('"first_column": 1', '"first_column": 0'), ('"is_finite": true', '"is_finite": false')):
        assert old in whole
        path.write_text(whole.replace(old, new))
        with pytest.raises(InvalidInputError, match=r"the checksum of header\.json does not fit"):
            open_store(folder)
    path.write_text(whole)
    open_store(folder)


def rewrite(folder, name, dtype, change):
    """Change a file and make all checksums fit it."""
    header = json.loads((folder / "header.json").read_text())
    content = np.fromfile(folder / name, dtype=dtype)
    change(content)
    content.tofile(folder / name)
    header["files"][name] = [[content.nbytes, f"{_core.checksum(content.view(np.uint8)):016x}"]]
    del header["checksum"]
    (folder / "header.json").write_text(
        json.dumps({**header, "checksum": store_format._own_checksum(header)})
    )


def test_columns_outside_the_matrix_are_found_even_where_checksums_fit(folder):
    rewrite(folder, "columns.bin", np.int32, lambda columns: np.put(columns, 5, 9))
    with pytest.raises(InvalidInputError, match="outside the matrix"):
        open_store(folder)


@pytest.mark.parametrize("name", ["row_start.bin", "query_start.bin", "query_text_end.bin"])
@pytest.mark.parametrize("wrong", [-(2**40), -1, 0, 2**40])
@pytest.mark.parametrize("at", [0, 1, -1])
def test_pointers_that_lead_astray_are_found_even_where_checksums_fit(folder, name, wrong, at):
    """Without a pass over the matrix too: they alone keep products inside the arrays."""

    def change(pointers):
        if wrong == 0 and (at == 0 and name != "query_text_end.bin"):
            pointers[at] = 1  # 0 is right there
        elif wrong == 0:
            pointers[at] = pointers[at - 1] - 1
        else:
            pointers[at] = wrong

    rewrite(folder, name, np.int64, change)
    for verify in (True, False):
        with pytest.raises(InvalidInputError, match=f"{name} is not ascending"):
            open_store(folder, verify=verify)


FILES_OF_POINTERS = ["row_start.bin", "query_start.bin", "query_text_end.bin", "item_text_end.bin"]


@pytest.mark.parametrize("name", FILES_OF_POINTERS)
def test_pointers_whose_differences_wrap_around_are_found(name, tmp_path):
    """Each is above the one before it, if differences are taken modulo 2^64."""
    folder = tmp_path / "s"
    save_store([(np.eye(6), np.arange(6.0), list("abcdef"), list("uvwxyz"))], folder)

    def change(pointers):
        first = 0 if name.endswith("_end.bin") else 1
        pointers[first : first + 3] = 2**62, -(2**63), -(2**62)

    rewrite(folder, name, np.int64, change)
    for verify in (True, False):
        with pytest.raises(InvalidInputError, match=f"{name} is not ascending"):
            open_store(folder, verify=verify)


@pytest.mark.parametrize(
    ("blocks", "message"),
    [
        ([], "no rows"),
        ([(np.eye(2), [1, 0]), (np.ones((2, 3)), [1, 0])], "Block 1 has 3 columns where 2 are expected"),
        ([(np.eye(2), [1, 0]), (np.ones((2, 1)), [1, 0])], "Block 1 has 1 columns where 2 are expected"),
        ([(np.eye(2), [1, 0], [1, 1]), (np.eye(2), [1, 0])], "Some blocks have query ids"),
        ([(np.eye(2), [1, 0], [1, 1]), (np.eye(2), [1, 0], ["a", "b"])], "numbers in some blocks and text"),
        ([(np.eye(2), [1, 0], [1, 2]), (np.eye(2), [1, 0], [3, 1])], "Query '1' comes again"),
        ([(np.eye(2), [1, 0, 3])], "y has 3 entries where 2"),
        ([(np.eye(2), [1, np.nan])], "y is NaN"),
        ([(np.eye(2) * np.nan, [1, 0])], "Block 0|block 0 has values that are not finite"),
        ([(np.eye(2), [1, 0], ["", "a"])], "empty"),
        ([np.eye(2)], "not a tuple"),
        ([(np.array([["a"]]), [1])], "not a matrix of numbers"),
        (3, "cannot be written from int"),
    ],
)
def test_bad_blocks_leave_nothing_behind(blocks, message, tmp_path):
    with pytest.raises(InvalidInputError, match=message) as caught:
        save_store(blocks, tmp_path / "s")
    assert "Hint: " in str(caught.value)
    assert list(tmp_path.iterdir()) == []


def test_an_error_while_writing_leaves_the_old_store(folder):
    before = open_store(folder).y.copy()

    def broken():
        yield np.eye(2), [1, 0], [1, 1]
        raise RuntimeError("the stream broke inside a query")

    with pytest.raises(RuntimeError, match="inside a query"):
        save_store(broken(), folder)
    cut_off = gzip.compress(TEXT * 200)[:-20]
    with pytest.raises(InvalidInputError, match="cannot be read to its end"):
        save_store(io.BytesIO(cut_off), folder)
    np.testing.assert_array_equal(open_store(folder).y, before)
    assert [entry.name for entry in folder.parent.iterdir()] == ["s"]


def test_a_full_disk_leaves_the_old_store(folder):
    """The system refuses to let the process write files beyond a limit, as a full disk would."""
    code = f"""
import resource, signal
import numpy as np
from rankwise.data import save_store
from rankwise.exceptions import InvalidInputError
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
try:
    save_store(((np.ones((100, 9)), np.arange(100.0)) for _ in range(1000)), {str(folder)!r}, block_bytes=1000)
except InvalidInputError as error:
    print(error)
"""
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert "could not be written: File too large; nothing was changed. Hint: make room" in said
    assert_holds(open_store(folder), make())
    assert [entry.name for entry in folder.parent.iterdir()] == ["s"]


def test_a_store_in_use_can_be_rewritten(folder):
    old = open_store(folder)
    other = make(seed=5, rows=80)
    save_store([other], folder)
    assert_holds(open_store(folder), other)
    assert_holds(old, make())  # its files are gone by name, not for who has them open
    old.verify()
    assert [entry.name for entry in folder.parent.iterdir()] == ["s"]


def test_a_folder_that_is_not_a_store_is_left_alone(tmp_path):
    (tmp_path / "photos").mkdir()
    (tmp_path / "file").write_text("text")
    for name in ("photos", "file"):
        with pytest.raises(InvalidInputError, match="exists and is not a store"):
            save_store([make()], tmp_path / name)
    with pytest.raises(InvalidInputError, match="cannot be written: No such file"):
        save_store([make()], tmp_path / "none" / "s")
    with pytest.raises(InvalidInputError, match="is not a store"):
        open_store(tmp_path / "photos")


def test_missing_values_are_stored_where_told(tmp_path):
    X = np.array([[1.0, np.nan], [0.0, 2.0]])
    save_store([(X, [1, 0])], tmp_path / "s", missing="nan")
    store = open_store(tmp_path / "s")
    np.testing.assert_array_equal(store.X.toarray(), X)
    assert not store.X.is_finite
    save_store([(X, [1, 0])], tmp_path / "s", missing="zero")
    assert open_store(tmp_path / "s").X.nnz == 2
    assert open_store(tmp_path / "s").X.is_finite


def test_many_small_blocks_share_checksums(tmp_path, monkeypatch):
    monkeypatch.setattr(store_files, "SEGMENT", 1000)
    data = make(rows=400)
    save_store(cut(data, 200), tmp_path / "s")
    store = open_store(tmp_path / "s")
    assert_holds(store, data)
    assert 1 < len(store.header.files["values.bin"]) < 100
    assert "400 rows" in repr(store)


def test_the_checksum_is_the_known_one():
    """XXH64 with seed 0, as its specification lists it for the empty input, 'a' and 'abc'."""
    for text, wanted in ((b"", 0xEF46DB3751D8E999), (b"a", 0xD24EC4F1A98C6E5B), (b"abc", 0x44BC2CF5AD770999)):
        assert _core.checksum(np.frombuffer(text, dtype=np.uint8)) == wanted


CORPUS = read_corpus(Path(__file__).with_name("store_corpus.txt"))


def test_stores_that_a_fuzzer_found_are_refused_or_can_be_used(tmp_path):
    """The first byte of an input is options; see `store_checks`."""
    opened = sum(check_input(data, tmp_path / "s") for data in CORPUS)
    assert 10 < opened < len(CORPUS)


class TestRealData:
    pytestmark = NEEDS_REAL_DATA

    @pytest.mark.parametrize("variant", ["QueryLevelNorm", "Feature-min", "Feature-null"])
    def test_ohsumed_survives_the_disk(self, variant, tmp_path):
        paths = sorted(Path(ROOT, "OHSUMED", variant).glob("S*.gz"))
        missing = "nan" if variant == "Feature-null" else "error"
        save_store(paths, tmp_path / "s", missing=missing, block_bytes=1 << 20)
        store = open_store(tmp_path / "s")
        assert isinstance(store, Store)
        assert_holds(store, load_svmlight(paths, missing=missing))
        one, other = io.BytesIO(), io.BytesIO()
        X, y, qid = load_svmlight(paths, missing=missing)
        save_svmlight(X, y, one, qid=qid, missing="nan")
        save_svmlight(store.X, store.y, other, qid=store.qid, missing="nan")
        assert one.getvalue() == other.getvalue()


_TRUNCATED = """
import os, sys
import numpy as np
from rankwise import RankRLS
from rankwise.data import open_store, save_store
rows = np.random.default_rng(0).normal(size=(5000, 20))
save_store([(rows, np.arange(5000.0) % 5, np.arange(5000) // 20)], sys.argv[1])
store = open_store(sys.argv[1])
os.truncate(os.path.join(sys.argv[1], sys.argv[2]), 4096)
print("truncated", flush=True)
RankRLS(solver="cg").fit(store.X, store.y, qid=store.qid)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="a file that is in use cannot be made shorter")
@pytest.mark.parametrize("name", ["values.bin", "columns.bin"])
def test_a_file_that_becomes_shorter_ends_the_process_with_a_word(name, tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", _TRUNCATED, tmp_path / "store", name],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout == "truncated\n"
    assert done.returncode == -signal.SIGBUS
    assert f"{name} of the store {tmp_path}/store became shorter" in done.stderr
    assert "Hint: replace stores by save_store" in done.stderr


def test_a_bus_error_of_somebody_else_stays_theirs(tmp_path):
    code = (
        "import mmap, os, sys\n"
        "from rankwise.data import open_store, save_store\n"
        "save_store([([[1.0]], [1])], sys.argv[1] + '/store'); store = open_store(sys.argv[1] + '/store')\n"
        "with open(sys.argv[1] + '/other', 'wb+') as file:\n"
        "    file.write(bytes(9000)); file.flush(); other = mmap.mmap(file.fileno(), 0); file.truncate(0)\n"
        "other[8000]\n"
    )
    done = subprocess.run([sys.executable, "-c", code, tmp_path], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (-signal.SIGBUS, "")


def test_mappings_are_forgotten_with_their_arrays(tmp_path):
    """Numbers of mappings come back into use: there are only so many of them."""
    save_store([(np.eye(3), [1, 2, 3])], tmp_path / "store")
    slots = set()
    for _ in range(20):
        store = open_store(tmp_path / "store")
        slots.add(_core.watch_mapping(np.zeros(1, dtype=np.uint8), "next"))
        _core.forget_mapping(max(slots))
        del store
        gc.collect()
    assert len(slots) == 1
