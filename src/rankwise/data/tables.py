"""Tables with named columns: reading Parquet, Arrow, Feather, CSV and data frames, and writing such files.

Every format becomes a stream of record batches. Parquet is read batch by batch; CSV is read whole, because the type of
a column is known only after its last row. pyarrow is imported when a table is opened.
"""

from __future__ import annotations

import glob
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

import numpy as np
import numpy.typing as npt

from rankwise.arrays import AnyArray, Floats, MatrixLike, is_sparse
from rankwise.data.columns import NULLS, kind_of_type, number_text_problem, reads_as_number, require_columns
from rankwise.data.containers import as_array, as_rows
from rankwise.data.queries import decode_ids
from rankwise.data.validation import (
    check_choice,
    check_count,
    check_dtype,
    check_names,
    list_names,
)
from rankwise.exceptions import InvalidInputError, MemoryLimitError, MissingPackageError
from rankwise.files import replacing
from rankwise.runtime.memory import fits

TABLE_ENDINGS = (".parquet", ".pq", ".arrow", ".ipc", ".feather", ".arrows", ".csv", ".tsv")
_FOREIGN = (".xlsx", ".xls", ".json", ".jsonl")  # refused as tables, in words that fit
# Endings of compressed CSV files, with the names that pyarrow has for them, and their first bytes.
_COMPRESSIONS = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd", ".lz4": "lz4"}
_PACKED = {b"\x1f\x8b": ".gz", b"BZh": ".bz2", b"\x28\xb5\x2f\xfd": ".zst", b"\x04\x22\x4d\x18": ".lz4"}
_ARROW = (b"ARROW1", b"\xff\xff\xff\xff")  # the first bytes of files and of streams
_EXCEL = (b"PK\x03\x04", b"\xd0\xcf\x11\xe0")
_DELIMITERS = (",", "\t", ";", "|")
_FIRST_LINE = 2  # of the rows of a CSV file, under its header
_PAGES = 1 << 16  # bytes of a column of Parquet that are read at a time
_BATCH_BYTES = 1 << 24  # of columns that are decoded, and become rows, at a time
_TILE_ROWS = 4096  # column after column is written into so many rows, which stay in cache


