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

A column is coded once, however many terms read it: its cells are the intervals between the knots of all of them
together, and one more cell for missing entries. Every term is linear inside each of these cells. A small sparse matrix
therefore maps its values at knots to a table of cells (see `cpp/additive.hpp`), and the transposed matrix maps sums
over cells to its gradient.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from scipy.linalg.blas import dsyrk

from rankwise import _core
from rankwise.arrays import AnyArray, Floats, InMemory, Ints, Matrix, is_sparse
from rankwise.design import fused
from rankwise.design.protocol import Design, GramProduct, RowIndex
from rankwise.design.terms import (
    MANY_CODES,
    Coordinates,
    Curve,
    Terms,
    compiled_curves,
    csr_arrays,
    float_array,
    places_among_terms,
)
from rankwise.pairs.blocks import Folds, QueryBlocks, as_table
from rankwise.runtime.memory import fits
from rankwise.runtime.threads import large_algebra

# Rows whose codes lie together, column by column. The scores of a chunk and the table of a column then stay in the
# nearest cache.
CHUNK_ROWS = 512
# Codes that a fused product works on at once: they stay in a core's cache between reading and writing.
CHUNK_WORK = 1 << 16
# Sums are kept in parts of so many codes, or so many times the sums, at most so many: the shape alone decides, for
# their bits depend on it.
PART_WORK = 1 << 21
PART_SUMS = 8
MOST_PARTS = 64
# Rows that are encoded at once: of a matrix on disk so many are brought to memory.
ENCODED_ROWS = 1 << 16
# Nanoseconds: of a pair of columns of a row from codes, and of an entry of the matrix for each dense row.
_PAIR, _ENTRY = 1.2, 0.035
# Of a code in a product, and of a product of no rows.
_CODE, _CALL = 0.75, 2e4
_SUMS = 1 << 20  # numbers in the sums of some queries
# Instructions of the processor: "plain", "avx2" or "avx512".
INSTRUCTIONS = _core.widest_instructions()


# Bits of a code; the cell takes as many as it needs, and the position inside it the rest.
CODE_BITS = 32


@dataclass(frozen=True, eq=False)
class CodedColumn:
    """A column of X with the knots of all terms that read it."""

    column: int
    is_levels: bool
    knots: Floats

    @property
    def n_cells(self) -> int:
        """The number of cells: one per knot, of which the last is a point, and one for missing entries."""
        return self.knots.size + 1

    @property
    def shift(self) -> int:
        """The number of bits of the position: a step is ``2**-shift`` of an interval. Levels have no positions."""
        return 0 if self.is_levels else min(CODE_BITS - self.knots.size.bit_length(), CODE_BITS - 1)


@dataclass(frozen=True, eq=False)
class Side:
    """A curve on the cells of its column: cell c at position p is its own `cell[c]` at ``origin[c] + slope[c] p``."""

    curve: Curve
    coded: int
    cell: npt.NDArray[np.int32]
    origin: Floats
    slope: Floats

    @classmethod
    def of(cls, curve: Curve, coded: int, column: CodedColumn) -> Side:
        """Find where each cell of the column lies between the knots of the curve."""
        size, own = column.knots.size, curve.knots
        cell = np.full(size + 1, own.size, dtype=np.int32)
        origin, slope = np.zeros(size + 1), np.zeros(size + 1)
        ids, weights = curve.weights(column.knots)
        if curve.is_levels:
            seen = np.isin(column.knots, own)
            cell[:-1][seen] = ids[seen, 0]
        elif own.size:
            cell[:-1] = ids[:, 0]
            origin[:-1] = weights[:, 1]
            # Knots are shared, so a cell ends where the next one begins, or at the end of the curve's own interval.
            ends = np.where(ids[1:, 0] == ids[:-1, 0], weights[1:, 1], 1.0)
            inside = (ids[:-1, 0] < own.size - 1) & (column.knots[:-1] >= own[0])
            slope[: size - 1][inside] = (ends - weights[:-1, 1])[inside] * 2.0**-column.shift
        return cls(curve, coded, cell, origin, slope)

    @property
    def n_cells(self) -> int:
        """The cells of the curve itself, as those of its column."""
        return self.curve.knots.size + 1


