"""What `cv` means for listed pairs: which of them each fold trains without, and by which it is scored."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from rankwise.arrays import ArrayLike, Bools, Ints
from rankwise.data.parameters import EXACT_CV
from rankwise.data.validation import check_qid
from rankwise.exceptions import InvalidInputError
from rankwise.problems.folds import assign_pairs, share_as_folds
from rankwise.problems.training import PairData
from rankwise.selection.splits import (
    Sampling,
    Splitter,
    as_splitter,
    count_folds,
    read_splits,
    require_decomposition,
)

__all__ = ["PairPlan", "held_out_pairs", "plan_pairs"]


@dataclass(frozen=True)
class PairPlan:
    """Which listed pairs each fold trains without, and by which of them it is scored.

    Attributes
    ----------
    pair, fold : (entries,) int64
        Fold ``fold[k]`` lacks pair ``pair[k]``; sorted by fold. Several folds may lack the same pair.
    is_scored : (entries,) bool
        Whether that fold is scored by the pair. Where folds are made of items, none is by pairs between two folds.
    description : str
        The same for a reader.
    is_exact : bool
        Whether one decomposition is to answer.
    """

    pair: Ints
    fold: Ints
    is_scored: Bools
    n_folds: int
    description: str = ""
    is_exact: bool = False

    @classmethod
    def of_folds(
        cls, fold: npt.NDArray[np.integer], description: str = "", *, is_exact: bool = False
    ) -> PairPlan:
        """Let each pair be left out by one fold, which is scored by it; -1 for pairs that none leaves out."""
        order = np.argsort(fold, kind="stable")
        pair = order[np.searchsorted(fold[order], 0) :]
        own, n_folds = fold[pair].astype(np.int64), int(fold.max(initial=-1)) + 1
        return cls(pair, own, np.ones(pair.size, dtype=np.bool_), n_folds, description, is_exact)

    def trained(self, fold: int, n_pairs: int) -> Bools:
        """Tell which pairs a fold trains on."""
        kept = np.ones(n_pairs, dtype=np.bool_)
        kept[self.pair[self.fold == fold]] = False
        return kept

    def scoring(self, fold: int) -> Ints:
        """Return the pairs that a fold is scored by."""
        return np.asarray(self.pair[(self.fold == fold) & self.is_scored])

    def folds_that_score(self, data: PairData) -> list[int]:
        """Return the folds by whose pairs a model can be scored; all of them where there is none."""
        weight = data.scoring_weight[self.pair] * self.is_scored
        found = np.flatnonzero(np.bincount(self.fold, weight, self.n_folds) > 0)
        return found.tolist() or list(range(self.n_folds))

    def groups(self, n_pairs: int) -> Ints:
        """Return the fold that lacks each pair, -1 for none: what a closed form takes."""
        if np.unique(self.pair).size < self.pair.size or not self.is_scored.all():
            raise InvalidInputError(
                "cv leaves pairs out of several folds, or out of training without scoring by them.",
                "use solver='cg', which takes any folds; or PreferenceKFold(by='pairs'), KFold or GroupKFold.",
            )
        group = np.full(n_pairs, -1, dtype=np.int64)
        group[self.pair] = self.fold
        return group


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
    name = cv if isinstance(cv, str) else None
    if name in EXACT_CV:
        require_decomposition(str(name), has_one=is_exact)
    splitter = as_splitter(cv)
    if splitter is not None:
        plan = _of_splitter(splitter, data, groups, is_exact=is_exact)
        return plan if is_exact else _sampled_pairs(plan, data, sampling)
    several = name == "auto" and whole_components and data.graph.n_components > 1
    if groups is not None and name != "leave-pair-out":
        unit, what = _group_codes(data, groups), "groups"
    elif groups is None and (several or name == "leave-query-out"):
        unit, what = _components(data), "connected components"
    else:
        unit, what = _same_rows(data), "pairs"
    if name in EXACT_CV or (name == "auto" and is_exact and what != "pairs"):
        return _one_at_a_time(unit, what)
    n_folds = count_folds(cv, _n_units(data, unit), what)
    fold = _assign(data, unit, n_folds, sampling.seed)
    plan = PairPlan.of_folds(fold, f"{n_folds} folds of {what}", is_exact=is_exact)
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
    return PairPlan.of_folds(np.where(fold == 0, 0, -1))


def _one_at_a_time(unit: Ints, what: str) -> PairPlan:
    """Hold out each unit in turn, by one decomposition."""
    n_units = int(unit.max()) + 1
    cv = "leave-pair-out" if what == "pairs" else "leave-query-out"
    if n_units < 2:
        raise InvalidInputError(
            f"cv={cv!r} needs pairs that fall into groups, and all of them are connected.",
            "pass groups, or use a number of folds.",
        )
    named = {"pairs": "couples of rows", "groups": "groups of pairs"}.get(what, what)
    return PairPlan.of_folds(unit, f"{cv} over {n_units} {named}", is_exact=True)


def _sampled_pairs(plan: PairPlan, data: PairData, sampling: Sampling) -> PairPlan:
    """Score only by some of the pairs, assigned like a fold, where there are more."""
    n_scored = int(plan.is_scored.sum())
    if sampling.limit is None or n_scored <= sampling.limit:
        return plan
    unit = _same_rows(data)
    n_folds = share_as_folds(sampling.limit / n_scored, _n_units(data, unit))
    chosen = _assign(data, unit, n_folds, sampling.seed + 1) == 0
    is_scored = plan.is_scored & chosen[plan.pair]
    description = f"{plan.description}, scored by {int(is_scored.sum())} of {n_scored} pairs"
    return replace(plan, is_scored=is_scored, description=description)


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
    graph, weight = data.graph, data.graph.pair_weight
    return assign_pairs(data.design, graph.winner, graph.loser, unit, n_folds, seed, weight, graph.difference)


def _of_splitter(splitter: Splitter, data: PairData, groups: ArrayLike | None, *, is_exact: bool) -> PairPlan:
    edges = np.column_stack([data.preferences.winner, data.preferences.loser])
    absent, is_tested = [], []
    for train, test in read_splits(splitter, edges, None, groups, "pairs"):
        absent.append(np.setdiff1d(np.arange(len(edges)), train, assume_unique=True))
        is_tested.append(np.isin(absent[-1], test))
    fold = np.repeat(np.arange(len(absent)), [own.size for own in absent])
    pair, is_scored = np.concatenate(absent), np.concatenate(is_tested)
    return PairPlan(pair, fold, is_scored, len(absent), f"the test sets of {splitter}", is_exact)
