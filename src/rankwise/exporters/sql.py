"""SQL: one SELECT that adds a column of scores; what needs whole queries is made by window functions."""

from __future__ import annotations

import math
from collections.abc import Sequence

import rankwise
from rankwise.exceptions import Change, InvalidInputError
from rankwise.exporters.expressions import Case, Language
from rankwise.exporters.program import Program, Value
from rankwise.formula.formula import Formula

__all__ = ["Sql"]

_LONGEST_NAME = 63  # bytes, in PostgreSQL
_MOST_COLUMNS = {"sqlite": 2000, "postgresql": 1664}  # of a SELECT


class Sql(Language):
    """A dialect of SQL.

    Parameters
    ----------
    dialect : {"sqlite", "postgresql", "duckdb"}
    table, qid : str
        The table of rows, and its column of query ids.
    """

    def __init__(self, dialect: str, table: str, qid: str) -> None:
        self._dialect, self._table, self._qid = dialect, table, qid

    def render(self, formula: Formula, name: str) -> str:
        """Return the statement; `name` is what the scores are called."""
        self._formula = formula
        given = (*formula.names, self._qid, self._table, name)
        for one in given:
            self._check_name(one)
        self._check_told_apart(name)
        self._prefix = "rw_"
        while any(one.lower().startswith(self._prefix) for one in given):
            self._prefix += "_"
        program = Program(formula, self._prefix)
        levels = self._levels(program)
        self._check_width(len(formula.names) + sum(map(len, levels)) + 2)
        source, parts = self.identifier(self._table), []
        for number, level in enumerate(levels):
            made = ",\n    ".join(f"{expression} AS {one}" for one, expression in level)
            step = f"{self._prefix}step{number + 1}"
            parts.append(f"{step} AS (\n  SELECT *,\n    {made}\n  FROM {source}\n)")  # noqa: S608 - names are quoted
            source = step
        prologue = f"WITH {', '.join(parts)}\n" if parts else ""
        return (
            f"-- A ranking model, written by rankwise {rankwise.__version__} for {self._dialect}.\n"
            "-- Higher is better; only differences inside a query mean anything.\n"
            f"{prologue}SELECT *,\n  {self._total(program)} AS {self.identifier(name)}\nFROM {source}\n"
        )

    # --- grammar ---

    def number(self, value: float) -> str:
        if math.isnan(value):
            return "NULL"
        digits = repr(float(value))
        # With an exponent it is a double and no exact decimal.
        digits = digits if "e" in digits else f"{digits}e0"
        return digits if value >= 0 else f"({digits})"

    def text(self, value: str) -> str:
        return "'" + value.replace("'", "''") + "'"

    def identifier(self, name: str) -> str:
        """Quote the name of a table or a column."""
        return '"' + name.replace('"', '""') + '"'

    def missing(self, x: str) -> str:
        return f"{x} IS NULL"

    def equal(self, x: str, level: float | str) -> str:
        return f"{x} = {self.literal(level)}"

    def choose(self, cases: Sequence[Case], otherwise: str) -> str:
        if not cases:
            return otherwise
        whens = " ".join(f"WHEN {condition} THEN {value}" for condition, value in cases)
        return f"CASE {whens} ELSE {otherwise} END"

    def power(self, x: str, exponent: float) -> str:
        return f"POWER({x}, {self.number(exponent)})"

    def log(self, x: str) -> str:
        return f"LN({x})"

    def _raw(self, number: int) -> str:
        name = self.identifier(self._formula.names[number])
        if self._formula.is_text[number]:
            return name
        double = f"CAST({name} AS FLOAT8)"
        if self._dialect == "sqlite" or not self._formula.takes_missing:
            return double
        return f"NULLIF({double}, CAST('NaN' AS FLOAT8))"

    # --- what is computed, one SELECT after the other, because none sees the names it gives ---

    def _levels(self, program: Program) -> list[list[tuple[str, str]]]:
        levels: list[list[tuple[str, str]]] = []
        depth: dict[str, int] = {}

        def emit(name: str, expression: str, after: int) -> None:
            while len(levels) <= after:
                levels.append([])
            levels[after].append((name, expression))
            depth[name] = after + 1

        for value in program.values:
            after = max(depth.get(str(one), 0) for one in value.sources)
            sources = [self._raw(one) if isinstance(one, int) else one for one in value.sources]
            x = sources[0]
            if not value.is_query_scale:
                emit(value.name, self.value(value, sources), after)
            elif value.method == "standard":
                # Of shares of the range, whose squares neither overflow nor vanish.
                share, mean, spread = (f"{value.name}_{part}" for part in ("share", "mean", "spread"))
                emit(share, self._shares(x), after)
                emit(mean, f"AVG({share}) {self._window}", after + 1)
                squares = f"({share} - {mean}) * ({share} - {mean})"
                emit(spread, f"SQRT(AVG({squares}) {self._window})", after + 2)
                scaled = f"({share} - {mean}) / {spread}"
                emit(value.name, self.choose([(f"{spread} > {self.number(0.0)}", scaled)], share), after + 3)
            else:
                emit(value.name, self._scaled(value, x), after)
        return levels

    @property
    def _window(self) -> str:
        return f"OVER (PARTITION BY {self.identifier(self._qid)})"

    def _if_varies(self, x: str, scaled: str) -> str:
        return f"CASE WHEN MAX({x}) {self._window} > MIN({x}) {self._window} THEN {scaled} ELSE {x} - {x} END"

    def _shares(self, x: str) -> str:
        low, high = f"MIN({x}) {self._window}", f"MAX({x}) {self._window}"
        return self._if_varies(x, f"({x} - {low}) / ({high} - {low})")

    def _scaled(self, value: Value, x: str) -> str:
        if value.method == "minmax":
            return self._shares(x)
        qid = self.identifier(self._qid)
        place = f"CAST(RANK() OVER (PARTITION BY {qid}, {x} IS NULL ORDER BY {x}) AS FLOAT8)"
        tied = f"CAST(COUNT(*) OVER (PARTITION BY {qid}, {x}) AS FLOAT8)"
        present = f"CAST(COUNT({x}) {self._window} AS FLOAT8)"
        ranked = f"({place} - 1 + ({tied} - 1) / 2) / ({present} - 1)"
        return f"CASE WHEN {x} IS NULL THEN NULL ELSE {self._if_varies(x, ranked)} END"

    def _total(self, program: Program) -> str:
        terms = [] if program.constant == 0 else [self.number(program.constant)]
        for at, weight, center in program.linear:
            terms.append(f"{self.number(weight)} * {self._minus(self._raw(at), center)}")
        for weight, name in program.sums:
            terms.append(name if weight == 1 else f"{self.number(weight)} * {name}")
        terms += [self.surface(surface, *names) for surface, names in program.surfaces]
        return _balanced(terms) if terms else self.number(0.0)

    def _check_width(self, n_columns: int) -> None:
        if n_columns > _MOST_COLUMNS.get(self._dialect, n_columns):
            raise InvalidInputError(
                f"The statement has {n_columns:,} columns in between, and {self._dialect} takes "
                f"{_MOST_COLUMNS[self._dialect]:,}.",
                "export to duckdb, ONNX, C, JavaScript or Python, or train with fewer levels (max_levels) or without "
                "scaling inside queries.",
            )

    def _check_told_apart(self, name: str) -> None:
        """Refuse columns that a database takes for one: SQLite and DuckDB read quoted names in any case alike."""
        same = str if self._dialect == "postgresql" else str.lower
        known: dict[str, str] = {}
        for one in self._formula.names:
            other = known.setdefault(same(one), one)
            if other != one:
                raise InvalidInputError(
                    f"{self._dialect} takes the columns {other!r} and {one!r} for one.",
                    "give them names that differ by more than case (feature_names).",
                )
        if same(name) in {*known, same(self._qid)}:
            raise InvalidInputError(
                f"The table has a column {name!r}, and the scores would be called that too.",
                "call the scores otherwise (name=).",
                Change("name", "scores"),
            )

    def _check_name(self, name: str) -> None:
        if not name or "\0" in name:
            raise InvalidInputError(f"{name!r} is no name in SQL.", "give the columns names (feature_names).")
        if self._dialect == "postgresql" and len(name.encode()) > _LONGEST_NAME:
            raise InvalidInputError(
                f"{name!r} is longer than the {_LONGEST_NAME} bytes that PostgreSQL keeps of a name.",
                "give the columns shorter names (feature_names).",
            )


def _balanced(terms: Sequence[str]) -> str:
    """Add terms up as a balanced tree: databases limit how deep an expression may be."""
    if len(terms) <= 8:
        return " + ".join(terms)
    middle = len(terms) // 2
    return f"({_balanced(terms[:middle])})\n  + ({_balanced(terms[middle:])})"
