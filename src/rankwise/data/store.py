"""Stores: rows on disk that estimators train on without loading them.

A store is a folder of ``.npy`` files and ``meta.json``:

==========================  =========================================================================
X                           (rows, columns) float32 or float64: dense rows
data, indices, indptr       the arrays of a CSR matrix instead: float32 or float64, int32, int64
y                           (rows,) float64
query_start, query_ids      (queries + 1,) int64, the first row of each query, and (queries,) ids
==========================  =========================================================================

Opening compares the ``.npy`` headers with each other and with the sizes of the files, and checks row pointers and
column numbers once, because products would read outside their vectors otherwise.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterable, Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from rankwise import _core
from rankwise.arrays import AnyArray, DType, Floats, Ints
from rankwise.data.columns import first_column_of
from rankwise.data.containers import readable
from rankwise.data.mapped import MappedMatrix
from rankwise.data.queries import decode_ids
from rankwise.data.svmlight import TextReader, ZeroBased
from rankwise.data.tables import TableReader, is_table, open_tables
from rankwise.data.validation import check_dtype, check_numbers, check_qid
from rankwise.exceptions import InvalidInputError
from rankwise.files import replacing_folder
from rankwise.runtime.threads import default_threads

META = "meta.json"
FORMAT = "rankwise store"
# Bytes of text or of a table that make a block while a store is written; a larger query makes a larger block.
BLOCK_BYTES = 1 << 23
_LAST_CHARACTER = 0x10FFFF
_TIMES, _MOMENT = 10, 0.01  # a store that could not be opened is opened again, after so many seconds
# Types of Arrow that float32 holds exactly.
_NARROW = {"float", "halffloat", "int8", "int16", "uint8", "uint16", "bool"}
_Block = tuple[Any, Floats, AnyArray | None]  # rows, labels and query ids


class Store:
    """A data set on disk; made by `save_store`, opened by `open_store`.

    The arrays stay valid if the store is rewritten or removed while they are in use.

    Attributes
    ----------
    path : str
    X : ndarray or MappedMatrix of shape (rows, features)
        An array or a CSR matrix that stays on disk; every linear estimator trains on it without loading it.
    y : ndarray of shape (rows,)
    query_start : ndarray of shape (queries + 1,)
        The first row of each query; rows of a query are consecutive. Without query ids, ``[0]``.
    query_ids : ndarray of shape (queries,) or None
    first_column : {0, 1}
        The number of the first column in text.
    identity : str
        Different for every store that is written.
    n_bytes : int
        The size of the arrays on disk.

    Examples
    --------
    >>> import os, tempfile
    >>> from rankwise.data import open_store, save_store
    >>> folder = os.path.join(tempfile.mkdtemp(), "rows.store")
    >>> _ = save_store([([[1.0, 0.0], [0.0, 2.0]], [1, 0], [7, 7])], folder)
    >>> store = open_store(folder)
    >>> store.X.shape, store.y.tolist(), store.query_start.tolist()
    ((2, 2), [1.0, 0.0], [0, 2])
    """

    X: Any

    def __init__(self, path: str, meta: dict[str, Any], arrays: dict[str, AnyArray]) -> None:
        self.path = path
        self.first_column, self.identity = meta["first_column"], meta["identity"]
        self.n_bytes = sum(array.nbytes for array in arrays.values())
        # Copied: joblib would try to map them again in its workers.
        self.y: Floats = np.array(arrays["y"])
        self.query_start: Ints = np.array(arrays.get("query_start", [0]), dtype=np.int64)
        self.query_ids: AnyArray | None = np.array(arrays["query_ids"]) if "query_ids" in arrays else None
        if "X" in arrays:
            self.X = np.asarray(arrays["X"])
            return
        data, columns, start = arrays["data"], arrays["indices"], arrays["indptr"]
        if data.size < 2**31:  # SciPy takes row pointers and column numbers of one type
            start = start.astype(np.int32)
        # A process that unpickles the matrix may be in another folder.
        place = os.path.abspath(path)  # noqa: PTH100 - a link may be turned elsewhere, and is followed then
        self.X = MappedMatrix.over(
            (data, columns, start),
            (self.y.size, meta["columns"]),
            is_finite=meta["is_finite"],
            files=_open_directly(path, data, columns),
            reopen=(_matrix_of, (place, self.identity)),
        )

    @property
    def qid(self) -> AnyArray | None:
        """The query id of each row; None without ids."""
        return None if self.query_ids is None else np.repeat(self.query_ids, np.diff(self.query_start))

    def __repr__(self) -> str:
        rows, columns = self.X.shape
        return f"<Store {self.path}: {rows} rows, {columns} columns, {self.query_start.size - 1} queries>"


def open_store(path: str | os.PathLike[str]) -> Store:
    """Open a store that `save_store` wrote.

    The column numbers of a sparse store are read once and checked; dense rows are not read.

    Parameters
    ----------
    path : str or path
        The folder.

    Returns
    -------
    store : Store

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from rankwise.data import open_store, save_store
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_store([(np.eye(4), [2, 1, 0, 1], ["a", "a", "b", "b"])], f"{folder}/small")
    ...     store = open_store(f"{folder}/small")
    >>> store.X.shape, store.y.tolist(), store.qid.tolist()
    ((4, 4), [2.0, 1.0, 0.0, 1.0], ['a', 'a', 'b', 'b'])
    """
    store = _open(os.fspath(path))
    problem = _problem_of(store)
    if problem is not None:
        raise _damaged(store.path, problem)
    return store


def reopen_store(path: str, identity: str) -> Store:
    """Open a store that this or another process has opened, and so checked, before."""
    store = _open(path)
    if store.identity != identity:
        raise InvalidInputError(
            f"The store {path} was written again after it was opened, and holds other rows now.",
            "open it again, and do not replace stores while other processes work on them.",
        )
    return store


def _matrix_of(path: str, identity: str) -> MappedMatrix:
    matrix: MappedMatrix = reopen_store(path, identity).X
    return matrix


def _open(path: str) -> Store:
    for _ in range(_TIMES):
        with suppress(InvalidInputError):
            return _opened(path)
        time.sleep(_MOMENT)  # another process may be replacing the folder, which takes two renames
    return _opened(path)


def _opened(path: str) -> Store:
    place = Path(path, META)
    try:
        text = place.read_bytes()
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError) as error:
        raise InvalidInputError(
            f"{path} is not a store: there is no {META} in it.",
            "pass a folder that save_store wrote.",
        ) from error
    try:
        meta = json.loads(text)
        store = Store(path, meta, _arrays_of(path, meta))
        is_same = place.read_bytes() == text
    except Exception as error:
        # A file that is missing is damage; other errors of the system, such as too many open files, are not.
        is_missing = isinstance(error, FileNotFoundError | NotADirectoryError | IsADirectoryError)
        if isinstance(error, OSError | MemoryError) and not is_missing:
            raise
        raise _damaged(path, f"its files cannot be read ({error})") from error
    if not is_same:
        raise InvalidInputError(f"The store {path} was replaced while it was opened.", "open it again.")
    return store


def _arrays_of(path: str, meta: dict[str, Any]) -> dict[str, AnyArray]:
    """Map the arrays of a store; raise ValueError unless types and shapes are those of one."""

    def array(name: str, types: tuple[str, ...], *shape: int) -> AnyArray:
        found = np.lib.format.open_memmap(Path(path, f"{name}.npy"), mode="r")
        kind, flags = found.dtype, found.flags
        is_known = (kind.str in types or kind.kind in types) and kind.itemsize > 0
        if not (
            is_known and found.shape == (shape or (found.size,)) and flags.c_contiguous and flags.aligned
        ):
            raise ValueError(f"{name}.npy has type {kind} and shape {found.shape}")
        return found

    n_columns, values = meta["columns"], ("<f4", "<f8")
    if meta["format"] != FORMAT or meta["version"] != 1 or meta["first_column"] not in {0, 1}:
        raise ValueError("it is of another version")
    if type(n_columns) is not int or not 0 <= n_columns < 2**31:
        raise ValueError(f"{n_columns!r:.80} columns")
    y = array("y", ("<f8",))
    arrays = {"y": y}
    if meta["is_sparse"]:
        arrays["data"] = array("data", values)
        arrays["indices"] = array("indices", ("<i4",), arrays["data"].size)
        arrays["indptr"] = array("indptr", ("<i8",), y.size + 1)
    else:
        arrays["X"] = array("X", values, y.size, n_columns)
    if meta["has_ids"]:
        arrays["query_ids"] = array("query_ids", ("i", "f", "U"))
        arrays["query_start"] = array("query_start", ("<i8",), arrays["query_ids"].size + 1)
    return arrays


def _problem_of(store: Store) -> str | None:
    """Name the numbers that lead outside the arrays, or are not what they stand for; None if there are none."""
    X, ids, start = store.X, store.query_ids, store.query_start
    if isinstance(X, MappedMatrix):
        if X.indptr[-1] != X.indices.size:
            return "indptr.npy does not end with the entries"
        misfit = _core.compressed_misfit(X.indptr, X.indices, X.shape[1], default_threads())
        if misfit is not None:
            return f"the {misfit} of the matrix are out of range"
    if ids is not None and (start[0] != 0 or start[-1] != store.y.size or (start[1:] <= start[:-1]).any()):
        return "query_start.npy is not ascending"
    if ids is not None and ids.dtype.kind == "U" and ids.view(np.uint32).max(initial=0) > _LAST_CHARACTER:
        return "query_ids.npy is not text"
    return None if np.isfinite(store.y).all() else "y.npy has values that are not finite"


def _open_directly(path: str, data: Any, indices: Any) -> _core.DirectFiles | None:
    """Open two files for reads past the page cache; None where the system or the file system has none."""
    if not hasattr(os, "O_DIRECT"):
        return None
    opened: list[int] = []
    try:
        for name in ("data", "indices"):
            opened.append(os.open(Path(path, f"{name}.npy"), os.O_RDONLY | os.O_DIRECT))  # noqa: PERF401
    except OSError:
        for descriptor in opened:
            os.close(descriptor)
        return None
    return _core.DirectFiles(opened[0], opened[1], data.offset, indices.offset)


def _damaged(path: str, problem: str) -> InvalidInputError:
    return InvalidInputError(
        f"The store {path} is damaged: {problem}.", "copy it again from an intact copy, or write it again."
    )


def save_store(
    source: object,
    path: str | os.PathLike[str],
    *,
    dtype: npt.DTypeLike | None = None,
    zero_based: ZeroBased = "auto",
) -> None:
    """Write a data set to disk as a store that estimators can train on without loading it.

    Only one block of about 8 MB is in memory at a time, besides one id per query; CSV files are read whole. An existing
    store is replaced once the new one is complete, and stays valid for processes that have it open. On an error nothing
    changes.

    Parameters
    ----------
    source : paths, data frame, or iterable of blocks
        svmlight or LETOR text, as `load_svmlight` takes it; tables with the columns ``label`` and, where there are
        queries, ``qid``, as `load_table` takes them (recognised by the ending of the file: .parquet, .arrow, .feather,
        .csv and so on); or an iterable of blocks ``(X, y)`` or ``(X, y, qid)`` of equal width, such as
        `iter_svmlight` and `iter_table` return with their options. Arrays and tables are stored densely, text and
        sparse matrices as CSR. Rows of a query must be consecutive.
    path : str or path
        The folder to make.
    dtype : {np.float64, np.float32}, optional
        The type of the values. By default float32 where it holds every value of the source's type exactly, as of
        float32 columns and small integers, and else float64. Sums are in float64 while training.
    zero_based : {"auto", True, False}, default="auto"
        Whether columns of text count from 0. With "auto" the first block decides. The store keeps the number of its
        first column; for other sources True means that columns count from 0 when they are written as text.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from rankwise.data import open_store, save_store
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     blocks = ((np.full((2, 3), float(q + 1)), [1, 0], [q, q]) for q in range(1000))
    ...     save_store(blocks, f"{folder}/made")
    ...     open_store(f"{folder}/made").X.shape
    (2000, 3)
    """
    kind = None if dtype is None else check_dtype(dtype)
    target = Path(path)
    if target.exists() and not (target / META).is_file():
        raise InvalidInputError(
            f"{target} exists and is not a store; it was left as it is.", "name a folder that does not exist."
        )
    parts = source if isinstance(source, (list, tuple)) else [source]
    is_paths = bool(parts) and all(isinstance(part, (str, os.PathLike)) for part in parts)
    text = source if isinstance(source, TextReader) else None
    first_column = 0 if zero_based is True else 1
    blocks: Iterator[_Block]
    if isinstance(source, TableReader) or any(map(is_table, parts)):
        reader = _table_reader(source, kind)
        if zero_based == "auto" and first_column_of(next(iter(reader.names), None)) == 0:
            first_column = 0
        blocks = _checked(reader.blocks(reader.rows_in(BLOCK_BYTES)))
    elif text or is_paths or hasattr(source, "read"):
        text = text or TextReader(source, zero_based=zero_based, dtype=kind or np.float64)
        text.kind_of_ids = "U"  # they are numbers if all of them are
        blocks = text.blocks(BLOCK_BYTES)
    else:
        blocks = _checked(source)
    with replacing_folder(target) as folder, closing(_Writer(folder, kind)) as writer:
        writer.write(blocks)
        writer.finish(first_column if text is None else text.base, decodes_ids=text is not None)


def _table_reader(source: object, dtype: DType | None) -> TableReader:
    """Return a reader of a table, in float32 where that holds every column exactly."""
    if isinstance(source, TableReader):
        reader = source
    else:
        files = open_tables(source, ["qid"])
        qid = "qid" if "qid" in files[0].schema.names else None
        reader = TableReader(files, "label", qid, dtype=dtype or np.float64)
    if dtype is None:
        kinds = [file.schema.field(name).type for file in reader.files for name in reader.features]
        if kinds and all(str(getattr(kind, "value_type", kind)) in _NARROW for kind in kinds):
            reader.dtype = np.dtype(np.float32)
    return reader


def _checked(blocks: object) -> Iterator[_Block]:
    if not isinstance(blocks, Iterable) or isinstance(blocks, np.ndarray):
        raise InvalidInputError(
            f"A store cannot be written from {type(blocks).__name__}.",
            "pass paths, or an iterable of blocks such as [(X, y, qid)].",
        )
    for number, block in enumerate(blocks):
        if not isinstance(block, (tuple, list)) or len(block) < 2:
            raise InvalidInputError(
                f"Block {number} is not a tuple (X, y) or (X, y, qid).", "for one block, pass [(X, y, qid)]."
            )
        X, y, qid = (*block, None)[:3]
        X = readable(f"X of block {number}", X)
        X = X.tocsr() if sp.issparse(X) else np.asarray(X)
        if X.ndim != 2 or X.dtype.kind not in "fiub" or X.shape[1] >= 2**31:
            raise InvalidInputError(
                f"X of block {number} is not a matrix of numbers with up to 2^31 columns: it has shape {X.shape} and "
                f"type {X.dtype}.",
                "pass an array or a sparse matrix of numbers.",
            )
        if qid is not None and X.shape[0]:
            ids = np.asarray(check_qid(qid, X.shape[0]))
            is_whole = ids.dtype.kind in "iub" and ids.max() < 2**63
            qid = ids.astype(np.int64 if is_whole else np.float64 if ids.dtype.kind == "f" else np.str_)
        yield X, check_numbers("y", y, X.shape[0]), qid


class _Writer:
    """The files of a store that is being written."""

    def __init__(self, folder: Path, dtype: DType | None) -> None:
        folder.mkdir()
        self._folder, self._dtype, self._is_dtype_given = folder, dtype, dtype is not None
        self._files: dict[str, _NpyFile] = {}
        self._rows = self._columns = self._entries = 0
        self._is_finite, self._is_sparse = True, False
        self._starts: list[Ints] = []
        self._ids: list[AnyArray] = []

    def close(self) -> None:
        """Close the files."""
        for file in self._files.values():
            with suppress(OSError):  # a full disk, which the error that ended the writing names already
                file.stream.close()

    def write(self, blocks: Iterator[_Block]) -> None:
        """Write all blocks."""
        for number, (X, y, qid) in enumerate(blocks):
            if y.size:
                if self._rows and (qid is None) != (not self._ids):
                    raise InvalidInputError(
                        "Some blocks have query ids and others have none.",
                        "pass qid with every block, or with none.",
                    )
                if qid is not None:
                    start = np.append(0, np.flatnonzero(qid[1:] != qid[:-1]) + 1)
                    self._starts.append(start + self._rows)
                    self._ids.append(qid[start])
                self._append_rows(number, X)
                self._append("y", y)
                self._rows += y.size

    def finish(self, first_column: int, *, decodes_ids: bool) -> None:
        """Complete the files, and write meta.json."""
        if self._rows == 0:
            raise InvalidInputError("There are no rows to store.", "pass at least one row.")
        if self._ids:
            self._append_queries(decodes_ids=decodes_ids)
        for file in self._files.values():
            file.finish()
        meta = {
            "format": FORMAT,
            "version": 1,
            "columns": self._columns,
            "is_sparse": self._is_sparse,
            "has_ids": bool(self._ids),
            "first_column": first_column,
            "is_finite": self._is_finite,
            "identity": uuid4().hex,
        }
        (self._folder / META).write_text(json.dumps(meta, indent=1), encoding="utf-8")

    def _append(self, name: str, array: AnyArray) -> None:
        if name not in self._files:
            self._files[name] = _NpyFile(self._folder / f"{name}.npy", array)
        self._files[name].append(array)

    def _append_rows(self, number: int, X: Any) -> None:
        if self._dtype is None:
            self._dtype = np.dtype(np.float32 if np.can_cast(X.dtype, np.float32) else np.float64)
        if self._rows == 0:
            self._is_sparse, self._columns = sp.issparse(X), X.shape[1]
        if self._is_sparse != sp.issparse(X):
            X = sp.csr_matrix(X) if self._is_sparse else X.toarray()
        if not self._is_sparse:
            if X.shape[1] != self._columns:
                raise InvalidInputError(
                    f"Block {number} has {X.shape[1]} columns where {self._columns} are expected.",
                    "make blocks of equal width.",
                )
            self._append("X", self._stored(number, X, self._dtype))
            return
        self._columns = max(self._columns, X.shape[1])
        if not X.has_canonical_format:
            X = X.copy()
            X.sum_duplicates()
        self._append("data", self._stored(number, X.data, self._dtype))
        self._append("indices", X.indices.astype(np.int32, copy=False))
        self._append("indptr", X.indptr[self._rows > 0 :].astype(np.int64) + self._entries)
        self._entries += X.nnz

    def _stored(self, number: int, values: AnyArray, dtype: DType) -> AnyArray:
        """Return values in the type of the store; it notes whether all are finite, which `fit` asks for."""
        if not self._is_dtype_given and not np.can_cast(values.dtype, dtype):
            raise InvalidInputError(
                f"Block {number} has type {values.dtype}, and the first block was stored as {dtype}.",
                "pass dtype=np.float64.",
            )
        with np.errstate(over="ignore"):
            stored = values.astype(dtype, copy=False)
        if not np.isfinite(stored).all():
            self._is_finite = False
            if (np.isinf(stored) & np.isfinite(values)).any():
                raise InvalidInputError(
                    f"X has values that are too large for {dtype.name}.", "pass dtype=np.float64."
                )
        return stored

    def _append_queries(self, *, decodes_ids: bool) -> None:
        """Write the first rows and the ids of queries; a query may go on in the next block."""
        if len({part.dtype.kind for part in self._ids}) > 1:
            raise InvalidInputError(
                "Query ids are numbers in some blocks and text in others.", "pass ids of one kind."
            )
        start, ids = np.concatenate(self._starts), np.concatenate(self._ids)
        is_new = np.append(True, ids[1:] != ids[:-1])
        start, ids = start[is_new], ids[is_new]
        found, counts = np.unique(ids, return_counts=True)
        if found.size < ids.size:
            raise InvalidInputError(
                f"Query {found[counts > 1].tolist()[0]!r} comes again after rows of other queries.",
                "sort the rows by query first.",
            )
        self._append("query_start", np.append(start, self._rows))
        self._append("query_ids", decode_ids(ids.tolist()) if decodes_ids else ids)


class _NpyFile:
    """A .npy file to which rows like those of an array are appended."""

    def __init__(self, path: Path, like: AnyArray) -> None:
        self._dtype, self._shape, self._rows = like.dtype, like.shape[1:], 0
        self.stream = path.open("wb")
        self._write_header()

    def append(self, rows: AnyArray) -> None:
        self._rows += rows.shape[0]
        self.stream.write(np.ascontiguousarray(rows, dtype=self._dtype).data)

    def finish(self) -> None:
        self.stream.seek(0)
        self._write_header()
        self.stream.close()

    def _write_header(self) -> None:
        """Write the header, whose length does not depend on the number of rows."""
        content = {"descr": self._dtype.str, "fortran_order": False, "shape": (self._rows, *self._shape)}
        np.lib.format.write_array_header_1_0(self.stream, content)
