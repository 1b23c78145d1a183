"""Tables: every format gives the same arrays, and what is wrong is named with its place."""

import bz2
import datetime as dt
import decimal
import gzip
import io
import subprocess
import sys
import time

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet as pq
import pytest
import scipy.sparse as sp
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from optional import polars as pl
from rankwise import RankRLS
from rankwise.data import iter_table, load_table, save_table, tables
from rankwise.exceptions import InvalidInputError, MemoryLimitError
from rankwise.runtime import memory

ROWS = {
    "qid": ["b", "a", "b", "c"],
    "bm25": [0.5, 0.25, 1e-300, -3.0],
    "label": [2, 0, 1, 1],
    "clicks": [1, 2, 3, 4],
    "fresh": [True, False, True, True],
    "title": ["x", "y", "7", "z"],
}


def write(table, path):
    kind = path.suffix
    if kind in {".parquet", ".pq"}:
        pq.write_table(table, path, row_group_size=3)
    elif kind == ".feather":
        pyarrow.feather.write_feather(table, path)
    elif kind == ".arrow":
        with pa.ipc.new_file(path, table.schema) as writer:
            writer.write_table(table, max_chunksize=3)
    elif kind == ".arrows":
        with pa.ipc.new_stream(path, table.schema) as writer:
            writer.write_table(table)
    else:
        pyarrow.csv.write_csv(table, path)
    return path


@pytest.mark.parametrize("suffix", ["parquet", "arrow", "arrows", "feather", "csv"])
def test_every_format_gives_the_same(suffix, tmp_path):
    path = write(pa.table(ROWS), tmp_path / f"rows.{suffix}")
    X, y, qid, names = load_table(path)
    assert names == ["bm25", "clicks", "fresh"]
    assert X.tolist() == [[0.5, 1, 1], [0.25, 2, 0], [1e-300, 3, 1], [-3, 4, 1]]
    assert (X.dtype, y.tolist(), qid.tolist()) == (np.float64, [2, 0, 1, 1], ["b", "a", "b", "c"])
    chosen = load_table(str(path), features=["clicks", "bm25"], qid=None, dtype=np.float32)
    assert chosen.X.dtype == np.float32
    assert chosen.X.tolist() == np.float32(X[:, [1, 0]]).tolist()
    assert chosen.qid is None
    unlabelled = load_table(path, label=None)
    assert (unlabelled.y, unlabelled.feature_names) == (None, ["bm25", "label", "clicks", "fresh"])


@pytest.mark.parametrize(
    "make", [pd.DataFrame, pl.DataFrame, lambda rows: pl.DataFrame(rows).lazy(), pa.table]
)
def test_frames_are_tables(make, tmp_path):
    frame = load_table(make(ROWS))
    file = load_table(write(pa.table(ROWS), tmp_path / "rows.parquet"))
    assert frame.X.tobytes() == file.X.tobytes()
    assert frame.feature_names == file.feature_names
    assert frame.qid.tolist() == file.qid.tolist()


def test_several_files_globs_and_folders_are_one_table(tmp_path):
    table = pa.table(ROWS)
    write(table.slice(0, 2), tmp_path / "part-0.parquet")
    write(
        table.slice(2).select(list(ROWS)[::-1]), tmp_path / "part-1.csv"
    )  # other order of columns, other format
    whole = load_table(table)
    for source in [tmp_path, str(tmp_path / "part-*"), sorted(tmp_path.iterdir())]:
        X, y, qid, _ = load_table(source)
        assert X.tobytes() == whole.X.tobytes()
        assert (y.tolist(), qid.tolist()) == (whole.y.tolist(), whole.qid.tolist())
    write(table.drop_columns("clicks"), tmp_path / "part-2.parquet")
    with pytest.raises(InvalidInputError, match=r"part-2.parquet has no column 'clicks'.*first table"):
        load_table(tmp_path)
    with pytest.raises(InvalidInputError, match="matches no file"):
        load_table(str(tmp_path / "nothing-*"))
    with pytest.raises(FileNotFoundError):
        load_table(tmp_path / "nothing.csv")
    (tmp_path / "empty").mkdir()
    with pytest.raises(InvalidInputError, match="folder without tables"):
        load_table(tmp_path / "empty")


