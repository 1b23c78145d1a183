"""`rankwise.export`: one model, written for one of the programs that can run it."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import fields, is_dataclass, replace
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

import rankwise
from rankwise.exceptions import InvalidInputError
from rankwise.exporters.code import CSource, JavaScript, PythonSource, Vespa
from rankwise.exporters.engines import is_linear, lowest, plug_in, solr, trees_of
from rankwise.exporters.onnx_model import onnx_model
from rankwise.exporters.sql import Sql
from rankwise.exporters.targets import TARGETS, check_exportable
from rankwise.files import replacing
from rankwise.formula.formula import Formula, folded, raw
from rankwise.formula.reading import formula_of
from rankwise.formula.steps import Fill, IsMissing
from rankwise.json_values import json_value

_ENGINES = {"solr": solr, "elasticsearch-ltr": plug_in, "opensearch-ltr": plug_in}
_CODE = {"c": CSource, "javascript": JavaScript, "python": PythonSource}


def export(
    model: BaseEstimator | Formula,
    format: str,  # noqa: A002 - the word of the field
    *,
    path: str | os.PathLike[str] | None = None,
    feature_names: Sequence[str] | None = None,
    name: str | None = None,
    output: int | None = None,
    table: str = "rows",
    qid: str = "qid",
    error: float | None = None,
    nonnegative: bool = False,
    filled: bool = False,
    whole_query: bool = False,
) -> str | bytes:
    """Write a fitted model for another program, with everything that prepares its columns.

    Raises an error, with the reason and the nearest alternative, if the target cannot express the model.

    Parameters
    ----------
    model : estimator, sklearn.pipeline.Pipeline or Formula
        A fitted ranker, a pipeline that ends in one, or an `AutoRanker`. A table's encoding is exported too: missing
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
        Names of the columns in the target; by default the model's names, or x0, x1, …
    name : str, optional
        Of the model, function, rank profile or column of scores that is made; "rankwise_model" or "score".
    output : int, optional
        Which one, where the model has several.
    table, qid : str
        For SQL: the table of rows, and its column of query ids.
    error : float, optional
        For trees: by how much a score may differ from the model's; by default a thousandth of how far its terms spread.
    nonnegative : bool
        For trees: add a constant so that no score is negative; some search engines refuse others.
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
    if format not in TARGETS:
        raise InvalidInputError(f"{format!r} is not an export format.", f"use one of {', '.join(TARGETS)}.")
    if error is not None and not error > 0:
        raise InvalidInputError(f"error must be positive, got {error}.", "use a small positive number.")
    formula = model if isinstance(model, Formula) else formula_of(model, feature_names, output=output)
    check_exportable(formula, format, whole_query=whole_query, filled=filled)
    formula = folded(_filled(formula) if filled else formula)
    if nonnegative:
        if format not in _ENGINES or is_linear(formula):
            raise InvalidInputError(
                f"{TARGETS[format].title} has no trees for this model, and nonnegative works for trees only.",
                "train curves, or add a constant where scores are used: the order stays the same.",
            )
        formula = replace(formula, constant=formula.constant - lowest(trees_of(formula, error)))
    made = _written(formula, format, name, error, table, qid)
    if path is not None:
        with replacing(path) as stream:
            stream.write(made if isinstance(made, bytes) else made.encode())
    return made


def _written(
    formula: Formula, target: str, name: str | None, error: float | None, table: str, qid: str
) -> str | bytes:
    if target in _ENGINES:
        return _ENGINES[target](formula, name or "rankwise_model", error)
    if target == "vespa":
        return Vespa().render(formula, name or "rankwise_model")
    if target == "json":
        return _json(formula)
    if target == "onnx":
        return onnx_model(formula, name or "score")
    language = _CODE[target]() if target in _CODE else Sql(target, table, qid)
    return language.render(formula, name or "score")


def _json(formula: Formula) -> str:
    """Return the weights of a linear model, or the tree of any other: each part by its kind and its fields."""
    plain = raw(formula)
    document: dict[str, object] = {"format": "rankwise formula", "rankwise": rankwise.__version__}
    if plain.weights is not None:
        document |= {
            "format": "rankwise linear weights",
            "score": "intercept + sum of weight * value over columns; higher is better inside a query",
            "intercept": plain.constant,
            "weights": dict(zip(plain.names, plain.weights.tolist(), strict=True)),
        }
    else:
        document["score"] = (
            "constant + sum of weight * column after its steps + surfaces + kernel; higher is better"
        )
        document |= _tree(formula)
    return json.dumps(json_value(document), indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def _tree(part: Any) -> Any:
    if isinstance(part, tuple):
        return list(map(_tree, part))
    if not is_dataclass(part):
        return part
    return {"kind": type(part).__name__, **{one.name: _tree(getattr(part, one.name)) for one in fields(part)}}


def _filled(formula: Formula) -> Formula:
    """Leave out the handling of missing values, because no value is missing."""
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
