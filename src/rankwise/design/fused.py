"""The fused product X' L X V of a sparse matrix: how rows are cut into chunks, and the prepared call."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from rankwise import _core
from rankwise.arrays import Floats
from rankwise.design.row_order import in_row_order, is_scattered, row_spans
from rankwise.pairs.blocks import Folds, QueryBlocks, as_table, laplacian
from rankwise.runtime.memory import MemoryBudget

if TYPE_CHECKING:
    from rankwise.design.csr import CsrDesign


__all__ = ["Chunks", "FusedProduct", "compiled_plan", "cut", "prepare", "segment_sums"]

Ids = npt.NDArray[np.int64]

# Large queries take the weighted sums of their segments' rows: dense vectors that each product reads again.
# They may cost a quarter of the query itself.
SUMS_SHARE = 0.25
# From so many columns on, the coefficients and the gradient of a chunk throw each other out even of the cache that
# cores share. At a million, for one vector, two products took 64 and 36 ms on one and two threads and a fused one
# 89 and 51; for five vectors fusing still won by 5 %. A matrix on disk is read once in any case.
MANY_COLUMNS = 1 << 19
# Buffers for chunks that are larger than usual may take one part in so many of the memory there is.
BUFFERS_SHARE = 4


@dataclass(frozen=True)
class Chunks:
    """Runs of grouped rows (see `cpp/fused.hpp`): whole queries, or pieces of the large ones."""

    start: Ids
    query: Ids
    large: Ids
    work: Ids
    large_query: Ids
    large_start: Ids


class FusedProduct:
    """``V -> X' L X V``, reading X once; twice where that is faster."""

    def __init__(
        self, design: CsrDesign, blocks: QueryBlocks, folds: Folds | None, chunks: Chunks, n_threads: int
    ) -> None:
        self.design = design
        self.query_blocks = blocks
        self.blocks = blocks.compiled()
        self.folds = folds
        self.n_threads = n_threads
        self.disk = _disk_for(design, blocks.order, chunks.start, n_threads)
        self.plan = compiled_plan(chunks, self._segment_sums(blocks, chunks))

    def __call__(self, v: Floats, held_out: Floats | None = None) -> Floats:
        """Return the product; `held_out` (rows,) receives the held-out scores."""
        design = self.design
        table = as_table(v)
        if (
            table.shape[1] == 1
            and self.folds is None
            and self.disk is None
            and design.shape[1] > MANY_COLUMNS
        ):
            return design.tdot(laplacian(self.query_blocks, design.dot(v), n_threads=self.n_threads))
        design.reads += 1
        out = np.empty_like(table)
        folds = None if self.folds is None else self.folds.compiled(held_out)
        _core.csr_fused(
            *design.prepared, self.blocks, folds, self.plan, table, out, self.n_threads, self.disk
        )
        return out.reshape(v.shape)

    def _segment_sums(self, blocks: QueryBlocks, chunks: Chunks) -> Floats:
        folds = None if self.folds is None else self.folds.compiled()
        if chunks.large_query.size == 0:
            return np.empty(0)
        arrays = self.design.arrays

        def weighted_sum(first: int, last: int, out: Floats) -> None:
            _core.csr_weighted_sum(*arrays, self.blocks, folds, first, last, out, self.n_threads, self.disk)

        return segment_sums(blocks, chunks, self.folds, self.design.shape[1], weighted_sum)


def segment_sums(
    blocks: QueryBlocks,
    chunks: Chunks,
    folds: Folds | None,
    n_columns: int,
    weighted_sum: Callable[[int, int, Floats], None],
) -> Floats:
    """Return ``X'(w 1_segment)`` for the segments of large queries, flat; `weighted_sum` gives one of grouped rows."""
    k = folds.degree.shape[1] if folds else 1
    sums = np.empty((int(chunks.large_start[-1]), n_columns, k))
    segments = [s for q in chunks.large_query for s in range(*blocks.query_segment[q : q + 2])]
    for at, segment in enumerate(segments):
        first, last = blocks.segment_start[segment : segment + 2]
        weighted_sum(int(first), int(last), sums[at])
    return sums.ravel()


def compiled_plan(chunks: Chunks, sums: Floats) -> _core.Plan:
    """Return chunks as the compiled kernels take them."""
    return _core.Plan(
        chunk_start=chunks.start,
        chunk_query=chunks.query,
        chunk_large=chunks.large,
        chunk_work=chunks.work,
        large_query=chunks.large_query,
        large_start=chunks.large_start,
        colsum=sums,
    )


def prepare(
    design: CsrDesign, blocks: QueryBlocks, folds: Folds | None, n_threads: int
) -> FusedProduct | None:
    """Return the fused product, or None.

    None where a single query would keep the other threads waiting, and where chunks would be read from all over a
    matrix on disk: two products in the order of its rows are faster then.
    """
    if design.disk:
        blocks, folds = in_row_order(blocks, folds)
    chunks = cut(blocks, design.row_lengths()[blocks.order], design.shape[1], n_threads)
    if chunks is None or (design.disk and is_scattered(blocks.order, chunks.start)):
        return None
    return FusedProduct(design, blocks, folds, chunks, n_threads)


def _disk_for(design: CsrDesign, order: Ids, chunk_start: Ids, n_threads: int) -> _core.Disk | None:
    """Return the design's disk, with windows that hold every chunk if they fit in memory."""
    disk = design.disk
    if disk is None or not disk.is_direct or order.size == 0:
        return disk
    values, ids, start = design.arrays
    first, last = row_spans(order, chunk_start)
    widest = int(np.max(start[last] - start[first]))
    buffers = 3 * n_threads * widest * (values.itemsize + ids.itemsize)
    fits = widest > disk.window and MemoryBudget().allows(BUFFERS_SHARE * buffers)
    return disk.with_window(widest) if fits else disk


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
    return _chunks(blocks, work, query_work, large, size)


def _chunks(
    blocks: QueryBlocks, work: Ids, query_work: Ids, large: npt.NDArray[np.bool_], size: int
) -> Chunks:
    start = blocks.query_start
    small_work = np.where(large, 0, query_work)
    run = (np.cumsum(small_work) - small_work) // size
    opens = np.ones(query_work.size, dtype=bool)
    opens[1:] = (np.diff(run) > 0) | large[1:] | large[:-1]
    large_query = np.flatnonzero(large)
    pieces = [_pieces(work, int(start[q]), int(start[q + 1]), size) for q in large_query]
    starts = np.unique(np.concatenate([start[:-1][opens], *pieces]))
    starts = np.append(starts[starts < start[-1]], start[-1]).astype(np.int64)
    query = np.searchsorted(start, starts[:-1], side="right") - 1
    large_start = np.concatenate(([0], np.cumsum(np.diff(blocks.query_segment)[large_query])))
    first_large = np.full(query_work.size, -1, dtype=np.int64)
    first_large[large_query] = large_start[:-1]
    return Chunks(
        starts,
        query.astype(np.int64),
        first_large[query],
        work[starts],
        large_query.astype(np.int64),
        large_start.astype(np.int64),
    )


def _pieces(work: Ids, first: int, last: int, size: int) -> Ids:
    """Return the rows at which the pieces of a query begin."""
    cuts = np.arange(work[first], work[last], size)
    return first + np.searchsorted(work[first:last], cuts, side="left")
