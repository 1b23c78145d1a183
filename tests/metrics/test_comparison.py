"""Intervals and paired tests, held to full enumeration, to SciPy, and to simulation."""

import itertools
from dataclasses import astuple

import numpy as np
import pytest
import scipy.stats

from cases.intervals import cover
from rankwise.exceptions import InvalidInputError
from rankwise.metrics import (
    bootstrap_interval,
    bootstrap_mean,
    compare_rankings,
    get_metric,
    holm,
    paired_test,
    per_query,
)
from rankwise.metrics.comparison import p_text


def every_sign(differences):
    """The p-value by looking at all assignments of signs, one after the other."""
    observed = abs(sum(differences))
    sums = [
        abs(sum(s * d for s, d in zip(signs, differences, strict=True)))
        for signs in itertools.product([1, -1], repeat=len(differences))
    ]
    return np.mean([total >= observed - 1e-9 for total in sums])


@pytest.mark.parametrize("seed", range(5))
def test_the_paired_test_equals_full_enumeration(seed):
    rng = np.random.default_rng(seed)
    differences = np.append(rng.normal(0.3, 1, size=9).round(1), 0.0)
    assert paired_test(differences) == pytest.approx(every_sign(differences))


def test_random_signs_agree_with_full_enumeration():
    differences = np.random.default_rng(0).normal(0.35, 1, size=16)
    p = every_sign(differences)
    found = paired_test(differences, n_resamples=20_000)
    assert found == pytest.approx(p, abs=4 * np.sqrt(p * (1 - p) / 20_000))
    reference = scipy.stats.permutation_test(
        (differences,), np.mean, permutation_type="samples", n_resamples=20_000, rng=1
    )
    assert found == pytest.approx(reference.pvalue, abs=0.02)


def test_under_the_null_p_values_are_uniform():
    rng = np.random.default_rng(0)
    found = [paired_test(rng.normal(size=20), n_resamples=199, random_state=i) for i in range(400)]
    assert scipy.stats.kstest(found, "uniform").pvalue > 0.001


def test_without_bounds_the_interval_is_students():
    values = np.random.default_rng(1).exponential(size=9)
    found = bootstrap_mean(values, level=0.8)
    expected = scipy.stats.ttest_1samp(values, 0.0).confidence_interval(0.8)
    assert (found.value, found.low, found.high) == pytest.approx((values.mean(), *expected))
    assert bootstrap_mean(values, np.full(9, 0.3), level=0.8).low == pytest.approx(found.low)


@pytest.mark.parametrize("bounds", [(0.0, 1.0), (-1.0, 1.0), (-3.0, 5.0)])
def test_between_bounds_the_interval_holds_the_means_that_no_test_rejects(bounds):
    rng = np.random.default_rng(2)
    values, weight = rng.beta(5, 1, size=8), rng.uniform(0.5, 2, size=8)
    found = bootstrap_mean(values, weight, bounds=bounds)
    share = weight / weight.sum()
    mean, freedom = share @ values, 1 / (share**2).sum() - 1
    error = np.sqrt(8 / 7 * (share**2 * (values - mean) ** 2).sum())
    means = np.linspace(*bounds, 200_001)
    shape = (means - bounds[0]) * (bounds[1] - means) / ((mean - bounds[0]) * (bounds[1] - mean))
    held = means[np.abs(mean - means) <= scipy.stats.t.ppf(0.975, freedom) * error * shape**0.75]
    assert found.value == pytest.approx(mean)
    assert [found.low, found.high] == pytest.approx([held[0], held[-1]], abs=1e-4)


@pytest.mark.parametrize("n", [2, 5, 40])
def test_values_at_a_bound_have_the_interval_of_as_many_successes(n):
    wilson = scipy.stats.binomtest(n, n).proportion_ci(0.9, "wilson")
    found = bootstrap_mean(np.ones(n), bounds=(0, 1), level=0.9)
    assert (found.low, found.high) == pytest.approx((wilson.low, 1.0))
    found = bootstrap_mean(-np.ones(n), bounds=(-1, 1), level=0.9)
    assert (found.low, found.high) == pytest.approx((-1.0, 1 - 2 * wilson.low))
    between = bootstrap_mean(np.full(n, 0.5), bounds=(0, 1))  # of a constant score
    assert between.low == between.high == 0.5


@pytest.mark.parametrize("bounds", [(0.2, 1), (1, 0), (0.5, 0.5), (-1e308, 1e308)])
def test_bounds_hold_all_values(bounds):
    with pytest.raises(InvalidInputError, match=r"do not enclose the values\..*Hint: pass bounds="):
        bootstrap_mean([0.1, 0.9], bounds=bounds)


