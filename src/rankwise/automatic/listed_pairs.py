"""Listed pairs in folds: what candidates are fitted to, and how what they say of held-out pairs is scored."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from rankwise.arrays import Floats, Ints, Matrix, Splits
from rankwise.automatic.figures import Figure
from rankwise.automatic.scaling import ScaledColumns
from rankwise.data.validation import Preferences
from rankwise.estimators.base import Ranker
from rankwise.metrics import Metric

__all__ = ["ListedPairs"]


@dataclass
class ListedPairs:
    """Pairs of rows, winner first.

    Attributes
    ----------
    columns : ScaledColumns
    pairs : Preferences
    unit : (pairs,) int64
        What is not divided between folds, and is one observation: all comparisons of two rows, or a group.
    metric : Metric
    cv : list of (train, test), or None
    scored : Preferences, optional
        The pairs of an evaluation set.
    cv_description : str
    """

    columns: ScaledColumns
    pairs: Preferences
    unit: Ints
    metric: Metric
    cv: Splits | None
    cv_description: str
    scored: Preferences | None = None

    @property
    def n_rows(self) -> int:
        """Rows to fit."""
        return int(self.columns.X.shape[0])

    @property
    def n_training_rows(self) -> int:
        """Rows that weigh something."""
        return self.n_rows

    def fit(
        self, estimator: Ranker, X: Matrix, scored: Matrix | None = None, *, by_rank: bool = False
    ) -> Ranker:
        """Fit all pairs."""
        if self.scored is None or scored is None:
            return self._fit(estimator, X, slice(None))
        weight = () if self.scored.weight is None else (self.scored.weight,)
        return self._fit(estimator, X, slice(None), eval_set=(scored, _edges(self.scored), *weight))

    def held_out(
        self, estimator: Ranker, model: Ranker, X: Matrix, scored: Matrix | None, *, by_rank: bool = False
    ) -> Floats:
        """Return the difference of each pair's scores, by the model that did not see it."""
        if self.scored is not None and scored is not None:
            return _difference(model.predict(scored), self.scored, slice(None))
        found = np.zeros(len(self.pairs))
        for train, test in self.cv or ():
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)  # stopped early on purpose
                fitted = self._fit(estimator, X, train)
            found[test] = _difference(fitted.predict(X), self.pairs, test)
        return found

    def _fit(
        self,
        estimator: Ranker,
        X: Matrix,
        chosen: Ints | slice,
        eval_set: tuple[Matrix | Ints | Floats, ...] | None = None,
    ) -> Ranker:
        magnitude, weight = (
            None if values is None else values[chosen] for values in (self.pairs.magnitude, self.pairs.weight)
        )
        return estimator.fit_pairs(X, _edges(self.pairs)[chosen], magnitude, weight, eval_set)

    @cached_property
    def _tested(self) -> tuple[Preferences, Floats, Ints]:
        """The pairs that score, how much each counts, and its unit."""
        pairs = self.pairs if self.scored is None else self.scored
        weight = np.ones(len(pairs)) if pairs.weight is None else pairs.weight.astype(np.float64)
        if pairs.magnitude is not None:
            weight = weight * (pairs.magnitude > 0)  # nobody won a tie
        unit = self.unit if self.scored is None else np.arange(len(pairs))
        if self.scored is None:
            is_tested = np.zeros(len(pairs), dtype=np.bool_)
            for _, test in self.cv or ():
                is_tested[test] = True
            weight = weight * is_tested
        return pairs, weight, unit

    @property
    def fold(self) -> Ints:
        """The fold that each pair is held out with; -1 for pairs that never are."""
        fold = np.full(len(self.pairs), -1)
        for number, (_, test) in enumerate(self.cv or ()):
            fold[test] = number
        return fold

    @property
    def tested_weight(self) -> Floats:
        """How much each pair counts: nothing where it was never held out, or has no winner."""
        return self._tested[1]

    def spread(self, held_out: Floats) -> float:
        """Return how far held-out differences spread around 0."""
        return float(np.sqrt(np.average(held_out**2, weights=self._tested[1]) / 2))

    def figure(self, held_out: Floats) -> Figure:
        """Return the share of the held-out pairs that the scores contradict, or agree with."""
        _, weight, unit = self._tested
        tie = float(getattr(self.metric, "ties", 0.5))
        wrong = np.where(held_out == 0, tie, held_out < 0)
        right = 1.0 - wrong if self.metric.greater_is_better else wrong
        total = np.bincount(unit, weight)
        is_there = total > 0
        values = np.bincount(unit, weight * right)[is_there] / total[is_there]
        share = total[is_there] / total.sum()
        return Figure(float((share * values).sum()), values, share)

    def constant_figure(self) -> Figure:
        """Return the figure of scores that are all the same."""
        return self.figure(np.zeros(len(self._tested[0])))

    def describe(self) -> str:
        """Say what scored."""
        n_pairs = int((self._tested[1] > 0).sum())
        if self.scored is not None:
            return f"an evaluation set of {n_pairs:,} pairs"
        return f"{self.cv_description}, {'all ' if n_pairs == len(self.pairs) else ''}{n_pairs:,} pairs"

    def sample(self, at_most: int, seed: int) -> Self:
        """Return the problem itself: pairs are few beside the rows they compare, or cost little."""
        return self


def _edges(pairs: Preferences) -> Ints:
    return np.column_stack([pairs.winner, pairs.loser])


def _difference(scores: Floats, pairs: Preferences, chosen: Ints | slice) -> Floats:
    return np.asarray(scores[pairs.winner[chosen]] - scores[pairs.loser[chosen]])
