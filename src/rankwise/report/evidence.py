"""The figures of a report: metrics with intervals, baselines, every query's own value, duels, and a second model."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import expit

from rankwise.arrays import Floats, InMemory, Ints, MatrixLike, is_sparse
from rankwise.automatic.calibration import Calibration
from rankwise.data.queries import Queries, one_query
from rankwise.data.summary import how_many, is_graded
from rankwise.data.validation import check_pairs
from rankwise.exceptions import InvalidInputError
from rankwise.formula.view import ModelView
from rankwise.metrics import Comparison, Interval, Metric, PerQuery, get_metric, ndcg
from rankwise.metrics.comparison import compare_over_pairs, compare_rankings, p_text
from rankwise.metrics.intervals import bootstrap_interval, mean_over_pairs
from rankwise.metrics.pairwise import wrong_pairs
from rankwise.report import markup as html

_COLUMNS_TRIED = 2000
_FOLDS = 5  # of queries, to choose a column that is not evaluated on what chose it
_NUMBERS_TRIED = 20_000_000  # a few seconds of sorting
_SURE = 0.05
_CUTOFFS = (1, 2, 3, 5, 10, 20, 50)
_POSITIONS = 10
_GRADES = 5  # shades there are
_NAMED = 5  # queries on which two models differ most, on either side
OF_PAIRS = "share of the listed preferences that the scores contradict; tied scores count one half"


@dataclass(frozen=True)
class Figure:
    """One metric of the model and of its baselines.

    Attributes
    ----------
    metric : Metric
    convention : str
        In words.
    model : Interval
    random : Interval
        That of a random order, in expectation.
    single : Interval or None
        The best single column's.
    against_single : Comparison or None
        The model minus the best single column.
    record : Interval or None
        Of duels: that of betting on the item that won the larger share of its other duels.
    """

    metric: Metric
    convention: str
    model: Interval
    random: Interval
    single: Interval | None = None
    against_single: Comparison | None = None
    record: Interval | None = None

    @property
    def name(self) -> str:
        """Return the name of the metric."""
        return self.metric.name

    @property
    def better(self) -> str:
        """Return which values are better: "higher" or "lower"."""
        return "higher" if self.metric.greater_is_better else "lower"

    @property
    def shown(self) -> list[tuple[str, str, Interval]]:
        """Return a letter, a title and the interval of the model and of each baseline."""
        every = (
            ("m", "Model", self.model),
            ("b", "Best single column", self.single),
            ("w", "Who won more of its other duels", self.record),
            ("r", "Random order", self.random),
        )
        return [(letter, title, one) for letter, title, one in every if one is not None]


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
    """

    figures: list[Figure]
    per_query: PerQuery | None
    best_column: tuple[int, int] | None


