"""Stores: rows on disk that estimators train on without loading them.

A store is a folder of ``.npy`` files and ``meta.json``:

==========================  =========================================================================
X                           (rows, columns) float32 or float64: dense rows
data, indices, indptr       the arrays of a CSR matrix instead: float32 or float64, int32, int64
y                           (rows,) float64
query_start, query_ids      (queries + 1,) int64, the first row of each query, and (queries,) ids
item_text, item_end         UTF-8 and (rows,) int64: ids of items, one behind the other
==========================  =========================================================================

``meta.json`` has the sizes and types. Opening compares them with the ``.npy`` headers and the sizes of the files, and
checks row pointers and column numbers once, because products would read outside their vectors otherwise.
"""

from __future__ import annotations

import io
import json
import os
import re
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import asdict, dataclass
from itertools import accumulate
from math import prod
from pathlib import Path
from typing import Any, NamedTuple, Self
from uuid import uuid4

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from rankwise import _core
from rankwise.arrays import AnyArray, DType, Floats, InMemory, Ints
from rankwise.data.columns import first_column_of
from rankwise.data.containers import readable
from rankwise.data.mapped import MappedMatrix, gather_rows
from rankwise.data.query_ids import decode_ids
from rankwise.data.svmlight import Missing, TextReader, ZeroBased, item_ids, text_blocks
from rankwise.data.tables import TableReader, is_table, open_tables
from rankwise.data.validation import check_choice, check_count, check_dtype, check_numbers, check_qid
from rankwise.exceptions import InvalidInputError
from rankwise.files import replacing_folder
from rankwise.runtime.threads import default_threads

META = "meta.json"
FORMAT = "rankwise store"
# Bytes of text or of a table that make a block while a store is written; a larger query makes a larger block.
BLOCK_BYTES = 1 << 23
# Bytes of rows that are brought together at a time where queries are scattered.
REGROUPED_BYTES = 1 << 26
_ID_TYPES = re.compile(r"<i8|<f8|<U[1-9][0-9]{0,8}")
_LAST_CHARACTER = 0x10FFFF
_TIMES, _MOMENT = 2, 0.01  # a store that could not be opened is opened again, after so many seconds
# Types of Arrow that float32 holds exactly.
_NARROW = {"float", "halffloat", "int8", "int16", "uint8", "uint16", "bool"}


