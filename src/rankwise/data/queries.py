"""Encoding of query ids.

Ids may be anything hashable: integers, negative ones, floats, strings, tuples; rows of a query need not
be adjacent. All other code works with a `Queries`: small integer codes and a permutation that brings
the rows of a query together. The data itself is never permuted.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from rankwise.arrays import AnyArray


@dataclass(frozen=True)
class Queries:
    """Rows grouped by query; everything about them is known when they are encoded.

    Attributes
    ----------
    codes : (rows,) int64
        The query of each row, as a position in `ids`.
    ids : (queries,) array
        The caller's ids; sorted where they can be ordered, else in order of first appearance.
    n_rows : int
    sizes : (queries,) int64
        The number of rows of each query.
    offsets : (queries + 1,) int64
        Where each query starts in grouped order, and the number of rows at the end.
    is_grouped : bool
        Whether the rows are already in grouped order.
    order : (rows,) int64
        The rows in grouped order: those of the first query, then those of the second, ...
    """

    codes: npt.NDArray[np.int64]
    ids: AnyArray
    n_rows: int = field(init=False)
    sizes: npt.NDArray[np.int64] = field(init=False)
    offsets: npt.NDArray[np.int64] = field(init=False)
    is_grouped: bool = field(init=False)
    order: npt.NDArray[np.int64] = field(init=False)

    def __post_init__(self) -> None:
        codes, n_rows = self.codes, self.codes.size
        sizes = np.bincount(codes, minlength=len(self)).astype(np.int64, copy=False)
        is_grouped = bool(np.all(codes[1:] >= codes[:-1]))
        self.__dict__.update(
            n_rows=n_rows,
            sizes=sizes,
            offsets=np.concatenate(([0], np.cumsum(sizes))).astype(np.int64, copy=False),
            is_grouped=is_grouped,
            order=np.arange(n_rows, dtype=np.int64) if is_grouped else np.argsort(codes, kind="stable"),
        )

    def __len__(self) -> int:
        return int(self.ids.shape[0])

    def __array__(self, dtype: npt.DTypeLike | None = None, copy: bool | None = None) -> AnyArray:
        """Return the caller's id of each row."""
        return np.asarray(self.ids[self.codes], dtype=dtype)

    def group(self, values: AnyArray) -> AnyArray:
        """Return one value per row in grouped order; the same array if the rows are already in this order."""
        return values if self.is_grouped else values[self.order]

    def subset(self, rows: npt.NDArray[np.int64]) -> Queries:
        """Return the queries of some rows, in the order of those rows."""
        codes = self.codes[rows]
        is_there = np.bincount(codes, minlength=len(self)) > 0
        return Queries((np.cumsum(is_there) - 1)[codes], self.ids[is_there])


def one_query(n_rows: int) -> Queries:
    """All rows in one global ranking."""
    return Queries(np.zeros(n_rows, dtype=np.int64), np.zeros(1, dtype=np.int64))


def encode_queries(qid: AnyArray) -> Queries:
    """Encode a one-dimensional array of ids that has no missing entries."""
    if qid.dtype.kind in "iuf" and qid.size and bool(np.all(qid[1:] >= qid[:-1])):
        # Files come sorted by query: then no sort is needed.
        starts = np.ones(qid.size, dtype=np.bool_)
        np.not_equal(qid[1:], qid[:-1], out=starts[1:])
        return Queries(np.cumsum(starts, dtype=np.int64) - 1, qid[starts])
    if qid.dtype != object:
        ids, codes = np.unique(qid, return_inverse=True)
        return Queries(codes.astype(np.int64, copy=False), ids)
    # Objects of mixed types cannot always be sorted: hash them, then sort if they allow it.
    position: dict[Any, int] = {}
    codes = np.fromiter((position.setdefault(key, len(position)) for key in qid), np.int64, count=qid.size)
    ids = np.empty(len(position), dtype=object)
    ids[:] = list(position)
    try:
        by_value = sorted(range(len(position)), key=ids.__getitem__)
    except TypeError:
        return Queries(codes, ids)
    rank = np.empty(len(position), dtype=np.int64)
    rank[by_value] = np.arange(len(position))
    return Queries(rank[codes], ids[by_value])


def ranks_inside(scores: AnyArray, codes: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return ranks inside queries: 1 is best, tied rows share the smallest."""
    order = np.lexsort((-scores, codes))
    new_query = np.concatenate(([True], codes[order][1:] != codes[order][:-1]))
    new_score = new_query | np.concatenate(([True], scores[order][1:] != scores[order][:-1]))
    position = np.arange(order.size)
    start = np.maximum.accumulate(np.where(new_query, position, 0))
    first = np.maximum.accumulate(np.where(new_score, position, 0))
    ranks = np.empty(order.size, dtype=np.int64)
    ranks[order] = first - start + 1
    return ranks
