"""What a pair costs, in score space: arguments are scores and a graph, never the features.

A loss is a class with a line in `LOSSES`; the tests run over that table.
"""

from __future__ import annotations

from typing import Protocol

from rankwise.pairs.graph import Floats, PairGraph

__all__ = ["LOSSES", "Loss", "SquaredLoss"]


class Loss(Protocol):
    """A convex function of the scores, given the pairs."""

    name: str

    def value(self, graph: PairGraph, scores: Floats) -> Floats:
        """Return the loss, one entry an output."""

    def gradient(self, graph: PairGraph, scores: Floats) -> Floats:
        """Return the derivative with respect to the scores."""


class SquaredLoss:
    """``Σ ω (z - (f_i - f_j))² = f'Lf - 2r'f + c``."""

    name = "squared"

    def value(self, graph: PairGraph, scores: Floats) -> Floats:
        """Return the loss, one entry an output."""
        value: Floats = (scores * (graph.laplacian(scores) - 2 * graph.pull)).sum(axis=0) + graph.constant
        return value

    def gradient(self, graph: PairGraph, scores: Floats) -> Floats:
        """Return ``2 (Lf - r)``."""
        return 2 * (graph.laplacian(scores) - graph.pull)

    def hessian_product(self, graph: PairGraph, v: Floats) -> Floats:
        """Return ``2 L v``: the curvature is the same everywhere."""
        return 2 * graph.laplacian(v)


LOSSES: dict[str, type[SquaredLoss]] = {"squared": SquaredLoss}
