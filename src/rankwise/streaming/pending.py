"""Rows of a stream that are not yet a block: learned from for the time being, until enough of them make a block.

A block of some thousand rows teaches more than the same rows in small portions, of which each is fitted beside no more
than a diagonal of what came before (`rankwise.solvers.stochastic`). So rows that come in small calls are kept, and
learned from as one block when there are enough. Until then the model is *provisional*: what is settled, plus the rows
that wait as one block up to when their number last grew by a quarter, plus the calls since. So the rows that wait are
learned from at most some seven times, however small the calls.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import scipy.sparse as sp

from rankwise.data.queries import Queries, one_query
from rankwise.design import as_design
from rankwise.streaming.accumulators import Accumulator, Batch, ExactQueries, ExactRanking

__all__ = ["Remembered", "SeenQueries"]

_BLOCK_ROWS = 10_000
_GROWTH = 1.25  # by doubling, half of a short stream is learned from in small portions, and it shows
_BLOCK_VALUES = 1 << 24  # stored values: 64 to 128 MiB of them


def _joined(batches: Sequence[Batch], *, with_qid: bool) -> Batch:
    """Return several batches as one; their queries are different ones."""
    if len(batches) == 1:
        return batches[0]
    matrices = [batch.design.matrix() for batch in batches]
    if any(sp.issparse(matrix) for matrix in matrices):
        X = sp.vstack([sp.csr_matrix(matrix) for matrix in matrices], format="csr")
    else:
        X = np.vstack(matrices)
    n_rows = X.shape[0]
    queries = one_query(n_rows)
    if with_qid:
        first = np.cumsum([0, *(len(batch.queries) for batch in batches)])
        codes = [batch.queries.codes + shift for batch, shift in zip(batches, first, strict=False)]
        queries = Queries(np.concatenate(codes), np.arange(first[-1]))
    weight = None
    if any(batch.row_weight is not None for batch in batches):
        weight = np.concatenate([
            np.ones(batch.n_rows) if batch.row_weight is None else batch.row_weight for batch in batches
        ])  # fmt: skip
    labels = tuple(np.concatenate(parts) for parts in zip(*(b.labels for b in batches), strict=True))
    return Batch(as_design(X, batches[0].design.n_threads), labels, queries, weight)


@dataclass(frozen=True)
class Remembered:
    """What is remembered for each graph, and the rows that are not yet a block: none where statistics are exact.

    Attributes
    ----------
    settled : tuple of accumulators
        After all complete blocks.
    current : tuple of accumulators
        After the pending rows, too: provisional.
    pending : tuple of Batch
        The rows since.
    n_together : int
        How many of the pending rows the provisional memory has learned from as one block.
    """

    settled: tuple[Accumulator, ...]
    current: tuple[Accumulator, ...]
    pending: tuple[Batch, ...] = ()
    n_together: int = 0

    @property
    def exact(self) -> list[ExactQueries | ExactRanking]:
        """The accumulators, where they are statistics; none where they learn."""
        return [own for own in self.current if isinstance(own, (ExactQueries, ExactRanking))]

    def after(self, batch: Batch, alpha: float, *, with_qid: bool) -> Remembered:
        """Return the memory after more rows."""
        if self.exact or _is_block([batch]):  # as it is, without a copy
            settled = self.settled
            if self.pending:
                settled = _learned(settled, _joined(self.pending, with_qid=with_qid), alpha)
            settled = _learned(settled, batch, alpha)
            return Remembered(settled, settled)
        pending = (*self.pending, batch.copied())
        n_rows, is_block = sum(part.n_rows for part in pending), _is_block(pending)
        if not is_block and n_rows < _GROWTH * self.n_together:
            return replace(self, pending=pending, current=_learned(self.current, batch, alpha))
        whole = _joined(pending, with_qid=with_qid)
        learned = _learned(self.settled, whole, alpha)
        if is_block:
            return Remembered(learned, learned)
        return replace(self, pending=(whole,), current=learned, n_together=n_rows)


def _is_block(parts: Sequence[Batch]) -> bool:
    """Tell whether rows are enough to be learned from once and for all."""
    n_values = sum(part.design.nnz for part in parts)
    return sum(part.n_rows for part in parts) >= _BLOCK_ROWS or n_values >= _BLOCK_VALUES


def _learned(accumulators: Sequence[Accumulator], batch: Batch, alpha: float) -> tuple[Accumulator, ...]:
    parts = zip(accumulators, batch.labels, strict=True)
    return tuple(one.after(batch, labels, alpha) for one, labels in parts)


@dataclass(frozen=True)
class SeenQueries:
    """The ids of queries that came; a later set shares the memory of an earlier one, which does not change by that."""

    _number: dict[Hashable, int] = field(default_factory=dict)
    _count: int = 0

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[Hashable]:
        return (query for query, place in self._number.items() if place < self._count)

    def __contains__(self, query: Hashable) -> bool:
        return self._number.get(query, self._count) < self._count

    def plus(self, queries: Iterable[Hashable]) -> SeenQueries:
        """Return the set with more ids, none of which is in it."""
        number = self._number
        if len(number) != self._count:  # another set has grown from this one already
            number = {query: place for query, place in number.items() if place < self._count}
        for query in queries:
            number[query] = len(number)
        return SeenQueries(number, len(number))
