"""Scales of columns and numbers, and problems balanced by them.

Numbers that are very large or very small: norms whose squares would overflow, and values out of range.

Columns of very different scales: a residual that is measured, and a path that is taken, without their units.

``‖b - (H + αI)w‖ / ‖b‖`` is in the units of the largest column: beside a column 1e5 times larger, all others may be as
good as untouched when it is small. With ``D = diag(H) + α``, residuals of ``D^-1/2 (H + αI) D^-1/2 u = D^-1/2 b`` have
no units, and the path to them is that of a Jacobi preconditioner: it ends in the same model. Columns of like scales,
text among them, need neither (docs/mathematics.md, section 3).
"""

from __future__ import annotations

from math import isfinite

import numpy as np

from rankwise.arrays import Floats, Matrix, is_sparse
from rankwise.objectives import BalancedObjective, QuadraticObjective

__all__ = [
    "EPS",
    "are_unlike",
    "balancing",
    "column_norms",
    "differ_in_scale",
    "is_out_of_range",
    "powers_of_two",
    "squared_lengths",
    "unit_free",
]

EPS = float(np.finfo(np.float64).eps)
# Beside a column that is so many times as large, the square of a column loses half of its digits.
_UNLIKE = 1e4
_RESIDUE = 1e-15  # rounding that centering leaves of a column that is constant inside queries, relative to the column
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


# Squares of columns, penalty included, that are so many times the median, or the median such a column, differ in scale.
# On text the largest is about 80 times the median, and the median 500 times the smallest.
_LIKE = 1e3


def differ_in_scale(sizes: Floats, alpha: float) -> bool:
    """Tell whether columns with this ``diag(H)`` need their units taken out; not where squares overflow."""
    seen = sizes[sizes > 0] + alpha
    if not seen.size or not np.isfinite(seen).all():
        return False
    typical = float(np.median(seen))
    return bool(seen.max() > _LIKE * typical or typical > _LIKE * seen.min())


def unit_free(sizes: Floats, alpha: float) -> Floats:
    """Return ``(diag(H) + α)^-1/2``, which makes residuals free of units."""
    squares = sizes + alpha
    return np.asarray(np.where(squares > 0, squares, 1.0) ** -0.5)


def balancing(objective: QuadraticObjective, alpha: float) -> BalancedObjective | None:
    """Return the objective in units in which columns have like sizes; None where they have them as they are."""
    sizes = objective.sizes()
    if sizes is None or not differ_in_scale(sizes, alpha):
        return None
    return BalancedObjective(objective, alpha, unit_free(sizes, alpha))
