"""Figures at the bounds of their formulas: fewest rows, extreme p-values, largest labels, both sides of limits."""

import numpy as np
import pytest
import scipy.stats

import oracles
from rankwise.exceptions import InvalidInputError
from rankwise.metrics import (
    auc_estimate,
    bootstrap_interval,
    bootstrap_mean,
    compare_rankings,
    get_metric,
    paired_test,
)

# --- the AUC and its variance ---


def three_columns():
    rng = np.random.default_rng(0)
    y = np.repeat([0.0, 1.0], [15, 10])
    return y, rng.normal(size=(25, 3)) + np.outer(y, [0.3, 1.0, 1.5])


@pytest.mark.parametrize(("first", "second"), [(0, 1), (2, 0)])
def test_two_of_several_columns_are_compared_by_the_variance_of_their_difference(first, second):
    y, scores = three_columns()
    aucs, covariance = oracles.delong_covariance(y, scores)
    contrast = np.zeros(3)
    contrast[first], contrast[second] = 1.0, -1.0
    z = contrast @ aucs / np.sqrt(contrast @ covariance @ contrast)
    assert auc_estimate(y, scores).p_value(first, np.int64(second)) == pytest.approx(
        2 * scipy.stats.norm.cdf(-abs(z))
    )


@pytest.mark.parametrize("level", [0.5, 0.95])
def test_intervals_of_the_auc_hold_the_values_that_no_test_rejects(level):
    """Newcombe's variance (2006, method 5), or DeLong's where that is larger."""
    y, scores = three_columns()
    aucs, covariance = oracles.delong_covariance(y, scores)
    (n, m), t = (10, 15), np.linspace(0, 1, 100_001)
    newcombe = t * (1 - t) / (n * m) * (1 + ((n + m) / 2 - 1) * ((1 - t) / (2 - t) + t / (1 + t)))
    found = auc_estimate(y, scores).interval(level)
    for at, auc in enumerate(aucs):
        delong = covariance[at, at] * t * (1 - t) / (auc * (1 - auc))
        reach = scipy.stats.norm.ppf((1 + level) / 2) * np.sqrt(np.maximum(newcombe, delong))
        held = t[np.abs(auc - t) <= reach]
        assert found[at] == pytest.approx([held[0], held[-1]], abs=3e-5)


def test_intervals_of_a_perfect_auc_end_at_one():
    y = np.repeat([0.0, 1.0], 10)
    (low, high), (reversed_low, reversed_high) = auc_estimate(y, np.column_stack([y, -y])).interval()
    assert 0.6 < low < 0.9
    assert (high, reversed_low, reversed_high) == pytest.approx((1.0, 0.0, 1 - low))


@pytest.mark.parametrize("sizes", [(9, 30), (30, 9)])
def test_few_rows_of_a_label_have_an_auc_and_no_interval(sizes):
    y = np.repeat([0.0, 1.0], sizes)
    estimate = auc_estimate(y, np.column_stack([np.arange(39.0), y]))
    assert estimate.auc.tolist() == [1.0, 1.0]
    with pytest.warns(UserWarning, match=r"has no interval.*Hint: pass y_true with at least 10 rows of each"):
        found = estimate.interval()
    assert found.shape == (2, 2)
    assert np.isnan(found).all()


def test_the_spread_of_a_single_row_counts_nothing():
    """What is left is that of the other side, which a second column of the same values makes visible."""
    y, scores = np.array([1.0, 0, 0, 0]), np.array([2.5, 1.0, 2.0, 3.0])
    share = np.array([1.0, 1.0, 0.0])
    assert auc_estimate(y, scores).covariance[0, 0] == pytest.approx(share.var(ddof=1) / 3)
    assert auc_estimate(1 - y, -scores).covariance[0, 0] == pytest.approx(share.var(ddof=1) / 3)


# --- paired tests ---


@pytest.mark.parametrize("size", [13, 14, 15])
def test_up_to_fourteen_differences_every_assignment_of_signs_is_looked_at(size):
    differences = np.random.default_rng(size).normal(0.4, 1, size=size)
    found = {paired_test(differences, n_resamples=300, random_state=seed) for seed in range(6)}
    assert (len(found) == 1) == (size <= 14)


@pytest.mark.parametrize("n_resamples", [1, 99, 2500])
def test_no_p_value_is_smaller_than_the_assignments_allow(n_resamples):
    """The observed one is among them."""
    assert paired_test(np.ones(60), n_resamples=n_resamples) == 1 / (n_resamples + 1)
    assert paired_test(np.ones(10)) == 2 / 2**10


@pytest.mark.parametrize(("n_resamples", "exchanges"), [(99, 99), (1000, 1000), (1001, 1000), (5000, 1000)])
def test_one_ranking_is_exchanged_at_most_a_thousand_times(n_resamples, exchanges):
    y = np.arange(40.0)
    found = compare_rankings(y, y, -y, metric="pairwise_error", n_resamples=n_resamples)
    assert found.p_value == 1 / (exchanges + 1)
    assert (found.difference.value, found.difference.n, found.difference.unit) == (-1.0, 40, "rows")
    assert (found.wins, found.losses, found.ties, found.metric) == (0, 0, 0, "pairwise_error")


