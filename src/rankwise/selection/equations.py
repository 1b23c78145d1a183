"""The normal equations that a Krylov run multiplies by: of one graph, or of all folds at once; of columns or a kernel.

Coefficients of columns (`LinearCoordinates`) and the dual variables of a kernel (`DualCoordinates`) make the same
equations in coordinates of their own: a product lifts vectors to models, gives the training rows their scores, and
brings what pulls at the rows back.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from rankwise.arrays import Floats
from rankwise.design import Design
from rankwise.objectives import QuadraticObjective, SquaredObjective
from rankwise.pairs.factor import ColumnFactor, factor_of
from rankwise.pairs.graph import PairGraph
from rankwise.pairs.pairs import FoldGraphs
from rankwise.problems.kernel import KernelProblem
from rankwise.selection.dual_run import DualSurfaceRun
from rankwise.selection.krylov_run import SurfaceRun
from rankwise.solvers.choose import column_scale

__all__ = [
    "Coordinates",
    "DualCoordinates",
    "Equations",
    "FoldEquations",
    "GraphEquations",
    "LinearCoordinates",
    "Product",
    "one_vector",
]


class Product(NamedTuple):
    """What one multiplication gives.

    Attributes
    ----------
    image : (unknowns, columns) float64
    models : (columns of X or rows of the kernel, columns) float64
    scores : (rows, columns) or (rows,) float64, or None
        Of the training rows; of each row under its own fold's model, where that is all that was computed.
    """

    image: Floats
    models: Floats
    scores: Floats | None


# --- coefficients of columns ---


@dataclass(frozen=True)
class LinearCoordinates:
    """Coefficients of the columns of X, in the units that `scaling` gives them."""

    design: Design
    power: float = 0.0
    run: ClassVar[type[SurfaceRun]] = SurfaceRun

    def of_graph(self, graph: PairGraph) -> LinearEquations:
        """Return the equations of a graph, one column per output."""
        objective = SquaredObjective(self.design, graph)
        return GraphEquations(objective, objective.rhs, self._scale(graph))

    def of_folds(self, whole: PairGraph, folds: FoldGraphs) -> LinearEquations:
        """Return the equations of folds, one column per fold."""
        return FoldEquations(self.design, whole, folds, self._scale(whole))

    def means(self, share: Floats) -> Floats:
        """Return what is multiplied with models, and added up, to give the mean scores of rows by these shares."""
        return self.design.tdot(share)

    def against(self, rows: Design) -> Design:
        """Return what multiplies models to score other rows."""
        return rows

    def _scale(self, graph: PairGraph) -> Floats | None:
        return None if self.power == 0 else column_scale(self.design, graph, self.power)


class LinearEquations(ABC):
    """``X'LX`` with columns in units of their own, and one right-hand side per column.

    Parameters
    ----------
    whole : QuadraticObjective
        Of the whole graph, whatever the columns leave out of it.
    """

    def __init__(self, whole: QuadraticObjective, rhs: Floats, scale: Floats | None) -> None:
        self._whole, self._units = whole, scale
        self.rhs = self._scaled(rhs)

    def sizes(self) -> Floats | None:
        """Return about the diagonal of the whole graph's matrix."""
        sizes = self._whole.sizes()
        return sizes if sizes is None or self._units is None else sizes * self._units**2

    def multiply(self, vectors: Floats) -> Product:
        """Multiply (unknowns, columns) vectors by the matrix, each column by its own."""
        models = self._scaled(vectors)
        image, scores = self._product(models)
        return Product(self._scaled(image), models, scores)

    def model(self, column: int, solution: Floats) -> Floats:
        """Return the coefficients of a solution, or of each row of a path of them."""
        return solution if self._units is None else solution * self._units

    @abstractmethod
    def _product(self, models: Floats) -> tuple[Floats, Floats | None]:
        """Return ``X'LX`` times models, and what scores the training rows got on the way."""

    def _scaled(self, vectors: Floats) -> Floats:
        return vectors if self._units is None else vectors * self._units[:, None]


class GraphEquations(LinearEquations):
    """Of one graph; one column per output."""

    def __init__(self, objective: QuadraticObjective, rhs: Floats, scale: Floats | None = None) -> None:
        super().__init__(objective, rhs.reshape(rhs.shape[0], -1), scale)

    def _product(self, models: Floats) -> tuple[Floats, None]:
        return self._whole.product(one_vector(models)).reshape(models.shape), None


class FoldEquations(LinearEquations):
    """Of every fold at once, in lockstep, reading X once."""

    def __init__(self, design: Design, whole: PairGraph, folds: FoldGraphs, scale: Floats | None) -> None:
        self._design, self._folds = design, folds
        self._held_out = np.zeros(design.shape[0])
        self._fused = None if folds.fused is None else design.gram_product(*folds.fused)
        super().__init__(SquaredObjective(design, whole), design.tdot(folds.pull), scale)

    def _product(self, models: Floats) -> tuple[Floats, Floats]:
        if self._fused is not None:
            return self._fused(models, self._held_out), self._held_out
        scores = self._design.dot(models)
        return self._design.tdot(self._folds.laplacian(scores)), scores


def one_vector(models: Floats) -> Floats:
    """Return a single column as a vector, on which the kernels are faster."""
    return models[:, 0] if models.shape[1] == 1 else models


# --- dual variables of a kernel ---


@dataclass(frozen=True)
class DualCoordinates:
    """Variables b of the dual, whose models are ``F'b``: only products with the kernel of the rows are taken.

    Its methods return ``FKF'`` of what those of `LinearCoordinates` return ``X'LX`` of.
    """

    problem: KernelProblem
    kernel: Design
    run: ClassVar[type[DualSurfaceRun]] = DualSurfaceRun

    def of_graph(self, graph: PairGraph) -> DualEquations:
        """Return the equations of a graph."""
        factor = factor_of(graph, by_products=True)
        return DualEquations(self.kernel, factor, factor.target(graph.pull))

    def of_folds(self, whole: PairGraph, folds: FoldGraphs) -> DualEquations:
        """Return the equations of every fold."""
        return DualEquations(self.kernel, *folds.factored())

    def means(self, share: Floats) -> Floats:
        """Return the mean rows of the kernel, which is symmetric."""
        return self.kernel.dot(share)

    def against(self, rows: Design) -> Design:
        """Return the kernel between other rows and the training rows."""
        return self.problem.against(rows)


class DualEquations:
    """``FKF'``, by a factor of each column."""

    def __init__(self, kernel: Design, factor: ColumnFactor, target: Floats) -> None:
        self._kernel, self._factor = kernel, factor
        self.rhs = target.reshape(target.shape[0], -1)

    def multiply(self, vectors: Floats) -> Product:
        """Multiply."""
        models = self._factor.transposed(vectors)
        scores = self._kernel.dot(models)
        return Product(self._factor.apply(scores), models, scores)

    def sizes(self) -> None:
        """Return None: dual variables belong to rows, not to columns."""
        return

    def model(self, column: int, solution: Floats) -> Floats:
        """Return ``F'b``."""
        return self._factor.model(column, solution)


Coordinates = LinearCoordinates | DualCoordinates
Equations = LinearEquations | DualEquations
