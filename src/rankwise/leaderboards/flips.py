"""Flip numbers: how many battles decide the order of two neighbours, and which."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import scipy.linalg as la

from rankwise.arrays import Floats, Ints
from rankwise.leaderboards.battles import Battles
from rankwise.leaderboards.contest import Contest

__all__ = ["FlipSearch"]

_REFITS = 4


class FlipSearch:
    """Battles one by one, with their influence on a fitted board."""

    def __init__(self, battles: Battles, features: Floats, penalty: float, *, first_advantage: bool) -> None:
        at = np.repeat(np.arange(battles.units.size), battles.units)
        single = battles.taken(at)
        self.battles = replace(single, weight=single.weight / single.units, units=np.ones(at.size, np.int64))
        # A constant cluster keeps every battle a cell of its own.
        apart = replace(self.battles, cluster=np.zeros(at.size, np.int64))
        self.contest = Contest.of(apart, features, davidson=False, first_advantage=first_advantage)
        self.features, self.penalty, self.first_advantage = features, penalty, first_advantage
        self.fit = self.contest.fit(penalty)
        self.expand = self.contest.centring() @ self.contest.expand()
        self.strength = (self.expand @ self.fit.theta)[: self.contest.n_items]

    def find(self, upper: int, lower: int) -> Ints | None:
        """Return the battles whose removal lets `lower` overtake `upper`; None where none is enough."""
        contest, rates = self.contest, self.fit.rates
        wanted = self.expand[upper] - self.expand[lower]
        pull = self.expand @ self.fit.inverse @ wanted
        n = contest.n_items
        along = pull[contest.first] - pull[contest.second] + contest.columns @ pull[n:]
        variance = contest.difference_variance(self.expand @ self.fit.inverse @ self.expand.T)
        influence = along * rates.slope / (1 - np.minimum(rates.curvature * variance, 0.99))
        order = np.argsort(-influence, kind="stable")
        order = order[influence[order] > 0]
        low, high = 0, order.size
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if self._gap(order[:middle], wanted) < 0 else (middle, high)
        return self._confirmed(order, max(high, 1), upper, lower)

    def _gap(self, removed: Ints, wanted: Floats) -> float:
        """Return the gap after removing battles, by one Newton step with the Hessian of the rest."""
        contest, rates = self.contest, self.fit.rates
        mask = np.zeros(contest.first.size)
        mask[removed] = 1.0
        matrix = self.fit.hessian - contest.lifted(contest.gram(rates.curvature * mask))
        lost = contest.gradient(replace(rates, slope=rates.slope * mask))
        step = la.solve(contest.ridge(self.penalty, matrix), lost, assume_a="pos")
        return float(wanted @ (self.fit.theta - step))

    def _is_exchanged(self, removed: Ints, upper: int, lower: int) -> bool:
        keep = np.ones(self.battles.row.size, bool)
        keep[removed] = False
        rest = Contest.of(
            self.battles.taken(keep), self.features, davidson=False, first_advantage=self.first_advantage
        )
        theta = rest.fit(self.penalty, self.fit.theta).theta
        strength = rest.expand() @ theta
        return bool(strength[lower] > strength[upper])

    def _confirmed(self, order: Ints, count: int, upper: int, lower: int) -> Ints | None:
        """Refit to find the smallest number near `count`; the answer is always one that a refit confirmed."""
        best: int | None = None
        for _ in range(_REFITS):
            if self._is_exchanged(order[:count], upper, lower):
                best = count
                if count == 1:
                    break
                count -= max(1, count // 50)
            elif best is not None:
                break
            else:
                count = min(order.size, count + max(1, count // 25))
        while best is None:
            if self._is_exchanged(order[:count], upper, lower):
                best = count
            elif count == order.size:
                return None
            count = min(order.size, 2 * count)
        return order[:best]
