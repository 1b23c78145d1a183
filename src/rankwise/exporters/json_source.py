"""JSON: the weights of a linear model, or every term of any other."""

from __future__ import annotations

import json
from dataclasses import fields

import rankwise
from rankwise.formula.folding import raw
from rankwise.formula.formula import Column, Formula
from rankwise.json_values import json_value

__all__ = ["json_source"]


def json_source(formula: Formula) -> str:
    """Return the document."""
    plain = raw(formula)
    weights = plain.weights
    about: dict[str, object] = {"rankwise": rankwise.__version__}
    if weights is not None:
        document = {
            "format": "rankwise linear weights",
            **about,
            "score": "intercept + sum of weight * value over columns; higher is better inside a query",
            "intercept": plain.constant,
            "weights": dict(zip(plain.names, weights.tolist(), strict=True)),
        }
    else:
        document = {
            "format": "rankwise formula",
            **about,
            "score": "constant + sum of weight * column after its steps + surfaces + kernel; higher is better",
            "columns": [
                {"name": name, "kind": "text" if is_text else "number"}
                for name, is_text in zip(formula.names, formula.is_text, strict=True)
            ],
            "constant": formula.constant,
            "terms": [{"weight": term.weight, **_column(term.column)} for term in formula.terms],
            "surfaces": [
                {"columns": [_column(one) for one in s.columns], "knots": s.knots, "values": s.values}
                for s in formula.surfaces
            ],
            "kernel": _kernel(formula),
        }
    return json.dumps(json_value(document), indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def _column(column: Column) -> dict[str, object]:
    source = {"product": [_column(one) for one in column.sides]} if column.sides else {"column": column.input}
    steps = [
        {"kind": type(step).__name__, **{part.name: getattr(step, part.name) for part in fields(step)}}  # type: ignore[arg-type]
        for step in column.steps
    ]
    return {**source, "steps": steps}


def _kernel(formula: Formula) -> dict[str, object] | None:
    if formula.kernel is None:
        return None
    kernel = formula.kernel
    return {
        "name": kernel.kernel.name,
        "parameters": dict(kernel.kernel.parameters),
        "columns": [_column(column) for column in kernel.columns],
        "basis": kernel.basis.tolist(),
        "dual": kernel.dual.tolist(),
    }
