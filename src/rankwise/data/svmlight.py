"""Reading and writing svmlight and LETOR text: ``label qid:id column:value ... # comment``, one row per line.

Blocks of whole lines are parsed by the compiled core on several threads (`cpp/svmlight.hpp`). Values that are written,
zeros among them, are stored; numbers are correctly rounded, and are written as the shortest decimals that read back to
the same bits.
"""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import re
import sys
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any, BinaryIO, Literal, cast

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from rankwise import _core
from rankwise.arrays import AnyArray, Floats, MatrixLike, is_sparse
from rankwise.data.containers import as_rows
from rankwise.data.queries import decode_ids, encode_ids
from rankwise.data.validation import (
    check_choice,
    check_count,
    check_dtype,
    check_names,
    check_numbers,
    check_qid,
)
from rankwise.exceptions import InvalidInputError, MemoryLimitError, MissingPackageError
from rankwise.files import replacing
from rankwise.runtime.memory import available_memory
from rankwise.runtime.threads import default_threads

ZeroBased = bool | Literal["auto"]
Missing = Literal["error", "nan", "zero"]
Block = tuple[sp.csr_matrix, Floats, AnyArray | None]
Lines = tuple[bytearray, int]

_LAST_COLUMN = 2**31 - 2  # columns are numbered by 32-bit integers
_LONGEST_LINE = 1 << 28  # bytes: a row of some twenty million values
# Text that is parsed at a time: the output of a thread should still be in cache when it is put in place.
PARSED_AT_ONCE = 1 << 22
# Values that are turned into text at a time: little enough that its memory is used again for the next ones.
_WRITTEN_AT_ONCE = 1 << 17
_UNPACKERS: dict[bytes, Callable[[Any], Any]] = {
    b"\x1f\x8b": gzip.open,
    b"BZh": bz2.open,
    b"\xfd7zXZ\x00": lzma.open,
    b"\x28\xb5\x2f\xfd": lambda raw: (
        _zstandard().ZstdDecompressor().stream_reader(raw, read_across_frames=True)
    ),
}
_PACKERS: dict[str, Callable[[Any], Any]] = {
    ".gz": lambda file: gzip.GzipFile("", "wb", compresslevel=6, fileobj=file, mtime=0),
    ".bz2": lambda file: bz2.open(file, "wb"),  # noqa: SIM115 - closed by the caller
    ".xz": lambda file: lzma.open(file, "wb"),  # noqa: SIM115
    ".zst": lambda file: _zstandard().ZstdCompressor().stream_writer(file, closefd=False),
}
_NAMED = re.compile(r"\b(?:docid|doc_id|id)\s*[=:]\s*(\S+)", re.IGNORECASE)

# The problem and the hint, by the names that the parser gives.
_ROW = (
    "a row is `2 qid:7 1:0.5 3:1 # comment`: its label, an optional query id, and column:value without spaces"
)
_ALL_IDS = "write `qid:` after every label, or after none"
_PROBLEMS = {
    "label": ("the label is not a number", f"{_ROW}; tables end in .csv or need --format table"),
    "label_missing": ("the label is missing", "drop rows without a label, or give them one"),
    "qid_empty": ("the query id is empty or has a NUL byte in it", "write an id without spaces after `qid:`"),
    "qid_missing": ("this row has no query id, but earlier rows have", _ALL_IDS),
    "qid_unexpected": ("this row has a query id, but earlier rows have none", _ALL_IDS),
    "entry": ("this is not `column:value`", _ROW),
    "column_zero": ("columns count from 1, and this is column 0", "pass zero_based=True"),
    "column_too_large": (
        "the column number is too large",
        "raise n_features; numbers go up to 2,147,483,647: hash larger ones to fewer",
    ),
    "value": ("the value is not a number", "write a decimal number such as 0.5, -3 or 1e-4"),
    "value_missing": ("the value is missing", "pass missing='nan' to read it as NaN, or missing='zero' as 0"),
    "infinite": ("the number is infinite", "replace it by a finite one"),
    "duplicate": ("the column comes twice in this row", "write each column once per row"),
}


