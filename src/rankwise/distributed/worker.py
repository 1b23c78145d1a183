"""The actor on a worker: it holds a share of the rows and computes its part of every product and loss.

Everything here runs on workers. An actor is created empty and filled by ordinary tasks, so that its rows come from the
caller's own graph. It can be created again from the same graph at any time: all state of a solver is at the client,
and every call carries the coefficients that it needs.
"""

from __future__ import annotations

import threading
from collections import deque
from dataclasses import replace
from typing import Any, NamedTuple
from weakref import WeakValueDictionary

import numpy as np
import scipy.sparse as sp

from rankwise.arrays import AnyArray, DType, Floats, InMemory, Ints, is_sparse
from rankwise.design import Design, GramProduct, Shift, as_design, shifted_design
from rankwise.distributed.blocks import rows_of
from rankwise.pairs.blocks import Folds, QueryBlocks, laplacian
from rankwise.pairs.graph import SmoothedHinge, ViolatedPairs
from rankwise.pairs.violations import ViolationSweep
from rankwise.runtime.threads import blas_held

_HELD: WeakValueDictionary[str, WorkerRows] = WeakValueDictionary()
_POINTS = 2  # evaluated points that are kept for each set of pairs: a line search returns to the one before


class _Product(NamedTuple):
    blocks: QueryBlocks
    folds: Folds | None
    scored: Ints | None
    fused: GramProduct | None


class _Pairs(NamedTuple):
    pairs: ViolationSweep
    points: deque[tuple[Floats, ViolatedPairs]]


