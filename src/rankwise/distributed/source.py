"""Where rows come from: Dask collections as a list of blocks, and what a first look at every block tells."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import cast

import numpy as np
import scipy.sparse as sp

from rankwise.arrays import AnyArray, DType, Floats, Ints, is_sparse
from rankwise.data.containers import check_sparse, is_moderate
from rankwise.design.protocol import accepted_dtype
from rankwise.distributed.dask_types import DaskArray, Frame, Lazy
from rankwise.distributed.worker_rows import rows_of
from rankwise.exceptions import InvalidInputError

__all__ = ["BlockFacts", "Source", "Survey", "blocks_of", "look_at"]


@dataclass(frozen=True)
class BlockFacts:
    """What one block says about itself.

    Attributes
    ----------
    shape : (int, int)
    dtype : dtype
        That the values are kept in.
    lengths : (rows,) int32 or None
        The non-zeros of each row; None for dense blocks.
    first_column, last_column : int
        Of sparse blocks: the columns that occur.
    is_finite : bool
    largest : float
        The largest absolute value.
    labels : (y, qid) or None
        Where the block brings them with it.
    """

    shape: tuple[int, int]
    dtype: DType
    lengths: AnyArray | None
    first_column: int
    last_column: int
    is_finite: bool
    largest: float
    labels: tuple[Floats, AnyArray | None] | None = None


def look_at(block: object) -> BlockFacts:
    """Look at a block once, on the worker that has it."""
    X = rows_of(block)
    if is_sparse(X):
        check_sparse("X", X)
    values = X.data if is_sparse(X) else np.asarray(X)
    if values.dtype.kind not in "fiub":
        raise InvalidInputError(
            f"X has a block of type {values.dtype}, which is not numeric.",
            "encode text and categories as numbers first, and leave label and qid out of X.",
        )
    moderate = is_moderate(X) or bool(np.isfinite(values).all())
    lengths, first, last = None, 0, X.shape[1] - 1
    if is_sparse(X):
        lengths = np.diff(X.indptr).astype(np.int32)
        first, last = (int(X.indices.min()), int(X.indices.max())) if X.indices.size else (1, -1)
    largest = float(np.abs(values).max(initial=0.0)) if moderate else np.inf
    labels = block.rows_and_labels if hasattr(block, "rows_and_labels") else None
    shape = (int(X.shape[0]), int(X.shape[1]))
    return BlockFacts(shape, accepted_dtype(values.dtype), lengths, first, last, moderate, largest, labels)


@dataclass(frozen=True)
class Survey:
    """All blocks together.

    Attributes
    ----------
    ends : (blocks,) int64
        The row after the last of each block.
    work : (rows,) int64
        What each row costs: its values, and something for itself.
    lengths : (rows,) int32 or None
    first_column : int
        The number of the first column, which is subtracted from those of text.
    """

    shape: tuple[int, int]
    dtype: DType
    ends: Ints
    lengths: AnyArray | None
    first_column: int
    is_finite: bool
    largest: float

    @classmethod
    def of(cls, facts: Sequence[BlockFacts], *, n_columns: int | None, one_based: bool) -> Survey:
        """Put blocks together.

        Parameters
        ----------
        n_columns : int, optional
            Known beforehand; else as many as there are.
        one_based : bool
            Whether columns count from 1 where no column 0 occurs.
        """
        kinds = {fact.lengths is None for fact in facts if fact.shape[0]}
        if len(kinds) > 1:
            raise InvalidInputError(
                "X has dense and sparse blocks.", "make all of them scipy.sparse.csr_matrix, or none."
            )
        is_dense = True in kinds
        first = int(one_based and min((fact.first_column for fact in facts), default=0) > 0)
        widths = {fact.shape[1] for fact in facts if fact.shape[0]}
        if n_columns is None:
            n_columns = max(fact.last_column for fact in facts) + 1 - first
        elif not is_dense and max(fact.last_column for fact in facts) - first >= n_columns:
            raise InvalidInputError(
                f"X has a column {max(fact.last_column for fact in facts)}, and n_features is {n_columns}.",
                "raise n_features.",
            )
        if is_dense and widths != {n_columns}:
            raise InvalidInputError(
                f"The blocks of X have {sorted(widths)} columns.", "give every block the same columns."
            )
        ends = np.cumsum([fact.shape[0] for fact in facts]).astype(np.int64)
        lengths = None if is_dense else np.concatenate([fact.lengths for fact in facts])
        return cls(
            (int(ends[-1]), int(n_columns)),
            np.result_type(*(fact.dtype for fact in facts if fact.shape[0])),
            ends,
            lengths,
            first,
            all(fact.is_finite for fact in facts),
            max(fact.largest for fact in facts),
        )

    @property
    def nnz(self) -> int:
        """The number of stored values."""
        if self.lengths is None:
            return self.shape[0] * self.shape[1]
        return int(self.lengths.sum(dtype=np.int64))

    @property
    def work(self) -> Ints:
        """What each row costs."""
        if self.lengths is None:
            return np.full(self.shape[0], self.shape[1] + 1, dtype=np.int64)
        return self.lengths.astype(np.int64) + 1

    def bytes_of(self, n_rows: int, nnz: int) -> int:
        """Return what so many rows with so many values take on a worker."""
        per_value = self.dtype.itemsize + (0 if self.lengths is None else 4)
        return nnz * per_value + 4 * n_rows


@dataclass
class Source:
    """Blocks of rows that can be made again at any time, because their graph is known.

    Attributes
    ----------
    blocks : list of Delayed
    names : list of str or None
        Of the columns.
    n_columns : int or None
    one_based : bool
    """

    blocks: list[Lazy]
    names: list[str] | None = None
    n_columns: int | None = None
    one_based: bool = False
    survey: Survey | None = field(default=None, repr=False)


def blocks_of(X: object) -> Source:
    """Return the blocks of a Dask array or DataFrame."""
    if hasattr(X, "to_delayed") and hasattr(X, "columns"):
        frame = cast("Frame", X)
        names = [str(name) for name in frame.columns if isinstance(name, str)]
        is_named = len(names) == len(frame.columns)
        return Source(list(frame.to_delayed()), names if is_named else None, len(frame.columns))
    if hasattr(X, "to_delayed") and getattr(X, "ndim", 0) == 2:
        array = cast("DaskArray", X)
        if len(array.chunks[1]) > 1:
            if sp.issparse(getattr(array, "_meta", None)):
                raise InvalidInputError(
                    f"X is a Dask array whose rows are cut into {len(array.chunks[1])} pieces.",
                    "give every block all columns.",
                )
            array = array.rechunk({1: -1})
        n_columns = array.shape[1]
        return Source(
            list(array.to_delayed().ravel()), None, None if math.isnan(n_columns) else int(n_columns)
        )
    raise InvalidInputError(
        f"X is a Dask {type(X).__name__} of {getattr(X, 'ndim', 'unknown')} dimensions.",
        "pass a two-dimensional Dask array (of arrays or CSR matrices), a Dask DataFrame of the features, or what "
        "rankwise.distributed.read returns.",
    )
