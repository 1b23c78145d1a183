"""Factors ``L = F'F`` of listed pairs: one of rows × rows by components, and one of pairs × rows for products.

`ComponentFactor` is the symmetric root, by an eigendecomposition of each connected component. Kernel matrices and
hold-out formulas use it, since it mixes no two components. `IncidenceFactor` is ``√Ω A`` itself, with ``t = √Ω z``, in
O(pairs) per product. Conjugate gradients use it where a matrix of rows × rows does not fit in memory.
"""

from __future__ import annotations

from functools import cached_property
from itertools import pairwise
from typing import ClassVar

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from rankwise.arrays import Floats
from rankwise.pairs.preferences import PreferenceGraph
from rankwise.runtime.threads import large_algebra

__all__ = ["ComponentFactor", "IncidenceFactor", "symmetric_roots"]

# An eigenvalue below this share of the largest is rounding.
_ROUNDING = 1e-13


class ComponentFactor:
    """The symmetric root of the Laplacian, component by component."""

    is_square: ClassVar[bool] = True

    def __init__(self, graph: PreferenceGraph) -> None:
        self._graph, adjacency = graph, graph.adjacency
        component = connected_components(adjacency, directed=False)[1]
        order = np.argsort(component, kind="stable")
        bounds = [0, *(np.flatnonzero(np.diff(component[order])) + 1).tolist(), order.size]
        groups = [order[a:b] for a, b in pairwise(bounds) if b - a > 1]
        self._parts = [(rows, *symmetric_roots(_laplacian(adjacency[rows][:, rows]))) for rows in groups]

    def apply(self, v: Floats) -> Floats:
        """Return ``F v``."""
        return self._each(v, 1)

    def transposed(self, v: Floats) -> Floats:
        """Return ``F' v``: F is symmetric."""
        return self._each(v, 1)

    def model(self, column: int, v: Floats) -> Floats:
        """Return ``F' v``."""
        return self.transposed(v)

    def values(self, predicted: Floats) -> Floats:
        """Return the differences, pair by pair, of ``f`` with ``F f = v`` as nearly as can be."""
        scores = self._each(predicted, 2)
        return np.asarray(scores[self._graph.winner] - scores[self._graph.loser])

    def target(self, pull: Floats) -> Floats:
        """Return ``t`` with ``F't = r``, in the range of ``F``."""
        return self._each(pull, 2)

    def sandwich(self, kernel: Floats) -> Floats:
        """Overwrite a square matrix by ``F K F'``."""
        kernel[:] = self.apply(kernel)
        kernel[:] = self.apply(kernel.T).T
        return kernel

    def _each(self, v: Floats, which: int) -> Floats:
        out = np.zeros_like(v)
        for part in self._parts:
            root, own = part[which], v[part[0]]
            with large_algebra(own.shape[0]):
                out[part[0]] = root @ own
        return out


def symmetric_roots(matrix: Floats) -> tuple[Floats, Floats]:
    """Return the root of a matrix without negative eigenvalues beyond rounding, and its pseudo-inverse."""
    with large_algebra(matrix.shape[0]):
        values, vectors = np.linalg.eigh(matrix)
        root = np.sqrt(np.where(values > _ROUNDING * values.max(initial=0.0), values, 0.0))
        inverse = np.divide(1.0, root, out=np.zeros_like(root), where=root > 0)
        return (vectors * root) @ vectors.T, (vectors * inverse) @ vectors.T


def _laplacian(adjacency: sp.csr_array) -> Floats:
    dense = adjacency.toarray()
    return np.asarray(np.diag(dense.sum(axis=1)) - dense)


class IncidenceFactor:
    """``F = √Ω A``: a row per pair.

    Parameters
    ----------
    keeps : (pairs, columns) float64, optional
        0 where a column lacks a pair, else 1; then there is a column per fold.
    """

    is_square: ClassVar[bool] = False

    def __init__(self, graph: PreferenceGraph, keeps: Floats | None = None) -> None:
        self._graph, self._keeps = graph, keeps

    @cached_property
    def _incidence(self) -> sp.csr_array:
        graph = self._graph
        root = np.sqrt(graph.pair_weight)
        start = np.arange(0, 2 * root.size + 1, 2)
        rows = np.column_stack([graph.winner, graph.loser]).ravel()
        return sp.csr_array(
            (np.column_stack([root, -root]).ravel(), rows, start), shape=(root.size, graph.n_rows)
        )

    @cached_property
    def _transposed(self) -> sp.csr_array:
        return self._incidence.T.tocsr()

    def apply(self, v: Floats) -> Floats:
        """Return ``F v``; v may be sparse."""
        image = self._incidence @ v
        dense = np.asarray(image.toarray() if sp.issparse(image) else image)
        return dense if self._keeps is None else self._keeps * dense

    def transposed(self, v: Floats) -> Floats:
        """Return ``F' v``."""
        return np.asarray(self._transposed @ (v if self._keeps is None else self._keeps * v))

    def model(self, column: int, v: Floats) -> Floats:
        """Return ``F' v`` by the factor of a column."""
        return np.asarray(self._transposed @ (v if self._keeps is None else self._keeps[:, column] * v))

    def values(self, predicted: Floats) -> Floats:
        """Return differences, pair by pair; 0 where a pair weighs nothing."""
        root = np.sqrt(self._graph.pair_weight)
        inverse = np.divide(1.0, root, out=np.zeros_like(root), where=root > 0)
        return predicted * inverse.reshape(-1, *[1] * (predicted.ndim - 1))

    def target(self, pull: Floats) -> Floats:
        """Return ``t = √Ω z``, whose ``F't`` is the graph's own pull."""
        return np.sqrt(self._graph.pair_weight) * self._graph.difference

    def sandwich(self, kernel: Floats) -> Floats:
        """Return ``F K F'``, a matrix of pairs × pairs."""
        return self.apply(np.ascontiguousarray(self.apply(kernel).T)).T
