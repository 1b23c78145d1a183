"""Choosing alpha by exact hold-out: one decomposition answers for every alpha of the grid."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from rankwise.arrays import Floats, Rows
from rankwise.cached import cached_property
from rankwise.holdout import groups_of, held_out_residuals
from rankwise.holdout.leave_pair_out import pair_out_errors
from rankwise.holdout.spaces import (
    KernelSpace,
    PairDecomposition,
    RowDecomposition,
    Space,
    exact_bytes,
)
from rankwise.memory import fits
from rankwise.metrics import Metric
from rankwise.problems.training import PairData, TrainingData, TrainingProblem
from rankwise.selection.cv import Decomposition, RowPlan, has_closed_form
from rankwise.selection.cv_pairs import PairPlan
from rankwise.selection.grids import GrowingGrid, best_positions
from rankwise.selection.result import Choice, Selection
from rankwise.selection.scorers import EvalSet, MetricScorer, difference_scorer, oriented, row_scorer
from rankwise.selection.splits import is_exact_name
from rankwise.selection.systems import require_training_pairs

__all__ = ["Scored", "choose_among", "choose_in_closed_form", "exact_for_columns"]

_FEW_COLUMNS = 2000  # up to so many, diagonalising X'LX is instant beside reading X
_SCORES = 1 << 25  # doubles of held-out scores kept at a time; outputs are scored in portions


class Scored(Protocol):
    """Converged models of all alphas, and what they are worth on rows that they did not see."""

    def errors(self, alphas: Floats) -> Floats:
        """Return the held-out errors, (alphas, outputs)."""

    def model(self, output: int, alpha: float) -> Floats:
        """Return a model."""


def choose_among(scored: Scored, alphas: Floats, *, small_is_cheap: bool = True) -> Selection:
    """Choose the best alpha of each output, beyond the default grid where that is best at its end."""
    table = GrowingGrid(alphas, small_is_cheap=small_is_cheap)
    while (some := table.wanted) is not None:
        table.add(some, scored.errors(some))
    grid, errors = table.trimmed()
    chosen = [
        Choice(float(grid[position]), 0, float(errors[position, output]))
        for output, position in enumerate(best_positions(errors))
    ]
    models = [scored.model(output, choice.alpha) for output, choice in enumerate(chosen)]
    return Selection(models, chosen, grid, errors)


def choose_in_closed_form(
    space: Space,
    data: TrainingProblem,
    held_out: RowPlan | PairPlan | EvalSet,
    metric: Metric,
    averaging: str,
    alphas: Floats,
    groups: PairPlan | None = None,
) -> Selection:
    """Choose alpha from one decomposition; listed pairs are decomposed by `groups` where an eval set scores."""
    if isinstance(data, TrainingData):
        assert not isinstance(held_out, PairPlan)
        return choose_among(_RowClosedForm(space, data, held_out, metric, averaging), alphas)
    plan = held_out if isinstance(held_out, PairPlan) else groups
    assert plan is not None
    eval_set = held_out if isinstance(held_out, EvalSet) else None
    return choose_among(_PairClosedForm(space, data, plan, metric, averaging, eval_set), alphas)


def exact_for_columns(
    cv: object, method: str, data: TrainingProblem, n_alphas: int, averaging: str
) -> Decomposition | None:
    """Return the decomposition that is to answer for the columns of X, if one is asked for, or cheap with "auto"."""
    by = Decomposition(min(data.design.shape), n_alphas, refits=False, is_pooled=averaging == "pooled")
    if is_exact_name(cv):
        return by
    design = data.design
    is_cheap = min(design.shape) <= _FEW_COLUMNS and fits(exact_bytes(design.shape))
    is_auto = isinstance(cv, str) and method == "tikhonov" and isinstance(data, TrainingData)
    return by if is_auto and is_cheap and design.has_rows else None


class _RowClosedForm:
    """Labelled rows: one decomposition for outputs that can share a graph, else one per output.

    Parameters
    ----------
    space : Space
    data : TrainingData
    held_out : RowPlan or EvalSet
    metric : Metric
    averaging : {"folds", "pooled"}
    """

    def __init__(
        self, space: Space, data: TrainingData, held_out: RowPlan | EvalSet, metric: Metric, averaging: str
    ) -> None:
        self._space, self._data, self._held_out, self._metric = space, data, held_out, metric
        graphs, n_outputs = data.graphs(), len(data.columns)
        shared = len(graphs) == 1
        self._served = [list(range(n_outputs))] if shared else [[output] for output in range(n_outputs)]
        self._decomposed = [space.of_rows(graph) for graph in graphs]
        if isinstance(held_out, RowPlan):
            is_whole = held_out.leaves_pairs or not held_out.splits_queries(data.queries)
            self._kind = "queries" if is_whole else "rows" if has_closed_form(data) else "refit"
            self._is_pooled = averaging == "pooled" and len(data.queries) == 1

    def model(self, output: int, alpha: float) -> Floats:
        """Return the model of an output and an alpha."""
        at = 0 if len(self._decomposed) == 1 else output
        return self._decomposed[at].model(self._served[at].index(output), alpha)

    def errors(self, alphas: Floats) -> Floats:
        """Return the held-out errors, (alphas, outputs)."""
        parts = zip(self._decomposed, self._served, strict=True)
        return np.column_stack([self._errors(one, outputs, alphas) for one, outputs in parts])

    def _errors(self, one: RowDecomposition, outputs: list[int], alphas: Floats) -> Floats:
        if isinstance(self._held_out, EvalSet):
            return self._on_eval_set(self._held_out, one, outputs, alphas)
        greater_is_better = self._metric.greater_is_better
        if self._held_out.leaves_pairs:
            lost = pair_out_errors(one.hold_out, one.reweighted, self._data, outputs, alphas)
            return oriented(1.0 - lost if greater_is_better else lost, greater_is_better=greater_is_better)
        return self._on_folds(self._held_out, one, outputs, alphas)

    def _on_eval_set(
        self, held_out: EvalSet, one: RowDecomposition, outputs: Sequence[int], alphas: Floats
    ) -> Floats:
        assert isinstance(self._space, KernelSpace)
        errors = np.empty((alphas.size, len(outputs)))
        for at, output in enumerate(outputs):
            dual = np.column_stack([one.model(at, float(alpha)) for alpha in alphas])
            scores = self._space.problem.scores(held_out.rows, dual).T
            errors[:, at] = held_out.scorers[output].errors(scores)
        return errors

    def _on_folds(self, plan: RowPlan, one: RowDecomposition, outputs: list[int], alphas: Floats) -> Floats:
        portion = max(1, _SCORES // (alphas.size * plan.fold.size))
        errors = np.empty((alphas.size, len(outputs)))
        for first in range(0, len(outputs), portion):
            some = slice(first, first + portion)
            scores = self._scores(plan, one, alphas, some, outputs[some])
            for at, output in enumerate(outputs[some]):
                errors[:, first + at] = self._scorers[output].errors(scores[:, self._read, at])
        return errors

    @cached_property
    def _scorers(self) -> list[MetricScorer]:
        """The metric on the held-out rows of each output."""
        data, plan = self._data, self._held_out
        assert isinstance(plan, RowPlan)
        rows, queries = plan.scored, data.queries
        if self._kind != "queries":
            queries = plan.scoring_queries(queries, rows, pooled=self._is_pooled)
        elif rows.size < queries.n_rows:
            queries = queries.subset(rows)
        own = None if data.row_weight is None else data.row_weight[rows]
        threads = data.design.n_threads
        return [
            row_scorer(self._metric, column[rows], queries, threads, weight=own) for column in data.columns
        ]

    @cached_property
    def _read(self) -> Rows:
        """For each scored row, the first of those that equal it and are scored by the same model.

        They tie; but the closed forms subtract a residual from each row's own label, and leave its rounding.
        """
        data, plan = self._data, self._held_out
        assert isinstance(plan, RowPlan)
        model_of, code = data.queries.codes if self._kind == "queries" else plan.fold, data.row_codes
        key = (model_of * (code.max(initial=0) + 1) + code)[plan.scored]
        _, first, inverse = np.unique(key, return_index=True, return_inverse=True)
        return plan.scored[first[inverse.reshape(-1)]]

    def _scores(
        self, plan: RowPlan, one: RowDecomposition, alphas: Floats, some: slice, outputs: Sequence[int]
    ) -> Floats:
        """Return (alphas, rows, outputs) scores, each row's from the model that did not see its group."""
        if self._kind == "refit":
            return self._refits(plan, alphas, outputs)
        data, target, groups = self._data, one.target[:, some], groups_of(plan.fold)
        threads = data.design.n_threads
        if self._kind == "queries":
            residual = held_out_residuals(one.hold_out, target, groups, alphas, n_threads=threads)
            held_out = np.moveaxis(target - residual, 1, 0)  # rows first, as the factor takes them
            flat = np.ascontiguousarray(held_out).reshape(held_out.shape[0], -1)
            return np.moveaxis(one.factor.solve(flat).reshape(held_out.shape), 0, 1)
        weight = np.ones(plan.fold.size) if data.row_weight is None else data.row_weight
        # The direction that the centering removes: the root of each row's share of the weight.
        centred = one.hold_out.centred(np.asarray(np.sqrt(weight / weight.sum())))
        residual = held_out_residuals(centred, target, groups, alphas, n_threads=threads)
        root = np.where(weight > 0, np.sqrt(weight), 1.0)
        labels = np.column_stack([data.columns[output] for output in outputs])
        return np.asarray(labels - residual / root[:, None])

    def _refits(self, plan: RowPlan, alphas: Floats, outputs: Sequence[int]) -> Floats:
        """Fit once more without each fold: for graphs whose weights change when rows leave."""
        assert isinstance(self._space, KernelSpace)
        space, data = self._space, self._data
        scores = np.empty((alphas.size, plan.fold.size, len(outputs)))
        for fold in range(plan.n_folds):
            test = np.flatnonzero(plan.fold == fold)
            train = np.setdiff1d(np.arange(plan.fold.size), test)
            across = space.scoring(test, train)
            # Pooled folds are compared with each other: as in the closed form, training rows average to their labels.
            share = np.full(train.size, 1 / train.size)
            if data.row_weight is not None:
                share = data.row_weight[train] / data.row_weight[train].sum()
            among = share @ space.scoring(train, train) if self._is_pooled else np.zeros(across.shape[1])
            for at, output in enumerate(outputs):
                require_training_pairs(data, plan, output, fold)
                model = space.refitted(train, data.graph_of_rows(output, train))
                mean = share @ data.columns[output][train]
                for a, alpha in enumerate(alphas):
                    dual = model.model(0, float(alpha))
                    scores[a, test, at] = across @ dual + (mean - among @ dual)
        return scores