class Cells:
    """The coded columns of terms, the sides of their surfaces, and the table that products multiply.

    Attributes
    ----------
    columns : list of CodedColumn
    sides : list of Side
        The sides of surfaces come first, each once.
    n_entries : int
        The length of the table: two entries per cell of a column with curves, four per pair of cells of a surface.
    table : (n_entries, n_values) CSR
        Gives the table of values.
    """

    def __init__(self, terms: Terms) -> None:
        self.terms = terms
        curves = [*(c for s in terms.surfaces for c in (s.first, s.second)), *terms.curves]
        self.columns = list(_coded_columns(curves))
        coded = {(c.column, c.is_levels): j for j, c in enumerate(self.columns)}
        keys = [(c.column, c.is_levels, c.has_missing, c.knots.tobytes()) for c in curves]
        number = {key: at for at, key in enumerate(dict.fromkeys(keys))}
        columns = [coded[key[:2]] for key in number]
        curve_of = dict(zip(keys, curves, strict=True))
        self.sides = [
            Side.of(curve_of[key], j, self.columns[j]) for key, j in zip(number, columns, strict=True)
        ]
        numbers, n_grids = np.array([number[key] for key in keys], dtype=np.int32), 2 * len(terms.surfaces)
        self.surface_sides, self.curve_sides = numbers[:n_grids], numbers[n_grids:]
        self.n_decoded = int(self.surface_sides.max(initial=-1)) + 1
        # The table: first the columns that curves read, then the surfaces.
        has_curve = np.zeros(len(self.columns), dtype=np.bool_)
        has_curve[[columns[side] for side in self.curve_sides]] = True
        grids = [self.sides[side].n_cells for side in self.surface_sides]
        sizes = has_curve * [2 * c.n_cells for c in self.columns]
        sizes_of_grids = [4 * one * other for one, other in zip(grids[::2], grids[1::2], strict=True)]
        start = np.concatenate(([0], np.cumsum([*sizes, *sizes_of_grids]))).astype(np.int64)
        self.curve_start = np.where(has_curve, start[: sizes.size], -1)
        self.surface_start, self.n_entries = start[sizes.size : -1], int(start[-1])
        self.table = self._table()
        self.adjoint = self.table.T.tocsr()

    def _table(self) -> sp.csr_matrix:
        """Return the sparse matrix from values to the table; equal entries of the parts add up."""
        entries, values, factors = [np.empty(0, dtype=np.int64)], [np.empty(0, dtype=np.int64)], [np.empty(0)]
        curves = [self.sides[number] for number in self.curve_sides]
        grids = [self.sides[number].curve for number in self.surface_sides]
        parts = [_of_curve(side) for side in curves]
        parts += [_of_surface(*sides) for sides in zip(grids[::2], grids[1::2], strict=True)]
        starts = [*(self.curve_start[side.coded] for side in curves), *self.surface_start]
        for (entry, value, factor), start, offset in zip(parts, starts, self.terms.offsets, strict=False):
            entries.append(entry + start)
            values.append(value + offset)
            factors.append(factor)
        places = np.concatenate(entries), np.concatenate(values)
        shape = (self.n_entries, self.terms.n_values)
        return sp.csr_matrix((np.concatenate(factors), places), shape=shape)

    def compiled_columns(self) -> tuple[_core.Terms, npt.NDArray[np.int32]]:
        """Return the arguments of the encoder: the columns as curves, and their shifts."""
        curves = [Curve(c.column, c.knots, c.is_levels) for c in self.columns]
        return compiled_curves(curves), np.array([c.shift for c in self.columns], dtype=np.int32)

    def compiled(
        self, codes: npt.NDArray[np.uint32], first: int, n_rows: int, instructions: str
    ) -> _core.Additive:
        """Return the matrix of cells of some rows as the kernels take it."""
        sizes = [side.cell.size for side in self.sides]
        return _core.Additive(
            codes=codes,
            first=first,
            rows=n_rows,
            columns=self.n_entries,
            decoded=self.n_decoded,
            shift=np.array([c.shift for c in self.columns], dtype=np.int32),
            cells=np.array([c.n_cells for c in self.columns], dtype=np.int32),
            curve_start=self.curve_start,
            side_column=np.array([side.coded for side in self.sides], dtype=np.int32),
            side_start=(np.cumsum(sizes) - sizes).astype(np.int64),
            side_cell=_joined([side.cell for side in self.sides], np.int32),
            side_origin=_joined([side.origin for side in self.sides], np.float64),
            side_slope=_joined([side.slope for side in self.sides], np.float64),
            side_cells=np.array([side.n_cells for side in self.sides], dtype=np.int32),
            surface_sides=self.surface_sides,
            surface_start=self.surface_start,
            instructions=instructions,
        )

    def expansion(self) -> tuple[npt.NDArray[np.int32], Ints, Ints, Ints, int]:
        """Return the arguments, beside the codes, that expand rows to values."""
        return (
            np.concatenate([self.curve_sides, self.surface_sides]),
            np.array([side.curve.n_values for side in self.sides], dtype=np.int64),
            np.array([side.curve.knots.size for side in self.sides], dtype=np.int64),
            self.terms.offsets,
            len(self.terms.curves),
        )


def _coded_columns(curves: list[Curve]) -> Iterator[CodedColumn]:
    """Yield each column once, with the knots of all curves that read it as numbers, or as levels."""
    kinds = sorted({(curve.column, curve.is_levels) for curve in curves})
    for column, is_levels in kinds:
        knots = [c.knots for c in curves if c.column == column and c.is_levels == is_levels]
        yield CodedColumn(column, is_levels, np.unique(np.concatenate(knots)).astype(np.float64))


# Entries of a sparse matrix from the values of a term to its part of the table: row, column and factor.
_Triples = tuple[Ints, Ints, Floats]


