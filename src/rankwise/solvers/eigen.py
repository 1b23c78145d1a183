"""Few columns, many alphas: one symmetric eigendecomposition, then ``O(n²)`` an alpha."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from rankwise.arrays import Floats
from rankwise.objectives import QuadraticObjective
from rankwise.runtime.threads import large_algebra
from rankwise.solvers.scales import is_out_of_range
from rankwise.solvers.solution import Solution, Status

__all__ = ["EigenFactor"]

_UNLIKE = 1e8  # diagonal entries of H + αI: columns that differ by 1e4 leave the small eigenvalues half of their digits


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
        self._matrix, self._rhs, self._size = matrix, rhs, float(np.trace(matrix))
        if not np.isfinite(self._size):
            return
        with large_algebra(matrix.shape[0]):
            values, self.vectors = np.linalg.eigh(matrix)
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
        diagonal = np.diagonal(self._matrix) + alpha
        is_alike = diagonal.max(initial=0.0) <= _UNLIKE * diagonal.min(initial=np.inf)
        # With alpha = 0 the solution of least norm is wanted, which balancing would change.
        balanced = self._balanced(alpha) if alpha > 0 and not (is_alike and kept.all()) else None
        if balanced is not None:
            return balanced
        if kept.all():
            return Solution(coef, Status.EXACT)
        return Solution(coef, Status.SINGULAR, rank=int(kept.sum()))

    def _balanced(self, alpha: float) -> Solution | None:
        """Solve with ones on the diagonal, where alpha is not lost beside columns in other units than the rest."""
        unit = np.sqrt(np.diagonal(self._matrix) + alpha)
        matrix = self._matrix / np.outer(unit, unit)
        np.fill_diagonal(matrix, 1.0)
        solution = EigenFactor.of_matrix(matrix, (self._rhs.T / unit).T).solve(0.0)
        return replace(solution, coef=(solution.coef.T / unit).T) if solution.status is Status.EXACT else None
