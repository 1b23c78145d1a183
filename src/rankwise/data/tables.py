"""Tables with named columns come in: Parquet, Arrow, Feather, CSV, and data frames of pandas and polars."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from rankwise.data.arrow_columns import (
    check_columns,
    ids_of,
    is_number,
    numbers_of,
    rows_of,
    text_of_numbers,
)
from rankwise.data.arrow_files import TableSource, open_sources
from rankwise.data.validation import check_choice, check_count
from rankwise.exceptions import InvalidInputError

__all__ = ["SPARSE_KEY", "Table", "iterate_table", "load_sources", "load_table"]

SPARSE_KEY = b"rankwise.sparse"  # in a schema's metadata: which columns hold a sparse matrix, and its width
_BLOCK_ROWS = 1 << 14


class Table(NamedTuple):
    """Rows of a table as a ranker takes them.

    Attributes
    ----------
    X : ndarray or CSR matrix of shape (rows, features)
    y : ndarray of shape (rows,) or None
    qid : ndarray of shape (rows,) or None
    feature_names : list of str
    """

    X: Any
    y: npt.NDArray[np.float64] | None
    qid: npt.NDArray[Any] | None
    feature_names: list[str]


def load_table(
    source: Any,
    *,
    label: str | None = "label",
    qid: str | None = "qid",
    features: Sequence[str] | None = None,
    embedding: str | Sequence[str] | None = None,
    missing: str = "error",
    dtype: Any = np.float64,
) -> Table:
    """Read a table with named columns.

    Parameters
    ----------
    source : path, glob, folder, list of those, Arrow table, or data frame of pandas or polars
        Files of Parquet, Arrow IPC, Feather (known by their first bytes) or CSV (known by its name, also compressed).
        Several files are one table; they must have the columns of the first.
    label : str or None, default="label"
        The column of labels, numbers; None where there are none.
    qid : str or None, default="qid"
        The column of query ids, of any type; None for one ranking.
    features : list of str, optional
        The columns of features. By default all other columns of numbers (booleans are 0 and 1, decimals become
        floats); text, dates and lists are left out. With `embedding`, by default none.
    embedding : str or list of str, optional
        Columns whose entries are lists of numbers, all of one length; each becomes as many features, named
        ``name[0]``, ``name[1]``, and so on, after the others.
    missing : {"error", "nan"}, default="error"
        What to do where a feature is null or NaN: raise an error that says where, or leave NaN for an imputer.
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
    return load_sources(open_sources(source), label, qid, features, embedding, missing, dtype)


def load_sources(
    sources: Sequence[TableSource],
    label: str | None,
    qid: str | None,
    features: Sequence[str] | None,
    embedding: str | Sequence[str] | None,
    missing: str,
    dtype: Any,
) -> Table:
    """Read tables that are open, as `load_table` does."""
    plan = _Plan.of(sources[0], label, qid, features, embedding, missing, np.dtype(dtype))
    blocks = [block for one in sources for block in plan.blocks(one, _BLOCK_ROWS)]
    if not blocks:
        names = ", ".join(one.name for one in sources)
        raise InvalidInputError(f"{names} has no rows.", "check that the file is the one you mean.")
    return plan.join(blocks)


def iterate_table(
    source: Any,
    *,
    label: str | None = "label",
    qid: str | None = "qid",
    features: Sequence[str] | None = None,
    embedding: str | Sequence[str] | None = None,
    missing: str = "error",
    dtype: Any = np.float64,
    block_rows: int = _BLOCK_ROWS,
) -> Iterator[Table]:
    """Read a table a block of rows at a time, in the order of the rows; it need not fit in memory.

    Parquet and Arrow files are read block by block. CSV is read whole, because the type of a column is known only after
    its last row.

    Parameters
    ----------
    source, label, qid, features, embedding, missing, dtype
        As in `load_table`.
    block_rows : int
        Rows of a block at most.

    Yields
    ------
    Table
    """
    check_count("block_rows", block_rows, optional=False)
    sources = open_sources(source)
    plan = _Plan.of(sources[0], label, qid, features, embedding, missing, np.dtype(dtype))
    return (block for one in sources for block in plan.blocks(one, block_rows))


