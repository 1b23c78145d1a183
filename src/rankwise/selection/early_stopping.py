"""Early stopping: held-out rows or pairs score the iterates of a solver, and the best of them is kept.

Plain conjugate gradients are read off one column of the regularisation surface, where an iterate costs no vector of
its own. Every other solver that iterates, of least squares or of margins, tells a monitor about each of its iterates.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from rankwise.arrays import Floats
from rankwise.design import Design
from rankwise.exceptions import NoPairsError
from rankwise.fitting.notices import require_range
from rankwise.fitting.squares import LeastSquares
from rankwise.metrics import Metric
from rankwise.objectives import ScaledObjective, SquaredObjective
from rankwise.pairs.graph import PairGraph
from rankwise.pairs.pairs import Pairs
from rankwise.pairs.plan import Plan, Scorer
from rankwise.problems.problem import Problem
from rankwise.runtime.progress import ProgressLine
from rankwise.selection.equations import LinearCoordinates
from rankwise.selection.result import Choice, Selection
from rankwise.selection.surface import EXACT, SurfaceSearch
from rankwise.selection.systems import n_outputs
from rankwise.solvers.choose import SOLVERS, SolverOptions

__all__ = ["EvalSetMonitor", "set_apart", "stop_early"]


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
        What the solver said of the last that was best.
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
        """Return what was best, output by output."""
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
            "Of the pairs of rows of which one is better, what is held out leaves none to train on.",
            "use a smaller validation_fraction, or an eval_set.",
        )
    # Of listed pairs only the rows in them: every iterate is scored.
    scorers = [scorer.narrowed() for scorer in scorers]
    rows = scorers[0].rows
    assert rows is not None
    return trained, problem.design.rows(rows), scorers


def stop_early(fit: LeastSquares, problem: Problem, plan: Plan, metric: Metric, patience: int) -> Selection:
    """Fit while held-out rows or pairs score the iterates, and keep the best one."""
    if fit.solver in {"auto", "cg"} and fit.options.precondition is None:
        return _read_surface(fit, problem, plan, metric, patience)
    return _watch(fit, problem, plan, metric, patience)


def _read_surface(
    fit: LeastSquares, problem: Problem, plan: Plan, metric: Metric, patience: int
) -> Selection:
    """Read one column of the regularisation surface."""
    tol = min(float(fit.options.tol), EXACT)
    search = SurfaceSearch(metric, "hybrid", "folds", patience, tol, fit.options.max_iter, default=())
    with np.errstate(over="ignore", invalid="ignore"):
        coordinates = LinearCoordinates(problem.design, fit.scaling)
        trial = search.run(problem, plan, np.array([fit.alpha]), coordinates)
        coefs = trial.models()
        if not np.any(coefs):  # nothing was learned: nothing to learn, or numbers that a first step shows
            for graph in problem.pairs.graphs():
                objective = fit.scaled(SquaredObjective(problem.design, graph))
                require_range(SOLVERS["cg"](objective, fit.alpha, SolverOptions(max_iter=1)))
    histories = [surface.table[0].tolist() for surface in trial.surfaces]
    facts = {"solver_": "cg", "n_iter_": max(len(errors) for errors in histories)}
    return Selection(coefs, trial.cells, histories=histories, facts=facts)


def _watch(fit: LeastSquares, problem: Problem, plan: Plan, metric: Metric, patience: int) -> Selection:
    """Run a solver that tells a monitor, once for each graph."""
    trained, rows, scorers = set_apart(problem, plan, metric)
    graphs: Sequence[PairGraph] = trained.graphs()
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
