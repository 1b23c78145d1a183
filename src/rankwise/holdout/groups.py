"""Groups of rows held out in turn: whole queries, folds of them, or folds of the rows of one ranking."""

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
from rankwise.holdout.lockstep import batches_of_like_size, solve_in_lockstep
from rankwise.runtime.threads import blas_held, large_algebra

__all__ = ["groups_of", "held_out_residuals"]

Task = TypeVar("Task")

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
        Groups are shared out to so many threads.

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
            _share_out(leave_out_batch, list(batches_of_like_size(groups, decomposition.rank)), n_threads)
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
            "The alphas are lost beside columns as large as these, once rows are held out.",
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
