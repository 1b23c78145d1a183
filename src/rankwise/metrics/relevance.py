"""Metrics of relevant and other rows: average precision (MAP), precision and reciprocal rank (MRR)."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from rankwise import _core
from rankwise.arrays import ArrayLike, Bools
from rankwise.data.arguments import check_real
from rankwise.exceptions import InvalidInputError
from rankwise.metrics.metric import Grouping
from rankwise.metrics.top import TopEvaluator, TopMetric, relevance

if TYPE_CHECKING:
    from rankwise.data.queries import Queries
    from rankwise.metrics.metric import Doubles, Evaluator

__all__ = [
    "AveragePrecision",
    "Precision",
    "ReciprocalRank",
    "average_precision",
    "precision",
    "reciprocal_rank",
]


@dataclass(frozen=True, kw_only=True)
class _BinaryMetric(TopMetric):
    """What a query sums over its relevant rows, in `kernel`, over a divisor."""

    kernel: ClassVar[str]  # by name: a class that held it would outlive the compiled module

    relevant: float = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        check_real("relevant", self.relevant, "pass the smallest label that is relevant")

    def _conventions(self) -> str:
        return f"relevant means label >= {self.relevant:g}; {self._tail()}"

    @abstractmethod
    def _divisor(self, n_relevant: Doubles) -> Doubles:
        """Return what the kernel's sum over a query is divided by."""

    def _zeroed(self, queries: Queries) -> Bools | None:
        """Return a mask of the queries that score 0 whatever their order; none by default."""
        return None

    def _prepare(
        self, labels: Doubles, queries: Queries, weights: Doubles | None, n_threads: int
    ) -> Evaluator:
        values, n_relevant = relevance(labels, self.relevant, queries)
        return TopEvaluator(
            self,
            getattr(_core, self.kernel),
            values,
            self._divisor(n_relevant),
            relevant=n_relevant > 0,
            queries=queries,
            n_threads=n_threads,
            zeroed=self._zeroed(queries),
        )


@dataclass(frozen=True, kw_only=True)
class AveragePrecision(_BinaryMetric):
    """Mean precision at the relevant rows; see `average_precision`."""

    base_name: ClassVar[str] = "map"
    kernel: ClassVar[str] = "summed_precision"

    def describe(self) -> str:
        """Return the convention in words."""
        beyond = "" if self.k is None else f"; relevant rows beyond position {self.k} contribute 0"
        return f"{self._title('MAP')}: mean precision at the relevant rows{beyond}; {self._conventions()}"

    def _divisor(self, n_relevant: Doubles) -> Doubles:
        return n_relevant


@dataclass(frozen=True, kw_only=True)
class Precision(_BinaryMetric):
    """Share of relevant rows among the first k; see `precision`."""

    base_name: ClassVar[str] = "precision"
    kernel: ClassVar[str] = "relevant_at_top"

    k: int | None = 10

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.k is None:
            raise InvalidInputError("precision needs a cutoff.", "pass k, for example k=10.")

    def describe(self) -> str:
        """Return the convention in words."""
        short = "score 0" if self.convention == "letor3" else "are filled up with irrelevant ones"
        return (
            f"{self._title('P')}: share of relevant rows among the first {self.k}; "
            f"lists of fewer rows {short}; {self._conventions()}"
        )

    def _divisor(self, n_relevant: Doubles) -> Doubles:
        return np.full(n_relevant.size, float(self.k or 1))

    def _zeroed(self, queries: Queries) -> Bools | None:
        return self._shorter_than_k(queries) if self.convention == "letor3" else None


@dataclass(frozen=True, kw_only=True)
class ReciprocalRank(_BinaryMetric):
    """One over the position of the first relevant row; see `reciprocal_rank`."""

    base_name: ClassVar[str] = "mrr"
    kernel: ClassVar[str] = "reciprocal_rank"

    def describe(self) -> str:
        """Return the convention in words."""
        beyond = "" if self.k is None else f", 0 if that lies beyond position {self.k}"
        return f"{self._title('MRR')}: 1 / position of the first relevant row{beyond}; {self._conventions()}"

    def _divisor(self, n_relevant: Doubles) -> Doubles:
        return np.ones(n_relevant.size)


def average_precision(
    y_true: ArrayLike,
    scores: ArrayLike,
    qid: Grouping = None,
    *,
    relevant: float = 1,
    k: int | None = None,
    ties: str = "average",
    empty: str = "skip",
    convention: str | None = None,
) -> float:
    """Mean average precision: the mean precision at the relevant rows, mean over queries.

    Parameters
    ----------
    y_true : (rows,) numbers
        The labels; any real numbers.
    scores : (rows,) numbers
        The predictions; larger is better.
    qid : (rows,) ids, optional
        The query of each row, in any order; without it all rows form one query.
    relevant : float
        Rows with at least this label are relevant.
    k : int, optional
        Relevant rows beyond this position contribute 0; the sum is still divided by the number of all
        relevant rows, as trec_eval does.
    ties : {"average", "stable"}
        Rows with equal scores: the expectation over all their orders, or the order of the rows.
    empty : {"skip", "zero", "one"}
        What a query without a relevant row counts.
    convention : {"letor3", "letor4"}, optional
        The script of a LETOR benchmark; sets `ties` and `empty`.

    Returns
    -------
    float
        Between 0 and 1.

    Examples
    --------
    >>> from rankwise.metrics import average_precision
    >>> average_precision([1, 0, 2, 0], [4.0, 3.0, 2.0, 1.0])
    0.8333333333333333
    """
    metric = AveragePrecision(relevant=relevant, k=k, ties=ties, empty=empty, convention=convention)
    return metric(y_true, scores, qid)


def precision(
    y_true: ArrayLike,
    scores: ArrayLike,
    qid: Grouping = None,
    *,
    k: int = 10,
    relevant: float = 1,
    ties: str = "average",
    empty: str = "skip",
    convention: str | None = None,
) -> float:
    """Share of relevant rows among the first k, mean over queries.

    A list of fewer than k rows is filled up with irrelevant ones; with ``convention="letor3"`` it scores 0.
    The other parameters are those of `average_precision`.

    Examples
    --------
    >>> from rankwise.metrics import precision
    >>> precision([1, 0, 2, 0], [4.0, 3.0, 2.0, 1.0], k=3)
    0.6666666666666666
    """
    metric = Precision(k=k, relevant=relevant, ties=ties, empty=empty, convention=convention)
    return metric(y_true, scores, qid)


def reciprocal_rank(
    y_true: ArrayLike,
    scores: ArrayLike,
    qid: Grouping = None,
    *,
    relevant: float = 1,
    k: int | None = None,
    ties: str = "average",
    empty: str = "skip",
) -> float:
    """Mean reciprocal rank: one over the position of the first relevant row, mean over queries.

    With `k` a query whose first relevant row lies beyond position k scores 0. The other parameters are those
    of `average_precision`.

    Examples
    --------
    >>> from rankwise.metrics import reciprocal_rank
    >>> reciprocal_rank([0, 0, 1, 1], [4.0, 3.0, 2.0, 1.0])
    0.3333333333333333
    """
    return ReciprocalRank(relevant=relevant, k=k, ties=ties, empty=empty)(y_true, scores, qid)
