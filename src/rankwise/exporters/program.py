"""A formula as a program: values that have names, each made from one before it, and a sum in the end."""

from __future__ import annotations

from dataclasses import dataclass, replace

from rankwise.formula.formula import Column, Formula, KernelSum, Surface
from rankwise.formula.steps import Affine, Clip, Fill, QueryScale, Step

__all__ = ["Program", "Value"]


@dataclass(frozen=True)
class Value:
    """A value that has a name: a step of another, or the product of two others where there is no step.

    Attributes
    ----------
    name : str
    sources : tuple of str or int
        What it is made of: values by their names, inputs by their numbers.
    step : Step or None
    takes_text : bool
        Whether the step is applied to texts.
    """

    name: str
    sources: tuple[str | int, ...]
    step: Step | None
    takes_text: bool = False

    @property
    def is_query_scale(self) -> bool:
        """Whether the rows of a whole query are needed."""
        return isinstance(self.step, QueryScale)

    @property
    def method(self) -> str:
        """How a query is scaled, where one is."""
        assert isinstance(self.step, QueryScale)
        return self.step.method

    @property
    def is_text(self) -> bool:
        """Whether it is a text itself."""
        return self.takes_text and isinstance(self.step, Fill)


class Program:
    """What a formula computes, in order.

    Attributes
    ----------
    formula : Formula
    linear : list of (input, weight, center)
        Columns that enter as ``weight * (x - center)``.
    values : list of Value
        Every step and product of the others, once.
    sums : list of (weight, name)
        What is added.
    kernel_inputs : list of str or int
        What a kernel compares: values by their names, inputs by their numbers.
    """

    def __init__(self, formula: Formula, prefix: str = "v") -> None:
        self.formula = formula
        self.constant = formula.constant
        self.linear: list[tuple[int, float, float]] = []
        self.values: list[Value] = []
        self.sums: list[tuple[float, str]] = []
        self._prefix = prefix
        self._known: dict[Column, str] = {}
        self._texts: set[str | int] = {at for at, is_text in enumerate(formula.is_text) if is_text}
        for term in formula.terms:
            number, steps = term.column.input, term.column.steps
            plain = all(isinstance(s, Affine) and (s.scale, s.shift) == (1, 0) for s in steps)
            if isinstance(number, int) and len(steps) <= 1 and plain:
                center = sum(step.center for step in steps if isinstance(step, Affine))
                self.linear.append((number, term.weight, center))
            else:
                self.sums.append((term.weight, self._name(term.column)))
        self.surfaces = [(surface, self._inside(surface)) for surface in formula.surfaces]
        kernel: KernelSum | None = formula.kernel
        self.kernel = kernel
        self.kernel_inputs = [] if kernel is None else [self._source(column) for column in kernel.columns]

    def _inside(self, surface: Surface) -> list[str]:
        """Return the names of both values, brought between the knots."""
        return [
            self._name(column.then(Clip(knots[0], knots[-1])))
            for column, knots in zip(surface.columns, surface.knots, strict=True)
        ]

    def _source(self, column: Column) -> str | int:
        """Return the number of an input as it comes, else the name of what is made of it."""
        return self._name(column) if column.steps or column.sides else column.number

    def _name(self, column: Column) -> str:
        if column not in self._known:
            before = (replace(column, steps=column.steps[:-1]),) if column.steps else column.sides
            sources = tuple(map(self._source, before))
            self._known[column] = f"{self._prefix}{len(self.values) + 1}"
            step = column.steps[-1] if column.steps else None
            value = Value(self._known[column], sources, step, sources[0] in self._texts)
            self.values.append(value)
            self._texts |= {value.name} if value.is_text else set()
        return self._known[column]