@dataclass
class _Plan:
    """Which columns become what."""

    label: str | None
    qid: str | None
    features: list[str]
    embeddings: list[str]
    sparse: dict[str, Any] | None
    missing: str
    dtype: np.dtype[Any]
    widths: dict[str, int]

    @classmethod
    def of(
        cls,
        source: TableSource,
        label: str | None,
        qid: str | None,
        features: Sequence[str] | None,
        embedding: str | Sequence[str] | None,
        missing: str,
        dtype: np.dtype[Any],
    ) -> _Plan:
        """Check what was asked against the first table."""
        check_choice("missing", missing, ("error", "nan"))
        if dtype not in {np.dtype(np.float64), np.dtype(np.float32)}:
            raise InvalidInputError(f"dtype={dtype} is no type of X.", "use numpy.float64 or numpy.float32.")
        for role, name in (("label", label), ("qid", qid)):
            if name is not None:
                check_columns(source, [name], role)
        embeddings = [embedding] if isinstance(embedding, str) else list(embedding or [])
        check_columns(source, embeddings, "embedding")
        sparse = None
        if isinstance(features, str):
            raise InvalidInputError("features must be a list of names.", f"pass [{features!r}].")
        if features is not None:
            check_columns(source, features, "features")
        elif embeddings:
            features = []
        else:
            sparse = _sparse_columns(source)
            features = [] if sparse else _default_features(source, {label, qid})
        chosen = list(features)
        taken = [*chosen, *embeddings]
        if len(set(taken)) != len(taken) or {label, qid} & set(taken):
            raise InvalidInputError(
                "A column has two roles among label, qid, features and embedding.", "name each column once."
            )
        return cls(label, qid, chosen, embeddings, sparse, missing, dtype, {})

    def blocks(self, source: TableSource, n_rows: int) -> Iterator[Table]:
        """Yield the rows of one table."""
        columns = [name for name in (self.label, self.qid) if name is not None]
        columns += self.features + self.embeddings
        if self.sparse is not None:
            columns += [self.sparse["indices"], self.sparse["values"]]
        check_columns(source, columns, "a column of the first table")
        row = 0
        for batch in source.batches(columns, n_rows):
            if batch.num_rows:
                yield self._block(source, batch, row)
            row += batch.num_rows

    def join(self, blocks: list[Table]) -> Table:
        """Put blocks together; each is let go as soon as it is copied."""
        names = blocks[0].feature_names
        y = (
            None
            if self.label is None
            else np.concatenate([block.y for block in blocks if block.y is not None])
        )
        qid = None
        if self.qid is not None:
            parts = [block.qid for block in blocks if block.qid is not None]
            mixed = len({part.dtype.kind for part in parts}) > 1 and any(
                part.dtype == object for part in parts
            )
            qid = np.concatenate([part.astype(object) for part in parts] if mixed else parts)
        if self.sparse is not None:
            return Table(sp.vstack([block.X for block in blocks], format="csr"), y, qid, names)
        X = np.empty((sum(block.X.shape[0] for block in blocks), len(names)), dtype=self.dtype)
        last = X.shape[0]
        while blocks:
            first = last - blocks[-1].X.shape[0]
            X[first:last] = blocks.pop().X
            last = first
        return Table(X, y, qid, names)

    def _block(self, source: TableSource, batch: Any, row: int) -> Table:
        def column(name: str) -> Any:
            return batch.column(batch.schema.get_field_index(name))

        def numbers(name: str, missing: str, hint: str) -> npt.NDArray[np.float64]:
            return numbers_of(source, name, column(name), row, missing=missing, hint=hint)

        y = None if self.label is None else numbers(self.label, "error", _LABEL_HINT)
        qid = None
        if self.qid is not None:
            qid = ids_of(source, self.qid, column(self.qid), row, "the query id")
        if self.sparse is not None:
            X = _sparse_block(source, self.sparse, column, row).astype(self.dtype, copy=False)
            return Table(X, y, qid, self.sparse["names"])
        parts = [(name, numbers(name, self.missing, _FEATURE_HINT)[:, None]) for name in self.features]
        names = list(self.features)
        for name in self.embeddings:
            width = self.widths.get(name)
            matrix = rows_of(source, name, column(name), row, width=width, missing=self.missing)
            self.widths[name] = matrix.shape[1]
            names += [f"{name}[{at}]" for at in range(matrix.shape[1])]
            parts.append((name, matrix))
        X = np.empty((batch.num_rows, len(names)), dtype=self.dtype)
        at = 0
        for _, part in parts:
            X[:, at : at + part.shape[1]] = part
            at += part.shape[1]
        return Table(X, y, qid, names)


