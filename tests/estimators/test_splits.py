"""Splits that the caller makes: read as scikit-learn reads them, or refused with a remedy."""

import numpy as np
import pytest
from sklearn.base import clone

from rankwise import KernelRankRLSCV, RankRLSCV, RankSVMCV
from rankwise.exceptions import InvalidInputError

ROWS = np.arange(24)
FIRST, SECOND = ROWS[:12], ROWS[12:]
MODELS = [RankRLSCV([0.1, 1.0]), KernelRankRLSCV("linear", alphas=[0.1, 1.0]), RankSVMCV([0.1, 1.0])]
BAD = {
    "trains on rows that it tests": [(FIRST, FIRST)],
    "makes no folds": [],
    r"out of bounds.*from 0 to 23": [(FIRST, SECOND + 5)],
    "no pair of positions of rows": [1, 2],
    "integer": [(FIRST * 1.0, SECOND * 1.0)],
    "unpack": [(FIRST, SECOND, FIRST)],
    "shape": [(FIRST[:, None], SECOND[:, None])],
    "leaves one out of both sides": [(np.repeat(FIRST, 2), FIRST[:0])],
}


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(24, 3))
    return X, (X[:, 0] + rng.normal(size=24)).round()


@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
@pytest.mark.parametrize("message", BAD)
def test_bad_splits_of_rows(model, message, data):
    with pytest.raises(InvalidInputError, match=rf"(?s){message}.*Hint|cv=.*{message}"):
        clone(model).set_params(cv=BAD[message]).fit(*data)


@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
def test_positions_negative_ones_lists_and_masks(model, data):
    in_first = ROWS < 12
    errors = [
        clone(model).set_params(cv=splits).fit(*data).cv_errors_
        for splits in (
            [(FIRST, SECOND), (SECOND, FIRST)],
            [(FIRST, SECOND - 24), (SECOND[::-1], FIRST)],
            [(FIRST.tolist(), SECOND.tolist()), (SECOND.tolist(), FIRST.tolist())],
            [(in_first, ~in_first), (~in_first, in_first)],
        )
    ]
    for other in errors[1:]:
        np.testing.assert_allclose(other, errors[0], atol=1e-12)


@pytest.mark.parametrize("model", [MODELS[0], MODELS[2]], ids=lambda model: type(model).__name__)
@pytest.mark.parametrize(
    ("splits", "message"),
    [
        ([(range(5), range(5, 12))], "out of bounds"),
        ([1], "no pair of positions of pairs"),
        ([(range(6), range(5, 10))], "trains on pairs that it tests"),
        ([], "makes no folds"),
    ],
)
def test_bad_splits_of_pairs(model, splits, message, data):
    pairs = np.column_stack([ROWS[:10], ROWS[5:15]])
    with pytest.raises(InvalidInputError, match=message):
        clone(model).set_params(cv=splits).fit_pairs(data[0], pairs)
