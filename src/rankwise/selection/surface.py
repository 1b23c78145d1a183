"""Searching the regularisation surface: the tables of all outputs, the cells chosen, the models behind them."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from rankwise.arrays import Floats
from rankwise.design import Design
from rankwise.exceptions import caller_level
from rankwise.metrics import Metric
from rankwise.pairs.graph import PairGraph
from rankwise.problems.training import TrainingProblem
from rankwise.selection.grids import alphas_beyond, is_default_grid, worth_keeping
from rankwise.selection.held_out import HeldOutSystems, n_outputs, scaled_objective
from rankwise.selection.krylov_fit import KrylovFit, warn_interrupted
from rankwise.selection.reading import after_steps, best_cells, stopping_rule
from rankwise.selection.row_systems import NoRows
from rankwise.solvers.choose import choose_solver
from rankwise.solvers.surface import Cell, Surface, System

# A residual that rounding allows: where it is cheap to go on, only the end of the space ends a run.
EXACT = 1e-12

__all__ = ["EXACT", "SurfaceSearch", "Trial", "table_tolerance", "warn_unfinished"]


@dataclass
class Trial:
    """One value of `scaling`.

    Attributes
    ----------
    power : float
        The value of `scaling`.
    alphas : (alphas,) float64
        Of the tables, in increasing order.
    candidates : list of int
        The positions in `alphas` that may be chosen.
    surfaces : list of Surface
        The tables, output by output.
    cells : list of Cell
        The cells chosen, output by output.
    fits : list of KrylovFit
        The runs behind the tables.
    columns : list of (KrylovFit, int)
        For each output, the run and the column that hold its model.
    converged : bool
        Whether the search ended by itself.
    """

    power: float
    alphas: Floats
    candidates: list[int]
    surfaces: list[Surface] = field(default_factory=list)
    cells: list[Cell] = field(default_factory=list)
    fits: list[KrylovFit] = field(default_factory=list)
    columns: list[tuple[KrylovFit, int]] = field(default_factory=list)
    converged: bool = True

    @property
    def error(self) -> float:
        """The mean over outputs of the errors in the chosen cells."""
        return float(np.mean([cell.error for cell in self.cells]))

    @property
    def grid(self) -> Floats:
        """The alphas that may be chosen."""
        return self.alphas[self.candidates]

    def errors(self, method: str) -> Floats:
        """Return the error of each alpha of the grid as a method reads it, (alphas, outputs)."""
        return np.array(
            [[best_cells(method, [s], [i])[0].error for s in self.surfaces] for i in self.candidates]
        )

    @property
    def was_interrupted(self) -> bool:
        """Whether Ctrl-C ended one of the runs."""
        return any(fit.was_interrupted for fit in self.fits)

    def coefficients(self) -> list[Floats]:
        """Return the chosen coefficients, output by output."""
        return [
            fit.coefficients(column, self.alphas[cell.alpha_index], min(cell.step, fit.n_steps))
            for (fit, column), cell in zip(self.columns, self.cells, strict=True)
        ]


@dataclass
class SurfaceSearch:
    """How to search: what every trial has in common.

    Attributes
    ----------
    problem : TrainingProblem
    method : str
        One of `rankwise.selection.reading.METHODS`.
    alphas : (alphas,) float64
        In increasing order.
    candidates : list of int
        The positions in `alphas` that may be chosen.
    metric : Metric
        What the tables hold, for whoever watches; there, lower is always better.
    default : tuple of float
        A grid that goes on where the best is at its end; empty where the grid is taken as it is.
    """

    problem: TrainingProblem
    method: str
    alphas: Floats
    candidates: list[int]
    patience: int
    tol: float
    max_iter: int
    metric: Metric
    default: tuple[float, ...]

    @classmethod
    def over_grid(
        cls,
        problem: TrainingProblem,
        method: str,
        grid: Floats,
        *,
        patience: int,
        tol: float,
        max_iter: int,
        metric: Metric,
        default: tuple[float, ...],
    ) -> SurfaceSearch:
        """Search a grid; 0 is always in the table, so that early stopping can be read beside the other methods."""
        alphas = np.union1d([0.0], grid)
        candidates = [0] if method == "early-stopping" else np.searchsorted(alphas, grid).tolist()
        grows = method != "early-stopping" and is_default_grid(grid, default)
        default = default if grows else ()
        return cls(problem, method, alphas, candidates, patience, tol, max_iter, metric, default)

    def run(self, power: float, systems: HeldOutSystems) -> Trial:
        """Grow the tables under one value of `scaling`, and choose their cells."""
        trial = Trial(power, self.alphas, self.candidates)
        for held_out in systems.systems(power):
            fit = self._krylov(held_out.system, self.alphas, held_out.column_scale, self.tol)
            trial.fits.append(fit)
            trial.columns.extend((fit, column) for column in held_out.columns)
            self._grow(trial, [fit])
        while (more := self._beyond(trial)) is not None:
            grid = np.union1d(trial.grid, more)
            trial.alphas = np.union1d(trial.alphas, more)
            trial.candidates = np.searchsorted(trial.alphas, grid).tolist()
            for fit in trial.fits:
                fit.widen(more)
            self._grow(trial, trial.fits)
        if self.default:
            kept = worth_keeping(trial.grid, trial.errors(self.method), self.default)
            trial.candidates = np.array(trial.candidates)[kept].tolist()
        trial.cells = best_cells(self.method, trial.surfaces, trial.candidates)
        return trial

    def _grow(self, trial: Trial, fits: Sequence[KrylovFit]) -> None:
        rule = stopping_rule(self.method, trial.candidates, self.patience)
        for fit in fits:
            trial.converged &= fit.advance(rule, "selecting", self.metric)
        trial.surfaces = [surface for fit in trial.fits for surface in fit.surfaces]

    def _beyond(self, trial: Trial) -> Floats | None:
        """Return alphas to add: the tables need no products for them."""
        if not self.default or trial.was_interrupted or not all(fit.widens for fit in trial.fits):
            return None
        is_cheap = self.method != "tikhonov"  # which goes on until all have converged
        return alphas_beyond(trial.grid, trial.errors(self.method), self.default, small_is_cheap=is_cheap)

    def run_all(self, powers: Sequence[float], systems: HeldOutSystems) -> list[Trial]:
        """Search under one value of `scaling` after the other, until Ctrl-C says that it is enough."""
        trials: list[Trial] = []
        for power in powers:
            try:
                trials.append(self.run(power, systems))
            except KeyboardInterrupt:
                if not trials:
                    raise
                warn_interrupted(f"before scaling={power:g} was judged; the best model so far is kept")
                break
            if trials[-1].was_interrupted:
                break
        return trials

    def refit(self, best: Trial) -> None:
        """Fit on all data with what the folds chose: the alpha, and for all but Tikhonov the iteration."""
        columns: list[tuple[KrylovFit, int]] = []
        chosen: list[Cell] = []
        for graph in self.problem.graphs():
            system, scale = self._unscored(graph, best.power)
            first, outputs = len(columns), n_outputs(graph)
            cells = best.cells[first : first + outputs]
            alphas = np.unique([best.alphas[cell.alpha_index] for cell in cells])
            # An iterate is wanted as it is, even if it meets the tolerance sooner here than in every fold.
            tol = self.tol if self.method == "tikhonov" else 0.0
            fit = self._krylov(system, alphas, scale, tol)
            if self.method == "tikhonov":
                best.converged &= fit.advance(lambda _: False, "fitting")
                # Converged on all data, not after the folds' number of steps.
                cells = [replace(cell, step=fit.n_steps) for cell in cells]
            else:
                fit.advance(after_steps(max(cell.step for cell in cells)), "fitting")
            chosen.extend(cells)
            columns.extend((fit, column) for column in range(outputs))
        # All at once: an interruption before leaves the models of the folds in place.
        best.columns, best.cells = columns, chosen

    def _unscored(self, graph: PairGraph, power: float) -> tuple[System, Floats | None]:
        """Make the system of a graph that nobody scores."""
        objective, scale = scaled_objective(self.problem.design, graph, power)
        return NoRows(objective), scale

    def _krylov(self, system: System, alphas: Floats, scale: Floats | None, tol: float) -> KrylovFit:
        widens = bool(self.default)
        return KrylovFit(system, alphas, tol=tol, max_iter=self.max_iter, column_scale=scale, widens=widens)


def warn_unfinished(search: SurfaceSearch) -> None:
    """Say that the iterations ran out."""
    other = "" if search.method == "hybrid" else ", or use method='hybrid'"
    warnings.warn(
        f"method={search.method!r} stopped at max_iter={search.max_iter} iterations before it was done. "
        f"Hint: raise max_iter or tol{other}.",
        ConvergenceWarning,
        stacklevel=caller_level(),
    )


def table_tolerance(design: Design, method: str, tol: float) -> float:
    """Return the residual at which an alpha's column of the table may stay as it is.

    A relative residual says little where columns have very different scales: the large ones dominate it.
    Only Tikhonov on a design too wide to go on to the end needs to stop there.
    """
    runs_long = method == "tikhonov" and choose_solver(design) != "direct"
    return float(tol) if runs_long else min(float(tol), EXACT)
