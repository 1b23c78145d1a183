"""A kernel and its rows after validation, from which the kernel estimators solve and hold out."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from rankwise.arrays import Floats, Matrix, Rows, is_sparse
from rankwise.design import DenseDesign, Design, matrix_rows
from rankwise.design.offsets import find_shift, sampled_rows
from rankwise.kernels import FeatureMap, Kernel
from rankwise.kernels.design import KernelDesign
from rankwise.pairs.factor import Factor
from rankwise.runtime.memory import MemoryBudget
from rankwise.solvers.direct import DualSpectrum
from rankwise.solvers.scales import are_unlike

__all__ = ["KernelProblem"]


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

    def spectrum(self, factor: Factor, copies: int) -> DualSpectrum:
        """Return the spectrum of ``FKF'``, if `copies` matrices of the size of K fit."""
        if (X := self.unlike_columns()) is not None:
            return DualSpectrum.of_features(factor.apply(X))
        return DualSpectrum.of_matrix(factor.sandwich(self.matrix(copies)))

    def unlike_columns(self) -> Floats | None:
        """Return the rows where the kernel is linear and has lost its small columns beside large ones; else None."""
        X = self.linear_rows
        if X is None or not are_unlike(X):
            return None
        copies = f"{self.n_rows} rows of {X.shape[1]} columns and their decomposition"
        self.budget.demand(8 * 4 * self.n_rows * X.shape[1], self.n_rows, copies)
        return np.asarray(X.toarray() if is_sparse(X) else X, dtype=np.float64)

    @cached_property
    def linear_rows(self) -> Matrix | None:
        """The rows whose products are a linear kernel, close to zero; None for other kernels."""
        if self.kernel.name != "linear":
            return None
        shift = find_shift(self.X[sampled_rows(*self.X.shape)])
        return self.X if shift is None else shift.taken_off(self.X)

    def products(self, design: Design) -> Design:
        """Return the kernel of all rows as something to multiply by: kept if it fits, else made again."""
        return design if self.kernel.is_precomputed else self._against(self.X)

    def against(self, rows: Design) -> Design:
        """Return the kernel between other rows and all training rows; of a precomputed one the rows themselves."""
        return rows if self.kernel.is_precomputed else self._against(matrix_rows(rows))

    def _against(self, X: Matrix) -> Design:
        if self.budget.allows(8 * self.n_rows * X.shape[0]):
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

    def features_of(self, rows: Design, feature_map: FeatureMap) -> Floats:
        """Return the features of other rows."""
        X = matrix_rows(rows)
        return feature_map.transform(X[:, self.basis] if self.kernel.is_precomputed else X)

    def features(self, feature_map: FeatureMap) -> Floats:
        """Return the features of all rows, if they fit."""
        n_bytes = 8 * 2 * self.n_rows * feature_map.n_features
        self.budget.demand(n_bytes, self.n_rows, f"The features of {self.n_rows} rows")
        # The kernel's columns of the reduced set are made of rows, or given.
        return feature_map.transform(self.X[:, self.basis] if self.kernel.is_precomputed else self.X)
