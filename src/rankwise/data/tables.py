"""Tables with named columns: reading Parquet, Arrow, Feather, CSV and data frames, and writing such files.

Files are opened by `pyarrow.dataset`, one dataset for each file, so that every format is a stream of record batches.
CSV is read whole where all rows are wanted, because the type of a column is known only after its last row. pyarrow is
imported when a table is opened.
"""

from __future__ import annotations

import glob
import json
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from rankwise.arrays import AnyArray, Floats, Ints, MatrixLike
from rankwise.data.columns import (
    NULLS,
    check_columns,
    kind_of_type,
    number_text_problem,
    reads_as_number,
)
from rankwise.data.containers import as_array, as_rows
from rankwise.data.query_ids import decode_ids
from rankwise.data.validation import (
    check_choice,
    check_count,
    check_dtype,
    check_names,
    check_pairs,
    list_names,
)
from rankwise.exceptions import InvalidInputError, MemoryLimitError, MissingPackageError
from rankwise.files import replacing
from rankwise.runtime.memory import fits

TABLE_ENDINGS = (".parquet", ".pq", ".arrow", ".ipc", ".feather", ".arrows", ".csv", ".tsv")
# Endings of compressed CSV files, and their first bytes.
_COMPRESSIONS = {".gz": b"\x1f\x8b", ".bz2": b"BZh", ".zst": b"\x28\xb5\x2f\xfd", ".lz4": b"\x04\x22\x4d\x18"}
_DELIMITERS = (",", "\t", ";", "|")
_BATCH_BYTES = 1 << 24  # of columns that are decoded, and become rows, at a time
_TILE_ROWS = 4096  # column after column is written into so many rows, which stay in cache
_CSV_BLOCK = 1 << 24
_SPARSE_KEY = b"rankwise.sparse"  # in a schema's metadata: which columns hold a sparse matrix, and its width


class Table(NamedTuple):
    """Rows of a table as a ranker takes them.

    Attributes
    ----------
    X : ndarray or CSR matrix of shape (rows, features)
    y : ndarray of shape (rows,) or None
    qid : ndarray of shape (rows,) or None
    feature_names : list of str

    Examples
    --------
    >>> import pyarrow as pa
    >>> from rankwise.data import load_table
    >>> table = load_table(pa.table({"label": [1, 0], "qid": ["a", "a"], "price": [2.0, 3.0]}))
    >>> table.X.tolist(), table.qid.tolist(), table.feature_names
    ([[2.0], [3.0]], ['a', 'a'], ['price'])
    """

    X: Any
    y: npt.NDArray[np.float64] | None
    qid: AnyArray | None
    feature_names: list[str]


def load_table(
    source: object,
    *,
    label: str | None = "label",
    qid: str | None = "qid",
    features: Sequence[str] | None = None,
    embedding: str | Sequence[str] | None = None,
    missing: str = "error",
    dtype: npt.DTypeLike = np.float64,
) -> Table:
    """Read a table with named columns.

    Parameters
    ----------
    source : path, glob, folder, file object, list of those, Arrow table, or data frame of pandas or polars
        Files of Parquet, Arrow IPC, Feather (recognised by their first bytes) or CSV, also compressed; ``"-"`` is
        standard input. Several files are one table; they must have the columns of the first. A CSV file whose first
        line holds only numbers has no header, and its columns are called ``1``, ``2``, and so on; but ``0,1,2,...``,
        and numbers in quotes, are names.
    label : str or None, default="label"
        The column of labels, numbers; None where there are none.
    qid : str or None, default="qid"
        The column of query ids, of any type; None for one ranking. Ids in CSV files are integers or real numbers if all
        are written as numbers are; `01` and `1` are text, and two queries.
    features : list of str, optional
        The columns of features. By default all other columns of numbers (booleans are 0 and 1, decimals become
        floats); text, dates and lists are left out, but lists are taken where there are no numbers. With `embedding`,
        by default none. A table with two columns of lists, ``indices`` (whole numbers from 0) and ``values``, has
        sparse rows, and by default no other features.
    embedding : str or list of str, optional
        Columns whose entries are lists of numbers, all of one length; each becomes as many features, named
        ``name[0]``, ``name[1]``, and so on, after the others.
    missing : {"error", "nan", "zero"}, default="error"
        For features that are null or NaN: raise an error that names the place, keep NaN for an imputer, or read 0.
    dtype : {float64, float32}, default=float64
        The type of X.

    Returns
    -------
    Table
        A named tuple ``(X, y, qid, feature_names)``.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from rankwise.data import load_table
    >>> rows = {"query": ["a", "a", "b"], "grade": [1, 0, 2], "bm25": [0.5, 0.1, 0.9], "url": ["u", "v", "w"]}
    >>> X, y, qid, names = load_table(pa.table(rows), label="grade", qid="query")
    >>> X.tolist(), y.tolist(), qid.tolist(), names
    ([[0.5], [0.1], [0.9]], [1.0, 0.0, 2.0], ['a', 'a', 'b'], ['bm25'])
    """
    files = open_tables(source, [qid])
    return TableReader(files, label, qid, features, embedding, missing=missing, dtype=dtype).load()


def iter_table(
    source: object,
    *,
    label: str | None = "label",
    qid: str | None = "qid",
    features: Sequence[str] | None = None,
    embedding: str | Sequence[str] | None = None,
    missing: str = "error",
    dtype: npt.DTypeLike = np.float64,
    block_rows: int = 1 << 14,
) -> Iterator[Table]:
    """Read a table a block of rows at a time, in the order of the rows; it need not fit in memory.

    The first 16 MB of a CSV file decide which of its columns hold numbers.

    Parameters
    ----------
    source, label, qid, features, embedding, missing, dtype
        As in `load_table`.
    block_rows : int
        Rows of a block at most.

    Yields
    ------
    Table

    Examples
    --------
    >>> import pyarrow as pa
    >>> from rankwise.data import iter_table
    >>> rows = pa.table({"label": [1, 0, 2], "price": [2.0, 3.0, 1.0]})
    >>> [block.X.shape for block in iter_table(rows, qid=None, block_rows=2)]
    [(2, 1), (1, 1)]
    """
    check_count("block_rows", block_rows, optional=False)
    files = open_tables(source, [qid], stream=True)
    reader = TableReader(files, label, qid, features, embedding, missing=missing, dtype=dtype)
    return (block for block, _ in reader.blocks(block_rows))


