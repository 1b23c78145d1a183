"""Sparse rows in a table: a column of lists of column numbers, and one of lists of values."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from rankwise.arrays import AnyArray, DType
from rankwise.data.tables.arrow_columns import check_finite, doubles_of, is_embedding
from rankwise.data.tables.table_source import TableSource, import_pyarrow
from rankwise.data.text.reader import LAST_COLUMN
from rankwise.exceptions import InvalidInputError, MemoryLimitError
from rankwise.runtime.memory import fits

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["INDICES", "SPARSE_KEY", "VALUES", "SparseColumns"]

SPARSE_KEY = b"rankwise.sparse"  # in a schema's metadata: which columns hold a sparse matrix, and its width
INDICES, VALUES = "indices", "values"
_ROWS_AT_ONCE = 1 << 16
_NAME_BYTES = 70  # of a short text and its place in a list


@dataclass(frozen=True)
class SparseColumns:
    """Where a table keeps sparse rows.

    Attributes
    ----------
    indices, values : str
        The columns of lists; column numbers count from 0.
    width : int
    names : list of str or None
        The names of the features, where the file says them.
    """

    indices: str
    values: str
    width: int
    names: list[str] | None

    @classmethod
    def of(cls, sources: Sequence[TableSource]) -> SparseColumns | None:
        """Find out whether tables have sparse rows: their writer says so, or two columns have these names and types."""
        first = sources[0]
        found = [_described(source) for source in sources]
        if found[0] is None and not _is_sparse(first, INDICES, VALUES):
            return None
        indices, values = (INDICES, VALUES) if found[0] is None else (found[0].indices, found[0].values)
        width = 0
        for source, about in zip(sources, found, strict=True):
            if not _has_once(source, indices, values):
                continue  # the plan tells, as of any column that lacks
            if not _is_sparse(source, indices, values):
                raise InvalidInputError(
                    f"{source.name}: {indices!r} and {values!r} are no lists of whole numbers and of numbers, as in "
                    f"{first.name}.",
                    "write all tables alike.",
                )
            # Where nobody says how many columns there are, the largest that occurs is the last.
            width = max(width, _occurring(source, indices) if about is None else about.width)
        names = None if found[0] is None or width != found[0].width else found[0].names
        return cls(indices, values, width, names)

    @property
    def all_names(self) -> list[str]:
        """The names of the features, by their numbers where the file does not say them."""
        if self.names:
            return self.names
        if not fits(_NAME_BYTES * self.width):
            raise MemoryLimitError(
                f"The names of {self.width:,} columns take {_NAME_BYTES * self.width / 1e9:,.1f} GB.",
                "numbers of columns that large are a typo, or hashes: number the columns that occur from 0, or hash "
                "them to fewer, such as 2^20.",
            )
        return [f"f{at}" for at in range(self.width)]

    def rows(
        self,
        source: TableSource,
        column: Callable[[str], pa.Array],
        first_row: int,
        *,
        missing: str,
        dtype: DType,
    ) -> sp.csr_matrix:
        """Return rows of a batch; `column` returns one of its columns, and `first_row` is where it starts."""
        pa = import_pyarrow()
        lists = {name: column(name) for name in (self.indices, self.values)}
        lengths = {}
        for name, entries in lists.items():
            if entries.null_count:
                row = first_row + int(np.argmax(np.asarray(entries.is_null())))
                raise InvalidInputError(
                    f"{source.name}, column {name!r}, {source.place(row)}: the list is missing.",
                    "drop those rows, or give them an empty list.",
                )
            lengths[name] = np.asarray(pa.compute.list_value_length(entries), dtype=np.int64)
        differ = lengths[self.indices] != lengths[self.values]
        if differ.any():
            at = int(np.argmax(differ))
            raise InvalidInputError(
                f"{source.name}, {source.place(first_row + at)}: {lengths[self.indices][at]} column numbers and "
                f"{lengths[self.values][at]} values.",
                "give every column number its value.",
            )
        start = np.concatenate(([0], np.cumsum(lengths[self.indices])))
        columns = self._columns(source, lists[self.indices].flatten(), start, first_row)
        values = doubles_of(lists[self.values].flatten())
        check_finite(source, self.values, values, first_row, missing=missing, dtype=dtype, start=start)
        kept = ~np.isnan(values)
        if missing == "zero" and not kept.all():
            values, columns = values[kept], columns[kept]
            start = np.concatenate(([0], np.cumsum(kept)))[start]
        shape = (start.size - 1, self.width)
        X = sp.csr_matrix((values.astype(dtype), columns, start), shape=shape)
        X.sort_indices()
        if not X.has_canonical_format:
            again = np.flatnonzero(np.diff(X.indices) == 0) + 1
            at = int(again[~np.isin(again, start)][0])  # the first entry of a row follows another row's
            row = first_row + int(np.searchsorted(start, at, side="right")) - 1
            raise InvalidInputError(
                f"{source.name}, column {self.indices!r}, {source.place(row)}: column {X.indices[at]} comes twice.",
                "write each column once per row.",
            )
        return X

    def _columns(
        self, source: TableSource, flat: pa.Array, start: npt.NDArray[np.int64], first_row: int
    ) -> AnyArray:
        numbers = flat.cast(import_pyarrow().int64(), safe=False)
        columns = np.asarray(numbers.fill_null(-1))
        wrong = (columns < 0) | (columns >= self.width)
        if wrong.any():
            at = int(np.argmax(wrong))
            row = first_row + int(np.searchsorted(start, at, side="right")) - 1
            shown = "a missing column number" if flat[at].as_py() is None else f"column number {columns[at]}"
            raise InvalidInputError(
                f"{source.name}, column {self.indices!r}, {source.place(row)}: {shown}, where columns are numbered "
                f"from 0 to {self.width - 1}.",
                "number the columns of sparse rows from 0, and write as many as the file says it has.",
            )
        return columns.astype(np.int32)


def _described(source: TableSource) -> SparseColumns | None:
    """Return what the writer of a file says about its sparse rows."""
    metadata = source.schema.metadata or {}
    if SPARSE_KEY not in metadata:
        return None
    try:
        found = json.loads(metadata[SPARSE_KEY])
        names = found.get("names")
        names = None if names is None else [str(name) for name in names]
        width = int(found["columns"]) if names is None else len(names)
        if not 0 <= width <= LAST_COLUMN + 1:
            raise ValueError(f"{width} columns")  # noqa: TRY301 - told below
        about = SparseColumns(str(found["indices"]), str(found["values"]), width, names)
    except (ArithmeticError, AttributeError, KeyError, RecursionError, TypeError, ValueError) as error:
        raise InvalidInputError(
            f"{source.name} says wrongly which columns hold its sparse matrix ({error}).", "write it again."
        ) from error
    # Other software may keep the note and drop the columns.
    return about if _is_sparse(source, about.indices, about.values) else None


def _has_once(source: TableSource, *names: str) -> bool:
    return all(source.schema.names.count(name) == 1 for name in names)


def _is_sparse(source: TableSource, indices: str, values: str) -> bool:
    if not _has_once(source, indices, values):
        return False
    kinds = [source.schema.field(name).type for name in (indices, values)]
    if not all(map(is_embedding, kinds)):
        return False
    types, number = import_pyarrow().types, kinds[0].value_type
    return bool(types.is_integer(number) or types.is_null(number))  # lists that are all empty say no type


def _occurring(source: TableSource, indices: str) -> int:
    """Return the number of columns that make room for all that occur."""
    pa = import_pyarrow()
    width, row = 0, 0
    for batch in source.batches([indices], _ROWS_AT_ONCE):
        largest = pa.compute.max(batch.column(0).flatten()).as_py()
        if largest is not None and largest > LAST_COLUMN:
            raise InvalidInputError(
                f"{source.name}, column {indices!r}, from {source.place(row)} on: column number {largest} is more than "
                "32-bit numbers can name.",
                "rename the columns that occur, or hash them to fewer.",
            )
        width = max(width, 0 if largest is None else largest + 1)
        row += batch.num_rows
    return width
