"""The protocols of sets of pairs: the operations that the rest of the library uses.

A pair states that row ``i`` is preferred to row ``j`` by a wanted difference ``z``, with a weight ``ω``. All
pairs together are a graph with signed incidence ``A``; losses need only its Laplacian ``L = A'ΩA`` and a few
sums, and no implementation ever lists the quadratic set of pairs that labels induce.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from rankwise.arrays import Floats, Ints
from rankwise.pairs.blocks import QueryBlocks


class PairGraph(Protocol):
    """A weighted set of pairs over the rows of a design, in the caller's row order."""

    @property
    def n_threads(self) -> int:
        """The number of threads of its products."""

    @property
    def n_rows(self) -> int:
        """The number of rows that the pairs refer to."""

    @property
    def weight(self) -> float:
        """The total weight of the pairs whose order is known, ``Σω``."""

    @property
    def pull(self) -> Floats:
        """The linear term of the squared loss, ``r = A'Ωz``; a column per output where there are several."""

    @property
    def constant(self) -> Floats:
        """The constant of the squared loss, ``c = z'Ωz``; one entry per output."""

    @property
    def blocks(self) -> QueryBlocks | None:
        """The graph's independent query blocks, or None where it has no such structure."""

    @property
    def edges(self) -> tuple[Ints, Ints, Floats] | None:
        """The winner, the loser and the weight of each pair, where pairs are listed."""

    def laplacian(self, v: Floats) -> Floats:
        """Apply ``L = A'ΩA`` to a vector or to the columns of a block of vectors."""

    def degrees(self) -> Floats:
        """Return the total weight of each row's pairs: the diagonal of L, but for a row's pair with itself."""


@dataclass(frozen=True)
class SmoothedHinge:
    """The Huberised hinge at a point: phi(t) = 0 | t²/2δ | t - δ/2, with t = z - (f_i - f_j).

    Attributes
    ----------
    value : float
        The weighted sum of phi.
    gradient : (rows,) float64
        Its derivative by the scores.
    active : float
        ``Σ ω a z`` with the slopes ``a = phi'(t) = clip(t/δ, 0, 1)``. With N the total weight of all pairs
        and ``g = X'gradient / N``, the hinge problem's minimum is at least ``active/N - |g|²/(4 alpha)``.
    """

    value: float
    gradient: Floats
    active: float


class ViolatedPairs(Protocol):
    """The pairs that lie inside their margin at some scores: ``f_i - f_j < z``."""

    @property
    def net_wins(self) -> Floats:
        """For each row the weight it wins minus the weight it loses, ``A'ω``."""

    def laplacian(self, v: Floats) -> Floats:
        """Apply their ``L = A'ΩA`` to a vector or a block."""

    @property
    def active(self) -> float:
        """``Σ ωz``: the hinge less its derivative times the scores, without their rounding."""

    def degrees(self, width: float | None = None) -> Floats:
        """Return for each row the weight of its violated pairs, of those with ``t <= width`` only if that is given."""

    def hinge(self) -> float:
        """Return ``Σ ω (z - (f_i - f_j))``; a subgradient is `-net_wins`."""

    def squared_hinge(self) -> tuple[float, Floats]:
        """Return ``Σ ω (z - (f_i - f_j))²`` and its derivative by the scores."""

    def smoothed(self, delta: float) -> SmoothedHinge:
        """Return the Huberised hinge at the same scores."""


class MarginPairs(Protocol):
    """Pairs with margins that can be evaluated at any scores; every pair has a winner."""

    @property
    def n_rows(self) -> int:
        """The number of rows that the pairs refer to."""

    @property
    def weight(self) -> float:
        """The total weight of the pairs."""

    def at(self, scores: Floats) -> ViolatedPairs:
        """Return the pairs that are violated at some scores."""

    def thinned(self, n_rows: int) -> tuple[npt.NDArray[np.int64], MarginPairs] | None:
        """Return about `n_rows` rows and the pairs among them; None where that would not be much cheaper."""