def import_pyarrow() -> Any:
    """Import pyarrow, or raise an error with a hint to install it."""
    try:
        import pyarrow as pa  # noqa: PLC0415 - only when a table is read or written
        import pyarrow.compute  # noqa: PLC0415
        import pyarrow.csv  # noqa: PLC0415
        import pyarrow.dataset  # noqa: PLC0415
    except ImportError as error:
        raise MissingPackageError(
            "Tables are read and written by pyarrow, which is not installed.",
            "pip install 'rankwise[tables]'.",
        ) from error
    return pa


# Opening tables


@dataclass(frozen=True)
class TableFile:
    """A table that is open: a dataset of one file, or of a data frame.

    Attributes
    ----------
    name : str
        For messages.
    dataset : pyarrow.dataset.Dataset
    first_line : int or None
        The line of row 0 in a CSV file, 1 without a header; None for other formats.
    n_rows : int
        -1 for CSV that is read as a stream.
    kept : object
        The temporary copy of a pipe, which is deleted with this object.
    """

    name: str
    dataset: Any
    first_line: int | None = None
    n_rows: int = -1
    kept: object = None

    @property
    def schema(self) -> Any:
        """The names and types of the columns."""
        return self.dataset.schema

    @property
    def is_numbered(self) -> bool:
        """Whether the columns are called by their number, from 1, because the file does not name them."""
        return self.first_line == 1

    def place(self, row: int) -> str:
        """Name a row in messages."""
        return f"row {row}" + ("" if self.first_line is None else f" (line {row + self.first_line})")

    def refuse(self, name: str, bad: AnyArray, problem: str, hint: str, row: int = 0) -> None:
        """Raise where a row of those from `row` on is bad; the error names the column and the first such row."""
        if bad.any():
            place = self.place(row + int(np.argmax(bad)))
            raise InvalidInputError(f"{self.name}, column {name!r}, {place}: {problem}.", hint)

    def batches(self, columns: Sequence[str], n_rows: int = 1 << 16) -> Iterator[Batch]:
        """Yield some columns, at most `n_rows` rows at a time."""
        check_columns(self, columns, "a column of the first table")
        row = 0
        with _explained(self.name):
            for data in self.dataset.to_batches(
                columns=list(columns), batch_size=n_rows, batch_readahead=4, fragment_readahead=1
            ):
                data.validate(full=True)  # a damaged Arrow file would be read outside its buffers
                if data.num_rows:
                    yield Batch(self, row, data)
                row += data.num_rows


def is_table(source: object) -> bool:
    """Tell whether a source is a table: a path by its ending, else a data frame or Arrow table."""
    if isinstance(source, (str, os.PathLike)):
        return _ending(Path(os.fsdecode(source))) in TABLE_ENDINGS
    return isinstance(source, TableFile) or hasattr(source, "__arrow_c_stream__")


def open_tables(source: object, texts: Sequence[str | None] = (), *, stream: bool = False) -> list[TableFile]:
    """Open a table, or several.

    Parameters
    ----------
    source : path, glob, folder, file object, data frame, Arrow table, TableFile, or list of those
    texts : list of str
        Columns that CSV files hold as text, so that ids stay as they are written.
    stream : bool
        Whether CSV files are not read whole: their beginning decides the types of the columns.
    """
    pa = import_pyarrow()
    if isinstance(source, (list, tuple)):
        files = [file for one in source for file in open_tables(one, texts, stream=stream)]
        # Columns of tables without rows may have other types.
        return [file for file in files if file.n_rows] or files
    if isinstance(source, TableFile):
        return [source]
    if isinstance(source, str) and source == "-":
        source = sys.stdin.buffer
    if hasattr(source, "read"):
        return [_open_pipe(source, texts, stream=stream)]
    if isinstance(source, (str, os.PathLike)):
        files = [_open_file(path, texts, stream=stream) for path in _expand(source)]
        return [file for file in files if file.n_rows] or files
    try:
        frame: Any = source.collect() if hasattr(source, "lazy") and hasattr(source, "collect") else source
        frame = frame.to_arrow() if hasattr(frame, "to_arrow") else frame
        table = frame if isinstance(frame, pa.Table) else pa.table(frame)
    except (TypeError, ValueError, pa.ArrowException) as error:
        raise InvalidInputError(
            f"A {type(source).__name__} cannot be read as a table: {error}.",
            "pass a file, an Arrow table, or a data frame whose columns hold one type each.",
        ) from error
    return [TableFile("the table", pa.dataset.dataset(table), n_rows=table.num_rows)]


def _expand(source: str | os.PathLike[str]) -> list[Path]:
    path = Path(source)
    if path.is_dir():
        found = sorted(child for child in path.iterdir() if _ending(child) in TABLE_ENDINGS)
    elif path.exists() or not glob.has_magic(str(source)):
        return [path]
    else:
        found = sorted(map(Path, glob.glob(str(source), recursive=True)))  # noqa: PTH207 - any pattern
    if not found:
        problem = "is a folder without tables" if path.is_dir() else "matches no file"
        raise InvalidInputError(f"{str(source)!r} {problem}.", f"tables end in {', '.join(TABLE_ENDINGS)}.")
    return found


def _ending(path: Path) -> str:
    """Return the ending that names the format, without that of a compression."""
    return (path.with_suffix("") if path.suffix.lower() in _COMPRESSIONS else path).suffix.lower()


def _open_pipe(pipe: Any, texts: Sequence[str | None], *, stream: bool) -> TableFile:
    """Copy a pipe to a temporary file: Parquet and Arrow are not read from front to back."""
    head = pipe.read(8)
    packed = next((ending for ending, magic in _COMPRESSIONS.items() if head.startswith(magic)), "")
    kept = tempfile.NamedTemporaryFile(suffix=f".csv{packed}")  # noqa: SIM115 - lives as long as the table
    kept.write(head)
    shutil.copyfileobj(pipe, kept)
    kept.flush()
    return replace(_open_file(Path(kept.name), texts, stream=stream), name="standard input", kept=kept)


