"""Explanations add up to the score, in the user's columns."""

import itertools
import math

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

import rankwise
from formulas import NAMES, case, rows, with_gaps
from oracles import pairwise_error
from rankwise import RankRLS
from rankwise.data.validation import check_qid
from rankwise.exceptions import InvalidInputError, MissingQueriesError
from rankwise.explanations.importance import _shuffled, _with_rows_of
from rankwise.metrics import get_metric
from rankwise.model_selection import predict_scores


def summed(why):
    return math.fsum([why.constant, *(part.contribution for part in why.parts)])


@pytest.mark.parametrize("name", NAMES)
def test_contributions_add_up_to_the_score_and_to_differences(name):
    model, X, _, qid = case(name)
    scores = predict_scores(model, X, qid)
    # Relative to what is added up: where large terms cancel, so do their rounding errors in predict.
    for why, score in zip(rankwise.explain(model, X, qid), scores, strict=True):
        size = max(abs(why.constant), *(abs(part.contribution) for part in why.parts), abs(score))
        assert abs(summed(why) - score) <= 1e-12 * size
        assert abs(why.total - score) <= 1e-12 * size
    own = np.flatnonzero(qid == qid[0])
    for i, j in itertools.pairwise(own):
        why = rankwise.explain_pair(model, X, i, j, qid)
        size = max(
            max((abs(part.contribution) for part in why.parts), default=0.0), abs(scores[i]), abs(scores[j])
        )
        assert abs(summed(why) - (scores[i] - scores[j])) <= 1e-12 * size


def test_parts_are_the_users_columns_with_their_values():
    model, X, _, qid = case("table")
    (why,) = rankwise.explain(model, X, qid, rows=[5])
    found = {part.name: part for part in why.parts}
    assert set(found) <= set(X.columns)
    assert vars(found["price"])["values"] == (X["price"].iloc[5],)
    assert vars(found["brand"])["values"] == (X["brand"].iloc[5],)
    assert [abs(part.contribution) for part in why.parts] == sorted(
        (abs(part.contribution) for part in why.parts), reverse=True
    )


def test_a_missing_value_and_both_values_of_a_pair_are_shown():
    model, X, _, qid = case("filled")
    row = int(np.flatnonzero(np.isnan(X[:, 0]))[0])
    (why,) = rankwise.explain(model, X, qid, rows=[row])
    assert "missing" in why.text()
    other = row + 1 if qid[row + 1] == qid[row] else row - 1
    assert " / " in rankwise.explain_pair(model, X, row, other, qid).text()


def test_kernels_are_explained_by_basis_rows():
    model, X, _, qid = case("rbf")
    (why,) = rankwise.explain(model, X, qid, rows=[0])
    assert all(part.name.startswith("basis row") for part in why.parts)
    assert len(why.parts) == 15


def test_sparse_rows():
    X, y, qid = rows()
    model = RankRLS().fit(sp.csr_matrix(X), y, qid)
    (why,) = rankwise.explain(model, sp.csr_matrix(X), qid, rows=[-1])
    assert summed(why) == pytest.approx(model.predict(X)[-1], rel=1e-12)
    assert why.title == f"row {len(X) - 1}"


def test_what_cannot_be_explained_says_so():
    model, X, _, qid = case("query min-max")
    with pytest.raises(MissingQueriesError):
        rankwise.explain(model, X)
    with pytest.raises(InvalidInputError, match="different queries"):
        rankwise.explain_pair(model, X, 0, len(X) - 1, qid)
    with pytest.raises(InvalidInputError, match="no row 900"):
        rankwise.explain(model, X, qid, rows=[900])


def test_views_show_the_same_parts():
    model, X, _, qid = case("table")
    (why,) = rankwise.explain(model, X, qid, rows=[2])
    text, page = why.text(2), why.to_html(2)
    assert why.parts[0].name in text
    assert f"{len(why.parts) - 2} others" in text
    assert "<script" not in page
    assert str(why) == why.text()
    strange = rankwise.explain(model, X, qid, rows=[2], feature_names=["<b>", *X.columns[1:]])[0]
    assert "<b>" not in strange.to_html()


def test_the_picture_has_a_bar_per_part():
    pytest.importorskip("matplotlib").use("Agg")
    model, X, _, qid = case("standard")
    ax = rankwise.explain(model, X, qid, rows=[0])[0].plot()
    assert len(ax.patches) == X.shape[1]
    ax.figure.clf()


