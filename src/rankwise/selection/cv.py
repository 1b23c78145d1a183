"""What `cv` means, for every estimator: the one reader of names, numbers of folds, splitters and lists of splits.

A plan says what is held out of labelled rows (`RowPlan`) or of listed pairs (`PairPlan`); rows of their own to score by
are an `EvalSet` instead. Which of them a method of choosing takes, and in which closed form, is its own affair.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from rankwise.arrays import ArrayLike, Bools, Floats, Ints, Rows
from rankwise.data.queries import Queries, encode_queries
from rankwise.data.validation import check_choice, check_count, check_qid
from rankwise.exceptions import Change, InvalidInputError, MissingQueriesError
from rankwise.metrics import Metric
from rankwise.problems.folds import assign_pairs, share_as_folds
from rankwise.problems.training import PairData, TrainingData
from rankwise.selection.leave_pair_out import counted_rows, pair_forms, refusal

__all__ = [
    "EXACT_CV",
    "Decomposition",
    "LeftOutPairs",
    "PairPlan",
    "RowPlan",
    "Sampling",
    "check_cv",
    "has_closed_form",
    "held_out_pairs",
    "held_out_rows",
    "is_exact_name",
    "plan_pairs",
    "plan_rows",
]

EXACT_CV = ("leave-query-out", "leave-pair-out")
# What "auto" makes where it neither leaves out queries nor pairs. In closed form folds cost nothing.
_FOLDS, _FOLDS_IN_CLOSED_FORM = 5, 10
_PAIR_METRICS = {"pairwise_error", "concordance", "auc"}
_MANY_ROWS = 2000  # up to so many rows "auto" holds out every pair of one ranking


class Splitter(Protocol):
    """Anything with the method of scikit-learn's splitters."""

    def split(self, X: object, y: object = None, groups: object = None) -> Iterable[tuple[object, object]]:
        """Yield training and test positions."""


class Decomposition(NamedTuple):
    """One decomposition that answers for all alphas: its size and theirs, and whether it is made again for folds."""

    rank: int
    n_alphas: int
    refits: bool


class Sampling(NamedTuple):
    """How folds are seeded, and by how many held-out rows or pairs at most they are scored (None: by all)."""

    seed: int
    limit: int | None


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


@dataclass(frozen=True)
class LeftOutPairs:
    """Which pairs each fold trains without, and by which of them it is scored.

    Attributes
    ----------
    pair, fold : (entries,) int64
        Fold ``fold[k]`` lacks pair ``pair[k]``; sorted by fold. Several folds may lack the same pair.
    is_scored : (entries,) bool
        Whether that fold is scored by the pair. Where folds are made of items, none is by pairs between two folds.
    n_folds : int
    """

    pair: Ints
    fold: Ints
    is_scored: Bools
    n_folds: int

    @classmethod
    def from_folds(cls, fold: npt.NDArray[np.integer]) -> LeftOutPairs:
        """Let each pair be left out by one fold, which is scored by it; -1 for pairs that none leaves out."""
        order = np.argsort(fold, kind="stable")
        pair = order[np.searchsorted(fold[order], 0) :]
        is_scored = np.ones(pair.size, dtype=np.bool_)
        return cls(pair, fold[pair].astype(np.int64), is_scored, int(fold.max(initial=-1)) + 1)

    def trained(self, fold: int, n_pairs: int) -> Bools:
        """Tell which pairs a fold trains on."""
        kept = np.ones(n_pairs, dtype=np.bool_)
        kept[self.pair[self.fold == fold]] = False
        return kept

    def scoring(self, fold: int) -> Ints:
        """Return the pairs that a fold is scored by."""
        return np.asarray(self.pair[(self.fold == fold) & self.is_scored])


@dataclass(frozen=True)
class PairPlan:
    """What is held out of listed pairs."""

    left_out: LeftOutPairs
    description: str
    is_exact: bool = False

    def folds_that_score(self, data: PairData) -> list[int]:
        """Return the folds by whose pairs a model can be scored; all of them where there is none."""
        out = self.left_out
        weight = data.scoring_weight[out.pair] * out.is_scored
        found = np.flatnonzero(np.bincount(out.fold, weight, out.n_folds) > 0)
        return found.tolist() or list(range(out.n_folds))

    def groups(self, n_pairs: int) -> Ints:
        """Return the fold that lacks each pair, -1 for none: what a closed form takes."""
        out = self.left_out
        if np.unique(out.pair).size < out.pair.size or not out.is_scored.all():
            raise InvalidInputError(
                "cv leaves pairs out of several folds, or out of training without scoring by them.",
                "use solver='cg', which takes any folds; or PreferenceKFold(by='pairs'), KFold or GroupKFold.",
            )
        group = np.full(n_pairs, -1, dtype=np.int64)
        group[out.pair] = out.fold
        return group


