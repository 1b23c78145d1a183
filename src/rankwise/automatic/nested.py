"""The score of the whole procedure, choice included, on outer folds that take no part in it."""

from __future__ import annotations

import numpy as np
from sklearn.base import clone

from rankwise.automatic.labelled_rows import LabelledRows
from rankwise.data.validation import read_seed
from rankwise.estimators.base import Ranker
from rankwise.exceptions import InvalidInputError
from rankwise.problems.training import PairData, TrainingProblem
from rankwise.selection.folds import FoldAssigner

__all__ = ["check_can_nest", "nested_figure"]

_OUTER_FOLDS = 5


def check_can_nest(data: TrainingProblem, eval_set: object) -> None:
    """Raise where outer folds cannot be made."""
    if isinstance(data, PairData) or eval_set is not None or not data.design.has_rows:
        raise InvalidInputError(
            "nested makes outer folds of labelled rows of X, so it takes neither pairs nor an eval_set.",
            "use nested=False and score the model on rows of its own.",
        )


def nested_figure(estimator: Ranker, problem: LabelledRows) -> tuple[float, float]:
    """Choose and fit on all but one outer fold, and score on that fold; return the value and its standard error."""
    X, y = problem.columns.X, problem.y
    assigner = FoldAssigner(y, problem.queries, problem.weight)
    n_outer = min(assigner.n_units, _OUTER_FOLDS if estimator.nested is True else int(estimator.nested))
    fold = assigner.folds(n_outer, read_seed(estimator.random_state) + 1)
    inner = clone(estimator).set_params(nested=False, rivals=(), scoring=problem.metric)
    scores = np.zeros(y.size)
    ids = problem.qid
    for number in range(n_outer):
        test, train = np.flatnonzero(fold == number), np.flatnonzero(fold != number)
        weight = None if problem.weight is None else problem.weight[train]
        if not isinstance(inner.cv, (str, int)):
            inner.set_params(cv="auto")  # splits of all rows say nothing of some of them
        fitted = inner.fit(X[train], y[train], None if ids is None else ids[train], sample_weight=weight)
        scores[test] = fitted.predict(X[test], None if ids is None else ids[test])
    outer = LabelledRows(
        problem.columns, y, problem.queries, problem.weight, problem.metric, [fold], problem.block, None, ""
    )
    figure = outer.figure(scores[None])
    return figure.value, figure.standard_error
