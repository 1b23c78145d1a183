"""The violated pairs of a ranking, counted without enumerating them (docs/mathematics.md, section 6.1).

Labels induce a pair ``i > j`` inside a query where the label of ``i`` is higher; it weighs
``scale_q * weight_i * weight_j``. At scores ``f`` it is *violated* when it lies strictly inside the margin:

    f_i - f_j < 1      (in floating point, in this form; a pair at exactly the margin is satisfied)

`ViolationSweep` holds the arrays that do not depend on the scores. `ViolationSweep.at` sorts once and returns
`Violations`, with the sums that hinge, squared hinge and smoothed hinge need, each in ``O(m log m)``. Counts
of unweighted pairs are exact integers, and no result depends on the number of threads.

Each query is counted by the algorithm that is fastest for its size and its number of levels: pair by pair, level by
level, or with a Fenwick tree.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import numpy.typing as npt

from rankwise import _core
from rankwise.arrays import Floats
from rankwise.pairs.blocks import as_table, ranges
from rankwise.pairs.graph import SmoothedHinge

if TYPE_CHECKING:
    from rankwise.data.queries import Queries
    from rankwise.pairs.labels import Levels


NO_PAIRS, BRUTE, LEVELS, FENWICK = (
    _core.counting_code(name) for name in ("no_pairs", "brute", "levels", "fenwick")
)
# Rows. Distinct labels, one thread, ns per row by brute force | Fenwick: counts with their sort 52 | 101 at 100
# rows, 145 | 101 at 200; Laplacian 52 | 69, 109 | 72; smoothed 166 | 195, 327 | 192. Five levels cross there.
_BRUTE_UP_TO = 128
_MOST_LEVELS = _core.MAX_LEVELS  # that are swept one by one
_NUMPY_SORTS_FROM = 2048  # rows; below, the call costs more than its SIMD sort gains

_Scalar = TypeVar("_Scalar", bound=np.generic)


class ViolationSweep:
    """Pairs induced by labels inside queries, ready to be counted at any scores.

    All arrays, given and returned, are in the caller's order of rows.

    Parameters
    ----------
    label_ranks : (rows,) integers
        The rank of each row's label among the distinct labels of its query: 0 is the lowest, none is skipped.
    query_start : (queries + 1,) integers
        Where each query starts in grouped order.
    order : (rows,) integers or None
        The rows in grouped order; None if they are already in this order.
    row_weight : (rows,) float or None
        A pair weighs the product of its rows' weights.
    scale : (queries,) float or None
        A further factor for all pairs of a query.
    n_threads : int
    """

    def __init__(
        self,
        label_ranks: npt.NDArray[np.integer],
        query_start: npt.NDArray[np.integer],
        *,
        order: npt.NDArray[np.integer] | None = None,
        row_weight: Floats | None = None,
        scale: Floats | None = None,
        n_threads: int = 1,
    ) -> None:
        self.n_threads = n_threads
        self.query_start = np.ascontiguousarray(query_start, dtype=np.int64)
        self.sizes = np.diff(self.query_start)
        ranks = label_ranks if order is None else label_ranks[order]
        self._n_levels = np.zeros(self.sizes.size, dtype=np.int32)
        filled = np.flatnonzero(self.sizes)
        if filled.size:  # reduceat would give an empty query the next one's first row
            self._n_levels[filled] = np.maximum.reduceat(ranks, self.query_start[filled]) + 1
        swept = np.where(self._n_levels <= _MOST_LEVELS, LEVELS, FENWICK)
        counting = np.where(self.sizes <= _BRUTE_UP_TO, BRUTE, swept)
        self._counting = np.where(self._n_levels > 1, counting, NO_PAIRS).astype(np.uint8)
        is_brute = self._counting == BRUTE
        # Large queries keep the caller's order: a random permutation would cost as much as a sweep.
        if is_brute.any():
            query = np.repeat(np.arange(self.sizes.size), self.sizes)
            by_label = np.lexsort((np.where(is_brute[query], ranks, 0), query))
            order = by_label if order is None else order[by_label]
        in_order = order is None or np.array_equal(order, np.arange(order.size))
        self._order = None if in_order else np.asarray(order, dtype=np.int64)
        self._ranks = np.ascontiguousarray(self._grouped(label_ranks), dtype=np.int32)
        self._row_weight = None if row_weight is None else self.to_grouped(row_weight)
        self._scale = None if scale is None else np.ascontiguousarray(scale, dtype=np.float64)

    @classmethod
    def from_levels(cls, levels: Levels, queries: Queries, **options: Any) -> ViolationSweep:
        """Take the labels' ranks from levels that were found already; `options` as of the class."""
        first_level = np.searchsorted(levels.query, np.arange(len(queries)))
        rank = np.arange(levels.query.size) - first_level[levels.query]
        ranks = levels.spread(rank.astype(np.int32))
        return cls(ranks, queries.offsets, order=queries.order, **options)

    @property
    def n_rows(self) -> int:
        """The number of rows that the pairs refer to."""
        return int(self._ranks.size)

    @property
    def query_rows(self) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """The rows in the order of their queries, and where each of those that have rows starts."""
        order = np.arange(self.n_rows) if self._order is None else self._order
        return order, np.append(self.query_start[:-1][self.sizes > 0], self.n_rows)

    def part(self, rows: slice | npt.NDArray[np.int64], queries: npt.NDArray[np.int64]) -> ViolationSweep:
        """Return the pairs of some queries (of those that have rows), whose rows, in ascending order, are these."""
        own = np.arange(self.n_rows)[rows]
        chosen = np.flatnonzero(self.sizes > 0)[queries]
        order, row_weight = self.query_rows[0], self._row_weight
        return ViolationSweep(
            self.from_grouped(self._ranks)[own],
            np.concatenate(([0], np.cumsum(self.sizes[chosen]))),
            order=np.searchsorted(own, order[ranges(self.query_start, chosen)]),
            row_weight=None if row_weight is None else self.from_grouped(row_weight)[own],
            scale=None if self._scale is None else self._scale[chosen],
            n_threads=self.n_threads,
        )

    @cached_property
    def weight(self) -> float:
        """The total weight of all pairs: at equal scores every one is violated."""
        return self.at(np.zeros(self.n_rows)).weight

    def at(self, scores: npt.NDArray[np.floating]) -> Violations:
        """Sort by score and return the pairs violated there."""
        score = self.to_grouped(scores)
        n_rows = score.size
        order = np.empty(n_rows, dtype=np.int32)
        sorted_score, sorted_rank = np.empty(n_rows), np.empty(n_rows, dtype=np.int32)
        swept = (self._counting == LEVELS) | (self._counting == FENWICK)
        for query in np.flatnonzero(swept & (self.sizes >= _NUMPY_SORTS_FROM)):
            rows = slice(self.query_start[query], self.query_start[query + 1])
            order[rows] = np.argsort(score[rows])
        _core.sort_scores(
            self.kernel_queries(), score, _NUMPY_SORTS_FROM, order, sorted_score, sorted_rank, self.n_threads
        )
        point = _core.SortedScores(
            score=score, order=order, sorted_score=sorted_score, sorted_rank=sorted_rank
        )
        return Violations(self, score, point)

    def thinned(self, n_rows: int) -> tuple[npt.NDArray[np.int64], ViolationSweep] | None:
        """Return about `n_rows` rows of one large ranking, evenly by label, and their pairs; else None."""
        stride = self.n_rows // n_rows
        if stride < 2 or self.sizes.size > 1 or self._n_levels[0] <= _MOST_LEVELS:
            return None  # few levels are cheap to count
        rows = np.sort(np.argsort(self._ranks, kind="stable")[::stride])
        _, ranks = np.unique(self._ranks[rows], return_inverse=True)
        weight = None if self._row_weight is None else self._row_weight[rows]
        start = np.array([0, rows.size])
        return rows, ViolationSweep(ranks, start, row_weight=weight, n_threads=self.n_threads)

    def kernel_queries(self) -> _core.RankedQueries:
        """Return the kernels' view of the arrays; made for each call, so that a sweep can be pickled."""
        return _core.RankedQueries(
            start=self.query_start,
            counting=self._counting,
            n_levels=self._n_levels,
            rank=self._ranks,
            weight=self._row_weight,
            scale=self._scale,
        )

    def to_grouped(self, values: npt.NDArray[np.floating]) -> Floats:
        """Bring rows from the caller's order into that of the kernels."""
        return np.ascontiguousarray(self._grouped(values), dtype=np.float64)

    def from_grouped(self, values: npt.NDArray[_Scalar]) -> npt.NDArray[_Scalar]:
        """Bring rows from the order of the kernels into the caller's."""
        if self._order is None:
            return values
        out = np.empty_like(values)
        out[self._order] = values
        return out

    def _grouped(self, values: npt.NDArray[_Scalar]) -> npt.NDArray[_Scalar]:
        return values if self._order is None else values[self._order]


