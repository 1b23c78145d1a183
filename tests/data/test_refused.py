"""What readers, writers and checks of data refuse with a remedy, and odd data that they take."""

import datetime as dt
import io

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import scipy.sparse as sp

from rankwise import RankRLS
from rankwise.data import (
    load_preferences,
    load_svmlight,
    load_table,
    open_store,
    save_store,
    save_svmlight,
)
from rankwise.data.summary import constant_inside_queries, summarise
from rankwise.data.validation import check_qid
from rankwise.exceptions import InvalidInputError
from rankwise.explanations import explain, feature_importance
from rankwise.metrics import get_metric
from rankwise.preprocessing import TableEncoder

X = np.array([[1.0, 2.0], [3.0, 4.0]])
TABLE = pd.DataFrame({"label": [1, 0], "qid": ["a", "a"], "f": [1.5, 2.5]})


def pairs_of(items):
    duels = pd.DataFrame({"winner": ["x"], "loser": ["y"]})
    return load_preferences(duels, items, winner="winner", loser="loser", item_id="id")


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: feature_importance(RankRLS().fit(X, [0, 1]), X[0], [0, 1], n_repeats=1), r"X has shape \(2,\)"),
        (lambda: explain(RankRLS().fit(X, [0, 1]), X[:, :1]), "1 columns"),
        (lambda: load_svmlight(io.BytesIO(b"1 1:2\n"), dtype="int64"), "dtype='int64' is not an option"),
        (lambda: save_svmlight(X, [0, 1], io.BytesIO(), comments=["one"]), "comments has 1 texts, and X has 2 rows"),
        (lambda: pairs_of(pd.DataFrame({"id": pd.Series([], dtype=str), "f": pd.Series([], dtype=float)})), "no rows"),
        (lambda: get_metric("err", max_grade=np.nan), "max_grade=nan is not a finite number"),
        (lambda: TableEncoder().fit(TABLE.iloc[:0]), "has no rows, or no columns"),
        (lambda: TableEncoder(categories=["g"]).fit(TABLE), "names 'g', which is not a column"),
        (lambda: TableEncoder().fit(pd.DataFrame(X, columns=["a", "a"])), "several columns named 'a'"),
    ],
)  # fmt: skip
def test_what_is_not_meant_is_refused_with_a_remedy(call, said):
    with pytest.raises(InvalidInputError, match=said) as refusal:
        call()
    assert refusal.value.hint


def test_flags_and_moments_with_gaps_are_read_as_such():
    east = dt.timezone(dt.timedelta(hours=2))
    moments = [dt.datetime(2024, 1, 2, 1, tzinfo=east), None, dt.datetime(2024, 1, 1, 23, tzinfo=dt.UTC)]
    table = pd.DataFrame(
        {"flag": [True, None, False], "when": pd.Series(moments, dtype=object)}, dtype=object
    )
    found = TableEncoder().fit(table).transform(table)
    found = found.toarray() if sp.issparse(found) else np.asarray(found)
    plain = TableEncoder().fit(table.iloc[[0, 2]]).transform(table.iloc[[0, 2]])
    assert found.shape[0] == 3
    assert np.asarray(plain.toarray() if sp.issparse(plain) else plain)[:, 0].tolist() == [1.0, 0.0]


# --- files ---


def test_missing_numbers_of_embeddings_are_zeros_where_asked(tmp_path):
    table = pa.table({"label": [1, 0], "qid": [1, 1], "e": [[1.0, float("nan")], [2.0, 3.0]]})
    found = load_table(table, label="label", qid="qid", embedding="e", missing="zero")
    assert found.X.tolist() == [[1.0, 0.0], [2.0, 3.0]]


def test_numbers_that_a_table_has_as_floats_name_the_same_items():
    items = pd.DataFrame({"id": [7, 8], "f": [1.0, 2.0]})
    for winner, is_known in ((7.0, True), (7.5, False)):
        duels = pd.DataFrame({"winner": [winner, 8.0], "loser": [8.0, 7.0]})
        arguments = {"winner": "winner", "loser": "loser", "item_id": "id"}
        if is_known:
            assert load_preferences(duels, items, **arguments).pairs.tolist() == [[0, 1], [1, 0]]
        else:
            with pytest.raises(InvalidInputError, match=r"7\.5"):
                load_preferences(duels, items, **arguments)


def test_ids_beyond_signed_numbers_come_back_from_a_store(tmp_path):
    ids = np.array([2**64 - 1, 2**64 - 1, 3], dtype=np.uint64)
    save_store([(np.eye(3), np.arange(3.0), ids)], tmp_path / "rows.store")
    assert open_store(tmp_path / "rows.store").qid.tolist() == [str(2**64 - 1)] * 2 + ["3"]


# --- summaries ---


def test_summaries_say_what_cannot_be_learned_from():
    same = summarise(X, np.array([1.0, 1.0]), check_qid(["a", "a"], 2))
    assert any("nothing to learn from" in one for one in same.problems)
    odd = summarise(np.array([[1.0, np.inf], [2.0, 0.0]]), np.array([0.0, 1.0]), check_qid(["a", "a"], 2))
    assert any("some cells are infinite" in one for one in odd.problems)


def test_columns_of_nothing_vary_nowhere(monkeypatch):
    queries = check_qid(["a", "a", "b"], 3)
    assert constant_inside_queries(sp.csr_matrix((3, 2)), queries) == []
    constant = np.array([[1.0, 5.0], [2.0, 5.0], [3.0, 6.0]])
    assert constant_inside_queries(constant, queries) == [1]
    assert constant_inside_queries(sp.csr_matrix(constant), queries) == [1]
    monkeypatch.setattr("rankwise.data.summary._LOOKED_AT", 5)
    assert constant_inside_queries(constant, queries) == []
