"""What is held out, split by split: what trains, which rows or pairs score it, and by what scorer."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from rankwise.arrays import AnyArray, Floats, Rows
from rankwise.design import Design
from rankwise.exceptions import Change, InvalidInputError, NoPairsError, UndefinedMetricError
from rankwise.metrics import Metric
from rankwise.problems.training import PairData, TrainingData, TrainingProblem
from rankwise.selection.cv import RowPlan
from rankwise.selection.cv_pairs import PairPlan
from rankwise.selection.scorers import (
    EvalSet,
    MetricScorer,
    PreferenceScorer,
    Scorer,
    row_scorer,
    scorer_of_pairs,
)

__all__ = ["HeldOut", "Split", "held_out_scorer", "set_apart", "splits_of", "training_weights"]

HeldOut = EvalSet | RowPlan | PairPlan


@dataclass(frozen=True)
class Split:
    """What is trained on and what it is scored by, for one output.

    Attributes
    ----------
    fold : int
        Splits of the same number score the same rows, whichever output they are of.
    trained : (rows,) float64, or (pairs,) bool, or None
        The weights of the rows; which pairs; None for everything.
    rows : Design, (rows,) int64, or None
        What is scored: rows of their own, some of the training rows, or all of them.
    share : float
        How much it says beside other splits.
    """

    fold: int
    trained: AnyArray | None
    rows: Design | Rows | None
    scorer: Scorer
    share: float = 1.0

    def scored(self, design: Design) -> Design:
        """Return the rows that are scored, from those that are trained on."""
        if self.rows is None:
            return design
        return design.rows(self.rows) if isinstance(self.rows, np.ndarray) else self.rows


def splits_of(data: TrainingProblem, held_out: HeldOut, metric: Metric, output: int) -> list[Split]:
    """Return the splits of an output: one with an eval set, else one per fold that can be scored."""
    if isinstance(held_out, EvalSet):
        return [Split(0, None, held_out.rows, held_out.scorers[output])]
    if isinstance(held_out, PairPlan):
        assert isinstance(data, PairData)
        return [
            Split(
                fold,
                held_out.trained(fold, len(data.preferences)),
                None,
                scorer_of_pairs(data, held_out.scoring(fold), metric),
            )
            for fold in held_out.folds_that_score(data)
        ]
    assert isinstance(data, TrainingData)
    return list(_row_splits(data, held_out, metric, output))


def _row_splits(data: TrainingData, plan: RowPlan, metric: Metric, output: int) -> Iterator[Split]:
    """Yield the splits of labelled rows; folds that cannot be scored are not trained, where others can be."""
    weight = data.row_weight
    problem: InvalidInputError | None = None
    n_scored = 0
    for fold in range(plan.n_folds):
        rows = plan.scored[plan.fold[plan.scored] == fold]
        try:
            labels, queries = data.columns[output][rows], data.queries.subset(rows)
            own = None if weight is None else weight[rows]
            scorer = row_scorer(metric, labels, queries, data.design.n_threads, weight=own)
        except (NoPairsError, UndefinedMetricError) as error:
            problem = error
            continue
        n_scored += 1
        trained = (1.0 if weight is None else weight) * (plan.fold != fold)
        yield Split(fold, trained, rows, scorer, scorer.n_counted)
    if problem is not None and not n_scored:
        raise problem


def set_apart(data: TrainingProblem, held_out: HeldOut, metric: Metric) -> tuple[AnyArray | None, EvalSet]:
    """Return what is trained on, as in `Split`, and the single fold that is held out as an eval set."""
    if isinstance(held_out, EvalSet):
        return None, held_out
    splits = [splits_of(data, held_out, metric, output)[0] for output in range(data.n_outputs)]
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


def training_weights(data: TrainingData, plan: RowPlan, output: int, fold: int) -> Floats:
    """Return the row weights that a fold trains with; raise where they leave no pair."""
    left: Floats = (1.0 if data.row_weight is None else data.row_weight) * (plan.fold != fold)
    if not data.has_pairs(output, left):
        raise NoPairsError(
            f"Without its held-out rows, fold {fold} has no two rows of a query with different labels to train on.",
            "use more folds, cv=sklearn.model_selection.KFold(5) to hold rows of every query out, or an eval_set.",
            Change("cv"),
            Change("eval_set"),
        )
    return left


def held_out_scorer(
    data: TrainingData, plan: RowPlan, output: int, metric: Metric, rows: Rows, *, pooled: bool = False
) -> MetricScorer:
    """Prepare the metric on held-out rows of all folds."""
    queries = plan.scoring_queries(data.queries, rows, pooled=pooled)
    weight = None if data.row_weight is None else data.row_weight[rows]
    return row_scorer(metric, data.columns[output][rows], queries, data.design.n_threads, weight=weight)
