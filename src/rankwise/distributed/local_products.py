"""``X' L X V`` on one worker: of its whole queries, or of its rows of one ranking that is cut over workers.

One ranking that compares all rows (see `rankwise.pairs.blocks`) has ``X'LXv = deg X'WXv - scale (X'w)(w'Xv)``: the
first term adds up over workers, and the client knows ``X'w`` once and for all, so a product is one round. Where ties
are left out, the sums of the levels come in between; only those of levels that several workers have rows of travel.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from rankwise.arrays import Floats, Ints, is_sparse
from rankwise.design import Design, GramProduct
from rankwise.pairs.blocks import Folds, QueryBlocks, as_table, laplacian

__all__ = ["Block", "Kind", "LocalProduct"]

Kind = Literal["whole", "cut", "levels"]
# What a worker is told of its part: kind, blocks, folds, scored, shared and centre of `LocalProduct`.
Block = tuple[Kind, QueryBlocks, Folds | None, Ints | None, Ints | None, Floats | None]

_BLOCK = 1 << 17  # doubles that are made dense at a time


@dataclass
class LocalProduct:
    """The part of a product that one worker has.

    Attributes
    ----------
    design : Design
    kind : "whole", "cut" or "levels"
        Whole queries; a part of one ranking of all pairs; or a part of one whose ties are left out.
    blocks : QueryBlocks
        Of the rows here. For a part, `degree` and `scale` are those of the whole.
    folds : Folds or None
    scored : (k,) int64 or None
        The rows here whose held-out scores are returned.
    shared : (s,) int64 or None
        Of "levels": the segments here that other workers have rows of.
    centre : (columns,) float64 or None
        Of "levels", for matrices: the mean row of the whole.
    """

    design: Design
    kind: Kind
    blocks: QueryBlocks
    folds: Folds | None = None
    scored: Ints | None = None
    shared: Ints | None = None
    centre: Floats | None = None

    def __post_init__(self) -> None:
        self._waiting: Floats | None = None
        self._applied = self.blocks if self.kind == "whole" else self._without_means()
        self._fused: GramProduct | None = None

    def prepare(self) -> None:
        """Fuse the product where the storage can."""
        if self.kind != "levels" and self.blocks.order.size:
            self._fused = self.design.gram_product(self._applied, self._applied_folds())

    @property
    def is_cut(self) -> bool:
        """Whether the client adds the term of the means."""
        return self.kind == "cut"

    def __call__(self, v: Floats) -> tuple[Floats, Floats | None]:
        """Return the product, and the scores that folds do not see of the rows that score."""
        folds = self._applied_folds()
        held_out = None if folds is None else np.zeros(self.design.shape[0])
        if self._fused is not None:
            image = self._fused(v) if held_out is None else self._fused(v, held_out)
        else:
            scores = self.design.dot(v)
            pull = laplacian(
                self._applied, scores, n_threads=self.design.n_threads, folds=folds, held_out=held_out
            )
            image = self.design.tdot(pull)
        return image, self._of_scored(held_out)

    def weighted_sums(self) -> Floats:
        """Return ``X' w``, a column per fold."""
        weight = np.zeros((self.design.shape[0], 1))
        weight[self.blocks.order, 0] = self._weight
        if self.folds is not None:
            weight = weight * (self.folds.fold[:, None] != np.arange(self.folds.degree.shape[1]))
        return self.design.tdot(weight)

    # --- one ranking without its ties ---

    def level_sums(self, v: Floats) -> tuple[Floats, Floats]:
        """Return ``S`` of the levels that others have rows of, and the sum of all; scores are kept."""
        self._waiting = as_table(self.design.dot(v))
        sums = self._segment_sums(self._seen(self._waiting.shape[1]) * self._waiting[self.blocks.order])
        assert self.shared is not None
        return sums[self.shared], sums.sum(axis=0)

    def pull_levels(self, shared: Floats, total: Floats) -> tuple[Floats, Floats | None]:
        """Return the product, from the sums over all workers."""
        scores, self._waiting = self._waiting, None
        if scores is None:
            raise KeyError("level_sums")
        blocks, folds = self.blocks, self.folds
        own, weight = scores[blocks.order], self._seen(scores.shape[1])
        sums = self._segment_sums(weight * own)
        sums[self.shared] = shared
        degree = blocks.degree[:, None] if folds is None else folds.degree
        scale = blocks.scale if folds is None else folds.scale[0]
        segment = self._segments()
        pull = np.zeros_like(scores)
        pull[blocks.order] = weight * (degree[segment] * own - scale * (total - sums)[segment])
        every = np.arange(scores.shape[0])
        held_out = None if folds is None else scores[every, np.maximum(folds.fold, 0)]
        return self.design.tdot(pull), self._of_scored(held_out)

    # --- matrices ---

    def matrix(self) -> tuple[Floats, ...]:
        """Return ``X'LX``; of a part also what joins it to the others."""
        return self._quadratic(is_diagonal=False)

    def diagonal(self) -> tuple[Floats, ...]:
        """Return ``diag(X'LX)``; of a part also what joins it to the others."""
        return self._quadratic(is_diagonal=True)

    def _quadratic(self, *, is_diagonal: bool) -> tuple[Floats, ...]:
        n = self.design.shape[1]
        shape = (n,) if is_diagonal else (n, n)
        if self.kind == "levels":
            return self._of_levels(np.zeros(shape), is_diagonal=is_diagonal)
        of = self.design.gram_diagonal if is_diagonal else self.design.gram_matrix
        if self.blocks.order.size == 0:
            found = np.zeros(shape)
        elif self.kind == "whole":
            found = of(self.blocks)  # type: ignore[assignment]
        else:
            # Inside the part, around its own mean; the client adds what is between the means.
            total = float(self._weight.sum())
            own = replace(self.blocks, scale=self.blocks.degree / total if total > 0 else np.zeros(1))
            found = of(own)  # type: ignore[assignment]
        if self.kind == "whole":
            return (found,)
        return found, self.weighted_sums()[:, 0], np.array([self._weight.sum()])

    def _of_levels(self, out: Floats, *, is_diagonal: bool) -> tuple[Floats, ...]:
        """Add up ``w deg zz'`` and ``scale z_k z_k'`` of the levels that are here alone, around the given centre."""
        blocks, n = self.blocks, self.design.shape[1]
        assert self.shared is not None
        assert self.centre is not None
        sums = np.zeros((n, self.shared.size))
        place = np.full(blocks.degree.size, -1)
        place[self.shared] = np.arange(self.shared.size)
        segment = self._segments()
        step = max(1, _BLOCK // max(1, n))
        open_segment, open_sum = -1, np.zeros(n)
        scale, weights = float(blocks.scale[0]), self._weight

        def add(rows: Floats, weight: Floats) -> None:
            nonlocal out
            out += weight @ rows**2 if is_diagonal else (rows * weight[:, None]).T @ rows

        for first in range(0, blocks.order.size, step):
            part = slice(first, first + step)
            Z = self._dense(blocks.order[part]) - self.centre
            add(Z, weights[part] * blocks.degree[segment[part]])
            levels, start = np.unique(segment[part], return_index=True)
            totals = np.add.reduceat(weights[part, None] * Z, start, axis=0)
            for level, total in zip(levels.tolist(), totals, strict=True):
                if place[level] >= 0:
                    sums[:, place[level]] += total
                elif level == open_segment:
                    open_sum += total
                else:
                    add(open_sum[None], np.array([scale]))
                    open_segment, open_sum = level, total.copy()
        add(open_sum[None], np.array([scale]))
        return out, sums

    def _dense(self, rows: Ints) -> Floats:
        found = self.design.gathered(rows).matrix()
        return np.asarray(found.toarray() if is_sparse(found) else found, dtype=np.float64)

    # --- arrays ---

    @property
    def _weight(self) -> Floats:
        """The weight of each grouped row."""
        weight = self.blocks.row_weight
        return np.ones(self.blocks.order.size) if weight is None else weight

    def _without_means(self) -> QueryBlocks:
        return replace(self.blocks, scale=np.zeros_like(self.blocks.scale))

    def _applied_folds(self) -> Folds | None:
        if self.folds is None or self.kind == "whole":
            return self.folds
        return replace(self.folds, scale=np.zeros_like(self.folds.scale))

    def _of_scored(self, held_out: Floats | None) -> Floats | None:
        return held_out if held_out is None or self.scored is None else held_out[self.scored]

    def _segments(self) -> Ints:
        """Return the segment of each grouped row."""
        return np.repeat(np.arange(self.blocks.degree.size), np.diff(self.blocks.segment_start))

    def _segment_sums(self, grouped: Floats) -> Floats:
        sums = np.zeros((self.blocks.degree.size, grouped.shape[1]))
        np.add.at(sums, self._segments(), grouped)
        return sums

    def _seen(self, n_columns: int) -> Floats:
        """Return the weight of each grouped row in each column."""
        weight = np.repeat(self._weight[:, None], n_columns, axis=1)
        if self.folds is not None:
            weight *= self.folds.fold[self.blocks.order][:, None] != np.arange(n_columns)
        return weight
