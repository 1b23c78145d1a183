"""Functions in C, JavaScript and Python without dependencies: one order of statements, three sets of templates."""

from __future__ import annotations

import keyword
import re
import textwrap
from collections.abc import Iterable, Sequence
from string import Template
from typing import ClassVar

import rankwise
from rankwise.exceptions import Change, InvalidInputError
from rankwise.exporters.printing import Case, Language, Program, Source, Value
from rankwise.formula.formula import Formula, KernelSum

__all__ = ["CSource", "JavaScript", "PythonSource", "kernel_parts"]

_IDENTIFIER = re.compile(r"[A-Za-z_]\w*", re.ASCII)


class CodeLanguage(Language):
    """A language with functions, arrays and loops, as templates that `render` fills.

    Attributes
    ----------
    title : str
    taken : str
        Words of the language, and names that the source itself uses outside of functions.
    file : str
        Of the whole source.
    one_row, whole_query, one_scaled : str
        Of the function of a row, of the one of a query, and of a value that is scaled inside queries there.
    scalers : dict
        From a way to scale to the function that does.
    linear, linear_sum, kernel, kernel_sum : str
        Of the table of weights, of the kernel, and of the statements that add them up.
    array, declaration, start, add : str
        Formats of a short array and of statements.
    """

    title = missing_word = taken = file = one_row = whole_query = one_scaled = ""
    linear = linear_sum = kernel = kernel_sum = start = ""
    scalers: ClassVar[dict[str, str]] = {}
    array = "[{}]"
    declaration = "const {} = {};"
    add = "total += {};"
    indent = "    "

    def render(self, formula: Formula, name: str) -> str:
        """Return the source of a function that scores a row, or the rows of a query."""
        self._check_name(name)
        program = Program(formula)
        linear = [term for term in program.terms if isinstance(term[1], int)]
        others = [term for term in program.terms if not isinstance(term[1], int)]
        scaled = [value for value in program.values if value.method]
        methods = {str(value.method) for value in scaled}
        methods |= {"minmax"} if "standard" in methods else set()
        parts = [self.scalers[method] for method in sorted(methods)]
        body = [
            *self._statements(program.parts(program.results)),
            self.start.format(self.number(formula.constant)),
        ]
        if linear:
            entries = [[str(at), self.number(weight), self.number(center)] for weight, at, center in linear]
            parts.append(_fill(self.linear, entries=self._lines(map(self._array, entries))))
            body.append(_fill(self.linear_sum, n=len(linear)))
        body += [self.add.format(term) for term in self.terms(program, others)]
        if formula.kernel is not None:
            parts.append(self._kernel(formula.kernel))
            seen = self._array([self.source(one) for one in program.kernel_inputs])
            body.append(_fill(self.kernel_sum, seen=seen, n=len(formula.kernel.dual)))
        names = {
            "name": name,
            "upper": name.upper(),
            "n_columns": len(formula.names),
            "n_scaled": len(scaled),
            **self.more(formula),
        }
        made = [
            _fill(
                self.one_scaled,
                body=self._block(self._statements(program.parts(value.sources)), 2),
                input=self.source(value.sources[0]),
                value=value.name,
                method=value.method,
                place=place,
                **names,
            )
            for place, value in enumerate(scaled)
        ]
        function = self.whole_query if scaled else self.one_row
        block = self._block(body, 2 if scaled else 1)
        parts.append(_fill(function, body=block, scaled="\n".join(made), **names))
        columns = self._lines(map(self.text, formula.names))
        about, kinds = self._about(formula), _kinds(formula)
        return _fill(self.file, about=about, columns=columns, kinds=kinds, parts="\n".join(parts), **names)

    def more(self, formula: Formula) -> dict[str, str]:
        """Return entries of templates that are the language's own."""
        return {}

    def declare(self, value: Value, expression: str) -> str:
        """Write a line that gives a value its name."""
        return self.declaration.format(value.name, expression)

    def _statements(self, values: Iterable[Value]) -> list[str]:
        return [
            self.declare(value, f"{value.name}_of[number]" if value.method else self.value(value))
            for value in values
        ]

    def _kernel(self, kernel: KernelSum) -> str:
        kind, gamma, offset, degree = kernel_parts(kernel)
        inner = f"{self.number(gamma)} * sum + {self.number(offset)}"
        far = self.call("exp", f"{self.number(-gamma)} * sum")
        product = "x * z"
        term, result = {
            "linear": (product, "sum"),
            "poly": (product, self.call("pow", inner, self.number(degree))),
            "sigmoid": (product, self.call("tanh", inner)),
            "rbf": ("(x - z) * (x - z)", far),
            "laplacian": (self.call("abs", "x - z"), far),
        }[kind]
        basis = self._lines(self._array(map(self.number, row)) for row in kernel.basis.tolist())
        dual, (n, width) = self._lines(map(self.number, kernel.dual.tolist())), kernel.basis.shape
        return _fill(
            self.kernel, basis=basis, dual=dual, n=n, width=width, term=term, result=result, kind=kind
        )

    def _check_name(self, name: str) -> None:
        if not _IDENTIFIER.fullmatch(name):
            raise InvalidInputError(
                f"{name!r} is no name of a function.", "use letters, digits and underscores."
            )
        if name in self.taken.split():
            raise InvalidInputError(
                f"{name!r} means something else in {self.title}.",
                "call the function otherwise (name=).",
                Change("name", "function"),
            )

    def _about(self, formula: Formula) -> str:
        missing = f" Missing values are {self.missing_word}." if formula.takes_missing else ""
        rows = "the rows of one query" if formula.needs_whole_queries else "a row"
        text = (
            f"A ranking model, written by rankwise {rankwise.__version__}: scores of {rows}, higher is better; only "
            f"differences inside a query mean anything. The values of a row stand in the order of the columns below."
        )
        return "\n".join(textwrap.wrap(text + missing, 110))

    def _array(self, entries: Iterable[str]) -> str:
        return self.array.format(", ".join(entries))

    def _lines(self, entries: Iterable[str]) -> str:
        return f",\n{self.indent}".join(entries)

    def _block(self, statements: Sequence[str], depth: int) -> str:
        return textwrap.indent("\n".join(statements), self.indent * depth)


