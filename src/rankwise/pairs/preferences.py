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

Without magnitudes every pair wants a difference of 1. Ties enter the Laplacian, but have no winner: they count
neither in `weight` nor in `net_wins`. With ties excluded they take no part at all.

A sparse weighted graph by the neighbours of each row, with its Laplacian and its components.

Pairs of the same two rows, whichever wins, are one edge here: the Laplacian depends only on the sum of their weights.
Measured with random pairs (m rows, l pairs, one core): a product takes 2.4 ms for m = 10⁵ and l = 10⁶, where
gathering and counting pair by pair in numpy takes 12.7 ms; for m = 8·10⁵ and l = 10⁷ it is 70 ms (26 ms with weights
of 1 on two cores) against 259 ms. scipy's own sparse product is as fast on one core, and supports neither threads nor
weights of 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import scipy.sparse
from scipy.sparse.csgraph import connected_components

from rankwise import _core
from rankwise.arrays import Floats, Ints
from rankwise.pairs.blocks import MANY_SCORES
from rankwise.pairs.labels import Cost, Ties

__all__ = [
    "MaskedPreferences",
    "Neighbours",
    "PreferenceGraph",
    "connect",
    "preference_graph",
]


@dataclass(frozen=True)
class Neighbours:
    """The edges of a graph, each listed at both of its ends.

    Attributes
    ----------
    start : (rows + 1,) int64
        Where the neighbours of each row start.
    row : int32 or int64
        The neighbours.
    weight : float64 or None
        The weight of the edge to each neighbour; None where all weigh 1.
    """

    start: Ints
    row: npt.NDArray[np.int32] | Ints
    weight: Floats | None

    @property
    def n_rows(self) -> int:
        """The number of rows, with or without neighbours."""
        return int(self.start.shape[0]) - 1

    def laplacian(self, v: Floats, n_threads: int) -> Floats:
        """Return ``Σ_j ω_ij (v_i - v_j)`` for each row i, in each column of `v`."""
        block = np.ascontiguousarray(v, dtype=np.float64).reshape(self.n_rows, -1)
        out = np.empty_like(block)
        threads = n_threads if self.row.size * block.shape[1] >= MANY_SCORES else 1
        _core.preference_laplacian(self.start, self.row, self.weight, block, out, threads)
        return out.reshape(v.shape)

    @cached_property
    def component_sizes(self) -> Ints:
        """The number of rows of each connected component, largest first; rows without neighbours are left out."""
        ones = np.ones(self.row.size, dtype=np.int8)
        shape = (self.n_rows, self.n_rows)
        count, label = connected_components(
            scipy.sparse.csr_array((ones, self.row, self.start), shape), directed=False
        )
        has_neighbours = np.diff(self.start) > 0
        sizes = np.bincount(label[has_neighbours], minlength=count)
        return np.sort(sizes[sizes > 0])[::-1].astype(np.int64, copy=False)


def connect(one: Ints, other: Ints, weight: Floats, n_rows: int) -> Neighbours:
    """Build the graph of some weighted edges; those of weight 0 are left out."""
    directed = scipy.sparse.coo_array((weight, (one, other)), shape=(n_rows, n_rows)).tocsr()
    both = directed + directed.T
    both.eliminate_zeros()
    # The narrow type halves what a product reads; only folds of a graph of very many rows need the wide one.
    narrow = n_rows <= np.iinfo(np.int32).max
    row = both.indices.astype(np.int32 if narrow else np.int64, copy=False)
    plain = bool((both.data == 1).all())
    return Neighbours(both.indptr.astype(np.int64), row, None if plain else both.data)


