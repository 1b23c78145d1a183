"""A second model of the same rows, beside the first."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rankwise.arrays import ArrayLike, Floats, MatrixLike
from rankwise.data.queries import Queries
from rankwise.data.validation import check_numbers
from rankwise.formula.view import ModelView
from rankwise.metrics import Comparison, Interval, get_metric
from rankwise.metrics.comparison import p_text
from rankwise.report.evidence import ByPairs, Evidence, Figure, Judge, title_of, verdict
from rankwise.report.markup import brackets, decimals, details, listing, name, number, section, text

__all__ = ["Against", "against_section", "compare", "read_other"]

_QUERIES = 5  # on either side that are named


@dataclass(frozen=True)
class Against:
    """The comparison with a second model.

    Attributes
    ----------
    name : str
        Its display name.
    rows : list of (Figure, Interval, Comparison)
        Each figure of the first model, the interval of the second, and the paired comparison.
    moved : list of (query, difference)
        Queries on which the first model is most ahead and most behind, by the first metric.
    same_order : float
        The share of pairs of rows that both models order alike.
    """

    name: str
    rows: list[tuple[Figure, Interval, Comparison]]
    moved: list[tuple[str, float]]
    same_order: float


def read_other(
    other: object, called: str | None, X: MatrixLike, qid: ArrayLike | None, n_rows: int
) -> tuple[Floats, str]:
    """Return the scores and the display name of another model."""
    if not hasattr(other, "predict"):
        return check_numbers("against", other, n_rows), called or "the other model"
    view = ModelView.of(other)
    scores = view.predict(view.numbers(X), qid)
    return check_numbers("the scores of against", scores, n_rows), called or view.describe()


def compare(called: str, judge: Judge, scores: tuple[Floats, Floats], evidence: Evidence) -> Against:
    """Compare two models by the metrics of the page, pair by pair or query by query."""
    rows = [
        (figure, judge.interval(figure.metric, scores[1]), judge.compare(figure.metric, *scores))
        for figure in evidence.figures
    ]
    if isinstance(judge, ByPairs):
        sides = [np.sign(one[judge.pairs[:, 0]] - one[judge.pairs[:, 1]]) for one in scores]
        return Against(called, rows, [], float(np.average(sides[0] == sides[1], weights=judge.weight)))
    metric, queries = judge.metrics[0], judge.queries
    first, second = (metric.prepare(judge.y, queries).per_query(one) for one in scores)
    better = 1.0 if metric.greater_is_better else -1.0
    difference = np.where(first.counted, better * (first.values - second.values), 0.0)
    order = np.argsort(-difference, kind="stable")
    named = [*order[:_QUERIES], *order[-_QUERIES:]] if len(queries) > 2 * _QUERIES else list(order)
    moved = [(str(queries.ids[at]), float(difference[at])) for at in named if difference[at] != 0]
    return Against(called, rows, moved if len(queries) > 1 else [], _same_order(*scores, queries))


def _same_order(first: Floats, second: Floats, queries: Queries) -> float:
    """Return how often two models order two rows of a query alike: concordance with the other model as truth."""
    codes = np.unique(second, return_inverse=True)[1].astype(np.float64)
    if all(np.unique(codes[queries.codes == code]).size < 2 for code in range(len(queries))):
        return 1.0
    return float(get_metric("concordance")(codes, first, queries))


def against_section(against: Against, own: str) -> str:
    """Show both models metric by metric, with paired differences."""
    first, other, compared = against.rows[0]
    same = {
        "pairs": "the same pairs, and pairs that share an item count as dependent",
        "queries": "the same queries",
    }
    head = ["Metric", f"#{own}", f"#{against.name}", "#difference", "#p", "better on"]
    body = (
        verdict(first, compared, (name(own), name(against.name)), other)
        + f"<p>The two order {against.same_order:.0%} of the pairs of rows alike.</p>"
        + listing("Two models", head, [_row(*row) for row in against.rows], "beside")
        + f'<p class="note">Differences are paired: both models see {same.get(first.model.unit, "the same rows")}. '
        f"Brackets: {first.model.level:.0%} intervals of the difference; where they do not hold 0, the two can be told "
        "apart. p: how often a difference as large arises by chance.</p>"
    )
    if against.moved:
        lines = [(f"query {name(query)}", _signed(value)) for query, value in against.moved]
        body += details(
            f"Queries on which {name(own)} is most ahead, and most behind",
            listing("Queries", ["query", "#ahead by"], lines),
        )
    return section("against", f"Against {against.name}", body)


def _signed(value: float) -> str:
    return ("+" if value > 0 else "") + decimals(value)


def _row(figure: Figure, second: Interval, found: Comparison) -> list[str]:
    gap = found.difference
    units = "pairs" if gap.unit == "pairs" else "queries"
    count = f"{number(found.wins)} to {number(found.losses)} {units}" if found.wins + found.losses else "–"
    return [
        f"{text(title_of(figure.name))} <small>{figure.better} is better</small>",
        decimals(figure.model.value),
        decimals(second.value),
        f"{_signed(gap.value)} <small>{brackets(gap.low, gap.high)}</small>",
        text(p_text(found.p_value).removeprefix("= ")),
        count,
    ]
