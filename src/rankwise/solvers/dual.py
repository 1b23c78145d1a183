"""Kernel RankRLS by dual coefficients: the same solvers, on another quadratic.

With ``f = Ka`` and ``L = F'F``, every minimum has the form ``a = F'b`` where (docs/mathematics.md, section 2)

    (F K F' + αI) b = t          F't = r

The matrix is symmetric and its eigenvectors are orthogonal; the papers' general decomposition of ``LK`` is neither
needed nor safe. Departs from the 2007 and 2009 papers in this, in singular kernels needing no care, and in indefinite
ones being cut to their positive part: b then lies in the span of eigenvectors with positive eigenvalues, which is the
model of the clipped kernel for training rows and new rows alike.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from rankwise.arrays import Floats
from rankwise.design import Design
from rankwise.objectives.evaluated import Evaluated
from rankwise.pairs.factor import Factor
from rankwise.runtime.decompositions import diagonalise, factorise, singular
from rankwise.solvers.scales import EPS

__all__ = ["DualObjective", "DualSpectrum", "indefiniteness", "is_indefinite", "is_positive"]

# A negative eigenvalue beyond this share of the largest one is not rounding.
_ROUNDING = 1e-9


class DualObjective(Evaluated):
    """``b'(FKF')b - 2t'b``: a quadratic whose minimum with the penalty ``αb'b`` gives the dual coefficients.

    Parameters
    ----------
    kernel : Design
        The square kernel matrix, stored or made again whenever it is multiplied. A stored one is overwritten
        by `matrix`.
    factor : Factor
    pull : (rows,) or (rows, outputs) float64
    """

    def __init__(self, kernel: Design, factor: Factor, pull: Floats) -> None:
        self._kernel = kernel
        self._factor = factor
        self.rhs = factor.target(pull)
        self.n_products = 0

    @property
    def n_features(self) -> int:
        """The number of dual variables: one per row, or per pair, of the factor."""
        return int(self.rhs.shape[0])

    def product(self, v: Floats) -> Floats:
        """Apply ``FKF'``."""
        self.n_products += 1 if v.ndim == 1 else v.shape[1]
        return self._factor.apply(self._kernel.dot(self._factor.transposed(v)))

    def matrix(self) -> Floats:
        """Return ``FKF'``, in place of the kernel where that is stored."""
        return self._matrix

    @cached_property
    def _matrix(self) -> Floats:
        return self._factor.sandwich(self._kernel.matrix())

    def diagonal(self) -> Floats:
        """Return the diagonal of ``FKF'``."""
        return np.diagonal(self._matrix).copy()

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
        What the largest eigenvalue is multiplied by to get the rounding errors of all.
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
        zero = matrix.shape[0] * np.finfo(np.float64).eps * largest
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
