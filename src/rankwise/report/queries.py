"""The best and the worst queries with their ranked rows, and why one row ranks above another."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rankwise.arrays import Floats, Ints
from rankwise.data.summary import how_many
from rankwise.json_values import Json
from rankwise.metrics import PerQuery
from rankwise.report import markup as html
from rankwise.report.columns import Parts
from rankwise.report.evidence import Evidence, Judge, title_of

_OPENED = 8  # best queries, and as many of the worst
_TOP = 15  # rows shown from the top of a query
_MISSED = 5  # good rows shown from below
_COLUMNS = 30  # parts of scores that are told apart
_NUMBERS = 50_000  # all that is embedded in the page


@dataclass(frozen=True)
class RankedRow:
    """A row where the model put it.

    Attributes
    ----------
    row : int
        Its position in the data, from 0.
    called : str
        Its name, or "row" and its position where rows have no names.
    rank : int
    score : float
    label : float or None
    parts : (columns,) float64
        The contributions of the shown parts to the score.
    values : list
        Their columns as they are in the data; None for a part of two columns.
    """

    row: int
    called: str
    rank: int
    score: float
    label: float | None
    parts: Floats
    values: list[object]


@dataclass(frozen=True)
class OpenQuery:
    """A query and its rows, best first.

    Attributes
    ----------
    name : str
    kind : str
        "best", "worst", or "only" where there is one ranking.
    value : float or None
        Its own value of the leading metric.
    size : int
    columns : (columns,) int64
        The parts of scores that are shown: those that vary most among these rows.
    rows : list of RankedRow
    n_top : int
        How many of the rows come from the top; the others stand further down, and should not.
    """

    name: str
    kind: str
    value: float | None
    size: int
    columns: Ints
    rows: list[RankedRow]
    n_top: int


def open_queries(
    parts: Parts | None, scores: Floats, judge: Judge, evidence: Evidence, row_names: Sequence[str] | None
) -> list[OpenQuery]:
    """Choose the best and the worst queries and rank their rows."""
    labels, queries = judge.y, judge.queries
    per_query = evidence.per_query
    chosen = _choose(per_query, is_better_high=evidence.figures[0].better == "higher")
    n_parts = max(5, min(_COLUMNS, _NUMBERS // (2 * (_TOP + _MISSED) * max(len(chosen), 1))))
    opened = []
    for code, kind in chosen:
        rows, ranks = _ranked(np.flatnonzero(queries.codes == code), scores, labels)
        columns, added = np.empty(0, dtype=np.int64), np.empty((rows.size, 0))
        values: list[list[object]] = [[] for _ in rows]
        if parts is not None:
            added = parts.of(rows)
            columns = np.argsort(-np.ptp(added, axis=0), kind="stable")[:n_parts]
            added, values = added[:, columns], parts.values(rows, columns)
        cells = (
            rows.tolist(),
            [f"row {row}" if row_names is None else row_names[row] for row in rows.tolist()],
            ranks.tolist(),
            scores[rows].tolist(),
            [None] * rows.size if labels is None else labels[rows].tolist(),
            added,
            values,
        )
        ranked = [RankedRow(*row) for row in zip(*cells, strict=True)]
        value = None if per_query is None else float(per_query.values[code])
        size = int(queries.sizes[code])
        opened.append(OpenQuery(str(queries.ids[code]), kind, value, size, columns, ranked, min(_TOP, size)))
    return opened


def _choose(per_query: PerQuery | None, *, is_better_high: bool) -> list[tuple[int, str]]:
    if per_query is None or len(per_query) == 1:
        return [(0, "only")]
    known = np.flatnonzero(per_query.counted)
    order = known[np.argsort((-1 if is_better_high else 1) * per_query.values[known], kind="stable")].tolist()
    n_best = min(_OPENED, (len(order) + 1) // 2)
    n_worst = min(_OPENED, len(order) - n_best)
    worst = order[::-1][:n_worst]
    return [*((code, "worst") for code in worst), *((code, "best") for code in order[:n_best])]


def _ranked(rows: Ints, scores: Floats, labels: Floats | None) -> tuple[Ints, Ints]:
    """Return the top rows of a query, and rows further down with a better label, with their ranks."""
    order = rows[np.argsort(-scores[rows], kind="stable")]
    ranks = np.searchsorted(-scores[order], -scores[order], side="left") + 1
    shown = np.arange(min(_TOP, order.size))
    if labels is not None and order.size > _TOP:
        below = np.arange(_TOP, order.size)
        missed = below[np.argsort(-labels[order[below]], kind="stable")[:_MISSED]]
        # Only those that should have been at the top: better than the least that is there.
        missed = missed[labels[order[missed]] > labels[order[shown]].min()]
        shown = np.concatenate([shown, np.sort(missed)])
    return order[shown], ranks[shown]


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
    ranking : str
        "query", or "row" or "column" of a table.
    """

    thing: str = "row"
    has_names: bool = False
    lowest: float = 0.0
    highest: float = 0.0
    ranking: str = "query"

    def badge(self, label: float) -> str:
        """Show a label: the better, the darker, so that relevant rows stand out without colour too."""
        where = html.span(self.lowest, self.highest, label) if self.highest > self.lowest else 0.0
        step = min(max(int(np.ceil(where / 25)), 0), 4)
        return f'<span class="grade g{step}">{html.number(label)}</span>'


