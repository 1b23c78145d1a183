"""Columns of tables: their kinds (numbers, dates, lists, text), names and roles."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from decimal import Decimal
from difflib import get_close_matches
from itertools import chain, islice
from typing import TYPE_CHECKING, Any

import numpy as np

from rankwise.arrays import AnyArray, Floats, MatrixLike
from rankwise.data.containers import as_array, is_null, readable
from rankwise.exceptions import InvalidInputError

if TYPE_CHECKING:
    from pyarrow import DataType, Schema

    from rankwise.data.tables import TableFile

# Texts that stand for a missing value in CSV files and in columns of text: these and no others, not even with spaces
# around them, so that an exported model can tell them apart as well.
NULLS = ("", "NA", "N/A", "NaN", "nan", "NULL", "null", "#N/A")
_DAY = np.timedelta64(1, "D")
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}([T ]\d{2}:\d{2}(:\d{2}(\.\d+)?)?)?Z?")
_COMMA = re.compile(r"\s*[+-]?\d+(,\d+)+(\.\d+)?\s*")
_SHOWN_COLUMNS = 12


# Names


def require_columns(table: str, names: Sequence[str], wanted: Sequence[str], role: str) -> None:
    """Raise unless a table has each of some columns, once."""
    for name in wanted:
        count = names.count(name)
        if count > 1:
            raise InvalidInputError(
                f"{table} has {count} columns named {name!r}.", "give each column a name of its own."
            )
        if count == 0:
            problem = f"{table} has no column {name!r}, which was named as {role}."
            raise InvalidInputError(problem, columns_hint(name, names))


def columns_hint(wanted: str, names: Sequence[str]) -> str:
    """List the columns of a table that lacks a requested column."""
    close = nearest_name(wanted, names)
    meant = "" if close is None else f"did you mean {close!r}? "
    return f"{meant}the columns are {some_names([repr(name) for name in names])}."


def names_of(table: Any) -> list[str]:
    """Return the names of the columns of a data frame, Arrow table or mapping; [] of anything else."""
    names: Any = getattr(table, "column_names", None)  # the columns of an Arrow table are their values
    if names is None:
        names = getattr(table, "columns", table if isinstance(table, Mapping) else ())
    return [str(name) for name in names]


def nearest_name(wanted: str, names: Sequence[str], cutoff: float = 0.6) -> str | None:
    """Return the likely intended name: one that differs in case, or a similar one."""
    small = wanted.strip().casefold()
    same = [name for name in names if name.strip().casefold() == small]
    return next(iter([*same, *get_close_matches(wanted, names, n=1, cutoff=cutoff)]), None)


def some_names(names: Sequence[str]) -> str:
    """List names, the first dozen if there are more."""
    more = f" and {len(names) - _SHOWN_COLUMNS} more" if len(names) > _SHOWN_COLUMNS else ""
    return ", ".join(names[:_SHOWN_COLUMNS]) + more


def column_name(position: int, first_column: int | None) -> str:
    """Name a column of data that only numbers its columns, from 0 or from 1."""
    return f"feature {position + (first_column or 0)}"


def first_column_of(name: str | None) -> int | None:
    """Return the number of the first column, 0 or 1, given its name; None if it is another name."""
    return {column_name(0, 0): 0, column_name(0, 1): 1}.get(name or "")


# Roles

_QUERY_NAMES = frozenset(
    {"qid", "query_id", "queryid", "query", "group", "group_id", "search", "search_id", "srch_id", "session_id"}
)  # fmt: skip
_ROW_NUMBERS = ("", "Unnamed: 0")  # the names of R and pandas for the numbers that they write before rows


@dataclass(frozen=True)
class Roles:
    """The role of each column of a table, as `decide_roles` finds it; a model file keeps it (`saved`).

    Attributes
    ----------
    label, qid, weight : str or None
        The columns of labels, query ids and row weights, where the table has them.
    ids : tuple of str
        Columns that name rows, the first of them for output; a model does not learn from them.
    queries : tuple of str
        Columns with a usual name of query ids, in a table whose column of query ids was not named; a model does not
        learn from them either.
    features : dict of str to str
        The columns to learn from, each with its kind: number, flag, date, list or text (see `kind_of_type`).
        `TableEncoder` decides by their values which texts are categories, and which columns are left out.
    unused : dict of str to str
        All other columns, with their kinds.
    """

    label: str | None = None
    qid: str | None = None
    weight: str | None = None
    ids: tuple[str, ...] = ()
    queries: tuple[str, ...] = ()
    features: dict[str, str] = field(default_factory=dict)
    unused: dict[str, str] = field(default_factory=dict)

    def of_kind(self, *kinds: str) -> list[str]:
        """Return the features of some kinds."""
        return [name for name, kind in self.features.items() if kind in kinds]

    def saved(self) -> dict[str, Any]:
        """Return the roles as JSON for the notes of a model."""
        return {role: value for role, value in asdict(self).items() if value and role != "unused"}

    @classmethod
    def restored(cls, saved: object) -> Roles:
        """Return roles that `saved` wrote; entries of other types are ignored, for a file may come from anywhere."""
        kinds: dict[str, Any] = dict.fromkeys(("label", "qid", "weight"), str)
        kinds |= {"ids": (list, tuple), "queries": (list, tuple), "features": dict}
        given = saved if isinstance(saved, dict) else {}
        return cls(**{role: given[role] for role, kind in kinds.items() if isinstance(given.get(role), kind)})


def decide_roles(
    schema: Schema,
    table: str,
    *,
    label: str | None = None,
    qid: str | None = None,
    weight: str | None = None,
    ids: Sequence[str] | None = None,
    features: Sequence[str] | None = None,
    others: Sequence[str] = (),
) -> Roles:
    """Decide the role of each column of a table, by the names that a caller gives and the usual ones.

    Parameters
    ----------
    schema : pyarrow.Schema
    table : str
        The name of the table in messages.
    label, qid : str, optional
        By default the columns ``label`` and ``qid``, if there are such columns.
    weight : str, optional
    ids : sequence of str, optional
        Columns that name rows; by default a column ``id``. Row numbers that R or pandas wrote are added.
    features : sequence of str, optional
        The columns to learn from; by default all that have no other role.
    others : sequence of str
        Columns that are features whatever their names, such as the sides of a cross.
    """
    kinds = {name: kind_of_type(kind) for name, kind in zip(schema.names, schema.types, strict=True)}
    given = {"label": [label], "qid": [qid], "weight": [weight], "id": ids or (), "features": features or ()}
    for role, names in given.items():
        require_columns(table, schema.names, [name for name in names if name is not None], role)
    free = {*kinds} - {name for names in given.values() for name in names}
    label = "label" if label is None and "label" in free else label
    qid = "qid" if qid is None and "qid" in free else qid
    once = [name for name in (label, qid, weight, *(features or ())) if name is not None]
    twice = next((name for at, name in enumerate(once) if name in once[:at]), None)
    if twice is not None:
        raise InvalidInputError(
            f"Column {twice!r} of {table} has two roles among label, qid, weight and features.",
            "name each column once.",
        )
    taken = {*once, *others, *(ids or ())}
    usual = [*(("id",) if ids is None else ()), *_ROW_NUMBERS]
    row_names = (*(ids or ()), *(name for name in usual if name in kinds and name not in taken))
    taken.update(row_names)
    queries = [name for name in kinds if qid is None and name.lower() in _QUERY_NAMES and name not in taken]
    other = {label, qid, weight, *row_names, *queries}
    chosen = [name for name in kinds if name not in other] if features is None else list(features)
    unused = {name: kind for name, kind in kinds.items() if name not in {*other, *chosen}}
    return Roles(
        label, qid, weight, row_names, tuple(queries), {name: kinds[name] for name in chosen}, unused
    )


# Kinds


def kind_of_type(kind: DataType) -> str:
    """Return the kind of an Arrow type: number, flag, date, list or text. Missing values alone count as numbers."""
    from pyarrow import types  # noqa: PLC0415 - whoever has such a type has pyarrow

    if types.is_dictionary(kind):
        return kind_of_type(kind.value_type)
    kind = getattr(kind, "storage_type", kind)
    if types.is_boolean(kind):
        return "flag"
    if types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind) or types.is_null(kind):
        return "number"
    if types.is_temporal(kind):
        return "date"
    if types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind):
        return "list" if kind_of_type(kind.value_type) in {"number", "flag"} else "text"
    return "text"


def number_text_problem(file: TableFile, name: str) -> str | None:
    """Name the entry that turned a column of numbers into text, by its first entries; None if it is just text."""
    from pyarrow import types  # noqa: PLC0415 - whoever has a table has pyarrow

    kind = file.schema.field(name).type
    if not (types.is_string(kind) or types.is_large_string(kind)):
        return None
    entries = (
        (row, entry)
        for batch in file.batches([name])
        for row, entry in enumerate(batch.data.column(0).to_pylist(), start=batch.row)
        if entry is not None and entry not in NULLS
    )
    first = list(islice(entries, 1000))
    n_numbers = sum(reads_as_number(entry) for _, entry in first)
    n_commas = sum(_COMMA.fullmatch(entry) is not None for _, entry in first)
    if not first or n_numbers + n_commas < len(first) / 2:
        return None
    has_commas = n_commas > n_numbers
    for row, entry in chain(first, entries):
        if _COMMA.fullmatch(entry) if has_commas else not reads_as_number(entry):
            problem = "is text in a column of numbers"
            if has_commas:
                problem = (
                    "has a comma; numbers are written with a decimal point and nothing between thousands"
                )
            return f"{file.name}, column {name!r}, {file.place(row)}: {entry!r:.60} {problem}."
    return (
        f"{file.name}, column {name!r} holds numbers that are written as text, such as {first[0][1]!r:.60}."
    )


def reads_as_number(entry: str) -> bool:
    """Tell whether an entry of a CSV file reads as a number."""
    try:
        float(entry)
    except ValueError:
        return False
    return True


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
    own = names_of(X)
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
        column = X.iloc[:, at]
        kind = getattr(column.dtype, "kind", "O")
        if kind in "bM" and isinstance(column.dtype, np.dtype):
            return np.asarray(column)
        if kind in "iuf":
            return np.asarray(column.to_numpy(dtype=np.float64, na_value=np.nan))
    else:
        column = X.column(at) if hasattr(X, "column_names") else X.get_columns()[at]
        if hasattr(column, "to_pylist") and kind_of_type(column.type) == "number":
            return np.asarray(column.cast("float64", safe=False))
    values = column.to_pylist() if hasattr(column, "to_pylist") else column.to_list()
    found = np.empty(len(values), dtype=object)
    found[:] = values
    return found


def _column(name: str, values: AnyArray, *, is_text: bool) -> Column:
    stored = {"b": "flag", "i": "number", "u": "number", "f": "number", "M": "date"}.get(values.dtype.kind)
    if stored is not None:
        return Column(name, stored, _days(values) if stored == "date" else values.astype(np.float64))
    values = values.astype(object)
    known = [value for value in values if not is_null(value)]
    if all(isinstance(value, (bool, np.bool_)) for value in known) and known:
        return Column(name, "flag", _numbers(values))
    if all(isinstance(value, (int, float, np.number, Decimal)) for value in known):
        return Column(name, "number", _numbers(values))
    if isinstance(known[0], (dt.date, np.datetime64)):
        dates = [np.datetime64("NaT") if is_null(value) else _moment(value) for value in values]
        return Column(name, "date", _days(np.array(dates, dtype="datetime64[us]")))
    if isinstance(known[0], (list, tuple, np.ndarray)):
        return Column(name, "list", _lists(name, values))
    return _text(name, values, is_text=is_text)


def _text(name: str, values: AnyArray, *, is_text: bool) -> Column:
    words = [
        None
        if is_null(value)
        else value.decode(errors="backslashreplace")
        if isinstance(value, bytes)
        else str(value)
        for value in values
    ]
    texts = np.array([None if word in NULLS else word for word in words], dtype=object)
    known = [text for text in texts if text is not None]
    if not is_text and known and all(map(_DATE.fullmatch, known)):
        days = ["NaT" if text is None else text.rstrip("Z") for text in texts]
        with suppress(ValueError):  # 2024-13-01 is a text
            return Column(name, "date", _days(np.array(days, dtype="datetime64[us]")))
    return Column(name, "text", texts)


def _moment(value: dt.date) -> np.datetime64:
    if isinstance(value, dt.datetime) and value.tzinfo is not None:
        value = value.astimezone(dt.UTC).replace(tzinfo=None)
    moment: np.datetime64 = np.datetime64(value, "us")
    return moment


def _days(values: AnyArray) -> Floats:
    days = (values.astype("datetime64[us]") - np.datetime64(0, "us")) / _DAY
    return np.asarray(days, dtype=np.float64)


def _numbers(values: AnyArray) -> Floats:
    return np.array([np.nan if is_null(value) else float(value) for value in values])


def _lists(name: str, values: AnyArray) -> Floats:
    rows = [None if is_null(value) else np.asarray(value, dtype=np.float64) for value in values]
    shapes = {row.shape for row in rows if row is not None}
    shape = shapes.pop()
    if shapes or len(shape) != 1:
        problem = f"The lists of column {name!r} have different lengths."
        raise InvalidInputError(problem, "make them of one length, or leave the column out.")
    return np.array([np.full(shape, np.nan) if row is None else row for row in rows])
