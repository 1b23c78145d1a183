"""Capabilities of the export targets, and errors that name the reason and the nearest alternative."""

from __future__ import annotations

from dataclasses import dataclass

from rankwise.exceptions import InvalidInputError
from rankwise.formula.formula import Column, Formula
from rankwise.formula.steps import (
    Affine,
    Fill,
    IsMissing,
    Levels,
    NormalQuantile,
    Pieces,
    QueryScale,
    Step,
)

_SCALES = frozenset({"minmax", "standard", "rank"})


@dataclass(frozen=True)
class Target:
    """The capabilities of a target.

    Attributes
    ----------
    title : str
    kernels : bool
        Whether it takes kernels.
    scales : frozenset of str
        Ways to scale inside queries.
    texts : bool
        Whether columns may hold texts.
    is_engine : bool
        Whether it takes either weights or trees of single columns, in which no value is missing.
    goes_on : bool
        Whether it takes functions of columns that were scaled inside queries.
    """

    title: str
    kernels: bool = False
    scales: frozenset[str] = _SCALES
    texts: bool = True
    is_engine: bool = False
    goes_on: bool = True


def _engine(title: str) -> Target:
    return Target(title, scales=frozenset(), texts=False, is_engine=True)


TARGETS: dict[str, Target] = {
    "solr": _engine("Solr"),
    "elasticsearch-ltr": _engine("The Elasticsearch learning-to-rank plug-in"),
    "opensearch-ltr": _engine("The OpenSearch learning-to-rank plug-in"),
    "vespa": Target("A Vespa rank profile", scales=frozenset({"minmax"}), texts=False, goes_on=False),
    "onnx": Target("ONNX", kernels=True),
    "sqlite": Target("SQL"),
    "postgresql": Target("SQL"),
    "duckdb": Target("SQL"),
    "c": Target("C", kernels=True),
    "javascript": Target("JavaScript", kernels=True),
    "python": Target("Python", kernels=True),
    "json": Target("JSON", kernels=True),
}


def check_exportable(
    formula: Formula,
    format: str,  # noqa: A002 - the word of the field
    *,
    whole_query: bool = False,
    filled: bool = False,
) -> None:
    """Raise if a target cannot express a formula, with the reason and an alternative.

    Parameters
    ----------
    whole_query : bool
        Whether ONNX gets the rows of one query at a time.
    filled : bool
        Whether values are never missing where the model runs.
    """
    target = TARGETS[format]
    if formula.kernel is not None and not target.kernels:
        vespa = "ONNX, which Vespa evaluates as a model (onnx-model)"
        instead = vespa if format == "vespa" else "onnx, c, javascript or python"
        raise InvalidInputError(
            f"{target.title} cannot express kernels.", f"export to {instead}, or train a linear model."
        )
    steps = [step for column in formula.columns for step in column.every_step]
    methods = {step.method for step in steps if isinstance(step, QueryScale)}
    if methods - target.scales:
        only = f"scales inside queries by {', '.join(target.scales)} only"
        raise InvalidInputError(
            f"{target.title} {only if target.scales else 'sees one row at a time'}, and the model scales columns "
            f"inside queries ({', '.join(sorted(methods))}).",
            "train with target= set to this format, or export to SQL, C, JavaScript or Python.",
        )
    if methods and format == "onnx" and not whole_query:
        raise InvalidInputError(
            "The model scales columns inside queries, and ONNX models score rows without queries.",
            "pass whole_query=True, and run the model on the rows of one query at a time.",
        )
    if methods and not target.goes_on and any(map(_goes_on, formula.columns)):
        raise InvalidInputError(
            "Vespa's normalisers must come last, but the model computes with scaled columns.",
            "train a linear model on columns scaled by minmax, or use another scaling.",
        )
    others = "export to ONNX, SQL, C, JavaScript or Python."
    if any(formula.is_text) and not target.texts:
        names = [name for name, is_text in zip(formula.names, formula.is_text, strict=True) if is_text]
        raise InvalidInputError(
            f"{target.title} takes numbers, and the model has texts: {', '.join(names[:5])}.",
            f"make one feature per category in the engine and train on those, or {others}",
        )
    products = [column for column in formula.columns if column.sides]
    if products and target.is_engine:
        raise InvalidInputError(
            f"{target.title} multiplies no columns, and the model has {formula.title([products[0].inputs])}.",
            f"make the product a feature of its own in the engine and train on that, or {others}",
        )
    if {Fill, IsMissing} & formula.kinds and target.is_engine and not filled:
        raise InvalidInputError(
            f"{target.title} passes 0 for a missing value, but the model distinguishes the two.",
            f"give the features defaults there and pass filled=True, or {others}",
        )
    _check_bounded(formula, target, others)
    if NormalQuantile in formula.kinds and format != "json":
        raise InvalidInputError(
            f"{target.title} has no quantiles of the normal distribution.",
            "use QuantileTransformer(output_distribution='uniform').",
        )


def _check_bounded(formula: Formula, target: Target, others: str) -> None:
    """Refuse weights beside curves, for an engine takes either weights or trees."""
    steps = {type(step) for term in formula.terms for step in term.column.steps}
    endless = [term.column for term in formula.terms if not any(map(_is_bounded, term.column.steps))]
    if target.is_engine and endless and (steps - {Affine, Fill, IsMissing} or formula.surfaces):
        raise InvalidInputError(
            f"Column {formula.names[endless[0].number]!r} has an unbounded term, which trees cannot represent.",
            f"train a model of weights alone or of curves alone, or {others}",
        )


def _is_bounded(step: Step) -> bool:
    return isinstance(step, Levels | IsMissing) or (isinstance(step, Pieces) and step.is_flat_outside)


def exportable_to(formula: Formula) -> list[str]:
    """Return the targets that support a formula, given the caller's guarantees."""
    found = []
    for target in TARGETS:
        try:
            check_exportable(formula, target, whole_query=True)
        except InvalidInputError:
            continue
        found.append(target)
    return found


def _goes_on(column: Column) -> bool:
    inside = [step for side in column.sides for step in side.every_step]
    return any(isinstance(step, QueryScale) for step in (*inside, *column.steps[:-1]))
