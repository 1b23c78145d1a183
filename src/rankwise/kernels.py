"""Kernels end here: a kernel, or a reduced set of basis rows, becomes an explicit design.

With basis rows B, ``Z = K(·, B) K(B, B)^-1/2`` has ``ZZ' = K(·, B) K(B, B)^+ K(B, ·)``: the "subset of regressors"
(Nyström) approximation, exact where B holds all rows. From Z on the linear code runs, and a linear model ``w``
predicts as ``K(x, B) a`` with the dual coefficients ``a = K(B, B)^-1/2 w``.

Kernel rows are made in blocks and in float64, whatever the input holds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.linalg
import scipy.sparse as sp
from sklearn.metrics.pairwise import KERNEL_PARAMS, pairwise_kernels

from rankwise.blocks import Folds, QueryBlocks
from rankwise.design import CsrDesign, DenseDesign, Design, GramProduct, gram
from rankwise.design.protocol import Floats, RowIndex
from rankwise.exceptions import MemoryLimitError
from rankwise.memory import available_memory

__all__ = [
    "KERNELS",
    "POSITIVE_KERNELS",
    "FeatureMap",
    "Kernel",
    "KernelDesign",
    "MemoryBudget",
    "matrix_rows",
]

KERNELS = ("precomputed", *sorted(KERNEL_PARAMS))
# Kernels that are positive semidefinite whatever the data; the others are looked at.
POSITIVE_KERNELS = frozenset({"linear", "poly", "polynomial", "rbf", "laplacian", "cosine", "chi2"})

_BLOCK = 1 << 22  # kernel entries made at a time: 32 MB
_SHARE = 0.8  # of the available memory may be used when nobody says


@dataclass(frozen=True)
class MemoryBudget:
    """How much may be allocated; asked before it is.

    Attributes
    ----------
    limit : int or None
        Bytes; None means 80 % of what is available at the moment of asking.
    """

    limit: int | None = None

    @property
    def free(self) -> int:
        """Bytes that may be allocated now."""
        return int(_SHARE * available_memory()) if self.limit is None else self.limit

    def allows(self, n_bytes: int) -> bool:
        """Tell whether so much may be allocated."""
        return n_bytes <= self.free

    def demand(self, n_bytes: int, n_rows: int, what: str) -> None:
        """Raise unless so much may be allocated; the message names a basis that fits."""
        free = self.free
        if n_bytes > free:
            raise MemoryLimitError(
                f"{what} takes about {n_bytes / 2**30:.2f} GiB, and {free / 2**30:.2f} GiB may be used.",
                f"use basis={largest_basis(n_rows, free)}, which fits, or solver='cg', which makes kernel "
                "rows again whenever it needs them; or raise memory_limit.",
            )


def largest_basis(n_rows: int, free: int) -> int:
    """Return the most basis rows whose design and decomposition fit: ``8 (m b + 4 b²)`` bytes."""
    size = (np.sqrt(n_rows**2 + 16 * free / 8) - n_rows) / 8
    return max(1, min(n_rows, int(size)))


@dataclass(frozen=True)
class Kernel:
    """A kernel function with its parameters.

    Attributes
    ----------
    name : str or callable
        A name of scikit-learn's `pairwise_kernels`, "precomputed", or a function of two matrices that
        returns the matrix of kernel values between their rows.
    parameters : mapping
        Passed to the function.
    """

    name: str | Callable[..., Any]
    parameters: Mapping[str, Any] = field(default_factory=dict)

    @property
    def is_precomputed(self) -> bool:
        """Whether the data already are kernel values."""
        return isinstance(self.name, str) and self.name == "precomputed"

    @property
    def is_surely_positive(self) -> bool:
        """Whether theory promises that every kernel matrix is positive semidefinite."""
        return isinstance(self.name, str) and self.name in POSITIVE_KERNELS

    def between(self, X: Any, Y: Any) -> Floats:
        """Return the kernel values of the rows of X and of Y as one new array."""
        X, Y = (rows.astype(np.float64, copy=False) for rows in (X, Y))
        if isinstance(self.name, str):
            values = pairwise_kernels(X, Y, metric=self.name, **self.parameters)
        else:
            values = self.name(X, Y, **self.parameters)
        return np.asarray(values.toarray() if sp.issparse(values) else values, dtype=np.float64)

    def blocks(self, X: Any, Y: Any) -> Iterator[tuple[slice, Floats]]:
        """Yield the rows of ``K(X, Y)`` in blocks."""
        step = max(1, _BLOCK // max(1, Y.shape[0]))
        for first in range(0, X.shape[0], step):
            rows = slice(first, min(first + step, X.shape[0]))
            yield rows, self.between(X[rows], Y)

    def matrix(self, X: Any, Y: Any) -> Floats:
        """Return ``K(X, Y)``."""
        out = np.empty((X.shape[0], Y.shape[0]))
        for rows, values in self.blocks(X, Y):
            out[rows] = values
        return out


@dataclass(frozen=True)
class FeatureMap:
    """The explicit features of a kernel over basis rows.

    Attributes
    ----------
    kernel : Kernel
    basis : (b, features) matrix
        The basis rows; for a precomputed kernel the (b, b) kernel between them, which is not used again.
    projection : (b, rank) float64
        ``K(B, B)^-1/2`` without the directions that rounding cannot tell from zero.
    """

    kernel: Kernel
    basis: Any
    projection: Floats

    @classmethod
    def of_basis(cls, kernel: Kernel, basis: Any, between: Floats | None = None) -> FeatureMap:
        """Diagonalise the kernel between basis rows; a singular one is fine.

        Parameters
        ----------
        between : (b, b) float64, optional
            The kernel between basis rows, where it is at hand.
        """
        K = kernel.matrix(basis, basis) if between is None else between
        values, vectors = scipy.linalg.eigh((K + K.T) / 2, check_finite=False, driver="evd")
        kept = values > values.size * np.finfo(np.float64).eps * max(values.max(initial=0.0), 0.0)
        return cls(kernel, basis, vectors[:, kept] / np.sqrt(values[kept]))

    @property
    def n_features(self) -> int:
        """The number of explicit features: the rank of the kernel between basis rows."""
        return int(self.projection.shape[1])

    def transform(self, X: Any) -> Floats:
        """Return Z; for a precomputed kernel, X holds the kernel values between rows and basis."""
        if self.kernel.is_precomputed:
            return np.asarray(X @ self.projection, dtype=np.float64)
        Z = np.empty((X.shape[0], self.n_features))
        for rows, values in self.kernel.blocks(X, self.basis):
            np.matmul(values, self.projection, out=Z[rows])
        return Z

    def dual_coefficients(self, coef: Floats) -> Floats:
        """Return ``a`` with ``K(x, B) a = z(x)'w``."""
        return self.projection @ coef