class WorkerRows:
    """The rows of one share.

    Parameters
    ----------
    name : str
        Under which `fill` finds the actor.
    n_threads : int
    """

    def __init__(self, name: str, n_threads: int) -> None:
        _HELD[name] = self
        self.name, self.n_threads = name, n_threads
        self._kept: dict[str, Any] = {}
        self._came: dict[int, int] = {}
        self._lock = threading.Lock()

    def call(self, method: str, *args: object) -> tuple[bool, Any]:
        """Run a method of this object, or else of the design; return whether it succeeded, and its result or exception.

        Exceptions are values here, so that an exception of the call itself always means a lost worker.
        """
        try:
            with self._lock, blas_held():
                return True, getattr(self if hasattr(self, method) else self.design, method)(*args)
        except Exception as error:  # noqa: BLE001 - raised at the client
            return False, error

    # --- loading ---

    def allocate(self, shape: tuple[int, int], dtype: DType, lengths: AnyArray | None) -> None:
        """Allocate the rows; `lengths` are the non-zeros of sparse rows."""
        self.shape = shape
        self._arrays: tuple[AnyArray, ...] = (np.empty(0 if lengths is not None else shape, dtype),)
        if lengths is not None:
            start = np.concatenate(([0], np.cumsum(lengths, dtype=np.int64))).astype(np.int32)
            self._arrays = np.empty(start[-1], dtype), np.empty(start[-1], np.int32), start

    def take_rows(self, first: int, rows: InMemory, first_column: int) -> int:
        """Copy rows to their position; a repeated copy changes nothing."""
        n_rows = int(rows.shape[0])
        self._came[first] = n_rows
        if not is_sparse(rows):
            self._arrays[0][first : first + n_rows] = rows
            return n_rows
        values, ids, start = self._arrays
        if not np.array_equal(start[first : first + n_rows + 1] - start[first], rows.indptr):
            raise ValueError("the rows have other lengths than in the first look at them")
        own = slice(start[first], start[first + n_rows])
        values[own] = rows.data
        np.subtract(rows.indices, first_column, out=ids[own])
        return n_rows

    def finish(self) -> None:
        """Make the design, once all rows are here."""
        n_rows = sum(self._came.values())
        if n_rows != self.shape[0]:
            raise ValueError(f"{n_rows} of {self.shape[0]} rows came")
        matrix = self._arrays[0] if len(self._arrays) == 1 else sp.csr_matrix(self._arrays, shape=self.shape)
        self.design: Design = as_design(matrix, self.n_threads)
        self._arrays = ()

    def shift(self, columns: Ints, values: Floats) -> None:
        """Subtract constants from columns."""
        self.design = shifted_design(self.design, Shift(columns, values))

    def drop(self, name: str) -> None:
        """Forget a product, pairs or rows."""
        self._kept.pop(name, None)

    # --- products ---

    def keep_rows(self, name: str, rows: Ints) -> None:
        """Keep a list of rows for `dot`."""
        self._kept[name] = rows

    def dot(self, v: Floats, rows: str | None = None) -> Floats:
        """Return ``X v`` for all rows, or for a list of rows that was kept."""
        scores = self.design.dot(v)
        return scores if rows is None else np.ascontiguousarray(scores[self._kept[rows]])

    def gathered(self, rows: Ints) -> InMemory:
        """Return some rows as an array or a SciPy matrix."""
        return self.design.gathered(rows).matrix()

    def squared_differences(self, one: Ints, other: Ints, weight: Floats) -> Floats:
        """Return ``Σ weight_k (x_one[k] - x_other[k])²``, column by column."""
        found = self.design.squared_differences(one, other, weight)
        assert found is not None
        return found

    def keep_product(
        self, name: str, blocks: QueryBlocks, folds: Folds | None, scored: Ints | None, is_cut: bool
    ) -> Floats | None:
        """Prepare ``X' L X V``; for a part of one ranking return ``X' w``, per fold, and leave the means out."""
        sums = self._weighted_sums(blocks, folds) if is_cut else None
        if is_cut:
            blocks = replace(blocks, scale=np.zeros_like(blocks.scale))
            folds = None if folds is None else replace(folds, scale=np.zeros_like(folds.scale))
        fused = self.design.gram_product(blocks, folds) if blocks.order.size else None
        self._kept[name] = _Product(blocks, folds, scored, fused)
        return sums

    def _weighted_sums(self, blocks: QueryBlocks, folds: Folds | None) -> Floats:
        weight = np.zeros((self.shape[0], 1))
        weight[blocks.order, 0] = 1.0 if blocks.row_weight is None else blocks.row_weight
        if folds is not None:
            weight = weight * (folds.fold[:, None] != np.arange(folds.degree.shape[1]))
        return self.design.tdot(weight)

    def product(self, name: str, v: Floats) -> tuple[Floats, Floats | None]:
        """Return ``X' L X V`` of this share, and the held-out scores of its scored rows."""
        own: _Product = self._kept[name]
        held_out = None if own.folds is None else np.zeros(self.shape[0])
        if own.fused is not None:
            image = own.fused(v) if held_out is None else own.fused(v, held_out)
        else:
            scores = self.design.dot(v)
            pull = laplacian(own.blocks, scores, n_threads=self.n_threads, folds=own.folds, held_out=held_out)
            image = self.design.tdot(pull)
        return image, held_out if held_out is None or own.scored is None else held_out[own.scored]

    def gram(self, blocks: QueryBlocks, is_cut: bool, is_diagonal: bool) -> tuple[Floats, Floats, float]:
        """Return ``X' L X`` or its diagonal; for a part of one ranking around its own mean, with sum and weight."""
        n = self.shape[1]
        if blocks.order.size == 0:
            return np.zeros(n if is_diagonal else (n, n)), np.zeros(n), 0.0
        weight, sums = 0.0, np.zeros(n)
        if is_cut:
            sums = self._weighted_sums(blocks, None)[:, 0]
            weight = float(blocks.order.size if blocks.row_weight is None else blocks.row_weight.sum())
            blocks = replace(blocks, scale=blocks.degree / weight if weight > 0 else np.zeros(1))
        found = (self.design.gram_diagonal if is_diagonal else self.design.gram_matrix)(blocks)
        assert found is not None
        return found, sums, weight

    # --- losses with margins ---

    def keep_pairs(self, name: str, pairs: ViolationSweep) -> None:
        """Keep the pairs of the queries of this share."""
        pairs.n_threads = self.n_threads
        self._kept[name] = _Pairs(pairs, deque(maxlen=_POINTS))

    def evaluated(self, name: str, coef: Floats, of: str, *args: object) -> Floats:
        """Return an attribute of the violated pairs: numbers, and at the end ``X'`` times a value per row."""
        found = getattr(self._point(name, coef), of)
        found = found(*args) if callable(found) else found
        if isinstance(found, SmoothedHinge):
            found = found.value, found.active, found.gradient
        parts = found if isinstance(found, tuple) else (found,)
        return np.concatenate([self.design.tdot(one) if np.ndim(one) else np.array([one]) for one in parts])

    def hessian(self, name: str, coef: Floats, v: Floats) -> Floats:
        """Return ``X' L X v`` over the violated pairs."""
        return self.design.tdot(self._point(name, coef).laplacian(self.design.dot(v)))

    def degrees(self, name: str, coef: Floats, width: float | None) -> Floats:
        """Return the weight of each row's violated pairs."""
        return self._point(name, coef).degrees(width)

    def _point(self, name: str, coef: Floats) -> ViolatedPairs:
        own: _Pairs = self._kept[name]
        for known, point in own.points:
            if np.array_equal(known, coef):
                return point
        point = own.pairs.at(self.design.dot(coef))
        own.points.append((coef, point))
        return point


def fill(name: str, first: int, block: object, chosen: slice | Ints, first_column: int) -> int:
    """Copy some rows of a block into an actor on this worker."""
    holder = _HELD.get(name)
    if holder is None:
        raise LookupError(f"{name} is not on this worker")
    return holder.take_rows(first, rows_of(block)[chosen], first_column)
