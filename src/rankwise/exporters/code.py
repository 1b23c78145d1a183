"""Functions in C, JavaScript and Python without dependencies, from files of templates, and rank profiles for Vespa.

A file of templates, such as ``c.txt``, has sections: words that are `taken`, the whole `file`, the function of
`one_row` or of a `whole_query` with its `one_scaled` columns, the `kernel` and its `kernel_sum`, and a function per
way to scale.
"""

from __future__ import annotations

import keyword
import math
import re
import textwrap
from collections.abc import Iterable, Sequence
from importlib.resources import files
from string import Template
from typing import ClassVar

import rankwise
from rankwise.exceptions import InvalidInputError
from rankwise.exporters.printing import Case, Language, Program, Source, Value
from rankwise.formula.formula import Formula, KernelSum

_IDENTIFIER = re.compile(r"[A-Za-z_]\w*", re.ASCII)


class CodeLanguage(Language):
    """A language with functions, arrays and loops; its attributes are formats of short arrays and of statements."""

    title = missing_word = start = ""
    array = "[{}]"
    declaration = "const {} = {};"
    add = "total += {};"
    indent = "    "
    between = "\n\n"  # of functions

    def render(self, formula: Formula, name: str) -> str:
        """Return the source of a function that scores a row, or the rows of a query."""
        read = files("rankwise.exporters").joinpath(f"{self.title.lower()}.txt").read_text("utf-8")
        found = re.split(r"^=== (\w+)\n", read, flags=re.MULTILINE)[1:]
        sections = {key: text.strip("\n") for key, text in zip(found[::2], found[1::2], strict=True)}
        self._check_name(name, sections["taken"].split())
        program = Program(formula)
        scaled = [value for value in program.values if value.method]
        methods = {str(value.method) for value in scaled}
        methods |= {"minmax"} if "standard" in methods else set()
        parts = [sections[method] for method in sorted(methods)]
        body = [
            *self._statements(program.parts(program.results)),
            self.start.format(self.number(formula.constant)),
            *(self.add.format(term) for term in self.terms(program, program.terms)),
        ]
        names = {
            "name": name,
            "upper": name.upper(),
            "n_columns": len(formula.names),
            "n_scaled": len(scaled),
        }
        names |= self.more(formula)
        if formula.kernel is not None:
            kernel = self._kernel(formula.kernel)
            parts.append(_fill(sections["kernel"], **kernel))
            seen = self._array([self.source(one) for one in program.kernel_inputs])
            body.append(_fill(sections["kernel_sum"], seen=seen, **kernel))
        made = [
            _fill(
                sections["one_scaled"],
                body=self._block(self._statements(program.parts(value.sources)), 2),
                input=self.source(value.sources[0]),
                value=value.name,
                method=value.method,
                place=place,
                **names,
            )
            for place, value in enumerate(scaled)
        ]
        function = sections["whole_query" if scaled else "one_row"]
        # A letter for each column: n for a number, t for a text, - for one that is not read.
        taken = {number for column in formula.columns for number in column.inputs}
        kinds = "".join("nt"[is_text] if at in taken else "-" for at, is_text in enumerate(formula.is_text))
        block = self._block(body, 2 if scaled else 1)
        parts.append(_fill(function, body=block, scaled="\n".join(made), **names))
        return (
            _fill(
                sections["file"],
                about=self._about(formula),
                columns=self._lines(map(self.text, formula.names)),
                kinds=kinds,
                parts=self.between.join(parts),
                **names,
            )
            + "\n"
        )

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

    def _kernel(self, kernel: KernelSum) -> dict[str, object]:
        kind, gamma, offset, degree = kernel.settings
        inner = f"{self.number(gamma)} * sum + {self.number(offset)}"
        far = self.call("exp", f"{self.number(-gamma)} * sum")
        term, result = {
            "linear": ("x * z", "sum"),
            "poly": ("x * z", self.call("pow", inner, self.number(degree))),
            "sigmoid": ("x * z", self.call("tanh", inner)),
            "rbf": ("(x - z) * (x - z)", far),
            "laplacian": (self.call("abs", "x - z"), far),
        }[kind]
        n, width = kernel.basis.shape
        numbers = {
            "basis": self._lines(self._array(map(self.number, row)) for row in kernel.basis.tolist()),
            "dual": self._lines(map(self.number, kernel.dual.tolist())),
        }
        return {**numbers, "n": n, "width": width, "term": term, "result": result, "kind": kind}

    def _check_name(self, name: str, taken: Sequence[str]) -> None:
        if not _IDENTIFIER.fullmatch(name):
            raise InvalidInputError(
                f"{name!r} is not a valid name of a function.", "use letters, digits and underscores."
            )
        if name in taken or (self.title == "Python" and keyword.iskeyword(name)):
            raise InvalidInputError(
                f"{name!r} is a reserved word in {self.title}.",
                "choose another name (name=).",
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
    renamed: ClassVar[dict[str, str]] = {"abs": "fabs"}
    array = "{{{}}}"
    declaration = "const double {} = {};"
    start = "double total = {};"

    def more(self, formula: Formula) -> dict[str, str]:
        if not any(formula.is_text):
            return {"text": "", "texts": "", "text_row": ""}
        row = f"        const char *const *const text = texts + number * {len(formula.names)};\n        (void)text;"
        return {"text": ", const char *const *text", "texts": "const char *const *texts, ", "text_row": row}

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
        made = super().declare(value, expression)
        return made.replace("const double ", "const char *", 1) if value.is_text else made


class JavaScript(CodeLanguage):
    """Rows are arrays of numbers, texts and null, in the order of the columns."""

    title = "JavaScript"
    missing_word = "NaN, null or undefined"
    library = "Math."
    infinity, nan = "Infinity", "NaN"
    start = "let total = {};"
    indent = "  "

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
    library = "math."
    renamed: ClassVar[dict[str, str]] = {"abs": "fabs"}
    infinity, nan = 'float("inf")', 'float("nan")'
    declaration = "{} = {}"
    start = "total = {}"
    add = "total += {}"
    between = "\n\n\n"

    def more(self, formula: Formula) -> dict[str, str]:
        return {"number": 'float("nan") if x is None else float(x)' if formula.takes_missing else "float(x)"}

    def text(self, value: str) -> str:
        return repr(str(value))

    def missing(self, x: str) -> str:
        return f"({x} is None or {x} != {x})"

    def choose(self, cases: Sequence[Case], otherwise: str) -> str:
        first = [f"{value} if {condition}" for condition, value in cases]
        return f"({' else '.join([*first, otherwise])})" if cases else otherwise


def _fill(template: str, **entries: object) -> str:
    return Template(template).substitute(entries)


# --- rank profiles ---

_NORMALISERS = (
    "# The normalisers see the hits that the global phase reranks: rerank-count must cover the query."
)
_FIELD = re.compile(r"[A-Za-z_]\w*")
_FEATURE = re.compile(r"[A-Za-z_]\w*\([\w, .:\-]*\)(\.\w+)*")


class Vespa(Language):
    """Columns are rank features, such as ``bm25(title)``; a plain name is an attribute."""

    def render(self, formula: Formula, name: str) -> str:
        """Return the profile."""
        if not _FIELD.fullmatch(name):
            raise InvalidInputError(
                f"{name!r} is not a valid name of a rank profile.",
                "use letters, digits and underscores (name=).",
            )
        self._features = [self.feature(one) for one in formula.names]
        program = Program(formula, "rankwise_")
        # A normaliser takes the name of a function, and stands in the expression of the global phase itself.
        scaled = self._scaled = {value.name for value in program.values if value.method}
        functions = [
            (f"{value.name}_input", self.source(value.sources[0]))
            if value.method
            else (value.name, self.value(value))
            for value in program.values
        ]
        terms = [self.number(formula.constant), *self.terms(program, program.terms)]
        phase = "global-phase" if scaled else "first-phase"
        lines = [
            f"# A ranking model, written by rankwise {rankwise.__version__}.",
            *([_NORMALISERS] if scaled else []),
            f"rank-profile {name} {{",
            *(f"    function {one}() {{\n        expression: {expression}\n    }}" for one, expression in functions),
            f"    {phase} {{",
            "        expression {",
            *(f"            {'+ ' if at else ''}{term}" for at, term in enumerate(terms)),
            "        }",
            "    }",
            "}",
        ]  # fmt: skip
        return "\n".join(lines) + "\n"

    def source(self, source: Source, *, is_text: bool = False) -> str:
        if isinstance(source, int):
            return self._features[source]
        return f"normalize_linear({source}_input)" if source in self._scaled else source

    def feature(self, name: str) -> str:
        """Return the rank feature that a column is called by."""
        if _FIELD.fullmatch(name):
            return f"attribute({name})"
        if _FEATURE.fullmatch(name):
            return name
        raise InvalidInputError(
            f"{name!r} is not a rank feature of Vespa.",
            "name the columns by their features (feature_names), such as 'bm25(title)' or 'attribute(price)'.",
        )

    def number(self, value: float) -> str:
        if not math.isfinite(value):
            raise InvalidInputError(
                "Rank profiles cannot represent NaN.",
                "encode categories that training did not have by a number (unknown_value), or one-hot.",
            )
        return super().number(value)

    def missing(self, x: str) -> str:
        return f"isNan({x}) == 1"

    def choose(self, cases: Sequence[Case], otherwise: str) -> str:
        out = otherwise
        for condition, value in reversed(cases):
            out = f"if ({condition}, {value}, {out})"
        return out
