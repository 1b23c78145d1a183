"""Choosing alpha, and the iteration, of a kernel model by products with the kernel alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rankwise.arrays import Floats
from rankwise.design import Design
from rankwise.metrics import Metric
from rankwise.pairs.factor import factor_of
from rankwise.pairs.graph import PairGraph
from rankwise.problems.kernel import warn_of_extremes
from rankwise.problems.training import PairData, TrainingProblem
from rankwise.selection.grids import POWERS_OF_TWO
from rankwise.selection.held_out import Hearing, Jury, RowFoldJury, n_outputs
from rankwise.selection.kernel_choice import KernelChoice
from rankwise.selection.kernel_systems import KernelFoldPairs, KernelFoldRows, KernelRows
from rankwise.selection.krylov_fit import KrylovFit, warn_interrupted
from rankwise.selection.pair_systems import LeftOutPairs
from rankwise.selection.reading import judge_differences
from rankwise.selection.scorers import Judge
from rankwise.selection.surface import EXACT, SurfaceSearch, warn_unfinished
from rankwise.selection.surface_report import surface_attributes
from rankwise.solvers.dual_surface import DualSurfaceRun
from rankwise.solvers.surface import System

__all__ = ["KernelEvaluationJury", "KernelFoldJury", "KernelPairFoldJury", "choose_by_products"]

_MAX_ITER = 1000


@dataclass(frozen=True)
class KernelEvaluationJury:
    """Rows of their own judge; outputs that share a graph run in lockstep.

    Attributes
    ----------
    kernel : Design
        The square kernel of the training rows.
    rows : Design
        The kernel between the rows that judge and the training rows.
    judges : sequence of Judge
        One an output.
    """

    problem: TrainingProblem
    kernel: Design
    rows: Design
    judges: Sequence[Judge]

    def hearings(self, power: float) -> Iterator[Hearing]:
        """Make one system a graph; a kernel knows no `scaling`."""
        first = 0
        for graph in self.problem.graphs():
            lanes = range(n_outputs(graph))
            judges = self.judges[first : first + len(lanes)]
            first += len(lanes)
            factor = factor_of(graph, by_products=True)
            yield Hearing(KernelRows(self.kernel, factor, graph.pull, self.rows, judges), None, lanes)


@dataclass(frozen=True)
class KernelFoldJury(RowFoldJury):
    """Every fold is judged by the rows it does not see; the folds of an output run in lockstep."""

    kernel: Design

    def hearings(self, power: float) -> Iterator[Hearing]:
        """Make one system an output."""
        for output in range(len(self.data.columns)):
            graphs = list(self.fold_graphs(output))
            system = KernelFoldRows(
                self.kernel,
                [factor_of(graph) for graph in graphs],
                [graph.pull for graph in graphs],
                self.fold,
                self.judged,
                self.judge_of(output),
                self.pooling(output),
            )
            yield Hearing(system, None, [0])


@dataclass(frozen=True)
class KernelPairFoldJury:
    """Every fold is judged by pairs it does not see; the folds run in lockstep."""

    data: PairData
    left_out: LeftOutPairs
    metric: Metric
    averaging: str
    kernel: Design

    def hearings(self, power: float) -> Iterator[Hearing]:
        """Make the one system."""
        out = self.left_out
        fold = out.fold[out.judges] if self.averaging == "folds" else None
        weight = self.data.judging_weight[out.pair[out.judges]]
        judge = judge_differences(self.metric, weight, "what was held out", fold)
        yield Hearing(KernelFoldPairs(self.kernel, self.data.graph, out, judge), None, [0])


@dataclass
class KernelSurfaceSearch(SurfaceSearch):
    """A search in the dual variables of a kernel."""

    kernel: Design

    def _unjudged(self, graph: PairGraph, power: float) -> tuple[System, Floats | None]:
        return KernelRows(self.kernel, factor_of(graph, by_products=True), graph.pull), None

    def _krylov(self, system: System, alphas: Floats, scale: Floats | None, tol: float) -> KrylovFit:
        widens = bool(self.default)
        return KrylovFit(system, alphas, tol=tol, max_iter=self.max_iter, run=DualSurfaceRun, widens=widens)


def choose_by_products(
    problem: TrainingProblem,
    kernel: Design,
    jury: Jury,
    metric: Metric,
    grid: Floats,
    *,
    refit: bool,
    method: str,
    patience: int,
    tol: float,
    max_iter: int | None,
) -> KernelChoice:
    """Grow the table of every alpha and iteration, choose a cell an output, and make its model."""
    general = SurfaceSearch.over_grid(
        problem,
        method,
        grid,
        patience=patience,
        tol=tol if method == "tikhonov" else min(tol, EXACT),
        max_iter=_MAX_ITER if max_iter is None else max_iter,
        metric=metric,
        default=POWERS_OF_TWO,
    )
    search = KernelSurfaceSearch(**vars(general), kernel=kernel)
    trial = search.run(0.0, jury)
    n_products = sum(fit.n_products for fit in trial.fits)
    if refit:
        try:
            search.refit(trial)
            n_products += sum({id(fit): fit.n_products for fit, _ in trial.lanes}.values())
        except KeyboardInterrupt:
            warn_interrupted("before the refit; the first fold's model, fitted without its rows, is kept")
    if not trial.converged:
        warn_unfinished(search)
    low, high = zip(*(fit.extremes for fit in trial.fits), strict=True)
    warn_of_extremes(min(low), max(high), "on the pairs")
    said: dict[str, Any] = surface_attributes(search, trial, grid, metric)
    said.pop("scaling_")
    grid = said.pop("alphas_")
    values = np.asarray(said.pop("cv_errors_")).reshape(grid.size, -1)
    positions = np.searchsorted(grid, np.atleast_1d(said.pop("alpha_")))
    best = np.atleast_1d(said.pop("best_score_"))
    said["n_products_"] = n_products
    if method == "early-stopping":
        said["alpha_"] = 0.0 if best.size == 1 and not problem.several_outputs else np.zeros(best.size)
    return KernelChoice(grid, values, positions, best, trial.coefficients(), said)
