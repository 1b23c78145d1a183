"""Choosing alpha for a linear model by exact hold-out: one decomposition answers for every alpha of the grid.

From ``X'LX`` where X has at most as many columns as rows, else from the linear kernel; for lists of pairs see
`rankwise.selection.closed_form_pairs`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from rankwise.arrays import Floats, Ints
from rankwise.design import Design
from rankwise.exceptions import InvalidInputError, MemoryLimitError
from rankwise.kernels import Kernel, matrix_rows
from rankwise.memory import MemoryBudget, fits
from rankwise.metrics import Metric
from rankwise.pairs.labels import LabelGraph
from rankwise.problems.kernel import KernelProblem
from rankwise.problems.training import PairData, TrainingData
from rankwise.selection.closed_form_pairs import decompose_pairs, held_out_pair_values
from rankwise.selection.decompositions import (
    Candidate,
    candidates_of,
    decompose,
    decompose_features,
    held_out_values,
)
from rankwise.selection.grids import score_grid
from rankwise.selection.held_out import scaled_objective
from rankwise.selection.hold_out_plan import EXACT_CV, Plan, is_ridge, leave_pair_out_by_auto
from rankwise.solvers.surface import EQUAL

__all__ = [
    "ExactChoice",
    "best_positions",
    "check_exact_method",
    "choose_by_pairs",
    "choose_by_rows",
    "exact_attributes",
    "is_exact",
]

_FEW_COLUMNS = 2000  # up to so many, diagonalising X'LX is instant beside reading X


@dataclass(frozen=True)
class ExactChoice:
    """What exact hold-out chose.

    Attributes
    ----------
    alphas : (alphas,) float64
        The grid, which may have grown.
    values : (alphas, outputs) float64
        The held-out value of the metric.
    positions : (outputs,) int64
        The chosen alphas' positions in the grid; of equally good ones the largest.
    coef : list of (features,) float64
        Output by output.
    power : float
        The chosen `scaling`.
    """

    alphas: Floats
    values: Floats
    positions: Ints
    coef: list[Floats]
    power: float

    @property
    def best(self) -> Floats:
        """The value of each output's choice."""
        return np.asarray(self.values[self.positions, np.arange(self.positions.size)])


def is_exact(cv: Any, method: str, data: TrainingData, metric: Metric, n_alphas: int) -> tuple[bool, str]:
    """Tell whether one decomposition is to answer for every alpha; where "auto" would but for the price, why not."""
    if not isinstance(cv, str):
        return False, ""
    if cv in EXACT_CV:
        return True, ""
    design = data.design
    is_cheap = min(design.shape) <= _FEW_COLUMNS and fits(_bytes(design.shape))
    if method != "tikhonov" or not is_cheap or not design.has_rows:
        return False, ""
    if len(data.queries) > 1 or (is_ridge(data) and data.query_weight == "size"):
        return True, ""
    return leave_pair_out_by_auto(data, metric, min(design.shape), n_alphas)


def check_exact_method(cv: Any, method: str) -> None:
    """Raise where exact hold-out is asked to stop early."""
    if isinstance(cv, str) and cv in EXACT_CV and method not in {"auto", "tikhonov"}:
        raise InvalidInputError(
            f"cv={cv!r} knows the converged models only, and method={method!r} stops early.",
            "use method='auto' or 'tikhonov', or a number of folds.",
        )


def exact_attributes(choice: ExactChoice, *, several: bool) -> dict[str, Any]:
    """Return what `RankRLSCV` says about its choice."""
    alphas, values = choice.alphas[choice.positions], choice.best
    chosen = [(float(alpha), 0, float(value)) for alpha, value in zip(alphas, values, strict=True)]
    return {
        "alphas_": choice.alphas,
        "cv_errors_": choice.values if several else choice.values[:, 0],
        "choices_": {"tikhonov": chosen if several else chosen[0]},
        "alpha_": alphas if several else float(alphas[0]),
        "best_score_": values if several else float(values[0]),
        "coef_": np.array(choice.coef) if several else choice.coef[0],
        "scaling_": choice.power,
        "n_iter_": 0,
        "n_products_": 0,
    }


