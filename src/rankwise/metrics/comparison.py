"""Paired comparisons of two rankings of the same rows by randomisation, and of two errors of the same pairs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.stats

from rankwise.arrays import ArrayLike, Ints, RandomSource
from rankwise.data.validation import check_numbers, check_weights, read_seed
from rankwise.metrics.intervals import (
    Interval,
    block_sizes,
    bootstrap_mean,
    check_draws,
    drawings_of,
    estimate_over_pairs,
    mean_over_pairs,
    quantiles,
    values_of_copies,
)
from rankwise.metrics.metric import Doubles, Grouping, Metric, get_metric, read_labels

_EXACT = 14  # up to so many differences, every assignment of signs is looked at
# Of two values of a metric: tied rows are added up in another order than the same gains one by one.
_ROUNDING = 1e-13


@dataclass(frozen=True)
class Comparison:
    """A paired comparison of two rankings of the same rows.

    Attributes
    ----------
    difference : Interval
        The metric of the first minus that of the second.
    p_value : float
        Two-sided: how often a difference as large arises where it does not matter which ranking is which.
    wins, losses, ties : int
        Units on which the first ranking is better, worse, the same; 0 each where rows were drawn.
    metric : str

    Examples
    --------
    >>> import numpy as np
    >>> from rankwise.metrics import compare_rankings
    >>> y, qid = np.tile([0, 1, 2], 20), np.repeat(np.arange(20), 3)
    >>> found = compare_rankings(y, y, -y, qid, metric="ndcg")
    >>> found.wins, found.losses, bool(found.p_value < 0.001)
    (20, 0, True)
    """

    difference: Interval
    p_value: float
    wins: int
    losses: int
    ties: int
    metric: str


def compare_rankings(
    y_true: ArrayLike,
    first: ArrayLike,
    second: ArrayLike,
    qid: Grouping = None,
    *,
    metric: str | Metric,
    level: float = 0.95,
    n_resamples: int = 10_000,
    random_state: RandomSource = 0,
    sample_weight: ArrayLike | None = None,
) -> Comparison:
    """Compare two rankings of the same rows, query by query.

    The test is the paired randomisation test: if the rankings were equally good, each query's difference could equally
    well have the other sign. With at most 14 differences every assignment of signs is enumerated. If only one query
    counts, the two ranks of each of its rows are exchanged at random instead.

    Parameters
    ----------
    y_true, qid
        As for the metric's function.
    first, second : (rows,) numbers
        The scores of the two rankings.
    metric : str or Metric
        As for `get_metric`.
    level, n_resamples, random_state
        As for `bootstrap_interval`; one ranking's rows are exchanged at most 1000 times.
    sample_weight : (rows,) numbers, optional
        As for the metric's function.

    Returns
    -------
    Comparison

    Examples
    --------
    >>> import numpy as np
    >>> from rankwise.metrics import compare_rankings
    >>> rng = np.random.default_rng(0)
    >>> y, qid = rng.integers(0, 3, 500), np.arange(500) // 10
    >>> result = compare_rankings(y, y + rng.normal(size=500), rng.normal(size=500), qid, metric="ndcg@10")
    >>> result.difference.low > 0, result.p_value < 0.001
    (True, True)
    """
    check_draws(level, n_resamples)
    labels, queries = read_labels(y_true, qid)
    chosen, seed = get_metric(metric).settled(labels), read_seed(random_state)
    columns = [check_numbers("scores", scores, labels.size) for scores in (first, second)]
    weights = check_weights(sample_weight, labels.size)
    evaluator = chosen.prepare(labels, queries, sample_weight=weights)
    a, b = (evaluator.per_query(column) for column in columns)
    differences = a.values[a.counted] - b.values[b.counted]
    differences[np.abs(differences) <= _ROUNDING] = 0.0
    sign = 1.0 if chosen.greater_is_better else -1.0
    if differences.size > 1:
        shares = evaluator.shares
        width = chosen.bounds[1] - chosen.bounds[0]
        interval = bootstrap_mean(differences, shares, bounds=(-width, width), level=level)
        p_value = paired_test(differences * shares, n_resamples=n_resamples, random_state=seed)
        wins, losses = int((sign * differences > 0).sum()), int((sign * differences < 0).sum())
        return Comparison(interval, p_value, wins, losses, differences.size - wins - losses, chosen.name)
    rows = np.flatnonzero(queries.codes == np.flatnonzero(a.counted)[0])
    return _compare_one_ranking(
        chosen,
        labels[rows],
        [column[rows] for column in columns],
        None if weights is None else weights[rows],
        level,
        min(n_resamples, 1000),
        seed,
    )


def paired_test(
    differences: ArrayLike, *, n_resamples: int = 10_000, random_state: RandomSource = 0
) -> float:
    """Return the two-sided p-value of the paired randomisation test: the mean under random signs.

    Parameters
    ----------
    differences : (units,) numbers
        Differences of two methods, unit by unit; zeros change nothing.
    n_resamples : int, default=10000
        The number of random assignments of signs; not used if all of them are enumerated.
    random_state : int, RandomState, Generator or None, default=0

    Examples
    --------
    >>> from rankwise.metrics import paired_test
    >>> paired_test([1.0, 2.0, 3.0])  # 2 of 8 assignments of signs reach 6
    0.25
    """
    check_draws(0.5, n_resamples)
    column = check_numbers("differences", differences)
    column = column[column != 0]
    if column.size == 0:
        return 1.0
    observed = abs(float(column.sum()))
    reached = observed - 1e-12 * float(np.abs(column).sum())  # equal sums differ by rounding
    if column.size <= _EXACT:
        bits = np.arange(2**column.size)[:, None] >> np.arange(column.size)
        sums = (1.0 - 2.0 * (bits & 1)) @ column
        return float(np.mean(np.abs(sums) >= reached))
    rng = np.random.default_rng(read_seed(random_state))
    count = 0
    for block in block_sizes(n_resamples, column.size):
        signs = 1.0 - 2.0 * rng.integers(0, 2, size=(block, column.size))
        count += int((np.abs(signs @ column) >= reached).sum())
    return (1 + count) / (1 + n_resamples)


def holm(p_values: ArrayLike) -> Doubles:
    """Adjust p-values for multiple comparisons (Holm 1979).

    Examples
    --------
    >>> from rankwise.metrics import holm
    >>> holm([0.01, 0.04, 0.03]).round(2).tolist()
    [0.03, 0.06, 0.06]
    """
    values = check_numbers("p_values", p_values)
    order = np.argsort(values, kind="stable")
    adjusted = np.maximum.accumulate(values[order] * np.arange(values.size, 0, -1))
    result = np.empty(values.size)
    result[order] = np.minimum(adjusted, 1.0)
    return result


def p_text(p_value: float) -> str:
    """Format a p-value as ``= 0.012``, and a very small one as ``< 0.001``, never as zero."""
    return "< 0.001" if p_value < 0.001 else f"= {p_value:.3f}"


def compare_over_pairs(
    first: Doubles, second: Doubles, pairs: Ints, weight: Doubles | None = None, *, level: float = 0.95
) -> Comparison:
    """Compare two errors pair by pair: the first minus the second, with the variance of `mean_over_pairs`.

    If all differences are equal, their variance is 0. The p-value is then that of a sign test over the items,
    ``0.5 ** (items - 1)``.
    """
    difference = first - second
    interval = mean_over_pairs(difference, pairs, weight, level=level)
    mean, error, freedom = estimate_over_pairs(difference, pairs, weight)
    p_value = 1.0
    if freedom > 0 and mean != 0:
        p_value = float(2 * scipy.stats.t.sf(abs(mean) / error, freedom)) if error > 0 else 0.5**freedom
    wins, losses = int((difference < 0).sum()), int((difference > 0).sum())
    return Comparison(interval, p_value, wins, losses, difference.size - wins - losses, "pairwise_error")


def _compare_one_ranking(
    metric: Metric,
    labels: Doubles,
    columns: list[Doubles],
    weights: Doubles | None,
    level: float,
    n_resamples: int,
    seed: int,
) -> Comparison:
    # Scores of two models have no common scale; their ranks have.
    ranks = [scipy.stats.rankdata(column) for column in columns]
    evaluator = metric.prepare(labels, sample_weight=weights)
    observed = evaluator(ranks[0]) - evaluator(ranks[1])
    rng = np.random.default_rng(seed)
    null, drawn = [], []
    for index in drawings_of(rng, labels.size, n_resamples):
        exchanged = rng.random((labels.size, index.shape[0])) < 0.5
        left = np.where(exchanged, ranks[1][:, None], ranks[0][:, None])
        right = np.where(exchanged, ranks[0][:, None], ranks[1][:, None])
        null.append(evaluator.many(left) - evaluator.many(right))
        copies = [values_of_copies(metric, labels, rank, weights, index) for rank in ranks]
        drawn.append(copies[0] - copies[1])
    extreme = np.abs(np.concatenate(null)) >= abs(observed) - 1e-12
    sample = np.concatenate(drawn)
    low, high = quantiles(sample[np.isfinite(sample)], (1 - level) / 2, (1 + level) / 2)
    interval = Interval(observed, low, high, level, int(labels.size), "rows")
    return Comparison(interval, (1 + int(extreme.sum())) / (1 + n_resamples), 0, 0, 0, metric.name)
