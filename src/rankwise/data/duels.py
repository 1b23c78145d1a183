"""Duels: winners and losers side by side, in two tables or in the columns of one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from rankwise.arrays import AnyArray, ArrayLike, InMemory, Ints, MatrixLike
from rankwise.data.containers import as_array, readable
from rankwise.exceptions import InvalidInputError

# Prefixes of column names: winner_age and loser_age are the ages of the winner and of the loser.
WINNER_AND_LOSER = ("winner_", "loser_")


def duel_columns(names: Sequence[str]) -> list[str]:
    """Return the features of both sides: ``["age"]`` if there are columns ``winner_age`` and ``loser_age``."""
    winner, loser = WINNER_AND_LOSER
    found = [name.removeprefix(winner) for name in names if name.startswith(winner)]
    return [name for name in found if name and loser + name in names]


def are_rows(X: object, other: Any) -> bool:
    """Tell whether `other` holds rows to compare with those of X, and not pairs of row numbers."""
    readable("X", X)
    readable("pairs", other)
    if hasattr(X, "columns") and hasattr(other, "columns"):
        return [str(name) for name in X.columns] == [str(name) for name in other.columns]
    shape = as_array("pairs", other).shape if getattr(other, "shape", None) is None else other.shape
    return len(shape) == 2 and shape[1] != 2  # a list of pairs has two columns


def row_numbers(X: MatrixLike, pairs: ArrayLike | MatrixLike) -> AnyArray | None:
    """Return pairs of row numbers of X as an array; None where `pairs` holds rows to compare with those of X."""
    readable("X", X)
    readable("pairs", pairs)
    if sp.issparse(pairs) or (hasattr(X, "columns") and hasattr(pairs, "columns") and are_rows(X, pairs)):
        return None
    edges = as_array("pairs", pairs)
    if edges.ndim != 2 or edges.shape[1] != 2 or edges.dtype.kind not in "iu":
        return None
    given = X if hasattr(X, "shape") else as_array("X", X)
    if tuple(given.shape) == edges.shape and np.asarray(given).dtype.kind in "iu":
        raise InvalidInputError(
            "X and pairs have the same shape, so that pairs may be row numbers or rows of X's two columns.",
            "turn X into real numbers where pairs are row numbers, and both where they are rows.",
        )
    return edges


def duel_sides(duels: Any) -> tuple[Any, Any]:
    """Split a table with columns such as ``winner_age`` and ``loser_age`` into two tables with columns ``age``.

    Parameters
    ----------
    duels : data frame of pandas or polars, or Arrow table
        A row for each duel. Columns of one side only are left out.

    Returns
    -------
    winners, losers : tables
    """
    readable("X", duels)
    table = _arrow(duels)
    found = duel_columns(_names(table))
    if not found:
        raise InvalidInputError(
            "There are no pairs, and no two columns such as winner_age and loser_age.",
            "pass pairs of row numbers, a second table with the rows that lost, or a table with such columns.",
        )
    sides = [[side + name for name in found] for side in WINNER_AND_LOSER]
    if hasattr(table, "iloc"):
        first, second = (table[side].set_axis(found, axis=1) for side in sides)
    else:
        first, second = (table.select(side).rename_columns(found) for side in sides)
    return first, second


def stack_duels(winners: Any, losers: Any) -> tuple[Any, Ints]:
    """Stack two tables or matrices; row k of the first won against row k of the second.

    Parameters
    ----------
    winners, losers : data frames, Arrow tables or matrices
        With the same columns.

    Returns
    -------
    X : table or matrix
    pairs : (duels, 2) int64
    """
    winners, losers = _arrow(winners), _arrow(losers)
    if not hasattr(winners, "columns"):
        return stack_preferred(winners, losers)
    if len(losers) != len(winners) or _names(losers) != _names(winners):
        shapes = [f"{len(side):,} × {len(_names(side))}" for side in (winners, losers)]
        raise InvalidInputError(
            f"The two tables have {' and '.join(shapes)} rows and columns.",
            "pass tables with the same columns; row k of both is duel k.",
        )
    # Whoever has such a table has the package.
    if hasattr(winners, "iloc"):
        import pandas as pd  # noqa: PLC0415

        return pd.concat([winners, losers], ignore_index=True), _pairs(len(winners))
    import pyarrow as pa  # noqa: PLC0415

    return pa.concat_tables([winners, losers], promote_options="permissive"), _pairs(len(winners))


def stack_preferred(preferred: ArrayLike, rejected: ArrayLike) -> tuple[InMemory, Ints]:
    """Turn a matrix of preferred rows and a matrix of rejected rows into one matrix and a list of pairs.

    Parameters
    ----------
    preferred, rejected : array-like or sparse matrix of shape (pairs, features)
        Row k of `preferred` was preferred to row k of `rejected`. Data frames become arrays.

    Returns
    -------
    X : ndarray or CSR matrix of shape (2 pairs, features)
        The preferred rows, then the rejected ones.
    pairs : ndarray of shape (pairs, 2)

    Examples
    --------
    >>> from rankwise.data import stack_preferred
    >>> X, pairs = stack_preferred([[1.0, 2.0], [0.0, 3.0]], [[1.0, 1.0], [0.0, 1.0]])
    >>> X.shape
    (4, 2)
    >>> pairs.tolist()
    [[0, 2], [1, 3]]
    """
    sides = [
        readable(name, side) if sp.issparse(side) else as_array(name, side)
        for name, side in (("preferred", preferred), ("rejected", rejected))
    ]
    if any(side.ndim != 2 for side in sides) or sides[0].shape != sides[1].shape:
        raise InvalidInputError(
            f"preferred and rejected have shapes {sides[0].shape} and {sides[1].shape}.",
            "pass two matrices of the same shape, row k of both being pair k.",
        )
    is_sparse = any(map(sp.issparse, sides))
    return sp.vstack(sides, format="csr") if is_sparse else np.vstack(sides), _pairs(sides[0].shape[0])


def _pairs(n: int) -> Ints:
    """Return the pairs of the first n rows and the n rows below them."""
    rows = np.arange(n, dtype=np.int64)
    return np.column_stack([rows, rows + n])


def read_duels(X: Any, pairs: Any) -> tuple[Any, Any]:
    """Return rows and a list of pairs; the rows of duels are stacked."""
    if pairs is None:
        X, pairs = duel_sides(X)
    elif not are_rows(X, pairs):
        return X, pairs
    return stack_duels(X, pairs)


def _arrow(table: Any) -> Any:
    """Return a data frame of polars as an Arrow table, everything else as it is."""
    return table.to_arrow() if hasattr(table, "to_arrow") else table


def _names(table: Any) -> list[str]:
    return [str(name) for name in getattr(table, "column_names", getattr(table, "columns", []))]
