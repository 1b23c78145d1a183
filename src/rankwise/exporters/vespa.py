"""A rank profile for Vespa."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

import rankwise
from rankwise.exceptions import InvalidInputError
from rankwise.exporters.printing import Case, Language, Program, Source
from rankwise.formula.formula import Formula

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
