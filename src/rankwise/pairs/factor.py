"""A factor ``F`` of the Laplacian of labels, ``L = F'F``, applied in O(rows), for kernels and hold-out formulas.

See docs/mathematics.md, section 1.2. With row weights ``w``, a level k of weight ``n_k`` spans the unit vector
``u_k = √w / √n_k``.
In the coordinates ``√w f`` the Laplacian of a query has two invariant spaces: the vectors orthogonal to each ``u_k``,
which it multiplies by the level's degree, and the span of the ``u_k``, where it is a matrix of levels × levels,

    B = diag(degree) - s_q (√n_k √n_l W_kl)          W: the coupling of `rankwise.pairs.blocks`

so its symmetric root is ``R = Σ √degree_k C_k + U √B U'`` and ``F = R diag(√w)``. B is 0 where ties are compared (one
level), ``s_q N (I - ν ν')`` with ``ν = √n / √N`` where they are not, and dense only for the relative cost, whose root
takes an eigendecomposition of levels × levels a query. Explicit preferences have no such root: see
`rankwise.pairs.preferences`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Protocol

import numpy as np
import numpy.typing as npt

from rankwise import _core
from rankwise.arrays import Floats
from rankwise.pairs.blocks import MANY_SCORES, QueryBlocks
from rankwise.pairs.graph import PairGraph
from rankwise.pairs.preferences import ComponentFactor, IncidenceFactor, PreferenceGraph, symmetric_roots

__all__ = ["ColumnFactor", "Factor", "LabelFactor", "factor_of"]

# An eigenvalue below this share of the largest of its query is rounding.
_ROUNDING = 1e-13


class ColumnFactor(Protocol):
    """A factor of each column of a block, of one graph or of one per column."""

    def apply(self, v: Floats) -> Floats:
        """Return ``F v``."""

    def transposed(self, v: Floats) -> Floats:
        """Return ``F' v``."""

    def model(self, column: int, v: Floats) -> Floats:
        """Return ``F' v`` by the factor of a column."""


class Factor(ColumnFactor, Protocol):
    """A factor of one graph, for kernels and hold-out formulas.

    Attributes
    ----------
    is_square : bool
        Whether its units are the rows.
    """

    is_square: ClassVar[bool]

    def target(self, pull: Floats) -> Floats:
        """Return ``t`` with ``F't = r``."""

    def sandwich(self, kernel: Floats) -> Floats:
        """Return ``F K F'``, in the place of K where it has that size."""

    def values(self, predicted: Floats) -> Floats:
        """Return the values of entries, scores of rows or differences of pairs, that have the image `predicted`."""


