"""A formula as a program: values that have names, each made from one before it, and a sum in the end."""

from __future__ import annotations

from dataclasses import dataclass

from rankwise.formula.formula import Column, Formula, KernelSum, Surface
from rankwise.formula.steps import Affine, Clip, QueryScale, Step

__all__ = ["Program", "Value"]


@dataclass(frozen=True)
class Value:
    """A value that has a name: a step of the value `source`, or of an input where that is None."""

    name: str
    source: str | None
    input: int
    step: Step

    @property
    def is_query_scale(self) -> bool:
        """Whether the rows of a whole query are needed."""
        return isinstance(self.step, QueryScale)


class Program:
    """What a formula computes, in order.

    Attributes
    ----------
    formula : Formula
    linear : list of (input, weight, center)
        Columns that enter as ``weight * (x - center)``.
    values : list of Value
        Every step of the others, once.
    sums : list of (weight, name)
        What is added; a name of None is the input itself.
    """

    def __init__(self, formula: Formula, prefix: str = "v") -> None:
        self.formula = formula
        self.constant = formula.constant
        self.linear: list[tuple[int, float, float]] = []
        self.values: list[Value] = []
        self.sums: list[tuple[float, str]] = []
        self._prefix = prefix
        self._known: dict[tuple[int, tuple[Step, ...]], str] = {}
        for term in formula.terms:
            steps = term.column.steps
            if not steps:
                self.linear.append((term.column.input, term.weight, 0.0))
            elif (
                len(steps) == 1
                and isinstance(steps[0], Affine)
                and (steps[0].scale, steps[0].shift) == (1, 0)
            ):
                self.linear.append((term.column.input, term.weight, steps[0].center))
            else:
                name = self.name(term.column)
                assert name is not None
                self.sums.append((term.weight, name))
        self.surfaces = [(surface, self._inside(surface)) for surface in formula.surfaces]
        kernel: KernelSum | None = formula.kernel
        self.kernel = kernel
        self.kernel_inputs = [] if kernel is None else [(c.input, self.name(c)) for c in kernel.columns]

    def _inside(self, surface: Surface) -> list[str]:
        """Return the names of both values, brought between the knots."""
        return [
            str(self.name(column.then(Clip(knots[0], knots[-1]))))
            for column, knots in zip(surface.columns, surface.knots, strict=True)
        ]

    def name(self, column: Column) -> str | None:
        """Return the name of a column after its steps, None for one without steps."""
        if not column.steps:
            return None
        key = (column.input, column.steps)
        if key not in self._known:
            source = self.name(Column(column.input, column.steps[:-1]))
            self._known[key] = f"{self._prefix}{len(self.values) + 1}"
            self.values.append(Value(self._known[key], source, column.input, column.steps[-1]))
        return self._known[key]
