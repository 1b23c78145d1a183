"""Tables as streams of Arrow batches, whatever they are stored as: Parquet, Arrow IPC, Feather, CSV, data frames.

pyarrow is imported when a table is opened.
"""

from __future__ import annotations

import codecs
import glob
import os
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from rankwise.data.text.sources import Metered, Source, open_source, reading
from rankwise.exceptions import InvalidInputError, MissingPackageError

if TYPE_CHECKING:
    from pyarrow import RecordBatch, Table

__all__ = [
    "NULLS",
    "TABLE_ENDINGS",
    "TableSource",
    "import_pyarrow",
    "is_number_text",
    "is_table",
    "open_sources",
]

TABLE_ENDINGS = (".parquet", ".pq", ".arrow", ".ipc", ".feather", ".arrows", ".csv", ".tsv")
_COMPRESSIONS = (".gz", ".bz2", ".xz", ".zst", ".lz4")
_DELIMITERS = (",", "\t", ";", "|")
NULLS = ("", "NA", "N/A", "NaN", "nan", "NULL", "null", "#N/A")  # in columns of numbers of text files


@dataclass(frozen=True)
class TableSource:
    """One table, opened.

    Attributes
    ----------
    name : str
        The file's name, for errors.
    schema : pa.Schema
    n_rows : int
    row_bytes : int
        About how much a row takes in memory.
    batches : callable
        Takes a list of column names and a number of rows, and yields record batches of those columns.
    groups : callable or None
        Takes a list of column names and a number of bytes, and yields tables of some of those columns and some of the
        rows, each with the number of its first row; every column of every row comes once. None where batches do.
    first_line : int or None
        The line of a text file that row 0 stands in, 1 if there are no names above; None for files without lines.
    """

    name: str
    schema: Any
    n_rows: int
    row_bytes: int
    batches: Callable[[Sequence[str], int], Iterator[Any]]
    first_line: int | None = None
    groups: Callable[[Sequence[str], int], Iterator[tuple[int, Table]]] | None = None

    @property
    def is_numbered(self) -> bool:
        """Whether the columns are called by their number, from 1, because the file does not name them."""
        return self.first_line == 1

    def place(self, row: int) -> str:
        """Say where a row is."""
        line = "" if self.first_line is None else f" (line {row + self.first_line})"
        return f"row {row}{line}"


def is_table(source: object) -> bool:
    """Tell whether this is a table: by its name if it is a path, else a data frame or Arrow table."""
    if isinstance(source, (str, os.PathLike)):
        return _plain_suffix(Path(os.fsdecode(source))) in TABLE_ENDINGS
    return (
        isinstance(source, TableSource)
        or hasattr(source, "__arrow_c_stream__")
        or hasattr(source, "__dataframe__")
    )


def import_pyarrow() -> ModuleType:
    """Import pyarrow, or say how to get it."""
    try:
        import pyarrow as pa  # noqa: PLC0415 - only when a table is read or written
        import pyarrow.compute  # noqa: PLC0415 - the same
    except ImportError as error:
        raise MissingPackageError(
            "Tables are read and written by pyarrow, which is not installed.",
            "pip install 'rankwise[tables]'.",
        ) from error
    module: ModuleType = pa
    return module


def open_sources(
    source: object, text_columns: Sequence[str] = (), *, is_streamed: bool = False
) -> list[TableSource]:
    """Open everything a caller may mean by a table.

    Parameters
    ----------
    source : path, glob, folder, data frame, Arrow table, open table, or list of those
    text_columns : list of str
        Columns that are text in files that do not say what they hold, so that ids stay as they are written.
    is_streamed : bool
        Whether text files are not read whole: what their columns hold is told by their beginning, and how many rows
        there are is not known (-1).
    """
    pa = import_pyarrow()
    if isinstance(source, (list, tuple)):
        if not source:
            raise InvalidInputError("The list of tables is empty.", "pass at least one file.")
        return [
            opened for one in source for opened in open_sources(one, text_columns, is_streamed=is_streamed)
        ]
    if isinstance(source, (str, os.PathLike)):
        return [_open_file(pa, path, text_columns, is_streamed=is_streamed) for path in _expand(source)]
    return [source if isinstance(source, TableSource) else _of_frame(pa, source)]


