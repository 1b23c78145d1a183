"""Small groups of rows out of many: their systems by conjugate gradients, all alphas and many groups at once.

A group that is a small part of the data has little leverage: ``M_UU = I - H`` with ``H = Z_U (Z'Z + αI)^-1 Z_U'`` close
to zero, so a handful of steps from ``e_U`` itself solve the system to the last digit. A step multiplies by ``Z_U``
twice for all alphas together, where forming and factorising ``M_UU`` takes a matrix an alpha. Groups of about one size
are padded to it with rows of zeros, whose equations read ``x = 0``, and so a batch is one array.

Where a group has much leverage after all, the steps run out and the caller solves directly.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from rankwise.arrays import Floats
from rankwise.holdout.decomposition import PrimalHoldOut, Rows

__all__ = ["batches_of_like_size", "solve_in_lockstep"]

_BATCH = 1 << 18  # doubles of features in a batch: 2 MB stay in cache from step to step
# Measured for groups of 20 to 70 rows, 46 to 500 columns and 2 to 1000 rows a column: convergence takes 4 steps where
# groups have little leverage and up to 24 where a group is a twentieth of the data, at a sixth to two thirds of the
# price of a direct solution; where 24 do not suffice they have cost a third of it.
_STEPS = 24
_TOLERANCE = 1e-14  # of the residual


def batches_of_like_size(groups: Sequence[Rows], n_columns: int) -> Iterator[list[Rows]]:
    """Yield groups of about the same size, so many at a time that their features stay in cache."""
    batch: list[Rows] = []
    for rows in sorted(groups, key=len):
        if batch and ((len(batch) + 1) * rows.size * n_columns > _BATCH or 4 * batch[0].size < 3 * rows.size):
            yield batch
            batch = []
        batch.append(rows)
    if batch:
        yield batch


def solve_in_lockstep(
    decomposition: PrimalHoldOut, groups: Sequence[Rows], alphas: Floats, residual: Floats
) -> tuple[Floats, npt.NDArray[np.bool_]]:
    """Return ``M_UU^-1 e_U`` for the rows of one group after the other, and which groups converged.

    Parameters
    ----------
    residual : (alphas, all rows, outputs) float64

    Returns
    -------
    solution : (alphas, rows of the groups, outputs) float64
    converged : (groups,) bool
    """
    sizes = np.array([rows.size for rows in groups])
    is_row = np.arange(sizes.max()) < sizes[:, None]
    index = np.zeros(is_row.shape, dtype=np.int64)
    index[is_row] = np.concatenate(groups)
    n_alphas, _, n_outputs = residual.shape
    features = decomposition.features[index]
    features[~is_row] = 0.0
    own = np.moveaxis(residual[:, index], 0, 2).reshape(*index.shape, n_alphas * n_outputs)
    own[~is_row] = 0.0
    shrinkage = np.repeat(decomposition.shrinkage(alphas).T, n_outputs, axis=1)
    solution, converged = _conjugate_gradients(features, shrinkage, own)
    return np.moveaxis(solution[is_row].reshape(-1, n_alphas, n_outputs), 1, 0), converged


def _conjugate_gradients(Z: Floats, d: Floats, e: Floats) -> tuple[Floats, npt.NDArray[np.bool_]]:
    """Solve ``(I - Z diag(d_c) Z') x_c = e_c``, column by column of a batch (groups, rows, columns)."""

    def leverage(v: Floats) -> Floats:
        inside = Z.transpose(0, 2, 1) @ v
        inside *= d
        return np.asarray(Z @ inside)

    x = e.copy()
    r = leverage(e)
    p = r.copy()
    rho = _dots(r, r)
    enough = _TOLERANCE**2 * _dots(e, e)
    for _ in range(_STEPS):
        if (rho <= enough).all():
            break
        q = p - leverage(p)
        curvature = _dots(p, q)
        step = np.divide(rho, curvature, out=np.zeros_like(rho), where=(curvature > 0) & (rho > enough))
        x += step * p
        r -= step * q
        before, rho = rho, _dots(r, r)
        p *= np.divide(rho, before, out=np.zeros_like(rho), where=before > 0)
        p += r
    return x, np.asarray((rho <= enough).all(axis=(1, 2)))


def _dots(a: Floats, b: Floats) -> Floats:
    return np.asarray(np.einsum("gic,gic->gc", a, b))[:, None, :]
