"""Metrics that count pairs of rows of a query: pairwise error, concordance, AUC and Kendall's tau.

Only pairs whose labels differ count. With row weights s a pair weighs s_i s_j, so that a weight of 2 equals
writing the row twice, and a weight of 0 equals leaving it out. Queries without a pair do not count.
"""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Real
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from rankwise.arrays import ArrayLike
from rankwise.data.arguments import check_real
from rankwise.data.validation import check_choice
from rankwise.exceptions import InvalidInputError
from rankwise.metrics.metric import Doubles, Evaluator, Grouping, Metric
from rankwise.metrics.pair_counts import LabelPairs, OrderEvaluator, TauEvaluator

if TYPE_CHECKING:
    from rankwise.data.queries import Queries

__all__ = [
    "Auc",
    "Concordance",
    "KendallTau",
    "PairwiseError",
    "auc",
    "check_tie_cost",
    "concordance",
    "kendall_tau",
    "pairwise_error",
]

_AVERAGES = {"queries": "mean over queries with a pair", "pooled": "over the pairs of all queries together"}


@dataclass(frozen=True, kw_only=True)
class _PairMetric(Metric):
    takes_weights: ClassVar[bool] = True
    needs_two_levels: ClassVar[bool] = True


@dataclass(frozen=True, kw_only=True)
class _OrderMetric(_PairMetric):
    ties: float = 0.5
    average: str = "queries"

    def __post_init__(self) -> None:
        check_tie_cost(self.ties)
        check_choice("average", self.average, _AVERAGES)

    def _tail(self) -> str:
        tie = 1 - self.ties if self.greater_is_better else self.ties
        return f"a tie in the scores counts {tie:g}; {_AVERAGES[self.average]}"

    def _prepare(
        self, labels: Doubles, queries: Queries, weights: Doubles | None, n_threads: int
    ) -> Evaluator:
        return OrderEvaluator(
            LabelPairs(labels, queries, weights, n_threads),
            queries,
            n_threads,
            tie_cost=float(self.ties),
            rightly=self.greater_is_better,
            pooled=self.average == "pooled",
        )


@dataclass(frozen=True, kw_only=True)
class PairwiseError(_OrderMetric):
    """The share of pairs in the wrong order; see `pairwise_error`."""

    base_name: ClassVar[str] = "pairwise_error"
    greater_is_better: ClassVar[bool] = False

    def describe(self) -> str:
        """Return the convention in words."""
        what = "share of the pairs with different labels that the scores order wrongly"
        return f"pairwise error: {what}; {self._tail()}"


@dataclass(frozen=True, kw_only=True)
class Concordance(_OrderMetric):
    """One minus the pairwise error; see `concordance`."""

    base_name: ClassVar[str] = "concordance"

    def describe(self) -> str:
        """Return the convention in words."""
        what = "share of the pairs with different labels that the scores order rightly"
        return f"concordance: {what}; {self._tail()}"


@dataclass(frozen=True, kw_only=True)
class Auc(_OrderMetric):
    """The concordance of relevant with other rows; see `auc`."""

    base_name: ClassVar[str] = "auc"

    relevant: float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.relevant is not None:
            check_real("relevant", self.relevant, "pass the smallest label that is relevant")

    def describe(self) -> str:
        """Return the convention in words."""
        which = (
            "rows with the larger label" if self.relevant is None else f"rows with label >= {self.relevant:g}"
        )
        what = f"probability that one of the {which} scores above one of the others of its query"
        return f"AUC: {what}; {self._tail()}"

    def _prepare(
        self, labels: Doubles, queries: Queries, weights: Doubles | None, n_threads: int
    ) -> Evaluator:
        if self.relevant is not None:
            labels = (labels >= self.relevant).astype(np.float64)
        elif ((labels != labels.min()) & (labels != labels.max())).any():
            raise InvalidInputError(
                "has more than two levels, and auc needs two.",
                "pass relevant=1 to call every label of at least 1 relevant, or use concordance.",
                about="y_true",
            )
        return super()._prepare(labels, queries, weights, n_threads)


