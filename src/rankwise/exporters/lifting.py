"""Scores that are never negative, for engines that refuse others: a formula plus the constant that sees to it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from rankwise.arrays import AnyArray
from rankwise.exceptions import Change, InvalidInputError
from rankwise.formula.formula import Formula, Term
from rankwise.formula.steps import Clip, Curve, Levels, Pieces, Stairs, Step

__all__ = ["lifted"]

_ROUNDING = 1e-12


def lifted(formula: Formula, limits: Mapping[int, tuple[float, float]]) -> Formula:
    """Add what makes no score negative while columns keep to their limits."""
    if formula.kernel is not None or formula.needs_whole_queries:
        raise InvalidInputError(
            "How small a score can be is known of sums of columns only.",
            "add a constant yourself: the order stays the same.",
        )
    lowest, size = formula.constant, abs(formula.constant)
    for term in formula.terms:
        number = term.column.input
        least = _least(term, formula.is_text[number], limits.get(number, (-np.inf, np.inf)))
        if not np.isfinite(least):
            raise InvalidInputError(
                f"How small a score can be depends on the bounds of {formula.names[number]!r}, which are not known.",
                "pass bounds={name: (smallest, largest)} of every column.",
                Change("bounds"),
            )
        lowest, size = lowest + least, size + abs(least)
    lowest += sum(float(np.min(surface.values)) for surface in formula.surfaces)
    # Somebody else adds up in another order.
    return replace(formula, constant=formula.constant - lowest + _ROUNDING * size)


def _least(term: Term, is_text: bool, ends: tuple[float, float]) -> float:
    """Return the smallest value of a term: a range of numbers goes through its steps, and single values beside it."""
    steps = term.column.steps
    alone: Any = np.array([np.nan])
    between = None if is_text else ends
    if is_text:
        levels = [level for step in steps for level in getattr(step, "levels", ())]
        alone = np.array([*levels, "", None], dtype=object)
    with np.errstate(invalid="ignore"):
        for step in steps:
            alone = step.apply(alone, None)
            if between is None:
                continue
            values = step.apply(_places(step, *between), None)
            if isinstance(step, Levels | Stairs):  # what comes after sees these values, and none between
                alone, between = np.concatenate((alone, values)), None
            else:
                between = float(values.min()), float(values.max())
        found = term.weight * np.append(np.asarray(alone, dtype=np.float64), between or ())
    # A value that is missing where the model takes none has no score; a number without one has no bound.
    return float(np.nanmin(found)) if between is None or not np.isnan(between).any() else np.nan


def _places(step: Step, low: float, high: float) -> AnyArray:
    """Return numbers of a range at which a step is smallest and largest, and at which it takes every single value."""
    bends: Any = ()
    if isinstance(step, Clip):
        bends = (step.low, step.high)
    elif isinstance(step, Curve):
        bends = step.knots
    elif isinstance(step, Stairs):
        bends = step.edges
    elif isinstance(step, Levels):
        bends = [*(level for level in step.levels if not isinstance(level, str)), np.nextafter(low, high)]
    elif isinstance(step, Pieces):
        bends = [*step.breaks, *_turns(step)]
        if not any(any(step.coefficients[end][:-1]) for end in (0, -1)):  # flat outside of its breaks
            low, high = max(low, step.breaks[0] - 1), min(high, step.breaks[-1] + 1)
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
