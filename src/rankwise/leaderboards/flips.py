"""Flip numbers: how many battles decide the order of two neighbours, and which."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import scipy.linalg as la

from rankwise.arrays import Floats, Ints
from rankwise.leaderboards.battles import Battles
from rankwise.leaderboards.contest import Contest, Fit

__all__ = ["FlipSearch"]

_FEWER = 3  # times that a refit tries 2 % fewer battles
_LEAST = 1e-6  # penalty: with 0, an item that loses its last defeat would have no finite strength


class FlipSearch:
    """Cells of a contest, with the influence of their battles on a fitted board.

    Parameters
    ----------
    battles : Battles
    contest : Contest
        Of the same battles.
    fit : Fit
    """

    def __init__(self, battles: Battles, contest: Contest, fit: Fit) -> None:
        _, group = battles.grouped()
        self.contest, self.units = contest, np.bincount(group, battles.units).astype(np.int64)
        self.penalty = max(fit.penalty, _LEAST)
        self.fit = contest.fit(self.penalty, fit.theta)
        self.variance = contest.difference_variance(self.fit.inverse)
        by_group = np.argsort(group, kind="stable")
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
        found, step = max(high, 1), max(1, high // 25)
        while not is_exchanged(found):
            if found == most:
                return None
            found, step = min(most, found + step), 2 * step
        for _ in range(_FEWER):
            fewer = found - max(1, found // 50)
            if fewer < 1 or not is_exchanged(fewer):
                break
            found = fewer
        spans = zip(*removed(found), strict=True)
        return np.concatenate([self.rows[self.starts[g] : self.starts[g] + taken] for g, taken in spans])

    def _part(self, groups: Ints, share: Floats) -> Contest:
        """Return the contest of some groups with a share of their battles."""
        kept = {name: getattr(self.contest, name)[groups] for name in ("first", "second", "score", "columns")}
        return replace(self.contest, **kept, weight=self.contest.weight[groups] * share)

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
