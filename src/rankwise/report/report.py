"""The reports of rankers and of two-sided models: each collects all results once and writes the page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from rankwise.arrays import ArrayLike, Floats, MatrixLike, RandomSource, is_sparse, shape_of
from rankwise.data.containers import as_rows
from rankwise.data.queries import Queries, one_query
from rankwise.data.summary import is_graded, label_counts, summarise
from rankwise.data.validation import check_names, check_numbers, check_qid, check_weights, read_seed
from rankwise.displays.regularisation import Reading
from rankwise.exceptions import InvalidInputError
from rankwise.formula.formula import folded
from rankwise.formula.reading import formula_of
from rankwise.formula.tables import rows_as_read
from rankwise.formula.view import ModelView
from rankwise.json_values import Json
from rankwise.metrics import Interval, Metric, bootstrap_interval
from rankwise.report import markup as html
from rankwise.report.choice import alpha_name, alpha_of, choice_section, embedded_surface, reading_of
from rankwise.report.columns import Parts, columns_section, marks_of, pictures_of, pictures_section
from rankwise.report.evidence import (
    ByLabels,
    ByPairs,
    Evidence,
    Judge,
    against_section,
    duels_section,
    evaluate,
    in_words,
    metrics_section,
    probability_of,
    top_pictures,
    verdict,
)
from rankwise.report.queries import RowNaming, embedded_query, open_queries, queries_section, why_section
from rankwise.two_sided.estimators import TwoSidedRankRLS, TwoSidedRankRLSCV
from rankwise.two_sided.gaps import Edges
from rankwise.two_sided.sides import read_matrix


class Report(html.Page):
    """Everything worth knowing about a model on some rows, as one HTML page.

    Parameters
    ----------
    model : fitted ranker or Pipeline
        A pipeline must end in a ranker; steps whose `transform` takes `qid` get it.
    X : array-like, sparse matrix or data frame of shape (rows, features)
        The rows to evaluate on, preferably held-out rows.
    y : array-like of shape (rows,), optional
        Their labels. Not with `pairs`.
    qid : array-like of shape (rows,), optional
        Their query ids; without them all rows form one ranking.
    pairs : array-like of int of shape (pairs, 2), optional
        Preferences to evaluate on instead of labels: row numbers of winner and loser.
    weight : array-like of shape (pairs,) or (rows,), optional
        Weights of the pairs, or of rows with labels, which only metrics that count pairs take.
    metrics : sequence of str or Metric, optional
        The page leads with the first. By default metrics that suit the labels.
    feature_names : sequence of str, optional
        By default the model's own.
    row_names : sequence of str, optional
        Names of the rows, such as the ids of items or documents; by default they are numbered from 0.
    title : str, optional
    command : str, optional
        The command that makes this page, shown as it is.
    source : str, optional
        Where the rows come from, such as the names of their files.
    notes : mapping, optional
        The notes of a model file that `rankwise fit` wrote: its ``"command"``, ``"train"`` and ``"valid"``, which
        describe the data, and ``"metric"``.
    against : fitted ranker, Pipeline, or array-like of shape (rows,), optional
        Another model of the same rows, or its scores: a section shows both, with paired differences.
    against_name, own_name : str, optional
        Their display names in that section; by default descriptions of the models.
    random_state : int, RandomState, Generator or None, default=0
        Seed of the bootstrap and the paired tests.

    Examples
    --------
    >>> import numpy as np
    >>> from rankwise import RankRLSCV
    >>> from rankwise.report import Report
    >>> rng = np.random.default_rng(0)
    >>> X, qid = rng.normal(size=(200, 4)), np.arange(200) // 10
    >>> y = np.digitize(X[:, 0] + rng.normal(size=200), [0, 1])
    >>> report = Report(RankRLSCV().fit(X, y, qid=qid), X, y, qid)
    >>> report.html()[:15]
    '<!doctype html>'
    """

    def __init__(
        self,
        model: object,
        X: MatrixLike,
        y: object = None,
        qid: ArrayLike | None = None,
        *,
        pairs: ArrayLike | None = None,
        weight: ArrayLike | None = None,
        metrics: Sequence[str | Metric] | None = None,
        feature_names: Sequence[str] | None = None,
        row_names: Sequence[object] | None = None,
        title: str | None = None,
        command: str | None = None,
        source: str | None = None,
        notes: Mapping[str, Json] | None = None,
        against: object = None,
        against_name: str | None = None,
        own_name: str | None = None,
        random_state: RandomSource = 0,
    ) -> None:
        if (y is None) == (pairs is None):
            raise InvalidInputError("A report needs either labels or pairs.", "pass y, or pairs, not both.")
        view = ModelView.of(model)
        # Figures and baselines are about the numbers that the ranker gets.
        numbers = as_rows("X", view.numbers(X))
        self.scores = scores = view.predict(numbers, qid)
        if scores.ndim != 1:
            raise InvalidInputError("The model has several outputs.", "report on models of one output each.")
        called = None if row_names is None else check_names("row_names", row_names)
        if called is not None and len(called) != scores.size:
            raise InvalidInputError(
                f"row_names has {len(called)} entries, but X has {scores.size} rows.",
                "give one name per row, in the order of the rows.",
            )
        names = view.names(shape_of(numbers)[1], feature_names, of_numbers=True)
        thing = "row" if pairs is None or called is None else "item"
        n_rows = scores.size
        judge: Judge
        if pairs is not None:
            judge = ByPairs(pairs, weight, n_rows)
        else:
            own = check_numbers("y", y, n_rows), check_qid(qid, n_rows)
            judge = ByLabels(*own, metrics, read_seed(random_state), check_weights(weight, n_rows))
        self.evidence = evidence = evaluate(judge, numbers, scores)
        self.parts = parts = _parts(view, X, numbers, names, qid, judge.queries)
        self.opened = opened = open_queries(parts, scores, judge, evidence, called)
        self.pictures = [] if parts is None else pictures_of(parts)
        table, naming = reading_of(view), RowNaming(thing, called is not None, *range_of(judge.y))
        facts = _data_facts(numbers, judge, thing)
        best = None if evidence.best_column is None else names[evidence.best_column[0]]
        top = top_pictures(judge, scores)
        sections = {
            "Columns": columns_section(parts),
            "How good": metrics_section(evidence, best),
            "Ranking" if len(judge.queries) == 1 else "Queries": queries_section(
                evidence, opened, naming, top
            ),
            "Why A above B": why_section(opened, parts),
        }
        data: dict[str, Json] = {"open": [], "columns": 0, "marks": []}
        if parts is not None:
            data |= {
                "open": [embedded_query(one, parts, naming) for one in opened],
                "columns": len(parts.names),
            }
        if parts is not None and self.pictures:
            sections["Curves"] = pictures_section(parts, self.pictures)
            rows = [np.array([row.row for row in query.rows], dtype=np.int64) for query in opened]
            data["marks"] = [marks_of(parts, self.pictures, own) for own in rows]
        if table is not None and table.is_surface:
            data["surface"] = embedded_surface(table)
        if against is not None:
            other, theirs = _read_other(against, X, qid, scores.size)
            both = own_name or view.describe(), against_name or theirs
            sections["Two models"] = against_section(both, judge, (scores, other), evidence)
        if isinstance(judge, ByPairs):
            duels = judge.pairs, judge.weight, scores, probability_of(view)
            sections["Wins and losses"] = duels_section(*duels, called, thing)
        sections["Choice"] = choice_section(table, view)
        sections["Data"] = data_section(facts, judge, source)
        sections["Settings"] = settings_section(view, notes or {}, command)
        head = f"{lead(view)}{tiles(evidence, facts)}{_verdict(evidence, best)}"
        self._page = html.whole_page(title or f"Report of {view.describe()}", head, sections, data)


def _read_other(other: object, X: MatrixLike, qid: ArrayLike | None, n_rows: int) -> tuple[Floats, str]:
    """Return the scores of another model, or those given, and its description."""
    if not hasattr(other, "predict"):
        return check_numbers("against", other, n_rows), "the other model"
    view = ModelView.of(other)
    return check_numbers("the scores of against", view.predict(view.numbers(X), qid), n_rows), view.describe()


def _verdict(evidence: Evidence, best: str | None) -> str:
    """Say in one sentence whether the model beats the best single column."""
    first = evidence.figures[0]
    if first.against_single is None or best is None:
        return ""
    names = "the model", f"the best single column, {html.name(best)}"
    return verdict(first, first.against_single, names, first.single)


def range_of(labels: Floats | None) -> tuple[float, float]:
    """Return the label of what is irrelevant, and the best one."""
    if labels is None:
        return 0.0, 0.0
    # Grades say by themselves what is irrelevant; other labels only in comparison.
    return 0.0 if is_graded(labels) else float(labels.min()), float(labels.max())


def _parts(
    view: ModelView,
    X: MatrixLike,
    numbers: MatrixLike,
    names: Sequence[str],
    qid: ArrayLike | None,
    queries: Queries,
) -> Parts | None:
    """Return the parts of scores by the columns of X, or else by those of numbers; None if the model has no formula."""
    plain = replace(view, encoder=None)
    tried = [] if view.encoder is None else [(view, rows_as_read(view.encoder, X), None)]
    for model, rows, own in (*tried, (plain, numbers, names)):
        try:
            return Parts(folded(formula_of(model, own)), rows, qid, queries)
        except InvalidInputError:  # a step that looks at several columns at once, or names that repeat
            continue
    return None


def _parameters(view: ModelView) -> dict[str, object]:
    """Return the parameters of a model and of its preprocessing, as text."""
    found: dict[str, object] = {}
    for part in (*view.steps, view.ranker):
        given = {key: value for key, value in part.get_params(deep=False).items() if key != "rankers"}
        values = {
            key: " ".join(repr(value).split()) for key, value in given.items()
        }  # arrays break their lines
        fitted = {key: one for key, one in vars(part).items() if key.endswith("_") and key[0] != "_"}
        values |= {key: one for key, one in fitted.items() if isinstance(one, str | int | float)}
        found |= {f"{type(part).__name__}.{key}": value for key, value in values.items()}
    for at, (_, one) in enumerate(view.of_mean, 1):
        found |= {f"{at}. {key}": value for key, value in _parameters(one).items()}
    return found


def _data_facts(X: MatrixLike, judge: Judge, thing: str) -> dict[str, str]:
    """Count the rows, queries and pairs of the evaluation."""
    summary = summarise(X if is_sparse(X) else np.asarray(X), judge.y, judge.queries)
    facts = {f"{thing.capitalize()}s": html.number(summary.rows), "Columns": html.number(summary.columns)}
    facts["Cells that are not 0"] = (
        f"{summary.filled:.1%}" if summary.filled > 0.001 else f"{summary.filled:.2g}"
    )
    if isinstance(judge, ByPairs):
        facts["Preferences"] = html.number(len(judge.pairs))
    elif summary.queries > 1:
        low, middle, high = summary.sizes
        several = f"{html.number(low)} to {html.number(high)}, median {html.number(middle, 3)}"
        facts["Queries"] = html.number(summary.queries)
        facts["Rows in a query"] = html.number(low) if low == high else several
    if judge.y is not None:
        facts["Pairs with different labels"] = html.number(summary.pairs)
    if summary.problems:
        facts["Note"] = "; ".join(summary.problems)
    return facts


def tiles(evidence: Evidence, facts: Mapping[str, str]) -> str:
    """Show the first figure large, and how much it was measured on."""
    first = evidence.figures[0]
    interval = html.brackets(first.model.low, first.model.high)
    words = f'{html.text(in_words(first.name))} <span class="whole">{interval}</span>'
    shown = f'<div class="tile main"><b>{html.decimals(first.model.value)}</b><span>{words}</span></div>'
    for key in ("Queries", "Preferences", "Rows", "Items", "Columns"):
        if key in facts:
            shown += (
                f'<div class="tile"><b>{html.text(facts[key])}</b><span>{html.text(key.lower())}</span></div>'
            )
    return f'<div class="tiles">{shown}</div>'


def lead(view: ModelView) -> str:
    """Describe the model in one line."""
    alpha, steps, _ = alpha_of(view)
    shown = f"alpha {alpha_name(alpha)}", html.counted(steps or 0, "iteration")
    known = (one for one, value in zip(shown, (alpha, steps), strict=True) if value is not None)
    return f'<p class="lead">{html.text(" · ".join([view.describe(), *known]))}</p>'


def data_section(facts: Mapping[str, str], judge: Judge, source: str | None) -> str:
    """Describe the rows that the model was evaluated on."""
    named = f": {html.name(source, html.LONG)}" if source else ""
    grades = [] if judge.y is None else label_counts(judge.y)
    total, most = sum(count for _, count in grades), max((count for _, count in grades), default=1)
    rows = [
        (
            html.text(x).replace("-", "−"),
            f"{html.number(count)} ({count / total:.0%})",
            html.bar(count / most),
        )
        for x, count in grades
    ]
    drawn = (
        f"<h3>Labels</h3>{html.listing('Labels', ['label', '#rows', '~'], rows, 'weights')}" if rows else ""
    )
    which = f"<p>The rows that this page judges the model by{named}.</p>"
    return html.section("data", "The data", f"{which}{html.fact_table(facts)}{drawn}")


def settings_section(view: ModelView, notes: Mapping[str, Json], command: str | None) -> str:
    """List the parameters, and how to make this page again: one block per command, so that each can be copied."""
    settings: dict[str, object] = {}
    if view.encoder is not None:
        settings["columns"] = "; ".join(view.encoder.describe())
    for title, key in (("trained on", "train"), ("validated on", "valid"), ("chosen by", "metric")):
        if notes.get(key):
            settings[title] = html.without_folders(str(notes[key]))
    blocks = "".join(
        f'<div class="command"><pre><code>{html.lines(html.without_folders(str(one)))}</code></pre>'
        '<button type="button" class="copy" hidden>Copy</button></div>'
        for one in (notes.get("command"), command)
        if one
    )
    again = f"<h3>To reproduce</h3>{blocks}" if blocks else ""
    listed = f'<div class="scroll">{html.fact_table(_parameters(view), "facts long")}</div>'
    return html.section(
        "settings",
        "Settings",
        html.fact_table(settings) + again + html.details("Parameters of the model", listed),
    )


# --- two-sided models ---

_RANKINGS, _IN_SIGHT = 200, 5  # that the table names, and of them before a fold


class TableReport(html.Page):
    """How a two-sided model ranks a table: the figure of each row with its interval, as one HTML page.

    Each row is a ranking of its columns; the roles follow the model's `ranked`. The interval of a row is that of
    `bootstrap_interval` over its entries, and the interval of the mean is over rows.

    Parameters
    ----------
    model : TwoSidedRankRLS or TwoSidedRankRLSCV
    rows, columns : matrix
        As in the model's `predict`.
    Y : array or sparse matrix of shape (rows, columns)
        The table to evaluate on, with gaps as in `fit`; preferably of rows or columns that the model has not seen. The
        held-out figures of a `TwoSidedRankRLSCV` are on the page in any case.
    metrics : sequence of str or Metric, optional
        The page leads with the first. By default metrics that suit the labels.
    row_names, column_names : sequence of str, optional
        Names, each of which occurs once; by default ``row 0``, ``column 0`` and so on.
    title : str, optional
    random_state : int, RandomState, Generator or None, default=0
        Seed of the bootstrap.

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
        view = ModelView.of(model)
        reading = reading_of(view)
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
        opened = open_queries(None, scores, judge, evidence, ranked)
        facts = {"Rows": html.number(table.shape[0]), "Columns": html.number(table.shape[1])}
        facts["Known entries"] = f"{html.number(y.size)} ({y.size / table.size:.1%})"
        unit = {"columns": "row", "rows": "column"}.get(model.ranked, "table")
        naming = RowNaming("item", True, *range_of(y), unit)
        sections = {
            "How good": metrics_section(evidence, None),
            f"Each {unit}": _each(evidence, self.figures, unit),
            "Rankings": queries_section(evidence, opened, naming, top_pictures(judge, scores)),
            "Held out": _held_out(view, reading),
            "Choice": choice_section(reading, view),
            "Data": data_section(facts, judge, None),
            "Settings": settings_section(view, {}, None),
        }
        head = lead(view) + tiles(evidence, facts)
        shown = {label: body for label, body in sections.items() if body}
        self._page = html.whole_page(title or f"Report of {view.describe()}", head, shown, {})


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
        drawn = html.interval((low, high), one.low, one.high, one.value)
        rows.append(
            [
                html.name(called),
                drawn,
                html.decimals(one.value),
                html.brackets(one.low, one.high),
                html.number(one.n),
            ]
        )
    title = in_words(evidence.figures[0].name)
    words = f"The {title} of each {unit}, the worst first, with its interval: how far it depends on the known entries."
    head = [unit, "~", f"#{title}", "#interval", "#entries"]
    shown = html.listing(words, head, rows[:_IN_SIGHT], "board")
    if rows[_IN_SIGHT:]:  # folded on a phone, so that the rankings come soon
        others = html.listing(f"More {unit}s", head, rows[_IN_SIGHT:], "board")
        shown += html.details(html.counted(len(rows) - _IN_SIGHT, f"more {unit}"), others, "wide")
    return html.section("each", f"Each {unit}", f"<p>{html.text(words)}</p>{shown}")


def _held_out(view: ModelView, reading: Reading | None) -> str:
    """Show the figures of the rankings that alpha was chosen by."""
    if view.held_out is None or reading is None:
        return ""
    figures, (low, high) = view.held_out
    value = reading.choice[2]
    words = f"Held-out {reading.metric} {html.decimals(value)} {html.brackets(low, high)}, by {reading.judged_by}."
    drawn = html.histogram(figures[~np.isnan(figures)], value, f"held-out {reading.metric}", of="rankings")
    return html.section("held-out", "Held out", f"<p>{html.text(words)}</p>{drawn}")
