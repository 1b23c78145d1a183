"""Factors ``F`` of the Laplacian, ``L = F'F``, for kernels and hold-out formulas (docs/mathematics.md, section 1.2).

`LabelFactor` takes O(rows). With row weights ``w``, a level k of weight ``n_k`` spans the unit vector
``u_k = √w / √n_k``. In the coordinates ``√w f`` the Laplacian of a query has two invariant spaces: the vectors
orthogonal to each ``u_k``, which it multiplies by the level's degree, and the span of the ``u_k``, where it is a matrix
of levels × levels, ``B = diag(degree) - s_q (√n_k √n_l W_kl)`` with the coupling W of `rankwise.pairs.blocks`. So its
symmetric root is ``R = Σ √degree_k C_k + U √B U'`` and ``F = R diag(√w)``. B is 0 where ties are compared (one level),
``s_q N (I - ν ν')`` with ``ν = √n / √N`` where they are not, and dense for the relative cost, whose root takes an
eigendecomposition of levels × levels per query.

`ComponentFactor` is the symmetric root for listed pairs, by an eigendecomposition of each connected component. Kernel
matrices and hold-out formulas use it, since it mixes no two components. `IncidenceFactor` is ``√Ω A`` itself, with
``t = √Ω z``, in O(pairs) per product. Conjugate gradients use it where a matrix of rows × rows does not fit in memory.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise, starmap
from typing import ClassVar, Protocol

import numpy as np
import scipy.sparse
from scipy.sparse.csgraph import connected_components, laplacian

from rankwise import _core
from rankwise.arrays import Floats, Ints
from rankwise.exceptions import MemoryLimitError
from rankwise.pairs.blocks import MANY_SCORES, QueryBlocks, as_table
from rankwise.pairs.graph import PairGraph
from rankwise.pairs.preferences import PreferenceGraph
from rankwise.runtime.memory import fits
from rankwise.runtime.threads import large_algebra

# An eigenvalue below this share of the largest, of its query or component, is rounding.
_ROUNDING = 1e-13


class Factor(Protocol):
    """A factor of one graph.

    Attributes
    ----------
    is_square : bool
        Whether its units are the rows.
    """

    is_square: ClassVar[bool] = True

    def apply(self, v: Floats) -> Floats:
        """Return ``F v`` for a vector, or for the columns of a block."""

    def transposed(self, v: Floats) -> Floats:
        """Return ``F' v``."""

    def target(self, pull: Floats) -> Floats:
        """Return ``t`` with ``F't = r``, in the range of ``F``."""

    def values(self, predicted: Floats) -> Floats:
        """Return the values of entries, scores of rows or differences of pairs, that have the image `predicted`."""

    def sandwich(self, kernel: Floats) -> Floats:
        """Return ``F K F'``: a square matrix is overwritten, a few columns at a time."""
        step = max(1, (1 << 20) // max(1, kernel.shape[0]))
        for side in (kernel, kernel.T):
            for first in range(0, side.shape[1], step):
                side[:, first : first + step] = self.apply(side[:, first : first + step])
        return kernel


@dataclass(frozen=True)
class ColumnFactor:
    """A factor of each column of a block: one that all share, or one per column."""

    factors: Sequence[Factor]

    def apply(self, v: Floats) -> Floats:
        """Return ``F v``."""
        return np.hstack([factor.apply(own) for factor, own in self._parts(v)])

    def transposed(self, v: Floats) -> Floats:
        """Return ``F' v``."""
        return np.hstack([factor.transposed(own) for factor, own in self._parts(v)])

    def _parts(self, v: Floats) -> Iterator[tuple[Factor, Floats]]:
        """Yield the columns of each factor."""
        return zip(self.factors, np.split(v, len(self.factors), axis=1), strict=True)

    def model(self, column: int, v: Floats) -> Floats:
        """Return ``F' v`` by the factor of a column."""
        return self.factors[min(column, len(self.factors) - 1)].transposed(v)


class LabelFactor(Factor):
    """The factor of labels, its transpose, and its pseudo-inverse; queries do not mix.

    Vectors are in the caller's row order, on both sides.
    """

    def __init__(self, blocks: QueryBlocks, n_threads: int = 1) -> None:
        self.blocks, self.n_threads = blocks, n_threads
        self._is_grouped = np.array_equal(blocks.order, np.arange(blocks.order.size))
        n_levels = np.diff(blocks.query_segment)
        self._level = blocks.of_rows(np.repeat(np.arange(n_levels.sum()), np.diff(blocks.segment_start)))
        self._query = np.repeat(np.arange(n_levels.size), n_levels)  # of each level
        weight = blocks.row_weight
        self._root_weight = np.ones(self._level.size) if weight is None else np.sqrt(blocks.of_rows(weight))
        self._level_norm = np.sqrt(np.bincount(self._level, self._root_weight**2, self._query.size))
        # The u_k as columns.
        entries = self._root_weight * _reciprocal(self._level_norm)[self._level]
        self._directions = _grouping(entries, self._level, self._query.size)
        self._size = np.bincount(self._query, self._level_norm**2, n_levels.size)
        # Degrees that differ from 0 by rounding of weighted sums are 0; those of the relative cost add positive terms.
        rounding = 0.0 if blocks.coupling == "relative" else _ROUNDING
        least = rounding * (blocks.scale * self._size)[self._query]
        self._root_degree = np.sqrt(np.where(blocks.degree > least, blocks.degree, 0.0))

    def apply(self, v: Floats) -> Floats:
        """Return ``F v`` for a vector, or for the columns of a block."""
        if self.blocks.coupling != "all":
            return self._root((self._root_weight * v.T).T, inverse=False)
        # Where ties are compared: rows minus their query's mean, scaled, in one compiled pass.
        table = v.reshape(v.shape[0], -1)
        grouped = np.array(table if self._is_grouped else table[self.blocks.order], np.float64, order="C")
        threads = self.n_threads if grouped.size >= MANY_SCORES else 1
        _core.centre_queries(self.blocks.compiled(), 0, self._size.size, grouped, None, threads)
        return (grouped if self._is_grouped else self.blocks.of_rows(grouped)).reshape(v.shape)

    def transposed(self, v: Floats) -> Floats:
        """Return ``F' v``."""
        return (self._root_weight * self._root(v, inverse=False).T).T

    def values(self, predicted: Floats) -> Floats:
        """Return ``f`` with ``F f = v`` as nearly as can be, every query centred; 0 where a row weighs nothing."""
        return (_reciprocal(self._root_weight) * self._root(predicted, inverse=True).T).T

    def target(self, pull: Floats) -> Floats:
        """Return ``t`` with ``F't = r``, in the range of ``F``."""
        return self._root((_reciprocal(self._root_weight) * pull.T).T, inverse=True)

    def _root(self, v: Floats, *, inverse: bool) -> Floats:
        """Apply ``R`` or its pseudo-inverse to a vector or a block."""
        table = as_table(v)
        along = self._directions.T @ table
        within = _reciprocal(self._root_degree) if inverse else self._root_degree
        rest = self._mixed_levels(along, inverse=inverse) - within[:, None] * along
        return np.asarray(within[self._level, None] * table + self._directions @ rest).reshape(v.shape)

    def _mixed_levels(self, along: Floats, *, inverse: bool) -> Floats:
        """Apply ``√B`` or its pseudo-inverse to the levels' coordinates."""
        if self.blocks.coupling == "all":
            return np.zeros_like(along)
        if self.blocks.coupling == "relative":
            return np.concatenate([roots[inverse] @ along[levels] for levels, roots in self._between])
        size = np.sqrt(self._size)
        nu = _grouping(self._level_norm * _reciprocal(size)[self._query], self._query, size.size)
        scale = np.sqrt(self.blocks.scale) * size
        scale = _reciprocal(scale) if inverse else scale
        return np.asarray(scale[self._query, None] * (along - nu @ (nu.T @ along)))

    @cached_property
    def _between(self) -> list[tuple[slice, tuple[Floats, Floats]]]:
        """For the relative coupling, the levels of each query, their ``√B`` and its pseudo-inverse."""
        blocks, roots = self.blocks, []
        assert blocks.level_value is not None
        for levels, scale in zip(starmap(slice, pairwise(blocks.query_segment)), blocks.scale, strict=True):
            value, norm = blocks.level_value[levels], self._level_norm[levels]
            _require_memory(value.size, "different labels")
            gaps = np.subtract.outer(value, value)
            np.fill_diagonal(gaps, np.inf)
            B = -scale * np.outer(norm, norm) / gaps**2
            np.fill_diagonal(B, blocks.degree[levels])
            roots.append((levels, _symmetric_roots(B)))
        return roots


class ComponentFactor(Factor):
    """The symmetric root of the Laplacian, component by component."""

    def __init__(self, graph: PreferenceGraph) -> None:
        self._graph = graph
        self._parts = [(rows, *_symmetric_roots(matrix)) for rows, matrix in _components(graph)]

    def apply(self, v: Floats) -> Floats:
        """Return ``F v``."""
        return self._each(v, 1)

    transposed = apply  # F is symmetric

    def values(self, predicted: Floats) -> Floats:
        """Return the differences, pair by pair, of scores ``f`` with ``F f = v`` as nearly as can be."""
        return self._graph.differences(self._each(predicted, 2))

    def target(self, pull: Floats) -> Floats:
        """Return ``t`` with ``F't = r``, in the range of ``F``."""
        return self._each(pull, 2)

    def _each(self, v: Floats, which: int) -> Floats:
        out = np.zeros_like(v)
        for part in self._parts:
            root, own = part[which], v[part[0]]
            with large_algebra(own.shape[0]):
                out[part[0]] = root @ own
        return out


def _components(graph: PreferenceGraph) -> Iterator[tuple[Ints, Floats]]:
    """Yield the rows of each component of several rows, and the Laplacian of these rows."""
    component = connected_components(graph.adjacency, directed=False)[1]
    order = np.argsort(component, kind="stable")
    bounds = [0, *(np.flatnonzero(np.diff(component[order])) + 1).tolist(), order.size]
    for rows in (order[a:b] for a, b in pairwise(bounds) if b - a > 1):
        _require_memory(rows.size, "rows that pairs connect")
        yield rows, laplacian(graph.adjacency[rows][:, rows].toarray())


def _require_memory(size: int, what: str) -> None:
    """Raise an error unless a matrix, its eigenvectors and two roots fit."""
    needed = 8 * 4 * size**2
    if not fits(needed):
        raise MemoryLimitError(
            f"The root of the Laplacian of {size:,} {what} takes {needed / 2**30:.1f} GiB.",
            "use a linear model, basis= or, for preferences, solver='cg' with cv=5: these only multiply.",
        )


def _symmetric_roots(matrix: Floats) -> tuple[Floats, Floats]:
    """Return the root of a matrix without negative eigenvalues beyond rounding, and its pseudo-inverse."""
    with large_algebra(matrix.shape[0]):
        values, vectors = np.linalg.eigh(matrix)
        root = np.sqrt(np.where(values > _ROUNDING * values.max(initial=0.0), values, 0.0))
        return (vectors * root) @ vectors.T, (vectors * _reciprocal(root)) @ vectors.T


class IncidenceFactor(Factor):
    """``F = √Ω A``: a row per pair."""

    is_square: ClassVar[bool] = False

    def __init__(self, graph: PreferenceGraph) -> None:
        self._graph, self._root = graph, np.sqrt(graph.pair_weight)

    @cached_property
    def _incidence(self) -> scipy.sparse.csr_array:
        graph, root = self._graph, self._root
        start = np.arange(0, 2 * root.size + 1, 2)
        rows = np.column_stack([graph.winner, graph.loser]).ravel()
        return scipy.sparse.csr_array(
            (np.column_stack([root, -root]).ravel(), rows, start), shape=(root.size, graph.n_rows)
        )

    def apply(self, v: Floats) -> Floats:
        """Return ``F v``; v may be sparse."""
        image = self._incidence @ v
        return np.asarray(image.toarray() if scipy.sparse.issparse(image) else image)

    def transposed(self, v: Floats) -> Floats:
        """Return ``F' v``."""
        return np.asarray(self._incidence.T @ v)

    def values(self, predicted: Floats) -> Floats:
        """Return differences, pair by pair; 0 where a pair weighs nothing."""
        return (predicted.T * _reciprocal(self._root)).T

    def target(self, pull: Floats) -> Floats:
        """Return ``t = √Ω z``, whose ``F't`` is the graph's own pull."""
        return self._root * self._graph.difference

    def sandwich(self, kernel: Floats) -> Floats:
        """Return ``F K F'``, a matrix of pairs × pairs."""
        return self.apply(np.ascontiguousarray(self.apply(kernel).T)).T


def factor_of(graph: PairGraph, *, by_products: bool = False) -> Factor:
    """Return the factor of a graph.

    Parameters
    ----------
    by_products : bool
        Whether vectors alone are to be multiplied: listed pairs then need no matrix of rows × rows.
    """
    if graph.blocks is not None:
        return LabelFactor(graph.blocks, graph.n_threads)
    assert isinstance(graph, PreferenceGraph)
    return IncidenceFactor(graph) if by_products else ComponentFactor(graph)


def _grouping(entry: Floats, group: Ints, n_groups: int) -> scipy.sparse.csr_array:
    """Return a sparse matrix with one entry per row, in the column of its group."""
    return scipy.sparse.csr_array((entry, group, np.arange(entry.size + 1)), shape=(entry.size, n_groups))


def _reciprocal(values: Floats) -> Floats:
    return np.asarray(np.divide(1.0, values, out=np.zeros_like(values), where=values > 0))
