"""The table of metrics, and looking one up by name."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields, replace
from difflib import get_close_matches
from typing import TYPE_CHECKING

from rankwise.arrays import ArrayLike
from rankwise.data.queries import Queries
from rankwise.data.validation import check_numbers, check_qid
from rankwise.exceptions import InvalidInputError
from rankwise.metrics.gain import Err, MeanNdcg, Ndcg
from rankwise.metrics.metric import Grouping, Metric, PerQuery
from rankwise.metrics.pairwise import Auc, Concordance, KendallTau, PairwiseError
from rankwise.metrics.relevance import AveragePrecision, Precision, ReciprocalRank

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["METRICS", "evaluate", "get_metric", "per_query"]

METRICS: Mapping[str, Metric] = {
    metric.base_name: metric
    for metric in (
        PairwiseError(),
        Concordance(),
        Auc(),
        KendallTau(),
        Ndcg(),
        MeanNdcg(),
        Err(),
        AveragePrecision(),
        Precision(),
        ReciprocalRank(),
    )
}


# The names of our functions that are not those of the table, and names elsewhere.
_OTHER_NAMES = {
    "average_precision": "map",
    "mean_average_precision": "map",
    "reciprocal_rank": "mrr",
    "mean_reciprocal_rank": "mrr",
    "roc_auc": "auc",
    "preference_error": "pairwise_error",
    "expected_reciprocal_rank": "err",
}


def get_metric(name: str | Metric, **options: object) -> Metric:
    """Look a metric up by its name, with a cutoff after ``@`` where it takes one.

    Parameters
    ----------
    name : str or Metric
        A name in `METRICS`, such as ``"pairwise_error"``, ``"ndcg@10"``, ``"map"`` or ``"precision@5"``.
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
    >>> get_metric("mrr").describe()  # doctest: +ELLIPSIS
    'MRR: 1 / position of the first relevant row; relevant means label >= 1; tied scores averaged ...'
    """
    if isinstance(name, Metric):
        metric = name
    else:
        base, at, cutoff = name.partition("@") if isinstance(name, str) else (name, "", "")
        if not isinstance(base, str) or base not in METRICS:
            close = get_close_matches(str(base).lower(), [*METRICS, *_OTHER_NAMES], n=1)
            meant = [_OTHER_NAMES.get(other, other) + at + cutoff for other in close]
            guess = f"did you mean {meant[0]!r}? " if meant else ""
            raise InvalidInputError(f"Unknown metric {name!r}.", f"{guess}There are {', '.join(METRICS)}.")
        metric = METRICS[base]
        if at:
            if not cutoff.isdecimal():
                raise InvalidInputError(
                    f"metric={name!r} has no number after '@'.", f"write for example '{base}@10'."
                )
            if int(cutoff) < 1:
                raise InvalidInputError(
                    f"{name}: the cutoff must be at least 1.", f"write for example '{base}@10'."
                )
            options = {"k": int(cutoff), **options}
    if not options:
        return metric
    known = {field.name for field in fields(metric)}
    for option in options:
        if option not in known:
            raise InvalidInputError(
                f"{metric.base_name} has no option {option!r}.",
                f"its options are {', '.join(sorted(known))}." if known else "it takes no options.",
            )
    return replace(metric, **options)


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
    metrics: Iterable[str | Metric] = ("pairwise_error", "ndcg@10", "map"),
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
    labels = check_numbers("y_true", y_true)
    column = check_numbers("scores", scores, labels.shape[0])
    queries = qid if isinstance(qid, Queries) else check_qid(qid, labels.shape[0])
    if not isinstance(metrics, Iterable) or not getattr(metrics, "ndim", 1):
        raise InvalidInputError(f"metrics={metrics!r} is no list.", "pass names, such as ['ndcg@10', 'map'].")
    chosen = [get_metric(metric) for metric in metrics]
    return {metric.name: metric.prepare(labels, queries).evaluate(column) for metric in chosen}
