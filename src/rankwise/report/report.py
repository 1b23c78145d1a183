"""The report: gathers everything once, and writes the page."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from html import escape

from rankwise.arrays import ArrayLike, MatrixLike, RandomSource, shape_of
from rankwise.data.arguments import check_names
from rankwise.data.containers import as_rows
from rankwise.data.queries import Queries, one_query
from rankwise.data.summary import is_graded, label_counts
from rankwise.data.validation import check_numbers, check_qid, read_seed
from rankwise.exceptions import InvalidInputError
from rankwise.files import replacing
from rankwise.formula.view import Doubles, ModelView, without_encoder
from rankwise.json_values import Json
from rankwise.metrics import Metric
from rankwise.preprocessing.table_encoder import TableEncoder
from rankwise.report.against import (
    Against,
    against_section,
    compare_labels,
    compare_pairs,
    on_training,
    read_other,
    told_apart,
    training_section,
)
from rankwise.report.duels import duels_section, look_at_duels, probability_of
from rankwise.report.embedded import embedded_data
from rankwise.report.evidence import evaluate_labels, evaluate_pairs, suitable_metrics
from rankwise.report.formula_parts import formula_parts
from rankwise.report.model_sections import choice_section, data_section, settings_section, weights_section
from rankwise.report.openings import open_queries
from rankwise.report.page import data_facts, lead, parameters, tiles, whole_page
from rankwise.report.score_parts import ColumnParts, TermParts, parts_of
from rankwise.report.sections import RowNaming, metrics_section, queries_section, verdict, why_section
from rankwise.report.selection import read_curve, read_surface, read_trial
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
        ``"scaling"``), ``"alpha"``, ``"iterations"``, ``"value"`` and ``"chosen"``; ``"metric"`` and ``"judged_by"``;
        ``"constant"``, the metric of a constant score, and ``"is_clear"``, whether some candidate is clearly better.
        The notes of a model file that `rankwise fit` wrote have this shape.
    against : fitted ranker, Pipeline, or array-like of shape (rows,), optional
        Another model of the same rows, or its scores: a section shows both, with paired differences.
    against_name, own_name : str, optional
        What the two are called there; by default what they are.
    train : tuple (X, y), (X, y, qid) or (X, pairs), optional
        What the model was trained on; a section compares it with the rows of the report.
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
        train: tuple[object, ...] | None = None,
        calibration: Sequence[Sequence[float]] | None = None,
        random_state: RandomSource = 0,
    ) -> None:
        if (y is None) == (pairs is None):
            raise InvalidInputError("A report needs either labels or pairs.", "pass y, or pairs, not both.")
        _check_kinds(str, "a text", title=title, source=source, own_name=own_name)
        _check_kinds(Mapping, "a dictionary", settings=settings, choice=choice)
        table, whole = X, model
        model, encoder = without_encoder(model)
        if encoder is not None:
            # Everything below is about the columns that the model was given.
            X = encoder.transform(X)
            feature_names = _names_of(encoder, feature_names)
            settings = {"columns": "; ".join(encoder.describe()), **(settings or {})}
        self._view = ModelView.of(model)
        X = as_rows("X", X)
        prepared = self._view.prepare(X, qid)
        self.scores = self._view.predict(prepared, qid)
        if self.scores.ndim != 1:
            raise InvalidInputError("The model has several outputs.", "report on models of one output each.")
        self._names = self._view.names(shape_of(X)[1], feature_names)
        self._parts = parts_of(self._view, self._names) or formula_parts(model, self._names, qid)
        self._row_names = _checked_row_names(row_names, self.scores.size)
        seed = read_seed(random_state)
        labels = None if y is None else _checked_labels(y, self.scores.size)
        queries = one_query(self.scores.size) if labels is None else check_qid(qid, self.scores.size)
        if labels is None:
            assert pairs is not None
            self.evidence = evaluate_pairs(X, pairs, weight, self.scores)
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
        self._naming = RowNaming(thing, row_names is not None, *_range_of(labels))
        self._own_name = own_name or self._view.describe()
        self._duels = None
        if pairs is not None:
            chances = probability_of(self._view.ranker, calibration or getattr(whole, "calibration_", None))
            self._duels = look_at_duels(pairs, weight, self.scores, chances, self._row_names)
        self._facts = data_facts(X, labels, queries, n_pairs, thing)
        self._source = source
        self._trial = read_trial(choice)
        self._grades = [] if labels is None else label_counts(labels)
        self._other = (
            None
            if against is None
            else self._beside(against, against_name, table, qid, labels, queries, seed)
        )
        self._trained = (
            None if train is None else on_training(train, self._view, encoder, self.evidence, seed)
        )
        self._title = title or f"Report of {self._view.describe()}"
        commands = [command] if isinstance(command, str) else () if command is None else command
        self._commands = [one for one in check_names("command", commands) if one]
        self._settings = dict(settings or {})

    def _beside(
        self,
        against: object,
        against_name: str | None,
        X: MatrixLike,
        qid: ArrayLike | None,
        labels: Doubles | None,
        queries: Queries,
        seed: int,
    ) -> Against:
        """Compare with another model of the same rows."""
        other, called = read_other(against, against_name, X, qid, self.scores.size)
        self._own_name, called = told_apart(self._own_name, called)
        scores = (self.scores, other)
        if labels is None:
            assert self._duels is not None
            return compare_pairs(called, self._duels.pairs, self._duels.weight, scores)
        return compare_labels(called, labels, queries, scores, self.evidence, seed)

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
                "" if self._other is None else against_section(self._other, self._own_name),
                "" if self._trained is None else training_section(self._trained),
                "" if self._duels is None else duels_section(self._duels, self._naming.thing),
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
                settings_section(self._settings, parameters(view), self._commands),
            ]
        )
        return whole_page(
            self._title,
            f"{lead(view)}{tiles(evidence, self._facts)}{verdict(evidence.figures[0], best)}",
            body,
            embedded_data(surface, self.opened, self._parts, self._naming, self._names, self._marks),
            links=self._links(),
        )

    def _links(self) -> dict[str, str]:
        links = {
            "metrics": "How good",
            **({} if self._other is None else {"against": "Two models"}),
            **({} if self._trained is None else {"training": "Training rows"}),
            **({} if self._duels is None else {"duels": "Wins and losses"}),
            **_LINKS,
        }
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


_LINKS = {
    "queries": "Queries",
    "why": "Why A above B",
    "weights": "Weights",
    "choice": "Regularisation",
    "data": "Data",
    "settings": "Settings",
}


def _check_kinds(kind: type, what: str, **given: object) -> None:
    for name, value in given.items():
        if not isinstance(value, kind | None):
            raise InvalidInputError(f"{name}={value!r} is not {what}.", f"pass {what}, or leave it out.")


def _checked_labels(y: object, n_rows: int) -> Doubles:
    return check_numbers("y", y, n_rows)


def _range_of(labels: Doubles | None) -> tuple[float, float]:
    if labels is None:
        return 0.0, 0.0
    # Grades say by themselves what is irrelevant; other labels only in comparison.
    return 0.0 if is_graded(labels) else float(labels.min()), float(labels.max())


def _names_of(encoder: TableEncoder, given: Sequence[str] | None) -> list[str]:
    if given is not None:
        raise InvalidInputError(
            "The model makes other columns of the table's, and names them after those.",
            "leave feature_names out.",
        )
    return [str(name) for name in encoder.get_feature_names_out()]


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
