"""What a stream remembers for one graph: exact statistics, or a model and the diagonal of what it was learned from."""

from __future__ import annotations

from dataclasses import dataclass, replace

from rankwise.arrays import Floats
from rankwise.data.queries import Queries
from rankwise.design import Design, as_design
from rankwise.objectives import SquaredObjective
from rankwise.objectives.accumulated import GrowingRanking, PassedQueries
from rankwise.objectives.parts import RunningMean, part_rows, query_parts, row_parts
from rankwise.pairs.labels import Cost, LabelGraph, QueryWeight, Ties, label_graph
from rankwise.solvers.stochastic import Memory

__all__ = [
    "Accumulator",
    "Batch",
    "ExactQueries",
    "ExactRanking",
    "PairOptions",
    "StreamedQueries",
    "StreamedRanking",
]


@dataclass(frozen=True)
class Batch:
    """The rows of a call, or of several; `labels` has what each accumulator learns, (rows,) or (rows, outputs)."""

    design: Design
    labels: tuple[Floats, ...]
    queries: Queries
    row_weight: Floats | None

    @property
    def n_rows(self) -> int:
        """How many rows there are."""
        return self.design.shape[0]

    def copied(self) -> Batch:
        """Return a batch that holds its own arrays: callers refill theirs."""
        own = as_design(self.design.matrix().copy(), self.design.n_threads)
        weight = None if self.row_weight is None else self.row_weight.copy()
        return Batch(own, tuple(labels.copy() for labels in self.labels), self.queries, weight)


@dataclass(frozen=True)
class PairOptions:
    """Which pairs labels induce, and what they weigh."""

    ties: Ties
    cost: Cost
    query_weight: QueryWeight

    def graph(self, rows: Batch, labels: Floats) -> LabelGraph:
        """Return the graph of some rows alone."""
        return label_graph(
            labels,
            rows.queries,
            ties=self.ties,
            cost=self.cost,
            query_weight=self.query_weight,
            row_weight=rows.row_weight,
            n_threads=rows.design.n_threads,
        )


@dataclass(frozen=True)
class ExactQueries:
    """Queries that come whole, by their exact statistics."""

    options: PairOptions
    statistics: PassedQueries

    def after(self, rows: Batch, labels: Floats, alpha: float) -> ExactQueries:
        """Add up."""
        objective = SquaredObjective(rows.design, self.options.graph(rows, labels))
        return replace(self, statistics=self.statistics.plus(objective))


@dataclass(frozen=True)
class ExactRanking:
    """One ranking that grows, by its exact statistics."""

    statistics: GrowingRanking

    def after(self, rows: Batch, labels: Floats, alpha: float) -> ExactRanking:
        """Add up."""
        return ExactRanking(self.statistics.plus(rows.design, labels, rows.row_weight))


@dataclass(frozen=True)
class StreamedQueries:
    """Queries that come whole, learned as they come."""

    options: PairOptions
    memory: Memory

    def after(self, rows: Batch, labels: Floats, alpha: float) -> StreamedQueries:
        """Learn, a block of queries at a time."""
        graph, memory = self.options.graph(rows, labels), self.memory
        for part in query_parts(rows.design, graph.blocks, graph.pull, part_rows(rows.design)):
            memory = memory.learn(part, alpha)
        return replace(self, memory=memory)


@dataclass(frozen=True)
class StreamedRanking:
    """One ranking that grows, learned as it comes; its blocks are joined by their running means."""

    options: PairOptions
    memory: Memory
    mean: RunningMean

    def after(self, rows: Batch, labels: Floats, alpha: float) -> StreamedRanking:
        """Learn, a block of rows at a time."""
        memory, mean, design = self.memory, self.mean, rows.design
        grows = self.options.query_weight == "pairs"
        for part, joined in row_parts(design, labels, rows.row_weight, part_rows(design), mean):
            mean = joined
            # With pairs of weight 1 the loss grows with the square of the rows; here the penalty shrinks instead.
            memory = memory.learn(part, alpha / mean.weight if grows and mean.weight > 0 else alpha)
        return replace(self, memory=memory, mean=mean)


Accumulator = ExactQueries | ExactRanking | StreamedQueries | StreamedRanking