@dataclass(frozen=True)
class Violations:
    """The pairs that are violated at some scores, made by `ViolationSweep.at`; implements `ViolatedPairs`."""

    sweep: ViolationSweep
    _score: Floats
    _point: _core.SortedScores

    @cached_property
    def weight(self) -> float:
        """The total weight of the violated pairs."""
        return float(self._counts[0].sum())

    @property
    def net_wins(self) -> Floats:
        """For each row, the weight of the violated pairs that it should win, less that of those it should lose."""
        return self.sweep.from_grouped(self._counts[0] - self._counts[1])

    @property
    def active(self) -> float:
        """``Σ ωz``."""
        return self.weight

    def degrees(self, width: float | None = None) -> Floats:
        """Return for each row the weight of its violated pairs, of those with ``t <= width`` only if that is given."""
        total = self._counts[0] + self._counts[1]
        if width is not None:
            won, lost = self._count(1.0 - width)
            total = np.maximum(total - won - lost, 0.0)  # rounding of weights
        return self.sweep.from_grouped(total)

    def hinge(self) -> float:
        """Return the weighted sum of ``max(0, 1 - (f_i - f_j))``; a subgradient is `-net_wins`."""
        won, lost = self._counts
        return float(self.weight - (won - lost) @ self._centred_score)

    def squared_hinge(self) -> tuple[float, Floats]:
        """Return the weighted sum of ``max(0, 1 - (f_i - f_j))²``, and its derivative by the scores."""
        scores, pull = self.sweep.from_grouped(self._centred_score), self.net_wins
        half_gradient = self.laplacian(scores) - pull
        value = self.weight + scores @ (half_gradient - pull)
        return max(float(value), 0.0), 2 * half_gradient

    def laplacian(self, v: Floats) -> Floats:
        """Return ``L_V v`` for a vector or a block."""
        grouped = as_table(self.sweep.to_grouped(v))
        out = np.empty_like(grouped)
        self._run(_core.violation_laplacian, 1.0, *self._counts, grouped, out)
        return self.sweep.from_grouped(out).reshape(v.shape)

    def smoothed(self, delta: float) -> SmoothedHinge:
        """Return value and gradient of the Huberised hinge; they tend to the hinge's as ``delta`` goes to 0.

        Swept queries subtract sums over two windows and divide by `delta`: with D the spread of a query's
        scores, the rounding error of a slope is about ``1e-16 D / delta``, of a pair's value D times that.
        """
        won, lost, excess = (np.empty_like(self._score) for _ in range(3))
        self._run(_core.smoothed_violations, 1.0, delta, won, lost, excess)
        gradient = lost - won
        active = float(won.sum())
        # phi = (a t + max(t - δ, 0)) / 2, and the sum of ω a (f_i - f_j) is -gradient'f.
        value = (active + gradient @ self._centred_score + excess.sum()) / 2
        return SmoothedHinge(float(value), self.sweep.from_grouped(gradient), active)

    @cached_property
    def _counts(self) -> tuple[Floats, Floats]:
        return self._count(1.0)

    def _count(self, margin: float) -> tuple[Floats, Floats]:
        won, lost = np.empty_like(self._score), np.empty_like(self._score)
        self._run(_core.violation_counts, margin, won, lost)
        return won, lost

    def _run(self, kernel: Callable[..., None], *arguments: float | Floats) -> None:
        kernel(self.sweep.kernel_queries(), self._point, *arguments, self.sweep.n_threads)

    @property
    def _centred_score(self) -> Floats:
        """The scores less one of their query's: differences are all that counts, and offsets cost digits."""
        filled = np.flatnonzero(self.sweep.sizes)
        first = self._score[self.sweep.query_start[filled]]
        centred: Floats = self._score - np.repeat(first, self.sweep.sizes[filled])
        return centred
