"""Encoding of one column of a table: its numbers, their column names, and a description in words."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, TypeAlias, TypedDict

import numpy as np
import scipy.sparse as sp

from rankwise.arrays import AnyArray, Floats
from rankwise.data.columns import Column
from rankwise.exceptions import InvalidInputError

if TYPE_CHECKING:
    from sklearn.feature_extraction.text import HashingVectorizer, TfidfVectorizer

# The name of the level that stands for all rare ones and for levels that training did not have.
OTHER, MISSING = "(other)", "(missing)"

_HELD = {"number": "numbers", "flag": "yes or no", "date": "dates", "list": "lists", "text": "texts"}

Block: TypeAlias = "Floats | sp.csr_matrix"  # the columns of numbers that one column becomes


class ColumnStep(TypedDict, total=False):
    """The encoding of a column, as plain values that a model file stores.

    Attributes
    ----------
    name : str
    kind : {"number", "flag", "date", "category", "list", "words", "left out"}
    fill : float, or list of float for lists
        The replacement of missing values.
    missing : int
        How many values were missing in training.
    levels : list of str
    of_numbers : bool
        Whether the levels are numbers, written as text.
    rare : int
        How many levels have no column of their own.
    has_missing : bool
        Whether missing is a level.
    method : {"hash", "tf-idf"}
    width : int
    vocabulary : list of str
    idf : list of float
    why : str
        Why it is left out.
    only_crossed : bool
    """

    name: str
    kind: str
    fill: float | list[float]
    missing: int
    levels: list[str]
    of_numbers: bool
    rare: int
    has_missing: bool
    method: str
    width: int
    vocabulary: list[str]
    idf: list[float]
    why: str
    only_crossed: bool


def as_texts(values: Floats) -> AnyArray:
    """Write numbers that are names, with every digit: two numbers are never one name, and 0 and -0 are."""
    return np.array([None if np.isnan(value) else _written(value + 0.0) for value in values], dtype=object)


def _written(value: float) -> str:
    return f"{value:.0f}" if value == np.rint(value) else repr(float(value))


def texts(values: Iterable[object]) -> list[str]:
    """Return texts, with empty strings for missing values."""
    return ["" if value is None else str(value) for value in values]


def encode(step: ColumnStep, column: Column) -> Block:
    """Return the numbers that a column becomes."""
    kind, values = step["kind"], column.values
    if kind == "words":
        return _vectorizer(step).transform(texts(values))
    if kind == "category":
        values = values if column.kind == "text" else as_texts(values)
        place = {level: at for at, level in enumerate(levels_of(step))}
        other = place.get(OTHER, -1)
        at = _places(step, values, other, place.get(MISSING, other))
        block = np.zeros((at.size, len(place)))
        block[np.flatnonzero(at >= 0), at[at >= 0].astype(np.int64)] = 1.0
        return block
    _check_kind(step, column)
    if kind == "list":
        fill = np.asarray(step["fill"])
        if values.shape[1] != fill.size:
            raise InvalidInputError(
                f"The lists of column {step['name']!r} have {values.shape[1]} numbers, and {fill.size} in training.",
                "pass lists of that length.",
            )
        return np.where(np.isnan(values), fill, values)
    is_missing = np.isnan(values)
    filled = np.where(is_missing, step["fill"], values)
    return np.column_stack([filled, is_missing] if step["missing"] else [filled]).astype(np.float64)


def encode_as_codes(step: ColumnStep, column: Column) -> Floats:
    """Return a column as curves read it: codes of levels in their order, and NaN for missing values."""
    if step["kind"] == "category":
        values = column.values if column.kind == "text" else as_texts(column.values)
        return _places(step, values, float(len(step["levels"])) if step["rare"] else np.nan, np.nan)
    _check_kind(step, column)
    return np.asarray(column.values, dtype=np.float64)


def _places(step: ColumnStep, values: AnyArray, other: float, missing: float) -> Floats:
    """Return the place of each text among the levels."""
    place = {level: float(at) for at, level in enumerate(step["levels"])}
    return np.array([missing if value is None else place.get(value, other) for value in values])


def knots_as_written(step: ColumnStep, knots: Floats) -> list[str] | None:
    """Write the knots of a curve of the column's codes as they stand in tables; None for plain numbers."""
    if step["kind"] == "category":
        names = [*step["levels"], "other"]
        return [names[int(code)] for code in knots]
    if step["kind"] == "flag":
        return [str(bool(value)) for value in knots]
    if step["kind"] == "date":
        moments = np.datetime64(0, "s") + np.round(knots * 86400).astype("timedelta64[s]")
        has_days = not (knots % 1).any()
        return [str(moment) for moment in moments.astype("datetime64[D]" if has_days else "datetime64[s]")]
    return None


