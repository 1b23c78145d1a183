"""Queries in the order of their rows: how a matrix on disk is to be walked."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from rankwise.arrays import Ints
from rankwise.blocks import Folds, QueryBlocks

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
    segment = _ranges(blocks.query_segment, query)
    row = _ranges(blocks.query_start, query)
    moved = replace(
        blocks,
        order=blocks.order[row],
        query_start=_starts(sizes[query]),
        segment_start=_starts(np.diff(blocks.segment_start)[segment]),
        query_segment=_starts(np.diff(blocks.query_segment)[query]),
        degree=blocks.degree[segment],
        scale=blocks.scale[query],
        row_weight=None if blocks.row_weight is None else blocks.row_weight[row],
        level_value=None if blocks.level_value is None else blocks.level_value[segment],
    )
    return moved, None if folds is None else Folds(folds.fold, folds.degree[segment], folds.scale[query])


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


def _starts(sizes: Ints) -> Ints:
    return np.concatenate(([0], np.cumsum(sizes))).astype(np.int64, copy=False)


def _ranges(start: Ints, chosen: Ints) -> Ints:
    """Return the positions of some ranges, one range after the other."""
    sizes = np.diff(start)[chosen]
    ends = np.cumsum(sizes)
    return np.repeat(start[chosen] - ends + sizes, sizes) + np.arange(int(ends[-1]))
