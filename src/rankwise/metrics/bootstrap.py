"""Bootstrap intervals: how sure a figure is.

The unit that is drawn is the query, because queries are what is sampled in practice and rows of a query depend on
each other. Where there is one ranking, rows are drawn instead.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import scipy.special

from rankwise.arrays import ArrayLike, RandomSource
from rankwise.data.arguments import check_level
from rankwise.data.containers import check_total
from rankwise.data.queries import Queries
from rankwise.data.validation import check_count, check_numbers, check_qid, check_weights, read_seed
from rankwise.deprecation import former_order
from rankwise.exceptions import InvalidInputError
from rankwise.metrics.metric import Doubles, Grouping, Metric, order_free_sum
from rankwise.metrics.table import get_metric, is_metric_first

__all__ = [
    "Interval",
    "block_sizes",
    "bootstrap_interval",
    "bootstrap_mean",
    "check_draws",
    "drawings_of",
    "quantiles",
    "read_labels",
    "values_of_copies",
]

_BLOCK = 1_000_000  # numbers that are drawn at a time


@dataclass(frozen=True)
class Interval:
    """A figure and its bootstrap confidence interval.

    Attributes
    ----------
    value : float
    low, high : float
        NaN where a single unit leaves nothing to draw from.
    level : float
        The confidence.
    n : int
        How many units were drawn from.
    unit : str
        What was drawn: "queries", "rows" or "pairs".

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


@former_order(
    ("metric", "y_true", "scores", "qid"), is_metric_first, "bootstrap_interval(y, scores, qid, metric=...)"
)
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
    """Return a metric with its bootstrap confidence interval.

    Queries are drawn with replacement, and the interval is bias-corrected and accelerated (Efron 1987). Where one
    query counts, its rows are drawn, and the interval has the percentiles of the metric of the drawn rows.

    Parameters
    ----------
    y_true, scores, qid, sample_weight
        As for the metric's function; a row keeps its weight whenever it is drawn.
    metric : str or Metric
        As for `get_metric`.
    level : float, default=0.95
    n_resamples : int, default=2000
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
    if values.size > 1:
        return bootstrap_mean(
            values, evaluator.shares, level=level, n_resamples=n_resamples, random_state=random_state
        )
    rows = np.flatnonzero(queries.codes == np.flatnonzero(result.counted)[0])
    check_draws(level, n_resamples)
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
    level: float = 0.95,
    n_resamples: int = 2000,
    random_state: RandomSource = 0,
    unit: str = "queries",
) -> Interval:
    """Return a (weighted) mean with its bootstrap confidence interval, bias-corrected and accelerated.

    Parameters
    ----------
    values : (units,) numbers
    weight : (units,) numbers, optional
        A unit keeps its weight whenever it is drawn; one of weight 0 is left out.
    level, n_resamples, random_state
        As for `bootstrap_interval`.
    unit : str, default="queries"
        What the values belong to; it is only passed on.

    Examples
    --------
    >>> from rankwise.metrics import bootstrap_mean
    >>> bootstrap_mean([0.5, 0.5, 0.5]).high
    0.5
    """
    check_draws(level, n_resamples)
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
    column, share = column[share > 0], share[share > 0]  # a drawing of nothing else would have no mean
    # As metrics are summed: the figure is that of the metric, to the bit.
    estimate = float(order_free_sum(column * share) / order_free_sum(share))
    if column.size == 1:
        return Interval(estimate, np.nan, np.nan, level, 1, unit)
    influence = share * (column - estimate)
    spread = float((influence**2).sum())
    if spread <= column.size * (np.finfo(float).eps * np.abs(column).max(initial=0.0)) ** 2:
        return Interval(estimate, estimate, estimate, level, int(column.size), unit)
    rng = np.random.default_rng(read_seed(random_state))
    weighted = share * column
    drawn = np.concatenate(
        [
            weighted[index].sum(axis=1) / share[index].sum(axis=1)
            for index in drawings_of(rng, column.size, n_resamples)
        ]
    )
    # Efron (1987), equations 3.8 and 6.6: the bias from the median, the acceleration from the third moment.
    tail = np.clip(np.mean(drawn < estimate) + np.mean(drawn == estimate) / 2, 1e-9, 1 - 1e-9)
    bias = scipy.special.ndtri(tail)
    acceleration = float((influence**3).sum()) / (6 * spread**1.5)
    normal = scipy.special.ndtri(np.array([(1 - level) / 2, (1 + level) / 2]))
    shifted = scipy.special.ndtr(bias + (bias + normal) / (1 - acceleration * (bias + normal)))
    low, high = quantiles(drawn, *shifted)
    return Interval(estimate, low, high, level, int(column.size), unit)


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