def is_exact_name(cv: object) -> bool:
    """Tell whether `cv` names an exact hold-out, which takes a decomposition."""
    return isinstance(cv, str) and cv in EXACT_CV


def check_cv(cv: object) -> None:
    """Raise unless `cv` is a name, a number of folds, a splitter, or a list of (train, test)."""
    if isinstance(cv, str):
        check_choice("cv", cv, ("auto", *EXACT_CV))
    elif not hasattr(_as_splitter(cv), "split"):
        check_count("cv", cv, optional=False)
        if cv == 1:
            raise InvalidInputError("cv=1 leaves nothing to train on.", "use cv of at least 2.")


# --- labelled rows ---


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
    splitter = _as_splitter(cv)
    if splitter is not None:
        fold, description = _rows_of_splitter(splitter, data), f"the test sets of {splitter}"
    else:
        n_folds = _count(cv, data.assigner.n_units, data.assigner.unit)
        fold = data.assigner.folds(n_folds, sampling.seed).astype(np.int64)
        description = f"{n_folds} folds of {data.assigner.unit}"
    plan = RowPlan(fold, np.flatnonzero(_is_held(fold, data)), description + why_not)
    is_whole = by is not None and not plan.splits_queries(data.queries)
    if by is not None and (is_whole or by.refits or has_closed_form(data)):
        return replace(plan, is_exact=True)
    return _sampled(plan, data, sampling)


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
        return min(_FOLDS, n_units), ""
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
    return min(_FOLDS_IN_CLOSED_FORM if is_exact else _FOLDS, max(n_units // 2, 2)), why_not


def _exact_rows(cv: str, data: TrainingData, metric: Metric, by: Decomposition | None) -> RowPlan:
    by = _require_decomposition(cv, by)
    n_rows, several = counted_rows(data).size, len(data.queries) > 1
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
    refused = refusal(pair_forms(data, by.rank, by.n_alphas), is_asked_for=True)
    if refused is not None:
        raise InvalidInputError(
            f"cv='leave-pair-out' {refused}.",
            "use a number of folds, which refits where it must; ties='include' with cost='magnitude' or 'unit'; or "
            "round the labels.",
        )
    nobody = np.full(data.queries.n_rows, -1, dtype=np.int64)
    description = f"leave-pair-out over {n_rows} rows"
    return RowPlan(nobody, counted_rows(data), description, is_exact=True, leaves_pairs=True)


def _is_held(fold: Rows, data: TrainingData) -> Bools:
    """Rows that weigh nothing neither train nor score."""
    held = fold >= 0
    if data.fold_weight is not None:
        held &= data.fold_weight > 0
    return held


def _sampled(plan: RowPlan, data: TrainingData, sampling: Sampling) -> RowPlan:
    n_held = plan.scored.size
    if sampling.limit is None or n_held <= sampling.limit:
        return plan
    drawn = data.assigner.sample(sampling.limit, sampling.seed + 1)
    scored = plan.scored[drawn[plan.scored]]
    description = f"{plan.description}, judged by {scored.size} of {n_held} rows"
    return replace(plan, scored=scored, description=description)


def _rows_of_splitter(splitter: Splitter, data: TrainingData) -> Rows:
    n_rows = data.queries.n_rows
    fold = np.full(n_rows, -1, dtype=np.int64)
    groups = data.queries.codes if len(data.queries) > 1 else None
    if groups is None and _requests_groups(splitter):
        raise MissingQueriesError(
            f"cv={splitter} splits by query, and there is one ranking.",
            "pass qid, or use cv=5 or sklearn.model_selection.KFold(5), which split rows.",
        )
    splits = _splits(splitter, np.zeros((n_rows, 1)), data.y, groups, "rows")
    for number, (train, test) in enumerate(splits):
        if (fold[test] >= 0).any() or len(train) + len(test) != n_rows:
            raise InvalidInputError(
                f"cv={splitter} holds a row out twice, or leaves one out of both sides.",
                "use KFold, GroupKFold or QueryKFold, whose test sets do not overlap.",
            )
        fold[test] = number
    return fold


# --- listed pairs ---


def plan_pairs(
    cv: object,
    data: PairData,
    groups: ArrayLike | None,
    sampling: Sampling,
    *,
    is_exact: bool = False,
    whole_components: bool = False,
) -> PairPlan:
    """Read `cv` for listed pairs.

    Parameters
    ----------
    groups : array-like of shape (pairs,), optional
        What must not be divided.
    is_exact : bool
        Whether one decomposition is to answer.
    whole_components : bool
        Whether "auto" divides no connected component of the rows either, where there are several.
    """
    is_auto = isinstance(cv, str) and cv == "auto"
    components = is_auto and whole_components and groups is None and data.graph.n_components > 1
    if is_auto and is_exact and (groups is not None or components):
        cv = "leave-query-out"
    if is_exact_name(cv):
        if not is_exact:
            _require_decomposition(str(cv), None)
        return _exact_pairs(str(cv), data, groups)
    splitter = _as_splitter(cv)
    if splitter is not None:
        out, description = _pairs_of_splitter(splitter, data, groups), f"the test sets of {splitter}"
    else:
        unit, what = _same_rows(data), "pairs"
        if groups is not None:
            unit, what = _group_codes(data, groups), "groups"
        elif components:
            unit, what = _components(data), "connected components"
        n_folds = _count("auto" if is_auto else cv, _n_units(data, unit), what)
        out = LeftOutPairs.from_folds(_assign(data, unit, n_folds, sampling.seed))
        description = f"{n_folds} folds of {what}"
    plan = PairPlan(out, description, is_exact)
    return plan if is_exact else _sampled_pairs(plan, data, sampling)


def held_out_pairs(data: PairData, share: float, seed: int) -> PairPlan:
    """Hold out a share of the pairs as a single fold, all comparisons of the same two rows together."""
    unit = _same_rows(data)
    n_units = _n_units(data, unit)
    if n_units < 2:
        raise InvalidInputError(
            "All pairs compare the same two rows, so none can be held out to tell when to stop.",
            "pass eval_set=(X_val, pairs_val), or set early_stopping=False.",
        )
    fold = _assign(data, unit, share_as_folds(share, n_units), seed)
    return PairPlan(LeftOutPairs.from_folds(np.where(fold == 0, 0, -1)), "")


def _exact_pairs(cv: str, data: PairData, groups: ArrayLike | None) -> PairPlan:
    """Hold out groups of pairs, one at a time."""
    if cv == "leave-pair-out":
        group, what = _same_rows(data), "leave-pair-out over {} couples of rows"
    elif groups is not None:
        group, what = _group_codes(data, groups), "leave-query-out over {} groups of pairs"
    else:
        group, what = _components(data), "leave-query-out over {} connected components"
    n_groups = int(group.max()) + 1
    if n_groups < 2:
        raise InvalidInputError(
            f"cv={cv!r} needs pairs that fall into groups, and all of them are connected.",
            "pass groups, or use a number of folds.",
        )
    return PairPlan(LeftOutPairs.from_folds(group), what.format(n_groups), is_exact=True)


def _sampled_pairs(plan: PairPlan, data: PairData, sampling: Sampling) -> PairPlan:
    """Score only by some of the pairs, assigned like a fold, where there are more."""
    out = plan.left_out
    n_scored = int(out.is_scored.sum())
    if sampling.limit is None or n_scored <= sampling.limit:
        return plan
    unit = _same_rows(data)
    n_folds = share_as_folds(sampling.limit / n_scored, _n_units(data, unit))
    chosen = _assign(data, unit, n_folds, sampling.seed + 1) == 0
    is_scored = out.is_scored & chosen[out.pair]
    description = f"{plan.description}, judged by {int(is_scored.sum())} of {n_scored} pairs"
    return replace(plan, left_out=replace(out, is_scored=is_scored), description=description)


def _group_codes(data: PairData, groups: ArrayLike) -> Ints:
    return check_qid(groups, len(data.preferences), name="groups", what="group", beside="pairs").codes


def _components(data: PairData) -> Ints:
    """Number the pairs by the connected component of the rows that they are in."""
    winner, loser, n_rows = data.preferences.winner, data.preferences.loser, data.design.shape[0]
    edges = sp.coo_array((np.ones(winner.size), (winner, loser)), shape=(n_rows, n_rows))
    component = connected_components(edges, directed=False)[1][winner]
    return np.unique(component, return_inverse=True)[1].reshape(-1).astype(np.int64)


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
    weight: Floats = graph.pair_weight
    return assign_pairs(data.design, graph.winner, graph.loser, unit, n_folds, seed, weight, graph.difference)


def _pairs_of_splitter(splitter: Splitter, data: PairData, groups: ArrayLike | None) -> LeftOutPairs:
    edges = np.column_stack([data.preferences.winner, data.preferences.loser])
    given = groups if _requests_groups(splitter, unknown=True) else None
    pair, fold, is_scored = [], [], []
    for number, (train, test) in enumerate(_splits(splitter, edges, None, given, "pairs")):
        absent = np.ones(len(edges), dtype=np.bool_)
        absent[train] = False
        tested = np.zeros(len(edges), dtype=np.bool_)
        tested[test] = True
        pair.append(np.flatnonzero(absent))
        fold.append(np.full(pair[-1].size, number, dtype=np.int64))
        is_scored.append(tested[absent])
    return LeftOutPairs(np.concatenate(pair), np.concatenate(fold), np.concatenate(is_scored), len(pair))


# --- numbers of folds, and splitters ---


def _require_decomposition(cv: str, by: Decomposition | None) -> Decomposition:
    if by is None:
        raise InvalidInputError(
            f"cv={cv!r} takes a decomposition, and this solver only multiplies.",
            "use cv=5 or an eval_set, or solver='eigen' where there is one.",
            Change("cv"),
            Change("eval_set"),
        )
    return by


def _count(cv: object, n_units: int, unit: str) -> int:
    n_folds = min(_FOLDS, n_units) if cv == "auto" else int(str(cv))
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


class _Listed:
    """Splits that the caller has made; scikit-learn's own class would cost a twentieth of `import rankwise`."""

    def __init__(self, splits: list[tuple[object, object]] | tuple[tuple[object, object], ...]) -> None:
        self._splits = splits

    def split(self, X: object, y: object = None, groups: object = None) -> Iterable[tuple[object, object]]:
        """Return the splits."""
        return self._splits

    def __str__(self) -> str:
        return f"{len(self._splits)} given splits"


def _as_splitter(cv: object) -> Splitter | None:
    """Return a splitter, or a list of (train, test) as one; None for names and numbers."""
    if isinstance(cv, (list, tuple)):
        return _Listed(cv)
    found: Splitter | None = cv if not isinstance(cv, str) and hasattr(cv, "split") else None
    return found


def _requests_groups(splitter: Splitter, *, unknown: bool = False) -> bool:
    """Tell whether a splitter looks at groups; `unknown` where it does not say.

    Those of scikit-learn that do not look warn about groups.
    """
    if isinstance(splitter, _Listed):
        return False
    routing = getattr(splitter, "get_metadata_routing", None)
    return unknown if routing is None else "groups" in routing().split.requests


def _splits(
    splitter: Splitter, X: object, y: object, groups: object, unit: str
) -> Iterator[tuple[Ints, Ints]]:
    """Yield training and test positions, in increasing order and none of them on both sides."""
    n_units = len(X)  # type: ignore[arg-type]
    given = groups if _requests_groups(splitter, unknown=True) else None
    try:
        splits = list(splitter.split(X, y, given))
    except InvalidInputError:
        raise
    except (TypeError, ValueError) as error:
        raise InvalidInputError(
            f"cv={splitter} cannot split {n_units} {unit} ({error}).",
            "pass the groups that it asks for, or use cv=5, KFold or PreferenceKFold.",
        ) from error
    if not splits:
        raise InvalidInputError(f"cv={splitter} makes no folds.", "use cv=5.")
    for split in splits:
        try:
            train, test = (_positions(side, n_units) for side in split)
        except (IndexError, TypeError, ValueError) as error:
            raise InvalidInputError(
                f"cv={splitter} holds a split that is no pair of positions of {unit} ({error}).",
                f"make every split (train, test), two arrays of positions from 0 to {n_units - 1}, or two masks.",
            ) from error
        if np.intersect1d(train, test, assume_unique=True).size:
            raise InvalidInputError(
                f"cv={splitter} trains on {unit} that it tests.", "use KFold, GroupKFold or PreferenceKFold."
            )
        yield train, test


def _positions(side: object, n_units: int) -> Ints:
    chosen = np.asarray(side)
    if chosen.size == 0:
        return np.empty(0, dtype=np.int64)
    if chosen.ndim != 1:
        raise ValueError(f"an array of shape {chosen.shape}")
    return np.unique(np.arange(n_units)[chosen])
