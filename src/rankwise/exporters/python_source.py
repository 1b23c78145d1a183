"""Python that imports nothing but `math`."""

from __future__ import annotations

import keyword
import math

from rankwise.exporters.code import CodeLanguage, kernel_parts
from rankwise.exporters.expressions import Case
from rankwise.exporters.program import Program, Value
from rankwise.formula.formula import Formula

__all__ = ["PythonSource"]

_SCALERS = {
    "minmax": """\
def _minmax(column):
    known = [x for x in column if x == x]
    low, high = (min(known), max(known)) if known else (0.0, 0.0)
    return [(x - low) / (high - low) if high > low else x - x for x in column]
""",
    "standard": """\
def _standard(column):
    known = [x for x in column if x == x]
    low, high = (min(known), max(known)) if known else (0.0, 0.0)
    if high <= low:
        return [x - x for x in column]
    # shares of the range, whose squares neither overflow nor vanish
    known, column = ([(x - low) / (high - low) for x in values] for values in (known, column))
    mean = math.fsum(known) / len(known)
    deviation = math.sqrt(math.fsum((x - mean) ** 2 for x in known) / len(known))
    return [(x - mean) / deviation for x in column]
""",
    "rank": """\
def _rank(column):
    known = sorted(x for x in column if x == x)
    if not known or known[0] == known[-1]:
        return [x - x for x in column]
    first, last = {}, {}
    for place, x in enumerate(known):
        first.setdefault(x, place)
        last[x] = place
    return [(first[x] + last[x]) / 2 / (len(known) - 1) if x == x else x for x in column]
""",
}
_READ = """\
KINDS = "{kinds}"  # of the columns: number, text, or not read


def _read(row):
    if len(row) != len(COLUMNS):
        raise ValueError(f"A row has {len(COLUMNS)} values, in the order of COLUMNS, and not {len(row)}.")
    return [_value(x, kind) for x, kind in zip(row, KINDS)]


def _value(x, kind):
    if kind == "n":
        return {number}
{text}    return x

"""
_TEXT = """\
    if kind == "t" and not (x is None or x != x or isinstance(x, str)):
        raise TypeError(f"{x!r} is no text.")
"""
_KERNELS = {
    "linear": "sum(x * z for x, z in zip(row, one))",
    # A product that overflows is infinite, and a power raises.
    "rbf": "math.exp(-GAMMA * sum((x - z) * (x - z) for x, z in zip(row, one)))",
    "laplacian": "math.exp(-GAMMA * sum(abs(x - z) for x, z in zip(row, one)))",
    "poly": "(GAMMA * sum(x * z for x, z in zip(row, one)) + OFFSET) ** DEGREE",
    "sigmoid": "math.tanh(GAMMA * sum(x * z for x, z in zip(row, one)) + OFFSET)",
}


class PythonSource(CodeLanguage):
    """Rows are sequences of numbers, texts and None, in the order of the columns."""

    missing_word = "NaN or None"
    taken = (
        f"{' '.join(keyword.kwlist)} "
        "math float sum zip min max len sorted enumerate abs COLUMNS LINEAR GAMMA OFFSET DEGREE DUAL BASIS "
        "KINDS ValueError TypeError isinstance str _read _value _kernel _minmax _standard _rank"
    )

    def number(self, value: float) -> str:
        return repr(float(value)) if math.isfinite(value) else f'float("{value}")'

    def text(self, value: str) -> str:
        return repr(str(value))

    def missing(self, x: str) -> str:
        return f"({x} is None or {x} != {x})"

    def choose(self, cases: list[Case], otherwise: str) -> str:  # type: ignore[override]
        first = [f"{value} if {condition}" for condition, value in cases]
        return f"({' else '.join([*first, otherwise])})" if cases else otherwise

    def power(self, x: str, exponent: float) -> str:
        return f"({x}) ** {self.number(exponent)}"

    def log(self, x: str) -> str:
        return f"math.log({x})"

    def raw(self, number: int, is_text: bool) -> str:
        return f"row[{number}]"

    def declare(self, value: Value, expression: str) -> str:
        return f"{value.name} = {expression}"

    def head(self, formula: Formula, name: str) -> str:
        about = "\n".join(self.about(formula))
        names = self.array([repr(one) for one in formula.names])
        return f'"""{about}"""\n\nimport math\n\nCOLUMNS = [\n{names}\n]\n'

    def tables(self, program: Program) -> str:
        number = self.number
        read = 'float("nan") if x is None else float(x)' if program.formula.takes_missing else "float(x)"
        kinds = self.kinds(program.formula)
        text = _TEXT if "t" in kinds else ""
        out = [_READ.replace("{kinds}", kinds).replace("{number}", read).replace("{text}", text)]
        if program.linear:
            entries = [f"({at}, {number(weight)}, {number(center)})" for at, weight, center in program.linear]
            out.append(f"# column, weight, centre\nLINEAR = [\n{self.array(entries)}\n]\n")
        if program.kernel is not None:
            name, gamma, offset, degree = kernel_parts(program.kernel)
            rows = [f"[{', '.join(map(number, row))}]" for row in program.kernel.basis.tolist()]
            out.append(
                f"# kernel: {name}\nGAMMA, OFFSET, DEGREE = {number(gamma)}, {number(offset)}, {number(degree)}"
            )
            out.append(f"DUAL = [\n{self.array([number(v) for v in program.kernel.dual.tolist()])}\n]")
            out.append(f"BASIS = [\n{self.array(rows)}\n]\n\n")
            out.append(f"def _kernel(row, one):\n    return {_KERNELS[name]}\n")
        return "\n".join(out)

    def scalers(self, methods: set[str]) -> str:
        return "\n\n".join(_SCALERS[method] for method in sorted(methods))

    def one_row(self, program: Program, name: str) -> str:
        body = ["row = _read(row)", *self.lines(program.values), *self._sum(program), "return total"]
        return f"\ndef {name}(row):\n    " + "\n    ".join(body)

    def whole_query(self, program: Program, name: str) -> str:
        out = ["", f"def {name}(rows):", "    rows = [_read(row) for row in rows]"]
        for value, chain in self.scaled(program):
            x = self.sources_of(value)[0]
            out += [
                f"    {value.name}_of = []",
                *self._loop(chain),
                f"        {value.name}_of.append({x})",
                f"    {value.name}_of = _{value.method}({value.name}_of)",
            ]
        out += ["    totals = []", *self._loop(self.used(program))]
        return "\n".join(
            [
                *out,
                *(f"        {line}" for line in self._sum(program)),
                "        totals.append(total)",
                "    return totals",
            ]
        )

    def _loop(self, values: list[Value]) -> list[str]:
        """Write a loop over rows in which the values have their names."""
        out = ["    for number, row in enumerate(rows):"]
        for value in values:
            line = (
                f"{value.name} = {value.name}_of[number]" if value.is_query_scale else self.lines([value])[0]
            )
            out.append(f"        {line}")
        return out

    def _sum(self, program: Program) -> list[str]:
        out = [f"total = {self.number(program.constant)}"]
        if program.linear:
            out += ["for at, weight, center in LINEAR:", "    total += weight * (row[at] - center)"]
        out += [f"total += {term}" for term in self.terms(program)]
        if program.kernel is not None:
            out += [
                f"seen = [{', '.join(self.kernel_row(program))}]",
                "total += sum(weight * _kernel(seen, one) for weight, one in zip(DUAL, BASIS))",
            ]
        return out
