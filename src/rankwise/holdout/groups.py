"""Groups of rows held out in turn: whole queries, folds of them, or folds of the rows of one ranking.

Small groups of rows out of many: their systems by conjugate gradients, all alphas and many groups at once.

A group that is a small part of the data has little leverage: ``M_UU = I - H`` with ``H = Z_U (Z'Z + αI)^-1 Z_U'`` close
to zero, so a handful of steps from ``e_U`` itself solve the system to the last digit. A step multiplies by ``Z_U``
twice for all alphas together, where forming and factorising ``M_UU`` takes a matrix an alpha. Groups of about one size
are padded to it with rows of zeros, whose equations read ``x = 0``, and so a batch is one array.

Where a group has much leverage after all, the steps run out and the caller solves directly.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from rankwise.arrays import Floats
from rankwise.exceptions import InvalidInputError
from rankwise.holdout.decomposition import HoldOut, PrimalHoldOut, Rows
from rankwise.runtime.threads import blas_held, large_algebra

__all__ = ["groups_of", "held_out_residuals", "solve_in_lockstep"]

Task = TypeVar("Task")

_BATCH_FEATURES = 1 << 18  # doubles of features in a batch: 2 MB stay in cache from step to step
# Measured for groups of 20 to 70 rows, 46 to 500 columns and 2 to 1000 rows a column: convergence takes 4 steps where
# groups have little leverage and up to 24 where a group is a twentieth of the data, at a sixth to two thirds of the
# price of a direct solution; where 24 do not suffice they have cost a third of it.
_STEPS = 24
_TOLERANCE = 1e-14  # of the residual
_LARGE = 500  # rows in a group, from which on its own linear algebra is worth several threads
_FEW = 1 << 20  # numbers in all systems together, below which starting threads takes longer than solving them
_BATCH = 1 << 20  # doubles in a batch of small systems: they stay in cache


def groups_of(codes: npt.NDArray[np.integer]) -> list[Rows]:
    """Return the rows of each code, as the groups that are held out in turn; negative codes never are."""
    order = np.argsort(codes, kind="stable")
    bounds = np.searchsorted(codes[order], np.arange(int(codes.max(initial=-1)) + 2))
    return [order[a:b] for a, b in pairwise(bounds) if b > a]


def held_out_residuals(
    decomposition: HoldOut,
    target: Floats,
    groups: Sequence[Rows],
    alphas: Floats,
    *,
    n_threads: int = 1,
) -> Floats:
    """Return the residual of each group under the model that was fitted without it.

    Parameters
    ----------
    decomposition : HoldOut
        For one global ranking, `HoldOut.centred`.
    target : (rows, outputs) float64
        ``t``. Predictions in the factor's coordinates are ``t`` minus the residuals.
    groups : sequence of row indices
        Disjoint; no pair joins a group to the other rows, unless there is one global ranking.
    alphas : (alphas,) float64
    n_threads : int
        The number of threads that share the groups.

    Returns
    -------
    (alphas, rows, outputs) float64
        NaN for rows in no group.
    """
    residual = decomposition.residual(target, alphas)
    out = np.full_like(residual, np.nan)

    def leave_out(rows: Rows) -> None:
        is_large = rows.size > decomposition.rank
        # A large group has one matrix for all alphas of a batch: batches of one would make it for every alpha.
        for some in _batches(alphas.size, decomposition.rank**2 if is_large else rows.size**2):
            own = residual[some][:, rows]
            out[some, rows] = _without(decomposition, rows, alphas[some], own, is_large=is_large)

    def leave_out_batch(batch: Sequence[Rows]) -> None:
        assert isinstance(decomposition, PrimalHoldOut)
        out[:, np.concatenate(batch)], converged = solve_in_lockstep(decomposition, batch, alphas, residual)
        for at in np.flatnonzero(~converged).tolist():
            leave_out(batch[at])

    largest = max((rows.size for rows in groups), default=0)
    if largest > _LARGE or len(groups) < n_threads:
        for rows in groups:
            with large_algebra(rows.size):
                leave_out(rows)
        return out
    rank = decomposition.rank
    if alphas.size * sum(rows.size * min(rows.size, rank) for rows in groups) < _FEW:
        n_threads = 1
    # Threads of the linear algebra library lose more by waiting for each other than they win here.
    with blas_held():
        if isinstance(decomposition, PrimalHoldOut) and largest <= decomposition.rank:
            _share_out(leave_out_batch, list(_batches_of_like_size(groups, decomposition.rank)), n_threads)
        else:
            _share_out(leave_out, groups, n_threads)
    return out


def _without(
    decomposition: HoldOut, rows: Rows, alphas: Floats, residual: Floats, *, is_large: bool
) -> Floats:
    try:
        if is_large:
            return decomposition.without(rows, alphas, residual)
        return np.asarray(np.linalg.solve(decomposition.inside(rows, alphas), residual))
    except np.linalg.LinAlgError as error:
        raise InvalidInputError(
            "The alphas vanish by rounding beside columns as large as these.",
            "scale the columns, for example with sklearn.preprocessing.StandardScaler, or use larger alphas.",
        ) from error


def _share_out(work: Callable[[Task], None], tasks: Sequence[Task], n_threads: int) -> None:
    """Call `work` with every task, on several threads where there are several tasks for them."""
    if min(n_threads, len(tasks)) == 1:
        for task in tasks:
            work(task)
        return
    with ThreadPoolExecutor(n_threads) as pool:
        list(pool.map(work, tasks))


def _batches(n_alphas: int, system_size: int) -> Iterator[slice]:
    step = max(1, _BATCH // max(1, system_size))
    for first in range(0, n_alphas, step):
        yield slice(first, first + step)


def _batches_of_like_size(groups: Sequence[Rows], n_columns: int) -> Iterator[list[Rows]]:
    """Yield groups of about the same size, in batches whose features fit in cache."""
    batch: list[Rows] = []
    for rows in sorted(groups, key=len):
        if batch and (
            (len(batch) + 1) * rows.size * n_columns > _BATCH_FEATURES or 4 * batch[0].size < 3 * rows.size
        ):
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
    features = decomposition.coordinates[index]
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
