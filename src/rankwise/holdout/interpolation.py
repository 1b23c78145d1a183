"""What a sum over ``α / (σ + α)`` is at many alphas, from its values at a few.

As a function of ``log α`` each term has its poles at distance π from the real line, whatever σ, so Chebyshev
interpolation over an interval of half-width h gains a factor of about ``2π / h`` a node.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import asinh, ceil, log, pi

import numpy as np
from numpy.polynomial.chebyshev import chebvander

from rankwise.arrays import Floats

__all__ = ["Interpolation"]

_PRECISION = 1e-14


@dataclass(frozen=True)
class Interpolation:
    """Chebyshev nodes between two numbers on a logarithmic scale, for functions like ``α / (σ + α)``."""

    low: float
    high: float

    @cached_property
    def nodes(self) -> Floats:
        """The numbers at which the function is asked for."""
        half = log(self.high / self.low) / 2
        if half < 1e-15:
            return np.array([self.low])
        n_nodes = 2 + ceil(-log(_PRECISION) / asinh(pi / half))
        return np.asarray(self.low * np.exp(half * (1 + _chebyshev_points(n_nodes))))

    def weights(self, at: Floats) -> Floats:
        """Return the weight of each node, (nodes, ...): the values at the nodes with them are those at the points."""
        n_nodes = self.nodes.size
        if n_nodes == 1:
            return np.ones((1, *at.shape))
        half = log(self.high / self.low) / 2
        # Taken back from the nodes, the points would have errors of a rounding over `half`, and so the sum of weights.
        own = chebvander(_chebyshev_points(n_nodes), n_nodes - 1)
        others = chebvander(np.clip(np.log(at / self.low) / half - 1, -1, 1), n_nodes - 1)
        own[:, 0] /= 2  # discrete orthogonality of the polynomials at their nodes
        return np.asarray(np.moveaxis(others @ (2 / n_nodes * own.T), -1, 0))


def _chebyshev_points(n_points: int) -> Floats:
    return np.asarray(np.cos((np.arange(n_points) + 0.5) * pi / n_points))
