"""Exact hold-out of listed pairs for every alpha: groups of pairs, from one decomposition.

RankRLS on listed pairs is ridge regression of ``√ω z`` on the rows ``√ω (x_i - x_j)``, so any groups of pairs can be
held out. Where no two groups share a row, as in queries, the same holds in the coordinates of the rows, with a factor
of each component: a system of the size of the rows however many pairs there are.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from rankwise.arrays import Floats, Ints
from rankwise.exceptions import MemoryLimitError
from rankwise.holdout import DualHoldOut, HoldOut, PrimalHoldOut, groups_of, held_out_residuals
from rankwise.memory import MemoryBudget
from rankwise.metrics import Metric
from rankwise.pairs.preference_factor import ComponentFactor
from rankwise.pairs.preferences import PreferenceGraph
from rankwise.problems.kernel import KernelProblem, warn_if_indefinite
from rankwise.problems.training import PairData
from rankwise.selection.reading import difference_scorer
from rankwise.solvers.dual import DualSpectrum

__all__ = ["PairCandidate", "decompose_pairs", "decompose_pairs_of_kernel", "held_out_pair_values"]


@dataclass(frozen=True)
class PairCandidate:
    """The decomposition of a list of pairs, for every alpha.

    Attributes
    ----------
    target : (units, 1) float64
        A unit is a pair, or a row.
    group : (units,) int64
        -1 for rows in no pair.
    differences : callable
        Takes held-out predictions (alphas, units); gives winner minus loser, (alphas, pairs).
    coefficients : callable
        Gives the model of an alpha.
    """

    hold_out: HoldOut
    target: Floats
    group: Ints
    differences: Callable[[Floats], Floats]
    coefficients: Callable[[float], Floats]


def decompose_pairs(
    X: Any, graph: PreferenceGraph, group: Ints, budget: MemoryBudget, finish: Callable[[Floats], Floats]
) -> PairCandidate:
    """Diagonalise the Gram matrix of features; `finish` makes the model of the coefficients of their columns."""
    of_row = _group_of_rows(graph, group)
    if of_row is None:
        _demand(budget, graph.winner.size, X.shape[1])
        root = np.sqrt(graph.pair_weight)
        Z = _array(X[graph.winner] - X[graph.loser])
        Z *= root[:, None]
        target = root * graph.difference
    else:
        _demand(budget, *X.shape)
        factor = ComponentFactor(graph)
        Z, target = factor.apply(_array(X)), factor.target(graph.pull)
    hold_out, vectors = PrimalHoldOut.with_vectors(Z)

    def coefficients(alpha: float) -> Floats:
        inverse = hold_out.shrinkage(np.array([alpha]))[0]
        return finish(vectors @ (inverse * (hold_out.features.T @ target)))

    differences = _over_root(root) if of_row is None else _of_rows(graph, factor)
    return PairCandidate(
        hold_out, target[:, None], group if of_row is None else of_row, differences, coefficients
    )


def decompose_pairs_of_kernel(problem: KernelProblem, graph: PreferenceGraph, group: Ints) -> PairCandidate:
    """Diagonalise the dual where no two groups share a row, else the features of all rows or of a reduced set."""
    of_row = _group_of_rows(graph, group)
    if problem.basis is not None or of_row is None:
        with_basis = problem if problem.basis is not None else problem.with_all_rows()
        feature_map = with_basis.feature_map()
        Z = with_basis.kept_features(feature_map)
        return decompose_pairs(Z, graph, group, problem.budget, feature_map.dual_coefficients)
    matrix = problem.matrix(copies=6)
    factor = ComponentFactor(graph)
    spectrum = DualSpectrum.of_matrix(factor.sandwich(matrix))
    if not problem.kernel.is_surely_positive:
        warn_if_indefinite(spectrum)
    target = factor.target(graph.pull)
    return PairCandidate(
        DualHoldOut.of_spectrum(spectrum),
        target[:, None],
        of_row,
        _of_rows(graph, factor),
        lambda alpha: factor.transposed(spectrum.solve(target, alpha)),
    )


def held_out_pair_values(
    candidate: PairCandidate, data: PairData, group: Ints, metric: Metric, averaging: str, alphas: Floats
) -> Floats:
    """Return the held-out value of the metric, (alphas, 1)."""
    weight = np.where(group >= 0, data.scoring_weight, 0.0)
    fold = np.maximum(group, 0) if averaging == "folds" else None
    scorer = difference_scorer(metric, weight, "what was held out", fold)
    residual = held_out_residuals(
        candidate.hold_out,
        candidate.target,
        groups_of(candidate.group),
        alphas,
        n_threads=data.design.n_threads,
    )
    predicted = np.nan_to_num((candidate.target - residual)[:, :, 0])  # NaN: what nothing holds out
    # Equal rows tie; the closed form subtracts a residual from each pair's own difference, and leaves its rounding.
    differs = data.row_codes[data.preferences.winner] != data.row_codes[data.preferences.loser]
    held_out = np.where((weight > 0) & differs, candidate.differences(predicted), 0.0)
    errors = scorer.errors(held_out)
    return (-errors if metric.greater_is_better else errors)[:, None]


def _over_root(root: Floats) -> Callable[[Floats], Floats]:
    inverse = np.divide(1.0, root, out=np.zeros_like(root), where=root > 0)
    return lambda predicted: predicted * inverse


def _of_rows(graph: PreferenceGraph, factor: ComponentFactor) -> Callable[[Floats], Floats]:
    def differences(predicted: Floats) -> Floats:
        scores = factor.solve(np.ascontiguousarray(predicted.T)).T
        return np.asarray(scores[:, graph.winner] - scores[:, graph.loser])

    return differences


def _group_of_rows(graph: PreferenceGraph, group: Ints) -> Ints | None:
    """Return the group of each row's pairs, -1 without pairs; None where groups share a row, or pairs are fewer."""
    if graph.winner.size < graph.n_rows:
        return None
    of_row = np.full(graph.n_rows, -1, dtype=np.int64)
    of_row[graph.winner] = group
    of_row[graph.loser] = group
    is_whole = (of_row[graph.winner] == group).all() and (of_row[graph.loser] == group).all()
    return of_row if is_whole else None


def _array(X: Any) -> Floats:
    return np.asarray(X if isinstance(X, np.ndarray) else X.toarray(), dtype=np.float64)


def _demand(budget: MemoryBudget, n_units: int, n_columns: int) -> None:
    n_bytes = 8 * (3 * n_units * n_columns + 3 * n_columns**2)
    if not budget.allows(n_bytes):
        raise MemoryLimitError(
            f"Exact hold-out from {n_units} rows or pairs and {n_columns} columns takes about "
            f"{n_bytes / 2**30:.2f} GiB, and {budget.free / 2**30:.2f} GiB may be used.",
            "use cv=5, a smaller basis, or groups that share no rows.",
        )
