"""Selection on the regularisation surface: every alpha after every iteration, for linear and kernel models.

Tikhonov regularisation (each alpha converged), early stopping (alpha = 0) and the hybrid of the large-scale RankRLS
paper are three ways to read its tables.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from rankwise.arrays import Floats
from rankwise.design import Design
from rankwise.fitting.notices import Notice
from rankwise.fitting.problem import Problem
from rankwise.metrics import Metric
from rankwise.pairs.graph import PairGraph
from rankwise.pairs.plan import Plan
from rankwise.selection.grids import POWERS_OF_TWO, alphas_beyond, is_default_grid, worth_keeping
from rankwise.selection.krylov import Coordinates, Rule, ScoredGraph, Surface, Table
from rankwise.selection.result import Choice, Selection
from rankwise.solvers.choose import choose_solver

METHODS = ("hybrid", "tikhonov", "early-stopping")
AVERAGING = ("folds", "pooled")
# A residual that rounding allows: where it is cheap to go on, only the end of the space ends a run.
EXACT = 1e-12
_MAX_ITER = 1000


@dataclass
class Surfaces:
    """The surfaces of one system of coordinates: of a value of `penalty_power`, or of a kernel.

    Attributes
    ----------
    alphas : (alphas,) float64
        Of the tables, in increasing order.
    candidates : list of int
        The positions in `alphas` that may be chosen.
    cells : list of Choice
        The choice in the tables for each output.
    surfaces : list of Surface
        In the order of their outputs.
    columns : list of (Surface, int)
        For each output, the surface and the column that hold its model.
    converged : bool
        Whether the search ended before its limit.
    """

    coordinates: Coordinates
    alphas: Floats
    candidates: list[int]
    cells: list[Choice] = field(default_factory=list)
    surfaces: list[Surface] = field(default_factory=list)
    columns: list[tuple[Surface, int]] = field(default_factory=list)
    converged: bool = True

    @property
    def tables(self) -> list[Table]:
        """The tables, output by output."""
        return [table for surface in self.surfaces for table in surface.tables]

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
        if method == "tikhonov":
            return np.array([[t.best_converged([i]).error for t in self.tables] for i in positions])
        return np.column_stack([table.best_errors(positions) for table in self.tables])

    @property
    def extremes(self) -> tuple[float, float]:
        """How far the spectrum of a kernel reaches at least, both ways."""
        low, high = zip(*(surface.extremes for surface in self.surfaces), strict=True)
        return min(low), max(high)

    def models(self) -> list[Floats]:
        """Return the chosen coefficients, output by output."""
        return [
            surface.coefficients(column, cell.alpha, min(cell.step, surface.n_steps))
            for (surface, column), cell in zip(self.columns, self.cells, strict=True)
        ]


@dataclass(frozen=True)
class SurfaceSearch:
    """The search of alpha and iteration on surfaces; the same for every system of coordinates.

    Attributes
    ----------
    metric : Metric
        The values of the tables, for monitors; lower is always better.
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
        self, problem: Problem, plan: Plan, grid: Floats, tried: Sequence[Coordinates]
    ) -> tuple[Selection, Surfaces]:
        """Search in one system of coordinates after the other, choose a cell per output, and make its model."""
        found = [self.grow(problem, plan, grid, coordinates) for coordinates in tried]
        best = min(found, key=lambda one: one.error)
        n_products = sum(surface.n_products for one in found for surface in one.surfaces)
        if not plan.has_eval_set:
            self._refit(problem, best)
            n_products += sum({id(surface): surface.n_products for surface, _ in best.columns}.values())
        notices: list[Notice] = []
        if not best.converged:
            other = "" if self.method == "hybrid" else ", or use method='hybrid'"
            what = f"method={self.method!r} stopped at max_iter={self._most} iterations before it was done"
            notices.append(Notice(what, f"raise max_iter or tol{other}"))
        selection = self._selection(best, grid).with_facts(n_products_=n_products)
        return replace(selection, notices=notices), best

    def grow(self, problem: Problem, plan: Plan, grid: Floats, coordinates: Coordinates) -> Surfaces:
        """Grow the tables in one system of coordinates, and choose their cells."""
        # 0 is always in the table, so that early stopping can be read beside the other methods.
        alphas = np.union1d([0.0], grid) if self.default else grid
        candidates = [0] if self.method == "early-stopping" else np.searchsorted(alphas, grid).tolist()
        grows = bool(self.default) and self.method != "early-stopping" and is_default_grid(grid, self.default)
        found = Surfaces(coordinates, alphas, candidates)
        for scored in _scored_graphs(problem, plan, self.metric, self.averaging, coordinates):
            surface: Surface = coordinates.surface(
                scored, alphas, tol=self.tol, max_iter=self._most, widens=grows
            )
            found.surfaces.append(surface)
            # Of folds, the first one's model stands in until the refit.
            found.columns.extend((surface, column) for column in range(len(surface.tables)))
            self._advance(found, [surface])
        while grows and (more := self._beyond(found)) is not None:
            wider = np.union1d(found.grid, more)
            found.alphas = np.union1d(found.alphas, more)
            found.candidates = np.searchsorted(found.alphas, wider).tolist()
            for surface in found.surfaces:
                surface.widen(more)
            self._advance(found, found.surfaces)
        if grows:
            kept = worth_keeping(found.grid, found.errors(self.method, found.candidates), self.default)
            found.candidates = np.array(found.candidates)[kept].tolist()
        found.cells = _best_cells(self.method, found.tables, found.candidates)
        return found

    def _advance(self, found: Surfaces, surfaces: Sequence[Surface]) -> None:
        # Tikhonov reads converged alphas, so all of them must converge.
        rule = Rule(found.candidates, None if self.method == "tikhonov" else self.patience)
        for surface in surfaces:
            found.converged &= surface.advance(rule, "selecting", self.metric)

    def _beyond(self, found: Surfaces) -> Floats | None:
        """Return alphas to add: the tables need no products for them."""
        if not all(surface.widens for surface in found.surfaces):
            return None
        errors = found.errors(self.method, found.candidates)
        is_cheap = self.method != "tikhonov"  # which goes on until all have converged
        return alphas_beyond(found.grid, errors, self.default, small_is_cheap=is_cheap)

    def _refit(self, problem: Problem, best: Surfaces) -> None:
        """Fit on all data with the choice of the folds: the alpha, and for all but Tikhonov the iteration."""
        columns: list[tuple[Surface, int]] = []
        chosen: list[Choice] = []
        is_tikhonov = self.method == "tikhonov"
        for graph in problem.pairs.graphs():
            outputs = n_outputs(graph)
            cells = best.cells[len(columns) : len(columns) + outputs]
            alphas = np.unique([cell.alpha for cell in cells])
            # An iterate is wanted as it is, even if it meets the tolerance sooner here than in every fold.
            tol, steps = self.tol if is_tikhonov else 0.0, max(cell.step for cell in cells)
            surface = best.coordinates.surface(ScoredGraph(graph), alphas, tol=tol, max_iter=self._most)
            rule = Rule(range(alphas.size)) if is_tikhonov else Rule(steps=steps)
            ended = surface.advance(rule, "fitting")
            if is_tikhonov:
                best.converged &= ended
                # Converged on all data, not after the folds' number of steps.
                cells = [cell._replace(step=surface.n_steps) for cell in cells]
            chosen += cells
            columns += [(surface, column) for column in range(outputs)]
        best.columns, best.cells = columns, chosen

    @property
    def _most(self) -> int:
        return self.max_iter or _MAX_ITER

    def _selection(self, best: Surfaces, alphas: Floats) -> Selection:
        """Return the choice among the caller's alphas, and those that came to them."""
        shown = alphas if self.method == "early-stopping" else best.grid
        grid = np.searchsorted(best.alphas, shown).tolist()
        n_iter = max(len(table.errors) for table in best.tables)
        errors = np.full((len(best.tables), best.alphas.size, n_iter), np.nan)
        for own, table in zip(errors, best.tables, strict=True):
            own[:, : len(table.errors)] = table.table
        choices = {
            method: _best_cells(method, best.tables, [0] if method == "early-stopping" else grid)
            for method in METHODS
        }
        return Selection(
            best.models(),
            best.cells,
            best.alphas[grid],
            best.errors(self.method, grid),
            errors[:, grid],
            errors[:, 0],
            choices,
            facts={"n_iter_": n_iter, "keeps_basis_": all(one.space.keep_basis for one in best.surfaces)},
        )


