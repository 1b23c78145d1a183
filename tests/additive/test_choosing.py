"""What a search for curves takes for a gain: more than chance, where held-out queries tell how far that goes."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import ttest_rel

from rankwise import AdditiveRankerCV
from rankwise.additive.settings import Candidate, Knots, Split, joined
from rankwise.metrics import get_metric, per_query
from rankwise.selection.scorers import MetricScorer, PreferenceScorer


def candidate(by_query):
    return Candidate(float(np.mean(by_query)), 0, Knots(8, 5), 0, -0.1, 0, by_query=np.asarray(by_query))


@pytest.mark.parametrize("seed", range(20))
def test_a_gain_is_clear_where_it_exceeds_its_paired_standard_error(seed):
    rng = np.random.default_rng(seed)
    before, after = rng.uniform(size=(2, 30))
    after = before + 0.3 * (after - before) - 0.02
    expected = ttest_rel(before, after).statistic > 1
    assert candidate(after).is_clearly_better(candidate(before)) == expected
    assert not candidate(before).is_clearly_better(candidate(before))


def test_without_queries_the_lower_error_is_better():
    before = replace(candidate([0.5, 0.3]), by_query=None)
    assert replace(before, error=before.error - 1e-9).is_clearly_better(before)
    assert not before.is_clearly_better(before)


@pytest.mark.parametrize("metric", ["pairwise_error", "ndcg@10"])
def test_errors_of_queries(metric):
    rng = np.random.default_rng(0)
    y, scores, qid = rng.integers(0, 3, 60), rng.standard_normal(60), np.arange(60) // 4
    y[:4] = 1  # compares nothing
    evaluator = get_metric(metric).prepare(y, qid)
    split = Split(None, MetricScorer(evaluator, get_metric(metric).greater_is_better))
    found, expected = split.by_query(scores), per_query(y, scores, qid, metric=metric).values
    sign = -1 if get_metric(metric).greater_is_better else 1
    np.testing.assert_allclose(found, sign * expected[evaluator.counted], rtol=1e-14)
    assert found.mean() == pytest.approx(split.scorer.errors(scores[None])[0], rel=1e-12)


def test_queries_too_few_to_tell_or_none():
    errors = np.linspace(0, 1, 6)
    assert joined([errors]) is None
    np.testing.assert_array_equal(joined([errors, errors]), np.tile(errors, 2))
    assert joined([errors, errors, None]) is None
    assert joined([np.zeros(20_000)]) is None
    pairs = Split(None, PreferenceScorer(np.ones(1), get_metric("pairwise_error")))
    assert pairs.by_query(np.zeros(1)) is None


def test_chance_leads_nowhere():
    # Straight lines and noise. The least error of fifteen queries led seven of these ten models to alphas of 1 and
    # more, a decade beyond the grid, and five to 250 surfaces between them.
    alphas, counts = [], []
    for seed in range(10):
        rng = np.random.default_rng(seed)
        X, qid = rng.standard_normal((400, 20)), np.arange(400) // 10
        y = X[:, 0] + X[:, 1] + 2 * rng.standard_normal(400)
        own = qid < 25
        model = AdditiveRankerCV(n_threads=1)
        model.fit(X[own], y[own], qid[own], eval_set=(X[~own], y[~own], qid[~own]))
        alphas.append(model.alpha_)
        counts.append(len(model.interactions_))
    assert sum(alpha >= 1 for alpha in alphas) <= 3
    assert sum(counts) <= 60
