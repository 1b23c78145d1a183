"""What stores are made of, and where they are written: tables, links, and sources that misbehave."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from making_stores import assert_holds, make
from rankwise.data import open_store, save_store, save_table
from rankwise.exceptions import InvalidInputError


def test_parquet_becomes_a_store(tmp_path):
    X, y, qid = make(kind="text")
    table = pd.DataFrame(X.toarray(), columns=[f"f{j}" for j in range(9)])
    table.insert(0, "qid", qid)
    table.insert(0, "label", y)
    table.to_parquet(tmp_path / "wide.parquet", row_group_size=11)
    save_store(tmp_path / "wide.parquet", tmp_path / "wide", block_bytes=500)
    assert_holds(open_store(tmp_path / "wide"), (X, y, qid))
    rows = [slice(a, b) for a, b in zip(X.indptr[:-1], X.indptr[1:], strict=True)]
    sparse = pd.DataFrame(
        {"label": y, "qid": qid, "indices": [X.indices[r] for r in rows], "values": [X.data[r] for r in rows]}
    )
    sparse[:30].to_parquet(tmp_path / "a.parquet")
    sparse[30:].to_parquet(tmp_path / "b.parquet", row_group_size=7)
    save_store([tmp_path / "a.parquet", tmp_path / "b.parquet"], tmp_path / "sparse", n_features=9)
    assert_holds(open_store(tmp_path / "sparse"), (X, y, qid))
    embedding = pd.DataFrame({"label": y, "vector": list(X.toarray())})
    embedding.to_parquet(tmp_path / "c.parquet")
    save_store(str(tmp_path / "c.parquet"), tmp_path / "vector")
    assert_holds(open_store(tmp_path / "vector"), (X, y, None))
    embedding.drop(columns="label").to_parquet(tmp_path / "d.parquet")
    with pytest.raises(InvalidInputError, match=r"d.parquet has no column 'label'.*columns are 'vector'"):
        save_store(tmp_path / "d.parquet", tmp_path / "none")


@pytest.mark.parametrize("ending", ["parquet", "pq", "arrow", "feather", "csv"])
@pytest.mark.parametrize("kind", ["none", "int", "text"])
def test_tables_of_every_format_become_the_same_store(ending, kind, tmp_path):
    X, y, qid = make(kind=kind)
    save_table(X.toarray(), y, tmp_path / f"t.{ending}", qid=qid)
    save_store(tmp_path / f"t.{ending}", tmp_path / "s", block_bytes=700)
    assert_holds(open_store(tmp_path / "s"), (X, y, qid))
    if ending in {"parquet", "arrow"}:
        save_table(X, y, tmp_path / f"t.{ending}", qid=qid)
        save_store(tmp_path / f"t.{ending}", tmp_path / "s", block_bytes=700)
        assert_holds(open_store(tmp_path / "s"), (X, y, qid))


def test_columns_of_a_table_may_have_any_name(tmp_path):
    X, y, qid = make(kind="text")
    frame = pd.DataFrame({"grade": y, "search": qid, "vector": list(X.toarray()), "noise": y})
    columns = {"label": "grade", "qid": "search", "embedding": "vector"}
    save_store(frame, tmp_path / "s", **columns)
    assert_holds(open_store(tmp_path / "s"), (X, y, qid))
    frame.to_parquet(tmp_path / "t.parquet")
    save_store([tmp_path / "t.parquet"], tmp_path / "s", **columns)
    assert_holds(open_store(tmp_path / "s"), (X, y, qid))
    with pytest.raises(InvalidInputError, match="no column 'topic', which was named as qid"):
        save_store(frame, tmp_path / "s", label="grade", qid="topic")


def test_scattered_queries_of_a_table_are_regrouped_or_told(tmp_path):
    save_table(np.eye(4), np.arange(4.0), tmp_path / "t.parquet", qid=["a", "b", "a", "b"])
    with pytest.raises(InvalidInputError, match="Query 'a' comes again"):
        save_store(tmp_path / "t.parquet", tmp_path / "s")
    save_store(tmp_path / "t.parquet", tmp_path / "s", regroup=True)
    assert open_store(tmp_path / "s").y.tolist() == [0, 2, 1, 3]


def test_missing_entries_of_a_table_are_read_as_told(tmp_path):
    save_table([[1.0, np.nan], [0.0, 2.0]], [1, 0], tmp_path / "t.parquet")
    with pytest.raises(InvalidInputError, match=r"t.parquet, column 'f1', row 0: a missing value"):
        save_store(tmp_path / "t.parquet", tmp_path / "s")
    save_store(tmp_path / "t.parquet", tmp_path / "s", missing="nan")
    assert not open_store(tmp_path / "s").X.is_finite
    save_store(tmp_path / "t.parquet", tmp_path / "s", missing="zero")
    assert open_store(tmp_path / "s").X.toarray().tolist() == [[1, 0], [0, 2]]
    save_table([[1.0], [1e300]], [1, 0], tmp_path / "t.parquet")
    with pytest.raises(InvalidInputError, match=r"column 'f0', row 1: 1e\+300 is too large for float32"):
        save_store(tmp_path / "t.parquet", tmp_path / "s", dtype=np.float32)


@pytest.mark.parametrize("exists", [True, False], ids=["a store", "dangling"])
def test_a_link_keeps_pointing_where_the_store_is(exists, tmp_path):
    (tmp_path / "disk").mkdir()
    if exists:
        save_store([make()], tmp_path / "disk" / "s")
    (tmp_path / "link").symlink_to(Path("disk", "s"))
    other = make(seed=5, rows=80)
    save_store([other], tmp_path / "link")
    assert (tmp_path / "link").readlink() == Path("disk", "s")
    assert_holds(open_store(tmp_path / "link"), other)
    assert_holds(open_store(tmp_path / "disk" / "s"), other)
    assert sorted(entry.name for entry in tmp_path.rglob("*") if not entry.is_file()) == ["disk", "link", "s"]


def test_a_link_into_nowhere_is_told(tmp_path):
    (tmp_path / "link").symlink_to(tmp_path / "none" / "s")
    with pytest.raises(InvalidInputError, match=r"none/s\) cannot be written: No such file"):
        save_store([make()], tmp_path / "link")
    assert (tmp_path / "link").is_symlink()


class TestSourcesThatMisbehave:
    """What the writer is given may change, overflow or end before it is written."""

    @pytest.mark.parametrize("kind", ["dense", "csr"])
    def test_blocks_may_be_filled_again(self, tmp_path, kind):
        def blocks():
            values, labels = np.empty((10, 4)), np.empty(10)
            csr = sp.csr_matrix(np.ones((10, 4)))
            for k in range(5):
                values[:], labels[:] = k + 1, k + np.arange(10)
                csr.data[:] = k + 1
                yield (values if kind == "dense" else csr), labels, np.full(10, k)

        save_store(blocks(), tmp_path / "s")
        store = open_store(tmp_path / "s")
        np.testing.assert_array_equal(store.y, np.add.outer(np.arange(5.0), np.arange(10.0)).ravel())
        np.testing.assert_array_equal(
            store.X.toarray(), np.repeat(np.arange(1.0, 6.0), 10)[:, None] * np.ones(4)
        )

    def test_the_first_block_may_be_empty(self, tmp_path):
        X, y, qid = make()
        save_store([(X[:0], y[:0], qid[:0]), (X, y, qid)], tmp_path / "s")
        assert_holds(open_store(tmp_path / "s"), (X, y, qid))

    @pytest.mark.parametrize("dtype", [">f8", "int32", "float16", "complex128"])
    def test_types_that_no_store_holds(self, tmp_path, dtype):
        with pytest.raises(InvalidInputError, match="is not an option"):
            save_store([make()], tmp_path / "s", dtype=dtype)

    @pytest.mark.parametrize(
        ("X", "options", "message"),
        [
            (np.full((2, 2), 1e300), {"dtype": np.float32}, "too large for float32"),
            (sp.csr_matrix(([1.0], ([0], [3])), shape=(2, 2**31 + 9)), {}, "more than 32-bit"),
            (np.ones((2, 2), complex), {}, "has type complex128"),
            (np.ones((2, 2)), {"n_features": -3}, "n_features=-3"),
        ],
    )
    def test_the_old_store_stays(self, tmp_path, X, options, message):
        data = make()
        save_store([data], tmp_path / "s")
        with pytest.raises(InvalidInputError, match=message):
            save_store([(X, [1, 0])], tmp_path / "s", **options)
        assert_holds(open_store(tmp_path / "s"), data)

    def test_a_source_that_cannot_be_read_is_not_a_full_disk(self, tmp_path):
        with pytest.raises(InvalidInputError, match="source cannot be read"):
            save_store(tmp_path / "nothing.parquet", tmp_path / "s")
        assert not (tmp_path / "s").exists()

    def test_parquet_rows_without_an_id(self, tmp_path):
        table = pd.DataFrame({"label": [1.0, 0.0], "qid": ["a", None], "x": [1.0, 2.0]})
        table.to_parquet(tmp_path / "t.parquet")
        with pytest.raises(
            InvalidInputError, match=r"t.parquet, column 'qid', row 1: the query id is missing"
        ):
            save_store(tmp_path / "t.parquet", tmp_path / "s")
        assert not (tmp_path / "s").exists()

    def test_opening_while_another_takes_the_name(self, tmp_path):
        data = make()
        save_store([data], tmp_path / "s")
        code = """if True:
            import sys
            sys.path[:0] = sys.argv[2:]
            from making_stores import make
            from rankwise.data import save_store
            for _ in range(60):
                save_store([make()], sys.argv[1])
        """
        folder = str(Path(__file__).parents[1])
        with subprocess.Popen([sys.executable, "-c", code, str(tmp_path / "s"), folder]) as writing:
            opened = 0
            while writing.poll() is None:
                assert_holds(open_store(tmp_path / "s"), data)
                opened += 1
        assert writing.returncode == 0
        assert opened > 0
