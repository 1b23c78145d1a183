"""Scores that are never negative, for engines that refuse others: a formula plus the constant that sees to it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from rankwise.arrays import AnyArray, ArrayLike, Floats
from rankwise.exceptions import Change, InvalidInputError
from rankwise.formula.formula import Column, Formula, Term
from rankwise.formula.steps import Levels, Pieces, Step

__all__ = ["lifted"]

Ends = tuple[float, float]
Limits = Mapping[int, Ends]

_ROUNDING = 1e-12


def lifted(formula: Formula, limits: Limits) -> Formula:
    """Add what makes no score negative while columns keep to their limits."""
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
                Change("bounds"),
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
    """Return what a column can be: a range of numbers goes through its steps, and single values beside it."""
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
    """Return what the product of two can be, whatever one is beside the other."""
    (alone, between), (other, beside) = first, second
    single = [np.unique(np.asarray(one, dtype=np.float64)) for one in (alone, other)]
    known = [one[~np.isnan(one)] for one in single]
    pairs = ((between, beside), (between, known[1]), (known[0], beside))
    ends = np.concatenate([[], *(_times(a, b) for a, b in pairs if a is not None and b is not None)])
    return _times(*single), (float(ends.min()), float(ends.max())) if ends.size else None


def _times(first: ArrayLike, second: ArrayLike) -> Floats:
    """Multiply each with each; what has no end is still a number, and nothing of it is nothing."""
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
