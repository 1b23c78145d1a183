"""What a worker holds: an actor with some of the rows, multiplied by the compiled kernels where they are.

Everything here runs on workers. An actor is made empty, is told how large its rows are, is filled block by block by
ordinary tasks (so that its rows come from wherever the caller's graph makes them, without a second copy of all of them
in memory), and then multiplies. It can be made again from the same graph at any time: it holds nothing that its client
could not tell it again.
"""

from __future__ import annotations

import threading
import time
from typing import Any, cast
from weakref import WeakValueDictionary

import numpy as np
import scipy.sparse as sp

from rankwise.arrays import AnyArray, DType, Floats, InMemory, Ints, is_sparse
from rankwise.design import DenseDesign, Design, Shift, shifted_design
from rankwise.distributed.connections import listen
from rankwise.distributed.local_products import Block, LocalProduct
from rankwise.distributed.local_vectors import LocalVectors, Pairs, Step, Want
from rankwise.distributed.narrow import NarrowDesign, by_frequency, narrow_type
from rankwise.pairs.blocks import as_table
from rankwise.runtime.threads import blas_held

__all__ = ["Answer", "WorkerRows", "fill", "rows_of", "uniform"]

_HELD: WeakValueDictionary[str, WorkerRows] = WeakValueDictionary()

# How a call ended: "done", "unknown" where the actor was never told about what it is asked for, or "failed".
Answer = tuple[str, Any, float]


