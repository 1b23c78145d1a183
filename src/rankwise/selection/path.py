"""Selection along a path: alphas in turn with warm starts, or the iterates of one solver.

All splits walk the grid together, from the largest alpha down: for margins, and for least squares with restricted
coefficients, which no surface and no closed form can follow. Early stopping keeps the best iterate at one alpha: plain
conjugate gradients are read off one column of the regularisation surface, where an iterate costs no vector of its own;
every other solver that iterates tells a monitor about each of its iterates.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np

from rankwise.arrays import Floats
from rankwise.design import Design
from rankwise.exceptions import NoPairsError
from rankwise.fitting.margins import MarginFit, curvature_of, margins_of
from rankwise.fitting.notices import require_range
from rankwise.fitting.problem import Problem
from rankwise.fitting.squares import LeastSquares
from rankwise.metrics import Metric
from rankwise.objectives import ScaledObjective, SquaredObjective
from rankwise.pairs.graph import MarginPairs
from rankwise.pairs.pairs import Pairs
from rankwise.pairs.plan import Plan, Scorer
from rankwise.runtime.progress import ProgressLine
from rankwise.selection.grids import choose_among
from rankwise.selection.krylov import ColumnCoordinates
from rankwise.selection.result import Choice, Selection, on_one_grid
from rankwise.selection.surface import EXACT, SurfaceSearch, n_outputs
from rankwise.solvers.choose import SOLVERS, SolverOptions
from rankwise.solvers.solution import Solution

# The walk ends where every alpha down to a hundredth of the best one was worse than it by more than a standard error of
# the difference over the splits.
_HOPELESS_RANGE = 99.0
# Only noise tells alphas apart while the loss is nearly linear, and the gain grows as 1/alpha: meanwhile the gain must
# have grown by less than this share of what alpha fell by.
_LINEAR = 0.1


# Finds the minimum of one problem: ``(alpha, *, start=None, title="fitting") -> Solution``.
Solve = Callable[..., Solution]
# Gets an output and the pairs that are trained on.
Problems = Callable[[int, Pairs], Solve]


@dataclass(frozen=True)
class PathSplit:
    """A problem that is prepared for the solver, and the rows that score it."""

    solve: Solve
    scored: Design
    scorer: Scorer


@dataclass
class AlphaPath:
    """The errors of one output on each split along a path of alphas, which can be extended at either end.

    Attributes
    ----------
    whole : Solve or None
        Fits the final model; None to keep the first split's.
    tried : dict of alpha to (splits,) float64
        Their errors; lower is better.
    solutions : dict of alpha to list of Solution
        One per split.
    solution : Solution or None
        The final one.
    """

    splits: Sequence[PathSplit]
    whole: Solve | None = None
    tried: dict[float, Floats] = field(default_factory=dict)
    solutions: dict[float, list[Solution]] = field(default_factory=dict)
    solution: Solution | None = None

    def errors(self, alphas: Floats) -> Floats:
        """Try alphas, the first time from the largest on until smaller ones cannot win; NaN where none was tried."""
        goes_on = bool(self.tried)
        above = alphas[alphas > max(self.tried)] if goes_on else alphas[:0]
        for alpha in [*above.tolist(), *np.setdiff1d(alphas, above)[::-1].tolist()]:
            self._try(alpha)
            if self.is_hopeless and not goes_on:
                break
        found = [self._mean(alpha) if alpha in self.tried else np.nan for alpha in alphas.tolist()]
        return np.array(found)[:, None]

    def model(self, output: int, alpha: float) -> Floats:
        """Fit all pairs."""
        solutions = self.solutions[alpha]
        self.solution = solutions[0]
        if self.whole is not None:
            # The splits' models share most of their pairs with the final one: their mean is a good start.
            start = np.mean([one.coef for one in solutions], axis=0)
            self.solution = self.whole(alpha, start=start)
        return self.solution.coef

    def _try(self, alpha: float) -> None:
        """Fit every split, starting from its model of the nearest alpha, and score it by the held-out rows."""
        errors: list[float] = []
        solutions: list[Solution] = []
        for number, split in enumerate(self.splits):
            solution = split.solve(alpha, start=self._start(alpha, number), title="selecting")
            solutions.append(solution)
            errors.append(float(split.scorer.errors_of_rows(split.scored.dot(solution.coef)[None, :])[0]))
        self.tried[alpha], self.solutions[alpha] = np.array(errors), solutions

    def _mean(self, alpha: float) -> float:
        return float(np.average(self.tried[alpha], weights=[split.scorer.share for split in self.splits]))

    @property
    def is_hopeless(self) -> bool:
        """Whether smaller alphas have been worse for so long that still smaller ones cannot win."""
        if len(self.splits) < 2:
            return False  # one evaluation set says nothing about its noise
        tried = sorted(self.tried, reverse=True)
        best = min(tried, key=self._mean)  # the largest of equals
        last = tried[-1]
        smaller = [alpha for alpha in tried if alpha < best]
        if len(smaller) < 2 or best < _HOPELESS_RANGE * last:
            return False
        worse = np.array([self.tried[alpha] - self.tried[best] for alpha in smaller])
        noise = worse.std(axis=1, ddof=1) / np.sqrt(len(self.splits))
        # No quotient of the two: where columns say nothing, both are 0.
        is_flat = self._gain(last) < _LINEAR * best / last * self._gain(best)
        return bool(np.all(worse.mean(axis=1) > noise) and is_flat)

    def _gain(self, alpha: float) -> float:
        return float(np.mean([solution.gain for solution in self.solutions[alpha]]))

    def _start(self, alpha: float, number: int) -> Floats | None:
        if not self.solutions:
            return None
        nearest = min(self.solutions, key=lambda other: abs(np.log(other / alpha)))
        return self.solutions[nearest][number].coef


def margin_problems(fit: MarginFit, problem: Problem, whole: Sequence[MarginPairs]) -> Problems:
    """Return the problems of margins; `whole` are all pairs, output by output."""
    pairs = problem.pairs
    curvatures = [curvature_of(problem.design, pairs.graph(output)) for output in range(pairs.n_outputs)]

    def prepared(output: int, trained: Pairs) -> Solve:
        margins = whole[output] if trained is pairs else margins_of(trained, fit.loss, output)
        # Every split follows a curvature of its own: a few rows of the tail may matter that another one holds out.
        return partial(fit.solve, problem.design, margins, curvature=copy(curvatures[output]))

    return prepared


def squared_problems(fit: LeastSquares, problem: Problem) -> Problems:
    """Return the problems of least squares; there is nothing to start from."""

    def prepared(output: int, trained: Pairs) -> Solve:
        objective = SquaredObjective(problem.design, trained.graph(output))

        def solve(alpha: float, **_: object) -> Solution:
            return replace(fit, alpha=alpha).solve(objective)

        return solve

    return prepared


def paths_of(prepared: Problems, problem: Problem, plan: Plan, metric: Metric) -> list[AlphaPath]:
    """Return the path of every output."""
    scored: dict[int, Design] = {}
    paths, pairs, design = [], problem.pairs, problem.design
    for output in range(pairs.n_outputs):
        splits = []
        for fold, trained, scorer in pairs.held_out(plan, metric, output):
            if fold not in scored:
                own = design if scorer.rows is None else design.rows(scorer.rows)
                scored[fold] = plan.eval_rows if plan.has_eval_set else own
            splits.append(PathSplit(prepared(output, trained), scored[fold], scorer))
        paths.append(AlphaPath(splits, None if plan.has_eval_set else prepared(output, pairs)))
    return paths


def choose_on_paths(
    paths: Sequence[AlphaPath], grid: Floats, default: tuple[float, ...]
) -> tuple[Selection, list[Solution]]:
    """Choose alpha for every output by the mean error of its splits, and fit all pairs.

    The grid, in increasing order, goes on at its ends where it is the default.
    """
    found: list[Selection] = []
    solutions: list[Solution] = []
    for path in paths:
        found.append(choose_among(path, grid, default, small_is_cheap=False))
        assert path.solution is not None
        solutions.append(path.solution)
    alphas, tables = on_one_grid([one.table for one in found])
    models, chosen = [one.models[0] for one in found], [one.chosen[0] for one in found]
    return Selection(models, chosen, alphas, np.column_stack(tables)), solutions


# --- early stopping ---


class EvalSetMonitor:
    """A `rankwise.solvers.solution.Monitor` that scores every iterate, and keeps the best of each output.

    Parameters
    ----------
    rows : Design
        The rows that are scored.
    scorers : sequence of Scorer
        One per output.
    patience : int
        How many iterations without improvement to wait for.
    objective : ScaledObjective, optional
        Whose coordinates the iterates are in.

    Attributes
    ----------
    history : list of list of float
        The errors of every iterate, output by output; lower is better.
    coef : list of (features,) float64
        The best coefficients, output by output.
    gap : float
        The solver's certificate at the last best iterate.
    """

    def __init__(
        self,
        rows: Design,
        scorers: Sequence[Scorer],
        patience: int,
        objective: ScaledObjective | None = None,
    ) -> None:
        self._rows, self._scorers, self._patience, self._objective = rows, scorers, patience, objective
        self.history: list[list[float]] = [[] for _ in scorers]
        self.coef: list[Floats] = [np.empty(0)] * len(scorers)
        self.gap = np.inf

    @property
    def steps(self) -> list[int]:
        """The best iteration of each output, from 1; the first of equals."""
        return [int(np.argmin(errors)) + 1 for errors in self.history]

    def choices(self, alpha: float) -> list[Choice]:
        """Return the best choice of each output."""
        return [
            Choice(alpha, step, errors[step - 1])
            for step, errors in zip(self.steps, self.history, strict=True)
        ]

    def __call__(self, coef: Floats, gap: float, n_iter: int) -> bool:
        """Score; ask for a stop when no output has improved for long enough."""
        plain = coef if self._objective is None else self._objective.to_coef(coef)
        scores = self._rows.dot(plain).reshape(self._rows.shape[0], -1)
        for output, scorer in enumerate(self._scorers):
            errors = self.history[output]
            own = np.ascontiguousarray(scores[:, output])[None]
            errors.append(float(scorer.errors_of_rows(own)[0]))
            if int(np.argmin(errors)) == len(errors) - 1:
                self.coef[output] = plain.reshape(plain.shape[0], -1)[:, output].copy()
                self.gap = gap
        stale = zip(self.history, self.steps, strict=True)
        return all(len(errors) - step >= self._patience for errors, step in stale)


def set_apart(problem: Problem, plan: Plan, metric: Metric) -> tuple[Pairs, Design, Sequence[Scorer]]:
    """Return the pairs that are trained on, and the rows and scorers of an evaluation set or of the single fold."""
    pairs = problem.pairs
    if plan.has_eval_set:
        return pairs, plan.eval_rows, plan.scorers
    scorers = [pairs.scorer(metric, output, plan.scoring(0)) for output in range(pairs.n_outputs)]
    trained = pairs.only(plan.trained(0))
    if not all(trained.has_pairs(output) for output in range(pairs.n_outputs)):
        raise NoPairsError(
            "Without the held-out rows, no two rows with different labels are left to train on.",
            "use a smaller validation_fraction, or an eval_set.",
        )
    # Of listed pairs only the rows in them: every iterate is scored.
    scorers = [scorer.narrowed() for scorer in scorers]
    rows = scorers[0].rows
    assert rows is not None
    return trained, problem.design.rows(rows), scorers


def stop_early(fit: LeastSquares, problem: Problem, plan: Plan, metric: Metric, patience: int) -> Selection:
    """Fit while held-out rows or pairs score the iterates, and keep the best one."""
    if fit.solver in {"auto", "cg"}:
        return _read_surface(fit, problem, plan, metric, patience)
    return _watch(fit, problem, plan, metric, patience)


def _read_surface(
    fit: LeastSquares, problem: Problem, plan: Plan, metric: Metric, patience: int
) -> Selection:
    """Read one column of the regularisation surface."""
    tol = min(float(fit.options.tol), EXACT)
    search = SurfaceSearch(metric, "hybrid", "folds", patience, tol, fit.options.max_iter, default=())
    with np.errstate(over="ignore", invalid="ignore"):
        coordinates = ColumnCoordinates(problem.design, fit.penalty_power)
        found = search.grow(problem, plan, np.array([fit.alpha]), coordinates)
        coefs = found.models()
        if not np.any(coefs):  # nothing was learned: nothing to learn, or numbers that a first step shows
            for graph in problem.pairs.graphs():
                objective = fit.scaled(SquaredObjective(problem.design, graph))
                require_range(SOLVERS["cg"](objective, fit.alpha, SolverOptions(max_iter=1)))
    histories = [table.table[0].tolist() for table in found.tables]
    facts = {"solver_": "cg", "n_iter_": max(len(errors) for errors in histories)}
    return Selection(coefs, found.cells, histories=histories, facts=facts)


def _watch(fit: LeastSquares, problem: Problem, plan: Plan, metric: Metric, patience: int) -> Selection:
    """Run a solver that tells a monitor, once for each graph."""
    trained, rows, scorers = set_apart(problem, plan, metric)
    graphs = trained.graphs()
    coefs: list[Floats] = []
    histories: list[list[float]] = []
    chosen: list[Choice] = []
    with ProgressLine("fitting") as line:
        for graph in graphs:
            first = len(coefs)
            objective = fit.scaled(SquaredObjective(problem.design, graph))
            scaled = objective if isinstance(objective, ScaledObjective) else None
            own = scorers[first : first + n_outputs(graph)]
            monitor = EvalSetMonitor(rows, own, patience, scaled)
            line.update(f"output {first + 1} of {len(scorers)}")
            with np.errstate(over="ignore", invalid="ignore"):  # the solvers notice
                options = replace(fit.options, monitor=monitor)
                solution = SOLVERS[fit.solver](objective, fit.alpha, options)
            require_range(solution)
            if not monitor.history[0]:  # nothing pulls, so nothing was to be done
                monitor(np.zeros_like(objective.rhs), 0.0, 0)
            coefs += monitor.coef
            histories += monitor.history
            chosen += monitor.choices(fit.alpha)
    facts = {"solver_": fit.solver, "n_iter_": max(len(errors) for errors in histories)}
    return Selection(coefs, chosen, histories=histories, facts=facts)