def test_ties_are_units_that_are_neither_better_nor_worse():
    y, qid = np.tile([0, 1], 5), np.repeat(np.arange(5), 2)
    first, second = np.array([0, 1, 0, 1, 0, 1, 1, 0, 0, 1.0]), np.array([0, 1, 1, 0, 1, 0, 0, 1, 0, 1.0])
    found = compare_rankings(y, first, second, qid, metric="pairwise_error")
    assert (found.wins, found.losses, found.ties) == (2, 1, 2)


def test_rows_of_other_queries_do_not_enter_where_one_query_counts():
    rng = np.random.default_rng(1)
    y, first, second = rng.integers(0, 3, 30), rng.normal(size=30), rng.normal(size=30)
    more = [np.append(column, [2, 2, 2]) for column in (y, first, second)]
    qid = np.append(np.zeros(30), [1, 1, 2])  # of which no query has two labels
    alone = compare_rankings(y, first, second, metric="concordance", n_resamples=60)
    assert compare_rankings(*more, qid, metric="concordance", n_resamples=60) == alone
    one = bootstrap_interval(y, first, metric="concordance", n_resamples=60)
    assert bootstrap_interval(more[0], more[1], qid, metric="concordance", n_resamples=60) == one
    assert one.n == 30


# --- intervals ---


@pytest.mark.parametrize("level", [0.5, 0.9])
def test_intervals_of_one_ranking_have_the_quantiles_of_drawn_rows(level):
    rng = np.random.default_rng(0)
    y = rng.normal(size=60)
    first, second, metric = y + rng.normal(size=60), y + 2 * rng.normal(size=60), get_metric("concordance")
    draws = np.random.default_rng(9).integers(0, 60, size=(1000, 60))
    tables = [[metric(y[index], scores[index]) for index in draws] for scores in (first, second)]
    tails = [(1 - level) / 2, (1 + level) / 2]
    compared = compare_rankings(y, first, second, metric="concordance", level=level, n_resamples=1000)
    alone = bootstrap_interval(y, first, metric="concordance", level=level, n_resamples=1000)
    for found, drawn in ((compared.difference, np.subtract(*tables)), (alone, tables[0])):
        low, high = np.quantile(drawn, tails)
        assert [found.low, found.high] == pytest.approx([low, high], abs=0.25 * (high - low))
        assert found.level == level


def test_a_single_unit_has_a_mean_and_no_interval():
    found = bootstrap_mean([3.0], [2.0], level=0.8, unit="pairs")
    assert (found.value, found.level, found.n, found.unit) == (3.0, 0.8, 1, "pairs")
    assert np.isnan([found.low, found.high]).all()


def test_units_without_weight_are_left_out():
    values, weight = np.array([1.0, 2.0, 4.0, 100.0]), np.array([1.0, 1.0, 2.0, 0.0])
    found = bootstrap_mean(values, weight)
    assert found == bootstrap_mean(values[:3], weight[:3])
    assert (found.value, found.n) == (11 / 4, 3)
    assert found.low < found.value < found.high
    assert np.isnan(bootstrap_mean(values, [0.0, 0.0, 1.0, 0.0]).low)
    for bad in ([0.0] * 4, [1.0, 1.0, 1.0, -0.5]):
        with pytest.raises(
            InvalidInputError, match=r"weight is negative, or 0 everywhere.*Hint: use positive"
        ):
            bootstrap_mean(values, bad)
    with pytest.raises(InvalidInputError, match="at least one unit"):
        bootstrap_mean([])


def test_drawings_do_not_depend_on_how_many_are_made_at_a_time(monkeypatch):
    y, scores = np.random.default_rng(0).normal(size=(2, 50))
    whole = bootstrap_interval(y, scores, metric="concordance", n_resamples=230)
    for block in (1, 50, 51, 50 * 7, 50 * 230):
        monkeypatch.setattr("rankwise.metrics.intervals._BLOCK", block)
        assert bootstrap_interval(y, scores, metric="concordance", n_resamples=230) == whole


# --- labels and cutoffs ---


@pytest.mark.parametrize(("empty", "value"), [("zero", 0.5), ("one", 1.0), ("skip", 1.0)])
@pytest.mark.parametrize("name", ["ndcg", "average_precision", "reciprocal_rank", "err", "precision@1"])
def test_queries_without_a_relevant_row_count_what_they_are_said_to(name, empty, value):
    y, scores, qid = [1, 0, 0, 0], [2, 1, 2, 1], [0, 0, 1, 1]
    alone = get_metric(name, empty=empty)([1, 0], [2, 1])
    expected = alone if empty == "skip" else (alone + {"zero": 0.0, "one": 1.0}[empty]) / 2
    assert get_metric(name, empty=empty)(y, scores, qid) == pytest.approx(expected)
    assert name == "err" or expected == value
