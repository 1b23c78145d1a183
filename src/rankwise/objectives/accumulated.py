"""Sufficient statistics: a quadratic objective of few columns, kept as its matrix while the rows pass by.

Queries that come whole add up. One ranking that grows is remembered by the means and scatters of its *groups*: all
rows together where every pair weighs the same and the labels themselves are the wanted scores, else the levels of
the labels. From those, ``X'LX`` of everything so far follows exactly, for any weight of pairs: with C_k the scatter
of level k about its mean,

    X'LX = Σ_k degree_k C_k + M'L_levels M

where L_levels is the graph of one row per level, at the level's mean and of the level's weight.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from rankwise.arrays import Floats
from rankwise.data.queries import one_query
from rankwise.design import Design, as_design
from rankwise.exceptions import MemoryLimitError
from rankwise.objectives.moved import MatrixQuadratic
from rankwise.objectives.parts import RunningMean, one_ranking
from rankwise.objectives.quadratic import SquaredObjective
from rankwise.pairs.blocks import laplacian
from rankwise.pairs.labels import Cost, QueryWeight, Ties, label_graph
from rankwise.runtime.memory import MemoryBudget

__all__ = ["Group", "GrowingRanking", "PassedQueries", "needs_levels"]


@dataclass(frozen=True)
class PassedQueries:
    """The sum over queries that each came whole."""

    matrix: Floats
    rhs: Floats

    @classmethod
    def empty(cls, n_features: int, label_shape: tuple[int, ...]) -> PassedQueries:
        """Return the sum over no queries."""
        return cls(np.zeros((n_features, n_features)), np.zeros((n_features, *label_shape)))

    def plus(self, objective: SquaredObjective) -> PassedQueries:
        """Return the sum with the queries of one more objective."""
        return PassedQueries(self.matrix + objective.matrix(), self.rhs + objective.rhs)

    def objective(self) -> MatrixQuadratic:
        """Return the objective of everything so far."""
        return MatrixQuadratic(self.matrix, self.rhs)


@dataclass(frozen=True)
class Group:
    """Rows of which every pair weighs the same: their mean, and the scatter about it."""

    mean: RunningMean
    scatter: Floats  # Σ w (x - x̄)(x - x̄)'
    cross: Floats  # Σ w (x - x̄)(y - ȳ)

    @classmethod
    def of(cls, design: Design, labels: Floats, row_weight: Floats | None) -> Group:
        """Return the statistics of some rows."""
        mean, pairs = one_ranking(design, labels, row_weight)
        pull = laplacian(pairs, np.ascontiguousarray(labels - mean.label), n_threads=design.n_threads)
        scatter = design.gram_matrix(pairs)
        if scatter is None:  # an operator: a product per column
            unit = np.eye(design.shape[1])
            scatter = design.tdot(laplacian(pairs, design.dot(unit), n_threads=design.n_threads))
        return cls(mean, scatter, design.tdot(pull))

    def joined(self, other: Group) -> Group:
        """Return the statistics of both."""
        mean, gap, label_gap = self.mean.joined(other.mean)
        return Group(
            mean,
            self.scatter + other.scatter + np.multiply.outer(gap, gap),
            self.cross + other.cross + np.multiply.outer(gap, label_gap),
        )


def needs_levels(ties: Ties, cost: Cost, query_weight: QueryWeight) -> bool:
    """Tell whether one growing ranking must be remembered level by level."""
    return ties == "exclude" or cost != "magnitude" or query_weight == "equal"


@dataclass(frozen=True)
class GrowingRanking:
    """One ranking that gets ever more rows.

    Attributes
    ----------
    ties, cost, query_weight : str
        As in `rankwise.pairs.labels`.
    groups : dict of float to group
        By label, or all under 0 where the labels need not be told apart.
    """

    ties: Ties
    cost: Cost
    query_weight: QueryWeight
    groups: Mapping[float, Group] = field(default_factory=dict)

    @property
    def by_level(self) -> bool:
        """Whether labels are told apart."""
        return needs_levels(self.ties, self.cost, self.query_weight)

    def plus(self, design: Design, labels: Floats, row_weight: Floats | None) -> GrowingRanking:
        """Return the ranking with more rows; several outputs only where the levels do not matter."""
        groups = dict(self.groups)
        if not self.by_level:
            groups[0.0] = _joined(groups.get(0.0), Group.of(design, labels, row_weight))
            return replace(self, groups=groups)
        values, level = np.unique(labels, return_inverse=True)
        _require_memory(design.shape[1], len(set(values.tolist()) | set(groups)))
        for number, value in enumerate(values.tolist()):
            rows = np.flatnonzero(level == number)
            weight = None if row_weight is None else row_weight[rows]
            own = Group.of(design.rows(rows), labels[rows], weight)
            groups[value] = _joined(groups.get(value), own)
        return replace(self, groups=groups)

    def objective(self) -> MatrixQuadratic:
        """Return the objective of everything so far."""
        if not self.by_level:
            group = self.groups[0.0]
            factor = group.mean.weight if self.query_weight == "pairs" else 1.0
            return MatrixQuadratic(factor * group.scatter, factor * group.cross)
        values = np.array(sorted(self.groups))
        groups = [self.groups[value] for value in values.tolist()]
        weight = np.array([group.mean.weight for group in groups])
        graph = label_graph(
            values,
            one_query(values.size),
            ties=self.ties,
            cost=self.cost,
            query_weight=self.query_weight,
            row_weight=weight,
        )
        means = SquaredObjective(as_design(np.array([group.mean.row for group in groups])), graph)
        matrix = means.matrix()
        for group, degree in zip(
            groups, self._degrees(graph.blocks.degree, graph.blocks.scale, weight), strict=True
        ):
            matrix = matrix + degree * group.scatter
        return MatrixQuadratic(matrix, means.rhs)

    def _degrees(self, degree: Floats, scale: Floats, weight: Floats) -> Floats:
        """Return the weight of a row's pairs, level by level; one row per level has no ties to tell it by."""
        if self.cost == "relative":
            return degree
        own = weight if self.ties == "exclude" else np.zeros_like(weight)
        degrees: Floats = scale[0] * (weight.sum() - own)
        return degrees


def _joined(old: Group | None, new: Group) -> Group:
    return new if old is None else old.joined(new)


def _require_memory(n_features: int, n_levels: int) -> None:
    needed = 2 * 8 * n_features**2 * n_levels
    if not MemoryBudget().allows(needed):
        raise MemoryLimitError(
            f"One ranking with {n_levels} different labels needs a matrix of {n_features} × {n_features} for each "
            f"of them, {needed / 2**30:.1f} GiB.",
            "use ties='include', cost='magnitude' and query_weight='size' or 'pairs', which need one such matrix "
            "in all, round the labels, or pass qid.",
        )
