"""Simplification of terms that leaves the score unchanged."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from rankwise.formula.formula import Column, Formula, Product, Term
from rankwise.formula.steps import Affine, IsMissing, Levels, Pieces, QueryScale, Step


def folded(formula: Formula) -> Formula:
    """Fold scales and shifts into weights and the constant, and add up terms of the same values.

    A centre stays where it is, ``weight * (x - center)``, because a difference that is taken late loses digits. The
    exception is a product with a category, which is 0 in most rows: its levels become one table times the other side.
    """
    constant, terms = formula.constant, []
    for term in formula.terms:
        more, plain = _fold_affine(term)
        rest, plain = _fold_marks(plain)
        constant += more + rest
        terms.append(plain)
    return replace(formula, constant=constant, terms=tuple(_merged(terms)))


def raw(formula: Formula) -> Formula:
    """Fold centres as well, so that a linear model is weights of the columns as they come, and a constant."""
    formula = folded(formula)
    constant, terms = formula.constant, []
    for term in formula.terms:
        steps = term.column.steps
        if len(steps) == 1 and isinstance(steps[0], Affine):
            constant -= term.weight * steps[0].center
            terms.append(Term(term.weight, Column(term.column.input)))
        else:
            terms.append(term)
    return replace(formula, constant=constant, terms=tuple(_merged(terms)))


def _fold_affine(term: Term) -> tuple[float, Term]:
    """Return the term's share of the constant, and the term without it."""
    weight, constant, steps = term.weight, 0.0, list(term.column.steps)
    late = 0.0  # subtracted from the values of the remaining steps
    while steps and isinstance(steps[-1], Affine):
        last = steps.pop()
        assert isinstance(last, Affine)
        # weight * ((x - center) * scale + shift - late)
        constant += weight * (last.shift - late)
        weight, late = weight * last.scale, last.center
    if not steps and late and _table_side(term.column) is None:
        return constant, Term(weight, Column(term.column.input, (Affine(center=late),)))
    return constant - weight * late, Term(weight, replace(term.column, steps=tuple(steps)))


def _fold_marks(term: Term) -> tuple[float, Term]:
    """Return the share of the constant, and the term: a curve of a 0-or-1 product becomes its weight.

    Two categories have as many products as pairs of levels, which are merged only where nothing comes after them.
    """
    steps, sides = term.column.steps, term.column.sides
    is_mark = bool(sides) and all(map(_is_mark, sides))
    if not (steps and is_mark) or any(isinstance(step, QueryScale) for step in steps):
        return 0.0, term
    ends = np.array([0.0, 1.0])
    for step in steps:
        ends = step.apply(ends, None)
    return term.weight * float(ends[0]), Term(
        term.weight * float(ends[1] - ends[0]), Column(term.column.input)
    )


def _is_mark(column: Column) -> bool:
    """Tell whether a column is 0 or 1: a level, an indicator of missing values, or a product of those."""
    if not column.steps:
        return bool(column.sides) and all(map(_is_mark, column.sides))
    last = column.steps[-1]
    return isinstance(last, IsMissing) or (
        isinstance(last, Levels) and {*last.values, last.other, last.missing} <= {0.0, 1.0}
    )


def _merged(terms: Iterable[Term]) -> list[Term]:
    """Add up terms of the same column: weights, and the values of tables with the same keys."""
    groups: dict[object, list[Term]] = {}
    for term in terms:
        groups.setdefault(_what(term.column), []).append(term)
    return [group[0] if len(group) == 1 else _sum(group) for group in groups.values()]


def _what(column: Column) -> object:
    """Return the key that columns share whose terms are merged."""
    at = None if column.steps else _table_side(column)
    if at is not None:
        own, other = column.sides[at], column.sides[1 - at]
        return at, other, own.input, own.steps[:-1]
    keys = _keys(column.steps[-1]) if column.steps else None
    return column if keys is None else (column.input, column.steps[:-1], keys)


def _sum(group: Sequence[Term]) -> Term:
    """Return the sum of terms that have the same in common."""
    column, weights = group[0].column, [term.weight for term in group]
    at = None if column.steps else _table_side(column)
    if at is not None:
        sides = list(column.sides)
        step = _added([term.column.sides[at].steps[-1] for term in group], weights)
        sides[at] = replace(sides[at], steps=(*sides[at].steps[:-1], step))
        return Term(1.0, Column(Product(*sides)))
    if not column.steps or _keys(column.steps[-1]) is None:
        return Term(sum(weights), column)
    step = _added([term.column.steps[-1] for term in group], weights)
    return Term(1.0, replace(column, steps=(*column.steps[:-1], step)))


def _table_side(column: Column) -> int | None:
    """Return which side of a product is a category, the second before the first."""
    found = [at for at, side in enumerate(column.sides) if side.steps and isinstance(side.steps[-1], Levels)]
    return found[-1] if found else None


def _keys(step: Step) -> object:
    """Return the positions of a table's values, or None for a step without a table."""
    if isinstance(step, Levels):
        return Levels
    if isinstance(step, Pieces):
        return step.breaks, step.starts, len(step.coefficients[0]), step.missing is None
    return None


def _added(steps: Sequence[Any], weights: Sequence[float]) -> Step:
    """Return the weighted sum of tables whose values stand at the same places."""
    first = steps[0]

    def total(of: Callable[[Any], object]) -> Any:
        parts = (weight * np.asarray(of(step)) for step, weight in zip(steps, weights, strict=True))
        return sum(parts, start=np.zeros_like(np.asarray(of(first), dtype=np.float64))).tolist()

    if isinstance(first, Levels):
        other, missing = total(lambda step: step.other), total(lambda step: step.missing)
        known: dict[Any, float] = {}
        for step, weight in zip(steps, weights, strict=True):
            for level, value in zip(step.levels, step.values, strict=True):
                known[level] = known.get(level, other) + weight * (value - step.other)
        return Levels(tuple(known), tuple(known.values()), other, missing)
    pieces = tuple(tuple(piece) for piece in total(lambda step: step.coefficients))
    missing = None if first.missing is None else total(lambda step: step.missing)
    return Pieces(first.breaks, first.starts, pieces, missing)
