"""Early stopping for the solver that reads the data in blocks: held-out rows judge the model after every read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from rankwise.design import Design
from rankwise.estimators.juries import n_outputs, scaled_objective
from rankwise.estimators.selection import judge_rows
from rankwise.estimators.training import TrainingData
from rankwise.exceptions import NoPairsError
from rankwise.metrics import Metric
from rankwise.objectives import ScaledObjective
from rankwise.pairs.graph import Floats
from rankwise.pairs.labels import LabelGraph
from rankwise.progress import ProgressLine
from rankwise.resampling import Judge, hold_out
from rankwise.solvers.stochastic import stochastic

__all__ = ["Watcher", "stop_reading"]


class Watcher:
    """A monitor that judges the coefficients after every read, and keeps the best of each output.

    Parameters
    ----------
    rows : Design
        The rows that judge.
    judges : sequence of Judge
        One an output.
    patience : int
        How many reads without improvement to wait for.
    """

    def __init__(self, rows: Design, judges: Sequence[Judge], patience: int) -> None:
        self._rows, self._judges, self._patience = rows, judges, patience
        self.objective: ScaledObjective | None = None
        self.history: list[list[float]] = [[] for _ in judges]
        self.coef: list[Floats] = [np.empty(0)] * len(judges)

    def __call__(self, coef: Floats, gap: float, n_iter: int) -> bool:
        """Judge; ask for a stop when no output has improved for long enough."""
        plain = coef if self.objective is None else self.objective.to_coef(coef)
        scores = self._rows.dot(plain).reshape(self._rows.shape[0], -1)
        for output, judge in enumerate(self._judges):
            errors = self.history[output]
            errors.append(float(judge.errors(np.ascontiguousarray(scores[:, output])[None])[0]))
            if int(np.argmin(errors)) == len(errors) - 1:
                self.coef[output] = plain.reshape(plain.shape[0], -1)[:, output].copy()
        return all(len(errors) - 1 - int(np.argmin(errors)) >= self._patience for errors in self.history)


def stop_reading(
    model: Any, data: TrainingData, metric: Metric, watching: tuple[Design, list[Judge]] | None
) -> dict[str, Any]:
    """Fit with held-out rows watching; return the attributes of the model.

    Parameters
    ----------
    model : RankRLS
    watching : (Design, list of Judge), optional
        The rows that judge; by default a share of the training rows is held out, as its parameters say.
    """
    graphs: list[LabelGraph]
    if watching is None:
        graphs, rows, judges = _held_out(model, data, metric)
    else:
        graphs, (rows, judges) = data.graphs(), watching
    coefs: list[Floats] = []
    histories: list[list[float]] = []
    with ProgressLine("fitting") as line:
        for graph in graphs:
            first = len(coefs)
            watcher = Watcher(rows, judges[first : first + n_outputs(graph)], model.patience)
            objective, _ = scaled_objective(data.design, graph, float(model.scaling))
            watcher.objective = objective if isinstance(objective, ScaledObjective) else None
            line.update(f"output {first + 1} of {len(judges)}")
            stochastic(objective, float(model.alpha), tol=model.tol, max_iter=model.max_iter, monitor=watcher)
            coefs += watcher.coef
            histories += watcher.history
    best = np.array([int(np.argmin(errors)) + 1 for errors in histories])
    sign = -1.0 if metric.greater_is_better else 1.0
    values = [[sign * error for error in errors] for errors in histories]
    several = data.several_outputs
    return {
        "solver_": "stochastic",
        "coef_": np.array(coefs) if several else coefs[0],
        "n_iter_": max(len(errors) for errors in histories),
        "history_": values if several else values[0],
        "best_iteration_": best if several else int(best[0]),
    }


def _held_out(model: Any, data: TrainingData, metric: Metric) -> tuple[list[LabelGraph], Design, list[Judge]]:
    """Hold a share of the queries (of the rows, where there is one ranking) out."""
    held = hold_out(data.design, data.columns[0], data.queries, model.validation_fraction, model.random_state)
    weight = np.ones(held.size) if data.row_weight is None else data.row_weight
    left = weight * ~held
    rows = np.flatnonzero(held & (weight > 0))
    graphs, judges = [], []
    for output, column in enumerate(data.columns):
        if data.levels[output].reweighted(left).n_pairs == 0:
            raise NoPairsError(
                "Without the held-out rows there are no two rows of a query with different labels to train on.",
                "use a smaller validation_fraction, or an eval_set.",
            )
        graphs.append(data.graph(output, left))
        own = None if data.row_weight is None else data.row_weight[rows]
        queries = data.queries.subset(rows)
        judges.append(judge_rows(metric, column[rows], queries, model.n_threads, "what was held out", own))
    return graphs, data.design.rows(rows), judges