class CSource(CodeLanguage):
    """Rows are arrays of doubles in the order of the columns; texts, where there are any, stand in a second array."""

    title = "C"
    missing_word = "NaN, and null pointers where a column holds texts"
    # Of the standard library what is called here, and main; what else it has is for the compiler to tell.
    taken = (
        "auto break case char const continue default do double else enum extern float for goto if inline int long "
        "register restrict return short signed sizeof static struct switch typedef union unsigned void volatile while "
        "INFINITY NAN NULL exp fabs free isnan log main malloc pow qsort size_t sqrt strcmp tanh "
        "basis_ compare_doubles count_below dual_ kernel_ linear_ scale_minmax scale_rank scale_standard"
    )
    renamed: ClassVar[dict[str, str]] = {"abs": "fabs"}
    array = "{{{}}}"
    declaration = "const double {} = {};"
    start = "double total = {};"
    file = """\
/*
$about
*/
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

enum { ${upper}_COLUMNS = $n_columns };
const char *const ${name}_columns[] = {
    $columns
};

$parts"""
    one_row = """\
double $name(const double *row$text) {
    (void)row;
$body
    return total;
}
"""
    whole_query = """\
/* rows, one after the other, of one query; returns 0, or -1 where there is no memory */
int $name(const double *rows, ${texts}size_t n_rows, double *scores) {
    double *const room = malloc((n_rows + 1) * ($n_scaled + 1) * sizeof *room);
    if (room == NULL) return -1;
$scaled
    for (size_t number = 0; number < n_rows; number++) {
        const double *const row = rows + number * $n_columns;
        (void)row;
$text_row
$body
        scores[number] = total;
    }
    free(room);
    return 0;
}
"""
    one_scaled = """\
    double *const ${value}_of = room + $place * n_rows;
    for (size_t number = 0; number < n_rows; number++) {
        const double *const row = rows + number * $n_columns;
        (void)row;
$text_row
$body
        ${value}_of[number] = $input;
    }
    scale_$method(${value}_of, n_rows, room + $n_scaled * n_rows);"""
    linear = "static const struct { size_t column; double weight, center; } linear_[] = {\n    $entries\n};\n"
    linear_sum = (
        "for (size_t j = 0; j < $n; j++)\n"
        "    total += linear_[j].weight * (row[linear_[j].column] - linear_[j].center);"
    )
    kernel = """\
static const double dual_[] = {
    $dual
};
static const double basis_[$n][$width] = {
    $basis
};

static double kernel_(const double *row, const double *one) { /* $kind */
    double sum = 0.0;
    for (size_t j = 0; j < $width; j++) {
        const double x = row[j], z = one[j];
        sum += $term;
    }
    return $result;
}
"""
    kernel_sum = (
        "const double seen[] = $seen;\n"
        "for (size_t b = 0; b < $n; b++) total += dual_[b] * kernel_(seen, basis_[b]);"
    )
    scalers: ClassVar[dict[str, str]] = {
        "minmax": """\
static void scale_minmax(double *v, size_t n, double *room) {
    double low = INFINITY, high = -INFINITY;
    (void)room;
    for (size_t i = 0; i < n; i++) { if (v[i] < low) low = v[i]; if (v[i] > high) high = v[i]; }
    for (size_t i = 0; i < n; i++) v[i] = high > low ? (v[i] - low) / (high - low) : v[i] - v[i];
}
""",
        "standard": """\
static void scale_standard(double *v, size_t n, double *room) {
    double known = 0.0, mean = 0.0, squares = 0.0;
    scale_minmax(v, n, room); /* shares of the range, whose squares neither overflow nor vanish */
    for (size_t i = 0; i < n; i++) if (!isnan(v[i])) { mean += v[i]; known++; }
    mean /= known;
    for (size_t i = 0; i < n; i++) if (!isnan(v[i])) squares += (v[i] - mean) * (v[i] - mean);
    for (size_t i = 0; i < n && squares > 0.0; i++) v[i] = (v[i] - mean) / sqrt(squares / known);
}
""",
        "rank": """\
static int compare_doubles(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* how many of the sorted values are smaller, or not larger */
static size_t count_below(const double *v, size_t n, double x, int or_equal) {
    size_t low = 0;
    while (low < n) {
        const size_t at = low + (n - low) / 2;
        if (v[at] < x || (or_equal && v[at] == x)) low = at + 1; else n = at;
    }
    return low;
}

static void scale_rank(double *v, size_t n, double *room) {
    size_t known = 0;
    for (size_t i = 0; i < n; i++) if (!isnan(v[i])) room[known++] = v[i];
    qsort(room, known, sizeof *room, compare_doubles);
    for (size_t i = 0; i < n; i++) {
        const size_t places = count_below(room, known, v[i], 0) + count_below(room, known, v[i], 1) - 1;
        if (!isnan(v[i])) v[i] = room[0] < room[known - 1] ? (double)places / 2.0 / (double)(known - 1) : 0.0;
    }
}
""",
    }

    def more(self, formula: Formula) -> dict[str, str]:
        row = "        const char *const *const text = texts + number * $n;\n        (void)text;"
        has_texts = any(formula.is_text)
        return {
            "text": ", const char *const *text" if has_texts else "",
            "texts": "const char *const *texts, " if has_texts else "",
            "text_row": _fill(row, n=len(formula.names)) if has_texts else "",
        }

    def text(self, value: str) -> str:
        # Octal escapes have three digits at most, so that no letter after them is taken for a part.
        letters = [
            chr(byte) if 32 <= byte < 127 and chr(byte) not in '"\\?' else f"\\{byte:03o}"
            for byte in value.encode()
        ]
        return f'"{"".join(letters)}"'

    def missing(self, x: str) -> str:
        return f"{x} == NULL" if x.startswith("text[") or x.endswith("_text") else f"isnan({x})"

    def equal(self, x: str, level: float | str) -> str:
        return f"strcmp({x}, {self.text(level)}) == 0" if isinstance(level, str) else super().equal(x, level)

    def source(self, source: Source, *, is_text: bool = False) -> str:
        return f"text[{source}]" if is_text and isinstance(source, int) else super().source(source)

    def declare(self, value: Value, expression: str) -> str:
        return (
            f"const char *{value.name} = {expression};"
            if value.is_text
            else super().declare(value, expression)
        )


