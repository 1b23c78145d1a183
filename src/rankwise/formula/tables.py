"""`TableEncoder` as steps of columns: missing values, categories, dates, lists and crosses.

An encoder reads some texts as missing values, such as ``NA``. They are levels here, so that every program that runs
the formula does the same. Booleans are 1 and 0, dates are days since 1970, and a list is one column per place,
``name[0]`` and so on.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import numpy as np
import numpy.typing as npt

from rankwise.arrays import Floats, MatrixLike
from rankwise.data.columns import NULLS, read_columns
from rankwise.exceptions import InvalidInputError
from rankwise.formula.formula import Column, Product
from rankwise.formula.steps import Fill, IsMissing, Levels
from rankwise.preprocessing.column_steps import (
    MISSING,
    OTHER,
    ColumnStep,
    as_texts,
    held_text,
    knots_as_written,
    levels_of,
)
from rankwise.preprocessing.table_encoder import TableEncoder, sides_of


def inputs_of(encoder: TableEncoder) -> tuple[list[str], tuple[int, ...]]:
    """Return a name for each number or text that the encoder reads of a row, and which of them are dates."""
    steps = [(name, step["kind"]) for step in _read(encoder) for name in _names(step)]
    return [name for name, _ in steps], tuple(at for at, (_, kind) in enumerate(steps) if kind == "date")


def rows_as_read(encoder: TableEncoder, X: MatrixLike) -> npt.NDArray[np.object_]:
    """Return rows as the encoder reads them, one entry per input."""
    taken = _read(encoder)
    texts = [step["name"] for step in taken if held_text(step)]
    read = {one.name: one for one in read_columns(X, [step["name"] for step in taken], texts=texts)}
    n_rows = next(iter(read.values())).values.shape[0]
    parts = []
    for step in taken:
        column = read[step["name"]]
        values = as_texts(column.values) if held_text(step) and column.kind != "text" else column.values
        parts.append(values.astype(object).reshape(n_rows, -1)[:, : len(_names(step))])
    return np.hstack(parts)


def rows_as_written(encoder: TableEncoder, rows: npt.NDArray[np.object_]) -> npt.NDArray[np.object_]:
    """Return `rows_as_read` with dates and booleans as people write them."""
    out = rows.copy()
    inputs = [step for step in _read(encoder) for _ in _names(step)]
    for at, step in enumerate(inputs):
        if step["kind"] in {"date", "flag"}:
            known = ~np.isnan(rows[:, at].astype(np.float64))
            out[known, at] = knots_as_written(step, rows[known, at].astype(np.float64))
    return out


def codes_as_written(encoder: TableEncoder, codes: Floats) -> npt.NDArray[np.object_]:
    """Return the rows of an encoder of codes as people write them."""
    out = codes.astype(object)
    for at, step in enumerate(encoder.columns_):
        known = ~np.isnan(codes[:, at])
        written = knots_as_written(step, codes[known, at])
        if written is not None:
            out[known, at] = written
    return out


def columns_of_encoder(encoder: TableEncoder, columns: Sequence[Column]) -> list[Column]:
    """Return the columns that a fitted encoder makes."""
    if encoder.codes:
        read = iter(columns)  # a column that is left out has no curve, and any other stands for it
        steps = encoder.columns_
        return [columns[0] if step["kind"] == "left out" else _coded(step, next(read)) for step in steps]
    made: dict[str, list[Column]] = {}
    out: list[Column] = []
    at = 0
    for step in _read(encoder):
        own = columns[at : at + len(_names(step))]
        at += len(own)
        made[step["name"]] = _made(step, own)
        out += [] if step.get("only_crossed") else made[step["name"]]
    names = [step["name"] for step in encoder.columns_]
    for cross in encoder.crosses:
        first, second = (made[name] for name in sides_of(cross, names))
        out += [Column(Product(a, b)) for a, b in product(first, second)]
    return out


def _read(encoder: TableEncoder) -> list[ColumnStep]:
    return [step for step in encoder.columns_ if step["kind"] != "left out"]


def _names(step: ColumnStep) -> list[str]:
    name = str(step["name"])
    return [f"{name}[{at}]" for at in range(np.size(step["fill"]))] if step["kind"] == "list" else [name]


def _made(step: ColumnStep, columns: Sequence[Column]) -> list[Column]:
    kind = step["kind"]
    if kind == "list":
        return [
            column.then(Fill(float(fill)))
            for column, fill in zip(columns, np.ravel(step["fill"]), strict=True)
        ]
    (column,) = columns
    if kind == "category":
        return [column.then(one) for one in _categories(step)]
    if kind == "words":
        raise InvalidInputError(
            f"Column {step['name']!r} is split into words, which cannot be exported or explained.",
            "count the words before rankwise gets the table, or train without the column.",
        )
    assert isinstance(step["fill"], float | int)  # of a list it is a list
    filled = column.then(Fill(float(step["fill"])))
    return [filled, column.then(IsMissing())] if step["missing"] else [filled]


def _coded(step: ColumnStep, column: Column) -> Column:
    """Return the codes of a category; other columns stay as they are."""
    if step["kind"] != "category":
        return column
    levels: list[str | float] = [_level(step, level) for level in step["levels"]]
    gone = () if step.get("of_numbers") else NULLS
    other = float(len(levels)) if step["rare"] else np.nan
    codes = (*map(float, range(len(levels))), *(np.nan for _ in gone))
    return column.then(Levels((*levels, *gone), codes, other, np.nan))


def _categories(step: ColumnStep) -> list[Levels]:
    """Return a step for each level: 1 where it is the row's."""
    levels = [_level(step, level) for level in step["levels"]]
    is_text = not levels or isinstance(levels[0], str)
    gone = NULLS if is_text else ()
    # Missing values count as rare where training had none missing, and have no level without rare ones.
    names = levels_of(step)
    nowhere = MISSING if step.get("has_missing") else OTHER
    out = [Levels((level,), (1.0,)) for level in levels]
    for name in names[len(levels) :]:
        takes_missing = float(name == nowhere)
        known = tuple(levels) if name == OTHER else ()
        out.append(
            Levels(
                (*known, *gone),
                (0.0,) * len(known) + (takes_missing,) * len(gone),
                float(name == OTHER),
                takes_missing,
            )
        )
    return out


def _level(step: ColumnStep, level: str) -> str | float:
    return float(level) if step.get("of_numbers") else level
