"""A store opened for reading: a sparse matrix, labels and query ids, mapped from disk.

Opening checks everything: sizes, the order of the row and query pointers, and, reading every byte once, the
checksums and the range of the column numbers, for a damaged column number would make a product read outside its
vectors. That costs one pass of the dozens that training makes. ``verify=False`` leaves out what needs a pass over
the matrix.
"""

from __future__ import annotations

import os
import stat
import weakref
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import BinaryIO, Self

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from rankwise import _core
from rankwise.arrays import AnyArray, Floats, Ints
from rankwise.data.arguments import check_path
from rankwise.data.store.format import HEADER, Header, damaged, read_header
from rankwise.data.store.mapped import MappedMatrix
from rankwise.data.text.query_ids import QueryRuns
from rankwise.data.validation import check_count, check_flag
from rankwise.exceptions import Change, InvalidInputError
from rankwise.runtime.threads import default_threads

__all__ = ["Store", "open_store"]


class Store:
    """A data set on disk; made by `save_store`, opened by `open_store`.

    The arrays stay valid if the store is rewritten or removed while they are in use.

    Attributes
    ----------
    path : str
    header : Header
    X : MappedMatrix of shape (rows, features)
        A CSR matrix that stays on disk; every linear estimator trains on it without loading it.
    y : ndarray of shape (rows,)
    query_start : ndarray of shape (queries + 1,)
        The first row of each query; rows of a query stand together.

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

    def __init__(
        self,
        path: str,
        header: Header,
        arrays: dict[str, npt.NDArray[np.uint8]],
        files: _core.DirectFiles | None = None,
    ) -> None:
        self.path = path
        self.header = header
        self._arrays = arrays
        start: AnyArray = arrays["row_start.bin"].view(np.int64)
        if header.entries < 2**31:  # SciPy takes row pointers and column numbers of one type
            start = start.astype(np.int32)
        matrix = (arrays["values.bin"].view(header.value_type), arrays["columns.bin"].view(np.int32), start)
        shape = (header.rows, header.columns)
        # Who unpickles the matrix may be in another folder.
        place = os.path.abspath(path)  # noqa: PTH100 - a link may be turned elsewhere, and is followed then
        self.X = MappedMatrix.over(
            matrix, shape, place, identity=header.checksum, is_finite=header.is_finite, files=files
        )
        # Copied: joblib would try to map them again in its workers, by a name that they do not have.
        self.y: Floats = np.array(arrays["labels.bin"].view(np.float64))
        self.query_start: Ints = np.array(arrays["query_start.bin"].view(np.int64))

    @cached_property
    def query_ids(self) -> AnyArray | None:
        """The id of each query, in the order of the rows; None without ids."""
        kind = self.header.qid_kind
        if kind is None:
            return None
        text, text_end = self._arrays["query_text.bin"], self._arrays["query_text_end.bin"]
        texts = QueryRuns(self.query_start[:-1], text.tobytes(), text_end.view(np.int64)).texts()
        if kind == "U":
            return np.array(texts, dtype=np.str_)
        try:
            number = int if kind == "i" else float
            return np.array([number(text) for text in texts], dtype=np.int64 if kind == "i" else np.float64)
        except (ValueError, OverflowError) as error:
            raise damaged(self.path, f"a query id is not a number ({error})") from error

    @property
    def qid(self) -> AnyArray | None:
        """The query id of each row; None without ids."""
        ids = self.query_ids
        return None if ids is None else np.repeat(ids, np.diff(self.query_start))

    @property
    def item_ids(self) -> npt.NDArray[np.str_] | None:
        """The id of each row, empty where it has none; None where no row has one."""
        texts = self.item_texts(0, self.header.rows)
        if texts is None:
            return None
        return np.array([text.decode("utf-8", "surrogateescape") for text in texts], dtype=np.str_)

    def item_texts(self, first: int, last: int) -> list[bytes] | None:
        """Return the ids of consecutive rows as they are stored; None where no row has one."""
        if not self.header.has_items:
            return None
        ends = self._arrays["item_text_end.bin"].view(np.int64)
        cuts = np.concatenate(([0 if first == 0 else ends[first - 1]], ends[first:last])).tolist()
        text = self._arrays["item_text.bin"][cuts[0] : cuts[-1]].tobytes()
        return [text[low - cuts[0] : high - cuts[0]] for low, high in pairwise(cuts)]

    @property
    def n_bytes(self) -> int:
        """How much the store takes on disk, but for its header."""
        return sum(self.header.size_of(name) for name in self.header.names)

    def blocks(self, block_bytes: int = 1 << 26) -> Iterator[tuple[sp.csr_matrix, Floats, AnyArray | None]]:
        """Yield (X, y, qid) in memory, block by block, queries whole; what `iter_svmlight` yields for text.

        A block takes at most `block_bytes`, or is one query (one row, without ids) where that takes more.
        """
        check_count("block_bytes", block_bytes, optional=False)
        ids = self.query_ids
        cuts = self.query_start if ids is not None else np.arange(self.header.rows + 1)
        start: AnyArray = self._arrays["row_start.bin"].view(np.int64)
        ends = start[cuts] * (self.X.dtype.itemsize + 4) + 16 * cuts  # a pointer and a label per row
        low = 0
        while low + 1 < cuts.size:
            high = int(np.searchsorted(ends, ends[low] + block_bytes, side="right")) - 1
            high = max(high, low + 1)
            rows = slice(int(cuts[low]), int(cuts[high]))
            qid = None if ids is None else np.repeat(ids[low:high], np.diff(cuts[low : high + 1]))
            yield sp.csr_matrix(self.X[rows]), self.y[rows], qid
            low = high

    def verify(self, n_threads: int | None = None) -> None:
        """Read everything once, and raise unless every checksum fits and every column number is in range."""
        check_count("n_threads", n_threads)
        segments = []
        for name in self.header.names:
            at = 0
            for size, checksum in self.header.files[name]:
                segments.append((name, at, size, checksum))
                at += size
        with ThreadPoolExecutor(n_threads or default_threads()) as executor:
            for problem in executor.map(self._check_segment, segments):
                if problem:
                    raise damaged(self.path, problem)

    def _check_segment(self, segment: tuple[str, int, int, str]) -> str | None:
        name, at, size, checksum = segment
        content = self._arrays[name][at : at + size]
        if f"{_core.checksum(content):016x}" != checksum:
            return f"the checksum of {name} does not fit between bytes {at} and {at + size}"
        if name == "columns.bin" and size:
            columns = content.view(np.int32)
            if columns.min() < 0 or columns.max() >= self.header.columns:
                return f"{name} has columns outside the matrix"
        return None

    def _check_pointers(self) -> None:
        start, header = self._arrays["row_start.bin"].view(np.int64), self.header
        if start[0] != 0 or start[-1] != header.entries or _falls(start):
            raise damaged(self.path, "row_start.bin is not ascending")
        queries = self.query_start
        if (
            queries[0] != 0
            or (queries[1:] <= queries[:-1]).any()
            or queries[-1] != (header.rows if header.queries else 0)
        ):
            raise damaged(self.path, "query_start.bin is not ascending")
        text_end = np.concatenate(([0], self._arrays["query_text_end.bin"].view(np.int64)))
        if (text_end[1:] <= text_end[:-1]).any() or text_end[-1] != header.size_of("query_text.bin"):
            raise damaged(self.path, "query_text_end.bin is not ascending")
        if header.has_items:
            item_end = np.concatenate(([0], self._arrays["item_text_end.bin"].view(np.int64)))
            if _falls(item_end) or item_end[-1] != header.size_of("item_text.bin"):
                raise damaged(self.path, "item_text_end.bin is not ascending")
        if not np.isfinite(self.y).all():
            raise damaged(self.path, "labels.bin holds numbers that are not finite")

    def __repr__(self) -> str:
        h = self.header
        return f"<Store {self.path}: {h.rows} rows, {h.columns} columns, {h.entries} entries, {h.queries} queries>"


def open_store(path: str | os.PathLike[str], *, verify: bool = True, n_threads: int | None = None) -> Store:
    """Open a store that `save_store` wrote.

    Parameters
    ----------
    path : str or path
        The folder.
    verify : bool, default=True
        Whether to read all of it once and check the checksums. Without that, a damaged store can crash the
        process; sizes, row pointers and query ids are checked in any case.
    n_threads : int, optional
        For checking.

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
    folder = check_path("path", path)
    check_flag("verify", verify)
    check_count("n_threads", n_threads)
    if not Path(folder, HEADER).is_file():
        raise InvalidInputError(
            f"{folder} is not a store: there is no {HEADER} in it.",
            "pass a folder that save_store wrote.",
            Change("store"),
        )
    for _ in range(_ATTEMPTS):
        with _Folder(folder) as files:
            try:
                header = read_header(files.read(HEADER), folder)
                arrays = {name: files.map(name, header.size_of(name)) for name in header.names}
                direct = files.open_directly("values.bin", "columns.bin")
            except InvalidInputError:
                if files.is_current():
                    raise
                continue  # another store took the name, and this one is being removed
        break
    else:
        raise InvalidInputError(
            f"The store {folder} is being written again and again.", "open it when that has ended."
        )
    store = Store(folder, header, arrays, direct)
    store._check_pointers()  # noqa: SLF001
    if verify:
        store.verify(n_threads)
    return store


