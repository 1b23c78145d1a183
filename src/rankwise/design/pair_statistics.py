"""Sums over the cells of two binned columns, from which the gain of a pair of columns follows.

With the gradient g of a loss by the scores and a weight h for each row, a piecewise constant surface on the bins of two
columns could lower the loss by about half its *gain* ``Σ (sum of g)² / (sum of h + penalty)`` over the cells of the
grid. Curves of the two columns could achieve the gains of the rows and of the columns of the grid; the gain of the pair
is the remainder.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from rankwise import _core
from rankwise.arrays import Floats, Ints

__all__ = ["MOST_BINS", "pair_histograms"]

MOST_BINS = 16

Bins = npt.NDArray[np.uint8]


def pair_histograms(
    bins: Bins, g: Floats, h: Floats, first: Ints, second: Ints, n_threads: int = 1
) -> tuple[Floats, Floats]:
    """Return the sums of g and of h by the bins of listed pairs of columns, each (pairs, MOST_BINS, MOST_BINS)."""
    out = np.empty((first.size, 2 * MOST_BINS * MOST_BINS))
    _core.pair_histograms(bins, g, h, first, second, out, n_threads)
    sums = out.reshape(first.size, MOST_BINS, MOST_BINS, 2)
    return sums[..., 0], sums[..., 1]