def _open_file(path: Path, texts: Sequence[str | None], *, stream: bool) -> TableFile:
    pa = import_pyarrow()
    with path.open("rb") as file:
        magic = file.read(8)
    with _explained(str(path)):
        if magic.startswith(b"\xff\xff\xff\xff"):
            with pa.OSFile(str(path)) as file, pa.ipc.open_stream(file) as reader:
                reader.schema.names  # noqa: B018 - raises where a name is damaged
                return open_tables(reader.read_all())[0]
        if not magic.startswith((b"PAR1", b"ARROW1")):
            return _open_csv(path, magic, texts, stream=stream)
        # Arrow's default reads Parquet far ahead of the batches: 660 MB of a file of 600 MB, instead of 120.
        scan = pa.dataset.ParquetFragmentScanOptions(pre_buffer=False, use_buffered_stream=True)
        parquet = pa.dataset.ParquetFileFormat(default_fragment_scan_options=scan)
        dataset = pa.dataset.dataset(path, format=parquet if magic.startswith(b"PAR1") else "ipc")
        dataset.schema.names  # noqa: B018 - as above
        return TableFile(path.name, dataset, n_rows=dataset.count_rows())


def _open_csv(path: Path, magic: bytes, texts: Sequence[str | None], *, stream: bool) -> TableFile:
    """Open a CSV file; with `stream`, its first block decides the types of the columns, else all of its rows."""
    pa = import_pyarrow()
    with pa.input_stream(str(path)) as text:
        header = _header(path, magic, text.read(1 << 16))
    is_tabbed = _ending(path) == ".tsv" and "\t" in header
    delimiter = "\t" if is_tabbed else max(_DELIMITERS, key=header.count)
    entries = header.split(delimiter)
    names = [str(at + 1) for at in range(len(entries))] if _is_row(entries) else None

    def options(*, newlines: bool = False, **reading: Any) -> dict[str, Any]:
        types = {name: pa.string() for name in texts if name is not None}
        return {
            "read_options": pa.csv.ReadOptions(column_names=names, **reading),
            "parse_options": pa.csv.ParseOptions(delimiter=delimiter, newlines_in_values=newlines),
            "convert_options": pa.csv.ConvertOptions(column_types=types, null_values=NULLS),
        }

    file = TableFile(path.name, None, 2 if names is None else 1)
    if stream:
        form = pa.dataset.CsvFileFormat(**options(block_size=_CSV_BLOCK))
        # Later numbers may be no integers, and later entries of an empty column are most likely numbers.
        fields = [
            field.with_type(pa.float64()) if str(field.type) in {"int64", "null"} else field
            for field in pa.dataset.dataset(path, format=form).schema
        ]
        file = replace(file, dataset=pa.dataset.dataset(path, format=form, schema=pa.schema(fields)))
    else:
        table = _read_csv(path, file, options)
        file = replace(file, dataset=pa.dataset.dataset(table), n_rows=table.num_rows)
    for field in file.schema:
        if pa.types.is_binary(field.type):
            raise InvalidInputError(
                f"{file.name}, column {field.name!r}: the text is not in UTF-8.", "save the file as UTF-8."
            )
    return file


def _read_csv(path: Path, file: TableFile, options: Callable[..., dict[str, Any]]) -> Any:
    """Read a whole file, and again with care where a line break may be part of an entry."""
    pa = import_pyarrow()
    table, broken = None, []
    with suppress(pa.ArrowInvalid):
        table = pa.csv.read_csv(path, **options())
        texts = [
            (name, pa.compute.match_substring(column, "\n"))
            for name, column in zip(table.column_names, table.columns, strict=True)
            if pa.types.is_string(column.type)
        ]
        broken = [(name, breaks) for name, breaks in texts if pa.compute.any(breaks).as_py()]
    if table is not None and not broken:
        return table
    with pa.input_stream(str(path)) as text:
        is_closed = sum(block.count(b'"') for block in iter(lambda: text.read(1 << 22), b"")) % 2 == 0
    if broken and not is_closed:
        name, breaks = broken[0]
        hint = "close the quote; inside an entry in quotes, a quote is written twice."
        file.refuse(name, np.asarray(breaks.fill_null(False)), "a quote is not closed", hint)
    # One thread knows the number of a row that is wrong, and large blocks hold long lines.
    return pa.csv.read_csv(path, **options(newlines=is_closed, use_threads=False, block_size=1 << 28))


def _header(path: Path, magic: bytes, head: bytes) -> str:
    """Return the first line of a CSV file; files of other kinds are errors."""
    line = head.removeprefix(b"\xef\xbb\xbf").partition(b"\n")[0].rstrip(b"\r")
    ending, tables = _ending(path), ", ".join(TABLE_ENDINGS)
    is_split = ending in {".csv", ".tsv", ".txt"} or any(one.encode() in line for one in _DELIMITERS)
    mistakes = {
        ("is empty", "check that the file is the one you mean."): not magic,
        (
            "is an Excel workbook",
            "save the sheet as CSV, or pass the data frame that pandas.read_excel returns.",
        ): magic.startswith((b"PK\x03\x04", b"\xd0\xcf\x11\xe0")),
        (
            "is JSON",
            "pass the data frame that pandas.read_json returns (lines=True if every line is an object).",
        ): magic.lstrip().startswith((b"{", b"[{")),
        (
            f"is damaged, or is not in the format that {ending} stands for",
            "export the file again, or end its name in .csv if it is CSV.",
        ): ending in TABLE_ENDINGS[:-2],
        ("is not text in UTF-8", f"save CSV files as UTF-8; tables end in {tables}."): b"\0" in head
        or line.decode(errors="replace").encode() != line,
        ("has no header line", "give its columns names in the first line."): not line.strip(),
        ("is not a table", f"tables end in {tables}; convert other files."): not is_split,
    }
    for (problem, hint), is_so in mistakes.items():
        if is_so:
            raise InvalidInputError(f"{path} {problem}.", hint)
    return line.decode()


