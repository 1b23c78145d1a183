"""Selection of alpha by exact hold-out: one decomposition gives the error of every alpha of the grid."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property

import numpy as np

from rankwise.arrays import Floats, Ints
from rankwise.design import matrix_rows
from rankwise.fitting.problem import Problem
from rankwise.holdout.decomposition import HoldOut, groups_of, held_out_residuals
from rankwise.holdout.leave_pair_out import pair_out_errors
from rankwise.holdout.spaces import Decomposition, KernelSpace, Space, exact_bytes
from rankwise.metrics import Metric
from rankwise.pairs.plan import Plan, Scorer, oriented
from rankwise.runtime.memory import fits
from rankwise.selection.grids import POWERS_OF_TWO, choose_among
from rankwise.selection.plan import Exact, is_exact_name
from rankwise.selection.result import Selection

_FEW_COLUMNS = 2000  # up to so many, diagonalising X'LX is instant beside reading X
# Listed splits: with so few columns one decomposition takes a fifth to a half of the time of a Krylov space for each of
# them (2,000 x 10 to 20,000 x 46; with 500 columns twice as long), and so many numbers of X fit into memory twice.
_FOLDED_COLUMNS, _FOLDED_ENTRIES = 200, 5_000_000
# Times the largest eigenvalue: models of larger alphas are multiples of one another to five digits. Their held-out
# predictions, each a label minus a residual, would lose all digits beside the label from 1e13 on.
_LARGEST_ALPHA = 1e5
_SCORES = 1 << 25  # doubles of held-out scores kept at a time; outputs are scored in portions


def choose_exactly(
    space: Space,
    problem: Problem,
    plan: Plan,
    metric: Metric,
    averaging: str,
    alphas: Floats,
    *,
    default: tuple[float, ...] = POWERS_OF_TWO,
) -> Selection:
    """Choose alpha from one decomposition, beyond the `default` grid where the best is at its end."""
    models = _Models(space, problem, plan, metric, averaging)
    selection = choose_among(models, alphas, default)
    return replace(selection, notices=space.notices())


def exact_for_columns(
    cv: object, method: str, problem: Problem, n_alphas: int, averaging: str
) -> Exact | None:
    """Return the decomposition that is to answer for the columns of X, if one is asked for, or cheap."""
    design = problem.design
    exact = Exact(min(design.shape), n_alphas, refits=False, is_pooled=averaging == "pooled")
    if is_exact_name(cv):
        return exact
    # With a number of folds, or a splitter, the surface is there to be looked at.
    may_be_exact = method == "tikhonov" and problem.pairs.has_blocks and isinstance(cv, (str, list))
    if not may_be_exact or not design.has_rows:
        return None
    n_rows, n_columns = design.shape
    is_cheap = min(design.shape) <= _FEW_COLUMNS and fits(exact_bytes(design.shape))
    if isinstance(cv, list):
        is_cheap &= n_columns <= _FOLDED_COLUMNS and n_rows * n_columns <= _FOLDED_ENTRIES
    return exact if is_cheap else None


class _Models:
    """Converged models of all alphas: decomposed once for outputs that share a graph, else once per output."""

    def __init__(self, space: Space, problem: Problem, plan: Plan, metric: Metric, averaging: str) -> None:
        pairs = problem.pairs
        self._space, self._problem, self._pairs, self._plan = space, problem, pairs, plan
        self._metric, self._is_pooled = metric, averaging == "pooled" and pairs.can_pool
        self._method = "eval"
        if not plan.has_eval_set:
            pairs.require_pairs_left(plan)
            self._method = pairs.exact_method(plan)
        self._decomposed: list[Decomposition] = []
        self._group: Ints | None = None
        for graph in pairs.graphs():
            factor, self._group = pairs.factored(graph, None if plan.has_eval_set else plan)
            self._decomposed.append(space.decompose(graph, factor))

    def model(self, output: int, alpha: float) -> Floats:
        """Return the model of an output and an alpha."""
        if len(self._decomposed) == 1:
            return self._decomposed[0].model(output, alpha)
        return self._decomposed[output].model(0, alpha)

    def errors(self, alphas: Floats) -> Floats:
        """Return the held-out errors, (alphas, outputs)."""
        if self._plan.has_eval_set:
            return self._errors_on_eval_set(alphas)
        outputs = list(range(self._pairs.n_outputs))
        if len(self._decomposed) == 1:
            return self._errors(self._decomposed[0], outputs, alphas)
        parts = zip(self._decomposed, outputs, strict=True)
        return np.column_stack([self._errors(one, [output], alphas) for one, output in parts])

    def _errors_on_eval_set(self, alphas: Floats) -> Floats:
        assert isinstance(self._space, KernelSpace)
        errors = []
        for output, scorer in enumerate(self._plan.scorers):
            dual = np.column_stack([self.model(output, float(alpha)) for alpha in alphas])
            scores = self._space.problem.scores(self._plan.eval_rows, dual)
            errors.append(scorer.errors_of_rows(scores.T))
        return np.column_stack(errors)

    def _errors(self, one: Decomposition, outputs: list[int], alphas: Floats) -> Floats:
        problem, plan = self._problem, self._plan
        if self._method != "refit":
            # Alphas whose models rank alike, and whose held-out predictions have digits left.
            largest = float(one.hold_out.values.max(initial=0.0))
            alphas = np.minimum(alphas, _LARGEST_ALPHA * largest) if largest > 0 else alphas
        if plan.leaves_pairs:
            rankings = self._pairs.compared()
            assert rankings is not None
            own, n_threads = [rankings[output] for output in outputs], problem.design.n_threads
            lost = pair_out_errors(one.hold_out, own, alphas, problem.row_codes, n_threads)
            is_gain = self._metric.greater_is_better
            return oriented(1.0 - lost if is_gain else lost, greater_is_better=is_gain)
        portion = max(1, _SCORES // (alphas.size * plan.size))
        errors = np.empty((alphas.size, len(outputs)))
        for first in range(0, len(outputs), portion):
            some = slice(first, first + portion)
            values = (
                self._refits(alphas, outputs[some])
                if self._method == "refit"
                else self._values(one, alphas, some, outputs[some])
            )
            for at, output in enumerate(outputs[some]):
                settled = np.where(self._ties < 0, 0.0, values[:, self._ties, at])
                errors[:, first + at] = self._scorers[output].errors(settled)
        return errors

    @cached_property
    def _scorers(self) -> list[Scorer]:
        """The metric on held-out entries, of each output."""
        scored = self._plan.scored
        fold = None if self._is_pooled else self._plan.groups[scored]
        return [
            self._pairs.scorer(self._metric, output, scored, fold) for output in range(self._pairs.n_outputs)
        ]

    @cached_property
    def _ties(self) -> Ints:
        design = self._problem.design
        is_linear = self._space.has_columns and design.has_rows and not design.is_encoded
        X = matrix_rows(design) if is_linear else None
        # Three folds and more tell which columns each of them knows.
        code = self._problem.row_codes if X is None or self._plan.n_folds < 3 else None
        return self._pairs.ties_without(self._plan, code, X)

    def _values(self, one: Decomposition, alphas: Floats, some: slice, outputs: Sequence[int]) -> Floats:
        """Return (alphas, entries, outputs) values, each entry's from the model that did not see its group."""
        target = one.target[:, some]
        if self._method == "units":
            residual = self._residuals(one.hold_out, target, alphas)
            predicted = np.nan_to_num(np.moveaxis(target - residual, 1, 0))  # NaN: what nothing holds out
            flat = np.ascontiguousarray(predicted).reshape(predicted.shape[0], -1)
            values = one.factor.values(flat)
            return np.moveaxis(values.reshape(-1, *predicted.shape[1:]), 0, 1)
        labels, weight = self._pairs.ridge_labels(outputs)
        # The direction that the centering removes: the root of each row's share of the weight.
        centred = one.hold_out.centred(np.asarray(np.sqrt(weight / weight.sum())))
        residual = self._residuals(centred, target, alphas)
        root = np.where(weight > 0, np.sqrt(weight), 1.0)
        return np.asarray(labels - residual / root[:, None])

    def _residuals(self, hold_out: HoldOut, target: Floats, alphas: Floats) -> Floats:
        """Return (alphas, units, outputs) residuals; NaN where nothing scores."""
        plan = self._plan
        if not plan.overlaps:
            assert self._group is not None
            groups, n_threads = groups_of(self._group), self._problem.design.n_threads
            return held_out_residuals(hold_out, target, groups, alphas, n_threads=n_threads)
        found = np.full((alphas.size, *target.shape), np.nan)
        for fold in range(plan.n_folds):
            scored = plan.scoring(fold)
            found[:, scored] = held_out_residuals(hold_out, target, [plan.without(fold)], alphas)[:, scored]
        return found

    def _refits(self, alphas: Floats, outputs: Sequence[int]) -> Floats:
        """Fit once more without each fold: for graphs whose weights change when rows leave."""
        assert isinstance(self._space, KernelSpace)
        space, pairs, plan = self._space, self._pairs, self._plan
        scores = np.zeros((alphas.size, plan.size, len(outputs)))
        for fold in range(plan.n_folds):
            train, test = np.flatnonzero(plan.trained(fold)), plan.scoring(fold)
            for output in outputs:
                pairs.without(plan, fold, output)  # raises where nothing is left
            part, across = pairs.subset(train), space.scoring(test, train)
            labels, weight = part.ridge_labels(outputs)
            # Pooled folds are compared with each other: as in the closed form, training rows average to their labels.
            share = weight / weight.sum()
            among = share @ space.scoring(train, train) if self._is_pooled else np.zeros(across.shape[1])
            for at, output in enumerate(outputs):
                graph = part.graph(output)
                model = space.refitted(train, graph, part.factored(graph, None)[0])
                mean = share @ labels[:, at]
                for a, alpha in enumerate(alphas):
                    dual = model.model(0, float(alpha))
                    scores[a, test, at] = across @ dual + (mean - among @ dual)
        return scores