_LABEL_HINT = "encode labels as numbers, higher is better: for example {'bad': 0, 'fair': 1, 'good': 2}."
_FEATURE_HINT = "leave the column out of features, or encode it as numbers first."


def _default_features(source: TableSource, taken: set[str | None]) -> list[str]:
    """Return all columns of numbers; a column of numbers that one entry turned into text is an error."""
    names = source.schema.names
    check_columns(source, names, "features")
    chosen = [name for name in names if name not in taken and is_number(source.schema.field(name).type)]
    for name in names:
        where = None if name in taken or name in chosen else text_of_numbers(source, name)
        if where is not None:
            raise InvalidInputError(
                f"{where} is text in a column that else holds numbers.",
                "correct the entry (an empty one is missing), or list the features you want, without this column.",
            )
    if not chosen:
        raise InvalidInputError(
            f"{source.name} has no column of numbers beside label and qid.",
            "name a column of lists as embedding, or encode the columns as numbers.",
        )
    return chosen


def _sparse_columns(source: TableSource) -> dict[str, Any] | None:
    metadata = source.schema.metadata or {}
    if SPARSE_KEY not in metadata:
        return None
    try:
        found = json.loads(metadata[SPARSE_KEY])
        names = found.get("names") or [f"f{at}" for at in range(int(found["columns"]))]
        wanted = {
            "indices": str(found["indices"]),
            "values": str(found["values"]),
            "columns": len(names),
            "names": [str(name) for name in names],
        }
    except (KeyError, TypeError, ValueError) as error:
        raise InvalidInputError(
            f"{source.name} says wrongly which columns hold its sparse matrix ({error}).", "write it again."
        ) from error
    return wanted if {wanted["indices"], wanted["values"]} <= set(source.schema.names) else None


def _sparse_block(source: TableSource, sparse: dict[str, Any], column: Any, row: int) -> Any:
    indices, values = column(sparse["indices"]), column(sparse["values"])
    pointer = np.asarray(indices.offsets, dtype=np.int64)
    flat_indices, flat_values = (np.asarray(part.flatten()) for part in (indices, values))
    bad = indices.null_count or values.null_count or flat_indices.size != flat_values.size
    if bad or not np.array_equal(np.diff(pointer), np.diff(np.asarray(values.offsets))):
        raise InvalidInputError(
            f"{source.name}: the lists of columns and of values have different lengths near {source.place(row)}.",
            "write the file again.",
        )
    if flat_indices.size and not 0 <= flat_indices.min() <= flat_indices.max() < sparse["columns"]:
        raise InvalidInputError(
            f"{source.name}: a column number near {source.place(row)} is not below {sparse['columns']}.",
            "write the file again.",
        )
    shape = (len(indices), sparse["columns"])
    return sp.csr_matrix((flat_values, flat_indices, pointer - pointer[0]), shape=shape)
