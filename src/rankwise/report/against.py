"""A second model of the same rows, beside the first."""

from __future__ import annotations

import numpy as np

from rankwise.arrays import Floats
from rankwise.data.queries import Queries
from rankwise.metrics import Comparison, Interval, get_metric
from rankwise.metrics.comparison import p_text
from rankwise.report.evidence import ByLabels, ByPairs, Evidence, Figure, Judge, title_of, verdict
from rankwise.report.markup import brackets, decimals, details, listing, name, number, section, text

__all__ = ["against_section"]

_QUERIES = 5  # on either side that are named


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
        verdict(first, compared, (name(own), name(called)), other)
        + f"<p>The two order {same_order:.0%} of the pairs of rows alike.</p>"
        + listing("Two models", head, [_row(*row) for row in rows], "beside")
        + f'<p class="note">Differences are paired: both models see {seen}. '
        f"Brackets: {first.model.level:.0%} intervals of the difference; where they do not hold 0, the two can be told "
        "apart. p: how often a difference as large arises by chance.</p>"
    )
    return section("against", f"Against {called}", body + moved)


def _moved(own: str, judge: ByLabels, scores: tuple[Floats, Floats]) -> str:
    """List the queries on which the first model is most ahead and most behind, by the first metric."""
    metric, ids = judge.metrics[0], judge.queries.ids
    first, second = (judge.per_query(metric, one) for one in scores)
    better = 1.0 if metric.greater_is_better else -1.0
    difference = np.where(first.counted, better * (first.values - second.values), 0.0)
    order = np.argsort(-difference, kind="stable")
    named = [*order[:_QUERIES], *order[-_QUERIES:]] if ids.size > 2 * _QUERIES else order
    lines = [(f"query {name(ids[at])}", _signed(difference[at])) for at in named if difference[at] != 0]
    title = f"Queries on which {name(own)} is most ahead, and most behind"
    return details(title, listing("Queries", ["query", "#ahead by"], lines)) if lines else ""


def _same_order(first: Floats, second: Floats, queries: Queries) -> float:
    """Return how often two models order two rows of a query alike: concordance with the other model as truth."""
    codes = np.unique(second, return_inverse=True)[1].astype(np.float64)
    if all(np.unique(codes[queries.codes == code]).size < 2 for code in range(len(queries))):
        return 1.0
    return float(get_metric("concordance")(codes, first, queries))


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
