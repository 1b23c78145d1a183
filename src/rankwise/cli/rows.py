"""What was read, whatever it was read from."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from rankwise.data.columns import column_name, first_column_of
from rankwise.data.queries import Queries
from rankwise.data.validation import check_qid
from rankwise.data.wording import how_many

__all__ = ["Rows"]


@dataclass(frozen=True)
class Rows:
    """What was read.

    Attributes
    ----------
    source : str
        The files, for messages.
    X : ndarray or CSR matrix
    y : (rows,) float64 or None
        None where there are preferences, or a table has no labels.
    qid : (rows,) ids or None
    names : list of str or None
        A name a column, where the data have names: text and stores only number their columns, perhaps billions.
    first_column : int or None
        For text: what its first column is called, 0 or 1.
    pairs : (pairs, 2) int64 or None
    magnitude : (pairs,) float64 or None
    weight : (pairs,) or (rows,) float64 or None
        Of preferences, or of the rows of a table.
    item_ids : (rows,) ids or None
        Where there are preferences: what they call each row.
    reading : dict or None
        For tables: which columns were what, for a model to keep.
    remarks : list of str
        For tables: what was done with columns that nobody named.
    table : pyarrow.Table or None
        The columns of a table as they are, where an encoder makes X of them.
    encoder : TableEncoder or None
        What made X of the table.
    has_comments : bool
        Whether there were comments in the text, which are not kept; `convert` alone looks for them.
    """

    source: str
    X: Any
    y: npt.NDArray[np.float64] | None
    qid: npt.NDArray[Any] | None
    names: list[str] | None
    first_column: int | None = None
    pairs: npt.NDArray[np.int64] | None = None
    magnitude: npt.NDArray[np.float64] | None = None
    weight: npt.NDArray[np.float64] | None = None
    item_ids: npt.NDArray[Any] | None = None
    reading: dict[str, Any] | None = None
    remarks: list[str] = field(default_factory=list)
    has_comments: bool = False
    table: Any = None
    encoder: Any = None

    @property
    def labels(self) -> npt.NDArray[np.float64]:
        """The labels of rows that have some."""
        assert self.y is not None
        return self.y

    @property
    def queries(self) -> Queries:
        """The rows grouped by query."""
        return check_qid(self.qid, int(self.X.shape[0]))

    @property
    def counts_from(self) -> int | None:
        """What the first column is called, 0 or 1; a table that was converted from text says so by its names."""
        if self.first_column is None and self.names:
            return first_column_of(self.names[0])
        return self.first_column

    def column_names(self) -> list[str]:
        """Return a name for every column, made from its number where the data have none."""
        if self.names is not None:
            return self.names
        return [column_name(number, self.first_column) for number in range(self.X.shape[1])]

    def describe(self) -> str:
        """Say how much was read, in a line."""
        counts = [how_many(count, what) for what, count in self.counts().items()]
        weighted = ", with weights" if self.weight is not None and self.pairs is None else ""
        return f"{self.source}: {', '.join(counts)}{weighted}"

    def counts(self) -> dict[str, int]:
        """Count what was read."""
        rows, columns = (int(n) for n in self.X.shape)
        if columns == 0 and self.table is not None:  # before the model has made columns of it
            columns = len(self.table.column_names)
        if self.pairs is not None:
            return {"preferences": len(self.pairs), "items": rows, "columns": columns}
        queries = {} if self.qid is None else {"queries": len(self.queries)}
        return {"rows": rows, **queries, "columns": columns}

    def facts(self) -> dict[str, object]:
        """Say how much was read, for a machine."""
        return {"file": self.source, **self.counts()}
