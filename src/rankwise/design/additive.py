"""The matrix of an additive model as codes: four bytes for each column of a row, never expanded.

The matrix is ``E T``: E the weights that rows give to the values of the terms (`rankwise.design.terms`), T an optional
change of coordinates, which only ever meets vectors of values. A code holds the interval that a number lies in and its
position there, rounded to the nearest of at least 2²⁴ steps for up to 255 knots (2²⁸ for eight): rounding
changes the value of a curve by less than 2⁻²⁵ of the difference between two neighbouring values, as much as if X were
stored in float32. Predictions use the original numbers, in double precision (`rankwise.design.terms`).

X' L X of curves from their codes: sums over pairs of cells, where dense rows would be expanded and multiplied.

With d the weight of each row's pairs, s the sum of a query's rows and S that of each of its levels,

    X' L X = sum of d x x'  -  sum over queries of scale s s'  (+ the sum over levels of scale S S', for "others"),

see `rankwise.pairs.blocks`. Rows need not be centred first, as in `rankwise.design.gram`: their entries lie between
0 and 1.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.linalg.blas import dsyrk

from rankwise import _core
from rankwise.arrays import Floats, InMemory, Ints, Matrix, is_sparse
from rankwise.design import fused, gram
from rankwise.design.cells import Cells
from rankwise.design.protocol import Design, GramProduct, RowIndex
from rankwise.design.terms import (
    MANY_CODES,
    Coordinates,
    Terms,
    csr_arrays,
    float_array,
    places_among_terms,
    predict,
)
from rankwise.pairs.blocks import Folds, QueryBlocks, as_table
from rankwise.runtime.memory import fits
from rankwise.runtime.threads import large_algebra

__all__ = ["AdditiveDesign", "predict"]

# Rows whose codes lie together, column by column. The scores of a chunk and the table of a column then stay in the
# nearest cache.
CHUNK_ROWS = 512
# Codes that a fused product works on at once: they stay in a core's cache between reading and writing.
CHUNK_WORK = 1 << 16
# Sums are kept in parts of so many codes, at most so many: the shape alone decides, for their bits depend on it.
PART_WORK = 1 << 21
MOST_PARTS = 64
# Values in a block of rows that is expanded.
BLOCK_SIZE = 1 << 17
# Rows that are encoded at once: of a matrix on disk so many are brought to memory.
ENCODED_ROWS = 1 << 16
# Nanoseconds: of a pair of columns of a row from codes, and of an entry of the matrix for each dense row.
_PAIR, _ENTRY = 1.2, 0.035
# Of a code in a product, and of a product of no rows.
_CODE, _CALL = 0.75, 2e4
_SUMS = 1 << 20  # numbers in the sums of some queries
# Instructions of the processor: "plain", "avx2" or "avx512".
INSTRUCTIONS = _core.widest_instructions()


class AdditiveDesign(Design):
    """Rows of an additive model as a design; made by `encode`.

    Parameters
    ----------
    cells : Cells
    codes : (chunks, coded columns, CHUNK_ROWS) uint32
    first, n_rows : int
        Which of the coded rows these are.
    coordinates : Coordinates or None
    """

    has_rows = True
    is_dense = False
    is_encoded = True
    dtype: np.dtype[Any] = np.dtype(np.float64)

    def __init__(
        self,
        cells: Cells,
        codes: npt.NDArray[np.uint32],
        first: int,
        n_rows: int,
        coordinates: Coordinates | None = None,
        n_threads: int = 1,
    ) -> None:
        self.cells, self.codes, self.first = cells, codes, first
        self.coordinates, self.n_threads = coordinates, n_threads
        n_columns = cells.terms.n_values if coordinates is None else coordinates.n_coordinates
        self.shape: tuple[int, int] = (n_rows, n_columns)
        self.reads = 0
        self.row_work = len(cells.columns) + 4 * len(cells.terms.surfaces)
        self.nnz = n_rows * (2 * len(cells.terms.curves) + 4 * len(cells.terms.surfaces))
        self.compiled = cells.compiled(codes, first, n_rows, INSTRUCTIONS)
        self.n_parts = int(min(max(n_rows * self.row_work // PART_WORK, 1), MOST_PARTS))

    @classmethod
    def encode(
        cls,
        X: Matrix,
        terms: Terms,
        coordinates: Coordinates | None = None,
        n_threads: int = 1,
        cells: Cells | None = None,
    ) -> AdditiveDesign:
        """Return the design of the rows of an array or a sparse matrix, in memory or mapped from a store.

        Rows are read in order, a block at a time. Absent entries of a sparse matrix are zeros. Callers that
        encode the rows in parts pass the `cells` of the terms, which are then computed once.
        """
        rows: InMemory = X.tocsr() if is_sparse(X) else np.asarray(X)
        cells = cells or Cells(terms)
        n_rows = int(rows.shape[0])
        codes = _room(n_rows, len(cells.columns))
        columns, shift = cells.compiled_columns()
        threads = n_threads if n_rows * len(cells.columns) >= MANY_CODES else 1
        for first in range(0, n_rows, ENCODED_ROWS):
            last = min(first + ENCODED_ROWS, n_rows)
            if is_sparse(rows):
                arrays = csr_arrays(rows, first, last)
                place = places_among_terms(terms, rows.shape[1])
                _core.additive_encode_csr(*arrays, place, columns, shift, codes, first, threads)
            else:
                _core.additive_encode(float_array(rows[first:last]), columns, shift, codes, first, threads)
        return cls(cells, codes, 0, n_rows, coordinates, n_threads)

    @property
    def terms(self) -> Terms:
        """The terms whose values are the coefficients."""
        return self.cells.terms

    @property
    def nbytes(self) -> int:
        """The bytes of the codes."""
        return int(self.codes.nbytes)

    @property
    def work(self) -> tuple[float, float]:
        """Approximate nanoseconds of a product ``X'LXv`` and of ``X'LX``: codes cost other times than non-zeros."""
        from_codes, from_rows = _gram_work(self, 0)
        is_coded = from_codes < from_rows and not self.terms.surfaces and _has_room(self)
        return self.shape[0] * self.row_work * _CODE + _CALL, from_codes if is_coded else from_rows

    def dot(self, v: Floats) -> Floats:
        """Return ``X v``."""
        self.reads += 1
        table = self.table_of(v)
        out = np.empty((self.shape[0], table.shape[1]))
        _core.additive_dot(self.compiled, table, out, self.n_parts, self.threads_used())
        return out.reshape(self.shape[0], *v.shape[1:])

    def tdot(self, u: Floats) -> Floats:
        """Return ``X' u``."""
        self.reads += 1
        table = as_table(u)
        out = np.empty((self.cells.n_entries, table.shape[1]))
        _core.additive_transposed_dot(self.compiled, table, out, self.n_parts, self.threads_used())
        return self.coefficients_of(out, u.shape[1:])

    def gram_product(self, blocks: QueryBlocks, folds: Folds | None = None) -> GramProduct | None:
        """Return the fused product; None where a query's rows are scattered over the matrix, or one is too large."""
        blocks, folds = fused.in_row_order(blocks, folds)
        lengths = np.full(blocks.order.size, self.row_work, dtype=np.int64)
        chunks = fused.cut(blocks, lengths, self.cells.n_entries, self.threads_used(), CHUNK_WORK)
        if chunks is None or fused.is_scattered(blocks.order, chunks.start):
            return None
        return AdditiveProduct(self, blocks, folds, chunks)

    def gram_matrix(self, blocks: QueryBlocks) -> Floats:
        """Return ``X' L X``, (n, n)."""
        self.reads += 1
        G = coded_gram(self, blocks)
        if G is None:
            G = gram.gram_matrix(self._centred(blocks, self._expanded, self.terms.n_values))
        if self.coordinates is None:
            return G
        half = np.ascontiguousarray(self.coordinates.from_values(G).T)
        G = np.asarray(self.coordinates.from_values(half))
        return (G + G.T) / 2

    def gram_diagonal(self, blocks: QueryBlocks) -> Floats:
        """Return ``diag(X' L X)``."""
        self.reads += 1
        return gram.gram_diagonal(self._centred(blocks, self._rows, self.shape[1]))

    def squared_differences(
        self, one: npt.NDArray[np.int64], other: npt.NDArray[np.int64], weight: Floats
    ) -> Floats:
        """Return ``Σ weight_k (x_one[k] - x_other[k])²``, column by column."""
        self.reads += 1
        out = np.zeros(self.shape[1])
        for pairs in self._row_blocks(one.size):
            out += weight[pairs] @ np.square(self._rows(one[pairs]) - self._rows(other[pairs]))
        return out

    def rows(self, index: RowIndex) -> AdditiveDesign:
        """Return the design of a subset of rows; a slice copies nothing."""
        if isinstance(index, slice) and index.step in {None, 1}:
            first, last, _ = index.indices(self.shape[0])
            return self._like(self.codes, self.first + first, max(last - first, 0))
        return self.gathered(np.arange(self.shape[0])[index])

    def gathered(self, rows: npt.NDArray[np.int64]) -> AdditiveDesign:
        """Return the design of some rows, copied."""
        codes = _room(rows.size, self.codes.shape[1])
        old, new = self.codes.shape[2], codes.shape[2]
        for chunk in range(codes.shape[0]):
            own = rows[chunk * new : (chunk + 1) * new] + self.first
            codes[chunk, :, : own.size] = self.codes[own // old, :, own % old].T
        return self._like(codes, 0, rows.size)

    def matrix(self) -> Floats:
        """Return the expanded matrix, an array."""
        return self._rows(np.arange(self.shape[0]))

    def within(self, coordinates: Coordinates | None) -> AdditiveDesign:
        """Return the same codes with other coefficients."""
        return AdditiveDesign(self.cells, self.codes, self.first, self.shape[0], coordinates, self.n_threads)

    def _like(self, codes: npt.NDArray[np.uint32], first: int, n_rows: int) -> AdditiveDesign:
        return AdditiveDesign(self.cells, codes, first, n_rows, self.coordinates, self.n_threads)

    def table_of(self, v: Floats) -> Floats:
        """Return the table of cells of coefficients."""
        values = v if self.coordinates is None else self.coordinates.to_values(v)
        return np.ascontiguousarray(self.cells.table @ as_table(values))

    def coefficients_of(self, sums: Floats, shape: tuple[int, ...]) -> Floats:
        """Return the gradient by coefficients of the sums over cells."""
        gradient = np.asarray(self.cells.adjoint @ sums).reshape(self.terms.n_values, *shape)
        return gradient if self.coordinates is None else np.asarray(self.coordinates.from_values(gradient))

    def _expanded(self, rows: Ints) -> Floats:
        """Return rows of E."""
        out = np.empty((rows.size, self.terms.n_values))
        threads = self.threads_used() if out.size >= MANY_CODES else 1
        _core.additive_expand(self.compiled, *self.cells.expansion(), rows, out, threads)
        return out

    def _rows(self, rows: Ints) -> Floats:
        """Return rows of the matrix."""
        expanded = self._expanded(rows)
        if self.coordinates is None:
            return expanded
        return np.ascontiguousarray(self.coordinates.from_values(np.ascontiguousarray(expanded.T)).T)

    def _centred(
        self, blocks: QueryBlocks, fetch: Callable[[Ints], Floats], n_columns: int
    ) -> gram.CentredBlocks:
        def grouped(first: int, last: int) -> Floats:
            return np.asarray(fetch(blocks.order[first:last]))

        return gram.CentredBlocks(grouped, blocks, n_columns, self.n_threads)

    def _row_blocks(self, n_rows: int) -> list[slice]:
        step = max(1, BLOCK_SIZE // max(1, self.shape[1]))
        return [slice(first, first + step) for first in range(0, n_rows, step)]

    def threads_used(self) -> int:
        return self.n_threads if self.shape[0] * self.row_work >= MANY_CODES else 1


class AdditiveProduct:
    """``V -> X' L X V``, reading the codes once."""

    def __init__(
        self, design: AdditiveDesign, blocks: QueryBlocks, folds: Folds | None, chunks: fused.Chunks
    ) -> None:
        self.design, self.folds = design, folds
        self.blocks = blocks.compiled()
        self.plan = fused.compiled_plan(chunks, self._segment_sums(blocks, chunks))

    def __call__(self, v: Floats, held_out: Floats | None = None) -> Floats:
        """Return the product; `held_out` (rows,) receives the held-out scores."""
        design = self.design
        design.reads += 1
        table = design.table_of(v)
        out = np.empty_like(table)
        folds = None if self.folds is None else self.folds.compiled(held_out)
        _core.additive_fused(
            design.compiled, self.blocks, folds, self.plan, table, out, design.n_parts, design.threads_used()
        )
        return design.coefficients_of(out, v.shape[1:])

    def _segment_sums(self, blocks: QueryBlocks, chunks: fused.Chunks) -> Floats:
        design = self.design
        folds = None if self.folds is None else self.folds.compiled()

        def weighted_sum(first: int, last: int, out: Floats) -> None:
            _core.additive_weighted_sum(
                design.compiled, self.blocks, folds, first, last, out, design.n_parts, design.threads_used()
            )

        return fused.segment_sums(blocks, chunks, self.folds, design.cells.n_entries, weighted_sum)


def coded_gram(design: AdditiveDesign, blocks: QueryBlocks) -> Floats | None:
    """Return ``E' L E`` by values of the curves; None where dense rows are better: surfaces, or few knots.

    The coupling "relative" joins every two levels of a query, which is left to dense rows too.
    """
    cells = design.cells
    if cells.terms.surfaces or blocks.coupling == "relative" or not _pays(design, blocks):
        return None
    threads = design.threads_used()
    degree = np.repeat(blocks.degree, np.diff(blocks.segment_start))
    weight = np.zeros(design.shape[0])
    weight[blocks.order] = degree if blocks.row_weight is None else degree * blocks.row_weight
    squares = np.empty((cells.n_entries, cells.n_entries))
    _core.additive_squares(design.compiled, weight, squares, threads)
    half = np.ascontiguousarray(np.asarray(cells.adjoint @ squares).T)
    del squares
    G = np.asfortranarray(cells.adjoint @ half)
    units = [(blocks.query_start, -1.0, blocks.scale)]
    if blocks.coupling == "others":
        own = np.repeat(blocks.scale, np.diff(blocks.query_segment))
        units.append((blocks.segment_start, 1.0, own))
    with large_algebra(G.shape[0]):
        for start, sign, scale in units:
            for rows in _scaled_sums(design, blocks, start, scale):
                G = dsyrk(sign, rows.T, beta=1.0, c=G, overwrite_c=1)
    return np.asarray(np.triu(G) + np.triu(G, 1).T)


def _gram_work(design: AdditiveDesign, n_units: int) -> tuple[float, float]:
    """Estimate the nanoseconds of the matrix from codes, and from dense rows."""
    n_rows, n_columns = design.shape[0], len(design.cells.columns)
    entries = _ENTRY * float(design.terms.n_values) ** 2
    return n_rows * _PAIR * n_columns * (n_columns + 1) / 2 + n_units * entries, n_rows * entries


def _has_room(design: AdditiveDesign) -> bool:
    return fits(8 * design.cells.n_entries**2)


def _pays(design: AdditiveDesign, blocks: QueryBlocks) -> bool:
    n_units = blocks.scale.size + (blocks.degree.size if blocks.coupling == "others" else 0)
    from_codes, from_rows = _gram_work(design, n_units)
    return from_codes < from_rows and _has_room(design)


def _scaled_sums(design: AdditiveDesign, blocks: QueryBlocks, start: Ints, scale: Floats) -> Iterator[Floats]:
    """Yield the sums of some units' rows after the other, times the root of each unit's scale."""
    step = max(1, _SUMS // max(design.cells.n_entries, 1))
    for first in range(0, start.size - 1, step):
        own = start[first : first + step + 1]
        rows = slice(int(own[0]), int(own[-1]))
        weight = None if blocks.row_weight is None else blocks.row_weight[rows]
        sums = np.empty((own.size - 1, design.cells.n_entries))
        _core.additive_sums_of_units(
            design.compiled, blocks.order[rows], weight, own - own[0], sums, design.threads_used()
        )
        values = np.asarray(design.cells.adjoint @ sums.T).T
        yield np.ascontiguousarray(values * np.sqrt(scale[first : first + step])[:, None])


def _room(n_rows: int, n_columns: int) -> npt.NDArray[np.uint32]:
    """Return an array for codes that begins on a cache line; a run of sixteen of them then lies on one."""
    unit = 16
    chunk_rows = min(CHUNK_ROWS, max(-(-n_rows // unit) * unit, unit))
    shape = (-(-n_rows // chunk_rows), n_columns, chunk_rows)
    flat = np.zeros(math.prod(shape) + unit, dtype=np.uint32)
    offset = -(flat.ctypes.data // flat.itemsize) % unit
    return flat[offset : offset + math.prod(shape)].reshape(shape)
