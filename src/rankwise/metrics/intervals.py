"""Confidence intervals of metrics.

The unit is the query, because queries are sampled in practice and the rows of a query depend on each other. Where
there is one ranking, its rows are drawn by the bootstrap instead. Pairs that share items are dependent: if the score of
an item is wrong, all of its pairs go wrong together. The variance of a mean over pairs counts every two pairs that
share an item (dyadic clusters: Aronow, Samii and Assenova 2015); where no item comes twice it is that of independent
pairs. An AUC has the covariances of DeLong, DeLong and Clarke-Pearson (1988).
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import scipy.optimize
import scipy.stats

from rankwise.arrays import ArrayLike, Ints, RandomSource
from rankwise.data.containers import as_array
from rankwise.data.queries import Queries
from rankwise.data.validation import check_count, check_level, check_numbers, check_weights, read_seed
from rankwise.exceptions import InvalidInputError, NoPairsError
from rankwise.metrics.metric import Doubles, Grouping, Metric, get_metric, read_labels

_BLOCK = 1_000_000  # numbers that are drawn at a time
# The variance of a metric falls as its mean nears a bound, by a power between 1 (the binomial distribution) and 2 (the
# gamma distribution). Coverage of NDCG@10 at 5 queries in benchmarks/cases/intervals.py: 0.906, 0.933 and 0.947 at
# powers 1, 1.5 and 2, of which 2 has the longest intervals.
_POWER = 1.5
_FEWEST = 10  # rows of either label that an interval of an AUC needs; fewer were not simulated


@dataclass(frozen=True)
class Interval:
    """A figure and its confidence interval.

    Attributes
    ----------
    value : float
    low, high : float
        NaN where there is a single unit.
    level : float
        The confidence.
    n : int
        The number of units.
    unit : str
        "queries", "rows" or "pairs".

    Examples
    --------
    >>> import numpy as np
    >>> from rankwise.metrics import bootstrap_mean
    >>> interval = bootstrap_mean(np.arange(50.0))
    >>> interval.value, bool(interval.low < 24.5 < interval.high), interval.n, interval.unit
    (24.5, True, 50, 'queries')
    """

    value: float
    low: float
    high: float
    level: float
    n: int
    unit: str


def bootstrap_interval(
    y_true: ArrayLike,
    scores: ArrayLike,
    qid: Grouping = None,
    *,
    metric: str | Metric,
    sample_weight: ArrayLike | None = None,
    level: float = 0.95,
    n_resamples: int = 2000,
    random_state: RandomSource = 0,
) -> Interval:
    """Return a metric with its confidence interval.

    The interval is that of `bootstrap_mean` over queries, inside the bounds of the metric. Where one query counts, its
    rows are drawn with replacement, and the interval has the percentiles of the metric of the drawn rows.

    Parameters
    ----------
    y_true, scores, qid, sample_weight
        As for the metric's function; a row keeps its weight whenever it is drawn.
    metric : str or Metric
        As for `get_metric`.
    level : float, default=0.95
    n_resamples : int, default=2000
        Drawings of the rows of one query; not used where several queries count.
    random_state : int, RandomState, Generator or None, default=0
        Seed of the samples; None draws new ones in every call.

    Returns
    -------
    Interval

    Examples
    --------
    >>> import numpy as np
    >>> from rankwise.metrics import bootstrap_interval
    >>> rng = np.random.default_rng(0)
    >>> y, qid = rng.integers(0, 3, 500), np.arange(500) // 10
    >>> found = bootstrap_interval(y, y + rng.normal(size=500), qid, metric="ndcg@10")
    >>> found.low < found.value < found.high, found.n, found.unit
    (True, 50, 'queries')
    """
    labels, queries = read_labels(y_true, qid)
    chosen = get_metric(metric).settled(labels)
    column = check_numbers("scores", scores, labels.size)
    weights = check_weights(sample_weight, labels.size)
    evaluator = chosen.prepare(labels, queries, sample_weight=weights)
    result = evaluator.per_query(column)
    values = result.values[result.counted]
    check_draws(level, n_resamples)
    if values.size > 1:
        return bootstrap_mean(values, evaluator.shares, bounds=chosen.bounds, level=level)
    rows = np.flatnonzero(queries.codes == np.flatnonzero(result.counted)[0])
    rng = np.random.default_rng(read_seed(random_state))
    drawn = np.concatenate(
        [
            values_of_copies(chosen, labels, column, weights, rows[index])
            for index in drawings_of(rng, rows.size, n_resamples)
        ]
    )
    drawn = drawn[np.isfinite(drawn)]  # a drawing without two different labels has no value
    low, high = quantiles(drawn, (1 - level) / 2, (1 + level) / 2) if rows.size > 1 else (np.nan, np.nan)
    return Interval(float(values[0]), low, high, level, int(rows.size), "rows")


def bootstrap_mean(
    values: ArrayLike,
    weight: ArrayLike | None = None,
    *,
    bounds: tuple[float, float] | None = None,
    level: float = 0.95,
    unit: str = "queries",
) -> Interval:
    """Return a (weighted) mean with its confidence interval.

    Without bounds it is Student's t interval. Between two bounds it is a score interval: it holds every mean that the
    same t test does not reject, with a standard error that falls as the mean nears a bound. It is longer towards the
    middle, where the t interval of skewed values ends too early, and stays between the bounds.

    Parameters
    ----------
    values : (units,) numbers
    weight : (units,) numbers, optional
        Weights in the mean; a unit of weight 0 is left out. Unequal weights reduce the degrees of freedom.
    bounds : (float, float), optional
        The smallest and the largest possible value: (0, 1) for most metrics, (-1, 1) for their differences.
    level : float, default=0.95
    unit : str, default="queries"
        The name of the units that the values belong to; returned unchanged.

    Examples
    --------
    >>> from rankwise.metrics import bootstrap_mean
    >>> values = [0.9, 1.0, 0.7, 1.0, 0.95]
    >>> for bounds in (None, (0, 1)):
    ...     found = bootstrap_mean(values, bounds=bounds)
    ...     print(f"{found.value:.2f} [{found.low:.2f}, {found.high:.2f}]")
    0.91 [0.76, 1.06]
    0.91 [0.56, 0.97]
    """
    check_level(level)
    column = check_numbers("values", values)
    if column.size == 0:
        raise InvalidInputError("values is empty.", "an interval needs at least one unit.")
    share = np.ones(column.size) if weight is None else check_numbers("weight", weight, column.size)
    if (share < 0).any() or not share.any():
        raise InvalidInputError(
            "weight is negative, or 0 everywhere.", "use positive numbers, and 0 to leave out."
        )
    if bounds is not None:
        low, high = check_numbers("bounds", bounds, 2).tolist()
        width = high - low
        inside = low - 1e-9 * width <= column.min() <= column.max() <= high + 1e-9 * width
        if not (inside and 0 < width < np.inf):
            raise InvalidInputError(
                f"bounds={bounds!r} do not enclose the values.", "pass bounds=(smallest, largest)."
            )
    column, share = column[share > 0], share[share > 0]
    estimate = float((column * share).sum() / share.sum())
    share = share / share.sum()
    freedom = 1 / float((share**2).sum()) - 1  # that of as many equal units (Kish 1965)
    n = int(column.size)
    if n == 1 or freedom < 1e-9:
        return Interval(estimate, np.nan, np.nan, level, n, unit)
    error = float(np.sqrt(n / (n - 1) * ((share * (column - estimate)) ** 2).sum()))
    if error <= np.finfo(float).eps * np.abs(column).max():
        error = 0.0  # all values are the same
    reach = min(float(scipy.stats.t.ppf((1 + level) / 2, freedom)), 1e6) * error
    if bounds is None:
        return Interval(estimate, estimate - reach, estimate + reach, level, n, unit)
    place = (estimate - low) / width
    if 1e-9 < place < 1 - 1e-9:
        power, factor = _POWER, (reach / width) ** 2 / (place * (1 - place)) ** _POWER
    else:  # all values at a bound say nothing about the spread: Wilson's interval, as if they had two outcomes
        power, factor = 1.0, scipy.stats.norm.ppf((1 + level) / 2) ** 2 / (freedom + 1)
    left, right = _score_limits(place, lambda mean: factor * (mean * (1 - mean)) ** power)
    return Interval(
        estimate, min(low + width * left, estimate), max(low + width * right, estimate), level, n, unit
    )


def _score_limits(estimate: float, variance: Callable[[float], float]) -> tuple[float, float]:
    """Return the smallest and largest mean between 0 and 1 with ``(estimate - mean)**2 <= variance(mean)``.

    The variance is 0 at 0 and 1, and includes the squared quantile of the level.
    """

    def excess(mean: float) -> float:
        return (estimate - mean) ** 2 - variance(mean)

    start = min(max(estimate, 1e-12), 1 - 1e-12)
    if excess(start) >= 0:  # no variance
        return estimate, estimate
    low = scipy.optimize.brentq(excess, 0.0, start) if estimate > 0 else 0.0
    high = scipy.optimize.brentq(excess, start, 1.0) if estimate < 1 else 1.0
    return float(low), float(high)


def check_draws(level: float, n_resamples: int) -> None:
    """Check the level and the number of resamples."""
    check_level(level)
    check_count("n_resamples", n_resamples, optional=False)


def block_sizes(n_resamples: int, size: int) -> Iterator[int]:
    """Divide `n_resamples` drawings of `size` units each into blocks that fit in memory."""
    at_once = max(1, _BLOCK // size)
    for start in range(0, n_resamples, at_once):
        yield min(at_once, n_resamples - start)


def drawings_of(rng: np.random.Generator, size: int, n_resamples: int) -> Iterator[npt.NDArray[np.int64]]:
    """Draw units with replacement: blocks of (drawings, size) positions."""
    for block in block_sizes(n_resamples, size):
        yield rng.integers(0, size, size=(block, size))


def values_of_copies(
    metric: Metric, labels: Doubles, scores: Doubles, weights: Doubles | None, drawn: npt.NDArray[np.int64]
) -> Doubles:
    """Return the metric of each of (drawings, size) rows that were drawn; NaN where it is undefined."""
    drawings, size = drawn.shape
    queries = Queries(np.repeat(np.arange(drawings), size), np.arange(drawings))
    rows = drawn.ravel()
    share = None if weights is None else weights[rows]
    try:
        return metric.prepare(labels[rows], queries, sample_weight=share).per_query(scores[rows]).values
    except InvalidInputError:  # undefined in every drawing of a block
        return np.full(drawings, np.nan)


def quantiles(drawn: Doubles, low: float, high: float) -> tuple[float, float]:
    """Return two quantiles of the drawn values; NaN if there are no values."""
    if drawn.size == 0:
        return float("nan"), float("nan")
    found = np.quantile(drawn, [low, high])
    return float(found[0]), float(found[1])


def mean_over_pairs(
    values: ArrayLike, pairs: Ints, weight: Doubles | None = None, *, level: float = 0.95
) -> Interval:
    """Return a (weighted) mean over pairs with an interval that accounts for pairs that share items."""
    mean, error, freedom = estimate_over_pairs(check_numbers("values", values, len(pairs)), pairs, weight)
    reach = float(scipy.stats.t.ppf((1 + level) / 2, freedom)) * error if freedom > 0 else np.nan
    return Interval(mean, mean - reach, mean + reach, level, len(pairs), "pairs")


def estimate_over_pairs(values: Doubles, pairs: Ints, weight: Doubles | None) -> tuple[float, float, int]:
    """Return the mean, its standard error, and the degrees of freedom: items less one."""
    share = np.ones(values.size) if weight is None else weight
    mean = float(np.average(values, weights=share))
    residuals = share * (values - mean)
    error = np.sqrt(variance_over_pairs(residuals, pairs)) / float(share.sum())
    return mean, float(error), int(np.unique(pairs).size) - 1


def variance_over_pairs(residuals: Doubles, pairs: Ints) -> float:
    """Return the variance of a sum over pairs, from the residual of each pair.

    The sum over every two pairs that share an item equals the squared sums over items, minus the squared sums over
    pairs of the same two items, which would count twice.
    """
    items = np.zeros(int(pairs.max(initial=0)) + 1)
    np.add.at(items, pairs[:, 0], residuals)
    np.add.at(items, pairs[:, 1], residuals)
    dyads = np.unique(np.sort(pairs, axis=1), axis=0, return_inverse=True)[1].reshape(-1)
    same = np.bincount(dyads, weights=residuals)
    # Never less than as if the couples of items were independent: with few items the estimate may fall below zero.
    return float(max(np.sum(items**2) - np.sum(same**2), np.sum(same**2)))


@dataclass(frozen=True)
class AucEstimate:
    """The AUC of one or several score columns over the same rows, with their covariance.

    Attributes
    ----------
    auc : (columns,) float64
    covariance : (columns, columns) float64
    n_above, n_below : int
        The rows of the larger and of the smaller label.

    Examples
    --------
    >>> from rankwise.metrics import auc_estimate
    >>> estimate = auc_estimate([1, 1, 0, 0], [0.9, 0.4, 0.5, 0.1])
    >>> estimate.auc.tolist(), estimate.covariance.shape
    ([0.75], (1, 1))
    """

    auc: Doubles
    covariance: Doubles
    n_above: int
    n_below: int

    def interval(self, level: float = 0.95) -> Doubles:
        """Return the score intervals of Newcombe (2006, method 5), (columns, 2).

        The variance is never smaller than DeLong's. With fewer than ten rows of either label it is NaN,
        with a warning.
        """
        check_level(level)
        if min(self.n_above, self.n_below) < _FEWEST:
            warnings.warn(
                f"The AUC has no interval: there are {self.n_above} rows of the larger label and {self.n_below} of the "
                f"smaller one. Hint: pass y_true with at least {_FEWEST} rows of each.",
                UserWarning,
                stacklevel=2,
            )
            return np.full((self.auc.size, 2), np.nan)
        quantile = scipy.stats.norm.ppf((1 + level) / 2)
        rest = (self.n_above + self.n_below) / 2 - 1

        def limits(auc: float, variance: float) -> tuple[float, float]:
            least = variance / (auc * (1 - auc)) if 0 < auc < 1 else 0.0

            def squared_reach(mean: float) -> float:
                newcombe = (1 + rest * ((1 - mean) / (2 - mean) + mean / (1 + mean))) / (
                    self.n_above * self.n_below
                )
                return float(quantile**2 * mean * (1 - mean) * max(newcombe, least))

            return _score_limits(auc, squared_reach)

        variances = np.diagonal(self.covariance)
        return np.array([limits(*own) for own in zip(self.auc.tolist(), variances.tolist(), strict=True)])

    def p_value(self, first: int = 0, second: int = 1) -> float:
        """Return the two-sided p-value of the hypothesis that two columns have the same AUC."""
        difference = float(self.auc[first] - self.auc[second])
        C = self.covariance
        variance = float(C[first, first] + C[second, second] - 2 * C[first, second])
        if variance <= 0:
            return 1.0 if difference == 0 else 0.0
        return float(2 * scipy.stats.norm.sf(abs(difference) / np.sqrt(variance)))


def auc_estimate(y_true: ArrayLike, scores: ArrayLike) -> AucEstimate:
    """AUC with DeLong's covariance, in O(m log m) a column.

    Parameters
    ----------
    y_true : (rows,) numbers
        Two different values; the larger marks the rows that should be above.
    scores : (rows,) or (rows, columns) numbers
        The predictions of one model or several; larger is better. A tie counts one half.

    Returns
    -------
    AucEstimate

    Examples
    --------
    >>> import numpy as np
    >>> from rankwise.metrics import auc_estimate
    >>> y = np.repeat([0, 1], 50)
    >>> scores = np.random.default_rng(0).normal(size=(100, 2)) + np.outer(y, [1.0, 2.0])
    >>> estimate = auc_estimate(y, scores)
    >>> estimate.interval().shape, bool(estimate.p_value() < 0.05)
    ((2, 2), True)
    """
    labels = check_numbers("y_true", y_true)
    table = as_array("scores", scores)
    if table.ndim not in {1, 2} or table.size == 0:
        raise InvalidInputError(f"scores has shape {table.shape}.", "pass one column of scores, or several.")
    table = table[:, np.newaxis] if table.ndim == 1 else table
    columns = np.column_stack([check_numbers("scores", column, labels.size) for column in table.T])
    levels = np.unique(labels)
    if levels.size > 2:
        raise InvalidInputError(
            f"auc needs two levels, and y_true has {levels.size}.", "pass y_true >= 1, for example."
        )
    if levels.size < 2:
        raise NoPairsError("y_true has a single level, so there is nothing to rank.", "pass rows of both.")
    above = _placements(columns, labels == levels[1])
    below = 1.0 - _placements(columns, labels == levels[0])
    covariance = _covariance(above) + _covariance(below)
    return AucEstimate(above.mean(axis=0), covariance, len(above), len(below))


def _placements(columns: Doubles, chosen: npt.NDArray[np.bool_]) -> Doubles:
    """Return for each chosen row the share of the other rows that score less, ties counting one half."""
    # Mid-ranks among all rows, less those among the chosen ones: only the others are left.
    less = scipy.stats.rankdata(columns, axis=0)[chosen] - scipy.stats.rankdata(columns[chosen], axis=0)
    return np.asarray(less / (~chosen).sum())


def _covariance(placements: Doubles) -> Doubles:
    """Return the covariance of the mean; that of a single row is unknown and counts 0."""
    centred = placements - placements.mean(axis=0)
    n_rows = placements.shape[0]
    return np.asarray(centred.T @ centred / (n_rows * max(1, n_rows - 1)))
