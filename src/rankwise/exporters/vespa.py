"""A rank profile for Vespa."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

import rankwise
from rankwise.exceptions import Change, InvalidInputError
from rankwise.exporters.expressions import Case, Language
from rankwise.exporters.program import Program
from rankwise.formula.formula import Formula

__all__ = ["Vespa"]

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
                f"{name!r} is no name of a rank profile.", "use letters, digits and underscores (name=)."
            )
        features = [self.feature(one) for one in formula.names]
        program = Program(formula, "rankwise_")
        functions = []
        for value in program.values:
            sources = [features[one] if isinstance(one, int) else one for one in value.sources]
            if value.is_query_scale:
                # A normaliser takes the name of a function, and stands in the expression of the global phase itself.
                functions.append((f"{value.name}_input", sources[0]))
            else:
                functions.append((value.name, self.value(value, sources)))
        scaled = {value.name for value in program.values if value.is_query_scale}
        terms = [self.number(program.constant)]
        terms += [
            f"{self.number(w)} * {self._minus(features[at], center)}" for at, w, center in program.linear
        ]
        terms += [
            f"{self.number(weight)} * {f'normalize_linear({one}_input)' if one in scaled else one}"
            for weight, one in program.sums
        ]
        terms += [self.surface(surface, *names) for surface, names in program.surfaces]
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

    def feature(self, name: str) -> str:
        """Return the rank feature that a column is called by."""
        if _FIELD.fullmatch(name):
            return f"attribute({name})"
        if _FEATURE.fullmatch(name):
            return name
        raise InvalidInputError(
            f"{name!r} is no rank feature of Vespa.",
            "name the columns by their features (feature_names), such as 'bm25(title)' or 'attribute(price)'.",
            Change("feature_names"),
        )

    def number(self, value: float) -> str:
        if not math.isfinite(value):
            raise InvalidInputError(
                "Rank profiles have no way to write a value that is no number.",
                "encode categories that training did not have by a number (unknown_value), or one-hot.",
            )
        return repr(float(value)) if value >= 0 else f"({float(value)!r})"

    def missing(self, x: str) -> str:
        return f"isNan({x}) == 1"

    def choose(self, cases: Sequence[Case], otherwise: str) -> str:
        out = otherwise
        for condition, value in reversed(cases):
            out = f"if ({condition}, {value}, {out})"
        return out
