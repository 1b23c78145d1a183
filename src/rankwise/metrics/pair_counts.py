"""Counting the pairs that labels order, and what scores do to them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rankwise import _core
from rankwise.exceptions import Change, NoPairsError
from rankwise.metrics.metric import Doubles, Evaluator

if TYPE_CHECKING:
    from rankwise.data.queries import Queries

__all__ = ["LabelPairs", "OrderEvaluator", "TauEvaluator"]


class LabelPairs:
    """The pairs that the labels order, and what scores do to them."""

    def __init__(self, labels: Doubles, queries: Queries, weights: Doubles | None, n_threads: int) -> None:
        self._rows, self._offsets = queries.order, queries.offsets
        if not queries.is_grouped:
            labels, weights = labels[self._rows], None if weights is None else weights[self._rows]
        self._weights = weights
        self._levels = np.empty(queries.n_rows, dtype=np.int32)
        self._n_levels = np.empty(len(queries), dtype=np.int64)
        totals = np.empty((len(queries), 2))
        _core.level_pairs(
            self._rows,
            self._offsets,
            labels,
            self._weights,
            self._levels,
            self._n_levels,
            totals,
            n_threads,
        )
        self.ordered, self.all = totals.T
        if not self.ordered.any():
            raise NoPairsError(
                "no query has two rows with different labels, so there are no pairs to count.",
                "check that y_true varies inside queries, and that qid names queries and not rows.",
                Change("y_true"),
            )

    def count(self, block: Doubles, n_threads: int) -> Doubles:
        """Return (columns, queries, 3) weights of wrong, undecided, and equally scored pairs."""
        out = np.empty((block.shape[1], self._n_levels.shape[0], 3))
        _core.count_pairs(
            self._rows, self._offsets, block, self._levels, self._n_levels, self._weights, out, n_threads
        )
        return out


class OrderEvaluator(Evaluator):
    """The share of the pairs that scores order wrongly, or rightly."""

    def __init__(
        self,
        pairs: LabelPairs,
        queries: Queries,
        n_threads: int,
        *,
        tie_cost: float,
        rightly: bool,
        pooled: bool,
    ) -> None:
        super().__init__(queries, pairs.ordered > 0, n_threads, pairs.ordered if pooled else None)
        self._pairs, self._tie_cost, self._rightly = pairs, tie_cost, rightly

    def _values(self, block: Doubles) -> Doubles:
        counts = self._pairs.count(block, self._threads(block))
        values = counts[:, :, 0] + self._tie_cost * counts[:, :, 1]
        if self._rightly:
            values = self._pairs.ordered - values
        return np.asarray(values / np.where(self.counted, self._pairs.ordered, 1.0))


class TauEvaluator(Evaluator):
    """Kendall's tau-b; 0 where all scores of a query are equal."""

    def __init__(self, pairs: LabelPairs, queries: Queries, n_threads: int) -> None:
        super().__init__(queries, pairs.ordered > 0, n_threads)
        self._pairs = pairs

    def _values(self, block: Doubles) -> Doubles:
        wrong, undecided, equal_scores = np.moveaxis(self._pairs.count(block, self._threads(block)), 2, 0)
        difference = self._pairs.ordered - undecided - 2.0 * wrong
        ordered_by_scores = np.maximum(self._pairs.all - equal_scores, 0.0)
        scale = np.sqrt(self._pairs.ordered * ordered_by_scores)
        return np.asarray(np.divide(difference, scale, out=np.zeros(scale.shape), where=scale > 0))
