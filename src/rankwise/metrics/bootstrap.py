"""Confidence intervals of metrics.

The unit is the query, because queries are sampled in practice and the rows of a query depend on each other. Where
there is one ranking, its rows are drawn by the bootstrap instead.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import scipy.optimize
import scipy.stats

from rankwise.arrays import ArrayLike, RandomSource
from rankwise.data.arguments import check_level
from rankwise.data.containers import check_total
from rankwise.data.queries import Queries
from rankwise.data.validation import check_count, check_numbers, check_qid, check_weights, read_seed
from rankwise.exceptions import InvalidInputError
from rankwise.metrics.metric import Doubles, Grouping, Metric, order_free_sum
from rankwise.metrics.table import get_metric

__all__ = [
    "Interval",
    "block_sizes",
    "bootstrap_interval",
    "bootstrap_mean",
    "check_draws",
    "drawings_of",
    "quantiles",
    "read_labels",
    "score_limits",
    "values_of_copies",
]

_BLOCK = 1_000_000  # numbers that are drawn at a time
# The variance of a metric falls as its mean nears a bound, by a power between 1 (the binomial distribution) and 2 (the
# gamma distribution). Coverage of NDCG@10 at 5 queries in benchmarks/bench_intervals.py: 0.906, 0.933 and 0.947 at
# powers 1, 1.5 and 2, of which 2 has the longest intervals.
_POWER = 1.5


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
        Seeds the drawings; None draws others in every call.

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
        What the values belong to; it is only passed on.

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
    for name, numbers in (("values", column), ("weight", share)):
        check_total(name, float(np.abs(numbers).max()), "use numbers around 1.")
    if bounds is not None:
        low, high = check_numbers("bounds", bounds, 2).tolist()
        width = high - low
        inside = low - 1e-9 * width <= column.min() <= column.max() <= high + 1e-9 * width
        if not (inside and 0 < width < np.inf):
            raise InvalidInputError(
                f"bounds={bounds!r} do not enclose the values.", "pass bounds=(smallest, largest)."
            )
    column, share = column[share > 0], share[share > 0]
    # As metrics are summed: the figure is that of the metric, to the bit.
    estimate = float(order_free_sum(column * share) / order_free_sum(share))
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
    left, right = score_limits(place, lambda mean: factor * (mean * (1 - mean)) ** power)
    return Interval(
        estimate, min(low + width * left, estimate), max(low + width * right, estimate), level, n, unit
    )


def score_limits(estimate: float, variance: Callable[[float], float]) -> tuple[float, float]:
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


def read_labels(y_true: ArrayLike, qid: Grouping) -> tuple[Doubles, Queries]:
    """Pass labels and query ids through validation; encoded ids as they are."""
    labels = check_numbers("y_true", y_true)
    return labels, qid if isinstance(qid, Queries) else check_qid(qid, labels.size)


def check_draws(level: float, n_resamples: int) -> None:
    """Check what says how to draw."""
    check_level(level)
    check_count("n_resamples", n_resamples, optional=False)


def block_sizes(n_resamples: int, size: int) -> Iterator[int]:
    """Divide drawings of so many units each into blocks that fit in memory."""
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
    """Return two quantiles of what was drawn; NaN where nothing was."""
    if drawn.size == 0:
        return float("nan"), float("nan")
    found = np.quantile(drawn, [low, high])
    return float(found[0]), float(found[1])
