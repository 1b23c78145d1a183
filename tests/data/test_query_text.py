"""Query ids, and ids in comments: different texts are different, and come back as they were written."""

import io
import tempfile
from itertools import groupby
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from rankwise.data import (
    item_ids,
    iter_svmlight,
    iter_table,
    load_svmlight,
    load_table,
    open_store,
    save_store,
    save_svmlight,
    save_table,
)
from rankwise.data import svmlight as text_reader
from rankwise.data.queries import decode_ids, encode_ids
from rankwise.exceptions import InvalidInputError

# Much that looks like a number and is written in another way than numbers are.
likely = st.one_of(
    st.integers(-3, 3).map(str),
    st.sampled_from(
        ["01", "+1", "1.0", "1.", "-0", "0.0", "-0.0", "1e0", "1e+16", "1e16", "0x1", "1_0", "nan", "inf"]
    ),
    st.sampled_from(
        ["9223372036854775807", "9223372036854775808", "-9223372036854775808", "0.1", "0.10", "a", "é"]
    ),
    st.integers(-(2**64), 2**64).map(str),
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
)
mixtures = st.one_of(
    st.lists(likely, min_size=1, max_size=8),
    st.lists(st.integers(-(2**63), 2**63 - 1).map(str), min_size=1, max_size=8),
    st.lists(st.floats(allow_nan=False, allow_infinity=False).map(repr), min_size=1, max_size=8),
)


def as_text(ids):
    """Return rows of text with these ids, each with a value of its own."""
    return "".join(f"{row} qid:{one} 1:{row + 1}\n" for row, one in enumerate(ids)).encode()


def ids_in(text):
    return [line.split()[1].removeprefix("qid:") for line in text.decode().splitlines()]


def written(X, y, qid):
    stream = io.BytesIO()
    save_svmlight(X, y, stream, qid=qid)
    return stream.getvalue()


@pytest.mark.parametrize(
    ("ids", "kind"),
    [
        (["1", "2", "-7"], "i"),
        (["9223372036854775807", "-9223372036854775808"], "i"),
        (["1.5", "2.0", "1e+16"], "f"),
        (["01", "1"], "U"),
        (["+1"], "U"),
        (["1.0", "1"], "U"),
        (["1", "1.5"], "U"),
        (["2.50"], "U"),
        (["-0", "0"], "U"),
        (["-0.0", "0.0"], "U"),
        (["1e3"], "U"),
        (["9223372036854775808"], "U"),
        (["nan"], "U"),
        (["x", "1"], "U"),
    ],
)
def test_ids_are_numbers_where_nothing_is_lost(ids, kind):
    found = decode_ids(ids)
    assert found.dtype.kind == kind
    assert encode_ids(found) == [one.encode() for one in ids]
    assert load_svmlight(io.BytesIO(as_text(ids)))[2].dtype.kind == kind


@settings(max_examples=150, deadline=None)
@given(ids=mixtures)
@example(ids=["1", "01", "1", "+1"])
@example(ids=["0.0", "-0.0"])
def test_arrays_keep_ids_as_they_are_written(ids):
    X, y, qid = load_svmlight(io.BytesIO(as_text(ids)))
    assert len(set(qid.tolist())) == np.unique(qid).size == len(set(ids))
    again = written(X, y, qid)
    assert ids_in(again) == ids
    assert load_svmlight(io.BytesIO(again))[2].tolist() == qid.tolist()


@settings(max_examples=20, deadline=None)
@given(ids=mixtures, block_bytes=st.integers(1, 60))
@example(ids=["1", "2", "01"], block_bytes=1)
@example(ids=["01", "2", "1", "1"], block_bytes=1)
def test_stores_keep_ids_as_they_are_written(ids, block_bytes):
    queries = list(dict.fromkeys(ids))
    grouped = [one for query in queries for one in ids if one == query]
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(text_reader, "PARSED_AT_ONCE", 16)
        patch.setattr("rankwise.data.store.BLOCK_BYTES", block_bytes)
        save_store(io.BytesIO(as_text(grouped)), f"{folder}/s")
        store = open_store(f"{folder}/s")
        assert store.query_ids.size == len(set(store.query_ids.tolist())) == len(queries)
        assert ids_in(written(store.X, store.y, store.qid)) == grouped


