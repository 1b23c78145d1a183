"""The error on a list of preferences, where no labels exist."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from rankwise.arrays import ArrayLike
from rankwise.data.preferences import check_pairs
from rankwise.data.validation import check_numbers
from rankwise.exceptions import InvalidInputError
from rankwise.metrics.metric import Doubles, Evaluator, Metric, order_free_sum
from rankwise.metrics.pairwise import check_tie_cost

if TYPE_CHECKING:
    from rankwise.data.queries import Queries

__all__ = ["LogLoss", "contradicted", "preference_error"]


@dataclass(frozen=True, kw_only=True)
class LogLoss(Metric):
    """The log-loss of listed pairs whose differences of scores are log-odds: what `scoring="auto"` may stand for."""

    base_name: ClassVar[str] = "log_loss"
    greater_is_better: ClassVar[bool] = False

    def describe(self) -> str:
        """Return the convention in words."""
        return "log-loss: mean of -log of the probability that was given to the winner of a pair"

    def _prepare(
        self, labels: Doubles, queries: Queries, weights: Doubles | None, n_threads: int
    ) -> Evaluator:
        raise InvalidInputError(
            "The log-loss is of listed pairs, and labels list none.", "use fit_pairs, or another scoring."
        )


def preference_error(
    pairs: ArrayLike, scores: ArrayLike, weight: ArrayLike | None = None, *, ties: float = 0.5
) -> float:
    """Share of preferences that the scores contradict.

    Parameters
    ----------
    pairs : (preferences, 2) integers
        Winner and loser of each preference, as row numbers.
    scores : (rows,) numbers
        The predictions; larger is better.
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
    >>> preference_error([[0, 1], [1, 2], [0, 2], [2, 1]], [0.3, 0.1, 0.2])
    0.25
    """
    check_tie_cost(ties)
    column = check_numbers("scores", scores)
    checked = check_pairs(pairs, column.shape[0], weight=weight)
    difference = column[checked.winner] - column[checked.loser]
    weights = np.ones(len(checked)) if checked.weight is None else checked.weight
    return contradicted(difference, weights, float(ties)) / float(order_free_sum(weights))


def contradicted(difference: Doubles, weight: Doubles, tie_cost: float) -> float:
    """Add up the weights of the preferences whose winner scores less, and `tie_cost` times those of ties.

    Parameters
    ----------
    difference : (preferences,) float64
        Score of the winner minus score of the loser.
    weight : (preferences,) float64
    tie_cost : float
    """
    return float(order_free_sum(weight[difference < 0]) + tie_cost * order_free_sum(weight[difference == 0]))
