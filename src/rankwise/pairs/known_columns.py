"""Columns with a coefficient in a model without held-out rows: rows that differ in none of them have equal scores.

A column in which no two compared rows differ, once a group of them is held out, has the coefficient 0 in that model:
words of a single query, categories of a single fold. Closed forms compute these zeros with rounding errors, which would
break ties between rows.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from rankwise.arrays import Bools, Floats, Ints, Matrix, is_sparse

__all__ = ["codes_of_groups", "codes_of_rows", "differing_pairs"]

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
    owners, own = _Owners(X.shape[1]), np.where(group < 0, _SHARED, group)
    by_row = np.issubdtype(beside.dtype, np.integer)
    for rows in _steps(X.shape[0], X.shape[1], sparse=is_sparse(X)):
        block = X[rows]
        other = X[beside[rows]] if by_row else beside
        if is_sparse(X):
            other = other if by_row else sp.csr_matrix(beside[None])[np.zeros(block.shape[0], dtype=np.int64)]
            owners.add((block - other)[trains[rows]], own[rows][trains[rows]])
        else:
            owners.add((block != other)[trains[rows]], own[rows][trains[rows]])
        if owners.are_all_shared:  # mostly the first rows tell
            break
    owner = owners.found
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
    owners = _Owners(X.shape[1])
    own = np.where(group < 0, _SHARED, group)
    steps = _steps(winner.size, X.shape[1], sparse=is_sparse(X))
    for pairs in steps:
        is_there = trains[pairs]
        owners.add(_differences(X, winner[pairs], loser[pairs])[is_there], own[pairs][is_there])
    owner, differs = owners.found, np.zeros(winner.size, dtype=np.bool_)
    for pairs in steps:
        pair, column = _differences(X, winner[pairs], loser[pairs]).nonzero()
        at = pair + pairs.start
        differs[at[owner[column] != group[at]]] = True
    return differs


class _Owners:
    """The groups in which each column differs, among the rows added so far."""

    def __init__(self, n_columns: int) -> None:
        self._least, self._most = np.full(n_columns, _LARGEST), np.full(n_columns, -_LARGEST)

    def add(self, differs: Any, own: Ints) -> None:
        """Add rows of groups that differ from others in some columns."""
        least, most = self._least, self._most
        if sp.issparse(differs):
            row, column = differs.nonzero()
            np.minimum.at(least, column, own[row])
            np.maximum.at(most, column, own[row])
            return
        np.minimum(least, np.where(differs, own[:, None], _LARGEST).min(axis=0, initial=_LARGEST), out=least)
        np.maximum(most, np.where(differs, own[:, None], -_LARGEST).max(axis=0, initial=-_LARGEST), out=most)

    @property
    def are_all_shared(self) -> bool:
        """Whether every column is already known to differ in several groups."""
        return bool((self._least < self._most).all())

    @property
    def found(self) -> Ints:
        """The only group in which each column differs, or `_SHARED` for columns without such a group."""
        return np.where(self._least == self._most, self._least, _SHARED)


def _steps(size: int, across: int, *, sparse: bool = False) -> list[slice]:
    step = _ROWS if sparse else max(1, _BLOCK // max(1, across))
    return [slice(first, min(first + step, size)) for first in range(0, size, step)]


def _differences(X: Matrix, winner: Ints, loser: Ints) -> Any:
    """Return an array or a sparse matrix that is not zero where rows differ."""
    return X[winner] - X[loser] if is_sparse(X) else X[winner] != X[loser]
