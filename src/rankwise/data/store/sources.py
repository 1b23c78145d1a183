"""What a store can be written from: text, tables, another store, blocks of arrays."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from rankwise.arrays import AnyArray, Ints, MatrixLike
from rankwise.data.containers import readable
from rankwise.data.store.reading import Store
from rankwise.data.tables.arrow_files import is_table, open_sources
from rankwise.data.tables.column_names import first_column_of
from rankwise.data.tables.plan import TablePlan
from rankwise.data.text.comments import item_ids
from rankwise.data.text.query_ids import encode_any_ids
from rankwise.data.text.reader import (
    LAST_COLUMN,
    Missing,
    TextBlock,
    TextReader,
    ZeroBased,
    text_blocks,
)
from rankwise.data.validation import check_choice, check_numbers, check_qid
from rankwise.exceptions import Change, InvalidInputError

__all__ = ["Columns", "Rows", "rows_of"]


@dataclass(frozen=True)
class Rows:
    """Rows on their way to disk.

    Attributes
    ----------
    values, columns, start : arrays of a CSR matrix, columns ascending inside a row
    labels : (rows,) float64
    run_start : (runs,) int64
        The first row of each run of rows with one query id.
    run_texts : list of bytes or None
        The ids; None without.
    kind : {"i", "f", "U", "text"} or None
        What ids are; "text" leaves it to what all of them look like.
    item_texts : list of bytes or None
        The id of each row; None without.
    is_ours : bool
        Whether nobody will fill the arrays again, so that they may be written while the next rows are made.
    """

    values: AnyArray
    columns: npt.NDArray[np.int32]
    start: Ints
    labels: npt.NDArray[np.float64]
    run_start: Ints
    run_texts: list[bytes] | None
    kind: str | None
    item_texts: list[bytes] | None = None
    is_ours: bool = False


@dataclass(frozen=True)
class Columns:
    """Which columns of a table are meant; see `load_table`.

    Attributes
    ----------
    label : str
    qid : str or None
        A table without the usual column of ids, ``qid``, is one ranking.
    features, embedding : as in `load_table`
    item_id : str or None
        Kept beside the rows.
    """

    label: str = "label"
    qid: str | None = "qid"
    features: Sequence[str] | None = None
    embedding: str | Sequence[str] | None = None
    item_id: str | None = None


def rows_of(
    source: object,
    columns: Columns,
    *,
    n_features: int | None,
    dtype: npt.DTypeLike,
    zero_based: ZeroBased,
    missing: Missing,
    block_bytes: int,
    n_threads: int | None,
    longest_line: int,
    comments: bool,
) -> tuple[Iterator[Rows], Callable[[], tuple[int, int]]]:
    """Return an iterator over rows, and a function to ask once they have all come.

    It returns the number of columns, and what the first is called: 0 or 1.
    """
    base = 0 if zero_based is True else 1
    if isinstance(source, Store):
        blocks = _Blocks(_stored(source, block_bytes), n_features or source.header.columns, "nan")
        return iter(blocks), lambda: (blocks.width(), source.header.first_column)
    parts = source if isinstance(source, (list, tuple)) else [source]
    if any(map(is_table, parts)):
        table = _Tables(source, columns, missing, dtype, block_bytes)
        blocks = _Blocks(table, n_features, missing)
        return iter(blocks), lambda: (blocks.width(), table.base if zero_based == "auto" else base)
    is_paths = bool(parts) and all(isinstance(part, (str, os.PathLike)) for part in parts)
    if is_paths or hasattr(source, "read") or isinstance(source, TextReader):
        reader = (
            source
            if isinstance(source, TextReader)
            else TextReader(
                source,
                n_features=n_features,
                zero_based=zero_based,
                missing=missing,
                dtype=dtype,
                n_threads=n_threads,
                longest_line=longest_line,
            )
        )
        reader.keeps_comments |= comments
        # Rows are written while the next ones are parsed: half a block each, but for the first.
        reader.parse_halves()
        return _text(reader, block_bytes), lambda: (reader.n_columns, reader.base)
    blocks = _Blocks(source, n_features, missing)
    return iter(blocks), lambda: (blocks.width(), base)


def _text(reader: TextReader, block_bytes: int) -> Iterator[Rows]:
    for block in text_blocks(reader, max(1, block_bytes // 2), first_bytes=block_bytes):
        items = item_ids(reader.take_comments(block.labels.size)) if reader.keeps_comments else None
        yield _text_rows(block, items)
        del block  # before the next one is made


def _text_rows(block: TextBlock, items: npt.NDArray[np.str_] | None) -> Rows:
    arrays = (block.values, block.columns, block.start, block.labels)
    own = _item_texts(items)
    if block.runs is None:
        return Rows(*arrays, np.empty(0, dtype=np.int64), None, None, own, is_ours=True)
    texts = [text.encode("utf-8", "surrogateescape") for text in block.runs.texts()]
    return Rows(*arrays, block.runs.start, texts, "text", own, is_ours=True)


def _item_texts(items: AnyArray | None) -> list[bytes] | None:
    """Return ids as they are stored; None where all are empty."""
    if items is None:
        return None
    texts = [str(item).encode("utf-8", "surrogateescape") for item in items.tolist()]
    return texts if any(texts) else None


def _stored(store: Store, block_bytes: int) -> Iterator[tuple[object, ...]]:
    first = 0
    for X, y, qid in store.blocks(block_bytes):
        texts = store.item_texts(first, first + y.size)
        items = None if texts is None else [text.decode("utf-8", "surrogateescape") for text in texts]
        yield X, y, qid, items
        first += y.size


class _Tables:
    """Tables as blocks of arrays."""

    def __init__(
        self, source: object, columns: Columns, missing: str, dtype: npt.DTypeLike, block_bytes: int
    ) -> None:
        self._source, self._columns = source, columns
        self._missing, self._dtype, self._block_bytes = missing, dtype, block_bytes
        self.base = 1

    def __iter__(self) -> Iterator[tuple[object, ...]]:
        asked = self._columns
        texts = [name for name in (asked.qid, asked.item_id) if name is not None]
        sources = open_sources(self._source, text_columns=texts)
        is_one = asked.qid == Columns.qid and asked.qid not in sources[0].schema.names
        plan = TablePlan.of(
            sources,
            label=asked.label,
            qid=None if is_one else asked.qid,
            features=asked.features,
            embedding=asked.embedding,
            missing=self._missing,
            dtype=self._dtype,
            item_id=asked.item_id,
        )
        self.base = 0 if first_column_of(plan.first_name) == 0 else 1
        for block, items in plan.named_blocks(plan.rows_in(self._block_bytes)):
            yield *block, items


class _Blocks:
    """Blocks of arrays from a caller."""

    def __init__(self, blocks: object, n_features: int | None, missing: str) -> None:
        check_choice("missing", missing, ("error", "nan", "zero"))
        if not isinstance(blocks, Iterable) or isinstance(blocks, np.ndarray):
            raise InvalidInputError(
                f"A store cannot be written from {type(blocks).__name__}.",
                "pass paths, or an iterable of blocks such as [(X, y, qid)].",
            )
        self._blocks = blocks
        self._missing = missing
        self._n_features = n_features
        self._is_given = n_features is not None

    def width(self) -> int:
        """Return the number of columns."""
        return self._n_features or 0

    def __iter__(self) -> Iterator[Rows]:
        for number, block in enumerate(self._blocks):
            if not isinstance(block, (tuple, list)) or len(block) not in {2, 3, 4}:
                raise InvalidInputError(
                    f"Block {number} is not a tuple (X, y), (X, y, qid) or (X, y, qid, item_ids).",
                    "for one block, pass [(X, y, qid)].",
                )
            yield self._rows(number, *block)

    def _rows(
        self,
        number: int,
        X: MatrixLike,
        y: npt.ArrayLike,
        qid: npt.ArrayLike | None = None,
        item_ids: npt.ArrayLike | None = None,
    ) -> Rows:
        matrix = self._matrix(number, X)
        labels = check_numbers("y", y, matrix.shape[0])
        run_start, texts, kind = np.empty(0, dtype=np.int64), None, None
        if qid is not None:
            queries = check_qid(qid, matrix.shape[0])
            changes = np.flatnonzero(np.diff(queries.codes)) + 1
            run_start = np.concatenate(([0], changes))[: matrix.shape[0]].astype(np.int64, copy=False)
            texts, kind = encode_any_ids(queries.ids, queries.codes[run_start])
        return Rows(
            matrix.data,
            matrix.indices.astype(np.int32, copy=False),
            matrix.indptr.astype(np.int64, copy=False),
            labels,
            run_start,
            texts,
            kind,
            self._items(number, item_ids, matrix.shape[0]),
        )

    def _items(self, number: int, item_ids: npt.ArrayLike | None, n_rows: int) -> list[bytes] | None:
        if item_ids is None:
            return None
        items = np.asarray(item_ids)
        if items.shape != (n_rows,):
            raise InvalidInputError(
                f"Block {number} has {n_rows} rows and ids of items of shape {items.shape}.",
                "pass one id per row, or None.",
            )
        return _item_texts(items)

    def _matrix(self, number: int, X: MatrixLike) -> sp.csr_matrix:
        X = readable(f"X of block {number}", X)
        try:
            matrix = sp.csr_matrix(X if sp.issparse(X) else np.asarray(X))
        except (TypeError, ValueError) as error:
            raise InvalidInputError(
                f"X of block {number} is not a matrix of numbers ({error}).",
                "pass an array or a sparse matrix.",
            ) from error
        width = matrix.shape[1]
        if width > LAST_COLUMN + 1:
            raise InvalidInputError(
                f"Block {number} has {width} columns, more than 32-bit numbers can name.",
                "rename the columns that occur, or hash them to fewer.",
            )
        if not np.can_cast(matrix.dtype, np.float64):
            raise InvalidInputError(
                f"X of block {number} has type {matrix.dtype}.", "pass numbers that fit into float64."
            )
        if self._n_features is None:
            self._n_features = width
        elif width > self._n_features or (width < self._n_features and not self._is_given):
            raise InvalidInputError(
                f"Block {number} has {width} columns where {self._n_features} are expected.",
                "make blocks of equal width; where trailing columns may be absent, pass n_features.",
                Change("n_features"),
            )
        if not matrix.has_canonical_format:
            matrix = matrix.copy()
            matrix.sum_duplicates()
        finite = np.isfinite(matrix.data)
        if not finite.all() and (self._missing == "error" or np.isinf(matrix.data).any()):
            raise InvalidInputError(
                f"X of block {number} has values that are not finite.",
                "replace them; NaN is stored with missing='nan', and left out with missing='zero'.",
                Change("missing"),
            )
        if not finite.all() and self._missing == "zero":
            matrix = matrix.tocoo()
            kept = ~np.isnan(matrix.data)
            matrix = sp.csr_matrix(
                (matrix.data[kept], (matrix.row[kept], matrix.col[kept])), shape=matrix.shape
            )
        return matrix
