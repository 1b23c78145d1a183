"""The normal equations that a Krylov run multiplies by: of one graph, or of all folds at once; of columns or a kernel.

Coefficients of columns (`LinearCoordinates`) and the dual variables of a kernel (`DualCoordinates`) make the same
equations in coordinates of their own: a product lifts vectors to models, gives the training rows their scores, and
brings what pulls at the rows back.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple, Protocol

import numpy as np

from rankwise.arrays import Floats, Rows
from rankwise.blocks import Folds, laplacian
from rankwise.design import Design
from rankwise.objectives import QuadraticObjective, SquaredObjective
from rankwise.pairs.factor import Factor, factor_of
from rankwise.pairs.graph import PairGraph
from rankwise.pairs.labels import LabelGraph
from rankwise.pairs.preference_factor import IncidenceFactor
from rankwise.pairs.preferences import PreferenceGraph
from rankwise.problems.kernel import KernelProblem
from rankwise.selection.cv_pairs import LeftOutPairs
from rankwise.solvers.choose import column_scale
from rankwise.solvers.dual_surface import DualSurfaceRun
from rankwise.solvers.surface import SurfaceRun

__all__ = [
    "Coordinates",
    "DualCoordinates",
    "Equations",
    "FoldEquations",
    "GraphEquations",
    "LinearCoordinates",
    "PairFoldEquations",
    "Product",
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


class Equations(Protocol):
    """Normal equations with one right-hand side per column."""

    rhs: Floats

    def multiply(self, vectors: Floats) -> Product:
        """Multiply (unknowns, columns) vectors by the matrix, each column by its own."""

    def model(self, column: int, solution: Floats) -> Floats:
        """Return the coefficients, or dual coefficients, that a solution of a column stands for."""


class Coordinates(Protocol):
    """Where the unknowns live: makes equations."""

    @property
    def run(self) -> type[SurfaceRun | DualSurfaceRun]:
        """The run that takes the equations."""

    def of_graph(self, graph: PairGraph) -> Equations:
        """Return the equations of a graph, one column per output."""

    def of_folds(
        self, whole: LabelGraph, graphs: Iterable[LabelGraph], fold: Rows, scored: Rows
    ) -> Equations:
        """Return the equations of folds of rows, one column per fold; only `scored` rows need held-out scores."""

    def of_pairs(self, graph: PreferenceGraph, left_out: LeftOutPairs) -> Equations:
        """Return the equations of folds of pairs, one column per fold."""

    def means(self, share: Floats) -> Floats:
        """Return what is multiplied with models, and added up, to give the mean scores of rows by these shares."""

    def against(self, rows: Design) -> Design:
        """Return what multiplies models to score other rows."""


# --- coefficients of columns ---


@dataclass(frozen=True)
class LinearCoordinates:
    """Coefficients of the columns of X, in the units that `scaling` gives them."""

    design: Design
    power: float = 0.0
    run: ClassVar[type[SurfaceRun]] = SurfaceRun

    def of_graph(self, graph: PairGraph) -> Equations:
        """Return ``X'LX``."""
        return GraphEquations(SquaredObjective(self.design, graph), self.scale(graph))

    def of_folds(
        self, whole: LabelGraph, graphs: Iterable[LabelGraph], fold: Rows, scored: Rows
    ) -> Equations:
        """Return ``X'LX`` of every fold: in lockstep, reading X once."""
        return FoldEquations(self.design, whole, graphs, fold, scored, self.scale(whole))

    def of_pairs(self, graph: PreferenceGraph, left_out: LeftOutPairs) -> Equations:
        """Return ``X'LX`` of every fold."""
        return PairFoldEquations(self.design, graph, left_out, self.scale(graph))

    def means(self, share: Floats) -> Floats:
        """Return the mean rows."""
        return self.design.tdot(share)

    def against(self, rows: Design) -> Design:
        """Return the rows."""
        return rows

    def scale(self, graph: PairGraph) -> Floats | None:
        """Return the units of the columns."""
        return None if self.power == 0 else column_scale(self.design, graph, self.power)


class _Scaled:
    """Columns in units of their own."""

    def __init__(self, scale: Floats | None) -> None:
        self._scale = scale

    def model(self, column: int, solution: Floats) -> Floats:
        """Return the coefficients of a solution, or of each row of a path of them."""
        return solution if self._scale is None else solution * self._scale

    def _scaled(self, vectors: Floats) -> Floats:
        return vectors if self._scale is None else vectors * self._scale[:, None]


class GraphEquations(_Scaled):
    """``X'LX`` of one graph; one column per output."""

    def __init__(self, objective: QuadraticObjective, scale: Floats | None = None) -> None:
        super().__init__(scale)
        self._objective = objective
        self.rhs = self._scaled(objective.rhs.reshape(objective.n_features, -1))

    def multiply(self, vectors: Floats) -> Product:
        """Multiply."""
        models = self._scaled(vectors)
        squeezed = models[:, 0] if models.shape[1] == 1 else models  # the kernels are faster on one vector
        image = self._objective.product(squeezed).reshape(models.shape)
        return Product(self._scaled(image), squeezed, None)


