"""One page about a two-sided model: the figure of each ranking of a table with its interval."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from rankwise.arrays import Floats, MatrixLike, RandomSource
from rankwise.data.queries import one_query
from rankwise.data.summary import label_counts
from rankwise.data.validation import check_names, check_qid, read_seed
from rankwise.displays.regularisation import Reading
from rankwise.exceptions import InvalidInputError
from rankwise.formula.view import ModelView
from rankwise.metrics import Interval, Metric, bootstrap_interval
from rankwise.report.charts import histogram, interval
from rankwise.report.choice import choice_section
from rankwise.report.evidence import ByLabels, Evidence, evaluate, in_words, metrics_section, top_pictures
from rankwise.report.markup import brackets, decimals, listing, name, number, section, text
from rankwise.report.queries import RowNaming, open_queries, queries_section
from rankwise.report.report import Page, data_section, lead, range_of, settings_section, tiles, whole_page
from rankwise.two_sided.estimators import TwoSidedRankRLS, TwoSidedRankRLSCV
from rankwise.two_sided.gaps import Edges
from rankwise.two_sided.sides import read_matrix

_RANKINGS = 200  # that the table names


class TableReport(Page):
    """How a two-sided model ranks a table: the figure of each row with its interval, as one HTML page.

    Each row is a ranking of its columns; the roles follow the model's `ranked`. The interval of a row is that of
    `bootstrap_interval` over its entries, and the interval of the mean is over rows.

    Parameters
    ----------
    model : TwoSidedRankRLS or TwoSidedRankRLSCV
    rows, columns : matrix
        As in the model's `predict`.
    Y : array or sparse matrix of shape (rows, columns)
        The table to evaluate on, with gaps as in `fit`; best one of rows or columns that the model has not seen. The
        held-out figures of a `TwoSidedRankRLSCV` are on the page in any case.
    metrics : sequence of str or Metric, optional
        The page leads with the first. By default metrics that suit the labels.
    row_names, column_names : sequence of str, optional
        Names, each of which occurs once; by default ``row 0``, ``column 0`` and so on.
    title : str, optional
    random_state : int, RandomState, Generator or None, default=0
        Seeds the bootstrap.

    Examples
    --------
    >>> import numpy as np
    >>> from rankwise import TwoSidedRankRLS
    >>> from rankwise.report import TableReport
    >>> rng = np.random.default_rng(0)
    >>> drugs, targets = rng.normal(size=(20, 3)), rng.normal(size=(15, 4))
    >>> affinity = drugs @ rng.normal(size=(3, 4)) @ targets.T + rng.normal(size=(20, 15))
    >>> model = TwoSidedRankRLS().fit(drugs[:15], targets, affinity[:15])
    >>> report = TableReport(model, drugs[15:], targets, affinity[15:])
    >>> report.html()[:15]
    '<!doctype html>'
    """

    def __init__(
        self,
        model: TwoSidedRankRLS | TwoSidedRankRLSCV,
        rows: MatrixLike,
        columns: MatrixLike | None,
        Y: MatrixLike,
        *,
        metrics: Sequence[str | Metric] | None = None,
        row_names: Sequence[object] | None = None,
        column_names: Sequence[object] | None = None,
        title: str | None = None,
        random_state: RandomSource = 0,
    ) -> None:
        view, reading = ModelView.of(model), Reading.of(model)
        predicted = model.predict(rows, columns)
        table = read_matrix(Y, "Y", gaps=True)
        if table.shape != predicted.shape:
            raise InvalidInputError(
                f"Y has shape {table.shape}, but the model scores {predicted.shape[0]} × {predicted.shape[1]} entries.",
                "pass one row of Y per row, and one column of Y per column.",
            )
        edges = Edges.of(table, model.ranked)
        scores, y = predicted[edges.rows, edges.columns], edges.labels
        by_row = np.array(_names("row", row_names, table.shape[0]))[edges.rows]
        by_column = np.array(_names("column", column_names, table.shape[1]))[edges.columns]
        ranked = [f"{row} × {column}" for row, column in zip(by_row, by_column, strict=True)]
        queries = one_query(y.size)
        if model.ranked != "both":
            of, one = (by_row, by_column) if model.ranked == "columns" else (by_column, by_row)
            queries, ranked = check_qid(of, y.size), one.tolist()
        judge = ByLabels(y, queries, metrics, read_seed(random_state))
        self.evidence = evidence = evaluate(judge, np.zeros((y.size, 0)), scores)
        self.figures = _figures(judge, evidence, scores)
        opened = open_queries(None, scores, y, queries, evidence, ranked)
        naming = RowNaming("item", True, *range_of(y))
        facts = {"Rows": number(table.shape[0]), "Columns": number(table.shape[1])}
        facts["Known entries"] = f"{number(y.size)} ({y.size / table.size:.1%})"
        unit = {"columns": "row", "rows": "column"}.get(model.ranked, "table")
        sections = {
            "How good": metrics_section(evidence, None),
            f"Each {unit}": _each(evidence, self.figures, unit),
            "Rankings": queries_section(evidence, opened, naming, top_pictures(y, queries, scores)),
            "Held out": _held_out(view, reading),
            "Choice": choice_section(reading, view),
            "Data": data_section(facts, label_counts(y), None),
            "Settings": settings_section(view, {}, None),
        }
        self._page = whole_page(
            title or f"Report of {view.describe()}",
            lead(view) + tiles(evidence, facts),
            {label: body for label, body in sections.items() if body},
            {},
        )


def _names(kind: str, given: Sequence[object] | None, size: int) -> list[str]:
    names = [f"{kind} {at}" for at in range(size)] if given is None else check_names(f"{kind}_names", given)
    if len(names) != size or len(set(names)) != size:
        raise InvalidInputError(
            f"{kind}_names has {len(names)} names, {len(set(names))} of them different, for {size} {kind}s.",
            f"give every {kind} a name of its own.",
        )
    return names


def _figures(judge: ByLabels, evidence: Evidence, scores: Floats) -> dict[str, Interval]:
    """Return the first metric of each ranking with its interval, the worst first."""
    found, metric, queries = evidence.per_query, judge.metrics[0], judge.queries
    if found is None or len(queries) == 1:
        return {}
    order = np.argsort(found.values if metric.greater_is_better else -found.values, kind="stable")
    order = order[found.counted[order]][:_RANKINGS]
    return {
        str(queries.ids[code]): bootstrap_interval(judge.y[own], scores[own], metric=metric)
        for code, own in ((code, queries.codes == code) for code in order.tolist())
    }


def _each(evidence: Evidence, figures: Mapping[str, Interval], unit: str) -> str:
    """List the rankings with their intervals."""
    if not figures:
        return ""
    low, high = min(one.low for one in figures.values()), max(one.high for one in figures.values())
    rows = []
    for called, one in figures.items():
        drawn = interval((low, high), one.low, one.high, one.value)
        rows.append([name(called), drawn, decimals(one.value), brackets(one.low, one.high), number(one.n)])
    title = in_words(evidence.figures[0].name)
    words = f"The {title} of each {unit}, the worst first, with its interval: how far it depends on the known entries."
    head = [unit, "~", f"#{title}", "#interval", "#entries"]
    return section("each", f"Each {unit}", f"<p>{text(words)}</p>{listing(words, head, rows, 'board')}")


def _held_out(view: ModelView, reading: Reading | None) -> str:
    """Show the figures of the rankings that alpha was chosen by."""
    if view.held_out is None or reading is None:
        return ""
    figures, (low, high) = view.held_out
    value = reading.choice[2]
    words = f"<p>{decimals(value)} {brackets(low, high)}, by {text(reading.judged_by)}.</p>"
    drawn = histogram(figures[~np.isnan(figures)], value, "held-out value", of="rankings")
    return section("held-out", "Held out", words + drawn)
