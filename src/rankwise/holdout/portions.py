"""Pairs of rows that leave-pair-out scores in blocks: shared out to threads, added up, with progress shown."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from rankwise.arrays import Floats, Rows
from rankwise.runtime.progress import ShareProgress

__all__ = ["leaves_one_level", "sum_over_blocks"]

Block = TypeVar("Block")


def leaves_one_level(level: Rows, i: Rows, j: Rows) -> npt.NDArray[np.bool_]:
    """Tell for pairs with different labels whether all other rows have one label, so that nothing is left to learn.

    The model without them scores all rows alike; a formula would give the sign of its rounding errors.
    """
    size = np.bincount(level)
    opponents = (level.size - size)[level]
    n_ordered = opponents.sum() // 2
    return np.asarray(opponents[i] + opponents[j] - 1 == n_ordered)


def sum_over_blocks(
    score: Callable[[Block], Floats], blocks: Iterable[Block], n_rows: int, n_threads: int
) -> Floats:
    """Add up what `score` returns for blocks, each of as many rows with all rows from its first one on."""
    listed = list(blocks)
    total: Floats = np.zeros(())
    progress = ShareProgress("leave-pair-out", f"{n_rows * (n_rows - 1) // 2:,} pairs")
    with progress, ThreadPoolExecutor(n_threads) as pool:
        try:
            for number, part in enumerate(pool.map(score, listed), 1):
                total = total + part
                progress.reach(1.0 - (1.0 - number / len(listed)) ** 2)
        finally:
            pool.shutdown(wait=False, cancel_futures=True)  # after Ctrl-C, blocks that have not begun do not
    return total
