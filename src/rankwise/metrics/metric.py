"""Metrics by name: their table, their options, and evaluators prepared for given labels.

A metric consists of a name and options; the table holds its implementation. The decorator `metric` makes the functions,
such as `ndcg`, from the table, and their keyword arguments are the options. Everything that depends on the labels alone
(grouping, levels, gains, the best possible value, which queries count) is done once by `Metric.prepare`; the
`Evaluator` it returns only needs scores.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from functools import wraps
from inspect import Parameter, Signature
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from rankwise.arrays import AnyArray, ArrayLike
from rankwise.data.containers import as_array
from rankwise.data.queries import Queries
from rankwise.data.validation import check_numbers, check_qid, check_weights
from rankwise.exceptions import InvalidInputError
from rankwise.runtime.threads import default_threads

Grouping = Queries | ArrayLike | None  # the query of each row, encoded or as a caller passes it
Doubles = npt.NDArray[np.float64]
Options = Mapping[str, Any]  # by name, those of the metric's function


class Given(NamedTuple):
    """The validated input of an evaluator."""

    labels: Doubles
    queries: Queries
    weights: Doubles | None
    n_threads: int


# Starting threads costs as much time as sorting some thousand rows.
_ROWS_A_THREAD = 8_000

# Names that others use.
_OTHER_NAMES = {
    "map": "average_precision",
    "mean_average_precision": "average_precision",
    "mrr": "reciprocal_rank",
    "mean_reciprocal_rank": "reciprocal_rank",
    "roc_auc": "auc",
    "preference_error": "pairwise_error",
    "expected_reciprocal_rank": "err",
}


@dataclass(frozen=True)
class PerQuery:
    """A metric, query by query.

    Attributes
    ----------
    ids : (queries,) array
        The caller's query ids.
    values : (queries,) float64
        The metric of each query; NaN where the metric is undefined and the query therefore does not count.
    counted : (queries,) bool
        Whether the query enters the mean.

    Examples
    --------
    >>> from rankwise.metrics import per_query
    >>> found = per_query([0, 1, 0, 1, 1], [1, 2, 2, 1, 0], ["a", "a", "b", "b", "c"], metric="pairwise_error")
    >>> found.ids.tolist(), found.values.tolist(), found.counted.tolist()
    (['a', 'b', 'c'], [0.0, 1.0, nan], [True, True, False])
    """

    ids: AnyArray
    values: Doubles
    counted: npt.NDArray[np.bool_]

    def __len__(self) -> int:
        return int(self.ids.shape[0])

    def mean(self) -> float:
        """Return the mean over the queries that count."""
        return float(self.values[self.counted].mean())


class Evaluator:
    """A metric prepared for given labels; it can be called with any number of score vectors.

    Parameters
    ----------
    queries : Queries
        The queries of the rows.
    counted : (queries,) bool
        Which queries the metric is defined for.
    n_threads : int
        Threads to use at most.
    values : callable
        Takes a (rows, columns) block of scores and a number of threads, and returns the (columns, queries) values;
        those of queries that do not count are arbitrary.
    shares : (queries,) float64, optional
        The weights of the queries in the mean; equal if not given.

    Examples
    --------
    >>> import numpy as np
    >>> from rankwise.metrics import get_metric
    >>> error = get_metric("pairwise_error").prepare([0, 1, 2], None)
    >>> [error.evaluate(np.array(scores)) for scores in ([1.0, 2.0, 3.0], [3.0, 2.0, 1.0])]
    [0.0, 1.0]
    """

    def __init__(
        self,
        queries: Queries,
        counted: npt.NDArray[np.bool_],
        n_threads: int,
        values: Callable[[Doubles, int], Doubles],
        shares: Doubles | None = None,
    ) -> None:
        self.queries = queries
        self.counted = counted
        self.n_threads = n_threads
        self._compute = values
        self._shares = None if shares is None else shares[counted]

    @property
    def shares(self) -> Doubles:
        """The weight of each query that counts in the mean."""
        return np.ones(int(self.counted.sum())) if self._shares is None else self._shares

    def __call__(self, scores: ArrayLike) -> float:
        """Return the metric of one score per row."""
        return self.evaluate(check_numbers("scores", scores, self.queries.n_rows))

    def evaluate(self, column: Doubles) -> float:
        """Return the metric of scores that were already validated."""
        return float(self._means(column[:, np.newaxis])[0])

    def many(self, scores: ArrayLike) -> Doubles:
        """Return the metric of each column of a (rows, columns) matrix of scores."""
        block = scores if type(scores) is np.ndarray else as_array("scores", scores)
        block = block.astype(np.float64, copy=False)
        if block.ndim != 2 or block.shape[0] != self.queries.n_rows:
            raise InvalidInputError(
                f"scores must have shape ({self.queries.n_rows}, columns), got {block.shape}.",
                "pass one column per model; for a single one call the evaluator itself.",
            )
        if not np.isfinite(block).all():
            raise InvalidInputError(
                "scores contain NaN or infinity.", "look for the column that diverged and leave it out."
            )
        return self._means(block)

    def per_query(self, scores: ArrayLike) -> PerQuery:
        """Return the metric of one score per row, query by query."""
        column = check_numbers("scores", scores, self.queries.n_rows)
        values = np.where(self.counted, self._values(column[:, np.newaxis])[0], np.nan)
        return PerQuery(self.queries.ids, values, self.counted)

    def _values(self, block: Doubles) -> Doubles:
        return self._compute(block, max(1, min(self.n_threads, block.size // _ROWS_A_THREAD)))

    def _means(self, block: Doubles) -> Doubles:
        if block.shape[1] == 0:
            return np.empty(0)
        values = self._values(block)
        if not self.counted.all():
            values = values[:, self.counted]
        if self._shares is None:
            return np.asarray(values.mean(axis=1))
        return np.asarray((values * self._shares).sum(axis=1) / self._shares.sum())


@dataclass(frozen=True)
class Kind:
    """A row of the table of metrics.

    Attributes
    ----------
    check : callable
        Takes the name and a dictionary of options, checks them, and completes them in place.
    prepare : callable
        Takes options, labels and queries, and returns an evaluator.
    words : callable
        Takes options, and returns the convention in words.
    greater_is_better : bool
    counts_pairs : bool
        Whether it counts pairs of rows, and so takes weights of rows and needs two different labels in a query.
    bounds : (float, float)
        The smallest and the largest possible value.
    """

    check: Callable[[str, dict[str, Any]], None]
    prepare: Callable[[Options, Given], Evaluator]
    words: Callable[[Options], str]
    greater_is_better: bool = True
    counts_pairs: bool = False
    bounds: tuple[float, float] = (0.0, 1.0)


_KINDS: dict[str, Kind] = {}
METRICS: dict[str, Metric] = {}


@dataclass(frozen=True)
class Metric:
    """A metric and its options; made by `get_metric`.

    Attributes
    ----------
    base_name : str
        Its name in the table `METRICS`, without a cutoff.
    options : dict
        The value of each of its options.
    greater_is_better : bool
        Whether a good ranking has a large value.
    takes_weights : bool
        Whether it counts pairs, and so takes `sample_weight`; only queries with two different labels count then.
    bounds : (float, float)
        The smallest and the largest possible value.

    Examples
    --------
    >>> from rankwise.metrics import get_metric
    >>> metric = get_metric("ndcg@2")
    >>> metric.greater_is_better, metric([0, 1, 2], [0.1, 0.2, 0.3])
    (True, 1.0)
    """

    base_name: str
    options: Options

    def __repr__(self) -> str:
        defaults = METRICS[self.base_name].options if self.base_name in METRICS else {}
        changed = [
            f", {name}={value!r}"
            for name, value in self.options.items()
            if name != "k" and value != defaults[name]
        ]
        return f"get_metric({self.name!r}{''.join(changed)})"

    @property
    def name(self) -> str:
        """The name under which `get_metric` finds it, with its cutoff, such as ``"ndcg@10"``."""
        k = self.options.get("k")
        return self.base_name if k is None else f"{self.base_name}@{k}"

    @property
    def greater_is_better(self) -> bool:
        """Whether a good ranking has a large value."""
        return _KINDS[self.base_name].greater_is_better

    @property
    def takes_weights(self) -> bool:
        """Whether it takes `sample_weight`."""
        return _KINDS[self.base_name].counts_pairs

    @property
    def bounds(self) -> tuple[float, float]:
        """The smallest and the largest possible value."""
        return _KINDS[self.base_name].bounds

    def describe(self) -> str:
        """Return the convention in words; a figure is never printed without it."""
        return _KINDS[self.base_name].words(self.options)

    def settled(self, labels: Doubles) -> Metric:
        """Return the metric with the options that it would take from all labels, so that parts of the rows agree."""
        if self.options.get("max_grade", 0) is None and labels.size:
            return get_metric(self, max_grade=float(labels.max()))
        return self

    def __call__(
        self,
        y_true: ArrayLike,
        scores: ArrayLike,
        qid: Grouping = None,
        *,
        sample_weight: ArrayLike | None = None,
    ) -> float:
        """Return the metric of one score per row."""
        labels = check_numbers("y_true", y_true)
        column = check_numbers("scores", scores, labels.shape[0])
        return self.prepare(labels, qid, sample_weight=sample_weight).evaluate(column)

    def prepare(
        self,
        y_true: ArrayLike,
        queries: Grouping = None,
        *,
        sample_weight: ArrayLike | None = None,
        n_threads: int | None = None,
    ) -> Evaluator:
        """Do everything that depends on the labels alone.

        Parameters
        ----------
        y_true : (rows,) numbers
            The labels.
        queries : (rows,) ids, Queries or None
            The query of each row, encoded or not; None means that all rows form one query.
        sample_weight : (rows,) numbers, optional
            Weights of the rows; only for metrics that count pairs.
        n_threads : int, optional
            Threads to use at most; the CPUs of this process by default.

        Returns
        -------
        Evaluator
            Call it with scores.
        """
        labels, queries = read_labels(y_true, queries)
        if labels.shape[0] == 0:
            raise InvalidInputError("is empty.", "a ranking needs at least one row.", about="y_true")
        if queries.n_rows != labels.shape[0]:
            raise InvalidInputError(
                f"the queries have {queries.n_rows} rows, but y_true has {labels.shape[0]}.",
                "encode the query ids of the same rows.",
            )
        weights = check_weights(sample_weight, labels.shape[0])
        if weights is not None and not self.takes_weights:
            raise InvalidInputError(
                f"{self.name} does not take sample_weight.",
                "leave it out, or use pairwise_error, concordance, auc or kendall_tau, which count pairs.",
            )
        threads = default_threads() if n_threads is None else n_threads
        return _KINDS[self.base_name].prepare(self.options, Given(labels, queries, weights, threads))


class MetricFunction(Protocol):
    """The function of a metric; its signature lists the options."""

    def __call__(self, y_true: ArrayLike, scores: ArrayLike, qid: Grouping = None, **options: Any) -> float:
        """Return the metric of one score per row."""


def metric(kind: Kind, **options: Any) -> Callable[[Callable[[], None]], MetricFunction]:
    """Enter a metric with its options and their defaults in the table, and make its function.

    Decorates an empty function, of which the name and the docstring are taken.
    """

    def made(described: Callable[[], None]) -> MetricFunction:
        base = described.__name__
        _KINDS[base] = kind
        METRICS[base] = Metric(base, options)

        @wraps(described)
        def function(y_true: ArrayLike, scores: ArrayLike, qid: Grouping = None, **given: Any) -> float:
            weight = given.pop("sample_weight", None)
            return get_metric(base, **given)(y_true, scores, qid, sample_weight=weight)

        shown = options | ({"sample_weight": None} if kind.counts_pairs else {})
        function.__signature__ = Signature(  # type: ignore[attr-defined]
            [Parameter(one, Parameter.POSITIONAL_OR_KEYWORD) for one in ("y_true", "scores")]
            + [Parameter("qid", Parameter.POSITIONAL_OR_KEYWORD, default=None)]
            + [Parameter(one, Parameter.KEYWORD_ONLY, default=default) for one, default in shown.items()]
        )
        return function

    return made


def get_metric(name: str | Metric, **options: object) -> Metric:
    """Look a metric up by its name, with a cutoff after ``@`` where it takes one.

    Parameters
    ----------
    name : str or Metric
        A name in `METRICS`, such as ``"pairwise_error"``, ``"ndcg@10"``, ``"average_precision"`` or ``"precision@5"``;
        "rank_ic" is "spearman".
    **options
        Options of the metric's function, such as ``gain="linear"`` or ``convention="letor4"``.

    Returns
    -------
    Metric
        Call it with labels, scores and query ids, or `Metric.prepare` it for many evaluations.

    Examples
    --------
    >>> from rankwise.metrics import get_metric
    >>> metric = get_metric("ndcg@10", gain="linear")
    >>> metric.name, metric.greater_is_better
    ('ndcg@10', True)
    >>> get_metric("reciprocal_rank").describe()  # doctest: +ELLIPSIS
    'MRR: 1 / position of the first relevant row; relevant means label >= 1; tied scores averaged ...'
    """
    if isinstance(name, Metric):
        metric = name
    else:
        base, at, cutoff = str(name).partition("@")
        base = "spearman" if base == "rank_ic" else base  # its name in finance
        if not isinstance(name, str) or base not in METRICS:
            close = get_close_matches(base.lower(), [*METRICS, *_OTHER_NAMES], n=1)
            meant = [_OTHER_NAMES.get(other, other) + at + cutoff for other in close]
            guess = f"did you mean {meant[0]!r}? " if meant else ""
            raise InvalidInputError(
                f"Unknown metric {name!r:.80}.", f"{guess}There are {', '.join(METRICS)}."
            )
        metric = METRICS[base]
        if at:
            if not cutoff.isdecimal():
                raise InvalidInputError(
                    f"metric={name!r} has no number after '@'.", f"write for example '{base}@10'."
                )
            options = {"k": int(cutoff), **options}
    if not options:
        return metric
    for option in options:
        if option not in metric.options:
            known = ", ".join(sorted(metric.options))
            raise InvalidInputError(
                f"{metric.base_name} has no option {option!r}.",
                f"its options are {known}." if known else "it takes no options.",
            )
    complete = {**metric.options, **options}
    _KINDS[metric.base_name].check(metric.base_name, complete)
    return Metric(metric.base_name, complete)


def per_query(
    y_true: ArrayLike,
    scores: ArrayLike,
    qid: Grouping = None,
    *,
    metric: str | Metric,
    sample_weight: ArrayLike | None = None,
    **options: object,
) -> PerQuery:
    """Evaluate a metric query by query.

    Parameters
    ----------
    y_true, scores, qid, sample_weight
        As for the metric's function.
    metric : str or Metric
        As for `get_metric`.
    **options
        As for `get_metric`.

    Returns
    -------
    PerQuery
        The ids, the values (NaN where undefined), and which queries count in the mean.

    Examples
    --------
    >>> from rankwise.metrics import per_query
    >>> result = per_query([1, 0, 3, 2, 2], [0.2, 0.1, 0.5, 0.7, 0.1], list("xxyyz"), metric="pairwise_error")
    >>> result.ids.tolist(), result.values.tolist(), result.counted.tolist()
    (['x', 'y', 'z'], [0.0, 1.0, nan], [True, True, False])
    """
    return get_metric(metric, **options).prepare(y_true, qid, sample_weight=sample_weight).per_query(scores)


def evaluate(
    y_true: ArrayLike,
    scores: ArrayLike,
    qid: Grouping = None,
    *,
    metrics: Iterable[str | Metric] = ("pairwise_error", "ndcg@10", "average_precision"),
) -> dict[str, float]:
    """Evaluate several metrics, encoding the query ids once.

    Parameters
    ----------
    y_true, scores, qid
        As for the metrics' functions; `qid` may already be encoded as `Queries`.
    metrics : iterable of str or Metric
        As for `get_metric`.

    Returns
    -------
    dict
        From the metric's name to its value.

    Examples
    --------
    >>> from rankwise.metrics import evaluate
    >>> evaluate([2, 1, 0, 1, 0], [5, 4, 3, 1, 2], [1, 1, 1, 2, 2], metrics=["concordance", "precision@1"])
    {'concordance': 0.5, 'precision@1': 0.5}
    """
    if isinstance(metrics, str):
        raise InvalidInputError("metrics must be a list of names.", f"pass [{metrics!r}].")
    labels, queries = read_labels(y_true, qid)
    column = check_numbers("scores", scores, labels.shape[0])
    chosen = [get_metric(metric) for metric in metrics]
    return {metric.name: metric.prepare(labels, queries).evaluate(column) for metric in chosen}


def read_labels(y_true: ArrayLike, qid: Grouping) -> tuple[Doubles, Queries]:
    """Pass labels and query ids through validation; encoded ids as they are."""
    labels = check_numbers("y_true", y_true)
    return labels, qid if isinstance(qid, Queries) else check_qid(qid, labels.size)
