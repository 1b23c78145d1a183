"""Folds, assigned once: what `fit` and `fit_pairs` were given, as problems that candidates are tried on."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
from scipy.sparse.linalg import LinearOperator

from rankwise.arrays import Floats, Ints, Matrix, MatrixLike
from rankwise.automatic.labelled_rows import LabelledRows, blocks_of_rows, splits_of
from rankwise.automatic.listed_pairs import ListedPairs
from rankwise.automatic.scaling import ScaledColumns
from rankwise.data.duels import read_duels
from rankwise.data.queries import Queries
from rankwise.data.summary import is_graded
from rankwise.data.validation import (
    Preferences,
    check_numbers,
    check_pairs,
    check_qid,
    pairs_of_eval_set,
    rows_of_eval_set,
)
from rankwise.exceptions import InvalidInputError
from rankwise.metrics import Metric, get_metric
from rankwise.problems.training import PairData, TrainingData, TrainingProblem
from rankwise.selection.cv import Sampling, plan_of
from rankwise.selection.folds import FoldAssigner, PairAssigner, assigner_of
from rankwise.selection.splits import as_splitter, count_folds, read_splits

__all__ = [
    "labelled_rows",
    "listed_pairs",
    "read_pairs",
    "read_rows",
    "refuse_operator",
    "resolve_metric",
]

# The folds are a good part of the noise where 25 queries of 20 rows choose: four assignments instead of one brought
# what the choice loses against the best candidate from .0120 to .0084 NDCG@10 (eight sets that were developed on).
_REPEATS = 4
_REPEATED = 120_000  # entries of X times assignments
_NEXT_FOLDS = 1000  # between the seeds of two assignments

CheckMatrix = Callable[[MatrixLike], Matrix]


def refuse_operator(X: Matrix) -> None:
    """Raise where X is known by its products alone."""
    if isinstance(X, LinearOperator):
        raise InvalidInputError(
            "A LinearOperator has no columns to scale, nor rows to leave out.",
            "pass a matrix, or use RankRLSCV, which takes operators.",
        )


def resolve_metric(scoring: str | Metric, data: TrainingProblem, *, with_qid: bool) -> Metric:
    """Return the metric that `scoring` names; "auto" is NDCG@10 for grades inside queries, else the pairwise error."""
    is_auto = isinstance(scoring, str) and scoring == "auto"
    if isinstance(data, TrainingData):
        if data.importance is not None:
            raise InvalidInputError(
                "Candidates are compared by queries that count alike, so there is no query_importance.",
                "leave it out, or use RankRLSCV, which takes it.",
            )
        by_grades = is_auto and with_qid and is_graded(data.y)
        return get_metric("ndcg@10" if by_grades else "pairwise_error" if is_auto else scoring)
    metric = get_metric("pairwise_error" if is_auto else scoring)
    if metric.base_name not in {"pairwise_error", "concordance"}:
        raise InvalidInputError(
            f"scoring={metric.name!r} needs rows with labels, and pairs have none.",
            "use scoring='pairwise_error' or 'concordance' with fit_pairs.",
        )
    return metric


def labelled_rows(
    data: TrainingData,
    metric: Metric,
    cv: object,
    seed: int,
    eval_set: tuple[Matrix, Floats, Queries] | None,
) -> LabelledRows:
    """Assign rows to folds, and those of one ranking to blocks inside them."""
    X, y, queries, weight = data.design.stored(), data.y, data.queries, data.row_weight
    ids = queries.codes if len(queries) > 1 else None
    if eval_set is not None:
        X_scored, labels, scored = eval_set
        columns = ScaledColumns(X, ids, weight, (X_scored, scored.codes if ids is not None else None))
        assigner = FoldAssigner(labels, scored)
        held = (labels.reshape(-1), scored, blocks_of_rows(assigner, 1, seed + 2))
        fold = np.full(queries.n_rows, -1, dtype=np.int32)
        none = np.zeros(queries.n_rows, dtype=np.int64)
        return LabelledRows(columns, y, queries, weight, metric, [fold], none, None, "", held)
    assigner = assigner_of(data)
    plan = plan_of(cv, data, metric, Sampling(seed, None), rows=assigner)
    fold, n_folds = plan.groups.astype(np.int32), plan.n_folds
    block = (
        blocks_of_rows(assigner, n_folds, seed + 2)
        if len(queries) == 1
        else np.zeros(queries.n_rows, dtype=np.int64)
    )
    folds = [fold]
    if isinstance(cv, str) and cv == "auto":
        again = range(1, _repeats(queries.n_rows * int(X.shape[1])))
        more = (assigner.folds(n_folds, seed + _NEXT_FOLDS * number) for number in again)
        folds += [one for one in more if _leaves_pairs(data, one)]
    columns = ScaledColumns(X, ids, weight)
    return LabelledRows(columns, y, queries, weight, metric, folds, block, splits_of(fold), plan.description)


def _leaves_pairs(data: TrainingData, fold: npt.NDArray[np.int32]) -> bool:
    """Tell whether every fold leaves pairs to train on: where few queries have any, one fold may hold them all."""
    return all(data.has_pairs(0, fold != number) for number in range(int(fold.max()) + 1))


def _repeats(n_entries: int) -> int:
    """Return how often rows are assigned to folds: on little data figures vary much, and cost little."""
    return int(np.clip(_REPEATED // max(n_entries, 1), 1, _REPEATS))


def listed_pairs(
    data: PairData,
    metric: Metric,
    cv: object,
    seed: int,
    eval_set: tuple[Matrix, Preferences] | None,
) -> ListedPairs:
    """Assign pairs to folds, all comparisons of two rows, or of a group, together; rows of equal content are one."""
    X, found, code = data.design.stored(), data.preferences, data.row_codes
    unit, what = _same_two(code[found.winner], code[found.loser], code.size), "pairs"
    groups = None
    if data.groups is not None:
        unit, what, groups = data.groups.codes, "groups", np.asarray(data.groups)
    if eval_set is not None:
        X_scored, scored = eval_set
        columns = ScaledColumns(X, None, None, (X_scored, None))
        return ListedPairs(columns, found, unit, metric, None, "", scored)
    columns = ScaledColumns(X, None, None)
    splitter = as_splitter(cv)
    if splitter is not None:
        edges = np.column_stack([found.winner, found.loser])
        splits = list(read_splits(splitter, edges, None, groups, "pairs"))
        return ListedPairs(columns, found, unit, metric, splits, f"the test sets of {splitter}")
    n_folds = count_folds(cv, int(np.unique(unit).size), what)
    fold = PairAssigner(unit, found.weight).folds(n_folds, seed)
    return ListedPairs(columns, found, unit, metric, splits_of(fold), f"{n_folds} folds of {what}")


def _same_two(winner: Ints, loser: Ints, n_rows: int) -> Ints:
    key = np.minimum(winner, loser) * np.int64(n_rows) + np.maximum(winner, loser)
    return np.unique(key, return_inverse=True)[1].reshape(-1).astype(np.int64)


def read_rows(
    eval_set: object, check_matrix: CheckMatrix, *, with_qid: bool
) -> tuple[Matrix, Floats, Queries] | None:
    """Pass an evaluation set through validation: ``(X, y)`` or ``(X, y, qid)``."""
    if eval_set is None:
        return None
    rows, labels, qid = rows_of_eval_set(eval_set, with_qid=with_qid)
    X = check_matrix(rows)
    return X, check_numbers("y of eval_set", labels, X.shape[0]), check_qid(qid, X.shape[0])


def read_pairs(eval_set: object, check_matrix: CheckMatrix) -> tuple[Matrix, Preferences] | None:
    """Pass an evaluation set of pairs through validation: ``(X, pairs)`` or ``(X, pairs, weight)``."""
    if eval_set is None:
        return None
    given, listed, weight = pairs_of_eval_set(eval_set)
    rows, pairs = read_duels(given, listed)
    X = check_matrix(rows)
    return X, check_pairs(pairs, X.shape[0], weight=weight)