class KernelDesign:
    """A kernel matrix, or the features of a `FeatureMap`, made again a block at a time whenever it is needed.

    Parameters
    ----------
    kernel : Kernel
    X, basis : matrices
    projection : (b, rank) float64, optional
        What the kernel's columns are multiplied by.
    """

    kind = "kernel"

    def __init__(
        self, kernel: Kernel, X: Any, basis: Any, projection: Floats | None = None, n_threads: int = 1
    ) -> None:
        self._kernel, self._X, self._basis, self._projection = kernel, X, basis, projection
        self.n_threads = n_threads
        columns = basis.shape[0] if projection is None else projection.shape[1]
        self.shape: tuple[int, int] = (X.shape[0], columns)
        self.dtype: np.dtype[Any] = np.dtype(np.float64)
        self.nnz = X.shape[0] * columns
        self.reads = 0

    def dot(self, v: Floats) -> Floats:
        """Return ``Z v``."""
        self.reads += 1
        v = v if self._projection is None else self._projection @ v
        out = np.empty((self.shape[0], *v.shape[1:]))
        for rows, values in self._kernel.blocks(self._X, self._basis):
            np.matmul(values, v, out=out[rows])
        return out

    def tdot(self, u: Floats) -> Floats:
        """Return ``Z' u``."""
        self.reads += 1
        out = np.zeros((self._basis.shape[0], *u.shape[1:]))
        for rows, values in self._kernel.blocks(self._X, self._basis):
            out += values.T @ u[rows]
        return out if self._projection is None else self._projection.T @ out

    def gram_product(self, blocks: QueryBlocks, folds: Folds | None = None) -> GramProduct | None:
        """None: composing `dot`, L and `tdot` is as good."""
        return None

    def gram_matrix(self, blocks: QueryBlocks) -> Floats:
        """Return ``Z' L Z`` without holding Z."""
        self.reads += 1
        return gram.gram_matrix(self._centred(blocks))

    def gram_diagonal(self, blocks: QueryBlocks) -> Floats:
        """Return ``diag(Z' L Z)``."""
        self.reads += 1
        return gram.gram_diagonal(self._centred(blocks))

    def squared_differences(
        self, one: npt.NDArray[np.int64], other: npt.NDArray[np.int64], weight: Floats
    ) -> Floats | None:
        """None: nobody asks this of a kernel."""
        return None

    def column_sums(self, weights: Floats | None = None) -> Floats:
        """Return the weighted sum of the rows."""
        return self.tdot(np.ones(self.shape[0]) if weights is None else weights)

    def squared_norms(self, weights: Floats | None = None) -> Floats | None:
        """None: nobody asks this of a kernel."""
        return None

    def rows(self, index: RowIndex) -> KernelDesign:
        """Return the design of a subset of rows."""
        return KernelDesign(self._kernel, self._X[index], self._basis, self._projection, self.n_threads)

    def _centred(self, blocks: QueryBlocks) -> gram.CentredBlocks:
        ahead = _ReadAhead(self, blocks)
        return gram.CentredBlocks(ahead.fetch, blocks, self.shape[1], self.n_threads)

    def features(self, rows: Any) -> Floats:
        """Return some rows of Z."""
        values = self._kernel.between(self._X[rows], self._basis)
        return values if self._projection is None else values @ self._projection


class _ReadAhead:
    """Serves small requests for grouped rows from larger blocks: a matrix product of few rows is slow."""

    def __init__(self, design: KernelDesign, blocks: QueryBlocks) -> None:
        self._design, self._order = design, blocks.order
        self._first, self._block = 0, np.empty((0, design.shape[1]))
        self._step = max(1, _BLOCK // max(1, design.shape[1]))

    def fetch(self, first: int, last: int) -> Floats:
        """Return the grouped rows [first, last) as a new array."""
        if not (self._first <= first and last <= self._first + self._block.shape[0]):
            self._first = first
            self._block = self._design.features(self._order[first : max(last, first + self._step)])
        return self._block[first - self._first : last - self._first].copy()


def matrix_rows(design: Design) -> Any:
    """Return the matrix behind a design as something whose rows can be sliced."""
    if isinstance(design, CsrDesign):
        matrix = sp.csr_matrix(design.arrays, shape=design.shape)
        if not matrix.has_canonical_format:
            matrix = matrix.copy()
            matrix.sum_duplicates()  # scikit-learn's norms would square the parts of a split entry
        return matrix
    assert isinstance(design, DenseDesign)
    return design.X