def load_svmlight(
    paths: object,
    *,
    n_features: int | None = None,
    zero_based: ZeroBased = "auto",
    missing: Missing = "error",
    dtype: npt.DTypeLike = np.float64,
    n_threads: int | None = None,
    comments: bool = False,
) -> Any:
    r"""Read svmlight or LETOR text, a row per line: ``label qid:id column:value # comment``.

    Parameters
    ----------
    paths : str, path, binary stream, or a sequence of those
        Files, read one after the other into one matrix; ``"-"`` is standard input. Text compressed with gzip,
        bz2, xz or zstd (needs the package zstandard) is recognised by its first bytes.
    n_features : int, optional
        The number of columns; by default as many as the files have. Pass it for test data, whose last columns may
        be empty.
    zero_based : {"auto", True, False}, default="auto"
        Whether columns count from 0. "auto" takes them to count from 1 unless a column 0 occurs.
    missing : {"error", "nan", "zero"}, default="error"
        How to read the values ``NULL`` and ``NaN``: as an error, as NaN, or as 0, like a value that is not written.
    dtype : {np.float64, np.float32}, default=np.float64
        The type of the matrix. Values are rounded correctly to it.
    n_threads : int, optional
        By default, as many as the process has processors.
    comments : bool, default=False
        Whether the comments are returned too; `rankwise.data.item_ids` finds the ids of documents in them.

    Returns
    -------
    X : csr_matrix of shape (rows, features)
        With zeros that were written; columns sorted.
    y : ndarray of shape (rows,), float64
    qid : ndarray of shape (rows,), or None
        None if no row has one. Integers if all ids are written as such, else real numbers if all are, else strings:
        ``01`` and ``1`` are different ids, and text.
    comments : ndarray of shape (rows,), strings
        Only with ``comments=True``: the text after ``#``, empty for rows without a comment.

    Examples
    --------
    >>> import io
    >>> from rankwise.data import load_svmlight
    >>> X, y, qid = load_svmlight(io.BytesIO(b"2 qid:7 1:0.5 3:1 # the best\n0 qid:7 2:-1\n"))
    >>> X.toarray().tolist()
    [[0.5, 0.0, 1.0], [0.0, -1.0, 0.0]]
    >>> y.tolist(), qid.tolist()
    ([2.0, 0.0], [7, 7])
    """
    reader = TextReader(paths, n_features, zero_based, missing, dtype, n_threads)
    reader.keeps_comments = comments
    for _ in reader.parse():
        pass
    found = reader.take()
    return (*found, np.array(reader.comments, dtype=np.str_)) if comments else found


def iter_svmlight(
    paths: object,
    *,
    block_bytes: int = 1 << 26,
    n_features: int | None = None,
    zero_based: ZeroBased = "auto",
    missing: Missing = "error",
    dtype: npt.DTypeLike = np.float64,
    n_threads: int | None = None,
) -> Iterator[Block]:
    r"""Read svmlight or LETOR text block by block, without ever holding more than one.

    Consecutive rows of a query always come in one block. Other parameters are those of `load_svmlight`; with
    ``zero_based="auto"`` the first block decides, and a column 0 in a later one is an error.

    Parameters
    ----------
    paths : str, path, binary stream, or a sequence of those
    block_bytes : int, default=67108864
        About how much text makes a block; a larger query makes a larger block.
    n_features : int, optional
        Without it, a block has as many columns as were seen up to its end.
    zero_based : {"auto", True, False}, default="auto"
    missing : {"error", "nan", "zero"}, default="error"
    dtype : {np.float64, np.float32}, default=np.float64
    n_threads : int, optional

    Yields
    ------
    X : csr_matrix of shape (rows, features)
    y : ndarray of shape (rows,), float64
    qid : ndarray of shape (rows,), or None
        As text where the first block has ids that are not numbers; real numbers or integers likewise. An id of
        another kind in a later block is an error.

    Examples
    --------
    >>> import io
    >>> from rankwise.data import iter_svmlight
    >>> text = b"1 qid:7 1:0.5\n0 qid:7 2:1\n2 qid:8 1:3\n"
    >>> [(X.shape, qid.tolist()) for X, y, qid in iter_svmlight(io.BytesIO(text), block_bytes=20)]
    [((2, 2), [7, 7]), ((1, 2), [8])]
    """
    check_count("block_bytes", block_bytes, optional=False)
    reader = TextReader(paths, n_features, zero_based, missing, dtype, n_threads)
    yield from reader.blocks(block_bytes)


