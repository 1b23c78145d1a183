"""SQL: one SELECT that adds a column of scores, with window functions for steps that need whole queries."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import ClassVar

import rankwise
from rankwise.data.columns import NULLS
from rankwise.exceptions import InvalidInputError
from rankwise.exporters.printing import Case, Language, Program, Source, Value
from rankwise.formula.formula import Formula

_DAY = 86400.0  # seconds


class Sql(Language):
    """A dialect of SQL.

    Parameters
    ----------
    dialect : {"sqlite", "postgresql", "duckdb"}
    table, qid : str
        The table of rows, and its column of query ids.
    """

    renamed: ClassVar[dict[str, str]] = {"pow": "POWER", "log": "LN"}

    def __init__(self, dialect: str, table: str, qid: str) -> None:
        self._dialect, self._table, self._qid = dialect, table, qid

    def render(self, formula: Formula, name: str) -> str:
        """Return the statement; `name` is the name of the score column."""
        self._formula = formula
        given = (*formula.names, self._qid, name)
        # The others read quoted names in any case alike.
        same = str if self._dialect == "postgresql" else str.lower
        known = list(map(same, formula.names))
        twice = [one for at, one in enumerate(formula.names) if known[at] in known[:at]]
        if twice:
            raise InvalidInputError(
                f"{self._dialect} does not distinguish {twice[0]!r} from another column.",
                "give them names that differ by more than case (feature_names).",
            )
        if same(name) in {*known, same(self._qid)}:
            raise InvalidInputError(
                f"The table has a column {name!r}, and the scores would be called that too.",
                "choose another name for the scores (name=).",
            )
        self._prefix = "rw_"
        while any(one.lower().startswith(self._prefix) for one in given):
            self._prefix += "_"
        program = Program(formula, self._prefix)
        self._has_steps = bool(program.values)
        levels = self._levels(program)
        constant = [self.number(formula.constant)] if formula.constant or not program.results else []
        total = _balanced([*constant, *self.terms(program, program.terms)])
        if levels:
            read = sorted({number for column in formula.columns for number in column.inputs})
            levels.insert(0, [(self.source(number), self._read(number)) for number in read])
        return (
            f"-- A ranking model, written by rankwise {rankwise.__version__} for {self._dialect}.\n"
            "-- Higher is better; only differences inside a query mean anything.\n"
            f"{self._select(levels, total, self.identifier(name))}\n"
        )

    def _select(self, levels: list[list[tuple[str, str]]], total: str, name: str) -> str:
        """Write the user's columns and the scores; intermediate values stay in common table expressions."""
        own, qid, row = (f"{self._prefix}{one}" for one in ("t", "qid", "row"))
        table = f"{self.identifier(self._table)} AS {own}"
        if not levels:
            return f"SELECT {own}.*,\n  {total} AS {name}\nFROM {table}"
        is_loose, is_whole = self._dialect == "sqlite", self._formula.needs_whole_queries
        inputs = [*([(qid, self._column(self._qid))] if is_whole else []), *levels[0]]
        # The row goes along as one value, but in SQLite, which has none: there each row has a subquery of its own, or
        # is found again by what its score was made of.
        levels = [inputs if is_loose else [(row, own), *inputs], *levels[1:]]
        source, parts = "" if is_loose and not is_whole else f"\n  FROM {table}", []
        for number, level in enumerate(levels):
            named = [f"{expression} AS {one}" for one, expression in level]
            made = ",\n    ".join([*["*"] * (number > 0), *named])
            parts.append(f"{self._prefix}step{number + 1} AS (\n  SELECT {made}{source}\n)")
            source = f"\n  FROM {self._prefix}step{number + 1}"
        steps = f"WITH {', '.join(parts)}\n"
        if is_loose and not is_whole:
            return f"SELECT {own}.*, (\n{steps}SELECT {total}{source}\n) AS {name}\nFROM {table}"
        if is_loose:
            keys = ", ".join(one for one, _ in inputs)
            score, made = f"{self._prefix}score", f"{self._prefix}s"
            same = _balanced([f"{made}.{one} IS {expression}" for one, expression in inputs], " AND ")
            scores = f"SELECT {keys},\n  {total} AS {score}{source}\n  GROUP BY {keys}"
            joined = f"{table} LEFT JOIN (\n  {scores}\n) AS {made} ON {same}"
            return f"{steps}SELECT {own}.*, {made}.{score} AS {name}\nFROM {joined}"
        whole = f"({row})" if self._dialect == "postgresql" else row
        return f"{steps}SELECT {whole}.*,\n  {total} AS {name}{source}"

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

    def source(self, source: Source, *, is_text: bool = False) -> str:
        if isinstance(source, str):
            return source
        # By a name where there are steps, which may mention it often.
        return f"{self._prefix}x{source + 1}" if self._has_steps else self._read(source)

    def _column(self, name: str) -> str:
        # SQLite takes a quoted name that is no column for a text, unless it stands behind a table's.
        return f"{self._prefix}t.{self.identifier(name)}"

    def _read(self, number: int) -> str:
        """Write a column of the table in the type that the model takes."""
        name = self._column(self._formula.names[number])
        if self._formula.is_text[number]:
            return {  # compared letter by letter, whatever the column's collation
                "sqlite": f"{name} COLLATE BINARY",
                "postgresql": f'CAST({name} AS TEXT) COLLATE "C"',
                "duckdb": f'{name} COLLATE "C"',
            }[self._dialect]
        is_date = number in self._formula.dates
        if self._dialect == "sqlite":
            return self._loose_days(name) if is_date else self._loose_number(name)
        double = self._days(name) if is_date else f"CAST({name} AS FLOAT8)"
        return f"NULLIF({double}, CAST('NaN' AS FLOAT8))" if self._formula.takes_missing else double

    def _days(self, x: str) -> str:
        """Write days since 1970 of a date, a moment, a text of one, or days."""
        x = f"CAST({x} AS VARCHAR)"
        zoned, plain = (
            f"EXTRACT(EPOCH FROM CAST({x} AS {kind})) / {self.number(_DAY)}"
            for kind in ("TIMESTAMPTZ", "TIMESTAMP")
        )
        cases = [
            (self._is_missing_text(x), "NULL"),
            # Words such as yesterday are dates for PostgreSQL, and no numbers for anybody.
            (f"{x} ~ '^[^0-9]*$|^-?[0-9.]+([eE][-+]?[0-9]+)?$'", f"CAST({x} AS FLOAT8)"),
            (f"{x} ~ '.*:.*[-+A-Z].*'", zoned),
        ]
        return f"CAST({self.choose(cases, plain)} AS FLOAT8)"

    def _loose_number(self, x: str) -> str:
        """Write a number in SQLite, whose columns hold any type: text that is not a number is an error, not 0."""
        cases = [(f"TYPEOF({x}) <> 'text'", x)]
        cases += [(self._is_missing_text(x), "NULL")] if self._formula.takes_missing else []
        own = self.choose(cases, f"JSON_EXTRACT({x}, '$')")
        return f"CAST({own} AS FLOAT8)"

    def _loose_days(self, x: str) -> str:
        """Write days since 1970 in SQLite, whose dates are texts; its functions know no digits after milliseconds."""
        rest = f"SUBSTR({x}, 20)"
        seconds = f"STRFTIME('%s', SUBSTR({x}, 1, 19) || LTRIM({rest}, '.0123456789'))"
        days = f"({seconds} + CAST('0' || {rest} AS FLOAT8)) / {self.number(_DAY)}"
        is_date = f"{x} GLOB '[0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9]*'"
        return self.choose([(is_date, f"COALESCE({days}, JSON('no date: ' || {x}))")], self._loose_number(x))

    def _is_missing_text(self, x: str) -> str:
        return f"{x} IN ({', '.join(map(self.text, NULLS))})"

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
            x = self.source(value.sources[0])
            if value.method is None:
                emit(value.name, self.value(value), after)
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
        return f"OVER (PARTITION BY {self._prefix}qid)"

    def _if_varies(self, x: str, scaled: str) -> str:
        return f"CASE WHEN MAX({x}) {self._window} > MIN({x}) {self._window} THEN {scaled} ELSE {x} - {x} END"

    def _shares(self, x: str) -> str:
        low, high = f"MIN({x}) {self._window}", f"MAX({x}) {self._window}"
        return self._if_varies(x, f"({x} - {low}) / ({high} - {low})")

    def _scaled(self, value: Value, x: str) -> str:
        if value.method == "minmax":
            return self._shares(x)
        qid = f"{self._prefix}qid"
        place = f"CAST(RANK() OVER (PARTITION BY {qid}, {x} IS NULL ORDER BY {x}) AS FLOAT8)"
        tied = f"CAST(COUNT(*) OVER (PARTITION BY {qid}, {x}) AS FLOAT8)"
        present = f"CAST(COUNT({x}) {self._window} AS FLOAT8)"
        ranked = f"({place} - 1 + ({tied} - 1) / 2) / ({present} - 1)"
        return f"CASE WHEN {x} IS NULL THEN NULL ELSE {self._if_varies(x, ranked)} END"


def _balanced(terms: Sequence[str], operator: str = " + ") -> str:
    """Join terms as a balanced tree: databases limit how deep an expression may be."""
    if len(terms) <= 8:
        return operator.join(terms)
    middle = len(terms) // 2
    return f"({_balanced(terms[:middle], operator)})\n {operator}({_balanced(terms[middle:], operator)})"
