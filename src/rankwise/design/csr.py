"""A sparse matrix stored by rows, in memory or mapped from disk."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from rankwise import _core
from rankwise.arrays import AnyArray, DType, Floats, Ints
from rankwise.data.mapped import MappedMatrix, gather_rows, part_of
from rankwise.design import fused
from rankwise.design.offsets import Shift
from rankwise.design.operator import OperatorDesign, selected_rows
from rankwise.design.protocol import Design, RowIndex, accepted_dtype
from rankwise.design.terms import csr_arrays
from rankwise.pairs.blocks import Folds, QueryBlocks, as_table
from rankwise.runtime.memory import MemoryBudget

Prepared = tuple[AnyArray, AnyArray, AnyArray, npt.NDArray[np.int32] | None]

# Waking threads costs about 10 microseconds: below this much work one thread is faster.
MANY_NONZEROS = 1 << 17
# Above this share of non-zeros, dense rows multiplied by BLAS beat sparse products of rows.
DENSE_SHARE = 0.02
# Non-zeros that are copied to float64 at a time for a sparse Gram matrix.
SPARSE_BLOCK = 1 << 20
# From so many columns on, the coefficients and the gradient of a chunk throw each other out even of the cache that
# cores share. At a million, for one vector, two products took 64 and 36 ms on one and two threads and a fused one
# 89 and 51; for five vectors fusing still won by 5 %. A matrix on disk is read once in any case.
MANY_COLUMNS = 1 << 19
# Buffers for chunks that are larger than usual may take one part in so many of the memory there is.
BUFFERS_SHARE = 4


class CsrDesign(Design):
    """A SciPy CSR matrix as a design; columns need not be sorted, and may occur twice in a row.

    A matrix mapped from a store is read in the order of its rows, with read-ahead; memory use does not grow with its
    non-zeros.
    """

    has_rows = True
    is_dense = False

    def __init__(self, X: sp.csr_matrix, n_threads: int = 1, shift: Shift | None = None) -> None:
        self.n_threads = n_threads
        self.shape: tuple[int, int] = X.shape
        values = X.data.astype(accepted_dtype(X.data.dtype), copy=False)
        start, ids = X.indptr, X.indices
        if ids.dtype == np.int64:
            start = start.astype(np.int64, copy=False)
        self.arrays = (values[: start[-1]], ids[: start[-1]], start)
        # Arguments of the products: the ids, and the new names of renamed columns.
        self.prepared: Prepared = (*self.arrays, None)
        self.dtype: DType = values.dtype
        self.nnz = int(start[-1])
        self.reads = 0
        self.shift = shift
        # How products get at a matrix on disk; None in memory.
        self.disk = X.disk(n_threads) if isinstance(X, MappedMatrix) else None
        self.is_on_disk = self.disk is not None

    def dot(self, v: Floats) -> Floats:
        """Return ``X v``."""
        self.reads += 1
        table = as_table(v)
        out = np.empty((self.shape[0], table.shape[1]))
        _core.csr_dot(*self.prepared, table, out, self._threads(), self.disk)
        return out.reshape(self.shape[0], *v.shape[1:])

    def tdot(self, u: Floats) -> Floats:
        """Return ``X' u``."""
        self.reads += 1
        table = as_table(u)
        out = np.empty((self.shape[1], table.shape[1]))
        _core.csr_transposed_dot(*self.prepared, table, out, self._threads(), self.disk)
        return out.reshape(self.shape[1], *u.shape[1:])

    def gram_product(self, blocks: QueryBlocks, folds: Folds | None = None) -> fused.FusedProduct | None:
        """Return the fused product; see `relabel_columns`.

        None where a single query would keep the other threads waiting, where chunks would be read from all over a
        matrix on disk, or where there are very many columns: two products in the order of its rows are faster then.
        """
        n_threads = self._threads()
        if self.disk:
            blocks, folds = fused.in_row_order(blocks, folds)
        elif folds is None and self.shape[1] > MANY_COLUMNS:
            return None
        chunks = fused.cut(blocks, self.row_lengths()[blocks.order], self.shape[1], n_threads)
        if chunks is None or (self.disk and fused.is_scattered(blocks.order, chunks.chunk_start)):
            return None
        disk = _disk_for(self, blocks.order, chunks.chunk_start, n_threads)

        def weighted_sum(where: fused.Where, out: Floats) -> None:
            values, ids, start = self.arrays
            _core.csr_weighted_sum(values, ids, start, *where, out, n_threads, disk)

        def multiply(blocks: _core.Blocks, folds: _core.Folds | None, plan: _core.Plan, v: Floats) -> Floats:
            self.reads += 1
            table = as_table(v)
            out = np.empty_like(table)
            _core.csr_fused(*self.prepared, blocks, folds, plan, table, out, n_threads, disk)
            return out.reshape(v.shape)

        product = fused.FusedProduct(blocks, folds, chunks, self.shape[1], weighted_sum, multiply)
        self.expect_products()
        return product

    def expect_products(self) -> None:
        # Not for ids that are mapped from disk by somebody else either.
        is_mapped = self.disk is not None or isinstance(self.arrays[1], np.memmap)
        if self.nnz >= MANY_NONZEROS and not is_mapped:
            self.relabel_columns()

    def relabel_columns(self) -> None:
        """Rename columns by falling frequency for all later products; the ids are copied, the values are not.

        The coefficients of frequent columns then lie side by side in cache, and two bytes per id suffice below
        65,536 columns. A matrix on disk keeps its names, for the copy would be in memory.
        """
        values, ids, start = self.arrays
        count = np.empty(self.shape[1], dtype=np.int64)
        _core.count_columns(_sample(ids), count, self._threads())
        rank = np.empty(self.shape[1], dtype=np.int32)
        rank[np.argsort(-count, kind="stable")] = np.arange(self.shape[1], dtype=np.int32)
        narrow = np.empty(self.nnz, dtype=np.uint16 if self.shape[1] < 1 << 16 else np.int32)
        _core.rename_columns(ids, rank, narrow, self._threads())
        self.prepared = (values, narrow, start, rank)

    def gram_matrix(self, blocks: QueryBlocks) -> Floats | None:
        """Return ``X' L X``, (n, n)."""
        if self.nnz > DENSE_SHARE * self.shape[0] * self.shape[1] or blocks.coupling == "relative":
            return super().gram_matrix(blocks)
        self.reads += 1
        return self._sparse_gram_matrix(blocks)

    def gram_diagonal(self, blocks: QueryBlocks) -> Floats:
        """Return ``diag(X' L X)``."""
        self.reads += 1
        out = np.empty(self.shape[1])
        disk = self.disk
        if disk is not None:
            blocks, _ = fused.in_row_order(blocks)
            if fused.is_scattered(blocks.order, blocks.query_start):
                disk = None  # every query would be a window of all rows
        _core.csr_gram_diagonal(*self.arrays, blocks.compiled(), out, self._threads(), disk)
        return out

    def rows(self, index: RowIndex) -> CsrDesign | OperatorDesign:
        """Return the design of a subset of rows; of a matrix on disk, many rows stay there. A slice copies nothing."""
        if isinstance(index, slice) and index.step in {None, 1}:
            first, last, _ = index.indices(self.shape[0])
            arrays = csr_arrays(self.arrays, first, last := max(first, last))
            run = CsrDesign(sp.csr_matrix(arrays, shape=(last - first, self.shape[1])), self.n_threads)
            if self.disk is not None:
                n_bytes = run.arrays[0].nbytes + run.arrays[1].nbytes
                run.disk = part_of(self.disk, int(self.arrays[2][first]), n_bytes)
            return run
        if self.disk is None:
            return CsrDesign(self.matrix()[index], self.n_threads)
        rows = np.arange(self.shape[0])[index]
        if int(self.row_lengths()[rows].sum()) > SPARSE_BLOCK:
            return selected_rows(self, rows, self._block_rows())
        return self.gathered(rows)

    def gathered(self, rows: npt.NDArray[np.int64]) -> CsrDesign:
        return CsrDesign(self._take(rows), self.n_threads)

    def matrix(self) -> sp.csr_matrix:
        """Return the SciPy matrix; nothing is copied."""
        return sp.csr_matrix(self.arrays, shape=self.shape, copy=False)

    def _take(self, rows: npt.NDArray[np.int64]) -> sp.csr_matrix:
        """Return some rows as a SciPy matrix in memory."""
        if self.disk is None:
            return self.matrix()[rows]
        # SciPy would first bring all column numbers to the type of the row pointers.
        return sp.csr_matrix(gather_rows(self.arrays, rows), shape=(rows.size, self.shape[1]))

    def _block_rows(self) -> int:
        """Return how many rows have about `SPARSE_BLOCK` non-zeros."""
        return max(1, SPARSE_BLOCK * self.shape[0] // max(1, self.nnz))

    def row_lengths(self) -> AnyArray:
        """Return the number of stored values of each row."""
        return np.diff(self.arrays[2])

    def _threads(self) -> int:
        return self.n_threads if self.nnz >= MANY_NONZEROS else 1

    def _sparse_gram_matrix(self, blocks: QueryBlocks) -> Floats:
        """Sum of w degree x x', minus the terms of queries, plus for "others" those of segments."""
        G = np.zeros((self.shape[1], self.shape[1]))
        degree = np.repeat(blocks.degree, np.diff(blocks.segment_start))
        weight = np.ones(blocks.order.size) if blocks.row_weight is None else blocks.row_weight
        step = self._block_rows()
        sums, segments = [], []
        for first in range(0, blocks.order.size, step):
            last = min(first + step, blocks.order.size)
            rows = self._take(blocks.order[first:last]).astype(np.float64)
            _add_squares(G, rows, (weight * degree)[first:last])
            low = int(np.searchsorted(blocks.segment_start, first, side="right")) - 1
            high = int(np.searchsorted(blocks.segment_start, last, side="left"))
            cuts = np.clip(blocks.segment_start[low : high + 1], first, last) - first
            sums.append(_sum_groups(weight[first:last], cuts) @ rows)
            segments.append(np.arange(low, high))
        if sums:
            self._add_terms(G, blocks, sp.vstack(sums, format="csr"), np.concatenate(segments))
        return G

    @staticmethod
    def _add_terms(G: Floats, blocks: QueryBlocks, parts: object, segment: npt.NDArray[np.int64]) -> None:
        """Add the terms of queries and segments; row i of `parts` is a part of the sum of ``segment[i]``."""
        start = np.searchsorted(segment, np.arange(blocks.degree.size + 1))
        S = _sum_groups(np.ones(segment.size), start) @ parts
        _add_squares(G, _sum_groups(np.ones(blocks.degree.size), blocks.query_segment) @ S, -blocks.scale)
        if blocks.coupling == "others":
            _add_squares(G, S, np.repeat(blocks.scale, np.diff(blocks.query_segment)))


def _disk_for(design: CsrDesign, order: Ints, chunk_start: Ints, n_threads: int) -> _core.Disk | None:
    """Return the design's disk, with windows that hold every chunk if they fit in memory."""
    disk = design.disk
    if disk is None or not disk.is_direct or order.size == 0:
        return disk
    values, ids, start = design.arrays
    first, last = fused.row_spans(order, chunk_start)
    widest = int(np.max(start[last] - start[first]))
    buffers = 3 * n_threads * widest * (values.itemsize + ids.itemsize)
    fits = widest > disk.window and MemoryBudget().allows(BUFFERS_SHARE * buffers)
    return disk.with_window(widest) if fits else disk


def _add_squares(G: Floats, rows: sp.csr_matrix, weight: Floats) -> None:
    """G += rows' diag(weight) rows."""
    product = (rows.T @ (sp.diags(weight) @ rows)).tocoo()
    G[product.row, product.col] += product.data


def _sample(ids: AnyArray) -> AnyArray:
    """Return a sixteenth of the ids, in pieces from all over: enough to tell frequent columns from rare ones."""
    pieces, share = 64, 16
    step = ids.size // pieces
    if step < 1 << 12:
        return ids
    return np.concatenate([ids[i * step : i * step + step // share] for i in range(pieces)])


def _sum_groups(weight: Floats, start: npt.NDArray[np.int64]) -> sp.csr_matrix:
    """Return the sparse matrix that sums runs of rows with weights."""
    return sp.csr_matrix((weight, np.arange(weight.size), start), shape=(start.size - 1, weight.size))
