"""A table that is open: its columns, and its rows as a stream of Arrow batches.

pyarrow is imported when a table is opened.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from rankwise.exceptions import InvalidInputError, MissingPackageError

if TYPE_CHECKING:
    from pyarrow import RecordBatch, Table

__all__ = [
    "TABLE_ENDINGS",
    "TableSource",
    "import_pyarrow",
    "miscounted",
    "of_table",
    "one_line",
    "plain_suffix",
]

TABLE_ENDINGS = (".parquet", ".pq", ".arrow", ".ipc", ".feather", ".arrows", ".csv", ".tsv")
_COMPRESSIONS = (".gz", ".bz2", ".xz", ".zst", ".lz4")


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


def of_table(name: str, table: Table, first_line: int | None = None) -> TableSource:
    """Open a table that is in memory."""

    def batches(columns: Sequence[str], n_rows: int) -> Iterator[RecordBatch]:
        found = table.select(list(columns)).to_batches(max_chunksize=min(n_rows, 1 << 62))
        yield from (batch for batch in found if batch.num_rows)  # a stream may hold batches of no rows

    row_bytes = table.nbytes // max(1, table.num_rows)
    return TableSource(name, table.schema, table.num_rows, row_bytes, batches, first_line)


def miscounted(name: str) -> InvalidInputError:
    """Say that a table is damaged."""
    return InvalidInputError(f"{name} has more or fewer rows than it says.", "write it again.")


def plain_suffix(path: Path) -> str:
    """Return the ending that says what a file holds, without those of compressions."""
    suffixes = [suffix.lower() for suffix in path.suffixes]
    while suffixes and suffixes[-1] in _COMPRESSIONS:
        suffixes.pop()
    return suffixes[-1] if suffixes else ""


def one_line(error: Exception) -> str:
    """Return what an error says, as part of a sentence."""
    return " ".join(str(error).split()).rstrip(".")[:300]
