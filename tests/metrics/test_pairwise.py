"""Pairwise error, concordance, AUC and tau against explicit pairs, scipy and scikit-learn."""

import numpy as np
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st
from scipy.stats import kendalltau, spearmanr
from sklearn.metrics import roc_auc_score

import oracles
from rankwise.exceptions import InvalidInputError, NoPairsError
from rankwise.metrics import auc, concordance, kendall_tau, pairwise_error, per_query, preference_error
from strategies import rankings

REAL_LABELS = st.floats(-10, 10).map(lambda value: round(value, 1))
TIES = st.sampled_from([0.5, 1, 0])
AVERAGES = st.sampled_from(["queries", "pooled"])


def has_pairs(y, qid, weights=None):
    weights = np.ones(len(y)) if weights is None else weights
    kept = [[y[r] for r in rows if weights[r] > 0] for rows in oracles.rows_of_queries(qid).values()]
    return any(len(set(labels)) > 1 for labels in kept)


@given(rankings(labels=REAL_LABELS) | rankings(), TIES, AVERAGES)
def test_pairwise_error_counts_pairs(data, ties, average):
    y, scores, qid, _ = data
    assume(has_pairs(y, qid))
    expected = oracles.pairwise_error(y, scores, qid, ties=ties, average=average)
    assert pairwise_error(y, scores, qid, ties=ties, average=average) == pytest.approx(expected, abs=1e-14)
    assert concordance(y, scores, qid, ties=ties, average=average) == pytest.approx(1 - expected, abs=1e-14)


@given(rankings(labels=REAL_LABELS) | rankings(), TIES, AVERAGES)
def test_weights_multiply_in_pairs(data, ties, average):
    y, scores, qid, weights = data
    assume(has_pairs(y, qid, weights))
    expected = oracles.pairwise_error(y, scores, qid, weights, ties=ties, average=average)
    actual = pairwise_error(y, scores, qid, ties=ties, average=average, sample_weight=weights)
    assert actual == pytest.approx(expected, abs=1e-13)


@given(rankings(), st.data())
def test_weights_equal_duplication(data, draw):
    y, scores, qid, _ = data
    assume(has_pairs(y, qid))
    counts = np.array(draw.draw(st.lists(st.integers(1, 3), min_size=len(y), max_size=len(y))))
    repeated = np.repeat(np.arange(len(y)), counts)
    for metric in (pairwise_error, concordance, kendall_tau):
        twice = metric(y[repeated], scores[repeated], [qid[r] for r in repeated])
        assert metric(y, scores, qid, sample_weight=counts) == pytest.approx(twice, abs=1e-12)


@given(rankings(labels=REAL_LABELS) | rankings())
def test_tau_equals_scipy(data):
    y, scores, qid, _ = data
    assume(has_pairs(y, qid))
    result = per_query(y, scores, qid, metric="kendall_tau")
    rows = oracles.rows_of_queries(qid)
    for key, value, counted in zip(result.ids.tolist(), result.values, result.counted, strict=True):
        own = rows[key]
        assert counted == (len(set(y[own])) > 1)
        if counted:
            constant = len(set(scores[own])) == 1
            expected = 0.0 if constant else kendalltau(y[own], scores[own]).statistic
            assert value == pytest.approx(expected, abs=1e-12)


@given(rankings(labels=st.integers(0, 1)), st.booleans())
@example((np.array([0.0, 1.0]), np.array([0.0, 0.0]), ["a", "a"], np.array([1.0, 0.5])), True)
def test_auc_equals_scikit_learn(data, weighted):
    y, scores, _, weights = data
    weights = weights if weighted else np.ones_like(y)
    assume(has_pairs(y, np.zeros(len(y)), weights))
    expected = roc_auc_score(y, scores, sample_weight=weights)
    assert auc(y, scores, sample_weight=weights) == pytest.approx(expected, abs=1e-12)


def test_auc_takes_a_threshold():
    y, scores = [0, 1, 2, 3], [0.1, 0.5, 0.3, 0.4]
    assert auc(y, scores, relevant=2) == pytest.approx(roc_auc_score([0, 0, 1, 1], scores))
    with pytest.raises(InvalidInputError, match=r"more than two levels.*relevant=1"):
        auc(y, scores)


def test_long_lists_agree_with_scipy():
    rng = np.random.default_rng(0)
    y = np.round(rng.normal(size=30_000), 2)
    scores = np.round(y + rng.normal(size=y.size), 1)
    assert kendall_tau(y, scores) == pytest.approx(kendalltau(y, scores).statistic, abs=1e-12)


def test_constant_scores_and_perfect_scores():
    y = [3, 1, 2]
    assert pairwise_error(y, [0, 0, 0]) == 0.5
    assert pairwise_error(y, [0, 0, 0], ties=1) == 1
    assert pairwise_error(y, [0.0, -0.0, 0.0], ties=0) == 0
    assert pairwise_error(y, y, sample_weight=[0.1, 0.7, 0.3]) == 0
    assert kendall_tau(y, [5, 5, 5]) == 0


@pytest.mark.parametrize("metric", [pairwise_error, concordance, auc, kendall_tau])
def test_no_pairs(metric):
    with pytest.raises(NoPairsError, match="Hint:"):
        metric([1, 0, 1], [1, 2, 3], ["a", "b", "c"])
    with pytest.raises(NoPairsError, match="Hint:"):
        metric([1, 0, 0], [1, 2, 3], sample_weight=[0, 1, 1])


@given(rankings(), st.data())
def test_preferences_of_labels_equal_pooled_error(data, draw):
    y, scores, _, _ = data
    pairs = [(i, j) for i in range(len(y)) for j in range(len(y)) if y[i] > y[j]]
    assume(pairs)
    ties = draw.draw(TIES)
    assert preference_error(pairs, scores, ties=ties) == pytest.approx(
        pairwise_error(y, scores, ties=ties), abs=1e-14
    )


def test_preferences_take_weights():
    assert preference_error([(0, 1), (1, 0), (1, 2)], [3, 2, 2], [1, 2, 1]) == pytest.approx(2.5 / 4)


@pytest.mark.parametrize("ties", [0.3, "0.5", None])
def test_bad_ties(ties):
    with pytest.raises(InvalidInputError, match="ties"):
        pairwise_error([1, 0], [1, 0], ties=ties)
    with pytest.raises(InvalidInputError, match="average"):
        pairwise_error([1, 0], [1, 0], average="mean")


def test_spearman_is_that_of_scipy_on_every_query():
    rng = np.random.default_rng(0)
    y, scores, qid = rng.integers(4, size=60), rng.integers(6, size=60), rng.integers(8, size=60)
    y[qid == 3], scores[qid == 4] = 1, 2
    result = per_query(y, scores, qid, metric="spearman")
    for query, counted, value in zip(result.ids, result.counted, result.values, strict=True):
        own = qid == query
        assert counted == (np.ptp(y[own]) > 0)
        if counted:
            expected = 0.0 if np.ptp(scores[own]) == 0 else spearmanr(y[own], scores[own]).statistic
            assert value == pytest.approx(expected, abs=1e-12)
