"""Columns on the command line: how many, what they are called, from which number they count."""

import numpy as np
import scipy.sparse as sp

from command_line import call_json
from rankwise.data.summary import summarise


def test_a_column_number_of_two_billion_costs_nothing(capsys, tmp_path):
    (tmp_path / "wide.txt").write_text("1 qid:1 2000000000:1\n0 qid:1 1:2\n")
    said = call_json(capsys, "inspect", tmp_path / "wide.txt")
    assert said["columns"] == 2_000_000_000
    assert said["empty_columns"] == 2_000_000_000 - 2


def test_columns_that_occur_are_counted_as_all_columns_are():

    X = np.zeros((3, 40))
    X[:, 7] = 2.0  # constant
    X[1, 9], X[2, 30] = np.nan, -1.0
    sparse, dense = summarise(sp.csr_matrix(X), None, None), summarise(X, None, None)
    assert (sparse.empty_columns, sparse.constant_columns, sparse.missing) == (
        dense.empty_columns,
        dense.constant_columns,
        dense.missing,
    )
