"""A quadratic objective as a sum of parts that are read one after the other: blocks of whole queries.

One large ranking has no smaller queries, but where ties are compared too it can be cut between any two rows. With
weights summing to ``N`` and ``n``, and means ``x̄`` of the rows so far and of the next ones,

    scatter of all = scatter of the rows so far + scatter of the next ones + N n / (N + n) · δδ'

with ``δ`` the difference of the two means, and likewise for the labels. So a block of rows is a query of its own plus
one pair between two means, and the parts add up to the whole exactly, in any order.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from math import sqrt
from typing import Any

import numpy as np

from rankwise.arrays import Floats
from rankwise.design import Design
from rankwise.design.fused import in_row_order
from rankwise.objectives.quadratic import (
    MatrixQuadratic,
    QuadraticObjective,
    ScaledObjective,
    SquaredObjective,
)
from rankwise.pairs.blocks import QueryBlocks, laplacian

__all__ = [
    "BlockPart",
    "PassedQueries",
    "RunningMean",
    "one_ranking",
    "part_rows",
    "parts_of",
    "query_parts",
    "row_parts",
]

_MOST_ROWS = 20_000
_MOST_VALUES = 1 << 24  # stored values of a part: 64 to 128 MiB of them


@dataclass(frozen=True)
class RunningMean:
    """The means of the rows of one ranking that were seen so far, and their weight."""

    weight: float
    row: Floats
    label: Floats

    @classmethod
    def empty(cls, n_features: int, label_shape: tuple[int, ...]) -> RunningMean:
        """Return the mean of no rows."""
        return cls(0.0, np.zeros(n_features), np.zeros(label_shape))

    def joined(self, other: RunningMean) -> tuple[RunningMean, Floats, Floats]:
        """Return the mean of both, and the difference between the two times the root of the weight it has."""
        total = self.weight + other.weight
        if total == 0:
            return self, np.zeros_like(self.row), np.zeros_like(self.label)
        share = other.weight / total
        row, label = other.row - self.row, other.label - self.label
        root = sqrt(self.weight * share)
        mean = RunningMean(total, self.row + share * row, self.label + share * label)
        return mean, root * row, root * label


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

    def _product(self, v: Floats) -> Floats:
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
        penalty = objective.penalty
        for part in parts_of(objective.unscaled, n_rows):
            yield ScaledObjective(part, objective.column_scale, objective.origin, penalty)
            penalty = 0.0  # the first part has it
        return
    blocks = objective.graph.blocks if isinstance(objective, SquaredObjective) else None
    if not isinstance(objective, SquaredObjective) or blocks is None or not objective.design.has_rows:
        yield objective
        return
    design = objective.design
    yield from _cut(design, blocks, objective.graph.pull, part_rows(design) if n_rows is None else n_rows)
    design.reads += 1


def part_rows(design: Design) -> int:
    """Return the number of rows of a part, of which many fit in memory."""
    per_row = design.nnz / max(design.shape[0], 1)
    return int(np.clip(_MOST_VALUES / max(per_row, 1.0), 1, _MOST_ROWS))


def query_parts(design: Design, blocks: QueryBlocks, pull: Floats, n_rows: int) -> Iterator[BlockPart]:
    """Cut between queries, in the order of their rows; a query is never cut, however large."""
    blocks, _ = in_row_order(blocks)
    start, first, n_queries = blocks.query_start, 0, blocks.scale.size
    while first < n_queries:
        last = int(np.searchsorted(start, start[first] + n_rows, side="right")) - 1
        last = max(last, first + 1)
        part = blocks.chosen(np.arange(first, last))
        order = part.order
        lowest = int(order.min(initial=design.shape[0]))
        if order.size and int(order.max()) - lowest == order.size - 1:
            # Rows that stand together, though levels may mix them: a store reads them in one go.
            rows = slice(lowest, lowest + order.size)
            yield BlockPart(design.rows(rows), replace(part, order=order - lowest), pull[rows])
        else:
            local = replace(part, order=np.arange(order.size))
            yield BlockPart(design.gathered(order), local, pull[order])
        first = last


def row_parts(
    design: Design,
    labels: Floats,
    row_weight: Floats | None,
    n_rows: int,
    before: RunningMean,
    *,
    factor: float = 1.0,
) -> Iterator[tuple[BlockPart, RunningMean]]:
    """Cut one ranking, in which ties are compared too, between rows.

    Parameters
    ----------
    labels : (rows,) or (rows, outputs) float64
        Wanted scores, up to a shift.
    before : RunningMean
        The means of the rows before these, if any.
    factor : float
        The weight of every pair relative to its weight with ``query_weight="size"``.

    Yields
    ------
    part : BlockPart
    mean : RunningMean
        The means after that part.
    """
    for first in range(0, design.shape[0], n_rows):
        rows = slice(first, min(first + n_rows, design.shape[0]))
        block, z = design.rows(rows), labels[rows]
        own, pairs = one_ranking(block, z, None if row_weight is None else row_weight[rows], factor)
        before, gap, label_gap = before.joined(own)
        pull = laplacian(pairs, np.ascontiguousarray(z - own.label), n_threads=block.n_threads)
        root = sqrt(factor)
        yield BlockPart(block, pairs, pull, (root * gap, root * label_gap)), before


def _cut(design: Design, blocks: QueryBlocks, pull: Floats, n_rows: int) -> Iterator[BlockPart]:
    if blocks.scale.size > 1 or blocks.coupling != "all" or design.shape[0] <= n_rows:
        yield from query_parts(design, blocks, pull, n_rows)
        return
    # L is a centering times the degree, so labels that pull like this can be read off.
    factor = float(blocks.degree[0])
    weight = np.ones(design.shape[0])
    if blocks.row_weight is not None:
        weight[blocks.order] = blocks.row_weight
    own = weight if pull.ndim == 1 else weight[:, None]
    labels = np.divide(pull, factor * own, out=np.zeros_like(pull), where=factor * own > 0)
    before = RunningMean.empty(design.shape[1], pull.shape[1:])
    row_weight = None if blocks.row_weight is None else weight
    for part, _ in row_parts(design, labels, row_weight, n_rows, before, factor=factor):
        yield part


def one_ranking(
    design: Design, labels: Floats, row_weight: Floats | None, factor: float = 1.0
) -> tuple[RunningMean, QueryBlocks]:
    """Return the means of some rows, and all pairs among them, of a weight that makes L a centering."""
    n_rows = labels.shape[0]
    weight = np.ones(n_rows) if row_weight is None else row_weight
    total = float(weight.sum())
    share = weight / total if total > 0 else weight
    whole = np.array([0, n_rows], dtype=np.int64)
    blocks = QueryBlocks(
        order=np.arange(n_rows, dtype=np.int64),
        query_start=whole,
        segment_start=whole,
        query_segment=np.array([0, 1], dtype=np.int64),
        degree=np.array([factor if total > 0 else 0.0]),
        scale=np.array([factor / total if total > 0 else 0.0]),
        coupling="all",
        row_weight=row_weight,
    )
    return RunningMean(total, design.tdot(share), share @ labels), blocks


@dataclass(frozen=True)
class PassedQueries:
    """The sum over whole queries. It is immutable: adding queries returns a new one.

    Attributes
    ----------
    settings : tuple
        Everything that later calls must agree in: options of pairs, the shape of labels, and whether there are ids.
    sums : tuple of (matrix, right-hand side)
        Of each graph.
    ids : frozenset
        The ids of the queries, where they have some.
    n_rows : int
    attributes : dict
        Of `rankwise.pairs.pairs.Pairs`: counts of queries and pairs.
    """

    settings: tuple[object, ...]
    sums: tuple[tuple[Floats, Floats], ...]
    ids: frozenset[Hashable]
    n_rows: int
    attributes: dict[str, Any]

    def plus(self, other: PassedQueries) -> PassedQueries:
        """Return the sum over the queries of both."""
        pairs = zip(self.sums, other.sums, strict=True)
        return PassedQueries(
            self.settings,
            tuple((matrix + more, rhs + more_rhs) for (matrix, rhs), (more, more_rhs) in pairs),
            self.ids | other.ids,
            self.n_rows + other.n_rows,
            {name: count + other.attributes[name] for name, count in self.attributes.items()},
        )

    def objectives(self) -> list[MatrixQuadratic]:
        """Return the objective of each graph over everything so far."""
        return [MatrixQuadratic(np.asarray(matrix), rhs) for matrix, rhs in self.sums]
