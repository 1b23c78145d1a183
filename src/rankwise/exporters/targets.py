"""What each target can take, and the reason and the nearest alternative where it cannot."""

from __future__ import annotations

from dataclasses import dataclass

from rankwise.exceptions import Change, InvalidInputError
from rankwise.exporters.code import kernel_parts
from rankwise.formula.folding import raw
from rankwise.formula.formula import Column, Formula
from rankwise.formula.steps import Fill, IsMissing, NormalQuantile, QueryScale

__all__ = ["TARGETS", "Target", "check_exportable", "exportable_to"]

_KERNELS = frozenset({"linear", "rbf", "laplacian", "poly", "sigmoid"})
_ALL_SCALES = frozenset({"minmax", "standard", "rank"})


@dataclass(frozen=True)
class Target:
    """What a target can express.

    Attributes
    ----------
    title : str
    kernels, scales : frozenset of str
        Kernels, and ways to scale inside queries.
    texts, missing : bool
        Whether columns may hold texts, and whether values may be missing.
    weights, nonlinear : bool
        Whether it takes weights of columns, and functions of them.
    goes_on : bool
        Whether it takes functions of columns that were scaled inside queries.
    mixes : bool
        Whether it takes weights beside curves though nobody says what values the columns can have.
    products : bool
        Whether it multiplies columns.
    """

    title: str
    kernels: frozenset[str] = frozenset()
    scales: frozenset[str] = frozenset()
    texts: bool = False
    missing: bool = False
    weights: bool = True
    nonlinear: bool = True
    goes_on: bool = True
    mixes: bool = True
    products: bool = True


_CODE = {"kernels": _KERNELS, "scales": _ALL_SCALES, "texts": True, "missing": True}
TARGETS: dict[str, Target] = {
    "solr": Target("Solr", mixes=False, products=False),
    "elasticsearch-ltr": Target("The Elasticsearch learning-to-rank plug-in", mixes=False, products=False),
    "opensearch-ltr": Target("The OpenSearch learning-to-rank plug-in", mixes=False, products=False),
    "elasticsearch": Target(
        "Elasticsearch's own learning to rank", missing=True, weights=False, mixes=False, products=False
    ),
    "vespa": Target("A Vespa rank profile", scales=frozenset({"minmax"}), missing=True, goes_on=False),
    "onnx": Target("ONNX", kernels=_KERNELS, scales=_ALL_SCALES, texts=True, missing=True),
    "sqlite": Target("SQL", scales=_ALL_SCALES, texts=True, missing=True),
    "postgresql": Target("SQL", scales=_ALL_SCALES, texts=True, missing=True),
    "duckdb": Target("SQL", scales=_ALL_SCALES, texts=True, missing=True),
    "c": Target("C", **_CODE),  # type: ignore[arg-type]
    "javascript": Target("JavaScript", **_CODE),  # type: ignore[arg-type]
    "python": Target("Python", **_CODE),  # type: ignore[arg-type]
    "json": Target("JSON", **_CODE),  # type: ignore[arg-type]
}


def check_exportable(
    formula: Formula,
    format: str,  # noqa: A002 - the word of the field
    *,
    whole_query: bool = False,
    filled: bool = False,
    bounded: bool = False,
) -> None:
    """Raise where a target cannot express a formula, with the reason and what can.

    Parameters
    ----------
    whole_query : bool
        Whether ONNX gets the rows of one query at a time.
    filled : bool
        Whether values are never missing where the model runs.
    bounded : bool
        Whether it is known what values the columns can have.
    """
    target = TARGETS[format]
    if formula.kernel is not None:
        kind = kernel_parts(formula.kernel)[0]
        if kind not in target.kernels:
            instead = "export to ONNX, which Vespa evaluates as a model (onnx-model)" if format == "vespa" else (
                "export to onnx, c, javascript or python"
            )  # fmt: skip
            reason = f"the {kind} kernel" if target.kernels else "kernels"
            raise InvalidInputError(
                f"{target.title} cannot express {reason}.", f"{instead}, or train a linear model."
            )
    methods = {
        step.method
        for column in formula.columns
        for step in column.every_step
        if isinstance(step, QueryScale)
    }
    if methods - target.scales:
        see = (
            "sees one row at a time"
            if not target.scales
            else f"scales inside queries by {', '.join(target.scales)} only"
        )
        raise InvalidInputError(
            f"{target.title} {see}, and the model scales columns inside queries ({', '.join(sorted(methods))}).",
            "train with another scaling (--scaling standard, or fit --for), or export to SQL, C, JavaScript or Python.",
        )
    if methods and format == "onnx" and not whole_query:
        raise InvalidInputError(
            "The model scales columns inside queries, and rows in ONNX know nothing of queries.",
            "pass whole_query=True, and run the model on the rows of one query at a time.",
            Change("whole_query", True),
        )
    if methods and not target.goes_on and any(map(_goes_on, formula.columns)):
        raise InvalidInputError(
            "Vespa's normalisers stand alone in the last phase, and the model goes on from the scaled columns.",
            "train a linear model on columns scaled by minmax, or use another scaling.",
        )
    if any(formula.is_text) and not target.texts:
        names = [name for name, is_text in zip(formula.names, formula.is_text, strict=True) if is_text]
        raise InvalidInputError(
            f"{target.title} takes numbers, and the model has texts: {', '.join(names[:5])}.",
            "make one feature per category in the engine and train on those, or export to ONNX, SQL, C, JavaScript or "
            "Python.",
        )
    _check_products(formula, target)
    if {Fill, IsMissing} & formula.kinds and not target.missing and not filled:
        raise InvalidInputError(
            f"{target.title} hands over 0 where a value is missing, and the model treats it otherwise.",
            "give the features defaults there and pass filled=True, or export to ONNX, SQL, C, JavaScript or Python.",
            Change("filled", True),
        )
    if NormalQuantile in formula.kinds and format != "json":
        raise InvalidInputError(
            f"{target.title} has no quantiles of the normal distribution.",
            "use QuantileTransformer(output_distribution='uniform').",
        )
    if not target.weights and not bounded and raw(formula).weights is not None:
        raise InvalidInputError(
            f"{target.title} takes trees and no weights.",
            "train a model of curves, or say by bounds={name: (low, high)} what values the columns can have, and their "
            "weights become steps; the plug-in (elasticsearch-ltr) takes weights.",
            Change("bounds", "weights"),
        )


def _check_products(formula: Formula, target: Target) -> None:
    products = [column for column in formula.columns if column.sides]
    if products and not target.products:
        raise InvalidInputError(
            f"{target.title} multiplies no columns, and the model has {formula.title([products[0].inputs])}.",
            "make the product a feature of its own in the engine and train on that, or export to ONNX, SQL, C, "
            "JavaScript or Python.",
        )


def exportable_to(formula: Formula) -> list[str]:
    """Return the targets that take a formula, given what a caller can tell them."""
    found = []
    for target in TARGETS:
        try:
            check_exportable(formula, target, whole_query=True, bounded=True)
        except InvalidInputError:
            continue
        found.append(target)
    return found


def _goes_on(column: Column) -> bool:
    inside = [step for side in column.sides for step in side.every_step]
    return any(isinstance(step, QueryScale) for step in (*inside, *column.steps[:-1]))
