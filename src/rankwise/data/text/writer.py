"""svmlight and LETOR text out: what `load_svmlight` reads back bit for bit."""

from __future__ import annotations

import bz2
import gzip
import lzma
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from itertools import accumulate
from pathlib import Path
from typing import Any, BinaryIO, Literal, cast

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from rankwise import _core
from rankwise.arrays import AnyArray, InMemory, MatrixLike, is_sparse
from rankwise.data.arguments import check_names
from rankwise.data.containers import as_array, readable
from rankwise.data.text.query_ids import encode_ids
from rankwise.data.text.sources import import_zstandard
from rankwise.data.validation import check_choice, check_count, check_flag, check_numbers, check_qid
from rankwise.exceptions import Change, InvalidInputError
from rankwise.files import replacing
from rankwise.runtime.threads import default_threads

__all__ = ["TextWriter", "open_text", "save_svmlight"]

# Values that are turned into text at a time: little enough that its memory is used again for the next ones.
WRITTEN_AT_ONCE = 1 << 17


class TextWriter:
    """A stream that rows are written to as text; see `save_svmlight` for the parameters."""

    def __init__(self, stream: BinaryIO, *, zero_based: bool, missing: str, n_threads: int | None) -> None:
        self._stream = stream
        self._base = 0 if zero_based else 1
        self._missing = missing
        self._n_threads = n_threads or default_threads()
        self._n_rows = 0

    def comment(self, text: str) -> None:
        """Write lines of comment."""
        for line in text.splitlines():
            self._stream.write(f"# {line}\n".encode(errors="backslashreplace"))

    def write(
        self,
        X: InMemory,
        y: npt.NDArray[np.float64],
        qid: AnyArray | None,
        comments: Sequence[str] | None = None,
    ) -> None:
        """Write rows: an array or CSR matrix, finite labels, ids or None, and what stands behind each row or None."""
        run_start, text, text_end = _runs(qid)
        for row, own in enumerate(comments or ()):
            if "\n" in own or "\r" in own:
                raise InvalidInputError(
                    f"have a line break in row {self._n_rows + row}: {own[:80]!r}.",
                    "pass texts without line breaks.",
                    about="comments",
                )
        step = max(1, WRITTEN_AT_ONCE * X.shape[0] // max(1, X.nnz if is_sparse(X) else X.size))
        for first in range(0, X.shape[0], step):
            last = min(first + step, X.shape[0])
            rows = self._canonical(_slice(X, first, last), self._n_rows + first)
            pieces = _core.write_svmlight(
                rows.data,
                rows.indices,
                rows.indptr,
                y[first:last],
                run_start - first,
                text,
                text_end,
                self._base,
                self._n_threads,
            )
            if comments is None:
                for piece in pieces:
                    self._stream.write(piece.data)
            else:
                lines = b"".join(piece.tobytes() for piece in pieces).splitlines()
                self._stream.write(_commented(lines, comments[first:last]))
        self._n_rows += X.shape[0]

    def _canonical(self, rows: sp.csr_matrix, first_row: int) -> sp.csr_matrix:
        """Return sorted CSR rows of finite values in float32 or float64."""
        if rows.dtype not in {np.dtype(np.float32), np.dtype(np.float64)}:
            rows = rows.astype(np.float64)
        if not rows.has_canonical_format:
            rows = rows.copy()
            rows.sum_duplicates()
        bad = ~np.isfinite(rows.data)
        if bad.any() and (self._missing == "error" or np.isinf(rows.data[bad]).any()):
            at = int(np.argmax(bad if self._missing == "error" else np.isinf(rows.data)))
            row = int(np.searchsorted(rows.indptr, at, side="right")) - 1
            raise InvalidInputError(
                f"is {rows.data[at]} in row {first_row + row}, column {rows.indices[at]}.",
                "replace infinite values; NaN is written as such with missing='nan'.",
                Change("missing"),
                about="X",
            )
        return rows


def save_svmlight(
    X: MatrixLike,
    y: npt.ArrayLike,
    path: str | os.PathLike[str] | BinaryIO,
    *,
    qid: npt.ArrayLike | None = None,
    zero_based: bool = False,
    comment: str | None = None,
    comments: Sequence[str] | AnyArray | None = None,
    missing: Literal["error", "nan"] = "error",
    n_threads: int | None = None,
    durable: bool = True,
) -> None:
    """Write svmlight or LETOR text that `load_svmlight` reads back bit for bit.

    Numbers are the shortest decimals that read back to the same bits of X's type. Of a sparse matrix every stored
    value is written, zeros too; of an array only what is not 0.

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
    comment : str, optional
        Lines for the top of the file.
    comments : array-like of str of shape (rows,), optional
        What stands behind ``#`` at the end of each line, such as ``docid = 7``; nothing where it is empty.
        `load_svmlight` returns it with ``comments=True``.
    missing : {"error", "nan"}, default="error"
        Whether NaN is written, as ``NaN``; read it with the same option.
    n_threads : int, optional
    durable : bool, default=True
        Whether to wait until the disk has a file before it takes the place of another one.

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
    check_choice("missing", missing, ("error", "nan"))
    check_count("n_threads", n_threads)
    check_flag("zero_based", zero_based)
    check_flag("durable", durable)
    if not isinstance(comment, str | None):
        raise InvalidInputError(f"comment={comment!r} is no text.", "pass a text, or leave it out.")
    given = readable("X", X)
    rows: InMemory = given.tocsr() if is_sparse(given) else as_array("X", given)
    if len(rows.shape) != 2 or rows.dtype.kind not in "biuf":
        raise InvalidInputError(
            f"X has shape {rows.shape} and type {rows.dtype}.",
            "pass a matrix of numbers with one row per item.",
        )
    labels = check_numbers("y", y, rows.shape[0])
    ids = None
    if qid is not None:
        queries = check_qid(qid, rows.shape[0])
        ids = np.asarray(queries)
    texts = None if comments is None else [text.strip() for text in check_names("comments", comments)]
    if texts is not None and len(texts) != rows.shape[0]:
        raise InvalidInputError(
            f"comments are {len(texts)} texts of {rows.shape[0]} rows.", "pass one text per row."
        )
    with open_text(path, durable=durable) as stream:
        writer = TextWriter(stream, zero_based=zero_based, missing=missing, n_threads=n_threads)
        if comment:
            writer.comment(comment)
        writer.write(rows, labels, ids, texts)


@contextmanager
def open_text(path: str | os.PathLike[str] | BinaryIO, *, durable: bool = True) -> Iterator[BinaryIO]:
    """Open a stream for writing: a file that appears once it is complete, standard output, or the stream given."""
    if hasattr(path, "write"):
        yield cast("BinaryIO", path)
    elif isinstance(path, (str, os.PathLike)) and os.fspath(path) == "-":
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
    else:
        name = Path(os.fsdecode(path)).name
        with replacing(path, durable=durable) as file, _compressed(file, name) as stream:
            yield stream


def _compressed(file: BinaryIO, name: str) -> AbstractContextManager[BinaryIO]:
    suffix = Path(name).suffix.lower()
    packed: Any = nullcontext(file)
    if suffix == ".gz":
        packed = gzip.GzipFile(name, "wb", compresslevel=6, fileobj=file, mtime=0)
    elif suffix == ".bz2":
        packed = bz2.BZ2File(file, "wb")
    elif suffix == ".xz":
        packed = lzma.LZMAFile(file, "wb")  # noqa: SIM115 - its caller closes it
    elif suffix == ".zst":
        packed = import_zstandard(name).ZstdCompressor().stream_writer(file, closefd=False)
    return cast("AbstractContextManager[BinaryIO]", packed)


def _commented(lines: Sequence[bytes], comments: Sequence[str]) -> bytes:
    """Return lines with what stands behind each of them."""
    return b"".join(
        line + (f" # {text}\n".encode("utf-8", "surrogateescape") if text else b"\n")
        for line, text in zip(lines, comments, strict=True)
    )


def _slice(X: InMemory, first: int, last: int) -> sp.csr_matrix:
    """Return the rows [first, last) as CSR; of a CSR matrix nothing is copied but the row pointers."""
    if not is_sparse(X):
        return sp.csr_matrix(X[first:last])
    entries = slice(int(X.indptr[first]), int(X.indptr[last]))
    pointers = X.indptr[first : last + 1] - X.indptr[first]
    return sp.csr_matrix((X.data[entries], X.indices[entries], pointers), shape=(last - first, X.shape[1]))


def _runs(qid: AnyArray | None) -> tuple[npt.NDArray[np.int64], bytes, npt.NDArray[np.int64]]:
    """Return the first row, the text and the end of the text of each run of rows with one id."""
    if qid is None or qid.size == 0:
        return np.empty(0, dtype=np.int64), b"", np.empty(0, dtype=np.int64)
    start = np.concatenate(([0], np.flatnonzero(qid[1:] != qid[:-1]) + 1)).astype(np.int64, copy=False)
    texts = encode_ids(qid[start])
    return start, b"".join(texts), np.fromiter(accumulate(map(len, texts)), np.int64, count=len(texts))
