"""Which pairs of columns act together: the gain of every pair, from the slopes that the curves alone leave.

Where the curves are fitted, the loss still has a slope g and a curvature h in every row's score. A surface of constant
pieces over the cells of two columns, each moved by ``-g/h`` of its cell, would lower the loss by about ``Σ g²/(2h)``;
what a sum of two curves could do of that is taken off. The sums over the cells of all pairs are two matrix products
(the idea of FAST, Lou and others 2013).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from rankwise.arrays import Floats, Ints
from rankwise.terms import Curve

__all__ = ["MANY_SIDES", "RankedPairs", "cells_of", "rank_pairs"]

# Categories of more levels are paired only where the caller lists them: their grids are large and mostly empty.
MANY_SIDES = 16
_BLOCK = 1 << 12  # rows whose cells are spread out at a time
_JITTER = 1e-9


@dataclass(frozen=True)
class RankedPairs:
    """Pairs of curves, the one with the largest gain first.

    Attributes
    ----------
    pairs : (pairs, 2) int64
        Numbers of curves, the smaller first.
    gains : (pairs,) float64
        About how much the mean loss would fall.
    """

    pairs: Ints
    gains: Floats


def cells_of(side: Curve, x: npt.NDArray[np.floating]) -> Ints:
    """Return the value of a curve that is nearest to each entry: its cell."""
    ids, weights = side.weights(x)
    return np.where(weights[:, 1] > weights[:, 0], ids[:, 1], ids[:, 0])


def rank_pairs(
    sides: Sequence[Curve], cells: Sequence[Ints], slope: Floats, curvature: Floats
) -> RankedPairs:
    """Rank all pairs of columns by their gain.

    Parameters
    ----------
    sides : sequence of Curve
        The coarse curves.
    cells : sequence of (rows,) int
        `cells_of` each of them.
    slope, curvature : (rows,) float64
        Of the mean loss, with respect to every row's score.
    """
    width = max((side.n_values for side in sides), default=0)
    n_sides = len(sides)
    G, H = _cell_sums(cells, width, slope, curvature)
    first, second = np.triu_indices(n_sides, 1)
    gains = np.zeros(first.size)
    done = 0
    for one in range(n_sides - 1):
        others = slice((one + 1) * width, None)
        own = slice(one * width, (one + 1) * width)
        shape = (width, n_sides - one - 1, width)
        g = G[own, others].reshape(shape).transpose(1, 0, 2)
        h = H[own, others].reshape(shape).transpose(1, 0, 2)
        gains[done : done + shape[1]] = _gains(g, h)
        done += shape[1]
    # Gains that differ by rounding count as equal, so that the order of rows never decides between pairs.
    order = np.argsort(
        -np.round(gains / max(gains.max(initial=0.0), np.finfo(np.float64).tiny), 9), kind="stable"
    )
    return RankedPairs(np.column_stack([first, second])[order].astype(np.int64), gains[order])


def _cell_sums(cells: Sequence[Ints], width: int, slope: Floats, curvature: Floats) -> tuple[Floats, Floats]:
    """Return the sums of slopes and curvatures over the cells of every pair, (sides · width)² each."""
    size = len(cells) * width
    G, H = np.zeros((size, size)), np.zeros((size, size))
    columns = np.arange(len(cells)) * width
    for first in range(0, slope.size, _BLOCK):
        rows = slice(first, first + _BLOCK)
        at = np.stack([own[rows] for own in cells], axis=1) + columns
        spread = np.zeros((at.shape[0], size))
        np.put_along_axis(spread, at, 1.0, axis=1)
        G += spread.T @ (spread * slope[rows, None])
        H += spread.T @ (spread * curvature[rows, None])
    return G, H


def _gains(g: Floats, h: Floats) -> Floats:
    """Return half of ``Σ h r²`` over the cells of each pair, r the moves ``-g/h`` less their two main effects."""
    n_pairs, n_first, n_second = g.shape
    system = np.zeros((n_pairs, n_first + n_second, n_first + n_second))
    rows, columns = h.sum(axis=2), h.sum(axis=1)
    np.einsum("pii->pi", system[:, :n_first, :n_first])[:] = rows
    np.einsum("pii->pi", system[:, n_first:, n_first:])[:] = columns
    system[:, :n_first, n_first:] = h
    system[:, n_first:, :n_first] = h.transpose(0, 2, 1)
    scale = np.maximum(rows.sum(axis=1), np.finfo(np.float64).tiny)
    np.einsum("pii->pi", system)[:] += (
        _JITTER * scale[:, None]
    )  # a constant may stand in either, and lines be empty
    wanted = np.concatenate([g.sum(axis=2), g.sum(axis=1)], axis=1)
    effect = np.linalg.solve(system, wanted[:, :, None])[:, :, 0]
    left = g - h * (effect[:, :n_first, None] + effect[:, None, n_first:])
    moves = np.divide(left**2, h, out=np.zeros_like(g), where=h > 1e-12 * scale[:, None, None])
    return np.asarray(moves.sum(axis=(1, 2)) / 2)
