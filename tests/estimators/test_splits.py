"""Splits that the caller makes: read as scikit-learn reads them, or refused with a remedy."""

import numpy as np
import pytest
from sklearn.base import clone

from rankwise import AdditiveRankerCV, KernelRankRLSCV, RankRLSCV, RankSVMCV
from rankwise.data.queries import encode_queries
from rankwise.exceptions import InvalidInputError, NoPairsError
from rankwise.model_selection import PreferenceKFold
from rankwise.pairs.labelled import LabelPairs
from rankwise.pairs.plan import Plan

ROWS = np.arange(24)
FIRST, SECOND = ROWS[:12], ROWS[12:]
MODELS = [RankRLSCV([0.1, 1.0]), KernelRankRLSCV("linear", alphas=[0.1, 1.0]), RankSVMCV([0.1, 1.0])]
BAD = {
    "trains on rows that it tests": [(FIRST, FIRST)],
    "makes no folds": [],
    r"out of bounds.*from 0 to 23": [(FIRST, SECOND + 5)],
    "not a pair of positions of rows": [1, 2],
    "integer": [(FIRST * 1.0, SECOND * 1.0)],
    "unpack": [(FIRST, SECOND, FIRST)],
    "shape": [(FIRST[:, None], SECOND[:, None])],
    "has an empty test set": [(np.repeat(FIRST, 2), FIRST[:0])],
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
        ([1], "not a pair of positions of pairs"),
        ([(range(6), range(5, 10))], "trains on pairs that it tests"),
        ([], "makes no folds"),
    ],
)
def test_bad_splits_of_pairs(model, splits, message, data):
    pairs = np.column_stack([ROWS[:10], ROWS[5:15]])
    with pytest.raises(InvalidInputError, match=message):
        clone(model).set_params(cv=splits).fit_pairs(data[0], pairs)


# --- folds that leave nothing to train on ---------------------------------------------------------------

# Of three queries only the first has labels that differ; the others tie.
ONE_ORDERED = np.repeat(np.arange(3), 8)
CHOOSERS = {
    "leave-query-out": RankRLSCV(cv="leave-query-out"),
    "decomposed": RankRLSCV(method="tikhonov"),
    "surface": RankRLSCV(cv=3),
    "restricted": RankRLSCV(cv=3, positive=True),
    "kernel": KernelRankRLSCV(),
    "kernel folds": KernelRankRLSCV(cv=3),
    "kernel products": KernelRankRLSCV(solver="cg"),
    "reduced set": KernelRankRLSCV(basis=5, cv=3),
    "margins": RankSVMCV(cv=3),
    "curves": AdditiveRankerCV(loss="squared", interactions=0),
    "curves with margins": AdditiveRankerCV(interactions=0),
}


@pytest.mark.parametrize("name", CHOOSERS)
def test_a_query_that_has_all_pairs_cannot_be_held_out(name, data):
    """The model without it is 0, so that rounding alone would order its rows, and choose alpha."""
    X, y = data
    with pytest.raises(NoPairsError, match=r"no pair with a winner to train on.*Hint"):
        clone(CHOOSERS[name]).fit(X, np.where(ONE_ORDERED == 0, y, 1.0), ONE_ORDERED)


@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
def test_rows_that_tie_without_those_held_out(model, data):
    y = np.where(ROWS < 12, data[1], 1.0)
    splits = [(SECOND, FIRST), (FIRST, SECOND)]
    for method in ({"method": "auto"}, {"method": "tikhonov"}) if "RLS" in repr(model) else ({},):
        with pytest.raises(NoPairsError, match=r"fold 0 has no pair.*Hint"):
            clone(model).set_params(cv=splits, **method).fit(data[0], y)


@pytest.mark.parametrize("name", ["leave-query-out", "surface", "kernel", "margins", "restricted"])
@pytest.mark.parametrize("amount", ["magnitude", "weight"])
def test_a_component_that_has_all_winners_cannot_be_held_out(name, amount, data):
    pairs, counts = [(0, 1), (1, 2), (4, 5)], {amount: [1.0, 2.0, 0.0]}
    model = clone(CHOOSERS[name]).set_params(cv=PreferenceKFold(2, by="groups"))
    if name in {"leave-query-out", "kernel"}:
        model = clone(CHOOSERS[name])
    with pytest.raises(NoPairsError, match=r"fold 0 has no pair with a winner.*Hint"):
        model.fit_pairs(data[0], pairs, groups=[0, 0, 1], **counts)


def test_folds_with_all_pairs_are_those_that_leave_none():
    rng = np.random.default_rng(0)
    found = 0
    for _ in range(300):
        n_rows = int(rng.integers(3, 9))
        y, qid = rng.integers(0, 3, n_rows).astype(float), rng.integers(0, rng.integers(1, 4), n_rows)
        weight = rng.integers(0, 2, n_rows).astype(float) if rng.random() < 0.5 else None
        plan = Plan.of_folds(rng.integers(-1, 3, n_rows))
        try:
            pairs = LabelPairs(y, encode_queries(qid), weight, None, "include", "magnitude", "size")
        except NoPairsError:
            continue
        leaves_none = [not pairs.only(plan.trained(fold)).has_pairs(0) for fold in range(plan.n_folds)]
        found += sum(leaves_none)
        if any(leaves_none):
            with pytest.raises(NoPairsError, match=f"fold {np.argmax(leaves_none)} "):
                pairs.require_pairs_left(plan)
        else:
            pairs.require_pairs_left(plan)
    assert found > 20