def queries_section(evidence: Evidence, opened: Sequence[OpenQuery], naming: RowNaming, top: str) -> str:
    """Show the distribution over queries, and the best and worst ones."""
    per_query = evidence.per_query
    order = "" if naming.has_names else '<p class="note">Rows count from 0, in the order of the data.</p>'
    if per_query is None or len(per_query) == 1:
        rows = "".join(_open_query(query, i, naming) for i, query in enumerate(opened))
        words = f"<p>One ranking; its first {naming.thing}s:</p>"
        return html.section("queries", "The ranking", f"{words}{rows}{order}")
    title, one = title_of(evidence.figures[0].name), naming.ranking
    several = "queries" if one == "query" else f"{one}s"
    values = per_query.values[per_query.counted]
    left = len(per_query) - values.size
    have = "has no value and does" if left == 1 else "have no value and do"
    note = f" {how_many(left, several)} {have} not count." if left else ""
    quartiles = np.quantile(values, [0.25, 0.5, 0.75])
    body = '<div class="columns">'
    for kind, heading in (("worst", f"Worst {several}"), ("best", f"Best {several}")):
        own = "".join(_open_query(query, i, naming) for i, query in enumerate(opened) if query.kind == kind)
        body += f"<div><h3>{heading}</h3>{own}</div>"
    body += (
        f"</div>{order}<h3>All {several}</h3>"
        f"<p>{title} of {how_many(values.size, several)}: a quarter lie below {html.decimals(quartiles[0], 3)}, half "
        f"below {html.decimals(quartiles[1], 3)}, three quarters below {html.decimals(quartiles[2], 3)}.{note}</p>"
        + html.histogram(values, float(values.mean()), f"{title} of a {one}", of=several)
        + top
    )
    return html.section("queries", f"{one.capitalize()} by {one}", body)


