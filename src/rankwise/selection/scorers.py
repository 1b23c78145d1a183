"""What the scores are worth of rows or pairs that a model was not fitted on: lower is better."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from rankwise.arrays import Floats, Ints
from rankwise.metrics import Evaluator
from rankwise.metrics.preferences import contradicted

__all__ = ["DifferenceScorer", "MetricScorer", "PreferenceScorer", "Scorer"]


class Scorer(Protocol):
    """Something that has an opinion on scores."""

    def errors(self, scores: Floats) -> Floats:
        """Score (alphas, rows) scores, alpha by alpha; lower is better."""


@dataclass(frozen=True)
class MetricScorer:
    """A metric with its labels prepared, turned so that lower is better."""

    evaluator: Evaluator
    greater_is_better: bool

    @property
    def n_counted(self) -> int:
        """How many queries the mean is over."""
        return int(self.evaluator.counted.sum())

    def errors(self, scores: Floats) -> Floats:
        """Score (alphas, rows) scores."""
        values = self.evaluator.many(scores.T)
        return -values if self.greater_is_better else values


@dataclass(frozen=True)
class DifferenceScorer:
    """The preference error, where a "row" is a pair and its score is winner minus loser.

    Attributes
    ----------
    share : (pairs,) float64
        How much of the error each pair stands for; they sum to 1.
    tie_cost : float
        What a pair costs whose rows have equal scores.
    greater_is_better : bool
        Whether the concordance is meant, 1 minus the error, so that what is returned is minus that.
    """

    share: Floats
    tie_cost: float = 0.5
    greater_is_better: bool = False

    def errors(self, differences: Floats) -> Floats:
        """Score (alphas, pairs) differences of scores."""
        errors = np.array([contradicted(row, self.share, self.tie_cost) for row in differences])
        return errors - 1.0 if self.greater_is_better else errors


@dataclass(frozen=True)
class PreferenceScorer:
    """The preference error of rows that a list of pairs compares."""

    winner: Ints
    loser: Ints
    by_difference: DifferenceScorer

    def errors(self, scores: Floats) -> Floats:
        """Score (alphas, rows) scores."""
        # One alpha at a time: the differences of all of them would be alphas x pairs numbers.
        scored = [self.by_difference.errors((row[self.winner] - row[self.loser])[None])[0] for row in scores]
        return np.array(scored)
