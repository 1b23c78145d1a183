"""Few columns, many alphas: one symmetric eigendecomposition, then ``O(n²)`` an alpha."""

from __future__ import annotations

import numpy as np

from rankwise.arrays import Floats
from rankwise.objectives import QuadraticObjective
from rankwise.runtime.decompositions import decompose
from rankwise.solvers.scales import is_out_of_range
from rankwise.solvers.solution import Solution, Status

__all__ = ["EigenFactor"]


class EigenFactor:
    """``H = V diag(σ) V'``."""

    def __init__(self, objective: QuadraticObjective) -> None:
        self._decompose(objective.matrix(), objective.rhs)

    @classmethod
    def of_matrix(cls, matrix: Floats, rhs: Floats) -> EigenFactor:
        """Diagonalise a matrix that is at hand."""
        factor = cls.__new__(cls)
        factor._decompose(matrix, rhs)  # noqa: SLF001
        return factor

    def _decompose(self, matrix: Floats, rhs: Floats) -> None:
        self._rhs, self._size = rhs, float(np.trace(matrix))
        if not np.isfinite(self._size):
            return
        values, self.vectors = decompose(matrix.shape[0], lambda: np.linalg.eigh(matrix))
        self.values = np.maximum(values, 0.0)  # H is positive semidefinite: below zero there is only rounding
        self._projected = self.vectors.T @ rhs

    def solve(self, alpha: float) -> Solution:
        """Solve ``(H + αI) w = b``; in a singular system, the solution of least norm."""
        if is_out_of_range(self._size + alpha, self._rhs):
            return Solution(np.zeros_like(self._rhs), Status.OUT_OF_RANGE, certificate=np.inf)
        shifted = self.values + alpha
        smallest = shifted.size * np.finfo(np.float64).eps * shifted.max(initial=0.0)
        kept = shifted > smallest
        inverse = np.divide(1.0, shifted, out=np.zeros_like(shifted), where=kept)
        scaled = inverse if self._projected.ndim == 1 else inverse[:, None]
        coef: Floats = self.vectors @ (scaled * self._projected)
        if kept.all():
            return Solution(coef, Status.EXACT)
        return Solution(coef, Status.SINGULAR, rank=int(kept.sum()))