@dataclass(frozen=True)
class _Meta:
    """The content of meta.json; `entries` is None for dense rows, `item_bytes` where no row has an id."""

    rows: int
    columns: int
    entries: int | None
    queries: int
    dtype: str
    id_dtype: str | None
    item_bytes: int | None
    first_column: int
    is_finite: bool
    identity: str
    format: str = FORMAT
    version: int = 1

    def arrays(self) -> dict[str, tuple[DType, tuple[int, ...]]]:
        """Return the type and shape of each file."""
        values, whole = np.dtype(self.dtype), np.dtype(np.int64)
        found: dict[str, tuple[DType, tuple[int, ...]]] = {"y": (np.dtype(np.float64), (self.rows,))}
        if self.entries is None:
            found["X"] = values, (self.rows, self.columns)
        else:
            found["data"] = values, (self.entries,)
            found["indices"] = np.dtype(np.int32), (self.entries,)
            found["indptr"] = whole, (self.rows + 1,)
        if self.id_dtype is not None:
            found["query_start"] = whole, (self.queries + 1,)
            found["query_ids"] = np.dtype(self.id_dtype), (self.queries,)
        if self.item_bytes is not None:
            found["item_text"] = np.dtype(np.uint8), (self.item_bytes,)
            found["item_end"] = whole, (self.rows,)
        return found

    @classmethod
    def parsed(cls, text: bytes) -> _Meta:
        """Return the content of a text; raise ValueError, TypeError or KeyError where it makes no sense."""
        content = json.loads(text)
        if content["format"] != FORMAT or content["version"] != 1:
            raise ValueError("format")
        meta = cls(**content)
        for name in ("rows", "columns", "entries", "queries", "item_bytes"):
            number = getattr(meta, name)
            is_absent = number is None and name in {"entries", "item_bytes"}
            if not is_absent and (type(number) is not int or not 0 <= number < 2**62):
                raise ValueError(name)
        if meta.dtype not in {"<f4", "<f8"} or meta.columns >= 2**31 or meta.first_column not in {0, 1}:
            raise ValueError("dtype, columns or first_column")
        if meta.id_dtype is not None and not _ID_TYPES.fullmatch(meta.id_dtype):
            raise ValueError("id_dtype")
        return meta


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

    def __init__(self, path: str, meta: _Meta, arrays: dict[str, AnyArray]) -> None:
        self.path = path
        self.first_column, self.identity = meta.first_column, meta.identity
        self.n_bytes = sum(array.nbytes for array in arrays.values())
        self._arrays = arrays
        # Copied: joblib would try to map them again in its workers.
        self.y: Floats = np.array(arrays["y"])
        self.query_start: Ints = np.array(arrays.get("query_start", [0]), dtype=np.int64)
        self.query_ids: AnyArray | None = None if meta.id_dtype is None else np.array(arrays["query_ids"])
        if meta.entries is None:
            self.X = np.asarray(arrays["X"])
            return
        start: AnyArray = arrays["indptr"]
        if meta.entries < 2**31:  # SciPy takes row pointers and column numbers of one type
            start = start.astype(np.int32)
        # A process that unpickles the matrix may be in another folder.
        place = os.path.abspath(path)  # noqa: PTH100 - a link may be turned elsewhere, and is followed then
        self.X = MappedMatrix.over(
            (arrays["data"], arrays["indices"], start),
            (meta.rows, meta.columns),
            is_finite=meta.is_finite,
            files=_open_directly(path, arrays["data"], arrays["indices"]),
            reopen=(_matrix_of, (place, meta.identity)),
        )

    @property
    def qid(self) -> AnyArray | None:
        """The query id of each row; None without ids."""
        return None if self.query_ids is None else np.repeat(self.query_ids, np.diff(self.query_start))

    @property
    def item_ids(self) -> npt.NDArray[np.str_] | None:
        """The id of each row, empty where it has none; None where no row has one."""
        return self._items(np.arange(self.y.size))

    def blocks(self, block_bytes: int = 1 << 26) -> Iterator[tuple[InMemory, Floats, AnyArray | None]]:
        """Yield (X, y, qid) in memory, block by block, queries whole, as `iter_svmlight` yields text.

        A block takes at most `block_bytes`, or is one query (one row, without ids) where that takes more.
        """
        for block in self.named_blocks(block_bytes):
            yield block[:3]

    def named_blocks(
        self, block_bytes: int = 1 << 26
    ) -> Iterator[tuple[InMemory, Floats, AnyArray | None, npt.NDArray[np.str_] | None]]:
        """Yield the same blocks with the ids of their items."""
        check_count("block_bytes", block_bytes, optional=False)
        cuts = self.query_start if self.query_ids is not None else np.arange(self.y.size + 1)
        ends, low = self._bytes_before(cuts), 0
        while low + 1 < cuts.size:
            high = max(low + 1, int(np.searchsorted(ends, ends[low] + block_bytes, side="right")) - 1)
            rows = np.arange(cuts[low], cuts[high])
            qid = None
            if self.query_ids is not None:
                qid = np.repeat(self.query_ids[low:high], np.diff(cuts[low : high + 1]))
            yield self._rows(rows), self.y[rows], qid, self._items(rows)
            low = high

    def grouped(self) -> Iterator[tuple[InMemory, Floats, AnyArray | None, npt.NDArray[np.str_] | None]]:
        """Yield blocks in which scattered queries are together, in the order in which they first appear."""
        assert self.query_ids is not None
        _, first, run_query = np.unique(self.query_ids, return_index=True, return_inverse=True)
        order = np.argsort(np.repeat(first[run_query], np.diff(self.query_start)), kind="stable")
        qid = np.repeat(self.query_ids, np.diff(self.query_start))
        step = max(1, REGROUPED_BYTES * self.y.size // max(1, self.n_bytes))
        for at in range(0, self.y.size, step):
            rows = order[at : at + step]
            yield self._rows(rows), self.y[rows], qid[rows], self._items(rows)

    def _rows(self, rows: Ints) -> InMemory:
        if isinstance(self.X, MappedMatrix):
            arrays = gather_rows((self.X.data, self.X.indices, self.X.indptr), rows)
            taken: InMemory = sp.csr_matrix(arrays, shape=(rows.size, self.X.shape[1]))
            return taken
        return np.array(self.X[rows])

    def _items(self, rows: Ints) -> npt.NDArray[np.str_] | None:
        if "item_end" not in self._arrays:
            return None
        ends, text = self._arrays["item_end"], self._arrays["item_text"]
        starts = np.where(rows > 0, ends[rows - 1], 0)
        pieces = (text[low:high].tobytes() for low, high in zip(starts, ends[rows], strict=True))
        return np.array([piece.decode("utf-8", "surrogateescape") for piece in pieces], dtype=np.str_)

    def _bytes_before(self, rows: Ints) -> Ints:
        """Return how many bytes the rows before some rows take in memory, with a pointer and a label for each."""
        values: Ints = rows * (self.X.shape[1] * self.X.dtype.itemsize)
        if isinstance(self.X, MappedMatrix):
            values = self._arrays["indptr"][rows] * (self.X.dtype.itemsize + 4)
        return values + 16 * rows

    def _check(self) -> None:
        """Raise unless pointers and column numbers stay inside the arrays."""
        arrays, rows = self._arrays, self.y.size
        if "indptr" in arrays:
            start, columns = arrays["indptr"], arrays["indices"]
            if start[-1] != columns.size:
                raise _damaged(self.path, "indptr.npy does not end with the entries")
            misfit = _core.compressed_misfit(start, columns, self.X.shape[1], default_threads())
            if misfit is not None:
                raise _damaged(self.path, f"the {misfit} of the matrix are out of range")
        queries = self.query_start
        if self.query_ids is not None and (
            queries[0] != 0 or queries[-1] != rows or (queries[1:] <= queries[:-1]).any()
        ):
            raise _damaged(self.path, "query_start.npy is not ascending")
        if "item_end" in arrays:
            ends = np.concatenate(([0], arrays["item_end"]))
            if (ends[1:] < ends[:-1]).any() or ends[-1] != arrays["item_text"].size:
                raise _damaged(self.path, "item_end.npy is not ascending")
        ids = self.query_ids
        if ids is not None and ids.dtype.kind == "U" and ids.view(np.uint32).max() > _LAST_CHARACTER:
            raise _damaged(self.path, "query_ids.npy is not text")
        if not np.isfinite(self.y).all():
            raise _damaged(self.path, "y.npy has values that are not finite")

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
    store._check()  # noqa: SLF001 - the other half of opening
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
        meta = _Meta.parsed(text)
        store = Store(path, meta, {name: _map(path, name, *kind) for name, kind in meta.arrays().items()})
        is_same = place.read_bytes() == text
    except OSError as error:
        raise _damaged(path, f"{error.filename} cannot be opened ({error.strerror})") from error
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        if isinstance(error, InvalidInputError):
            raise
        raise _damaged(path, f"{META} cannot be read ({error})") from error
    if not is_same:
        raise InvalidInputError(f"The store {path} was replaced while it was opened.", "open it again.")
    return store


def _map(path: str, name: str, dtype: DType, shape: tuple[int, ...]) -> AnyArray:
    header = _npy_header(dtype, shape)
    n_bytes = len(header) + prod(shape) * dtype.itemsize
    with Path(path, f"{name}.npy").open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        if size != n_bytes:
            raise _damaged(path, f"{name}.npy has {size} bytes instead of {n_bytes}")
        if file.read(len(header)) != header:
            raise _damaged(path, f"the header of {name}.npy and {META} disagree")
        if n_bytes == len(header):
            return np.empty(shape, dtype=dtype)
        return np.memmap(file, dtype=dtype, mode="r", offset=len(header), shape=shape)


def _npy_header(dtype: DType, shape: tuple[int, ...]) -> bytes:
    """Return the header of a .npy file; its length does not depend on the number of rows."""
    stream = io.BytesIO()
    content = {"descr": dtype.str, "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(stream, content)
    return stream.getvalue()


def _open_directly(path: str, data: AnyArray, indices: AnyArray) -> _core.DirectFiles | None:
    """Open two files for reads past the page cache; None where the system or the file system has none."""
    flags = os.O_RDONLY | getattr(os, "O_DIRECT", 0)
    if flags == os.O_RDONLY or not isinstance(data, np.memmap) or not isinstance(indices, np.memmap):
        return None
    try:
        first = os.open(Path(path, "data.npy"), flags)
    except OSError:
        return None
    try:
        second = os.open(Path(path, "indices.npy"), flags)
    except OSError:
        os.close(first)
        return None
    return _core.DirectFiles(first, second, data.offset, indices.offset)


def _damaged(path: str, problem: str) -> InvalidInputError:
    return InvalidInputError(
        f"The store {path} is damaged: {problem}.", "copy it again from an intact copy, or write it again."
    )


def save_store(
    source: object,
    path: str | os.PathLike[str],
    *,
    dtype: npt.DTypeLike | None = None,
    n_features: int | None = None,
    regroup: bool = False,
    missing: Missing = "error",
    zero_based: ZeroBased = "auto",
    comments: bool = False,
    label: str = "label",
    qid: str | None = "qid",
    features: Sequence[str] | None = None,
    embedding: str | Sequence[str] | None = None,
    item_id: str | None = None,
) -> None:
    """Write a data set to disk as a store that estimators can train on without loading it.

    Only one block of about 8 MB is in memory at a time, besides one id per query; CSV files are read whole. An existing
    store is replaced once the new one is complete, and stays valid for processes that have it open. On an error nothing
    changes.

    Parameters
    ----------
    source : paths, table, iterable of blocks, or Store
        svmlight or LETOR text as `load_svmlight` takes it; tables as `load_table` takes them (recognised by the ending
        of the file: .parquet, .arrow, .feather, .csv and so on); or an iterable of blocks ``(X, y)``,
        ``(X, y, qid)`` or ``(X, y, qid, item_ids)`` of equal width. Arrays and tables are stored
        densely, text and sparse matrices as CSR. Ids of items are kept as text, for `Store.item_ids`.
    path : str or path
        The folder to make.
    dtype : {np.float64, np.float32}, optional
        The type of the values. By default float32 where it holds every value of the source's type exactly, as of
        float32 columns and small integers, and else float64. Sums are in float64 while training.
    n_features : int, optional
        The number of columns of text and of sparse blocks; by default as many as there are.
    regroup : bool, default=False
        Rows of a query must be consecutive. If they are not, True sorts them together on disk, queries in the order
        of first appearance, which takes twice the space meanwhile; False raises an error.
    missing : {"error", "nan", "zero"}, default="error"
        See `load_svmlight`.
    zero_based : {"auto", True, False}, default="auto"
        Whether columns of text count from 0. With "auto" the first block decides. The store keeps the number of its
        first column; for other sources True means that columns count from 0 when they are written as text. Column
        names that `rankwise convert` wrote, such as ``feature 0``, have the same effect.
    comments : bool, default=False
        Keep the ids of items in comments of text (``# docid = …``; see `rankwise.data.item_ids`).
    label, qid, features, embedding
        The columns of tables; see `load_table`. A table without a column ``qid`` is one ranking.
    item_id : str, optional
        The column of tables with ids of items, which is not a feature.

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
    check_count("n_features", n_features)
    check_choice("missing", missing, ("error", "nan", "zero"))
    target = Path(path)
    if target.exists() and not (target / META).is_file():
        raise InvalidInputError(
            f"{target} exists and is not a store; it was left as it is.", "name a folder that does not exist."
        )
    first_column = 0 if zero_based is True else 1
    parts = source if isinstance(source, (list, tuple)) else [source]
    is_paths = bool(parts) and all(isinstance(part, (str, os.PathLike)) for part in parts)
    blocks: Iterator[_Block]
    if isinstance(source, Store):
        blocks, missing = _given_blocks(source.named_blocks(BLOCK_BYTES), source.first_column), "nan"
    elif any(map(is_table, parts)):
        columns = {
            "label": label,
            "qid": qid,
            "features": features,
            "embedding": embedding,
            "item_id": item_id,
        }
        base = None if zero_based == "auto" else first_column
        blocks = _table_blocks(source, columns, missing=missing, dtype=kind, first_column=base)
    elif is_paths or hasattr(source, "read") or isinstance(source, TextReader):
        options = {"n_features": n_features, "zero_based": zero_based, "missing": missing}
        blocks = _text_blocks(source, comments=comments, dtype=kind or np.dtype(np.float64), **options)
    else:
        blocks = _given_blocks(source, first_column)
    with replacing_folder(target) as folder:
        scattered = folder.with_name(f"{folder.name}.scattered")
        with _Writer(scattered if regroup else folder, kind, n_features, missing) as writer:
            writer.write(_read(blocks), may_scatter=regroup)
        if regroup and not writer.is_scattered:
            scattered.rename(folder)
        elif regroup:
            store = _open(str(scattered))
            with _Writer(folder, store.X.dtype, store.X.shape[1], "nan") as writer:
                writer.write(_given_blocks(store.grouped(), store.first_column))


class _Block(NamedTuple):
    """Rows to write to disk; runs of rows with one query id, None without ids."""

    X: Any
    y: Floats
    run_start: Ints | None
    run_ids: AnyArray | None
    items: AnyArray | None
    first_column: int


def _read(blocks: Iterator[_Block]) -> Iterator[_Block]:
    """Distinguish errors of the source from those of the disk that is written to."""
    try:
        yield from blocks
    except OSError as error:
        raise InvalidInputError(
            f"The source cannot be read: {error}.", "check that its files exist and may be read."
        ) from error


def _text_blocks(source: object, *, comments: bool, **options: Any) -> Iterator[_Block]:
    reader = source if isinstance(source, TextReader) else TextReader(source, **options)
    reader.keeps_comments |= comments
    for block in text_blocks(reader, BLOCK_BYTES):
        items = item_ids(reader.take_comments(block.labels.size)) if reader.keeps_comments else None
        start, ids = None, None
        if block.has_qid:
            start, ids = block.run_start, np.array(block.run_ids(), dtype=object)
        yield _Block(block.matrix(reader.n_columns), block.labels, start, ids, items, reader.base)


def _table_blocks(
    source: object, columns: dict[str, Any], *, missing: str, dtype: DType | None, first_column: int | None
) -> Iterator[_Block]:
    sources = open_tables(source, [columns["qid"], columns["item_id"]], stream=True)
    if columns["qid"] == "qid" and "qid" not in sources[0].schema.names:
        columns["qid"] = None
    reader = TableReader(sources, **columns, missing=missing, dtype=dtype or np.float64)
    if dtype is None:
        names = [*reader.features, *reader.embeddings]
        kinds = [
            table.schema.field(name).type for table in sources for name in names if name in table.schema.names
        ]
        if names and all(str(getattr(kind, "value_type", kind)) in _NARROW for kind in kinds):
            reader.dtype = np.dtype(np.float32)
    if first_column is None:
        first_column = 0 if first_column_of(reader.first_name) == 0 else 1
    rows = reader.blocks(reader.rows_in(BLOCK_BYTES))
    blocks = ((block.X, block.y, block.qid, items) for block, items in rows)
    yield from _given_blocks(blocks, first_column)


def _given_blocks(blocks: object, first_column: int) -> Iterator[_Block]:
    if not isinstance(blocks, Iterable) or isinstance(blocks, np.ndarray):
        raise InvalidInputError(
            f"A store cannot be written from {type(blocks).__name__}.",
            "pass paths, or an iterable of blocks such as [(X, y, qid)].",
        )
    for number, block in enumerate(blocks):
        if not isinstance(block, (tuple, list)) or len(block) not in {2, 3, 4}:
            raise InvalidInputError(
                f"Block {number} is not a tuple (X, y), (X, y, qid) or (X, y, qid, item_ids).",
                "for one block, pass [(X, y, qid)].",
            )
        X, y, qid, items = [*block, None, None][:4]
        X = readable(f"X of block {number}", X)
        X = X.tocsr() if sp.issparse(X) else np.asarray(X)
        if X.ndim != 2 or X.dtype.kind not in "fiub":
            raise InvalidInputError(
                f"X of block {number} is not a matrix of numbers: it has shape {X.shape} and type {X.dtype}.",
                "pass an array or a sparse matrix of numbers.",
            )
        if X.shape[1] >= 2**31:
            raise InvalidInputError(
                f"Block {number} has {X.shape[1]} columns, more than 32-bit numbers can name.",
                "rename the columns that occur, or hash them to fewer.",
            )
        if items is not None and np.shape(items) != (X.shape[0],):
            raise InvalidInputError(
                f"Block {number} has {X.shape[0]} rows and ids of items of shape {np.shape(items)}.",
                "pass one id per row, or None.",
            )
        start, ids = None, None
        if qid is not None and X.shape[0]:
            queries = check_qid(qid, X.shape[0])
            start = np.concatenate(([0], np.flatnonzero(np.diff(queries.codes)) + 1))
            ids = _plain_ids(np.asarray(queries.ids))[queries.codes[start]]
        yield _Block(X, check_numbers("y", y, X.shape[0]), start, ids, items, first_column)


def _plain_ids(ids: AnyArray) -> AnyArray:
    """Return ids as int64, float64 or text."""
    if ids.dtype.kind in "iub" and ids.max() < 2**63:
        return ids.astype(np.int64)
    return ids.astype(np.float64 if ids.dtype.kind == "f" else np.str_)


class _Writer:
    """The files of a store that is being written."""

    def __init__(self, folder: Path, dtype: DType | None, n_features: int | None, missing: str) -> None:
        folder.mkdir()
        self.is_scattered = False
        self._folder, self._dtype, self._missing = folder, dtype, missing
        self._is_dtype_given = dtype is not None
        self._n_features, self._columns = n_features, n_features or 0
        self._files: dict[str, _NpyFile] = {}
        self._opened = ExitStack()
        self._rows = self._entries = self._item_bytes = 0
        self._is_finite, self._is_sparse = True, False
        self._starts: list[Ints] = []
        self._ids: list[AnyArray] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._opened.close()

    def write(self, blocks: Iterator[_Block], *, may_scatter: bool = False) -> None:
        """Write all blocks, and meta.json."""
        seen: set[object] = set()
        first_column = 1
        for number, block in enumerate(blocks):
            if block.y.size:
                self._append_queries(block, seen, may_scatter=may_scatter)
                self._append_rows(number, block.X)
                self._append_items(block)
                self._append("y", block.y)
                self._rows += block.y.size
            first_column = block.first_column
            del block  # before the next one is made
        if self._rows == 0:
            raise InvalidInputError("There are no rows to store.", "pass at least one row.")
        ids = np.concatenate(self._ids) if self._ids else None
        if ids is not None:
            if ids.dtype.kind == "O":  # ids of text are numbers if all of them are
                ids = decode_ids(ids.tolist())
            self._append("query_start", np.concatenate([*self._starts, [self._rows]]))
            self._append("query_ids", ids)
        for file in self._files.values():
            file.finish()
        assert self._dtype is not None
        meta = _Meta(
            rows=self._rows,
            columns=self._columns,
            entries=self._entries if self._is_sparse else None,
            queries=0 if ids is None else ids.size,
            dtype=self._dtype.str,
            id_dtype=None if ids is None else ids.dtype.str,
            item_bytes=self._item_bytes if "item_end" in self._files else None,
            first_column=first_column,
            is_finite=self._is_finite,
            identity=uuid4().hex,
        )
        (self._folder / META).write_text(json.dumps(asdict(meta), indent=1), encoding="utf-8")

    def _append(self, name: str, array: AnyArray) -> None:
        if name not in self._files:
            file = _NpyFile(self._folder / f"{name}.npy", array.dtype, array.shape[1:])
            self._files[name] = self._opened.enter_context(file)
        self._files[name].append(array)

    def _append_rows(self, number: int, X: Any) -> None:
        if self._rows == 0:
            self._is_sparse = sp.issparse(X)
            own = np.float32 if np.can_cast(X.dtype, np.float32) else np.float64
            self._dtype = np.dtype(own) if self._dtype is None else self._dtype
        if self._is_sparse != sp.issparse(X):
            X = sp.csr_matrix(X) if self._is_sparse else X.toarray()
        self._check_width(number, X.shape[1])
        if not self._is_sparse:
            values = self._checked_values(number, X)
            self._append("X", np.nan_to_num(values, nan=0.0) if self._missing == "zero" else values)
            return
        if not X.has_canonical_format:
            X = X.copy()
            X.sum_duplicates()
        values = self._checked_values(number, X.data)
        if self._missing == "zero" and np.isnan(values).any():
            entries, kept = X.tocoo(), ~np.isnan(values)
            where = (entries.row[kept], entries.col[kept])
            X = sp.csr_matrix((values[kept], where), shape=X.shape)
            values = X.data
        if self._rows == 0:
            self._append("indptr", np.zeros(1, dtype=np.int64))
        self._append("data", values)
        self._append("indices", X.indices.astype(np.int32, copy=False))
        self._append("indptr", X.indptr[1:] + np.int64(self._entries))
        self._entries += X.nnz

    def _check_width(self, number: int, width: int) -> None:
        """Raise where dense blocks differ in width; sparse ones may have fewer columns than later ones."""
        expected = self._columns if self._rows or self._n_features is not None else width
        is_wrong = width != expected if not self._is_sparse else width > (self._n_features or width)
        if is_wrong:
            raise InvalidInputError(
                f"Block {number} has {width} columns where {expected} are expected.",
                "make blocks of equal width, and leave n_features out or pass their width.",
            )
        self._columns = max(self._columns, width)

    def _checked_values(self, number: int, values: AnyArray) -> AnyArray:
        assert self._dtype is not None
        if (
            not self._is_dtype_given
            and self._dtype == np.float32
            and not np.can_cast(values.dtype, np.float32)
        ):
            raise InvalidInputError(
                f"Block {number} has type {values.dtype}, which float32, the type of the first block, cannot hold.",
                "pass dtype=np.float64.",
            )
        with np.errstate(over="ignore"):
            stored = values.astype(self._dtype, copy=False)
        # The sum is finite if all values are, unless it overflows.
        if np.isfinite(stored.sum(dtype=np.float64)) or np.isfinite(stored).all():
            return stored
        if np.isfinite(values).all():
            raise InvalidInputError(
                f"X has values that are too large for {self._dtype.name}.", "pass dtype=np.float64."
            )
        if self._missing == "error" or np.isinf(stored).any():
            raise InvalidInputError(
                f"X of block {number} has values that are not finite.",
                "replace them; NaN is stored with missing='nan', and becomes 0 with missing='zero'.",
            )
        self._is_finite = self._is_finite and self._missing == "zero"
        return stored

    def _append_queries(self, block: _Block, seen: set[object], *, may_scatter: bool) -> None:
        start, ids = block.run_start, block.run_ids
        if self._rows and (ids is None) != (not self._ids):
            raise InvalidInputError(
                "Some blocks have query ids and others have none.", "pass qid with every block, or with none."
            )
        if start is None or ids is None:
            return
        if self._ids and ids.dtype.kind != self._ids[-1].dtype.kind:
            raise InvalidInputError(
                "Query ids are numbers in some blocks and text in others.", "pass ids of one kind."
            )
        if self._ids and ids[0] == self._ids[-1][-1]:  # the query of the block before goes on
            start, ids = start[1:], ids[1:]
        for one in ids.tolist():
            if one in seen:
                self.is_scattered = True
                if not may_scatter:
                    raise InvalidInputError(
                        f"Query {one!r} comes again after rows of other queries.",
                        "sort the rows by query, or pass regroup=True to have them sorted together on disk.",
                    )
            seen.add(one)
        if ids.size:
            self._starts.append(start + self._rows)
            self._ids.append(ids)

    def _append_items(self, block: _Block) -> None:
        """Write the ids of items, once some rows have one."""
        n_rows = block.y.size
        items = (
            [""] * n_rows if block.items is None else [str(one) for one in np.asarray(block.items).tolist()]
        )
        if "item_end" not in self._files:
            if not any(items):
                return
            self._append("item_end", np.zeros(self._rows, dtype=np.int64))
        texts = [item.encode("utf-8", "surrogateescape") for item in items]
        ends = self._item_bytes + np.fromiter(accumulate(map(len, texts)), np.int64, count=n_rows)
        self._append("item_text", np.frombuffer(b"".join(texts), dtype=np.uint8))
        self._append("item_end", ends)
        self._item_bytes = int(ends[-1])


class _NpyFile:
    """A .npy file to which rows are appended."""

    def __init__(self, path: Path, dtype: DType, shape: tuple[int, ...]) -> None:
        self._dtype, self._shape, self._rows = dtype, shape, 0
        self._file = path.open("wb")
        self._file.write(_npy_header(dtype, (0, *shape)))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        with suppress(OSError):  # a full disk, which the error that ended the writing names already
            self._file.close()

    def append(self, rows: AnyArray) -> None:
        self._rows += rows.shape[0]
        self._file.write(np.ascontiguousarray(rows, dtype=self._dtype).data)

    def finish(self) -> None:
        self._file.seek(0)
        self._file.write(_npy_header(self._dtype, (self._rows, *self._shape)))
        self._file.close()
