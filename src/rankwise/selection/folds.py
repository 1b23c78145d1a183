"""Assigning queries, rows of one ranking, or pairs to folds: at random, by `random_state`, in order of appearance.

Rows of one ranking are assigned so that folds have like labels, as scikit-learn's StratifiedKFold does, and queries so
that those with pairs are spread over the folds. Rows and pairs that weigh nothing are not assigned at all.
"""

from __future__ import annotations

from typing import overload

import numpy as np
import numpy.typing as npt
import scipy.stats

from rankwise.arrays import Floats, Ints
from rankwise.data.queries import Queries
from rankwise.problems.training import PairData, TrainingData, TrainingProblem

__all__ = ["FoldAssigner", "PairAssigner", "assigner_of", "pair_assigner"]


class FoldAssigner:
    """Assigns whole queries to folds, or the rows where there is one query only; rows that weigh nothing are not there.

    Attributes
    ----------
    n_units : int
        How many queries, or rows of one ranking, there are to assign.
    unit : str
        "queries" or "rows".
    """

    def __init__(self, labels: Floats, queries: Queries, weight: Floats | None = None) -> None:
        n_rows = labels.shape[0]
        self._labels, self._codes, self._n_rows = labels, queries.codes, n_rows
        self._rows = np.arange(n_rows) if weight is None else np.flatnonzero(weight > 0)
        own = queries.codes[self._rows]
        codes, first = np.unique(own, return_index=True)
        grouped = labels[self._rows[np.argsort(own, kind="stable")]].reshape(own.size, -1)
        start = np.searchsorted(np.sort(own), codes)
        is_constant = np.maximum.reduceat(grouped, start) == np.minimum.reduceat(grouped, start)
        # In order of appearance, for names do not matter; those without a pair last, so that every fold has pairs.
        self._queries = codes[np.lexsort((first, is_constant.all(axis=1)))]
        is_one = codes.size == 1
        self.n_units, self.unit = (self._rows.size, "rows") if is_one else (codes.size, "queries")

    def folds(self, n_folds: int, seed: int) -> npt.NDArray[np.int32]:
        """Assign to folds. Queries that weigh nothing, and in one ranking such rows, get fold -1."""
        rng = np.random.default_rng(seed)
        if self.unit == "rows":
            assigned = np.full(self._n_rows, -1, dtype=np.int32)
            assigned[self._rows[self._by_label()]] = _dealt(self._rows.size, n_folds, rng)
            return assigned
        # All rows of a query, those that weigh nothing too: it is held out as a whole.
        of_query = np.full(int(self._codes.max()) + 1, -1, dtype=np.int32)
        of_query[self._queries] = _dealt(self._queries.size, n_folds, rng)
        return of_query[self._codes]

    def share(self, share: float, seed: int) -> npt.NDArray[np.bool_]:
        """Choose a share, as `folds` assigns it."""
        held = np.zeros(self._n_rows, dtype=np.bool_)
        held[self._rows] = self.folds(_share_as_folds(share, self.n_units), seed)[self._rows] == 0
        return held

    def sample(self, at_most: int, seed: int) -> npt.NDArray[np.bool_]:
        """Choose about so many rows: whole queries drawn at random, and of a huge one some of its rows."""
        rng = np.random.default_rng(seed)
        codes = self._codes[self._rows]
        sizes = np.bincount(codes, minlength=int(self._codes.max()) + 1)
        cap = at_most if self.unit == "rows" else max(2, at_most // 10)  # no query is to be the whole sample
        drawn = rng.permutation(self._queries)
        rows_so_far = np.cumsum(np.minimum(sizes[drawn], cap))
        drawn = drawn[: max(1, int(np.searchsorted(rows_so_far, at_most, side="right")))]
        is_whole = np.zeros(sizes.size, dtype=np.bool_)
        is_whole[drawn[sizes[drawn] <= cap]] = True
        chosen = np.zeros(self._n_rows, dtype=np.bool_)
        chosen[self._rows] = is_whole[codes]
        for query in drawn[sizes[drawn] > cap]:
            chosen[rng.choice(self._rows[codes == query], cap, replace=False)] = True
        return chosen

    def _by_label(self) -> Ints:
        """Return the order of the rows by label, over all outputs; equal ones as they stand."""
        columns = self._labels[self._rows].reshape(self._rows.size, -1)
        rank = scipy.stats.rankdata(columns, axis=0).sum(axis=1)
        return np.argsort(rank, kind="stable")


class PairAssigner:
    """Assigns listed pairs to folds, those of one unit together.

    Attributes
    ----------
    codes : (pairs,) int64
        The unit of each pair.
    n_units : int
        How many units have a pair that weighs something.
    unit : str
        What they are, such as "pairs".
    """

    def __init__(self, codes: Ints, weight: Floats | None = None, unit: str = "pairs") -> None:
        self.codes, self.unit = codes, unit
        weighs = np.ones(codes.size, dtype=np.bool_) if weight is None else weight > 0
        found, first = np.unique(codes[weighs], return_index=True)
        # In order of appearance; those that weigh nothing, and so change nothing, last.
        self._units = np.concatenate([found[np.argsort(first)], np.setdiff1d(codes, found)])
        self.n_units = found.size

    def folds(self, n_folds: int, seed: int) -> npt.NDArray[np.int32]:
        """Assign to folds."""
        of_unit = np.zeros(int(self.codes.max(initial=-1)) + 1, dtype=np.int32)
        of_unit[self._units] = _dealt(self._units.size, n_folds, np.random.default_rng(seed))
        return of_unit[self.codes]

    def share(self, share: float, seed: int) -> npt.NDArray[np.bool_]:
        """Choose a share, as `folds` assigns it."""
        return np.asarray(self.folds(_share_as_folds(share, self.n_units), seed) == 0)


@overload
def assigner_of(data: TrainingData) -> FoldAssigner: ...


@overload
def assigner_of(data: PairData) -> PairAssigner: ...


def assigner_of(data: TrainingProblem) -> FoldAssigner | PairAssigner:
    """Return the assigner of training rows, or of pairs with all comparisons of the same two rows together."""
    if isinstance(data, TrainingData):
        return FoldAssigner(data.y, data.queries, data.fold_weight)
    winner, loser = data.preferences.winner, data.preferences.loser
    n_rows = np.int64(data.design.shape[0])
    return _assigner_by(data, np.minimum(winner, loser) * n_rows + np.maximum(winner, loser))


def pair_assigner(cv: object, data: PairData, *, whole_components: bool) -> PairAssigner:
    """Return the assigner of groups, connected components or the couples of rows that are compared."""
    if data.groups is not None and cv != "leave-pair-out":
        return _assigner_by(data, data.groups.codes, "groups")
    several = cv == "auto" and whole_components and data.graph.n_components > 1
    if data.groups is None and (several or cv == "leave-query-out"):
        return _assigner_by(data, data.components, "connected components")
    return assigner_of(data)


def _assigner_by(data: PairData, key: Ints, unit: str = "pairs") -> PairAssigner:
    """Return the assigner of pairs to folds, those of equal keys together."""
    codes = np.unique(key, return_inverse=True)[1].reshape(-1).astype(np.int64, copy=False)
    return PairAssigner(codes, data.graph.pair_weight, unit)


def _share_as_folds(share: float, n_units: int) -> int:
    """Return how many folds make one of them the wanted share, if there are that many units."""
    return min(max(2, round(1 / share)), max(n_units, 2))


def _dealt(n_units: int, n_folds: int, rng: np.random.Generator) -> npt.NDArray[np.int32]:
    """Return the fold of each unit: every run of as many neighbours as there are folds in random order."""
    n_runs = -(-n_units // n_folds)
    folds = rng.permuted(np.tile(np.arange(n_folds, dtype=np.int32), (n_runs, 1)), axis=1)
    return folds.ravel()[:n_units]
