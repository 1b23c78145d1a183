"""What `cv` means: a plan of what is held out of labelled rows or of listed pairs, the same for every estimator.

Rows of their own to score by are an `EvalSet` instead. Which of them a method of choosing takes, and in which closed
form, is its own affair.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from rankwise.arrays import AnyArray, Bools, Floats, Ints, Rows
from rankwise.data.queries import Queries, encode_queries
from rankwise.exceptions import Change, InvalidInputError, MissingQueriesError
from rankwise.fitting.notices import Notice
from rankwise.holdout.leave_pair_out import counted_rows, pair_forms, refusal
from rankwise.metrics import Metric
from rankwise.problems.training import PairData, TrainingData, TrainingProblem
from rankwise.runtime.progress import in_words
from rankwise.selection.folds import FoldAssigner, PairAssigner, assigner_of, pair_assigner
from rankwise.selection.splits import (
    FOLDS,
    Splitter,
    as_splitter,
    count_folds,
    is_exact_name,
    read_splits,
    requests_groups,
)

__all__ = [
    "Decomposition",
    "Plan",
    "Sampling",
    "has_closed_form",
    "held_out_share",
    "notices_of_time",
    "plan_of",
]

_FOLDS_IN_CLOSED_FORM = 10  # there they cost nothing
_PAIR_METRICS = {"pairwise_error", "concordance", "auc"}
# Pairs times alphas: 300,000 rows with few columns and 21 alphas took 40 minutes.
_PAIRS_PER_SECOND = 4e8
_MANY_PAIRS = 1e10  # from so many on it is worth a word beforehand
# Held-out rows or pairs that score each iteration at most; whole queries of them. On 100,000 rows × 50 columns in 1,000
# queries a choice by 20,000 rows takes 0.4 s of processor time, by all of them 1.0 s, and both models have the same
# error on other rows to five digits; by 2,000 rows it is up to 9e-5 larger.
SCORED_ROWS = 20_000
_MANY_ROWS = 2000  # up to so many rows "auto" holds out every pair of one ranking


class Decomposition(NamedTuple):
    """One decomposition that answers for all alphas: its size and theirs, and whether it is made again for folds."""

    rank: int
    n_alphas: int
    refits: bool
    is_pooled: bool = False  # whether rows of different folds are compared, so that a fold may hold one row


class Sampling(NamedTuple):
    """How folds are seeded, and by how many held-out rows or pairs at most they are scored (None: by all)."""

    seed: int
    limit: int | None


@dataclass(frozen=True)
class Plan:
    """Which rows, or which listed pairs, each fold trains without, and by which of them it is scored.

    Attributes
    ----------
    held, fold : (entries,) int64
        Fold ``fold[k]`` lacks the row or pair ``held[k]``; sorted by fold. Several folds may lack the same pair.
    is_scored : (entries,) bool
        Whether that fold is scored by it: not by rows that weigh nothing, nor, where folds are made of items, by pairs
        between two folds.
    size : int
        How many rows or pairs there are, held out or not.
    description : str
        The same for a reader.
    is_exact : bool
        Whether one decomposition is to answer, in closed form or by refits.
    leaves_pairs : bool
        Whether every pair of rows of the one ranking is held out instead of folds.
    """

    held: Ints
    fold: Ints
    is_scored: Bools
    size: int
    n_folds: int
    description: str = ""
    is_exact: bool = False
    leaves_pairs: bool = False

    @classmethod
    def of_folds(
        cls, fold: npt.NDArray[np.integer], description: str = "", *, is_exact: bool = False
    ) -> Plan:
        """Let each row or pair be left out by one fold, which is scored by it; -1 for what none leaves out."""
        n_folds = int(fold.max(initial=-1)) + 1
        # Numbers of 16 bits are sorted several times as quickly.
        order = np.argsort(fold.astype(np.int16) if n_folds < 1 << 15 else fold, kind="stable")
        held = order[np.searchsorted(fold[order], 0) :]
        own = fold[held].astype(np.int64)
        is_scored = np.ones(held.size, dtype=np.bool_)
        return cls(held, own, is_scored, fold.size, n_folds, description, is_exact)

    @property
    def is_divided(self) -> bool:
        """Whether several folds lack the same, or a fold is not scored by all that it lacks."""
        return bool(np.bincount(self.held).max(initial=0) > 1) or not self.is_scored.all()

    @cached_property
    def groups(self) -> Ints:
        """The one fold that lacks each row or pair, -1 for none."""
        group = np.full(self.size, -1, dtype=np.int64)
        group[self.held] = self.fold
        return group

    @cached_property
    def scored(self) -> Rows:
        """The rows or pairs that some fold is scored by, in increasing order."""
        is_scored = np.zeros(self.size, dtype=np.bool_)
        is_scored[self.held[self.is_scored]] = True
        return np.flatnonzero(is_scored)

    def trained(self, fold: int) -> Bools:
        """Tell which rows or pairs a fold trains on."""
        kept = np.ones(self.size, dtype=np.bool_)
        kept[self.held[self._entries(fold)]] = False
        return kept

    def scoring(self, fold: int) -> Ints:
        """Return the rows or pairs that a fold is scored by."""
        own = self._entries(fold)
        return np.asarray(self.held[own][self.is_scored[own]])

    def _entries(self, fold: int) -> slice:
        first, last = np.searchsorted(self.fold, [fold, fold + 1])
        return slice(int(first), int(last))

    def scoring_queries(self, queries: Queries, rows: Rows, *, pooled: bool) -> Queries:
        """Rows are compared inside a query and, unless pooled, inside a fold: folds have different models."""
        if pooled:
            return queries.subset(rows)
        return encode_queries(queries.codes[rows] * max(self.n_folds, 1) + self.groups[rows])

    def splits_queries(self, queries: Queries) -> bool:
        """Tell whether the rows of a query are in several folds."""
        first = np.full(len(queries), -1, dtype=np.int64)
        first[queries.codes] = self.groups
        return bool((first[queries.codes] != self.groups).any())


def plan_of(
    cv: object,
    data: TrainingProblem,
    metric: Metric,
    sampling: Sampling,
    by: Decomposition | None = None,
    *,
    whole_components: bool = False,
    rows: FoldAssigner | None = None,
) -> Plan:
    """Read `cv`.

    Parameters
    ----------
    by : Decomposition or None
        What "auto" and numbers of folds are to be exact by; None for methods that only iterate.
    whole_components : bool
        Whether "auto" divides no connected component of the rows either, where there are several; for pairs.
    rows : FoldAssigner, optional
        That of labelled rows, where the caller goes on to assign by it: the content of X is looked at once.
    """
    if is_exact_name(cv) and by is None:
        raise InvalidInputError(
            f"cv={cv!r} takes a decomposition, and this solver only multiplies.",
            "use cv=5 or an eval_set, or solver='eigen' where there is one.",
            Change("cv"),
            Change("eval_set"),
        )
    splitter, why_not = as_splitter(cv), ""
    if isinstance(data, TrainingData):
        rows = assigner_of(data) if rows is None else rows
        if isinstance(cv, str) and cv == "auto":
            cv, why_not = _by_default(data, rows, metric, by)
        if isinstance(cv, str) and by is not None:
            return _exact_rows(cv, data, rows, metric, by)
    if splitter is not None:
        plan = _of_splitter(splitter, data)
    else:
        assigner: FoldAssigner | PairAssigner | None = rows
        if isinstance(data, PairData):
            assigner = pair_assigner(cv, data, whole_components=whole_components)
            if is_exact_name(cv) or (cv == "auto" and by is not None and assigner.unit != "pairs"):
                return _one_at_a_time(assigner)
        assert assigner is not None
        n_folds = count_folds(cv, assigner.n_units, assigner.unit)
        plan = Plan.of_folds(assigner.folds(n_folds, sampling.seed), f"{n_folds} folds of {assigner.unit}")
    plan = replace(plan, description=plan.description + why_not)
    if isinstance(data, TrainingData):
        plan = _without_weightless(plan, data)
        is_exact = by is not None and (
            by.refits or has_closed_form(data) or not plan.splits_queries(data.queries)
        )
    else:
        is_exact = by is not None
        if is_exact and plan.is_divided:
            raise InvalidInputError(
                "cv leaves pairs out of several folds, or out of training without scoring by them.",
                "use solver='cg', which takes any folds; or PreferenceKFold(by='pairs'), KFold or GroupKFold.",
            )
    return replace(plan, is_exact=True) if is_exact else _sampled(plan, data, rows, sampling)


def notices_of_time(plan: Plan, data: TrainingProblem, by: Decomposition | None) -> list[Notice]:
    """Say beforehand about how long leave-pair-out takes, where that is more than a minute or so."""
    if by is None or isinstance(data, PairData) or not plan.leaves_pairs:
        return []
    n_pairs = sum(levels.n_pairs for levels in data.levels)
    if n_pairs * by.n_alphas < _MANY_PAIRS:
        return []
    seconds = n_pairs * by.n_alphas / _PAIRS_PER_SECOND
    what = (
        f"cv='leave-pair-out' scores {n_pairs:,} pairs with each of {by.n_alphas} alphas, which takes about "
    )
    return [
        Notice(f"{what}{in_words(seconds)} or more", "use cv=10, which scores each row once", UserWarning)
    ]


def held_out_share(data: TrainingProblem, share: float, seed: int) -> Plan:
    """Hold out a share of the queries, of the rows where there is one ranking, or of the pairs, as a single fold."""
    assigner = assigner_of(data)
    if assigner.unit == "pairs" and assigner.n_units < 2:
        raise InvalidInputError(
            "All pairs compare the same two rows, so none can be held out to tell when to stop.",
            "pass eval_set=(X_val, pairs_val), or set early_stopping=False.",
        )
    return Plan.of_folds(np.where(assigner.share(share, seed), 0, -1))


def has_closed_form(data: TrainingData) -> bool:
    """Tell whether folds of the rows of one ranking have a closed form: ridge regression with a free intercept."""
    has_no_ties = all(levels.value.size == data.queries.n_rows for levels in data.levels)
    is_ridge = data.cost == "magnitude" and (data.ties == "include" or has_no_ties)
    return bool(is_ridge and data.query_weight == "size" and assigner_of(data).unit == "rows")


def _of_splitter(splitter: Splitter, data: TrainingProblem) -> Plan:
    split: tuple[Floats | Ints, Floats | None, AnyArray | None, str]
    if isinstance(data, PairData):
        groups = None if data.groups is None else np.asarray(data.groups)
        split = (np.column_stack([data.preferences.winner, data.preferences.loser]), None, groups, "pairs")
    else:
        queries = data.queries.codes if len(data.queries) > 1 else None
        split = (np.zeros((data.queries.n_rows, 1)), data.y, queries, "rows")
        if queries is None and requests_groups(splitter):
            raise MissingQueriesError(
                f"cv={splitter} splits by query, and there is one ranking.",
                "pass qid, or use cv=5 or sklearn.model_selection.KFold(5), which split rows.",
            )
    size = len(split[0])
    absent, is_tested = [], []
    for train, test in read_splits(splitter, *split):
        absent.append(np.setdiff1d(np.arange(size), train, assume_unique=True))
        is_tested.append(np.isin(absent[-1], test))
    fold = np.repeat(np.arange(len(absent)), [own.size for own in absent])
    held, is_scored = np.concatenate(absent), np.concatenate(is_tested)
    plan = Plan(held, fold, is_scored, size, len(absent), f"the test sets of {splitter}")
    if isinstance(data, TrainingData) and plan.is_divided:
        raise InvalidInputError(
            f"cv={splitter} holds a row out twice, or leaves one out of both sides.",
            "use KFold, GroupKFold or QueryKFold, whose test sets do not overlap.",
        )
    return plan


def _sampled(plan: Plan, data: TrainingProblem, rows: FoldAssigner | None, sampling: Sampling) -> Plan:
    """Score only by some of the rows or pairs, assigned like a fold, where there are more."""
    n_scored = int(plan.is_scored.sum())
    if sampling.limit is None or n_scored <= sampling.limit:
        return plan
    if rows is not None:
        chosen, what = rows.sample(sampling.limit, sampling.seed + 1), "rows"
    else:
        chosen, what = assigner_of(data).share(sampling.limit / n_scored, sampling.seed + 1), "pairs"
    is_scored = plan.is_scored & chosen[plan.held]
    description = f"{plan.description}, scored by {int(is_scored.sum())} of {n_scored} {what}"
    return replace(plan, is_scored=is_scored, description=description)


def _by_default(
    data: TrainingData, assigner: FoldAssigner, metric: Metric, by: Decomposition | None
) -> tuple[object, str]:
    """Return what "auto" is; where it would leave out pairs but for the price, also why not."""
    n_units = assigner.n_units
    if by is None:
        return min(FOLDS, n_units), ""
    if assigner.unit == "queries":
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


def _exact_rows(
    cv: str, data: TrainingData, assigner: FoldAssigner, metric: Metric, by: Decomposition
) -> Plan:
    several = len(data.queries) > 1
    if cv == "leave-query-out":
        if not several:
            raise InvalidInputError(
                "cv='leave-query-out' needs two queries or more, and all rows form one ranking.",
                "pass qid, or use cv='leave-pair-out' or a number of folds.",
            )
        description = f"leave-query-out over {assigner.n_units} queries"
        return _without_weightless(Plan.of_folds(data.queries.codes, description, is_exact=True), data)
    if several:
        raise InvalidInputError(
            "cv='leave-pair-out' is for one global ranking, and qid names several queries.",
            "use cv='leave-query-out'.",
        )
    n_rows = counted_rows(data).size
    if n_rows < 3:
        raise InvalidInputError(
            f"cv='leave-pair-out' leaves nothing to train on from {n_rows} rows.",
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
            "use cv=10, or ties='include' with cost='magnitude' or 'unit'.",
        )
    no_folds = Plan.of_folds(
        np.full(data.queries.n_rows, -1), f"leave-pair-out over {n_rows} rows", is_exact=True
    )
    return replace(no_folds, leaves_pairs=True)


def _without_weightless(plan: Plan, data: TrainingData) -> Plan:
    """Rows that weigh nothing neither train nor score."""
    weight = data.fold_weight
    return plan if weight is None else replace(plan, is_scored=plan.is_scored & (weight[plan.held] > 0))


def _one_at_a_time(assigner: PairAssigner) -> Plan:
    """Hold out each unit in turn, by one decomposition."""
    n_units, what = int(assigner.codes.max()) + 1, assigner.unit
    cv = "leave-pair-out" if what == "pairs" else "leave-query-out"
    if n_units < 2:
        raise InvalidInputError(
            f"cv={cv!r} needs pairs that fall into groups, and all of them are connected.",
            "pass groups, or use a number of folds.",
        )
    named = {"pairs": "couples of rows", "groups": "groups of pairs"}.get(what, what)
    return Plan.of_folds(assigner.codes, f"{cv} over {n_units} {named}", is_exact=True)
