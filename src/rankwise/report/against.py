"""A second model of the same rows, beside the first; and the first on the rows that it was trained on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np

from rankwise.arrays import ArrayLike, Floats, Ints, MatrixLike
from rankwise.data.containers import readable
from rankwise.data.queries import Queries
from rankwise.data.validation import check_numbers, check_pairs, check_qid
from rankwise.exceptions import InvalidInputError
from rankwise.formula.view import ModelView, without_encoder
from rankwise.metrics import Comparison, Interval, bootstrap_interval, compare_rankings, get_metric
from rankwise.metrics.comparison import compare_over_pairs, p_text
from rankwise.metrics.intervals import mean_over_pairs
from rankwise.metrics.pairwise import wrong_pairs
from rankwise.preprocessing.table_encoder import TableEncoder
from rankwise.report.evidence import Evidence
from rankwise.report.markup import decimals, name, number, plain, section, table, text
from rankwise.report.sections import in_words, title_of

__all__ = [
    "Against",
    "Beside",
    "against_section",
    "compare_labels",
    "compare_pairs",
    "on_training",
    "read_other",
    "told_apart",
    "training_section",
]

_SURE = 0.05
_QUERIES = 5  # on either side that are named


@dataclass(frozen=True)
class Beside:
    """One metric of two models, or of one on two sets of rows (then without a comparison)."""

    name: str
    greater_is_better: bool
    first: Interval
    second: Interval
    comparison: Comparison | None = None


@dataclass(frozen=True)
class Against:
    """Everything that is said of a second model.

    Attributes
    ----------
    name : str
        What it is called.
    rows : list of Beside
    moved : list of (query, difference)
        Queries on which the first model is most ahead and most behind, by the first metric.
    same_order : float
        The share of pairs of rows that both models order alike.
    """

    name: str
    rows: list[Beside]
    moved: list[tuple[str, float]]
    same_order: float


def read_other(
    other: object, called: str | None, X: MatrixLike, qid: ArrayLike | None, n_rows: int
) -> tuple[Floats, str]:
    """Return the scores of another model, and what it is called."""
    if not hasattr(other, "predict"):
        return check_numbers("against", other, n_rows), called or "the other model"
    model, encoder = without_encoder(other)
    view = ModelView.of(model)
    scores = view.predict(view.prepare(X if encoder is None else encoder.transform(X), qid), qid)
    return check_numbers("the scores of against", scores, n_rows), called or view.describe()


def told_apart(own: str, other: str) -> tuple[str, str]:
    """Return two names that differ."""
    return (own, other) if own != other else (f"{own} (this one)", f"{other} (the other)")


def on_training(
    train: tuple[object, ...], view: ModelView, encoder: TableEncoder | None, evidence: Evidence, seed: int
) -> list[Beside]:
    """Evaluate a model on the rows that it was trained on, by the metrics of a report."""
    if not isinstance(train, (tuple, list)) or len(train) not in {2, 3}:
        raise InvalidInputError(
            "train is not a tuple of two or three.", "pass (X, y), (X, y, qid) or (X, pairs)."
        )
    X, y, qid = (
        readable("X of train", train[0])
        if encoder is None
        else encoder.transform(cast("MatrixLike", train[0])),
        train[1],
        cast("ArrayLike | None", train[2] if train[2:] else None),
    )
    X = X if hasattr(X, "shape") else np.asarray(X)
    scores = view.predict(view.prepare(X, qid), qid)
    first = evidence.figures[0]
    if first.metric is None:
        pairs = check_pairs(cast("ArrayLike", y), scores.size)
        edges = np.column_stack([pairs.winner, pairs.loser])
        own = mean_over_pairs(wrong_pairs(scores, edges), edges)
        return [Beside(first.name, first.greater_is_better, own, first.model)]
    labels, queries = check_numbers("the labels of train", y, scores.size), check_qid(qid, scores.size)
    return [
        Beside(
            figure.name,
            figure.greater_is_better,
            bootstrap_interval(labels, scores, queries, metric=figure.metric, random_state=seed),
            figure.model,
        )
        for figure in evidence.figures
        if figure.metric is not None
    ]


def compare_labels(
    called: str,
    y: Floats,
    queries: Queries,
    scores: tuple[Floats, Floats],
    evidence: Evidence,
    seed: int,
) -> Against:
    """Compare two models by the metrics of labels, query by query."""
    metrics = [figure.metric for figure in evidence.figures if figure.metric is not None]
    rows = [
        Beside(
            metric.name,
            metric.greater_is_better,
            bootstrap_interval(y, scores[0], queries, metric=metric, random_state=seed),
            bootstrap_interval(y, scores[1], queries, metric=metric, random_state=seed),
            compare_rankings(y, *scores, queries, metric=metric, random_state=seed),
        )
        for metric in metrics
    ]
    evaluator = metrics[0].prepare(y, queries)
    first, second = (evaluator.per_query(one) for one in scores)
    better = 1.0 if metrics[0].greater_is_better else -1.0
    difference = np.where(first.counted, better * (first.values - second.values), 0.0)
    order = np.argsort(-difference, kind="stable")
    named = [*order[:_QUERIES], *order[-_QUERIES:]] if len(queries) > 2 * _QUERIES else list(order)
    moved = [(str(queries.ids[at]), float(difference[at])) for at in named if difference[at] != 0]
    return Against(called, rows, moved if len(queries) > 1 else [], _same_order(*scores, queries))


def compare_pairs(called: str, pairs: Ints, weight: Floats, scores: tuple[Floats, Floats]) -> Against:
    """Compare two models by preferences, pair by pair."""
    wrong = (wrong_pairs(scores[0], pairs), wrong_pairs(scores[1], pairs))
    row = Beside(
        "pairwise_error",
        False,
        mean_over_pairs(wrong[0], pairs, weight),
        mean_over_pairs(wrong[1], pairs, weight),
        compare_over_pairs(*wrong, pairs, weight),
    )
    sides = [np.sign(one[pairs[:, 0]] - one[pairs[:, 1]]) for one in scores]
    return Against(called, [row], [], float(np.average(sides[0] == sides[1], weights=weight)))


def _same_order(first: Floats, second: Floats, queries: Queries) -> float:
    """Return how often two models order two rows of a query alike: concordance with the other model as truth."""
    codes = np.unique(second, return_inverse=True)[1].astype(np.float64)
    if all(np.unique(codes[queries.codes == code]).size < 2 for code in range(len(queries))):
        return 1.0
    return float(get_metric("concordance")(codes, first, queries))


def against_section(against: Against, own: str) -> str:
    """Show both models metric by metric, with paired differences."""
    first = against.rows[0]
    head = f'<th>Metric</th><th class="n">{name(own)}</th><th class="n">{name(against.name)}</th>'
    head += '<th class="n">difference</th><th class="n">p</th><th>better on</th>'
    body = (
        f'<p class="verdict">{_verdict(first, own, against.name)}</p>'
        f"<p>The two order {against.same_order:.0%} of the pairs of rows alike.</p>"
        + table("Two models", head, "".join(_row(one, own, against.name) for one in against.rows), "beside")
        + f'<p class="note">Differences are paired: {text(_unit_words(first))}. Brackets: {first.first.level:.0%} '
        "intervals of the difference; where they do not hold 0, the two can be told apart. p: how often a difference "
        "as large arises by chance.</p>"
    )
    if against.moved:
        lines = "".join(
            f'<tr><td>query {name(query)}</td><td class="n">{_signed(value)}</td></tr>'
            for query, value in against.moved
        )
        body += (
            f"<details><summary>Queries on which {name(own)} is most ahead, and most behind</summary>"
            f"{table('Queries', '<th>query</th><th class=n>ahead by</th>', lines)}</details>"
        )
    return section("against", f"Against {against.name}", body)


def _unit_words(one: Beside) -> str:
    if one.first.unit == "pairs":
        return "both models see the same pairs, and pairs that share an item count as dependent"
    return (
        "both models see the same queries" if one.first.unit == "queries" else "both models see the same rows"
    )


def _verdict(one: Beside, own: str, other: str) -> str:
    found = one.comparison
    assert found is not None
    ahead = found.difference.value * (1 if one.greater_is_better else -1)
    if found.p_value >= _SURE:
        words = "cannot be told apart from"
    else:
        words = "ranks better than" if ahead > 0 else "ranks worse than"
    return (
        f"By {text(in_words(one.name))} {name(own)} <strong>{words}</strong> {name(other)} "
        f"({decimals(one.first.value)} against {decimals(one.second.value)}, p {text(p_text(found.p_value))})."
    )


def _signed(value: float) -> str:
    return ("+" if value > 0 else "") + decimals(value)


def _row(one: Beside, own: str, other: str) -> str:
    found = one.comparison
    assert found is not None
    better = "higher" if one.greater_is_better else "lower"
    gap = found.difference
    brackets = (
        f"<small>[{decimals(gap.low, 3)}, {decimals(gap.high, 3)}]</small>" if np.isfinite(gap.low) else ""
    )
    units = "pairs" if gap.unit == "pairs" else "queries"
    count = f"{number(found.wins)} to {number(found.losses)} {units}" if found.wins + found.losses else "–"
    p_value = p_text(found.p_value).removeprefix("= ")
    return (
        f'<tr><th scope="row">{text(title_of(one.name))} <small>{better} is better</small></th>'
        f'<td class="n" data-label="{text(plain(own))}">{decimals(one.first.value)}</td>'
        f'<td class="n" data-label="{text(plain(other))}">{decimals(one.second.value)}</td>'
        f'<td class="n" data-label="difference">{_signed(gap.value)} {brackets}</td>'
        f'<td class="n" data-label="p">{text(p_value)}</td><td data-label="better on">{count}</td></tr>'
    )


def training_section(rows: Sequence[Beside]) -> str:
    """Show the model on the rows that it was trained on, beside these."""
    lines = ""
    for one in rows:
        gap = _signed(one.second.value - one.first.value)
        lines += (
            f'<tr><th scope="row">{text(title_of(one.name))}</th><td class="n">{decimals(one.first.value)}</td>'
            f'<td class="n">{decimals(one.second.value)}</td><td class="n">{gap}</td></tr>'
        )
    first = rows[0]
    lost = (first.first.value - first.second.value) * (1 if first.greater_is_better else -1)
    is_outside = first.first.value < first.second.low or first.first.value > first.second.high
    if lost > 0 and is_outside:
        words = (
            "It is better on the rows that it was trained on than on these, by more than chance: part of what it "
            "learned holds for those rows alone. More rows, or a larger alpha, would narrow the gap."
        )
    elif lost < 0 and is_outside:
        words = "It is better on these rows than on those that it was trained on: these are easier, or of another kind."
    else:
        words = "It is about as good on these rows as on those that it was trained on: it learned little by heart."
    head = '<th>Metric</th><th class="n">training rows</th><th class="n">these rows</th><th class="n">difference</th>'
    shown = table("Training rows against these", head, lines)
    return section("training", "Training rows against these", f"<p>{words}</p>{shown}")