class JavaScript(CodeLanguage):
    """Rows are arrays of numbers, texts and null, in the order of the columns."""

    title = "JavaScript"
    missing_word = "NaN, null or undefined"
    taken = (
        "arguments await break case catch class const continue debugger default delete do else enum eval export "
        "extends false finally for function if implements import in instanceof interface let new null package private "
        "protected public return static super switch this throw true try typeof var void while with yield "
        "Infinity Map Math NaN Number module undefined COLUMNS LINEAR DUAL BASIS "
        "Array JSON KINDS RangeError TypeError readRow readValue kernel scale_minmax scale_rank scale_standard"
    )
    library = "Math."
    infinity, nan = "Infinity", "NaN"
    start = "let total = {};"
    indent = "  "
    file = """\
"use strict";
/*
$about
*/
const COLUMNS = [
  $columns
];
const KINDS = "$kinds"; // of the columns: number, text, or not read

function readRow(row) {
  if (row.length !== COLUMNS.length) {
    throw new RangeError(`A row has $${COLUMNS.length} values, in the order of COLUMNS, and not $${row.length}.`);
  }
  return Array.from(row, (x, at) => readValue(x, KINDS[at]));
}

function readValue(x, kind) {
  if (kind === "n"$known) {
    if (typeof x === "number" || typeof x === "boolean") return Number(x);
    throw new TypeError(`$${JSON.stringify(x)} is no number.`);
  }
  if (kind === "t" && !(x == null || x !== x || typeof x === "string")) throw new TypeError(`$${x} is no text.`);
  return ${gap}x;
}

$parts
if (typeof module !== "undefined") module.exports = { COLUMNS, $name };
"""
    one_row = "function $name(row) {\n  row = readRow(row);\n$body\n  return total;\n}\n"
    whole_query = """\
function $name(rows) {
  rows = rows.map((row) => readRow(row));
$scaled
  return rows.map((row, number) => {
$body
    return total;
  });
}
"""
    one_scaled = (
        "  const ${value}_of = scale_$method(rows.map((row, number) => {\n$body\n    return $input;\n  }));"
    )
    linear = "// column, weight, centre\nconst LINEAR = [\n  $entries\n];\n"
    linear_sum = "for (const [at, weight, center] of LINEAR) total += weight * (row[at] - center);"
    kernel = """\
const DUAL = [
  $dual
];
const BASIS = [
  $basis
];

function kernel(row, one) { // $kind
  let sum = 0;
  row.forEach((x, j) => { const z = one[j]; sum += $term; });
  return $result;
}
"""
    kernel_sum = (
        "const seen = $seen;\nDUAL.forEach((weight, b) => { total += weight * kernel(seen, BASIS[b]); });"
    )
    scalers: ClassVar[dict[str, str]] = {
        "minmax": """\
function scale_minmax(column) {
  let low = Infinity, high = -Infinity;
  for (const x of column) { if (x < low) low = x; if (x > high) high = x; }
  return column.map((x) => (high > low ? (x - low) / (high - low) : x - x));
}
""",
        "standard": """\
function scale_standard(column) {
  const shares = scale_minmax(column); // of the range, whose squares neither overflow nor vanish
  const known = shares.filter((x) => !Number.isNaN(x));
  const mean = known.reduce((sum, x) => sum + x, 0) / known.length;
  const deviation = Math.sqrt(known.reduce((sum, x) => sum + (x - mean) ** 2, 0) / known.length);
  return shares.map((x) => (deviation > 0 ? (x - mean) / deviation : x));
}
""",
        "rank": """\
function scale_rank(column) {
  const known = column.filter((x) => !Number.isNaN(x)).sort((a, b) => a - b);
  const n = known.length;
  if (n === 0 || known[0] === known[n - 1]) return column.map((x) => x - x);
  const first = new Map(), last = new Map();
  known.forEach((x, place) => { if (!first.has(x)) first.set(x, place); last.set(x, place); });
  return column.map((x) => (Number.isNaN(x) ? x : (first.get(x) + last.get(x)) / 2 / (n - 1)));
}
""",
    }

    def more(self, formula: Formula) -> dict[str, str]:
        takes = formula.takes_missing
        return {"known": " && x != null" if takes else "", "gap": "x == null ? NaN : " if takes else ""}

    def missing(self, x: str) -> str:
        return f"({x} == null || {x} !== {x})"

    def equal(self, x: str, level: float | str) -> str:
        return f"{x} === {self.literal(level)}"


