"""What `cv` means for labelled rows: a plan of what is held out, the same for every estimator.

Rows of their own to score by are an `EvalSet` instead. Which of them a method of choosing takes, and in which closed
form, is its own affair. For listed pairs see `rankwise.selection.cv_pairs`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from rankwise.arrays import Bools, Rows
from rankwise.data.queries import Queries, encode_queries
from rankwise.exceptions import InvalidInputError, MissingQueriesError
from rankwise.holdout.leave_pair_out import counted_rows, pair_forms, refusal
from rankwise.metrics import Metric
from rankwise.problems.training import TrainingData
from rankwise.selection.splits import (
    FOLDS,
    Sampling,
    Splitter,
    as_splitter,
    count_folds,
    read_splits,
    requests_groups,
    require_decomposition,
)

__all__ = ["Decomposition", "RowPlan", "has_closed_form", "held_out_rows", "plan_rows"]

_FOLDS_IN_CLOSED_FORM = 10  # there they cost nothing
_PAIR_METRICS = {"pairwise_error", "concordance", "auc"}
_MANY_ROWS = 2000  # up to so many rows "auto" holds out every pair of one ranking


class Decomposition(NamedTuple):
    """One decomposition that answers for all alphas: its size and theirs, and whether it is made again for folds."""

    rank: int
    n_alphas: int
    refits: bool
    is_pooled: bool = False  # whether rows of different folds are compared, so that a fold may hold one row


@dataclass(frozen=True)
class RowPlan:
    """What is held out of labelled rows.

    Attributes
    ----------
    fold : (rows,) int64
        The fold of each row, or its query for leave-query-out; -1 for rows that are in every training set.
    scored : (rows to score by,) int64
        Held-out rows, all or some.
    description : str
        The same for a reader.
    is_exact : bool
        Whether one decomposition is to answer, in closed form or by refits.
    leaves_pairs : bool
        Whether every pair of rows of the one ranking is held out instead of folds.
    """

    fold: Rows
    scored: Rows
    description: str
    is_exact: bool = False
    leaves_pairs: bool = False

    @property
    def n_folds(self) -> int:
        """How many folds there are."""
        return int(self.fold.max(initial=-1)) + 1

    def scoring_queries(self, queries: Queries, rows: Rows, *, pooled: bool) -> Queries:
        """Rows are compared inside a query and, unless pooled, inside a fold: folds have different models."""
        if pooled:
            return queries.subset(rows)
        return encode_queries(queries.codes[rows] * max(self.n_folds, 1) + self.fold[rows])

    def splits_queries(self, queries: Queries) -> bool:
        """Tell whether the rows of a query are in several folds."""
        first = np.full(len(queries), -1, dtype=np.int64)
        first[queries.codes] = self.fold
        return bool((first[queries.codes] != self.fold).any())


def plan_rows(
    cv: object, data: TrainingData, metric: Metric, sampling: Sampling, by: Decomposition | None = None
) -> RowPlan:
    """Read `cv` for labelled rows.

    Parameters
    ----------
    by : Decomposition or None
        What "auto" and numbers of folds are to be exact by; None for methods that only iterate.
    """
    why_not = ""
    if isinstance(cv, str) and cv == "auto":
        cv, why_not = _by_default(data, metric, by)
    if isinstance(cv, str):
        return _exact_rows(cv, data, metric, by)
    splitter = as_splitter(cv)
    if splitter is not None:
        fold, description = _rows_of_splitter(splitter, data), f"the test sets of {splitter}"
    else:
        n_folds = count_folds(cv, data.assigner.n_units, data.assigner.unit)
        fold = data.assigner.folds(n_folds, sampling.seed).astype(np.int64)
        description = f"{n_folds} folds of {data.assigner.unit}"
    plan = RowPlan(fold, np.flatnonzero(_is_held(fold, data)), description + why_not)
    is_whole = by is not None and not plan.splits_queries(data.queries)
    if by is not None and (is_whole or by.refits or has_closed_form(data)):
        return replace(plan, is_exact=True)
    n_held = plan.scored.size
    if sampling.limit is None or n_held <= sampling.limit:
        return plan
    drawn = data.assigner.sample(sampling.limit, sampling.seed + 1)
    scored = plan.scored[drawn[plan.scored]]
    description = f"{plan.description}, scored by {scored.size} of {n_held} rows"
    return replace(plan, scored=scored, description=description)


def held_out_rows(data: TrainingData, share: float, seed: int) -> RowPlan:
    """Hold out a share of the queries, of the rows where there is one ranking, as a single fold."""
    held = data.assigner.share(share, seed)
    return RowPlan(np.where(held, 0, -1), np.flatnonzero(held), "")


def has_closed_form(data: TrainingData) -> bool:
    """Tell whether folds of the rows of one ranking have a closed form: ridge regression with a free intercept."""
    n_rows = data.queries.n_rows
    has_no_ties = all(levels.value.size == n_rows for levels in data.levels)
    is_ridge = data.cost == "magnitude" and (data.ties == "include" or has_no_ties)
    return bool(is_ridge and data.query_weight == "size" and data.assigner.unit == "rows")


def _by_default(data: TrainingData, metric: Metric, by: Decomposition | None) -> tuple[object, str]:
    """Return what "auto" is; where it would leave out pairs but for the price, also why not."""
    n_units = data.assigner.n_units
    if by is None:
        return min(FOLDS, n_units), ""
    if data.assigner.unit == "queries":
        return "leave-query-out", ""
    n_rows, why_not = counted_rows(data).size, ""
    if metric.base_name in _PAIR_METRICS and 3 <= n_rows <= _MANY_ROWS:
        refused = refusal(pair_forms(data, by.rank, by.n_alphas), is_asked_for=False)
        if refused is None:
            return "leave-pair-out", ""
        why_not = f" (leave-pair-out {refused})"
    is_exact = by.refits or has_closed_form(data)
    # A row alone cannot be compared.
    most = n_units if by.is_pooled else max(n_units // 2, 2)  # a fold that is scored alone holds two rows
    return min(_FOLDS_IN_CLOSED_FORM if is_exact else FOLDS, most), why_not


def _exact_rows(cv: str, data: TrainingData, metric: Metric, by: Decomposition | None) -> RowPlan:
    require_decomposition(cv, has_one=by is not None)
    assert by is not None
    several = len(data.queries) > 1
    if cv == "leave-query-out":
        if not several:
            raise InvalidInputError(
                "cv='leave-query-out' needs two queries or more, and all rows form one ranking.",
                "pass qid, or use cv='leave-pair-out' or a number of folds.",
            )
        fold = data.queries.codes
        description = f"leave-query-out over {data.assigner.n_units} queries"
        return RowPlan(fold, np.flatnonzero(_is_held(fold, data)), description, is_exact=True)
    if several:
        raise InvalidInputError(
            "cv='leave-pair-out' is for one global ranking, and qid names several queries.",
            "use cv='leave-query-out'.",
        )
    rows = counted_rows(data)
    if rows.size < 3:
        raise InvalidInputError(
            f"cv='leave-pair-out' leaves nothing to train on from {rows.size} rows.",
            "use three rows or more.",
        )
    if metric.base_name not in _PAIR_METRICS:
        raise InvalidInputError(
            f"cv='leave-pair-out' scores pairs, and scoring={metric.name!r} does not count them.",
            "use scoring='pairwise_error', or a number of folds.",
        )
    refused = refusal(pair_forms(data, by.rank, by.n_alphas), is_asked_for=True)
    if refused is not None:
        raise InvalidInputError(
            f"cv='leave-pair-out' {refused}.",
            "use a number of folds, which refits where it must; ties='include' with cost='magnitude' or 'unit'; or "
            "round the labels.",
        )
    none = np.full(data.queries.n_rows, -1, dtype=np.int64)
    description = f"leave-pair-out over {rows.size} rows"
    return RowPlan(none, rows, description, is_exact=True, leaves_pairs=True)


def _is_held(fold: Rows, data: TrainingData) -> Bools:
    """Rows that weigh nothing neither train nor score."""
    held = fold >= 0
    if data.fold_weight is not None:
        held &= data.fold_weight > 0
    return held


def _rows_of_splitter(splitter: Splitter, data: TrainingData) -> Rows:
    n_rows = data.queries.n_rows
    fold = np.full(n_rows, -1, dtype=np.int64)
    groups = data.queries.codes if len(data.queries) > 1 else None
    if groups is None and requests_groups(splitter):
        raise MissingQueriesError(
            f"cv={splitter} splits by query, and there is one ranking.",
            "pass qid, or use cv=5 or sklearn.model_selection.KFold(5), which split rows.",
        )
    splits = read_splits(splitter, np.zeros((n_rows, 1)), data.y, groups, "rows")
    for number, (train, test) in enumerate(splits):
        if (fold[test] >= 0).any() or len(train) + len(test) != n_rows:
            raise InvalidInputError(
                f"cv={splitter} holds a row out twice, or leaves one out of both sides.",
                "use KFold, GroupKFold or QueryKFold, whose test sets do not overlap.",
            )
        fold[test] = number
    return fold
