"""Choosing a cell of the regularisation surface: when to stop growing it, and how to read it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from rankwise.arrays import Floats
from rankwise.data.containers import unmasked
from rankwise.data.preferences import Preferences, check_pairs
from rankwise.data.queries import Queries
from rankwise.data.validation import check_qid
from rankwise.exceptions import InvalidInputError, MissingQueriesError, NoPairsError
from rankwise.metrics import Metric
from rankwise.metrics.pairwise import Concordance, PairwiseError
from rankwise.selection.scorers import DifferenceScorer, MetricScorer, PreferenceScorer
from rankwise.solvers.surface import Cell, Surface

__all__ = [
    "AVERAGING",
    "METHODS",
    "after_steps",
    "best_cells",
    "check_alphas",
    "check_powers",
    "difference_scorer",
    "preference_scorer",
    "read_eval_set",
    "read_pair_eval_set",
    "stopping_rule",
]

METHODS = ("hybrid", "tikhonov", "early-stopping")
AVERAGING = ("folds", "pooled")

Rule = Callable[[Sequence[Surface]], bool]


def check_alphas(alphas: Any) -> Floats:
    """Return a grid of alphas: finite, not negative, in increasing order, without duplicates."""
    try:
        grid = np.unique(np.asarray(unmasked("alphas", alphas), dtype=np.float64).ravel())
    except (TypeError, ValueError) as error:
        raise InvalidInputError(
            f"alphas must be numbers ({error}).", "pass for example alphas=2.0 ** np.arange(-10, 11)."
        ) from error
    if grid.size == 0:
        raise InvalidInputError("alphas is empty.", "pass for example alphas=2.0 ** np.arange(-10, 11).")
    if not np.isfinite(grid).all() or grid[0] < 0:
        raise InvalidInputError(
            "alphas must be finite and not negative.", "use powers of two around 1; 0 means no penalty."
        )
    return grid


def check_powers(scaling: Any) -> list[float]:
    """Return the values of `scaling` to try."""
    try:
        powers = np.asarray(unmasked("scaling", scaling), dtype=np.float64).ravel()
    except (TypeError, ValueError):
        powers = np.empty(0)
    if powers.size == 0 or not np.isfinite(powers).all():
        raise InvalidInputError(
            f"scaling={scaling!r} is not a number or a list of numbers.", "use 0 (off) or 0.25."
        )
    return [float(power) for power in powers]


def stopping_rule(method: str, candidates: Sequence[int], patience: int) -> Rule:
    """Tell when the surface has grown enough.

    Tikhonov reads converged alphas, so all of them must converge; the other methods stop when no cell has
    beaten the best one for `patience` iterations.
    """
    if method == "tikhonov":
        return lambda surfaces: all(bool((s.converged_at[list(candidates)] > 0).all()) for s in surfaces)

    def stale(surface: Surface) -> bool:
        return bool(surface.errors) and len(surface.errors) - surface.best_cell(candidates).step >= patience

    return lambda surfaces: all(stale(surface) for surface in surfaces)


def after_steps(steps: int) -> Rule:
    """Stop after a fixed number of iterations."""
    return lambda surfaces: len(surfaces[0].errors) >= steps


def best_cells(method: str, surfaces: Sequence[Surface], candidates: Sequence[int]) -> list[Cell]:
    """Read each output's surface the way a method does."""
    if method == "tikhonov":
        return [surface.best_converged(candidates) for surface in surfaces]
    return [surface.best_cell(candidates) for surface in surfaces]


def row_scorer(
    metric: Metric,
    labels: Floats,
    queries: Queries,
    n_threads: int | None,
    what: str,
    weight: Floats | None = None,
) -> MetricScorer:
    """Prepare a metric on the rows to score by; by their weights, where that means something to it."""
    try:
        evaluator = metric.prepare(
            labels, queries, sample_weight=weight if metric.takes_weights else None, n_threads=n_threads
        )
    except NoPairsError as error:
        raise NoPairsError(
            f"{what} has no two rows of a query with different labels, so it cannot judge a ranking.",
            "give it more rows, or use fewer folds.",
        ) from error
    return MetricScorer(evaluator, metric.greater_is_better)


