"""Held-out judgement of kernel models for a whole grid of alphas: closed forms, and refits where there is none."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.linalg

from rankwise.data.queries import Queries
from rankwise.design import DenseDesign
from rankwise.estimators.kernel_problem import KernelProblem, warn_if_indefinite
from rankwise.estimators.selection import judge_rows
from rankwise.estimators.training import TrainingData
from rankwise.holdout import DualHoldOut, HoldOut, PrimalHoldOut, groups_of, held_out_residuals
from rankwise.holdout import leave_pair_out_error
from rankwise.metrics import Metric
from rankwise.pairs.factor import LabelFactor
from rankwise.pairs.graph import Floats
from rankwise.pairs.labels import LabelGraph, label_graph
from rankwise.solvers.dual import DualSpectrum

__all__ = ["Candidate", "Plan", "decompose", "judge"]

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
        The closed form's alpha for an alpha of 1: pairs that weigh 1 are the "size" convention at alpha / (m - 2).
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
    candidate: Candidate, problem: KernelProblem, data: TrainingData, plan: Plan, metric: Metric, alphas: Floats
) -> Floats:
    """Return the held-out value of the metric, (alphas, outputs of the candidate)."""
    labels = np.column_stack([data.columns[c] for c in candidate.outputs])
    if plan.kind == "pairs":
        weight = np.ones(data.queries.n_rows) if data.row_weight is None else data.row_weight
        root_share = np.sqrt(weight / weight.sum())
        error = leave_pair_out_error(candidate.hold_out, labels, root_share, alphas * plan.alpha_scale)
        return 1.0 - error if metric.greater_is_better else error
    rows = _judging_rows(data, plan)
    queries = data.queries if plan.kind == "queries" else Queries(plan.fold, np.arange(plan.fold.max() + 1))
    queries = queries.subset(rows)
    portion = max(1, _SCORES // (alphas.size * data.queries.n_rows))
    values = np.empty((alphas.size, len(candidate.outputs)))
    for first in range(0, len(candidate.outputs), portion):
        some = slice(first, first + portion)
        scores = _held_out_scores(candidate, problem, data, plan, alphas, labels[:, some], some)
        for at, column in enumerate(labels[:, some].T):
            evaluator = judge_rows(metric, column[rows], queries, data.design.n_threads, "a held-out part")
            values[:, first + at] = evaluator.evaluator.many(scores[:, rows, at].T)
    return values


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
        return _refits(problem, data, plan.fold, alphas, [candidate.outputs[i] for i in range(*some.indices(len(candidate.outputs)))])
    target, groups = candidate.target[:, some], groups_of(plan.fold)
    n_threads = data.design.n_threads
    if plan.kind == "queries":
        residual = held_out_residuals(candidate.hold_out, target, groups, alphas, n_threads=n_threads)
        held_out = np.moveaxis(target - residual, 1, 0)  # rows first, as the factor takes them
        flat = np.ascontiguousarray(held_out).reshape(held_out.shape[0], -1)
        return np.moveaxis(candidate.factor.solve(flat).reshape(held_out.shape), 0, 1)
    weight = np.ones(labels.shape[0]) if data.row_weight is None else data.row_weight
    centred = candidate.hold_out.centred(np.sqrt(weight / weight.sum()))
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
            graph = label_graph(data.columns[output][train], data.queries.subset(train), **_options(data, train))
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
