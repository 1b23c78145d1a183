"""NDCG, MAP, precision, MRR and ERR against explicit loops over every order of ties, and scikit-learn."""

from functools import partial

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from sklearn.metrics import ndcg_score

import oracles
from rankwise.exceptions import InvalidInputError, UndefinedMetricError
from rankwise.metrics import (
    average_precision,
    err,
    get_metric,
    mean_ndcg,
    ndcg,
    per_query,
    precision,
    reciprocal_rank,
)
from strategies import rankings

CUTOFFS = st.sampled_from([None, 1, 2, 3, 5, 100])
EMPTY = st.sampled_from(["skip", "zero", "one"])
GAINS = st.sampled_from(["exp", "linear"])
DISCOUNTS = st.sampled_from(["log2", "letor"])

# The fast metric and its twin; both take the cutoff.
GRADED = {
    "ndcg": (ndcg, oracles.ndcg_of_list),
    "err": (partial(err, max_grade=4), oracles.err_of_list),
    "average_precision": (average_precision, oracles.average_precision_of_list),
    "reciprocal_rank": (reciprocal_rank, oracles.reciprocal_rank_of_list),
}


def check(fast, twin, data, *, ties, empty):
    y, scores, qid, _ = data
    expected = oracles.mean_over_queries(twin, y, scores, qid, ties=ties, empty=empty)
    if expected is None:
        with pytest.raises(UndefinedMetricError, match="no query has a relevant row"):
            fast(y, scores, qid, ties=ties, empty=empty)
    else:
        assert fast(y, scores, qid, ties=ties, empty=empty) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("name", GRADED)
@given(rankings(), CUTOFFS, EMPTY)
def test_stable_ties(name, data, k, empty):
    fast, twin = GRADED[name]
    check(partial(fast, k=k), partial(twin, k=k), data, ties="stable", empty=empty)


@pytest.mark.parametrize("name", GRADED)
@settings(max_examples=60, deadline=None)
@given(rankings(max_rows=6), CUTOFFS, EMPTY)
def test_ties_averaged_over_all_orders(name, data, k, empty):
    fast, twin = GRADED[name]
    check(partial(fast, k=k), partial(twin, k=k), data, ties="average", empty=empty)


@settings(deadline=None)
@given(
    rankings(max_rows=6), st.integers(1, 8), st.sampled_from([1, 3]), st.sampled_from(["stable", "average"])
)
def test_precision(data, k, relevant, ties):
    twin = partial(oracles.precision_of_list, k=k, relevant=relevant)
    check(partial(precision, k=k, relevant=relevant), twin, data, ties=ties, empty="skip")


@given(rankings(labels=st.floats(0, 6)), CUTOFFS, GAINS, DISCOUNTS)
def test_gain_and_discount(data, k, gain, discount):
    options = {"k": k, "gain": gain, "discount": discount}
    check(
        partial(ndcg, **options), partial(oracles.ndcg_of_list, **options), data, ties="stable", empty="zero"
    )


@given(rankings(), st.sampled_from(["exp", "linear"]), CUTOFFS)
def test_ndcg_equals_scikit_learn(data, gain, k):
    y, scores, _, _ = data
    assume(len(y) > 1)
    gains = 2.0**y - 1 if gain == "exp" else y
    expected = ndcg_score([gains], [scores], k=k)
    assert ndcg(y, scores, k=k, gain=gain, empty="zero") == pytest.approx(expected, abs=1e-12)


def test_long_lists_select_before_they_sort():
    rng = np.random.default_rng(1)
    y = rng.integers(0, 4, 400).astype(float)
    scores = np.round(rng.normal(size=400), 1)  # ties everywhere, also across the cutoff
    for k in (1, 7, 50, 399, 400, 401):
        assert ndcg(y, scores, k=k, gain="linear") == pytest.approx(ndcg_score([y], [scores], k=k), abs=1e-12)
        stable = partial(oracles.ndcg_of_list, k=k)(oracles.ranked_labels(y, scores))
        assert ndcg(y, scores, k=k, ties="stable") == pytest.approx(stable, abs=1e-12)


