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
from rankwise.selection.held_out import HeldOutSystem, HeldOutSystems, RowFoldSystems, n_outputs
from rankwise.selection.kernel_choice import KernelChoice
from rankwise.selection.kernel_systems import KernelFoldPairs, KernelFoldRows, KernelRows
from rankwise.selection.krylov_fit import KrylovFit, warn_interrupted
from rankwise.selection.pair_systems import LeftOutPairs
from rankwise.selection.reading import difference_scorer
from rankwise.selection.scorers import Scorer
from rankwise.selection.surface import EXACT, SurfaceSearch, warn_unfinished
from rankwise.selection.surface_report import surface_attributes
from rankwise.solvers.dual_surface import DualSurfaceRun
from rankwise.solvers.surface import System

__all__ = ["KernelEvalSetSystems", "KernelFoldSystems", "KernelPairFoldSystems", "choose_by_products"]

_MAX_ITER = 1000


@dataclass(frozen=True)
class KernelEvalSetSystems:
    """Scored by rows of their own; outputs that share a graph run in lockstep.

    Attributes
    ----------
    kernel : Design
        The square kernel of the training rows.
    rows : Design
        The kernel between the rows to score by and the training rows.
    scorers : sequence of Scorer
        One an output.
    """

    problem: TrainingProblem
    kernel: Design
    rows: Design
    scorers: Sequence[Scorer]

    def systems(self, power: float) -> Iterator[HeldOutSystem]:
        """Make one system a graph; a kernel knows no `scaling`."""
        first = 0
        for graph in self.problem.graphs():
            columns = range(n_outputs(graph))
            scorers = self.scorers[first : first + len(columns)]
            first += len(columns)
            factor = factor_of(graph, by_products=True)
            yield HeldOutSystem(
                KernelRows(self.kernel, factor, graph.pull, self.rows, scorers), None, columns
            )


@dataclass(frozen=True)
class KernelFoldSystems(RowFoldSystems):
    """Every fold is scored by the rows it does not see; the folds of an output run in lockstep."""

    kernel: Design

    def systems(self, power: float) -> Iterator[HeldOutSystem]:
        """Make one system an output."""
        for output in range(len(self.data.columns)):
            graphs = list(self.fold_graphs(output))
            system = KernelFoldRows(
                self.kernel,
                [factor_of(graph) for graph in graphs],
                [graph.pull for graph in graphs],
                self.fold,
                self.scored,
                self.scorer_of(output),
                self.pooling(output),
            )
            yield HeldOutSystem(system, None, [0])


@dataclass(frozen=True)
class KernelPairFoldSystems:
    """Every fold is scored by pairs it does not see; the folds run in lockstep."""

    data: PairData
    left_out: LeftOutPairs
    metric: Metric
    averaging: str
    kernel: Design

    def systems(self, power: float) -> Iterator[HeldOutSystem]:
        """Make the one system."""
        out = self.left_out
        fold = out.fold[out.is_scored] if self.averaging == "folds" else None
        weight = self.data.scoring_weight[out.pair[out.is_scored]]
        scorer = difference_scorer(self.metric, weight, "what was held out", fold)
        yield HeldOutSystem(KernelFoldPairs(self.kernel, self.data.graph, out, scorer), None, [0])


@dataclass
class KernelSurfaceSearch(SurfaceSearch):
    """A search in the dual variables of a kernel."""

    kernel: Design

    def _unscored(self, graph: PairGraph, power: float) -> tuple[System, Floats | None]:
        return KernelRows(self.kernel, factor_of(graph, by_products=True), graph.pull), None

    def _krylov(self, system: System, alphas: Floats, scale: Floats | None, tol: float) -> KrylovFit:
        widens = bool(self.default)
        return KrylovFit(system, alphas, tol=tol, max_iter=self.max_iter, run=DualSurfaceRun, widens=widens)


def choose_by_products(
    problem: TrainingProblem,
    kernel: Design,
    systems: HeldOutSystems,
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
    trial = search.run(0.0, systems)
    n_products = sum(fit.n_products for fit in trial.fits)
    if refit:
        try:
            search.refit(trial)
            n_products += sum({id(fit): fit.n_products for fit, _ in trial.columns}.values())
        except KeyboardInterrupt:
            warn_interrupted("before the refit; the first fold's model, fitted without its rows, is kept")
    if not trial.converged:
        warn_unfinished(search)
    low, high = zip(*(fit.extremes for fit in trial.fits), strict=True)
    warn_of_extremes(min(low), max(high), "on the pairs")
    extra: dict[str, Any] = surface_attributes(search, trial, grid, metric)
    extra.pop("scaling_")
    grid = extra.pop("alphas_")
    values = np.asarray(extra.pop("cv_errors_")).reshape(grid.size, -1)
    positions = np.searchsorted(grid, np.atleast_1d(extra.pop("alpha_")))
    best = np.atleast_1d(extra.pop("best_score_"))
    extra["n_products_"] = n_products
    if method == "early-stopping":
        extra["alpha_"] = 0.0 if best.size == 1 and not problem.several_outputs else np.zeros(best.size)
    return KernelChoice(grid, values, positions, best, trial.coefficients(), extra)
