"""The report: gathers everything once, and writes the page."""

from __future__ import annotations

import base64
import hashlib
import os
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from html import escape
from importlib.resources import files

import numpy as np

import rankwise
from rankwise.arrays import ArrayLike, MatrixLike, RandomSource, is_sparse, shape_of
from rankwise.data.containers import unmasked
from rankwise.data.queries import Queries, one_query
from rankwise.data.summary import is_graded, label_counts, summarise
from rankwise.data.validation import check_numbers, check_qid, read_seed
from rankwise.exceptions import InvalidInputError
from rankwise.formula.view import Doubles, ModelView
from rankwise.json_values import Json
from rankwise.metrics import Metric
from rankwise.replacing import replacing
from rankwise.report.charts import alpha_name, curves
from rankwise.report.evidence import Evidence, evaluate_labels, evaluate_pairs, suitable_metrics
from rankwise.report.formula_parts import formula_parts
from rankwise.report.markup import counted, decimals, embed, name, number, plain, text
from rankwise.report.model_sections import choice_section, data_section, settings_section, weights_section
from rankwise.report.openings import OpenQuery, open_queries
from rankwise.report.score_parts import ColumnParts, TermParts, parts_of
from rankwise.report.sections import (
    RowNaming,
    in_words,
    metrics_section,
    queries_section,
    verdict,
    why_section,
)
from rankwise.report.selection import SurfaceTable, read_curve, read_surface, read_trial
from rankwise.report.term_pictures import TermPictures

