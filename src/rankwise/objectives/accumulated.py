"""Sufficient statistics: a quadratic objective of few columns, accumulated as a matrix query by query."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

import numpy as np

from rankwise.arrays import Floats
from rankwise.objectives.moved import MatrixQuadratic

__all__ = ["PassedQueries"]


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
