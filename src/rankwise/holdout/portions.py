"""Pairs of rows that are scored in blocks: shared out to threads, added up, with progress shown."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import numpy as np

from rankwise.arrays import Floats
from rankwise.runtime.progress import ShareProgress

__all__ = ["pair_progress", "sum_over_blocks"]

Block = TypeVar("Block")


def pair_progress(n_pairs: float) -> ShareProgress:
    """Return the line that shows how many of so many pairs have been scored."""
    return ShareProgress("leave-pair-out", f"{n_pairs:,.0f} pairs")


def sum_over_blocks(
    score: Callable[[Block], Floats], blocks: Iterable[Block], n_rows: int, n_threads: int
) -> Floats:
    """Add up what `score` returns for blocks, each of as many rows with all rows from its first one on."""
    listed = list(blocks)
    total: Floats = np.zeros(())
    with pair_progress(n_rows * (n_rows - 1) / 2) as progress, ThreadPoolExecutor(n_threads) as pool:
        try:
            for number, part in enumerate(pool.map(score, listed), 1):
                total = total + part
                progress.reach(1.0 - (1.0 - number / len(listed)) ** 2)
        finally:
            pool.shutdown(wait=False, cancel_futures=True)  # after Ctrl-C, blocks that have not begun do not
    return total
