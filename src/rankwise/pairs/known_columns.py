"""Columns with a coefficient in a model without held-out rows: rows that differ in none of them have equal scores.

A column in which no two compared rows differ, once a group of them is held out, has the coefficient 0 in that model:
words of a single query, categories of a single fold. Closed forms compute these zeros with rounding errors, which would
break ties between rows.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import scipy.sparse as sp

from rankwise.arrays import Bools, Floats, Ints, Matrix, is_sparse

_BLOCK = 1 << 17  # entries of an array that are looked at together: they stay in cache
_ROWS = 4096  # and rows of a sparse matrix
_SHARED = -2  # columns that differ in several groups, in rows that none holds out, or nowhere
_MISSING = 1.0e-7 * np.pi  # what no table has in the place of a missing value
_LARGEST = np.iinfo(np.int64).max


def codes_of_groups(X: Matrix, beside: Ints | Floats, group: Ints, trains: Bools) -> Ints:
    """Number rows so that rows of a group that tie by the model without their group share a number.

    Parameters
    ----------
    X : (rows, columns) array or CSR matrix
    beside : (rows,) int64, or (columns,) float64
        For each row, one row of its query where groups hold whole queries; else the value of most rows in each column.
    group : (rows,) int64
        The group that each row is held out with, -1 for none.
    trains : (rows,) bool
        Whether the row has a positive weight.
    """
    owner = _owners(X, np.arange(X.shape[0]), beside, group, trains)
    return codes_of_rows(X, owner, group) if (owner >= 0).any() else codes_of_rows(X)


def codes_of_rows(X: Matrix, owner: Ints | None = None, group: Ints | None = None) -> Ints:
    """Number rows so that equal rows share a number, by a random projection.

    Parameters
    ----------
    owner : (columns,) int64, optional
        The group without whose rows each column is not known, if there is one.
    group : (rows,) int64, optional
        The group of each row, whose own columns count as 0.
    """
    direction = np.random.default_rng(0).normal(size=X.shape[1])
    if is_sparse(X):
        if owner is not None and group is not None:
            row = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))
            known = np.where(owner[X.indices] == group[row], 0.0, X.data)
            X = sp.csr_matrix((known, X.indices, X.indptr), shape=X.shape)
        content = X @ direction
    else:
        content = np.empty(X.shape[0])
        for rows in _steps(*X.shape):
            block = X[rows]
            if owner is not None and group is not None:
                block = np.where(owner == group[rows, None], 0.0, block)
            # Row by row, in the same way wherever a row stands; a product by BLAS would not be.
            content[rows] = (block * direction).sum(axis=1)
        if np.isnan(content).any():
            return codes_of_rows(np.nan_to_num(np.asarray(X), nan=_MISSING), owner, group)
    return np.unique(content, return_inverse=True)[1].reshape(-1).astype(np.int64, copy=False)


def differing_pairs(X: Matrix, winner: Ints, loser: Ints, group: Ints, trains: Bools) -> Bools:
    """Tell which pairs of rows differ in a column with a coefficient in the model without their group.

    Parameters
    ----------
    group, trains : (pairs,)
        As for rows in `codes_of_groups`.
    """
    owner, differs = _owners(X, winner, loser, group, trains), np.zeros(winner.size, dtype=np.bool_)
    for at, column in _differences(X, winner, loser):
        differs[at[owner[column] != group[at]]] = True
    return differs


def _owners(X: Matrix, one: Ints, other: Ints | Floats, group: Ints, trains: Bools) -> Ints:
    """Return the only group in which each column differs, or `_SHARED` for columns without such a group."""
    least, most = np.full(X.shape[1], _LARGEST), np.full(X.shape[1], -_LARGEST)
    own = np.where(group < 0, _SHARED, group)
    for at, column in _differences(X, one, other):
        kept = trains[at]
        np.minimum.at(least, column[kept], own[at[kept]])
        np.maximum.at(most, column[kept], own[at[kept]])
        if (least < most).all():  # mostly the first rows tell
            break
    return np.where(least == most, least, _SHARED)


def _differences(X: Matrix, one: Ints, other: Ints | Floats) -> Iterator[tuple[Ints, Ints]]:
    """Yield where rows differ from other rows, or from a value of each column: positions in `one`, and columns."""
    by_row = np.issubdtype(other.dtype, np.integer)
    beside = X if by_row else sp.csr_matrix(other[None]) if is_sparse(X) else other[None]
    for part in _steps(one.size, X.shape[1], sparse=is_sparse(X)):
        rows = X[one[part]]
        others = beside[other[part] if by_row else np.zeros(rows.shape[0], dtype=np.int64)]
        at, column = ((rows - others) if is_sparse(X) else (rows != others)).nonzero()
        yield at + part.start, column


def _steps(size: int, across: int, *, sparse: bool = False) -> list[slice]:
    step = _ROWS if sparse else max(1, _BLOCK // max(1, across))
    return [slice(first, min(first + step, size)) for first in range(0, size, step)]
