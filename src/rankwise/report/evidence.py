"""The figures of a report: metrics with intervals, baselines, and every query's own value."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import scipy.sparse

from rankwise.arrays import Floats, InMemory, MatrixLike, is_sparse
from rankwise.data.queries import Queries
from rankwise.data.summary import is_graded
from rankwise.data.validation import check_pairs
from rankwise.data.wording import how_many
from rankwise.exceptions import InvalidInputError
from rankwise.metrics import (
    Comparison,
    Interval,
    Metric,
    PerQuery,
    bootstrap_interval,
    compare_rankings,
    get_metric,
    ndcg,
)
from rankwise.metrics.comparison import compare_over_pairs, p_text
from rankwise.metrics.intervals import mean_over_pairs
from rankwise.metrics.pairwise import wrong_pairs
from rankwise.report.charts import span
from rankwise.report.duels import record_errors
from rankwise.report.markup import brackets, decimals, details, name, number, section, table, text

__all__ = [
    "Evidence",
    "Figure",
    "evaluate_labels",
    "evaluate_pairs",
    "in_words",
    "look_at_top",
    "metrics_section",
    "suitable_metrics",
    "title_of",
    "top_pictures",
    "verdict",
]

_COLUMNS_TRIED = 2000
_FOLDS = 5  # of queries, to choose a column that is not evaluated on what chose it
_NUMBERS_TRIED = 20_000_000  # a few seconds of sorting


_CUTOFFS = (1, 2, 3, 5, 10, 20, 50)
_POSITIONS = 10
_GRADES = 5  # shades there are


@dataclass(frozen=True)
class Top:
    """What stands at the top of the queries.

    Attributes
    ----------
    ndcg : list of (cutoff, NDCG)
    grades : list of float
        From the best to the worst.
    shares : array of shape (positions, grades)
        How many of the rows at a position have a grade, as a share.
    """

    ndcg: list[tuple[int, float]]
    grades: list[float]
    shares: Floats


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


def suitable_metrics(labels: Floats, n_queries: int) -> tuple[str, ...]:
    """Name the metrics that mean something for labels of this kind: grades, or real numbers."""
    grades = is_graded(labels)
    if grades and n_queries > 1:
        return ("ndcg@10", "map", "mrr", "precision@5", "pairwise_error", "kendall_tau")
    if grades:
        return ("pairwise_error", "ndcg", "kendall_tau")
    return ("pairwise_error", "kendall_tau")


def evaluate_labels(
    given: MatrixLike,
    y: Floats,
    queries: Queries,
    scores: Floats,
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
    metric: Metric, y: Floats, queries: Queries, scores: Floats, column: Floats | None, seed: int
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
    given: MatrixLike, pairs: npt.ArrayLike, weight: npt.ArrayLike | None, scores: Floats
) -> Evidence:
    """Evaluate scores by a list of preferences."""
    X: InMemory = given.tocsr() if is_sparse(given) else np.asarray(given)
    checked = check_pairs(pairs, scores.shape[0], weight=weight)
    share = np.ones(len(checked)) if checked.weight is None else checked.weight
    edges = np.column_stack([checked.winner, checked.loser])

    def wrong(values: Floats) -> Floats:
        return wrong_pairs(values, edges)

    def interval(values: Floats) -> Interval:
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


def _best_column(X: InMemory, y: Floats, queries: Queries, metric: Metric) -> tuple[int, int] | None:
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


def _single_column(X: InMemory, y: Floats, queries: Queries, metric: Metric, best: tuple[int, int]) -> Floats:
    """Score each query by the column that ranks best on the other queries, so that the choice is not rewarded."""

    def values(choice: tuple[int, int]) -> Floats:
        return choice[1] * take_columns(X, np.array([choice[0]]))[:, 0]

    scores = values(best)
    if len(queries) < _FOLDS:
        return scores
    fold = queries.codes % _FOLDS
    for held_out in range(_FOLDS):
        others = np.flatnonzero(fold != held_out)
        try:
            own = _best_column(X[others], y[others], queries.subset(others), metric)
        except InvalidInputError:  # too little is left to evaluate a column on
            own = None
        if own is not None:
            scores[fold == held_out] = values(own)[fold == held_out]
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


def take_columns(X: InMemory, columns: npt.NDArray[np.int64]) -> Floats:
    """Return some columns of a matrix or data frame as numbers."""
    if is_sparse(X):
        return np.asarray(X[:, columns].toarray(), dtype=np.float64)
    return np.asarray(X[:, columns], dtype=np.float64)


def look_at_top(y: Floats, queries: Queries, scores: Floats) -> Top | None:
    """Return what stands at the top; None where there are more grades than shades."""
    grades = np.unique(y)[::-1]
    if grades.size > _GRADES:
        return None
    longest = int(queries.sizes.max())
    cutoffs = [k for k in _CUTOFFS if k < longest]
    curve = [(k, float(ndcg(y, scores, queries.codes, k=k))) for k in (*cutoffs, longest)[: len(_CUTOFFS)]]
    # Tied scores in the order of their rows: a picture of many queries does not show it.
    order = np.lexsort((-scores, queries.codes))
    codes = queries.codes[order]
    position = np.arange(y.size) - np.flatnonzero(np.r_[True, codes[1:] != codes[:-1]])[codes]
    first = position < _POSITIONS
    grade = np.searchsorted(-grades, -y[order])
    counts = np.zeros((min(_POSITIONS, longest), grades.size))
    np.add.at(counts, (position[first], grade[first]), 1.0)
    return Top(curve, grades.tolist(), counts / counts.sum(axis=1, keepdims=True))


def top_pictures(top: Top) -> str:
    """Draw both."""
    figures = "".join(
        f'<tr><th scope="row">NDCG@{k}</th><td class="n">{decimals(value)}</td><td class="w"><div class="length">'
        f'<i style="width:{100 * value:.1f}%"></i></div></td></tr>'
        for k, value in top.ndcg
    )
    rows = ""
    for position, shares in enumerate(top.shares, 1):
        parts = "".join(
            f'<span class="grade g{_shade(place, len(top.grades))}" style="width:{100 * share:.1f}%" '
            f'title="grade {number(grade)}: {share:.0%}"></span>'
            for place, (grade, share) in enumerate(zip(top.grades, shares, strict=True))
            if share > 0
        )
        rows += f'<tr><th scope="row" class="n">{position}</th><td><div class="stack">{parts}</div></td></tr>'
    legend = " ".join(
        f'<span class="grade g{_shade(place, len(top.grades))}">{number(grade)}</span>'
        for place, grade in enumerate(top.grades)
    )
    return (
        '<div class="columns top"><div><h3>At every cutoff</h3><table><tbody>'
        f"{figures}</tbody></table></div><div><h3>Grades in the top ten</h3><table><tbody>{rows}</tbody></table>"
        f'<p class="note">Shares of grades {legend} at each position, over all queries.</p></div></div>'
    )


def _shade(place: int, n_grades: int) -> int:
    """Return a shade from 4, the best grade, to 0, the worst."""
    return round(4 * (1 - place / max(n_grades - 1, 1)))


_SURE = 0.05


def title_of(metric: str) -> str:
    """Write a metric as a heading: abbreviations in capitals."""
    words = metric.replace("_", " ")
    head, at, cutoff = words.partition("@")
    return (head.upper() if head in {"ndcg", "map", "mrr", "err", "auc"} else head.capitalize()) + at + cutoff


def in_words(metric: str) -> str:
    """Write a metric inside a sentence: only abbreviations in capitals."""
    title = title_of(metric)
    return title if title[1:2].isupper() else title[:1].lower() + title[1:]


def _p(comparison: Comparison) -> str:
    return text(f"p {p_text(comparison.p_value)}").replace(" ", "\N{NO-BREAK SPACE}")


def verdict(figure: Figure, comparison: Comparison, names: tuple[str, str], other: Interval | None) -> str:
    """Say in one sentence which of two rankings is better; the names are markup."""
    ahead = comparison.difference.value * (1 if figure.greater_is_better else -1)
    words = "cannot be told apart from"
    if comparison.p_value < _SURE:
        words = "ranks better than" if ahead > 0 else "ranks worse than"
    second = None if other is None else other.value
    return (
        f'<p class="verdict">By {text(in_words(figure.name))} {names[0]} <strong>{words}</strong> {names[1]} '
        f"({decimals(figure.model.value)} against {decimals(second)}, {_p(comparison)}).</p>"
    )


def meaning(figure: Figure) -> str:
    """Say in words what the value of a metric means; empty where that would say no more than its convention."""
    value, (base, _, cutoff) = figure.model.value, figure.name.partition("@")
    words = ""
    if base == "pairwise_error":
        words = f"Of 100 pairs it puts {number(round(100 * value))} in the wrong order; a random order 50."
    elif base in {"concordance", "auc"}:
        words = f"Of 100 pairs it puts {number(round(100 * value))} in the right order; a random order 50."
    elif base == "kendall_tau":
        words = "1 is the order of the labels, 0 no relation, −1 the reverse order."
    elif base == "precision":
        length = int(cutoff or 10)
        words = f"Of the first {length} rows of a query {number(round(value * length, 1))} are relevant."
    elif base == "mrr" and value > 0:
        words = f"The first relevant row stands typically at place {number(round(1 / value, 1))}."
    elif base in {"ndcg", "map"} and figure.random is not None and figure.random.value < 1:
        way = (value - figure.random.value) / (1 - figure.random.value)
        words = f"1 would be the best possible order; the model goes {way:.0%} of the way there from a random one."
    return words


def metrics_section(evidence: Evidence, best_name: str | None) -> str:
    """Show every metric with its interval, beside the baselines."""
    rows = [_metric_row(figure) for figure in evidence.figures]
    keys = '<span><s class="m swatch"></s>model</span>'
    if best_name is not None:
        sign = "" if evidence.best_column is None or evidence.best_column[1] > 0 else ", smallest first"
        keys += f' <span><s class="b swatch"></s>best single column: {name(best_name)}{sign}</span>'
    if evidence.figures[0].random is not None:
        keys += ' <span><s class="r swatch"></s>random order</span>'
    note = _note(evidence.figures[0])
    conventions = "".join(
        f"<li>{text(figure.describe)}. {text(meaning(figure))}</li>" for figure in evidence.figures
    )
    shown = evidence.figures[0]
    head = "<th>Metric</th><th></th><th>Model</th>"
    head += "<th>Best single column</th>" if shown.single is not None else ""
    head += "<th>Who won more of its other duels</th>" if shown.record is not None else ""
    head += "<th>Random order</th>" if shown.random is not None else ""
    more = ""
    if rows[1:]:  # folded on a phone, so that queries come soon
        others = table("More metrics", head, "".join(rows[1:]), "metrics")
        more = details(f"{len(rows) - 1} more metrics", others).replace("<details>", '<details class="wide">')
    return section(
        "metrics",
        "How good it is",
        f'<p class="legend">{keys}</p>{table("Metrics", head, rows[0], "metrics")}{more}<p class="note">{note}</p>'
        + details("What these figures mean", f'<ul class="note">{conventions}</ul>'),
    )


def _note(figure: Figure) -> str:
    """Say what the brackets, the baselines and p are."""
    first = figure.model
    if first.unit == "pairs":
        return (
            f"Brackets: {first.level:.0%} intervals over {number(first.n)} pairs, where two that share an item count "
            "as dependent; so does p, of the model against the single column. That is chosen on these very pairs, "
            "which favours it."
        )
    chosen_on = "the other queries" if first.unit == "queries" else "these very rows, which favours it"
    drawn = text(how_many(first.n, first.unit))
    return (
        f"Brackets: {first.level:.0%} intervals over {drawn}. The single column "
        f"is chosen on {chosen_on}. p: paired randomisation test of the model against it."
    )


def _metric_row(figure: Figure) -> str:
    shown = [
        (kind, interval)
        for kind, interval in (("m", figure.model), ("b", figure.single), ("r", figure.random))
        if interval is not None
    ]
    ends = [end for _, i in shown for end in (i.low, i.high, i.value) if np.isfinite(end)]
    low, high = min(ends), max(ends)
    pad = (high - low) * 0.03 or 0.01
    forest = "".join(_whisker(kind, interval, low - pad, high + pad) for kind, interval in shown)
    better = "higher" if figure.greater_is_better else "lower"
    cells = f'<td data-label="Model">{_interval(figure.model)}</td>'
    if figure.single is not None:
        test = "" if figure.against_single is None else f"<small>{_p(figure.against_single)}</small>"
        cells += f'<td data-label="Best single column">{_interval(figure.single)}{test}</td>'
    if figure.record is not None:
        cells += f'<td data-label="Who won more of its other duels">{_interval(figure.record)}</td>'
    if figure.random is not None:
        cells += f'<td data-label="Random order">{_interval(figure.random)}</td>'
    return (
        f'<tr><th scope="row">{text(title_of(figure.name))} <small>{better} is better</small></th>'
        f'<td class="forest" aria-hidden="true"><div>{forest}</div></td>{cells}</tr>'
    )


def _whisker(kind: str, interval: Interval, low: float, high: float) -> str:
    stripe = ""
    if np.isfinite(interval.low):
        left, right = span(low, high, interval.low), span(low, high, interval.high)
        stripe = f'<i class="{kind}" style="left:{left:.1f}%;width:{right - left:.1f}%"></i>'
    return f'{stripe}<s class="{kind}" style="left:{span(low, high, interval.value):.1f}%"></s>'


def _interval(interval: Interval) -> str:
    return f"<span>{decimals(interval.value)}<small>{brackets(interval.low, interval.high)}</small></span>"
