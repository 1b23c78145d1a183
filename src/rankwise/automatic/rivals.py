"""Estimators of other packages on the same folds."""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np
from sklearn.base import BaseEstimator, clone

from rankwise.automatic.figures import Figure
from rankwise.automatic.labelled_rows import LabelledRows
from rankwise.automatic.problems import Problem
from rankwise.exceptions import InvalidInputError
from rankwise.model_selection import fit_ranker, predict_scores

__all__ = ["rival_entries"]


def rival_entries(rivals: Sequence[BaseEstimator], problem: Problem) -> list[tuple[str, Figure, float]]:
    """Fit each rival without each fold, and return its name, its figure and how long it took."""
    if not isinstance(problem, LabelledRows) or problem.scored is not None:
        raise InvalidInputError(
            "rivals are compared on folds of labelled rows.", "leave rivals out, or fit without an eval_set."
        )
    X, y, ids = problem.columns.X, problem.y, problem.qid
    found = []
    for rival in rivals:
        start, scores = time.monotonic(), np.zeros((len(problem.folds), y.size))
        for line, test in problem.tests():
            train = np.setdiff1d(np.arange(y.size), test)
            weight = None if problem.weight is None else problem.weight[train]
            fitted = fit_ranker(clone(rival), X[train], y[train], None if ids is None else ids[train], weight)
            scores[line, test] = predict_scores(fitted, X[test], None if ids is None else ids[test])
        found.append((type(rival).__name__, problem.figure(scores), time.monotonic() - start))
    return found
