"""What is held out from labelled rows in closed form: queries, folds of them, folds of rows, or pairs."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.model_selection import check_cv

from rankwise.data.validation import check_choice, check_count
from rankwise.estimators.folds import as_splitter
from rankwise.estimators.splits import read_splits
from rankwise.estimators.training import TrainingData
from rankwise.exceptions import InvalidInputError
from rankwise.holdout import groups_of
from rankwise.metrics import Metric
from rankwise.resampling import deal_folds

__all__ = ["EXACT_CV", "Plan", "check_cv_parameter", "is_ridge", "plan_hold_out"]

Rows = npt.NDArray[np.int64]

EXACT_CV = ("leave-query-out", "leave-pair-out")
_FOLDS = 10
_PAIR_METRICS = {"pairwise_error", "concordance", "auc"}
_MANY_ROWS = 2000  # up to so many rows "auto" holds out every pair of one ranking
_FEW_LEVELS = (
    8  # of labels: leave-pair-out takes a decomposition a pair of levels where it is no ridge regression
)
_LEVELS_OF_AUTO = 3


@dataclass(frozen=True)
class Plan:
    """What is held out.

    Attributes
    ----------
    kind : {"queries", "rows", "refit", "pairs", "level-pairs"}
        Groups of whole queries; folds of one ranking in closed form, or by refits; or pairs of one ranking, where it
        is ridge regression or by its levels.
    fold : (rows,) int64
        The group of each row; not used for pairs.
    words : str
        The same for a reader.
    alpha_scale : float
        The closed form's alpha for an alpha of 1; not 1 where the weight of pairs changes when two rows leave.
    is_pooled : bool
        Whether folds of one ranking are judged together instead of one by one.
    """

    kind: str
    fold: Rows
    words: str
    alpha_scale: float = 1.0
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
    cv: Any, data: TrainingData, metric: Metric, seed: int, *, is_pooled: bool = False, can_refit: bool = True
) -> Plan:
    """Read `cv`: a name of `EXACT_CV`, "auto", a number of folds, or a splitter."""
    queries = data.queries
    cv = _chosen_by_shape(data, metric) if isinstance(cv, str) and cv == "auto" else cv
    if isinstance(cv, str) and cv == "leave-pair-out":
        _check_leave_pair_out(data, metric)
        nobody = np.zeros(queries.n_rows, dtype=np.int64)
        if not _pairs_are_ridge(data):
            return Plan("level-pairs", nobody, f"leave-pair-out over {queries.n_rows} rows")
        # Pairs that weigh 1 make L m times the centering; without two rows m - 2 times.
        scale = 1.0 if data.query_weight == "size" else queries.n_rows / (queries.n_rows - 2)
        return Plan("pairs", nobody, f"leave-pair-out over {queries.n_rows} rows", scale)
    if isinstance(cv, str):
        if len(queries) == 1:
            raise InvalidInputError(
                "cv='leave-query-out' needs two queries or more, and all rows form one ranking.",
                "pass qid, or use cv='leave-pair-out' or a number of folds.",
            )
        return Plan("queries", queries.codes, f"leave-query-out over {len(queries)} queries")
    fold, unit = _folds(cv, data, seed)
    words = f"{fold.max() + 1} folds of {unit}"
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
    return bool(data.ties == "include" and data.cost == "magnitude")


def _folds(cv: Any, data: TrainingData, seed: int) -> tuple[Rows, str]:
    queries = data.queries
    unit, n_units = ("queries", len(queries)) if len(queries) > 1 else ("rows", queries.n_rows)
    if not isinstance(cv, Integral):
        return _given_folds(cv, data), unit
    if int(cv) > n_units:
        raise InvalidInputError(
            f"cv={cv} is more than the {n_units} {unit} there are.", f"use cv <= {n_units}."
        )
    return deal_folds(data.design, data.columns[0], queries, int(cv), seed).astype(np.int64), unit


def _chosen_by_shape(data: TrainingData, metric: Metric) -> Any:
    if len(data.queries) > 1:
        return "leave-query-out"
    n_rows = data.queries.n_rows
    counts_pairs = metric.base_name in _PAIR_METRICS
    has_form = _pairs_are_ridge(data) or _has_few_levels(data, _LEVELS_OF_AUTO)
    if has_form and counts_pairs and 3 <= n_rows <= _MANY_ROWS:
        return "leave-pair-out"
    return min(_FOLDS, n_rows)


def _has_few_levels(data: TrainingData, most: int) -> bool:
    """Tell whether leave-pair-out may go by levels: few of them, and rows that weigh the same."""
    weighs_one = data.row_weight is None and data.importance is None
    return weighs_one and max(levels.value.size for levels in data.levels) <= most


def _pairs_are_ridge(data: TrainingData) -> bool:
    weight = data.row_weight
    keeps_scale = data.query_weight == "size" or (data.query_weight == "pairs" and weight is None)
    all_count = data.importance is None and (weight is None or bool((weight > 0).all()))
    return is_ridge(data) and keeps_scale and all_count


def _check_leave_pair_out(data: TrainingData, metric: Metric) -> None:
    n_rows = data.queries.n_rows
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
    if not _pairs_are_ridge(data) and not _has_few_levels(data, _FEW_LEVELS):
        raise InvalidInputError(
            "cv='leave-pair-out' has a closed form only for ties='include', cost='magnitude' and "
            "query_weight='size' with positive weights, or 'pairs' without weights; or, without weights, for labels of "
            f"at most {_FEW_LEVELS} levels.",
            "use a number of folds, which refits where it must, or round the labels.",
        )
    if metric.base_name not in _PAIR_METRICS:
        raise InvalidInputError(
            f"cv='leave-pair-out' judges pairs, and scoring={metric.name!r} does not count them.",
            "use scoring='pairwise_error', or a number of folds.",
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
