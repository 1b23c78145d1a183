"""Which columns of a table become labels, query ids and features, and how its rows become arrays."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from rankwise.data.arrow_columns import (
    check_columns,
    check_finite,
    ids_of,
    is_embedding,
    is_number,
    numbers_of,
    rows_of,
    text_of_numbers,
)
from rankwise.data.arrow_files import TableSource
from rankwise.data.sparse_columns import SparseColumns
from rankwise.data.text_reader import MISSING
from rankwise.data.validation import check_choice
from rankwise.exceptions import InvalidInputError

__all__ = ["TableBlock", "TablePlan"]

Floats = npt.NDArray[np.float64]


class TableBlock(NamedTuple):
    """Rows of a table.

    Attributes
    ----------
    X : ndarray or CSR matrix of shape (rows, features)
    y : ndarray of shape (rows,) or None
    qid : ndarray of shape (rows,) or None
    """

    X: Any
    y: Floats | None
    qid: npt.NDArray[Any] | None


@dataclass
class TablePlan:
    """Which columns become what; see `load_table` for what is asked.

    Attributes
    ----------
    sources : list of TableSource
    label, qid : str or None
    features, embeddings : list of str
    sparse : SparseColumns or None
        Where rows are written as lists of column numbers and values; there are no other features then.
    missing : {"error", "nan", "zero"}
    dtype : dtype
    widths : dict
        The length of the lists of each embedding, once rows were read.
    """

    sources: Sequence[TableSource]
    label: str | None
    qid: str | None
    features: list[str]
    embeddings: list[str]
    sparse: SparseColumns | None
    missing: str
    dtype: np.dtype[Any]
    widths: dict[str, int] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        sources: Sequence[TableSource],
        *,
        label: str | None,
        qid: str | None,
        features: Sequence[str] | None,
        embedding: str | Sequence[str] | None,
        missing: str,
        dtype: Any,
    ) -> TablePlan:
        """Check what was asked against the first table."""
        check_choice("missing", missing, MISSING)
        kind, source = np.dtype(dtype), sources[0]
        if kind not in {np.dtype(np.float64), np.dtype(np.float32)}:
            raise InvalidInputError(f"dtype={kind} is no type of X.", "use numpy.float64 or numpy.float32.")
        for role, name in (("label", label), ("qid", qid)):
            if name is not None:
                check_columns(source, [name], role)
        embeddings = [embedding] if isinstance(embedding, str) else list(embedding or [])
        check_columns(source, embeddings, "embedding")
        if isinstance(features, str):
            raise InvalidInputError("features must be a list of names.", f"pass [{features!r}].")
        sparse, chosen = None, list(features or [])
        if features is not None:
            check_columns(source, features, "features")
        elif not embeddings:
            sparse = SparseColumns.of(sources)
            if sparse is None:
                chosen, embeddings = _default_columns(source, {label, qid})
        taken = [*chosen, *embeddings]
        if len(set(taken)) != len(taken) or {label, qid} & set(taken):
            raise InvalidInputError(
                "A column has two roles among label, qid, features and embedding.", "name each column once."
            )
        return cls(sources, label, qid, chosen, embeddings, sparse, missing, kind)

    @property
    def first_name(self) -> str | None:
        """The name of the first feature, where the table has one."""
        if self.sparse is not None:
            return self.sparse.names[0] if self.sparse.names else None
        return self.features[0] if self.features else None

    @cached_property
    def names(self) -> list[str]:
        """The names of the features; known once rows were read."""
        if self.sparse is not None:
            return self.sparse.names or [f"f{at}" for at in range(self.sparse.width)]
        lists = [f"{name}[{at}]" for name in self.embeddings for at in range(self.widths[name])]
        return self.features + lists

    def rows_in(self, n_bytes: int) -> int:
        """Return about how many rows take so many bytes in memory, at least 1."""
        columns = 8 * (len(self.features) + sum(self.widths.values()))
        return max(1, n_bytes // max(1, columns, *(source.row_bytes for source in self.sources)))

    def blocks(self, n_rows: int) -> Iterator[TableBlock]:
        """Yield the rows of all tables in their order, at most so many at a time; there must be some."""
        columns = [name for name in (self.label, self.qid) if name is not None]
        columns += self.features + self.embeddings
        if self.sparse is not None:
            columns += [self.sparse.indices, self.sparse.values]
        for source in self.sources:
            check_columns(source, columns, "a column of the first table")
        if not any(source.n_rows for source in self.sources):
            names = ", ".join(source.name for source in self.sources)
            raise InvalidInputError(f"{names} has no rows.", "check that the file is the one you mean.")
        for source in self.sources:
            row = 0
            for batch in source.batches(columns, n_rows):
                if batch.num_rows:
                    yield self._block(source, batch, row)
                row += batch.num_rows

    def join(self, blocks: list[TableBlock]) -> TableBlock:
        """Put blocks together; each is let go as soon as it is copied."""
        y = None if self.label is None else np.concatenate([b.y for b in blocks if b.y is not None])
        qid = None
        if self.qid is not None:
            parts = [block.qid for block in blocks if block.qid is not None]
            mixed = len({part.dtype.kind for part in parts}) > 1 and any(
                part.dtype == object for part in parts
            )
            qid = np.concatenate([part.astype(object) for part in parts] if mixed else parts)
        if self.sparse is not None:
            return TableBlock(sp.vstack([block.X for block in blocks], format="csr"), y, qid)
        X = np.empty((sum(block.X.shape[0] for block in blocks), blocks[0].X.shape[1]), dtype=self.dtype)
        last = X.shape[0]
        while blocks:
            first = last - blocks[-1].X.shape[0]
            X[first:last] = blocks.pop().X
            last = first
        return TableBlock(X, y, qid)

    def _block(self, source: TableSource, batch: Any, row: int) -> TableBlock:
        def column(name: str) -> Any:
            return batch.column(batch.schema.get_field_index(name))

        y = None
        if self.label is not None:
            y = numbers_of(source, self.label, column(self.label), row, missing="error", hint=_LABEL_HINT)
        qid = None
        if self.qid is not None:
            qid = ids_of(source, self.qid, column(self.qid), row, "the query id")
        if self.sparse is not None:
            X = self.sparse.rows(source, column, row, missing=self.missing, dtype=self.dtype)
        else:
            X = self._dense(source, column, row, batch.num_rows)
        return TableBlock(X, y, qid)

    def _dense(
        self, source: TableSource, column: Callable[[str], Any], row: int, n_rows: int
    ) -> npt.NDArray[Any]:
        parts = [
            (
                name,
                numbers_of(source, name, column(name), row, missing=self.missing, hint=_FEATURE_HINT)[
                    :, None
                ],
            )
            for name in self.features
        ]
        for name in self.embeddings:
            matrix = rows_of(source, name, column(name), row, width=self.widths.get(name))
            self.widths[name] = matrix.shape[1]
            parts.append((name, matrix))
        X = np.empty((n_rows, sum(part.shape[1] for _, part in parts)), dtype=self.dtype)
        at = 0
        for name, part in parts:
            check_finite(source, name, part, row, missing=self.missing, dtype=self.dtype)
            X[:, at : at + part.shape[1]] = part
            at += part.shape[1]
        if self.missing == "zero":
            X[np.isnan(X)] = 0
        return X


_LABEL_HINT = "encode labels as numbers, higher is better: for example {'bad': 0, 'fair': 1, 'good': 2}."
_FEATURE_HINT = "leave the column out of features, or encode it as numbers first."


def _default_columns(source: TableSource, taken: set[str | None]) -> tuple[list[str], list[str]]:
    """Return all columns of numbers, or all of lists where there are none.

    A column of numbers that one entry turned into text is an error.
    """
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
    lists = [name for name in names if name not in taken and is_embedding(source.schema.field(name).type)]
    if not chosen and not lists:
        raise InvalidInputError(
            f"{source.name} has no column of numbers beside label and qid.",
            "name a column of lists as embedding, or encode the columns as numbers.",
        )
    return chosen, [] if chosen else lists