class TextReader:
    """A reader of text files; see `load_svmlight` for the parameters."""

    def __init__(
        self,
        paths: object,
        n_features: int | None = None,
        zero_based: ZeroBased = "auto",
        missing: Missing = "error",
        dtype: npt.DTypeLike = np.float64,
        n_threads: int | None = None,
    ) -> None:
        check_count("n_features", n_features)
        check_count("n_threads", n_threads)
        self._missing = check_choice("missing", missing, ("error", "nan", "zero"))
        if zero_based not in ("auto", True, False):
            raise InvalidInputError(
                f"zero_based={zero_based!r} is not an option.", "use True, False or 'auto'."
            )
        self.base = int(zero_based in ("auto", False))
        self._base_is_sure = zero_based != "auto"
        self._rows = _core.TextRows32() if check_dtype(dtype) == np.float32 else _core.TextRows64()
        self._sources = _list_sources(paths)
        self._n_features = n_features
        self._n_threads = n_threads or default_threads()
        self._bytes_at_once = PARSED_AT_ONCE * self._n_threads
        self.n_bytes = 0
        self.keeps_comments = False
        self.comments: list[str] = []  # of the rows that were not taken yet
        self.kind_of_ids: str | None = None  # of the rows that were taken, see `decode_ids`

    def parse(self) -> Iterator[None]:
        """Parse block after block; between them, rows may be taken."""
        for name, place in self._sources:
            lines_before = self._rows.lines
            with _opened(name, place) as stream:
                blocks = _whole_lines(stream, name, self._bytes_at_once)
                # A thread that waits for a pipe could not be interrupted.
                ahead = isinstance(place, str) and Path(place).is_file() and self._n_threads > 1
                for buffer, size in _read_ahead(blocks) if ahead else blocks:
                    free = available_memory()
                    if free < 4 * self._bytes_at_once:  # later the system would kill the process
                        raise MemoryLimitError(
                            f"{name} does not fit in memory: after {self.n_bytes / 1e6:,.0f} MB of it, "
                            f"{free / 1e6:,.0f} MB are free.",
                            "write it to a store with save_store, and train on that; or read it with iter_svmlight.",
                        )
                    self._append(buffer, size, name, lines_before)
                    yield

    def blocks(self, block_bytes: int) -> Iterator[Block]:
        """Yield blocks of about `block_bytes` of text; consecutive rows of a query stay together.

        The first block decides whether columns count from 0 or 1.
        """
        taken_at = 0
        for _ in self.parse():
            complete = self._rows.last_run if self._rows.has_qid else self._rows.rows
            if self.n_bytes - taken_at >= block_bytes and complete > 0:
                taken_at = self.n_bytes
                yield self.take(complete)
        if self._rows.rows or not taken_at:
            yield self.take()

    def take(self, n_rows: int | None = None) -> Block:
        """Return the first `n_rows` rows, or all rows by default, and remove them; no rows are an error."""
        if self._rows.rows == 0:
            names = ", ".join(name for name, _ in self._sources)
            raise InvalidInputError(f"{names}: there are no rows.", f"{_ROW}.")
        if not self._base_is_sure and self._rows.smallest < 0:
            self.base = 0
            self._rows.shift_columns(1)
            if self._n_features is not None and self._rows.largest >= self._n_features:
                raise InvalidInputError(
                    f"Columns count from 0, because there is a column 0, so column {self._rows.largest} is beyond "
                    f"n_features={self._n_features}.",
                    "raise n_features, or leave it out.",
                )
        self._base_is_sure = True
        taken: Any = self._rows.take(self._rows.rows if n_rows is None else n_rows)
        values, columns, start, labels, run_start, text, text_end = taken
        width = self._rows.largest + 1 if self._n_features is None else self._n_features
        X = sp.csr_matrix((values, columns, start), shape=(labels.size, width), copy=False)
        X.has_sorted_indices = X.has_canonical_format = True  # the parser saw to it
        if not self._rows.has_qid:
            return X, labels, None
        ends = pairwise([0, *text_end.tolist()])
        ids = decode_ids([text[a:b].decode("utf-8", "surrogateescape") for a, b in ends], self.kind_of_ids)
        self.kind_of_ids = ids.dtype.kind
        return X, labels, np.repeat(ids, np.diff(run_start, append=labels.size))

    def _append(self, buffer: bytearray, size: int, name: str, lines_before: int) -> None:
        self.n_bytes += size
        line = self._rows.lines - lines_before
        last = _LAST_COLUMN if self._n_features is None else min(self._n_features - 1, _LAST_COLUMN)
        text = np.frombuffer(buffer, dtype=np.uint8)
        how = self.base, self._base_is_sure, last + self.base, self._missing, self._n_threads
        error = self._rows.append(text, size, *how)
        if error is not None:
            kind, at, length = error
            problem, remedy = _PROBLEMS[kind]
            line += buffer.count(b"\n", 0, at) + 1
            start = buffer.rfind(b"\n", 0, at) + 1
            if length == 0:  # the parser names the row: show its beginning
                length = min(buffer.find(b"\n", at) - at, 40)
            shown = bytes(buffer[at : at + min(length, 60)]).decode("utf-8", "backslashreplace").rstrip("\r")
            raise InvalidInputError(
                f"{name}, line {line}, column {at - start + 1}: {problem}: {shown!r}{'...' * (length > 60)}.",
                f"{remedy}.",
            )
        if self.keeps_comments:
            rows = (row.partition(b"#") for row in bytes(memoryview(buffer)[:size]).split(b"\n"))
            written = (comment.strip() for row, _, comment in rows if row.strip())
            self.comments += [comment.decode("utf-8", "backslashreplace") for comment in written]