@settings(max_examples=60, deadline=None)
@given(ids=mixtures, block_bytes=st.integers(1, 60))
@example(ids=["1", "2", "01"], block_bytes=1)
def test_blocks_never_merge_queries(ids, block_bytes):
    """Ids of a later block that cannot be of the first one's kind are an error, for what was handed out stays so."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(text_reader, "PARSED_AT_ONCE", 16)
        blocks = iter_svmlight(io.BytesIO(as_text(ids)), block_bytes=block_bytes)
        try:
            qid = np.concatenate([block[2] for block in blocks])
        except InvalidInputError as error:
            assert "another kind" in str(error)  # noqa: PT017
            return
    assert encode_ids(qid) == [one.encode() for one in ids]


@settings(max_examples=30, deadline=None)
@given(ids=mixtures)
@example(ids=["1", "01", "NA"])
@example(ids=["nan"])
@example(ids=["NA"])
@example(ids=["nan", "NA"])
def test_csv_keeps_ids_as_they_are_written(ids):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "t.csv")
        rows = "".join(f"{row},{one},{row}\n" for row, one in enumerate(ids))
        path.write_text(f"label,qid,a\n{rows}", encoding="utf-8")
        missing = {"nan", "NA"} & set(ids)
        # Beside ids that are text such words are ids too; a column of nothing else has no ids.
        if missing and decode_ids([one for one in ids if one not in missing]).dtype.kind != "U":
            with pytest.raises(InvalidInputError, match="the query id is missing"):
                load_table(path)
            return
        table = load_table(path)
        assert encode_ids(table.qid) == [one.encode() for one in ids]
        assert len(set(table.qid.tolist())) == len(set(ids))
        blocks = [block.qid for block in iter_table(path, block_rows=1)]
        assert len({block.dtype.kind for block in blocks}) == 1
        assert np.concatenate(blocks).tolist() == table.qid.tolist()
        if len(list(groupby(ids))) == len(set(ids)):  # rows of each id are together
            save_store(path, f"{folder}/s")
            assert set(map(str, open_store(f"{folder}/s").query_ids.tolist())) == set(ids)


def test_ids_of_several_csv_files_are_of_one_kind(tmp_path):
    (tmp_path / "a.csv").write_text("label,qid,a\n1,1,5\n0,2,6\n")
    (tmp_path / "b.csv").write_text("label,qid,a\n1,01,5\n0,3,6\n")
    assert load_table(tmp_path).qid.tolist() == ["1", "2", "01", "3"]
    save_store([tmp_path / "a.csv", tmp_path / "b.csv"], tmp_path / "s")
    assert open_store(tmp_path / "s").query_ids.tolist() == ["1", "2", "01", "3"]


@pytest.mark.parametrize("kind", ["csv", "tsv", "parquet"])
@pytest.mark.parametrize("ids", [[3, -1], [0.5, 1.0], [1e300, 1e-7], ["a", "1"], ["01", "1"]])
def test_tables_keep_ids(kind, ids, tmp_path):
    save_table(np.eye(2), [1, 0], tmp_path / f"t.{kind}", qid=ids)
    found = load_table(tmp_path / f"t.{kind}").qid.tolist()
    assert found == ids
    assert list(map(type, found)) == list(map(type, ids))


def test_zeros_of_both_signs_are_one_query(tmp_path):
    save_store([(np.eye(1), [1], [0.0]), (np.eye(1), [0], [-0.0])], tmp_path / "s")
    assert open_store(tmp_path / "s").query_ids.tolist() == [0.0]
    assert ids_in(written(np.eye(2), [1, 0], np.array([0.0, -0.0]))) == ["0.0", "0.0"]


def test_dates_are_ids(tmp_path):
    days = np.array(["2020-01-02", "2020-01-03"], dtype="datetime64[ns]")
    table = pa.table({"label": [1, 0], "qid": days, "a": [1.0, 2.0]})
    save_store(table, tmp_path / "s")
    assert [one[:10] for one in open_store(tmp_path / "s").query_ids] == ["2020-01-02", "2020-01-03"]
    assert [one[:10] for one in ids_in(written(np.eye(2), [1, 0], days))] == ["2020-01-02", "2020-01-03"]


LETOR = b"""# a line that is no row
2 qid:10 1:0.5 2:1 #docid = GX008-86 inc = 1 prob = 0.08

0 qid:10 1:0.1 # 7555 rambo
1 qid:11 2:3
0 qid:11 1:1 #\r
"""


def test_comments_come_with_their_rows():
    X, y, qid, comments = load_svmlight(io.BytesIO(LETOR), comments=True)
    assert comments.tolist() == ["docid = GX008-86 inc = 1 prob = 0.08", "7555 rambo", "", ""]
    assert item_ids(comments).tolist() == ["GX008-86", "7555", "", ""]
    plain = load_svmlight(io.BytesIO(LETOR))
    assert len(plain) == 3
    assert (plain[0] != X).nnz == 0
    assert len(comments) == y.size == qid.size