def test_compressed_and_other_separators(tmp_path):
    pd.DataFrame(ROWS).to_csv(tmp_path / "rows.csv.gz", index=False)
    pd.DataFrame(ROWS).to_csv(tmp_path / "rows.tsv", index=False, sep="\t")
    pd.DataFrame(ROWS).to_csv(tmp_path / "semicolons.csv", index=False, sep=";", lineterminator="\r\n")
    expected = load_table(pa.table(ROWS))
    packed = {"gz": gzip.compress, "bz2": bz2.compress, "zst": zstandard.compress}
    for name in ("rows.tsv", "semicolons.csv"):
        for ending, compress in packed.items():
            (tmp_path / f"{name}.{ending}").write_bytes(compress((tmp_path / name).read_bytes()))
    named = [f"{name}.{ending}" for name in ("rows.tsv", "semicolons.csv") for ending in packed]
    for name in ("rows.csv.gz", "rows.tsv", "semicolons.csv", *named):
        assert load_table(tmp_path / name).X.tobytes() == expected.X.tobytes()


@pytest.mark.parametrize(
    "kind", [pa.list_(pa.float32()), pa.large_list(pa.int16()), pa.list_(pa.float64(), 3), "tensor"]
)
def test_embeddings_are_features(kind, tmp_path):
    vectors = np.arange(12.0).reshape(4, 3)
    if kind == "tensor":
        column = pa.FixedShapeTensorArray.from_numpy_ndarray(vectors)
    else:
        column = pa.array(vectors.tolist(), type=kind)
    table = pa.table({**{k: ROWS[k] for k in ("qid", "label", "bm25")}, "vec": column})
    path = write(table, tmp_path / "rows.parquet")
    X, _, _, names = load_table(path, embedding="vec")
    assert X.tolist() == vectors.tolist()
    assert names == ["vec[0]", "vec[1]", "vec[2]"]
    both = load_table(path, features=["bm25"], embedding=["vec"])
    assert both.X.tolist() == np.column_stack([ROWS["bm25"], vectors]).tolist()
    assert load_table(path).feature_names == ["bm25"]


def test_embeddings_of_unequal_length_and_missing_ones():
    rows = {"label": [1, 2, 3], "vec": [[1.0, 2.0], [3.0, 4.0], [5.0]]}
    with pytest.raises(
        InvalidInputError, match=r"column 'vec', row 2: the list is missing, or does not have 2 numbers"
    ):
        load_table(pa.table(rows), qid=None, embedding="vec")
    with pytest.raises(
        InvalidInputError, match=r"column 'vec', row 1: the list is missing, or does not have 1 number"
    ):
        load_table(pa.table({**rows, "vec": [[1.0], None, [2.0]]}), qid=None, embedding="vec")
    with pytest.raises(InvalidInputError, match=r"column 'vec', row 1: a missing value"):
        load_table(pa.table({**rows, "vec": [[1.0], [None], [2.0]]}), qid=None, embedding="vec")


def test_files_whose_columns_differ_in_kind():
    numbers, lists = (
        pa.table({"label": [0, 1], "a": values}) for values in ([1.0, 2.0], [[1.0, 2.0], [3.0, 4.0]])
    )
    with pytest.raises(InvalidInputError, match=r"column 'a' does not hold numbers: it holds list"):
        load_table([numbers, lists], qid=None)
    with pytest.raises(
        InvalidInputError, match=r"column 'a' does not hold lists of numbers: it holds double"
    ):
        load_table([lists, numbers], qid=None)


def test_blocks_of_parquet_are_read_when_they_are_needed(tmp_path):
    columns = {f"x{column}": np.random.default_rng(column).normal(size=200_000) for column in range(20)}
    table = pa.table({"label": np.zeros(200_000), **columns})
    pq.write_table(table, tmp_path / "t.parquet", row_group_size=1000, compression="none")
    del columns

    def held():
        time.sleep(0.002)  # Arrow decodes in threads of its own while a block is used
        return pa.total_allocated_bytes() + pa.system_memory_pool().bytes_allocated()

    before = held()
    blocks = iter_table(tmp_path / "t.parquet", qid=None, block_rows=1000)
    assert max(held() - before for _ in blocks) < table.nbytes / 20