def _is_row(entries: list[str]) -> bool:
    """Tell whether the first line of a CSV file is a row already, because it holds numbers and no names.

    Numbers are names if they are quoted, or count 0, 1, 2 and so on, as pandas calls columns that have no names.
    """
    words = [entry.strip() for entry in entries]
    counted = words[1:] if words[0] == "" else words  # beside an index without a name
    filled = [word for word in words if word not in NULLS]
    is_counted = counted == [str(at) for at in range(len(counted))]
    return bool(filled) and not is_counted and all(map(reads_as_number, filled))


@contextmanager
def _explained(name: str) -> Iterator[None]:
    """Turn pyarrow's errors about a file into ours; errors of the system, such as a missing file, stay OSErrors."""
    try:
        yield
    except (import_pyarrow().ArrowException, OSError, UnicodeDecodeError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        ragged = re.search(r"Row #(\d+): Expected (\d+) columns, got (\d+)", str(error))
        problem = f" cannot be read: {' '.join(str(error).split()).rstrip('.')[:300]}."
        hint = "check that the file is whole, and that the columns of CSV hold one type throughout."
        if ragged is not None:
            problem = ": line {} has {} fields, the header has {}.".format(*(ragged[at] for at in (1, 3, 2)))
            hint = "correct that line; entries that contain the separator must be in quotes."
        elif isinstance(error, UnicodeDecodeError) or "UTF8" in str(error):
            hint = "save it as UTF-8."
        raise InvalidInputError(name + problem, hint) from error


# Columns become arrays


@dataclass(frozen=True)
class Batch:
    """Some rows of a table.

    Attributes
    ----------
    file : TableFile
    row : int
        The first row of the batch in its file.
    data : pyarrow.RecordBatch
    """

    file: TableFile
    row: int
    data: Any

    def refuse(self, name: str, bad: AnyArray, problem: str, hint: str) -> None:
        """Raise where a row is bad; the error names the column and the first such row."""
        self.file.refuse(name, bad, problem, hint, self.row)

    def numbers(self, name: str, hint: str, *, missing: str = "never", dtype: Any = np.float64) -> AnyArray:
        """Return a column of numbers; see `_finite` for `missing`."""
        column = self.data.column(name)
        if kind_of_type(column.type) not in {"number", "flag"}:
            entries = column.to_pylist()
            bad = np.array([not (_is_null(entry) or reads_as_number(entry)) for entry in entries])
            bad[0] |= not bad.any()
            shown = f"{entries[int(np.argmax(bad))]!r:.60}"
            self.refuse(name, bad, f"{shown} is not a number (the column holds {column.type})", hint)
        return self._finite(name, column, missing, dtype)

    def _finite(
        self, name: str, column: Any, missing: str, dtype: Any, owner: Ints | None = None
    ) -> AnyArray:
        """Return an Arrow array of finite numbers; null is NaN, which "nan" as `missing` keeps and "zero" turns into 0.

        With `owner`, the numbers are entries of lists, each of the row that `owner` names.
        """
        pa = import_pyarrow()
        if pa.types.is_dictionary(column.type):
            column = column.dictionary_decode()
        if pa.types.is_boolean(column.type):
            column = column.cast(pa.uint8())
        with np.errstate(over="ignore"):
            values: AnyArray = (
                column.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False).astype(dtype, copy=False)
            )
        if np.isfinite(values).all():
            return values

        def rows(bad: AnyArray) -> AnyArray:
            return bad if owner is None else np.bincount(owner[bad], minlength=self.data.num_rows) > 0

        if missing in {"error", "never"}:
            hint = "only features may be missing."
            if missing == "error":
                hint = "missing='zero' reads features as 0, missing='nan' keeps them for an imputer."
            hint = f"drop those rows or fill them in; {hint}"
            self.refuse(name, rows(np.isnan(values)), "a missing value", hint)
        hint = "replace it by a smaller number, drop the row, or pass dtype=np.float64."
        self.refuse(name, rows(np.isinf(values)), f"a value is not finite in {values.dtype}", hint)
        return np.nan_to_num(values, nan=0.0) if missing == "zero" else values

    def texts(self, name: str) -> npt.NDArray[np.str_]:
        """Return a column as text; null becomes the empty text."""
        entries = self.data.column(name).to_pylist()
        return np.array(["" if entry is None else str(entry) for entry in entries], dtype=np.str_)

    def ids(self, name: str, role: str, kind: str = "U") -> AnyArray:
        """Return a column of ids of any type, none missing; text of CSV files becomes `kind`: see `decode_ids`."""
        pa = import_pyarrow()
        column = self.data.column(name)
        if pa.types.is_dictionary(column.type):
            column = column.dictionary_decode()
        is_csv = self.file.first_line is not None and pa.types.is_string(column.type)
        missing = np.asarray(column.is_null(nan_is_null=True))
        if is_csv:
            nulls = pa.array(NULLS if kind != "U" else [""])
            missing = missing | np.asarray(pa.compute.is_in(column, nulls))
        self.refuse(name, missing, f"{role} is missing", "give those rows an id, or drop them.")
        if is_csv and kind != "U":
            encoded = column.dictionary_encode()
            return np.asarray(decode_ids(encoded.dictionary.to_pylist(), kind)[np.asarray(encoded.indices)])
        return np.asarray(column.to_numpy(zero_copy_only=False))

    def lists(self, name: str) -> tuple[Ints, Any]:
        """Return the lengths of the lists of a column, and their entries one behind the other."""
        pa = import_pyarrow()
        column = self.data.column(name)
        if kind_of_type(column.type) != "list":
            raise InvalidInputError(
                f"{self.file.name}, column {name!r} holds {column.type}, which is not a list of numbers.",
                "name it in features if it holds one number per row; an embedding is a column of lists.",
            )
        column = column.storage if isinstance(column, pa.ExtensionArray) else column
        missing = np.asarray(column.is_null())
        self.refuse(name, missing, "the list is missing", "drop those rows, or give them a list.")
        return np.asarray(pa.compute.list_value_length(column), dtype=np.int64), column.flatten()

    def matrix(self, name: str, width: int, missing: str, dtype: Any) -> AnyArray:
        """Return a column of lists of one length as a matrix."""
        lengths, flat = self.lists(name)
        problem = f"a list does not have {width} numbers, as those before"
        self.refuse(name, lengths != width, problem, "make all lists of the column the same length.")
        owner = np.repeat(np.arange(lengths.size), width)
        return self._finite(name, flat, missing, dtype, owner).reshape(lengths.size, width)

    def sparse_rows(self, width: int, missing: str, dtype: Any) -> sp.csr_matrix:
        """Return rows that are lists of column numbers and of values."""
        lengths, flat = self.lists("indices")
        other, flat_values = self.lists("values")
        hint = "write each column number once per row, from 0, and a value for each."
        self.refuse("values", lengths != other, "there are not as many values as column numbers", hint)
        owner = np.repeat(np.arange(lengths.size), lengths)
        columns = np.asarray(flat.cast("int64", safe=False).fill_null(-1))
        values = self._finite("values", flat_values, missing, dtype, owner)
        order = np.lexsort((columns, owner))
        columns, values = columns[order], values[order]
        wrong = (columns < 0) | (columns >= width)
        wrong[1:] |= (columns[1:] == columns[:-1]) & (owner[1:] == owner[:-1])
        rows = np.bincount(owner[wrong], minlength=lengths.size) > 0
        self.refuse(
            "indices", rows, f"a column number comes twice, or is not between 0 and {width - 1}", hint
        )
        X = sp.csr_matrix(
            (values, columns.astype(np.int32), np.concatenate(([0], np.cumsum(lengths)))),
            shape=(lengths.size, width),
        )
        if missing == "zero":
            X.eliminate_zeros()
        return X


