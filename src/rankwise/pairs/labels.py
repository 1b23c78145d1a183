"""Pairs that labels induce inside queries: with or without ties, in three costs and three query weights.

Section 1.1 of docs/mathematics.md: with row weights ``w``, ``N = Σw`` of a query and a factor ``s_q`` per pair,

    ties included   L = s_q (N diag(w) - ww')                      every pair of rows, tied ones too
    ties excluded   the same minus each level's own term           pairs with different labels only
    relative        a pair also weighs 1/(y_i - y_j)^2             needs ties excluded

and the wanted difference of a pair is ``y_i - y_j`` (magnitude, relative) or its sign (unit). Sorting the
labels once is all it takes: every quantity here is a sum over queries or levels.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

import numpy as np

from rankwise.arrays import AnyArray, Bools, Floats, Ints
from rankwise.data.queries import Queries
from rankwise.pairs.blocks import QueryBlocks, laplacian

__all__ = [
    "COSTS",
    "QUERY_WEIGHTS",
    "TIES",
    "Cost",
    "LabelGraph",
    "Levels",
    "QueryWeight",
    "Ties",
    "find_levels",
    "label_graph",
    "laplacian_depends_on_labels",
    "mid_ranks",
    "pair_scale",
    "ranked",
]

Ties = Literal["include", "exclude"]
Cost = Literal["magnitude", "unit", "relative"]
QueryWeight = Literal["size", "pairs", "equal"]
TIES: tuple[Ties, ...] = ("include", "exclude")
COSTS: tuple[Cost, ...] = ("magnitude", "unit", "relative")
QUERY_WEIGHTS: tuple[QueryWeight, ...] = ("size", "pairs", "equal")


def laplacian_depends_on_labels(ties: Ties, cost: Cost, query_weight: QueryWeight) -> bool:
    """Tell whether two label vectors over the same rows may have different Laplacians."""
    return ties == "exclude" or cost == "relative" or query_weight == "equal"


@dataclass(frozen=True)
class Levels:
    """Rows sorted by query and label: the levels of one label vector.

    Attributes
    ----------
    order : (rows,) int64
        Rows by query, inside a query by label, lowest first.
    start : (levels + 1,) int64
        Where each level starts in that order.
    query : (levels,) int64
        The query of each level.
    value : (levels,) float64
        The label of each level.
    weight : (levels,) float64
        The total row weight of each level.
    n_pairs : int
        The number of pairs of rows with positive weight and different labels.
    ordered : (queries,) bool
        Whether a query has such a pair.
    """

    order: Ints
    start: Ints
    query: Ints
    value: Floats
    weight: Floats
    n_pairs: int
    ordered: Bools

    @property
    def n_rows(self) -> int:
        """The number of rows."""
        return int(self.order.shape[0])

    def reweighted(self, row_weight: Floats | None) -> Levels:
        """Return the same levels for other row weights; nothing is sorted again."""
        return _weighed(self.order, self.start, self.query, self.value, self.ordered.size, row_weight)

    def spread(self, per_level: AnyArray) -> AnyArray:
        """Return a value per row, in the caller's order, from a value per level."""
        rows = np.empty(self.n_rows, per_level.dtype)
        rows[self.order] = np.repeat(per_level, np.diff(self.start))
        return rows


def find_levels(y: Floats, queries: Queries, row_weight: Floats | None = None) -> Levels:
    """Sort rows by query and label, and find the levels."""
    # Inside a level the order does not matter, so one query takes numpy's fastest sort.
    order = np.argsort(y) if len(queries) == 1 else np.lexsort((y, queries.codes))
    sorted_y, sorted_query = y[order], queries.codes[order]
    is_start = np.ones(order.size + 1, dtype=np.bool_)
    is_start[1:-1] = (sorted_y[1:] != sorted_y[:-1]) | (sorted_query[1:] != sorted_query[:-1])
    start = np.flatnonzero(is_start)
    at = start[:-1]
    return _weighed(order, start, sorted_query[at], sorted_y[at], len(queries), row_weight)


