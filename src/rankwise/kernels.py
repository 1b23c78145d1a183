"""Kernels, and reduced sets of basis rows as explicit features.

With basis rows B, ``Z = K(·, B) K(B, B)^-1/2`` has ``ZZ' = K(·, B) K(B, B)^+ K(B, ·)``: the "subset of regressors"
(Nyström) approximation, exact where B holds all rows. From Z on the linear code runs, and a linear model ``w``
predicts as ``K(x, B) a`` with the dual coefficients ``a = K(B, B)^-1/2 w``. Basis rows are chosen at random, or near
the centres of clusters.

Kernel rows are made in blocks and in float64, whatever the input holds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from numbers import Real
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.metrics.pairwise import KERNEL_PARAMS, pairwise_kernels

from rankwise.arrays import AnyArray, ArrayLike, DType, Floats, Matrix, Rows
from rankwise.data.containers import as_array
from rankwise.data.validation import check_choice
from rankwise.design import matrix_rows
from rankwise.design.offsets import Shift, find_shift, sampled_rows, spreads
from rankwise.design.protocol import Design, RowIndex
from rankwise.exceptions import InvalidInputError
from rankwise.runtime.decompositions import diagonalise
from rankwise.runtime.threads import large_algebra

# A number of rows, with or without the method that chooses them, or the rows themselves.
Basis = int | tuple[str, int] | ArrayLike | None

_METHODS = ("random", "kmeans")
KERNELS = ("precomputed", *sorted(KERNEL_PARAMS))
# Kernels that are positive semidefinite whatever the data; the others are looked at.
_POSITIVE_KERNELS = frozenset({"linear", "poly", "polynomial", "rbf", "laplacian", "cosine", "chi2"})

# Kernels that expand products of columns, and that a shift changes by nothing that pairs see.
_SHIFTED = ("linear", "rbf")

# In standard deviations: kernels lose twice as many digits as products with X (2e-9 at 3, 2e-8 at 10 for the default
# grid's smallest alpha), and a shift costs them next to nothing.
_FAR = 3.0
BLOCK = 1 << 22  # kernel entries made at a time: 32 MB


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

    def takes(self, parameter: str) -> bool:
        """Tell whether the kernel is one of scikit-learn's, and has a parameter of that name."""
        return isinstance(self.name, str) and parameter in KERNEL_PARAMS.get(self.name, ())

    @property
    def is_surely_positive(self) -> bool:
        """Whether theory promises that every kernel matrix is positive semidefinite."""
        return isinstance(self.name, str) and self.name in _POSITIVE_KERNELS

    def _values(self, X: Matrix, Y: Matrix) -> Floats:
        if isinstance(self.name, str):
            with np.errstate(over="ignore"):  # looked at below
                values = pairwise_kernels(X, Y, metric=self.name, **self.parameters)
        else:
            values = self.name(X, Y, **self.parameters)
        matrix = np.asarray(values.toarray() if sp.issparse(values) else values, dtype=np.float64)
        # Other kernels of moderate rows are bounded, or sums of products.
        may_overflow = not isinstance(self.name, str) or self.name in {"poly", "polynomial"}
        if may_overflow and not np.isfinite(matrix).all():
            raise InvalidInputError(
                f"The kernel {self.name!r} has values that are NaN or too large for floating-point numbers.",
                "scale the columns, for example with sklearn.preprocessing.StandardScaler, or use a smaller degree, "
                "gamma or coef0.",
            )
        return matrix

    def _shift(self, Y: Matrix) -> Shift | None:
        """Return the shift of the rows on both sides, found on the rows that a model keeps.

        A shift changes no distance. It changes inner products only by terms that all rows of a side share, on which
        pairs do not depend (`rankwise.design.offsets`). Other kernels are not shifted, since that changes the model.
        """
        if self.name not in _SHIFTED or Y.shape[0] == 0:
            return None
        # Of a single basis row, inner products would leave nothing.
        return find_shift(Y[sampled_rows(*Y.shape)], far=_FAR, even_if_alike=self.name == "rbf")

    def blocks(self, X: Matrix, Y: Matrix) -> Iterator[tuple[slice, Floats]]:
        """Yield the rows of ``K(X, Y)`` in blocks; the rows of Y are shifted once."""
        step = max(1, BLOCK // max(1, Y.shape[0]))
        Y = Y.astype(np.float64, copy=False)
        shift = self._shift(Y)
        shifted = _taken_off(Y, shift)
        for first in range(0, X.shape[0], step):
            rows = slice(first, min(first + step, X.shape[0]))
            yield rows, self._values(_taken_off(X[rows], shift), shifted)

    def linear_product(self, X: Matrix, Y: Matrix, v: Floats) -> Floats:
        """Return ``K(X, Y) v`` of the linear kernel: coefficients of columns keep digits that products of rows lose."""
        shift = self._shift(Y)
        return np.asarray(_taken_off(X, shift) @ (_taken_off(Y, shift).T @ v))

    def matrix(self, X: Matrix, Y: Matrix) -> Floats:
        """Return ``K(X, Y)``."""
        out = np.empty((X.shape[0], Y.shape[0]))
        for rows, values in self.blocks(X, Y):
            out[rows] = values
        return out


def _taken_off(X: Matrix, shift: Shift | None) -> AnyArray | sp.csr_matrix:
    """Return rows in float64, shifted where there is a shift."""
    return X.astype(np.float64, copy=False) if shift is None else shift.taken_off(X)


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


def kernel_scores(kernel: Kernel, rows: Design, X: Any, basis: Rows | None, dual: Floats) -> Floats:
    """Return the scores of rows under the dual coefficients of basis rows X.

    Parameters
    ----------
    rows : Design
        With a precomputed kernel, the kernel between the rows and all training rows.
    basis : (b,) int64 or None
        The numbers of the basis rows among the training rows; None for all.
    """
    if not kernel.is_precomputed:
        return KernelDesign(kernel, matrix_rows(rows), X, rows.n_threads).dot(dual)
    whole = np.zeros((rows.shape[1], *dual.shape[1:]))
    whole[slice(None) if basis is None else basis] = dual
    return rows.dot(whole)


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
            The kernel between basis rows, if it is already computed.
        """
        K = kernel.matrix(basis, basis) if between is None else between
        values, vectors = diagonalise((K + K.T) / 2, overwrite=True)
        kept = values > values.size * np.finfo(np.float64).eps * max(values.max(initial=0.0), 0.0)
        extremes = float(values.min(initial=0.0)), float(values.max(initial=0.0))
        return cls(kernel, basis, vectors[:, kept] / np.sqrt(values[kept]), extremes)

    @property
    def n_features(self) -> int:
        """The number of explicit features: the rank of the kernel between basis rows."""
        return int(self.projection.shape[1])

    def transform(self, X: Matrix) -> Floats:
        """Return Z; for a precomputed kernel, X holds the kernel values between rows and basis."""
        if self.kernel.is_precomputed:
            with large_algebra(self.n_features):
                return np.asarray(X @ self.projection, dtype=np.float64)
        with large_algebra(self.n_features):
            return KernelDesign(self.kernel, X, self.basis).dot(self.projection)

    def dual_coefficients(self, coef: Floats) -> Floats:
        """Return ``a`` with ``K(x, B) a = z(x)'w``."""
        return self.projection @ coef


def resolve_gamma(gamma: object, X: Matrix, row_weight: Floats | None) -> float:
    """Return gamma as a number: "scale" is 1 / (the sum of the columns' variances), "auto" 1 / columns.

    Rows count as often as they weigh. Where columns have a common mean, "scale" is that of scikit-learn, which also
    counts how far the columns are from each other: distances do not see that.
    """
    if isinstance(gamma, str):
        check_choice("gamma", gamma, ("scale", "auto"))
        if gamma == "auto":
            return 1.0 / int(X.shape[1])
        weight = np.ones(X.shape[0]) if row_weight is None else row_weight
        total = float(spreads(X, weight / weight.sum()).sum())
        return 1.0 / total if total > 0 else 1.0
    if isinstance(gamma, bool) or not isinstance(gamma, Real) or not 0 < float(gamma) < np.inf:
        raise InvalidInputError(
            f"gamma={gamma!r} is not a positive number.", "use 'scale', 'auto' or a number above 0."
        )
    return float(gamma)


def choose_basis(basis: Basis, kernel: Kernel, X: Matrix, seed: int, row_weight: Floats | None) -> Rows:
    """Return the rows of the reduced set: from their number, ``(method, number)``, or the rows themselves.

    Rows that weigh nothing are not chosen, as if they were not there.
    """
    n_rows = X.shape[0]
    method, size = _method_and_size(basis)
    check_choice("basis", method, _METHODS)
    if isinstance(size, (list, tuple)) or np.ndim(size) == 1:
        return _check_rows(as_array("basis", size), n_rows)
    if isinstance(size, bool) or not isinstance(size, (int, np.integer)) or not 1 <= size <= n_rows:
        raise InvalidInputError(
            f"basis={basis!r} is not a number of rows between 1 and {n_rows}.",
            f"use for example basis={min(n_rows, 500)}, ('kmeans', {min(n_rows, 500)}), or row indices.",
        )
    present = np.arange(n_rows) if row_weight is None else np.flatnonzero(row_weight)
    size = min(int(size), present.size)
    if method == "random":
        return np.sort(np.random.default_rng(seed).choice(present, size=size, replace=False))
    if kernel.is_precomputed:
        raise InvalidInputError(
            f"basis={basis!r} needs the columns of X, which a precomputed kernel does not have.",
            "use a number, or row indices.",
        )
    rows = X if present.size == n_rows else X[present]
    return present[kmeans_rows(rows, size, seed)]


def basis_size(basis: Basis, n_rows: int) -> int:
    """Return how many rows a reduced set will have; `choose_basis` checks it."""
    size = _method_and_size(basis)[1]
    return min(int(size), n_rows) if isinstance(size, (int, np.integer)) else int(np.size(size))


def _method_and_size(basis: Basis) -> tuple[str, ArrayLike]:
    if isinstance(basis, tuple) and len(basis) == 2 and isinstance(basis[0], str):
        return basis[0], basis[1]
    assert basis is not None
    return "random", basis


def _check_rows(rows: npt.NDArray[np.generic], n_rows: int) -> Rows:
    if rows.dtype.kind not in "iu" or rows.size == 0 or rows.min() < 0 or rows.max() >= n_rows:
        raise InvalidInputError(
            f"basis must hold row indices from 0 to {n_rows - 1}.",
            "pass integers, for example np.arange(200).",
        )
    if np.unique(rows).size != rows.size:
        raise InvalidInputError("basis names a row twice.", "pass np.unique(basis).")
    return rows.astype(np.int64)


def kmeans_rows(X: Matrix, size: int, seed: int) -> Rows:
    """Choose the row nearest to each centre of k-means; where a row is nearest to two, another is drawn."""
    from sklearn.cluster import MiniBatchKMeans  # noqa: PLC0415 - slow to import

    batch = max(1024, 3 * size)
    shift = find_shift(X[sampled_rows(*X.shape)])
    X = X if shift is None else shift.taken_off(X)
    clusters = MiniBatchKMeans(size, random_state=seed, n_init=1, batch_size=batch, reassignment_ratio=0.0)
    nearest = np.unique(np.argmin(clusters.fit_transform(X), axis=0))
    others = np.setdiff1d(np.arange(X.shape[0]), nearest)
    extra = np.random.default_rng(seed).choice(others, size=size - nearest.size, replace=False)
    return np.sort(np.concatenate([nearest, extra])).astype(np.int64)
