"""``X' L X`` from the parts that shares have of it; what is added up, and what joins the parts of one ranking."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING
from uuid import uuid4

import numpy as np

from rankwise.arrays import Floats, Ints
from rankwise.distributed.cluster import Arguments, Cluster, undisturbed
from rankwise.distributed.local_products import Kind
from rankwise.distributed.shares import Share, Shares
from rankwise.distributed.worker_rows import WorkerRows
from rankwise.pairs.blocks import Folds, QueryBlocks, as_table

if TYPE_CHECKING:
    from rankwise.distributed.design import DaskDesign

__all__ = ["ClusterProduct", "Parts", "joined_diagonal", "joined_matrix", "parts_of"]


@dataclass(frozen=True)
class Parts:
    """What every share has of a graph.

    Attributes
    ----------
    kind : as in `LocalProduct`
    blocks : list of QueryBlocks
        One per share, for its rows.
    folds : list of Folds or None
    scale : (1,) or (folds,) float64
        Of a ranking that is cut: the weight of a pair.
    shared : list of (s,) int64
        Of "levels", per share: its segments that others have rows of, ...
    place : list of (s,) int64
        ... and where these stand among all that are shared.
    scored : Folds' `scored`, and per share where its rows stand there and in the share
    """

    kind: Kind
    blocks: list[QueryBlocks]
    folds: list[Folds | None]
    scale: Floats
    shared: list[Ints] | None = None
    place: list[Ints] | None = None
    scored: Ints | None = None
    listed: list[tuple[Ints, Ints]] | None = None

    def told(self, centre: Floats | None = None) -> list[tuple[object, ...]]:
        """Return what every share is told: the arguments of `LocalProduct`."""
        n_shares = len(self.blocks)
        nothing: list[Ints | None] = [None] * n_shares
        shared = nothing if self.shared is None else self.shared
        scored = nothing if self.listed is None else [own for _, own in self.listed]
        return [
            (self.kind, blocks, folds, own, levels, centre)
            for blocks, folds, own, levels in zip(self.blocks, self.folds, scored, shared, strict=True)
        ]

    @property
    def n_shared(self) -> int:
        """How many levels have rows on several shares."""
        assert self.place is not None
        return max((int(place.max()) + 1 for place in self.place if place.size), default=0)


def parts_of(shares: Shares, blocks: QueryBlocks, folds: Folds | None) -> Parts | None:
    """Divide a graph among shares; None where several queries, or a coupling of all levels, would be cut."""
    scored = None if folds is None else folds.scored
    listed = None if scored is None else shares.listed(scored)
    whole = shares.whole_queries(blocks, folds)
    if whole is not None:
        own_blocks, own_folds = [part for part, _ in whole], [part for _, part in whole]
        return Parts("whole", own_blocks, own_folds, np.empty(0), scored=scored, listed=listed)
    if blocks.scale.size != 1 or blocks.coupling == "relative":
        return None
    owner = shares.owners(blocks.order)
    pieces = [np.flatnonzero(owner == number) for number in range(len(shares))]
    segments = np.repeat(np.arange(blocks.degree.size), np.diff(blocks.segment_start))
    found = [np.unique(segments[piece], return_counts=True) for piece in pieces]
    cut = [
        _piece(blocks, share, piece, *own) for share, piece, own in zip(shares, pieces, found, strict=True)
    ]
    folded: list[Folds | None] = [
        None
        if folds is None
        else Folds(np.ascontiguousarray(folds.fold[share.rows]), folds.degree[level], folds.scale)
        for share, (level, _) in zip(shares, found, strict=True)
    ]
    scale = blocks.scale if folds is None else folds.scale[0]
    if blocks.coupling == "all":
        return Parts("cut", cut, folded, scale, scored=scored, listed=listed)
    times = np.bincount(np.concatenate([level for level, _ in found]), minlength=blocks.degree.size)
    several = np.flatnonzero(times > 1)
    shared = [np.flatnonzero(times[level] > 1) for level, _ in found]
    place = [np.searchsorted(several, level[own]) for (level, _), own in zip(found, shared, strict=True)]
    return Parts("levels", cut, folded, scale, shared, place, scored, listed)


def _piece(blocks: QueryBlocks, share: Share, piece: Ints, level: Ints, counts: Ints) -> QueryBlocks:
    """Return the rows of one ranking that a share has, with the degrees of the whole."""
    if level.size == 0:  # no rows: one segment without any, as the kernels expect of a query
        level, counts = np.zeros(1, dtype=np.int64), np.zeros(1, dtype=np.int64)
    return replace(
        blocks,
        order=share.positions(blocks.order[piece]),
        query_start=np.array([0, piece.size]),
        segment_start=np.concatenate(([0], np.cumsum(counts))).astype(np.int64),
        query_segment=np.array([0, level.size]),
        degree=blocks.degree[level],
        row_weight=None if blocks.row_weight is None else blocks.row_weight[piece],
        level_value=None if blocks.level_value is None else blocks.level_value[level],
    )


class ClusterProduct:
    """``V -> X' L X V``: one round where queries are whole or all rows are compared, two where ties are left out."""

    def __init__(self, design: DaskDesign, parts: Parts) -> None:
        self._design, self._parts = design, parts
        self.name = f"product-{uuid4().hex}"
        sums = design.cluster.keep(self.name, WorkerRows.keep_product, parts.told())
        own = [part for part in sums if part is not None]  # of a ranking that is cut
        self._sums: Floats | None = np.sum(own, axis=0) if own else None
        weakref.finalize(self, design.cluster.forget, self.name).atexit = False

    def __call__(self, v: Floats, held_out: Floats | None = None) -> Floats:
        """Return the product; `held_out` (rows,) receives the scores that folds do not see, of rows that score."""
        cluster, design, parts = self._design.cluster, self._design, self._parts
        design.reads += 1
        cluster.n_products += 1 if v.ndim == 1 else v.shape[1]
        if parts.kind == "levels":
            return self._in_two_rounds(v, held_out)
        told: Arguments = [(self.name, v)] * len(cluster.shares)
        out = self._added(WorkerRows.product, told, held_out)
        if self._sums is None:
            return out
        sums, table = self._sums, as_table(v)
        out -= (
            sums * (parts.scale * np.einsum("ij,ij->j", np.broadcast_to(sums, table.shape), table))
        ).reshape(v.shape)
        return out

    def _in_two_rounds(self, v: Floats, held_out: Floats | None) -> Floats:
        cluster, parts = self._design.cluster, self._parts
        place, n_columns = parts.place, as_table(v).shape[1]
        assert place is not None

        def exchange() -> Floats:
            shared, total = np.zeros((parts.n_shared, n_columns)), np.zeros(n_columns)
            sums = cluster.everywhere(WorkerRows.level_sums, self.name, v)
            for at, (own, whole) in zip(place, sums, strict=True):
                shared[at] += own
                total += whole
            told = [(self.name, shared[at], total) for at in place]
            return self._added(WorkerRows.pull_levels, told, held_out).reshape(v.shape)

        return undisturbed(exchange)  # the scores may go with the worker that has them

    def _added(
        self,
        method: Callable[..., tuple[Floats, Floats | None]],
        told: Arguments,
        held_out: Floats | None,
    ) -> Floats:
        cluster, parts = self._design.cluster, self._parts
        total: Floats | None = None
        for number, (image, scores) in enumerate(cluster.answers(method, told)):
            if total is None:
                total = image
            else:
                total += image
            if held_out is None or scores is None:
                continue
            if parts.listed is None or parts.scored is None:
                held_out[cluster.shares[number].rows] = scores
            else:
                held_out[parts.scored[parts.listed[number][0]]] = scores
        assert total is not None
        return total