__all__ = ["Report"]


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
        The page leads with the first. By default what suits the labels.
    feature_names : sequence of str, optional
        By default the model's own.
    row_names : sequence of str, optional
        What the rows are called, such as the ids of items or documents; by default they are numbered from 0.
    title : str, optional
    command : str or sequence of str, optional
        How to make this page again; shown as it is, each of several commands by itself.
    settings : mapping, optional
        More lines for the settings, before the model's parameters.
    source : str, optional
        Where the rows come from, such as the names of their files.
    choice : mapping, optional
        What the model was chosen from: ``"tried"``, a list of mappings with ``"description"`` (or ``"method"`` and
        ``"scaling"``), ``"alpha"``, ``"iterations"``, ``"value"`` and ``"chosen"``; ``"metric"`` and ``"judged_by"``.
        The notes of a model file that `rankwise fit` wrote have this shape.
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
        random_state: RandomSource = 0,
    ) -> None:
        if (y is None) == (pairs is None):
            raise InvalidInputError("A report needs either labels or pairs.", "pass y, or pairs, not both.")
        self._view = ModelView.of(model)
        X = unmasked("X", X)
        X = X if hasattr(X, "shape") else np.asarray(X)
        prepared = self._view.prepare(X, qid)
        self.scores = np.asarray(self._view.ranker.predict(prepared), dtype=np.float64)
        if self.scores.ndim != 1:
            raise InvalidInputError("The model has several outputs.", "report on models of one output each.")
        self._names = self._view.names(shape_of(X)[1], feature_names)
        self._parts = parts_of(self._view, self._names) or formula_parts(model, self._names, qid)
        self._row_names = _checked_row_names(row_names, self.scores.size)
        seed = read_seed(random_state)
        labels = None if y is None else check_numbers("y", y, self.scores.size)
        queries = one_query(self.scores.size) if labels is None else check_qid(qid, self.scores.size)
        if labels is None:
            assert pairs is not None
            self.evidence = evaluate_pairs(X, pairs, weight, self.scores, seed)
        else:
            chosen = suitable_metrics(labels, len(queries)) if metrics is None else metrics
            self.evidence = evaluate_labels(X, labels, queries, self.scores, chosen, seed)
        self.opened = open_queries(
            X,
            prepared,
            self._parts,
            self.scores,
            labels,
            queries,
            self.evidence.per_query,
            greater_is_better=self.evidence.figures[0].greater_is_better,
            row_names=self._row_names,
        )
        self._pictures = (
            TermPictures(self._parts, is_scaled=bool(self._view.steps))
            if isinstance(self._parts, TermParts)
            else None
        )
        pictures = self._pictures
        self._marks: list[list[list[list[float]]]] = (
            [] if pictures is None else [pictures.marks(prepared, query) for query in self.opened]
        )
        n_pairs = shape_of(pairs)[0] if pairs is not None else None
        thing = "row" if pairs is None or row_names is None else "item"
        lowest, highest = (0.0, 0.0) if labels is None else (float(labels.min()), float(labels.max()))
        # Grades say by themselves what is irrelevant; other labels only in comparison.
        lowest = 0.0 if labels is not None and is_graded(labels) else lowest
        self._naming = RowNaming(thing, row_names is not None, lowest, highest)
        self._facts = _data_facts(X, labels, queries, n_pairs, thing)
        self._source = source
        self._trial = read_trial(choice)
        self._grades = [] if labels is None else label_counts(labels)
        self._title = title or f"Report of {self._view.describe()}"
        commands = [command] if isinstance(command, str) else (command or ())
        self._commands = [str(one) for one in commands if one]
        self._settings = dict(settings or {})

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the page to a file; one that is there is replaced, and never left half-written."""
        with replacing(path) as stream:
            stream.write(self.html().encode())

    def html(self) -> str:
        """Return the page."""
        view, evidence = self._view, self.evidence
        surface, curve = read_surface(view.ranker), read_curve(view.ranker)
        best = None if evidence.best_column is None else self._names[evidence.best_column[0]]
        is_scaled = bool(view.steps)
        body = "".join(
            [
                metrics_section(evidence, best),
                queries_section(evidence, self.opened, self._naming),
                why_section(self.opened, self._parts),
                weights_section(
                    self._view.weights if isinstance(self._parts, ColumnParts) else None,
                    self._names,
                    is_scaled=is_scaled,
                )
                if self._pictures is None
                else self._pictures.section(),
                choice_section(surface, curve, view.ranker, self._trial),
                data_section(self._facts, self._grades, self._source),
                settings_section(self._settings, _parameters(view), self._commands),
            ]
        )
        return _page(
            self._title,
            f"{self._lead()}{_tiles(evidence, self._facts)}{verdict(evidence.figures[0], best)}",
            body,
            self._data(surface),
            links=self._links(),
        )

    def _links(self) -> dict[str, str]:
        links = dict(_LINKS)
        if self.evidence.per_query is None or len(self.evidence.per_query) == 1:
            links["queries"] = "Ranking"
        if self._trial is not None:
            links["choice"] = "Choice"
        if self._pictures is not None:
            links = {
                ("curves" if anchor == "weights" else anchor): ("Curves" if anchor == "weights" else label)
                for anchor, label in links.items()
            }
        elif not isinstance(self._parts, ColumnParts):
            del links["weights"]
        return links

    def _repr_html_(self) -> str:
        """Show the page in a notebook, in a frame of its own."""
        return f'<iframe srcdoc="{escape(self.html())}" style="width:100%;height:80vh;border:0"></iframe>'

    def _lead(self) -> str:
        ranker = self._view.ranker
        words = [self._view.describe()]
        alpha = getattr(ranker, "alpha_", getattr(ranker, "alpha", None))
        if isinstance(alpha, (int, float)):
            words.append(f"alpha {alpha_name(float(alpha))}")
        steps = getattr(ranker, "best_iteration_", None)
        if isinstance(steps, int):
            words.append(counted(steps, "iteration"))
        return f'<p class="lead">{text(" · ".join(words))}</p>'

    def _data(self, surface: SurfaceTable | None) -> dict[str, Json]:
        data: dict[str, Json] = {
            "open": [self._open(query) for query in self.opened if self._parts is not None],
            "columns": len(self._names if self._parts is None else self._parts.names),
            "marks": self._marks,
        }
        if surface is not None:
            alpha, step, _ = surface.choices[surface.chosen]
            data["surface"] = {
                "alphas": [alpha_name(value) for value in surface.alphas],
                "steps": surface.steps.tolist(),
                "values": [[_short(value, 5) for value in row] for row in surface.values],
                "metric": surface.metric,
                "chosen": [
                    int(np.argmin(np.abs(surface.alphas - alpha))),
                    int(np.searchsorted(surface.steps, step)),
                ],
                "shown": curves(surface)[1],
            }
        return data

    def _open(self, query: OpenQuery) -> dict[str, Json]:
        label = (
            f"all {self._naming.thing}s"
            if query.kind == "only"
            else f"{plain(query.name)} ({query.kind}, {decimals(query.value)})"
        )
        return {
            "label": label,
            "columns": [plain(self._parts.names[part]) for part in query.columns if self._parts is not None],
            "rows": [
                [
                    plain(row.called),
                    row.rank,
                    None if row.label is None else _short(row.label, 6),
                    _short(row.score, 7),
                    [_short(value, 6) for value in row.parts],
                    [_short(value, 4) for value in row.values],
                ]
                for row in query.rows
            ],
        }


def _checked_row_names(names: Sequence[object] | None, n_rows: int) -> list[str] | None:
    if names is None:
        return None
    if len(names) != n_rows:
        raise InvalidInputError(
            f"row_names has {len(names)} entries, but X has {n_rows} rows.",
            "give one name per row, in the order of the rows.",
        )
    return [str(name) for name in names]


def _short(value: float, digits: int) -> float | int | None:
    if not np.isfinite(value):
        return None
    rounded = float(f"{value:.{digits}g}")
    return int(rounded) if rounded == int(rounded) and abs(rounded) < 1e6 else rounded


def _parameters(view: ModelView) -> dict[str, object]:
    found: dict[str, object] = {}
    for part in (*view.steps, view.ranker):
        kind = type(part).__name__
        for key, value in part.get_params(deep=False).items():
            found[f"{kind}.{key}"] = " ".join(repr(value).split())  # arrays break their lines
    return found


def _data_facts(
    X: MatrixLike, labels: Doubles | None, queries: Queries, n_pairs: int | None, thing: str
) -> dict[str, str]:
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
    first = evidence.figures[0]
    shown = in_words(first.name)
    brackets = (
        f' <span class="whole">[{decimals(first.model.low, 3)}, {decimals(first.model.high, 3)}]</span>'
        if np.isfinite(first.model.low)
        else ""
    )
    tiles = f'<div class="tile main"><b>{decimals(first.model.value)}</b><span>{text(shown)}{brackets}</span></div>'
    for key in ("Queries", "Preferences", "Rows", "Items", "Columns"):
        if key in facts:
            tiles += f'<div class="tile"><b>{text(facts[key])}</b><span>{text(key.lower())}</span></div>'
    return f'<div class="tiles">{tiles}</div>'


_LINKS = {
    "metrics": "How good",
    "queries": "Queries",
    "why": "Why A above B",
    "weights": "Weights",
    "choice": "Regularisation",
    "data": "Data",
    "settings": "Settings",
}


def _page(title: str, head: str, body: str, data: dict[str, Json], *, links: Mapping[str, str]) -> str:
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
