"""Which columns of a table become labels, query ids and features, and how its rows become arrays."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from rankwise import _core
from rankwise.arrays import AnyArray, DType, Floats
from rankwise.data.arguments import check_dtype, list_names
from rankwise.data.tables.arrow_columns import (
    amounts_of,
    check_finite,
    check_numeric,
    doubles_of,
    ids_of,
    is_embedding,
    is_number,
    kind_of_ids,
    numbers_of,
    rows_of,
    text_of_numbers,
    texts_in,
)
from rankwise.data.tables.batches import Batch, TableBlock, fill_holes, joined
from rankwise.data.tables.column_names import check_columns
from rankwise.data.tables.sparse_columns import SparseColumns
from rankwise.data.tables.table_source import TableSource, miscounted
from rankwise.data.text.reader import MISSING
from rankwise.data.text.sources import read_ahead
from rankwise.data.validation import check_choice
from rankwise.exceptions import Change, InvalidInputError, MemoryLimitError
from rankwise.runtime.memory import fits
from rankwise.runtime.threads import default_threads

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["TablePlan"]


# Bytes of columns that are decoded, and become rows, at a time.
_LOADED_AT_ONCE = 1 << 24


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
    weight : str or None
        What `weights` returns; no feature.
    item_id : str or None
        What `named_blocks` tells of each row; no feature.
    """

    sources: Sequence[TableSource]
    label: str | None
    qid: str | None
    features: list[str]
    embeddings: list[str]
    sparse: SparseColumns | None
    missing: str
    dtype: DType
    widths: dict[str, int] = field(default_factory=dict)
    weight: str | None = None
    item_id: str | None = None

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
        dtype: npt.DTypeLike,
        weight: str | None = None,
        item_id: str | None = None,
        ids: Sequence[str] = (),
    ) -> TablePlan:
        """Check what was asked against the first table; columns of `ids` are no features unless those are named."""
        check_choice("missing", missing, MISSING)
        kind, source = check_dtype(dtype), sources[0]
        for role, name in (("label", label), ("qid", qid), ("weight", weight), ("item_id", item_id)):
            if name is not None:
                check_columns(source, [name], role)
        given = () if embedding is None else (embedding,) if isinstance(embedding, str) else embedding
        embeddings = list_names("embedding", given)
        check_columns(source, embeddings, "embedding")
        sparse, chosen = None, []
        if features is not None:
            chosen = list_names("features", features)
            check_columns(source, chosen, "features")
        elif not embeddings:
            sparse = SparseColumns.of(sources)
            if sparse is None:
                chosen, embeddings = _default_columns(source, {label, qid, weight, item_id, *ids})
        taken = [*chosen, *embeddings]
        if len(set(taken)) != len(taken) or {label, qid, weight} & set(taken):
            raise InvalidInputError(
                "A column has two roles among label, qid, features and embedding.", "name each column once."
            )
        return cls(
            sources, label, qid, chosen, embeddings, sparse, missing, kind, weight=weight, item_id=item_id
        )

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
            return self.sparse.all_names
        lists = [f"{name}[{at}]" for name in self.embeddings for at in range(self.widths[name])]
        return self.features + lists

    @property
    def n_rows(self) -> int:
        """How many rows all tables have."""
        return sum(source.n_rows for source in self.sources)

    def rows_in(self, n_bytes: int) -> int:
        """Return about how many rows take so many bytes in memory, at least 1."""
        self._check_sources()
        columns = 8 * (len(self.features) + sum(self.widths.values()))
        return max(1, n_bytes // max(1, columns, *(source.row_bytes for source in self.sources)))

    def blocks(self, n_rows: int) -> Iterator[TableBlock]:
        """Yield the rows of all tables in their order, at most so many at a time; there must be some."""
        for block, _ in self.named_blocks(n_rows):
            yield block

    def named_blocks(self, n_rows: int) -> Iterator[tuple[TableBlock, AnyArray | None]]:
        """Yield the same with the ids of their items, where a column of them was named."""
        for batch in self._batches(n_rows):
            items = None if self.item_id is None else texts_in(batch.columns[self.item_id])
            yield TableBlock(self._features(batch), self._labels(batch), self._ids(batch)), items

    def load(self) -> TableBlock:
        """Return all rows of all tables."""
        if self.sparse is not None:
            blocks = list(self.blocks(self.rows_in(_LOADED_AT_ONCE)))
            if sum(block.X.shape[0] for block in blocks) != self.n_rows:
                raise self._miscounted()
            y = (
                None
                if self.label is None
                else np.concatenate([block.y for block in blocks if block.y is not None])
            )
            qid = joined([block.qid for block in blocks if block.qid is not None])
            return TableBlock(sp.vstack([block.X for block in blocks], format="csr"), y, qid)
        self._check_sources()
        needed = self.n_rows * (8 + self.dtype.itemsize * (len(self.features) + sum(self.widths.values())))
        if not fits(needed):
            raise MemoryLimitError(
                f"{self._file_names}: {self.n_rows:,} rows take {needed / 1e9:,.1f} GB.",
                "read them in blocks (iter_table), or into a store (rankwise convert).",
            )
        y = None if self.label is None else np.empty(self.n_rows)
        ids = []
        X = self._empty(self.n_rows)
        n_cells = 0
        for start, batch in read_ahead(self._groups()):  # one part is decoded while another is put in place
            rows = slice(start, start + batch.n_rows)
            if rows.stop > self.n_rows:
                raise self._miscounted()
            if y is not None and self.label in batch.columns:
                y[rows] = self._labels(batch)
            if self.qid in batch.columns:
                ids.append(self.ids_in(batch.source, batch.columns[self.qid], batch.row))
            self._fill(batch, X[rows])
            n_cells += batch.n_rows * len(batch.columns)
            del batch
        if n_cells != self.n_rows * len(self.columns):
            raise self._miscounted()
        return TableBlock(X, y, joined(ids))

    def _miscounted(self) -> InvalidInputError:
        return miscounted(self._file_names)

    @property
    def _file_names(self) -> str:
        return ", ".join(source.name for source in self.sources)

    def weights(self) -> Floats | None:
        """Return the weights of all rows of all tables, where a column of them was named."""
        if self.weight is None:
            return None
        return amounts_of(self.sources, self.weight, "row", "use 0 to leave a row out.")

    @cached_property
    def columns(self) -> list[str]:
        """The columns of the tables that are read: labels, ids, and what features are made of."""
        columns = (
            [name for name in (self.label, self.qid) if name is not None] + self.features + self.embeddings
        )
        return columns if self.sparse is None else [*columns, self.sparse.indices, self.sparse.values]

    def _check_sources(self) -> None:
        for source in self.sources:
            check_columns(source, self.columns, "a column of the first table")
        if not self.n_rows:
            raise InvalidInputError(
                f"{self._file_names} has no rows.", "check that the file is the one you mean."
            )
        for name in self.embeddings:
            for source in self.sources:
                if name not in self.widths and source.n_rows:
                    first = next(source.batches([name], 1), None)
                    if first is None or not first.num_rows:
                        raise self._miscounted()
                    self.widths[name] = rows_of(source, name, first.column(0), 0, width=None).shape[1]

    def _batches(self, n_rows: int) -> Iterator[Batch]:
        self._check_sources()
        for source in self.sources:
            row = 0
            items = [] if self.item_id is None or self.item_id in self.columns else [self.item_id]
            for batch in source.batches([*self.columns, *items], n_rows):
                if batch.num_rows:
                    yield Batch.of(source, row, batch)
                row += batch.num_rows

    def _groups(self) -> Iterator[tuple[int, Batch]]:
        """Yield parts of the tables, perhaps with some of the columns only, and the row where each starts."""
        start = 0
        for source in self.sources:
            row = 0
            if source.groups is not None:
                for row, table in source.groups(self.columns, _LOADED_AT_ONCE):
                    batch = Batch.of(source, row, table)
                    del table
                    yield start + row, batch
                    del batch  # before the next one is decoded
            else:
                for found in source.batches(self.columns, self.rows_in(_LOADED_AT_ONCE)):
                    yield start + row, Batch.of(source, row, found)
                    row += found.num_rows
            start += source.n_rows

    def _labels(self, batch: Batch) -> Floats | None:
        if self.label is None:
            return None
        column = batch.columns[self.label]
        return numbers_of(batch.source, self.label, column, batch.row, hint=_LABEL_HINT)

    def _ids(self, batch: Batch) -> AnyArray | None:
        if self.qid is None:
            return None
        return self.ids_in(batch.source, batch.columns[self.qid], batch.row)

    def ids_in(self, source: TableSource, column: pa.Array, first_row: int) -> AnyArray:
        """Return the query ids of some rows of a table, from its column of them."""
        assert self.qid is not None
        return ids_of(source, self.qid, column, first_row, "the query id", self._kind_of_ids)

    @cached_property
    def _kind_of_ids(self) -> str:
        return "U" if self.qid is None else kind_of_ids(self.sources, self.qid)

    def _features(self, batch: Batch) -> AnyArray | sp.csr_matrix:
        if self.sparse is not None:
            return self.sparse.rows(
                batch.source, batch.columns.__getitem__, batch.row, missing=self.missing, dtype=self.dtype
            )
        X = self._empty(batch.n_rows)
        self._fill(batch, X)
        return X

    def _empty(self, n_rows: int) -> AnyArray:
        return np.empty((n_rows, len(self.features) + sum(self.widths.values())), dtype=self.dtype)

    def _fill(self, batch: Batch, X: AnyArray) -> None:
        """Write the features of a batch, perhaps some of them only, into rows of X, and check them."""
        source, row = batch.source, batch.row
        features = [name for name in self.features if name in batch.columns]
        for name in features:
            check_numeric(source, name, batch.columns[name], row, _FEATURE_HINT, Change("features", "fewer"))
        columns = [doubles_of(batch.columns[name]) for name in features]
        at = self.features.index(features[0]) if features else 0
        is_finite = _core.write_table_rows(columns, X, at, default_threads())
        for name, column, good in zip(features, columns, is_finite, strict=True):
            if not good:
                check_finite(source, name, column, row, missing=self.missing, dtype=self.dtype)
                if self.missing == "zero":
                    fill_holes(X[:, self.features.index(name)])
        at = len(self.features)
        for name in self.embeddings:
            if name in batch.columns:
                matrix = rows_of(source, name, batch.columns[name], row, width=self.widths[name])
                check_finite(source, name, matrix, row, missing=self.missing, dtype=self.dtype)
                X[:, at : at + matrix.shape[1]] = matrix
                if self.missing == "zero":
                    fill_holes(X[:, at : at + matrix.shape[1]])
            at += self.widths[name]


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
                where,
                "correct the entry (an empty one is missing), or list the features you want, without this column.",
            )
    lists = [name for name in names if name not in taken and is_embedding(source.schema.field(name).type)]
    if not chosen and not lists:
        raise InvalidInputError(
            f"{source.name} has no column of numbers beside label and qid.",
            "name a column of lists as embedding, or encode the columns as numbers.",
            Change("embedding"),
        )
    return chosen, [] if chosen else lists
