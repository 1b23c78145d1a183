"""Quadratic objectives: the squared loss, and other objectives in other units, or of a matrix.

With ``w = w₀ + s u``, a penalty on ``‖u‖²`` keeps w near w₀, in units of s for each column. Solvers treat it as any
other objective, and its certificates hold.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import cached_property

import numpy as np

from rankwise.arrays import Floats, Ints
from rankwise.design import Design
from rankwise.pairs.graph import PairGraph

__all__ = [
    "BalancedObjective",
    "MatrixQuadratic",
    "QuadraticObjective",
    "QuadraticPoint",
    "ScaledObjective",
    "SquaredObjective",
    "prior_scale",
]

_PROBES = 8  # random vectors that estimate the sizes of columns known only by their products
_TOGETHER = (
    64  # columns of a matrix that are made by products at once: bounds the (rows, columns) block of scores
)


class QuadraticPoint:
    """``w'Hw - 2b'w`` at a point, without the constant, which does not change the minimum."""

    def __init__(self, objective: QuadraticObjective, coef: Floats) -> None:
        self._objective, self._coef = objective, coef

    @cached_property
    def _image(self) -> Floats:
        return self._objective.product(self._coef)

    @property
    def value(self) -> Floats:
        """The objective, one entry per output."""
        return np.asarray((self._coef * (self._image - 2 * self._objective.rhs)).sum(axis=0))

    @property
    def gradient(self) -> Floats:
        """``2 (Hw - b)``."""
        return 2 * (self._image - self._objective.rhs)

    def hessian_product(self, v: Floats) -> Floats:
        """Apply ``2 H``."""
        return 2 * self._objective.product(v)


class QuadraticObjective(ABC):
    """``w'Hw - 2b'w + c``, known by its products ``Hv``.

    Attributes
    ----------
    n_products : int
        The number of vectors multiplied by H so far; a block of k vectors counts k.
    """

    n_products = 0

    @property
    def n_features(self) -> int:
        """The length of a coefficient vector."""
        return int(self.rhs.shape[0])

    @property
    def n_reads(self) -> int:
        """The number of products, for solvers that count reads."""
        return self.n_products

    @property
    @abstractmethod
    def rhs(self) -> Floats:
        """The linear term ``b``, a column per output where there are several."""

    def product(self, v: Floats) -> Floats:
        """Apply ``H`` to a vector or to the columns of a block."""
        self.n_products += 1 if v.ndim == 1 else v.shape[1]
        return self._product(v)

    @abstractmethod
    def _product(self, v: Floats) -> Floats: ...

    def matrix(self) -> Floats:
        """Return ``H`` itself."""
        n = self.n_features
        out = np.empty((n, n))
        for start in range(0, n, _TOGETHER):
            stop = min(start + _TOGETHER, n)
            out[:, start:stop] = self.product(_units(n, np.arange(start, stop)))
        return (out + out.T) / 2

    def diagonal(self) -> Floats:
        """Return the diagonal of ``H``."""
        return np.diagonal(self.matrix()).copy()

    def sizes(self) -> Floats | None:
        """Return a cheap approximation of the diagonal of ``H``; None where it does not refer to columns."""
        return None

    def at(self, coef: Floats) -> QuadraticPoint:
        """Evaluate at a coefficient vector, or at several as columns."""
        return QuadraticPoint(self, coef)


def _units(n: int, columns: Ints) -> Floats:
    """Return some columns of the unit matrix."""
    unit = np.zeros((n, columns.size))
    unit[columns, np.arange(columns.size)] = 1.0
    return unit


class SquaredObjective(QuadraticObjective):
    """The squared loss of a design over a graph: ``H = X'LX``, ``b = X'r``.

    Where the storage and the graph allow it, a product reads X once (`Design.gram_product`).
    """

    def __init__(self, design: Design, graph: PairGraph) -> None:
        self.design = design
        self.graph = graph

    @property
    def n_features(self) -> int:
        """The number of columns."""
        return int(self.design.shape[1])

    @cached_property
    def rhs(self) -> Floats:
        """``X'r``."""
        return self.design.tdot(self.graph.pull)

    @cached_property
    def _fused(self) -> Callable[[Floats], Floats] | None:
        return None if self.graph.blocks is None else self.design.gram_product(self.graph.blocks)

    def _product(self, v: Floats) -> Floats:
        """Apply ``X'LX``."""
        if self._fused is not None:
            return self._fused(v)
        return self.design.tdot(self.graph.laplacian(self.design.dot(v)))

    def matrix(self) -> Floats:
        """Return ``X'LX``; where reading X once gives ``X'r`` as well, that is kept."""
        blocks = self.graph.blocks
        if blocks is not None:
            system = None if "rhs" in self.__dict__ else self.design.gram_system(blocks, self.graph.pull)
            if system is not None:
                matrix, self.rhs = system
                return matrix
            gram = self.design.gram_matrix(blocks)
            if gram is not None:
                return gram
        return super().matrix()

    def _diagonal(self) -> Floats | None:
        graph = self.graph
        if graph.blocks is not None:
            return self.design.gram_diagonal(graph.blocks)
        return None if graph.edges is None else self.design.squared_differences(*graph.edges)

    def diagonal(self) -> Floats:
        """Return ``diag(X'LX)``."""
        diagonal = self._diagonal()
        return super().diagonal() if diagonal is None else diagonal

    def sizes(self) -> Floats:
        """Return ``diag(X'LX)``; where only the whole matrix would give it, an estimate from random rows."""
        diagonal = self._diagonal() if self.design.has_rows else None
        if diagonal is not None:
            return diagonal
        noise = np.random.default_rng(0).normal(size=(self.design.shape[0], _PROBES))
        pull = self.graph.laplacian(noise)
        squares: Floats = (self.design.tdot(pull) ** 2).mean(axis=1)  # about diag(X'L²X)
        return squares * (np.vdot(noise, pull) / max(float(np.vdot(pull, pull)), np.finfo(np.float64).tiny))