def _of_curve(side: Side) -> _Triples:
    """Return level and slope of a curve in the cells of its column, two entries for each."""
    own = side.cell.astype(np.int64)
    reads = np.flatnonzero(own < side.curve.n_values)
    rises = np.flatnonzero(own < _n_intervals(side.curve))
    k, origin, slope = own[rises], side.origin[rises], side.slope[rises]
    return (
        np.concatenate([2 * reads, 2 * rises, 2 * rises, 2 * rises + 1, 2 * rises + 1]),
        np.concatenate([own[reads], k, k + 1, k, k + 1]),
        np.concatenate([np.ones(reads.size), -origin, origin, -slope, slope]),
    )


def _of_ends(curve: Curve) -> _Triples:
    """Return two entries per cell of a curve: its value at the start of the cell, and its increase up to the end."""
    reads, rises = np.arange(curve.n_values), np.arange(_n_intervals(curve))
    return (
        np.concatenate([2 * reads, 2 * rises + 1, 2 * rises + 1]),
        np.concatenate([reads, rises, rises + 1]),
        np.concatenate([np.ones(reads.size), -np.ones(rises.size), np.ones(rises.size)]),
    )


def _of_surface(one: Curve, other: Curve) -> _Triples:
    """Return the products of the values and increases of two curves: four entries for each pair of cells."""
    (entry, value, factor), (other_entry, other_value, other_factor) = _of_ends(one), _of_ends(other)
    (cell, kind), (other_cell, other_kind) = np.divmod(entry, 2), np.divmod(other_entry, 2)
    pair = cell[:, None] * (other.knots.size + 1) + other_cell
    return (
        (4 * pair + kind[:, None] + 2 * other_kind).ravel(),
        (value[:, None] * other.n_values + other_value).ravel(),
        np.outer(factor, other_factor).ravel(),
    )


def _n_intervals(curve: Curve) -> int:
    """Return the number of intervals among the cells: the last knot, missing entries and levels are points."""
    return 0 if curve.is_levels else max(curve.knots.size - 1, 0)


def _joined(parts: list[AnyArray], dtype: npt.DTypeLike) -> AnyArray:
    return np.concatenate(parts).astype(dtype, copy=False) if parts else np.empty(0, dtype=dtype)


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
        least = max(PART_WORK, PART_SUMS * cells.n_entries)
        self.n_parts = int(min(max(n_rows * self.row_work // least, 1), MOST_PARTS))

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
        n_threads = self.threads_used()
        chunks = fused.cut(blocks, lengths, self.cells.n_entries, n_threads, CHUNK_WORK)
        if chunks is None or fused.is_scattered(blocks.order, chunks.chunk_start):
            return None

        def weighted_sum(where: fused.Where, out: Floats) -> None:
            _core.additive_weighted_sum(self.compiled, *where, out, self.n_parts, n_threads)

        def multiply(blocks: _core.Blocks, folds: _core.Folds | None, plan: _core.Plan, v: Floats) -> Floats:
            self.reads += 1
            table = self.table_of(v)
            out = np.empty_like(table)
            _core.additive_fused(self.compiled, blocks, folds, plan, table, out, self.n_parts, n_threads)
            return self.coefficients_of(out, v.shape[1:])

        return fused.FusedProduct(blocks, folds, chunks, self.cells.n_entries, weighted_sum, multiply)

    def gram_matrix(self, blocks: QueryBlocks) -> Floats | None:
        """Return ``X' L X``, (n, n)."""
        # Surfaces have fewer coordinates than values, and rows of codes cannot be squared.
        if self.coordinates is not None and not self.terms.surfaces:
            G = self.within(None).gram_matrix(blocks)
            self.reads += 1
            half = np.ascontiguousarray(self.coordinates.from_values(np.asarray(G)).T)
            G = np.asarray(self.coordinates.from_values(half))
            return (G + G.T) / 2
        coded = coded_gram(self, blocks)
        self.reads += coded is not None
        return super().gram_matrix(blocks) if coded is None else coded

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
        n_rows = self.shape[0]
        out = np.empty((n_rows, self.terms.n_values))
        threads = self.threads_used() if out.size >= MANY_CODES else 1
        _core.additive_expand(self.compiled, *self.cells.expansion(), np.arange(n_rows), out, threads)
        if self.coordinates is None:
            return out
        return np.ascontiguousarray(self.coordinates.from_values(np.ascontiguousarray(out.T)).T)

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

    def threads_used(self) -> int:
        return self.n_threads if self.shape[0] * self.row_work >= MANY_CODES else 1


def coded_gram(design: AdditiveDesign, blocks: QueryBlocks) -> Floats | None:
    """Return ``E' L E`` by values of the curves; None where dense rows are better: surfaces, or few knots.

    The coupling "relative" joins every two levels of a query, which is left to dense rows too.
    """
    cells = design.cells
    if cells.terms.surfaces or blocks.coupling == "relative" or not _pays(design, blocks):
        return None
    threads = design.threads_used()
    weight = blocks.degrees()
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
    entries = _ENTRY * float(design.shape[1] if design.terms.surfaces else design.terms.n_values) ** 2
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
