"""Few columns: form ``X'LX`` once and solve by Cholesky, or diagonalise it once for every alpha."""

from __future__ import annotations

import numpy as np
from scipy.linalg.lapack import dpotrs

from rankwise.objectives import QuadraticObjective
from rankwise.runtime.decompositions import factorise
from rankwise.solvers.eigen import EigenFactor
from rankwise.solvers.scales import is_out_of_range
from rankwise.solvers.solution import Solution, Status

__all__ = ["DirectFactor"]

_EPS = float(np.finfo(np.float64).eps)


class DirectFactor:
    """``X'LX`` as a matrix; each alpha costs a Cholesky factorisation of it."""

    def __init__(self, objective: QuadraticObjective) -> None:
        self._matrix = objective.matrix()
        self._rhs = objective.rhs

    def solve(self, alpha: float) -> Solution:
        """Solve ``(H + αI) w = b``."""
        if is_out_of_range(float(np.trace(self._matrix)) + alpha, self._rhs):
            return Solution(np.zeros_like(self._rhs), Status.OUT_OF_RANGE, certificate=np.inf)
        factor = self._matrix.copy().T  # the same matrix, in LAPACK's order
        diagonal = np.einsum("ii->i", factor)
        diagonal += alpha
        if not factorise(factor):
            return EigenFactor.of_matrix(self._matrix, self._rhs).solve(alpha)
        # A pivot that is all rounding means that the matrix is singular although Cholesky went through. Each is
        # measured by its own column: columns of very different scales are no reason to drop the small ones.
        pivots = np.diagonal(factor) ** 2
        rounding = pivots.size * _EPS * (np.diagonal(self._matrix) + alpha)
        if np.any(pivots <= rounding):
            return EigenFactor.of_matrix(self._matrix, self._rhs).solve(alpha)
        coef = dpotrs(factor, self._rhs, lower=1)[0]
        return Solution(coef, Status.EXACT)
