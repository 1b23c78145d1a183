"""Steps of columns as expressions of a programming language; what languages differ in is a handful of methods."""

from __future__ import annotations

import json
import math
from abc import ABC, abstractmethod
from collections.abc import Sequence

from rankwise.exporters.program import Value
from rankwise.formula.formula import Surface
from rankwise.formula.steps import (
    Affine,
    Clip,
    Curve,
    Fill,
    IsMissing,
    Levels,
    Pieces,
    Power,
    Stairs,
    Step,
)

__all__ = ["Language"]

Case = tuple[str, str]

_FEW = 4


def _cells(knots: Sequence[float]) -> range:
    return range(max(len(knots) - 1, 1))


class Language(ABC):
    """How a language writes numbers, texts and choices; the base writes as C and JavaScript do."""

    def number(self, value: float) -> str:
        """Write a number so that it is read back as the same."""
        return repr(float(value))

    def text(self, value: str) -> str:
        """Write a text."""
        return json.dumps(value)

    @abstractmethod
    def missing(self, x: str) -> str:
        """Write the condition that there is no value."""

    def equal(self, x: str, level: float | str) -> str:
        """Write the condition that a value is this one."""
        return f"{x} == {self.literal(level)}"

    def choose(self, cases: Sequence[Case], otherwise: str) -> str:
        """Write the value of the first condition that holds."""
        # One after the other and not inside each other: compilers limit how deep parentheses go.
        first = [f"{condition} ? {value}" for condition, value in cases]
        return f"({' : '.join([*first, otherwise])})" if cases else otherwise

    def power(self, x: str, exponent: float) -> str:
        """Write ``x ** exponent``."""
        return f"pow({x}, {self.number(exponent)})"

    def log(self, x: str) -> str:
        """Write the natural logarithm."""
        return f"log({x})"

    def literal(self, value: float | str) -> str:
        """Write a number or a text."""
        return self.text(value) if isinstance(value, str) else self.number(value)

    def value(self, value: Value, sources: Sequence[str]) -> str:
        """Write what a value is, of what it is made of."""
        return " * ".join(sources) if value.step is None else self.expression(value.step, sources[0])

    def expression(self, step: Step, x: str) -> str:  # noqa: PLR0911 - one line per kind of step
        """Write a step of a value that has a name."""
        number = self.number
        if isinstance(step, Affine):
            return self._affine(x, step)
        if isinstance(step, Fill):
            return self.choose([(self.missing(x), self.literal(step.value))], x)
        if isinstance(step, IsMissing):
            return self.choose([(self.missing(x), number(1.0))], number(0.0))
        if isinstance(step, Clip):
            return self.choose(
                [(f"{x} < {number(step.low)}", number(step.low)), (f"{x} > {number(step.high)}", number(step.high))], x
            )  # fmt: skip
        if isinstance(step, Levels):
            known = [
                (self.equal(x, level), number(v)) for level, v in zip(step.levels, step.values, strict=True)
            ]
            return self.choose([(self.missing(x), number(step.missing)), *known], number(step.other))
        if isinstance(step, Stairs):
            return self._pick(x, step.edges, [number(value) for value in step.values])
        if isinstance(step, Curve):
            return self._curve(x, step)
        if isinstance(step, Pieces):
            pieces = [
                self._horner(self._minus(x, start), coefficients)
                for start, coefficients in zip(step.starts, step.coefficients, strict=True)
            ]
            return self.choose([(self.missing(x), number(step.missing))], self._pick(x, step.breaks, pieces))
        assert isinstance(step, Power)
        return self._power(x, step)

    def surface(self, surface: Surface, x: str, y: str) -> str:
        """Write a surface of two values that have names, and that stand between its knots already."""
        first, second = surface.knots
        grid = [list(line) for line in surface.values]
        rows = [
            self._pick(
                y, second[1:-1], [self._cell(grid, at, of, x, y, surface.knots) for of in _cells(second)]
            )
            for at in _cells(first)
        ]
        if len(grid[0]) > len(second):
            ends = [line[-1] for line in grid[: len(first)]]
            rows = [
                self.choose([(self.missing(y), self._line(ends, at, x, first))], row)
                for at, row in zip(_cells(first), rows, strict=True)
            ]
        inside = self._pick(x, first[1:-1], rows)
        if len(grid) == len(first):
            return inside
        last = grid[-1]
        gone = self._pick(y, second[1:-1], [self._line(last, at, y, second) for at in _cells(second)])
        if len(last) > len(second):
            gone = self.choose([(self.missing(y), self.number(last[-1]))], gone)
        return self.choose([(self.missing(x), gone)], inside)

    def _line(self, values: Sequence[float], at: int, x: str, knots: Sequence[float]) -> str:
        """Write the line between two knots."""
        if len(knots) == 1:
            return self.number(values[0])
        slope = (values[at + 1] - values[at]) / (knots[at + 1] - knots[at])
        return f"({self._minus(x, knots[at])} * {self.number(slope)} + {self.number(values[at])})"

    def _cell(
        self,
        grid: Sequence[Sequence[float]],
        i: int,
        j: int,
        x: str,
        y: str,
        knots: tuple[Sequence[float], Sequence[float]],
    ) -> str:
        """Write ``a + b dx + (c + d dx) dy`` between four corners."""
        first, second = knots
        if len(first) == 1:
            return self._line(grid[0], j, y, second)
        if len(second) == 1:
            return self._line([line[0] for line in grid], i, x, first)
        wide, high = first[i + 1] - first[i], second[j + 1] - second[j]
        a, right, up, both = grid[i][j], grid[i + 1][j], grid[i][j + 1], grid[i + 1][j + 1]
        b, c, d = (right - a) / wide, (up - a) / high, (both - right - up + a) / (wide * high)
        dx, dy, number = self._minus(x, first[i]), self._minus(y, second[j]), self.number
        return f"({number(a)} + {number(b)} * {dx} + ({number(c)} + {number(d)} * {dx}) * {dy})"

    def _pick(self, x: str, edges: Sequence[float], values: Sequence[str]) -> str:
        """Write ``values[k]`` where ``edges[k - 1] <= x < edges[k]``, by halves where there are many."""
        if len(edges) <= _FEW:
            cases = [
                (f"{x} < {self.number(edge)}", value) for edge, value in zip(edges, values, strict=False)
            ]
            return self.choose(cases, values[-1])
        middle = len(edges) // 2
        below = self._pick(x, edges[:middle], values[: middle + 1])
        above = self._pick(x, edges[middle + 1 :], values[middle + 1 :])
        return self.choose([(f"{x} < {self.number(edges[middle])}", below)], above)

    def _curve(self, x: str, step: Curve) -> str:
        cells = [self.number(step.values[0])]
        for at in range(len(step.knots) - 1):
            gap = step.knots[at + 1] - step.knots[at]
            slope = (step.values[at + 1] - step.values[at]) / gap if gap > 0 else 0.0
            way = f"{self._minus(x, step.knots[at])} * {self.number(slope)}"
            cells.append(f"({way} + {self.number(step.values[at])})")
        inside = self._pick(x, step.knots, [*cells, self.number(step.values[-1])])
        if step.missing is None:
            return inside
        return self.choose([(self.missing(x), self.number(step.missing))], inside)

    def _affine(self, x: str, step: Affine) -> str:
        out = self._minus(x, step.center)
        out = out if step.scale == 1 else f"({out} * {self.number(step.scale)})"
        return out if step.shift == 0 else f"({out} + {self.number(step.shift)})"

    def _horner(self, x: str, coefficients: Sequence[float]) -> str:
        out = self.number(coefficients[0])
        for coefficient in coefficients[1:]:
            out = f"({out} * {x} + {self.number(coefficient)})"
        return out

    def _minus(self, x: str, center: float) -> str:
        return x if center == 0 else f"({x} - {self.number(center)})"

    def _power(self, x: str, step: Power) -> str:
        if step.is_box_cox:
            return self._box_cox(x, step.exponent)
        one, zero = self.number(1.0), self.number(0.0)
        up = self._box_cox(f"({x} + {one})", step.exponent)
        down = self._box_cox(f"({one} - {x})", 2 - step.exponent)
        return self.choose([(f"{x} >= {zero}", up)], f"({zero} - {down})")

    def _box_cox(self, x: str, exponent: float) -> str:
        if math.isclose(exponent, 0.0, abs_tol=1e-12):
            return self.log(x)
        return f"(({self.power(x, exponent)} - {self.number(1.0)}) / {self.number(exponent)})"