def _is_null(entry: object) -> bool:
    return entry is None or entry in NULLS


def _column_of(files: Sequence[TableFile], read: Callable[[Batch], Any], name: str) -> Any:
    """Return a column of all files."""
    return _joined([read(batch) for file in files for batch in file.batches([name])] or [np.empty(0)])


def texts_of(files: Sequence[TableFile], name: str) -> npt.NDArray[np.str_]:
    """Return a column of all files as text; null becomes the empty text."""
    return np.asarray(_column_of(files, lambda batch: batch.texts(name), name), dtype=np.str_)


def amounts_of(files: Sequence[TableFile], name: str, hint: str) -> Floats:
    """Return a column of all files whose entries are numbers from 0 up."""

    def read(batch: Batch) -> AnyArray:
        values = batch.numbers(name, "write a number in every row.")
        batch.refuse(name, values < 0, "a number is negative", hint)
        return values

    return np.asarray(_column_of(files, read, name))


def sparse_width(files: Sequence[TableFile]) -> int | None:
    """Return the number of columns of tables with sparse rows (columns "indices" and "values"); None for others."""
    pa = import_pyarrow()
    types = dict(zip(files[0].schema.names, files[0].schema.types, strict=True))
    if not all(kind_of_type(types.get(name, pa.null())) == "list" for name in ("indices", "values")):
        return None
    if pa.types.is_floating(types["indices"].value_type):
        return None
    width = 0
    for file in files:
        about = _sparse_note(file)
        for batch in () if about else file.batches(["indices"]):
            largest = pa.compute.max(batch.lists("indices")[1]).as_py()
            width = max(width, 0 if largest is None else largest + 1)
        width = max(width, about.get("columns", 0))
    if width > 2**31 - 1:
        raise InvalidInputError(
            f"{files[0].name}, column 'indices': column number {width - 1} needs more than 32 bits.",
            "rename the columns that occur, or hash them to fewer.",
        )
    return width


def _sparse_note(file: TableFile) -> dict[str, Any]:
    note = (file.schema.metadata or {}).get(_SPARSE_KEY)
    about: dict[str, Any] = {} if note is None else json.loads(note)
    return about


