"""The one encoder of query ids, and the validation in front of it."""

from datetime import datetime

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rankwise.data.queries import encode_queries
from rankwise.data.validation import check_importance, check_qid, check_weights
from rankwise.exceptions import InvalidInputError

IDS = {
    "integers": [3, 1, 3, 2, 1],
    "negative": [-3, 7, -3, 0, 7],
    "floats": [0.5, -1.5, 0.5, 2.0, -1.5],
    "strings": ["b", "a", "b", "c", "a"],
    "tuples": [("x", 1), ("x", 0), ("x", 1), ("y", 0), ("x", 0)],
    "mixed": [1, "1", 1, None.__class__, "1"],
    "bytes": [b"b", b"a", b"b", b"c", b"a"],
    "integers beyond 64 bits": [2**63 + 1, -1, 2**63 + 1, 2**63 + 2, -1],
    "NUL at the end": ["a\0", "a", "a\0", "b", "a"],
    "booleans and integers": [True, 2, True, 3, 2],
}


@pytest.mark.parametrize("name", IDS)
def test_any_hashable_id_groups_the_same_rows(name):
    queries = check_qid(IDS[name], 5)
    assert len(queries) == 3
    assert queries.codes[0] == queries.codes[2]
    assert queries.codes[1] == queries.codes[4]
    assert len({queries.codes[0], queries.codes[1], queries.codes[3]}) == 3
    for row, key in enumerate(IDS[name]):
        assert queries.ids[queries.codes[row]] == key


@pytest.mark.parametrize("make", [np.array, pd.Series, pl.Series, tuple, lambda v: np.array(v, dtype=object)])
def test_containers_make_no_difference(make):
    expected = check_qid([5, 2, 5, 9], 4)
    actual = check_qid(make([5, 2, 5, 9]), 4)
    assert actual.codes.tolist() == expected.codes.tolist()


@given(st.lists(st.integers(-5, 5), min_size=1, max_size=40))
def test_grouped_order_brings_rows_of_a_query_together(ids):
    queries = encode_queries(np.array(ids))
    grouped = queries.codes[queries.order]
    assert (np.diff(grouped) >= 0).all()
    for q in range(len(queries)):
        rows = queries.order[queries.offsets[q] : queries.offsets[q + 1]]
        assert rows.tolist() == [i for i, key in enumerate(ids) if key == queries.ids[q]]


@pytest.mark.parametrize(
    ("qid", "message"),
    [
        ([1, 2], "2 entries, but X has 3 rows"),
        (7, "single value"),
        ([1, None, 2], "missing"),
        ([1.0, np.nan, 2.0], "missing .* first in row 1"),
        (pd.array([1, pd.NA, 2]), "missing"),
        (np.array(["2020-01-01", "NaT", "2020-01-02"], dtype="datetime64[D]"), "missing"),
        ([[1], [2], {}], "hashed"),
        (np.ones((3, 2)), "one dimension"),
    ],
)
def test_bad_ids(qid, message):
    with pytest.raises(InvalidInputError, match=rf"(?s){message}.*Hint: "):
        check_qid(qid, 3)


@pytest.mark.parametrize(
    ("weight", "message"),
    [
        ([1, 2], "shape"),
        ([1, -1, 2], "negative"),
        ([1, np.nan, 2], "NaN"),
        ([1, np.inf, 2], "infinity"),
        ([0, 0, 0], "zero everywhere"),
        (["a", "b", "c"], "numbers"),
    ],
)
def test_bad_weights(weight, message):
    with pytest.raises(InvalidInputError, match=rf"{message}.*Hint: "):
        check_weights(weight, 3)


@pytest.mark.parametrize(
    ("importance", "message"),
    [
        ({"z": 1.0}, "not in qid"),
        ({"a": "much"}, "must be numbers"),
        (["1", "x", "2"], "must be numbers"),
        ({"a": -1.0}, "not negative"),
        ({"a": np.nan}, "finite"),
        ({"a": 0, "b": 0}, "zero for every query"),
        ([1, 2, 1], "inside a query"),
        ([1, 2], "one value per row"),
    ],
)
def test_bad_importance(importance, message):
    with pytest.raises(InvalidInputError, match=rf"{message}.*Hint: "):
        check_importance(importance, check_qid(["a", "a", "b"], 3))


@pytest.mark.parametrize("unit", ["D", "s", "us", "ns"])
@pytest.mark.parametrize("name", [np.datetime64, datetime.fromisoformat, pd.Timestamp])
def test_importance_by_date(unit, name):
    days = ["2020-01-03", "2020-01-01", "2020-01-02"]
    queries = encode_queries(np.array(days, dtype=f"datetime64[{unit}]"))
    found = check_importance({name(days[0]): 3.0, name(days[1]): 0.5}, queries)
    assert found.tolist() == [0.5, 1.0, 3.0]
    with pytest.raises(InvalidInputError, match=r"names 1 queries.*Hint"):
        check_importance({name("2021-01-01"): 3.0}, queries)


def test_importance_by_row_and_by_name():
    queries = check_qid(["b", "a", "b"], 3)
    assert check_importance({"a": 3.0}, queries).tolist() == [3.0, 1.0]
    assert check_importance([2.0, 5.0, 2.0], queries).tolist() == [5.0, 2.0]
