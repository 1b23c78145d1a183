"""Explicit preferences: a list of pairs (winner, loser), each with a magnitude and a weight.

The list is a multigraph: a pair may come twice (its weights add up), and may contradict another (noise: the
wanted differences then average out). The cost determines the effect of a magnitude:

=========  ====================  ==========================  ==========================================
cost       wanted difference z   weight ω                    a pair of magnitude 0
=========  ====================  ==========================  ==========================================
magnitude  the magnitude         the pair's weight           a tie: asks for equal scores
unit       1, or 0 for a tie     the pair's weight           a tie: asks for equal scores
relative   the magnitude         its weight / magnitude²     not defined, so ties must be excluded
=========  ====================  ==========================  ==========================================

Without magnitudes every pair wants a difference of 1. Ties enter the Laplacian, but have no winner: they do
not count in `weight`. With ties excluded they take no part at all.

A sparse weighted graph by the neighbours of each row, with its Laplacian and its components.

Pairs of the same two rows, whichever wins, are one edge here: the Laplacian depends only on the sum of their weights.
Measured with random pairs (m rows, l pairs, one core): a product takes 2.4 ms for m = 10⁵ and l = 10⁶, where
gathering and counting pair by pair in numpy takes 12.7 ms; for m = 8·10⁵ and l = 10⁷ it is 70 ms (26 ms with weights
of 1 on two cores) against 259 ms. scipy's own sparse product is as fast on one core, and supports neither threads nor
weights of 1.

The margin of a pair is its wanted difference. A tie (magnitude 0) has no winner that a margin could protect, so it
takes no part there, and neither does a pair of weight 0.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import numpy.typing as npt
import scipy.sparse
from scipy.sparse.csgraph import connected_components

from rankwise import _core
from rankwise.arrays import Floats, Ints
from rankwise.pairs.blocks import MANY_SCORES
from rankwise.pairs.graph import SmoothedHinge
from rankwise.pairs.labels import Cost, Ties


@dataclass(frozen=True)
class PreferenceGraph:
    """Pairs that were listed one by one; implements `PairGraph` in O(pairs), and `MarginPairs` if all have a winner.

    Attributes
    ----------
    n_rows : int
    winner, loser : (pairs,) int64
        The caller's list, in its order.
    pair_weight : (pairs,) float64
        ``ω``; 0 for a pair that takes no part.
    difference : (pairs,) float64
        ``z``, also the margin; 0 for a tie.
    n_threads : int
    """

    n_rows: int
    winner: Ints
    loser: Ints
    pair_weight: Floats
    difference: Floats
    n_threads: int = 1

    blocks = None  # the pairs may run across any rows

    def differences(self, values: Floats) -> Floats:
        """Return winner minus loser, pair by pair: ``Av``."""
        return np.asarray(values[self.winner] - values[self.loser])

    def at_rows(self, per_pair: Floats) -> Floats:
        """Return for each row the sum over its won pairs minus the sum over its lost pairs: ``A'u``."""
        won = np.bincount(self.winner, per_pair, self.n_rows)
        return np.asarray(won - np.bincount(self.loser, per_pair, self.n_rows), dtype=np.float64)

    def at_both(self, per_pair: Floats) -> Floats:
        """Return for each row the sum over its pairs: ``|A|'u``."""
        won = np.bincount(self.winner, per_pair, self.n_rows)
        return np.asarray(won + np.bincount(self.loser, per_pair, self.n_rows), dtype=np.float64)

    @cached_property
    def adjacency(self) -> scipy.sparse.csr_array:
        """The weight between each two rows, in both directions; pairs of weight 0 are left out."""
        shape = (self.n_rows, self.n_rows)
        directed = scipy.sparse.coo_array((self.pair_weight, (self.winner, self.loser)), shape=shape).tocsr()
        both = directed + directed.T
        both.eliminate_zeros()
        return both

    @cached_property
    def _neighbours(self) -> tuple[Ints, npt.NDArray[np.int32] | Ints, Floats | None]:
        """The adjacency as the compiled product takes it: its columns as 32 bits, and no weights where all are 1."""
        both = self.adjacency
        # The narrow type halves what a product reads; only folds of a graph of very many rows need the wide one.
        narrow = self.n_rows <= np.iinfo(np.int32).max
        row = both.indices.astype(np.int32 if narrow else np.int64, copy=False)
        return both.indptr.astype(np.int64), row, None if (both.data == 1).all() else both.data

    @cached_property
    def is_ordered(self) -> npt.NDArray[np.bool_]:
        """Which pairs take part and have a winner."""
        return (self.pair_weight > 0) & (self.difference > 0)

    @property
    def n_pairs(self) -> int:
        """The number of pairs that take part and have a winner."""
        return int(self.is_ordered.sum())

    @cached_property
    def weight(self) -> float:
        """The total weight of the pairs that have a winner."""
        return float(self.pair_weight[self.is_ordered].sum())

    @cached_property
    def pull(self) -> Floats:
        """``r = A'Ωz``."""
        return self.at_rows(self.pair_weight * self.difference)

    @cached_property
    def constant(self) -> Floats:
        """``c = z'Ωz``."""
        return np.array(self.pair_weight @ self.difference**2)

    @cached_property
    def component_sizes(self) -> Ints:
        """The number of rows of each connected component, largest first; rows in no pair are left out.

        The pairs do not determine how rows of different components compare.
        """
        sizes = np.bincount(connected_components(self.adjacency, directed=False)[1])
        return np.sort(sizes[sizes > 1])[::-1].astype(np.int64, copy=False)

    @property
    def edges(self) -> tuple[Ints, Ints, Floats]:
        return self.winner, self.loser, self.pair_weight

    def laplacian(self, v: Floats) -> Floats:
        """Apply ``L`` to a vector or to the columns of a block: ``Σ_j ω_ij (v_i - v_j)`` for each row i."""
        block = np.ascontiguousarray(v, dtype=np.float64).reshape(self.n_rows, -1)
        out, neighbours = np.empty_like(block), self._neighbours
        threads = self.n_threads if neighbours[1].size * block.shape[1] >= MANY_SCORES else 1
        _core.preference_laplacian(*neighbours, block, out, threads)
        return out.reshape(v.shape)

    def degrees(self, width: float | None = None) -> Floats:
        return self.at_both(self.pair_weight)

    # --- margins ---

    def ordered(self) -> PreferenceGraph:
        """Return the pairs that weigh something and have a winner, which margins can protect."""
        return self.chosen(np.flatnonzero(self.is_ordered))

    def chosen(self, pairs: Ints) -> PreferenceGraph:
        """Return some of the pairs."""
        winner, loser, weight = self.winner[pairs], self.loser[pairs], self.pair_weight[pairs]
        return PreferenceGraph(self.n_rows, winner, loser, weight, self.difference[pairs], self.n_threads)

    def at(self, scores: Floats) -> ViolatedPreferences:
        """Return the pairs that are violated at some scores."""
        slack = self.difference - self.differences(scores)
        inside = np.flatnonzero(slack > 0)
        return ViolatedPreferences(**vars(self.chosen(inside)), slack=slack[inside])

    def thinned(self, n_rows: int) -> None:
        """None: evaluating all listed pairs is cheap, and a sample of rows would share few of them."""