class Table(NamedTuple):
    """Rows of a table as a ranker takes them.

    Attributes
    ----------
    X : ndarray of shape (rows, features)
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
        by default none.
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
        import pyarrow.parquet  # noqa: PLC0415
    except ImportError as error:
        raise MissingPackageError(
            "Tables are read and written by pyarrow, which is not installed.",
            "pip install 'rankwise[tables]'.",
        ) from error
    return pa


# Opening tables


@dataclass(frozen=True)
class TableFile:
    """A table that is open.

    Attributes
    ----------
    name : str
        For messages.
    source : pyarrow.Table, or the path of a Parquet file
    schema : pyarrow.Schema
        The names and types of the columns.
    n_rows : int
    first_line : int or None
        The line of row 0 in a CSV file; None for other formats.
    kept : object
        The temporary copy of a pipe, which is deleted with this object.
    """

    name: str
    source: Any
    schema: Any
    n_rows: int
    first_line: int | None = None
    kept: object = None

    @classmethod
    def of(cls, name: str, table: Any, first_line: int | None = None) -> TableFile:
        """Return a table in memory."""
        return cls(name, table, table.schema, table.num_rows, first_line)

    def place(self, row: int) -> str:
        """Name a row in messages."""
        return f"row {row}" + ("" if self.first_line is None else f" (line {row + self.first_line})")

    def require(self, columns: Sequence[str], role: str) -> None:
        """Raise unless the table has each of some columns, once."""
        require_columns(self.name, self.schema.names, columns, role)

    def refuse(self, name: str, bad: AnyArray, problem: str, hint: str, row: int = 0) -> None:
        """Raise where a row of those from `row` on is bad; the error names the column and the first such row."""
        if bad.any():
            place = self.place(row + int(np.argmax(bad)))
            raise InvalidInputError(f"{self.name}, column {name!r}, {place}: {problem}.", hint)

    def batches(self, columns: Sequence[str], n_rows: int = 1 << 16) -> Iterator[Batch]:
        """Yield some columns, at most `n_rows` rows at a time."""
        self.require(columns, "a column of the first table")
        row = 0
        with _explained(self.name):
            for data in self._scan(list(columns), n_rows):
                if data.num_rows:
                    yield Batch(self, row, data)
                row += data.num_rows

    def _scan(self, columns: list[str], n_rows: int) -> Iterator[Any]:
        if not isinstance(self.source, Path):
            yield from self.source.select(columns).to_batches(n_rows)
            return
        with _parquet(self.source) as file:
            for data in file.iter_batches(n_rows, columns=columns):
                yield data.select(columns)


def is_table(source: object) -> bool:
    """Tell whether a source is a table: a path by its ending, else a data frame or Arrow table."""
    if isinstance(source, (str, os.PathLike)):
        return _ending(Path(os.fsdecode(source))) in {*TABLE_ENDINGS, *_FOREIGN}
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
    return [TableFile.of("the table", table)]


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
        if not magic.startswith((b"PAR1", *_ARROW)):
            return _open_csv(path, magic, texts)
        if magic.startswith(_ARROW):
            opened = pa.ipc.open_file if magic.startswith(b"ARROW1") else pa.ipc.open_stream
            with pa.memory_map(str(path)) as file, opened(file) as reader:
                reader.schema.names  # noqa: B018 - raises where a name is damaged
                table = reader.read_all()
                table.validate(full=True)  # damaged ones would be read outside their buffers
            return TableFile.of(path.name, table)
        with _parquet(path) as file:
            schema, n_rows = file.schema_arrow, file.metadata.num_rows
            schema.names  # noqa: B018 - as above
        return TableFile(path.name, path, schema, n_rows)


def _parquet(path: Path) -> Any:
    """Open a Parquet file that is read page by page: by default, Arrow reads a whole group of rows ahead."""
    return import_pyarrow().parquet.ParquetFile(path, pre_buffer=False, buffer_size=_PAGES)


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

    types = {name: pa.string() for name in texts if name is not None}
    convert = pa.csv.ConvertOptions(column_types=types, null_values=NULLS)

    def read(*, newlines: bool = False, **options: Any) -> Any:
        parse = pa.csv.ParseOptions(delimiter=delimiter, newlines_in_values=newlines)
        # Before Arrow 24, a reader that meets an error early may wait for itself (apache/arrow issue 48741).
        options.setdefault("use_threads", int(pa.__version__.partition(".")[0]) >= 24)
        return pa.csv.read_csv(path, pa.csv.ReadOptions(**options), parse, convert)

    table = _read_csv(path, read)
    latin = next((field.name for field in table.schema if pa.types.is_binary(field.type)), None)
    if latin is not None:
        raise InvalidInputError(
            f"{path.name}, column {latin!r}: the text is not in UTF-8.", "save the file as UTF-8."
        )
    return TableFile.of(path.name, table, _FIRST_LINE)


def _read_csv(path: Path, read: Callable[..., Any]) -> Any:
    """Read a whole file, and again with care where a line break may be part of an entry."""
    pa = import_pyarrow()
    table, broken = None, None
    with suppress(pa.ArrowInvalid):
        table = read()
        columns = zip(table.column_names, table.columns, strict=True)
        texts = ((name, column) for name, column in columns if pa.types.is_string(column.type))
        breaks = ((name, pa.compute.match_substring(column, "\n")) for name, column in texts)
        broken = next(((name, found) for name, found in breaks if pa.compute.any(found).as_py()), None)
    if table is not None and broken is None:
        return table
    with pa.input_stream(str(path)) as text:
        is_closed = sum(block.count(b'"') for block in iter(lambda: text.read(1 << 22), b"")) % 2 == 0
    if broken is not None and not is_closed:
        row = broken[1].index(True).as_py()
        raise InvalidInputError(
            f"{path.name}, column {broken[0]!r}, row {row} (line {row + _FIRST_LINE}): a quote is not closed.",
            "close the quote; inside an entry in quotes, a quote is written twice.",
        )
    # One thread knows the number of a row that is wrong, and large blocks hold long lines.
    return read(newlines=is_closed, use_threads=False, block_size=1 << 28)


def _header(path: Path, magic: bytes, head: bytes) -> str:
    """Return the first line of a CSV file; files of other kinds are errors."""
    line = head.removeprefix(b"\xef\xbb\xbf").partition(b"\n")[0].rstrip(b"\r")
    is_odd = b"\0" in head or line.decode(errors="replace").encode() != line
    for is_so, problem, hint in (
        (not magic, "is empty", "check that the file is the one you mean."),
        (magic.startswith(_EXCEL), "is an Excel workbook", "save it as CSV, or use pandas.read_excel."),
        (magic.lstrip().startswith((b"{", b"[{")), "is JSON", "pass the data frame of pandas.read_json."),
        (is_odd, "is damaged, or is not text in UTF-8", "save CSV files as UTF-8."),
    ):
        if is_so:
            raise InvalidInputError(f"{path} {problem}.", hint)
    return line.decode()


@contextmanager
def _explained(name: str) -> Iterator[None]:
    """Turn pyarrow's errors about a file into ours; errors of the system, such as a missing file, stay OSErrors."""
    try:
        yield
    except (import_pyarrow().ArrowException, OSError, UnicodeError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        problem = f" cannot be read: {' '.join(str(error).split()).rstrip('.')[:300]}."
        hint = "check that the file is whole; entries of CSV that contain the separator must be in quotes."
        is_latin = isinstance(error, UnicodeDecodeError) or "UTF8" in str(error)
        raise InvalidInputError(name + problem, "save it as UTF-8." if is_latin else hint) from error


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

    def numbers(
        self,
        name: str,
        hint: str,
        *,
        width: int | None = None,
        missing: str = "never",
        dtype: Any = np.float64,
    ) -> AnyArray:
        """Return a column of finite numbers, or of lists of `width` numbers, of shape (rows, width or 1).

        Null is NaN, which "nan" as `missing` keeps and "zero" turns into 0.
        """
        pa = import_pyarrow()
        column = _plain(self.data.column(name))
        kind = kind_of_type(column.type)
        if kind not in ({"number", "flag"} if width is None else {"list"}):
            problem = number_text_problem(self.file, name)
            wanted = "numbers" if width is None else "lists of numbers"
            example = f"{column.type}, such as {column[0].as_py()!r:.60}"
            plain = f"{self.file.name}, column {name!r} does not hold {wanted}: it holds {example}."
            raise InvalidInputError(problem or plain, hint)
        if width is not None:
            wrong = np.asarray(pa.compute.list_value_length(column).fill_null(-1)) != width
            problem = f"the list is missing, or does not have {width} numbers, as those before"
            self.refuse(name, wrong, problem, "make all lists of the column the same length.")
            column = _plain(column.flatten())
        if pa.types.is_boolean(column.type):
            column = column.cast(pa.uint8())
        with np.errstate(over="ignore"):
            given = column.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
            values: AnyArray = given.astype(dtype, copy=False).reshape(self.data.num_rows, -1)
        if np.isfinite(values).all():
            return values
        if missing in {"error", "never"}:
            advice = "only features may be missing."
            if missing == "error":
                advice = "missing='zero' reads features as 0, missing='nan' keeps them for an imputer."
            advice = f"drop those rows or fill them in; {advice}"
            self.refuse(name, np.isnan(values).max(axis=1), "a missing value", advice)
        advice = "replace it by a smaller number, drop the row, or pass dtype=np.float64."
        self.refuse(name, np.isinf(values).max(axis=1), f"a value is not finite in {values.dtype}", advice)
        return np.nan_to_num(values, nan=0.0) if missing == "zero" else values

    def ids(self, name: str, role: str, kind: str = "U") -> AnyArray:
        """Return a column of ids of any type, none missing; text of CSV files becomes `kind`: see `decode_ids`."""
        pa = import_pyarrow()
        column = _plain(self.data.column(name))
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


def _plain(column: Any) -> Any:
    """Return an Arrow array without its dictionary or extension type."""
    pa = import_pyarrow()
    column = column.dictionary_decode() if pa.types.is_dictionary(column.type) else column
    return column.storage if isinstance(column, pa.ExtensionArray) else column


def texts_of(files: Sequence[TableFile], name: str) -> npt.NDArray[np.str_]:
    """Return a column of all files as text; null becomes the empty text."""
    batches = (batch.data.column(name) for file in files for batch in file.batches([name]))
    entries = ["" if entry is None else str(entry) for column in batches for entry in column.to_pylist()]
    return np.array(entries, dtype=np.str_)


def arrow_table(files: Sequence[TableFile], names: Sequence[str]) -> Any:
    """Return columns of all files as they are, as one Arrow table."""
    pa = import_pyarrow()
    parts = []
    for file in files:
        batches = [batch.data for batch in file.batches(names)]
        parts.append(pa.Table.from_batches(batches, pa.schema([file.schema.field(name) for name in names])))
    try:
        return pa.concat_tables(parts, promote_options="permissive")
    except pa.ArrowException as error:
        problem = f"The files have columns of different types: {error}."
        raise InvalidInputError(problem, "write them alike.") from error


def numbers_of(files: Sequence[TableFile], name: str, role: str) -> Floats:
    """Return a column of numbers of all files."""
    files[0].require([name], role)
    batches = (batch for file in files for batch in file.batches([name]))
    parts = [batch.numbers(name, "write a number in every row.").ravel() for batch in batches]
    return np.concatenate([np.empty(0), *parts])


class TableReader:
    """Reads open tables as arrays.

    Parameters
    ----------
    files : list of TableFile
    label, qid, features, embedding, missing, dtype
        As in `load_table`.

    Attributes
    ----------
    features : list of str
    columns : list of str
        All columns that are read.
    names : list of str
        The names of the columns of X.
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
        named = [name for name in (label, qid) if name is not None]
        for role, name in (("label", label), ("qid", qid)):
            files[0].require([] if name is None else [name], role)
        lists = list_names("embedding", [embedding] if isinstance(embedding, str) else embedding or ())
        is_default = features is None and not lists
        chosen = _default_features(files[0], named) if is_default else list_names("features", features or ())
        self.features = [*chosen, *lists]
        if len({*self.features}) < len(self.features) or {*named} & {*self.features}:
            raise InvalidInputError(
                "A column has two roles among label, qid, features and embedding.", "name each column once."
            )
        files[0].require(self.features, "features")
        self.columns = list(dict.fromkeys([*named, *self.features]))  # pyarrow reads a column once
        for file in files:
            file.require(self.columns, "a column of the first table")
        self.n_rows = sum(file.n_rows for file in files)
        if self.n_rows == 0:
            self._refuse("has no rows")
        fields = {name: files[0].schema.field(name).type for name in self.features}
        self._lists = {
            name: self._length(name) for name, kind in fields.items() if kind_of_type(kind) == "list"
        }
        places = ((name, self._lists.get(name)) for name in self.features)
        self.names: list[str] = [
            own
            for name, length in places
            for own in ([name] if length is None else [f"{name}[{at}]" for at in range(length)])
        ]
        self._kind_of_ids = "U" if qid is None else _kind_of_ids(files, qid)

    def _length(self, name: str) -> int:
        """Return the length of the first list of a column."""
        first = next((batch for file in self.files for batch in file.batches([name], 1024)), None)
        if first is None:
            self._refuse("is corrupt: it declares rows, and none was read")
        value = _plain(first.data.column(name))[0].as_py()
        return 0 if value is None else len(value)

    def _refuse(self, problem: str) -> NoReturn:
        names = ", ".join(file.name for file in self.files)
        raise InvalidInputError(
            f"{names} {problem}.", "check that the file is the one you mean, or export it again."
        )

    def rows_in(self, n_bytes: int) -> int:
        """Return the approximate number of rows that take `n_bytes` in memory, at least 1."""
        return max(1, n_bytes // (8 * max(1, len(self.columns) + len(self.names))))

    def blocks(self, n_rows: int, X: AnyArray | None = None) -> Iterator[Table]:
        """Yield the rows in their order, at most `n_rows` at a time; fill X, if given."""
        start = 0
        for batch in (batch for file in self.files for batch in file.batches(self.columns, n_rows)):
            stop = start + batch.data.num_rows
            if stop <= self.n_rows:
                rows = self._rows(batch, None if X is None else X[start:stop])
                yield Table(rows, self._labels(batch), self._ids(batch), self.names)
            start = stop
        if start != self.n_rows:
            self._refuse(f"is corrupt: it declares {self.n_rows:,} rows, and {start:,} were read")

    def load(self) -> Table:
        """Return all rows."""
        needed = self.n_rows * (8 + self.dtype.itemsize * len(self.names))
        if not fits(needed):
            raise MemoryLimitError(
                f"{', '.join(file.name for file in self.files)}: {self.n_rows:,} rows take {needed / 1e9:,.1f} GB.",
                "read them in blocks (iter_table), or into a store (rankwise convert).",
            )
        X = np.empty((self.n_rows, len(self.names)), dtype=self.dtype)
        _, labels, ids, _ = zip(*self.blocks(self.rows_in(_BATCH_BYTES), X), strict=True)
        y = None if self.label is None else np.concatenate(labels)
        return Table(X, y, None if self.qid is None else joined(ids), self.names)

    def _ids(self, batch: Batch) -> AnyArray | None:
        return None if self.qid is None else batch.ids(self.qid, "the query id", self._kind_of_ids)

    def _labels(self, batch: Batch) -> Floats | None:
        hint = "encode labels as numbers, higher is better: for example {'bad': 0, 'fair': 1, 'good': 2}."
        return None if self.label is None else batch.numbers(self.label, hint).ravel()

    def _rows(self, batch: Batch, out: AnyArray | None) -> AnyArray:
        """Return the features of a batch, written into `out` where it is given."""
        hint = "correct the entry, leave the column out of features, or encode it as numbers."
        how: dict[str, Any] = {"missing": self.missing, "dtype": self.dtype}
        parts = [batch.numbers(name, hint, width=self._lists.get(name), **how) for name in self.features]
        n_rows = batch.data.num_rows
        X = np.empty((n_rows, len(self.names)), dtype=self.dtype) if out is None else out
        for tile in (
            slice(first, first + _TILE_ROWS) for first in range(0, n_rows if parts else 0, _TILE_ROWS)
        ):
            np.concatenate([part[tile] for part in parts], axis=1, out=X[tile])
        return X


def _default_features(file: TableFile, taken: Sequence[str]) -> list[str]:
    """Return all columns of numbers, or all of lists where there are none."""
    names = [name for name in file.schema.names if name not in taken]
    file.require(names, "features")
    kinds = {name: kind_of_type(file.schema.field(name).type) for name in names}
    problem = next(filter(None, (number_text_problem(file, name) for name in names)), None)
    if problem is not None:
        raise InvalidInputError(
            problem,
            "correct the entry (an empty one is missing), or list the features you want, without this column.",
        )
    numbers = [name for name in names if kinds[name] in {"number", "flag"}]
    chosen = numbers or [name for name in names if kinds[name] == "list"]
    if not chosen:
        raise InvalidInputError(
            f"{file.name} has no column of numbers beside label and qid.",
            "name a column of lists as embedding, or encode the columns as numbers.",
        )
    return chosen


def _kind_of_ids(files: Sequence[TableFile], name: str) -> str:
    """Return the type of the ids of all CSV files: "i", "f" or "U"."""
    texts: set[str | None] = set()
    for file in files:
        if file.first_line is not None and str(file.schema.field(name).type) == "string":
            for batch in file.batches([name], 1 << 20):
                texts.update(batch.data.column(name).unique().to_pylist())
    return decode_ids([text for text in texts if text is not None and text not in NULLS]).dtype.kind


def joined(parts: Sequence[Any]) -> AnyArray:
    """Join arrays, of objects where their types have none in common."""
    kinds = {part.dtype.kind for part in parts}
    mixed = len(kinds) > 1 and kinds & set("OMm")  # dates and numbers, say, have no type in common
    return np.concatenate([part.astype(object) for part in parts] if mixed else parts)


# Writing

_FORMATS = {".parquet": "parquet", ".pq": "parquet", ".arrow": "ipc", ".ipc": "ipc", ".feather": "ipc"}
_FORMATS |= {".csv": "csv", ".tsv": "csv"}


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

    There is a column for every feature: write sparse rows as text (`save_svmlight`) or into a store (`save_store`).

    Parameters
    ----------
    X : array-like of shape (rows, features)
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
            pa.parquet.write_table(table, stream)
        elif kind == "ipc":
            with pa.ipc.new_file(stream, table.schema) as writer:
                writer.write_table(table)
        else:
            delimiter = "\t" if _ending(target) == ".tsv" else ","
            options = pa.csv.WriteOptions(quoting_style="needed", delimiter=delimiter)
            with pa.output_stream(stream, compression=packing) as text:
                pa.csv.write_csv(table, text, options)


def _as_table(X: MatrixLike, beside: Mapping[str, Any], names: Sequence[str] | None, *, is_csv: bool) -> Any:
    """Return rows as an Arrow table: columns beside them, then one per feature."""
    pa = import_pyarrow()
    if is_sparse(X):
        raise InvalidInputError(
            f"X is sparse, and a table has a column for each of its {X.shape[1]:,} features.",
            "write svmlight text or a store, or pass X.toarray().",
        )
    rows = np.asarray(as_rows("X", X))
    given = {name: as_array(name, values) for name, values in beside.items() if values is not None}
    ids = next(iter(beside))
    if is_csv and ids in given and given[ids].dtype.kind == "f":  # 1.0, where pyarrow would write 1
        given[ids] = np.array([str(value) for value in given[ids].tolist()])
    columns = {name: pa.array(values) for name, values in given.items()}
    own = [f"f{at}" for at in range(rows.shape[1])] if names is None else check_names("feature_names", names)
    if len({*columns, *own}) < len(columns) + len(own) or len(own) != rows.shape[1]:
        raise InvalidInputError(
            f"The {rows.shape[1]} features do not have a name each: {', '.join(own)}.",
            "rename features that are called alike, or pass other names as label and qid_name.",
        )
    features = {name: pa.array(np.ascontiguousarray(rows[:, at])) for at, name in enumerate(own)}
    return pa.table(columns | features)
