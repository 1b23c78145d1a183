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

from rankwise.arrays import DType, Floats, Matrix, is_sparse
from rankwise.blocks import Folds, QueryBlocks, laplacian
from rankwise.cached import cached_property
from rankwise.design import Design, GramProduct, gram
from rankwise.design.offsets import Shift, find_shift, sampled_rows
from rankwise.design.protocol import RowIndex
from rankwise.exceptions import InvalidInputError
from rankwise.threads import large_algebra

__all__ = [
    "KERNELS",
    "POSITIVE_KERNELS",
    "FeatureMap",
    "Kernel",
    "KernelDesign",
    "Report",
    "matrix_rows",
    "no_report",
    "whole_entries",
]

KERNELS = ("precomputed", *sorted(KERNEL_PARAMS))
# Kernels that are positive semidefinite whatever the data; the others are looked at.
POSITIVE_KERNELS = frozenset({"linear", "poly", "polynomial", "rbf", "laplacian", "cosine", "chi2"})

# Kernels that expand products of columns, and that a shift changes by nothing that pairs see.
_SHIFTED = ("linear", "rbf")

# Gets how many rows of a kernel have been made.
Report = Callable[[int], None]


def no_report(n_rows: int) -> None:
    """Take no notice."""


# In standard deviations: kernels lose twice as many digits as products with X (2e-9 at 3, 2e-8 at 10 for the default
# grid's smallest alpha), and a shift costs them next to nothing.
_FAR = 3.0
_BLOCK = 1 << 22  # kernel entries made at a time: 32 MB


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

    @property
    def _may_overflow(self) -> bool:
        """Whether moderate rows can have a kernel that is not finite; others are bounded, or sums of products."""
        return not isinstance(self.name, str) or self.name in {"poly", "polynomial"}

    def between(self, X: Matrix, Y: Matrix) -> Floats:
        """Return the kernel values of the rows of X and of Y as one new array."""
        return self.towards(Y)(X)

    def towards(self, Y: Matrix) -> Callable[[Matrix], Floats]:
        """Return what gives the kernel values of rows and the rows of Y, which are shifted once."""
        Y = Y.astype(np.float64, copy=False)
        shift = self._shift(Y)
        shifted = Y if shift is None else shift.taken_off(Y)

        def values(X: Matrix) -> Floats:
            rows = X.astype(np.float64, copy=False)
            return self._values(rows if shift is None else shift.taken_off(rows), shifted)

        return values

    def _values(self, X: Matrix, Y: Matrix) -> Floats:
        if isinstance(self.name, str):
            with np.errstate(over="ignore"):  # looked at below
                values = pairwise_kernels(X, Y, metric=self.name, **self.parameters)
        else:
            values = self.name(X, Y, **self.parameters)
        matrix = np.asarray(values.toarray() if sp.issparse(values) else values, dtype=np.float64)
        if self._may_overflow and not np.isfinite(matrix).all():
            raise InvalidInputError(
                f"The kernel {self.name!r} has values that are NaN or too large for floating-point numbers.",
                "scale the columns, for example with sklearn.preprocessing.StandardScaler, or use a smaller degree, "
                "gamma or coef0.",
            )
        return matrix

    def _shift(self, Y: Matrix) -> Shift | None:
        """Return what is subtracted from rows on either side, going by those that a model keeps.

        No distance changes by that, and of inner products only what all rows on a side share, which pairs do not see
        (`rankwise.design.offsets`). The other kernels are what they are: a shift makes another model of them.
        """
        if self.name not in _SHIFTED or Y.shape[0] == 0:
            return None
        # Of a single basis row, inner products would leave nothing.
        return find_shift(Y[sampled_rows(*Y.shape)], far=_FAR, even_if_alike=self.name == "rbf")

    def blocks(self, X: Matrix, Y: Matrix) -> Iterator[tuple[slice, Floats]]:
        """Yield the rows of ``K(X, Y)`` in blocks."""
        step = max(1, _BLOCK // max(1, Y.shape[0]))
        values = self.towards(Y)
        for first in range(0, X.shape[0], step):
            rows = slice(first, min(first + step, X.shape[0]))
            yield rows, values(X[rows])

    def matrix(self, X: Matrix, Y: Matrix) -> Floats:
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
        ``K(B, B)^-1/2`` without the directions that rounding cannot tell from zero, and without negative ones.
    extremes : (float, float)
        The smallest and the largest eigenvalue of the kernel between basis rows.
    """

    kernel: Kernel
    basis: Any
    projection: Floats
    extremes: tuple[float, float] = (0.0, 0.0)

    @classmethod
    def of_basis(cls, kernel: Kernel, basis: Matrix, between: Floats | None = None) -> FeatureMap:
        """Diagonalise the kernel between basis rows; a singular one is fine.

        Parameters
        ----------
        between : (b, b) float64, optional
            The kernel between basis rows, where it is at hand.
        """
        K = kernel.matrix(basis, basis) if between is None else between
        with large_algebra(K.shape[0]):
            driver = "evd" if K.shape[0] > 1 else "ev"  # SciPy 1.11 asks for too little room for one number
            values, vectors = scipy.linalg.eigh((K + K.T) / 2, check_finite=False, driver=driver)
        kept = values > values.size * np.finfo(np.float64).eps * max(values.max(initial=0.0), 0.0)
        extremes = float(values.min(initial=0.0)), float(values.max(initial=0.0))
        return cls(kernel, basis, vectors[:, kept] / np.sqrt(values[kept]), extremes)

    @property
    def n_features(self) -> int:
        """The number of explicit features: the rank of the kernel between basis rows."""
        return int(self.projection.shape[1])

    def transform(self, X: Matrix, report: Report = no_report) -> Floats:
        """Return Z; for a precomputed kernel, X holds the kernel values between rows and basis."""
        if self.kernel.is_precomputed:
            return np.asarray(X @ self.projection, dtype=np.float64)
        Z = np.empty((X.shape[0], self.n_features))
        for rows, values in self.kernel.blocks(X, self.basis):
            with large_algebra(self.n_features):
                np.matmul(values, self.projection, out=Z[rows])
            report(rows.stop)
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
    report : callable
        Gets how many rows of the current read have been made.
    """

    has_rows = True
    is_dense = False  # nothing is stored
    shift = None
    is_on_disk = False

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
        return max(1, _BLOCK // max(1, int(self._basis.shape[0])))

    def gram_matrix(self, blocks: QueryBlocks) -> Floats:
        """Return ``Z' L Z`` without holding Z."""
        self.reads += 1
        return gram.gram_matrix(self._centred(blocks))

    def gram_system(self, blocks: QueryBlocks, pull: Floats) -> tuple[Floats, Floats] | None:
        """Return None: nobody asks this of a kernel."""
        return None

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

    def gathered(self, rows: npt.NDArray[np.int64]) -> KernelDesign:
        """Return the design of a subset of rows."""
        return self.rows(rows)

    def rows(self, index: RowIndex) -> KernelDesign:
        """Return the design of a subset of rows."""
        return KernelDesign(self._kernel, self._X[index], self._basis, self.projection, self.n_threads)

    def matrix(self) -> Floats:
        """Return Z."""
        return self.features(slice(None))

    def stored(self) -> Floats:
        """Return Z: nothing of it is stored."""
        return self.matrix()

    def expect_products(self) -> None:
        """Do nothing: there is nothing to prepare."""

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
        self._step = max(1, _BLOCK // max(1, design.shape[1]))

    def fetch(self, first: int, last: int) -> Floats:
        """Return the grouped rows [first, last) as a new array."""
        if not (self._first <= first and last <= self._first + self._block.shape[0]):
            self._first = first
            self._block = self._design.features(self._order[first : max(last, first + self._step)])
            self._design.report(first + self._block.shape[0])
        return self._block[first - self._first : last - self._first].copy()


def matrix_rows(design: Design) -> Matrix:
    """Return the matrix behind a design as something whose rows can be sliced."""
    return whole_entries(design.matrix())


def whole_entries(X: Matrix) -> Matrix:
    """Return rows whose entries are stored in one piece each: scikit-learn's norms would square parts one by one."""
    if is_sparse(X) and not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    return X