class WorkerRows:
    """The rows of one share.

    Parameters
    ----------
    name : str
        By which `fill` finds it.
    n_threads : int
    """

    def __init__(self, name: str, n_threads: int) -> None:
        _HELD[name] = self
        self.name, self.n_threads = name, n_threads
        self._kept: dict[str, Any] = {}
        self._names: Ints | None = None
        self._design: Design | None = None
        self._came: dict[int, int] = {}
        self._values: AnyArray | None = None
        self._lock = threading.Lock()

    def call(self, method: str, *args: object) -> Answer:
        """Do what the client asks; what goes wrong is part of the answer, so that only lost workers raise."""
        began = time.perf_counter()
        try:
            with self._lock, blas_held():
                found = getattr(self, method)(*args)
        except KeyError as error:
            return "unknown", error, 0.0
        except Exception as error:  # noqa: BLE001 - it is raised at the client
            return "failed", error, 0.0
        return "done", found, time.perf_counter() - began

    def listen(self, host: str, secret: bytes) -> int:
        """Take calls over a connection from now on; return the port."""
        return listen(self, host, secret)

    # --- rows come ---

    def allocate(self, shape: tuple[int, int], dtype: DType, lengths: AnyArray | None) -> None:
        """Make room for so many rows; `lengths` are the non-zeros of sparse ones."""
        self.shape = shape
        if lengths is None:
            self._arrays: tuple[AnyArray, ...] = (np.empty(shape, dtype),)
            return
        start = np.concatenate(([0], np.cumsum(lengths, dtype=np.int64))).astype(np.int32)
        self._arrays = np.empty(start[-1], dtype), np.empty(start[-1], narrow_type(shape[1])), start

    def take_rows(self, first: int, rows: InMemory, first_column: int) -> int:
        """Copy rows to where they belong; doing it twice changes nothing."""
        n_rows = int(rows.shape[0])
        self._came[first] = n_rows
        if not is_sparse(rows):
            self._arrays[0][first : first + n_rows] = rows
            return n_rows
        values, ids, start = self._arrays
        own = slice(start[first], start[first + n_rows])
        if not np.array_equal(start[first : first + n_rows + 1] - start[first], rows.indptr):
            raise ValueError("the rows have other lengths than when they were first looked at")
        values[own] = rows.data
        np.subtract(rows.indices, first_column, out=ids[own], casting="unsafe")
        return n_rows

    def finish(self) -> None:
        """Take the rows for complete."""
        n_rows = sum(self._came.values())
        if n_rows != self.shape[0]:
            raise ValueError(f"{n_rows} of {self.shape[0]} rows came")
        if len(self._arrays) == 1:
            self._design, self._values = DenseDesign(self._arrays[0], self.n_threads), self._arrays[0]
        else:
            values, ids, start = self._arrays
            self._names = by_frequency(ids, self.shape[1])
            self._design = NarrowDesign(values, ids, start, self.shape[1], self.n_threads)
        self._arrays = ()

    @property
    def design(self) -> Design:
        """The rows, once they are complete."""
        if self._design is None:
            raise KeyError(self.name)
        return self._design

    def shift(self, columns: Ints, values: Floats) -> None:
        """Subtract constants from columns."""
        if self._names is not None:
            rank = np.empty_like(self._names)
            rank[self._names] = np.arange(self._names.size)
            order = np.argsort(rank[columns])
            columns, values = rank[columns][order], values[order]
        if self._values is not None and self._values.dtype == np.float64:
            self._values[:, columns] -= values  # nobody else has this array
        else:
            self._design = shifted_design(self.design, Shift(columns, values))

    # --- products, in the client's names of columns ---

    def dot(self, v: Floats, rows: str | None = None) -> Floats:
        """Return ``X v``, of all rows or of those kept under a name."""
        kept = None if rows is None else self._kept[rows]
        scores = self.design.dot(self.named(v))
        return scores if kept is None else np.ascontiguousarray(scores[kept])

    def tdot(self, u: Floats) -> Floats:
        """Return ``X' u``."""
        return self.unnamed(self.design.tdot(u))

    def gram_matrix(self, *block: *Block) -> tuple[Floats, ...]:
        """Return ``X' L X`` of its queries, or its part of that of one ranking."""
        found = self._local(block).matrix()
        return self._square(found[0]), *(self.unnamed(part) for part in found[1:])

    def gram_diagonal(self, *block: *Block) -> tuple[Floats, ...]:
        """Return the diagonal of the same."""
        return tuple(self.unnamed(part) for part in self._local(block).diagonal())

    def _local(self, block: Block) -> LocalProduct:
        local = LocalProduct(self.design, *block)
        local.centre = None if local.centre is None else self.named(local.centre)
        return local

    def squared_differences(self, one: Ints, other: Ints, weight: Floats) -> Floats:
        """Return ``Σ weight_k (x_one[k] - x_other[k])²``, column by column."""
        found = self.design.squared_differences(one, other, weight)
        assert found is not None
        return self.unnamed(found)

    def gathered(self, rows: Ints) -> InMemory:
        """Return some rows as an array or a SciPy matrix."""
        found = self.design.gathered(rows).matrix()
        if self._names is None or not is_sparse(found):
            return found
        renamed = sp.csr_matrix(found, copy=True)
        renamed.indices = self._names[renamed.indices].astype(np.int32)
        renamed.has_sorted_indices = False
        renamed.sort_indices()
        return cast("InMemory", renamed)

    def expect_products(self) -> None:
        """Prepare for many of `dot` and `tdot`, where that takes little memory."""
        self.design.expect_products()

    def keep(self, name: str, what: Ints) -> None:
        """Remember what later calls refer to."""
        self._kept[name] = what

    def drop(self, name: str) -> None:
        """Forget it."""
        self._kept.pop(name, None)

    def keep_product(self, name: str, *block: *Block) -> Floats | None:
        """Prepare a fused product; see `LocalProduct`."""
        product = LocalProduct(self.design, *block)
        product.prepare()
        self._kept[name] = product
        return self.unnamed(product.weighted_sums()) if product.is_cut else None

    def product(self, name: str, v: Floats) -> tuple[Floats, Floats | None]:
        """Return ``X' L X V`` of this part, and the held-out scores of the rows that score."""
        image, held_out = self._kept[name](self.named(v))
        return self.unnamed(image), held_out

    def level_sums(self, name: str, v: Floats) -> tuple[Floats, Floats]:
        """Return the sums of scores of levels that others have rows of, and of all; the scores wait here."""
        sums: tuple[Floats, Floats] = self._kept[name].level_sums(self.named(v))
        return sums

    def pull_levels(self, name: str, shared: Floats, total: Floats) -> tuple[Floats, Floats | None]:
        """Return ``X' L X V`` of this part, from the sums over all parts."""
        image, held_out = self._kept[name].pull_levels(shared, total)
        return self.unnamed(image), held_out

    # --- losses of margins ---

    def keep_pairs(self, name: str, pairs: Pairs) -> None:
        """Prepare to count pairs inside queries that are whole here."""
        pairs.n_threads = self.n_threads
        self._kept[name] = LocalVectors(self, pairs)

    def exchange(self, name: str, dropped: list[str], steps: list[Step], wanted: list[Want]) -> list[Floats]:
        """Make vectors and return numbers; see `LocalVectors`."""
        found: list[Floats] = self._kept[name].exchange(dropped, steps, wanted)
        return found

    def degrees(self, name: str, point: str, width: float | None) -> Floats:
        """Return for each row the weight of its violated pairs."""
        found: Floats = self._kept[name].degrees(point, width)
        return found

    def named(self, v: Floats) -> Floats:
        """Return a vector in the worker's order of columns."""
        return v if self._names is None else v[self._names]

    def unnamed(self, v: Floats) -> Floats:
        """Return a vector in the client's order of columns."""
        if self._names is None or v.shape[:1] != self._names.shape:
            return v
        out = np.empty_like(v)
        out[self._names] = v
        return out

    def _square(self, matrix: Floats) -> Floats:
        if self._names is None:
            return matrix
        out = np.empty_like(matrix)
        out[np.ix_(self._names, self._names)] = matrix
        return out


def fill(name: str, first: int, block: object, chosen: slice | Ints, first_column: int) -> int:
    """Copy some rows of a block into the actor of that name, which is on this worker."""
    holder = _HELD.get(name)
    if holder is None:
        raise LookupError(f"{name} is not on this worker")
    return holder.take_rows(first, rows_of(block)[chosen], first_column)


def uniform(block: object, first_column: int, n_columns: int) -> InMemory:
    """Return the rows of a block with the columns that all blocks have together, counted from 0."""
    rows = rows_of(block)
    if not is_sparse(rows) or (first_column == 0 and rows.shape[1] == n_columns):
        return rows
    parts = rows.data, rows.indices - np.int32(first_column), rows.indptr
    return cast("InMemory", sp.csr_matrix(parts, shape=(rows.shape[0], n_columns)))


def rows_of(block: object) -> InMemory:
    """Return a block of a Dask collection as an array or a CSR matrix."""
    if hasattr(block, "rows_and_labels"):  # what `rankwise.distributed.read` reads
        return cast("InMemory", block.X)  # type: ignore[attr-defined]
    if is_sparse(block):
        return block.tocsr()
    if hasattr(block, "to_numpy"):
        block = block.to_numpy()
    values = np.asarray(block)
    return as_table(values) if values.ndim == 1 else values
