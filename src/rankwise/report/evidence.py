"""The figures of a report: metrics with intervals, baselines, and every query's own value."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import scipy.sparse

from rankwise.arrays import InMemory, MatrixLike, is_sparse
from rankwise.data.queries import Queries
from rankwise.data.summary import is_graded
from rankwise.data.validation import check_pairs
from rankwise.exceptions import InvalidInputError
from rankwise.formula.view import Doubles
from rankwise.metrics import (
    Comparison,
    Interval,
    Metric,
    PerQuery,
    bootstrap_interval,
    compare_rankings,
    get_metric,
)
from rankwise.metrics.comparison import compare_over_pairs
from rankwise.metrics.intervals import mean_over_pairs
from rankwise.metrics.pairwise import wrong_pairs
from rankwise.report.duels import record_errors
from rankwise.report.top import Top, look_at_top

__all__ = ["Evidence", "Figure", "evaluate_labels", "evaluate_pairs", "suitable_metrics"]

_COLUMNS_TRIED = 2000
_FOLDS = 5  # of queries, to choose a column that is not evaluated on what chose it
_NUMBERS_TRIED = 20_000_000  # a few seconds of sorting


@dataclass(frozen=True)
class Figure:
    """One metric of the model, and of what it is compared with.

    Attributes
    ----------
    name : str
    describe : str
        The convention in words.
    greater_is_better : bool
    model : Interval
    single : Interval or None
        The best single column's.
    random : Interval or None
        That of a random order, in expectation.
    against_single : Comparison or None
        The model minus the best single column.
    record : Interval or None
        Of duels: that of betting on whoever won the larger share of its other duels.
    metric : Metric or None
        None for preferences.
    """

    name: str
    describe: str
    greater_is_better: bool
    model: Interval
    single: Interval | None
    random: Interval | None
    against_single: Comparison | None
    record: Interval | None = None
    metric: Metric | None = None


@dataclass(frozen=True)
class Evidence:
    """Everything that was measured.

    Attributes
    ----------
    figures : list of Figure
        The first is the one that the page leads with.
    per_query : PerQuery or None
        The first metric, query by query; None for preferences.
    best_column : tuple (column, sign) or None
    top : Top or None
        What stands at the top, for grades inside queries.
    """

    figures: list[Figure]
    per_query: PerQuery | None
    best_column: tuple[int, int] | None
    top: Top | None = None


def suitable_metrics(labels: Doubles, n_queries: int) -> tuple[str, ...]:
    """Name the metrics that mean something for labels of this kind: grades, or real numbers."""
    grades = is_graded(labels)
    if grades and n_queries > 1:
        return ("ndcg@10", "map", "mrr", "precision@5", "pairwise_error", "kendall_tau")
    if grades:
        return ("pairwise_error", "ndcg", "kendall_tau")
    return ("pairwise_error", "kendall_tau")


def evaluate_labels(
    given: MatrixLike,
    y: Doubles,
    queries: Queries,
    scores: Doubles,
    metrics: Sequence[str | Metric],
    seed: int,
) -> Evidence:
    """Evaluate scores by labels inside queries."""
    X: InMemory = given.tocsr() if is_sparse(given) else np.asarray(given)
    if not isinstance(metrics, (list, tuple)):
        raise InvalidInputError(f"metrics={metrics!r} is no list.", "pass names, such as ['ndcg@10', 'map'].")
    chosen = [get_metric(metric) for metric in metrics]
    if not chosen:
        raise InvalidInputError("metrics is empty.", "name at least one, such as 'ndcg@10'.")
    best = _best_column(X, y, queries, chosen[0])
    column = None if best is None else _single_column(X, y, queries, chosen[0], best)
    figures = [_figure(metric, y, queries, scores, column, seed) for metric in chosen]
    top = look_at_top(y, queries, scores) if is_graded(y) and len(queries) > 1 else None
    return Evidence(figures, chosen[0].prepare(y, queries).per_query(scores), best, top)


def _figure(
    metric: Metric, y: Doubles, queries: Queries, scores: Doubles, column: Doubles | None, seed: int
) -> Figure:
    constant = np.zeros(y.size)  # tied scores are averaged over all orders: exactly what a random order gets
    return Figure(
        metric.name,
        metric.describe(),
        metric.greater_is_better,
        bootstrap_interval(y, scores, queries, metric=metric, random_state=seed),
        None if column is None else bootstrap_interval(y, column, queries, metric=metric, random_state=seed),
        bootstrap_interval(y, constant, queries, metric=metric, random_state=seed),
        None
        if column is None
        else compare_rankings(y, scores, column, queries, metric=metric, random_state=seed),
        metric=metric,
    )


def evaluate_pairs(
    given: MatrixLike, pairs: npt.ArrayLike, weight: npt.ArrayLike | None, scores: Doubles
) -> Evidence:
    """Evaluate scores by a list of preferences."""
    X: InMemory = given.tocsr() if is_sparse(given) else np.asarray(given)
    checked = check_pairs(pairs, scores.shape[0], weight=weight)
    share = np.ones(len(checked)) if checked.weight is None else checked.weight
    edges = np.column_stack([checked.winner, checked.loser])

    def wrong(values: Doubles) -> Doubles:
        return wrong_pairs(values, edges)

    def interval(values: Doubles) -> Interval:
        return mean_over_pairs(values, edges, share)

    tried = columns_to_try(X)
    errors = np.array([np.average(wrong(column), weights=share) for column in take_columns(X, tried).T])
    sign = 1 if errors.min() <= 1 - errors.max() else -1
    best = (int(tried[np.argmin(errors) if sign > 0 else np.argmax(errors)]), sign)
    own = wrong(scores)
    single = wrong(best[1] * take_columns(X, np.array([best[0]]))[:, 0])
    record = record_errors(edges, share, scores.size)
    figure = Figure(
        "pairwise_error",
        "Pairwise error: share of the listed preferences that the scores contradict; tied scores count one half",
        False,
        interval(own),
        interval(single),
        Interval(0.5, np.nan, np.nan, 0.95, len(checked), "pairs"),
        compare_over_pairs(own, single, edges, share),
        None if record is None else interval(record),
    )
    return Evidence([figure], None, best)


def _best_column(X: InMemory, y: Doubles, queries: Queries, metric: Metric) -> tuple[int, int] | None:
    """Find the column, and its sign, that alone ranks best."""
    evaluator = metric.prepare(y, queries)
    better = 1.0 if metric.greater_is_better else -1.0
    best, found = -np.inf, None
    tried = columns_to_try(X)
    at_once = max(1, 4_000_000 // y.size)
    for start in range(0, tried.size, at_once):
        columns = tried[start : start + at_once]
        block = take_columns(X, columns)
        complete = np.isfinite(block).all(axis=0)  # a column with missing entries orders nothing by itself
        columns, block = columns[complete], block[:, complete]
        for sign in (1, -1) if columns.size else ():
            values = better * evaluator.many(sign * block)
            if values.max() > best:
                best, found = float(values.max()), (int(columns[np.argmax(values)]), sign)
    return found


def _single_column(
    X: InMemory, y: Doubles, queries: Queries, metric: Metric, best: tuple[int, int]
) -> Doubles:
    """Score each query by the column that ranks best on the other queries, so that the choice is not rewarded."""

    def values(choice: tuple[int, int]) -> Doubles:
        return choice[1] * take_columns(X, np.array([choice[0]]))[:, 0]

    scores = values(best)
    if len(queries) < _FOLDS:
        return scores
    fold = queries.codes % _FOLDS
    for number in range(_FOLDS):
        others = np.flatnonzero(fold != number)
        try:
            own = _best_column(X[others], y[others], queries.subset(others), metric)
        except InvalidInputError:  # too little is left to evaluate a column on
            own = None
        if own is not None:
            scores[fold == number] = values(own)[fold == number]
    return scores


def columns_to_try(X: InMemory) -> npt.NDArray[np.int64]:
    """Choose columns for a baseline: all, or those that are filled most where that would take too long."""
    n_rows, n_columns = X.shape
    count = min(_COLUMNS_TRIED, max(20, _NUMBERS_TRIED // max(int(n_rows), 1)))
    if n_columns <= count:
        return np.arange(n_columns)
    if is_sparse(X):
        filled = np.bincount(scipy.sparse.coo_matrix(X).col, minlength=n_columns)
        return np.sort(np.argsort(-filled, kind="stable")[:count])
    return np.arange(count)


def take_columns(X: InMemory, columns: npt.NDArray[np.int64]) -> Doubles:
    """Return some columns of a matrix or data frame as numbers."""
    if is_sparse(X):
        return np.asarray(X[:, columns].toarray(), dtype=np.float64)
    return np.asarray(X[:, columns], dtype=np.float64)