@pytest.mark.parametrize(
    ("kind", "name"), [("metrics", "NDCG@10"), ("differences", "concordance"), ("values", "normal")]
)
def test_intervals_cover_as_often_as_they_say(kind, name):
    """Five queries and forty; tests/metrics/test_coverage.py has the rest."""
    assert cover(kind, name, 5, 1000) > 0.91
    assert 0.92 < cover(kind, name, 40, 1000) < 0.98


def problem(queries=40, size=8, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, size=queries * size)
    qid = rng.permutation(np.arange(queries).repeat(size))
    return y, y + rng.normal(size=y.size), y + 2 * rng.normal(size=y.size), qid


@pytest.mark.parametrize("metric", ["ndcg@5", "average_precision", "pairwise_error"])
def test_an_interval_is_that_of_the_queries_that_count(metric):
    y, scores, _, qid = problem()
    y[qid == 3] = 0  # no pair, nothing relevant
    result = per_query(y, scores, qid, metric=metric)
    found = bootstrap_interval(y, scores, qid, metric=metric)
    assert found == bootstrap_mean(result.values[result.counted], bounds=(0, 1))
    assert found.value == pytest.approx(result.mean())
    assert (found.n, found.unit) == (39, "queries")


def test_comparing_counts_wins_in_the_sense_of_the_metric():
    y, good, poor, qid = problem()
    gain = compare_rankings(y, good, poor, qid, metric="concordance")
    error = compare_rankings(y, good, poor, qid, metric="pairwise_error")
    assert gain.difference.value > 0 > error.difference.value
    assert (gain.wins, gain.losses, gain.ties) == (error.wins, error.losses, error.ties)
    assert gain.wins + gain.losses + gain.ties == gain.difference.n == 40
    assert gain.p_value == pytest.approx(error.p_value)
    differences = (
        per_query(y, good, qid, metric="concordance").values
        - per_query(y, poor, qid, metric="concordance").values
    )
    assert gain.p_value == paired_test(differences)


def test_exchanging_the_two_rankings_changes_the_sign_alone():
    y, good, poor, qid = problem(queries=10)
    there = compare_rankings(y, good, poor, qid, metric="ndcg")
    back = compare_rankings(y, poor, good, qid, metric="ndcg")
    assert there.difference.value == -back.difference.value
    assert there.p_value == back.p_value


def test_one_ranking_is_compared_by_exchanging_ranks():
    rng = np.random.default_rng(0)
    y = rng.normal(size=80)
    good, poor = y + 0.3 * rng.normal(size=80), rng.normal(size=80)
    assert compare_rankings(y, good, poor, metric="pairwise_error").p_value < 0.01
    # Any increasing transformation of the scores is the same ranking.
    same = compare_rankings(y, good, 1e3 * good + 7, metric="pairwise_error")
    assert same.p_value == 1.0
    assert same.difference.value == 0.0
    assert compare_rankings(y, good, poor, metric="pairwise_error").difference.unit == "rows"


@pytest.mark.parametrize("metric", ["pairwise_error", "ndcg@3"])
def test_the_p_value_of_one_ranking_is_that_of_every_exchange(metric):
    rng = np.random.default_rng(2)
    y = np.array([0.0, 1, 2, 3, 1, 2, 0, 4])
    one, other = y + rng.normal(size=8), y + 2 * rng.normal(size=8)
    one, other = scipy.stats.rankdata(one), scipy.stats.rankdata(other)
    evaluator = get_metric(metric).prepare(y)
    differences = [
        evaluator(np.where(exchanged, other, one)) - evaluator(np.where(exchanged, one, other))
        for exchanged in itertools.product([True, False], repeat=8)
    ]
    observed = abs(evaluator(one) - evaluator(other))
    wanted = np.mean([abs(difference) >= observed - 1e-9 for difference in differences])
    found = compare_rankings(y, one, other, metric=metric, n_resamples=4000).p_value
    assert 0.05 < wanted < 0.95
    assert found == pytest.approx(wanted, abs=4 * np.sqrt(wanted * (1 - wanted) / 4000))


@pytest.mark.parametrize("value", [0.0, 0.1, -1e9])
def test_what_is_everywhere_the_same_has_an_interval_of_no_width(value):
    found = bootstrap_mean(np.full(7, value))
    assert found.value == found.low == found.high == pytest.approx(value, rel=1e-15)


def test_holm_by_hand():
    assert holm([0.02, 0.01, 0.5, 0.04]).tolist() == pytest.approx([0.06, 0.04, 0.5, 0.08])
    assert holm([0.9, 0.8]).max() == 1.0


