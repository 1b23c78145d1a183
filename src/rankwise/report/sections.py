"""The sections about the ranking: metrics, queries, and why one row stands above another."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rankwise.data.wording import how_many
from rankwise.metrics import Comparison, Interval
from rankwise.metrics.comparison import p_text
from rankwise.report.charts import histogram, span
from rankwise.report.evidence import Evidence, Figure
from rankwise.report.markup import alike, counted, decimals, name, number, plain, section, text
from rankwise.report.openings import OpenQuery
from rankwise.report.score_parts import ScoreParts
from rankwise.report.top import top_pictures

__all__ = [
    "RowNaming",
    "in_words",
    "meaning",
    "metrics_section",
    "queries_section",
    "title_of",
    "verdict",
    "why_section",
]

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


def verdict(figure: Figure, best_name: str | None) -> str:
    """Say in one sentence whether the model beats the best single column."""
    against = figure.against_single
    if against is None or best_name is None:
        return ""
    better = against.difference.value * (1 if figure.greater_is_better else -1)
    if against.p_value < _SURE and better > 0:
        verdict = "ranks better than"
    elif against.p_value < _SURE and better < 0:
        verdict = "ranks worse than"
    else:
        verdict = "cannot be told apart from"
    single = None if figure.single is None else figure.single.value
    return (
        f'<p class="verdict">By {text(in_words(figure.name))} the model <strong>{verdict}</strong> the best single '
        f"column, {name(best_name)} ({decimals(figure.model.value)} against {decimals(single)}, "
        f"{_p(against)}).</p>"
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
    rows = "".join(_metric_row(figure) for figure in evidence.figures)
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
    return section(
        "metrics",
        "How good it is",
        f'<p class="legend">{keys}</p><div class="scroll" tabindex="0" role="group" aria-label="Metrics">'
        f'<table class="metrics"><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>'
        f'<p class="note">{note}</p><ul class="note">{conventions}</ul>',
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
    brackets = (
        f"<small>[{decimals(interval.low, 3)}, {decimals(interval.high, 3)}]</small>"
        if np.isfinite(interval.low)
        else ""
    )
    return f"<span>{decimals(interval.value)}{brackets}</span>"


@dataclass(frozen=True)
class RowNaming:
    """How rows are spoken of.

    Attributes
    ----------
    thing : str
        "row" or "item".
    has_names : bool
    lowest, highest : float
        Labels between which the others stand.
    """

    thing: str = "row"
    has_names: bool = False
    lowest: float = 0.0
    highest: float = 0.0

    def badge(self, label: float) -> str:
        """Show a label: the better, the darker, so that relevant rows stand out without colour too."""
        where = span(self.lowest, self.highest, label) if self.highest > self.lowest else 0.0
        step = min(max(int(np.ceil(where / 25)), 0), 4)
        return f'<span class="grade g{step}">{number(label)}</span>'


def queries_section(evidence: Evidence, opened: Sequence[OpenQuery], naming: RowNaming) -> str:
    """Show the distribution over queries, and the best and worst ones."""
    per_query = evidence.per_query
    order = "" if naming.has_names else '<p class="note">Rows count from 0, in the order of the data.</p>'
    if per_query is None or len(per_query) == 1:
        rows = "".join(_open_query(query, i, naming) for i, query in enumerate(opened))
        return section(
            "queries", "The ranking", f"<p>One ranking; its first {naming.thing}s:</p>{rows}{order}"
        )
    title = title_of(evidence.figures[0].name)
    values = per_query.values[per_query.counted]
    left = len(per_query) - values.size
    have = "has no value and does" if left == 1 else "have no value and do"
    note = f" {how_many(left, 'queries')} {have} not count." if left else ""
    quartiles = np.quantile(values, [0.25, 0.5, 0.75])
    body = (
        f"<p>{title} of {how_many(values.size, 'queries')}: a quarter lie below {decimals(quartiles[0], 3)}, half "
        f"below {decimals(quartiles[1], 3)}, three quarters below {decimals(quartiles[2], 3)}.{note}</p>"
        + histogram(values, float(values.mean()), f"{title} of a query")
        + (top_pictures(evidence.top) if evidence.top is not None else "")
    )
    body += '<div class="columns">'
    for kind, heading in (("worst", "Worst queries"), ("best", "Best queries")):
        own = "".join(_open_query(query, i, naming) for i, query in enumerate(opened) if query.kind == kind)
        body += f"<div><h3>{heading}</h3>{own}</div>"
    return section("queries", "Query by query", f"{body}</div>{order}")


def _open_query(query: OpenQuery, position: int, naming: RowNaming) -> str:
    has_labels = any(row.label is not None for row in query.rows)
    has_names = naming.has_names
    has_parts = query.columns.size > 0
    lines = ""
    scores = alike([row.score for row in query.rows])
    for index, (row, score) in enumerate(zip(query.rows, scores, strict=True)):
        if index == query.n_top:
            lines += '<tr><td colspan="9"><small>… rows further down with a better label</small></td></tr>'
        label = "" if row.label is None else f"<td>{naming.badge(row.label)}</td>"
        called = (
            f'<td class="called">{name(row.called)}</td>' if has_names else f'<td class="n">{row.row}</td>'
        )
        buttons = (
            "".join(
                f'<button type="button" hidden data-query="{position}" data-row="{index}" data-side="{side}" '
                f'aria-pressed="false" aria-label="Compare {text(plain(row.called))} as {letter}">{letter}</button> '
                for side, letter in enumerate("AB")
            )
            if has_parts
            else ""
        )
        lines += (
            f'<tr><td class="n">{row.rank}</td>{label}<td class="n">{score}</td>'
            f'{called}<td class="pick noprint">{buttons}</td></tr>'
        )
    head = '<th class="n">rank</th>' + ("<th>label</th>" if has_labels else "")
    head += '<th class="n">score</th>' + (
        f"<th>{naming.thing}</th>" if has_names else '<th class="n">row</th>'
    )
    head += '<th class="noprint"></th>'
    value = "" if query.value is None else f'<span class="v">{decimals(query.value)}</span>'
    more = query.size - len(query.rows)
    rest = f"<small>{counted(more, f'more {naming.thing}')} not shown.</small>" if more else ""
    called = f"All {naming.thing}s" if query.kind == "only" else f"query {name(query.name)}"
    return (
        f'<details data-opened="{position}"{" open" if query.kind == "only" else ""}><summary>{value}{called} '
        f"<small>{counted(query.size, naming.thing)}</small></summary>"
        f'<div class="scroll" tabindex="0" role="group" aria-label="Ranked rows"><table><thead>'
        f"<tr>{head}</tr></thead><tbody>{lines}</tbody></table>{rest}</div></details>"
    )


def why_section(opened: Sequence[OpenQuery], parts: ScoreParts | None) -> str:
    """Let the reader pick two rows and see what each part of a score adds."""
    if parts is None:
        return section(
            "why",
            "Why is A above B",
            "<p>This model has no formula that is a sum over columns, so a difference of scores does not split into "
            "parts of columns. <code>rankwise.feature_importance</code> tells "
            "what the order loses without a column; <code>rankwise fit --method curves</code> gives a model that "
            "splits.</p>",
        )
    if not opened:
        return section("why", "Why is A above B", "<p>There is no query to look at.</p>")
    return section(
        "why",
        "Why is A above B",
        f"<p>A score is {text(parts.description)}, so the difference of two scores is a sum too. "
        '<span class="noprint">Pick two rows here, or with the buttons in the tables above; with nothing for B, the '
        "score of A is explained by itself.</span></p>"
        '<noscript><p class="note">Picking rows needs JavaScript.</p></noscript>'
        '<div class="pickers"><label>Query<select id="pick-query"></select></label>'
        '<label>A<select id="pick-a"></select></label><label>B<select id="pick-b"></select></label></div>'
        '<p id="why-says" class="says" tabindex="-1" aria-live="polite"></p><p id="why-back" class="noprint" hidden>'
        '<a href="#queries">↑ Back to the rows</a></p><div class="scroll" tabindex="0" role="group" '
        'aria-label="What each column adds"><table class="why"><thead><tr><th>Column</th><th class="n">A</th>'
        '<th class="n">B</th><th class="n">adds</th><th id="why-direction">for B ← → for A</th></tr></thead>'
        '<tbody id="why-rows"></tbody></table></div>',
    )