def test_blocks_are_the_table(tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(1000, 7)), columns=list("abcdefg")).assign(
        label=rng.integers(5, size=1000), qid=rng.integers(50, size=1000)
    )
    path = tmp_path / "rows.parquet"
    frame.to_parquet(path, row_group_size=300)
    blocks = list(iter_table([path, path], block_rows=128))
    assert max(block.X.shape[0] for block in blocks) <= 128
    whole = load_table([path, path])
    assert np.concatenate([block.X for block in blocks]).tobytes() == whole.X.tobytes()
    assert np.concatenate([block.y for block in blocks]).tobytes() == whole.y.tobytes()
    assert np.concatenate([block.qid for block in blocks]).tobytes() == whole.qid.tobytes()
    assert whole.qid.dtype == np.int64
    RankRLS().fit(whole.X, whole.y, qid=whole.qid)
    with pytest.raises(InvalidInputError, match="block_rows=0"):
        iter_table(path, block_rows=0)


@pytest.mark.parametrize("other", [[1, 2], [1.5, 2.5], ["a", "b"], [True, False]], ids=str)
def test_ids_of_two_tables_that_have_no_type_in_common(other, tmp_path):
    dates = pa.array([0, 1], pa.timestamp("s"))
    for name, ids in (("a", dates), ("b", other)):
        pq.write_table(pa.table({"label": [1, 0], "qid": ids, "x": [0.5, 1.0]}), tmp_path / f"{name}.parquet")
    found = load_table([tmp_path / "a.parquet", tmp_path / "b.parquet"]).qid
    assert found[2:].tolist() == other
    assert len(set(found.tolist())) == 4


def test_more_rows_than_there_is_room_for(tmp_path, monkeypatch):
    monkeypatch.setattr(memory, "available_memory", lambda: 2**27)
    table = pa.table({"label": np.zeros(10**6), **{f"a{at}": np.zeros(10**6) for at in range(16)}})
    pq.write_table(table, tmp_path / "t.parquet")
    with pytest.raises(
        MemoryLimitError, match=r"t.parquet: 1,000,000 rows take 0.1 GB. Hint: read them in blocks"
    ):
        load_table(tmp_path / "t.parquet", qid=None)


