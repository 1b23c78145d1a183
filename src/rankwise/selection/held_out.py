"""What is held out, split by split: what trains, which rows or pairs score it, and by what scorer."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rankwise.arrays import Bools, Ints, Rows
from rankwise.design import Design
from rankwise.exceptions import Change, InvalidInputError, NoPairsError, UndefinedMetricError
from rankwise.metrics import Metric
from rankwise.problems.training import PairData, TrainingData, TrainingProblem
from rankwise.selection.cv import Plan
from rankwise.selection.scorers import (
    EvalSet,
    MetricScorer,
    PreferenceScorer,
    Scorer,
    scorer_of_pairs,
    scorer_of_rows,
)

__all__ = [
    "HeldOut",
    "Split",
    "held_out_scorer",
    "require_pairs_left",
    "set_apart",
    "splits_of",
    "trained_on",
]

HeldOut = EvalSet | Plan


@dataclass(frozen=True)
class Split:
    """What is trained on and what it is scored by, for one output.

    Attributes
    ----------
    fold : int
        Splits of the same number score the same rows, whichever output they are of.
    trained : (rows,) or (pairs,) bool, or None
        Which rows or pairs; None for everything.
    rows : Design, (rows,) int64, or None
        What is scored: rows of their own, some of the training rows, or all of them.
    share : float
        How much it says beside other splits.
    """

    fold: int
    trained: Bools | None
    rows: Design | Rows | None
    scorer: Scorer
    share: float = 1.0

    def scored(self, design: Design) -> Design:
        """Return the rows that are scored, from those that are trained on."""
        if self.rows is None:
            return design
        return design.rows(self.rows) if isinstance(self.rows, np.ndarray) else self.rows


def splits_of(data: TrainingProblem, held_out: HeldOut, metric: Metric, output: int) -> list[Split]:
    """Return the splits of an output: one with an eval set, else one per fold that can be scored.

    Raise where one of those leaves nothing to train on.
    """
    if isinstance(held_out, EvalSet):
        return [Split(0, None, held_out.rows, held_out.scorers[output])]
    splits = _scored_folds(data, held_out, metric, output)
    for split in splits:
        trained_on(data, held_out, output, split.fold)
    return splits


def _scored_folds(data: TrainingProblem, held_out: Plan, metric: Metric, output: int) -> list[Split]:
    splits: list[Split] = []
    problem: InvalidInputError | None = None
    for fold in range(held_out.n_folds):
        units, trained = held_out.scoring(fold), held_out.trained(fold)
        try:
            if isinstance(data, PairData):
                splits.append(Split(fold, trained, None, scorer_of_pairs(data, units, metric)))
            else:
                scorer = scorer_of_rows(data, units, metric, output)
                splits.append(Split(fold, trained, units, scorer, scorer.n_counted))
        except (NoPairsError, UndefinedMetricError) as error:
            problem = error
    if problem is not None and not splits:
        raise problem
    return splits


def set_apart(data: TrainingProblem, held_out: HeldOut, metric: Metric) -> tuple[Bools | None, EvalSet]:
    """Return what is trained on, as in `Split`, and the single fold that is held out as an eval set."""
    if isinstance(held_out, EvalSet):
        return None, held_out
    splits = [_scored_folds(data, held_out, metric, output)[0] for output in range(data.n_outputs)]
    first = splits[0]
    assert first.trained is not None
    if not all(data.has_pairs(output, first.trained) for output in range(data.n_outputs)):
        raise NoPairsError(
            "Of the pairs of rows of which one is better, what is held out leaves none to train on.",
            "use a smaller validation_fraction, or an eval_set.",
        )
    if isinstance(first.scorer, PreferenceScorer):
        # Of all rows only those in pairs: every iterate is scored.
        rows, scorer = first.scorer.compared()
        return first.trained, EvalSet(data.design.rows(rows), [scorer])
    return first.trained, EvalSet(first.scored(data.design), [split.scorer for split in splits])


def trained_on(data: TrainingProblem, plan: Plan, output: int, fold: int) -> Bools:
    """Return which rows or pairs a fold trains on; raise where they leave no pair that has a winner."""
    trained = plan.trained(fold)
    if data.has_pairs(output, trained):
        return trained
    if isinstance(data, PairData):
        raise NoPairsError(
            f"Without its held-out pairs, fold {fold} has none to train on.",
            "use more folds, or hold less out.",
        )
    raise NoPairsError(
        f"Without its held-out rows, fold {fold} has no two rows of a query with different labels to train on.",
        "use more folds, cv=sklearn.model_selection.KFold(5) to hold rows of every query out, or an eval_set.",
        Change("cv"),
        Change("eval_set"),
    )


def require_pairs_left(data: TrainingProblem, plan: Plan) -> None:
    """Raise where a fold leaves nothing to train on: its model is 0, of which closed forms have the rounding alone."""
    for output in range(data.n_outputs):
        for fold in _with_all_pairs(data, plan, output).tolist():
            trained_on(data, plan, output, fold)


def _with_all_pairs(data: TrainingProblem, plan: Plan, output: int) -> Ints:
    """Return the folds that hold a row of every pair that has a winner; there may be many folds, so not one by one."""
    if isinstance(data, PairData):
        own = np.unique(plan.groups[data.graph.is_ordered])
        return own[own >= 0] if own.size == 1 else own[:0]
    levels = data.levels[output]
    fold, level = plan.groups[levels.order], np.repeat(np.arange(levels.query.size), np.diff(levels.start))
    if data.row_weight is not None:
        weighs = data.row_weight[levels.order] > 0
        fold, level = fold[weighs], level[weighs]
    at = np.flatnonzero(np.diff(level, prepend=-1))  # where each level that has rows starts
    query, first = levels.query[level[at]], np.minimum.reduceat(fold, at)
    n_levels = np.bincount(query, minlength=levels.ordered.size)
    is_whole = (first == np.maximum.reduceat(fold, at)) & (first >= 0) & levels.ordered[query]
    # A query has no pair left where a fold holds all of its levels but one.
    n_folds = max(plan.n_folds, 1)
    held, n_held = np.unique((query * n_folds + first)[is_whole], return_counts=True)
    is_emptied = n_held >= n_levels[held // n_folds] - 1
    n_emptied = np.bincount(held[is_emptied] % n_folds, minlength=n_folds)
    return np.flatnonzero(n_emptied == np.count_nonzero(levels.ordered))


def held_out_scorer(
    data: TrainingData, plan: Plan, output: int, metric: Metric, rows: Rows, *, pooled: bool = False
) -> MetricScorer:
    """Prepare the metric on held-out rows of all folds."""
    queries = plan.scoring_queries(data.queries, rows, pooled=pooled)
    return scorer_of_rows(data, rows, metric, output, queries)
