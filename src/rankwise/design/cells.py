"""Cells of coded columns: the meaning of the codes of an `AdditiveDesign`.

A column is coded once, however many terms read it: its cells are the intervals between the knots of all of them
together, and one more cell for missing entries. Every term is linear inside each of these cells. A small sparse matrix
therefore maps its values at knots to a table of cells (see `cpp/additive.hpp`), and the transposed matrix maps sums
over cells to its gradient.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from rankwise import _core
from rankwise.arrays import AnyArray, Floats, Ints
from rankwise.design.terms import Curve, Terms, compiled_curves

__all__ = ["Cells", "CodedColumn", "Side"]

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


@dataclass(eq=False)
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

    terms: Terms
    columns: list[CodedColumn] = field(init=False)
    sides: list[Side] = field(init=False)

    def __post_init__(self) -> None:
        terms = self.terms
        curves = [*(c for s in terms.surfaces for c in (s.first, s.second)), *terms.curves]
        self.columns = list(_coded_columns(curves))
        coded = {(c.column, c.is_levels): j for j, c in enumerate(self.columns)}
        known: dict[tuple[Any, ...], int] = {}
        self.sides = []
        number = []
        for i, curve in enumerate(curves):
            key = (curve.column, curve.is_levels, curve.has_missing, curve.knots.tobytes())
            if key not in known:
                known[key] = len(self.sides)
                j = coded[curve.column, curve.is_levels]
                self.sides.append(Side.of(curve, j, self.columns[j]))
            number.append(known[key])
            if i == 2 * len(terms.surfaces) - 1:
                self.n_decoded = len(self.sides)
        if not terms.surfaces:
            self.n_decoded = 0
        self.surface_sides = np.array(number[: 2 * len(terms.surfaces)], dtype=np.int32)
        self.curve_sides = np.array(number[2 * len(terms.surfaces) :], dtype=np.int32)
        self._lay_out()
        self.table = self._table()
        self.adjoint = self.table.T.tocsr()

    def _lay_out(self) -> None:
        with_curve = {self.sides[s].coded for s in self.curve_sides}
        self.curve_start = np.full(len(self.columns), -1, dtype=np.int64)
        end = 0
        for j, column in enumerate(self.columns):
            if j in with_curve:
                self.curve_start[j] = end
                end += 2 * column.n_cells
        self.surface_start = np.zeros(len(self.terms.surfaces), dtype=np.int64)
        for s in range(self.surface_start.size):
            one, other = (self.sides[side] for side in self.surface_sides[2 * s : 2 * s + 2])
            self.surface_start[s] = end
            end += 4 * one.n_cells * other.n_cells
        self.n_entries = end

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