@pytest.mark.parametrize(("option", "value"), [("level", 1.0), ("n_resamples", 0)])
def test_options_are_checked(option, value):
    with pytest.raises(InvalidInputError, match=option):
        bootstrap_interval([1.0, 2.0], [1.0, 2.0], metric="ndcg", **{option: value})


@pytest.mark.parametrize("several", [True, False], ids=["queries", "one ranking"])
def test_weights_are_copies_of_rows(several):
    rng = np.random.default_rng(3)
    y, a, b = rng.integers(0, 3, 60), rng.normal(size=60), rng.normal(size=60)
    weight = rng.integers(0, 3, 60)
    qid = np.arange(60) // 10 if several else np.zeros(60, dtype=int)
    copies = np.repeat(np.arange(60), weight)
    found = bootstrap_interval(y, a, qid, metric="pairwise_error", sample_weight=weight, n_resamples=50)
    written = bootstrap_interval(y[copies], a[copies], qid[copies], metric="pairwise_error", n_resamples=50)
    compared = compare_rankings(y, a, b, qid, metric="pairwise_error", sample_weight=weight, n_resamples=50)
    of_copies = compare_rankings(
        y[copies], a[copies], b[copies], qid[copies], metric="pairwise_error", n_resamples=50
    )
    assert found.value == pytest.approx(written.value, rel=1e-12)
    assert compared.difference.value == pytest.approx(of_copies.difference.value, rel=1e-9)
    if several:  # queries are drawn, and theirs are the same values
        assert (found.low, found.high) == pytest.approx((written.low, written.high), rel=1e-12)
        assert compared.p_value == of_copies.p_value
    # One weight for all is none.
    for options in ({}, {"sample_weight": np.full(60, 3.0)}):
        plain = bootstrap_interval(y, a, qid, metric="concordance", n_resamples=50, **options)
        assert (plain.value, plain.low, plain.high) == pytest.approx(
            astuple(bootstrap_interval(y, a, qid, metric="concordance", n_resamples=50))[:3], rel=1e-9
        )
    with pytest.raises(InvalidInputError, match="does not take sample_weight"):
        bootstrap_interval(y, a, qid, metric="average_precision", sample_weight=weight)


@pytest.mark.parametrize(
    ("p", "text"), [(0.0, "< 0.001"), (9e-4, "< 0.001"), (1e-3, "= 0.001"), (0.25, "= 0.250")]
)
def test_a_p_value_is_never_said_to_be_zero(p, text):
    assert p_text(p) == text


@pytest.mark.parametrize("name", ["pairwise_error", "concordance"])
def test_a_metric_over_all_pairs_together_stays_one(name):
    """Queries of very different sizes: their mean is another figure."""
    rng = np.random.default_rng(5)
    qid = np.repeat(np.arange(8), [2, 3, 4, 5, 8, 13, 21, 34])
    y = rng.integers(0, 3, qid.size)
    first, second = y + 2 * rng.normal(size=(2, qid.size))
    pooled = get_metric(name, average="pooled")
    found = bootstrap_interval(y, first, qid, metric=pooled)
    assert found.value == pytest.approx(pooled(y, first, qid), abs=1e-15)
    assert abs(found.value - get_metric(name)(y, first, qid)) > 0.01
    evaluator = pooled.prepare(y, qid)
    values = [evaluator.per_query(scores).values[evaluator.counted] for scores in (first, second)]
    assert found == bootstrap_mean(values[0], evaluator.shares, bounds=(0, 1))
    difference = pooled(y, first, qid) - pooled(y, second, qid)
    compared = compare_rankings(y, first, second, qid, metric=pooled)
    assert compared.difference.value == pytest.approx(difference, abs=1e-15)
    assert compared.difference == bootstrap_mean(np.subtract(*values), evaluator.shares, bounds=(-1, 1))
    # Exchanging the rankings of a query: every assignment.
    reached = 0
    for signs in itertools.product([False, True], repeat=8):
        flipped = np.asarray(signs)[qid]
        left, right = np.where(flipped, second, first), np.where(flipped, first, second)
        reached += abs(pooled(y, left, qid) - pooled(y, right, qid)) >= abs(difference) - 1e-12
    assert compared.p_value == reached / 2**8


def test_rounding_is_no_difference():
    """Rows of one label that tie gain together what they gain one by one, but for the last digit."""
    y, qid = np.tile([2, 2, 1, 1, 0, 3], 60), np.repeat(np.arange(60), 6)
    apart = y + np.tile([0.1, 0, 0.1, 0, 0, 0], 60)
    compared = compare_rankings(y, y, apart, qid, metric="ndcg")
    assert (compared.wins, compared.losses, compared.ties, compared.p_value) == (0, 0, 60, 1.0)
    assert compared.difference.value == 0.0