class ScaledObjective(QuadraticObjective):
    """An objective of ``u``, where ``w = origin + column_scale u``, plus ``Σ penalty u²``; its constant is left out.

    A penalty on ``‖u‖²`` is a prior on the columns. With ``s = D^-p``, ``D = diag(H)``, it becomes ``α w'D^(2p) w``:
    another model, chosen on purpose.
    """

    def __init__(
        self,
        objective: QuadraticObjective,
        column_scale: Floats,
        origin: Floats | None = None,
        penalty: Floats | float = 0.0,
    ) -> None:
        self.unscaled, self.column_scale = objective, column_scale
        self.origin, self.penalty = origin, penalty

    @cached_property
    def rhs(self) -> Floats:
        """``s (b - H w₀)``."""
        rhs = self.unscaled.rhs
        if self.origin is not None and self.origin.any():
            pulled = self.unscaled.product(self.origin)
            rhs = rhs - (pulled if rhs.ndim == pulled.ndim else pulled[:, None])
        return self._scaled(rhs)

    def _product(self, v: Floats) -> Floats:
        """Apply ``diag(s) H diag(s) + diag(penalty)``."""
        return self._scaled(self.unscaled.product(self._scaled(v))) + (v.T * self.penalty).T

    def matrix(self) -> Floats:
        """Return the matrix."""
        scaled: Floats = self.unscaled.matrix() * self.column_scale * self.column_scale[:, None]
        scaled[np.diag_indices_from(scaled)] += self.penalty
        return scaled

    def diagonal(self) -> Floats:
        """Return its diagonal."""
        return np.asarray(self.unscaled.diagonal() * self.column_scale**2 + self.penalty)

    def sizes(self) -> Floats | None:
        """Return its approximate diagonal, without the penalty."""
        sizes = self.unscaled.sizes()
        return None if sizes is None else sizes * self.column_scale**2

    def to_coef(self, u: Floats) -> Floats:
        """Return ``w₀ + s u``."""
        coef = self._scaled(u)
        if self.origin is None:
            return coef
        return coef + (self.origin if u.ndim == self.origin.ndim else self.origin[:, None])

    def _scaled(self, v: Floats) -> Floats:
        return (v.T * self.column_scale).T


class BalancedObjective(ScaledObjective):
    """An objective and its penalty in units in which columns have like sizes: the same model by another way.

    ``H' + cI = S (H + αI) S``, where c, called `floor`, is the least of ``αS²``: all that is left to a solver to add.
    Columns may have an alpha each.
    """

    def __init__(
        self,
        objective: QuadraticObjective,
        alpha: float | Floats,
        column_scale: Floats,
        origin: Floats | None = None,
    ) -> None:
        penalty = alpha * column_scale**2
        self.floor = float(penalty.min(initial=np.inf))
        super().__init__(objective, column_scale, origin, penalty - self.floor)


class MatrixQuadratic(QuadraticObjective):
    """``u'Hu - 2b'u`` of a matrix and of one vector, or of one per output."""

    rhs: Floats = np.empty(0)

    def __init__(self, matrix: Floats, rhs: Floats) -> None:
        self._matrix, self.rhs = matrix, rhs

    def _product(self, v: Floats) -> Floats:
        return np.asarray(self._matrix @ v)

    def matrix(self) -> Floats:
        """Return H."""
        return self._matrix

    def sizes(self) -> Floats:
        """Return the diagonal."""
        return self.diagonal()


def prior_scale(objective: QuadraticObjective, power: float) -> Floats:
    """Return ``diag(H)^-power`` for `ScaledObjective`; columns that never vary keep scale 1."""
    diagonal = objective.diagonal()
    return np.where(diagonal > 0, diagonal, 1.0) ** -power
