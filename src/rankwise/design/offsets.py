"""Shifts of columns far from zero, which keep their digits: pairs do not depend on a constant.

A column of values around 1e9 that differ by 1 (a time, an id) loses nine digits in every product and eighteen in the
square of a product, though only the differences between rows matter. If the values of a column are far from zero
relative to their spread, a constant close to them is subtracted. The difference of two floating-point numbers that are
close to each other is exact, so no digits are lost. The coefficients are those of the original columns.

All rows share one constant. A column that is nearly constant inside each query but differs between queries is not
shifted, because it varies as a whole. Neither are the columns of a LinearOperator, whose rows cannot be read.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import scipy.sparse as sp

from rankwise.arrays import AnyArray, Floats, Ints, Matrix, is_sparse

# From so many standard deviations on, a column is shifted. Relative errors of solutions grew with the square of the
# distance, from 1e-13 (conjugate gradients) and 2e-11 (a linear kernel) at 100 to 1e-5 and 3e-3 at a million.
FAR = 100.0
# So many rows, drawn from all over, tell which columns are far from zero; of very wide matrices fewer.
_ROWS = 255
_FEWEST_ROWS = 31
_VALUES = 1 << 19
_GOLDEN = (5**0.5 - 1) / 2


@dataclass(frozen=True)
class Shift:
    """Constants subtracted from some columns, the same in all rows.

    Attributes
    ----------
    columns : (k,) int64
    values : (k,) float64
    """

    columns: Ints
    values: Floats

    def taken_off(self, X: Matrix) -> AnyArray | sp.csr_matrix:
        """Return a copy of an array or a SciPy matrix, in float64, with the constants subtracted."""
        if is_sparse(X):
            n_rows, k = X.shape[0], self.columns.size
            constants = sp.csr_matrix(
                (np.tile(self.values, n_rows), np.tile(self.columns, n_rows), np.arange(n_rows + 1) * k),
                shape=X.shape,
            )
            return sp.csr_matrix(X - constants)
        moved = np.array(X, dtype=np.float64, copy=True)
        moved[:, self.columns] -= self.values
        return moved


@lru_cache(64)
def sampled_rows(n_rows: int, n_columns: int) -> Ints:
    """Return the rows for `find_shift`: a sample of all rows, or all rows if there are few."""
    size = min(max(_VALUES // max(n_columns, 1), _FEWEST_ROWS), _ROWS)
    # Even, and in step with nothing: multiples of the golden ratio.
    rows = np.sort((_GOLDEN * np.arange(size) % 1.0 * n_rows).astype(np.int64))
    rows = np.arange(n_rows) if n_rows <= size else rows
    rows.flags.writeable = False  # every fit of as many rows gets these
    return rows


def find_shift(sample: Matrix, *, far: float = FAR, even_if_alike: bool = False) -> Shift | None:
    """Return the shift of the columns far from zero, found on sampled rows; None where no column needs one.

    Subtracting a constant is always valid, so a few rows may decide. One row could hide that a column is far from zero
    only if it were as far from the other rows as they are from zero, and then the column varies by as much.

    Parameters
    ----------
    sample : (rows, columns) array or SciPy CSR matrix
    far : float
        The distance from zero, in standard deviations, from which on a column is shifted.
    even_if_alike : bool
        Whether columns are shifted even if all rows of the sample are equal.
    """
    columns, table, others = _filled_columns(sample)
    if table.size == 0:
        return None
    for some in (table[:_FEWEST_ROWS], table):  # nearly all columns are done with by a few rows
        largest = np.maximum(some.max(axis=0) - table[0], table[0] - some.min(axis=0))
        never_near = np.abs(table[0]) > largest
        if not never_near.any():
            return None
    varies = largest > 0
    # Squares of the shifted values neither overflow nor vanish.
    difference = (table - table[0]) / np.where(varies, largest, 1.0)
    middle = table[0] + largest * difference.mean(axis=0)
    spread = largest * difference.std(axis=0)
    # A column that never varies is harmless unless it is large beside what the others vary by.
    known = np.concatenate([spread[varies], np.abs(others)])
    if known.size == 0 and not even_if_alike:
        return None
    usual = float(np.median(known)) if known.size else 0.0
    is_far = never_near & (np.abs(middle) > far * np.where(varies, spread, usual))
    if not is_far.any():
        return None
    # One of the values themselves: whole numbers stay whole.
    values = np.sort(table[:, is_far], axis=0)[table.shape[0] // 2]
    return Shift(columns[is_far], values)


def _filled_columns(sample: Matrix) -> tuple[Ints, Floats, Floats]:
    """Return the columns that are stored in every row of a sample, these as an array, and the other values.

    A zero among values far from zero would be as far from them as they are from it.
    """
    if not is_sparse(sample):
        return np.arange(sample.shape[1]), np.asarray(sample, dtype=np.float64), np.empty(0)
    counts = np.bincount(sample.indices, minlength=sample.shape[1])
    is_filled = counts >= max(sample.shape[0], 1)
    columns = np.flatnonzero(is_filled)
    if columns.size == 0:
        return columns, np.empty((0, 0)), np.empty(0)
    others = sample.data[~is_filled[sample.indices]]
    return columns, np.asarray(sample[:, columns].toarray(), dtype=np.float64), others


def spreads(X: Matrix, share: Floats) -> Floats:
    """Return the variance of each column of an array or a SciPy matrix, of rows with shares that sum to 1."""
    if is_sparse(X):
        shift = find_shift(X[sampled_rows(*X.shape)])
        rows = sp.csr_matrix(X.astype(np.float64) if shift is None else shift.taken_off(X))
        return np.asarray(share @ rows.multiply(rows) - (share @ rows) ** 2)
    rows = np.asarray(X)
    # The mean of a huge constant has a rounding error; its difference from the first row has none.
    centred = np.subtract(rows, rows[0], dtype=np.float64)
    centred -= share @ centred
    return np.asarray(share @ np.square(centred, out=centred))