def _weighed(
    order: Ints, start: Ints, query: Ints, value: Floats, n_queries: int, row_weight: Floats | None
) -> Levels:
    """Return levels with their weights and pairs."""
    sizes = start[1:] - start[:-1]
    weight, counts = sizes.astype(np.float64), sizes
    if row_weight is not None:
        in_order = row_weight[order]
        weight = np.add.reduceat(in_order, start[:-1])
        counts = np.add.reduceat((in_order > 0).astype(np.int64), start[:-1])
    # Exact in integers: pairs of a query = (n² - Σ n_l²) / 2.
    n = np.zeros(n_queries, dtype=np.int64)
    squares = np.zeros(n_queries, dtype=np.int64)
    np.add.at(n, query, counts)
    np.add.at(squares, query, counts * counts)
    pairs = (n * n - squares) // 2
    return Levels(order, start, query, value, weight, int(pairs.sum()), pairs > 0)


@dataclass(frozen=True)
class LabelGraph:
    """Pairs induced by labels (see the module's docstring); implements `PairGraph`."""

    blocks: QueryBlocks
    pull: Floats
    constant: Floats
    weight: float
    n_threads: int = 1

    edges: ClassVar[None] = None  # never listed

    @property
    def n_rows(self) -> int:
        """The number of rows that the pairs refer to."""
        return int(self.blocks.order.shape[0])

    def laplacian(self, v: Floats) -> Floats:
        """Apply ``L`` to a vector or to the columns of a block."""
        return laplacian(self.blocks, v, n_threads=self.n_threads)

    def degrees(self) -> Floats:
        blocks, out = self.blocks, np.zeros(self.n_rows)
        degree = np.repeat(blocks.degree, np.diff(blocks.segment_start))
        out[blocks.order] = degree if blocks.row_weight is None else degree * blocks.row_weight
        return out


def label_graph(
    y: Floats,
    queries: Queries,
    ties: Ties = "include",
    cost: Cost = "magnitude",
    query_weight: QueryWeight = "size",
    *,
    row_weight: Floats | None = None,
    query_importance: Floats | None = None,
    levels: Levels | None = None,
    n_threads: int = 1,
) -> LabelGraph:
    """Build the graph of a label vector, or of several that share one Laplacian.

    Parameters
    ----------
    y : (rows,) or (rows, outputs) float64
        Several outputs only where `laplacian_depends_on_labels` is false.
    levels : Levels, optional
        The levels of `y`, if they are already computed.
    """
    if y.ndim == 2:
        weights: dict[str, Any] = {"row_weight": row_weight, "query_importance": query_importance}
        settings = queries, ties, cost, query_weight
        columns = np.ascontiguousarray(y.T)
        graphs = [label_graph(one, *settings, **weights, n_threads=n_threads) for one in columns]
        return replace(
            graphs[0],
            pull=np.column_stack([g.pull for g in graphs]),
            constant=np.array([float(g.constant) for g in graphs]),
        )
    levels = find_levels(y, queries, row_weight) if levels is None else levels
    size, ordered_pairs = _sizes(levels)
    scale = _pair_scale(query_weight, size, ordered_pairs)
    if query_importance is not None:
        scale = scale * query_importance
    blocks = _blocks(levels, queries, size, scale, ties, cost, row_weight, n_threads)

    if cost == "unit":
        pull, constant = _net_wins(levels, size, scale, row_weight), float(scale @ ordered_pairs)
    else:
        total = np.bincount(queries.codes, weights=_weighted(y, row_weight), minlength=len(queries))
        mean = np.divide(total, size, out=np.zeros_like(total), where=size > 0)
        centred = y - mean[queries.codes]  # L ignores shifts inside a query; rounding does not
        pull = laplacian(blocks, centred, n_threads=n_threads)
        constant = float(scale @ ordered_pairs) if cost == "relative" else float(centred @ pull)
    weight = float(scale @ ordered_pairs) if cost != "relative" else float(levels.weight @ blocks.degree) / 2
    return LabelGraph(blocks, pull, np.array(constant), weight, n_threads)


def _net_wins(levels: Levels, size: Floats, scale: Floats, row_weight: Floats | None) -> Floats:
    """Return ``A'ω``."""
    below = np.cumsum(levels.weight) - levels.weight - (np.cumsum(size) - size)[levels.query]
    balance = scale[levels.query] * (2 * below + levels.weight - size[levels.query])
    return _weighted(levels.spread(balance), row_weight)