def preference_graph(
    winner: Ints,
    loser: Ints,
    n_rows: int,
    *,
    magnitude: Floats | None = None,
    weight: Floats | None = None,
    ties: Ties = "include",
    cost: Cost = "magnitude",
    n_threads: int = 1,
) -> PreferenceGraph:
    """Build the graph of a list of pairs (see the module's docstring).

    Parameters
    ----------
    winner, loser : (pairs,) int64
    n_rows : int
        The number of rows that the pairs refer to.
    magnitude : (pairs,) float64, optional
        By how much the winner is preferred; 1 by default, 0 is a tie.
    weight : (pairs,) float64, optional
        1 by default.
    ties : {"include", "exclude"}
    cost : {"magnitude", "unit", "relative"}
        "relative" only without ties.
    """
    difference = np.ones(winner.size) if magnitude is None else magnitude
    pair_weight = np.ones(winner.size) if weight is None else weight
    if ties == "exclude":
        pair_weight = np.where(difference > 0, pair_weight, 0.0)
    if cost == "relative":
        # A pair that takes no part must not become 0/0.
        pair_weight = np.divide(pair_weight, difference**2, out=np.zeros(winner.size), where=pair_weight > 0)
    elif cost == "unit":
        difference = np.sign(difference)
    return PreferenceGraph(n_rows, winner, loser, pair_weight, difference, n_threads)


@dataclass(frozen=True)
class ViolatedPreferences(PreferenceGraph):
    """Listed pairs inside their margin at some scores; implements `ViolatedPairs`.

    Attributes
    ----------
    slack : (pairs,) float64
        By how much each pair misses its margin.
    """

    slack: Floats = field(kw_only=True)

    @cached_property
    def net_wins(self) -> Floats:
        """For each row the violated weight it should win minus the one it should lose."""
        return self.at_rows(self.pair_weight)

    @property
    def active(self) -> float:
        """``Σ ωz``."""
        return float(self.pair_weight @ self.difference)

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
        return SmoothedHinge(float(value), -self.at_rows(weighted), float(weighted @ self.difference))

    def laplacian(self, v: Floats) -> Floats:
        """Return ``L_V v`` for a vector or a block; a few products do not pay for the matrix of neighbours."""
        if v.ndim == 2:
            return np.column_stack([self.laplacian(column) for column in v.T])
        return self.at_rows(self.pair_weight * self.differences(v))
