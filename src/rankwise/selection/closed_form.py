"""Choosing alpha by exact hold-out: one decomposition answers for every alpha of the grid."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property

import numpy as np

from rankwise.arrays import Floats, Ints, Rows, is_sparse
from rankwise.design import matrix_rows
from rankwise.holdout import groups_of, held_out_residuals
from rankwise.holdout.leave_pair_out import pair_out_errors
from rankwise.holdout.spaces import KernelSpace, PairDecomposition, RowDecomposition, Space, exact_bytes
from rankwise.metrics import Metric
from rankwise.problems.known_columns import codes_of_groups, differing_pairs
from rankwise.problems.training import PairData, TrainingData, TrainingProblem
from rankwise.runtime.memory import fits
from rankwise.selection.cv import Decomposition, Plan, has_closed_form
from rankwise.selection.grids import POWERS_OF_TWO, choose_among
from rankwise.selection.held_out import HeldOut, held_out_scorer, require_pairs_left, trained_on
from rankwise.selection.result import Selection
from rankwise.selection.scorers import EvalSet, MetricScorer, oriented, pair_scorer
from rankwise.selection.splits import is_exact_name

__all__ = ["choose_in_closed_form", "exact_for_columns"]

_FEW_COLUMNS = 2000  # up to so many, diagonalising X'LX is instant beside reading X
# Listed splits: with so few columns one decomposition takes a fifth to a half of the time of a Krylov space for each of
# them (2,000 x 10 to 20,000 x 46; with 500 columns twice as long), and so many numbers of X fit into memory twice.
_FOLDED_COLUMNS, _FOLDED_ENTRIES = 200, 5_000_000
# Times the largest eigenvalue: models of larger alphas are multiples of one another to five digits. Their held-out
# predictions, each a label minus a residual, would lose all digits beside the label from 1e13 on.
_LARGEST_ALPHA = 1e5
_SCORES = 1 << 25  # doubles of held-out scores kept at a time; outputs are scored in portions


def choose_in_closed_form(
    space: Space,
    data: TrainingProblem,
    held_out: HeldOut,
    metric: Metric,
    averaging: str,
    alphas: Floats,
    groups: HeldOut | None = None,
    *,
    default: tuple[float, ...] = POWERS_OF_TWO,
) -> Selection:
    """Choose alpha from one decomposition, beyond the `default` grid where the best is at its end.

    Listed pairs are decomposed by `groups` where an eval set scores.
    """
    scored: _ClosedForm
    if isinstance(held_out, EvalSet):
        scored = _OnEvalSet(space, data, groups, held_out)
    elif isinstance(data, PairData):
        scored = _WithoutPairs(space, data, held_out, metric, averaging)
    else:
        scored = _WithoutRows(space, data, held_out, metric, averaging)
    selection = choose_among(scored, alphas, default)
    return replace(selection, notices=space.notices())


def exact_for_columns(
    cv: object, method: str, data: TrainingProblem, n_alphas: int, averaging: str
) -> Decomposition | None:
    """Return the decomposition that is to answer for the columns of X, if one is asked for, or cheap."""
    design = data.design
    by = Decomposition(min(design.shape), n_alphas, refits=False, is_pooled=averaging == "pooled")
    if is_exact_name(cv):
        return by
    # With a number of folds, or a splitter, the surface is there to be looked at.
    may_be_exact = method == "tikhonov" and isinstance(data, TrainingData) and isinstance(cv, (str, list))
    if not may_be_exact or not design.has_rows:
        return None
    n_rows, n_columns = design.shape
    is_cheap = min(design.shape) <= _FEW_COLUMNS and fits(exact_bytes(design.shape))
    if isinstance(cv, list):
        is_cheap &= n_columns <= _FOLDED_COLUMNS and n_rows * n_columns <= _FOLDED_ENTRIES
    return by if is_cheap else None


class _ClosedForm(ABC):
    """Labelled rows or listed pairs, decomposed: once for outputs that can share a graph, else once per output."""

    def __init__(self, space: Space, data: TrainingProblem, groups: HeldOut | None) -> None:
        self._space = space
        self._decomposed: Sequence[RowDecomposition] | Sequence[PairDecomposition]
        if isinstance(data, PairData):
            assert isinstance(groups, Plan)
            self._decomposed = [space.of_pairs(data.graph, groups.groups)]
        else:
            self._decomposed = [space.of_rows(graph) for graph in data.graphs()]

    def model(self, output: int, alpha: float) -> Floats:
        """Return the model of an output and an alpha."""
        if len(self._decomposed) == 1:
            return self._decomposed[0].model(output, alpha)
        return self._decomposed[output].model(0, alpha)

    @abstractmethod
    def errors(self, alphas: Floats) -> Floats:
        """Return the held-out errors, (alphas, outputs)."""


class _OnEvalSet(_ClosedForm):
    """Rows of their own score the models of a kernel."""

    def __init__(
        self, space: Space, data: TrainingProblem, groups: HeldOut | None, eval_set: EvalSet
    ) -> None:
        super().__init__(space, data, groups)
        self._eval_set = eval_set

    def errors(self, alphas: Floats) -> Floats:
        assert isinstance(self._space, KernelSpace)
        errors = []
        for output, scorer in enumerate(self._eval_set.scorers):
            dual = np.column_stack([self.model(output, float(alpha)) for alpha in alphas])
            errors.append(scorer.errors(self._space.problem.scores(self._eval_set.rows, dual).T))
        return np.column_stack(errors)


class _WithoutRows(_ClosedForm):
    """Labelled rows: the folds of a plan, or every pair of rows, are held out in turn."""

    _decomposed: Sequence[RowDecomposition]

    def __init__(self, space: Space, data: TrainingData, plan: Plan, metric: Metric, averaging: str) -> None:
        require_pairs_left(data, plan)
        super().__init__(space, data, plan)
        self._data, self._plan, self._metric = data, plan, metric
        is_whole = plan.leaves_pairs or not plan.splits_queries(data.queries)
        self._kind = "queries" if is_whole else "rows" if has_closed_form(data) else "refit"
        self._is_pooled = averaging == "pooled" and len(data.queries) == 1

    def errors(self, alphas: Floats) -> Floats:
        outputs = list(range(self._data.n_outputs))
        if len(self._decomposed) == 1:
            return self._errors(self._decomposed[0], outputs, alphas)
        parts = zip(self._decomposed, outputs, strict=True)
        return np.column_stack([self._errors(one, [output], alphas) for one, output in parts])

    def _errors(self, one: RowDecomposition, outputs: list[int], alphas: Floats) -> Floats:
        if self._kind != "refit":
            alphas = _with_digits(one, alphas)
        if self._plan.leaves_pairs:
            greater_is_better = self._metric.greater_is_better
            lost = pair_out_errors(one.hold_out, self._data, outputs, alphas)
            return oriented(1.0 - lost if greater_is_better else lost, greater_is_better=greater_is_better)
        portion = max(1, _SCORES // (alphas.size * self._plan.size))
        errors = np.empty((alphas.size, len(outputs)))
        for first in range(0, len(outputs), portion):
            some = slice(first, first + portion)
            scores = self._scores(one, alphas, some, outputs[some])
            for at, output in enumerate(outputs[some]):
                errors[:, first + at] = self._scorers[output].errors(scores[:, self._read, at])
        return errors

    @cached_property
    def _scorers(self) -> list[MetricScorer]:
        """The metric on the held-out rows of each output."""
        data, plan = self._data, self._plan
        pooled = self._is_pooled or self._kind == "queries"  # whose rows have one model
        return [
            held_out_scorer(data, plan, output, self._metric, plan.scored, pooled=pooled)
            for output in range(data.n_outputs)
        ]

    @cached_property
    def _read(self) -> Rows:
        """For each scored row, the first of those that equal it and are scored by the same model.

        They tie; but the closed forms subtract a residual from each row's own label, and leave its rounding.
        """
        data, plan = self._data, self._plan
        model_of, code = data.queries.codes if self._kind == "queries" else plan.groups, self._row_codes
        key = (model_of * (code.max(initial=0) + 1) + code)[plan.scored]
        _, first, inverse = np.unique(key, return_index=True, return_inverse=True)
        return plan.scored[first[inverse.reshape(-1)]]

    @property
    def _row_codes(self) -> Ints:
        """Numbers of the rows; those share one that cannot differ by the model without their fold."""
        data, group = self._data, self._plan.groups
        if not _is_linear(self._space, data):
            return data.row_codes
        X, queries = matrix_rows(data.design), data.queries
        trains = np.ones(queries.n_rows, dtype=np.bool_) if data.row_weight is None else data.row_weight > 0
        if self._kind == "queries":
            return codes_of_groups(X, queries.order[queries.offsets[:-1]][queries.codes], group, trains)
        first = np.unique(group, return_index=True)[1][:3]
        if first.size < 3:
            return data.row_codes
        # At most one of three rows is of the fold without which a column is constant.
        rows = X[first]
        return codes_of_groups(
            X, np.median(rows.toarray() if is_sparse(rows) else rows, axis=0), group, trains
        )

    def _scores(self, one: RowDecomposition, alphas: Floats, some: slice, outputs: Sequence[int]) -> Floats:
        """Return (alphas, rows, outputs) scores, each row's from the model that did not see its group."""
        if self._kind == "refit":
            return self._refits(alphas, outputs)
        data, target, groups = self._data, one.target[:, some], groups_of(self._plan.groups)
        threads = data.design.n_threads
        if self._kind == "queries":
            residual = held_out_residuals(one.hold_out, target, groups, alphas, n_threads=threads)
            held_out = np.moveaxis(target - residual, 1, 0)  # rows first, as the factor takes them
            flat = np.ascontiguousarray(held_out).reshape(held_out.shape[0], -1)
            return np.moveaxis(one.factor.solve(flat).reshape(held_out.shape), 0, 1)
        weight = np.ones(self._plan.size) if data.row_weight is None else data.row_weight
        # The direction that the centering removes: the root of each row's share of the weight.
        centred = one.hold_out.centred(np.asarray(np.sqrt(weight / weight.sum())))
        residual = held_out_residuals(centred, target, groups, alphas, n_threads=threads)
        root = np.where(weight > 0, np.sqrt(weight), 1.0)
        labels = np.column_stack([data.columns[output] for output in outputs])
        return np.asarray(labels - residual / root[:, None])

    def _refits(self, alphas: Floats, outputs: Sequence[int]) -> Floats:
        """Fit once more without each fold: for graphs whose weights change when rows leave."""
        assert isinstance(self._space, KernelSpace)
        space, data, plan = self._space, self._data, self._plan
        scores = np.empty((alphas.size, plan.size, len(outputs)))
        for fold in range(plan.n_folds):
            is_trained = plan.trained(fold)
            train, test = np.flatnonzero(is_trained), np.flatnonzero(~is_trained)
            across = space.scoring(test, train)
            # Pooled folds are compared with each other: as in the closed form, training rows average to their labels.
            share = np.full(train.size, 1 / train.size)
            if data.row_weight is not None:
                share = data.row_weight[train] / data.row_weight[train].sum()
            among = share @ space.scoring(train, train) if self._is_pooled else np.zeros(across.shape[1])
            for at, output in enumerate(outputs):
                trained_on(data, plan, output, fold)  # raises where nothing is left
                model = space.refitted(train, data.graph_of_rows(output, train))
                mean = share @ data.columns[output][train]
                for a, alpha in enumerate(alphas):
                    dual = model.model(0, float(alpha))
                    scores[a, test, at] = across @ dual + (mean - among @ dual)
        return scores


