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
from rankwise.data.validation import check_names, check_numbers, check_qid, read_seed
from rankwise.exceptions import InvalidInputError
from rankwise.files import replacing
from rankwise.formula.folding import folded
from rankwise.formula.reading import formula_of
from rankwise.formula.tables import rows_as_read
from rankwise.formula.view import ModelView
from rankwise.json_values import Json
from rankwise.metrics import Metric
from rankwise.report.against import against_section, compare, read_other
from rankwise.report.charts import alpha_name
from rankwise.report.choice import alpha_of, choice_section, read_curve, read_surface
from rankwise.report.columns import Parts, columns_section, marks_of, pictures_of, pictures_section
from rankwise.report.duels import duels_section, look_at_duels, probability_of
from rankwise.report.evidence import (
    ByLabels,
    ByPairs,
    Evidence,
    Judge,
    evaluate,
    in_words,
    metrics_section,
    verdict,
)
from rankwise.report.markup import (
    LONG,
    brackets,
    counted,
    decimals,
    details,
    embed,
    lines,
    name,
    number,
    plain,
    section,
    text,
)
from rankwise.report.queries import RowNaming, embedded_data, open_queries, queries_section, why_section

__all__ = ["Report", "whole_page"]


class Report:
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
    weight : array-like of shape (pairs,), optional
        Weights of the pairs.
    metrics : sequence of str or Metric, optional
        The page leads with the first. By default metrics that suit the labels.
    feature_names : sequence of str, optional
        By default the model's own.
    row_names : sequence of str, optional
        Names of the rows, such as the ids of items or documents; by default they are numbered from 0.
    title : str, optional
    command : str or sequence of str, optional
        The commands that make this page; shown as they are, each on its own line.
    settings : mapping, optional
        More lines for the settings, before the model's parameters.
    source : str, optional
        Where the rows come from, such as the names of their files.
    choice : mapping, optional
        The candidates: ``"tried"``, a list of mappings with ``"description"`` (or ``"method"`` and
        ``"scaling"``), ``"alpha"``, ``"iterations"``, ``"value"``, ``"standard_error"`` and ``"chosen"``;
        ``"metric"`` and ``"judged_by"``; ``"constant"``, the metric of a constant score, and ``"is_clear"``, whether
        some candidate is clearly better.
        The notes of a model file that `rankwise fit` wrote have this shape.
    against : fitted ranker, Pipeline, or array-like of shape (rows,), optional
        Another model of the same rows, or its scores: a section shows both, with paired differences.
    against_name, own_name : str, optional
        Their display names in that section; by default descriptions of the models.
    calibration : two lists of float, optional
        The ``calibration_`` of the `AutoRanker` that chose the model; by default the model's own.
    random_state : int, RandomState, Generator or None, default=0
        Seeds the bootstrap and the paired tests.

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
        command: str | Sequence[str] | None = None,
        settings: Mapping[str, object] | None = None,
        source: str | None = None,
        choice: Mapping[str, Json] | None = None,
        against: object = None,
        against_name: str | None = None,
        own_name: str | None = None,
        calibration: Sequence[Sequence[float]] | None = None,
        random_state: RandomSource = 0,
    ) -> None:
        if (y is None) == (pairs is None):
            raise InvalidInputError("A report needs either labels or pairs.", "pass y, or pairs, not both.")
        _check_kinds(str, "a text", title=title, source=source, own_name=own_name)
        _check_kinds(Mapping, "a dictionary", settings=settings, choice=choice)
        self._view = view = ModelView.of(model)
        settings = dict(settings or {})
        if view.encoder is not None:
            if feature_names is not None:
                raise InvalidInputError(
                    "The model makes other columns of the table's, and names them after those.",
                    "leave feature_names out.",
                )
            settings = {"columns": "; ".join(view.encoder.describe()), **settings}
            feature_names = [str(one) for one in view.encoder.get_feature_names_out()]
        # Figures and baselines are about the numbers that the ranker gets.
        numbers = as_rows("X", view.numbers(X))
        self.scores = view.predict(numbers, qid)
        if self.scores.ndim != 1:
            raise InvalidInputError("The model has several outputs.", "report on models of one output each.")
        n_rows, seed = self.scores.size, read_seed(random_state)
        self._row_names = _checked_row_names(row_names, n_rows)
        labels, queries = None, one_query(n_rows)
        names = view.names(shape_of(numbers)[1], feature_names)
        judge: Judge
        if pairs is not None:
            judge = ByPairs(pairs, weight, n_rows)
        else:
            labels = check_numbers("y", y, n_rows)
            queries = check_qid(qid, n_rows)
            judge = ByLabels(labels, queries, metrics, seed)
        self.evidence = evaluate(judge, numbers, self.scores)
        self.parts = _parts(view, X, numbers, names, qid, queries)
        best = self.evidence.best_column
        self._best = None if best is None else names[best[0]]
        self.opened = open_queries(self.parts, self.scores, labels, queries, self.evidence, self._row_names)
        self._pictures = [] if self.parts is None else pictures_of(self.parts)
        thing = "row" if pairs is None or row_names is None else "item"
        self._naming = RowNaming(thing, row_names is not None, *_range_of(labels))
        self._own_name = own_name or view.describe()
        self._duels, self._other = None, None
        if isinstance(judge, ByPairs):
            chances = probability_of(view.ranker, calibration or getattr(model, "calibration_", None))
            self._duels = look_at_duels(judge.pairs, judge.weight, self.scores, chances, self._row_names)
        if against is not None:
            other, called = read_other(against, against_name, X, qid, n_rows)
            if called == self._own_name:
                self._own_name, called = f"{called} (this one)", f"{called} (the other)"
            self._other = compare(called, judge, (self.scores, other), self.evidence)
        self._facts = _data_facts(
            numbers, labels, queries, None if pairs is None else shape_of(pairs)[0], thing
        )
        self._source, self._choice, self._settings = source, choice, settings
        self._grades = [] if labels is None else label_counts(labels)
        self._title = title or f"Report of {view.describe()}"
        commands = [command] if isinstance(command, str) else () if command is None else command
        self._commands = [one for one in check_names("command", commands) if one]

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the page to a file; one that is there is replaced, and never left half-written."""
        with replacing(path) as stream:
            stream.write(self.html().encode())

    def html(self) -> str:
        """Return the page."""
        view, evidence, parts = self._view, self.evidence, self.parts
        surface = read_surface(view.ranker)
        is_one = evidence.per_query is None or len(evidence.per_query) == 1
        sections = {
            "columns": ("Columns", columns_section(parts)),
            "metrics": ("How good", metrics_section(evidence, self._best)),
            "queries": (
                "Ranking" if is_one else "Queries",
                queries_section(evidence, self.opened, self._naming),
            ),
            "why": ("Why A above B", why_section(self.opened, parts)),
            "curves": ("Curves", parts and self._pictures and pictures_section(parts, self._pictures)),
            "against": ("Two models", self._other and against_section(self._other, self._own_name)),
            "duels": ("Wins and losses", self._duels and duels_section(self._duels, self._naming.thing)),
            "choice": ("Choice", choice_section(surface, read_curve(view.ranker), view.ranker, self._choice)),
            "data": ("Data", _data_section(self._facts, self._grades, self._source)),
            "settings": ("Settings", _settings_section(self._settings, _parameters(view), self._commands)),
        }
        marks = []
        if parts is not None and self._pictures:
            rows = [np.array([row.row for row in query.rows], dtype=np.int64) for query in self.opened]
            marks = [marks_of(parts, self._pictures, own) for own in rows]
        return whole_page(
            self._title,
            f"{_lead(view)}{_tiles(evidence, self._facts)}{self._verdict()}",
            "".join(str(body) for _, body in sections.values() if body),
            embedded_data(surface, self.opened, parts, self._naming, marks),
            links={anchor: label for anchor, (label, body) in sections.items() if body},
        )

    def _verdict(self) -> str:
        """Say in one sentence whether the model beats the best single column."""
        first = self.evidence.figures[0]
        if first.against_single is None or self._best is None:
            return ""
        best = f"the best single column, {name(self._best)}"
        return verdict(first, first.against_single, ("the model", best), first.single)

    def _repr_html_(self) -> str:
        """Show the page in a notebook, in a frame of its own."""
        return f'<iframe srcdoc="{escape(self.html())}" style="width:100%;height:80vh;border:0"></iframe>'


def _check_kinds(kind: type, what: str, **given: object) -> None:
    for key, value in given.items():
        if not isinstance(value, kind | None):
            raise InvalidInputError(f"{key}={value!r} is not {what}.", f"pass {what}, or leave it out.")


def _range_of(labels: Floats | None) -> tuple[float, float]:
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


def _checked_row_names(names: Sequence[object] | None, n_rows: int) -> list[str] | None:
    if names is None:
        return None
    names = check_names("row_names", names)
    if len(names) != n_rows:
        raise InvalidInputError(
            f"row_names has {len(names)} entries, but X has {n_rows} rows.",
            "give one name per row, in the order of the rows.",
        )
    return names


def _parameters(view: ModelView) -> dict[str, object]:
    """Return the parameters of a model and of its preprocessing, as text."""
    found: dict[str, object] = {}
    for part in (*view.steps, view.ranker):
        kind = type(part).__name__
        for key, value in part.get_params(deep=False).items():
            if key != "rankers":
                found[f"{kind}.{key}"] = " ".join(repr(value).split())  # arrays break their lines
        fitted = {
            key: value for key, value in vars(part).items() if key.endswith("_") and not key.startswith("_")
        }
        found |= {f"{kind}.{key}": one for key, one in fitted.items() if isinstance(one, str | int | float)}
    for at, one in enumerate(getattr(view.ranker, "rankers_", ()), 1):  # of a mean
        found |= {f"{at}. {key}": value for key, value in _parameters(ModelView.of(one)).items()}
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
        facts["Queries"] = number(summary.queries)
        facts["Rows in a query"] = (
            number(low) if low == high else f"{number(low)} to {number(high)}, median {number(middle, 3)}"
        )
    if labels is not None:
        facts["Pairs with different labels"] = number(summary.pairs)
    for problem in summary.problems:
        facts["Note"] = f"{facts['Note']}; {problem}" if "Note" in facts else problem
    return facts


def _tiles(evidence: Evidence, facts: Mapping[str, str]) -> str:
    """Show the first figure large, and how much it was measured on."""
    first = evidence.figures[0]
    interval = brackets(first.model.low, first.model.high)
    words = f'{text(in_words(first.name))} <span class="whole">{interval}</span>'
    shown = f'<div class="tile main"><b>{decimals(first.model.value)}</b><span>{words}</span></div>'
    for key in ("Queries", "Preferences", "Rows", "Items", "Columns"):
        if key in facts:
            shown += f'<div class="tile"><b>{text(facts[key])}</b><span>{text(key.lower())}</span></div>'
    return f'<div class="tiles">{shown}</div>'


def _lead(view: ModelView) -> str:
    """Describe the model in one line."""
    alpha, steps, _ = alpha_of(view.ranker)
    words = [view.describe()]
    words += [] if alpha is None else [f"alpha {alpha_name(alpha)}"]
    words += [] if steps is None else [counted(steps, "iteration")]
    return f'<p class="lead">{text(" · ".join(words))}</p>'


def _data_section(facts: Mapping[str, str], grades: Sequence[tuple[str, int]], source: str | None) -> str:
    """Describe the rows that the model was evaluated on."""
    named = f": {name(source, LONG)}" if source else ""
    total = sum(count for _, count in grades) or 1
    most = max((count for _, count in grades), default=1)
    bars = "".join(
        f'<span>{text(label)}</span><i style="width:{100 * count / most:.1f}%"></i>'
        f"<span>{number(count)} ({count / total:.0%})</span>"
        for label, count in grades
    )
    drawn = f'<h3>Labels</h3><div class="grades" role="group" aria-label="Rows with each label">{bars}</div>'
    which = f"<p>The rows that this page judges the model by{named}.</p>"
    return section("data", "The data", f"{which}{_pairs(facts)}{drawn if grades else ''}")


def _pairs(facts: Mapping[str, object], kind: str = "facts") -> str:
    rows = "".join(
        f'<tr><th scope="row">{name(k)}</th><td>{name(v, LONG)}</td></tr>' for k, v in facts.items()
    )
    return f'<table class="{kind}"><tbody>{rows}</tbody></table>' if facts else ""


def _settings_section(
    settings: Mapping[str, object], parameters: Mapping[str, object], commands: Sequence[str]
) -> str:
    """List the parameters, and how to make this page again: one block per command, so that each can be copied."""
    blocks = "".join(
        f'<div class="command"><pre><code>{lines(command)}</code></pre>'
        '<button type="button" class="copy" hidden>Copy</button></div>'
        for command in commands
    )
    again = f"<h3>To reproduce</h3>{blocks}" if blocks else ""
    listed = details(
        "Parameters of the model", f'<div class="scroll">{_pairs(parameters, "facts long")}</div>'
    )
    return section("settings", "Settings", _pairs(settings) + again + listed)


def whole_page(title: str, head: str, body: str, data: dict[str, Json], *, links: Mapping[str, str]) -> str:
    """Put everything together."""
    style, script = (
        files("rankwise.report").joinpath(f"page.{kind}").read_text("utf-8") for kind in ("css", "js")
    )
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    # Only our own script runs, whatever a file's feature names hold, and nothing is fetched.
    policy = f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'; img-src data:"
    anchors = "".join(f'<a href="#{anchor}">{label}</a>' for anchor, label in links.items())
    written = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{text(policy)}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<link rel="icon" href="data:,"><title>{text(plain(title))}</title><style>{style}</style></head><body>'
        f'<header><h1>{name(title)}</h1>{head}<nav aria-label="Sections">{anchors}</nav></header>'
        f"<main>{body}</main><footer>Written by rankwise {text(rankwise.__version__)} on {written}.</footer>"
        f'<script type="application/json" id="embedded">{embed(data)}</script><script>{script}</script></body></html>\n'
    )
