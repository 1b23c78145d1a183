"""Explicit preferences with margins: violated pairs and their loss, in O(pairs).

The margin of a pair is its wanted difference. A tie (magnitude 0) has no winner that a margin could protect, so it
takes no part, and neither does a pair of weight 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from rankwise.arrays import Floats, Ints
from rankwise.pairs.graph import SmoothedHinge
from rankwise.pairs.preferences import PreferenceGraph

__all__ = ["PreferenceMargins", "ViolatedPreferences"]


@dataclass(frozen=True)
class PreferenceMargins:
    """Listed pairs that have a winner; implements `ListedPairs`.

    Attributes
    ----------
    n_rows : int
    winner, loser : (pairs,) int64
    pair_weight : (pairs,) float64
    margin : (pairs,) float64
    """

    n_rows: int
    winner: Ints
    loser: Ints
    pair_weight: Floats
    margin: Floats

    @classmethod
    def of_graph(
        cls, graph: PreferenceGraph, chosen: npt.NDArray[np.bool_] | None = None
    ) -> PreferenceMargins:
        """Keep the pairs that weigh something and have a winner; of the chosen ones only, if given."""
        kept = np.flatnonzero(graph.is_ordered if chosen is None else graph.is_ordered & chosen)
        return cls(
            graph.n_rows,
            graph.winner[kept],
            graph.loser[kept],
            graph.pair_weight[kept],
            graph.difference[kept],
        )

    @cached_property
    def weight(self) -> float:
        """The total weight of the pairs."""
        return float(self.pair_weight.sum())

    def differences(self, values: Floats) -> Floats:
        """Return winner minus loser, pair by pair."""
        difference: Floats = values[self.winner] - values[self.loser]
        return difference

    def at_rows(self, per_pair: Floats) -> Floats:
        """Return for each row the sum over its won pairs minus the sum over its lost pairs."""
        return _at_rows(self.winner, self.loser, per_pair, self.n_rows)

    def degrees(self, per_pair: Floats) -> Floats:
        """Return for each row the sum over its pairs."""
        return _degrees(self.winner, self.loser, per_pair, self.n_rows)

    def at(self, scores: Floats) -> ViolatedPreferences:
        """Return the pairs that are violated at some scores."""
        slack = self.margin - self.differences(scores)
        inside = np.flatnonzero(slack > 0)
        return ViolatedPreferences(
            self.n_rows,
            self.winner[inside],
            self.loser[inside],
            self.pair_weight[inside],
            self.margin[inside],
            slack[inside],
        )

    def thinned(self, n_rows: int) -> None:
        """None: evaluating all listed pairs is cheap, and a sample of rows would share few of them."""


@dataclass(frozen=True)
class ViolatedPreferences:
    """Listed pairs inside their margin at some scores; implements `ViolatedPairs`.

    Attributes
    ----------
    slack : (pairs,) float64
        By how much each pair misses its margin.
    """

    n_rows: int
    winner: Ints
    loser: Ints
    pair_weight: Floats
    margin: Floats
    slack: Floats

    @cached_property
    def net_wins(self) -> Floats:
        """For each row the violated weight it should win minus the one it should lose."""
        return self._at_rows(self.pair_weight)

    @property
    def active(self) -> float:
        """``Σ ωz``."""
        return float(self.pair_weight @ self.margin)

    def degrees(self, width: float | None = None) -> Floats:
        """Return for each row the weight of its violated pairs, of those with ``t <= width`` only if that is given."""
        weight = self.pair_weight if width is None else np.where(self.slack <= width, self.pair_weight, 0.0)
        return _degrees(self.winner, self.loser, weight, self.n_rows)

    def hinge(self) -> float:
        """Return ``Σ ω t``."""
        return float(self.pair_weight @ self.slack)

    def squared_hinge(self) -> tuple[float, Floats]:
        """Return ``Σ ω t²`` and its derivative by the scores."""
        weighted = self.pair_weight * self.slack
        return float(weighted @ self.slack), -2 * self._at_rows(weighted)

    def smoothed(self, delta: float) -> SmoothedHinge:
        """Return the Huberised hinge at the same scores."""
        slope = np.minimum(self.slack / delta, 1.0)
        value = self.pair_weight @ (slope * (self.slack - delta * slope / 2))
        weighted = self.pair_weight * slope
        return SmoothedHinge(float(value), -self._at_rows(weighted), float(weighted @ self.margin))

    def laplacian(self, v: Floats, width: float | None = None) -> Floats:
        """Return ``L_V v`` for a vector or a block, of the pairs with ``t <= width`` only if that is given."""
        if v.ndim == 2:
            return np.column_stack([self.laplacian(column, width) for column in v.T])
        weight = self.pair_weight if width is None else np.where(self.slack <= width, self.pair_weight, 0.0)
        return self._at_rows(weight * (v[self.winner] - v[self.loser]))

    def _at_rows(self, per_pair: Floats) -> Floats:
        return _at_rows(self.winner, self.loser, per_pair, self.n_rows)


def _at_rows(winner: Ints, loser: Ints, per_pair: Floats, n_rows: int) -> Floats:
    won = np.bincount(winner, weights=per_pair, minlength=n_rows)
    return np.asarray(won - np.bincount(loser, weights=per_pair, minlength=n_rows), dtype=np.float64)


def _degrees(winner: Ints, loser: Ints, per_pair: Floats, n_rows: int) -> Floats:
    won = np.bincount(winner, weights=per_pair, minlength=n_rows)
    return np.asarray(won + np.bincount(loser, weights=per_pair, minlength=n_rows), dtype=np.float64)
