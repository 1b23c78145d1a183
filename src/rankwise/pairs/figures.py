"""Figures: the value of a metric on held-out entries and on each of their units, for standard errors."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rankwise.arrays import Floats, Ints
from rankwise.data.queries import Queries
from rankwise.metrics import Metric

_ROUNDING = 16 * np.finfo(np.float64).eps  # share of the largest score


@dataclass(frozen=True)
class Figure:
    """The value of a metric on held-out units: queries, blocks of the rows of one ranking, or compared couples.

    Attributes
    ----------
    value : float
    per_unit : (units,) float64
    share : (units,) float64
        How much each unit counts; they sum to 1.
    """

    value: float
    per_unit: Floats
    share: Floats

    @property
    def standard_error(self) -> float:
        """The standard error of the value; NaN where there is one unit."""
        n_units = int((self.share > 0).sum())
        if n_units < 2:
            return float("nan")
        centred = self.per_unit - (self.share * self.per_unit).sum()
        spread = float(((self.share * centred) ** 2).sum()) * n_units / (n_units - 1)
        return float(np.sqrt(spread))


def paired_difference(first: Figure, second: Figure) -> tuple[float, float]:
    """Return ``first - second`` and the standard error of that difference, unit by unit."""
    difference = Figure(first.value - second.value, first.per_unit - second.per_unit, first.share)
    return difference.value, difference.standard_error


class RowEvaluation:
    """The mean of a metric over queries; or over the folds of one ranking, whose units are blocks of rows in a fold.

    Attributes
    ----------
    weight : (rows,) float64
        The weight of each row; 0 for those that do not score.
    """

    def __init__(
        self, metric: Metric, labels: Floats, queries: Queries, weight: Floats | None, fold: Ints, block: Ints
    ) -> None:
        self.weight = (fold >= 0) * (np.ones(fold.size) if weight is None else weight)
        self._rows = rows = np.flatnonzero(self.weight)
        self._queries, self._n_queries = queries.subset(rows), len(queries)
        counted = None if weight is None or not metric.takes_weights else weight[rows]
        if len(self._queries) > 1:
            self._whole = self._units = metric.prepare(labels[rows], self._queries, sample_weight=counted)
            return
        own = fold[rows] * (block.max() + 1) + block[rows]
        self._whole = metric.prepare(labels[rows], fold[rows], sample_weight=counted)
        self._units = metric.prepare(labels[rows], own, sample_weight=counted)

    def figure(self, values: Floats) -> Figure:
        """Return the figure of the scores of all rows."""
        found = self._units.per_query(values[self._rows])
        per_unit = found.values[found.counted]
        share = np.full(per_unit.size, 1 / max(per_unit.size, 1))
        return Figure(float(self._whole(values[self._rows])), per_unit, share)

    def spread(self, values: Floats) -> float:
        """Return how far scores spread inside queries."""
        return spread_inside(values[self._rows], self._queries.codes, self.weight[self._rows])

    def counts(self) -> tuple[int, int, str]:
        """Return how many units score, how many there are, and their name in the plural."""
        if self._n_queries == 1:
            return self._rows.size, self.weight.size, "rows"
        return int(self._whole.counted.sum()), self._n_queries, "queries"


class PairEvaluation:
    """The share of the pairs that their differences contradict, or agree with, and that in each unit."""

    def __init__(self, metric: Metric, weight: Floats, unit: Ints) -> None:
        self.weight, self._metric, self._unit = weight, metric, unit

    def figure(self, values: Floats) -> Figure:
        """Return the figure of the differences of all pairs."""
        wrong = np.where(values == 0, float(self._metric.options["ties"]), values < 0)
        right = 1.0 - wrong if self._metric.greater_is_better else wrong
        total = np.bincount(self._unit, self.weight)
        is_there = total > 0
        per_unit = np.bincount(self._unit, self.weight * right)[is_there] / total[is_there]
        share = total[is_there] / total.sum()
        return Figure(float((share * per_unit).sum()), per_unit, share)

    def spread(self, values: Floats) -> float:
        """Return how far scores spread, from their differences."""
        return float(np.sqrt(np.average(values**2, weights=self.weight) / 2))

    def counts(self) -> tuple[int, int, str]:
        """Return how many pairs score, how many there are, and their name in the plural."""
        return int(np.count_nonzero(self.weight)), self.weight.size, "pairs"


Evaluation = RowEvaluation | PairEvaluation


def spread_inside(scores: Floats, codes: Ints, weight: Floats | None = None) -> float:
    """Return the standard deviation of scores inside queries; 0 where only rounding tells them apart."""
    weight = np.ones(scores.size) if weight is None else weight
    total = np.bincount(codes, weight)
    # From one of each query: scores that are all the same then have a mean that is none of rounding.
    first = np.zeros(total.size)
    first[codes[::-1]] = scores[::-1]
    own = scores - first[codes]
    largest = float(np.abs(own).max(initial=0.0))
    if largest <= _ROUNDING * float(np.abs(scores).max(initial=0.0)):
        return 0.0
    own = own / largest  # whose squares neither overflow nor vanish
    mean = np.bincount(codes, weight * own) / np.where(total > 0, total, 1.0)
    return largest * float(np.sqrt(np.average((own - mean[codes]) ** 2, weights=weight)))