class ByLabels:
    """Judges scores by labels inside queries; the page leads with the first metric."""

    def __init__(
        self,
        y: Floats,
        queries: Queries,
        metrics: Sequence[str | Metric] | None,
        seed: int = 0,
        weight: Floats | None = None,
    ) -> None:
        suitable = _suitable_metrics(y, len(queries), is_weighted=weight is not None)
        named: Any = [metrics] if isinstance(metrics, str) else metrics or suitable
        self.metrics, self.y, self.queries = list(map(get_metric, named)), y, queries
        self._weight, self._seed = weight, seed
        self._how: dict[str, Any] = {"sample_weight": weight, "random_state": seed}

    def describe(self, metric: Metric) -> str:
        """Return the convention of a metric in words."""
        return metric.describe()

    def interval(self, metric: Metric, scores: Floats) -> Interval:
        """Return the metric of scores with its interval."""
        return bootstrap_interval(self.y, scores, self.queries, metric=metric, **self._how)

    def compare(self, metric: Metric, one: Floats, other: Floats) -> Comparison:
        """Compare two scores, query by query."""
        return compare_rankings(self.y, one, other, self.queries, metric=metric, **self._how)

    def per_query(self, metric: Metric, scores: Floats) -> PerQuery:
        """Return the metric of every query."""
        return metric.prepare(self.y, self.queries, sample_weight=self._weight).per_query(scores)

    def baselines(self, metric: Metric) -> dict[str, Interval]:
        """Return the metric of a random order: tied scores are averaged over all orders."""
        return {"random": self.interval(metric, np.zeros(self.y.size))}

    def values(self, block: Floats) -> Floats:
        """Return the first metric of each column."""
        return self.metrics[0].prepare(self.y, self.queries, sample_weight=self._weight).many(block)

    def column(self, X: InMemory, best: tuple[int, int]) -> Floats:
        """Score each query by the column that ranks best on the other queries, so that the choice is not rewarded."""
        scores = best[1] * take_columns(X, best[0])
        if len(self.queries) < _FOLDS:
            return scores
        fold = self.queries.codes % _FOLDS
        for held_out in range(_FOLDS):
            others, own = np.flatnonzero(fold != held_out), fold == held_out
            weight = None if self._weight is None else self._weight[others]
            try:
                queries = self.queries.subset(others)
                rest = ByLabels(self.y[others], queries, self.metrics[:1], self._seed, weight)
                chosen = best_column(rest, X[others])
            except InvalidInputError:  # too little is left to evaluate a column on
                continue
            if chosen is not None:
                scores[own] = chosen[1] * take_columns(X, chosen[0])[own]
        return scores


class ByPairs:
    """Judges scores by a list of preferences."""

    def __init__(self, pairs: npt.ArrayLike, weight: npt.ArrayLike | None, n_rows: int) -> None:
        checked = check_pairs(pairs, n_rows, weight=weight)
        self.weight = np.ones(len(checked)) if checked.weight is None else checked.weight
        self.pairs = np.column_stack([checked.winner, checked.loser])
        self.metrics, self.y, self.queries = [get_metric("pairwise_error")], None, one_query(n_rows)

    def describe(self, metric: Metric) -> str:
        """Return the convention of the error in words."""
        return f"Pairwise error: {OF_PAIRS}"

    def interval(self, metric: Metric, scores: Floats) -> Interval:
        """Return the error of scores with its interval."""
        return mean_over_pairs(wrong_pairs(scores, self.pairs), self.pairs, self.weight)

    def compare(self, metric: Metric, one: Floats, other: Floats) -> Comparison:
        """Compare two scores, pair by pair."""
        first, second = (wrong_pairs(scores, self.pairs) for scores in (one, other))
        return compare_over_pairs(first, second, self.pairs, self.weight)

    def baselines(self, metric: Metric) -> dict[str, Interval | None]:
        """Return the error of a random order, and of the records of the items."""
        random = Interval(0.5, np.nan, np.nan, 0.95, len(self.pairs), "pairs")
        record = record_errors(self.pairs, self.weight, self.queries.n_rows)
        known = None if record is None else mean_over_pairs(record, self.pairs, self.weight)
        return {"random": random, "record": known}

    def values(self, block: Floats) -> Floats:
        """Return the error of each column."""
        return np.array([np.average(wrong_pairs(x, self.pairs), weights=self.weight) for x in block.T])

    def column(self, X: InMemory, best: tuple[int, int]) -> Floats:
        """Return the best column, which was chosen on the same pairs."""
        return best[1] * take_columns(X, best[0])


Judge = ByLabels | ByPairs


def _suitable_metrics(labels: Floats, n_queries: int, *, is_weighted: bool) -> tuple[str, ...]:
    """Name the metrics that mean something for labels of this kind: grades, or real numbers and weighted rows."""
    if is_weighted or not is_graded(labels):
        return ("pairwise_error", "kendall_tau")
    if n_queries == 1:
        return ("pairwise_error", "ndcg", "kendall_tau")
    named = "ndcg@10 average_precision reciprocal_rank precision@5 pairwise_error kendall_tau"
    return tuple(named.split())


