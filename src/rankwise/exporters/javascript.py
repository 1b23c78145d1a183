"""JavaScript for browsers and Node, without packages."""

from __future__ import annotations

import json
import math

from rankwise.exporters.code import CodeLanguage, kernel_parts
from rankwise.exporters.program import Program, Value
from rankwise.formula.formula import Formula

__all__ = ["JavaScript"]

_SCALERS = {
    "minmax": """\
function scaleMinmax(column) {
  let low = Infinity, high = -Infinity;
  for (const x of column) { if (x < low) low = x; if (x > high) high = x; }
  return column.map((x) => (high > low ? (x - low) / (high - low) : x - x));
}
""",
    "standard": """\
function scaleStandard(column) {
  let low = Infinity, high = -Infinity;
  for (const x of column) { if (x < low) low = x; if (x > high) high = x; }
  if (!(high > low)) return column.map((x) => x - x);
  // shares of the range, whose squares neither overflow nor vanish
  const shares = column.map((x) => (x - low) / (high - low));
  const known = shares.filter((x) => !Number.isNaN(x));
  const mean = known.reduce((sum, x) => sum + x, 0) / known.length;
  const deviation = Math.sqrt(known.reduce((sum, x) => sum + (x - mean) ** 2, 0) / known.length);
  return shares.map((x) => (x - mean) / deviation);
}
""",
    "rank": """\
function scaleRank(column) {
  const known = column.filter((x) => !Number.isNaN(x)).sort((a, b) => a - b);
  const n = known.length;
  if (n === 0 || known[0] === known[n - 1]) return column.map((x) => x - x);
  const first = new Map(), last = new Map();
  known.forEach((x, place) => { if (!first.has(x)) first.set(x, place); last.set(x, place); });
  return column.map((x) => (Number.isNaN(x) ? x : (first.get(x) + last.get(x)) / 2 / (n - 1)));
}
""",
}
_READ = """\
const KINDS = "{kinds}"; // of the columns: number, text, or not read

function readRow(row) {
  if (row.length !== COLUMNS.length) {
    throw new RangeError(`A row has ${COLUMNS.length} values, in the order of COLUMNS, and not ${row.length}.`);
  }
  return Array.from(row, (x, at) => readValue(x, KINDS[at]));
}

function readValue(x, kind) {
  if (kind === "n"{known}) {
    if (typeof x === "number" || typeof x === "boolean") return Number(x);
    throw new TypeError(`${JSON.stringify(x)} is no number.`);
  }
  if (kind === "t" && !(x == null || x !== x || typeof x === "string")) throw new TypeError(`${x} is no text.`);
  return {gap}x;
}
"""
_DOT = "let sum = 0; for (let j = 0; j < row.length; j++) sum += row[j] * one[j];"
_KERNELS = {
    "linear": f"{_DOT} return sum;",
    "rbf": "let sum = 0; for (let j = 0; j < row.length; j++) sum += (row[j] - one[j]) ** 2; "
    "return Math.exp(-GAMMA * sum);",
    "laplacian": "let sum = 0; for (let j = 0; j < row.length; j++) sum += Math.abs(row[j] - one[j]); "
    "return Math.exp(-GAMMA * sum);",
    "poly": f"{_DOT} return (GAMMA * sum + OFFSET) ** DEGREE;",
    "sigmoid": f"{_DOT} return Math.tanh(GAMMA * sum + OFFSET);",
}


