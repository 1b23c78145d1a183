"""What a stream remembers for one graph: exact statistics, or a model and the diagonal of what it was learned from."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Protocol

from rankwise.arrays import Floats
from rankwise.data.queries import Queries
from rankwise.design import Design
from rankwise.objectives import QuadraticObjective, SquaredObjective
from rankwise.objectives.accumulated import GrowingRanking, PassedQueries
from rankwise.objectives.parts import RunningMean, part_rows, query_parts, row_parts
from rankwise.pairs.labels import Cost, LabelGraph, QueryWeight, Ties, label_graph
from rankwise.solvers.stochastic import Memory

__all__ = ["Accumulator", "ExactQueries", "ExactRanking", "PairOptions", "StreamedQueries", "StreamedRanking"]

Solve = Callable[[QuadraticObjective], Floats]


@dataclass(frozen=True)
class PairOptions:
    """Which pairs labels induce, and what they weigh."""

    ties: Ties
    cost: Cost
    query_weight: QueryWeight

    def graph(
        self, labels: Floats, queries: Queries, row_weight: Floats | None, n_threads: int
    ) -> LabelGraph:
        """Return the graph of some rows alone."""
        return label_graph(
            labels,
            queries,
            ties=self.ties,
            cost=self.cost,
            query_weight=self.query_weight,
            row_weight=row_weight,
            n_threads=n_threads,
        )


class Accumulator(Protocol):
    """The memory of one graph; several outputs may share it."""

    def after(
        self, design: Design, labels: Floats, queries: Queries, row_weight: Floats | None, alpha: float
    ) -> Accumulator:
        """Return the memory after more rows."""

    def coef(self, solve: Solve) -> Floats:
        """Return the coefficients for everything so far."""


@dataclass(frozen=True)
class ExactQueries:
    """Queries that come whole, by their exact statistics."""

    options: PairOptions
    statistics: PassedQueries

    @classmethod
    def empty(cls, options: PairOptions, n_features: int, label_shape: tuple[int, ...]) -> ExactQueries:
        """Return the memory of no rows."""
        return cls(options, PassedQueries.empty(n_features, label_shape))

    def after(
        self, design: Design, labels: Floats, queries: Queries, row_weight: Floats | None, alpha: float
    ) -> ExactQueries:
        """Add up."""
        graph = self.options.graph(labels, queries, row_weight, design.n_threads)
        return replace(self, statistics=self.statistics.plus(SquaredObjective(design, graph)))

    def coef(self, solve: Solve) -> Floats:
        """Solve the normal equations of everything so far."""
        return solve(self.statistics.objective())


@dataclass(frozen=True)
class ExactRanking:
    """One ranking that grows, by its exact statistics."""

    statistics: GrowingRanking

    @classmethod
    def empty(cls, options: PairOptions) -> ExactRanking:
        """Return the memory of no rows."""
        return cls(GrowingRanking(options.ties, options.cost, options.query_weight))

    def after(
        self, design: Design, labels: Floats, queries: Queries, row_weight: Floats | None, alpha: float
    ) -> ExactRanking:
        """Add up."""
        return ExactRanking(self.statistics.plus(design, labels, row_weight))

    def coef(self, solve: Solve) -> Floats:
        """Solve the normal equations of everything so far."""
        return solve(self.statistics.objective())


@dataclass(frozen=True)
class StreamedQueries:
    """Queries that come whole, learned as they come."""

    options: PairOptions
    memory: Memory

    @classmethod
    def empty(cls, options: PairOptions, n_features: int, label_shape: tuple[int, ...]) -> StreamedQueries:
        """Return the memory of no rows."""
        return cls(options, Memory.empty((n_features, *label_shape)))

    def after(
        self, design: Design, labels: Floats, queries: Queries, row_weight: Floats | None, alpha: float
    ) -> StreamedQueries:
        """Learn, a block of queries at a time."""
        graph = self.options.graph(labels, queries, row_weight, design.n_threads)
        memory = self.memory
        for part in query_parts(design, graph.blocks, graph.pull, part_rows(design)):
            memory = memory.learn(part, alpha)
        return replace(self, memory=memory)

    def coef(self, solve: Solve) -> Floats:
        """Return the model as it is."""
        return self.memory.coef


@dataclass(frozen=True)
class StreamedRanking:
    """One ranking that grows, learned as it comes; its blocks are joined by their running means."""

    options: PairOptions
    memory: Memory
    mean: RunningMean

    @classmethod
    def empty(cls, options: PairOptions, n_features: int, label_shape: tuple[int, ...]) -> StreamedRanking:
        """Return the memory of no rows."""
        mean = RunningMean.empty(n_features, label_shape)
        return cls(options, Memory.empty((n_features, *label_shape)), mean)

    def after(
        self, design: Design, labels: Floats, queries: Queries, row_weight: Floats | None, alpha: float
    ) -> StreamedRanking:
        """Learn, a block of rows at a time."""
        memory, mean = self.memory, self.mean
        grows = self.options.query_weight == "pairs"
        for part, joined in row_parts(design, labels, row_weight, part_rows(design), mean):
            mean = joined
            # With pairs of weight 1 the loss grows with the square of the rows; here the penalty shrinks instead.
            memory = memory.learn(part, alpha / mean.weight if grows and mean.weight > 0 else alpha)
        return replace(self, memory=memory, mean=mean)

    def coef(self, solve: Solve) -> Floats:
        """Return the model as it is."""
        return self.memory.coef