def item_ids(comments: Iterable[str]) -> npt.NDArray[np.str_]:
    """Return the ids that comments name: the word after ``docid =``, else the first word.

    Parameters
    ----------
    comments : iterable of str
        As `load_svmlight` returns them with ``comments=True``.

    Examples
    --------
    >>> from rankwise.data import item_ids
    >>> item_ids(["docid = GX008-86 inc = 1", "7555 rambo", ""]).tolist()
    ['GX008-86', '7555', '']
    """
    found = []
    for comment in check_names("comments", comments):
        named = _NAMED.search(comment)
        words = comment.split(maxsplit=1)
        found.append(named.group(1) if named else words[0] if words else "")
    return np.array(found, dtype=np.str_)


def _list_sources(paths: object) -> list[tuple[str, str | BinaryIO]]:
    """Return the names and places that a path, an open binary stream, ``"-"`` or a sequence of those means."""
    is_one = isinstance(paths, (str, bytes, os.PathLike)) or hasattr(paths, "read")
    places: Any = [paths] if is_one else paths
    found: list[tuple[str, str | BinaryIO]] = []
    for place in places:
        if isinstance(place, io.TextIOBase):
            raise InvalidInputError(
                "The stream yields text where bytes are needed.", "open the file with mode 'rb'."
            )
        if hasattr(place, "read"):
            found.append((str(getattr(place, "name", "stream")), place))
        else:
            path = os.fsdecode(place)
            found.append(("standard input", sys.stdin.buffer) if path == "-" else (path, path))
    if not found:
        raise InvalidInputError("There is no file to read.", "pass at least one path.")
    return found


@contextmanager
def _opened(name: str, place: str | BinaryIO) -> Iterator[BinaryIO]:
    """Open a source for reading its text; gzip, bz2, xz and zstd are recognised by their first bytes."""
    try:
        raw: Any = open(place, "rb") if isinstance(place, str) else place  # noqa: PTH123, SIM115
    except OSError as error:
        raise InvalidInputError(
            f"{name} cannot be opened: {error.strerror}.", "check the path, and that you may read it."
        ) from error
    is_own = raw is not place
    if not hasattr(raw, "readinto"):
        raw, is_own = io.BytesIO(raw.read()), True
    stream = raw if hasattr(raw, "peek") else io.BufferedReader(raw)
    try:
        with _reading(name):
            magic = stream.peek(6)[:6]
        unpack = next((unpack for start, unpack in _UNPACKERS.items() if magic.startswith(start)), None)
        yield stream if unpack is None else unpack(stream)
    finally:
        if is_own:
            raw.close()
        elif stream is not raw:
            stream.detach()  # the caller's stream stays open


