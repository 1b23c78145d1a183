"""Flip numbers: how many battles decide the order of two neighbours, and which."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import scipy.linalg as la

from rankwise.arrays import Floats, Ints
from rankwise.leaderboards.battles import Battles
from rankwise.leaderboards.contest import Contest, Fit

__all__ = ["FlipSearch"]

_REFITS = 4
_LEAST = 1e-6  # penalty: with 0, an item that loses its last defeat would have no finite strength


class FlipSearch:
    """Groups of equal battles, with their influence on a fitted board.

    Parameters
    ----------
    battles : Battles
    contest : Contest
        Of the same battles; says which columns and priors there are.
    fit : Fit
    """

    def __init__(self, battles: Battles, contest: Contest, fit: Fit) -> None:
        n, each = contest.n_items, battles.weight / battles.units
        if battles.style.shape[1]:
            self.group = np.arange(each.size)
            chosen = self.group
        else:
            key = (battles.first * n + battles.second) * 3 + (2 * battles.score).astype(np.int64)
            weights, number = np.unique(each, return_inverse=True)
            _, chosen, self.group = np.unique(
                key * weights.size + number, return_index=True, return_inverse=True
            )
        self.units = np.bincount(self.group, battles.units).astype(np.int64)
        weight = np.bincount(self.group, battles.weight)
        score, columns = battles.score[chosen], battles.style[chosen]
        if contest.columns.shape[1] > columns.shape[1]:
            columns = np.column_stack([np.ones(chosen.size), columns])
        self.contest = replace(
            contest,
            first=battles.first[chosen],
            second=battles.second[chosen],
            wins=weight * (score == 1),
            ties=weight * (score == 0.5),
            losses=weight * (score == 0),
            columns=columns,
            cluster=None,
        )
        self.penalty = max(fit.penalty, _LEAST)
        self.fit = self.contest.fit(self.penalty, fit.theta)
        self.variance = self.contest.difference_variance(self.fit.inverse)
        by_group = np.argsort(self.group, kind="stable")
        self.rows = np.repeat(battles.row[by_group], battles.units[by_group])
        self.starts = np.cumsum(self.units) - self.units

    def find(self, upper: int, lower: int) -> Ints | None:
        """Return the rows of battles whose removal lets `lower` overtake `upper`; None where none is enough."""
        along = self.contest.margins(self.fit.inverse[upper] - self.fit.inverse[lower])
        slope, curvature = (one[0] / self.units for one in (self.fit.rates.slope, self.fit.rates.curvature))
        influence = along * slope / (1 - np.minimum(curvature * self.variance, 0.99))
        helpful = np.flatnonzero(influence > 0)
        order = helpful[np.argsort(-influence[helpful], kind="stable")]
        sizes = self.units[order]
        before, most = np.cumsum(sizes) - sizes, int(sizes.sum())

        def removed(count: int) -> tuple[Ints, Ints]:
            """Return the groups of the first battles, and how many of each."""
            taken = np.clip(count - before, 0, sizes)
            return order[taken > 0], taken[taken > 0]

        def is_exchanged(count: int, *, refit: bool = True) -> bool:
            theta = (self._refitted if refit else self._one_step)(*removed(count))
            return bool(theta[lower] > theta[upper])

        low, high = 0, most
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if is_exchanged(middle, refit=False) else (middle, high)
        found = _confirmed(is_exchanged, max(high, 1), most)
        if found is None:
            return None
        spans = zip(*removed(found), strict=True)
        return np.concatenate([self.rows[self.starts[g] : self.starts[g] + taken] for g, taken in spans])

    def _part(self, groups: Ints, share: Floats) -> Contest:
        """Return the contest of some groups with a share of their battles."""
        kept = {name: getattr(self.contest, name)[groups] for name in ("first", "second", "columns")}
        counts = {name: getattr(self.contest, name)[groups] * share for name in ("wins", "ties", "losses")}
        return replace(self.contest, **kept, **counts)

    def _one_step(self, groups: Ints, taken: Ints) -> Floats:
        """Return θ after removing battles, by one Newton step with the Hessian of the rest."""
        part = self._part(groups, taken / self.units[groups])
        rates = part.rates(self.fit.theta)
        matrix = self.contest.penalised(self.fit.hessian - part.gram(rates.curvature), self.penalty)
        step: Floats = la.solve(matrix, part.gradient(rates.slope), assume_a="pos")
        return self.fit.theta - step

    def _refitted(self, groups: Ints, taken: Ints) -> Floats:
        share = np.ones(self.units.size)
        share[groups] -= taken / self.units[groups]
        return self._part(np.arange(share.size), share).fit(self.penalty, self.fit.theta).theta


def _confirmed(is_exchanged: Callable[[int], bool], count: int, most: int) -> int | None:
    """Refit to find the smallest number near `count`; the answer is always one that a refit confirmed."""
    best: int | None = None
    for _ in range(_REFITS):
        if is_exchanged(count):
            best = count
            if count == 1:
                break
            count -= max(1, count // 50)
        elif best is not None:
            break
        else:
            count = min(most, count + max(1, count // 25))
    while best is None:
        if is_exchanged(count):
            best = count
        elif count == most:
            break
        count = min(most, 2 * count)
    return best
