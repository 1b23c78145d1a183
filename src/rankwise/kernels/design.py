"""A kernel matrix as a design: computed block by block and never stored."""

from __future__ import annotations

import numpy as np

from rankwise.arrays import DType, Floats, Matrix
from rankwise.design.protocol import Design, RowIndex
from rankwise.kernels import Kernel

__all__ = ["KernelDesign"]


class KernelDesign(Design):
    """The kernel between X and the rows of a basis, made again a block at a time whenever it is needed."""

    has_rows = True
    is_dense = False  # nothing is stored

    def __init__(self, kernel: Kernel, X: Matrix, basis: Matrix, n_threads: int = 1) -> None:
        self._kernel, self._X, self._basis = kernel, X, basis
        self.n_threads = n_threads
        self.shape: tuple[int, int] = (X.shape[0], basis.shape[0])
        self.dtype: DType = np.dtype(np.float64)
        self.nnz = X.shape[0] * basis.shape[0]
        self.reads = 0

    def dot(self, v: Floats) -> Floats:
        """Return ``K v``."""
        self.reads += 1
        if self._kernel.name == "linear":
            return self._kernel.linear_product(self._X, self._basis, v)
        out = np.empty((self.shape[0], *v.shape[1:]))
        for rows, values in self._kernel.blocks(self._X, self._basis):
            np.matmul(values, v, out=out[rows])
        return out

    def tdot(self, u: Floats) -> Floats:
        """Return ``K' u``."""
        self.reads += 1
        out = np.zeros((self._basis.shape[0], *u.shape[1:]))
        for rows, values in self._kernel.blocks(self._X, self._basis):
            out += values.T @ u[rows]
        return out

    def rows(self, index: RowIndex) -> KernelDesign:
        """Return the design of a subset of rows."""
        return KernelDesign(self._kernel, self._X[index], self._basis, self.n_threads)

    def matrix(self) -> Floats:
        """Return the kernel matrix."""
        return self._kernel.matrix(self._X, self._basis)
