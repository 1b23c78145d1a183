"""Sparse rows whose column numbers take two bytes: a quarter less memory and bandwidth than four."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from rankwise.arrays import AnyArray, Ints
from rankwise.data.store.mapped import gather_rows
from rankwise.design import CsrDesign
from rankwise.design.csr import Prepared

__all__ = ["NarrowDesign", "by_frequency", "narrow_type"]

_STEP = 1 << 22  # ids that are renamed at a time


def narrow_type(n_columns: int) -> type[np.uint16 | np.int32]:
    """Return the type that column numbers are kept in."""
    return np.uint16 if n_columns <= 1 << 16 else np.int32


def by_frequency(ids: AnyArray, n_columns: int) -> Ints:
    """Give frequent columns small numbers, in place, so that their coefficients lie side by side in cache.

    Returns the old number of each new one.
    """
    pieces = [slice(first, first + _STEP) for first in range(0, ids.size, _STEP)]
    count = np.zeros(n_columns, dtype=np.int64)
    for piece in pieces:
        count += np.bincount(ids[piece], minlength=n_columns)
    names = np.argsort(-count, kind="stable")
    rank = np.empty(n_columns, dtype=ids.dtype)
    rank[names] = np.arange(n_columns, dtype=ids.dtype)
    for piece in pieces:
        ids[piece] = rank[ids[piece]]
    return names


class NarrowDesign(CsrDesign):
    """A design of rows by columns of two bytes each.

    Products take them as they are. What is done once per fit takes four bytes each, which are made for it and dropped.
    """

    keeps_names = True

    def __init__(
        self, values: AnyArray, ids: AnyArray, start: AnyArray, n_columns: int, n_threads: int
    ) -> None:
        empty = sp.csr_matrix((start.size - 1, n_columns), dtype=values.dtype)
        super().__init__(empty, n_threads)
        self.nnz, self.prepared = int(start[-1]), (values, ids, start, None)

    @property
    def arrays(self) -> tuple[AnyArray, AnyArray, AnyArray]:
        """Values, column numbers of four bytes, and where rows start."""
        values, ids, start, _ = self.prepared
        return values, ids.astype(np.int32, copy=False), start

    @arrays.setter
    def arrays(self, given: tuple[AnyArray, AnyArray, AnyArray]) -> None:
        self.prepared: Prepared = (*given, None)

    def row_lengths(self) -> AnyArray:
        """Return the number of stored values of each row."""
        return np.diff(self.prepared[2])

    def _take(self, rows: npt.NDArray[np.int64]) -> sp.csr_matrix:
        values, ids, pointers = gather_rows(self.prepared[:3], rows)
        return sp.csr_matrix((values, ids.astype(np.int32), pointers), shape=(rows.size, self.shape[1]))
