"""What was chosen among the alphas of one kernel, by whichever method; and the method of one decomposition."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from rankwise.arrays import Floats, Ints
from rankwise.design import Design
from rankwise.metrics import Metric
from rankwise.problems.kernel import KernelProblem
from rankwise.selection.closed_form import best_positions
from rankwise.selection.decompositions import Candidate
from rankwise.selection.grids import score_grid
from rankwise.selection.scorers import Scorer

__all__ = ["KernelChoice", "choose_among", "values_on_rows"]


@dataclass(frozen=True)
class KernelChoice:
    """A choice for every output.

    Attributes
    ----------
    alphas : (alphas,) float64
        The grid, which may have grown.
    values : (alphas, outputs) float64
        The held-out value of the metric.
    positions : (outputs,) int64
        The chosen alphas' positions in the grid.
    best : (outputs,) float64
        The value of each output's choice.
    dual : list of (basis,) float64
        Output by output.
    extra : dict
        Further attributes of the estimator.
    """

    alphas: Floats
    values: Floats
    positions: Ints
    best: Floats
    dual: list[Floats]
    extra: dict[str, Any] = field(default_factory=dict)


def choose_among(
    alphas: Floats,
    scorer: Callable[[Floats], Floats],
    metric: Metric,
    dual_of: Callable[[int, float], Floats],
    *,
    small_is_cheap: bool = True,
) -> KernelChoice:
    """Choose the best alpha of each output, beyond the default grid where that is best at its end.

    Parameters
    ----------
    scorer : callable
        Takes alphas, and returns the held-out values, (alphas, outputs).
    dual_of : callable
        Takes an output and an alpha, and makes the model.
    """
    grid, values = score_grid(alphas, scorer, metric, small_is_cheap=small_is_cheap)
    positions = best_positions(values, metric)
    best = values[positions, np.arange(positions.size)]
    dual = [dual_of(output, float(grid[position])) for output, position in enumerate(positions)]
    return KernelChoice(grid, values, positions, best, dual)


def values_on_rows(
    candidate: Candidate,
    problem: KernelProblem,
    rows: Design,
    scorers: Sequence[Scorer],
    metric: Metric,
    alphas: Floats,
) -> Floats:
    """Return the value of the metric on rows of their own, (alphas, outputs of the candidate)."""
    values = np.empty((alphas.size, len(candidate.outputs)))
    for at, output in enumerate(candidate.outputs):
        dual = [candidate.coefficients(candidate.target[:, at], float(alpha)) for alpha in alphas]
        errors = scorers[output].errors(problem.scores(rows, np.column_stack(dual)).T)
        values[:, at] = -errors if metric.greater_is_better else errors
    return values
