"""Held-out judgement of kernel models for a whole grid of alphas: closed forms, and refits where there is none."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from rankwise.arrays import Floats, Rows
from rankwise.data.queries import Queries
from rankwise.exceptions import NoPairsError
from rankwise.holdout import (
    DualHoldOut,
    HoldOut,
    PrimalHoldOut,
    groups_of,
    held_out_residuals,
)
from rankwise.metrics import Evaluator, Metric
from rankwise.pairs.factor import LabelFactor
from rankwise.pairs.labels import LabelGraph, label_graph
from rankwise.problems.kernel import KernelProblem, warn_if_indefinite
from rankwise.problems.training import TrainingData
from rankwise.selection.hold_out_plan import Plan
from rankwise.selection.leave_pair_out import pair_out_errors
from rankwise.solvers.dual import DualSpectrum

__all__ = [
    "Candidate",
    "candidates_of",
    "decompose",
    "decompose_features",
    "held_out_values",
    "reweighted_features",
    "reweighted_kernel",
]

_SCORES = 1 << 25  # doubles of held-out scores kept at a time; outputs are scored in portions


@dataclass(frozen=True)
class Candidate:
    """The decomposition of one kernel, or one matrix, and one graph, for every alpha.

    Attributes
    ----------
    outputs : list of int
        The columns of y that it serves.
    target : (rows, outputs) float64
        ``t`` with ``F't = r``.
    coefficients : callable
        Takes a column of the target and an alpha; gives dual coefficients, or those of the columns of a matrix.
    reweighted : callable
        Takes some of the rows and degrees of theirs, and decomposes once more: for leave-pair-out by levels.
    """

    outputs: list[int]
    factor: LabelFactor
    target: Floats
    hold_out: HoldOut
    coefficients: Callable[[Floats, float], Floats]
    reweighted: Callable[[Rows, Floats], tuple[Floats, Floats]]


def decompose(problem: KernelProblem, graph: LabelGraph, outputs: list[int]) -> Candidate:
    """Diagonalise the problem of a graph once: the dual, or the features of a reduced set."""
    if problem.basis is None:
        factor = LabelFactor(graph.blocks)
        target = factor.target(graph.pull).reshape(graph.n_rows, -1)
        spectrum = DualSpectrum.of_matrix(factor.sandwich(problem.matrix(copies=4)))
        if not problem.kernel.is_surely_positive:
            warn_if_indefinite(spectrum)
        return Candidate(
            outputs,
            factor,
            target,
            DualHoldOut.of_spectrum(spectrum),
            lambda t, alpha: factor.transposed(spectrum.solve(t, alpha)),
            partial(reweighted_kernel, problem),
        )
    feature_map = problem.feature_map()
    Z = problem.kept_features(feature_map)
    return decompose_features(Z, graph, outputs, feature_map.dual_coefficients)


def decompose_features(
    X: Floats, graph: LabelGraph, outputs: list[int], finish: Callable[[Floats], Floats]
) -> Candidate:
    """Diagonalise ``X'LX``; `finish` makes the model of the coefficients of its columns."""
    factor = LabelFactor(graph.blocks, graph.n_threads)
    hold_out, vectors = PrimalHoldOut.with_vectors(factor.apply(X))

    def coefficients(t: Floats, alpha: float) -> Floats:
        inverse = hold_out.shrinkage(np.array([alpha]))[0]
        return finish(vectors @ (inverse * (hold_out.features.T @ t)))

    return Candidate(
        outputs,
        factor,
        factor.target(graph.pull).reshape(graph.n_rows, -1),
        hold_out,
        coefficients,
        partial(reweighted_features, X),
    )


def reweighted_kernel(problem: KernelProblem, rows: Rows, degree: Floats) -> tuple[Floats, Floats]:
    """Decompose the centred kernel of some rows with degrees of theirs; see `rankwise.holdout.level_pairs`."""
    root = np.sqrt(degree)
    matrix = (problem if rows.size == problem.n_rows else problem.subset(rows)).matrix(copies=4)
    matrix -= matrix.mean(axis=0)
    matrix -= matrix.mean(axis=1)[:, None]
    matrix *= root
    matrix *= root[:, None]
    spectrum = DualSpectrum.of_matrix(matrix)
    return spectrum.vectors * np.sqrt(spectrum.values) / root[:, None], spectrum.values


def reweighted_features(X: Floats, rows: Rows, degree: Floats) -> tuple[Floats, Floats]:
    """Decompose explicit features of some rows, centred, with degrees of theirs."""
    centred = X[rows] - X[rows].mean(axis=0)
    hold_out, vectors = PrimalHoldOut.with_vectors(np.sqrt(degree)[:, None] * centred)
    return centred @ vectors, hold_out.values


def candidates_of(data: TrainingData, make: Callable[[LabelGraph, list[int]], Candidate]) -> list[Candidate]:
    """Decompose once for outputs that can share a graph, else once an output."""
    graphs = data.graphs()
    if len(graphs) == 1:
        return [make(graphs[0], list(range(len(data.columns))))]
    return [make(graph, [output]) for output, graph in enumerate(graphs)]


