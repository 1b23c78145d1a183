"""A dense matrix, float32 or float64, in either memory order."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from rankwise.arrays import AnyArray, DType, Floats
from rankwise.data.mapped import exceeds_memory
from rankwise.design import gram
from rankwise.design.offsets import Shift
from rankwise.design.operator import OperatorDesign, selected_rows
from rankwise.design.protocol import Design, RowIndex, accepted_dtype
from rankwise.pairs.blocks import QueryBlocks

# Values in a block that is copied to float64: it stays in cache.
BLOCK_SIZE = 1 << 16
# Values of selected rows that are read from disk at a time.
SELECTED_BLOCK = 1 << 20


class DenseDesign(Design):
    """A numpy array as a design; one that is mapped from disk and does not fit in memory is read block by block."""

    has_rows = True
    is_dense = True

    def __init__(self, X: AnyArray, n_threads: int = 1, shift: Shift | None = None) -> None:
        self.X = X.astype(accepted_dtype(X.dtype), copy=False)
        self.n_threads = n_threads
        self.shape: tuple[int, int] = (X.shape[0], X.shape[1])
        self.dtype: DType = self.X.dtype
        self.nnz = X.shape[0] * X.shape[1]
        self.reads = 0
        self.shift = shift
        self.is_on_disk = exceeds_memory(self.X)

    def dot(self, v: Floats) -> Floats:
        """Return ``X v``."""
        self.reads += 1
        if self.dtype == np.float64 and not self.is_on_disk:
            return np.asarray(self.X @ v, dtype=np.float64)
        out = np.empty((self.shape[0], *v.shape[1:]))
        for rows in self._row_blocks():
            np.matmul(self.X[rows].astype(np.float64, copy=False), v, out=out[rows])
        return out

    def tdot(self, u: Floats) -> Floats:
        """Return ``X' u``."""
        self.reads += 1
        if self.dtype == np.float64 and not self.is_on_disk:
            return np.asarray(self.X.T @ u, dtype=np.float64)
        out = np.zeros((self.shape[1], *u.shape[1:]))
        for rows in self._row_blocks():
            out += self.X[rows].astype(np.float64, copy=False).T @ u[rows]
        return out

    def gram_matrix(self, blocks: QueryBlocks) -> Floats | None:
        """Return ``X' L X``, (n, n)."""
        system = self.gram_system(blocks, np.empty((self.shape[0], 0)))
        return super().gram_matrix(blocks) if system is None else system[0]

    def gram_system(self, blocks: QueryBlocks, pull: Floats) -> tuple[Floats, Floats] | None:
        """Return ``X' L X`` and ``X' r`` from one read, where that is possible."""
        system = gram.dense_system(self.X, blocks, pull, self.n_threads)
        self.reads += system is not None
        return system

    def gathered(self, rows: npt.NDArray[np.int64]) -> DenseDesign:
        return DenseDesign(self.X[rows], self.n_threads)

    def rows(self, index: RowIndex) -> DenseDesign | OperatorDesign:
        """Return the design of a subset of rows; of an array on disk, many rows stay there."""
        if self.is_on_disk and not isinstance(index, slice):
            rows = np.arange(self.shape[0])[index]
            if rows.size * self.shape[1] > SELECTED_BLOCK:
                return selected_rows(self, rows, max(1, SELECTED_BLOCK // self.shape[1]))
        return DenseDesign(self.X[index], self.n_threads)

    def matrix(self) -> AnyArray:
        """Return the array; nothing is copied."""
        return self.X

    def _row_blocks(self) -> Iterator[slice]:
        step = max(1, BLOCK_SIZE // max(1, self.shape[1]))
        return (slice(first, first + step) for first in range(0, self.shape[0], step))
