"""What `cv` means: folds of queries, of rows, of pairs or of groups of them, or the test sets of a splitter."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from rankwise.arrays import Ints
from rankwise.data.validation import check_choice, check_count, check_qid
from rankwise.exceptions import Change, InvalidInputError, MissingQueriesError
from rankwise.problems.folds import assign_pairs, share_as_folds
from rankwise.problems.training import PairData, TrainingData
from rankwise.selection.pair_systems import LeftOutPairs
from rankwise.selection.splits import read_splits

__all__ = [
    "as_splitter",
    "check_cv",
    "folds_of_pairs",
    "folds_of_rows",
    "folds_that_score",
    "groups_of_pairs",
    "held_out_pairs",
    "scoring_rows",
    "scoring_share",
]

_FOLDS = 5


def check_cv(cv: Any) -> None:
    """Raise unless `cv` is "auto", a number of folds, a splitter, or a list of (train, test)."""
    if isinstance(cv, str):
        check_choice("cv", cv, ("auto",))
    elif not _is_splitter(as_splitter(cv)):
        check_count("cv", cv, optional=False)
        if cv == 1:
            raise InvalidInputError("cv=1 leaves nothing to train on.", "use cv of at least 2.")


def folds_of_rows(cv: Any, data: TrainingData, seed: int) -> tuple[npt.NDArray[np.int32], str]:
    """Give every row its fold, -1 for rows that no splitter holds out; and say in words what was done."""
    cv = as_splitter(cv)
    if _is_splitter(cv):
        return _rows_of_splitter(cv, data), f"the test sets of {cv}"
    n_folds = _count(cv, data.assigner.n_units, data.assigner.unit)
    return data.assigner.folds(n_folds, seed), f"{n_folds} folds of {data.assigner.unit}"


def scoring_rows(
    data: TrainingData, fold: npt.NDArray[np.int32], limit: int | None, seed: int
) -> tuple[Ints, str]:
    """Choose which held-out rows to score by, all or a sample of about `limit`; and say in words which sample."""
    weight = data.fold_weight
    held = fold >= 0 if weight is None else (fold >= 0) & (weight > 0)
    n_held = int(held.sum())
    if limit is None or n_held <= limit:
        return np.flatnonzero(held), ""
    held &= data.assigner.sample(limit, seed + 1)
    return np.flatnonzero(held), f", judged by {int(held.sum())} of {n_held} rows"


def folds_of_pairs(cv: Any, data: PairData, groups: Any, seed: int) -> tuple[LeftOutPairs, str]:
    """Say which pairs each fold lacks and is scored by; and in words what was done."""
    cv = as_splitter(cv)
    if _is_splitter(cv):
        return _pairs_of_splitter(cv, data, groups), f"the test sets of {cv}"
    unit = (
        _same_rows(data)
        if groups is None
        else check_qid(groups, len(data.preferences), name="groups", what="group", beside="pairs").codes
    )
    what = "pairs" if groups is None else "groups"
    n_folds = _count(cv, _n_units(data, unit), what)
    return LeftOutPairs.from_folds(_assign(data, unit, n_folds, seed)), f"{n_folds} folds of {what}"


def groups_of_pairs(cv: str, data: PairData, groups: Any) -> tuple[Ints, str]:
    """Number the groups of pairs that are held out exactly, one at a time; and say in words what they are."""
    if cv == "leave-pair-out":
        group, what = _same_rows(data), "leave-pair-out over {} couples of rows"
    elif groups is not None:
        group = check_qid(groups, len(data.preferences), name="groups", what="group", beside="pairs").codes
        what = "leave-query-out over {} groups of pairs"
    else:
        winner, loser = data.preferences.winner, data.preferences.loser
        n_rows = data.design.shape[0]
        edges = sp.coo_array((np.ones(winner.size), (winner, loser)), shape=(n_rows, n_rows))
        component = connected_components(edges, directed=False)[1][winner]
        group = np.unique(component, return_inverse=True)[1].reshape(-1).astype(np.int64)
        what = "leave-query-out over {} connected components"
    n_groups = int(group.max()) + 1
    if n_groups < 2:
        raise InvalidInputError(
            f"cv={cv!r} needs pairs that fall into groups, and all of them are connected.",
            "pass groups, or use a number of folds.",
        )
    return group, what.format(n_groups)


def held_out_pairs(data: PairData, share: float, seed: int) -> LeftOutPairs:
    """Hold out a share of the pairs, all comparisons of the same two rows together."""
    unit = _same_rows(data)
    n_units = _n_units(data, unit)
    if n_units < 2:
        raise InvalidInputError(
            "All pairs compare the same two rows, so none can be held out to tell when to stop.",
            "pass eval_set=(X_val, pairs_val), or set early_stopping=False.",
        )
    fold = _assign(data, unit, share_as_folds(share, n_units), seed)
    return LeftOutPairs.from_folds(np.where(fold == 0, 0, -1))


def scoring_share(
    data: PairData, left_out: LeftOutPairs, limit: int | None, seed: int
) -> tuple[LeftOutPairs, str]:
    """Score only by about `limit` of the pairs, assigned like a fold, where there are more; and say so in words."""
    n_scored = int(left_out.is_scored.sum())
    if limit is None or n_scored <= limit:
        return left_out, ""
    unit = _same_rows(data)
    n_folds = share_as_folds(limit / n_scored, _n_units(data, unit))
    chosen = _assign(data, unit, n_folds, seed + 1) == 0
    is_scored = left_out.is_scored & chosen[left_out.pair]
    words = f", judged by {int(is_scored.sum())} of {n_scored} pairs"
    return LeftOutPairs(left_out.pair, left_out.fold, is_scored, left_out.n_folds), words


def folds_that_score(data: PairData, left_out: LeftOutPairs) -> list[int]:
    """Return the folds by whose pairs a model can be scored; all of them where there is none."""
    weight = data.scoring_weight[left_out.pair] * left_out.is_scored
    found = np.flatnonzero(np.bincount(left_out.fold, weight, left_out.n_folds) > 0)
    return found.tolist() or list(range(left_out.n_folds))


def as_splitter(cv: Any) -> Any:
    """Return a list of (train, test) as a splitter; anything else as it is."""
    return _Listed(cv) if isinstance(cv, (list, tuple)) else cv


class _Listed:
    """Splits that the caller has made; scikit-learn's own class would cost a twentieth of `import rankwise`."""

    def __init__(self, splits: Any) -> None:
        self._splits = splits

    def split(self, X: Any, y: Any = None, groups: Any = None) -> Any:
        """Return the splits."""
        return self._splits

    def __str__(self) -> str:
        return f"{len(self._splits)} given splits"