_ATTEMPTS = 100


def _falls(numbers: Ints) -> bool:
    """Tell whether a number is below the one before; differences of damaged ones could wrap around."""
    return bool((numbers[1:] < numbers[:-1]).any())


class _Folder:
    """A folder whose files all come from the same store, even if another one takes its name meanwhile."""

    def __init__(self, path: str) -> None:
        self._path = path
        try:
            self._descriptor = os.open(path, os.O_RDONLY) if os.open in os.supports_dir_fd else None
        except OSError as error:
            raise InvalidInputError(
                f"The store {path} cannot be opened: {error.strerror}.", "check that you may read it."
            ) from error

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)

    def is_current(self) -> bool:
        """Tell whether the folder still has its name."""
        if self._descriptor is None:
            return True
        try:
            return os.path.samestat(os.fstat(self._descriptor), Path(self._path).stat())
        except FileNotFoundError:
            return False

    def read(self, name: str) -> bytes:
        with self._open(name) as file:
            return bytes(file.read())

    def map(self, name: str, size: int) -> npt.NDArray[np.uint8]:
        with self._open(name) as file:
            found = os.fstat(file.fileno()).st_size
            if found != size:
                raise damaged(self._path, f"{name} has {found} bytes instead of {size}")
            if not size:
                return np.empty(0, dtype=np.uint8)
            content = np.memmap(file, dtype=np.uint8, mode="r")
        # Whoever makes the file shorter ends this process: it should at least say why.
        words = f"{name} of the store {self._path}".encode(errors="replace").decode()
        slot = _core.watch_mapping(content, words)
        weakref.finalize(content._mmap, _core.forget_mapping, slot).atexit = False  # type: ignore[attr-defined]  # noqa: SLF001
        return content

    def open_directly(self, values: str, columns: str) -> _core.DirectFiles | None:
        """Open two files for reads past the page cache; None where the system or the file system has none."""
        if self._descriptor is None or not hasattr(os, "O_DIRECT"):
            return None
        flags = os.O_RDONLY | os.O_DIRECT
        try:
            first = os.open(values, flags, dir_fd=self._descriptor)
        except OSError:
            return None
        try:
            return _core.DirectFiles(first, os.open(columns, flags, dir_fd=self._descriptor))
        except OSError:
            os.close(first)
            return None

    def _open(self, name: str) -> BinaryIO:
        try:
            if self._descriptor is None:
                return Path(self._path, name).open("rb")
            # A pipe under that name would wait for somebody to write.
            file = os.fdopen(os.open(name, os.O_RDONLY | os.O_NONBLOCK, dir_fd=self._descriptor), "rb")
        except OSError as error:
            raise damaged(self._path, f"{name} cannot be opened ({error.strerror})") from error
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            file.close()
            raise damaged(self._path, f"{name} is no file")
        return file
