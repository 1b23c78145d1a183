"""Searching the regularisation surface: the tables of all outputs, the cells chosen, the models behind them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from rankwise.data.queries import Queries, encode_queries
from rankwise.design import Design
from rankwise.estimators.krylov_fit import KrylovFit
from rankwise.estimators.selection import after_steps, best_cells, judge_rows, stopping_rule
from rankwise.estimators.training import TrainingData
from rankwise.metrics import Metric
from rankwise.objectives import QuadraticObjective, ScaledObjective, SquaredObjective, prior_scale
from rankwise.pairs.graph import Floats
from rankwise.pairs.labels import LabelGraph
from rankwise.resampling import EvaluationRows, FoldRows, Judge, NoRows, hold_out
from rankwise.solvers.surface import Cell, Surface, System

__all__ = ["SurfaceSearch", "Trial"]

Folds = npt.NDArray[np.int32]
Rows = npt.NDArray[np.int64]


@dataclass
class Trial:
    """One value of `scaling`.

    Attributes
    ----------
    power : float
        The value of `scaling`.
    surfaces : list of Surface
        The tables, output by output.
    cells : list of Cell
        The cells chosen, output by output.
    fits : list of KrylovFit
        The runs behind the tables.
    lanes : list of (KrylovFit, int)
        For each output, the run and the lane that hold its model.
    converged : bool
        Whether the search ended by itself.
    """

    power: float
    surfaces: list[Surface] = field(default_factory=list)
    cells: list[Cell] = field(default_factory=list)
    fits: list[KrylovFit] = field(default_factory=list)
    lanes: list[tuple[KrylovFit, int]] = field(default_factory=list)
    converged: bool = True

    @property
    def error(self) -> float:
        """The mean over outputs of the errors in the chosen cells."""
        return float(np.mean([cell.error for cell in self.cells]))

    def coefficients(self, alphas: Floats) -> list[Floats]:
        """Return the chosen coefficients, output by output."""
        return [
            fit.coefficients(lane, alphas[cell.alpha_index], min(cell.step, fit.n_steps))
            for (fit, lane), cell in zip(self.lanes, self.cells, strict=True)
        ]


@dataclass
class SurfaceSearch:
    """How to search: what every trial has in common.

    Attributes
    ----------
    data : TrainingData
    metric : Metric
    method : str
        One of `rankwise.estimators.selection.METHODS`.
    alphas : (alphas,) float64
        In increasing order.
    candidates : list of int
        The positions in `alphas` that may be chosen.
    averaging : {"folds", "pooled"}
    judge_rows : int
        How many held-out rows judge at most.
    """

    data: TrainingData
    metric: Metric
    method: str
    alphas: Floats
    candidates: list[int]
    patience: int
    tol: float
    max_iter: int
    n_threads: int | None
    averaging: str = "folds"
    judge_rows: int = 20_000
    seed: int = 0

    def judged_by_rows(self, power: float, rows: Design, judges: Sequence[Judge]) -> Trial:
        """Judge by rows of their own; outputs that share a graph run in lockstep."""
        trial = Trial(power)
        for graph in self.data.graphs():
            objective, scale = _objective(self.data, graph, power)
            n_outputs = _outputs(graph)
            mine = judges[len(trial.lanes) : len(trial.lanes) + n_outputs]
            fit = self._grow(trial, EvaluationRows(objective, rows, mine, scale), scale)
            trial.lanes.extend((fit, lane) for lane in range(n_outputs))
        trial.cells = best_cells(self.method, trial.surfaces, self.candidates)
        return trial

    def judged_by_folds(self, power: float, fold: Folds) -> Trial:
        """Judge every fold by the rows it does not see; the folds of an output run in lockstep.

        With a single fold, its lane is a model fitted on the other rows.
        """
        data, trial = self.data, Trial(power)
        judged = self._judging_rows(fold)
        weight = np.ones(fold.size) if data.row_weight is None else data.row_weight
        n_folds = int(fold.max(initial=-1)) + 1
        for output, labels in enumerate(data.columns):

            def make_judge(rows: Rows, labels: Floats = labels) -> Judge:
                queries = _judging_queries(data.queries, fold, rows, self.averaging)
                return judge_rows(self.metric, labels[rows], queries, self.n_threads, "what was held out")

            whole = data.graph(output, data.row_weight)
            graphs = [data.graph(output, weight * (fold != c)) for c in range(n_folds)]
            _, scale = _objective(data, whole, power)
            system = FoldRows(data.design, whole, graphs, fold, judged, make_judge, scale)
            fit = self._grow(trial, system, scale)
            trial.lanes.append((fit, 0))
        trial.cells = best_cells(self.method, trial.surfaces, self.candidates)
        return trial

    def refit(self, best: Trial) -> None:
        """Fit on all rows with what the folds chose: the alpha, and for all but Tikhonov the iteration."""
        best.lanes = []
        for graph in self.data.graphs():
            objective, scale = _objective(self.data, graph, best.power)
            first, n_outputs = len(best.lanes), _outputs(graph)
            cells = best.cells[first : first + n_outputs]
            alphas = np.unique([self.alphas[cell.alpha_index] for cell in cells])
            fit = self._krylov(NoRows(objective), alphas, scale)
            if self.method == "tikhonov":
                best.converged &= fit.advance(lambda _: False, "fitting")
                # Converged on all rows, not after the folds' number of steps.
                best.cells[first : first + n_outputs] = [replace(cell, step=fit.n_steps) for cell in cells]
            else:
                steps = max(cell.step for cell in cells)
                fit.advance(after_steps(steps), "fitting")
            best.lanes.extend((fit, lane) for lane in range(n_outputs))

    def _grow(self, trial: Trial, system: System, scale: Floats | None) -> KrylovFit:
        fit = self._krylov(system, self.alphas, scale)
        trial.converged &= fit.advance(
            stopping_rule(self.method, self.candidates, self.patience), "selecting"
        )
        trial.fits.append(fit)
        trial.surfaces.extend(fit.surfaces)
        return fit

    def _krylov(self, system: System, alphas: Floats, scale: Floats | None) -> KrylovFit:
        return KrylovFit(system, alphas, tol=self.tol, max_iter=self.max_iter, column_scale=scale)

    def _judging_rows(self, fold: Folds) -> Rows:
        """Choose which held-out rows judge: all, or a share of them dealt like a fold."""
        held = fold >= 0
        if self.data.row_weight is not None:
            held &= self.data.row_weight > 0
        share = self.judge_rows / max(int(held.sum()), 1)
        if share < 1:
            held &= hold_out(self.data.design, self.data.columns[0], self.data.queries, share, self.seed + 1)
        return np.flatnonzero(held)


def _objective(
    data: TrainingData, graph: LabelGraph, power: float
) -> tuple[QuadraticObjective, Floats | None]:
    objective = SquaredObjective(data.design, graph)
    if power == 0:
        return objective, None
    scale = prior_scale(objective, power)
    return ScaledObjective(objective, scale), scale


def _outputs(graph: LabelGraph) -> int:
    return 1 if graph.pull.ndim == 1 else int(graph.pull.shape[1])


def _judging_queries(queries: Queries, fold: Folds, rows: Rows, averaging: str) -> Queries:
    """Rows are compared inside a query and, unless pooled, inside a fold: folds have different models."""
    if averaging == "pooled":
        return queries.subset(rows)
    return encode_queries(queries.codes[rows] * (int(fold.max(initial=0)) + 1) + fold[rows])
