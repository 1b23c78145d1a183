"""Columns of very different scales: a residual that is measured, and a path that is taken, without their units.

``‖b - (H + αI)w‖ / ‖b‖`` is in the units of the largest column: beside a column 1e5 times larger, all others may be as
good as untouched when it is small. With ``D = diag(H) + α``, residuals of ``D^-1/2 (H + αI) D^-1/2 u = D^-1/2 b`` have
no units, and the path to them is that of a Jacobi preconditioner: it ends in the same model. Columns of like scales,
text among them, need neither (docs/mathematics.md, section 3).
"""

from __future__ import annotations

import numpy as np

from rankwise.arrays import Floats, Matrix, is_sparse
from rankwise.objectives import BalancedObjective, QuadraticObjective

EPS = float(np.finfo(np.float64).eps)
# Beside a column that is so many times as large, the square of a column loses half of its digits.
_UNLIKE = 1e4
_RESIDUE = 1e-15  # rounding that centering leaves of a column that is constant inside queries, relative to the column


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


# Squares of columns, penalty included, that are so many times the median, or the median such a column, differ in scale.
# On text the largest is about 80 times the median, and the median 500 times the smallest.
_LIKE = 1e3


def differ_in_scale(sizes: Floats, alpha: float) -> bool:
    """Tell whether columns with this ``diag(H)`` need their units taken out."""
    seen = sizes[sizes > 0] + alpha
    if not seen.size:
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
