"""The terms of an additive model as arrays: curves of single columns and surfaces of pairs of columns.

A *curve* has one value per knot and is linear between knots, so a number x in the interval of knots k and k + 1, at
the position ``t = (x - knot_k) / (knot_{k+1} - knot_k)``, reads ``(1 - t) value_k + t value_{k+1}``: two *weights*,
which are zero for all other values. A *surface* is bilinear between the knots of two columns, and its weights are the
products of theirs. The score of a row is therefore ``e'v``, with v the values of all terms, curves first, and e the
row's weights.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
import numpy.typing as npt

from rankwise import _core
from rankwise.arrays import AnyArray, Floats, InMemory, Ints, SparseMatrix, is_sparse
from rankwise.design.protocol import accepted_dtype
from rankwise.pairs.blocks import as_table

# Fewer codes than this are faster on one thread.
MANY_CODES = 1 << 16


class Coordinates(Protocol):
    """Another set of coefficients for the values of terms, block-diagonal in the terms: ``values = T u``.

    Both methods take vectors (n,) and blocks of vectors (n, k), in float64.
    """

    @property
    def n_coordinates(self) -> int:
        """The length of u, at most that of the values."""

    def to_values(self, u: Floats) -> Floats:
        """Return ``T u``."""

    def from_values(self, g: Floats) -> Floats:
        """Return ``T' g``, the adjoint."""


@dataclass(frozen=True, eq=False)
class Curve:
    """A piecewise linear function of one column, or one value per level of a category.

    Attributes
    ----------
    column : int
    knots : (k,) float64
        Strictly increasing. Numbers outside read the value of the nearest knot. A column that is always missing has no
        knots.
    is_levels : bool
        Whether the knots are levels of a category: a value is read only *at* a level, and numbers that match no level
        count as missing.
    has_missing : bool
        Whether missing entries have a value of their own, at position k. Otherwise they read 0.
    """

    column: int
    knots: Floats
    is_levels: bool = False
    has_missing: bool = False

    @property
    def n_values(self) -> int:
        """The number of values: one per knot, and one for missing entries if they have a value."""
        return self.knots.size + self.has_missing

    def weights(self, x: AnyArray) -> tuple[Ints, Floats]:
        """Return which two values each entry of a column reads, (rows, 2), and their weights, (rows, 2).

        Both values are the same where a weight is zero, and both weights are zero for entries that read no value.
        """
        x = np.asarray(x, dtype=np.float64)
        k = self.knots.size
        lower = np.zeros(x.size, dtype=np.int64)
        position = np.zeros(x.size)
        is_missing = np.isnan(x) if k else np.ones(x.size, dtype=np.bool_)
        if k:
            # NaN sorts behind every knot.
            lower = np.maximum(np.searchsorted(self.knots, x, side="right") - 1, 0)
            if self.is_levels:
                is_missing = self.knots[lower] != x
            else:
                inside = np.flatnonzero((lower < k - 1) & (x > self.knots[0]))
                # Halving keeps the widest intervals finite.
                left, right = 0.5 * self.knots[lower[inside]], 0.5 * self.knots[lower[inside] + 1]
                position[inside] = (0.5 * x[inside] - left) / (right - left)
        lower[is_missing] = k if self.has_missing else 0
        upper = lower + (position > 0)
        weights = np.stack([1.0 - position, position], axis=1)
        if not self.has_missing:
            weights[is_missing] = 0.0
        return np.stack([lower, upper], axis=1), weights


@dataclass(frozen=True, eq=False)
class Surface:
    """A pair of columns on a grid: value ``i * second.n_values + j`` is that at i of the first and j of the second."""

    first: Curve
    second: Curve

    @property
    def n_values(self) -> int:
        """The number of values of the grid."""
        return self.first.n_values * self.second.n_values


