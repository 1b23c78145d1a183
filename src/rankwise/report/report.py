"""The report: collects all results once and writes the page."""

from __future__ import annotations

import base64
import hashlib
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from html import escape
from importlib.resources import files

import numpy as np

import rankwise
from rankwise.arrays import ArrayLike, Floats, MatrixLike, RandomSource, is_sparse, shape_of
from rankwise.data.containers import as_rows
from rankwise.data.queries import Queries, one_query
from rankwise.data.summary import is_graded, label_counts, summarise
from rankwise.data.validation import check_names, check_numbers, check_qid, check_weights, read_seed
from rankwise.displays.regularisation import Reading
from rankwise.exceptions import InvalidInputError
from rankwise.files import replacing
from rankwise.formula.folding import folded
from rankwise.formula.reading import formula_of
from rankwise.formula.tables import rows_as_read
from rankwise.formula.view import ModelView
from rankwise.json_values import Json
from rankwise.metrics import Metric
from rankwise.report.choice import alpha_name, alpha_of, choice_section
from rankwise.report.columns import Parts, columns_section, marks_of, pictures_of, pictures_section
from rankwise.report.duels import duels_section, probability_of
from rankwise.report.evidence import (
    ByLabels,
    ByPairs,
    Evidence,
    Judge,
    against_section,
    evaluate,
    in_words,
    metrics_section,
    top_pictures,
    verdict,
)
from rankwise.report.markup import (
    LONG,
    bar,
    brackets,
    counted,
    decimals,
    details,
    embed,
    lines,
    listing,
    name,
    number,
    plain,
    section,
    text,
    without_folders,
)
from rankwise.report.queries import RowNaming, embedded_data, open_queries, queries_section, why_section

_STEPS = 90  # iterations that a table shows at most


class Page:
    """A page that is written once."""

    _page: str

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the page to a file; one that is there is replaced, and never left half-written."""
        with replacing(path) as stream:
            stream.write(self._page.encode())

    def html(self) -> str:
        """Return the page."""
        return self._page

    def _repr_html_(self) -> str:
        """Show the page in a notebook, in a frame of its own."""
        return f'<iframe srcdoc="{escape(self._page)}" style="width:100%;height:80vh;border:0"></iframe>'


class Report(Page):
    """Everything worth knowing about a model on some rows, as one HTML page.

    Parameters
    ----------
    model : fitted ranker or Pipeline
        A pipeline must end in a ranker; steps whose `transform` takes `qid` get it.
    X : array-like, sparse matrix or data frame of shape (rows, features)
        The rows to evaluate on; best ones that the model has not seen.
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
        labels, queries = None, one_query(scores.size)
        judge: Judge
        if pairs is not None:
            judge = ByPairs(pairs, weight, scores.size)
        else:
            labels, queries = check_numbers("y", y, scores.size), check_qid(qid, scores.size)
            row_weight = check_weights(weight, scores.size)
            judge = ByLabels(labels, queries, metrics, read_seed(random_state), row_weight)
        self.evidence = evidence = evaluate(judge, numbers, scores)
        self.parts = parts = _parts(view, X, numbers, names, qid, queries)
        self.opened = opened = open_queries(parts, scores, labels, queries, evidence, called)
        self.pictures = [] if parts is None else pictures_of(parts)
        table, naming = Reading.of(view.ranker), RowNaming(thing, called is not None, *range_of(labels))
        table = None if table is None else table.thinned(_STEPS)
        facts = _data_facts(numbers, labels, queries, None if pairs is None else shape_of(pairs)[0], thing)
        best = None if evidence.best_column is None else names[evidence.best_column[0]]
        top = "" if labels is None else top_pictures(labels, queries, scores)
        sections = {
            "Columns": columns_section(parts),
            "How good": metrics_section(evidence, best),
            "Ranking" if len(queries) == 1 else "Queries": queries_section(evidence, opened, naming, top),
            "Why A above B": why_section(opened, parts),
        }
        marks = []
        if parts is not None and self.pictures:
            sections["Curves"] = pictures_section(parts, self.pictures)
            rows = [np.array([row.row for row in query.rows], dtype=np.int64) for query in opened]
            marks = [marks_of(parts, self.pictures, own) for own in rows]
        if against is not None:
            other, theirs = _read_other(against, X, qid, scores.size)
            both = own_name or view.describe(), against_name or theirs
            sections["Two models"] = against_section(both, judge, (scores, other), evidence)
        if isinstance(judge, ByPairs):
            duels = judge.pairs, judge.weight, scores, probability_of(view)
            sections["Wins and losses"] = duels_section(*duels, called, thing)
        sections["Choice"] = choice_section(table, view)
        sections["Data"] = data_section(facts, [] if labels is None else label_counts(labels), source)
        sections["Settings"] = settings_section(view, notes or {}, command)
        self._page = whole_page(
            title or f"Report of {view.describe()}",
            f"{lead(view)}{tiles(evidence, facts)}{_verdict(evidence, best)}",
            sections,
            embedded_data(table, opened, parts, naming, marks),
        )


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
    names = "the model", f"the best single column, {name(best)}"
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