def test_importance_is_what_shuffling_inside_queries_loses():
    rng = np.random.default_rng(0)
    X, qid = rng.normal(size=(300, 3)), np.repeat(np.arange(30), 10)
    y = X[:, 0] + 0.3 * X[:, 1] + 0.1 * rng.normal(size=300)
    model = RankRLS().fit(X[:, [0, 1, 2]], y, qid)
    model.coef_[2] = 0.0  # a column that the model does not use
    found = rankwise.feature_importance(model, X, y, qid, n_repeats=3)
    assert found.importances[0] > found.importances[1] > 0
    assert found.importances[2] == 0
    assert (found.intervals[:, 0] <= found.importances).all()
    assert (found.importances <= found.intervals[:, 1]).all()
    assert found.score == pytest.approx(1 - pairwise_error(y, model.predict(X), qid))
    assert "x" not in str(found).splitlines()[0]


@pytest.mark.parametrize("storage", ["dense", "sparse", "frame"])
def test_importance_is_the_same_in_every_storage(storage):
    X, y, qid = rows()
    model = RankRLS().fit(X, y, qid)
    stored = {"dense": X, "sparse": sp.csr_matrix(X), "frame": pd.DataFrame(X)}[storage]
    found = rankwise.feature_importance(model, stored, y, qid, n_repeats=2, random_state=3)
    again = rankwise.feature_importance(model, X, y, qid, n_repeats=2, random_state=3)
    np.testing.assert_allclose(found.importances, again.importances, rtol=1e-12)


def test_shuffling_stays_inside_queries():
    X, _, qid = with_gaps()
    mixed = np.random.default_rng(1).permutation(qid)
    again = _with_rows_of(X, 1, _shuffled(check_qid(mixed, len(X)), np.random.default_rng(0)))
    for query in np.unique(mixed):
        np.testing.assert_array_equal(np.sort(again[mixed == query, 1]), np.sort(X[mixed == query, 1]))
    assert not np.array_equal(again[:, 1], X[:, 1], equal_nan=True)
    np.testing.assert_array_equal(again[:, [0, 2, 3]], X[:, [0, 2, 3]])


def test_columns_with_one_value_in_each_query_are_exchanged_between_queries():
    rng = np.random.default_rng(0)
    qid = np.repeat(np.arange(60), 5)
    X = np.column_stack(
        [rng.normal(size=300), rng.choice([-1.0, 1.0], size=60)[qid], rng.normal(size=60)[qid]]
    )
    y = X[:, 0] * X[:, 1]
    model = rankwise.AdditiveRanker(interactions=[(0, 1)]).fit(X, y, qid)
    found = rankwise.feature_importance(model, X, y, qid, n_repeats=2)
    assert found.importances[1] > 0.2
    assert found.importances[2] == 0


def test_importance_of_a_metric_over_all_pairs_together():
    """The loss is that of the metric of all rows, whose queries have different sizes."""
    rng = np.random.default_rng(1)
    qid = np.repeat(np.arange(6), [2, 3, 5, 8, 13, 21])
    X = rng.normal(size=(qid.size, 2))
    y = (X[:, 0] + rng.normal(size=qid.size)).round()
    model, pooled = RankRLS().fit(X, y, qid), get_metric("pairwise_error", average="pooled")
    found = rankwise.feature_importance(model, X, y, qid, scoring=pooled, n_repeats=3)
    assert found.score == pytest.approx(pooled(y, model.predict(X), qid), abs=1e-14)
    n_pairs = [sum(a != b for a, b in itertools.combinations(y[qid == query], 2)) for query in range(6)]
    np.testing.assert_allclose(found.importances, np.average(found.losses, axis=1, weights=n_pairs))
    assert (found.intervals[:, 0] <= found.importances).all()
    assert (found.importances <= found.intervals[:, 1]).all()


def test_importance_through_queries_and_errors():
    model, X, y, qid = case("query min-max")
    found = rankwise.feature_importance(model, X, y, qid, scoring="pairwise_error", n_repeats=2)
    assert found.importances.max() > 0
    with pytest.raises(InvalidInputError):
        rankwise.feature_importance(model, X, y, qid, n_repeats=0)


def test_rows_may_be_plain_lists():
    listed = [[0.0, 1.0], [1.0, 3.0], [2.0, 2.0]]
    model = rankwise.RankRLS(alpha=0.1).fit(listed, [0, 1, 2])
    assert rankwise.explain(model, listed) == rankwise.explain(model, np.array(listed))
    assert rankwise.explain_pair(model, listed, 0, 2) == rankwise.explain_pair(model, np.array(listed), 0, 2)
