"""Comments of text, ids in them, and runs and judgements as TREC writes them."""

import gzip
import io

import numpy as np
import pytest

from rankwise.data import (
    item_ids,
    judge_runs,
    load_judgements,
    load_run,
    load_svmlight,
    save_run,
)
from rankwise.exceptions import InvalidInputError

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


def test_a_run_is_read_as_it_was_written(tmp_path):
    path = tmp_path / "a.run.gz"
    with gzip.open(path, "wb") as stream:
        save_run(
            ["q1", "q1", "q2"], ["a", "b", "a"], [1, 2, 1], np.array([0.1, -3e-9, 2.0]), stream, tag="mine"
        )
    assert load_run(path) == {"q1": {"a": 0.1, "b": -3e-9}, "q2": {"a": 2.0}}


def test_judgements_meet_runs():
    judged = load_judgements(io.BytesIO(b"q1 0 a 2\nq1 0 c 1\nq1 0 d -1\nq3 0 a 1\n"))
    runs = [{"q1": {"a": 1.0, "b": 2.0}, "q2": {"a": 1.0}}, {"q1": {"b": 5.0, "c": 4.0}}]
    found = judge_runs(runs, judged)
    assert found.items.tolist() == ["a", "b", "c", "d"]
    assert found.labels.tolist() == [2, 0, 1, 0]  # what was not judged, or judged as worse than nothing, is 0
    assert found.scores.tolist() == [[1, 2, 0, 0], [3, 5, 4, 3]]  # what a run lacks stands below what it has
    assert found.n_left_out == 1


@pytest.mark.parametrize(
    ("reader", "text", "words"),
    [
        (load_run, b"q1 Q0 a 1 0.5\n", "line 1"),
        (load_run, b"q1 Q0 a 1 high tag\n", "'high' is not a number"),
        (load_run, b"q1 Q0 a 1 0.9 t\rq1 Q0 b 2 0.5 t\r", "line 1"),
        (load_run, b"x" * 140_000 + b"\n", "line 1"),
        (load_run, b"q1 Q0 a 1 0.5 t\nq1 Q0 a 2 0.4 t\n", "line 2: item 'a' of query 'q1' comes twice"),
        (load_judgements, b"q1 a 1\n", "qid 0 item label"),
    ],
)
def test_what_is_no_run_is_refused_with_its_line(reader, text, words):
    with pytest.raises(InvalidInputError, match=words):
        reader(io.BytesIO(text))


def test_nothing_in_common_and_ids_with_spaces():
    with pytest.raises(InvalidInputError, match="no query in common"):
        judge_runs([{"a": {"x": 1.0}}], {"b": {"x": 1.0}})
    with pytest.raises(InvalidInputError, match="TREC run"):
        save_run(["q"], ["two words"], [1], np.ones(1), io.BytesIO(), tag="t")


def test_an_item_of_a_query_is_written_once(tmp_path):
    path = tmp_path / "a.run"
    with pytest.raises(InvalidInputError, match="item 'a' of query 'q1' comes twice"):
        save_run(["q1", "q2", "q1"], ["a", "a", "a"], [1, 1, 2], np.arange(3.0), path, tag="t")
    assert not path.exists()
