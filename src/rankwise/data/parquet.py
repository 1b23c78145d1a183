"""Parquet files in blocks: a column of labels, one of query ids, and features as numbers or lists."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from rankwise.exceptions import InvalidInputError, MissingPackageError

__all__ = ["iter_parquet"]

Block = tuple[Any, npt.NDArray[np.float64], npt.NDArray[Any] | None]


def iter_parquet(
    paths: Sequence[str | os.PathLike[str]],
    *,
    label: str = "label",
    qid: str = "qid",
    block_bytes: int = 1 << 26,
) -> Iterator[Block]:
    """Yield (X, y, qid) batch by batch.

    Features are the columns ``indices`` and ``values`` (lists: a sparse row each; columns count from 0), or all
    other columns in their order: numbers, or lists of one length (embeddings).
    """
    try:
        import pyarrow.parquet as pq  # noqa: PLC0415
    except ImportError as error:
        raise MissingPackageError(
            "Reading Parquet needs the package pyarrow, which is not installed.",
            "install it with: pip install pyarrow.",
        ) from error
    width = 0
    for path in paths:
        with pq.ParquetFile(os.fspath(path)) as file:
            names = file.schema_arrow.names
            if label not in names:
                raise InvalidInputError(
                    f"{path} has no column {label!r}; it has {', '.join(names)}.",
                    f"name the column of labels {label!r}.",
                )
            if {"indices", "values"} <= set(names):
                width = max(
                    width, *(_largest(batch) + 1 for batch in file.iter_batches(columns=["indices"])), 0
                )
    for path in paths:
        with pq.ParquetFile(os.fspath(path)) as file:
            per_row = max(
                1, file.metadata.row_group(0).total_byte_size // max(1, file.metadata.row_group(0).num_rows)
            )
            for batch in file.iter_batches(batch_size=max(1, block_bytes // per_row)):
                yield _block(batch, label, qid, width, str(path))


def _largest(batch: Any) -> int:
    flat = batch.column("indices").flatten().to_numpy(zero_copy_only=False)
    return int(flat.max()) if flat.size else -1


def _block(batch: Any, label: str, qid: str, width: int, path: str) -> Block:
    names = batch.schema.names
    y = batch.column(label).to_numpy(zero_copy_only=False).astype(np.float64)
    ids = batch.column(qid).to_numpy(zero_copy_only=False) if qid in names else None
    if ids is not None and batch.column(qid).null_count:
        raise InvalidInputError(
            f"{path} has {batch.column(qid).null_count} rows without a {qid}.",
            "give every row an id, or drop those rows.",
        )
    if ids is not None and ids.dtype == object:
        ids = ids.astype(np.str_)
    if {"indices", "values"} <= set(names):
        lists = batch.column("indices")
        start = lists.offsets.to_numpy() - lists.offsets[0].as_py()
        columns = lists.flatten().to_numpy(zero_copy_only=False)
        values = batch.column("values").flatten().to_numpy(zero_copy_only=False)
        if columns.size and columns.min() < 0:
            raise InvalidInputError(f"{path} has a negative column number.", "count columns from 0.")
        return sp.csr_matrix((values, columns, start), shape=(y.size, width)), y, ids
    features = [name for name in names if name not in {label, qid}]
    return np.column_stack([_column(batch.column(name), name, y.size, path) for name in features]), y, ids


def _column(column: Any, name: str, n_rows: int, path: str) -> npt.NDArray[Any]:
    if hasattr(column, "flatten") and "list" in str(column.type):
        flat = column.flatten().to_numpy(zero_copy_only=False)
        if n_rows and flat.size % n_rows:
            raise InvalidInputError(
                f"{path}, column {name!r}: lists have different lengths.", "make all lists equally long."
            )
        return np.asarray(flat.reshape(n_rows, -1))
    values = column.to_numpy(zero_copy_only=False)
    if values.dtype.kind not in "biuf":
        raise InvalidInputError(
            f"{path}, column {name!r} is not numeric.", "encode it as numbers, or leave it out of the file."
        )
    return np.asarray(values, dtype=np.float64)