def _zstandard() -> Any:
    try:
        import zstandard  # noqa: PLC0415 - only when such a file is read or written
    except ImportError as error:
        raise MissingPackageError(
            "The file is compressed with zstd, and the package zstandard is not installed.",
            "install it with: pip install 'rankwise[zstd]', or use gzip (.gz) instead.",
        ) from error
    return zstandard


@contextmanager
def _reading(name: str) -> Iterator[None]:
    """Report damage where decompression fails."""
    try:
        yield
    except Exception as error:
        is_zstd = type(error).__module__.partition(".")[0] == "zstandard"
        if not is_zstd and not isinstance(error, (OSError, EOFError, zlib.error, lzma.LZMAError)):
            raise
        raise InvalidInputError(
            f"{name} cannot be read to its end: {error}.",
            "the file seems damaged or cut off; fetch it again.",
        ) from error


def _whole_lines(stream: Any, name: str, block_bytes: int) -> Iterator[Lines]:
    """Yield (buffer, size): the first `size` bytes are whole lines, and padding for the parser follows.

    Two buffers take turns: one may be filled while the other is parsed. New ones would take a third of the time.
    """
    padding = _core.TEXT_PADDING
    buffers = [bytearray(block_bytes + padding), bytearray(block_bytes + padding)]
    kept, at_end, is_first = b"", False, True
    while not at_end:
        buffer, filled, size = buffers[0], len(kept), 0
        buffer[:filled] = kept
        while size == 0 and not at_end:
            if filled > _LONGEST_LINE:
                raise InvalidInputError(
                    f"{name} has a line of more than {_LONGEST_LINE / 1e6:,.0f} MB.",
                    "check that the file is text, a row per line.",
                )
            if filled + padding >= len(buffer):
                buffer.extend(bytes(len(buffer)))
            with _reading(name), memoryview(buffer) as view:
                while filled + padding < len(buffer) and not at_end:
                    n_read = stream.readinto(view[filled : len(buffer) - padding])
                    filled, at_end = filled + n_read, not n_read
            size = filled if at_end else buffer.rfind(b"\n", 0, filled) + 1
        if is_first and buffer.startswith(b"\xef\xbb\xbf"):
            buffer[:3] = b"   "
        kept, is_first = bytes(memoryview(buffer)[size:filled]), False
        if size:
            yield buffer, size
        buffers.reverse()


def _read_ahead(blocks: Iterator[Lines]) -> Iterator[Lines]:
    """Yield the blocks, the next one being read by another thread while the caller works on this one."""
    with ThreadPoolExecutor(1) as executor:
        upcoming = executor.submit(next, blocks, None)
        while (block := upcoming.result()) is not None:
            upcoming = executor.submit(next, blocks, None)
            yield block