def test_types_that_are_numbers_and_types_that_are_not():
    table = pa.table(
        {
            "label": pa.array([decimal.Decimal("1.5"), decimal.Decimal(2)]),
            "grade": pa.array([3, 4], pa.int8()).dictionary_encode(),
            "small": pa.array(np.array([1, 2], np.float16)),
            "huge": pa.array([2**63, 2**64 - 1], pa.uint64()),
            "when": pa.array([dt.datetime(2020, 1, 1), None]),  # noqa: DTZ001
            "what": pa.array(["x", "y"]).dictionary_encode(),
            "qid": pa.array(["u", "v"]).dictionary_encode(),
        }
    )
    X, y, qid, names = load_table(table)
    assert names == ["grade", "small", "huge"]
    assert X.tolist() == [[3, 1, 2.0**63], [4, 2, 2.0**64]]
    assert (y.tolist(), qid.tolist()) == ([1.5, 2.0], ["u", "v"])
    with pytest.raises(
        InvalidInputError, match=r"column 'what' does not hold numbers: .*such as 'x'.*Hint: correct"
    ):
        load_table(table, features=["what"])
    with pytest.raises(
        InvalidInputError, match=r"column 'when' does not hold numbers: .*timestamp.*such as datetime"
    ):
        load_table(table, features=["when"])
    with pytest.raises(InvalidInputError, match=r"column 'what' does not hold numbers.*Hint: encode labels"):
        load_table(table, label="what")
    assert load_table(table, qid="label", label=None).qid.tolist() == [
        decimal.Decimal("1.5"),
        decimal.Decimal(2),
    ]


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        ("label,qid,a\n1,x,5\n2,x,\n", {}, r"rows.csv, column 'a', row 1 \(line 3\): a missing value.*missing='nan'"),
        ("label,qid,a\n,x,5\n2,x,6\n", {"missing": "nan"}, r"column 'label', row 0 \(line 2\): a missing value"),
        ("label,qid,a\n1,x,5\n2,,6\n", {}, r"column 'qid', row 1 \(line 3\): the query id is missing"),
        ('label,qid,a\n1,x,5\n2,x,"7,5"\n', {}, r"column 'a', row 1 \(line 3\): '7,5' is text in a column of numbers"),
        ("label,qid,a\n1,x,5\n2,x,inf\n", {"missing": "nan"}, r"column 'a', row 1 \(line 3\): a value is not finite"),
        ("label,qids,a\n1,x,5\n2,x,6\n", {}, r"no column 'qid', which was named as qid. Hint: did you mean 'qids'"),
        ("label,qid,a,a\n1,x,5,6\n2,x,6,6\n", {}, r"rows.csv has 2 columns named 'a'"),
        ("label,qid,a\n1,x,5\n2,x\n", {}, r"rows.csv cannot be read: .*Row #3: Expected 3 columns, got 2"),
        ("", {}, r"rows.csv is empty"),
        ("\n", {}, "no header line"),
        ("3,1,.5\n2,1,.7\n", {"label": None, "qid": None}, r"no header line: it begins with '3,1,.5'"),
        ("label,qid,a\n", {}, "has no rows"),
        ("label,qid,a\n1,x,b\n", {}, "no column of numbers beside"),
        ("label,qid,a\n1,x,5\n", {"features": ["label"]}, "two roles"),
        ("label,qid,a\n1,x,5\n", {"features": "a"}, r"pass \['a'\]"),
        ("label,qid,a\n1,x,5\n", {"dtype": np.int64}, "dtype='int64'"),
        ("label,qid,a\n1,x,5\n2,x,NA\n4,x,7b\n", {}, r"column 'a', row 2 \(line 4\): '7b' is text in a column"),
        ("a,qid,label\n1,x,5\n2,x,7b\n", {}, r"column 'label', row 1 \(line 3\): '7b' is text in a column of numbers"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_named_with_its_place(text, options, message, tmp_path):
    (tmp_path / "rows.csv").write_text(text)
    with pytest.raises(InvalidInputError, match=message):
        load_table(tmp_path / "rows.csv", **options)


@pytest.mark.parametrize("header", ["0,1,2", ",0,1", '"3","1","5"', "1x,2,3"])
def test_numbers_may_be_names_of_columns(header, tmp_path):
    (tmp_path / "rows.csv").write_text(f"{header}\n1,2,3\n4,5,6\n")
    assert load_table(tmp_path / "rows.csv", label=None, qid=None).X.tolist() == [[1, 2, 3], [4, 5, 6]]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("rows.xlsx", b"PK\x03\x04 and so on", r"rows.xlsx is an Excel workbook.*Hint: .*read_excel"),
        ("rows.parquet", b"PAR1 and then nothing of the kind PAR1", r"rows.parquet cannot be read"),
        (
            "cut.csv.gz",
            gzip.compress(b"label,qid,a\n" + b"1,1,1\n" * 9, mtime=0)[:-9],
            r"cut.csv.gz cannot be read",
        ),
    ],
)
def test_files_that_are_damaged_or_of_another_kind(name, content, message, tmp_path):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InvalidInputError, match=message):
        load_table(tmp_path / name)


@pytest.mark.parametrize("source", [[], object(), pd.DataFrame({"a": [1, "x", None, (2, 3)]})])
def test_what_is_no_table(source):
    with pytest.raises(InvalidInputError, match=r"list of tables is empty|cannot be read as a table"):
        load_table(source)


