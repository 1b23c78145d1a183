"""Ranking of interactions: the estimated gain of every pair of columns beyond their curves.

Where the curves are fitted, the loss still has a slope g and a curvature h in every row's score. A surface of constant
pieces over the cells of two columns, each moved by ``-g/h`` of its cell, would lower the loss by about ``Σ g²/(2h)``;
the part that a sum of two curves could achieve is subtracted (the idea of FAST, Lou and others 2013). One compiled pass
computes the sums over the cells of all pairs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from rankwise.arrays import Floats, Ints
from rankwise.design.pair_statistics import MOST_BINS, pair_histograms
from rankwise.design.terms import Curve

__all__ = ["MOST_BINS", "RankedPairs", "cells_of", "coarse", "rank_pairs"]

_PAIRS = 4096  # whose sums are held at a time
_JITTER = 1e-9


@dataclass(frozen=True)
class RankedPairs:
    """Pairs of sides, the one with the largest gain first.

    Attributes
    ----------
    pairs : (pairs, 2) int64
        Numbers of sides, the smaller first.
    gains : (pairs,) float64
        About how much the mean loss would fall.
    """

    pairs: Ints
    gains: Floats


def coarse(side: Curve) -> Curve | None:
    """Return a side with few enough values to rank pairs by; None for categories of many levels.

    Those are paired only where the caller lists them: their grids are large and mostly empty.
    """
    if side.n_values <= MOST_BINS:
        return side
    if side.is_levels:
        return None
    kept = np.linspace(0, side.knots.size - 1, MOST_BINS - side.has_missing).round().astype(np.int64)
    return replace(side, knots=side.knots[kept])


def cells_of(side: Curve, x: npt.NDArray[np.floating]) -> npt.NDArray[np.uint8]:
    """Return the value of a curve that is nearest to each entry: its cell."""
    knots = side.knots
    # NaN sorts behind everything.
    if side.is_levels:
        cells = np.minimum(np.searchsorted(knots, x), knots.size - 1)
        is_missing = knots[cells] != x
    else:
        cells = np.searchsorted((knots[1:] + knots[:-1]) / 2, x)
        is_missing = np.isnan(x)
    cells[is_missing] = knots.size if side.has_missing else 0
    return cells.astype(np.uint8)


def rank_pairs(
    sides: Sequence[Curve],
    is_constant: npt.NDArray[np.bool_],
    cells: npt.NDArray[np.uint8],
    slope: Floats,
    curvature: Floats,
    n_threads: int = 1,
) -> RankedPairs:
    """Rank pairs of columns by their gain, all but those of two columns that are constant inside queries.

    Parameters
    ----------
    sides : sequence of Curve
        `coarse` curves, of at most `MOST_BINS` values.
    is_constant : (sides,) bool
        Which sides are constant inside every query.
    cells : (sides, rows) uint8
        `cells_of` each of them.
    slope, curvature : (rows,) float64
        The first and second derivative of the mean loss with respect to every row's score.
    """
    width = max((side.n_values for side in sides), default=0)
    first, second = np.array(np.triu_indices(len(sides), 1), dtype=np.int64)
    seen = ~(is_constant[first] & is_constant[second])
    first, second = first[seen], second[seen]
    gains = np.zeros(first.size)
    for start in range(0, first.size, _PAIRS):
        pairs = slice(start, start + _PAIRS)
        G, H = pair_histograms(cells, slope, curvature, first[pairs], second[pairs], n_threads)
        gains[pairs] = _gains(G[:, :width, :width], H[:, :width, :width])
    # Gains that differ by rounding count as equal, so that the order of rows never decides between pairs.
    largest = max(gains.max(initial=0.0), np.finfo(np.float64).tiny)
    order = np.argsort(-np.round(gains / largest, 6), kind="stable")
    return RankedPairs(np.column_stack([first, second])[order], gains[order])


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
