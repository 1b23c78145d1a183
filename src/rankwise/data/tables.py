"""Tables with named columns: reading Parquet, Arrow, Feather, CSV and data frames, and writing such files.

Files are opened by `pyarrow.dataset`, one dataset for each file, so that every format is a stream of record batches.
CSV is read whole, because the type of a column is known only after its last row. pyarrow is imported when a table is
opened.
"""

from __future__ import annotations

import glob
import json
import os
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
# Endings of compressed CSV files, with the names that pyarrow has for them, and their first bytes.
_COMPRESSIONS = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd", ".lz4": "lz4"}
_PACKED = {b"\x1f\x8b": ".gz", b"BZh": ".bz2", b"\x28\xb5\x2f\xfd": ".zst", b"\x04\x22\x4d\x18": ".lz4"}
_DELIMITERS = (",", "\t", ";", "|")
_FIRST_LINE = 2  # of the rows of a CSV file, under its header
_BATCH_BYTES = 1 << 24  # of columns that are decoded, and become rows, at a time
_TILE_ROWS = 4096  # column after column is written into so many rows, which stay in cache
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
        standard input. Several files are one table; they must have the columns of the first.
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

    A CSV file is read whole, because the type of a column is known only after its last row, and so is a compressed
    Arrow file.

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
    files = open_tables(source, [qid])
    reader = TableReader(files, label, qid, features, embedding, missing=missing, dtype=dtype)
    return reader.blocks(block_rows)


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
    n_rows : int
    first_line : int or None
        The line of row 0 in a CSV file; None for other formats.
    kept : object
        The temporary copy of a pipe, which is deleted with this object.
    """

    name: str
    dataset: Any
    n_rows: int
    first_line: int | None = None
    kept: object = None

    @property
    def schema(self) -> Any:
        """The names and types of the columns."""
        return self.dataset.schema

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
                if data.num_rows:
                    yield Batch(self, row, data)
                row += data.num_rows


def is_table(source: object) -> bool:
    """Tell whether a source is a table: a path by its ending, else a data frame or Arrow table."""
    if isinstance(source, (str, os.PathLike)):
        return _ending(Path(os.fsdecode(source))) in TABLE_ENDINGS
    return isinstance(source, TableFile) or hasattr(source, "__arrow_c_stream__")


def open_tables(source: object, texts: Sequence[str | None] = ()) -> list[TableFile]:
    """Open a table, or several.

    Parameters
    ----------
    source : path, glob, folder, file object, data frame, Arrow table, TableFile, or list of those
    texts : list of str
        Columns that CSV files hold as text, so that ids stay as they are written.
    """
    sources = source if isinstance(source, (list, tuple)) else [source]
    files = [file for one in sources for file in _open_source(one, texts)]
    # Columns of tables without rows may have other types.
    return [file for file in files if file.n_rows] or files


def _open_source(source: object, texts: Sequence[str | None]) -> list[TableFile]:
    pa = import_pyarrow()
    if isinstance(source, TableFile):
        return [source]
    if isinstance(source, str) and source == "-":
        source = sys.stdin.buffer
    if hasattr(source, "read"):
        return [_open_pipe(source, texts)]
    if isinstance(source, (str, os.PathLike)):
        return [_open_file(path, texts) for path in _expand(source)]
    try:
        frame: Any = source.collect() if hasattr(source, "lazy") and hasattr(source, "collect") else source
        frame = frame.to_arrow() if hasattr(frame, "to_arrow") else frame
        table = frame if isinstance(frame, pa.Table) else pa.table(frame)
    except (TypeError, ValueError, pa.ArrowException) as error:
        raise InvalidInputError(
            f"A {type(source).__name__} cannot be read as a table: {error}.",
            "pass a file, an Arrow table, or a data frame whose columns hold one type each.",
        ) from error
    return [TableFile("the table", pa.dataset.dataset(table), table.num_rows)]


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


def _open_pipe(pipe: Any, texts: Sequence[str | None]) -> TableFile:
    """Copy a pipe to a temporary file: Parquet and Arrow are not read from front to back."""
    head = pipe.read(8)
    packed = next((ending for magic, ending in _PACKED.items() if head.startswith(magic)), "")
    kept = tempfile.NamedTemporaryFile(suffix=f".csv{packed}")  # noqa: SIM115 - lives as long as the table
    kept.write(head)
    shutil.copyfileobj(pipe, kept)
    kept.flush()
    return replace(_open_file(Path(kept.name), texts), name="standard input", kept=kept)


def _open_file(path: Path, texts: Sequence[str | None]) -> TableFile:
    pa = import_pyarrow()
    with path.open("rb") as file:
        magic = file.read(8)
    with _explained(str(path)):
        if magic.startswith(b"\xff\xff\xff\xff"):
            with pa.OSFile(str(path)) as file, pa.ipc.open_stream(file) as reader:
                reader.schema.names  # noqa: B018 - raises where a name is damaged
                return _checked(path.name, reader.read_all())
        if not magic.startswith((b"PAR1", b"ARROW1")):
            return _open_csv(path, magic, texts)
        if magic.startswith(b"ARROW1"):  # not as a dataset, which crashes on some damaged files
            with pa.memory_map(str(path)) as file, pa.ipc.open_file(file) as reader:
                reader.schema.names  # noqa: B018 - as above
                return _checked(path.name, reader.read_all())
        # Arrow's default reads Parquet far ahead of the batches: 660 MB of a file of 600 MB, instead of 120.
        scan = pa.dataset.ParquetFragmentScanOptions(pre_buffer=False, use_buffered_stream=True)
        dataset = pa.dataset.dataset(
            path, format=pa.dataset.ParquetFileFormat(default_fragment_scan_options=scan)
        )
        dataset.schema.names  # noqa: B018 - as above
        return TableFile(path.name, dataset, dataset.count_rows())


def _checked(name: str, table: Any) -> TableFile:
    """Return a table of Arrow data that were just read; damaged ones would be read outside their buffers."""
    table.validate(full=True)
    return TableFile(name, import_pyarrow().dataset.dataset(table), table.num_rows)


def _open_csv(path: Path, magic: bytes, texts: Sequence[str | None]) -> TableFile:
    pa = import_pyarrow()
    with pa.input_stream(str(path)) as text:
        header = _header(path, magic, text.read(1 << 16))
    is_tabbed = _ending(path) == ".tsv" and "\t" in header
    delimiter = "\t" if is_tabbed else max(_DELIMITERS, key=header.count)
    names = [name for name in header.split(delimiter) if name.strip()]
    # Columns without names are numbered from 0 by pandas.
    if not names or (all(map(reads_as_number, names)) and names != [str(at) for at in range(len(names))]):
        raise InvalidInputError(
            f"{path.name} has no header line: it begins with {header!r:.60}.",
            "write the names of the columns in the first line, in quotes if they are numbers.",
        )

    def options(*, newlines: bool = False, **reading: Any) -> dict[str, Any]:
        types = {name: pa.string() for name in texts if name is not None}
        return {
            "read_options": pa.csv.ReadOptions(**reading),
            "parse_options": pa.csv.ParseOptions(delimiter=delimiter, newlines_in_values=newlines),
            "convert_options": pa.csv.ConvertOptions(column_types=types, null_values=NULLS),
        }

    table = _read_csv(path, options)
    for field in table.schema:
        if pa.types.is_binary(field.type):
            raise InvalidInputError(
                f"{path.name}, column {field.name!r}: the text is not in UTF-8.", "save the file as UTF-8."
            )
    return TableFile(path.name, pa.dataset.dataset(table), table.num_rows, _FIRST_LINE)


def _read_csv(path: Path, options: Callable[..., dict[str, Any]]) -> Any:
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
        row = breaks.index(True).as_py()
        raise InvalidInputError(
            f"{path.name}, column {name!r}, row {row} (line {row + _FIRST_LINE}): a quote is not closed.",
            "close the quote; inside an entry in quotes, a quote is written twice.",
        )
    # One thread knows the number of a row that is wrong, and large blocks hold long lines.
    return pa.csv.read_csv(path, **options(newlines=is_closed, use_threads=False, block_size=1 << 28))


def _header(path: Path, magic: bytes, head: bytes) -> str:
    """Return the first line of a CSV file; files of other kinds are errors."""
    line = head.removeprefix(b"\xef\xbb\xbf").partition(b"\n")[0].rstrip(b"\r")
    problem = None
    if not magic:
        problem = "is empty", "check that the file is the one you mean."
    elif magic.startswith((b"PK\x03\x04", b"\xd0\xcf\x11\xe0")):
        hint = "save the sheet as CSV, or pass the data frame that pandas.read_excel returns."
        problem = "is an Excel workbook", hint
    elif magic.lstrip().startswith((b"{", b"[{")):
        hint = "pass the data frame that pandas.read_json returns (lines=True if every line is an object)."
        problem = "is JSON", hint
    elif b"\0" in head or line.decode(errors="replace").encode() != line:
        hint = f"save CSV files as UTF-8; tables end in {', '.join(TABLE_ENDINGS)}."
        problem = "is damaged, or is not text in UTF-8", hint
    if problem is not None:
        raise InvalidInputError(f"{path} {problem[0]}.", problem[1])
    return line.decode()


@contextmanager
def _explained(name: str) -> Iterator[None]:
    """Turn pyarrow's errors about a file into ours; errors of the system, such as a missing file, stay OSErrors."""
    try:
        yield
    except (import_pyarrow().ArrowException, OSError, UnicodeDecodeError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        problem = f" cannot be read: {' '.join(str(error).split()).rstrip('.')[:300]}."
        hint = "check that the file is whole; entries of CSV that contain the separator must be in quotes."
        if isinstance(error, UnicodeDecodeError) or "UTF8" in str(error):
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


def numbers_of(files: Sequence[TableFile], name: str) -> Floats:
    """Return a column of numbers of all files."""
    return np.asarray(
        _column_of(files, lambda batch: batch.numbers(name, "write a number in every row."), name)
    )


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
    ) -> None:
        if not files:
            raise InvalidInputError("The list of tables is empty.", "pass at least one file.")
        self.files, self.label, self.qid = files, label, qid
        self.missing = check_choice("missing", missing, ("error", "nan", "zero"))
        self.dtype = check_dtype(dtype)
        for role, name in (("label", label), ("qid", qid)):
            check_columns(files[0], [] if name is None else [name], role)
        given = [embedding] if isinstance(embedding, str) else () if embedding is None else embedding
        self.embeddings: list[str] = list_names("embedding", given)
        self.features: list[str] = [] if features is None else list_names("features", features)
        self.sparse = None if features is not None or self.embeddings else sparse_width(files)
        if features is None and not self.embeddings and self.sparse is None:
            self.features, self.embeddings = _default_features(files[0], {label, qid})
        taken = [*self.features, *self.embeddings]
        if len(set(taken)) != len(taken) or {label, qid} & set(taken):
            raise InvalidInputError(
                "A column has two roles among label, qid, features and embedding.", "name each column once."
            )
        sparse = [] if self.sparse is None else ["indices", "values"]
        named = [name for name in (label, qid) if name is not None]
        self.columns = list(dict.fromkeys([*named, *taken, *sparse]))  # pyarrow reads a column once
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

    def rows_in(self, n_bytes: int) -> int:
        """Return the approximate number of rows that take `n_bytes` in memory, at least 1."""
        row_bytes = 8 * (len(self.columns) + sum(self._widths))
        if self.sparse is not None:
            first = next(self.files[0].batches(self.columns, 1024), None)
            row_bytes = 1 if first is None else first.data.nbytes // first.data.num_rows
        return max(1, n_bytes // max(1, row_bytes))

    def blocks(self, n_rows: int, X: AnyArray | None = None) -> Iterator[Table]:
        """Yield the rows in their order, at most `n_rows` at a time; fill X, if given."""
        names, start = self.names, 0
        for batch in (batch for file in self.files for batch in file.batches(self.columns, n_rows)):
            stop = start + batch.data.num_rows
            if X is not None and stop > X.shape[0]:
                start = stop
                break
            rows = self._rows(batch, None if X is None else X[start:stop])
            yield Table(rows, self._labels(batch), self._ids(batch), names)
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
        rows, labels, ids, _ = zip(*self.blocks(self.rows_in(_BATCH_BYTES), X), strict=True)
        y = None if self.label is None else np.concatenate(labels)
        qid = None if self.qid is None else _joined(ids)
        return Table(sp.vstack(rows, format="csr") if X is None else X, y, qid, self.names)

    def _ids(self, batch: Batch) -> AnyArray | None:
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
    for role, named in (("magnitude", magnitude), ("weight", weight)):
        column = role if named is None and role in comparisons[0].schema.names else named
        if column is not None:
            check_columns(comparisons[0], [column], role)
            amounts[role] = numbers_of(comparisons, column)
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
    return _FORMATS.get(_ending(Path(path))) == "csv"


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
        Ends in .parquet, .pq, .arrow, .ipc, .feather, .csv or .tsv; .csv.gz is compressed, and so are .bz2, .zst and
        .lz4. Written under a temporary name and renamed.
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
    kind, packing = _FORMATS.get(_ending(target)), _COMPRESSIONS.get(target.suffix.lower())
    if kind is None or (packing is not None and kind != "csv"):
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
            delimiter = "\t" if _ending(target) == ".tsv" else ","
            options = pa.csv.WriteOptions(quoting_style="needed", delimiter=delimiter)
            with pa.output_stream(stream, compression=packing) as text:
                pa.csv.write_csv(table, text, options)


def _as_table(X: MatrixLike, beside: Mapping[str, Any], names: Sequence[str] | None, *, is_csv: bool) -> Any:
    """Return rows as an Arrow table: columns beside them, then one per feature, or the two of a CSR matrix."""
    pa = import_pyarrow()
    rows = as_rows("X", X)
    rows = rows.tocsr() if sp.issparse(rows) else np.asarray(rows)
    given = {name: as_array(name, values) for name, values in beside.items() if values is not None}
    ids = next(iter(beside))
    if is_csv and ids in given and given[ids].dtype.kind == "f":  # 1.0, where pyarrow would write 1
        given[ids] = np.array([str(value) for value in given[ids].tolist()])
    columns = {name: pa.array(values) for name, values in given.items()}
    own = None if names is None else check_names("feature_names", names)
    if sp.issparse(rows):
        return _sparse_table(rows, columns, own, is_csv=is_csv)
    own = own or [f"f{at}" for at in range(rows.shape[1])]
    if len({*columns, *own}) < len(columns) + len(own) or len(own) != rows.shape[1]:
        raise InvalidInputError(
            f"The {rows.shape[1]} features do not have a name each: {', '.join(own)}.",
            "rename features that are called alike, or pass other names as label and qid_name.",
        )
    features = {name: pa.array(np.ascontiguousarray(rows[:, at])) for at, name in enumerate(own)}
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