def save_svmlight(
    X: MatrixLike,
    y: npt.ArrayLike,
    path: str | os.PathLike[str] | BinaryIO,
    *,
    qid: npt.ArrayLike | None = None,
    zero_based: bool = False,
    comments: Sequence[str] | AnyArray | None = None,
    n_threads: int | None = None,
) -> None:
    """Write svmlight or LETOR text that `load_svmlight` reads back bit for bit.

    Numbers are the shortest decimals that read back to the same bits of X's type. Of a sparse matrix every stored
    value is written, zeros too; of an array only the entries that are not 0. NaN is written as ``NaN``; read it with
    ``missing="nan"``.

    Parameters
    ----------
    X : array or sparse matrix of shape (rows, features)
    y : array-like of shape (rows,)
    path : str, path or binary stream
        A file is replaced only once everything is written; ``"-"`` is standard output. The endings .gz, .bz2, .xz
        and .zst compress.
    qid : array-like of shape (rows,), optional
        Integers, real numbers or text without spaces.
    zero_based : bool, default=False
        Whether columns count from 0. They mostly count from 1.
    comments : array-like of str of shape (rows,), optional
        The text after ``#`` at the end of each line, such as ``docid = 7``; an empty text adds no comment.
        `load_svmlight` returns it with ``comments=True``.
    n_threads : int, optional

    Examples
    --------
    >>> import io
    >>> import numpy as np
    >>> from rankwise.data import save_svmlight
    >>> text = io.BytesIO()
    >>> save_svmlight(np.array([[0.5, 0.0], [0.0, 3.0]]), [2, 0], text, qid=["a", "a"])
    >>> print(text.getvalue().decode(), end="")
    2 qid:a 1:0.5
    0 qid:a 2:3
    """
    check_count("n_threads", n_threads)
    rows: Any = as_rows("X", X)
    rows = rows.tocsr() if is_sparse(rows) else np.asarray(rows)
    if rows.dtype.kind not in "biuf":
        raise InvalidInputError(
            f"X has type {rows.dtype}.", "pass a matrix of numbers with one row per item."
        )
    n_rows = rows.shape[0]
    labels = check_numbers("y", y, n_rows)
    run_start, text, text_end = _runs(None if qid is None else np.asarray(check_qid(qid, n_rows)))
    texts = None if comments is None else check_names("comments", comments)
    if texts is not None and len(texts) != n_rows:
        raise InvalidInputError(
            f"comments has {len(texts)} texts, and X has {n_rows} rows.", "pass one text per row."
        )
    step = max(1, _WRITTEN_AT_ONCE * n_rows // max(1, rows.nnz if is_sparse(rows) else rows.size))
    how = text, text_end, 0 if zero_based else 1, n_threads or default_threads()
    with _open_text(path) as stream:
        for first in range(0, n_rows, step):
            block = _writable(rows, first, min(first + step, n_rows))
            part = labels[first : first + step]
            pieces = _core.write_svmlight(
                block.data, block.indices, block.indptr, part, run_start - first, *how
            )
            if texts is None:
                for piece in pieces:
                    stream.write(piece.data)
            else:
                lines = b"".join(piece.tobytes() for piece in pieces).splitlines()
                stream.write(b"".join(map(_commented, lines, texts[first : first + step])))


def _writable(X: Any, first: int, last: int) -> sp.csr_matrix:
    """Return the rows [first, last) as sorted CSR in float32 or float64; raise where a value is infinite."""
    if is_sparse(X):  # nothing is copied but the row pointers
        own, start = slice(int(X.indptr[first]), int(X.indptr[last])), X.indptr[first : last + 1]
        parts = X.data[own], X.indices[own], start - start[0]
        rows = sp.csr_matrix(parts, shape=(last - first, X.shape[1]))
    else:
        rows = sp.csr_matrix(X[first:last])
    if rows.dtype not in {np.dtype(np.float32), np.dtype(np.float64)}:
        rows = rows.astype(np.float64)
    if not rows.has_canonical_format:
        rows = rows.copy()
        rows.sum_duplicates()
    if np.isinf(rows.data).any():
        at = int(np.argmax(np.isinf(rows.data)))
        row = first + int(np.searchsorted(rows.indptr, at, side="right")) - 1
        raise InvalidInputError(
            f"is infinite in row {row}, column {rows.indices[at]}.", "replace the value.", about="X"
        )
    return rows


@contextmanager
def _open_text(path: str | os.PathLike[str] | BinaryIO) -> Iterator[BinaryIO]:
    """Open a stream for writing: a file that appears once it is complete, standard output, or the stream given."""
    if hasattr(path, "write"):
        yield cast("BinaryIO", path)
    elif path == "-":
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
    else:
        name = Path(os.fsdecode(cast("str", path)))
        pack = _PACKERS.get(name.suffix.lower(), nullcontext)
        with replacing(name) as file, pack(file) as stream:
            yield stream


def _commented(line: bytes, comment: str) -> bytes:
    text = " ".join(comment.splitlines()).strip()
    return line + (f" # {text}\n".encode("utf-8", "surrogateescape") if text else b"\n")


def _runs(qid: AnyArray | None) -> tuple[npt.NDArray[np.int64], bytes, npt.NDArray[np.int64]]:
    """Return the first row, the text and the end of the text of each run of rows with one id."""
    if qid is None or qid.size == 0:
        return np.empty(0, dtype=np.int64), b"", np.empty(0, dtype=np.int64)
    start = np.concatenate(([0], np.flatnonzero(qid[1:] != qid[:-1]) + 1)).astype(np.int64, copy=False)
    texts = encode_ids(qid[start])
    return start, b"".join(texts), np.fromiter(accumulate(map(len, texts)), np.int64, count=len(texts))
