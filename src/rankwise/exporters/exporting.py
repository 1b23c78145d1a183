"""`rankwise.export`: one model, written for one of the programs that can run it."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

import rankwise
from rankwise.arrays import AnyArray, ArrayLike, Floats
from rankwise.exceptions import InvalidInputError
from rankwise.exporters.code import CSource, JavaScript, PythonSource
from rankwise.exporters.engines import is_linear, plug_in, solr, trees_of
from rankwise.exporters.onnx_model import onnx_model
from rankwise.exporters.sql import Sql
from rankwise.exporters.targets import TARGETS, check_exportable
from rankwise.exporters.vespa import Vespa
from rankwise.files import replacing
from rankwise.formula.folding import folded, raw
from rankwise.formula.formula import Column, Formula, Term
from rankwise.formula.reading import formula_of
from rankwise.formula.steps import Fill, IsMissing, Levels, Pieces, Step
from rankwise.json_values import json_value

__all__ = ["export"]

Ends = tuple[float, float]
Limits = Mapping[int, Ends]

_ROUNDING = 1e-12
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
    bounds: Mapping[str, tuple[float, float]] | None = None,
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
    bounds : mapping from column to (low, high), optional
        The ranges of columns, for `nonnegative`.
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
    if format not in TARGETS:
        raise InvalidInputError(f"{format!r} is no format to export to.", f"use one of {', '.join(TARGETS)}.")
    if error is not None and not error > 0:
        raise InvalidInputError(f"error must be positive, got {error}.", "use a small positive number.")
    formula = model if isinstance(model, Formula) else formula_of(model, feature_names, output=output)
    check_exportable(formula, format, whole_query=whole_query, filled=filled)
    formula = folded(_filled(formula) if filled else formula)
    limits = _limits(formula, bounds)
    if nonnegative:
        formula = _lifted(formula, limits)
        if format in _ENGINES and is_linear(formula):
            raise InvalidInputError(
                f"Weights have no constant in {TARGETS[format].title}, so that none can lift the scores.",
                "add a feature that is 1 everywhere and give it the weight of the constant, which json shows.",
            )
        if format in _ENGINES:  # leaves stand for the middle of what a tree may be off by
            formula = replace(formula, constant=formula.constant + trees_of(formula, error)[1])
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


def _limits(formula: Formula, bounds: Mapping[str, Ends] | None) -> Limits:
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


def _lifted(formula: Formula, limits: Limits) -> Formula:
    """Add a constant so that no score is negative while columns keep to their limits."""
    if formula.kernel is not None or formula.needs_whole_queries:
        raise InvalidInputError(
            "How small a score can be is known of sums of columns only.",
            "add a constant yourself: the order stays the same.",
        )
    lowest, size = formula.constant, abs(formula.constant)
    for term in formula.terms:
        least = _least(term, formula.is_text, limits)
        if not np.isfinite(least):
            inputs = term.column.inputs
            unknown = [at for at in inputs if at not in limits and not formula.is_text[at]] or inputs
            name = formula.names[unknown[0]]
            raise InvalidInputError(
                f"How small a score can be depends on the bounds of {name!r}, which are not known.",
                "pass bounds={name: (smallest, largest)} of every column.",
            )
        lowest, size = lowest + least, size + abs(least)
    lowest += sum(float(np.min(surface.values)) for surface in formula.surfaces)
    # Somebody else adds up in another order.
    return replace(formula, constant=formula.constant - lowest + _ROUNDING * size)


def _least(term: Term, is_text: Sequence[bool], limits: Limits) -> float:
    """Return the smallest value of a term, NaN where it is not known."""
    with np.errstate(invalid="ignore"):
        alone, between = _range(term.column, is_text, limits)
        found = term.weight * np.append(np.asarray(alone, dtype=np.float64), between or ())
    # A value that is missing where the model takes none has no score; a number without one has no bound.
    return float(np.nanmin(found)) if between is None or not np.isnan(between).any() else np.nan


def _range(column: Column, is_text: Sequence[bool], limits: Limits) -> tuple[AnyArray, Ends | None]:
    """Return the range of a column after its steps, and single values outside it."""
    alone: Any = np.array([np.nan])
    between: Ends | None = None
    if column.sides:
        alone, between = _product(*(_range(side, is_text, limits) for side in column.sides))
    elif is_text[column.number]:
        levels = [level for step in column.steps for level in getattr(step, "levels", ())]
        alone = np.array([*levels, "", None], dtype=object)
    else:
        between = limits.get(column.number, (-np.inf, np.inf))
    for step in column.steps:
        alone = step.apply(alone, None)
        if between is None:
            continue
        values = step.apply(_places(step, *between), None)
        is_stairs = isinstance(step, Pieces) and step.is_constant.all()
        if isinstance(step, Levels) or is_stairs:  # what comes after sees these values, and none between
            alone, between = np.concatenate((alone, values)), None
        else:
            between = float(values.min()), float(values.max())
    return alone, between


def _product(
    first: tuple[AnyArray, Ends | None], second: tuple[AnyArray, Ends | None]
) -> tuple[Floats, Ends | None]:
    """Return the range of a product of two columns that vary independently."""
    (alone, between), (other, beside) = first, second
    single = [np.unique(np.asarray(one, dtype=np.float64)) for one in (alone, other)]
    known = [one[~np.isnan(one)] for one in single]
    pairs = ((between, beside), (between, known[1]), (known[0], beside))
    ends = np.concatenate([[], *(_times(a, b) for a, b in pairs if a is not None and b is not None)])
    return _times(*single), (float(ends.min()), float(ends.max())) if ends.size else None


def _times(first: ArrayLike, second: ArrayLike) -> Floats:
    """Multiply the ends of two intervals; zero times infinity is zero."""
    a, b = np.broadcast_arrays(np.asarray(first)[:, None], np.asarray(second)[None])
    found: Floats = np.where((a == 0) & np.isinf(b) | (b == 0) & np.isinf(a), 0.0, a * b)
    return found.ravel()


def _places(step: Step, low: float, high: float) -> AnyArray:
    """Return numbers of a range at which a step is smallest and largest, and at which it takes every single value."""
    bends: list[float] = []
    if isinstance(step, Levels):
        bends = [*(level for level in step.levels if not isinstance(level, str)), np.nextafter(low, high)]
    elif isinstance(step, Pieces):
        bends = [*step.breaks, *_turns(step)]
    inside = np.asarray(bends, dtype=np.float64)
    return np.concatenate(([low, high], inside[(inside >= low) & (inside <= high)]))


def _turns(step: Pieces) -> list[float]:
    """Return where a polynomial turns inside its piece."""
    found = []
    ends = (-np.inf, *step.breaks, np.inf)
    for low, high, start, coefficients in zip(ends, ends[1:], step.starts, step.coefficients, strict=False):
        roots = np.roots(np.polyder(np.asarray(coefficients)))
        places = roots[np.abs(roots.imag) < 1e-9].real + start
        found += places[(places > low) & (places < high)].tolist()
    return found
