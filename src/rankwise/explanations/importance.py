"""Permutation importance: the loss of a metric when a column is shuffled inside queries."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator

from rankwise.arrays import ArrayLike, Floats, Ints, Labels, MatrixLike, RandomSource, shape_of
from rankwise.data.containers import as_rows
from rankwise.data.queries import Queries
from rankwise.data.validation import check_count, check_level, check_numbers, check_qid, read_seed
from rankwise.explanations.explaining import html_table
from rankwise.formula.view import ModelView
from rankwise.metrics import Metric, bootstrap_mean, get_metric


@dataclass(frozen=True, repr=False)
class FeatureImportance:
    """The permutation importance of each column.

    Attributes
    ----------
    names : list of str
    metric : str
    score : float
        Of the rows as they are.
    importances : (columns,) float64
        The mean loss of the metric when a column is shuffled; for an error, how much it grows.
    intervals : (columns, 2) float64
        Of that mean, over queries, or over the repetitions where there is one query; see `bootstrap_mean`.
    losses : (columns, queries) float64
        The mean over repetitions, of each query that the metric counts.

    Examples
    --------
    >>> import numpy as np
    >>> import rankwise
    >>> rng = np.random.default_rng(0)
    >>> X, qid = rng.normal(size=(60, 2)), np.arange(60) // 6
    >>> model = rankwise.RankRLS().fit(X, X[:, 0] - 2 * X[:, 1], qid=qid)
    >>> found = rankwise.feature_importance(model, X, X[:, 0] - 2 * X[:, 1], qid)
    >>> found.importances.shape, found.intervals.shape, found.losses.shape
    ((2,), (2, 2), (2, 10))
    """

    names: list[str]
    metric: str
    score: float
    importances: Floats
    intervals: Floats
    losses: Floats

    def _rows(self) -> list[list[str]]:
        """Return the columns, the most important first, as cells."""
        order = np.argsort(-self.importances, kind="stable").tolist()
        both = [(self.names[at], self.importances[at], *self.intervals[at]) for at in order]
        return [[name, f"{value:+.4f}", f"[{low:+.4f}, {high:+.4f}]"] for name, value, low, high in both]

    def _title(self) -> str:
        return f"loss of {self.metric} ({self.score:.4f}) by shuffling inside queries"

    def __repr__(self) -> str:
        (name, value, _), *_ = self._rows()
        return f"<importance of {len(self.names)} columns by {self.metric}; largest: {name}, {value}>"

    def __str__(self) -> str:
        width = max(map(len, self.names))
        lines = [f"  {name.ljust(width)}  {value}  {interval}" for name, value, interval in self._rows()]
        return "\n".join([self._title(), *lines])

    def _repr_html_(self) -> str:
        return html_table(self._title(), ["column", "loss", "interval"], self._rows())


def feature_importance(
    model: BaseEstimator,
    X: MatrixLike,
    y: Labels,
    qid: ArrayLike | None = None,
    *,
    scoring: str | Metric = "concordance",
    n_repeats: int = 5,
    level: float = 0.95,
    random_state: RandomSource = 0,
    feature_names: Sequence[str] | None = None,
) -> FeatureImportance:
    """Shuffle each column inside queries and measure how much worse the ranking becomes.

    A column that loses nothing so, as one with a single value in each query, is exchanged between queries. A column
    that the model does not use has importance 0. If two columns carry the same information, shuffling one of them loses
    little.

    Parameters
    ----------
    model : estimator or sklearn.pipeline.Pipeline
    X : array, sparse matrix or data frame of shape (rows, columns)
        Held-out rows: on training rows, overfitted columns seem important.
    y : array-like of shape (rows,)
    qid : array-like of shape (rows,), optional
    scoring : str or Metric
    n_repeats : int
    level : float
        Confidence of the intervals.
    random_state : int, RandomState, Generator or None, default=0
    feature_names : sequence of str, optional

    Returns
    -------
    FeatureImportance

    Examples
    --------
    >>> import numpy as np
    >>> import rankwise
    >>> rng = np.random.default_rng(0)
    >>> X, qid = rng.normal(size=(60, 2)), np.arange(60) // 6
    >>> model = rankwise.RankRLS().fit(X, X[:, 0] - 2 * X[:, 1], qid=qid)
    >>> found = rankwise.feature_importance(model, X, X[:, 0] - 2 * X[:, 1], qid, feature_names=["a", "b"])
    >>> found.metric, bool(found.importances[1] > found.importances[0] > 0)
    ('concordance', True)
    """
    check_count("n_repeats", n_repeats, optional=False)
    check_level(level)
    view = ModelView.of(model)
    metric = get_metric(scoring)
    X = as_rows("X", X)
    queries, labels = check_qid(qid, shape_of(X)[0]), check_numbers("y", y, shape_of(X)[0])
    sign = 1.0 if metric.greater_is_better else -1.0
    names = view.names(shape_of(X)[1], feature_names)
    seed = read_seed(random_state)
    inside, between = np.random.default_rng(seed), np.random.default_rng(seed + 1)

    evaluator = metric.prepare(labels, queries)

    def scored(rows: MatrixLike) -> Floats:
        return sign * evaluator.per_query(view.predict(view.numbers(rows), qid)).values

    def lost(
        column: int, draw: Callable[[Queries, np.random.Generator], Ints], rng: np.random.Generator
    ) -> Any:
        sources = [draw(queries, rng) for _ in range(n_repeats)]
        return [(base - scored(_with_rows_of(X, column, source)))[counts] for source in sources]

    base, counts, shares = scored(X), evaluator.counted, evaluator.shares
    losses = np.empty((len(names), int(counts.sum())))
    repeats = np.empty((len(names), n_repeats))
    for column in range(len(names)):
        found = lost(column, _shuffled, inside)
        if len(queries) > 1 and not np.any(found):
            found = lost(column, _exchanged, between)
        losses[column] = np.mean(found, axis=0)
        repeats[column] = np.average(found, axis=1, weights=shares)
    sample, weight = (losses, shares) if losses.shape[1] > 1 else (repeats, np.ones(n_repeats))
    width = metric.bounds[1] - metric.bounds[0]
    intervals = [bootstrap_mean(own, weight, bounds=(-width, width), level=level) for own in sample]
    return FeatureImportance(
        names,
        metric.name,
        float(sign * np.average(base[counts], weights=shares)),
        np.average(losses, axis=1, weights=shares),
        np.array([(interval.low, interval.high) for interval in intervals]),
        losses,
    )


def _shuffled(queries: Queries, rng: np.random.Generator) -> Ints:
    """Return for each row another one of its query."""
    order = queries.order[np.lexsort((rng.random(queries.n_rows), queries.codes[queries.order]))]
    source = np.empty(queries.n_rows, dtype=np.int64)
    source[queries.order] = order
    return source


def _exchanged(queries: Queries, rng: np.random.Generator) -> Ints:
    """Return for the rows of each query one row of another."""
    _, first = np.unique(queries.codes, return_index=True)
    return np.asarray(rng.permutation(first)[queries.codes])


def _with_rows_of(X: Any, column: int, source: Ints) -> Any:
    """Return the rows with one column taken from other rows."""
    if sp.issparse(X):
        wide = X.tocsc(copy=True)
        values = wide[:, [column]].toarray()[source]
        parts = [wide[:, :column], sp.csc_matrix(values), wide[:, column + 1 :]]
        return sp.hstack(parts, format="csr")
    if hasattr(X, "iloc"):
        out = X.copy()
        out[out.columns[column]] = X.iloc[source, column].to_numpy()
        return out
    out = np.array(X)
    out[:, column] = out[source, column]
    return out
