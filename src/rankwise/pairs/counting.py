"""How the violated pairs of each query are counted, and in which order its rows stand for that."""

from __future__ import annotations

from typing import Literal

import numpy as np
import numpy.typing as npt

from rankwise import _core

__all__ = ["BRUTE", "FENWICK", "LEVELS", "Counting", "choose_counting", "grouped_order", "levels_per_query"]

Counting = Literal["auto", "brute", "levels", "fenwick"]

NO_PAIRS, BRUTE, LEVELS, FENWICK = (
    _core.counting_code(name) for name in ("no_pairs", "brute", "levels", "fenwick")
)
# Rows. Distinct labels, one thread, ns per row by brute force | Fenwick: counts with their sort 52 | 101 at 100
# rows, 145 | 101 at 200; Laplacian 52 | 69, 109 | 72; smoothed 166 | 195, 327 | 192. Five levels cross there.
_BRUTE_UP_TO = 128


def levels_per_query(
    ranks: npt.NDArray[np.integer], query_start: npt.NDArray[np.int64]
) -> npt.NDArray[np.int32]:
    """Return how many distinct labels each query has, from the ranks of labels in grouped order."""
    n_levels = np.zeros(query_start.size - 1, dtype=np.int32)
    filled = np.flatnonzero(np.diff(query_start))
    if filled.size:  # reduceat would give an empty query the next one's first row
        n_levels[filled] = np.maximum.reduceat(ranks, query_start[filled]) + 1
    return n_levels


def choose_counting(
    sizes: npt.NDArray[np.int64], n_levels: npt.NDArray[np.int32], method: Counting
) -> npt.NDArray[np.uint8]:
    """Return the code of the method for each query; "auto" goes by its size and its number of levels."""
    swept = np.where(n_levels <= _core.MAX_LEVELS, LEVELS, FENWICK)
    if method == "auto":
        codes = np.where(sizes <= _BRUTE_UP_TO, BRUTE, swept)
    elif method == "levels":
        codes = swept
    else:
        codes = np.full(sizes.size, _core.counting_code(method))
    return np.where(n_levels > 1, codes, NO_PAIRS).astype(np.uint8)


def grouped_order(
    ranks: npt.NDArray[np.integer],
    sizes: npt.NDArray[np.int64],
    is_brute: npt.NDArray[np.bool_],
    order: npt.NDArray[np.integer] | None,
) -> npt.NDArray[np.int64] | None:
    """Return rows by query and, where brute force counts, by label; None if that is the caller's order.

    Large queries keep the caller's order: permuting their arrays at random would cost as much as a sweep.
    """
    if is_brute.any():
        query = np.repeat(np.arange(sizes.size), sizes)
        by_label = np.lexsort((np.where(is_brute[query], ranks, 0), query))
        order = by_label if order is None else order[by_label]
    if order is None or np.array_equal(order, np.arange(order.size)):
        return None
    return np.asarray(order, dtype=np.int64)
