"""svmlight and LETOR text in: ``label qid:id column:value ... # comment``, a row per line."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from rankwise.arrays import AnyArray
from rankwise.data.text.query_ids import decode_ids
from rankwise.data.text.reader import Missing, TextReader, ZeroBased, check_last_column, no_rows, text_blocks
from rankwise.data.text.sources import LONGEST_LINE
from rankwise.data.validation import check_count, check_flag

__all__ = ["iter_svmlight", "load_svmlight"]

Block = tuple[sp.csr_matrix, npt.NDArray[np.float64], AnyArray | None]


def load_svmlight(
    paths: object,
    *,
    n_features: int | None = None,
    zero_based: ZeroBased = "auto",
    missing: Missing = "error",
    dtype: npt.DTypeLike = np.float64,
    n_threads: int | None = None,
    longest_line: int = LONGEST_LINE,
    comments: bool = False,
) -> Any:
    r"""Read svmlight or LETOR text, a row per line: ``label qid:id column:value # comment``.

    Parameters
    ----------
    paths : str, path, binary stream, or a sequence of those
        Files, read one after the other into one matrix; ``"-"`` is standard input. Text compressed with gzip,
        bz2, xz or zstd (needs the package zstandard) is told by its first bytes.
    n_features : int, optional
        The number of columns; by default as many as there are. Pass it for test data, whose last columns may
        happen to be empty.
    zero_based : {"auto", True, False}, default="auto"
        Whether columns count from 0. "auto" takes them to count from 1 unless a column 0 occurs.
    missing : {"error", "nan", "zero"}, default="error"
        What becomes of the values ``NULL`` and ``NaN``: an error, NaN, or nothing (a value that is not written is 0).
    dtype : {np.float64, np.float32}, default=np.float64
        Of the matrix. Values are rounded correctly to it.
    n_threads : int, optional
        By default, as many as the process has processors.
    longest_line : int, default=268435456
        Bytes; a longer line is an error instead of all memory that there is.
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
        Only with ``comments=True``: what stands behind ``#``, empty where nothing does.

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
    reader = TextReader(
        paths,
        n_features=n_features,
        zero_based=zero_based,
        missing=missing,
        dtype=dtype,
        n_threads=n_threads,
        longest_line=longest_line,
    )
    check_flag("comments", comments)
    reader.keeps_comments = comments
    for _ in reader.parse():
        pass
    if reader.rows.rows == 0:
        raise no_rows(reader)
    block = reader.take()
    check_last_column(reader, block)
    qid = None if block.runs is None else block.runs.repeat(decode_ids(block.runs.texts()), block.labels.size)
    found = block.matrix(reader.n_columns), block.labels, qid
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
    longest_line: int = LONGEST_LINE,
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
    longest_line : int, default=268435456

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
    reader = TextReader(
        paths,
        n_features=n_features,
        zero_based=zero_based,
        missing=missing,
        dtype=dtype,
        n_threads=n_threads,
        longest_line=longest_line,
    )
    kind: str | None = None
    for block in text_blocks(reader, block_bytes):
        qid = None
        if block.runs is not None:
            ids = decode_ids(block.runs.texts(), kind)
            kind = ids.dtype.kind
            qid = block.runs.repeat(ids, block.labels.size)
        yield block.matrix(reader.n_columns), block.labels, qid
