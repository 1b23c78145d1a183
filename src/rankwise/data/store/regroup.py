"""Rows of scattered queries brought together on disk.

A distribution sort in two passes. Queries are assigned to buckets, in the order in which they first appear, so that a
bucket fits in a block. One pass over the rows appends each to its bucket; then bucket after bucket is read, sorted
and handed on. Every file is read and written from front to back.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from rankwise.data.store.mapped import gather_rows
from rankwise.data.store.reading import Store
from rankwise.data.store.sources import Rows
from rankwise.data.text.query_ids import encode_any_ids

__all__ = ["Regrouping"]


class Regrouping:
    """The rows of a store whose queries may be scattered, queries together.

    Parameters
    ----------
    store : Store
        A query that comes several times is listed several times in it.
    folder : path
        For the buckets.
    """

    def __init__(self, store: Store, folder: Path) -> None:
        self._store = store
        self._folder = folder

    def blocks(self, block_bytes: int) -> Iterator[Rows]:
        """Yield the rows in blocks of about so many bytes."""
        store = self._store
        if store.query_ids is None:
            yield from self._in_order(block_bytes)
            return
        ids, first, run_query = np.unique(store.query_ids, return_index=True, return_inverse=True)
        # queries are numbered in the order in which they first appear
        number = np.empty(ids.size, dtype=np.int64)
        number[np.argsort(first)] = np.arange(ids.size)
        query = np.repeat(number[run_query], np.diff(store.query_start))
        lengths = np.diff(store.X.indptr)
        entry_bytes = store.X.data.itemsize + 4
        size = np.bincount(query, weights=lengths * entry_bytes + 24.0)
        bucket = (np.cumsum(size) - size).astype(np.int64) // block_bytes
        self._folder.mkdir()
        self._deal(query, bucket, block_bytes)
        texts, kind = encode_any_ids(ids[np.argsort(number)], np.arange(ids.size))
        for which in np.unique(bucket):
            yield self._sorted_bucket(int(which), texts, kind)

    def _in_order(self, block_bytes: int) -> Iterator[Rows]:
        first = 0
        for X, y, _ in self._store.blocks(block_bytes):
            empty = np.empty(0, dtype=np.int64)
            texts = self._store.item_texts(first, first + y.size)
            yield Rows(X.data, X.indices, X.indptr.astype(np.int64), y, empty, None, None, texts)
            first += y.size

    def _deal(self, query: npt.NDArray[np.int64], bucket: npt.NDArray[np.int64], block_bytes: int) -> None:
        first = 0
        for X, y, _ in self._store.blocks(block_bytes):
            codes = query[first : first + y.size]
            where = bucket[codes]
            arrays = (X.data, X.indices, X.indptr)
            for which in np.unique(where):
                rows = np.flatnonzero(where == which)
                values, columns, start = gather_rows(arrays, rows)
                for name, part in zip(
                    _PARTS,
                    (values, columns, np.diff(start), y[rows], codes[rows], rows + first),
                    strict=True,
                ):
                    with self._path(int(which), name).open("ab") as file:
                        part.tofile(file)
            first += y.size

    def _sorted_bucket(self, which: int, texts: list[bytes], kind: str) -> Rows:
        types: tuple[Any, ...] = (self._store.X.dtype, np.int32, np.int64, np.float64, np.int64, np.int64)
        values, columns, lengths, labels, codes, rows = (
            np.fromfile(self._path(which, name), dtype=kind_of)
            for name, kind_of in zip(_PARTS, types, strict=True)
        )
        for name in _PARTS:
            self._path(which, name).unlink()
        order = np.argsort(codes, kind="stable")
        start = np.concatenate(([0], np.cumsum(lengths)))
        values, columns, start = gather_rows((values, columns, start), order)
        codes = codes[order]
        run_start = np.concatenate(([0], np.flatnonzero(np.diff(codes)) + 1)).astype(np.int64, copy=False)
        run_texts = [texts[code] for code in codes[run_start]]
        return Rows(
            values, columns, start, labels[order], run_start, run_texts, kind, self._items_of(rows[order])
        )

    def _items_of(self, rows: npt.NDArray[np.int64]) -> list[bytes] | None:
        if not self._store.header.has_items:
            return None
        return [text for row in rows.tolist() for text in self._store.item_texts(row, row + 1) or ()]

    def _path(self, which: int, name: str) -> Path:
        return self._folder / f"{which}.{name}"


_PARTS = ("values", "columns", "lengths", "labels", "queries", "rows")