class _PairClosedForm:
    """Listed pairs: groups of them are held out in turn, or rows of their own score.

    Parameters
    ----------
    space : Space
    data : PairData
    plan : PairPlan
    metric : Metric
    averaging : {"folds", "pooled"}
    eval_set : EvalSet, optional
        What scores instead of the plan.
    """

    def __init__(
        self,
        space: Space,
        data: PairData,
        plan: PairPlan,
        metric: Metric,
        averaging: str,
        eval_set: EvalSet | None = None,
    ) -> None:
        self._space, self._data, self._eval_set = space, data, eval_set
        self._group = plan.groups(len(data.preferences))
        self._decomposed: PairDecomposition = space.of_pairs(data.graph, self._group)
        self._weight = np.where(self._group >= 0, data.scoring_weight, 0.0)
        if eval_set is None:
            fold = np.maximum(self._group, 0) if averaging == "folds" else None
            self._scorer = difference_scorer(metric, self._weight, fold=fold)

    def model(self, output: int, alpha: float) -> Floats:
        """Return the model of an alpha."""
        return self._decomposed.model(output, alpha)

    def errors(self, alphas: Floats) -> Floats:
        """Return the held-out errors, (alphas, 1)."""
        one, data = self._decomposed, self._data
        if self._eval_set is not None:
            assert isinstance(self._space, KernelSpace)
            dual = np.column_stack([one.model(0, float(alpha)) for alpha in alphas])
            scores = self._space.problem.scores(self._eval_set.rows, dual).T
            return self._eval_set.scorers[0].errors(scores)[:, None]
        groups, threads = groups_of(one.group), data.design.n_threads
        residual = held_out_residuals(one.hold_out, one.target, groups, alphas, n_threads=threads)
        predicted = np.nan_to_num((one.target - residual)[:, :, 0])  # NaN: what nothing holds out
        # Equal rows tie; the closed form subtracts a residual from each pair's own difference, and leaves its rounding.
        differs = data.row_codes[data.preferences.winner] != data.row_codes[data.preferences.loser]
        held_out = np.where((self._weight > 0) & differs, one.differences(predicted), 0.0)
        return self._scorer.errors(held_out)[:, None]