def _expand(source: str | os.PathLike[str]) -> list[Path]:
    path = Path(source)
    if path.is_dir():
        found = sorted(child for child in path.iterdir() if _plain_suffix(child) in TABLE_ENDINGS)
        wanted = "a folder without tables"
    elif path.exists() or not glob.has_magic(str(source)):
        return [path]
    else:
        found = sorted(Path(match) for match in glob.glob(str(source), recursive=True))  # noqa: PTH207 - any pattern
        wanted = "a pattern that matches no file"
    if not found:
        raise InvalidInputError(
            f"{os.fspath(source)!r} is {wanted}.",
            f"tables end in {', '.join(TABLE_ENDINGS)}; check the path.",
        )
    return found


def _plain_suffix(path: Path) -> str:
    suffixes = [suffix.lower() for suffix in path.suffixes]
    while suffixes and suffixes[-1] in _COMPRESSIONS:
        suffixes.pop()
    return suffixes[-1] if suffixes else ""


def _open_file(pa: ModuleType, path: Path, text_columns: Sequence[str], *, is_streamed: bool) -> TableSource:
    with path.open("rb") as stream:
        magic = stream.read(6)
    if not magic:
        raise InvalidInputError(f"{path} is empty.", "check that the file is the one you mean.")
    with _reading(path):
        return _named_in_utf8(_open_known(pa, path, magic, text_columns, is_streamed=is_streamed))


def _named_in_utf8(source: TableSource) -> TableSource:
    """Decode the names of the columns, which nobody has done before."""
    source.schema.names  # noqa: B018 - raises where they cannot be
    return source


def _open_known(
    pa: ModuleType, path: Path, magic: bytes, text_columns: Sequence[str], *, is_streamed: bool
) -> TableSource:
    if magic[:4] == b"PAR1":
        return _of_parquet(path)
    if magic in {b"ARROW1", b"FEA1\0\0"} or magic[:4] == b"FEA1":
        return _of_ipc(pa, path, magic)
    if _plain_suffix(path) == ".arrows" or magic[:4] == b"\xff\xff\xff\xff":
        with pa.OSFile(str(path)) as file, pa.ipc.open_stream(file) as reader:
            return _of_table(path.name, _valid(reader.read_all()))
    if _plain_suffix(path) in {".csv", ".tsv", ".txt"} or _looks_like_csv(path):
        return _of_csv(pa, path, text_columns, is_streamed=is_streamed)
    if _plain_suffix(path) in TABLE_ENDINGS:
        raise InvalidInputError(
            f"{path} is not what its name says: it begins with {magic!r}, and such files do not.",
            "check that the file is whole; one of another kind needs the ending of its kind.",
        )
    raise InvalidInputError(
        f"{path} is no table that is known here.",
        f"tables end in {', '.join(TABLE_ENDINGS)}; others must be converted.",
    )