@given(rankings())
def test_mean_ndcg(data):
    y, scores, qid, _ = data
    twin = oracles.mean_ndcg_of_list
    expected = oracles.mean_over_queries(twin, y, scores, qid, ties="stable", empty="zero")
    assert mean_ndcg(y, scores, qid) == pytest.approx(expected, abs=1e-12)


# ---- LETOR by hand: positions 1 and 2 undiscounted, position 3 divided by log2(3)

Y = [0, 2, 1, 0, 1, 0, 0]
S = [3, 2, 1, 9, 9, 1, 2]
QID = ["long", "long", "long", "short", "short", "none", "none"]
LOG3 = np.log2(3)


@pytest.mark.parametrize("convention", ["letor3", "letor4"])
def test_letor_ndcg(convention):
    # "long" ranks 0, 2, 1: DCG 0, 3, 3 + 1/log2(3); best 3, 4, 4.
    # "short" ties, so file order: DCG 0, 1; best 1, 1.
    def value(k):
        return per_query(Y, S, QID, metric="ndcg", k=k, convention=convention).values.tolist()

    ids = per_query(Y, S, QID, metric="ndcg", convention=convention).ids.tolist()
    assert ids == ["long", "none", "short"]
    assert value(1) == [0, 0, 0]
    assert value(2) == pytest.approx([3 / 4, 0, 1])
    assert value(3) == pytest.approx([(3 + 1 / LOG3) / 4, 0, 0])  # "short" has fewer than 3 rows
    assert ndcg(Y, S, QID, k=2, convention=convention) == pytest.approx((3 / 4 + 1) / 3)


def test_letor_precision_of_short_lists():
    assert per_query(Y, S, QID, metric="precision@3", convention="letor3").values == pytest.approx(
        [2 / 3, 0, 0]
    )
    assert per_query(Y, S, QID, metric="precision@3", convention="letor4").values == pytest.approx(
        [2 / 3, 0, 1 / 3]
    )


def test_letor_map_and_mean_ndcg():
    expected = ((1 / 2 + 2 / 3) / 2 + 1 / 2) / 3
    assert average_precision(Y, S, QID, convention="letor3") == pytest.approx(expected)
    assert average_precision(Y, S, QID, convention="letor4") == pytest.approx(expected)
    long, short = (0 + 3 / 4 + (3 + 1 / LOG3) / 4) / 3, (0 + 1) / 2
    assert mean_ndcg(Y, S, QID) == pytest.approx((long + short) / 3)


def test_conventions_do_not_mix_with_options():
    assert get_metric("ndcg@5", convention="letor4", ties="stable").options["ties"] == "stable"
    with pytest.raises(InvalidInputError, match=r"gain='exp', not 'linear'.*Hint:"):
        ndcg(Y, S, QID, gain="linear", convention="letor3")
    with pytest.raises(InvalidInputError, match="'letor3', 'letor4'"):
        ndcg(Y, S, QID, convention="letor5")


@pytest.mark.parametrize("metric", [ndcg, err, mean_ndcg])
def test_negative_labels_have_no_gain(metric):
    with pytest.raises(InvalidInputError, match=r"negative labels.*Hint: shift"):
        metric([1, -1], [1, 2])


def test_labels_that_overflow():
    with pytest.raises(InvalidInputError, match="gain='linear'"):
        ndcg([2000.0, 1.0], [1, 2])
    assert ndcg([2000.0, 1.0], [2, 1], gain="linear") == 1
    with pytest.raises(InvalidInputError, match="max_grade=2"):
        err([3, 1], [1, 2], max_grade=2)


def test_negative_labels_can_be_relevant_or_not():
    assert average_precision([-2, -1], [1, 2], relevant=-1) == 1


@pytest.mark.parametrize("k", [0, -1, 2.5, True, "3"])
def test_bad_cutoffs(k):
    with pytest.raises(InvalidInputError, match=f"k={k!r} is not a positive integer"):
        ndcg([1, 0], [1, 0], k=k)
