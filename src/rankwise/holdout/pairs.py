"""Leave-pair-out for one global ranking: each pair is scored by the model that saw neither of its rows.

Without the rows i and j, ``e_U`` solves the 2 × 2 system ``T_UU e_U = (Tt)_U`` with ``T = M - uu'``, so a pair costs
O(1) once ``T`` is there, and the held-out difference is ``(y_i - y_j) - (e_i - e_j)``. "size" convention; the 2009
paper's equation 38, whose pairs weigh 1, is this with ``alpha / (m - 2)``.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from rankwise import _core
from rankwise.arrays import Floats
from rankwise.holdout.decomposition import HoldOut, Rows
from rankwise.holdout.portions import leaves_one_level, sum_over_blocks
from rankwise.runtime.threads import blas_held

__all__ = ["leave_pair_out_differences", "leave_pair_out_error"]

_ROUNDING = 1e-11
_PAIR_BLOCK = 1 << 18  # entries of T made at a time: 2 MB


def leave_pair_out_differences(
    decomposition: HoldOut, y: Floats, root_share: Floats, pairs: tuple[Rows, Rows], alphas: Floats
) -> Floats:
    """Return ``f(i) - f(j)`` of the models fitted without rows i and j.

    Parameters
    ----------
    decomposition : HoldOut
        Of the centered problem ("size", ties included, magnitudes).
    y : (rows, outputs) float64
    root_share : (rows,) float64
        ``u``: the root of each row's share of the total weight.
    pairs : two arrays of row indices
    alphas : (alphas,) float64

    Returns
    -------
    (alphas, pairs, outputs) float64
    """
    i, j = pairs
    decomposition = decomposition.centred(root_share)
    residual = decomposition.residual(_centred(y, root_share), alphas)
    diagonals = decomposition.diagonals(alphas)
    out = np.empty((alphas.size, i.size, y.shape[1]))
    for a, alpha in enumerate(alphas):
        across = decomposition.of_pairs(i, j, float(alpha))[:, None]
        diagonal = diagonals[a][:, None]
        scaled = residual[a] / root_share[:, None]
        determinant = diagonal[i] * diagonal[j] - across**2
        mixed = residual[a][i] / root_share[j, None] - residual[a][j] / root_share[i, None]
        error = (diagonal[j] * scaled[i] - diagonal[i] * scaled[j] + across * mixed) / determinant
        out[a] = y[i] - y[j] - error
    for output in range(y.shape[1]):
        out[:, leaves_one_level(_level(y[:, output]), i, j), output] = 0.0
    return out


def leave_pair_out_error(
    decomposition: HoldOut,
    y: Floats,
    root_share: Floats,
    alphas: Floats,
    *,
    code: Rows | None = None,
    n_threads: int = 1,
) -> Floats:
    """Return the share of the pairs with different labels that the models fitted without them order wrongly.

    A tie counts one half. One minus this is the averaged leave-pair-out AUC where y has two levels. A pair weighs the
    product of its rows' weights.

    Parameters
    ----------
    decomposition, y, root_share, alphas
        As in `leave_pair_out_differences`.
    code : (rows,) int64, optional
        Equal rows share a number: they tie, however small alpha is and however large its rounding errors.
    n_threads : int
        Blocks of pairs are shared out to so many threads.

    Returns
    -------
    (alphas, outputs) float64
    """
    n_rows, n_outputs = y.shape
    decomposition = decomposition.centred(root_share)
    residual = decomposition.residual(_centred(y, root_share), alphas)
    residual = np.ascontiguousarray(np.moveaxis(residual, 2, 1))
    diagonals = np.ascontiguousarray(decomposition.diagonals(alphas))
    is_weighted = bool(np.ptp(root_share) > 0)
    labels = np.ascontiguousarray(y.T)
    levels = [_level(column) for column in labels]
    has_equal_rows = code is not None and np.unique(code).size < n_rows

    def scorer(block: tuple[slice, slice]) -> Floats:
        rows, columns = block
        counts = np.zeros((2, alphas.size, n_outputs))
        i, j = np.arange(rows.start, rows.stop)[:, None], np.arange(columns.start, columns.stop)[None, :]
        is_tie = [leaves_one_level(level, i, j) for level in levels]
        if has_equal_rows:
            assert code is not None
            is_tie = [tie | ((code[i] == code[j]) & (i < j)) for tie in is_tie]
        for a, alpha in enumerate(alphas):
            across = decomposition.between(rows, columns, float(alpha))
            for c in range(n_outputs):
                counts[:, a, c] = _core.count_ridge_pairs(
                    np.where(is_tie[c], np.nan, across)
                    if is_tie[c].any()
                    else across,  # neither right nor wrong
                    rows.start,
                    columns.start,
                    labels[c],
                    diagonals[a],
                    residual[a, c],
                    root_share,
                    is_weighted,
                    _ROUNDING,
                )
        return counts

    # Whole blocks in threads of their own: the library's threads would wait for each other at every product.
    with blas_held():
        wrong, right = sum_over_blocks(scorer, _upper_blocks(n_rows), n_rows, n_threads)
    total = np.array([_weight_of_pairs(column, root_share if is_weighted else None) for column in labels])
    # What rounding cannot tell from a tie, such as twin rows, is half wrong.
    return np.asarray(0.5 * (1.0 + (wrong - right) / total))


def _weight_of_pairs(labels: Floats, root_share: Floats | None) -> float:
    """Return what the pairs with different labels weigh together."""
    share = None if root_share is None else root_share**2
    level = np.bincount(_level(labels), weights=share)
    return float(level.sum() ** 2 - (level.astype(np.float64) ** 2).sum()) / 2


def _level(labels: Floats) -> Rows:
    return np.unique(labels, return_inverse=True)[1].astype(np.int64)


def _centred(y: Floats, root_share: Floats) -> Floats:
    """Return ``t`` in the units in which the weights add up to 1."""
    return root_share[:, None] * (y - root_share**2 @ y)


def _upper_blocks(n_rows: int) -> Iterator[tuple[slice, slice]]:
    step = max(1, _PAIR_BLOCK // n_rows)
    for first in range(0, n_rows, step):
        yield slice(first, min(first + step, n_rows)), slice(first, n_rows)
