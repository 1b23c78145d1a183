"""Fused products X' L X V: how rows are cut into chunks, in the order of a matrix on disk."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from rankwise import _core
from rankwise.arrays import Floats
from rankwise.pairs.blocks import Folds, QueryBlocks

Ids = npt.NDArray[np.int64]
Where = tuple[_core.Blocks, _core.Folds | None, int, int]

# Large queries take the weighted sums of their segments' rows: dense vectors that each product reads again.
# They may cost a quarter of the query itself.
SUMS_SHARE = 0.25


@dataclass(frozen=True)
class Chunks:
    """Runs of grouped rows (see `cpp/fused.hpp`): whole queries, or pieces of the large ones."""

    chunk_start: Ids
    chunk_query: Ids
    chunk_large: Ids
    chunk_work: Ids
    large_query: Ids
    large_start: Ids


class FusedProduct:
    """``V -> X' L X V``, reading X once.

    Parameters
    ----------
    weighted_sum : callable
        Writes ``X'w`` of a run of grouped rows: blocks, folds, the first of the rows, and the one after the last.
    multiply : callable
        Returns the product of blocks, folds and plan with V.
    """

    def __init__(
        self,
        blocks: QueryBlocks,
        folds: Folds | None,
        chunks: Chunks,
        n_columns: int,
        weighted_sum: Callable[[Where, Floats], None],
        multiply: Callable[..., Floats],
    ) -> None:
        self._blocks, self._folds, self._multiply = blocks.compiled(), folds, multiply
        compiled = None if folds is None else folds.compiled()
        # Sums X'(w 1_segment) for the segments of large queries.
        k = folds.degree.shape[1] if folds else 1
        sums = np.empty((int(chunks.large_start[-1]), n_columns, k))
        segments = [s for q in chunks.large_query for s in range(*blocks.query_segment[q : q + 2])]
        for at, segment in enumerate(segments):
            first, last = blocks.segment_start[segment : segment + 2]
            weighted_sum((self._blocks, compiled, int(first), int(last)), sums[at])
        self._plan = _core.Plan(**vars(chunks), colsum=sums.ravel())

    def __call__(self, v: Floats, held_out: Floats | None = None) -> Floats:
        """Return the product; `held_out` (rows,) receives the held-out scores."""
        folds = None if self._folds is None else self._folds.compiled(held_out)
        return self._multiply(self._blocks, folds, self._plan, v)


def chunk_size(columns: int) -> int:
    """Return how many non-zeros make a chunk.

    While the coefficients and the gradient fit in a core's cache beside it, a chunk does too, and is read
    from memory once. With more columns the two vectors would throw each other out at every chunk: larger
    chunks use each of them longer. Measured for float32 on one thread, in ns a non-zero, with chunks of 2^14,
    2^18 and 2^20: 1.70, 1.77, 1.78 at 47,152 columns (before the next chunk was prefetched); 5.1, 4.7, 4.4 at
    300,000 equally frequent ones; 4.5, 4.5, 4.7 at a million as frequent as words are. For float64 at a
    million, 2^14 was best by 8 %; 2^18 is a compromise.
    """
    return 1 << 14 if columns <= 1 << 17 else 1 << 18


def cut(
    blocks: QueryBlocks, lengths: Ids, columns: int, n_threads: int, size: int | None = None
) -> Chunks | None:
    """Cut the grouped rows, which have `lengths` non-zeros each, into chunks of about `size` of them."""
    size = chunk_size(columns) if size is None else size
    work = np.concatenate(([0], np.cumsum(lengths, dtype=np.int64)))
    query_work = np.diff(work[blocks.query_start])
    segments = np.diff(blocks.query_segment)
    big = query_work > size
    large = big & (segments * columns <= SUMS_SHARE * query_work)
    if np.any(query_work[big & ~large] > work[-1] / (2 * n_threads)):
        return None
    start, large_query = blocks.query_start, np.flatnonzero(large)
    small_work = np.where(large, 0, query_work)
    run = (np.cumsum(small_work) - small_work) // size
    opens = np.ones(query_work.size, dtype=bool)
    opens[1:] = (np.diff(run) > 0) | large[1:] | large[:-1]
    # The rows at which the pieces of large queries begin; rows without entries may stand before a query.
    cuts = [np.arange(work[start[q]], work[start[q + 1]], size) for q in large_query]
    pieces = [
        np.maximum(np.searchsorted(work, own), start[q]) for q, own in zip(large_query, cuts, strict=True)
    ]
    starts = np.unique(np.concatenate([start[:-1][opens], *pieces]))
    starts = np.append(starts[starts < start[-1]], start[-1]).astype(np.int64)
    query = np.searchsorted(start, starts[:-1], side="right") - 1
    large_start = np.concatenate(([0], np.cumsum(segments[large_query])))
    first_large = np.full(query_work.size, -1, dtype=np.int64)
    first_large[large_query] = large_start[:-1]
    return Chunks(starts, query, first_large[query], work[starts], large_query, large_start)


def in_row_order(blocks: QueryBlocks, folds: Folds | None = None) -> tuple[QueryBlocks, Folds | None]:
    """Return the same pairs with queries sorted by their first row."""
    sizes = np.diff(blocks.query_start)
    if sizes.size == 0 or sizes.min() == 0:
        return blocks, folds
    first_row = np.minimum.reduceat(blocks.order, blocks.query_start[:-1])
    if np.all(first_row[1:] > first_row[:-1]):
        return blocks, folds
    query = np.argsort(first_row)
    return blocks.chosen(query), None if folds is None else folds.chosen(blocks, query)


def row_spans(order: Ids, chunk_start: Ids) -> tuple[Ids, Ids]:
    """Return the first row of the matrix that each chunk of grouped rows touches, and the one after the last."""
    cuts = np.unique(chunk_start)[:-1]  # chunks without rows touch none
    return np.minimum.reduceat(order, cuts), np.maximum.reduceat(order, cuts) + 1


def is_scattered(order: Ids, chunk_start: Ids) -> bool:
    """Tell whether chunks of grouped rows span many more rows of the matrix than they have."""
    if order.size == 0:
        return False
    first, last = row_spans(order, chunk_start)
    return int(np.sum(last - first)) > 2 * order.size