def _is_splitter(cv: Any) -> bool:
    return not isinstance(cv, str) and hasattr(cv, "split")


def _wants_groups(splitter: Any) -> bool:
    """Tell whether a splitter looks at groups; those of scikit-learn that do not warn about them."""
    if not hasattr(splitter, "get_metadata_routing"):
        return not isinstance(splitter, _Listed)
    return "groups" in splitter.get_metadata_routing().split.requests


def _count(cv: Any, n_units: int, unit: str) -> int:
    n_folds = min(_FOLDS, n_units) if cv == "auto" else int(cv)
    if n_folds > n_units or n_folds < 2:
        raise InvalidInputError(
            f"cv={n_folds} is more than the {n_units} {unit} there are."
            if n_folds > n_units
            else f"There is one of {unit} only, which cannot be split.",
            f"use cv <= {n_units}." if n_units > 1 else "pass an eval_set.",
            Change("cv", n_units),
            Change("eval_set"),
        )
    return n_folds


def _same_rows(data: PairData) -> Ints:
    """Number the pairs so that all comparisons of the same two rows have one number."""
    winner, loser = data.preferences.winner, data.preferences.loser
    key = np.minimum(winner, loser) * np.int64(data.design.shape[0]) + np.maximum(winner, loser)
    return np.unique(key, return_inverse=True)[1].reshape(-1).astype(np.int64)


def _n_units(data: PairData, unit: Ints) -> int:
    """Count the units that have a pair which weighs something."""
    return int(np.unique(unit[data.graph.pair_weight > 0]).size)


def _assign(data: PairData, unit: Ints, n_folds: int, seed: int) -> npt.NDArray[np.int32]:
    graph = data.graph
    return assign_pairs(
        data.design, graph.winner, graph.loser, unit, n_folds, seed, graph.pair_weight, graph.difference
    )


def _rows_of_splitter(splitter: Any, data: TrainingData) -> npt.NDArray[np.int32]:
    n_rows = data.queries.n_rows
    fold = np.full(n_rows, -1, dtype=np.int32)
    groups = None
    if _wants_groups(splitter):
        groups = data.queries.codes
        if len(data.queries) == 1:
            raise MissingQueriesError(
                f"cv={splitter} splits by query, and there is one ranking.",
                "pass qid, or use cv=5 or sklearn.model_selection.KFold(5), which split rows.",
            )
    splits = splitter.split(np.zeros((n_rows, 1)), data.y, groups)
    for number, (train, test) in enumerate(read_splits(splits, n_rows, splitter, "rows")):
        if (fold[test] >= 0).any() or len(train) + len(test) != n_rows:
            raise InvalidInputError(
                f"cv={splitter} holds a row out twice, or leaves one out of both sides.",
                "use KFold, GroupKFold or QueryKFold, whose test sets do not overlap.",
            )
        fold[test] = number
    return fold


def _pairs_of_splitter(splitter: Any, data: PairData, groups: Any) -> LeftOutPairs:
    edges = np.column_stack([data.preferences.winner, data.preferences.loser])
    pair, fold, is_scored = [], [], []
    given = groups if _wants_groups(splitter) else None
    splits = splitter.split(edges, None, given)
    for number, (train, test) in enumerate(read_splits(splits, len(edges), splitter, "pairs")):
        absent = np.ones(len(edges), dtype=np.bool_)
        absent[train] = False
        tested = np.zeros(len(edges), dtype=np.bool_)
        tested[test] = True
        pair.append(np.flatnonzero(absent))
        fold.append(np.full(pair[-1].size, number, dtype=np.int64))
        is_scored.append(tested[absent])
    return LeftOutPairs(np.concatenate(pair), np.concatenate(fold), np.concatenate(is_scored), len(pair))
