"""What every metric offers: a name, its convention in words, and evaluators that remember the labels.

A metric is a small frozen object whose fields are its options. Everything that depends on the labels alone
(grouping, levels, gains, the best possible value, which queries count) is done once by `Metric.prepare`;
the `Evaluator` it returns only looks at scores.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from rankwise.arrays import AnyArray, ArrayLike
from rankwise.data.containers import as_array
from rankwise.data.queries import Queries
from rankwise.data.validation import check_numbers, check_qid, check_weights
from rankwise.exceptions import InvalidInputError
from rankwise.runtime.threads import default_threads

__all__ = ["Doubles", "Evaluator", "Metric", "PerQuery", "order_free_sum"]

Grouping = Queries | ArrayLike | None  # the query of each row, encoded or as a caller passes it
Doubles = npt.NDArray[np.float64]

# Starting threads costs what sorting some thousand rows costs.
_ROWS_A_THREAD = 8_000


def order_free_sum(values: Doubles) -> Doubles:
    """Sum over the last axis, to the same bits in any order.

    Which of two models is better must not be decided by the order of queries, and equally good ones are to be equal.
    So the leading digits are added as whole multiples of one unit, which no addition rounds; what is left over is too
    small for its rounding to show.
    """
    largest = max(float(values.max(initial=0.0)), -float(values.min(initial=0.0)))
    if largest == 0.0:
        return np.zeros(values.shape[:-1])
    unit = math.frexp(largest)[1] + math.frexp(values.shape[-1])[1] - 52
    # Adding a number that has no digits below the unit rounds to the unit.
    anchor = math.ldexp(1.5, min(max(unit, -1074) + 52, 1023))
    leading = values + anchor
    leading -= anchor
    total = leading.sum(axis=-1)
    np.subtract(values, leading, out=leading)
    return np.asarray(total + leading.sum(axis=-1))


@dataclass(frozen=True)
class PerQuery:
    """A metric, query by query.

    Attributes
    ----------
    ids : (queries,) array
        The caller's query ids.
    values : (queries,) float64
        The metric of each query; NaN where the metric is undefined and the query therefore does not count.
    counted : (queries,) bool
        Whether the query enters the mean.

    Examples
    --------
    >>> from rankwise.metrics import per_query
    >>> found = per_query([0, 1, 0, 1, 1], [1, 2, 2, 1, 0], ["a", "a", "b", "b", "c"], metric="pairwise_error")
    >>> found.ids.tolist(), found.values.tolist(), found.counted.tolist()
    (['a', 'b', 'c'], [0.0, 1.0, nan], [True, True, False])
    """

    ids: AnyArray
    values: Doubles
    counted: npt.NDArray[np.bool_]

    def __len__(self) -> int:
        return int(self.ids.shape[0])

    def mean(self) -> float:
        """Return the mean over the queries that count."""
        values = self.values[self.counted]
        return float(order_free_sum(values) / values.size)


class Evaluator(ABC):
    """A metric with its labels prepared: call it with scores, as often as you like.

    Parameters
    ----------
    queries : Queries
        The queries of the rows.
    counted : (queries,) bool
        Which queries the metric is defined for.
    shares : (queries,) float64, optional
        The weights of the queries in the mean; equal if not given.
    n_threads : int
        Threads to use at most.

    Examples
    --------
    >>> import numpy as np
    >>> from rankwise.metrics import get_metric
    >>> error = get_metric("pairwise_error").prepare([0, 1, 2], None)
    >>> [error.evaluate(np.array(scores)) for scores in ([1.0, 2.0, 3.0], [3.0, 2.0, 1.0])]
    [0.0, 1.0]
    """

    def __init__(
        self, queries: Queries, counted: npt.NDArray[np.bool_], n_threads: int, shares: Doubles | None = None
    ) -> None:
        self.queries = queries
        self.counted = counted
        self.n_threads = n_threads
        self._shares = None if shares is None else shares[counted]

    @property
    def shares(self) -> Doubles:
        """What each query that counts weighs in the mean."""
        return np.ones(int(self.counted.sum())) if self._shares is None else self._shares

    def __call__(self, scores: ArrayLike) -> float:
        """Return the metric of one score per row."""
        return self.evaluate(check_numbers("scores", scores, self.queries.n_rows))

    def evaluate(self, column: Doubles) -> float:
        """Return the metric of scores that were already validated."""
        return float(self._means(column[:, np.newaxis])[0])

    def many(self, scores: ArrayLike) -> Doubles:
        """Return the metric of each column of a (rows, columns) matrix of scores."""
        block = scores if type(scores) is np.ndarray else as_array("scores", scores)
        if block.dtype.kind not in "biuf":
            raise InvalidInputError(f"scores are {block.dtype}.", "pass a matrix of real numbers.")
        block = block.astype(np.float64, copy=False)
        if block.ndim != 2 or block.shape[0] != self.queries.n_rows:
            raise InvalidInputError(
                f"scores must have shape ({self.queries.n_rows}, columns), got {block.shape}.",
                "pass one column per model; for a single one call the evaluator itself.",
            )
        if not np.isfinite(block).all():
            raise InvalidInputError(
                "scores contain NaN or infinity.", "look for the column that diverged and leave it out."
            )
        return self._means(block)

    def per_query(self, scores: ArrayLike) -> PerQuery:
        """Return the metric of one score per row, query by query."""
        column = check_numbers("scores", scores, self.queries.n_rows)
        values = np.where(self.counted, self._values(column[:, np.newaxis])[0], np.nan)
        return PerQuery(self.queries.ids, values, self.counted)

    def _means(self, block: Doubles) -> Doubles:
        if block.shape[1] == 0:
            return np.empty(0)
        values = self._values(block)
        if not self.counted.all():
            values = values[:, self.counted]
        if self._shares is None:
            return np.asarray(order_free_sum(values) / values.shape[1])
        return np.asarray(order_free_sum(values * self._shares) / order_free_sum(self._shares))

    def _threads(self, block: Doubles) -> int:
        return max(1, min(self.n_threads, block.size // _ROWS_A_THREAD))

    @abstractmethod
    def _values(self, block: Doubles) -> Doubles:
        """Return the (columns, queries) values; those of queries that do not count are arbitrary."""


@dataclass(frozen=True, kw_only=True)
class Metric(ABC):
    """A metric and its options.

    Attributes
    ----------
    base_name : str
        Its name in the table `METRICS`, without a cutoff.
    greater_is_better : bool
        Whether a good ranking has a large value.
    takes_weights : bool
        Whether `sample_weight` means something to it.
    needs_two_levels : bool
        Whether only queries with two different labels count.
    bounds : (float, float)
        The smallest and the largest possible value.

    Examples
    --------
    >>> from rankwise.metrics import get_metric
    >>> metric = get_metric("ndcg@2")
    >>> metric.greater_is_better, metric([0, 1, 2], [0.1, 0.2, 0.3])
    (True, 1.0)
    """

    base_name: ClassVar[str]
    greater_is_better: ClassVar[bool] = True
    takes_weights: ClassVar[bool] = False
    needs_two_levels: ClassVar[bool] = False
    bounds: ClassVar[tuple[float, float]] = (0.0, 1.0)

    @property
    def name(self) -> str:
        """The name under which `get_metric` finds it, with its cutoff, such as ``"ndcg@10"``."""
        k = getattr(self, "k", None)
        return self.base_name if k is None else f"{self.base_name}@{k}"

    @abstractmethod
    def describe(self) -> str:
        """Return the convention in words; a figure is never printed without it."""

    def settled(self, labels: Doubles) -> Metric:
        """Return the metric with whatever it would take from all labels, so that it is the same on some of the rows."""
        return self

    def __call__(
        self,
        y_true: ArrayLike,
        scores: ArrayLike,
        qid: Grouping = None,
        *,
        sample_weight: ArrayLike | None = None,
    ) -> float:
        """Return the metric of one score per row."""
        labels = check_numbers("y_true", y_true)
        column = check_numbers("scores", scores, labels.shape[0])
        return self.prepare(labels, qid, sample_weight=sample_weight).evaluate(column)

    def prepare(
        self,
        y_true: ArrayLike,
        queries: Grouping = None,
        *,
        sample_weight: ArrayLike | None = None,
        n_threads: int | None = None,
    ) -> Evaluator:
        """Do everything that depends on the labels alone.

        Parameters
        ----------
        y_true : (rows,) numbers
            The labels.
        queries : (rows,) ids, Queries or None
            The query of each row, encoded or not; None means that all rows form one query.
        sample_weight : (rows,) numbers, optional
            Weights of the rows; only for metrics that count pairs.
        n_threads : int, optional
            Threads to use at most; the CPUs of this process by default.

        Returns
        -------
        Evaluator
            Call it with scores.
        """
        labels = check_numbers("y_true", y_true)
        if labels.shape[0] == 0:
            raise InvalidInputError("is empty.", "a ranking needs at least one row.", about="y_true")
        if not isinstance(queries, Queries):
            queries = check_qid(queries, labels.shape[0])
        elif queries.n_rows != labels.shape[0]:
            raise InvalidInputError(
                f"the queries have {queries.n_rows} rows, but y_true has {labels.shape[0]}.",
                "encode the query ids of the same rows.",
            )
        weights = check_weights(sample_weight, labels.shape[0])
        if weights is not None and not self.takes_weights:
            raise InvalidInputError(
                f"{self.name} does not take sample_weight.",
                "leave it out, or use pairwise_error, concordance, auc or kendall_tau, which count pairs.",
            )
        return self._prepare(labels, queries, weights, default_threads() if n_threads is None else n_threads)

    @abstractmethod
    def _prepare(
        self, labels: Doubles, queries: Queries, weights: Doubles | None, n_threads: int
    ) -> Evaluator:
        """Prepare validated labels."""
