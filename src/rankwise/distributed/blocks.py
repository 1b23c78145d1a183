"""Dask collections as lists of blocks, and the properties found by a first read of every block."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import scipy.sparse as sp

from rankwise.arrays import AnyArray, DType, Floats, InMemory, Ints, is_sparse
from rankwise.data.containers import check_sparse, is_moderate
from rankwise.design.protocol import accepted_dtype
from rankwise.exceptions import InvalidInputError
from rankwise.pairs.blocks import as_table


@dataclass(frozen=True)
class LabelledRows:
    """A block that was read from a file, with its labels and query ids."""

    X: InMemory
    y: Floats
    qid: AnyArray | None


@dataclass(frozen=True)
class BlockFacts:
    """Facts about one block.

    Attributes
    ----------
    dtype : dtype
        In which the values are kept.
    lengths : (rows,) int32 or None
        The non-zeros of each row; None for dense blocks.
    first_column, last_column : int
        The range of columns that occur in a sparse block.
    labels : (y, qid) or None
        For blocks that were read from files.
    """

    shape: tuple[int, int]
    dtype: DType
    lengths: AnyArray | None
    first_column: int
    last_column: int
    is_finite: bool
    labels: tuple[Floats, AnyArray | None] | None = None


def look_at(block: object) -> BlockFacts:
    """Return the facts about a block; runs on the worker that has it."""
    X = rows_of(block)
    if is_sparse(X):
        check_sparse("X", X)
    values = X.data if is_sparse(X) else np.asarray(X)
    if values.dtype.kind not in "fiub":
        raise InvalidInputError(
            f"X has a block of type {values.dtype}, which is not numeric.",
            "encode text and categories as numbers first, and leave label and qid out of X.",
        )
    is_finite = is_moderate(X) or bool(np.isfinite(values).all())
    lengths, first, last = None, 0, X.shape[1] - 1
    if is_sparse(X):
        lengths = np.diff(X.indptr).astype(np.int32)
        first, last = (int(X.indices.min()), int(X.indices.max())) if X.indices.size else (1, -1)
    labels = (block.y, block.qid) if isinstance(block, LabelledRows) else None
    shape = (int(X.shape[0]), int(X.shape[1]))
    return BlockFacts(shape, accepted_dtype(values.dtype), lengths, first, last, is_finite, labels)


def rows_of(block: object) -> InMemory:
    """Return a block of a Dask collection as an array or a CSR matrix."""
    if isinstance(block, LabelledRows):
        return block.X
    if is_sparse(block):
        return block.tocsr()
    values = np.asarray(block.to_numpy() if hasattr(block, "to_numpy") else block)
    return as_table(values) if values.ndim == 1 else values


def uniform(block: object, first_column: int, n_columns: int) -> InMemory:
    """Return the rows of a block with the columns of all blocks, counted from 0."""
    rows = rows_of(block)
    if not is_sparse(rows) or (first_column == 0 and rows.shape[1] == n_columns):
        return rows
    parts = rows.data, rows.indices - np.int32(first_column), rows.indptr
    return cast("InMemory", sp.csr_matrix(parts, shape=(rows.shape[0], n_columns)))


@dataclass(frozen=True)
class Survey:
    """Facts about all blocks together.

    Attributes
    ----------
    ends : (blocks,) int64
        The row after the last row of each block.
    lengths : (rows,) int32 or None
        The non-zeros of each row; None for dense rows.
    first_column : int
        The number of the first column in text, which is subtracted.
    """

    shape: tuple[int, int]
    dtype: DType
    ends: Ints
    lengths: AnyArray | None
    first_column: int
    is_finite: bool

    @classmethod
    def of(cls, facts: Sequence[BlockFacts], *, n_columns: int | None, one_based: bool) -> Survey:
        """Combine the facts about blocks; `one_based` counts columns from 1 where no column 0 occurs."""
        kinds = {fact.lengths is None for fact in facts if fact.shape[0]}
        if len(kinds) > 1:
            raise InvalidInputError(
                "X has dense and sparse blocks.", "make all of them scipy.sparse.csr_matrix, or none."
            )
        is_dense = True in kinds
        first = int(one_based and min(fact.first_column for fact in facts) > 0)
        last = max(fact.last_column for fact in facts) - first
        widths = {fact.shape[1] for fact in facts if fact.shape[0]}
        n_columns = last + 1 if n_columns is None else n_columns
        if not is_dense and last >= n_columns:
            raise InvalidInputError(
                f"X has a column {last + first}, and n_features is {n_columns}.", "raise n_features."
            )
        if is_dense and widths != {n_columns}:
            raise InvalidInputError(
                f"The blocks of X have {sorted(widths)} columns.", "give every block the same columns."
            )
        ends = np.cumsum([fact.shape[0] for fact in facts]).astype(np.int64)
        return cls(
            (int(ends[-1]), int(n_columns)),
            np.result_type(*(fact.dtype for fact in facts if fact.shape[0])),
            ends,
            None if is_dense else np.concatenate([fact.lengths for fact in facts]),
            first,
            all(fact.is_finite for fact in facts),
        )

    @property
    def nnz(self) -> int:
        """The number of stored values."""
        if self.lengths is None:
            return self.shape[0] * self.shape[1]
        return int(self.lengths.sum(dtype=np.int64))

    @property
    def work(self) -> Ints:
        """The cost of each row: its values, and one more."""
        if self.lengths is None:
            return np.full(self.shape[0], self.shape[1] + 1, dtype=np.int64)
        return self.lengths.astype(np.int64) + 1

    def bytes_of(self, n_rows: int, nnz: int) -> int:
        """Return the memory that some rows take on a worker."""
        per_value = self.dtype.itemsize + (0 if self.lengths is None else 4)
        return nnz * per_value + 4 * n_rows


@dataclass(frozen=True)
class Source:
    """Blocks of rows that can be computed again at any time, because their graph is known.

    Attributes
    ----------
    blocks : list of Delayed
    names : list of str or None
        The names of the columns.
    """

    blocks: list[Any]
    names: list[str] | None = None
    n_columns: int | None = None
    one_based: bool = False


def blocks_of(X: Any) -> Source:
    """Return the blocks of a Dask array or DataFrame."""
    if hasattr(X, "to_delayed") and hasattr(X, "columns"):
        names = [name for name in X.columns if isinstance(name, str)]
        is_named = len(names) == len(X.columns)
        return Source(list(X.to_delayed()), names if is_named else None, len(X.columns))
    if hasattr(X, "to_delayed") and getattr(X, "ndim", 0) == 2:
        if len(X.chunks[1]) > 1:
            if sp.issparse(getattr(X, "_meta", None)):
                raise InvalidInputError(
                    f"X is a Dask array whose rows are cut into {len(X.chunks[1])} pieces.",
                    "give every block all columns.",
                )
            X = X.rechunk({1: -1})
        n_columns = None if math.isnan(X.shape[1]) else int(X.shape[1])
        return Source(list(X.to_delayed().ravel()), None, n_columns)
    raise InvalidInputError(
        f"X is a Dask {type(X).__name__} of {getattr(X, 'ndim', 'unknown')} dimensions.",
        "pass a two-dimensional Dask array (of arrays or CSR matrices), a Dask DataFrame of the features, or the "
        "result of rankwise.distributed.read.",
    )
