"""What the scores are worth of rows or pairs that a model was not fitted on: errors, of which lower is better."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol, TypeVar

import numpy as np

from rankwise.arrays import Floats, Ints, Matrix, Rows
from rankwise.data.queries import Queries
from rankwise.data.validation import Preferences
from rankwise.design import Design, shifted_design
from rankwise.exceptions import InvalidInputError, NoPairsError
from rankwise.losses import LOSSES
from rankwise.metrics import Evaluator, Metric, get_metric
from rankwise.metrics.pairwise import LOG_LOSS, contradicted
from rankwise.problems.training import PairData, TrainingData

__all__ = [
    "EvalSet",
    "MetricScorer",
    "PreferenceScorer",
    "Scorer",
    "oriented",
    "pair_eval_set",
    "pair_scorer",
    "resolve_scoring",
    "row_eval_set",
    "row_scorer",
    "scorer_of_pairs",
    "scorer_of_rows",
]

Numbers = TypeVar("Numbers", float, Floats)

# Decimals of errors: equally good models tie, and neither rounding nor the order of rows decides between them.
_DIGITS = 13


def oriented(values: Numbers, *, greater_is_better: bool) -> Numbers:
    """Turn the values of a metric into errors, or errors into values: nothing else looks at which way is better."""
    return -values if greater_is_better else values


class Scorer(Protocol):
    """Scores of held-out rows in, errors out."""

    def errors(self, scores: Floats) -> Floats:
        """Score (alphas, rows) scores, alpha by alpha; lower is better."""


@dataclass(frozen=True)
class EvalSet:
    """Rows of their own to score by, with one scorer per output, and the same for a reader."""

    rows: Design
    scorers: Sequence[Scorer]
    description: str = ""


@dataclass(frozen=True)
class MetricScorer:
    """A metric with its labels prepared."""

    evaluator: Evaluator
    greater_is_better: bool

    @property
    def n_counted(self) -> int:
        """How many queries the mean is over."""
        return int(self.evaluator.counted.sum())

    def errors(self, scores: Floats) -> Floats:
        """Score (alphas, rows) scores."""
        values = np.round(self.evaluator.many(scores.T), _DIGITS)
        return oriented(values, greater_is_better=self.greater_is_better)


@dataclass(frozen=True)
class PreferenceScorer:
    """The preference error, or the log-loss, of rows that a list of pairs compares.

    Attributes
    ----------
    share : (pairs,) float64
        How much of the error each pair stands for; they sum to 1.
    metric : Metric
        The pairwise error, the concordance or the log-loss.
    pairs : (winner, loser) of (pairs,) int64, or None
        None where a "row" is a pair already, and its score is winner minus loser.
    """

    share: Floats
    metric: Metric
    pairs: tuple[Ints, Ints] | None = None

    def errors(self, scores: Floats) -> Floats:
        """Score (alphas, rows) scores."""
        # One alpha at a time: the differences of all of them would be alphas x pairs numbers.
        lost = np.round([self._lost(self._differences(row)) for row in scores], _DIGITS)
        return oriented(1.0 - lost, greater_is_better=True) if self.metric.greater_is_better else lost

    def compared(self) -> tuple[Rows, PreferenceScorer]:
        """Return the rows that are in pairs, and the scorer of those alone."""
        assert self.pairs is not None
        rows, place = np.unique(np.concatenate(self.pairs), return_inverse=True)
        winner, loser = place.reshape(2, -1).astype(np.int64)
        return rows, replace(self, pairs=(winner, loser))

    def _lost(self, differences: Floats) -> float:
        if self.metric == LOG_LOSS:  # differences of scores are log-odds
            return float((self.share * np.logaddexp(0.0, -differences)).sum())
        return contradicted(differences, self.share, float(self.metric.options["ties"]))

    def _differences(self, row: Floats) -> Floats:
        return row if self.pairs is None else row[self.pairs[0]] - row[self.pairs[1]]


def resolve_scoring(scoring: str | Metric, loss: str | None = None) -> Metric:
    """Return the metric that `scoring` names; "auto" is the log-loss for a loss of probabilities, else the order."""
    if not isinstance(scoring, str) or scoring != "auto":
        return get_metric(scoring)
    is_probability = loss is not None and LOSSES[loss].is_probability
    return LOG_LOSS if is_probability else get_metric("pairwise_error")


def row_scorer(
    metric: Metric,
    labels: Floats,
    queries: Queries,
    n_threads: int | None,
    what: str = "what was held out",
    weight: Floats | None = None,
) -> MetricScorer:
    """Prepare a metric on the rows to score by; by their weights, where that means something to it."""
    try:
        evaluator = metric.prepare(
            labels, queries, sample_weight=weight if metric.takes_weights else None, n_threads=n_threads
        )
    except NoPairsError as error:
        raise NoPairsError(
            f"{what} has no two rows of a query with different labels, so it cannot score a ranking.",
            "give it more rows, or use fewer folds.",
        ) from error
    return MetricScorer(evaluator, metric.greater_is_better)


def pair_scorer(
    metric: Metric,
    weight: Floats,
    pairs: tuple[Ints, Ints] | None = None,
    *,
    what: str = "what was held out",
    fold: Ints | None = None,
) -> PreferenceScorer:
    """Prepare a metric on pairs to score by; with `fold`, every fold counts the same, else every weight does."""
    if metric.base_name not in {"pairwise_error", "concordance", "log_loss"}:
        raise InvalidInputError(
            f"scoring={metric.name!r} needs rows with labels, and pairs have none.",
            "use scoring='pairwise_error' or 'concordance' with fit_pairs.",
        )
    if not (weight > 0).any():
        raise NoPairsError(
            f"{what} has no pair with a winner and a positive weight, so it cannot score a ranking.",
            "give it more pairs, or use fewer folds.",
        )
    total = np.full(weight.size, weight.sum())
    if fold is not None:
        by_fold = np.bincount(fold, weights=weight)
        total = by_fold[fold] * int((by_fold > 0).sum())
    share = np.divide(weight, total, out=np.zeros(weight.size), where=weight > 0)
    return PreferenceScorer(share, metric, pairs)


def scorer_of_rows(
    data: TrainingData, rows: Rows, metric: Metric, output: int, queries: Queries | None = None
) -> MetricScorer:
    """Prepare a metric on some of the training rows, compared inside their queries or inside others."""
    weight, labels = None if data.row_weight is None else data.row_weight[rows], data.columns[output]
    metric = metric.settled(labels if data.row_weight is None else labels[data.row_weight > 0])
    inside = data.queries.subset(rows) if queries is None else queries
    return row_scorer(metric, labels[rows], inside, data.design.n_threads, weight=weight)


def scorer_of_pairs(data: PairData, pair: Rows, metric: Metric) -> PreferenceScorer:
    """Prepare a metric on some of the training pairs; it takes scores of all rows."""
    listed = data.preferences
    return pair_scorer(metric, data.scoring_weight[pair], (listed.winner[pair], listed.loser[pair]))


def row_eval_set(X: Matrix, y: Floats, queries: Queries, data: TrainingData, metric: Metric) -> EvalSet:
    """Return checked rows, with as many outputs as the training data, as what models are scored by."""
    threads = data.design.n_threads
    columns = [y] if y.ndim == 1 else list(np.ascontiguousarray(y.T))
    scorers = [row_scorer(metric, column, queries, threads, "eval_set") for column in columns]
    rows = shifted_design(X, data.design.shift, threads)
    return EvalSet(rows, scorers, f"an evaluation set of {y.shape[0]} rows")


def pair_eval_set(X: Matrix, listed: Preferences, data: PairData, metric: Metric) -> EvalSet:
    """Return checked pairs of rows as what models are scored by."""
    rows = shifted_design(X, data.design.shift, data.design.n_threads)
    weight = np.ones(len(listed)) if listed.weight is None else listed.weight
    scorer = pair_scorer(metric, weight, (listed.winner, listed.loser), what="eval_set")
    return EvalSet(rows, [scorer], f"an evaluation set of {len(listed)} pairs")
