"""Held-out judgement of kernel models for a whole grid of alphas: closed forms, and refits where there is none."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.linalg
from sklearn.model_selection import check_cv

from rankwise.data.queries import Queries
from rankwise.design import DenseDesign
from rankwise.estimators.kernel_problem import KernelProblem, warn_if_indefinite
from rankwise.estimators.training import TrainingData
from rankwise.exceptions import InvalidInputError, NoPairsError
from rankwise.holdout import (
    DualHoldOut,
    HoldOut,
    PrimalHoldOut,
    groups_of,
    held_out_residuals,
    leave_pair_out_error,
)
from rankwise.metrics import Evaluator, Metric
from rankwise.pairs.factor import LabelFactor
from rankwise.pairs.graph import Floats
from rankwise.pairs.labels import LabelGraph, label_graph
from rankwise.solvers.dual import DualSpectrum

__all__ = ["Candidate", "Plan", "decompose", "given_folds", "judge"]

_SCORES = 1 << 25  # doubles of held-out scores kept at a time; outputs are judged in portions

Rows = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Plan:
    """What is held out.

    Attributes
    ----------
    kind : {"queries", "rows", "refit", "pairs"}
        Groups of whole queries; folds of one ranking in closed form, or by refits; or pairs of one ranking.
    fold : (rows,) int64
        The group of each row; not used for pairs.
    alpha_scale : float
        The closed form's alpha for an alpha of 1; not 1 where the weight of pairs changes when two rows leave.
    """

    kind: str
    fold: npt.NDArray[np.int64]
    alpha_scale: float = 1.0


@dataclass(frozen=True)
class Candidate:
    """The decomposition of one kernel and one graph, for every alpha.

    Attributes
    ----------
    outputs : list of int
        The columns of y that it serves.
    target : (rows, outputs) float64
        ``t`` with ``F't = r``.
    dual_coefficients : callable
        Takes a column of the target and an alpha.
    """

    outputs: list[int]
    factor: LabelFactor
    target: Floats
    hold_out: HoldOut
    dual_coefficients: Callable[[Floats, float], Floats]


def decompose(problem: KernelProblem, graph: LabelGraph, outputs: list[int]) -> Candidate:
    """Diagonalise the problem of a graph once: the dual, or the features of a reduced set."""
    factor = LabelFactor(graph.blocks)
    target = factor.target(graph.pull).reshape(graph.n_rows, -1)
    if problem.basis is None:
        spectrum = DualSpectrum.of_matrix(factor.sandwich(problem.matrix(copies=4)))
        if not problem.kernel.is_surely_positive:
            warn_if_indefinite(spectrum)
        return Candidate(
            outputs,
            factor,
            target,
            DualHoldOut.of_spectrum(spectrum),
            lambda t, alpha: factor.transposed(spectrum.solve(t, alpha)),
        )
    feature_map = problem.feature_map()
    design = problem.features(feature_map, must_fit=True)
    assert isinstance(design, DenseDesign)
    Z = factor.apply(design.X)
    values, vectors = scipy.linalg.eigh(Z.T @ Z, check_finite=False, driver="evd")
    hold_out = PrimalHoldOut(Z @ vectors, np.maximum(values, 0.0))

    def dual_coefficients(t: Floats, alpha: float) -> Floats:
        shifted = hold_out.values + alpha
        kept = shifted > shifted.size * np.finfo(np.float64).eps * shifted.max(initial=0.0)
        inverse = np.divide(1.0, shifted, out=np.zeros_like(shifted), where=kept)
        return feature_map.dual_coefficients(vectors @ (inverse * (hold_out.features.T @ t)))

    return Candidate(outputs, factor, target, hold_out, dual_coefficients)


def judge(
    candidate: Candidate,
    problem: KernelProblem,
    data: TrainingData,
    plan: Plan,
    metric: Metric,
    alphas: Floats,
) -> Floats:
    """Return the held-out value of the metric, (alphas, outputs of the candidate)."""
    labels = np.column_stack([data.columns[c] for c in candidate.outputs])
    if plan.kind == "pairs":
        error = leave_pair_out_error(
            candidate.hold_out,
            labels,
            _root_share(data),
            alphas * plan.alpha_scale,
            n_threads=data.design.n_threads,
        )
        return 1.0 - error if metric.greater_is_better else error
    rows = _judging_rows(data, plan)
    queries = data.queries if plan.kind == "queries" else Queries(plan.fold, np.arange(plan.fold.max() + 1))
    queries = queries.subset(rows)
    weight = None if data.row_weight is None else data.row_weight[rows]
    portion = max(1, _SCORES // (alphas.size * data.queries.n_rows))
    values = np.empty((alphas.size, len(candidate.outputs)))
    for first in range(0, len(candidate.outputs), portion):
        some = slice(first, first + portion)
        scores = _held_out_scores(candidate, problem, data, plan, alphas, labels[:, some], some)
        for at, column in enumerate(labels[:, some].T):
            evaluator = _evaluator(metric, column[rows], queries, weight)
            values[:, first + at] = evaluator.many(scores[:, rows, at].T)
    return values


def given_folds(cv: Any, data: TrainingData) -> Rows:
    """Return the fold of each row from a splitter, or from pairs of training and test rows; -1 in no test set."""
    n_rows = data.queries.n_rows
    fold = np.full(n_rows, -1, dtype=np.int64)
    groups = data.queries.codes if len(data.queries) > 1 else None
    for number, (train, test) in enumerate(check_cv(cv).split(np.zeros((n_rows, 1)), data.y, groups)):
        if (fold[test] >= 0).any() or len(train) + len(test) != n_rows:
            raise InvalidInputError(
                "cv holds a row out twice, or leaves one out of both sides.",
                "use KFold, GroupKFold or QueryKFold, whose test sets do not overlap.",
            )
        fold[test] = number
    for query in groups_of(data.queries.codes) if groups is not None else []:
        if np.unique(fold[query]).size > 1:
            raise InvalidInputError("cv splits a query between folds.", "use QueryKFold or GroupKFold.")
    return fold


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


def _judging_rows(data: TrainingData, plan: Plan) -> Rows:
    """Rows that weigh nothing neither train nor judge."""
    judges = plan.fold >= 0
    if data.row_weight is not None:
        judges &= data.row_weight > 0
    if data.importance is not None:
        judges &= data.importance[data.queries.codes] > 0
    return np.flatnonzero(judges)


def _held_out_scores(
    candidate: Candidate,
    problem: KernelProblem,
    data: TrainingData,
    plan: Plan,
    alphas: Floats,
    labels: Floats,
    some: slice,
) -> Floats:
    """Return (alphas, rows, outputs) scores, each row's from the model that did not see its group."""
    if plan.kind == "refit":
        return _refits(
            problem,
            data,
            plan.fold,
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
    problem: KernelProblem, data: TrainingData, fold: Rows, alphas: Floats, outputs: Sequence[int]
) -> Floats:
    """Fit once more without each fold of one ranking: for graphs whose weights change when rows leave."""
    scores = np.empty((alphas.size, fold.size, len(outputs)))
    for test in groups_of(fold):
        train = np.setdiff1d(np.arange(fold.size), test)
        across = problem.between(test, train)
        for at, output in enumerate(outputs):
            graph = label_graph(
                data.columns[output][train], data.queries.subset(train), **_options(data, train)
            )
            model = decompose(problem.subset(train), graph, [output])
            for a, alpha in enumerate(alphas):
                scores[a, test, at] = across @ model.dual_coefficients(model.target[:, 0], float(alpha))
    return scores


def _options(data: TrainingData, rows: Rows) -> dict[str, Any]:
    return {
        "ties": data.ties,
        "cost": data.cost,
        "query_weight": data.query_weight,
        "row_weight": None if data.row_weight is None else data.row_weight[rows],
        "n_threads": data.design.n_threads,
    }
