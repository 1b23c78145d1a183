"""Ids of items go into a store and come out of it."""

import numpy as np
import pandas as pd
import pytest

from making_stores import make
from rankwise.data import item_ids, load_svmlight, open_store, save_store, save_svmlight, save_table
from rankwise.exceptions import InvalidInputError


def named(kind="int"):
    X, y, qid = make(kind=kind)
    return X, y, qid, np.array(["" if at % 7 == 3 else f"D{at}é" for at in range(y.size)])


@pytest.mark.parametrize("kind", ["none", "int"])
@pytest.mark.parametrize("n_threads", [1, 2])
def test_text_keeps_the_ids_of_its_comments(kind, n_threads, tmp_path):
    X, y, qid, ids = named(kind)
    comments = [f"docid = {one} more" if one else "" for one in ids]
    save_svmlight(X, y, tmp_path / "t.txt", qid=qid, comments=comments, n_threads=n_threads)
    found = load_svmlight(tmp_path / "t.txt", comments=True, n_features=X.shape[1])
    assert (found[0] != X).nnz == 0
    assert found[-1].tolist() == comments
    assert item_ids(found[-1]).tolist() == ids.tolist()
    save_store(tmp_path / "t.txt", tmp_path / "s", comments=True, block_bytes=300, n_threads=n_threads)
    store = open_store(tmp_path / "s")
    assert store.item_ids.tolist() == ids.tolist()
    assert store.y.tolist() == y.tolist()
    save_store(store, tmp_path / "again", block_bytes=400)
    assert open_store(tmp_path / "again").item_ids.tolist() == ids.tolist()
    save_store(tmp_path / "t.txt", tmp_path / "without")
    assert open_store(tmp_path / "without").item_ids is None


def test_comments_are_one_line_for_each_row(tmp_path):
    X, y, _, _ = named()
    for wrong, said in (
        (["a"], "pass one text per row"),
        (["a\nb"] * y.size, "row 0: .* without line breaks"),
    ):
        with pytest.raises(InvalidInputError, match=f"comments .*{said}"):
            save_svmlight(X, y, tmp_path / "t.txt", comments=wrong)
    assert not (tmp_path / "t.txt").exists()


def test_blocks_may_have_ids_late_or_never(tmp_path):
    X, y, qid, ids = named()
    cut = int(np.flatnonzero(qid == qid[0])[-1]) + 1
    blocks = [(X[:cut], y[:cut], qid[:cut]), (X[cut:], y[cut:], qid[cut:], ids[cut:])]
    save_store(blocks, tmp_path / "s")
    assert open_store(tmp_path / "s").item_ids.tolist() == [""] * cut + ids[cut:].tolist()
    save_store([(X, y, qid, [""] * y.size)], tmp_path / "s")
    assert open_store(tmp_path / "s").item_ids is None
    with pytest.raises(InvalidInputError, match="one id per row"):
        save_store([(X, y, qid, ids[:3])], tmp_path / "s")


def test_rows_that_are_regrouped_keep_their_ids(tmp_path):
    X, y, qid, ids = named()
    order = np.random.default_rng(0).permutation(y.size)
    save_store([(X[order], y[order], qid[order], ids[order])], tmp_path / "s", regroup=True, block_bytes=300)
    store = open_store(tmp_path / "s")
    place = {one: at for at, one in enumerate(ids) if one}
    assert sorted(store.item_ids.tolist()) == sorted(ids.tolist())
    for at, one in enumerate(store.item_ids.tolist()):
        if one:
            assert (store.X[at] != X[place[one]]).nnz == 0
            assert store.y[at] == y[place[one]]
            assert store.qid[at] == qid[place[one]]
    save_store([(X[order], y[order], None, ids[order])], tmp_path / "one", regroup=True)
    assert open_store(tmp_path / "one").item_ids.tolist() == ids[order].tolist()


@pytest.mark.parametrize("ending", ["parquet", "csv"])
def test_a_column_of_a_table_is_kept_and_is_no_feature(ending, tmp_path):
    X, y, qid, _ = named()
    numbers = np.arange(y.size) + 7
    save_table(X.toarray(), y, tmp_path / f"t.{ending}", qid=qid, item_ids=numbers, item_name="sku")
    save_store(tmp_path / f"t.{ending}", tmp_path / "s", item_id="sku", block_bytes=500)
    store = open_store(tmp_path / "s")
    assert store.item_ids.tolist() == [str(number) for number in numbers]
    assert store.X.shape == X.shape
    with pytest.raises(InvalidInputError, match="no column 'nothing'"):
        save_store(pd.DataFrame({"label": y, "a": y}), tmp_path / "s", item_id="nothing")


def test_damaged_ids_are_found(tmp_path):
    X, y, qid, ids = named()
    save_store([(X, y, qid, ids)], tmp_path / "s")
    path = tmp_path / "s" / "item_text_end.bin"
    ends = np.fromfile(path, dtype=np.int64)
    ends[2], ends[5] = ends[5], ends[2]
    ends.tofile(path)
    with pytest.raises(InvalidInputError, match=r"item_text_end.bin is not ascending"):
        open_store(tmp_path / "s", verify=False)
    text = tmp_path / "s" / "item_text.bin"
    save_store([(X, y, qid, ids)], tmp_path / "s")
    content = bytearray(text.read_bytes())
    content[0] ^= 1
    text.write_bytes(content)
    with pytest.raises(InvalidInputError, match=r"checksum of item_text.bin"):
        open_store(tmp_path / "s")
    text.write_bytes(b"short")
    with pytest.raises(InvalidInputError, match=r"item_text.bin has 5 bytes"):
        open_store(tmp_path / "s", verify=False)