def evaluate(judge: Judge, given: MatrixLike, scores: Floats) -> Evidence:
    """Measure scores beside the baselines."""
    X: InMemory = given.tocsr() if is_sparse(given) else np.asarray(given)
    best, figures = best_column(judge, X), []
    column = None if best is None else judge.column(X, best)
    for metric in judge.metrics:
        beside: dict[str, Any] = judge.baselines(metric)
        if column is not None:
            beside["single"] = judge.interval(metric, column)
            beside["against_single"] = judge.compare(metric, scores, column)
        figures.append(Figure(metric, judge.describe(metric), judge.interval(metric, scores), **beside))
    values = judge.per_query(judge.metrics[0], scores) if isinstance(judge, ByLabels) else None
    return Evidence(figures, values, best)


def best_column(judge: Judge, X: InMemory) -> tuple[int, int] | None:
    """Find the column, and its sign, that alone ranks best."""
    better = 1.0 if judge.metrics[0].greater_is_better else -1.0
    best, found = -np.inf, None
    tried = columns_to_try(X)
    for columns in np.array_split(tried, max(1, -(-tried.size * X.shape[0] // 4_000_000))):
        block = take_columns(X, columns)
        complete = np.isfinite(block).all(axis=0)  # a column with missing entries orders nothing by itself
        for sign in (1, -1) if complete.any() else ():
            values = better * judge.values(sign * block[:, complete])
            if values.max() > best:
                best, found = float(values.max()), (int(columns[complete][np.argmax(values)]), sign)
    return found


def columns_to_try(X: InMemory) -> npt.NDArray[np.int64]:
    """Choose columns for a baseline: all, or those that are filled most where that would take too long."""
    count = min(_COLUMNS_TRIED, max(20, _NUMBERS_TRIED // max(int(X.shape[0]), 1)))
    filled = np.diff(X.tocsc().indptr) if is_sparse(X) else np.zeros(X.shape[1])
    return np.sort(np.argsort(-filled, kind="stable")[:count])


def take_columns(X: InMemory, columns: Any) -> Floats:
    """Return one column or some of a matrix as numbers."""
    block = X[:, np.atleast_1d(columns)]
    found = np.asarray(block.toarray() if is_sparse(block) else block, dtype=np.float64)
    return found[:, 0] if np.ndim(columns) == 0 else found


def look_at_top(
    y: Floats, queries: Queries, scores: Floats
) -> tuple[list[tuple[int, float]], list[float], Floats] | None:
    """Return NDCG at some cutoffs, the grades from the best on, and their shares at each position of the top.

    None where labels are no grades, there is one ranking, or there are more grades than shades.
    """
    grades = np.unique(y)[::-1]
    if not is_graded(y) or len(queries) == 1 or grades.size > _GRADES:
        return None
    longest = int(queries.sizes.max())
    cutoffs = [*(k for k in _CUTOFFS if k < longest), longest][: len(_CUTOFFS)]
    curve = [(k, float(ndcg(y, scores, queries.codes, k=k))) for k in cutoffs]
    # Tied scores in the order of their rows: a picture of many queries does not show it.
    order = np.lexsort((-scores, queries.codes))
    position = np.arange(y.size) - queries.offsets[queries.codes[order]]
    first = position < _POSITIONS
    counts = np.zeros((min(_POSITIONS, longest), grades.size))
    np.add.at(counts, (position[first], np.searchsorted(-grades, -y[order][first])), 1.0)
    return curve, grades.tolist(), counts / counts.sum(axis=1, keepdims=True)


def top_pictures(judge: Judge, scores: Floats) -> str:
    """Draw NDCG at some cutoffs, and the grades in the top ten."""
    found = None if judge.y is None else look_at_top(judge.y, judge.queries, scores)
    if found is None:
        return ""
    curve, grades, shares = found
    cutoffs = [(f"NDCG@{k}", html.decimals(value), html.bar(value)) for k, value in curve]
    shades = [f"grade g{round(4 * (1 - at / max(len(grades) - 1, 1)))}" for at in range(len(grades))]
    rows = []
    for position, own in enumerate(shares, 1):
        parts = "".join(
            f'<span class="{shade}" style="width:{100 * share:.1f}%" title="grade {grade}: {share:.0%}"></span>'
            for shade, grade, share in zip(shades, map(html.number, grades), own, strict=True)
            if share > 0
        )
        rows.append((str(position), f'<div class="stack">{parts}</div>'))
    legend = " ".join(
        f'<span class="{s}">{html.number(g)}</span>' for s, g in zip(shades, grades, strict=True)
    )
    return (
        f'<div class="columns top"><div><h3>At every cutoff</h3>{html.listing("NDCG", ["", "#", "~"], cutoffs)}</div>'
        f"<div><h3>Grades in the top ten</h3>{html.listing('Grades', ['#', '~'], rows)}"
        f'<p class="note">Shares of grades {legend} at each position, over all queries.</p></div></div>'
    )


def _heading(figure: Figure) -> str:
    return f"{html.text(title_of(figure.name))} <small>{figure.better} is better</small>"


def title_of(metric: str) -> str:
    """Write a metric as a heading: abbreviations in capitals."""
    words = metric.replace("_", " ")
    head, at, cutoff = words.partition("@")
    return (head.upper() if head in {"ndcg", "err", "auc"} else head.capitalize()) + at + cutoff


def in_words(metric: str) -> str:
    """Write a metric inside a sentence: only abbreviations in capitals."""
    title = title_of(metric)
    return title if title[1:2].isupper() else title[:1].lower() + title[1:]


def _p(comparison: Comparison) -> str:
    return html.text(f"p {p_text(comparison.p_value)}").replace(" ", "\N{NO-BREAK SPACE}")


def verdict(figure: Figure, comparison: Comparison, names: tuple[str, str], other: Interval | None) -> str:
    """Say in one sentence which of two rankings is better; the names are markup."""
    ahead = comparison.difference.value * (1 if figure.better == "higher" else -1)
    words = "cannot be told apart from"
    if comparison.p_value < _SURE:
        words = "ranks better than" if ahead > 0 else "ranks worse than"
    second = None if other is None else other.value
    return (
        f'<p class="verdict">By {html.text(in_words(figure.name))} {names[0]} <strong>{words}</strong> {names[1]} '
        f"({html.decimals(figure.model.value)} against {html.decimals(second)}, {_p(comparison)}).</p>"
    )


def meaning(figure: Figure) -> str:
    """Explain the value of a metric in words; empty if that would only repeat its convention."""
    value, (base, _, cutoff) = figure.model.value, figure.name.partition("@")
    if base in {"pairwise_error", "concordance", "auc"}:
        order = "wrong" if base == "pairwise_error" else "right"
        return (
            f"Of 100 pairs it puts {html.number(round(100 * value))} in the {order} order; a random order 50."
        )
    if base == "kendall_tau":
        return "1 is the order of the labels, 0 no relation, −1 the reverse order."
    if base == "precision":
        length = int(cutoff or 10)
        return f"Of the first {length} rows of a query {html.number(round(value * length, 1))} are relevant."
    if base == "reciprocal_rank" and value > 0:
        return f"The first relevant row stands typically at place {html.number(round(1 / value, 1))}."
    if base in {"ndcg", "average_precision"} and figure.random.value < 1:
        way = (value - figure.random.value) / (1 - figure.random.value)
        return f"1 would be the best possible order; the model goes {way:.0%} of the way there from a random one."
    return ""


def metrics_section(evidence: Evidence, best_name: str | None) -> str:
    """Show every metric with its interval, beside the baselines."""
    first = evidence.figures[0]
    of = {}
    if best_name is not None and evidence.best_column is not None:
        sign = "" if evidence.best_column[1] > 0 else ", smallest first"
        of["b"] = f": {html.name(best_name)}{sign}"
    swatches = (f'<s class="{at} swatch"></s>{title}{of.get(at, "")}' for at, title, _ in first.shown)
    keys = " ".join(f"<span>{one}</span>" for one in swatches)
    head = ["Metric", "~", *(title for _, title, _ in first.shown)]
    rows = [_metric_row(figure) for figure in evidence.figures]
    shown = html.listing("Metrics", head, rows[:1], "metrics")
    if rows[1:]:  # folded on a phone, so that queries come soon
        others = html.listing("More metrics", head, rows[1:], "metrics")
        shown += html.details(html.counted(len(rows) - 1, "more metric"), others, "wide")
    meanings = "".join(
        f"<li>{html.text(one.convention)}. {html.text(meaning(one))}</li>" for one in evidence.figures
    )
    return html.section(
        "metrics",
        "How good it is",
        f'<p class="legend">{keys}</p>{shown}<p class="note">{_note(first)}</p>'
        + html.details("Definitions of the metrics", f'<ul class="note">{meanings}</ul>'),
    )


def _note(figure: Figure) -> str:
    """Explain the intervals, the baselines and p."""
    first = figure.model
    if first.unit == "pairs":
        return (
            f"Brackets: {first.level:.0%} intervals over {html.number(first.n)} pairs, where two that share an item "
            "count as dependent; so does p, of the model against the single column. That is chosen on these very "
            "pairs, which favours it."
        )
    note = f"Brackets: {first.level:.0%} intervals over {html.text(how_many(first.n, first.unit))}."
    if figure.single is None:
        return note
    chosen_on = "the other queries" if first.unit == "queries" else "these very rows, which favours it"
    return f"{note} The single column is chosen on {chosen_on}. p: paired randomisation test of the model against it."


def _metric_row(figure: Figure) -> list[str]:
    ends = [end for *_, i in figure.shown for end in (i.low, i.high, i.value) if np.isfinite(end)]
    pad = (max(ends) - min(ends)) * 0.03 or 0.01
    low, high = min(ends) - pad, max(ends) + pad
    forest, cells = "", []
    for letter, _, one in figure.shown:
        if np.isfinite(one.low):
            left, right = html.span(low, high, one.low), html.span(low, high, one.high)
            forest += f'<i class="{letter}" style="left:{left:.1f}%;width:{right - left:.1f}%"></i>'
        forest += f'<s class="{letter}" style="left:{html.span(low, high, one.value):.1f}%"></s>'
        cells.append(
            f"<span>{html.decimals(one.value)}<small>{html.brackets(one.low, one.high)}</small></span>"
        )
        if letter == "b" and figure.against_single:
            cells[-1] += f"<small>{_p(figure.against_single)}</small>"
    return [_heading(figure), f'<div class="forest" aria-hidden="true">{forest}</div>', *cells]


def against_section(
    names: tuple[str, str], judge: Judge, scores: tuple[Floats, Floats], evidence: Evidence
) -> str:
    """Show two models metric by metric, with paired differences."""
    own, called = names
    if own == called:
        own, called = f"{own} (this one)", f"{called} (the other)"
    rows = [
        (figure, judge.interval(figure.metric, scores[1]), judge.compare(figure.metric, *scores))
        for figure in evidence.figures
    ]
    first, other, compared = rows[0]
    moved = ""
    if isinstance(judge, ByPairs):
        sides = [np.sign(one[judge.pairs[:, 0]] - one[judge.pairs[:, 1]]) for one in scores]
        same_order = float(np.average(sides[0] == sides[1], weights=judge.weight))
        seen = "the same pairs, and pairs that share an item count as dependent"
    else:
        same_order = _same_order(*scores, judge.queries)
        seen = "the same queries" if first.model.unit == "queries" else "the same rows"
        moved = _moved(own, judge, scores) if len(judge.queries) > 1 else ""
    head = ["Metric", f"#{own}", f"#{called}", "#difference", "#p", "better on"]
    body = (
        verdict(first, compared, (html.name(own), html.name(called)), other)
        + f"<p>The two order {same_order:.0%} of the pairs of rows alike.</p>"
        + html.listing("Two models", head, [_compared(*row) for row in rows], "beside")
        + f'<p class="note">Differences are paired: both models see {seen}. '
        f"Brackets: {first.model.level:.0%} intervals of the difference; where they do not hold 0, the two can be told "
        "apart. p: how often a difference as large arises by chance.</p>"
    )
    return html.section("against", f"Against {called}", body + moved)


def _moved(own: str, judge: ByLabels, scores: tuple[Floats, Floats]) -> str:
    """List the queries on which the first model is most ahead and most behind, by the first metric."""
    metric, ids = judge.metrics[0], judge.queries.ids
    first, second = (judge.per_query(metric, one) for one in scores)
    better = 1.0 if metric.greater_is_better else -1.0
    difference = np.where(first.counted, better * (first.values - second.values), 0.0)
    order = np.argsort(-difference, kind="stable")
    named = [*order[:_NAMED], *order[-_NAMED:]] if ids.size > 2 * _NAMED else order
    lines = [(f"query {html.name(ids[at])}", _signed(difference[at])) for at in named if difference[at] != 0]
    title = f"Queries on which {html.name(own)} is most ahead, and most behind"
    return html.details(title, html.listing("Queries", ["query", "#ahead by"], lines)) if lines else ""


def _same_order(first: Floats, second: Floats, queries: Queries) -> float:
    """Return how often two models order two rows of a query alike: concordance with the other model as truth."""
    codes = np.unique(second, return_inverse=True)[1].astype(np.float64)
    if all(np.unique(codes[queries.codes == code]).size < 2 for code in range(len(queries))):
        return 1.0
    return float(get_metric("concordance")(codes, first, queries))


def _signed(value: float) -> str:
    return ("+" if value > 0 else "") + html.decimals(value)


def _compared(figure: Figure, second: Interval, found: Comparison) -> list[str]:
    gap = found.difference
    units = "pairs" if gap.unit == "pairs" else "queries"
    count = (
        f"{html.number(found.wins)} to {html.number(found.losses)} {units}"
        if found.wins + found.losses
        else "–"
    )
    return [
        _heading(figure),
        html.decimals(figure.model.value),
        html.decimals(second.value),
        f"{_signed(gap.value)} <small>{html.brackets(gap.low, gap.high)}</small>",
        html.text(p_text(found.p_value).removeprefix("= ")),
        count,
    ]


# --- duels ---

_ITEMS = 30  # items that the table shows
_BINS = (0.5, 0.6, 0.7, 0.8, 0.9, 1.0)

Probability = Callable[[Floats], Floats]
Bin = tuple[float, float, float, float, float]  # low, high, weight of pairs, mean probability, share of wins


def probability_of(view: ModelView) -> Probability | None:
    """Return the function from differences of scores to probabilities; None if the model has none."""
    if view.calibration is not None:
        return Calibration(*view.calibration)
    return (lambda difference: np.asarray(expit(difference))) if view.is_probability else None


def reliability(chance: Floats, weight: Floats) -> list[Bin]:
    """Compare the predicted and the observed wins of favourites; one at probability one half counts half a win."""
    said = np.maximum(chance, 1 - chance)
    right = np.where(chance > 0.5, 1.0, np.where(chance == 0.5, 0.5, 0.0))
    place = np.clip(np.searchsorted(_BINS, said, side="right") - 1, 0, len(_BINS) - 2)
    found = []
    for at, (low, high) in enumerate(pairwise(_BINS)):
        own = (place == at) & (weight > 0)
        if own.any():
            shares = [float(np.average(values[own], weights=weight[own])) for values in (said, right)]
            found.append((low, high, float(weight[own].sum()), shares[0], shares[1]))
    return found


def record_errors(pairs: Ints, weight: Floats, n_rows: int) -> Floats | None:
    """Return the errors of betting on the item that won more of its other duels; None where none fought twice."""
    winner, loser = pairs[:, 0], pairs[:, 1]
    won = np.bincount(winner, weights=weight, minlength=n_rows)
    fought = won + np.bincount(loser, weights=weight, minlength=n_rows)
    others = fought[pairs] - weight[:, None]  # without the duel that is bet on
    if not (others > 0).any():
        return None
    with np.errstate(invalid="ignore", divide="ignore"):
        first = np.where(others[:, 0] > 0, (won[winner] - weight) / others[:, 0], 0.5)
        second = np.where(others[:, 1] > 0, won[loser] / others[:, 1], 0.5)
    # Shares are sums in another order: equal ones may differ by rounding.
    equal = np.isclose(first, second, rtol=0, atol=1e-12)
    return np.where(equal, 0.5, np.where(first < second, 1.0, 0.0))


def duels_section(
    pairs: Ints,
    weight: Floats,
    scores: Floats,
    probability: Probability | None,
    names: Sequence[str] | None,
    thing: str,
) -> str:
    """Show the items with their wins and losses beside the model's, and how far probabilities can be believed."""
    winner, loser = pairs.T
    won, lost = (np.bincount(side, weights=weight, minlength=scores.size) for side in (winner, loser))
    fought = np.flatnonzero(won + lost)
    order = fought[np.argsort(-scores[fought], kind="stable")]
    shown = order[:_ITEMS]
    ranks = np.searchsorted(-scores[order], -scores[shown], side="left") + 1
    cells: dict[str, Iterable[str]] = {
        "#rank": map(str, ranks.tolist()),
        thing: [html.name(f"row {row}" if names is None else names[row]) for row in shown.tolist()],
        "#score": html.alike(scores[shown].tolist()),
        "#won": map(html.number, won[shown].tolist()),
        "#lost": map(html.number, lost[shown].tolist()),
    }
    expectation, believed = "", ""
    if probability is not None:
        chance = probability(scores[winner] - scores[loser])
        expected = np.bincount(winner, weights=weight * chance, minlength=scores.size)
        expected += np.bincount(loser, weights=weight * (1 - chance), minlength=scores.size)
        cells["#wins expected"] = [html.decimals(value, 1) for value in expected[shown].tolist()]
        expectation = ", and about as often as expected, which is the sum of its probabilities over its duels"
        log_loss = float(np.average(-np.log(np.clip(chance, 1e-15, 1)), weights=weight))
        believed = reliability_table(reliability(chance, weight), log_loss)
    more = fought.size - shown.size
    rest = f"<p><small>{html.counted(more, f'more {thing}')} not shown.</small></p>" if more else ""
    return html.section(
        "duels",
        "Wins and losses",
        f"<p>{html.counted(fought.size, thing)} fought. Items at the top should have won more than they "
        f"lost{expectation}.</p>"
        f"{html.listing('Wins and losses', list(cells), list(zip(*cells.values(), strict=True)))}{rest}{believed}",
    )


def reliability_table(bins: Sequence[Bin], log_loss: float) -> str:
    """Show the probabilities of favourites beside the shares of their wins."""
    head = ["chance of the favourite", "#duels", "#predicted", "#won", "~"]
    rows = [
        (f"{low:.0%} to {high:.0%}", html.number(count), f"{said:.0%}", f"{right:.0%}", html.bar(right))
        for low, high, count, said, right in bins
    ]
    return (
        "<h3>Can its probabilities be believed?</h3><p>The mean chance that the model gave to the favourites, and "
        "the share of these duels that they won. The two should agree. "
        f"Log-loss {html.decimals(log_loss)}; a coin has {html.decimals(float(np.log(2)))}.</p>"
        + html.listing("Probabilities", head, rows, "weights")
    )