class PythonSource(CodeLanguage):
    """Rows are sequences of numbers, texts and None, in the order of the columns."""

    title = "Python"
    missing_word = "NaN or None"
    taken = (
        f"{' '.join(keyword.kwlist)} math float zip min max len sorted enumerate isinstance str "
        "COLUMNS LINEAR DUAL BASIS KINDS ValueError TypeError _read _value _kernel _minmax _standard _rank"
    )
    library = "math."
    renamed: ClassVar[dict[str, str]] = {"abs": "fabs"}
    infinity, nan = 'float("inf")', 'float("nan")'
    declaration = "{} = {}"
    start = "total = {}"
    add = "total += {}"
    file = '''\
"""$about"""

import math

COLUMNS = [
    $columns
]
KINDS = "$kinds"  # of the columns: number, text, or not read


def _read(row):
    if len(row) != len(COLUMNS):
        raise ValueError(f"A row has {len(COLUMNS)} values, in the order of COLUMNS, and not {len(row)}.")
    return [_value(x, kind) for x, kind in zip(row, KINDS)]


def _value(x, kind):
    if kind == "n":
        return $number
    if kind == "t" and not (x is None or x != x or isinstance(x, str)):
        raise TypeError(f"{x!r} is no text.")
    return x


$parts'''
    one_row = "\ndef $name(row):\n    row = _read(row)\n$body\n    return total\n"
    whole_query = """
def $name(rows):
    rows = [_read(row) for row in rows]
$scaled
    totals = []
    for number, row in enumerate(rows):
$body
        totals.append(total)
    return totals
"""
    one_scaled = """\
    ${value}_of = []
    for number, row in enumerate(rows):
$body
        ${value}_of.append($input)
    ${value}_of = _$method(${value}_of)"""
    linear = "# column, weight, centre\nLINEAR = [\n    $entries\n]\n"
    linear_sum = "for at, weight, center in LINEAR:\n    total += weight * (row[at] - center)"
    kernel = """\
DUAL = [
    $dual
]
BASIS = [
    $basis
]


def _kernel(row, one):  # $kind
    sum = 0.0
    for x, z in zip(row, one):
        sum += $term
    return $result

"""
    kernel_sum = (
        "seen = $seen\nfor weight, one in zip(DUAL, BASIS):\n    total += weight * _kernel(seen, one)"
    )
    scalers: ClassVar[dict[str, str]] = {
        "minmax": """\
def _minmax(column):
    known = [x for x in column if x == x]
    low, high = (min(known), max(known)) if known else (0.0, 0.0)
    return [(x - low) / (high - low) if high > low else x - x for x in column]

""",
        "standard": """\
def _standard(column):
    column = _minmax(column)  # shares of the range, whose squares neither overflow nor vanish
    known = [x for x in column if x == x]
    mean = math.fsum(known) / max(len(known), 1)
    deviation = math.sqrt(math.fsum((x - mean) ** 2 for x in known) / max(len(known), 1))
    return [(x - mean) / deviation if deviation > 0 else x for x in column]

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

    def more(self, formula: Formula) -> dict[str, str]:
        return {"number": 'float("nan") if x is None else float(x)' if formula.takes_missing else "float(x)"}

    def text(self, value: str) -> str:
        return repr(str(value))

    def missing(self, x: str) -> str:
        return f"({x} is None or {x} != {x})"

    def choose(self, cases: Sequence[Case], otherwise: str) -> str:
        first = [f"{value} if {condition}" for condition, value in cases]
        return f"({' else '.join([*first, otherwise])})" if cases else otherwise


def kernel_parts(kernel: KernelSum) -> tuple[str, float, float, float]:
    """Return what a kernel is: its name, gamma, offset and degree."""
    parameters = kernel.kernel.parameters
    name = str(kernel.kernel.name).replace("polynomial", "poly")
    gamma, offset = (float(parameters.get(key, 1.0)) for key in ("gamma", "coef0"))
    return name, gamma, offset, float(parameters.get("degree", 3))


def _kinds(formula: Formula) -> str:
    """Return a letter for each column: n for a number, t for a text, - for one that is not read."""
    read = {number for column in formula.columns for number in column.inputs}
    kinds = ["t" if is_text else "n" for is_text in formula.is_text]
    return "".join(kind if number in read else "-" for number, kind in enumerate(kinds))


def _fill(template: str, **entries: object) -> str:
    return Template(template).substitute(entries)
