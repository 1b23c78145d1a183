"""Pairs to predict are given as row numbers, as in fit_pairs, or as two matrices of rows."""

import numpy as np
import pytest

from rankwise import AutoRanker, RankRLS, RankSVM
from rankwise.exceptions import InvalidInputError

X = np.random.default_rng(0).normal(size=(60, 3))
PAIRS = np.array([[0, 1], [5, 2], [9, 40]])
MODELS = [
    RankRLS(),
    RankSVM(loss="logistic"),
    AutoRanker(methods=["rls"]),
]


@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
def test_pairs_are_what_fit_pairs_takes(model):
    pairs = np.array([[i, j] for i in range(12) for j in range(12) if X[i, 0] > X[j, 0]])
    model.fit_pairs(X, pairs)
    expected = model.predict_pairs(X[PAIRS[:, 0]], X[PAIRS[:, 1]])
    np.testing.assert_allclose(model.predict_pairs(X, PAIRS), expected, rtol=1e-12)
    np.testing.assert_allclose(model.predict_pairs(X, PAIRS.tolist()), expected, rtol=1e-12)
    with pytest.raises(InvalidInputError, match="rows are numbered from 0 to 59"):
        model.predict_pairs(X, [[0, 60]])


def test_two_columns_of_whole_numbers_may_be_both():
    rows = np.array([[0, 1], [1, 0], [2, 2]])
    model = RankRLS().fit_pairs(rows, [[2, 0]])
    with pytest.raises(InvalidInputError, match="row numbers or rows"):
        model.predict_pairs(rows, rows[::-1])
    as_numbers = model.predict_pairs(rows.astype(float), [[2, 0], [0, 1], [1, 2]])
    np.testing.assert_allclose(as_numbers[0], (rows[2] - rows[0]) @ model.coef_)
    as_rows = model.predict_pairs(rows.astype(float), rows[::-1].astype(float))
    np.testing.assert_allclose(as_rows, (rows - rows[::-1]) @ model.coef_)
