"""What is held out from labelled rows in closed form: queries, folds of them, folds of rows, or pairs."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.model_selection import check_cv

from rankwise.arrays import Rows
from rankwise.data.validation import check_choice, check_count
from rankwise.exceptions import Change, InvalidInputError
from rankwise.holdout import groups_of
from rankwise.metrics import Metric
from rankwise.problems.training import TrainingData
from rankwise.selection.cv import as_splitter
from rankwise.selection.leave_pair_out import counted_rows, pair_forms, refusal
from rankwise.selection.splits import read_splits

__all__ = ["EXACT_CV", "Plan", "check_cv_parameter", "is_ridge", "leave_pair_out_by_auto", "plan_hold_out"]


EXACT_CV = ("leave-query-out", "leave-pair-out")
_FOLDS = 10
_PAIR_METRICS = {"pairwise_error", "concordance", "auc"}
_MANY_ROWS = 2000  # up to so many rows "auto" holds out every pair of one ranking


@dataclass(frozen=True)
class Plan:
    """What is held out.

    Attributes
    ----------
    kind : {"queries", "rows", "refit", "pairs"}
        Groups of whole queries; folds of one ranking in closed form, or by refits; or pairs of one ranking.
    fold : (rows,) int64
        The group of each row; not used for pairs.
    words : str
        The same for a reader.
    is_pooled : bool
        Whether folds of one ranking are scored together instead of one by one.
    """

    kind: str
    fold: Rows
    words: str
    is_pooled: bool = False


def check_cv_parameter(cv: Any) -> None:
    """Raise unless `cv` is a name, a number of folds, a splitter or a list of splits."""
    if isinstance(cv, str):
        check_choice("cv", cv, ("auto", *EXACT_CV))
    elif not hasattr(as_splitter(cv), "split"):
        check_count("cv", cv, optional=False)
        if cv == 1:
            raise InvalidInputError("cv=1 leaves nothing to train on.", "use cv of at least 2.")


def plan_hold_out(
    cv: Any,
    data: TrainingData,
    metric: Metric,
    seed: int,
    *,
    rank: int,
    n_alphas: int,
    is_pooled: bool = False,
    can_refit: bool = True,
) -> Plan:
    """Read `cv`: a name of `EXACT_CV`, "auto", a number of folds, or a splitter.

    Parameters
    ----------
    rank, n_alphas : int
        The size of the decomposition, and the length of the grid: what the price of leave-pair-out depends on.
    """
    queries = data.queries
    why_not = ""
    if isinstance(cv, str) and cv == "auto":
        cv, why_not = _chosen_by_shape(data, metric, rank, n_alphas, is_pooled=is_pooled)
    elif isinstance(cv, str) and cv == "leave-pair-out":
        _check_leave_pair_out(data, metric, rank, n_alphas)
    if isinstance(cv, str) and cv == "leave-pair-out":
        nobody = np.zeros(queries.n_rows, dtype=np.int64)
        return Plan("pairs", nobody, f"leave-pair-out over {counted_rows(data).size} rows")
    if isinstance(cv, str):
        if len(queries) == 1:
            raise InvalidInputError(
                "cv='leave-query-out' needs two queries or more, and all rows form one ranking.",
                "pass qid, or use cv='leave-pair-out' or a number of folds.",
            )
        return Plan("queries", queries.codes, f"leave-query-out over {data.assigner.n_units} queries")
    fold, unit = _folds(cv, data, seed)
    words = f"{fold.max() + 1} folds of {unit}{why_not}"
    if unit == "queries":
        return Plan("queries", fold, words)
    if is_ridge(data) and data.query_weight == "size":
        return Plan("rows", fold, words, is_pooled=is_pooled)
    if not can_refit:
        raise InvalidInputError(
            "Folds of the rows of one ranking have no closed form here, and a reduced set is not refitted.",
            "use ties='include', cost='magnitude', query_weight='size'; or basis=None.",
        )
    return Plan("refit", fold, words, is_pooled=is_pooled)


def is_ridge(data: TrainingData) -> bool:
    """Tell whether one ranking would be ridge regression with a free intercept."""
    n_rows = data.queries.n_rows
    has_no_ties = all(levels.value.size == n_rows for levels in data.levels)
    return bool(data.cost == "magnitude" and (data.ties == "include" or has_no_ties))


def leave_pair_out_by_auto(data: TrainingData, metric: Metric, rank: int, n_alphas: int) -> tuple[bool, str]:
    """Tell whether "auto" leaves out the pairs of one ranking; if it would but for the price, also why not."""
    n_rows = counted_rows(data).size
    if metric.base_name not in _PAIR_METRICS or not 3 <= n_rows <= _MANY_ROWS:
        return False, ""
    words = refusal(pair_forms(data, rank, n_alphas), is_asked_for=False)
    return words is None, "" if words is None else f" (leave-pair-out {words})"


def _folds(cv: Any, data: TrainingData, seed: int) -> tuple[Rows, str]:
    n_units, unit = data.assigner.n_units, data.assigner.unit
    if not isinstance(cv, Integral):
        return _given_folds(cv, data), unit
    if int(cv) > n_units:
        raise InvalidInputError(
            f"cv={cv} is more than the {n_units} {unit} there are.",
            f"use cv <= {n_units}.",
            Change("cv", n_units),
            Change("eval_set"),
        )
    return data.assigner.folds(int(cv), seed).astype(np.int64), unit


def _chosen_by_shape(
    data: TrainingData, metric: Metric, rank: int, n_alphas: int, *, is_pooled: bool
) -> tuple[Any, str]:
    if data.assigner.unit == "queries":
        return "leave-query-out", ""
    leaves_pairs, why_not = leave_pair_out_by_auto(data, metric, rank, n_alphas)
    if leaves_pairs:
        return "leave-pair-out", ""
    n_rows = data.assigner.n_units
    # A row alone cannot be compared, unless with those of other folds.
    return min(_FOLDS, n_rows if is_pooled else max(n_rows // 2, 2)), why_not


def _check_leave_pair_out(data: TrainingData, metric: Metric, rank: int, n_alphas: int) -> None:
    n_rows = counted_rows(data).size
    if len(data.queries) > 1:
        raise InvalidInputError(
            "cv='leave-pair-out' is for one global ranking, and qid names several queries.",
            "use cv='leave-query-out'.",
        )
    if n_rows < 3:
        raise InvalidInputError(
            f"cv='leave-pair-out' leaves nothing to train on from {n_rows} rows.",
            "use three rows or more.",
        )
    if metric.base_name not in _PAIR_METRICS:
        raise InvalidInputError(
            f"cv='leave-pair-out' judges pairs, and scoring={metric.name!r} does not count them.",
            "use scoring='pairwise_error', or a number of folds.",
        )
    words = refusal(pair_forms(data, rank, n_alphas), is_asked_for=True)
    if words is not None:
        raise InvalidInputError(
            f"cv='leave-pair-out' {words}.",
            "use a number of folds, which refits where it must; ties='include' with cost='magnitude' or 'unit'; or "
            "round the labels.",
        )


def _given_folds(cv: Any, data: TrainingData) -> Rows:
    """Return the fold of each row from a splitter, or from pairs of training and test rows; -1 in no test set."""
    n_rows = data.queries.n_rows
    fold = np.full(n_rows, -1, dtype=np.int64)
    groups = data.queries.codes if len(data.queries) > 1 else None
    splitter = as_splitter(cv)
    splits = check_cv(splitter).split(np.zeros((n_rows, 1)), data.y, groups)
    for number, (train, test) in enumerate(read_splits(splits, n_rows, splitter, "rows")):
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