def pair_scale(levels: Levels, query_weight: QueryWeight, query_importance: Floats | None = None) -> Floats:
    """Return the factor of each query's pairs: ``s_q`` times the query's importance."""
    scale = _pair_scale(query_weight, *_sizes(levels))
    return scale if query_importance is None else scale * query_importance


def _sizes(levels: Levels) -> tuple[Floats, Floats]:
    """Return the weight of each query's rows, and of its pairs with different labels."""
    n_queries = levels.ordered.size
    size, squares = (
        np.asarray(np.bincount(levels.query, part, n_queries), dtype=np.float64)
        for part in (levels.weight, levels.weight**2)
    )
    ordered_pairs = np.maximum(size**2 - squares, 0.0) / 2
    ordered_pairs[~levels.ordered] = 0.0  # rounding of weighted sums must not leave a trace
    return size, ordered_pairs


def _pair_scale(query_weight: QueryWeight, size: Floats, ordered_pairs: Floats) -> Floats:
    if query_weight == "pairs":
        return np.ones_like(size)
    total = size if query_weight == "size" else ordered_pairs
    # A query of total weight 0, or without an ordered pair where those are counted, takes no part.
    return np.divide(1.0, total, out=np.zeros_like(total), where=total > 0)


def _blocks(
    levels: Levels,
    queries: Queries,
    size: Floats,
    scale: Floats,
    ties: Ties,
    cost: Cost,
    row_weight: Floats | None,
    n_threads: int,
) -> QueryBlocks:
    n_queries = len(queries)
    # Where no two labels tie, both tie rules are the same Laplacian: take the simpler one.
    is_simple = ties == "include" or (cost != "relative" and levels.value.size == levels.n_rows)
    order, start = (queries.order, queries.offsets) if is_simple else (levels.order, levels.start)
    query = np.arange(n_queries) if is_simple else levels.query
    blocks = QueryBlocks(
        order=order,
        query_start=queries.offsets,
        segment_start=start,
        query_segment=np.searchsorted(query, np.arange(n_queries + 1)).astype(np.int64, copy=False),
        degree=scale[query] * (size[query] - (0.0 if is_simple else levels.weight)),
        scale=scale,
        coupling="all" if is_simple else "others",
        row_weight=None if row_weight is None else row_weight[order],
    )
    if cost != "relative":
        return blocks
    blocks = replace(blocks, coupling="relative", level_value=levels.value)
    return replace(blocks, degree=_relative_degree(blocks, levels, n_threads))


def _relative_degree(blocks: QueryBlocks, levels: Levels, n_threads: int) -> Floats:
    """Return ``s_q Σ_l n_l / (v_k - v_l)²`` for each level k, by the kernel itself.

    One row a level, of the level's weight and score 1, and degree 0: then ``(Lf)_k = -n_k T_k``.
    """
    n_levels = levels.value.size
    rows, none = np.arange(n_levels + 1, dtype=np.int64), np.zeros(n_levels)
    one_row_a_level = replace(
        blocks,
        order=rows[:-1],
        query_start=blocks.query_segment,
        segment_start=rows,
        degree=none,
        row_weight=levels.weight,
    )
    action = laplacian(one_row_a_level, np.ones(n_levels), n_threads=n_threads)
    return np.divide(-action, levels.weight, out=none, where=levels.weight > 0)


def _weighted(values: Floats, row_weight: Floats | None) -> Floats:
    return values if row_weight is None else values * row_weight


def mid_ranks(values: Floats, weight: Floats | None) -> tuple[Floats, Floats]:
    """Return the different values in increasing order, and the middle of the rank of each, from 0 to 1.

    A row of weight 2 counts as two rows, and a row of weight 0 does not count.
    """
    if weight is not None:
        values, weight = values[weight > 0], weight[weight > 0]
    found, at = np.unique(values, return_inverse=True)
    amount = np.bincount(at.reshape(-1), weight).astype(np.float64)
    places = (np.cumsum(amount) - amount / 2) / amount.sum()
    return found, places


def ranked(y: Floats, weight: Floats | None) -> Floats:
    """Replace labels by their ranks among all labels, from 0 to 1: the same order, without long tails."""
    values, places = mid_ranks(y, weight)
    return np.interp(y, values, places)