class TableReader:
    """Reads open tables as arrays.

    Parameters
    ----------
    files : list of TableFile
    label, qid, features, embedding, missing, dtype
        As in `load_table`.
    weight : str, optional
        The column that `weights` returns.
    item_id : str, optional
        The column of ids that `blocks` yields beside the rows.
    ids : sequence of str
        Further columns that are not features by default.

    Attributes
    ----------
    features, embeddings : list of str
    columns : list of str
        All columns that are read.
    sparse : int or None
        The number of columns of sparse rows; there are no other features then.
    """

    def __init__(
        self,
        files: Sequence[TableFile],
        label: str | None,
        qid: str | None,
        features: Sequence[str] | None = None,
        embedding: str | Sequence[str] | None = None,
        *,
        missing: str = "error",
        dtype: npt.DTypeLike = np.float64,
        weight: str | None = None,
        item_id: str | None = None,
        ids: Sequence[str] = (),
    ) -> None:
        if not files:
            raise InvalidInputError("The list of tables is empty.", "pass at least one file.")
        self.files, self.label, self.qid, self.weight, self.item_id = files, label, qid, weight, item_id
        self.missing = check_choice("missing", missing, ("error", "nan", "zero"))
        self.dtype = check_dtype(dtype)
        for role, name in (("label", label), ("qid", qid), ("weight", weight), ("item_id", item_id)):
            check_columns(files[0], [] if name is None else [name], role)
        given = [embedding] if isinstance(embedding, str) else () if embedding is None else embedding
        self.embeddings: list[str] = list_names("embedding", given)
        self.features: list[str] = [] if features is None else list_names("features", features)
        self.sparse = None if features is not None or self.embeddings else sparse_width(files)
        if features is None and not self.embeddings and self.sparse is None:
            self.features, self.embeddings = _default_features(files[0], {label, qid, weight, item_id, *ids})
        taken = [*self.features, *self.embeddings]
        if len(set(taken)) != len(taken) or {label, qid, weight} & set(taken):
            raise InvalidInputError(
                "A column has two roles among label, qid, features and embedding.", "name each column once."
            )
        sparse = [] if self.sparse is None else ["indices", "values"]
        self.columns = [name for name in (label, qid) if name is not None] + taken + sparse
        check_columns(files[0], self.columns, "features")
        for file in files[1:]:
            check_columns(file, self.columns, "a column of the first table")
        self._widths = [self._width(name) for name in self.embeddings]
        self._kind_of_ids = "U" if qid is None else _kind_of_ids(files, qid)

    @property
    def names(self) -> list[str]:
        """The names of the features."""
        if self.sparse is not None:
            names = _sparse_note(self.files[0]).get("names") or ()
            return list(names) if len(names) == self.sparse else [f"f{at}" for at in range(self.sparse)]
        lists = zip(self.embeddings, self._widths, strict=True)
        return self.features + [f"{name}[{at}]" for name, width in lists for at in range(width)]

    @property
    def first_name(self) -> str | None:
        """The name of the first feature, where the table has one."""
        names = self.features if self.sparse is None else _sparse_note(self.files[0]).get("names")
        return names[0] if names else None

    def rows_in(self, n_bytes: int) -> int:
        """Return the approximate number of rows that take `n_bytes` in memory, at least 1."""
        row_bytes = 8 * (len(self.columns) + sum(self._widths))
        if self.sparse is not None:
            first = next(self.files[0].batches(self.columns, 1024), None)
            row_bytes = 1 if first is None else first.data.nbytes // first.data.num_rows
        return max(1, n_bytes // max(1, row_bytes))

    def blocks(self, n_rows: int, X: AnyArray | None = None) -> Iterator[tuple[Table, AnyArray | None]]:
        """Yield the rows in their order, at most `n_rows` at a time, with the ids of their items; fill X, if given."""
        names, start = self.names, 0
        read = dict.fromkeys([*self.columns, *([] if self.item_id is None else [self.item_id])])
        for batch in (batch for file in self.files for batch in file.batches(list(read), n_rows)):
            stop = start + batch.data.num_rows
            if X is not None and stop > X.shape[0]:
                start = stop
                break
            items = None if self.item_id is None else batch.texts(self.item_id)
            rows = self._rows(batch, None if X is None else X[start:stop])
            yield Table(rows, self._labels(batch), self.ids_in(batch), names), items
            start = stop
        if start == 0:
            raise self._no_rows()
        if X is not None and start != X.shape[0]:
            raise InvalidInputError(
                f"{self._file_names} is corrupt: it declares {X.shape[0]:,} rows, and {start:,} were read.",
                "export the file again.",
            )

    def load(self) -> Table:
        """Return all rows."""
        n_rows = sum(file.n_rows for file in self.files)
        width = len(self.features) + sum(self._widths)
        needed = n_rows * (8 + self.dtype.itemsize * width)
        if not fits(needed):
            raise MemoryLimitError(
                f"{self._file_names}: {n_rows:,} rows take {needed / 1e9:,.1f} GB.",
                "read them in blocks (iter_table), or into a store (rankwise convert).",
            )
        X = None if self.sparse is not None else np.empty((n_rows, width), dtype=self.dtype)
        blocks = [block for block, _ in self.blocks(self.rows_in(_BATCH_BYTES), X)]
        rows, labels, ids, _ = zip(*blocks, strict=True)
        y = None if self.label is None else np.concatenate(labels)
        qid = None if self.qid is None else _joined(ids)
        return Table(sp.vstack(rows, format="csr") if X is None else X, y, qid, self.names)

    def weights(self) -> Floats | None:
        """Return the weights of all rows, where a column of them was named."""
        return (
            None if self.weight is None else amounts_of(self.files, self.weight, "use 0 to leave a row out.")
        )

    def ids_in(self, batch: Batch) -> AnyArray | None:
        """Return the query ids of a batch."""
        return None if self.qid is None else batch.ids(self.qid, "the query id", self._kind_of_ids)

    @property
    def _file_names(self) -> str:
        return ", ".join(file.name for file in self.files)

    def _no_rows(self) -> InvalidInputError:
        return InvalidInputError(
            f"{self._file_names} has no rows.", "check that the file is the one you mean."
        )

    def _width(self, name: str) -> int:
        first = next((batch for file in self.files for batch in file.batches([name], 1024)), None)
        if first is None:
            raise self._no_rows()
        return int(first.lists(name)[0][0])

    def _labels(self, batch: Batch) -> Floats | None:
        hint = "encode labels as numbers, higher is better: for example {'bad': 0, 'fair': 1, 'good': 2}."
        return None if self.label is None else batch.numbers(self.label, hint)

    def _rows(self, batch: Batch, out: AnyArray | None) -> Any:
        """Return the features of a batch, written into `out` where it is given."""
        how: dict[str, Any] = {"missing": self.missing, "dtype": self.dtype}
        if self.sparse is not None:
            return batch.sparse_rows(self.sparse, **how)
        hint = "leave the column out of features, or encode it as numbers."
        parts = [batch.numbers(name, hint, **how)[:, None] for name in self.features]
        lists = zip(self.embeddings, self._widths, strict=True)
        parts += [batch.matrix(name, width, **how) for name, width in lists]
        n_rows, width = batch.data.num_rows, sum(part.shape[1] for part in parts)
        X = np.empty((n_rows, width), dtype=self.dtype) if out is None else out
        for first in range(0, n_rows, _TILE_ROWS):
            tile, at = slice(first, first + _TILE_ROWS), 0
            for part in parts:
                X[tile, at : at + part.shape[1]] = part[tile]
                at += part.shape[1]
        return X


def _default_features(file: TableFile, taken: set[str | None]) -> tuple[list[str], list[str]]:
    """Return all columns of numbers, or all of lists where there are none."""
    names = [name for name in file.schema.names if name not in taken]
    check_columns(file, names, "features")
    kinds = {name: kind_of_type(file.schema.field(name).type) for name in names}
    problems = (number_text_problem(file, name) for name in names if kinds[name] == "text")
    problem = next(filter(None, problems), None)
    if problem is not None:
        raise InvalidInputError(
            problem,
            "correct the entry (an empty one is missing), or list the features you want, without this column.",
        )
    numbers = [name for name in names if kinds[name] in {"number", "flag"}]
    lists = [name for name in names if kinds[name] == "list"]
    if not numbers and not lists:
        raise InvalidInputError(
            f"{file.name} has no column of numbers beside label and qid.",
            "name a column of lists as embedding, or encode the columns as numbers.",
        )
    return numbers, [] if numbers else lists


def _kind_of_ids(files: Sequence[TableFile], name: str) -> str:
    """Return the type of the ids of all CSV files: "i", "f" or "U"."""
    texts: set[str | None] = set()
    for file in files:
        if file.first_line is not None and str(file.schema.field(name).type) == "string":
            for batch in file.batches([name], 1 << 20):
                texts.update(batch.data.column(name).unique().to_pylist())
    return decode_ids([text for text in texts if text is not None and text not in NULLS]).dtype.kind


def _joined(parts: Sequence[Any]) -> AnyArray:
    kinds = {part.dtype.kind for part in parts}
    mixed = len(kinds) > 1 and kinds & set("OMm")  # dates and numbers, say, have no type in common
    return np.concatenate([part.astype(object) for part in parts] if mixed else parts)


# Preferences


class PreferenceTable(NamedTuple):
    """Comparisons as `fit_pairs` takes them.

    Attributes
    ----------
    X : ndarray of shape (items, features)
    pairs : ndarray of shape (pairs, 2)
        Row numbers of winner and loser.
    magnitude, weight : ndarray of shape (pairs,) or None
    item_ids : ndarray of shape (items,)
        The id of each row of X.
    feature_names : list of str

    Examples
    --------
    >>> import pyarrow as pa
    >>> from rankwise.data import load_preferences
    >>> items = pa.table({"id": ["tea", "milk"], "price": [2.0, 1.0]})
    >>> table = load_preferences(pa.table({"winner": ["tea"], "loser": ["milk"]}), items)
    >>> table.item_ids[table.pairs[0]].tolist(), table.feature_names, table.weight
    (['tea', 'milk'], ['price'], None)
    """

    X: Any
    pairs: npt.NDArray[np.int64]
    magnitude: npt.NDArray[np.float64] | None
    weight: npt.NDArray[np.float64] | None
    item_ids: AnyArray
    feature_names: list[str]


def load_preferences(
    pairs: npt.ArrayLike,
    items: object,
    *,
    item_id: str = "id",
    winner: str = "winner",
    loser: str = "loser",
    magnitude: str | None = None,
    weight: str | None = None,
    features: Sequence[str] | None = None,
    embedding: str | Sequence[str] | None = None,
    missing: str = "error",
    dtype: npt.DTypeLike = np.float64,
) -> PreferenceTable:
    """Read a table of comparisons and the table of the items that they compare.

    Parameters
    ----------
    pairs : path, glob, folder, list of those, Arrow table or data frame
        One row for each comparison: the item that won, and the item that lost.
    items : the same
        One row for each item: its id and its features.
    item_id : str, default="id"
        The column of `items` that the comparisons refer to. Ids in CSV files are taken as they are written.
    winner, loser : str
        The columns of `pairs` with the ids of the two items.
    magnitude, weight : str, optional
        The columns with the arguments of `fit_pairs` of these names; by default columns named so, if there are any.
    features, embedding, missing, dtype
        Options for the table of items, as in `load_table`.

    Returns
    -------
    PreferenceTable
        A named tuple ``(X, pairs, magnitude, weight, item_ids, feature_names)``.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from rankwise import RankRLS
    >>> from rankwise.data import load_preferences
    >>> items = pa.table({"id": ["tea", "cola", "milk"], "sugar": [0.0, 10.6, 4.8], "price": [1.0, 2.0, 1.0]})
    >>> duels = pa.table({"winner": ["tea", "milk"], "loser": ["cola", "cola"], "weight": [3, 1]})
    >>> table = load_preferences(duels, items)
    >>> table.pairs.tolist(), table.weight.tolist()
    ([[0, 1], [2, 1]], [3.0, 1.0])
    >>> model = RankRLS().fit_pairs(table.X, table.pairs, table.magnitude, table.weight)
    """
    catalogue = open_tables(items, [item_id])
    check_columns(catalogue[0], [item_id], "item_id")
    reader = TableReader(catalogue, None, item_id, features, embedding, missing=missing, dtype=dtype)
    comparisons = open_tables(pairs, [winner, loser])
    amounts = {"magnitude": magnitude, "weight": weight}
    return read_preferences(comparisons, reader, winner=winner, loser=loser, **amounts)


def read_preferences(
    comparisons: Sequence[TableFile],
    items: TableReader,
    *,
    winner: str,
    loser: str,
    magnitude: str | None = None,
    weight: str | None = None,
) -> PreferenceTable:
    """Read open tables; the query id of `items` is the id of the items. See `load_preferences`."""
    assert items.qid is not None
    amounts: dict[str, Floats] = {}
    hints = {"magnitude": "swap winner and loser; 0 is a tie.", "weight": "use 0 to leave a comparison out."}
    for role, named in (("magnitude", magnitude), ("weight", weight)):
        column = role if named is None and role in comparisons[0].schema.names else named
        if column is not None:
            check_columns(comparisons[0], [column], role)
            amounts[role] = amounts_of(comparisons, column, hints[role])
    table = items.load()
    ids = _item_ids(items)
    edges = np.concatenate([_row_numbers(file, ids, winner, loser) for file in comparisons])
    checked = check_pairs(edges, table.X.shape[0], amounts.get("magnitude"), amounts.get("weight"))
    return PreferenceTable(table.X, edges, checked.magnitude, checked.weight, ids, table.feature_names)


def _item_ids(items: TableReader) -> AnyArray:
    """Return the ids of the items as they are written, which must differ."""
    name = items.qid or ""
    ids: AnyArray = _column_of(items.files, lambda batch: batch.ids(name, "the id of an item"), name)
    values, counts = np.unique(ids, return_counts=True)
    if (counts > 1).any():
        twice = values[counts > 1][:1].tolist()[0]
        rows = np.flatnonzero(ids == twice)[:2].tolist()
        raise InvalidInputError(f"Item {twice!r} comes twice, in rows {rows}.", "keep one row per item.")
    return ids


def _row_numbers(file: TableFile, ids: AnyArray, winner: str, loser: str) -> Ints:
    """Return the row numbers of winner and loser for each comparison of a table."""
    pa = import_pyarrow()
    sides = []
    for role, name in (("winner", winner), ("loser", loser)):
        check_columns(file, [name], role)
        found = [batch.ids(name, f"the {name}") for batch in file.batches([name])]
        values, wanted = pa.array(_joined([ids[:0], *found])), pa.array(ids)
        if values.type != wanted.type:
            values, wanted = _as_text(values), _as_text(wanted)
        rows = np.asarray(pa.compute.fill_null(pa.compute.index_in(values, value_set=wanted), -1))
        shown = ", ".join(map(repr, values.filter(pa.array(rows < 0)).unique()[:5].to_pylist()))
        problem = f"the table of items lacks {shown} ({(rows < 0).sum():,} comparisons)"
        file.refuse(
            name, rows < 0, problem, "add those items with their features, or drop those comparisons."
        )
        sides.append(rows.astype(np.int64))
    hint = "drop such comparisons."
    file.refuse(winner, sides[0] == sides[1], "an item is preferred to itself", hint)
    return np.column_stack(sides)


def _as_text(values: Any) -> Any:
    pa = import_pyarrow()
    if pa.types.is_floating(values.type):
        whole = values.cast(pa.int64(), safe=False)
        values = whole if whole.cast(values.type).equals(values) else values  # a join turns 7 into 7.0
    return values.cast(pa.string())


# Writing

_FORMATS = {".parquet": "parquet", ".pq": "parquet", ".arrow": "ipc", ".ipc": "ipc", ".feather": "ipc"}
_FORMATS |= {".csv": "csv", ".tsv": "csv"}


def is_flat(path: str | os.PathLike[str]) -> bool:
    """Tell whether a file of this name has no lists, so no sparse rows."""
    return _FORMATS.get(Path(path).suffix.lower()) == "csv"


def save_table(
    X: MatrixLike,
    y: npt.ArrayLike | None,
    path: str | os.PathLike[str],
    *,
    qid: npt.ArrayLike | None = None,
    feature_names: Sequence[str] | None = None,
    label: str = "label",
    qid_name: str = "qid",
    item_ids: npt.ArrayLike | None = None,
    item_name: str = "id",
) -> None:
    """Write rows as a table that `load_table` reads back exactly, but for the sign of -0.0 among whole numbers in CSV.

    Dense rows become one column per feature. Sparse rows become two columns of lists, ``indices`` and ``values``, which
    a CSV file cannot hold; `load_table` makes them a CSR matrix again.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (rows, features)
    y : array-like of shape (rows,) or None
        Labels, if there are any.
    path : path
        Ends in .parquet, .pq, .arrow, .ipc, .feather, .csv or .tsv. Written under a temporary name and renamed.
    qid : array-like of shape (rows,), optional
    feature_names : list of str, optional
        By default ``f0``, ``f1``, ...
    label, qid_name : str
        The names of the columns of `y` and `qid`.
    item_ids : array-like of shape (rows,), optional
        The ids of the rows.
    item_name : str, default="id"
        The name of that column.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from rankwise.data import load_table, save_table
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder, "rows.parquet")
    ...     save_table([[0.5], [0.1]], [1, 0], file, qid=["a", "a"], feature_names=["bm25"])
    ...     load_table(file).feature_names
    ['bm25']
    """
    target = Path(path)
    kind = _FORMATS.get(target.suffix.lower())
    if kind is None:
        raise InvalidInputError(
            f"{str(path)!r} does not name the format of a table.",
            f"end it in one of {', '.join(_FORMATS)}; .parquet is compressed.",
        )
    table = _as_table(X, {qid_name: qid, label: y, item_name: item_ids}, feature_names, is_csv=kind == "csv")
    pa = import_pyarrow()
    with replacing(target) as stream:
        if kind == "parquet":
            import pyarrow.parquet as pq  # noqa: PLC0415 - only when a Parquet file is written

            pq.write_table(table, stream)
        elif kind == "ipc":
            with pa.ipc.new_file(stream, table.schema) as writer:
                writer.write_table(table)
        else:
            delimiter = "\t" if target.suffix.lower() == ".tsv" else ","
            options = pa.csv.WriteOptions(quoting_style="needed", delimiter=delimiter)
            pa.csv.write_csv(table, stream, options)


def _as_table(X: MatrixLike, beside: Mapping[str, Any], names: Sequence[str] | None, *, is_csv: bool) -> Any:
    """Return rows as an Arrow table: columns beside them, then one per feature, or the two of a CSR matrix."""
    pa = import_pyarrow()
    rows = as_rows("X", X)
    rows = rows.tocsr() if sp.issparse(rows) else np.asarray(rows)
    given = {name: as_array(name, values) for name, values in beside.items() if values is not None}
    own = None if names is None else check_names("feature_names", names)
    sizes = {f"Column {name!r}": (values.size, rows.shape[0]) for name, values in given.items()}
    sizes |= {} if own is None else {"feature_names": (len(own), rows.shape[1])}
    for name, (size, expected) in sizes.items():
        if size != expected:
            raise InvalidInputError(
                f"{name} has {size} entries, but X has shape {rows.shape}.",
                "pass one per row, and one name per column.",
            )
    ids = next(iter(beside))
    if is_csv and ids in given and given[ids].dtype.kind == "f":  # 1.0, where pyarrow would write 1
        given[ids] = np.array([str(value) for value in given[ids].tolist()])
    columns = {name: pa.array(values) for name, values in given.items()}
    if sp.issparse(rows):
        return _sparse_table(rows, columns, own, is_csv=is_csv)
    own = own or [f"f{at}" for at in range(rows.shape[1])]
    features = {name: pa.array(np.ascontiguousarray(rows[:, at])) for at, name in enumerate(own)}
    if len(columns | features) < len(columns) + len(own):
        raise InvalidInputError(
            "Two columns have the same name.",
            "rename the feature, or pass other names as label and qid_name.",
        )
    return pa.table(columns | features)


def _sparse_table(X: sp.csr_matrix, columns: dict[str, Any], names: list[str] | None, *, is_csv: bool) -> Any:
    pa = import_pyarrow()
    if is_csv:
        raise InvalidInputError(
            f"A CSV file has one column per feature, {X.shape[1]} in all, and X is sparse.",
            "write Parquet, or svmlight text; or pass X.toarray().",
        )
    if not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    start = pa.array(X.indptr.astype(np.int64))
    for name, values in (("indices", X.indices.astype(np.int32)), ("values", X.data)):
        columns[name] = pa.LargeListArray.from_arrays(start, pa.array(values))
    about = {"indices": "indices", "values": "values", "columns": X.shape[1], "names": names}
    return pa.table(columns).replace_schema_metadata({_SPARSE_KEY: json.dumps(about).encode()})
