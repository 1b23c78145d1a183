"""`rankwise.export`: one model, written for one of the programs that can run it."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from sklearn.base import BaseEstimator

from rankwise.exceptions import InvalidInputError
from rankwise.exporters.code import CSource, JavaScript, PythonSource
from rankwise.exporters.engines import is_linear, plug_in, solr
from rankwise.exporters.json_source import json_source
from rankwise.exporters.lifting import lifted
from rankwise.exporters.onnx_model import onnx_model
from rankwise.exporters.sql import Sql
from rankwise.exporters.targets import TARGETS, check_exportable
from rankwise.exporters.trees import trees_of
from rankwise.exporters.vespa import Vespa
from rankwise.files import replacing
from rankwise.formula.folding import folded
from rankwise.formula.formula import Formula
from rankwise.formula.reading import formula_of
from rankwise.formula.steps import Fill, IsMissing

__all__ = ["export", "export_formula"]

_ENGINES = {"solr": solr, "elasticsearch-ltr": plug_in, "opensearch-ltr": plug_in}
_CODE = {"c": CSource, "javascript": JavaScript, "python": PythonSource}


def export(
    model: BaseEstimator,
    format: str,  # noqa: A002 - the word of the field
    *,
    path: str | os.PathLike[str] | None = None,
    feature_names: Sequence[str] | None = None,
    name: str | None = None,
    output: int | None = None,
    table: str = "rows",
    qid: str = "qid",
    error: float | None = None,
    bounds: Mapping[str, tuple[float, float]] | None = None,
    nonnegative: bool = False,
    filled: bool = False,
    whole_query: bool = False,
) -> str | bytes:
    """Write a fitted model for another program, with everything that prepares its columns.

    What a target cannot express is refused, with the reason and the nearest alternative.

    Parameters
    ----------
    model : estimator or sklearn.pipeline.Pipeline
        A fitted ranker, a pipeline that ends in one, or an `AutoRanker`; what encodes a table goes along: missing
        values, categories (texts), truth values as 1 and 0, dates as days since 1970 (in SQL also as they are stored),
        lists as a column per place.
    format : str
        - "solr", "elasticsearch-ltr", "opensearch-ltr": weights where the model is linear, else trees.
        - "vespa": a rank profile.
        - "onnx": a graph in double precision (needs the package onnx).
        - "sqlite", "postgresql", "duckdb": a SELECT that adds a column of scores.
        - "c", "javascript", "python": a function without dependencies.
        - "json": the weights of a linear model, or every term of another.
    path : path, optional
        A file to write.
    feature_names : sequence of str, optional
        What the target calls the columns; by default the model's names, or x0, x1, …
    name : str, optional
        Of the model, function, rank profile or column of scores that is made; "rankwise_model" or "score".
    output : int, optional
        Which one, where the model has several.
    table, qid : str
        For SQL: the table of rows, and its column of query ids.
    error : float, optional
        For trees: by how much a score may differ from the model's; by default a thousandth of how far its terms spread.
    bounds : mapping from column to (low, high), optional
        What values columns can have, for `nonnegative`.
    nonnegative : bool
        Add a constant so that no score is negative while columns keep to their `bounds`; some engines refuse others.
    filled : bool
        Say that values are never missing where the model runs, so that imputers can be left out.
    whole_query : bool
        For ONNX: say that the model gets the rows of one query at a time, so that it can scale inside queries.

    Returns
    -------
    str, or bytes for ONNX

    Examples
    --------
    >>> import json
    >>> import rankwise
    >>> model = rankwise.RankRLS().fit([[0.0, 1.0], [1.0, 0.0], [2.0, 2.0]], [0, 1, 2])
    >>> made = rankwise.export(model, "solr", feature_names=["bm25", "age"], name="first")
    >>> sorted(json.loads(made)["params"]["weights"])
    ['age', 'bm25']
    """
    made = export_formula(
        formula_of(model, feature_names, output=output),
        format,
        name=name,
        table=table,
        qid=qid,
        error=error,
        bounds=bounds,
        nonnegative=nonnegative,
        filled=filled,
        whole_query=whole_query,
    )
    if path is not None:
        with replacing(path) as stream:
            stream.write(made if isinstance(made, bytes) else made.encode())
    return made


def export_formula(  # noqa: C901 - one branch per kind of target
    formula: Formula,
    format: str,  # noqa: A002
    *,
    name: str | None = None,
    table: str = "rows",
    qid: str = "qid",
    error: float | None = None,
    bounds: Mapping[str, tuple[float, float]] | None = None,
    nonnegative: bool = False,
    filled: bool = False,
    whole_query: bool = False,
) -> str | bytes:
    """Write a formula; see `export`."""
    if not isinstance(format, str) or format not in TARGETS:
        if isinstance(format, str) and format == "sql":
            raise InvalidInputError("SQL is written in a dialect.", "use sqlite, postgresql or duckdb.")
        raise InvalidInputError(f"{format!r} is no format to export to.", f"use one of {', '.join(TARGETS)}.")
    if error is not None and not error > 0:
        raise InvalidInputError(f"error must be positive, got {error}.", "use a small positive number.")
    check_exportable(formula, format, whole_query=whole_query, filled=filled)
    formula = folded(_filled(formula) if filled else formula)
    limits = _limits(formula, bounds)
    if nonnegative:
        formula = lifted(formula, limits)
        if format in _ENGINES and is_linear(formula):
            raise InvalidInputError(
                f"Weights have no constant in {TARGETS[format].title}, so that none can lift the scores.",
                "add a feature that is 1 everywhere and give it the weight of the constant, which json shows.",
            )
        if format in _ENGINES:  # leaves stand for the middle of what a tree may be off by
            formula = replace(formula, constant=formula.constant + trees_of(formula, error)[1])
    if format in _ENGINES:
        return _ENGINES[format](formula, name or "rankwise_model", error)
    if format == "vespa":
        return Vespa().render(formula, name or "rankwise_model")
    if format == "json":
        return json_source(formula)
    if format in _CODE:
        return _CODE[format]().render(formula, name or "score")
    if format == "onnx":
        return onnx_model(formula, name or "score")
    return Sql(format, table, qid).render(formula, name or "score")


def _limits(
    formula: Formula, bounds: Mapping[str, tuple[float, float]] | None
) -> dict[int, tuple[float, float]]:
    """Return the bounds of columns by their numbers."""
    found = {}
    for name, (low, high) in (bounds or {}).items():
        if name not in formula.names:
            raise InvalidInputError(
                f"bounds names {name!r}, which is no column.", "use the names of the columns."
            )
        if not -np.inf < low < high < np.inf:
            raise InvalidInputError(
                f"The bounds of {name!r} are {low} and {high}.", "use (smallest, largest)."
            )
        found[formula.names.index(name)] = (float(low), float(high))
    return found


def _filled(formula: Formula) -> Formula:
    """Leave out what is done to missing values, of which there are none."""
    terms, constant = [], formula.constant
    for term in formula.terms:
        steps = term.column.steps
        marks = [at for at, step in enumerate(steps) if isinstance(step, IsMissing)]
        if marks:
            value = np.zeros(1)
            for step in steps[marks[0] + 1 :]:
                value = step.apply(value, None)
            constant += term.weight * float(value[0])
        else:
            kept = tuple(step for step in steps if not isinstance(step, Fill))
            terms.append(replace(term, column=replace(term.column, steps=kept)))
    return replace(formula, constant=constant, terms=tuple(terms))
