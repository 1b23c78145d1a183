"""Columns of Arrow batches become numbers and ids, or an error that shows what stands where."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from rankwise.arrays import AnyArray, Floats
from rankwise.data.tables.column_names import check_columns
from rankwise.data.tables.csv_files import NULLS, is_number_text
from rankwise.data.tables.table_source import TableSource, import_pyarrow
from rankwise.data.text.query_ids import decode_ids
from rankwise.exceptions import Change, InvalidInputError

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = [
    "amounts_of",
    "check_finite",
    "check_numeric",
    "doubles_of",
    "entries_of",
    "ids_of",
    "is_embedding",
    "is_number",
    "kind_of_ids",
    "numbers_of",
    "rows_of",
    "text_of_numbers",
    "texts_in",
    "texts_of",
]


_COMMA = re.compile(r"\s*[+-]?\d+(,\d+)+(\.\d+)?\s*")
_ROWS = 1 << 16


def is_number(kind: pa.DataType) -> bool:
    """Tell whether a column of this type holds numbers; missing values alone count as numbers."""
    types = import_pyarrow().types
    return bool(
        types.is_integer(kind)
        or types.is_floating(kind)
        or types.is_boolean(kind)
        or types.is_decimal(kind)
        or types.is_null(kind)
        or (types.is_dictionary(kind) and is_number(kind.value_type))
    )


def is_embedding(kind: pa.DataType) -> bool:
    """Tell whether each entry of a column of this type is a list of numbers."""
    types = import_pyarrow().types
    if hasattr(kind, "storage_type"):
        kind = kind.storage_type
    is_list = types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind)
    return bool(is_list and is_number(kind.value_type))


def text_of_numbers(source: TableSource, name: str) -> str | None:
    """Say which entry turned a column of numbers into text, by its first entries; None if it is just text."""
    pa = import_pyarrow()
    kind = source.schema.field(name).type
    if not (pa.types.is_string(kind) or pa.types.is_large_string(kind)):
        return None
    first = next(iter(source.batches([name], 1000)), None)
    entries = [] if first is None else [entry for entry in first.column(0).to_pylist() if not _is_null(entry)]
    are_numbers = sum(is_number_text(entry) for entry in entries)
    with_commas = sum(_COMMA.fullmatch(entry) is not None for entry in entries)
    if not entries or are_numbers + with_commas < len(entries) / 2:
        return None
    has_commas, row = with_commas > are_numbers, 0
    what = (
        "has a comma, and numbers are written with a decimal point and nothing between thousands"
        if has_commas
        else "is text in a column that else holds numbers"
    )
    for batch in source.batches([name], _ROWS):
        for at, entry in enumerate(batch.column(0).to_pylist()):
            if _is_null(entry):
                continue
            if _COMMA.fullmatch(entry) if has_commas else not is_number_text(entry):
                return f"{source.name}, column {name!r}, {source.place(row + at)}: {_show(entry)} {what}."
        row += batch.num_rows
    return (
        f"{source.name}, column {name!r} holds numbers that are written as text, such as {_show(entries[0])}."
    )


def _is_null(entry: object) -> bool:
    """Tell whether an entry stands for nothing, or would in a column of numbers."""
    return entry is None or entry in NULLS


def numbers_of(source: TableSource, name: str, column: object, first_row: int, *, hint: str) -> Floats:
    """Return one column of a batch as float64, none missing; `first_row` is where the batch starts in its table."""
    check_numeric(source, name, column, first_row, hint)
    values = doubles_of(column)
    check_finite(source, name, values, first_row, missing="never")
    return values


def amounts_of(sources: Sequence[TableSource], name: str, what: str, if_negative: str) -> Floats:
    """Return a column of all tables whose entries are numbers from 0 up, one for each of `what`."""
    parts = [np.empty(0)]
    for source in sources:
        check_columns(source, [name], "a column of the first table")
        row = 0
        for batch in source.batches([name], _ROWS):
            hint = f"pass one number a {what}."
            values = numbers_of(source, name, batch.column(0), row, hint=hint)
            if (values < 0).any():
                at = int(np.argmax(values < 0))
                raise InvalidInputError(
                    f"{source.name}, column {name!r}, {source.place(row + at)}: {values[at]:g} is negative.",
                    if_negative,
                )
            parts.append(values)
            row += batch.num_rows
    return np.concatenate(parts)


def texts_of(sources: Sequence[TableSource], name: str) -> npt.NDArray[np.str_]:
    """Return a column of all tables as texts; what is missing is empty."""
    parts = []
    for source in sources:
        check_columns(source, [name], "a column of the first table")
        for batch in source.batches([name], _ROWS):
            parts += [texts_in(batch.column(0))]
    return np.concatenate(parts) if parts else np.empty(0, dtype=np.str_)


def texts_in(column: pa.Array) -> npt.NDArray[np.str_]:
    """Return the entries of a column as texts; what is missing is empty."""
    entries = entries_of(column, "A column of ids")
    return np.array(["" if value is None else str(value) for value in entries], dtype=np.str_)


def entries_of(column: pa.Array, where: str) -> list[Any]:
    """Return what a column holds; `where` it stands is said of dates that no calendar of Python has."""
    with _values_of_python(column, where):
        entries: list[Any] = column.to_pylist()
    return entries


@contextmanager
def _values_of_python(column: pa.Array, where: str) -> Iterator[None]:
    try:
        yield
    except (ArithmeticError, LookupError, ValueError) as error:
        raise InvalidInputError(
            f"{where} holds {column.type} that Python has no value for ({error}).",
            "write the column as numbers or as text.",
        ) from error


def check_numeric(
    source: TableSource, name: str, column: pa.Array, first_row: int, hint: str, *changes: Change
) -> None:
    """Raise unless a column holds numbers; the error shows an entry that is none."""
    if is_number(column.type):
        return
    entries = entries_of(column, f"{source.name}, column {name!r}")
    wrong = [at for at, entry in enumerate(entries) if entry is not None and not is_number_text(entry)]
    at = next((at for at in wrong if not _is_null(entries[at])), wrong[0] if wrong else 0)
    entry = entries[at] if entries else ""
    raise InvalidInputError(
        f"{source.name}, column {name!r}, {source.place(first_row + at)}: {_show(entry)} is no number (the column "
        f"holds {column.type}).",
        hint,
        *changes,
    )


def doubles_of(column: pa.Array) -> Floats:
    """Return a column of numbers as float64; what is missing becomes NaN."""
    pa = import_pyarrow()
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if pa.types.is_boolean(column.type):
        column = column.cast(pa.uint8())
    if not pa.types.is_float64(column.type):
        column = column.cast(pa.float64(), safe=False)
    values: Floats = column.to_numpy(zero_copy_only=False)
    return values


def rows_of(source: TableSource, name: str, column: pa.Array, first_row: int, *, width: int | None) -> Floats:
    """Return a column of lists as a matrix; `width` is what lists before had."""
    pa = import_pyarrow()
    if not is_embedding(column.type):
        raise InvalidInputError(
            f"{source.name}, column {name!r} holds {column.type}, which is no list of numbers.",
            "name it in features if it holds one number per row; an embedding is a column of lists.",
            Change("features", "more"),
        )
    if isinstance(column, pa.ExtensionArray):
        column = column.storage
    if column.null_count:
        row = first_row + int(np.argmax(np.asarray(column.is_null())))
        raise InvalidInputError(
            f"{source.name}, column {name!r}, {source.place(row)}: the list is missing.",
            "drop those rows, or give them a list of zeros.",
        )
    lengths = np.asarray(pa.compute.list_value_length(column), dtype=np.int64)
    width = int(lengths[0]) if width is None and lengths.size else (width or 0)
    if (lengths != width).any():
        at = int(np.argmax(lengths != width))
        raise InvalidInputError(
            f"{source.name}, column {name!r}, {source.place(first_row + at)}: a list of {lengths[at]} numbers, where "
            f"those before have {width}.",
            "make all lists of the column the same length.",
        )
    return doubles_of(column.flatten()).reshape(lengths.size, width)


def ids_of(
    source: TableSource, name: str, column: pa.Array, first_row: int, role: str, kind: str = "U"
) -> AnyArray:
    """Return a column of ids: integers, floats, text, dates, whatever it holds, without missing ones.

    In text files all ids come as text; `kind` says what they become: see `decode_ids`.
    """
    pa = import_pyarrow()
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if pa.types.is_nested(column.type):
        raise InvalidInputError(
            f"{source.name}, column {name!r} holds {column.type}, which cannot be {role}.",
            "use a column of numbers or text.",
        )
    missing = np.asarray(column.is_null(nan_is_null=True))
    is_text = _is_text_ids(source, column.type)
    if is_text:  # a text file writes nothing for nothing, and in columns of numbers other words too
        nulls = pa.array(["", *(NULLS if kind != "U" else ())])
        missing = missing | np.asarray(pa.compute.is_in(column, nulls))
    if missing.any():
        row = first_row + int(np.argmax(missing))
        raise InvalidInputError(
            f"{source.name}, column {name!r}, {source.place(row)}: {role} is missing.",
            "give those rows an id, or drop them.",
        )
    if is_text and kind != "U":
        encoded = column.dictionary_encode()
        return np.asarray(decode_ids(encoded.dictionary.to_pylist(), kind)[np.asarray(encoded.indices)])
    with _values_of_python(column, f"{source.name}, column {name!r}"):
        return np.asarray(column.to_numpy(zero_copy_only=False))


def kind_of_ids(sources: Sequence[TableSource], name: str) -> str:
    """Return what the ids of all text files become, "i", "f" or "U"; other files say it themselves."""
    pa = import_pyarrow()
    texts: set[str | None] = set()
    for source in sources:
        if name in source.schema.names and _is_text_ids(source, source.schema.field(name).type):
            for batch in source.batches([name], 1 << 20):
                texts.update(pa.compute.unique(batch.column(0)).to_pylist())
    return decode_ids([text for text in texts if text is not None and text not in NULLS]).dtype.kind


def _is_text_ids(source: TableSource, kind: object) -> bool:
    return source.first_line is not None and bool(import_pyarrow().types.is_string(kind))


def check_finite(
    source: TableSource,
    name: str,
    values: Floats,
    first_row: int,
    *,
    missing: str,
    dtype: npt.DTypeLike = np.float64,
    start: npt.NDArray[np.int64] | None = None,
) -> None:
    """Raise where a value is infinite, in `dtype` too, or missing though that is an error.

    Parameters
    ----------
    source, name, first_row
        For the error: the table, the column, and the row that the values begin with.
    values : (rows, ...) float64
        With `start`: the values of all rows, those of row i from ``start[i]`` on.
    missing : {"error", "nan", "zero", "never"}
        "never" is of labels and the like, for which there is no other choice.
    """
    largest = np.finfo(np.dtype(dtype)).max
    bad = np.abs(values) > largest
    if missing in {"error", "never"}:
        bad |= np.isnan(values)
    if not bad.any():
        return
    at = np.unravel_index(int(np.argmax(bad)), bad.shape)
    value = float(values[at])
    changes = [Change("missing")] if np.isnan(value) and missing == "error" else []
    row = int(at[0]) if start is None else int(np.searchsorted(start, at[0], side="right")) - 1
    if np.isnan(value):
        what = "a missing value"
        remedy = "drop those rows or fill them in"
        remedy += (
            "; features may be missing with missing='nan', and are then imputed by a step of your pipeline."
            if missing == "error"
            else "; only features may be missing."
        )
    elif np.isinf(value):
        what, remedy = f"{value} is not finite", "replace it by a large number, or drop the row."
    else:
        what, remedy = f"{value} is too large for {np.dtype(dtype)}", "pass dtype=np.float64."
    raise InvalidInputError(
        f"{source.name}, column {name!r}, {source.place(first_row + row)}: {what}.", remedy, *changes
    )


def _show(entry: object) -> str:
    text = repr(entry)
    return text if len(text) <= 60 else text[:57] + "..."
