"""Rows on a cluster as a design: coefficients travel to the workers, and the parts of each worker are added."""

from __future__ import annotations

import weakref
from dataclasses import dataclass
from typing import cast
from uuid import uuid4
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from rankwise.arrays import AnyArray, DType, Floats, Ints
from rankwise.design import Shift, as_design
from rankwise.design.operator import known_rows
from rankwise.design.protocol import Design, GramProduct, Products, RowIndex
from rankwise.distributed.cluster import Cluster
from rankwise.distributed.shares import Part
from rankwise.distributed.worker import WorkerRows
from rankwise.exceptions import MemoryLimitError
from rankwise.pairs.blocks import Folds, QueryBlocks, as_table
from rankwise.pairs.graph import MarginPairs, SmoothedHinge
from rankwise.pairs.violations import ViolationSweep
from rankwise.runtime.memory import fits

_FEW_BYTES = 1 << 26  # rows of this size are brought to the client where many products with them alone follow
_PAIRS = 1 << 14  # pairs on two workers that are compared at a time


class DaskDesign(Design):
    """The rows of a cluster; see `rankwise.design.Design`.

    Scores, and everything else with a value per row, are in the order of the caller's collection.
    """

    has_rows = True
    is_on_disk = True  # the rows are far away: memory is checked before all of them come here
    widest_matrix = 4096  # every worker sends a matrix of columns × columns

    def __init__(self, cluster: Cluster, n_threads: int, shift: Shift | None = None) -> None:
        self.cluster, self.n_threads, self.shift = cluster, n_threads, shift
        survey = cluster.survey
        self.shape: tuple[int, int] = survey.shape
        self.dtype: DType = survey.dtype
        self.nnz, self.is_dense = survey.nnz, survey.lengths is None
        self._counted: WeakKeyDictionary[MarginPairs, ClusterPairs] = WeakKeyDictionary()

    @property
    def reads(self) -> int:  # type: ignore[override]
        """The number of complete reads of the rows so far."""
        return self.cluster.n_reads

    def shifted(self, shift: Shift) -> DaskDesign:
        """Subtract constants from columns, on the workers."""
        self.cluster.set_up(WorkerRows.shift, [(shift.columns, shift.values)] * len(self.cluster.shares))
        return DaskDesign(self.cluster, self.n_threads, shift)

    def dot(self, v: Floats) -> Floats:
        self.cluster.count(v)
        return self.cluster.shares.joined(list(self.cluster.everywhere(WorkerRows.dot, v)))

    def tdot(self, u: Floats) -> Floats:
        self.cluster.count(u)
        return self.cluster.total(Design.tdot, [(part,) for part in self.cluster.shares.split(u)])

    def gram_product(self, blocks: QueryBlocks, folds: Folds | None = None) -> GramProduct | None:
        """Return a product of one round; None where one ranking leaves out ties: scores come to the client then."""
        parts = self.cluster.shares.parts(blocks, folds)
        return None if parts is None else _ClusterProduct(self, blocks, folds, parts[0], is_cut=parts[1])

    def gram_matrix(self, blocks: QueryBlocks) -> Floats | None:
        return self._gram(blocks, is_diagonal=False)

    def gram_diagonal(self, blocks: QueryBlocks) -> Floats | None:
        return self._gram(blocks, is_diagonal=True)

    def _gram(self, blocks: QueryBlocks, *, is_diagonal: bool) -> Floats | None:
        found_parts = self.cluster.shares.parts(blocks)
        if found_parts is None:
            return None
        parts, is_cut = found_parts
        self.cluster.count()
        told = [(part, is_cut, is_diagonal) for part, _ in parts]
        total, means, weights = np.zeros(()), [], []
        for found, sums, weight in self.cluster.answers(WorkerRows.gram, told):
            total = total + found
            means.append(sums / weight if weight > 0 else sums)
            weights.append(weight)
        if not is_cut or sum(weights) == 0:
            return total
        # Between the parts of one ranking: the scatter of their means.
        centre, degree = np.average(means, axis=0, weights=weights), float(blocks.degree[0])
        square = np.multiply if is_diagonal else np.outer
        for weight, mean in zip(weights, means, strict=True):
            total = total + degree * weight * square(mean - centre, mean - centre)
        return total

    def squared_differences(
        self, one: npt.NDArray[np.int64], other: npt.NDArray[np.int64], weight: Floats
    ) -> Floats:
        """Return ``Σ weight_k (x_one[k] - x_other[k])²``; rows of pairs on two workers come to the client."""
        self.cluster.count()
        shares = self.cluster.shares
        mine, yours = shares.owners(one), shares.owners(other)
        told = []
        for number, share in enumerate(shares):
            at = np.flatnonzero((mine == number) & (yours == number))
            told.append((share.positions(one[at]), share.positions(other[at]), weight[at]))
        total = self.cluster.total(WorkerRows.squared_differences, told)
        apart = np.flatnonzero(mine != yours)
        for first in range(0, apart.size, _PAIRS):
            pairs = apart[first : first + _PAIRS]
            rows, place = np.unique(np.concatenate((one[pairs], other[pairs])), return_inverse=True)
            gathered, place = self.gathered(rows), place.reshape(2, -1)
            found = gathered.squared_differences(place[0], place[1], weight[pairs])
            assert found is not None  # rows in memory have differences
            total = total + found
        return total

    def rows(self, index: RowIndex) -> Design:
        """Return the design of a subset of rows: few rows come to the client, of many only scores do."""
        rows = np.arange(self.shape[0])[index]
        if self._bytes(rows.size) <= _FEW_BYTES:
            return self.gathered(rows)
        name, listed = f"rows-{uuid4().hex}", self.cluster.shares.listed(rows)
        self.cluster.set_up(WorkerRows.keep_rows, [(name, own) for _, own in listed])

        def dot(v: Floats) -> Floats:
            self.cluster.count(v)
            out = np.empty((rows.size, *v.shape[1:]))
            for (at, _), found in zip(listed, self.cluster.everywhere(WorkerRows.dot, v, name), strict=True):
                out[at] = found
            return out

        return known_rows(self, rows, dot)

    def gathered(self, rows: Ints) -> Design:
        listed = self.cluster.shares.listed(rows)
        parts = list(self.cluster.answers(WorkerRows.gathered, [(own,) for _, own in listed]))
        order = np.argsort(np.concatenate([at for at, _ in listed]))
        if self.is_dense:
            return as_design(np.concatenate([np.asarray(part) for part in parts])[order], self.n_threads)
        return as_design(sp.vstack(parts, format="csr")[order], self.n_threads)

    def matrix(self) -> AnyArray | sp.csr_matrix:
        """Return all rows at the client, where they fit."""
        needed = 2 * self._bytes(self.shape[0])
        if not fits(needed):
            raise MemoryLimitError(
                f"This needs all rows in the memory of one machine, where they take {needed / 2**30:.1f} GiB.",
                "use a method that needs products only, such as cv=5 in place of exact hold-out.",
            )
        return self.gathered(np.arange(self.shape[0])).matrix()

    def expect_products(self) -> None:
        self.cluster.set_up(Design.expect_products, [()] * len(self.cluster.shares))

    def counting(self, pairs: MarginPairs) -> tuple[Products, MarginPairs] | None:
        """Return products and pairs that evaluate a loss on the workers; None where queries are not whole there."""
        if not isinstance(pairs, ViolationSweep):
            return None  # listed pairs join any two rows
        if pairs not in self._counted:
            shares = self.cluster.shares
            owner = shares.query_owners(*pairs.query_rows)
            if owner is None:
                return None
            parts = [pairs.part(share.rows, np.flatnonzero(owner == at)) for at, share in enumerate(shares)]
            self._counted[pairs] = ClusterPairs(self.cluster, parts, pairs.n_rows, pairs.weight)
        return CoefficientSpace(self.cluster), self._counted[pairs]

    def _bytes(self, n_rows: int) -> int:
        return self.cluster.survey.bytes_of(n_rows, n_rows * self.nnz // max(self.shape[0], 1))


class _ClusterProduct:
    """``V -> X' L X V`` in one round.

    A part of one ranking has ``X'LXv = deg X'WXv - scale (X'w)(w'Xv)``: the workers add up the first term, and the
    client stores ``X'w``.
    """

    def __init__(
        self,
        design: DaskDesign,
        blocks: QueryBlocks,
        folds: Folds | None,
        parts: list[Part],
        *,
        is_cut: bool,
    ) -> None:
        self._design, self._name = design, f"product-{uuid4().hex}"
        shares, cluster = design.cluster.shares, design.cluster
        self._scored = None if folds is None else folds.scored
        self._listed = None if self._scored is None else shares.listed(self._scored)
        scored = [None] * len(shares) if self._listed is None else [own for _, own in self._listed]
        told = [(self._name, *part, own, is_cut) for part, own in zip(parts, scored, strict=True)]
        sums = cluster.set_up(WorkerRows.keep_product, told)
        weakref.finalize(self, cluster.forget, self._name).atexit = False
        self._sums = np.sum(cast("list[Floats]", sums), axis=0) if is_cut else None
        self._scale = blocks.scale if folds is None else folds.scale[0]

    def __call__(self, v: Floats, held_out: Floats | None = None) -> Floats:
        """Return the product; `held_out` (rows,) receives the scores of held-out rows that are scored."""
        design, shares = self._design, self._design.cluster.shares
        design.cluster.count(v)
        total = np.zeros(())
        answers = design.cluster.everywhere(WorkerRows.product, self._name, v)
        for number, (image, scores) in enumerate(answers):
            total = total + image
            if held_out is None or scores is None:
                continue
            if self._listed is None or self._scored is None:
                held_out[shares[number].rows] = scores
            else:
                held_out[self._scored[self._listed[number][0]]] = scores
        if self._sums is not None:
            sums, table = self._sums, as_table(v)
            along = np.einsum("ij,ij->j", np.broadcast_to(sums, table.shape), table)
            total = total - (sums * (self._scale * along)).reshape(v.shape)
        return total


# --- losses with margins ---
#
# Scores are linear in the coefficients, so coefficients can stand for them: where a local objective has scores Xw, an
# objective on a cluster has w itself, and where a local one has a gradient u by the scores, it has X'u. Inner products
# of the two are the same, (X'u)'w = u'(Xw), and so are sums and multiples. Solvers therefore run unchanged, and only
# vectors of the columns travel; each worker keeps the scores of the last two points.


@dataclass(frozen=True)
class CoefficientSpace:
    """The products of an objective whose scores are represented by their coefficients: both are the identity."""

    cluster: Cluster

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return self.cluster.survey.shape

    @property
    def reads(self) -> int:
        """The number of complete reads of the data so far."""
        return self.cluster.n_reads

    def zero_scores(self) -> Floats:
        """Return the coefficients of zero scores."""
        return np.zeros(self.shape[1])

    def dot(self, v: Floats) -> Floats:
        """Return the representation of ``X v``."""
        return v.copy()

    def tdot(self, u: Floats) -> Floats:
        """Return ``X' u`` of a represented gradient."""
        return u.copy()


class ClusterPairs:
    """Pairs with margins inside queries that are whole on workers; implements `MarginPairs`."""

    def __init__(self, cluster: Cluster, parts: list[ViolationSweep], n_rows: int, weight: float) -> None:
        self.cluster, self.n_rows, self.weight = cluster, n_rows, weight
        self.name = f"pairs-{uuid4().hex}"
        cluster.set_up(WorkerRows.keep_pairs, [(self.name, part) for part in parts])
        weakref.finalize(self, cluster.forget, self.name).atexit = False

    def at(self, scores: Floats) -> ClusterViolations:
        """Return the pairs that are violated at the scores of these coefficients."""
        return ClusterViolations(self, scores.copy())

    def thinned(self, n_rows: int) -> None:
        """Return None: only one large ranking is thinned, and it is not whole on a worker."""


@dataclass(frozen=True)
class ClusterViolations:
    """The pairs that are violated at the scores of some coefficients; implements `ViolatedPairs`."""

    pairs: ClusterPairs
    coef: Floats

    @property
    def net_wins(self) -> Floats:
        """``X'`` times the net wins."""
        return self._total(WorkerRows.evaluated, "net_wins")

    @property
    def active(self) -> float:
        """``Σ ωz``."""
        return float(self._total(WorkerRows.evaluated, "active")[0])

    def hinge(self) -> float:
        """Return ``Σ ω (z - (f_i - f_j))``."""
        return float(self._total(WorkerRows.evaluated, "hinge")[0])

    def squared_hinge(self) -> tuple[float, Floats]:
        """Return the squared hinge and its gradient."""
        found = self._total(WorkerRows.evaluated, "squared_hinge")
        return float(found[0]), found[1:]

    def smoothed(self, delta: float) -> SmoothedHinge:
        """Return the Huberised hinge."""
        found = self._total(WorkerRows.evaluated, "smoothed", delta)
        return SmoothedHinge(float(found[0]), found[2:], float(found[1]))

    def laplacian(self, v: Floats) -> Floats:
        """Return ``X'LXv``."""
        return self._total(WorkerRows.hessian, v)

    def degrees(self, width: float | None = None) -> Floats:
        """Return the weight of each row's violated pairs: an array of the rows, which preconditioners ask for."""
        cluster = self.pairs.cluster
        answers = cluster.everywhere(WorkerRows.degrees, self.pairs.name, self.coef, width)
        return cluster.shares.joined(list(answers))

    def _total(self, method, *args: object) -> Floats:  # type: ignore[no-untyped-def]  # noqa: ANN001
        cluster = self.pairs.cluster
        cluster.count(self.coef)
        return cluster.total(method, [(self.pairs.name, self.coef, *args)] * len(cluster.shares))
