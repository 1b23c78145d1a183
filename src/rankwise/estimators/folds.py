"""Folds as the estimators that choose their own alpha deal them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.model_selection import check_cv as sklearn_check_cv

from rankwise.data.validation import check_choice, check_count
from rankwise.estimators.training import TrainingData
from rankwise.exceptions import InvalidInputError
from rankwise.resampling import deal_folds

__all__ = ["check_cv", "deal_cv"]

Folds = npt.NDArray[np.int32]

_FOLDS = 5


def check_cv(cv: Any) -> None:
    """Raise unless `cv` is "auto", a number of folds, or a splitter."""
    if isinstance(cv, str):
        check_choice("cv", cv, ("auto",))
    elif not _is_splitter(cv):
        check_count("cv", cv, optional=False)
        if cv == 1:
            raise InvalidInputError("cv=1 leaves nothing to train on.", "use cv of at least 2.")


def deal_cv(cv: Any, data: TrainingData, seed: int) -> tuple[Folds, str]:
    """Give every row its fold (-1 for rows that no splitter holds out), and say in words what was done."""
    queries, unit = data.queries, "queries" if len(data.queries) > 1 else "rows"
    if _is_splitter(cv):
        splitter = sklearn_check_cv(cv)  # a list of (train, test) becomes a splitter
        return _folds_of_splitter(splitter, data), f"the test sets of {type(splitter).__name__}"
    n_units = len(queries) if len(queries) > 1 else queries.n_rows
    n_folds = min(_FOLDS, n_units) if cv == "auto" else int(cv)
    if n_folds > n_units:
        raise InvalidInputError(
            f"cv={n_folds} is more than the {n_units} {unit} there are.", f"use cv <= {n_units}."
        )
    return deal_folds(data.design, data.columns[0], queries, n_folds, seed), f"{n_folds} folds of {unit}"


def _is_splitter(cv: Any) -> bool:
    return not isinstance(cv, str) and (hasattr(cv, "split") or isinstance(cv, Iterable))


def _folds_of_splitter(splitter: Any, data: TrainingData) -> Folds:
    n_rows = data.queries.n_rows
    fold = np.full(n_rows, -1, dtype=np.int32)
    groups = data.queries.codes if len(data.queries) > 1 else None
    for number, (train, test) in enumerate(splitter.split(np.zeros((n_rows, 1)), data.y, groups)):
        if (fold[test] >= 0).any() or len(train) + len(test) != n_rows:
            raise InvalidInputError(
                f"cv={splitter} holds a row out twice, or leaves one out of both sides.",
                "use KFold, GroupKFold or QueryKFold, whose test sets do not overlap.",
            )
        fold[test] = number
    return fold
