"""Rows on a cluster as a design: a product sends a vector to every worker and adds up what comes back."""

from __future__ import annotations

from typing import cast
from uuid import uuid4
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from scipy.sparse.linalg import LinearOperator

from rankwise.arrays import AnyArray, DType, Floats, Ints
from rankwise.design import OperatorDesign, Shift, as_design
from rankwise.design.protocol import Design, GramProduct, RowIndex
from rankwise.distributed.cluster import Cluster
from rankwise.distributed.counting import ClusterPairs, ClusterScores, QueryPairs, pairs_on
from rankwise.distributed.products import ClusterProduct, Parts, joined_diagonal, joined_matrix, parts_of
from rankwise.distributed.row_vectors import RowSpace
from rankwise.distributed.worker_rows import WorkerRows
from rankwise.exceptions import MemoryLimitError
from rankwise.pairs.blocks import Folds, QueryBlocks
from rankwise.runtime.memory import fits

__all__ = ["DaskDesign"]

# Bytes of rows that are brought to the client where many products with them alone follow.
_FEW_BYTES = 1 << 26
# Rows of pairs on two workers that are compared at a time.
_PAIRS = 1 << 14


class DaskDesign(Design):
    """The rows of a cluster; see `rankwise.design.Design`.

    Scores, and whatever else has a value per row, are in the order of the rows of the caller's collection.
    """

    has_rows = True
    # Its rows are far away: whoever wants all of them in memory asks for room first.
    is_on_disk = True
    # Every worker sends a matrix of columns × columns.
    widest_matrix = 4096

    def __init__(self, cluster: Cluster, n_threads: int, shift: Shift | None = None) -> None:
        self.cluster, self.n_threads, self.shift = cluster, n_threads, shift
        survey = cluster.survey
        self.shape: tuple[int, int] = survey.shape
        self.dtype: DType = survey.dtype
        self.nnz, self.is_dense = survey.nnz, survey.lengths is None
        self.reads = 0
        self._spaces: WeakKeyDictionary[QueryPairs, RowSpace | None] = WeakKeyDictionary()

    def shifted(self, shift: Shift) -> DaskDesign:
        """Subtract constants from columns, on the workers."""
        told = [(shift.columns, shift.values)] * len(self.cluster.shares)
        self.cluster.set_up(WorkerRows.shift, told)
        return DaskDesign(self.cluster, self.n_threads, shift)

    def dot(self, v: Floats) -> Floats:
        """Return ``X v``."""
        self.count(v)
        return self.cluster.shares.joined(list(self.cluster.everywhere(WorkerRows.dot, v)))

    def tdot(self, u: Floats) -> Floats:
        """Return ``X' u``."""
        self.count(u)
        found: Floats = self.cluster.total(
            WorkerRows.tdot, [(part,) for part in self.cluster.shares.split(u)]
        )
        return found

    def gram_product(self, blocks: QueryBlocks, folds: Folds | None = None) -> GramProduct | None:
        """Return the product that sends n numbers out and gets n back from every worker.

        None for pairs that weigh 1/difference² of one ranking, whose levels all meet each other.
        """
        parts = parts_of(self.cluster.shares, blocks, folds)
        return None if parts is None else ClusterProduct(self, parts)

    def gram_matrix(self, blocks: QueryBlocks) -> Floats | None:
        """Return ``X' L X``, (n, n)."""
        parts = self._parts(blocks)
        return None if parts is None else joined_matrix(self.cluster, parts)

    def gram_diagonal(self, blocks: QueryBlocks) -> Floats | None:
        """Return ``diag(X' L X)``."""
        parts = self._parts(blocks)
        return None if parts is None else joined_diagonal(self.cluster, parts)

    def squared_differences(
        self, one: npt.NDArray[np.int64], other: npt.NDArray[np.int64], weight: Floats
    ) -> Floats:
        """Return ``Σ weight_k (x_one[k] - x_other[k])²``; rows of pairs on two workers come to the client."""
        self.reads += 1
        shares = self.cluster.shares
        mine, yours = shares.owners(one), shares.owners(other)
        told = []
        for number, share in enumerate(shares):
            at = np.flatnonzero((mine == number) & (yours == number))
            told.append((share.positions(one[at]), share.positions(other[at]), weight[at]))
        total: Floats = self.cluster.total(WorkerRows.squared_differences, told)
        apart = np.flatnonzero(mine != yours)
        for first in range(0, apart.size, _PAIRS):
            pairs = apart[first : first + _PAIRS]
            rows, place = np.unique(np.concatenate((one[pairs], other[pairs])), return_inverse=True)
            gathered, place = self.gathered(rows), place.reshape(2, -1)
            found = gathered.squared_differences(place[0], place[1], weight[pairs])
            assert found is not None  # rows in memory have differences
            total += found
        return total

    def rows(self, index: RowIndex) -> Design:
        """Return the design of a subset of rows: a few come to the client, of many only scores do."""
        rows = np.arange(self.shape[0])[index]
        if self._bytes(rows.size) <= _FEW_BYTES:
            return self.gathered(rows)
        shares, name = self.cluster.shares, f"rows-{uuid4().hex}"
        places = [at for at, _ in shares.listed(rows)]
        self.cluster.keep(name, WorkerRows.keep, [(own,) for _, own in shares.listed(rows)])

        def dot(v: Floats) -> Floats:
            self.count(v)
            out = np.empty((rows.size, *v.shape[1:]))
            for at, found in zip(places, self.cluster.everywhere(WorkerRows.dot, v, name), strict=True):
                out[at] = found
            return out

        def tdot(u: Floats) -> Floats:
            spread = np.zeros((self.shape[0], *u.shape[1:]))
            np.add.at(spread, rows, u)
            return self.tdot(spread)

        shape = (rows.size, self.shape[1])
        operator = LinearOperator(shape, matvec=dot, rmatvec=tdot, matmat=dot, rmatmat=tdot, dtype=np.float64)
        return OperatorDesign(operator, self.n_threads)

    def gathered(self, rows: Ints) -> Design:
        """Return the design of so few rows that they fit in the client's memory."""
        listed = self.cluster.shares.listed(rows)
        parts = list(self.cluster.answers(WorkerRows.gathered, [(own,) for _, own in listed]))
        order = np.argsort(np.concatenate([at for at, _ in listed]))
        whole = (
            sp.vstack(parts, format="csr")
            if not self.is_dense
            else np.concatenate([np.asarray(part) for part in parts])
        )
        return as_design(whole[order], self.n_threads)

    def matrix(self) -> AnyArray | sp.csr_matrix:
        """Return all rows at the client, where they fit."""
        needed = 2 * self._bytes(self.shape[0])
        if not fits(needed):
            raise MemoryLimitError(
                f"This needs all rows in the memory of one machine, and they take {needed / 2**30:.1f} GiB there.",
                "use a method that needs products only, such as cv=5 in place of exact hold-out.",
            )
        return self.gathered(np.arange(self.shape[0])).matrix()

    def expect_products(self) -> None:
        """Let workers prepare for many of `dot` and `tdot`."""
        self.cluster.set_up(WorkerRows.expect_products, [()] * len(self.cluster.shares))

    def _parts(self, blocks: QueryBlocks) -> Parts | None:
        self.reads += 1
        return parts_of(self.cluster.shares, blocks, None)

    def counting(self, pairs: object) -> tuple[ClusterScores, ClusterPairs] | None:
        """Return what evaluates losses over pairs on the workers; None where queries are not whole there.

        Pairs are told once: the fits of a path over alpha share them.
        """
        if not hasattr(pairs, "query_rows"):
            return None  # listed pairs join any two rows
        own = cast("QueryPairs", pairs)
        if own not in self._spaces:
            self._spaces[own] = pairs_on(self, own)
        space = self._spaces[own]
        return None if space is None else (ClusterScores(self, space), ClusterPairs(own, space))

    def count(self, vectors: Floats) -> None:
        """Take note of a product."""
        self.reads += 1
        self.cluster.n_products += 1 if vectors.ndim == 1 else vectors.shape[1]

    def _bytes(self, n_rows: int) -> int:
        return self.cluster.survey.bytes_of(n_rows, n_rows * self.nnz // max(self.shape[0], 1))
