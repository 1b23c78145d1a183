"""The protocol of a set of pairs: everything the rest of the library ever asks of it.

A pair says that row ``i`` is preferred to row ``j`` by a wanted difference ``z``, with a weight ``ω``. All
pairs together are a graph with signed incidence ``A``; losses need only its Laplacian ``L = A'ΩA`` and a few
sums, and no implementation ever lists the quadratic set of pairs that labels induce.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
import numpy.typing as npt

from rankwise.blocks import QueryBlocks

__all__ = ["Floats", "PairGraph"]

Floats = npt.NDArray[np.float64]


class PairGraph(Protocol):
    """A weighted set of pairs over the rows of a design, in the caller's row order."""

    @property
    def n_rows(self) -> int:
        """How many rows the pairs refer to."""

    @property
    def weight(self) -> float:
        """The total weight of the pairs whose order is known, ``Σω``."""

    @property
    def net_wins(self) -> Floats:
        """For each row the weight it wins minus the weight it loses, ``A'ω``."""

    @property
    def pull(self) -> Floats:
        """The linear term of the squared loss, ``r = A'Ωz``; a column an output where there are several."""

    @property
    def constant(self) -> Floats:
        """The constant of the squared loss, ``c = z'Ωz``; one entry an output."""

    @property
    def blocks(self) -> QueryBlocks | None:
        """The graph's independent query blocks, or None where it has no such structure."""

    def laplacian(self, v: Floats) -> Floats:
        """Apply ``L = A'ΩA`` to a vector or to the columns of a block of vectors."""