def _data_facts(
    X: MatrixLike, labels: Floats | None, queries: Queries, n_pairs: int | None, thing: str
) -> dict[str, str]:
    """Count the rows, queries and pairs of the evaluation."""
    summary = summarise(X if is_sparse(X) else np.asarray(X), labels, queries)
    facts = {f"{thing.capitalize()}s": number(summary.rows), "Columns": number(summary.columns)}
    facts["Filled cells"] = f"{summary.filled:.1%}" if summary.filled > 0.001 else f"{summary.filled:.2g}"
    if n_pairs is not None:
        facts["Preferences"] = number(n_pairs)
    if labels is not None and summary.queries > 1:
        low, middle, high = summary.sizes
        several = f"{number(low)} to {number(high)}, median {number(middle, 3)}"
        facts["Queries"] = number(summary.queries)
        facts["Rows in a query"] = number(low) if low == high else several
    if labels is not None:
        facts["Pairs with different labels"] = number(summary.pairs)
    if summary.problems:
        facts["Note"] = "; ".join(summary.problems)
    return facts


def tiles(evidence: Evidence, facts: Mapping[str, str]) -> str:
    """Show the first figure large, and how much it was measured on."""
    first = evidence.figures[0]
    interval = brackets(first.model.low, first.model.high)
    words = f'{text(in_words(first.name))} <span class="whole">{interval}</span>'
    shown = f'<div class="tile main"><b>{decimals(first.model.value)}</b><span>{words}</span></div>'
    for key in ("Queries", "Preferences", "Rows", "Items", "Columns"):
        if key in facts:
            shown += f'<div class="tile"><b>{text(facts[key])}</b><span>{text(key.lower())}</span></div>'
    return f'<div class="tiles">{shown}</div>'


def lead(view: ModelView) -> str:
    """Describe the model in one line."""
    alpha, steps, _ = alpha_of(view)
    shown = f"alpha {alpha_name(alpha)}", counted(steps or 0, "iteration")
    known = (one for one, value in zip(shown, (alpha, steps), strict=True) if value is not None)
    return f'<p class="lead">{text(" · ".join([view.describe(), *known]))}</p>'


def data_section(facts: Mapping[str, str], grades: Sequence[tuple[str, int]], source: str | None) -> str:
    """Describe the rows that the model was evaluated on."""
    named = f": {name(source, LONG)}" if source else ""
    total, most = sum(count for _, count in grades), max((count for _, count in grades), default=1)
    rows = [(text(x), f"{number(count)} ({count / total:.0%})", bar(count / most)) for x, count in grades]
    drawn = f"<h3>Labels</h3>{listing('Labels', ['label', '#rows', '~'], rows, 'weights')}" if rows else ""
    which = f"<p>The rows that this page judges the model by{named}.</p>"
    return section("data", "The data", f"{which}{fact_table(facts)}{drawn}")


def fact_table(facts: Mapping[str, object], kind: str = "facts") -> str:
    """List names and values."""
    rows = "".join(
        f'<tr><th scope="row">{name(k)}</th><td>{name(v, LONG)}</td></tr>' for k, v in facts.items()
    )
    return f'<table class="{kind}"><tbody>{rows}</tbody></table>' if facts else ""


def settings_section(view: ModelView, notes: Mapping[str, Json], command: str | None) -> str:
    """List the parameters, and how to make this page again: one block per command, so that each can be copied."""
    settings: dict[str, object] = {}
    if view.encoder is not None:
        settings["columns"] = "; ".join(view.encoder.describe())
    for title, key in (("trained on", "train"), ("validated on", "valid"), ("chosen by", "metric")):
        if notes.get(key):
            settings[title] = without_folders(str(notes[key]))
    blocks = "".join(
        f'<div class="command"><pre><code>{lines(without_folders(str(one)))}</code></pre>'
        '<button type="button" class="copy" hidden>Copy</button></div>'
        for one in (notes.get("command"), command)
        if one
    )
    again = f"<h3>To reproduce</h3>{blocks}" if blocks else ""
    listed = f'<div class="scroll">{fact_table(_parameters(view), "facts long")}</div>'
    return section(
        "settings", "Settings", fact_table(settings) + again + details("Parameters of the model", listed)
    )


def whole_page(title: str, head: str, sections: Mapping[str, str], data: dict[str, Json]) -> str:
    """Put everything together; sections are named by their links, and begin with their id."""
    style, script = (
        files("rankwise.report").joinpath(f"page.{kind}").read_text("utf-8") for kind in ("css", "js")
    )
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    # Only our own script runs, whatever a file's feature names hold, and nothing is fetched.
    policy = f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'; img-src data:"
    anchors = "".join(f'<a href="#{one.split(chr(34))[1]}">{label}</a>' for label, one in sections.items())
    written = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{text(policy)}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<link rel="icon" href="data:,"><title>{text(plain(title))}</title><style>{style}</style></head><body>'
        f'<header><h1>{name(title)}</h1>{head}<nav aria-label="Sections">{anchors}</nav></header>'
        f"<main>{''.join(sections.values())}</main>"
        f"<footer>Written by rankwise {text(rankwise.__version__)} on {written}.</footer>"
        f'<script type="application/json" id="embedded">{embed(data)}</script><script>{script}</script></body></html>\n'
    )