def choose_by_rows(
    data: TrainingData, plan: Plan, metric: Metric, alphas: Floats, powers: Sequence[float]
) -> ExactChoice:
    """Hold out what the plan says under every value of `scaling`, and keep the best."""
    X = _matrix(data.design)

    def trial(power: float) -> ExactChoice:
        candidates = candidates_of(data, partial(_decompose, data.design, X, power))
        grid, values = score_grid(
            alphas,
            lambda some: np.column_stack(
                [held_out_values(c, None, data, plan, metric, some) for c in candidates]
            ),
            metric,
        )
        positions = best_positions(values, metric)
        coef = [
            c.coefficients(c.target[:, at], float(grid[positions[output]]))
            for c in candidates
            for at, output in enumerate(c.outputs)
        ]
        return ExactChoice(grid, values, positions, coef, power)

    return _best_trial([trial(power) for power in powers], metric)


def choose_by_pairs(
    data: PairData, group: Ints, metric: Metric, averaging: str, alphas: Floats, powers: Sequence[float]
) -> ExactChoice:
    """Hold out groups of listed pairs in turn under every value of `scaling`, and keep the best."""
    X = _matrix(data.design)

    def trial(power: float) -> ExactChoice:
        scale = scaled_objective(data.design, data.graph, power)[1]
        finish: Callable[[Floats], Floats] = (lambda w: w) if scale is None else (lambda w: w * scale)
        candidate = decompose_pairs(_scaled(X, scale), data.graph, group, MemoryBudget(), finish)
        grid, values = score_grid(
            alphas, lambda some: held_out_pair_values(candidate, data, group, metric, averaging, some), metric
        )
        positions = best_positions(values, metric)
        coef = candidate.coefficients(float(grid[positions[0]]))
        return ExactChoice(grid, values, positions, [coef], power)

    return _best_trial([trial(power) for power in powers], metric)


def best_positions(values: Floats, metric: Metric) -> Ints:
    """Return the position of each column's best value; of equally good ones the last, the simplest model."""
    errors = -values if metric.greater_is_better else values
    is_best = errors <= errors.min(axis=0) + EQUAL
    return np.asarray(errors.shape[0] - 1 - np.argmax(is_best[::-1], axis=0), dtype=np.int64)


def _best_trial(trials: Sequence[ExactChoice], metric: Metric) -> ExactChoice:
    sign = -1.0 if metric.greater_is_better else 1.0
    return min(trials, key=lambda trial: sign * float(trial.best.mean()))


def _decompose(design: Design, X: Any, power: float, graph: LabelGraph, outputs: list[int]) -> Candidate:
    scale = scaled_objective(design, graph, power)[1]
    finish: Callable[[Floats], Floats] = (lambda w: w) if scale is None else (lambda w: w * scale)
    if X.shape[1] <= X.shape[0]:
        dense = X if isinstance(X, np.ndarray) else X.toarray()
        return decompose_features(dense if scale is None else dense * scale, graph, outputs, finish)
    scaled = _scaled(X, scale)
    problem = KernelProblem(Kernel("linear"), scaled, None, MemoryBudget(), design.n_threads)
    dual = decompose(problem, graph, outputs)
    return Candidate(
        outputs,
        dual.factor,
        dual.target,
        dual.hold_out,
        lambda t, alpha: finish(np.asarray(scaled.T @ dual.coefficients(t, alpha), dtype=np.float64)),
        dual.reweighted,
    )


def _scaled(X: Any, scale: Floats | None) -> Any:
    if scale is None:
        return X
    return X * scale if isinstance(X, np.ndarray) else X.multiply(scale).tocsr()


def _matrix(design: Design) -> Any:
    """Return X as an array or a sparse matrix, if its decomposition fits in memory."""
    if not fits(_bytes(design.shape)):
        raise MemoryLimitError(
            f"Exact hold-out from {design.shape[0]} rows and {design.shape[1]} columns takes about "
            f"{_bytes(design.shape) / 2**30:.2f} GiB.",
            "use cv=5, which only multiplies by X.",
        )
    return matrix_rows(design)


def _bytes(shape: tuple[int, int]) -> int:
    """Three copies of the smaller of X and its kernel, and the Gram matrix."""
    n_rows, n_columns = shape
    return 8 * (3 * n_rows * min(n_rows, n_columns) + 3 * min(n_rows, n_columns) ** 2)