@contextmanager
def _reading(path: Path) -> Iterator[None]:
    """Tell what is wrong with a file; what the system refuses stays an OSError, which pyarrow uses for damage too."""
    try:
        yield
    except (import_pyarrow().ArrowException, OSError, UnicodeDecodeError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        ragged = re.search(r"Row #(\d+): Expected (\d+) columns, got (\d+)", str(error))
        if ragged is not None:
            line, expected, got = ragged.groups()
            raise InvalidInputError(
                f"{path}: line {line} has {got} fields, the header has {expected}.",
                "mend that line; entries that contain the separator must be in quotes.",
            ) from error
        raise InvalidInputError(
            f"{path} cannot be read: {_one_line(error)}.",
            "check that the file is whole and of the kind it says.",
        ) from error


def _valid(table: Table) -> Table:
    """Look at what points into what: files of Arrow are taken as they are, and a damaged one would be read outside."""
    table.validate(full=True)
    return table


def _of_parquet(path: Path) -> TableSource:
    import pyarrow.parquet as pq  # noqa: PLC0415 - only when a Parquet file is read

    with pq.ParquetFile(path) as file:
        schema, about = file.schema_arrow, file.metadata
        groups = [about.row_group(at) for at in range(about.num_row_groups)]

    def batches(columns: Sequence[str], n_rows: int) -> Iterator[RecordBatch]:
        with _reading(path), pq.ParquetFile(path, memory_map=True) as file:
            yield from map(_valid, file.iter_batches(batch_size=n_rows, columns=list(columns)))

    def column_groups(columns: Sequence[str], n_bytes: int) -> Iterator[tuple[int, Table]]:
        # Whole chunks of columns are decoded in three quarters of the time that batches of rows take.
        with _reading(path), pq.ParquetFile(path, memory_map=True) as file:
            row = 0
            for at, group in enumerate(groups):
                step = max(1, n_bytes // max(1, 8 * group.num_rows))
                for first in range(0, len(columns), step):
                    yield row, _valid(file.read_row_group(at, columns=list(columns[first : first + step])))
                row += group.num_rows

    row_bytes = sum(group.total_byte_size for group in groups) // max(1, about.num_rows)
    return TableSource(path.name, schema, about.num_rows, row_bytes, batches, groups=column_groups)


def _of_ipc(pa: ModuleType, path: Path, magic: bytes) -> TableSource:
    if magic != b"ARROW1":  # the first version of Feather
        import pyarrow.feather  # noqa: PLC0415 - only when such a file is read

        return _of_table(path.name, _valid(pyarrow.feather.read_table(path)))
    with pa.memory_map(str(path)) as file, pa.ipc.open_file(file) as reader:
        schema = reader.schema
        n_rows = sum(reader.get_batch(at).num_rows for at in range(reader.num_record_batches))

    def batches(columns: Sequence[str], n_rows: int) -> Iterator[RecordBatch]:
        with _reading(path), pa.memory_map(str(path)) as file, pa.ipc.open_file(file) as reader:
            for at in range(reader.num_record_batches):
                batch = _valid(reader.get_batch(at).select(list(columns)))
                for first in range(0, batch.num_rows, n_rows):
                    yield batch.slice(first, n_rows)

    return TableSource(path.name, schema, n_rows, path.stat().st_size // max(1, n_rows), batches)


def _looks_like_csv(path: Path) -> bool:
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


def _of_csv(pa: ModuleType, path: Path, text_columns: Sequence[str], *, is_streamed: bool) -> TableSource:
    import pyarrow.csv  # noqa: PLC0415 - only when such a file is read

    with _text_of(pa, path) as stream:
        head = stream.read(1 << 16)
    _check_text(path, head)
    text = head.decode("utf-8-sig", "replace")
    header = text.splitlines()[0] if text.strip() else ""
    if not header.strip():
        raise InvalidInputError(f"{path} has no header line.", "give its columns names in the first line.")
    is_tabbed = _plain_suffix(path) == ".tsv" and "\t" in header
    delimiter = "\t" if is_tabbed else max(_DELIMITERS, key=header.count)
    entries = header.split(delimiter)
    numbered = [str(at + 1) for at in range(len(entries))] if _is_row(entries) else None
    options = {
        "parse_options": pyarrow.csv.ParseOptions(delimiter=delimiter),
        "convert_options": pyarrow.csv.ConvertOptions(
            column_types=dict.fromkeys(text_columns, pa.string()), null_values=NULLS
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
        # Again in one thread, which knows the number of the row that is wrong.
        with _text_of(pa, path) as stream:
            reading_options = pyarrow.csv.ReadOptions(use_threads=False, column_names=numbered)
            table = pyarrow.csv.read_csv(Metered(stream, str(path)), reading_options, **options)
    return _of_table(path.name, table, first_line=2 if numbered is None else 1)


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
                    f"{path} holds something else than its beginning: {_one_line(error)}.",
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


def _of_table(name: str, table: Table, first_line: int | None = None) -> TableSource:
    def batches(columns: Sequence[str], n_rows: int) -> Iterator[RecordBatch]:
        yield from table.select(list(columns)).to_batches(max_chunksize=n_rows)

    row_bytes = table.nbytes // max(1, table.num_rows)
    return TableSource(name, table.schema, table.num_rows, row_bytes, batches, first_line)


def _of_frame(pa: ModuleType, frame: object) -> TableSource:
    try:
        if hasattr(frame, "collect") and hasattr(frame, "lazy"):
            frame = frame.collect()  # a lazy frame of polars
        if hasattr(frame, "to_arrow"):
            frame = frame.to_arrow()
        return _of_table("the table", frame if isinstance(frame, pa.Table) else pa.table(frame))
    except (TypeError, ValueError, pa.ArrowException) as error:
        raise InvalidInputError(
            f"A {type(frame).__name__} cannot be taken as a table: {_one_line(error)}.",
            "pass a file, an Arrow table, or a data frame whose columns hold one type each.",
        ) from error


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split()).rstrip(".")[:300]
