"""What workers read themselves is what this process would have read."""

import gzip

import numpy as np
import pyarrow.feather
import pyarrow.parquet
import pytest
import zstandard

from on_cluster import ranking_data
from rankwise import RankRLS
from rankwise.data import load_svmlight, save_store, save_svmlight, save_table
from rankwise.distributed import read
from rankwise.exceptions import InvalidInputError


def rows_at(data):
    """Bring the rows back."""
    return data.X.grouped(data.qid).as_design(1).matrix()


@pytest.fixture(scope="module")
def table():
    X, y, _ = ranking_data(20, sparse=True)
    return X, y, np.repeat(np.arange(24), 10)


@pytest.mark.parametrize("kind", ["text", "gzip", "zstd", "several", "store"])
def test_files_and_stores(client, table, tmp_path, kind):
    X, y, qid = table
    whole = tmp_path / "rows.txt"
    save_svmlight(X, y, whole, qid=qid)
    X, y, qid = load_svmlight(whole)  # as text has it
    source = whole
    if kind == "gzip":
        source = tmp_path / "rows.gz"
        source.write_bytes(gzip.compress(whole.read_bytes()))
    elif kind == "zstd":
        source = tmp_path / "rows.zst"
        source.write_bytes(zstandard.compress(whole.read_bytes()))
    elif kind == "several":
        lines = whole.read_bytes().splitlines(keepends=True)
        source = [tmp_path / "a.txt", tmp_path / "b.txt"]
        source[0].write_bytes(b"".join(lines[:105]))
        source[1].write_bytes(b"".join(lines[105:]))
    elif kind == "store":
        save_store([(X, y, qid)], tmp_path / "store")
        source = tmp_path / "store"
    data = read(source, client=client, block_bytes=4000)
    assert np.array_equal(data.y, y)
    assert np.array_equal(data.qid, qid)
    assert data.X.shape == X.shape
    assert (rows_at(data) != X).nnz == 0
    assert len(data.X.source.blocks) > 1 or kind in {"gzip", "zstd"}
    model = RankRLS().fit(X, y, qid=qid)
    assert np.allclose(model.predict(data.X).compute(), model.predict(X), rtol=1e-13)
    assert model.score(data.X, data.y, qid=data.qid) == model.score(X, y, qid=qid)


def test_tables_have_named_columns(client, table, tmp_path):
    X, y, qid = table
    X = X.toarray()
    names = [f"c{number}" for number in range(10)]
    for at, rows in enumerate((slice(0, 95), slice(95, 240))):
        save_table(X[rows], y[rows], tmp_path / f"{at}.parquet", qid=qid[rows], feature_names=names)
    pyarrow.feather.write_feather(pyarrow.parquet.read_table(tmp_path / "1.parquet"), tmp_path / "1.arrow")
    data = read([tmp_path / "0.parquet", tmp_path / "1.arrow"], client=client, dtype=np.float32)
    assert np.array_equal(rows_at(data), X.astype(np.float32))
    model = RankRLS().fit(data.X, data.y, qid=data.qid)
    assert model.feature_names_in_.tolist() == names
    assert np.allclose(model.predict(data.X).compute(), X.astype(np.float32) @ model.coef_)


def test_what_is_not_there_is_named(client, table, tmp_path):
    for name in ("one", "other"):
        save_store([table], tmp_path / name)
    with pytest.raises(InvalidInputError, match=r"2 sources, 2 of them stores.*Hint: read one store"):
        read([tmp_path / "one", tmp_path / "other"], client=client)
    with pytest.raises(
        InvalidInputError, match=r"nothing.txt cannot be read: No such file.*Hint: check its name"
    ):
        read(tmp_path / "nothing.txt", client=client)


def test_long_lines_and_tables_by_columns(client, tmp_path):
    X, y, qid = ranking_data(21, n_rows=30, n_columns=4)
    qid = np.sort(qid)
    save_table(X, y, tmp_path / "rows.parquet", qid=qid, feature_names=["a", "b", "c", "d"])
    data = read(tmp_path / "rows.parquet", features=["c", "a"])
    found = RankRLS().fit(data.X, data.y, data.qid)
    np.testing.assert_allclose(found.coef_, RankRLS().fit(X[:, [2, 0]], y, qid).coef_, rtol=1e-8)
    # A last line without an end, longer than what is looked at in one piece.
    values = " ".join(f"{column}:1" for column in range(1, 12_000))
    (tmp_path / "long.txt").write_text(f"1 qid:1 1:2\n0 qid:1 {values}")
    data = read(tmp_path / "long.txt", block_bytes=100)
    assert rows_at(data).shape == (2, 11_999)


@pytest.mark.parametrize("features", [None, ["vector"]])
def test_a_column_of_lists_is_several_columns(features, client, tmp_path):
    X, y, qid = ranking_data(22, n_rows=30, n_columns=3)
    table = pyarrow.table({"label": y, "qid": np.sort(qid), "vector": X.tolist()})
    pyarrow.parquet.write_table(table, tmp_path / "rows.parquet")
    data = read(tmp_path / "rows.parquet", features=features, client=client)
    assert data.X.columns == ["vector[0]", "vector[1]", "vector[2]"]
    assert np.array_equal(rows_at(data), X)


def test_what_workers_cannot_read_is_named(client, table, tmp_path):
    X, y, qid = table
    with pytest.raises(InvalidInputError, match="There are no files"):
        read([])
    save_svmlight(X, y, tmp_path / "rows.txt", qid=qid)
    with pytest.raises(InvalidInputError, match="and n_features is 2"):
        read(tmp_path / "rows.txt", n_features=2)
