"""Quadratic objectives: the squared loss, in plain or scaled coordinates."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

import numpy as np

from rankwise.arrays import Floats
from rankwise.design import Design
from rankwise.objectives.evaluated import Evaluated
from rankwise.objectives.protocols import QuadraticObjective
from rankwise.pairs.graph import PairGraph

__all__ = ["BalancedObjective", "ScaledObjective", "SquaredObjective", "prior_scale"]

_PROBES = 8  # random vectors that estimate the sizes of columns known only by their products


class SquaredObjective(Evaluated):
    """The squared loss of a design over a graph: ``H = X'LX``, ``b = X'r``.

    Where the storage and the graph allow it, a product reads X once (`Design.gram_product`).
    """

    def __init__(self, design: Design, graph: PairGraph) -> None:
        self.design = design
        self.graph = graph
        self.n_products = 0

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

    def product(self, v: Floats) -> Floats:
        """Apply ``X'LX``."""
        self.n_products += 1 if v.ndim == 1 else v.shape[1]
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
        n = self.n_features
        columns_at_once = 64  # bounds the (rows, columns) block of scores that a product holds
        out = np.empty((n, n))
        for start in range(0, n, columns_at_once):
            stop = min(start + columns_at_once, n)
            unit = np.zeros((n, stop - start))
            unit[np.arange(start, stop), np.arange(stop - start)] = 1.0
            out[:, start:stop] = self.product(unit)
        return (out + out.T) / 2

    def _diagonal(self) -> Floats | None:
        graph = self.graph
        if graph.blocks is not None:
            return self.design.gram_diagonal(graph.blocks)
        return None if graph.edges is None else self.design.squared_differences(*graph.edges)

    def diagonal(self) -> Floats:
        """Return ``diag(X'LX)``."""
        diagonal = self._diagonal()
        return np.diagonal(self.matrix()).copy() if diagonal is None else diagonal

    def sizes(self) -> Floats:
        """Return ``diag(X'LX)``; where only the whole matrix would give it, an estimate from random rows."""
        diagonal = self._diagonal() if self.design.has_rows else None
        if diagonal is not None:
            return diagonal
        noise = np.random.default_rng(0).normal(size=(self.design.shape[0], _PROBES))
        pull = self.graph.laplacian(noise)
        squares: Floats = (self.design.tdot(pull) ** 2).mean(axis=1)  # about diag(X'L²X)
        return squares * (np.vdot(noise, pull) / max(float(np.vdot(pull, pull)), np.finfo(np.float64).tiny))


class ScaledObjective(Evaluated):
    """An objective in scaled coordinates ``w = s u``: a penalty on ``‖u‖²`` is a prior on the columns.

    With ``s = D^-p``, ``D = diag(H)``, the penalty becomes ``α w'D^(2p) w``: another model, chosen on purpose.
    """

    def __init__(self, objective: QuadraticObjective, column_scale: Floats) -> None:
        self.unscaled = objective
        self.column_scale = column_scale

    @property
    def n_features(self) -> int:
        """The length of a coefficient vector."""
        return self.unscaled.n_features

    @cached_property
    def rhs(self) -> Floats:
        """``s b``."""
        return self.to_coef(self.unscaled.rhs)

    @property
    def n_products(self) -> int:
        """Products of the objective that is scaled."""
        return self.unscaled.n_products

    def product(self, v: Floats) -> Floats:
        """Apply ``diag(s) H diag(s)``."""
        return self.to_coef(self.unscaled.product(self.to_coef(v)))

    def matrix(self) -> Floats:
        """Return ``diag(s) H diag(s)``."""
        scaled: Floats = self.unscaled.matrix() * self.column_scale * self.column_scale[:, None]
        return scaled

    def diagonal(self) -> Floats:
        """Return the diagonal of ``diag(s) H diag(s)``."""
        scaled: Floats = self.unscaled.diagonal() * self.column_scale**2
        return scaled

    def sizes(self) -> Floats | None:
        """Return its approximate diagonal."""
        sizes = self.unscaled.sizes()
        return None if sizes is None else sizes * self.column_scale**2

    def to_coef(self, u: Floats) -> Floats:
        """Return ``s u``: coefficients from scaled ones."""
        return u * (self.column_scale if u.ndim == 1 else self.column_scale[:, None])


class BalancedObjective(ScaledObjective):
    """An objective and its penalty in units in which columns have like sizes: the same model by another way.

    ``H' + cI = S (H + αI) S``, where c, called `floor`, is the least of ``αS²``: all that is left to a solver to add.
    """

    def __init__(self, objective: QuadraticObjective, alpha: float, column_scale: Floats) -> None:
        super().__init__(objective, column_scale)
        penalty = alpha * column_scale**2
        self.floor = float(penalty.min(initial=np.inf))
        self.penalty: Floats = penalty - self.floor

    def product(self, v: Floats) -> Floats:
        """Apply ``H'``."""
        return super().product(v) + v * (self.penalty if v.ndim == 1 else self.penalty[:, None])

    def matrix(self) -> Floats:
        """Return ``H'``."""
        return super().matrix() + np.diag(self.penalty)

    def diagonal(self) -> Floats:
        """Return the diagonal of ``H'``."""
        return super().diagonal() + self.penalty


def prior_scale(objective: QuadraticObjective, power: float) -> Floats:
    """Return ``diag(H)^-power`` for `ScaledObjective`; columns that never vary keep scale 1."""
    diagonal = objective.diagonal()
    return np.where(diagonal > 0, diagonal, 1.0) ** -power