def joined_matrix(cluster: Cluster, parts: Parts) -> Floats:
    """Return ``X'LX``."""
    return _joined(cluster, parts, WorkerRows.gram_matrix, np.outer)


def joined_diagonal(cluster: Cluster, parts: Parts) -> Floats:
    """Return ``diag(X'LX)``."""
    return _joined(cluster, parts, WorkerRows.gram_diagonal, np.multiply)


def _joined(
    cluster: Cluster,
    parts: Parts,
    method: Callable[..., tuple[Floats, ...]],
    square: Callable[[Floats, Floats], Floats],
) -> Floats:
    if parts.kind == "whole":
        total: Floats | None = None
        for (found,) in cluster.answers(method, parts.told()):
            total = found if total is None else total + found
        return np.asarray(total)
    if parts.kind == "cut":
        return _joined_means(parts, cluster.answers(method, parts.told()), square)
    centre = _centre(cluster, parts)
    sums, out = np.zeros((parts.n_shared, centre.size)), None
    assert parts.place is not None
    for place, (found, own) in zip(parts.place, cluster.answers(method, parts.told(centre)), strict=True):
        out = found if out is None else out + found
        sums[place] += own.T
    assert out is not None
    for one in sums:
        out += float(parts.scale[0]) * square(one, one)
    return np.asarray(out)


def _joined_means(
    parts: Parts, answers: Iterable[tuple[Floats, ...]], square: Callable[[Floats, Floats], Floats]
) -> Floats:
    """Add up the parts of one ranking around their own means, and what is between the means."""
    total: Floats | None = None
    means, weights = [], []
    for found, sums, weight in answers:
        total = found if total is None else total + found
        weights.append(float(weight[0]))
        means.append(sums / weights[-1] if weights[-1] > 0 else np.zeros_like(sums))
    assert total is not None
    mean = np.average(means, axis=0, weights=weights) if sum(weights) > 0 else means[0]
    degree = float(parts.blocks[0].degree[0])
    for own_weight, own in zip(weights, means, strict=True):
        total += degree * own_weight * square(own - mean, own - mean)
    return total


def _centre(cluster: Cluster, parts: Parts) -> Floats:
    """Return the mean row of one ranking."""
    told, total = [], 0.0
    for share, blocks in zip(cluster.shares, parts.blocks, strict=True):
        weight = np.zeros(share.size)
        weight[blocks.order] = 1.0 if blocks.row_weight is None else blocks.row_weight
        total += float(weight.sum())
        told.append((weight,))
    found: Floats = cluster.total(WorkerRows.tdot, told) / max(total, np.finfo(float).tiny)
    return found