@dataclass(frozen=True)
class LabelFactor:
    """``F`` with ``L = F'F``, its transpose, and its pseudo-inverse; queries do not mix.

    Vectors are in the caller's row order, on both sides.
    """

    blocks: QueryBlocks
    n_threads: int = 1

    is_square: ClassVar[bool] = True

    def apply(self, v: Floats) -> Floats:
        """Return ``F v`` for a vector, or for the columns of a block."""
        if self.blocks.coupling == "all":
            return self._centred(v)
        return self._ungrouped(self._root(self._grouped(v, self.root_weight), inverse=False), v)

    def _centred(self, v: Floats) -> Floats:
        """Return ``F v`` where ties are compared: rows minus their query's mean, scaled; one compiled pass."""
        blocks = self.blocks
        table = np.array(v.reshape(v.shape[0], -1), dtype=np.float64, order="C", copy=True)
        threads = self.n_threads if table.size >= MANY_SCORES else 1
        if self._in_order:
            _core.centre_queries(blocks.compiled(), 0, blocks.scale.size, table, None, threads)
            return table.reshape(v.shape)
        grouped = np.ascontiguousarray(table[blocks.order])
        _core.centre_queries(blocks.compiled(), 0, blocks.scale.size, grouped, None, threads)
        table[blocks.order] = grouped
        return table.reshape(v.shape)

    @cached_property
    def _in_order(self) -> bool:
        """Whether the rows of each query are already adjacent."""
        return bool(np.array_equal(self.blocks.order, np.arange(self.blocks.order.size)))

    def transposed(self, v: Floats) -> Floats:
        """Return ``F' v``."""
        return self._ungrouped(_times(self.root_weight, self._root(self._grouped(v), inverse=False)), v)

    def model(self, column: int, v: Floats) -> Floats:
        """Return ``F' v``."""
        return self.transposed(v)

    def values(self, predicted: Floats) -> Floats:
        """Return ``f`` with ``F f = v`` as nearly as can be, every query centred; 0 where a row weighs nothing."""
        v = predicted
        return self._ungrouped(_times(self._inverse_weight, self._root(self._grouped(v), inverse=True)), v)

    def target(self, pull: Floats) -> Floats:
        """Return ``t`` with ``F't = r``, in the range of ``F``."""
        return self._ungrouped(self._root(self._grouped(pull, self._inverse_weight), inverse=True), pull)

    def sandwich(self, kernel: Floats) -> Floats:
        """Overwrite a square matrix by ``F K F'``, a few columns at a time."""
        step = max(1, (1 << 20) // max(1, kernel.shape[0]))
        for side in (kernel, kernel.T):
            for first in range(0, side.shape[1], step):
                side[:, first : first + step] = self.apply(
                    np.ascontiguousarray(side[:, first : first + step])
                )
        return kernel

    @cached_property
    def root_weight(self) -> Floats | None:
        """``√w`` in grouped order, or None where every row weighs 1."""
        weight = self.blocks.row_weight
        return None if weight is None else np.sqrt(weight)

    @cached_property
    def _inverse_weight(self) -> Floats | None:
        root = self.root_weight
        return None if root is None else np.divide(1.0, root, out=np.zeros_like(root), where=root > 0)

    @cached_property
    def _level_direction(self) -> Floats:
        """The entries of the ``u_k``, a row at a time in grouped order."""
        root = np.ones(self.blocks.order.size) if self.root_weight is None else self.root_weight
        return root * np.repeat(_reciprocal(self._level_norm), self._level_rows)

    @cached_property
    def _level_rows(self) -> npt.NDArray[np.int64]:
        return np.diff(self.blocks.segment_start)

    @cached_property
    def _level_norm(self) -> Floats:
        """``√n_k``."""
        weight = self.blocks.row_weight
        sizes = self._level_rows.astype(np.float64)
        return np.sqrt(sizes if weight is None else np.add.reduceat(weight, self.blocks.segment_start[:-1]))

    @cached_property
    def _root_degree(self) -> Floats:
        """``√degree_k``, with 0 for degrees that differ from 0 only by rounding of weighted sums."""
        degree, query_level = self.blocks.degree, self.blocks.query_segment[:-1]
        weight = np.add.reduceat(self._level_norm**2, query_level) * self.blocks.scale
        rounding = _ROUNDING * np.repeat(weight, np.diff(self.blocks.query_segment))
        if self.blocks.coupling == "relative":
            rounding = np.zeros_like(degree)  # a sum of positive terms
        return np.sqrt(np.where(degree > rounding, degree, 0.0))

    @cached_property
    def _between(self) -> list[tuple[slice, Floats, Floats]]:
        """The queries' ``√B`` for the relative coupling, and their pseudo-inverses."""
        blocks, roots = self.blocks, []
        for query, (first, last) in enumerate(
            zip(blocks.query_segment, blocks.query_segment[1:], strict=False)
        ):
            levels = slice(int(first), int(last))
            assert blocks.level_value is not None
            gaps = blocks.level_value[levels, None] - blocks.level_value[None, levels]
            np.fill_diagonal(gaps, np.inf)
            norm = self._level_norm[levels]
            B = -blocks.scale[query] * np.outer(norm, norm) / gaps**2
            np.fill_diagonal(B, blocks.degree[levels])
            roots.append((levels, *symmetric_roots(B)))
        return roots

    def _root(self, v: Floats, *, inverse: bool) -> Floats:
        """Apply ``R`` or its pseudo-inverse to a (rows, k) block in grouped order."""
        blocks = self.blocks
        u = self._level_direction[:, None]
        along = np.add.reduceat(u * v, blocks.segment_start[:-1], axis=0)
        within = _reciprocal(self._root_degree) if inverse else self._root_degree
        rest = self._mixed_levels(along, inverse=inverse) - within[:, None] * along
        return np.repeat(within, self._level_rows)[:, None] * v + u * np.repeat(
            rest, self._level_rows, axis=0
        )

    def _mixed_levels(self, along: Floats, *, inverse: bool) -> Floats:
        """Apply ``√B`` or its pseudo-inverse to the levels' coordinates."""
        blocks = self.blocks
        if blocks.coupling == "all":
            return np.zeros_like(along)
        if blocks.coupling == "relative":
            out = np.empty_like(along)
            for levels, root, pseudo_inverse in self._between:
                out[levels] = (pseudo_inverse if inverse else root) @ along[levels]
            return out
        first = blocks.query_segment[:-1]
        size = np.sqrt(np.add.reduceat(self._level_norm**2, first))
        n_levels = np.diff(blocks.query_segment)
        nu = (self._level_norm * np.repeat(_reciprocal(size), n_levels))[:, None]
        centred = along - nu * np.repeat(np.add.reduceat(nu * along, first, axis=0), n_levels, axis=0)
        scale = np.sqrt(blocks.scale) * size
        scale = _reciprocal(scale) if inverse else scale
        return np.asarray(np.repeat(scale, n_levels)[:, None] * centred)

    def _grouped(self, v: Floats, scale: Floats | None = None) -> Floats:
        return _times(scale, v[self.blocks.order].reshape(v.shape[0], -1))

    def _ungrouped(self, grouped: Floats, like: Floats) -> Floats:
        out = np.empty_like(grouped)
        out[self.blocks.order] = grouped
        return out.reshape(like.shape)


def factor_of(graph: PairGraph, *, by_products: bool = False) -> Factor:
    """Return the factor of a graph.

    Parameters
    ----------
    by_products : bool
        Whether vectors alone are to be multiplied: listed pairs then need no matrix of rows × rows.
    """
    if graph.blocks is not None:
        return LabelFactor(graph.blocks)
    assert isinstance(graph, PreferenceGraph)
    return IncidenceFactor(graph) if by_products else ComponentFactor(graph)


def _times(scale: Floats | None, rows: Floats) -> Floats:
    return rows if scale is None else np.asarray(scale[:, None] * rows)


def _reciprocal(values: Floats) -> Floats:
    return np.asarray(np.divide(1.0, values, out=np.zeros_like(values), where=values > 0))
