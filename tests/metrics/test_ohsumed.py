"""Real queries: OHSUMED of LETOR, one feature at a time as the scores."""

from functools import partial

import pytest

import oracles
from rankwise.metrics import average_precision, get_metric, ndcg
from real_data import NEEDS_REAL_DATA
from real_data import ohsumed as read_ohsumed

pytestmark = NEEDS_REAL_DATA


@pytest.fixture(scope="module")
def ohsumed():
    """Labels, query ids and the first two features of all five parts."""
    X, y, qid = read_ohsumed()
    return y, qid, X[:, :2].T


def test_pairs(ohsumed):
    y, qid, _ = ohsumed
    assert (y.size, len(set(qid))) == (16_140, 106)
    assert get_metric("pairwise_error", average="pooled").prepare(y, qid).shares.sum() == 582_588


def test_letor_figures_equal_explicit_loops(ohsumed):
    y, qid, features = ohsumed
    for scores in features:
        for k in (1, 5, 10):
            twin = partial(oracles.ndcg_of_list, k=k, discount="letor")
            expected = oracles.mean_over_queries(twin, y, scores, qid, ties="stable", empty="zero")
            assert ndcg(y, scores, qid, k=k, convention="letor3") == pytest.approx(expected, abs=1e-12)
        twin = oracles.average_precision_of_list
        expected = oracles.mean_over_queries(twin, y, scores, qid, ties="stable", empty="zero")
        assert average_precision(y, scores, qid, convention="letor3") == pytest.approx(expected, abs=1e-12)
