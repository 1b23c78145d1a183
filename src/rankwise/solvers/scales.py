"""Numbers that are very large or very small: norms whose squares would overflow, and what cannot be computed with."""

from __future__ import annotations

from math import isfinite

import numpy as np

from rankwise.arrays import Floats, Matrix, is_sparse

__all__ = ["EPS", "are_unlike", "column_norms", "is_out_of_range", "powers_of_two", "squared_lengths"]

EPS = float(np.finfo(np.float64).eps)
# Beside a column that is so many times as large, the square of a column loses half of its digits.
_UNLIKE = 1e4
_RESIDUE = 1e-15  # what the centering leaves of a column that is constant inside queries, beside the column
_SQUARES_VANISH = 1e-140  # norms below this are made of squares that have lost digits
_VANISHED = 1e-290  # a matrix below this has lost digits itself ...
_TINY = 1e-100  # ... which is seen by a right-hand side, made of its roots, that is below this


def column_norms(values: Floats) -> Floats:
    """Return the length of a vector, or of every column; right also where squares overflow or vanish."""
    with np.errstate(over="ignore", invalid="ignore"):
        norm: Floats = np.linalg.norm(values, axis=0)
        if np.all((norm > _SQUARES_VANISH) & (norm < np.inf)):
            return norm
        unit = powers_of_two(values)
        return np.asarray(unit * np.linalg.norm(values / unit, axis=0))


def are_unlike(columns: Matrix, uncentred: Floats | None = None) -> bool:
    """Tell whether columns differ so much in length that singular values are needed, and not only their squares.

    Parameters
    ----------
    columns, uncentred : (rows, columns) matrix
        A column of which the centering left nothing but rounding does not count.
    """
    squares = squared_lengths(columns)
    is_small = (squares > 0) & (squares < squares.max(initial=0.0) / _UNLIKE**2)
    if uncentred is not None and is_small.any():
        is_small[is_small] = squares[is_small] > _RESIDUE**2 * squared_lengths(uncentred[:, is_small])
    return bool(is_small.any())


def squared_lengths(columns: Matrix) -> Floats:
    """Return the sum of the squares of every column."""
    if is_sparse(columns):
        return np.asarray(columns.multiply(columns).sum(axis=0), dtype=np.float64).reshape(-1)  # type: ignore[attr-defined]
    dense = np.asarray(columns)
    return np.asarray(np.einsum("ij,ij->j", dense, dense, dtype=np.float64))


def powers_of_two(values: Floats) -> Floats:
    """Return the size of the largest entry of every column, to the power of two below: dividing by it is exact."""
    peak = np.abs(values).max(axis=0, initial=0.0)
    usable = (peak > 0) & np.isfinite(peak)
    return np.asarray(np.ldexp(1.0, np.frexp(np.where(usable, peak, 1.0))[1] - 1))


def is_out_of_range(size: float, rhs: Floats) -> bool:
    """Tell whether ``H + αI``, of about this size, has overflowed, or has vanished beside its right-hand side."""
    peak = float(np.abs(rhs).max(initial=0.0))
    return not (isfinite(size) and isfinite(peak)) or (size < _VANISHED and 0 < peak < _TINY)
