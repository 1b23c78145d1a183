"""The tree that every exporter prints, and the printing that languages of expressions share.

A `Program` is a formula in which each value that several terms use is made once. Languages differ in a few templates:
how they write numbers, texts, choices and functions.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np

from rankwise.formula.formula import Column, Formula, Surface
from rankwise.formula.steps import Affine, Fill, IsMissing, Levels, Pieces, Power, QueryScale, Step, clip

Case = tuple[str, str]
Source = str | int  # a value by its name, or an input by its number

_FEW = 4


@dataclass(frozen=True)
class Value:
    """A named value: a step applied to another value, or without a step the product of two others.

    Attributes
    ----------
    name : str
    sources : tuple of str or int
        Its operands: values by their names, inputs by their numbers.
    step : Step or None
    takes_text, is_text : bool
        Whether it is made of a text, and whether it is one.
    """

    name: str
    sources: tuple[Source, ...]
    step: Step | None
    takes_text: bool
    is_text: bool

    @property
    def method(self) -> str | None:
        """How a query is scaled, where one is."""
        return self.step.method if isinstance(self.step, QueryScale) else None


class Program:
    """The computations of a formula, in order.

    Attributes
    ----------
    formula : Formula
    values : list of Value
        Every step and product that is more than a weight and a centre, once.
    terms : list of (weight, source, center)
        Summands ``weight * (source - center)``.
    surfaces : list of (Surface, (name, name))
        Surfaces of two values, which stand between its knots already.
    kernel_inputs : list of str or int
        The inputs of the kernel.
    """

    def __init__(self, formula: Formula, prefix: str = "v") -> None:
        self.formula = formula
        self.values: list[Value] = []
        self._prefix = prefix
        self._known: dict[Column, str] = {}
        self._texts: set[Source] = {at for at, is_text in enumerate(formula.is_text) if is_text}
        self.terms: list[tuple[float, Source, float]] = []
        for term in formula.terms:
            column, center = term.column, 0.0
            step = column.steps[0] if len(column.steps) == 1 else None
            if isinstance(step, Affine) and (step.scale, step.shift) == (1, 0):
                column, center = replace(column, steps=()), step.center
            self.terms.append((term.weight, self._source(column), center))
        self.surfaces = [(surface, self._inside(surface)) for surface in formula.surfaces]
        self.kernel_inputs = [] if formula.kernel is None else list(map(self._source, formula.kernel.columns))

    def parts(self, wanted: Sequence[Source]) -> list[Value]:
        """Return values and those that they are made of, back to those that were scaled inside queries."""
        by_name = {value.name: value for value in self.values}
        todo, found = list(wanted), set()
        while todo:
            at = todo.pop()
            if isinstance(at, str) and at not in found:
                found.add(at)
                todo += [] if by_name[at].method else by_name[at].sources
        return [value for value in self.values if value.name in found]

    @property
    def results(self) -> list[Source]:
        """The values that the score is made of."""
        of_surfaces = [name for _, names in self.surfaces for name in names]
        return [*(source for _, source, _ in self.terms), *of_surfaces, *self.kernel_inputs]

    def _inside(self, surface: Surface) -> list[Source]:
        """Return both values, brought between the knots."""
        sides = zip(surface.columns, surface.knots, strict=True)
        return [self._source(column.then(clip(knots[0], knots[-1]))) for column, knots in sides]

    def _source(self, column: Column) -> Source:
        if not (column.steps or column.sides):
            return column.number
        if column not in self._known:
            before = (replace(column, steps=column.steps[:-1]),) if column.steps else column.sides
            sources = tuple(map(self._source, before))
            step, takes_text = column.steps[-1] if column.steps else None, sources[0] in self._texts
            is_text = takes_text and isinstance(step, Fill)
            name = f"{self._prefix}{len(self.values) + 1}{'_text' if is_text else ''}"
            self._known[column] = name
            self.values.append(Value(name, sources, step, takes_text, is_text))
            self._texts |= {name} if is_text else set()
        return self._known[column]


class Language:
    """How a language writes expressions; the base writes as C does."""

    library = ""  # before the names of functions
    renamed: ClassVar[dict[str, str]] = {}
    infinity, nan = "INFINITY", "NAN"

    def number(self, value: float) -> str:
        """Write a number so that it is read back as the same."""
        digits = repr(float(value)).replace("inf", self.infinity).replace("nan", self.nan)
        return f"({digits})" if value < 0 else digits

    def text(self, value: str) -> str:
        """Write a text."""
        return json.dumps(value)

    def missing(self, x: str) -> str:
        """Write the condition that a value is missing."""
        return f"isnan({x})"

    def equal(self, x: str, level: float | str) -> str:
        """Write the condition that a value is this one."""
        return f"{x} == {self.literal(level)}"

    def choose(self, cases: Sequence[Case], otherwise: str) -> str:
        """Write the value of the first condition that holds."""
        # One after the other and not inside each other: compilers limit how deep parentheses go.
        first = [f"{condition} ? {value}" for condition, value in cases]
        return f"({' : '.join([*first, otherwise])})" if cases else otherwise

    def source(self, source: Source, *, is_text: bool = False) -> str:
        """Write an input or a value that has a name."""
        return f"row[{source}]" if isinstance(source, int) else source

    def literal(self, value: float | str) -> str:
        """Write a number or a text."""
        return self.text(value) if isinstance(value, str) else self.number(value)

    def call(self, function: str, *arguments: str) -> str:
        """Write a call of a function."""
        return f"{self.library}{self.renamed.get(function, function)}({', '.join(arguments)})"

    def value(self, value: Value) -> str:
        """Write the expression of a value."""
        sources = [self.source(one, is_text=value.takes_text) for one in value.sources]
        return " * ".join(sources) if value.step is None else self.expression(value.step, sources[0])

    def terms(self, program: Program, terms: Sequence[tuple[float, Source, float]]) -> list[str]:
        """Write weighted values, and the surfaces of a program."""
        out = []
        for weight, source, center in terms:
            factor = "" if weight == 1 else f"{self.number(weight)} * "
            out.append(f"{factor}{self.minus(self.source(source), center)}")
        return out + [self.surface(surface, *map(self.source, names)) for surface, names in program.surfaces]

    def expression(self, step: Step, x: str) -> str:  # noqa: PLR0911 - one per kind of step
        """Write a step of a value that has a name."""
        number = self.number
        if isinstance(step, Affine):
            out = self.minus(x, step.center)
            out = out if step.scale == 1 else f"({out} * {number(step.scale)})"
            return out if step.shift == 0 else f"({out} + {number(step.shift)})"
        if isinstance(step, Fill):
            return self.choose([(self.missing(x), self.literal(step.value))], x)
        if isinstance(step, IsMissing):
            return self.choose([(self.missing(x), number(1.0))], number(0.0))
        if isinstance(step, Levels):
            known = zip(step.levels, step.values, strict=True)
            cases = [(self.equal(x, level), number(value)) for level, value in known]
            return self.choose([(self.missing(x), number(step.missing)), *cases], number(step.other))
        if isinstance(step, Pieces):
            pieces = zip(step.starts, step.coefficients, strict=True)
            picked = self._pick(x, step.breaks, [self._polynomial(x, *piece) for piece in pieces])
            gone = x if step.missing is None else number(step.missing)
            return self.choose([(self.missing(x), gone)], picked)
        assert isinstance(step, Power)
        if step.is_box_cox:
            return self._box_cox(x, step.exponent)
        up = self._box_cox(f"({x} + {number(1.0)})", step.exponent)
        down = self._box_cox(f"({number(1.0)} - {x})", 2 - step.exponent)
        return self.choose([(f"{x} >= {number(0.0)}", up)], f"({number(0.0)} - {down})")

    def surface(self, surface: Surface, x: str, y: str) -> str:
        """Write a surface of two values that have names, and that stand between its knots already."""
        (first, second), grid = surface.knots, np.asarray(surface.values)

        def cell(i: int, i1: int, x0: float, wide: float, j: int, j1: int, y0: float, high: float) -> str:
            """Write ``a + b dx + (c + d dx) dy`` between four corners, or less where a side is missing."""
            a, right, up, both = grid[i, j], grid[i1, j], grid[i, j1], grid[i1, j1]
            dx, dy, number = self.minus(x, x0), self.minus(y, y0), self.number
            parts, slope = [number(a)], number((up - a) / high)
            if i1 > i:
                parts.append(f"{number((right - a) / wide)} * {dx}")
                slope = f"({slope} + {number((both - right - up + a) / (wide * high))} * {dx})"
            return f"({' + '.join([*parts, f'{slope} * {dy}'] if j1 > j else parts)})"

        def line(*own: Any) -> str:
            return self._cells(y, second, grid.shape[1], lambda *other: cell(*own, *other))

        return self._cells(x, first, grid.shape[0], line)

    def _cells(self, x: str, knots: Sequence[float], size: int, write: Callable[..., str]) -> str:
        """Write the cell between two knots, given their places, the first knot and the distance; or the missing one."""
        n, ends = len(knots), enumerate(pairwise(knots))
        cells = [write(at, at + 1, low, high - low) for at, (low, high) in ends] or [write(0, 0, 0.0, 1.0)]
        inside = self._pick(x, knots[1:-1], cells)
        return inside if size == n else self.choose([(self.missing(x), write(n, n, 0.0, 1.0))], inside)

    def minus(self, x: str, center: float) -> str:
        """Write a difference to a centre."""
        return x if center == 0 else f"({x} - {self.number(center)})"

    def _pick(self, x: str, edges: Sequence[float], values: Sequence[str]) -> str:
        """Write ``values[k]`` where ``edges[k - 1] <= x < edges[k]``, by halves where there are many."""
        if len(edges) <= _FEW:
            return self.choose(
                [(f"{x} < {self.number(edge)}", value) for edge, value in zip(edges, values, strict=False)],
                values[-1],
            )
        middle = len(edges) // 2
        below = self._pick(x, edges[:middle], values[: middle + 1])
        above = self._pick(x, edges[middle + 1 :], values[middle + 1 :])
        return self.choose([(f"{x} < {self.number(edges[middle])}", below)], above)

    def _polynomial(self, x: str, start: float, coefficients: Sequence[float]) -> str:
        first = next((at for at, one in enumerate(coefficients) if one), len(coefficients) - 1)
        out, local = self.number(coefficients[first]), self.minus(x, start)
        for coefficient in coefficients[first + 1 :]:
            out = f"({out} * {local} + {self.number(coefficient)})"
        return out

    def _box_cox(self, x: str, exponent: float) -> str:
        if abs(exponent) < 1e-12:
            return self.call("log", x)
        return (
            f"(({self.call('pow', x, self.number(exponent))} - {self.number(1.0)}) / {self.number(exponent)})"
        )
