"""A quadratic objective as a sum of parts that are read one after the other: blocks of whole queries.

One large ranking has no smaller queries, but where ties are compared too it can be cut between any two rows. With
weights summing to ``N`` and ``n``, and means ``x̄`` of the rows so far and of the next ones,

    scatter of all = scatter of the rows so far + scatter of the next ones + N n / (N + n) · δδ'

with ``δ`` the difference of the two means, and likewise for the labels. So a block of rows is a query of its own plus
one pair between two means, and the parts add up to the whole exactly, in any order.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cached_property
from math import sqrt

import numpy as np

from rankwise.arrays import Floats
from rankwise.design import Design
from rankwise.design.row_order import in_row_order
from rankwise.objectives.quadratic import (
    BalancedObjective,
    QuadraticObjective,
    ScaledObjective,
    SquaredObjective,
)
from rankwise.pairs.blocks import QueryBlocks, laplacian

__all__ = ["BlockPart", "part_rows", "parts_of"]

_MOST_ROWS = 20_000
_MOST_VALUES = 1 << 24  # stored values of a part: 64 to 128 MiB of them


class BlockPart(QuadraticObjective):
    """``X_B'L_B X_B`` of a block of rows, and the term that joins a block of one ranking to the rows before it.

    Parameters
    ----------
    design, blocks : Design and QueryBlocks
        The block's rows, and the pairs among them.
    pull : (rows,) or (rows, outputs) float64
    join : (features,) and (outputs,) float64, optional
        The difference of the means of rows and of labels, times the root of its weight.
    """

    def __init__(
        self, design: Design, blocks: QueryBlocks, pull: Floats, join: tuple[Floats, Floats] | None = None
    ) -> None:
        self.design, self.blocks = design, blocks
        self._pull, self._join = pull, join

    @cached_property
    def rhs(self) -> Floats:
        """``X_B'r_B``."""
        rhs = self.design.tdot(self._pull)
        return rhs if self._join is None else rhs + np.multiply.outer(self._join[0], self._join[1])

    def product(self, v: Floats) -> Floats:
        """Apply ``X_B'L_B X_B``: the block is read twice, while it is in memory."""
        scores = laplacian(self.blocks, self.design.dot(v), n_threads=self.design.n_threads)
        image = self.design.tdot(scores)
        return image if self._join is None else image + np.multiply.outer(self._join[0], self._join[0] @ v)

    def diagonal(self) -> Floats:
        """Return the diagonal."""
        diagonal = self.design.gram_diagonal(self.blocks)
        assert diagonal is not None  # operators are not cut
        return diagonal if self._join is None else diagonal + self._join[0] ** 2


def parts_of(objective: QuadraticObjective, n_rows: int | None = None) -> Iterator[QuadraticObjective]:
    """Yield the parts of an objective, blocks of about `n_rows` rows, or the objective if it cannot be cut."""
    if isinstance(objective, ScaledObjective):
        scale = objective.column_scale
        for i, part in enumerate(parts_of(objective.unscaled, n_rows)):
            # The penalty that a balanced objective contains counts once.
            if i == 0 and isinstance(objective, BalancedObjective):
                yield BalancedObjective(part, objective.alpha, scale)
            else:
                yield ScaledObjective(part, scale)
    elif isinstance(objective, SquaredObjective) and objective.design.has_rows and objective.graph.blocks:
        design, blocks, pull = objective.design, objective.graph.blocks, objective.graph.pull
        rows = part_rows(design) if n_rows is None else n_rows
        is_one = blocks.scale.size == 1 and blocks.coupling == "all" and design.shape[0] > rows
        yield from (_row_parts if is_one else _query_parts)(design, blocks, pull, rows)
        design.reads += 1
    else:
        yield objective


def part_rows(design: Design) -> int:
    """Return the number of rows of a part, of which many fit in memory."""
    per_row = design.nnz / max(design.shape[0], 1)
    return int(np.clip(_MOST_VALUES / max(per_row, 1.0), 1, _MOST_ROWS))


def _query_parts(design: Design, blocks: QueryBlocks, pull: Floats, n_rows: int) -> Iterator[BlockPart]:
    """Cut between queries, in the order of their rows; a query is never cut, however large."""
    blocks, _ = in_row_order(blocks)
    start, first, n_queries = blocks.query_start, 0, blocks.scale.size
    while first < n_queries:
        last = int(np.searchsorted(start, start[first] + n_rows, side="right")) - 1
        last = max(last, first + 1)
        order, part = blocks.order[start[first] : start[last]], blocks.part(first, last)
        lowest = int(order.min(initial=design.shape[0]))
        if order.size and int(order.max()) - lowest == order.size - 1:
            # Rows that stand together, though levels may mix them: a store reads them in one go.
            rows = slice(lowest, lowest + order.size)
            yield BlockPart(design.rows(rows), replace(part, order=order - lowest), pull[rows])
        else:
            yield BlockPart(design.gathered(order), part, pull[order])
        first = last


def _row_parts(design: Design, blocks: QueryBlocks, pull: Floats, n_rows: int) -> Iterator[BlockPart]:
    """Cut one ranking, in which ties are compared too, between rows."""
    # L is a centering times the degree, so labels that pull like this can be read off.
    factor = float(blocks.degree[0])
    weight = np.ones(design.shape[0])
    if blocks.row_weight is not None:
        weight[blocks.order] = blocks.row_weight
    own = weight if pull.ndim == 1 else weight[:, None]
    labels = np.divide(pull, factor * own, out=np.zeros_like(pull), where=factor * own > 0)
    total, mean, mean_label = 0.0, np.zeros(design.shape[1]), np.zeros(pull.shape[1:])  # of the rows so far
    for first in range(0, design.shape[0], n_rows):
        rows = slice(first, min(first + n_rows, design.shape[0]))
        block, z, w = design.rows(rows), labels[rows], weight[rows]
        mass = float(w.sum())
        centre = w / mass if mass > 0 else w
        label = centre @ z
        gap, label_gap = block.tdot(centre) - mean, label - mean_label
        share = mass / (total + mass) if mass > 0 else 0.0
        root = sqrt(factor * total * share)
        total, mean, mean_label = total + mass, mean + share * gap, mean_label + share * label_gap
        whole = np.array([0, w.size])
        pairs = QueryBlocks(
            order=np.arange(w.size),
            query_start=whole,
            segment_start=whole,
            query_segment=np.array([0, 1]),
            degree=np.array([factor if mass > 0 else 0.0]),
            scale=np.array([factor / mass if mass > 0 else 0.0]),
            coupling="all",
            row_weight=None if blocks.row_weight is None else w,
        )
        own_pull = laplacian(pairs, np.ascontiguousarray(z - label), n_threads=block.n_threads)
        yield BlockPart(block, pairs, own_pull, (root * gap, root * label_gap))
