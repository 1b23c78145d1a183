"""Metrics of graded labels: NDCG, the MeanNDCG of LETOR 4, and the expected reciprocal rank."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from rankwise import _core
from rankwise.arrays import ArrayLike
from rankwise.data.arguments import check_real
from rankwise.data.validation import check_choice
from rankwise.exceptions import InvalidInputError
from rankwise.metrics.metric import Grouping
from rankwise.metrics.top import TopEvaluator, TopMetric

if TYPE_CHECKING:
    from rankwise.data.queries import Queries
    from rankwise.metrics.metric import Doubles, Evaluator

__all__ = ["Err", "MeanNdcg", "Ndcg", "err", "mean_ndcg", "ndcg"]

_GAINS = {"exp": "gain 2^y - 1", "linear": "gain y"}
_DISCOUNTS = {
    "log2": "discount 1/log2(1 + position)",
    "letor": "positions 1 and 2 undiscounted, then 1/log2(position)",
}


def _gains(labels: Doubles, gain: str) -> Doubles:
    if (labels < 0).any():
        raise InvalidInputError(
            f"holds negative labels (smallest {labels.min():g}), whose gain would be negative.",
            "shift the labels so that the smallest is 0, or use pairwise_error, which takes any labels.",
            about="y_true",
        )
    if gain == "linear":
        return labels.copy()  # the caller may write to the labels while an evaluator lives
    if labels.max() > 1000:
        raise InvalidInputError(
            f"goes up to {labels.max():g}, and 2^y overflows.",
            "rescale the labels; ndcg and mean_ndcg also take gain='linear'.",
            about="y_true",
        )
    return np.exp2(labels) - 1.0


def _discount_sums(discount: str, n: int) -> Doubles:
    """Return the sums of the discounts of the first 0, 1, ..., n positions."""
    position = np.arange(1.0, n + 1.0)
    discounts = 1.0 / np.log2(1.0 + position if discount == "log2" else np.maximum(position, 2.0))
    return np.concatenate(([0.0], np.cumsum(discounts)))


@dataclass(frozen=True, kw_only=True)
class Ndcg(TopMetric):
    """Discounted gain over the best possible one; see `ndcg`."""

    base_name: ClassVar[str] = "ndcg"

    gain: str = "exp"
    discount: str = "log2"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice("gain", self.gain, _GAINS)
        check_choice("discount", self.discount, _DISCOUNTS)

    def describe(self) -> str:
        """Return the convention in words."""
        short = (
            ""
            if self.convention is None or self.k is None
            else f"lists of fewer than {self.k} rows score 0; "
        )
        return (
            f"{self._title('NDCG')}: {_GAINS[self.gain]}; {_DISCOUNTS[self.discount]}; {short}{self._tail()}"
        )

    def _prepare(
        self, labels: Doubles, queries: Queries, weights: Doubles | None, n_threads: int
    ) -> Evaluator:
        gains = _gains(queries.group(labels), self.gain)
        longest = int(queries.sizes.max())
        discount_sums = _discount_sums(self.discount, longest)
        ideal = np.empty(len(queries))
        cutoff = longest if self.k is None else min(self.k, longest)
        _core.best_gains(queries.order, queries.offsets, gains, discount_sums, cutoff, ideal, n_threads)
        return TopEvaluator(
            self,
            _core.discounted_gain,
            gains,
            ideal,
            relevant=ideal > 0,
            queries=queries,
            n_threads=n_threads,
            discount_sums=discount_sums,
            zeroed=None if self.convention is None else self._shorter_than_k(queries),
        )


@dataclass(frozen=True, kw_only=True)
class MeanNdcg(Ndcg):
    """The mean of NDCG at every cutoff; see `mean_ndcg`."""

    base_name: ClassVar[str] = "mean_ndcg"

    convention: str | None = "letor4"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.k is not None:
            raise InvalidInputError("mean_ndcg has no cutoff.", "leave k out, or use ndcg.")

    def describe(self) -> str:
        """Return the convention in words."""
        return (
            f"MeanNDCG: mean of NDCG@1, NDCG@2, ... down to the last row; {_GAINS[self.gain]}; "
            f"{_DISCOUNTS[self.discount]}; {self._tail()}"
        )

    def _prepare(
        self, labels: Doubles, queries: Queries, weights: Doubles | None, n_threads: int
    ) -> Evaluator:
        gains = _gains(queries.group(labels), self.gain)
        return TopEvaluator(
            self,
            _core.mean_normalised_gain,
            gains,
            np.ones(len(queries)),
            relevant=np.add.reduceat(gains, queries.offsets[:-1]) > 0,
            queries=queries,
            n_threads=n_threads,
            discount_sums=_discount_sums(self.discount, int(queries.sizes.max())),
        )


@dataclass(frozen=True, kw_only=True)
class Err(TopMetric):
    """Expected reciprocal rank; see `err`."""

    base_name: ClassVar[str] = "err"

    max_grade: float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.max_grade is not None:
            check_real("max_grade", self.max_grade, "pass the largest grade that the labels can have")

    def describe(self) -> str:
        """Return the convention in words."""
        grade = "the largest label" if self.max_grade is None else f"{self.max_grade:g}"
        stop = f"a row satisfies with probability (2^y - 1) / 2^g, g = {grade}"
        return f"{self._title('ERR')}: {stop}; {self._tail()}"

    def settled(self, labels: Doubles) -> Err:
        """Return the same with the largest of these labels for the largest grade, unless one was given."""
        if self.max_grade is not None or labels.size == 0:
            return self
        return replace(self, max_grade=float(labels.max()))

    def _prepare(
        self, labels: Doubles, queries: Queries, weights: Doubles | None, n_threads: int
    ) -> Evaluator:
        gains = _gains(queries.group(labels), "exp")
        largest = float(labels.max())
        max_grade = largest if self.max_grade is None else float(self.max_grade)
        if largest > max_grade:
            raise InvalidInputError(
                f"goes up to {largest:g}, above max_grade={max_grade:g}.",
                "pass the largest grade that the scale of the labels has.",
                about="y_true",
            )
        values = gains / np.exp2(max_grade)
        return TopEvaluator(
            self,
            _core.expected_reciprocal_rank,
            values,
            np.ones(len(queries)),
            relevant=np.add.reduceat(values, queries.offsets[:-1]) > 0,
            queries=queries,
            n_threads=n_threads,
        )


def ndcg(
    y_true: ArrayLike,
    scores: ArrayLike,
    qid: Grouping = None,
    *,
    k: int | None = None,
    gain: str = "exp",
    discount: str = "log2",
    ties: str = "average",
    empty: str = "skip",
    convention: str | None = None,
) -> float:
    """Normalised discounted cumulative gain, mean over queries.

    Parameters
    ----------
    y_true : (rows,) numbers
        The labels; real numbers, but not negative ones, whose gain would be negative.
    scores : (rows,) numbers
        The predictions; larger is better.
    qid : (rows,) ids, optional
        The query of each row, in any order; without it all rows form one query.
    k : int, optional
        Only the first k positions count; all by default.
    gain : {"exp", "linear"}
        A row gains 2^y - 1, or y as in `sklearn.metrics.ndcg_score`.
    discount : {"log2", "letor"}
        Position i is divided by log2(1 + i); or positions 1 and 2 by 1 and position i >= 3 by log2(i).
    ties : {"average", "stable"}
        Rows with equal scores: the expectation over all their orders, or the order of the rows.
    empty : {"skip", "zero", "one"}
        What a query without a positive gain counts.
    convention : {"letor3", "letor4"}, optional
        The script of a LETOR benchmark; sets `gain`, `discount`, `ties` and `empty`, and queries with fewer
        than k rows score 0.

    Returns
    -------
    float
        Between 0 and 1.

    Examples
    --------
    >>> from rankwise.metrics import ndcg
    >>> round(ndcg([2, 0, 1, 1, 0], [0.1, 0.7, 0.3, 0.2, 0.9], ["a", "a", "a", "b", "b"], k=2), 4)
    0.4023
    """
    metric = Ndcg(k=k, gain=gain, discount=discount, ties=ties, empty=empty, convention=convention)
    return metric(y_true, scores, qid)


def mean_ndcg(
    y_true: ArrayLike, scores: ArrayLike, qid: Grouping = None, *, convention: str | None = "letor4"
) -> float:
    """Mean of NDCG@1, NDCG@2, ... down to the last row of a query, mean over queries.

    The figure that the script of LETOR 4 calls MeanNDCG. With ``convention=None`` it takes the conventions of
    `ndcg` (discount 1/log2(1 + i), ties averaged, queries without a relevant row skipped).

    Examples
    --------
    >>> from rankwise.metrics import mean_ndcg
    >>> mean_ndcg([0, 1, 0], [3.0, 2.0, 1.0])
    0.6666666666666666
    """
    return MeanNdcg(convention=convention)(y_true, scores, qid)


def err(
    y_true: ArrayLike,
    scores: ArrayLike,
    qid: Grouping = None,
    *,
    k: int | None = None,
    max_grade: float | None = None,
    ties: str = "average",
    empty: str = "skip",
) -> float:
    """Reciprocal rank expected of a reader who stops when satisfied (Chapelle et al. 2009).

    A reader goes down the list and is satisfied by a row with probability (2^y - 1) / 2^max_grade; the metric
    is the expectation of one over the position where that happens.

    Parameters
    ----------
    y_true, scores, qid, k, ties, empty
        As for `ndcg`. Averaging a run of n tied rows costs n min(n, k) operations.
    max_grade : float, optional
        The largest grade of the scale. By default the largest label in `y_true`; give it if figures from
        different data are compared.

    Examples
    --------
    >>> from rankwise.metrics import err
    >>> err([0, 2, 1], [3.0, 2.0, 1.0], max_grade=2)
    0.3958333333333333
    """
    return Err(k=k, max_grade=max_grade, ties=ties, empty=empty)(y_true, scores, qid)