@dataclass(frozen=True, eq=False)
class Terms:
    """The terms of a model; their values are concatenated in one vector, curves first."""

    curves: tuple[Curve, ...]
    surfaces: tuple[Surface, ...] = ()

    @cached_property
    def offsets(self) -> Ints:
        """Where the values of each term begin, (terms + 1,)."""
        sizes = [term.n_values for term in self.all_terms]
        return np.concatenate(([0], np.cumsum(sizes))).astype(np.int64)

    @property
    def all_terms(self) -> Sequence[Curve | Surface]:
        """Curves, then surfaces."""
        return (*self.curves, *self.surfaces)

    @property
    def n_values(self) -> int:
        """The length of the vector of all values."""
        return int(self.offsets[-1])

    @property
    def sides(self) -> Sequence[Curve]:
        """The curves, then both sides of each surface."""
        return (*self.curves, *(side for s in self.surfaces for side in (s.first, s.second)))

    @cached_property
    def columns(self) -> Ints:
        """The columns of X that any term reads, in order."""
        return np.unique(np.array([side.column for side in self.sides], dtype=np.int64))

    @cached_property
    def compiled(self) -> _core.Terms:
        """The same as arrays, as the compiled kernels take them."""
        return compiled_curves(self.sides, self.offsets, len(self.curves))

    def __getstate__(self) -> dict[str, object]:
        """Return the terms alone: compiled arrays belong to a process."""
        return {"curves": self.curves, "surfaces": self.surfaces}

    def values_of(self, term: int) -> slice:
        """Return the slice of the values of a term in the vector."""
        return slice(int(self.offsets[term]), int(self.offsets[term + 1]))


def compiled_curves(
    curves: Sequence[Curve], offsets: Ints | None = None, n_terms: int | None = None
) -> _core.Terms:
    """Return curves as the compiled kernels take them; beyond the first `n_terms`, pairs are the sides of surfaces."""
    used, place = np.unique(np.array([c.column for c in curves], dtype=np.int64), return_inverse=True)
    sizes = [curve.knots.size for curve in curves]
    return _core.Terms(
        used=used,
        column=place.astype(np.int64).ravel(),
        start=np.concatenate(([0], np.cumsum(sizes))).astype(np.int64),
        knots=np.concatenate([np.empty(0), *(c.knots for c in curves)]).astype(np.float64, copy=False),
        is_levels=np.array([c.is_levels for c in curves], dtype=np.bool_),
        has_missing=np.array([c.has_missing for c in curves], dtype=np.bool_),
        offsets=np.zeros(len(curves) + 1, dtype=np.int64) if offsets is None else offsets,
        curves=len(curves) if n_terms is None else n_terms,
    )


def predict(X: InMemory, terms: Terms, values: Floats, n_threads: int = 1) -> Floats:
    """Return ``E v``, the score of each row, computed from the original numbers in double precision.

    Parameters
    ----------
    X : array or SciPy sparse matrix
        Absent entries are zeros.
    values : (n_values,) or (n_values, k) float64
    """
    table = as_table(values)
    out = np.empty((X.shape[0], table.shape[1]))
    threads = n_threads if X.shape[0] * len(terms.all_terms) >= MANY_CODES else 1
    if is_sparse(X):
        place = places_among_terms(terms, X.shape[1])
        arrays = csr_arrays(X.tocsr(), 0, X.shape[0])
        _core.additive_predict_csr(*arrays, place, terms.compiled, table, out, threads)
    else:
        _core.additive_predict(float_array(X), terms.compiled, table, out, threads)
    return out.reshape(X.shape[0], *values.shape[1:])


def float_array(X: npt.ArrayLike) -> AnyArray:
    """Return an array of floats that begin at multiples of their size, as the kernels take it."""
    array = np.asarray(X)
    array = array.astype(accepted_dtype(array.dtype), copy=False)
    is_regular = array.flags.aligned and all(stride % array.itemsize == 0 for stride in array.strides)
    return array if is_regular else np.ascontiguousarray(array)


def csr_arrays(
    X: SparseMatrix | tuple[AnyArray, ...], first: int, last: int
) -> tuple[AnyArray, AnyArray, AnyArray]:
    """Return the arrays of some rows of a CSR matrix, or of its arrays, as the kernels take them.

    Not by SciPy's slices, which may first convert all column numbers of a matrix on disk.
    """
    values, ids, start = X if isinstance(X, tuple) else (X.data, X.indices, X.indptr)
    own = slice(int(start[first]), int(start[last]))
    pointers = (start[first : last + 1] - start[first]).astype(ids.dtype, copy=False)
    return values[own].astype(accepted_dtype(values.dtype), copy=False), ids[own], pointers


def places_among_terms(terms: Terms, n_columns: int) -> npt.NDArray[np.int32]:
    """Return the position of each column of X among the columns that terms read; -1 for the others."""
    place = np.full(n_columns, -1, dtype=np.int32)
    place[terms.columns] = np.arange(terms.columns.size, dtype=np.int32)
    return place
