"""Early stopping: held-out rows or pairs score the iterates of a solver, and the best of them is kept.

Plain conjugate gradients are read off one column of the regularisation surface, where an iterate costs no vector of
its own. Every other solver that iterates tells a monitor about each of its iterates.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from rankwise.arrays import Floats
from rankwise.design import Design
from rankwise.exceptions import NoPairsError
from rankwise.metrics import Metric
from rankwise.objectives import ScaledObjective
from rankwise.pairs.graph import PairGraph
from rankwise.problems.training import PairData, TrainingData
from rankwise.progress import ProgressLine
from rankwise.selection.cv import held_out_pairs
from rankwise.selection.held_out import (
    EvalSetSystems,
    HeldOutSystems,
    PairFoldSystems,
    RowFoldSystems,
    n_outputs,
    scaled_objective,
)
from rankwise.selection.krylov_fit import warn_interrupted
from rankwise.selection.reading import difference_scorer, row_scorer
from rankwise.selection.scorers import PreferenceScorer, Scorer
from rankwise.selection.solving import require_range, solver_options
from rankwise.selection.surface import EXACT, SurfaceSearch
from rankwise.solvers.choose import SOLVERS, SolverOptions
from rankwise.solvers.solution import Status

__all__ = ["EvalSet", "Watcher", "stop_early"]

_MOST_STEPS = 1000  # of conjugate gradients; early stopping usually ends after some tens

EvalSet = tuple[Design, Sequence[Scorer]]  # rows to score by, and one scorer per output


class Watcher:
    """A monitor that scores the coefficients after every iteration, and keeps the best of each output.

    Parameters
    ----------
    rows : Design
        The rows to score by.
    scorers : sequence of Scorer
        One an output.
    patience : int
        How many iterations without improvement to wait for.
    """

    def __init__(self, rows: Design, scorers: Sequence[Scorer], patience: int) -> None:
        self._rows, self._scorers, self._patience = rows, scorers, patience
        self.objective: ScaledObjective | None = None
        self.history: list[list[float]] = [[] for _ in scorers]
        self.coef: list[Floats] = [np.empty(0)] * len(scorers)

    def __call__(self, coef: Floats, gap: float, n_iter: int) -> bool:
        """Scorer; ask for a stop when no output has improved for long enough."""
        plain = coef if self.objective is None else self.objective.to_coef(coef)
        scores = self._rows.dot(plain).reshape(self._rows.shape[0], -1)
        for output, scorer in enumerate(self._scorers):
            errors = self.history[output]
            errors.append(float(scorer.errors(np.ascontiguousarray(scores[:, output])[None])[0]))
            if int(np.argmin(errors)) == len(errors) - 1:
                self.coef[output] = plain.reshape(plain.shape[0], -1)[:, output].copy()
        return all(len(errors) - 1 - int(np.argmin(errors)) >= self._patience for errors in self.history)


@dataclass(frozen=True)
class _Kept:
    """What early stopping has found, output by output."""

    solver: str
    coefs: list[Floats]
    histories: list[list[float]]  # errors: lower is better
    steps: list[int]

    def attributes(self, metric: Metric, *, several_outputs: bool) -> dict[str, Any]:
        """Return the attributes of a model."""
        sign = -1.0 if metric.greater_is_better else 1.0
        values = [[sign * error for error in errors] for errors in self.histories]
        return {
            "solver_": self.solver,
            "coef_": np.array(self.coefs) if several_outputs else self.coefs[0],
            "n_iter_": max(len(errors) for errors in values),
            "history_": values if several_outputs else values[0],
            "best_iteration_": np.array(self.steps) if several_outputs else self.steps[0],
        }


def stop_early(
    model: Any, data: TrainingData | PairData, metric: Metric, eval_set: EvalSet | None
) -> dict[str, Any]:
    """Fit with others watching; return the attributes of the model.

    Parameters
    ----------
    model : RankRLS
        Its parameters say how; nothing else of it is looked at.
    eval_set : (Design, list of Scorer), optional
        The rows to score by; by default a share of the training rows or pairs is held out.
    """
    solver = "cg" if model.solver == "auto" else str(model.solver)
    if solver == "cg" and model.precondition is None:
        kept = _read_surface(model, data, metric, eval_set)
    else:
        kept = _watch(model, data, metric, eval_set, solver)
    return kept.attributes(metric, several_outputs=data.several_outputs)


def _read_surface(
    model: Any, data: TrainingData | PairData, metric: Metric, eval_set: EvalSet | None
) -> _Kept:
    """Read one column of the regularisation surface."""
    search = SurfaceSearch(
        data,
        method="hybrid",
        alphas=np.array([float(model.alpha)]),
        candidates=[0],
        patience=model.patience,
        tol=min(float(model.tol), EXACT),
        max_iter=_MOST_STEPS if model.max_iter is None else model.max_iter,
        metric=metric,
        default=(),
    )
    with np.errstate(over="ignore", invalid="ignore"):
        trial = search.run(model.scaling, _systems(model, data, metric, eval_set))
        coefs = list(trial.coefficients())
        if not np.any(coefs):  # nothing was learned: nothing to learn, or numbers that a first step shows
            for graph in data.graphs():
                objective, _ = scaled_objective(data.design, graph, float(model.scaling))
                require_range(SOLVERS["cg"](objective, float(model.alpha), SolverOptions(max_iter=1)))
    return _Kept(
        "cg",
        coefs,
        [surface.table[0].tolist() for surface in trial.surfaces],
        [int(cell.step) for cell in trial.cells],
    )


def _systems(
    model: Any, data: TrainingData | PairData, metric: Metric, eval_set: EvalSet | None
) -> HeldOutSystems:
    if eval_set is not None:
        return EvalSetSystems(data, *eval_set)
    share, seed = model.validation_fraction, model.random_state
    if isinstance(data, PairData):
        return PairFoldSystems(data, held_out_pairs(data, share, seed), metric, "folds")
    held = data.assigner.share(share, seed)
    fold = np.where(held, 0, -1).astype(np.int32)
    return RowFoldSystems(data, fold, np.flatnonzero(held), metric, "folds", model.n_threads)


def _watch(
    model: Any, data: TrainingData | PairData, metric: Metric, eval_set: EvalSet | None, solver: str
) -> _Kept:
    """Run a solver that tells a monitor, once for each graph."""
    graphs: Sequence[PairGraph]
    if eval_set is not None:
        graphs, (rows, scorers) = data.graphs(), eval_set
    elif isinstance(data, PairData):
        graphs, (rows, scorers) = _without_pairs(model, data, metric)
    else:
        graphs, (rows, scorers) = _without_rows(model, data, metric)
    coefs: list[Floats] = []
    histories: list[list[float]] = []
    with ProgressLine("fitting") as line:
        for number, graph in enumerate(graphs, 1):
            first = len(coefs)
            watcher = Watcher(rows, scorers[first : first + n_outputs(graph)], model.patience)
            objective, _ = scaled_objective(data.design, graph, float(model.scaling))
            watcher.objective = objective if isinstance(objective, ScaledObjective) else None
            line.update(f"output {first + 1} of {len(scorers)}")
            with np.errstate(over="ignore", invalid="ignore"):  # the solvers notice
                solution = SOLVERS[solver](objective, float(model.alpha), solver_options(model, watcher))
            require_range(solution)
            if solution.status is Status.INTERRUPTED:
                if number < len(graphs):
                    raise KeyboardInterrupt  # outputs are left of which there is no model at all
                warn_interrupted(f"after {solution.n_iter} iterations; the best model so far is kept")
            if not watcher.history[0]:  # nothing pulls, so nothing was to be done
                watcher(np.zeros_like(objective.rhs), 0.0, 0)
            coefs += watcher.coef
            histories += watcher.history
    steps = [int(np.argmin(errors)) + 1 for errors in histories]
    return _Kept(solver, coefs, histories, steps)


def _without_rows(model: Any, data: TrainingData, metric: Metric) -> tuple[Sequence[PairGraph], EvalSet]:
    """Hold a share of the queries (of the rows, where there is one ranking) out."""
    held = data.assigner.share(model.validation_fraction, model.random_state)
    weight = np.ones(held.size) if data.row_weight is None else data.row_weight
    left = weight * ~held
    rows = np.flatnonzero(held)
    graphs, scorers = [], []
    for output, column in enumerate(data.columns):
        if data.levels[output].reweighted(left).n_pairs == 0:
            raise NoPairsError(
                "Without the held-out rows there are no two rows of a query with different labels to train on.",
                "use a smaller validation_fraction, or an eval_set.",
            )
        graphs.append(data.graph(output, left))
        own = None if data.row_weight is None else data.row_weight[rows]
        queries = data.queries.subset(rows)
        scorers.append(row_scorer(metric, column[rows], queries, model.n_threads, "what was held out", own))
    return graphs, (data.design.rows(rows), scorers)


def _without_pairs(model: Any, data: PairData, metric: Metric) -> tuple[Sequence[PairGraph], EvalSet]:
    """Hold a share of the pairs out."""
    out = held_out_pairs(data, model.validation_fraction, model.random_state)
    weight = data.graph.pair_weight.copy()
    weight[out.pair] = 0.0
    left = replace(data.graph, pair_weight=weight)
    if left.n_pairs == 0:
        raise NoPairsError(
            "Without the held-out pairs there are none to train on.",
            "use a smaller validation_fraction, or an eval_set.",
        )
    pair = out.pair[out.is_scored]
    scorer = difference_scorer(metric, data.scoring_weight[pair], "what was held out")
    winner, loser = data.preferences.winner[pair], data.preferences.loser[pair]
    rows, place = np.unique(np.concatenate([winner, loser]), return_inverse=True)
    place = place.reshape(-1).astype(np.int64)
    by_pair = PreferenceScorer(place[: pair.size], place[pair.size :], scorer)
    return [left], (data.design.rows(rows), [by_pair])
