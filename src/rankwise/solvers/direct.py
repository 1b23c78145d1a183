"""Exact solutions from one factorisation: Cholesky and eigenvalues of the primal, and the dual of all rows.

Few columns: form ``X'LX`` once and solve by Cholesky, or diagonalise it.

Kernel RankRLS by dual coefficients: the same solvers, on another quadratic.

With ``f = Ka`` and ``L = F'F``, every minimum has the form ``a = F'b`` where (docs/mathematics.md, section 2)

    (F K F' + αI) b = t          F't = r

The matrix is symmetric and its eigenvectors are orthogonal; the papers' general decomposition of ``LK`` is neither
needed nor safe. Departs from the 2007 and 2009 papers in this, in singular kernels needing no care, and in indefinite
ones being cut to their positive part: b then lies in the span of eigenvectors with positive eigenvalues, which is the
model of the clipped kernel for training rows and new rows alike.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy.linalg.lapack import dpotrs

from rankwise.arrays import Floats
from rankwise.design import Design
from rankwise.objectives import MatrixQuadratic, QuadraticObjective
from rankwise.pairs.factor import Factor
from rankwise.runtime.decompositions import diagonalise, factorise, singular
from rankwise.runtime.threads import large_algebra
from rankwise.solvers.scales import EPS
from rankwise.solvers.solution import Solution, Status

_UNLIKE = 1e6  # diagonal entries of H + αI: beside so large ones the small eigenvalues keep ten digits


def solve_by_eigenvalues(objective: QuadraticObjective, alpha: float) -> Solution:
    """Solve ``(H + αI) w = b`` by ``H = V diag(σ) V'``; in a singular system, find the solution of least norm."""
    matrix, rhs = objective.matrix(), objective.rhs
    with large_algebra(matrix.shape[0]):
        values, vectors = np.linalg.eigh(matrix)
    shifted = np.maximum(values, 0.0) + alpha  # H is positive semidefinite: below zero there is only rounding
    kept = shifted > shifted.size * EPS * shifted.max(initial=0.0)
    diagonal = np.diagonal(matrix) + alpha
    is_alike = diagonal.max(initial=0.0) <= _UNLIKE * diagonal.min(initial=np.inf)
    # With alpha = 0 the solution of least norm is wanted, which balancing would change.
    if alpha > 0 and not (is_alike and kept.all()):
        # With ones on the diagonal, alpha is not lost beside columns in other units than the rest.
        unit = np.sqrt(diagonal)
        balanced = matrix / np.outer(unit, unit)
        np.fill_diagonal(balanced, 1.0)
        solution = solve_by_eigenvalues(MatrixQuadratic(balanced, (rhs.T / unit).T), 0.0)
        if solution.status is Status.EXACT:
            return replace(solution, coef=(solution.coef.T / unit).T)
    inverse = np.divide(1.0, shifted, out=np.zeros_like(shifted), where=kept)
    coef = np.asarray(vectors @ (inverse * (vectors.T @ rhs).T).T)
    if kept.all():
        return Solution(coef, Status.EXACT)
    return Solution(coef, Status.SINGULAR, rank=int(kept.sum()))


class DirectFactor:
    """``X'LX`` as a matrix; each alpha costs a Cholesky factorisation of it."""

    def __init__(self, objective: QuadraticObjective) -> None:
        self._matrix = objective.matrix()
        self._rhs = objective.rhs

    def solve(self, alpha: float) -> Solution:
        """Solve ``(H + αI) w = b``."""
        factor = self._matrix.copy().T  # the same matrix, in LAPACK's order
        diagonal = np.einsum("ii->i", factor)
        diagonal += alpha
        # A pivot that is all rounding means that the matrix is singular although Cholesky went through. Each is
        # measured by its own column: columns of very different scales are no reason to drop the small ones.
        has_factor, pivots = factorise(factor), np.diagonal(factor) ** 2
        rounding = pivots.size * EPS * (np.diagonal(self._matrix) + alpha)
        if not has_factor or np.any(pivots <= rounding):
            return solve_by_eigenvalues(MatrixQuadratic(self._matrix, self._rhs), alpha)
        coef = dpotrs(factor, self._rhs, lower=1)[0]
        return Solution(coef, Status.EXACT)


