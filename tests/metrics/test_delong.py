"""DeLong's variance of the AUC against explicit pairs, and its intervals against repetition."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import oracles
from cases.intervals import cover_auc
from rankwise.exceptions import InvalidInputError, NoPairsError
from rankwise.metrics import auc, auc_estimate


@given(st.integers(2, 12), st.integers(2, 12), st.integers(1, 3), st.integers(0, 10_000), st.booleans())
def test_covariance_equals_explicit_pairs(n_positive, n_negative, n_columns, seed, has_ties):
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.repeat([1.0, 0.0], [n_positive, n_negative]))
    scores = rng.normal(size=(y.size, n_columns)) + y[:, None]
    scores = np.round(scores) if has_ties else scores
    found = auc_estimate(y, scores)
    expected, covariance = oracles.delong_covariance(y, scores)
    np.testing.assert_allclose(found.auc, expected, atol=1e-12)
    np.testing.assert_allclose(found.covariance, covariance, atol=1e-12)
    assert found.auc[0] == pytest.approx(auc(y, scores[:, 0]), abs=1e-12)


@pytest.mark.parametrize("auc", [0.75, 0.97])
def test_intervals_cover_as_often_as_they_say(auc):
    assert 0.92 < cover_auc("normal", auc, 10, 40, 500) <= 1.0


def test_models_of_equal_quality_differ_rarely():
    rng = np.random.default_rng(1)
    y = np.repeat([0.0, 1.0], 60)
    p = [auc_estimate(y, y[:, None] + rng.normal(size=(y.size, 2))).p_value() for _ in range(1000)]
    assert 0.03 < np.mean(np.array(p) < 0.05) < 0.075


def test_one_ranking_is_like_itself_and_a_perfect_one_is_not_like_its_reverse():
    y = np.array([0.0, 1.0, 0.0, 1.0])
    assert auc_estimate(y, np.column_stack([y, y])).p_value() == 1.0
    assert auc_estimate(y, np.column_stack([y, -y])).p_value() == 0.0


def test_bad_input():
    for scores in (np.empty((2, 0)), np.zeros((2, 1, 1)), 1.0):
        with pytest.raises(InvalidInputError, match="scores has shape"):
            auc_estimate([0, 1], scores)
    with pytest.raises(InvalidInputError, match="two levels"):
        auc_estimate([0, 1, 2], [1.0, 2.0, 3.0])
    with pytest.raises(NoPairsError, match="single level"):
        auc_estimate([1, 1], [1.0, 2.0])
    with pytest.raises(InvalidInputError, match="level"):
        auc_estimate([0, 1], [1.0, 2.0]).interval(95)
