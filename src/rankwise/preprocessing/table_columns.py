"""Columns of data frames, Arrow tables and arrays, as numbers, lists or objects, whatever they are stored as."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np
import numpy.typing as npt

from rankwise.arrays import AnyArray, Floats, MatrixLike
from rankwise.data.containers import as_array, readable
from rankwise.data.tables.arrow_columns import entries_of
from rankwise.exceptions import InvalidInputError

__all__ = ["MISSING_TEXTS", "Column", "is_table_like", "needs_encoding", "read_columns"]

Objects = npt.NDArray[np.object_]

_DAY = np.timedelta64(1, "D")
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}([T ]\d{2}:\d{2}(:\d{2}(\.\d+)?)?)?Z?")
# Text that means that nothing is known, as in the columns of numbers of text files: these and no others, not even with
# spaces around them, so that an exported model can tell them apart as well.
MISSING_TEXTS = ("", "NA", "N/A", "NaN", "nan", "NULL", "null", "#N/A")


@dataclass(frozen=True)
class Column:
    """One column.

    Attributes
    ----------
    name : str
    kind : {"number", "flag", "date", "list", "text"}
    values : (rows,) float64, or (rows, width) float64 for lists, or (rows,) object for text
        NaN, or None, where nothing is known. Dates are days since 1970.
    """

    name: str
    kind: str
    values: AnyArray


def is_table_like(X: object) -> bool:
    """Tell whether something has named columns of different types."""
    readable("X", X)
    return hasattr(X, "columns") or (hasattr(X, "column_names") and hasattr(X, "column"))


def needs_encoding(X: MatrixLike) -> bool:
    """Tell whether a table has a column that is not numbers, or lacks some."""
    return any(column.kind != "number" or bool(np.isnan(column.values).any()) for column in read_columns(X))


def read_columns(
    X: MatrixLike, names: Sequence[str] | None = None, texts: Collection[str] = ()
) -> list[Column]:
    """Read the columns of a table, or some of them; of an array all, called ``x0``, ``x1``, and so on.

    Parameters
    ----------
    X : data frame, Arrow table or array
    names : sequence of str, optional
        Which columns.
    texts : collection of str
        Columns whose texts are names, though they may all look like dates.
    """
    if not is_table_like(X):
        array = as_array("X", X)
        if array.ndim != 2:
            raise InvalidInputError(f"X has {array.ndim} dimensions.", "pass a table or a matrix of rows.")
        found = {f"x{at}": array[:, at] for at in range(array.shape[1])}
        return [_column(name, found[name], is_text=name in texts) for name in _wanted(names, list(found))]
    own = [str(name) for name in getattr(X, "column_names", None) or getattr(X, "columns")]  # noqa: B009
    chosen = _wanted(names, own)
    if len(set(own)) != len(own):
        twice = next(name for at, name in enumerate(own) if name in own[:at])
        raise InvalidInputError(f"X has several columns named {twice!r}.", "give each a name of its own.")
    return [_column(name, _plain(X, own.index(name)), is_text=name in texts) for name in chosen]


def _wanted(names: Sequence[str] | None, own: Sequence[str]) -> list[str]:
    lacking = [name for name in names or () if name not in own]
    if lacking:
        raise InvalidInputError(
            f"X lacks {len(lacking)} of the columns that were learned from, such as {lacking[0]!r}.",
            "pass a table with the columns of the training table, under the same names.",
        )
    return list(own if names is None else names)


def _plain(X: Any, at: int) -> AnyArray:
    """Return one column as an array, of objects where it is not numbers."""
    if hasattr(X, "iloc"):  # pandas
        series = X.iloc[:, at]
        kind = getattr(series.dtype, "kind", "O")
        if kind in "iufb" and series.dtype.name != "category":
            has_flags = kind == "b" and not series.isna().any()
            return np.asarray(
                series.to_numpy(np.bool_) if has_flags else series.to_numpy(dtype=np.float64, na_value=np.nan)
            )
        if kind == "M":
            tz = getattr(series.dtype, "tz", None)
            series = series if tz is None else series.dt.tz_convert("UTC").dt.tz_localize(None)
            return np.asarray(series.to_numpy(dtype="datetime64[us]"))
        return np.array([None if _is_null(value) else value for value in series], dtype=object)
    column = X.column(at) if hasattr(X, "column_names") else X.get_columns()[at]
    values = entries_of(column, f"Column {at}") if hasattr(column, "to_pylist") else column.to_list()
    kinds = {type(value) for value in values if value is not None}
    if kinds <= {int, float}:
        return np.array([np.nan if value is None else float(value) for value in values])
    if kinds == {bool} and None not in values:
        return np.array(values, dtype=np.bool_)
    found = np.empty(len(values), dtype=object)
    found[:] = values
    return found


def _is_null(value: object) -> bool:
    return (
        value is None
        or (isinstance(value, float) and np.isnan(value))
        or type(value).__name__ in {"NAType", "NaTType"}
    )


def _column(name: str, values: AnyArray, *, is_text: bool) -> Column:
    stored = {"b": "flag", "i": "number", "u": "number", "f": "number", "M": "date"}.get(values.dtype.kind)
    if stored is not None:
        return Column(name, stored, _days(values) if stored == "date" else values.astype(np.float64))
    values = values.astype(object)
    known = [value for value in values if not _is_null(value)]
    if all(isinstance(value, (bool, np.bool_)) for value in known) and known:
        return Column(name, "flag", _numbers(values))
    if all(isinstance(value, (int, float, np.number, Decimal)) for value in known):
        return Column(name, "number", _numbers(values))
    if isinstance(known[0], (dt.date, np.datetime64)):
        dates = [np.datetime64("NaT") if _is_null(value) else _moment(value) for value in values]
        return Column(name, "date", _days(np.array(dates, dtype="datetime64[us]")))
    if isinstance(known[0], (list, tuple, np.ndarray)):
        return Column(name, "list", _lists(name, values))
    return _text(name, values, is_text=is_text)


def _text(name: str, values: AnyArray, *, is_text: bool) -> Column:
    words = [None if _is_null(value) else _decoded(name, value) for value in values]
    texts = np.array([None if word in MISSING_TEXTS else word for word in words], dtype=object)
    known = [text for text in texts if text is not None]
    if not is_text and known and all(map(_DATE.fullmatch, known)):
        days = ["NaT" if text is None else text.rstrip("Z") for text in texts]
        with suppress(ValueError):  # 2024-13-01 is a text
            return Column(name, "date", _days(np.array(days, dtype="datetime64[us]")))
    return Column(name, "text", texts)


def _decoded(name: str, value: object) -> str:
    if not isinstance(value, bytes):
        return str(value)
    try:
        return value.decode()
    except UnicodeDecodeError as error:
        raise InvalidInputError(
            f"Column {name!r} holds {value!r:.60}, which is no text in UTF-8.",
            "save the table as UTF-8, or leave the column out.",
        ) from error


def _moment(value: dt.date) -> np.datetime64:
    if isinstance(value, dt.datetime) and value.tzinfo is not None:
        value = value.astimezone(dt.UTC).replace(tzinfo=None)
    moment: np.datetime64 = np.datetime64(value, "us")
    return moment


def _days(values: AnyArray) -> Floats:
    days = (values.astype("datetime64[us]") - np.datetime64(0, "us")) / _DAY
    return np.asarray(days, dtype=np.float64)


def _numbers(values: AnyArray) -> Floats:
    return np.array([np.nan if _is_null(value) else float(value) for value in values])


def _lists(name: str, values: AnyArray) -> Floats:
    rows = [None if _is_null(value) else np.asarray(value, dtype=np.float64) for value in values]
    widths = {row.shape for row in rows if row is not None}
    if len(widths) != 1 or len(next(iter(widths))) != 1:
        raise InvalidInputError(
            f"The lists of column {name!r} have different lengths.",
            "make them of one length, or leave the column out.",
        )
    width = next(iter(widths))[0]
    return np.array([np.full(width, np.nan) if row is None else row for row in rows])
