"""Tables as text with separators: what separates them, whether the first line names columns, whole or as a stream."""

from __future__ import annotations

import codecs
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from rankwise.data.tables.table_source import TABLE_ENDINGS, TableSource, of_table, one_line, plain_suffix
from rankwise.data.text.sources import Metered, Source, open_source, reading
from rankwise.exceptions import InvalidInputError

if TYPE_CHECKING:
    from pyarrow import RecordBatch

__all__ = ["NULLS", "is_number_text", "looks_like_csv", "of_csv"]

_DELIMITERS = (",", "\t", ";", "|")
NULLS = ("", "NA", "N/A", "NaN", "nan", "NULL", "null", "#N/A")  # in columns of numbers of text files


def looks_like_csv(path: Path) -> bool:
    """Tell whether the first line of a file is text with separators."""
    with path.open("rb") as stream:
        head = stream.read(1 << 16)
    return b"\0" not in head and any(one.encode() in head.partition(b"\n")[0] for one in _DELIMITERS)


@contextmanager
def _text_of(pa: ModuleType, path: Path) -> Iterator[RecordBatch]:
    """Open a file for reading its text; how it is compressed its first bytes say, or its name for LZ4."""
    if path.suffix.lower() == ".lz4":
        with pa.input_stream(str(path)) as stream:
            yield stream
        return
    with reading(str(path)), open_source(Source(str(path), str(path))) as stream:
        yield stream


def of_csv(pa: ModuleType, path: Path, text_columns: Sequence[str], *, is_streamed: bool) -> TableSource:
    """Open text; with `is_streamed` without reading it whole."""
    import pyarrow.csv  # noqa: PLC0415 - only when such a file is read

    with _text_of(pa, path) as stream:
        head = stream.read(1 << 16)
    _check_text(path, head)
    text = head.decode("utf-8-sig", "replace")
    header = text.splitlines()[0] if text.strip() else ""
    if not header.strip():
        raise InvalidInputError(f"{path} has no header line.", "give its columns names in the first line.")
    is_tabbed = plain_suffix(path) == ".tsv" and "\t" in header
    delimiter = "\t" if is_tabbed else max(_DELIMITERS, key=header.count)
    entries = header.split(delimiter)
    numbered = [str(at + 1) for at in range(len(entries))] if _is_row(entries) else None
    options = {
        "parse_options": pyarrow.csv.ParseOptions(delimiter=delimiter),
        "convert_options": pyarrow.csv.ConvertOptions(
            column_types=dict.fromkeys(filter(_is_name, text_columns), pa.string()), null_values=NULLS
        ),
    }
    if is_streamed:
        return _of_streamed_csv(pa, path, numbered, options)
    # Whole, because the type of a column is known only after its last row.
    try:
        with _text_of(pa, path) as stream:
            metered = Metered(stream, str(path))
            table = pyarrow.csv.read_csv(metered, pyarrow.csv.ReadOptions(column_names=numbered), **options)
    except pa.ArrowInvalid:
        # Again in one thread, which knows the number of the row that is wrong, and in blocks that hold long lines.
        with _text_of(pa, path) as stream:
            reading_options = pyarrow.csv.ReadOptions(
                use_threads=False, column_names=numbered, block_size=1 << 28
            )
            table = pyarrow.csv.read_csv(Metered(stream, str(path)), reading_options, **options)
    return of_table(path.name, table, first_line=2 if numbered is None else 1)


def _of_streamed_csv(
    pa: ModuleType, path: Path, numbered: list[str] | None, options: dict[str, Any]
) -> TableSource:
    """Open text that does not fit in memory; numbers are taken as doubles, for later ones may be no integers."""
    import pyarrow.csv  # noqa: PLC0415 - only when such a file is read

    reading_options = pyarrow.csv.ReadOptions(column_names=numbered, block_size=1 << 24)
    with _text_of(pa, path) as stream:
        first = pyarrow.csv.open_csv(stream, reading_options, **options).read_next_batch()
    types = {
        field.name: pa.float64()
        if pa.types.is_integer(field.type) or pa.types.is_null(field.type)
        else field.type
        for field in first.schema
    }
    schema = pa.schema(types.items())
    n_bytes = first.nbytes // max(1, first.num_rows)

    def batches(columns: Sequence[str], n_rows: int) -> Iterator[RecordBatch]:
        converting = pyarrow.csv.ConvertOptions(
            column_types=types, null_values=NULLS, include_columns=list(columns)
        )
        with _text_of(pa, path) as stream:
            try:
                for batch in pyarrow.csv.open_csv(
                    stream,
                    reading_options,
                    parse_options=options["parse_options"],
                    convert_options=converting,
                ):
                    for start in range(0, batch.num_rows, n_rows):
                        yield batch.slice(start, n_rows)
            except pa.ArrowInvalid as error:
                raise InvalidInputError(
                    f"{path} holds something else than its beginning: {one_line(error)}.",
                    "correct the entry, or read the file whole, without --stream.",
                ) from error

    return TableSource(path.name, schema, -1, n_bytes, batches, 2 if numbered is None else 1)


def _check_text(path: Path, head: bytes) -> None:
    """Raise where a file is no text, by how it begins."""
    if head.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise InvalidInputError(f"{path} is text in UTF-16, and CSV is read as UTF-8.", "save it as UTF-8.")
    try:
        # Letters of other encodings are not UTF-8 either, but they come without control characters.
        codecs.getincrementaldecoder("utf-8")().decode(head)  # the last letter may be cut off
        odd = b"\0"
    except UnicodeDecodeError:
        odd = bytes(set(range(32)) - set(b"\t\n\v\f\r"))
    at = next((at for at, byte in enumerate(head) if byte in odd), None)
    if at is not None:
        raise InvalidInputError(
            f"{path} is no text, as CSV is: byte {at} is 0x{head[at]:02x}.",
            f"check that the file is the one you mean; tables end in {', '.join(TABLE_ENDINGS)}.",
        )


def _is_row(entries: list[str]) -> bool:
    """Tell whether the first line of a text file is a row already, because it holds numbers and no names.

    Numbers are names if they are quoted, or count 0, 1, 2 and so on, as pandas calls columns that have no names.
    """
    words = [entry.strip() for entry in entries]
    counted = words[1:] if words[0] == "" else words  # beside an index without a name
    if counted == [str(at) for at in range(len(counted))]:
        return False
    filled = [word for word in words if word not in NULLS]
    return bool(filled) and all(map(is_number_text, filled))


def is_number_text(entry: object) -> bool:
    """Tell whether an entry of a text file reads as a number."""
    try:
        float(entry)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return False
    return True


def _is_name(given: object) -> bool:
    """Tell whether a column of a file can be called so; others are refused where columns are looked for."""
    return isinstance(given, str) and not any("\ud800" <= one <= "\udfff" for one in given)
