"""Choosing on the regularisation surface: every alpha after every iteration, of columns or of a kernel's products."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np

from rankwise.arrays import Floats
from rankwise.design import Design
from rankwise.fitting.notices import Notice
from rankwise.metrics import Metric
from rankwise.pairs.plan import Plan
from rankwise.problems.problem import Problem
from rankwise.selection.equations import Coordinates
from rankwise.selection.grids import POWERS_OF_TWO, alphas_beyond, is_default_grid, worth_keeping
from rankwise.selection.krylov_run import KrylovRun
from rankwise.selection.result import Choice, Selection
from rankwise.selection.systems import HeldOutSystem, held_out_systems, n_outputs
from rankwise.selection.tables import Surface, are_stale, best_cells, have_converged, have_steps
from rankwise.solvers.choose import choose_solver

__all__ = ["AVERAGING", "EXACT", "METHODS", "SurfaceSearch", "Trial", "table_tolerance"]

METHODS = ("hybrid", "tikhonov", "early-stopping")
AVERAGING = ("folds", "pooled")
# A residual that rounding allows: where it is cheap to go on, only the end of the space ends a run.
EXACT = 1e-12
_MAX_ITER = 1000


@dataclass
class Trial:
    """The surfaces of one system of coordinates: of a value of `scaling`, or of a kernel.

    Attributes
    ----------
    alphas : (alphas,) float64
        Of the tables, in increasing order.
    candidates : list of int
        The positions in `alphas` that may be chosen.
    cells : list of Choice
        What was chosen in the tables, output by output.
    runs : list of KrylovRun
        The runs behind the tables.
    columns : list of (KrylovRun, int)
        For each output, the run and the column that hold its model.
    converged : bool
        Whether the search ended by itself.
    """

    coordinates: Coordinates
    alphas: Floats
    candidates: list[int]
    cells: list[Choice] = field(default_factory=list)
    runs: list[KrylovRun] = field(default_factory=list)
    columns: list[tuple[KrylovRun, int]] = field(default_factory=list)
    converged: bool = True

    @property
    def surfaces(self) -> list[Surface]:
        """The tables, output by output."""
        return [surface for run in self.runs for surface in run.surfaces]

    @property
    def error(self) -> float:
        """The mean over outputs of the errors in the chosen cells."""
        return float(np.mean([cell.error for cell in self.cells]))

    @property
    def grid(self) -> Floats:
        """The alphas that may be chosen."""
        return self.alphas[self.candidates]

    def errors(self, method: str, positions: Sequence[int]) -> Floats:
        """Return the error of some alphas as a method reads it, (alphas, outputs)."""
        return np.array([[best_cells(method, [s], [i])[0].error for s in self.surfaces] for i in positions])

    @property
    def extremes(self) -> tuple[float, float]:
        """How far the spectrum of a kernel reaches at least, both ways."""
        low, high = zip(*(run.extremes for run in self.runs), strict=True)
        return min(low), max(high)

    def models(self) -> list[Floats]:
        """Return the chosen coefficients, output by output."""
        return [
            run.coefficients(column, cell.alpha, min(cell.step, run.n_steps))
            for (run, column), cell in zip(self.columns, self.cells, strict=True)
        ]


@dataclass(frozen=True)
class SurfaceSearch:
    """How to search; the same for every trial.

    Attributes
    ----------
    metric : Metric
        What the tables hold, for whoever watches; there, lower is always better.
    method, averaging : str
        One of `METHODS`, one of `AVERAGING`.
    default : tuple of float
        A grid that goes on where the best is at its end; empty where every grid is taken as it is.
    """

    metric: Metric
    method: str
    averaging: str
    patience: int
    tol: float
    max_iter: int | None = None
    default: tuple[float, ...] = POWERS_OF_TWO

    def choose(
        self,
        problem: Problem,
        plan: Plan,
        grid: Floats,
        tried: Sequence[Coordinates],
    ) -> tuple[Selection, Trial]:
        """Search in one system of coordinates after the other, choose a cell per output, and make its model."""
        trials = [self.run(problem, plan, grid, coordinates) for coordinates in tried]
        best = min(trials, key=lambda trial: trial.error)
        n_products = sum(run.n_products for trial in trials for run in trial.runs)
        if not plan.has_eval_set:
            self._refit(problem, best)
            n_products += sum({id(run): run.n_products for run, _ in best.columns}.values())
        notices: list[Notice] = []
        if not best.converged:
            other = "" if self.method == "hybrid" else ", or use method='hybrid'"
            what = f"method={self.method!r} stopped at max_iter={self._most} iterations before it was done"
            notices.append(Notice(what, f"raise max_iter or tol{other}"))
        selection = self._selection(best, grid).with_facts(n_products_=n_products)
        return replace(selection, notices=notices), best

    def run(self, problem: Problem, plan: Plan, grid: Floats, coordinates: Coordinates) -> Trial:
        """Grow the tables in one system of coordinates, and choose their cells."""
        # 0 is always in the table, so that early stopping can be read beside the other methods.
        alphas = np.union1d([0.0], grid) if self.default else grid
        candidates = [0] if self.method == "early-stopping" else np.searchsorted(alphas, grid).tolist()
        grows = bool(self.default) and self.method != "early-stopping" and is_default_grid(grid, self.default)
        trial = Trial(coordinates, alphas, candidates)
        for system in held_out_systems(problem, plan, self.metric, self.averaging, coordinates):
            run: KrylovRun = coordinates.run(system, alphas, tol=self.tol, max_iter=self._most, widens=grows)
            trial.runs.append(run)
            # Of folds, the first one's model stands in until the refit.
            trial.columns.extend((run, column) for column in range(len(run.surfaces)))
            self._grow(trial, [run])
        while grows and (more := self._beyond(trial)) is not None:
            wider = np.union1d(trial.grid, more)
            trial.alphas = np.union1d(trial.alphas, more)
            trial.candidates = np.searchsorted(trial.alphas, wider).tolist()
            for run in trial.runs:
                run.widen(more)
            self._grow(trial, trial.runs)
        if grows:
            kept = worth_keeping(trial.grid, trial.errors(self.method, trial.candidates), self.default)
            trial.candidates = np.array(trial.candidates)[kept].tolist()
        trial.cells = best_cells(self.method, trial.surfaces, trial.candidates)
        return trial

    def _grow(self, trial: Trial, runs: Sequence[KrylovRun]) -> None:
        # Tikhonov reads converged alphas, so all of them must converge.
        if self.method == "tikhonov":
            rule = partial(have_converged, trial.candidates)
        else:
            rule = partial(are_stale, trial.candidates, self.patience)
        for run in runs:
            trial.converged &= run.advance(rule, "selecting", self.metric)

    def _beyond(self, trial: Trial) -> Floats | None:
        """Return alphas to add: the tables need no products for them."""
        if not all(run.widens for run in trial.runs):
            return None
        errors = trial.errors(self.method, trial.candidates)
        is_cheap = self.method != "tikhonov"  # which goes on until all have converged
        return alphas_beyond(trial.grid, errors, self.default, small_is_cheap=is_cheap)

    def _refit(self, problem: Problem, best: Trial) -> None:
        """Fit on all data with what the folds chose: the alpha, and for all but Tikhonov the iteration."""
        final = replace(best, runs=[], columns=[], cells=[])
        is_tikhonov = self.method == "tikhonov"
        for graph in problem.pairs.graphs():
            first, outputs = len(final.columns), n_outputs(graph)
            cells = best.cells[first : first + outputs]
            alphas = np.unique([cell.alpha for cell in cells])
            # An iterate is wanted as it is, even if it meets the tolerance sooner here than in every fold.
            tol, steps = self.tol if is_tikhonov else 0.0, max(cell.step for cell in cells)
            system = HeldOutSystem.unscored(best.coordinates.of_graph(graph))
            run = best.coordinates.run(system, alphas, tol=tol, max_iter=self._most)
            every = partial(have_converged, range(alphas.size))
            ended = run.advance(every if is_tikhonov else partial(have_steps, steps), "fitting")
            if is_tikhonov:
                final.converged &= ended
                # Converged on all data, not after the folds' number of steps.
                cells = [cell._replace(step=run.n_steps) for cell in cells]
            final.runs.append(run)
            final.cells.extend(cells)
            final.columns.extend((run, column) for column in range(outputs))
        best.columns, best.cells, best.converged = final.columns, final.cells, final.converged

    @property
    def _most(self) -> int:
        return self.max_iter or _MAX_ITER

    def _selection(self, best: Trial, alphas: Floats) -> Selection:
        """Return the choice among the caller's alphas, and those that came to them."""
        shown = alphas if self.method == "early-stopping" else best.grid
        grid = np.searchsorted(best.alphas, shown).tolist()
        n_iter = max(len(surface.errors) for surface in best.surfaces)
        tables = np.full((len(best.surfaces), best.alphas.size, n_iter), np.nan)
        for table, surface in zip(tables, best.surfaces, strict=True):
            table[:, : len(surface.errors)] = surface.table
        choices = {
            method: best_cells(method, best.surfaces, [0] if method == "early-stopping" else grid)
            for method in METHODS
        }
        return Selection(
            best.models(),
            best.cells,
            best.alphas[grid],
            best.errors(self.method, grid),
            tables[:, grid],
            tables[:, 0],
            choices,
            facts={"n_iter_": n_iter, "keeps_basis_": all(run.space.keep_basis for run in best.runs)},
        )


def table_tolerance(design: Design, method: str, tol: float) -> float:
    """Return the residual at which an alpha's column of the table may stay as it is.

    A relative residual says little where columns have very different scales: the large ones dominate it.
    Only Tikhonov on a design too wide to go on to the end needs to stop there.
    """
    runs_long = method == "tikhonov" and choose_solver(design) != "direct"
    return float(tol) if runs_long else min(float(tol), EXACT)