def _open_query(query: OpenQuery, position: int, naming: RowNaming) -> str:
    lines = ""
    scores = html.alike([row.score for row in query.rows])
    for index, (row, score) in enumerate(zip(query.rows, scores, strict=True)):
        if index == query.n_top:
            lines += '<tr><td colspan="9"><small>… rows further down with a better label</small></td></tr>'
        label = "" if row.label is None else f"<td>{naming.badge(row.label)}</td>"
        called = f'called">{html.name(row.called)}' if naming.has_names else f'n">{row.row}'
        plain = html.text(html.plain(row.called))
        buttons = [
            f'<button type="button" hidden data-query="{position}" data-row="{index}" data-side="{side}" '
            f'aria-pressed="false" aria-label="Compare {plain} as {letter}">{letter}</button> '
            for side, letter in enumerate("AB")
            if query.columns.size
        ]
        lines += (
            f'<tr><td class="n">{row.rank}</td>{label}<td class="n">{score}</td>'
            f'<td class="{called}</td><td class="pick noprint">{"".join(buttons)}</td></tr>'
        )
    head = '<th class="n">rank</th>' + "<th>label</th>" * (query.rows[0].label is not None)
    head += f'<th class="n">score</th><th{"" if naming.has_names else " class=n"}>{naming.thing}</th>'
    value = "" if query.value is None else f'<span class="v">{html.decimals(query.value)}</span>'
    more = query.size - len(query.rows)
    rest = f"<small>{html.counted(more, f'more {naming.thing}')} not shown.</small>" if more else ""
    is_only = query.kind == "only"
    called = f"All {naming.thing}s"
    if not is_only:
        called = "query " * (naming.ranking == "query") + html.name(query.name)
    return (
        f'<details data-opened="{position}"{" open" if is_only else ""}><summary>{value}'
        f"{called} "
        f"<small>{html.counted(query.size, naming.thing)}</small></summary>"
        f"<div>{html.table('Ranked rows', head + '<th class=noprint></th>', lines)}{rest}</div></details>"
    )


def why_section(opened: Sequence[OpenQuery], parts: Parts | None) -> str:
    """Let the reader pick two rows and compare the contributions of each part."""
    title = "Why is A above B"
    if parts is None:
        words = (
            "This model has no formula that is a sum over columns, so a difference of scores does not split into "
            "parts of columns. <code>rankwise.feature_importance</code> "
            "measures how much the order depends on a column; <code>rankwise fit --methods curves</code> gives a "
            "model that splits."
        )
        return html.section("why", title, f"<p>{words}</p>")
    if not opened:
        return html.section("why", title, "<p>There is no query to look at.</p>")
    head = '<th>Column</th><th class="n">A</th><th class="n">B</th><th class="n">adds</th>'
    head += '<th id="why-direction">for B ← → for A</th>'
    shown = html.table("Contribution of each column", head, "", "why").replace(
        "<tbody>", '<tbody id="why-rows">'
    )
    return html.section(
        "why",
        title,
        f"<p>A score is {html.text(parts.description)}, so the difference of two scores is a sum too. "
        '<span class="noprint">Pick two rows here, or with the buttons in the tables above; with nothing for B, the '
        "score of A alone is explained.</span></p>"
        '<noscript><p class="note">Picking rows needs JavaScript.</p></noscript>'
        '<div class="pickers"><label>Query<select id="pick-query"></select></label>'
        '<label>A<select id="pick-a"></select></label><label>B<select id="pick-b"></select></label></div>'
        '<p id="why-says" class="says" tabindex="-1" aria-live="polite"></p><p id="why-back" class="noprint" hidden>'
        f'<a href="#queries">↑ Back to the rows</a></p>{shown}',
    )


def embedded_query(query: OpenQuery, parts: Parts, naming: RowNaming) -> Json:
    """Return everything about a query that the script shows when somebody asks for it."""
    called = f"{html.plain(query.name)} ({query.kind}, {html.decimals(query.value)})"
    rows: list[Json] = []
    for row in query.rows:
        added = [html.short(value, 6) for value in row.parts]
        values = [html.plain(one, 40) if isinstance(one, str) else html.short(one, 4) for one in row.values]
        rows.append(
            [
                html.plain(row.called),
                row.rank,
                html.short(row.label, 6),
                html.short(row.score, 7),
                added,
                values,
            ]
        )
    return {
        "label": f"all {naming.thing}s" if query.kind == "only" else called,
        "columns": [html.plain(parts.names[part]) for part in query.columns],
        "rows": rows,
    }
