"""Hold-out plans: folds or an eval set, and the units that folds are made of.

Folds hold out *entries*: rows that have labels, or listed pairs. Entries are dealt to folds at random, by
`random_state`, in units that stay together: queries, rows of one ranking, all comparisons of two rows, or groups.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from rankwise.arrays import Bools, Floats, Ints, Rows
from rankwise.metrics import Evaluator

Numbers = TypeVar("Numbers", float, Floats)

# Decimals of errors: equally good models tie, and neither rounding nor the order of rows decides between them.
_DIGITS = 13
_FEWEST_JOINED = 10  # units: of fewer, folds without one might lack pairs


def oriented(values: Numbers, *, greater_is_better: bool) -> Numbers:
    """Turn values of a metric into errors (lower is better), or errors into values."""
    return -values if greater_is_better else values


@dataclass(frozen=True)
class Scorer:
    """The error of predictions on held-out entries; lower is better.

    Attributes
    ----------
    rows : (k,) int64 or None
        The rows of the design that have to be scored; None for all.
    compared : (winner, loser) of (entries,) int64, or None
        The positions of each entry's two rows among those; None where each of them is an entry.
    """

    evaluator: Evaluator
    greater_is_better: bool
    rows: Rows | None = None
    compared: tuple[Ints, Ints] | None = None

    @property
    def share(self) -> float:
        """The weight of this scorer in the mean over folds: the number of queries that it averages over."""
        return float(self.evaluator.counted.sum())

    def errors(self, values: Floats) -> Floats:
        """Score (models, entries) values: scores of rows, or winner minus loser."""
        found = np.round(self.evaluator.many(values.T), _DIGITS)
        return oriented(found, greater_is_better=self.greater_is_better)

    def errors_of_rows(self, scores: Floats) -> Floats:
        """Score (models, rows) scores."""
        if self.compared is None:
            return self.errors(scores)
        winner, loser = self.compared
        # One model at a time: the differences of all of them would be models × pairs numbers.
        return np.concatenate([self.errors((one[winner] - one[loser])[None]) for one in scores])

    def narrowed(self) -> Scorer:
        """Return the scorer of the rows that are compared alone, where it takes all rows."""
        if self.rows is not None or self.compared is None:
            return self
        rows, place = np.unique(np.concatenate(self.compared), return_inverse=True)
        winner, loser = place.reshape(2, -1).astype(np.int64)
        return replace(self, rows=rows, compared=(winner, loser))


@dataclass(frozen=True)
class Plan:
    """The entries that each fold holds out, and those that score it; or an evaluation set.

    Attributes
    ----------
    held, fold : (k,) int64
        Fold ``fold[k]`` does not train on entry ``held[k]``; sorted by fold. Several folds may hold out the same entry.
    is_scored : (k,) bool
        Whether the entry scores that fold. Rows of weight 0 do not, nor do pairs
        between two folds where folds are made of items, nor rows that come after those that score.
    size : int
        The number of entries, held out or not.
    description : str
        A description of the plan for the user.
    is_exact : bool
        Whether one decomposition computes the held-out scores, in closed form or by refits.
    leaves_pairs : bool
        Whether every pair of rows of the one ranking is held out instead of folds.
    eval_rows : Design or None
        An evaluation set, whose rows score models that train on everything; there are no folds then.
    scorers : sequence of Scorer
        The scorers of the evaluation set, one per output.
    """

    held: Ints
    fold: Ints
    is_scored: Bools
    size: int
    n_folds: int
    description: str = ""
    is_exact: bool = False
    leaves_pairs: bool = False
    eval_rows: Any = None  # designs know pairs, so that their type cannot stand here
    scorers: Sequence[Scorer] = ()

    @classmethod
    def of_folds(
        cls, fold: npt.NDArray[np.integer], description: str = "", *, is_exact: bool = False
    ) -> Plan:
        """Return a plan in which each entry is held out and scored by one fold; -1 for entries never held out."""
        n_folds = int(fold.max(initial=-1)) + 1
        # Numbers of 16 bits are sorted several times as quickly.
        order = np.argsort(fold.astype(np.int16) if n_folds < 1 << 15 else fold, kind="stable")
        held = order[np.searchsorted(fold[order], 0) :]
        own = fold[held].astype(np.int64)
        is_scored = np.ones(held.size, dtype=np.bool_)
        return cls(held, own, is_scored, fold.size, n_folds, description, is_exact)

    @classmethod
    def of_eval_set(cls, rows: object, scorers: Sequence[Scorer], description: str = "") -> Plan:
        """Return a plan in which an eval set scores the models trained on all entries."""
        none = np.empty(0, dtype=np.int64)
        return cls(none, none, none > 0, 0, 0, description, eval_rows=rows, scorers=scorers)

    @property
    def has_eval_set(self) -> bool:
        """Whether the plan scores on an eval set."""
        return self.eval_rows is not None

    @cached_property
    def overlaps(self) -> bool:
        """Whether several folds hold out the same entry."""
        return bool(np.bincount(self.held).max(initial=0) > 1)

    @property
    def repeats(self) -> bool:
        """Whether an entry scores several folds."""
        return self.overlaps and bool(np.bincount(self.held[self.is_scored]).max(initial=0) > 1)

    @cached_property
    def groups(self) -> Ints:
        """The fold that each entry scores, or else one that holds it out; -1 for none."""
        group = np.full(self.size, -1, dtype=np.int64)
        group[self.held] = self.fold
        group[self.held[self.is_scored]] = self.fold[self.is_scored]
        return group

    @cached_property
    def scored(self) -> Rows:
        """The entries that score some fold, in increasing order."""
        is_scored = np.zeros(self.size, dtype=np.bool_)
        is_scored[self.held[self.is_scored]] = True
        return np.flatnonzero(is_scored)

    def without(self, fold: int) -> Ints:
        """Return the entries that a fold does not train on."""
        return np.asarray(self.held[self._entries(fold)])

    def trained(self, fold: int) -> Bools:
        """Tell which entries a fold trains on."""
        kept = np.ones(self.size, dtype=np.bool_)
        kept[self.without(fold)] = False
        return kept

    def scoring(self, fold: int) -> Ints:
        """Return the entries that a fold is scored by."""
        own = self._entries(fold)
        return np.asarray(self.held[own][self.is_scored[own]])

    def _entries(self, fold: int) -> slice:
        first, last = np.searchsorted(self.fold, [fold, fold + 1])
        return slice(int(first), int(last))


@dataclass(frozen=True)
class Units:
    """Entries in units that folds do not divide.

    Attributes
    ----------
    codes : (entries,) int64
        The unit of each entry.
    order : (units,) int64
        The units in the order in which they are assigned to folds; units that are not listed get fold -1.
    weighs : (entries,) bool
        Whether each entry has a positive weight; the others are never part of a share or a sample.
    n_units : int
        The number of units with positive weight.
    name : str
        Their name in the plural.
    """

    codes: Ints
    order: Ints
    weighs: Bools
    n_units: int
    name: str

    @classmethod
    def of_codes(cls, codes: Ints, weight: Floats | None = None, name: str = "pairs") -> Units:
        """Take units in order of appearance; those that weigh nothing, and so change nothing, last."""
        weighs = np.ones(codes.size, dtype=np.bool_) if weight is None else weight > 0
        found, first = np.unique(codes[weighs], return_index=True)
        order = np.concatenate([found[np.argsort(first)], np.setdiff1d(codes, found)])
        return cls(codes, order, weighs, found.size, name)

    def joined(self, code: Ints) -> Units:
        """Return units of the rows that share a code, where more than half of the rows differ.

        A model that has seen a copy of a row predicts it too well: on 4,898 wines, a fifth of them copies, the search
        took penalties a tenth as large, its score was .042 too high, and other wines were ranked worse by .011 ± .003.
        Where few rows differ, new ones have been seen before as well, and joining gained nothing on four such tables.
        """
        found, first = np.unique(code[self.order], return_index=True)
        if 2 * found.size <= self.order.size or found.size < _FEWEST_JOINED:
            return self
        return replace(self, codes=code, order=found[np.argsort(first)], n_units=found.size)

    @property
    def are_joined(self) -> bool:
        """Whether some unit is several rows of one ranking."""
        return self.name == "rows" and self.n_units < int(self.weighs.sum())

    def folds(self, n_folds: int, seed: int) -> npt.NDArray[np.int32]:
        """Assign entries to folds: every run of as many neighbours as there are folds in random order."""
        n_runs, rng = -(-self.order.size // n_folds), np.random.default_rng(seed)
        dealt = rng.permuted(np.tile(np.arange(n_folds, dtype=np.int32), (n_runs, 1)), axis=1)
        of_unit = np.full(int(self.codes.max(initial=-1)) + 1, -1, dtype=np.int32)
        of_unit[self.order] = dealt.ravel()[: self.order.size]
        return of_unit[self.codes]

    def share(self, share: float, seed: int) -> Bools:
        """Choose a share of the entries, as `folds` assigns it."""
        n_folds = min(max(2, round(1 / share)), max(self.n_units, 2))
        return np.asarray((self.folds(n_folds, seed) == 0) & self.weighs)

    def sample(self, at_most: int, seed: int) -> Bools:
        """Choose about as many entries: whole units drawn at random, and of a huge one some of its entries."""
        rng, present = np.random.default_rng(seed), np.flatnonzero(self.weighs)
        if self.name == "rows":  # of one ranking, in their own order
            chosen = np.zeros(self.codes.size, dtype=np.bool_)
            chosen[rng.choice(present, min(at_most, present.size), replace=False)] = True
            return chosen
        codes = self.codes[present]
        sizes = np.bincount(codes, minlength=int(self.codes.max()) + 1)
        cap = max(2, at_most // 10)  # no query is to be the whole sample
        drawn = rng.permutation(self.order[: self.n_units])
        so_far = np.cumsum(np.minimum(sizes[drawn], cap))
        drawn = drawn[: max(1, int(np.searchsorted(so_far, at_most, side="right")))]
        is_whole = np.zeros(sizes.size, dtype=np.bool_)
        is_whole[drawn[sizes[drawn] <= cap]] = True
        chosen = np.zeros(self.codes.size, dtype=np.bool_)
        chosen[present] = is_whole[codes]
        for unit in drawn[sizes[drawn] > cap]:
            chosen[rng.choice(present[codes == unit], cap, replace=False)] = True
        return chosen
