"""The one encoder of query ids."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from optional import polars as pl
from rankwise.data.queries import encode_queries
from rankwise.data.validation import check_qid

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