def held_out_values(
    candidate: Candidate,
    problem: KernelProblem | None,
    data: TrainingData,
    plan: Plan,
    metric: Metric,
    alphas: Floats,
) -> Floats:
    """Return the held-out value of the metric, (alphas, outputs of the candidate)."""
    if plan.kind == "pairs":
        error = pair_out_errors(candidate.hold_out, candidate.reweighted, data, candidate.outputs, alphas)
        return 1.0 - error if metric.greater_is_better else error
    labels = np.column_stack([data.columns[c] for c in candidate.outputs])
    rows = _scoring_rows(data, plan)
    by_fold = plan.kind != "queries" and not plan.is_pooled
    queries = Queries(plan.fold, np.arange(plan.fold.max() + 1)) if by_fold else data.queries
    queries = queries.subset(rows)
    weight = None if data.row_weight is None else data.row_weight[rows]
    read = _first_of_equals(data.queries.codes if plan.kind == "queries" else plan.fold, data.row_codes, rows)
    portion = max(1, _SCORES // (alphas.size * data.queries.n_rows))
    values = np.empty((alphas.size, len(candidate.outputs)))
    for first in range(0, len(candidate.outputs), portion):
        some = slice(first, first + portion)
        scores = _held_out_scores(candidate, problem, data, plan, alphas, labels[:, some], some)
        for at, column in enumerate(labels[:, some].T):
            evaluator = _evaluator(metric, column[rows], queries, weight)
            values[:, first + at] = evaluator.many(scores[:, read, at].T)
    return values


def _evaluator(metric: Metric, labels: Floats, queries: Queries, weight: Floats | None) -> Evaluator:
    try:
        return metric.prepare(labels, queries, sample_weight=weight if metric.takes_weights else None)
    except NoPairsError as error:
        raise NoPairsError(
            "No held-out part has two rows with different labels, so they cannot judge a ranking.",
            "use fewer folds.",
        ) from error


def _root_share(data: TrainingData) -> Floats:
    """Return the root of each row's share of the weight: the direction that the centering removes."""
    weight = np.ones(data.queries.n_rows) if data.row_weight is None else data.row_weight
    return np.asarray(np.sqrt(weight / weight.sum()))


def _scoring_rows(data: TrainingData, plan: Plan) -> Rows:
    """Rows that weigh nothing neither train nor score."""
    is_scored = plan.fold >= 0
    if data.row_weight is not None:
        is_scored &= data.row_weight > 0
    return np.flatnonzero(is_scored)


def _first_of_equals(unit: Rows, code: Rows, rows: Rows) -> Rows:
    """Return, for each of some rows, the first of those that equal it and are scored by the same model.

    They tie; but the closed forms subtract a residual from each row's own label, and leave its rounding.
    """
    _, first, inverse = np.unique(
        unit[rows] * (code.max(initial=0) + 1) + code[rows], return_index=True, return_inverse=True
    )
    return rows[first[inverse.reshape(-1)]]


def _held_out_scores(
    candidate: Candidate,
    problem: KernelProblem | None,
    data: TrainingData,
    plan: Plan,
    alphas: Floats,
    labels: Floats,
    some: slice,
) -> Floats:
    """Return (alphas, rows, outputs) scores, each row's from the model that did not see its group."""
    if plan.kind == "refit":
        assert problem is not None
        return _refits(
            problem,
            data,
            plan,
            alphas,
            [candidate.outputs[i] for i in range(*some.indices(len(candidate.outputs)))],
        )
    target, groups = candidate.target[:, some], groups_of(plan.fold)
    n_threads = data.design.n_threads
    if plan.kind == "queries":
        residual = held_out_residuals(candidate.hold_out, target, groups, alphas, n_threads=n_threads)
        held_out = np.moveaxis(target - residual, 1, 0)  # rows first, as the factor takes them
        flat = np.ascontiguousarray(held_out).reshape(held_out.shape[0], -1)
        return np.moveaxis(candidate.factor.solve(flat).reshape(held_out.shape), 0, 1)
    weight = np.ones(labels.shape[0]) if data.row_weight is None else data.row_weight
    centred = candidate.hold_out.centred(_root_share(data))
    residual = held_out_residuals(centred, target, groups, alphas, n_threads=n_threads)
    root = np.where(weight > 0, np.sqrt(weight), 1.0)
    return np.asarray(labels - residual / root[:, None])


def _refits(
    problem: KernelProblem, data: TrainingData, plan: Plan, alphas: Floats, outputs: Sequence[int]
) -> Floats:
    """Fit once more without each fold of one ranking: for graphs whose weights change when rows leave."""
    scores = np.empty((alphas.size, plan.fold.size, len(outputs)))
    for test in groups_of(plan.fold):
        train = np.setdiff1d(np.arange(plan.fold.size), test)
        across = problem.between(test, train)
        # Pooled folds are compared with each other: as in the closed form, training rows average to their labels.
        share = np.full(train.size, 1 / train.size)
        if data.row_weight is not None:
            share = data.row_weight[train] / data.row_weight[train].sum()
        among = share @ problem.between(train, train) if plan.is_pooled else np.zeros(train.size)
        for at, output in enumerate(outputs):
            labels = data.columns[output][train]
            graph = label_graph(labels, data.queries.subset(train), **_options(data, train))
            model = decompose(problem.subset(train), graph, [output])
            for a, alpha in enumerate(alphas):
                dual = model.coefficients(model.target[:, 0], float(alpha))
                scores[a, test, at] = across @ dual + (share @ labels - among @ dual)
    return scores


def _options(data: TrainingData, rows: Rows) -> dict[str, Any]:
    return {
        "ties": data.ties,
        "cost": data.cost,
        "query_weight": data.query_weight,
        "row_weight": None if data.row_weight is None else data.row_weight[rows],
        "n_threads": data.design.n_threads,
    }
