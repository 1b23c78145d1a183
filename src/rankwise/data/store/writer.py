"""A store written block by block."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate
from pathlib import Path
from typing import Self

import numpy as np
import numpy.typing as npt

from rankwise.arrays import AnyArray
from rankwise.data.arguments import check_dtype, check_path
from rankwise.data.store.files import StoreFile, WritesBehind
from rankwise.data.store.format import FILES, HEADER, ITEM_FILES, Header
from rankwise.data.store.reading import open_store
from rankwise.data.store.regroup import Regrouping
from rankwise.data.store.sources import Columns, Rows, rows_of
from rankwise.data.text.query_ids import decode_ids
from rankwise.data.text.reader import Missing, ZeroBased
from rankwise.data.text.sources import LONGEST_LINE
from rankwise.data.validation import check_count, check_flag
from rankwise.exceptions import Change, InvalidInputError
from rankwise.files import replacing_folder

__all__ = ["save_store"]


def save_store(
    source: object,
    path: str | os.PathLike[str],
    *,
    n_features: int | None = None,
    dtype: npt.DTypeLike = np.float64,
    regroup: bool = False,
    zero_based: ZeroBased = "auto",
    missing: Missing = "error",
    label: str = "label",
    qid: str | None = "qid",
    features: Sequence[str] | None = None,
    embedding: str | Sequence[str] | None = None,
    item_id: str | None = None,
    comments: bool = False,
    block_bytes: int = 1 << 23,
    n_threads: int | None = None,
    longest_line: int = LONGEST_LINE,
    durable: bool = True,
) -> None:
    """Write a data set to disk as a store that estimators can train on without loading it.

    Never more than one block is held in memory, besides one id per query: of text, half of it is written while the
    other half is parsed. Of a Parquet file also the pages that are open, a few MB per column as most programs write
    them; CSV files are read whole. A store that is there already is replaced once the new one is complete;
    who has it open keeps the old one. On an error nothing changes.

    Parameters
    ----------
    source : paths, table, iterable of blocks, or Store
        svmlight or LETOR text as `load_svmlight` takes it; tables as `load_table` takes them (files are told by their
        endings: .parquet, .arrow, .feather, .csv and so on); or an iterable of blocks ``(X, y)``, ``(X, y, qid)`` or
        ``(X, y, qid, item_ids)`` of equal width. Ids of items are kept as text, for `Store.item_ids`.
    path : str or path
        The folder to make.
    n_features : int, optional
        The number of columns; by default as many as there are.
    dtype : {np.float64, np.float32}, default=np.float64
        Of the values. float32 takes two thirds of the space, and training is as exact: sums are in float64.
    regroup : bool, default=False
        Rows of a query must stand together. If they do not, this sorts them together on disk, queries in the order
        in which they first appear; it takes three times the space meanwhile. Without it they are an error.
    zero_based, missing, longest_line
        See `load_svmlight`. With ``zero_based="auto"`` the first block of text decides. The store keeps from what its
        columns count; for other sources ``zero_based=True`` says that they count from 0 where it is turned into text.
        Names of columns that `rankwise convert` gave, such as ``feature 0``, say it too.
    label, qid, features, embedding
        Of tables; see `load_table`. A table without a column ``qid`` is one ranking.
    item_id : str, optional
        Of tables: the column of ids of items, which is no feature.
    comments : bool, default=False
        Of text: whether ids of items are kept that comments name (``# docid = …``; see `rankwise.data.item_ids`).
    block_bytes : int, default=8388608
        About how much text makes a block: what is still in cache when it is written was never in memory. A larger query
        makes a larger block, and `regroup` holds eight of them.
    n_threads : int, optional
    durable : bool, default=True
        Whether to wait until the disk has the new store before the old one goes; False is for data that can be made
        again, for after a power cut both may be gone.

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
    check_count("block_bytes", block_bytes, optional=False)
    check_count("n_features", n_features)
    check_flag("comments", comments)
    check_flag("regroup", regroup)
    check_flag("durable", durable)
    check_dtype(dtype)
    target = Path(check_path("path", path))
    if target.exists() and not (target / HEADER).is_file():
        raise InvalidInputError(
            f"{target} exists and is not a store; it was left as it is.", "name a folder that does not exist."
        )
    rows, columns = rows_of(
        source,
        Columns(label, qid, features, embedding, item_id),
        n_features=n_features,
        dtype=dtype,
        zero_based=zero_based,
        missing=missing,
        block_bytes=block_bytes,
        n_threads=n_threads,
        longest_line=longest_line,
        comments=comments,
    )
    with replacing_folder(target, durable=durable) as folder:
        if regroup:
            unsorted = folder.with_name(f"{folder.name}.ungrouped")
            with StoreWriter(unsorted, dtype, keep_runs=True) as writer:
                writer.append_all(_read(rows))
                writer.finish(*columns())
            buckets = folder.with_name(f"{folder.name}.buckets")
            rows = Regrouping(open_store(unsorted, verify=False), buckets).blocks(8 * block_bytes)
        with StoreWriter(folder, dtype) as writer:
            writer.append_all(_read(rows))
            writer.finish(*columns())


def _read(rows: Iterable[Rows]) -> Iterator[Rows]:
    """Tell what fails in the source from what fails on the disk that is written to."""
    try:
        yield from rows
    except OSError as error:
        raise InvalidInputError(
            f"The source cannot be read: {error}.", "check that its files are there and may be read."
        ) from error


class StoreWriter:
    """The files of a store that is being written.

    Parameters
    ----------
    folder : path
        Made here.
    dtype : dtype
        Of the values.
    keep_runs : bool, default=False
        Whether a query may come again later, as a query of its own.
    """

    def __init__(self, folder: Path, dtype: npt.DTypeLike, *, keep_runs: bool = False) -> None:
        self.folder = folder
        self._dtype = np.dtype(dtype)
        self._keep_runs = keep_runs
        folder.mkdir()
        self._behind = WritesBehind()
        self._files: dict[str, StoreFile] = {}
        try:
            for name in FILES:
                self._files[name] = StoreFile(folder / name, self._behind)
        except BaseException:
            self.__exit__()
            raise
        self._rows = self._entries = self._text_bytes = self._item_bytes = 0
        self._seen: set[bytes] = set()
        self._texts: list[bytes] = []
        self._last: bytes | None = None
        self._kind: str | None = None
        self._is_finite = True
        self._write("row_start.bin", np.zeros(1, dtype=np.int64))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._behind.close()
        for file in self._files.values():
            file.close()

    def append_all(self, blocks: Iterable[Rows]) -> None:
        """Write blocks as they come, each let go before the next one is made."""
        for block in blocks:
            self.append(block)
            del block

    def append(self, block: Rows) -> None:
        """Write rows, at once or while the next ones are made."""
        self._behind.before_rows(block.values.nbytes + block.columns.nbytes, may_wait=block.is_ours)
        if self._rows and block.labels.size and (block.run_texts is None) != (self._kind is None):
            raise InvalidInputError(
                "Some blocks have query ids and others have none.", "pass qid with every block, or with none."
            )
        with np.errstate(over="ignore"):
            values = block.values.astype(self._dtype, copy=False)
        # A sum tells whether all are finite unless it overflows.
        if not np.isfinite(values.sum(dtype=np.float64)) and not np.isfinite(values).all():
            if np.isinf(values).any():  # sources refuse infinite values
                raise InvalidInputError(
                    f"X has values that are too large for {self._dtype.name}.", "pass dtype=np.float64."
                )
            self._is_finite = False
        self._write("values.bin", values)
        self._write("columns.bin", block.columns)
        self._write("row_start.bin", block.start[1:] + self._entries)
        self._write("labels.bin", block.labels)
        if block.run_texts is not None and block.labels.size:
            self._append_runs(block.run_start, block.run_texts, block.kind)
        self._append_items(block)
        self._entries += int(block.start[-1])
        self._rows += block.labels.size

    def _append_runs(self, start: npt.NDArray[np.int64], texts: list[bytes], kind: str | None) -> None:
        if self._kind is not None and kind != self._kind:
            raise InvalidInputError(
                "Query ids are numbers in some blocks and text in others.", "pass ids of one kind."
            )
        self._kind = kind
        if texts[0] == self._last:
            start, texts = start[1:], texts[1:]
        if not texts:
            return
        if not self._keep_runs:
            for text in texts:
                if text in self._seen:
                    raise InvalidInputError(
                        f"Query {text.decode('utf-8', 'backslashreplace')!r} comes again after rows of other queries.",
                        "sort the rows by query, or pass regroup=True to have them sorted together on disk.",
                        Change("regroup", True),
                    )
                self._seen.add(text)
        self._last = texts[-1]
        self._texts += texts
        self._write("query_start.bin", start + self._rows)
        self._write("query_text.bin", np.frombuffer(b"".join(texts), dtype=np.uint8))
        ends = np.fromiter(accumulate(map(len, texts)), np.int64, count=len(texts))
        self._write("query_text_end.bin", ends + self._text_bytes)
        self._text_bytes += int(ends[-1])

    def _append_items(self, block: Rows) -> None:
        """Write the ids of rows, once some have one."""
        text, end = ITEM_FILES
        if block.item_texts is not None and text not in self._files:
            for name in ITEM_FILES:
                self._files[name] = StoreFile(self.folder / name, self._behind)
            self._write(end, np.zeros(self._rows, dtype=np.int64))
        if text not in self._files:
            return
        lengths = map(len, block.item_texts) if block.item_texts else [0] * block.labels.size
        ends = np.fromiter(accumulate(lengths), np.int64, count=block.labels.size) + self._item_bytes
        self._write(text, np.frombuffer(b"".join(block.item_texts or ()), dtype=np.uint8))
        self._write(end, ends)
        self._item_bytes = int(ends[-1]) if ends.size else self._item_bytes

    def finish(self, n_columns: int, first_column: int = 1) -> None:
        """Write the header."""
        self._behind.before_rows(0, may_wait=False)
        if self._rows == 0:
            raise InvalidInputError("There are no rows to store.", "pass at least one row.")
        self._write("query_start.bin", np.array([self._rows if self._texts else 0], dtype=np.int64))
        kind = self._kind
        if kind == "text":  # ids that came as text are numbers if all of them are
            kind = decode_ids([text.decode("utf-8", "surrogateescape") for text in self._texts]).dtype.kind
        header = Header(
            self._rows,
            n_columns,
            self._entries,
            len(self._texts),
            self._dtype.name,
            kind,
            self._is_finite,
            {name: file.finish() for name, file in self._files.items()},
            first_column,
        )
        (self.folder / HEADER).write_text(header.to_json(), encoding="utf-8")

    def _write(self, name: str, array: AnyArray) -> None:
        self._files[name].append(np.ascontiguousarray(array).view(np.uint8))