@pytest.mark.parametrize("suffix", ["parquet", "arrow", "feather", "csv"])
@settings(max_examples=15, deadline=None)
@given(
    data=st.data(),
    names=st.lists(
        st.text(st.characters(codec="utf-8", exclude_categories=["C", "Z"]), min_size=1),
        max_size=3,
        unique=True,
    ),
)
def test_round_trips_are_exact(suffix, tmp_path_factory, data, names):
    names = [f"x{name}" for name in names] or ["x"]
    n = data.draw(st.integers(1, 20))
    finite = st.floats(allow_nan=False, allow_infinity=False)
    X = np.array(
        data.draw(
            st.lists(st.lists(finite, min_size=len(names), max_size=len(names)), min_size=n, max_size=n)
        )
    )
    y = np.array(data.draw(st.lists(finite, min_size=n, max_size=n)))
    qid = np.array(data.draw(st.lists(st.integers(-(2**63), 2**63 - 1), min_size=n, max_size=n)))
    path = tmp_path_factory.mktemp("rows") / f"rows.{suffix}"
    save_table(X, y, path, qid=qid, feature_names=names)
    again = load_table(path)
    # In CSV a column of whole numbers is one of integers, which have no -0.0: adding 0 makes that 0.
    zero = 0.0 if suffix == "csv" else -0.0
    assert (again.X + zero).tobytes() == (X + zero).tobytes()
    assert (again.y + zero).tobytes() == (y + zero).tobytes()
    assert again.qid.tolist() == qid.tolist()
    assert again.feature_names == names


def test_missing_values_are_read_as_told():
    table = pa.table({"label": [1, 0], "a": [1.0, None], "b": [3, 4]})
    assert load_table(table, qid=None, missing="zero").X.tolist() == [[1, 3], [0, 4]]
    assert np.isnan(load_table(table, qid=None, missing="nan").X[1, 0])
    with pytest.raises(InvalidInputError, match=r"column 'a', row 1: a value is not finite in float32"):
        load_table(pa.table({"label": [1, 0], "a": [1.0, -1e39]}), qid=None, dtype=np.float32)


@settings(max_examples=15, deadline=None)
@given(
    rows=st.integers(1, 700),
    width=st.integers(1, 20),
    group=st.integers(60, 400),
    at_once=st.integers(1000, 20_000),
    dtype=st.sampled_from([np.float64, np.float32]),
    seed=st.integers(0, 99),
)
def test_columns_become_rows_however_the_file_is_cut(
    rows, width, group, at_once, dtype, seed, tmp_path_factory
):
    rng = np.random.default_rng(seed)
    columns = {
        f"c{j}": [rng.normal(size=rows), rng.normal(size=rows).astype(np.float32), rng.integers(-9, 9, rows)][
            j % 3
        ]
        for j in range(width)
    }
    vectors = rng.normal(size=(rows, 3))
    table = pa.table(
        {"v": list(vectors), "label": rng.normal(size=rows), **columns, "qid": np.arange(rows) // 3}
    )
    path = tmp_path_factory.mktemp("rows") / "rows.parquet"
    pq.write_table(table, path, row_group_size=group)
    asked = rng.permutation(list(columns)).tolist()
    wanted = np.column_stack([*(columns[name] for name in asked), vectors]).astype(dtype)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tables, "_BATCH_BYTES", at_once)
        patch.setenv("RANKWISE_NUM_THREADS", "3")
        for source in (path, table):
            X, y, qid, names = load_table(source, features=asked, embedding="v", dtype=dtype)
            assert X.tobytes() == wanted.tobytes()
            assert y.tobytes() == table["label"].to_numpy().tobytes()
            assert qid.tolist() == table["qid"].to_pylist()
            assert names == [*asked, "v[0]", "v[1]", "v[2]"]


def test_a_failed_write_leaves_nothing(tmp_path):
    path = tmp_path / "rows.parquet"
    save_table(np.eye(2), [1, 2], path)
    before = path.read_bytes()
    for options, message in [
        ({"feature_names": ["a"]}, "do not have a name each"),
        ({"feature_names": ["label", "b"]}, "do not have a name each"),
        ({"feature_names": ["a", "a"]}, "do not have a name each"),
    ]:
        with pytest.raises(InvalidInputError, match=message):
            save_table(np.eye(2), [1, 2], path, **options)
    with pytest.raises(pa.ArrowInvalid, match="expected length 3 but got length 2"):
        save_table(np.eye(2), [1, 2, 3], path)
    with pytest.raises(InvalidInputError, match="does not name the format"):
        save_table(np.eye(2), None, tmp_path / "rows.xyz")
    with pytest.raises(
        InvalidInputError, match=r"X is sparse.*its 2 features. Hint: write svmlight text or a store"
    ):
        save_table(sp.eye(2).tocsr(), None, path)
    with pytest.raises(InvalidInputError, match="X has shape"):
        save_table(np.ones(2), None, path)
    assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == ["rows.parquet"]


