"""Explicit preferences with margins: violated pairs and their loss, in O(pairs).

The margin of a pair is its wanted difference. A tie (magnitude 0) has no winner that a margin could protect, so it
takes no part, and neither does a pair of weight 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from rankwise.arrays import Floats
from rankwise.pairs.graph import SmoothedHinge
from rankwise.pairs.preferences import Edges, PreferenceGraph

__all__ = ["PreferenceMargins", "ViolatedPreferences"]


@dataclass(frozen=True)
class PreferenceMargins(Edges):
    """Listed pairs that have a winner; implements `ListedPairs`.

    Attributes
    ----------
    margin : (pairs,) float64
    """

    margin: Floats

    @classmethod
    def of_graph(cls, graph: PreferenceGraph) -> PreferenceMargins:
        """Keep the pairs that weigh something and have a winner."""
        kept = graph.is_ordered
        weight, margin = graph.pair_weight[kept], graph.difference[kept]
        return cls(graph.n_rows, graph.winner[kept], graph.loser[kept], weight, margin)

    @cached_property
    def weight(self) -> float:
        """The total weight of the pairs."""
        return float(self.pair_weight.sum())

    def degrees(self, per_pair: Floats) -> Floats:
        """Return for each row the sum over its pairs."""
        return self.at_both(per_pair)

    def at(self, scores: Floats) -> ViolatedPreferences:
        """Return the pairs that are violated at some scores."""
        slack = self.margin - self.differences(scores)
        inside = np.flatnonzero(slack > 0)
        winner, loser, weight = self.winner[inside], self.loser[inside], self.pair_weight[inside]
        return ViolatedPreferences(self.n_rows, winner, loser, weight, self.margin[inside], slack[inside])

    def thinned(self, n_rows: int) -> None:
        """None: evaluating all listed pairs is cheap, and a sample of rows would share few of them."""


@dataclass(frozen=True)
class ViolatedPreferences(Edges):
    """Listed pairs inside their margin at some scores; implements `ViolatedPairs`.

    Attributes
    ----------
    margin : (pairs,) float64
    slack : (pairs,) float64
        By how much each pair misses its margin.
    """

    margin: Floats
    slack: Floats

    @cached_property
    def net_wins(self) -> Floats:
        """For each row the violated weight it should win minus the one it should lose."""
        return self.at_rows(self.pair_weight)

    @property
    def active(self) -> float:
        """``Σ ωz``."""
        return float(self.pair_weight @ self.margin)

    def degrees(self, width: float | None = None) -> Floats:
        """Return for each row the weight of its violated pairs, of those with ``t <= width`` only if that is given."""
        is_near = True if width is None else self.slack <= width
        return self.at_both(np.where(is_near, self.pair_weight, 0.0))

    def hinge(self) -> float:
        """Return ``Σ ω t``."""
        return float(self.pair_weight @ self.slack)

    def squared_hinge(self) -> tuple[float, Floats]:
        """Return ``Σ ω t²`` and its derivative by the scores."""
        weighted = self.pair_weight * self.slack
        return float(weighted @ self.slack), -2 * self.at_rows(weighted)

    def smoothed(self, delta: float) -> SmoothedHinge:
        """Return the Huberised hinge at the same scores."""
        slope = np.minimum(self.slack / delta, 1.0)
        value = self.pair_weight @ (slope * (self.slack - delta * slope / 2))
        weighted = self.pair_weight * slope
        return SmoothedHinge(float(value), -self.at_rows(weighted), float(weighted @ self.margin))

    def laplacian(self, v: Floats) -> Floats:
        """Return ``L_V v`` for a vector or a block."""
        if v.ndim == 2:
            return np.column_stack([self.laplacian(column) for column in v.T])
        return self.at_rows(self.pair_weight * self.differences(v))