class _WithoutPairs(_ClosedForm):
    """Listed pairs: the groups of a plan are held out in turn."""

    _decomposed: Sequence[PairDecomposition]

    def __init__(self, space: Space, data: PairData, plan: Plan, metric: Metric, averaging: str) -> None:
        require_pairs_left(data, plan)
        super().__init__(space, data, plan)
        self._data, self._group = data, plan.groups
        group = self._group
        self._weight = np.where(group >= 0, data.scoring_weight, 0.0)
        fold = np.maximum(group, 0) if averaging == "folds" else None
        self._scorer = pair_scorer(metric, self._weight, fold=fold)

    def errors(self, alphas: Floats) -> Floats:
        (one,), data = self._decomposed, self._data
        alphas = _with_digits(one, alphas)
        groups, threads = groups_of(one.group), data.design.n_threads
        residual = held_out_residuals(one.hold_out, one.target, groups, alphas, n_threads=threads)
        predicted = np.nan_to_num((one.target - residual)[:, :, 0])  # NaN: what nothing holds out
        # Equal rows tie; the closed form subtracts a residual from each pair's own difference, and leaves its rounding.
        winner, loser = data.preferences.winner, data.preferences.loser
        if _is_linear(self._space, data):
            trains = data.graph.pair_weight > 0
            differs = differing_pairs(matrix_rows(data.design), winner, loser, self._group, trains)
        else:
            differs = data.row_codes[winner] != data.row_codes[loser]
        held_out = np.where((self._weight > 0) & differs, one.differences(predicted), 0.0)
        return self._scorer.errors(held_out)[:, None]


def _with_digits(one: RowDecomposition | PairDecomposition, alphas: Floats) -> Floats:
    """Return alphas whose models rank alike, and whose held-out predictions have digits left."""
    largest = float(one.hold_out.values.max(initial=0.0))
    return np.minimum(alphas, _LARGEST_ALPHA * largest) if largest > 0 else alphas


def _is_linear(space: Space, data: TrainingProblem) -> bool:
    """Tell whether a model has a coefficient for each column of X."""
    design = data.design
    if design.is_encoded or not design.has_rows:
        return False
    if not isinstance(space, KernelSpace):
        return True
    return space.problem.kernel.name == "linear" and space.problem.basis is None