def test_without_pyarrow_the_remedy_is_named():
    code = (
        "import sys; sys.modules['pyarrow'] = None\n"
        "from rankwise.data import load_table\n"
        "try: load_table('rows.csv')\n"
        "except ImportError as error: print(error)"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "pip install 'rankwise[tables]'" in run.stdout


@pytest.mark.parametrize("first", [True, False])
def test_tables_without_rows_may_have_other_types(tmp_path, first):
    frame = pd.DataFrame({"label": [0, 1, 2], "a": [0.5, 1.5, 2.5], "vector": [[1.0, 2.0]] * 3})
    frame.to_parquet(tmp_path / "1.parquet")
    frame[:0].to_parquet(tmp_path / ("0.parquet" if first else "2.parquet"))  # whose vectors are null
    found = load_table(tmp_path, features=["a"], embedding=["vector"], qid=None)
    np.testing.assert_array_equal(found.X, [[0.5, 1, 2], [1.5, 1, 2], [2.5, 1, 2]])


def test_lines_of_text_may_be_long(tmp_path):
    longest = 3 << 20
    lines = ["label,a,note", "0,0.5,x", f"1,1.5,{'y' * longest}", "2,2.5,z"]
    (tmp_path / "t.csv").write_text("\n".join(lines) + "\n")
    found = load_table(tmp_path / "t.csv", features=["a"], qid=None)
    np.testing.assert_array_equal(found.X, [[0.5], [1.5], [2.5]])


def test_columns_of_csv_may_change_their_type_late(tmp_path):
    path = tmp_path / "late.csv"
    path.write_text("label,qid,a\n" + "1,2,3\n" * 400_000 + "0,2,1.5\n")
    assert load_table(path).X[[0, -1], 0].tolist() == [3, 1.5]
    *_, last = iter_table(path, block_rows=1 << 17)
    assert last.X[-1, 0] == 1.5


@pytest.mark.parametrize("suffix", ["csv", "csv.gz", "parquet", "arrow"])
def test_pipes_are_tables(suffix, tmp_path):
    path = write(pa.table(ROWS), tmp_path / f"rows.{suffix.removesuffix('.gz')}")
    data = gzip.compress(path.read_bytes()) if suffix.endswith("gz") else path.read_bytes()
    pipe, expected = io.BytesIO(data), load_table(pa.table(ROWS))
    found = load_table(pipe)
    assert found.X.tobytes() == expected.X.tobytes()
    assert found.qid.tolist() == expected.qid.tolist()


@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        ("t.jsonl", b'{"a": 1}\n', "t.jsonl is JSON.*Hint: .*read_json"),
        (
            "t.csv",
            "label,naïve\n1,2\n".encode("latin-1"),
            "t.csv is damaged, or is not text in UTF-8.*Hint: save",
        ),
        ("t.csv", "label,a\n1,é\n".encode("latin-1"), "column 'a'.*not in UTF-8.*Hint: save"),
        (
            "t.csv",
            b'label,a\n1,x\n2,"y\n3,z\n',
            r"column 'a', row 1 \(line 3\): a quote is not closed.*Hint: close",
        ),
        ("t.dat", b"some words\nand more\n", "t.dat has no column 'label'"),
    ],
)
def test_files_that_are_no_tables(name, data, message, tmp_path):
    (tmp_path / name).write_bytes(data)
    with pytest.raises(InvalidInputError, match=message):
        load_table(tmp_path / name, qid=None)


def test_entries_of_csv_may_have_line_breaks(tmp_path):
    (tmp_path / "t.csv").write_text('label,a,note\n1,2,"two\nlines"\n0,3,"one"\n')
    assert load_table(tmp_path / "t.csv", qid=None).X.tolist() == [[2], [3]]


def test_a_column_may_be_label_and_query(tmp_path):
    pd.DataFrame({"label": [1, 2, 2], "a": [1.0, 2.0, 3.0]}).to_parquet(tmp_path / "t.parquet")
    found = load_table(tmp_path / "t.parquet", qid="label")
    assert (found.y.tolist(), found.qid.tolist(), found.X.shape) == ([1, 2, 2], [1, 2, 2], (3, 1))
