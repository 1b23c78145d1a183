"""A kernel and its rows after validation: what the kernel estimators solve and hold out from."""

from __future__ import annotations

from dataclasses import dataclass, replace
from numbers import Real

import numpy as np
import numpy.typing as npt

from rankwise.arrays import ArrayLike, Floats, Matrix, Rows
from rankwise.basis import BASIS_METHODS, kmeans_rows, leverage_rows, random_rows
from rankwise.data.containers import unmasked
from rankwise.data.validation import check_choice
from rankwise.design import DenseDesign, Design
from rankwise.design.offsets import spreads
from rankwise.exceptions import InvalidInputError
from rankwise.kernel_design import KernelDesign
from rankwise.kernels import FeatureMap, Kernel, Report, matrix_rows, no_report
from rankwise.memory import MemoryBudget

__all__ = [
    "Basis",
    "KernelProblem",
    "basis_size",
    "check_precomputed",
    "choose_basis",
    "resolve_gamma",
]


# A number of rows, with or without the method that chooses them, or the rows themselves.
Basis = int | tuple[str, int] | ArrayLike | None

_SYMMETRY = 1e-8
_TILE = 512


@dataclass(frozen=True)
class KernelProblem:
    """A kernel over training rows.

    Attributes
    ----------
    X : matrix or LinearOperator
        The rows, or the kernel matrix itself where it is precomputed.
    basis : (b,) int64 or None
        The rows of the reduced set; None for all.
    """

    kernel: Kernel
    X: Matrix
    basis: Rows | None
    budget: MemoryBudget
    n_threads: int

    @property
    def n_rows(self) -> int:
        """How many training rows there are."""
        return int(self.X.shape[0])

    def subset(self, rows: Rows) -> KernelProblem:
        """Return the problem of some rows, without a reduced set."""
        X = self.X[np.ix_(rows, rows)] if self.kernel.is_precomputed else self.X[rows]
        return KernelProblem(self.kernel, X, None, self.budget, self.n_threads)

    def with_all_rows(self) -> KernelProblem:
        """Return the problem whose reduced set is all rows: the exact feature map."""
        return replace(self, basis=np.arange(self.n_rows))

    def matrix(self, copies: int) -> Floats:
        """Return the kernel of all rows as a new array, if `copies` matrices of its size fit."""
        self.budget.demand(
            8 * copies * self.n_rows**2,
            self.n_rows,
            f"The kernel of {self.n_rows} rows and its decomposition",
        )
        if self.kernel.is_precomputed:
            return np.array(self.X, dtype=np.float64, order="C", copy=True)
        return self.kernel.matrix(self.X, self.X)

    def products(self, design: Design) -> Design:
        """Return the kernel of all rows as something to multiply by: kept if it fits, else made again."""
        if self.kernel.is_precomputed:
            return design
        if self.budget.allows(8 * self.n_rows**2):
            return DenseDesign(self.kernel.matrix(self.X, self.X), self.n_threads)
        return KernelDesign(self.kernel, self.X, self.X, n_threads=self.n_threads)

    def against(self, rows: Design) -> Design:
        """Return the kernel between other rows and all training rows; of a precomputed one the rows themselves."""
        if self.kernel.is_precomputed:
            return rows
        X = matrix_rows(rows)
        if self.budget.allows(8 * self.n_rows * rows.shape[0]):
            return DenseDesign(self.kernel.matrix(X, self.X), self.n_threads)
        return KernelDesign(self.kernel, X, self.X, n_threads=self.n_threads)

    def scores(self, rows: Design, dual: Floats) -> Floats:
        """Return the scores of other rows under dual coefficients (basis, models)."""
        if self.kernel.is_precomputed:
            whole = np.zeros((self.n_rows, dual.shape[1]))
            whole[slice(None) if self.basis is None else self.basis] = dual
            return rows.dot(whole)
        basis = self.X if self.basis is None else self.X[self.basis]
        return KernelDesign(self.kernel, matrix_rows(rows), basis, n_threads=self.n_threads).dot(dual)

    def between(self, rows: Rows, others: Rows) -> Floats:
        """Return the kernel between some training rows and others."""
        if self.kernel.is_precomputed:
            return np.asarray(self.X[np.ix_(rows, others)], dtype=np.float64)
        return self.kernel.matrix(self.X[rows], self.X[others])

    def feature_map(self) -> FeatureMap:
        """Return the explicit features of the reduced set."""
        assert self.basis is not None
        size = self.basis.size
        self.budget.demand(8 * 4 * size**2, self.n_rows, f"A reduced set of {size} rows")
        if self.kernel.is_precomputed:
            return FeatureMap.of_basis(self.kernel, self.basis, self.between(self.basis, self.basis))
        return FeatureMap.of_basis(self.kernel, self.X[self.basis])

    def kept_features(self, feature_map: FeatureMap) -> Floats:
        """Return the features of all rows, if they fit."""
        n_bytes = self._feature_bytes(feature_map)
        self.budget.demand(n_bytes, self.n_rows, f"The features of {self.n_rows} rows")
        return feature_map.transform(self._seen)

    def features(self, feature_map: FeatureMap, report: Report = no_report) -> Design:
        """Return the features of all rows: kept if they fit, else made again whenever they are needed.

        Parameters
        ----------
        report : callable
            Gets how many of the rows have been made, whenever some have.
        """
        if self.kernel.is_precomputed or self.budget.allows(self._feature_bytes(feature_map)):
            return DenseDesign(feature_map.transform(self._seen, report), self.n_threads)
        return KernelDesign(
            self.kernel,
            self.X,
            feature_map.basis,
            feature_map.projection,
            n_threads=self.n_threads,
            report=report,
        )

    @property
    def _seen(self) -> Matrix:
        """What the kernel's columns of the reduced set are made of: rows, or those columns themselves."""
        return self.X[:, self.basis] if self.kernel.is_precomputed else self.X

    def _feature_bytes(self, feature_map: FeatureMap) -> int:
        return 8 * 2 * self.n_rows * feature_map.n_features


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