class JavaScript(CodeLanguage):
    """Rows are arrays of numbers, texts and null, in the order of the columns."""

    missing_word = "NaN, null or undefined"
    taken = (
        "arguments await break case catch class const continue debugger default delete do else enum eval export "
        "extends false finally for function if implements import in instanceof interface let new null package private "
        "protected public return static super switch this throw true try typeof var void while with yield "
        "Infinity Map Math NaN Number module undefined COLUMNS LINEAR GAMMA OFFSET DEGREE DUAL BASIS "
        "Array JSON KINDS RangeError TypeError readRow readValue kernel scaleMinmax scaleRank scaleStandard"
    )

    def number(self, value: float) -> str:
        if not math.isfinite(value):
            return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
        return repr(float(value)) if value >= 0 else f"({float(value)!r})"

    def missing(self, x: str) -> str:
        return f"({x} == null || {x} !== {x})"

    def equal(self, x: str, level: float | str) -> str:
        return f"{x} === {self.literal(level)}"

    def power(self, x: str, exponent: float) -> str:
        return f"({x}) ** {self.number(exponent)}"

    def log(self, x: str) -> str:
        return f"Math.log({x})"

    def raw(self, number: int, is_text: bool) -> str:
        return f"row[{number}]"

    def declare(self, value: Value, expression: str) -> str:
        return f"const {value.name} = {expression};"

    def head(self, formula: Formula, name: str) -> str:
        about = "\n".join(f"// {line}" for line in self.about(formula))
        names = self.array([json.dumps(one) for one in formula.names], "  ")
        return f'"use strict";\n{about}\n\nconst COLUMNS = [\n{names}\n];\n'

    def tables(self, program: Program) -> str:
        number = self.number
        known, gap = (" && x != null", "x == null ? NaN : ") if program.formula.takes_missing else ("", "")
        out = [
            _READ.replace("{kinds}", self.kinds(program.formula))
            .replace("{known}", known)
            .replace("{gap}", gap)
        ]
        if program.linear:
            entries = [f"[{at}, {number(weight)}, {number(center)}]" for at, weight, center in program.linear]
            out.append(f"// column, weight, centre\nconst LINEAR = [\n{self.array(entries, '  ')}\n];\n")
        if program.kernel is not None:
            name, gamma, offset, degree = kernel_parts(program.kernel)
            rows = [f"[{', '.join(map(number, row))}]" for row in program.kernel.basis.tolist()]
            dual = self.array([number(value) for value in program.kernel.dual.tolist()], "  ")
            out.append(
                f"const GAMMA = {number(gamma)}, OFFSET = {number(offset)}, DEGREE = {number(degree)};"
            )
            out.append(f"const DUAL = [\n{dual}\n];\nconst BASIS = [\n{self.array(rows, '  ')}\n];\n")
            out.append(f"function kernel(row, one) {{ {_KERNELS[name]} }}\n")
        return "\n".join(out)

    def scalers(self, methods: set[str]) -> str:
        return "\n".join(_SCALERS[method] for method in sorted(methods))

    def one_row(self, program: Program, name: str) -> str:
        body = ["row = readRow(row);", *self.lines(program.values), *self._sum(program), "return total;"]
        return f"function {name}(row) {{\n  " + "\n  ".join(body) + "\n}\n" + self._end(name)

    def whole_query(self, program: Program, name: str) -> str:
        out = [f"function {name}(rows) {{", "  rows = rows.map((row) => readRow(row));"]
        for value, chain in self.scaled(program):
            x, method = self.sources_of(value)[0], value.method
            out += [
                f"  const {value.name}_of = scale{method.capitalize()}(rows.map((row, number) => {{",
                *self._named(chain),
                f"    return {x};",
                "  }));",
            ]
        out += ["  return rows.map((row, number) => {", *self._named(self.used(program))]
        out += [*(f"    {line}" for line in self._sum(program)), "    return total;", "  });", "}"]
        return "\n".join(out) + "\n" + self._end(name)

    def _named(self, values: list[Value]) -> list[str]:
        return [
            f"    const {value.name} = {value.name}_of[number];"
            if value.is_query_scale
            else f"    {self.lines([value])[0]}"
            for value in values
        ]

    def _sum(self, program: Program) -> list[str]:
        out = [f"let total = {self.number(program.constant)};"]
        if program.linear:
            out.append("for (const [at, weight, center] of LINEAR) total += weight * (row[at] - center);")
        out += [f"total += {term};" for term in self.terms(program)]
        if program.kernel is not None:
            out += [
                f"const seen = [{', '.join(self.kernel_row(program))}];",
                "for (let b = 0; b < DUAL.length; b++) total += DUAL[b] * kernel(seen, BASIS[b]);",
            ]
        return out

    def _end(self, name: str) -> str:
        return f'\nif (typeof module !== "undefined") module.exports = {{ COLUMNS, {name} }};'