def difference_scorer(
    metric: Metric, weight: Floats, what: str, fold: npt.NDArray[np.int64] | None = None
) -> DifferenceScorer:
    """Prepare a metric on pairs to score by; with `fold`, every fold counts the same, else every weight does."""
    if not isinstance(metric, (PairwiseError, Concordance)):
        raise InvalidInputError(
            f"scoring={metric.name!r} needs rows with labels, and pairs have none.",
            "use scoring='pairwise_error' or 'concordance' with fit_pairs.",
        )
    if not (weight > 0).any():
        raise NoPairsError(
            f"{what} has no pair with a winner and a positive weight, so it cannot judge a ranking.",
            "give it more pairs, or use fewer folds.",
        )
    total = np.full(weight.size, weight.sum())
    if fold is not None:
        by_fold = np.bincount(fold, weights=weight)
        total = by_fold[fold] * int((by_fold > 0).sum())
    share = np.divide(weight, total, out=np.zeros(weight.size), where=weight > 0)
    return DifferenceScorer(share, float(metric.ties), metric.greater_is_better)


def preference_scorer(metric: Metric, pairs: Preferences, what: str) -> PreferenceScorer:
    """Prepare a metric on a list of pairs of rows to score by."""
    weight = np.ones(len(pairs)) if pairs.weight is None else pairs.weight
    return PreferenceScorer(pairs.winner, pairs.loser, difference_scorer(metric, weight, what))


def read_eval_set(
    eval_set: Any, check_matrix: Callable[[Any, Any], Any], *, with_qid: bool, n_outputs: int
) -> tuple[Any, Floats, Queries]:
    """Pass an evaluation set through validation: ``(X, y)`` or ``(X, y, qid)``."""
    if not isinstance(eval_set, (tuple, list)) or len(eval_set) not in {2, 3}:
        raise InvalidInputError(
            "eval_set must be a tuple (X, y) or (X, y, qid).", "pass one evaluation set, not a list of them."
        )
    X, y = check_matrix(eval_set[0], eval_set[1])
    qid = eval_set[2] if len(eval_set) == 3 else None
    if qid is None and with_qid:
        raise MissingQueriesError(
            "fit was called with query ids, but eval_set has none; its score would be a global one.",
            "pass eval_set=(X_val, y_val, qid_val).",
        )
    outputs = 1 if y.ndim == 1 else y.shape[1]
    if outputs != n_outputs:
        raise InvalidInputError(
            f"eval_set has {outputs} outputs, but y has {n_outputs}.", "give both the same columns of labels."
        )
    return X, y, check_qid(qid, X.shape[0])


def read_pair_eval_set(eval_set: Any, check_matrix: Callable[[Any], Any]) -> tuple[Any, Preferences]:
    """Pass an evaluation set of pairs through validation: ``(X, pairs)`` or ``(X, pairs, weight)``."""
    if not isinstance(eval_set, (tuple, list)) or len(eval_set) not in {2, 3}:
        raise InvalidInputError(
            "eval_set must be a tuple (X, pairs) or (X, pairs, weight).",
            "pass the rows to score by and the pairs among them, numbered from 0 in that X.",
        )
    X = check_matrix(eval_set[0])
    pairs = unmasked("pairs of eval_set", eval_set[1])
    weight = unmasked("weight of eval_set", eval_set[2]) if len(eval_set) == 3 else None
    if np.size(pairs) == 0 or (weight is not None and np.size(weight) and not np.any(weight)):
        raise NoPairsError(
            "eval_set has no pair that weighs anything, so it cannot judge a ranking.",
            "pass at least one pair (winner, loser), or leave eval_set out to judge by a share of the pairs.",
        )
    return X, check_pairs(pairs, X.shape[0], weight=weight)
