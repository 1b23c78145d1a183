"""The error on a list of preferences, where no labels exist."""

from __future__ import annotations

from typing import Any

import numpy as np

from rankwise.data.validation import check_numbers, check_weights
from rankwise.exceptions import InvalidInputError, NoPairsError
from rankwise.metrics.metric import Doubles
from rankwise.metrics.pairwise import check_tie_cost

__all__ = ["contradicted", "preference_error"]


def preference_error(scores: Any, pairs: Any, weight: Any = None, *, ties: float = 0.5) -> float:
    """Share of preferences that the scores contradict.

    Parameters
    ----------
    scores : (rows,) numbers
        The predictions; larger is better.
    pairs : (preferences, 2) integers
        Winner and loser of each preference, as row numbers.
    weight : (preferences,) numbers, optional
        Weights of the preferences.
    ties : {0.5, 1, 0}
        What a preference costs whose rows have equal scores.

    Returns
    -------
    float
        Between 0 and 1.

    Examples
    --------
    >>> from rankwise.metrics import preference_error
    >>> preference_error([0.3, 0.1, 0.2], [[0, 1], [1, 2], [0, 2], [2, 1]])
    0.25
    """
    check_tie_cost(ties)
    column = check_numbers("scores", scores)
    edges = np.asarray(pairs.to_numpy() if hasattr(pairs, "to_numpy") else pairs)
    if edges.size == 0:
        raise NoPairsError("the list of preferences is empty.", "pass at least one pair (winner, loser).")
    if edges.ndim != 2 or edges.shape[1] != 2 or edges.dtype.kind not in "iu":
        raise InvalidInputError(
            f"pairs must be integers of shape (preferences, 2), got {edges.dtype} of shape {edges.shape}.",
            "pass the row numbers of winner and loser, for example np.column_stack([winners, losers]).",
        )
    if edges.min() < 0 or edges.max() >= column.shape[0]:
        raise InvalidInputError(
            f"pairs name rows from {edges.min()} to {edges.max()}, but scores have {column.shape[0]} rows.",
            "rows are numbered from 0; map your own ids to row numbers first.",
        )
    itself = edges[:, 0] == edges[:, 1]
    if itself.any():
        raise InvalidInputError(
            f"preference {int(np.argmax(itself))} sets row {edges[np.argmax(itself), 0]} against itself.",
            "drop such pairs.",
        )
    winner, loser = column[edges[:, 0]], column[edges[:, 1]]
    weights = check_weights(weight, edges.shape[0])
    if weights is None:
        weights = np.ones(edges.shape[0])
    return contradicted(winner - loser, weights, float(ties)) / float(weights.sum())


def contradicted(difference: Doubles, weight: Doubles, tie_cost: float) -> float:
    """Add up the weights of the preferences whose winner scores less, and `tie_cost` times those of ties.

    Parameters
    ----------
    difference : (preferences,) float64
        Score of the winner minus score of the loser.
    weight : (preferences,) float64
    tie_cost : float
    """
    return float(weight[difference < 0].sum() + tie_cost * weight[difference == 0].sum())