def _scored_graphs(
    problem: Problem, plan: Plan, metric: Metric, averaging: str, coordinates: Coordinates
) -> Iterator[ScoredGraph]:
    """Yield the subjects of surfaces in the order of outputs, one after the other, so that one is in memory at a time.

    Outputs that share a graph run in lockstep where rows of their own score them, and else the folds of an output.
    With a single fold, its column is a model fitted on the other rows or pairs.
    """
    pairs = problem.pairs
    if plan.has_eval_set:
        first, rows = 0, coordinates.against(plan.eval_rows)
        for graph in pairs.graphs():
            last = first + n_outputs(graph)
            yield ScoredGraph(graph, rows=rows, scorers=plan.scorers[first:last])
            first = last
        return
    is_pooled = averaging == "pooled" and pairs.can_pool
    entries, column = plan.held[plan.is_scored], plan.fold[plan.is_scored]
    for output in range(pairs.n_outputs):
        scorer = pairs.scorer(metric, output, entries, None if is_pooled else column)
        means = labels = None
        shares = pairs.pooled_shares(plan, output) if is_pooled else None
        if shares is not None:
            means, labels = coordinates.means(shares[0]), shares[1][column]
        folds = pairs.in_lockstep(plan, output)
        yield ScoredGraph(pairs.graph(output), folds, None, [scorer], column, means, labels)


def n_outputs(graph: PairGraph) -> int:
    """Return how many outputs share a graph."""
    return 1 if graph.pull.ndim == 1 else int(graph.pull.shape[1])


def _best_cells(method: str, tables: Sequence[Table], candidates: Sequence[int]) -> list[Choice]:
    """Read each output's table the way a method does."""
    if method == "tikhonov":
        return [table.best_converged(candidates) for table in tables]
    return [table.best_cell(candidates) for table in tables]


def table_tolerance(design: Design, method: str, tol: float) -> float:
    """Return the residual at which an alpha's column of the table may stay as it is.

    A relative residual says little where columns have very different scales: the large ones dominate it.
    Only Tikhonov on a design too wide to go on to the end needs to stop there.
    """
    runs_long = method == "tikhonov" and choose_solver(design) != "direct"
    return float(tol) if runs_long else min(float(tol), EXACT)
