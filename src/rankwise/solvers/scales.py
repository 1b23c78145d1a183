"""Numbers that are very large or very small: norms whose squares would overflow, and what cannot be computed with."""

from __future__ import annotations

from math import isfinite

import numpy as np

from rankwise.arrays import Floats

__all__ = ["column_norms", "is_out_of_range", "powers_of_two"]

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


def powers_of_two(values: Floats) -> Floats:
    """Return the size of the largest entry of every column, to the power of two below: dividing by it is exact."""
    peak = np.abs(values).max(axis=0, initial=0.0)
    usable = (peak > 0) & np.isfinite(peak)
    return np.asarray(np.ldexp(1.0, np.frexp(np.where(usable, peak, 1.0))[1] - 1))


def is_out_of_range(size: float, rhs: Floats) -> bool:
    """Tell whether ``H + αI``, of about this size, has overflowed, or has vanished beside its right-hand side."""
    peak = float(np.abs(rhs).max(initial=0.0))
    return not (isfinite(size) and isfinite(peak)) or (size < _VANISHED and 0 < peak < _TINY)