class FoldEquations(_Scaled):
    """Every fold's equations at once.

    Graphs are read once, and kept only where the coupling needs them: eight graphs of a large data set would take as
    much memory as the data.
    """

    def __init__(
        self,
        design: Design,
        whole: LabelGraph,
        graphs: Iterable[LabelGraph],
        fold: Rows,
        scored: Rows,
        scale: Floats | None,
    ) -> None:
        super().__init__(scale)
        self._design, self._blocks = design, whole.blocks
        self._graphs: list[LabelGraph] = []
        pull, degree, weight = [], [], []
        for graph in graphs:
            pull.append(graph.pull)
            degree.append(graph.blocks.degree)
            weight.append(graph.blocks.scale)
            if graph.blocks.coupling == "relative":
                self._graphs.append(graph)
        self._folds = Folds(fold.astype(np.int32), np.column_stack(degree), np.column_stack(weight), scored)
        self._held_out = np.zeros(design.shape[0])
        self._fused = None if self._graphs else design.gram_product(whole.blocks, self._folds)
        self.rhs = self._scaled(design.tdot(np.column_stack(pull)))

    def multiply(self, vectors: Floats) -> Product:
        """Multiply."""
        models = self._scaled(vectors)
        if self._fused is not None:
            return Product(self._scaled(self._fused(models, self._held_out)), models, self._held_out)
        scores, design = self._design.dot(models), self._design
        if not self._graphs:
            held_out = self._held_out
            pull = laplacian(
                self._blocks, scores, n_threads=design.n_threads, folds=self._folds, held_out=held_out
            )
            return Product(self._scaled(design.tdot(pull)), models, held_out)
        columns = [
            graph.laplacian(np.ascontiguousarray(column))
            for graph, column in zip(self._graphs, scores.T, strict=True)
        ]
        return Product(self._scaled(design.tdot(np.column_stack(columns))), models, scores)


class PairFoldEquations(_Scaled):
    """``X'LX`` of every fold of listed pairs at once."""

    def __init__(
        self, design: Design, graph: PreferenceGraph, left_out: LeftOutPairs, scale: Floats | None
    ) -> None:
        super().__init__(scale)
        self._design = design
        self._masked = graph.masked(left_out.fold, left_out.n_folds, left_out.pair)
        self.rhs = self._scaled(design.tdot(self._masked.pull))

    def multiply(self, vectors: Floats) -> Product:
        """Multiply."""
        models = self._scaled(vectors)
        scores = self._design.dot(models)
        return Product(self._scaled(self._design.tdot(self._masked.laplacian(scores))), models, scores)


# --- dual variables of a kernel ---


@dataclass(frozen=True)
class DualCoordinates:
    """Variables b of the dual, whose models are ``F'b``: only products with the kernel are taken.

    Attributes
    ----------
    problem : KernelProblem
    kernel : Design
        The square kernel of the training rows.
    """

    problem: KernelProblem
    kernel: Design
    run: ClassVar[type[DualSurfaceRun]] = DualSurfaceRun

    def of_graph(self, graph: PairGraph) -> Equations:
        """Return ``FKF'``."""
        factor = factor_of(graph, by_products=True)
        return DualEquations(self.kernel, [factor], factor.target(graph.pull))

    def of_folds(
        self, whole: LabelGraph, graphs: Iterable[LabelGraph], fold: Rows, scored: Rows
    ) -> Equations:
        """Return ``FKF'`` of every fold, in which its own rows weigh nothing."""
        factors, targets = [], []
        for graph in graphs:
            factors.append(factor_of(graph))
            targets.append(factors[-1].target(graph.pull))
        return DualEquations(self.kernel, factors, np.column_stack(targets))

    def of_pairs(self, graph: PreferenceGraph, left_out: LeftOutPairs) -> Equations:
        """Return ``FKF'`` of every fold, without the rows of F that are its pairs."""
        factor = IncidenceFactor(graph)
        keeps = np.ones((graph.winner.size, left_out.n_folds))
        keeps[left_out.pair, left_out.fold] = 0.0
        return DualEquations(self.kernel, [factor], keeps * factor.target(graph.pull)[:, None], keeps)

    def means(self, share: Floats) -> Floats:
        """Return the mean rows of the kernel, which is symmetric."""
        return self.kernel.dot(share)

    def against(self, rows: Design) -> Design:
        """Return the kernel between other rows and the training rows."""
        return self.problem.against(rows)


class DualEquations:
    """One factor for all columns, of which `keeps` may leave out rows column by column; or one factor per column."""

    def __init__(
        self, kernel: Design, factors: Sequence[Factor], target: Floats, keeps: Floats | None = None
    ) -> None:
        self._kernel, self._factors, self._keeps = kernel, factors, keeps
        self.rhs = target.reshape(target.shape[0], -1)

    def multiply(self, vectors: Floats) -> Product:
        """Multiply."""
        if len(self._factors) == 1:
            factor = self._factors[0]
            models = factor.transposed(self._kept(vectors))
            scores = self._kernel.dot(models)
            return Product(self._kept(factor.apply(scores)), models, scores)
        columns = [np.ascontiguousarray(column) for column in vectors.T]
        dual = [factor.transposed(column) for factor, column in zip(self._factors, columns, strict=True)]
        models = np.column_stack(dual)
        scores = self._kernel.dot(models)
        image = [
            factor.apply(np.ascontiguousarray(column))
            for factor, column in zip(self._factors, scores.T, strict=True)
        ]
        return Product(np.column_stack(image), models, scores)

    def model(self, column: int, solution: Floats) -> Floats:
        """Return ``F'b``."""
        factor = self._factors[min(column, len(self._factors) - 1)]
        return factor.transposed(solution if self._keeps is None else self._keeps[:, column] * solution)

    def _kept(self, vectors: Floats) -> Floats:
        return vectors if self._keeps is None else self._keeps * vectors
