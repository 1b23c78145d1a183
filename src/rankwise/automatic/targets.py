"""Where a candidate can run outside Python."""

from __future__ import annotations

from rankwise.automatic.candidates import KERNELS, METHODS, Candidate
from rankwise.exceptions import InvalidInputError
from rankwise.exporters.targets import TARGETS, Target, check_exportable
from rankwise.exporters.targets import exportable_to as formula_exportable_to
from rankwise.formula.reading import formula_of_encoder
from rankwise.preprocessing.table_encoder import TableEncoder

__all__ = ["check_encoder", "encoder_exportable_to", "exportable_to"]


def exportable_to(candidate: Candidate) -> tuple[str, ...]:
    """Name the targets of `rankwise export` that can run such a model, given what a caller can tell them."""
    parts = candidate.parts or (candidate,)
    # Engines take weights or trees, and no mean of both; ranks of columns are curves.
    are_weights = {METHODS[part.method].form == "linear" and part.scaling != "rank" for part in parts}
    is_mixed = len(are_weights) > 1
    return tuple(
        name
        for name, target in TARGETS.items()
        if not (target.is_engine and is_mixed) and all(_runs(part, target) for part in parts)
    )


def _runs(candidate: Candidate, target: Target) -> bool:
    form = METHODS[candidate.method].form
    if form == "kernel" and dict(candidate.options).get("kernel", KERNELS[0]) not in target.kernels:
        return False
    inside = candidate.scaling.rpartition("+")[2]
    if not inside.startswith("query-"):
        return True
    return inside.removeprefix("query-") in target.scales and (form == "linear" or target.goes_on)


def encoder_exportable_to(encoder: TableEncoder) -> list[str]:
    """Name the targets that can do with a table what an encoder does."""
    try:
        return formula_exportable_to(formula_of_encoder(encoder))
    except InvalidInputError:  # words
        return []


def check_encoder(encoder: TableEncoder | None, target: str | None) -> None:
    """Raise where a target cannot do with a table what an encoder does, whatever model comes after it."""
    if encoder is not None and target is not None:
        check_exportable(formula_of_encoder(encoder), target, filled=True)