def choose_basis(
    basis: Basis, kernel: Kernel, X: Matrix, seed: int, row_weight: Floats | None
) -> Rows | None:
    """Return the rows of the reduced set: from their number, ``(method, number)``, or the rows themselves.

    Rows that weigh nothing are not chosen, as if they were not there.
    """
    if basis is None:
        return None
    n_rows = X.shape[0]
    method, size = _method_and_size(basis)
    check_choice("basis", method, BASIS_METHODS)
    if np.ndim(size) == 1:
        return _check_rows(np.asarray(unmasked("basis", size)), n_rows)
    if isinstance(size, bool) or not isinstance(size, (int, np.integer)) or not 1 <= size <= n_rows:
        raise InvalidInputError(
            f"basis={basis!r} is not a number of rows between 1 and {n_rows}.",
            f"use for example basis={min(n_rows, 500)}, ('kmeans', {min(n_rows, 500)}), or row indices.",
        )
    present = np.arange(n_rows) if row_weight is None else np.flatnonzero(row_weight)
    size = min(int(size), present.size)
    if method == "random":
        return present[random_rows(present.size, size, seed)]
    if kernel.is_precomputed:
        raise InvalidInputError(
            f"basis={basis!r} looks at the columns of X, and a precomputed kernel has none.",
            "use a number, or row indices.",
        )
    rows = X if present.size == n_rows else X[present]
    if method == "kmeans":
        return present[kmeans_rows(rows, size, seed)]
    return present[leverage_rows(kernel, rows, size, seed)]


def basis_size(basis: Basis, n_rows: int) -> int | None:
    """Return how many rows a reduced set will have, None without one; `choose_basis` checks it."""
    if basis is None:
        return None
    size = _method_and_size(basis)[1]
    if np.ndim(size) == 1:
        return int(np.size(size))
    return int(size) if isinstance(size, (int, np.integer)) else n_rows


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


def check_precomputed(K: Matrix) -> None:
    """Raise unless a precomputed training kernel is square and symmetric."""
    if K.shape[0] != K.shape[1]:
        raise InvalidInputError(
            f"Precomputed matrix must be a square matrix. Input is a {K.shape[0]}x{K.shape[1]} matrix.",
            "fit takes the kernel between training rows; predict takes that between new and training rows.",
        )
    if not isinstance(K, np.ndarray):
        return  # an operator cannot be looked at
    largest, size = 0.0, float(np.finfo(np.float64).tiny)
    # Tile by tile: a kernel on disk is read in pieces that fit in cache, and never copied whole.
    for first in range(0, K.shape[0], _TILE):
        for second in range(0, first + 1, _TILE):
            rows, columns = slice(first, first + _TILE), slice(second, second + _TILE)
            tile, mirrored = np.asarray(K[rows, columns]), np.asarray(K[columns, rows]).T
            largest = max(largest, float(np.abs(tile - mirrored).max(initial=0.0)))
            size = max(size, float(np.abs(tile).max(initial=0.0)))
    if largest > _SYMMETRY * size:
        raise InvalidInputError(
            f"The precomputed kernel is not symmetric: K and its transpose differ by up to {largest:.3g}.",
            "pass (K + K.T) / 2 if that is what you mean.",
        )
