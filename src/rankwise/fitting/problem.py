"""Problems after validation: a design and its pairs, a kernel and its rows, and prior knowledge of coefficients."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from rankwise.arrays import Floats, Ints, Matrix, Rows, is_sparse
from rankwise.design import DenseDesign, Design, matrix_rows
from rankwise.design.offsets import find_shift, sampled_rows
from rankwise.kernels import FeatureMap, Kernel, KernelDesign, kernel_scores
from rankwise.pairs.factor import Factor
from rankwise.pairs.known_columns import codes_of_rows
from rankwise.pairs.pairs import Pairs
from rankwise.runtime.memory import MemoryBudget
from rankwise.solvers.bounded import Bounds
from rankwise.solvers.direct import DualSpectrum
from rankwise.solvers.scales import are_unlike


@dataclass(frozen=True)
class Problem:
    """Rows and their pairs, with as many outputs as the pairs have."""

    design: Design
    pairs: Pairs

    @cached_property
    def row_codes(self) -> Ints:
        """Numbers of the rows, which equal rows share: their scores are equal, whatever a formula rounds.

        The rows of an operator cannot be read and all count as different.
        """
        design = self.design
        return codes_of_rows(matrix_rows(design)) if design.has_rows else np.arange(design.shape[0])

    def with_equal_rows_together(self) -> Problem:
        """Return the problem whose folds divide neither equal rows of one ranking nor their comparisons."""
        if len(self.pairs.queries) > 1 or self.design.is_on_disk:
            return self
        return replace(self, pairs=self.pairs.of_equal_rows(self.row_codes))


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
        basis = self.X if self.basis is None or self.kernel.is_precomputed else self.X[self.basis]
        return kernel_scores(self.kernel, rows, basis, self.basis, dual)

    def between(self, rows: Rows, others: Rows) -> Floats:
        """Return the kernel between some training rows and others."""
        if self.kernel.is_precomputed:
            return np.asarray(self.X[np.ix_(rows, others)], dtype=np.float64)
        return self.kernel.matrix(self.X[rows], self.X[others])

    def mapped(self) -> tuple[FeatureMap, Floats]:
        """Return the explicit features of the reduced set, or of all rows as one, and of all rows, if they fit."""
        basis = np.arange(self.n_rows) if self.basis is None else self.basis
        self.budget.demand(8 * 4 * basis.size**2, self.n_rows, f"A reduced set of {basis.size} rows")
        if self.kernel.is_precomputed:
            feature_map = FeatureMap.of_basis(self.kernel, basis, self.between(basis, basis))
        else:
            feature_map = FeatureMap.of_basis(self.kernel, self.X[basis])
        n_bytes = 8 * 2 * self.n_rows * feature_map.n_features
        self.budget.demand(n_bytes, self.n_rows, f"The features of {self.n_rows} rows")
        return feature_map, self.features_of(self.X, feature_map)

    def features_of(self, X: Matrix, feature_map: FeatureMap) -> Floats:
        """Return the features of rows; the kernel's columns of the reduced set are made of rows, or given."""
        is_part = self.kernel.is_precomputed and self.basis is not None
        return feature_map.transform(X[:, self.basis] if is_part else X)


_FREE = 1e-12  # of the curvature of a column without a penalty
_CONSTANT = 1e-8  # a column that differs by less inside pairs, in units of its size, is constant there


@dataclass(frozen=True)
class Restriction:
    """``α Σ c_j (w_j - w₀_j)²`` in place of ``α‖w‖²``, over coefficients of given signs.

    In ``w = w₀ + s u`` with ``s = c^-1/2`` the penalty is ``α‖u‖²`` again, and signs are bounds.

    Attributes
    ----------
    signs : (features,) int64 or None
        1 for coefficients that must not be negative, -1 for those that must not be positive, 0 for any.
    prior : (features,) float64 or None
        ``w₀``.
    penalty : (features,) float64 or None
        ``c``, at least 0; `with_penalties` makes it positive.
    """

    signs: Ints | None = None
    prior: Floats | None = None
    penalty: Floats | None = None

    @property
    def is_signed(self) -> bool:
        """Whether some sign is given."""
        return self.signs is not None and bool(self.signs.any())

    @property
    def has_free_columns(self) -> bool:
        """Whether some column has no penalty."""
        return self.penalty is not None and not self.penalty.all()

    def with_penalties(
        self, design: Design, laplacian: Callable[[Floats], Floats], alpha: float
    ) -> tuple[Restriction, Ints]:
        """Return the same with a penalty for every column, and those that had none and differ inside pairs.

        They get next to nothing of their curvature, which gives every direction a minimum, units and a gap. Columns
        that differ by rounding alone say nothing, and get an ordinary penalty.
        """
        free: list[int] = []
        if self.penalty is None or not self.has_free_columns:
            return self, np.array(free, dtype=np.int64)
        noise = np.random.default_rng(0).normal(size=design.shape[0])
        typical = np.linalg.norm(laplacian(noise)) / np.linalg.norm(noise)
        penalty = np.where(self.penalty > 0, self.penalty, 1.0)
        for column in np.flatnonzero(self.penalty == 0).tolist() if alpha > 0 else ():
            values = design.dot((np.arange(penalty.size) == column).astype(np.float64))
            pulled = laplacian(values)
            if np.linalg.norm(pulled) > _CONSTANT * typical * np.linalg.norm(values):
                penalty[column] = _FREE * float(values @ pulled) / alpha
                free.append(column)
        return replace(self, penalty=penalty), np.array(free, dtype=np.int64)

    def origin(self, n_features: int) -> Floats:
        """Return ``w₀``."""
        return np.zeros(n_features) if self.prior is None else self.prior

    def scale(self, n_features: int) -> Floats:
        """Return ``s``."""
        return np.ones(n_features) if self.penalty is None else 1.0 / np.sqrt(self.penalty)

    def to_coef(self, u: Floats) -> Floats:
        """Return ``w``."""
        return self.signed(self.origin(u.size) + (u if self.penalty is None else u * self.scale(u.size)))

    def signed(self, coef: Floats) -> Floats:
        """Return coefficients, (features,) or (features, outputs), that have their signs.

        At a bound ``w₀ + s (-w₀ / s)`` is 0 but for its rounding, which may have the other sign.
        """
        if self.signs is None:
            return coef
        signs = self.signs if coef.ndim == 1 else self.signs[:, None]
        return np.where(coef * signs < 0, 0.0, coef)

    def to_own(self, coef: Floats) -> Floats:
        """Return ``u``."""
        return (coef - self.origin(coef.size)) / (1.0 if self.penalty is None else self.scale(coef.size))

    def bounds(self, origin: Floats, scale: Floats) -> Bounds:
        """Return the bounds of u that the signs imply."""
        signs = np.zeros(origin.size) if self.signs is None else self.signs
        zero = -origin / scale
        return Bounds(np.where(signs > 0, zero, -np.inf), np.where(signs < 0, zero, np.inf))