# A negative eigenvalue beyond this share of the largest one is not rounding.
_ROUNDING = 1e-9


class DualObjective(QuadraticObjective):
    """``b'(FKF')b - 2t'b``: a quadratic whose minimum with the penalty ``αb'b`` gives the dual coefficients.

    Parameters
    ----------
    kernel : Design
        The square kernel matrix, stored or made again whenever it is multiplied. A stored one is overwritten
        by `matrix`.
    factor : Factor
    pull : (rows,) or (rows, outputs) float64
    """

    rhs: Floats = np.empty(0)

    def __init__(self, kernel: Design, factor: Factor, pull: Floats) -> None:
        self._kernel, self._factor = kernel, factor
        self.rhs = factor.target(pull)  # t

    def product(self, v: Floats) -> Floats:
        """Apply ``FKF'``."""
        return self._factor.apply(self._kernel.dot(self._factor.transposed(v)))

    def matrix(self) -> Floats:
        """Return ``FKF'``, in place of the kernel where that is stored."""
        return self._matrix

    @cached_property
    def _matrix(self) -> Floats:
        return self._factor.sandwich(self._kernel.matrix())

    def dual_coefficients(self, b: Floats) -> Floats:
        """Return ``a = F'b``."""
        return self._factor.transposed(b)


@dataclass(frozen=True)
class DualSpectrum:
    """``FKF' = V diag(σ) V'`` without its negative part, and the target in the coordinates V.

    Attributes
    ----------
    values : (k,) float64
    vectors : (rows, k) float64
        Square, unless negative directions were dropped.
    smallest : float
        The smallest eigenvalue before anything was dropped.
    rounding : float
        The rounding errors of all eigenvalues, as a share of the largest.
    """

    values: Floats
    vectors: Floats
    smallest: float
    rounding: float = EPS

    @classmethod
    def of_matrix(cls, matrix: Floats) -> DualSpectrum:
        """Diagonalise, overwriting the matrix."""
        values, vectors = diagonalise(matrix, overwrite=True)
        smallest, largest = float(values[0]), float(values[-1])
        if is_indefinite(smallest, largest):
            kept = values > _ROUNDING * largest
            values, vectors = values[kept], np.ascontiguousarray(vectors[:, kept])
        # Zeros come as rounding errors, which a small alpha would take for eigenvalues.
        zero = matrix.shape[0] * EPS * largest
        return cls(np.where(values > zero, values, 0.0), vectors, smallest)

    @classmethod
    def of_features(cls, Z: Floats) -> DualSpectrum:
        """Decompose ``ZZ'`` by the singular values of Z; where Z has more rows than columns, without the null space."""
        vectors, values, _ = singular(Z)
        return cls(np.square(values), vectors, 0.0, EPS**2)

    @property
    def extremes(self) -> tuple[float, float]:
        """The smallest eigenvalue before anything was dropped, and the largest."""
        return self.smallest, float(self.values[-1]) if self.values.size else 0.0

    def solve(self, target: Floats, alpha: float) -> Floats:
        """Return ``b``; for alpha = 0 the one of least norm."""
        shifted = self.values + alpha
        threshold = shifted.size * self.rounding * shifted.max(initial=0.0)
        inverse = np.divide(1.0, shifted, out=np.zeros_like(shifted), where=shifted > threshold)
        return np.asarray(self.vectors @ (inverse * (self.vectors.T @ target).T).T)


def indefiniteness(smallest: float, largest: float) -> float:
    """Return how far the spectrum reaches below zero, as a share of its largest absolute value."""
    return -smallest / max(largest, -smallest) if smallest < 0 else 0.0


def is_indefinite(smallest: float, largest: float) -> bool:
    """Tell whether a spectrum reaches below zero by more than rounding."""
    return indefiniteness(smallest, largest) > _ROUNDING


def is_positive(matrix: Floats) -> bool:
    """Tell whether a symmetric matrix has no negative eigenvalue beyond rounding, by one Cholesky factorisation."""
    shifted = matrix.copy().T
    diagonal = np.einsum("ii->i", shifted)
    diagonal += _ROUNDING * max(float(np.abs(diagonal).max(initial=0.0)), np.finfo(np.float64).tiny)
    return factorise(shifted)
