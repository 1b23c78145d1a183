"""Tables as streams of Arrow batches, whatever they are stored as: Parquet, Arrow IPC, Feather, CSV, data frames.

pyarrow is imported when a table is opened.
"""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

from rankwise.data.arguments import check_path
from rankwise.data.tables.csv_files import looks_like_csv, of_csv
from rankwise.data.tables.table_source import (
    TABLE_ENDINGS,
    TableSource,
    import_pyarrow,
    miscounted,
    of_table,
    one_line,
    plain_suffix,
)
from rankwise.exceptions import InvalidInputError

if TYPE_CHECKING:
    from pyarrow import RecordBatch, Table

__all__ = [
    "is_table",
    "open_sources",
]


def is_table(source: object) -> bool:
    """Tell whether this is a table: by its name if it is a path, else a data frame or Arrow table."""
    if isinstance(source, (str, os.PathLike)):
        return plain_suffix(Path(os.fsdecode(source))) in TABLE_ENDINGS
    return (
        isinstance(source, TableSource)
        or hasattr(source, "__arrow_c_stream__")
        or hasattr(source, "__dataframe__")
    )


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
        return _with_rows(
            [opened for one in source for opened in open_sources(one, text_columns, is_streamed=is_streamed)]
        )
    if isinstance(source, (str, os.PathLike)):
        return _with_rows(
            [_open_file(pa, path, text_columns, is_streamed=is_streamed) for path in _expand(source)]
        )
    return [source if isinstance(source, TableSource) else _of_frame(pa, source)]


def _with_rows(sources: list[TableSource]) -> list[TableSource]:
    """Leave out tables without rows, whose columns may have other types, unless there are no others."""
    return [source for source in sources if source.n_rows] or sources


def _expand(source: str | os.PathLike[str]) -> list[Path]:
    path = Path(check_path("source", source))
    if path.is_dir():
        found = sorted(child for child in path.iterdir() if plain_suffix(child) in TABLE_ENDINGS)
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
    if plain_suffix(path) == ".arrows" or magic[:4] == b"\xff\xff\xff\xff":
        with pa.OSFile(str(path)) as file, pa.ipc.open_stream(file) as reader:
            return of_table(path.name, _valid(reader.read_all()))
    if plain_suffix(path) in {".csv", ".tsv", ".txt"} or looks_like_csv(path):
        return of_csv(pa, path, text_columns, is_streamed=is_streamed)
    if plain_suffix(path) in TABLE_ENDINGS:
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
        is_other_text = isinstance(error, UnicodeDecodeError) or "invalid UTF8" in str(error)
        raise InvalidInputError(
            f"{path} cannot be read: {one_line(error)}.",
            "save it as UTF-8, which text is read as."
            if is_other_text
            else "check that the file is whole and of the kind it says.",
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
    counts = [group.num_rows for group in groups]
    if min(counts, default=0) < 0 or sum(counts) != about.num_rows:
        raise miscounted(path.name)

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

        return of_table(path.name, _valid(pyarrow.feather.read_table(path)))
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


def _of_frame(pa: ModuleType, frame: object) -> TableSource:
    try:
        if hasattr(frame, "collect") and hasattr(frame, "lazy"):
            frame = frame.collect()  # a lazy frame of polars
        if hasattr(frame, "to_arrow"):
            frame = frame.to_arrow()
        return of_table("the table", frame if isinstance(frame, pa.Table) else pa.table(frame))
    except (TypeError, ValueError, pa.ArrowException) as error:
        raise InvalidInputError(
            f"A {type(frame).__name__} cannot be taken as a table: {one_line(error)}.",
            "pass a file, an Arrow table, or a data frame whose columns hold one type each.",
        ) from error
