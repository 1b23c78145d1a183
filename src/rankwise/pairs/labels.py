"""Pairs that labels induce inside queries: with or without ties, in three costs and three query weights.

Section 1.1 of docs/mathematics.md: with row weights ``w``, ``N = Σw`` of a query and a factor ``s_q`` per pair,

    ties included   L = s_q (N diag(w) - ww')                      every pair of rows, tied ones too
    ties excluded   the same minus each level's own term           pairs with different labels only
    relative        a pair also weighs 1/(y_i - y_j)^2             needs ties excluded

and the wanted difference of a pair is ``y_i - y_j`` (magnitude, relative) or its sign (unit). Sorting the
labels once is all it takes: every quantity here is a sum over queries or levels.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar, Literal

import numpy as np

from rankwise.arrays import AnyArray, Bools, Floats, Ints
from rankwise.data.queries import Queries
from rankwise.pairs.blocks import QueryBlocks, laplacian

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

    @cached_property
    def size(self) -> Floats:
        """The total row weight of each query."""
        return np.asarray(np.bincount(self.query, self.weight, self.ordered.size), dtype=np.float64)

    @cached_property
    def ordered_weight(self) -> Floats:
        """The total weight of each query's pairs with different labels, without `pair_scale`."""
        squares = np.bincount(self.query, self.weight**2, self.ordered.size)
        # Rounding of weighted sums must not leave a trace.
        return np.where(self.ordered, np.maximum(self.size**2 - squares, 0.0) / 2, 0.0)

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

    def with_outputs(self, graphs: Sequence[LabelGraph]) -> LabelGraph:
        """Return the graph of several outputs that share this Laplacian; see `laplacian_depends_on_labels`."""
        pull, constant = (
            np.column_stack([one.pull for one in graphs]),
            [float(one.constant) for one in graphs],
        )
        return replace(self, pull=pull, constant=np.array(constant))

    def degrees(self) -> Floats:
        return self.blocks.degrees()


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
    """Build the graph of a label vector; `levels` are those of the labels, if they are already computed."""
    levels = find_levels(y, queries, row_weight) if levels is None else levels
    size, scale = levels.size, pair_scale(levels, query_weight, query_importance)
    blocks = _blocks(levels, queries, scale, ties, cost, row_weight, n_threads)
    ordered = float(scale @ levels.ordered_weight)
    if cost == "unit":
        below = np.cumsum(levels.weight) - levels.weight - (np.cumsum(size) - size)[levels.query]
        balance = scale[levels.query] * (2 * below + levels.weight - size[levels.query])
        pull, constant = _weighted(levels.spread(balance), row_weight), ordered
    else:
        total = np.bincount(queries.codes, weights=_weighted(y, row_weight), minlength=len(queries))
        mean = np.divide(total, size, out=np.zeros_like(total), where=size > 0)
        centred = y - mean[queries.codes]  # L ignores shifts inside a query; rounding does not
        pull = laplacian(blocks, centred, n_threads=n_threads)
        constant = ordered if cost == "relative" else float(centred @ pull)
    weight = ordered if cost != "relative" else float(levels.weight @ blocks.degree) / 2
    return LabelGraph(blocks, pull, np.array(constant), weight, n_threads)


def pair_scale(levels: Levels, query_weight: QueryWeight, query_importance: Floats | None = None) -> Floats:
    """Return the factor of each query's pairs: ``s_q`` times the query's importance."""
    total = {"size": levels.size, "equal": levels.ordered_weight, "pairs": np.ones_like(levels.size)}
    # A query of total weight 0, or without an ordered pair where those are counted, takes no part.
    own = total[query_weight]
    scale = np.divide(1.0, own, out=np.zeros_like(own), where=own > 0)
    return np.asarray(scale if query_importance is None else scale * query_importance)


def _blocks(
    levels: Levels,
    queries: Queries,
    scale: Floats,
    ties: Ties,
    cost: Cost,
    row_weight: Floats | None,
    n_threads: int,
) -> QueryBlocks:
    n_queries, size = len(queries), levels.size
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
    # ``s_q Σ_l n_l / (v_k - v_l)²`` for each level k: at scores of 1 and degrees of 0, ``(Lf)_i = -w_i T_k``.
    none = np.zeros(levels.value.size)
    blocks = replace(blocks, coupling="relative", level_value=levels.value, degree=none)
    action = laplacian(blocks, np.ones(levels.n_rows), n_threads=n_threads)[order]
    total = -np.add.reduceat(action, start[:-1])
    return replace(blocks, degree=np.divide(total, levels.weight, out=none.copy(), where=levels.weight > 0))


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
