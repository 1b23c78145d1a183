"""Queries in the order of their rows, for sequential reads of a matrix on disk."""

from __future__ import annotations

import numpy as np

from rankwise.arrays import Ints
from rankwise.pairs.blocks import Folds, QueryBlocks

__all__ = ["in_row_order", "is_scattered", "row_spans"]


def in_row_order(blocks: QueryBlocks, folds: Folds | None = None) -> tuple[QueryBlocks, Folds | None]:
    """Return the same pairs with queries sorted by their first row."""
    sizes = np.diff(blocks.query_start)
    if sizes.size == 0 or sizes.min() == 0:
        return blocks, folds
    first_row = np.minimum.reduceat(blocks.order, blocks.query_start[:-1])
    if np.all(first_row[1:] > first_row[:-1]):
        return blocks, folds
    query = np.argsort(first_row)
    return blocks.chosen(query), None if folds is None else folds.chosen(blocks, query)


def row_spans(order: Ints, chunk_start: Ints) -> tuple[Ints, Ints]:
    """Return the first row of the matrix that each chunk of grouped rows touches, and the one after the last."""
    cuts = np.unique(chunk_start)[:-1]  # chunks without rows touch none
    return np.minimum.reduceat(order, cuts), np.maximum.reduceat(order, cuts) + 1


def is_scattered(order: Ints, chunk_start: Ints) -> bool:
    """Tell whether chunks of grouped rows span many more rows of the matrix than they have."""
    if order.size == 0:
        return False
    first, last = row_spans(order, chunk_start)
    return int(np.sum(last - first)) > 2 * order.size
