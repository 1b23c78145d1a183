"""Quadratic objectives in other coordinates: from another origin, in other units, or with columns taken out.

With ``w = w₀ + s u``, a penalty on ``‖u‖²`` keeps w near w₀, in units of s for each column. Solvers treat it as any
other objective, and its certificates hold.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
import numpy.typing as npt

from rankwise.arrays import Floats
from rankwise.objectives.evaluated import Evaluated
from rankwise.objectives.protocols import QuadraticObjective
from rankwise.runtime.threads import large_algebra

__all__ = ["MatrixQuadratic", "MovedQuadratic", "WithoutColumns"]


def _columns(scale: Floats, v: Floats) -> Floats:
    return v * (scale if v.ndim == 1 else scale[:, None])


class MovedQuadratic(Evaluated):
    """An objective of ``u``, where ``w = origin + scale u``; its constant is left out."""

    def __init__(self, objective: QuadraticObjective, origin: Floats, scale: Floats) -> None:
        self._objective, self.origin, self.scale = objective, origin, scale

    @property
    def n_features(self) -> int:
        """The length of a coefficient vector."""
        return self._objective.n_features

    @cached_property
    def rhs(self) -> Floats:
        """``s (b - H w₀)``."""
        rhs = self._objective.rhs
        if self.origin.any():
            pulled = self._objective.product(self.origin)
            rhs = rhs - (pulled if rhs.ndim == 1 else pulled[:, None])
        return _columns(self.scale, rhs)

    @property
    def n_products(self) -> int:
        """Products of the objective that is moved."""
        return self._objective.n_products

    n_reads = n_products

    def product(self, v: Floats) -> Floats:
        """Apply ``diag(s) H diag(s)``."""
        return _columns(self.scale, self._objective.product(_columns(self.scale, v)))

    def matrix(self) -> Floats:
        """Return ``diag(s) H diag(s)``."""
        moved: Floats = self._objective.matrix() * self.scale * self.scale[:, None]
        return moved

    def diagonal(self) -> Floats:
        """Return its diagonal."""
        moved: Floats = self._objective.diagonal() * self.scale**2
        return moved

    def sizes(self) -> Floats | None:
        """Return its approximate diagonal."""
        sizes = self._objective.sizes()
        return None if sizes is None else sizes * self.scale**2

    def to_coef(self, u: Floats) -> Floats:
        """Return ``w₀ + s u``."""
        return _columns(self.scale, u) + (self.origin if u.ndim == 1 else self.origin[:, None])


class WithoutColumns(Evaluated):
    """An objective of the penalised columns, minimised over the columns without a penalty.

    With the columns U taken out, ``H' = H_KK - H_KU H_UU⁺ H_UK`` and ``b' = b_K - H_KU H_UU⁺ b_U``. The
    constructor computes a product for each column of U; later products cost as much as those of the whole objective.
    """

    def __init__(self, objective: QuadraticObjective, is_out: npt.NDArray[np.bool_]) -> None:
        self._objective = objective
        self._out, self._kept = np.flatnonzero(is_out), np.flatnonzero(~is_out)
        unit = np.zeros((objective.n_features, self._out.size))
        unit[self._out, np.arange(self._out.size)] = 1.0
        with large_algebra(self._out.size):
            columns = objective.product(unit)
        inner = (columns[self._out] + columns[self._out].T) / 2
        # Each in its own units, for what is small beside another column need not be rounding.
        length = np.sqrt(np.maximum(np.diagonal(inner), 0.0))
        length[length == 0] = 1.0
        units = np.outer(length, length)
        with large_algebra(length.size):
            self._inverse = np.linalg.pinv(inner / units, rcond=1e-13, hermitian=True) / units
        self._crossed = columns[self._kept]

    @property
    def n_features(self) -> int:
        """The number of kept columns."""
        return int(self._kept.size)

    @cached_property
    def rhs(self) -> Floats:
        """``b'``."""
        rhs = self._objective.rhs
        return np.asarray(rhs[self._kept] - self._crossed @ (self._inverse @ rhs[self._out]))

    @property
    def n_products(self) -> int:
        """Products of the whole objective."""
        return self._objective.n_products

    def product(self, v: Floats) -> Floats:
        """Apply ``H'``."""
        image = self._objective.product(self._widened(v))
        return np.asarray(image[self._kept] - self._crossed @ (self._inverse @ image[self._out]))

    def matrix(self) -> Floats:
        """Return ``H'``."""
        whole = self._objective.matrix()[np.ix_(self._kept, self._kept)]
        return np.asarray(whole - self._crossed @ self._inverse @ self._crossed.T)

    def diagonal(self) -> Floats:
        """Return its diagonal; entries that rounding makes negative are set to 0."""
        lost = np.einsum("ij,ij->i", self._crossed @ self._inverse, self._crossed)
        return np.asarray(np.maximum(self._objective.diagonal()[self._kept] - lost, 0.0))

    def sizes(self) -> Floats | None:
        """Return the approximate diagonal of H at the kept columns, an upper estimate of that of ``H'``."""
        sizes = self._objective.sizes()
        return None if sizes is None else sizes[self._kept]

    def to_whole(self, v: Floats) -> Floats:
        """Return the coefficients of all columns, given those of the kept columns."""
        whole: Floats = self._widened(v)
        rhs = self._objective.rhs[self._out]
        whole[self._out] = self._inverse @ (rhs - self._crossed.T @ v)
        return whole

    def _widened(self, v: Floats) -> Floats:
        whole: Floats = np.zeros((self._objective.n_features, *v.shape[1:]))
        whole[self._kept] = v
        return whole


class MatrixQuadratic(Evaluated):
    """``u'Hu - 2b'u`` of a matrix and of one vector, or of one per output."""

    def __init__(self, matrix: Floats, rhs: Floats) -> None:
        self._matrix, self.rhs = matrix, rhs
        self.n_products = self.n_reads = 0

    @property
    def n_features(self) -> int:
        """The length of a coefficient vector."""
        return int(self._matrix.shape[0])

    def product(self, v: Floats) -> Floats:
        """Apply H."""
        self.n_products += 1 if v.ndim == 1 else v.shape[1]
        return np.asarray(self._matrix @ v)

    def matrix(self) -> Floats:
        """Return H."""
        return self._matrix

    def diagonal(self) -> Floats:
        """Return the diagonal of H."""
        return np.diagonal(self._matrix).copy()

    sizes = diagonal
