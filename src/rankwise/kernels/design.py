"""A kernel matrix, or the explicit features of a reduced set, as a design that is never stored: made block by block."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

import numpy as np

from rankwise.arrays import DType, Floats, Matrix
from rankwise.design import GramProduct, gram
from rankwise.design.protocol import Design, RowIndex
from rankwise.kernels import BLOCK, Kernel, Report, no_report
from rankwise.pairs.blocks import Folds, QueryBlocks, laplacian

__all__ = ["KernelDesign"]


class KernelDesign(Design):
    """A kernel matrix, or the features of a `FeatureMap`, made again a block at a time whenever it is needed.

    Parameters
    ----------
    kernel : Kernel
    X, basis : matrices
    projection : (b, rank) float64, optional
        What the kernel's columns are multiplied by.
    report : callable
        Gets how many rows of the current read have been made.
    """

    has_rows = True
    is_dense = False  # nothing is stored

    def __init__(
        self,
        kernel: Kernel,
        X: Matrix,
        basis: Matrix,
        projection: Floats | None = None,
        n_threads: int = 1,
        report: Report = no_report,
    ) -> None:
        self._kernel, self._X, self._basis, self.projection = kernel, X, basis, projection
        self.report = report
        self.n_threads = n_threads
        columns = basis.shape[0] if projection is None else projection.shape[1]
        self.shape: tuple[int, int] = (X.shape[0], columns)
        self.dtype: DType = np.dtype(np.float64)
        self.nnz = X.shape[0] * columns
        self.reads = 0

    def dot(self, v: Floats) -> Floats:
        """Return ``Z v``."""
        self.reads += 1
        v = v if self.projection is None else self.projection @ v
        if self._kernel.name == "linear":
            return self._kernel.linear_product(self._X, self._basis, v)
        out = np.empty((self.shape[0], *v.shape[1:]))
        for rows, values in self._kernel.blocks(self._X, self._basis):
            np.matmul(values, v, out=out[rows])
            self.report(rows.stop)
        return out

    def tdot(self, u: Floats) -> Floats:
        """Return ``Z' u``."""
        self.reads += 1
        out = np.zeros((self._basis.shape[0], *u.shape[1:]))
        for rows, values in self._kernel.blocks(self._X, self._basis):
            out += values.T @ u[rows]
            self.report(rows.stop)
        return out if self.projection is None else self.projection.T @ out

    def gram_product(self, blocks: QueryBlocks, folds: Folds | None = None) -> GramProduct | None:
        """Return a product that makes each kernel row once; None where a query is too large for a block."""
        largest = int(np.diff(blocks.query_start).max(initial=0))
        one_ranking = blocks.coupling == "all" and blocks.scale.size == 1
        if folds is not None or (largest > self.step and not one_ranking):
            return None
        return _OneRead(self, blocks)

    @property
    def step(self) -> int:
        """How many rows are made at a time."""
        return max(1, BLOCK // max(1, int(self._basis.shape[0])))

    def gram_matrix(self, blocks: QueryBlocks) -> Floats:
        """Return ``Z' L Z`` without holding Z."""
        self.reads += 1
        return gram.gram_matrix(self._centred(blocks))

    def gram_diagonal(self, blocks: QueryBlocks) -> Floats:
        """Return ``diag(Z' L Z)``."""
        self.reads += 1
        return gram.gram_diagonal(self._centred(blocks))

    def rows(self, index: RowIndex) -> KernelDesign:
        """Return the design of a subset of rows."""
        return KernelDesign(self._kernel, self._X[index], self._basis, self.projection, self.n_threads)

    def matrix(self) -> Floats:
        """Return Z."""
        return self.features(slice(None))

    def _centred(self, blocks: QueryBlocks) -> gram.CentredBlocks:
        ahead = _ReadAhead(self, blocks)
        return gram.CentredBlocks(ahead.fetch, blocks, self.shape[1], self.n_threads)

    def kernel_rows(self, rows: RowIndex) -> Floats:
        """Return the kernel between some rows and the basis."""
        return self._towards_basis(self._X[rows])

    @cached_property
    def _towards_basis(self) -> Callable[[Matrix], Floats]:
        return self._kernel.towards(self._basis)

    def features(self, rows: RowIndex) -> Floats:
        """Return some rows of Z."""
        values = self.kernel_rows(rows)
        return values if self.projection is None else values @ self.projection


class _OneRead:
    """``V -> Z' L Z V``: scores and their pull back from a block of kernel rows while it is there.

    One ranking larger than a block is centred afterwards: ``Z'LZ = degree (Z'DZ - zz'/W)`` with the row weights D,
    their sum W and ``z = Z'D1``, from scores shifted by those of the first row so that nothing large cancels.
    """

    def __init__(self, design: KernelDesign, blocks: QueryBlocks) -> None:
        self._design, self._blocks = design, blocks

    def __call__(self, v: Floats, held_out: Floats | None = None) -> Floats:
        """Return the product; there are no folds, and so nothing is held out."""
        design, blocks = self._design, self._blocks
        design.reads += 1
        through = v if design.projection is None else design.projection @ v
        pull = self._small if blocks.query_start[-1] <= design.step or blocks.scale.size > 1 else self._large
        out = pull(through.reshape(through.shape[0], -1)).reshape(through.shape)
        return out if design.projection is None else design.projection.T @ out

    def _small(self, v: Floats) -> Floats:
        blocks, start = self._blocks, self._blocks.query_start
        out = np.zeros_like(v)
        first = 0
        while first < start.size - 1:
            last = int(np.searchsorted(start, start[first] + self._design.step, side="right")) - 1
            last = max(last, first + 1)
            K = self._design.kernel_rows(blocks.order[start[first] : start[last]])
            out += K.T @ laplacian(blocks.part(first, last), K @ v, n_threads=self._design.n_threads)
            self._design.report(int(start[last]))
            first = last
        return out

    def _large(self, v: Floats) -> Floats:
        blocks, design = self._blocks, self._design
        out, columns, total, origin = np.zeros_like(v), np.zeros(v.shape[0]), np.zeros(v.shape[1]), None
        weight = np.ones(blocks.order.size) if blocks.row_weight is None else blocks.row_weight
        for first in range(0, blocks.order.size, design.step):
            rows = slice(first, first + design.step)
            K = design.kernel_rows(blocks.order[rows])
            scores = K @ v
            origin = scores[0].copy() if origin is None else origin
            scores -= origin
            scores *= weight[rows, None]
            out += K.T @ scores
            columns += weight[rows] @ K
            design.report(min(rows.stop, blocks.order.size))
            total += scores.sum(axis=0)
        return np.asarray(blocks.degree[0] * (out - np.outer(columns, total / weight.sum())))


class _ReadAhead:
    """Serves small requests for grouped rows from larger blocks: a matrix product of few rows is slow."""

    def __init__(self, design: KernelDesign, blocks: QueryBlocks) -> None:
        self._design, self._order = design, blocks.order
        self._first, self._block = 0, np.empty((0, design.shape[1]))
        self._step = max(1, BLOCK // max(1, design.shape[1]))

    def fetch(self, first: int, last: int) -> Floats:
        """Return the grouped rows [first, last) as a new array."""
        if not (self._first <= first and last <= self._first + self._block.shape[0]):
            self._first = first
            self._block = self._design.features(self._order[first : max(last, first + self._step)])
            self._design.report(first + self._block.shape[0])
        return self._block[first - self._first : last - self._first].copy()
