"""Preferences come in: lists of pairs, preferred and rejected rows as two matrices, clicks on shown results.

A list of pairs is an integer array of shape (pairs, 2) whose rows are (winner, loser), as row numbers of X.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import scipy.sparse

from rankwise.arrays import AnyArray, Floats, InMemory, Ints
from rankwise.data.containers import as_array, check_total, unmasked
from rankwise.exceptions import InvalidInputError, NoPairsError

__all__ = ["Preferences", "check_pairs", "check_pairs_to_score", "stack_preferred"]


@dataclass(frozen=True)
class Preferences:
    """A list of pairs that came through validation.

    Attributes
    ----------
    winner, loser : (pairs,) int64
    magnitude : (pairs,) float64 or None
        By how much the winner is preferred; None where nothing was said.
    weight : (pairs,) float64 or None
        None where every pair weighs 1.
    """

    winner: Ints
    loser: Ints
    magnitude: Floats | None = None
    weight: Floats | None = None

    def __len__(self) -> int:
        return int(self.winner.shape[0])


def check_pairs(
    pairs: object,
    n_rows: int,
    magnitude: npt.ArrayLike | None = None,
    weight: npt.ArrayLike | None = None,
) -> Preferences:
    """Check a list of pairs against the number of rows that it refers to.

    Pairs that come twice or contradict each other are legal: the first is weight, the second noise.
    """
    if pairs is None:
        raise InvalidInputError(
            "There are no pairs.",
            "pass pairs of row numbers (winner, loser); AutoRanker also takes tables of duels.",
        )
    edges = as_array("pairs", pairs)
    if edges.size == 0:
        raise NoPairsError(
            "The list of pairs is empty.", "pass at least one pair (winner, loser) of row numbers."
        )
    if edges.ndim != 2 or edges.shape[1] != 2:
        raise InvalidInputError(
            f"pairs must have shape (pairs, 2), got {edges.shape}.",
            "pass np.column_stack([winner, loser]).",
        )
    edges = _as_row_numbers(edges)
    outside = (edges < 0) | (edges >= n_rows)
    if outside.any():
        first = int(np.argmax(outside.any(axis=1)))
        raise InvalidInputError(
            f"Pair {first} is {_show(edges[first])}, but rows are numbered from 0 to {n_rows - 1}.",
            "pairs hold row numbers of X, counted from 0; translate item ids to row numbers first.",
        )
    winner, loser = np.ascontiguousarray(edges[:, 0]), np.ascontiguousarray(edges[:, 1])
    itself = winner == loser
    if itself.any():
        raise InvalidInputError(
            f"Pair {int(np.argmax(itself))} prefers row {int(winner[np.argmax(itself)])} to itself.",
            "drop such pairs; two equal rows of X have two row numbers.",
        )
    return Preferences(
        winner,
        loser,
        _check_amounts(
            "magnitude", magnitude, winner.size, "swap winner and loser instead; 0 says that they tie."
        ),
        _check_pair_weights(weight, winner.size),
    )


def check_pairs_to_score(
    pairs: npt.ArrayLike, n_rows: int, weight: npt.ArrayLike | None = None
) -> Preferences:
    """Check the pairs of an evaluation set; see `check_pairs`."""
    listed = unmasked("pairs of eval_set", pairs)
    weights = None if weight is None else unmasked("weight of eval_set", weight)
    if np.size(listed) == 0 or (weights is not None and np.size(weights) and not np.any(weights)):
        raise NoPairsError(
            "eval_set has no pair that weighs anything, so it cannot score a ranking.",
            "pass at least one pair (winner, loser), or leave eval_set out to score by a share of the pairs.",
        )
    return check_pairs(listed, n_rows, weight=weights)


def stack_preferred(preferred: npt.ArrayLike, rejected: npt.ArrayLike) -> tuple[InMemory, Ints]:
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
        unmasked(name, side) if scipy.sparse.issparse(side) else as_array(name, side)
        for name, side in (("preferred", preferred), ("rejected", rejected))
    ]
    if any(side.ndim != 2 for side in sides) or sides[0].shape != sides[1].shape:
        raise InvalidInputError(
            f"preferred and rejected have shapes {sides[0].shape} and {sides[1].shape}.",
            "pass two matrices of the same shape, row k of both being pair k.",
        )
    n_pairs = sides[0].shape[0]
    rows = np.arange(n_pairs, dtype=np.int64)
    pairs = np.column_stack([rows, rows + n_pairs])
    if any(scipy.sparse.issparse(side) for side in sides):
        return scipy.sparse.vstack(sides, format="csr"), pairs
    return np.vstack(sides), pairs


def _as_row_numbers(edges: AnyArray) -> Ints:
    # Beyond 2^62 there is no row: such numbers stay large instead of wrapping around.
    if edges.dtype.kind in "iu":
        return (np.minimum(edges, 1 << 62) if edges.dtype == np.uint64 else edges).astype(
            np.int64, copy=False
        )
    # Data frames and joins turn integers into floats; take them back where nothing is lost.
    if edges.dtype.kind == "f" and np.isfinite(edges).all() and (edges == np.floor(edges)).all():
        return np.asarray(np.clip(edges, -(2.0**62), 2.0**62), dtype=np.int64)
    raise InvalidInputError(
        f"pairs must hold row numbers (integers), got {edges.dtype}.",
        "translate item ids to row numbers first, for example with np.unique(ids, return_inverse=True); drop "
        "pairs with missing entries.",
    )


def _check_pair_weights(weight: npt.ArrayLike | None, n_pairs: int) -> Floats | None:
    weights = _check_amounts("weight", weight, n_pairs, "use 0 to leave a pair out.")
    if weights is not None:
        if not (weights > 0).any():
            raise InvalidInputError(
                "weight is zero for every pair.", "give at least one pair a positive weight."
            )
        check_total("weight", float(weights.sum()), "use numbers around 1.")
    return weights


def _check_amounts(name: str, values: object, n_pairs: int, if_negative: str) -> Floats | None:
    if values is None:
        return None
    values = unmasked(name, values)
    try:
        amounts = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidInputError(
            f"{name} must be numbers ({error}).", "pass one non-negative number per pair."
        ) from error
    if amounts.ndim == 0:
        amounts = np.full(n_pairs, amounts)
    if amounts.shape != (n_pairs,):
        raise InvalidInputError(
            f"{name} must have shape ({n_pairs},), got {amounts.shape}.", "pass one number per pair."
        )
    if not np.isfinite(amounts).all():
        bad = int(np.argmin(np.isfinite(amounts)))
        raise InvalidInputError(
            f"{name} contains NaN or infinity, first for pair {bad}.",
            "replace those entries or drop those pairs.",
        )
    check_total(name, float(amounts.max(initial=0.0)), "use numbers around 1.")
    if (amounts < 0).any():
        raise InvalidInputError(f"{name} of pair {int(np.argmax(amounts < 0))} is negative.", if_negative)
    return amounts


def _show(pair: Ints) -> str:
    return f"({int(pair[0])}, {int(pair[1])})"