@dataclass(frozen=True, kw_only=True)
class KendallTau(_PairMetric):
    """Kendall's tau-b inside queries; see `kendall_tau`."""

    base_name: ClassVar[str] = "kendall_tau"
    bounds: ClassVar[tuple[float, float]] = (-1.0, 1.0)

    def describe(self) -> str:
        """Return the convention in words."""
        return (
            "Kendall tau-b of labels and scores (ties in either corrected for, as scipy.stats.kendalltau); "
            "0 where all scores of a query are equal; mean over queries with a pair"
        )

    def _prepare(
        self, labels: Doubles, queries: Queries, weights: Doubles | None, n_threads: int
    ) -> Evaluator:
        return TauEvaluator(LabelPairs(labels, queries, weights, n_threads), queries, n_threads)


def check_tie_cost(ties: object) -> None:
    """Raise unless `ties` is a cost that some paper gives to a tie."""
    if not isinstance(ties, Real) or ties not in (0, 0.5, 1):
        raise InvalidInputError(
            f"ties={ties!r} is not an option.", "a tie in the scores counts as 0.5 of an error, as 1 or as 0."
        )


def pairwise_error(
    y_true: ArrayLike,
    scores: ArrayLike,
    qid: Grouping = None,
    *,
    ties: float = 0.5,
    average: str = "queries",
    sample_weight: ArrayLike | None = None,
) -> float:
    """Share of the pairs with different labels that the scores put in the wrong order.

    Parameters
    ----------
    y_true : (rows,) numbers
        The labels; any real numbers.
    scores : (rows,) numbers
        The predictions; larger is better.
    qid : (rows,) ids, optional
        The query of each row, in any order; without it all rows form one query.
    ties : {0.5, 1, 0}
        What a pair costs whose scores are equal.
    average : {"queries", "pooled"}
        Mean over the queries that have a pair, or over the pairs of all queries together.
    sample_weight : (rows,) numbers, optional
        Row weights; a pair weighs the product of the weights of its rows.

    Returns
    -------
    float
        Between 0 (every pair in order) and 1; 0.5 for constant scores.

    Examples
    --------
    >>> from rankwise.metrics import pairwise_error
    >>> pairwise_error([2, 1, 0, 1, 0], [0.9, 0.1, 0.4, 0.3, 0.3], ["a", "a", "a", "b", "b"])
    0.41666666666666663
    """
    return PairwiseError(ties=ties, average=average)(y_true, scores, qid, sample_weight=sample_weight)


def concordance(
    y_true: ArrayLike,
    scores: ArrayLike,
    qid: Grouping = None,
    *,
    ties: float = 0.5,
    average: str = "queries",
    sample_weight: ArrayLike | None = None,
) -> float:
    """Share of the pairs with different labels that the scores put in the right order.

    One minus `pairwise_error`, with the same parameters: `ties` is what a tie costs.

    Examples
    --------
    >>> from rankwise.metrics import concordance
    >>> concordance([3.5, 2.0, 1.0], [10, 30, 5])
    0.6666666666666666
    """
    return Concordance(ties=ties, average=average)(y_true, scores, qid, sample_weight=sample_weight)


def auc(
    y_true: ArrayLike,
    scores: ArrayLike,
    qid: Grouping = None,
    *,
    relevant: float | None = None,
    average: str = "queries",
    sample_weight: ArrayLike | None = None,
) -> float:
    """Area under the ROC curve inside queries: the concordance of relevant and other rows.

    Parameters
    ----------
    y_true : (rows,) numbers
        Labels of two levels, or any labels together with `relevant`.
    scores, qid, average, sample_weight
        As for `pairwise_error`; a tie in the scores counts one half.
    relevant : float, optional
        Rows with at least this label are relevant.

    Examples
    --------
    >>> from rankwise.metrics import auc
    >>> auc([0, 1, 0, 1], [0.1, 0.4, 0.35, 0.3])
    0.75
    """
    return Auc(relevant=relevant, average=average)(y_true, scores, qid, sample_weight=sample_weight)


def kendall_tau(
    y_true: ArrayLike,
    scores: ArrayLike,
    qid: Grouping = None,
    *,
    sample_weight: ArrayLike | None = None,
) -> float:
    """Kendall's tau-b of labels and scores, mean over queries.

    Equals `scipy.stats.kendalltau` on each query. Queries whose labels are all equal do not count; where
    only the scores are all equal the query counts 0, so that a constant model scores 0 and not NaN.

    Examples
    --------
    >>> from rankwise.metrics import kendall_tau
    >>> kendall_tau([1, 2, 3, 1, 2], [10, 20, 30, 2, 1], [7, 7, 7, 8, 8])
    0.0
    """
    return KendallTau()(y_true, scores, qid, sample_weight=sample_weight)