def _check_kind(step: ColumnStep, column: Column) -> None:
    """Raise if the type of a column differs from training; columns of unknown type accept any."""
    kind, values = step["kind"], column.values
    is_other = column.kind == "text" or (kind == "list") != (column.kind == "list")
    if is_other or ((kind == "date") != (column.kind == "date") and not np.isnan(values).all()):
        raise InvalidInputError(
            f"Column {step['name']!r} held {_HELD[kind]} in training, and holds {_HELD[column.kind]} here.",
            "write dates as 2020-12-31, as training had them."
            if kind == "date"
            else "pass columns of the types that training had.",
        )
    if np.isinf(values).any():
        row = int(np.argmax(np.isinf(values.reshape(len(values), -1)).any(axis=1)))
        raise InvalidInputError(
            f"Column {step['name']!r} is infinite in row {row}.",
            "replace it by a large number, or drop the row.",
        )


def held_text(step: ColumnStep) -> bool:
    """Tell whether the column held texts in training, so that it is text wherever it is read again."""
    return step["kind"] == "words" or (step["kind"] == "category" and not step.get("of_numbers"))


def levels_of(step: ColumnStep) -> list[str]:
    """Return the names of the levels of a category, those that stand for others last."""
    extra = [OTHER] if step["rare"] else []
    return [*step["levels"], *extra, *([MISSING] if step.get("has_missing") else [])]


def _vectorizer(step: ColumnStep) -> HashingVectorizer | TfidfVectorizer:
    from sklearn.feature_extraction.text import (  # noqa: PLC0415 - only where there are words
        HashingVectorizer,
        TfidfVectorizer,
    )

    if step["method"] == "hash":
        return HashingVectorizer(n_features=step["width"], alternate_sign=False)
    made = TfidfVectorizer(sublinear_tf=True, vocabulary=step["vocabulary"])
    made.idf_ = np.asarray(step["idf"])
    return made


def column_names(step: ColumnStep) -> list[str]:
    """Name the columns of numbers."""
    name, kind = step["name"], step["kind"]
    if kind == "category":
        return [f"{name}={level}" for level in levels_of(step)]
    if kind == "list":
        return [f"{name}[{at}]" for at in range(np.size(step["fill"]))]
    if kind == "words":
        words = step.get("vocabulary") or range(step["width"])
        return [f"{name}~{word}" for word in words]
    return [name, f"{name} missing"] if step["missing"] else [name]


def describe(step: ColumnStep, *, codes: bool = False) -> str:
    """Describe the encoding of the column."""
    kind = step["kind"]
    if kind == "left out":
        return f"left out, because {step['why']}"
    if kind == "category":
        n_levels = len(step["levels"])
        n_rare = step["rare"]
        rare = "" if not n_rare else f", and {n_rare:,} rare one{'s together' if n_rare > 1 else ''}"
        missing = ", missing is one more" if step.get("has_missing") else ""
        words = f"a category of {n_levels} value{'s' * (n_levels != 1)}{rare}{missing}"
    elif kind == "list":
        words = f"lists of {np.size(step['fill'])} numbers"
    elif kind == "words":
        words = (
            f"words, hashed into {step['width']:,} columns"
            if step["method"] == "hash"
            else f"{len(step['vocabulary']):,} words by tf-idf"
        )
    else:
        what = {"number": "a number", "flag": "yes or no, as 1 and 0", "date": "a date, in days since 1970"}[
            kind
        ]
        n_missing = step["missing"]
        words = what + (
            f", {n_missing:,} missing"
            + ("" if codes else f": filled with {step['fill']:.6g}, and marked in a column")
            if n_missing
            else ""
        )
    return words + (", only crossed: it has one value inside every query" if step.get("only_crossed") else "")
