"""Rows of a table: as they come from it, and as arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from rankwise.arrays import AnyArray, Floats
from rankwise.data.tables.table_source import TableSource

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Batch", "TableBlock", "fill_holes", "joined"]


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
    qid: AnyArray | None


class Batch(NamedTuple):
    """Rows as they come from a table."""

    source: TableSource
    row: int  # where they begin in their table
    n_rows: int
    columns: dict[str, pa.Array]

    @classmethod
    def of(cls, source: TableSource, row: int, found: pa.Table) -> Batch:
        """Take the columns of a record batch, or of a table."""
        columns = {}
        for name, column in zip(found.schema.names, found.columns, strict=True):
            if hasattr(column, "chunks"):
                column = column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()  # noqa: PLW2901
            columns[name] = column
        return cls(source, row, found.num_rows, columns)


def fill_holes(values: AnyArray) -> None:
    """Put 0 where values are missing."""
    values[np.isnan(values)] = 0


def joined(parts: list[AnyArray]) -> AnyArray | None:
    """Return parts of a column as one; None where there are none."""
    if not parts:
        return None
    kinds = {part.dtype.kind for part in parts}
    mixed = len(kinds) > 1 and kinds & set("OMm")  # dates, for one, have no type in common with numbers
    return np.concatenate([part.astype(object) for part in parts] if mixed else parts)
