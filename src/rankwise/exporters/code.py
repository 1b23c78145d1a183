"""Functions in C, JavaScript and Python: what they share, which is everything but the grammar."""

from __future__ import annotations

import textwrap
from abc import abstractmethod
from collections.abc import Iterable, Sequence

import rankwise
from rankwise.exporters.expressions import Language
from rankwise.exporters.program import Program, Value
from rankwise.formula.formula import Formula, KernelSum

__all__ = ["CodeLanguage", "kernel_parts"]


class CodeLanguage(Language):
    """A language with functions, arrays and loops.

    Subclasses say how things are written; the order of a program is the same in all.
    """

    def render(self, formula: Formula, name: str) -> str:
        """Return the source of a function that scores a row, or the rows of a query."""
        program = Program(formula)
        parts = [self.head(formula, name), self.tables(program)]
        if formula.needs_whole_queries:
            parts.append(self.scalers({v.method for v in program.values if v.is_query_scale}))
            parts.append(self.whole_query(program, name))
        else:
            parts.append(self.one_row(program, name))
        return "\n".join(part for part in parts if part) + "\n"

    def about(self, formula: Formula) -> list[str]:
        """Return what a reader of the source should know."""
        missing = f" Missing values are {self.missing_word}." if formula.takes_missing else ""
        rows = "the rows of one query" if formula.needs_whole_queries else "a row"
        return textwrap.wrap(
            f"A ranking model, written by rankwise {rankwise.__version__}: scores of {rows}, higher is better; only "
            f"differences inside a query mean anything. The values of a row stand in the order of the columns below."
            f"{missing}",
            110,
        )

    missing_word = "NaN"
    taken: str  # words of the language, and names that the source itself uses outside of functions

    # --- what each language writes ---

    @abstractmethod
    def head(self, formula: Formula, name: str) -> str:
        """Write what comes first."""

    @abstractmethod
    def tables(self, program: Program) -> str:
        """Write the arrays of weights and of a kernel."""

    @abstractmethod
    def scalers(self, methods: set[str]) -> str:
        """Write the functions that scale a column inside a query."""

    @abstractmethod
    def one_row(self, program: Program, name: str) -> str:
        """Write the function that scores a row."""

    @abstractmethod
    def whole_query(self, program: Program, name: str) -> str:
        """Write the function that scores the rows of a query."""

    @abstractmethod
    def raw(self, number: int, is_text: bool) -> str:
        """Write the value of a column."""

    @abstractmethod
    def declare(self, value: Value, expression: str) -> str:
        """Write a line that gives a value its name."""

    # --- what they share ---

    def sources_of(self, value: Value) -> list[str]:
        """Write what a value is made of."""
        return [
            self.raw(one, value.takes_text) if isinstance(one, int) else self.named(one, value.takes_text)
            for one in value.sources
        ]

    def named(self, name: str, is_text: bool) -> str:
        """Write the name of a value."""
        return name

    def lines(self, values: Sequence[Value]) -> list[str]:
        """Write the values of a row that have names."""
        return [self.declare(value, self.value(value, self.sources_of(value))) for value in values]

    def terms(self, program: Program) -> list[str]:
        """Write what is added beside the weighted columns."""
        out = [f"{self._weighted(weight)}{name}" for weight, name in program.sums]
        return out + [self.surface(surface, *names) for surface, names in program.surfaces]

    def scaled(self, program: Program) -> list[tuple[Value, list[Value]]]:
        """Return the values that need whole queries, each with the values that it is made of."""
        return [(value, _parts(program, value.sources)) for value in program.values if value.is_query_scale]

    def used(self, program: Program) -> list[Value]:
        """Return the values that are added up, and what they are made of after queries have been scaled."""
        of_surfaces = [name for _, names in program.surfaces for name in names]
        return _parts(program, [*(name for _, name in program.sums), *of_surfaces, *program.kernel_inputs])

    def _weighted(self, weight: float) -> str:
        return "" if weight == 1 else f"{self.number(weight)} * "

    def kernel_row(self, program: Program) -> list[str]:
        """Write the values that a kernel compares."""
        return [
            self.raw(one, is_text=False) if isinstance(one, int) else one for one in program.kernel_inputs
        ]

    def kinds(self, formula: Formula) -> str:
        """Return a letter for each column: n for a number, t for a text, - for one that is not read."""
        read = {number for column in formula.columns for number in column.inputs}
        return "".join(
            ("t" if is_text else "n") if number in read else "-"
            for number, is_text in enumerate(formula.is_text)
        )

    def array(self, values: Sequence[str], indent: str = "    ", width: int = 110) -> str:
        """Write entries of an array over several lines."""
        lines, line = [], indent
        for value in values:
            if len(line) + len(value) > width and line.strip():
                lines.append(line.rstrip())
                line = indent
            line += f"{value}, "
        return "\n".join([*lines, line.rstrip().rstrip(",")])


def _parts(program: Program, wanted: Iterable[str | int]) -> list[Value]:
    """Return values and what they are made of, back to those that were scaled inside queries."""
    by_name = {value.name: value for value in program.values}
    todo, found = list(wanted), set()
    while todo:
        at = todo.pop()
        if isinstance(at, str) and at not in found:
            found.add(at)
            todo += [] if by_name[at].is_query_scale else by_name[at].sources
    return [value for value in program.values if value.name in found]


def kernel_parts(kernel: KernelSum) -> tuple[str, float, float, float]:
    """Return what a kernel is: its name, gamma, offset and degree."""
    parameters = kernel.kernel.parameters
    name = str(kernel.kernel.name).replace("polynomial", "poly")
    return (
        name,
        float(parameters.get("gamma", 1.0)),
        float(parameters.get("coef0", 1.0)),
        float(parameters.get("degree", 3)),
    )