@dataclass(frozen=True)
class PreferenceGraph:
    """Pairs that were listed one by one; implements `PairGraph` in O(pairs).

    Attributes
    ----------
    n_rows : int
    winner, loser : (pairs,) int64
        The caller's list, in its order.
    pair_weight : (pairs,) float64
        ``ω``; 0 for a pair that takes no part.
    difference : (pairs,) float64
        ``z``; 0 for a tie.
    n_threads : int
    """

    n_rows: int
    winner: Ints
    loser: Ints
    pair_weight: Floats
    difference: Floats
    n_threads: int = 1

    blocks = None  # the pairs may run across any rows

    @cached_property
    def neighbours(self) -> Neighbours:
        """The pairs as edges without direction."""
        return connect(self.winner, self.loser, self.pair_weight, self.n_rows)

    @cached_property
    def is_ordered(self) -> npt.NDArray[np.bool_]:
        """Which pairs take part and have a winner."""
        return (self.pair_weight > 0) & (self.difference > 0)

    @property
    def n_pairs(self) -> int:
        """The number of pairs that take part and have a winner."""
        return int(self.is_ordered.sum())

    @property
    def weight(self) -> float:
        """The total weight of the pairs that have a winner."""
        return float(self.pair_weight[self.is_ordered].sum())

    @cached_property
    def net_wins(self) -> Floats:
        """For each row the weight it wins minus the weight it loses."""
        return self._at_rows(np.where(self.is_ordered, self.pair_weight, 0.0))

    @cached_property
    def pull(self) -> Floats:
        """``r = A'Ωz``."""
        return self._at_rows(self.pair_weight * self.difference)

    @cached_property
    def constant(self) -> Floats:
        """``c = z'Ωz``."""
        return np.array(self.pair_weight @ self.difference**2)

    @property
    def component_sizes(self) -> Ints:
        """The number of rows of each connected component, largest first; rows in no pair are left out.

        The pairs do not determine how rows of different components compare.
        """
        return self.neighbours.component_sizes

    @property
    def n_components(self) -> int:
        """The number of connected components of the rows in pairs."""
        return int(self.component_sizes.size)

    @property
    def n_unpaired_rows(self) -> int:
        """The number of rows in no pair that takes part."""
        return self.n_rows - int(self.component_sizes.sum())

    @property
    def edges(self) -> tuple[Ints, Ints, Floats]:
        return self.winner, self.loser, self.pair_weight

    def laplacian(self, v: Floats) -> Floats:
        """Apply ``L`` to a vector or to the columns of a block."""
        return self.neighbours.laplacian(v, self.n_threads)

    def degrees(self) -> Floats:
        both = np.concatenate([self.winner, self.loser])
        return np.bincount(both, np.tile(self.pair_weight, 2), self.n_rows).astype(np.float64)

    def masked(self, pair: Ints, fold: Ints, n_folds: int) -> MaskedPreferences:
        """Return one graph per fold, as columns: column ``fold[k]`` lacks ``pair[k]``; others may lack it as well."""
        return MaskedPreferences(self, pair, fold, n_folds)

    def _at_rows(self, per_pair: Floats) -> Floats:
        won: Floats = np.bincount(self.winner, weights=per_pair, minlength=self.n_rows).astype(
            np.float64, copy=False
        )
        return won - np.bincount(self.loser, weights=per_pair, minlength=self.n_rows)


class MaskedPreferences:
    """The graphs of all folds side by side: column c is the graph without the pairs of fold c.

    The held-out pairs of all folds are one graph over (row, fold), which is taken away from the whole graph in
    every column; a product with k columns so costs one product of the whole with k columns and one of the
    pairs with a single column.
    """

    def __init__(self, graph: PreferenceGraph, pair: Ints, fold: Ints, n_folds: int) -> None:
        self._whole, self._shape = graph, (graph.n_rows, n_folds)
        # Row i as fold c sees it stands at i * n_folds + c, where it stands in an array (rows, folds), too.
        self._own = PreferenceGraph(
            n_rows=graph.n_rows * n_folds,
            winner=graph.winner[pair] * n_folds + fold,
            loser=graph.loser[pair] * n_folds + fold,
            pair_weight=graph.pair_weight[pair],
            difference=graph.difference[pair],
            n_threads=graph.n_threads,
        )

    @cached_property
    def pull(self) -> Floats:
        """``r = A'Ωz``, a column per fold."""
        return self._whole.pull[:, None] - self._own.pull.reshape(self._shape)

    def laplacian(self, v: Floats) -> Floats:
        """Apply each fold's ``L`` to its own column of a block (rows, folds)."""
        own = self._own.laplacian(np.ascontiguousarray(v).reshape(-1))
        return self._whole.laplacian(v) - own.reshape(self._shape)


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
