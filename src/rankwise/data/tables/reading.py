"""Tables with named columns come in: Parquet, Arrow, Feather, CSV, and data frames of pandas and polars."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from rankwise.arrays import AnyArray
from rankwise.data.tables.arrow_files import open_sources
from rankwise.data.tables.plan import TablePlan
from rankwise.data.validation import check_count

__all__ = ["Table", "iter_table", "load_table"]

_BLOCK_ROWS = 1 << 14


class Table(NamedTuple):
    """Rows of a table as a ranker takes them.

    Attributes
    ----------
    X : ndarray or CSR matrix of shape (rows, features)
    y : ndarray of shape (rows,) or None
    qid : ndarray of shape (rows,) or None
    feature_names : list of str

    Examples
    --------
    >>> import pyarrow as pa
    >>> from rankwise.data import load_table
    >>> table = load_table(pa.table({"label": [1, 0], "qid": ["a", "a"], "price": [2.0, 3.0]}))
    >>> table.X.tolist(), table.qid.tolist(), table.feature_names
    ([[2.0], [3.0]], ['a', 'a'], ['price'])
    """

    X: Any
    y: npt.NDArray[np.float64] | None
    qid: AnyArray | None
    feature_names: list[str]


def load_table(
    source: object,
    *,
    label: str | None = "label",
    qid: str | None = "qid",
    features: Sequence[str] | None = None,
    embedding: str | Sequence[str] | None = None,
    missing: str = "error",
    dtype: npt.DTypeLike = np.float64,
) -> Table:
    """Read a table with named columns.

    Parameters
    ----------
    source : path, glob, folder, list of those, Arrow table, or data frame of pandas or polars
        Files of Parquet, Arrow IPC, Feather (known by their first bytes) or CSV (known by its name, also compressed, or
        by a separator in its first line). Several files are one table; they must have the columns of the first. A CSV
        file whose first line holds only numbers has no header, and its columns are called ``1``, ``2``, and so on; but
        ``0,1,2,...``, and numbers in quotes, are names.
    label : str or None, default="label"
        The column of labels, numbers; None where there are none.
    qid : str or None, default="qid"
        The column of query ids, of any type; None for one ranking. Ids in CSV files are integers or real numbers if all
        are written as numbers are; `01` and `1` are text, and two queries.
    features : list of str, optional
        The columns of features. By default all other columns of numbers (booleans are 0 and 1, decimals become
        floats); text, dates and lists are left out, but lists are taken where there are no numbers. With `embedding`,
        by default none. A table with two columns of lists, ``indices`` (whole numbers from 0) and ``values``, has
        sparse rows, and by default no other features.
    embedding : str or list of str, optional
        Columns whose entries are lists of numbers, all of one length; each becomes as many features, named
        ``name[0]``, ``name[1]``, and so on, after the others.
    missing : {"error", "nan", "zero"}, default="error"
        What to do where a feature is null or NaN: raise an error that says where, leave NaN for an imputer, or read 0.
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
    plan = TablePlan.of(
        open_sources(source, text_columns=[qid] if qid is not None else []),
        label=label,
        qid=qid,
        features=features,
        embedding=embedding,
        missing=missing,
        dtype=dtype,
    )
    return Table(*plan.load(), plan.names)


def iter_table(
    source: object,
    *,
    label: str | None = "label",
    qid: str | None = "qid",
    features: Sequence[str] | None = None,
    embedding: str | Sequence[str] | None = None,
    missing: str = "error",
    dtype: npt.DTypeLike = np.float64,
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

    Examples
    --------
    >>> import pyarrow as pa
    >>> from rankwise.data import iter_table
    >>> rows = pa.table({"label": [1, 0, 2], "price": [2.0, 3.0, 1.0]})
    >>> [block.X.shape for block in iter_table(rows, qid=None, block_rows=2)]
    [(2, 1), (1, 1)]
    """
    check_count("block_rows", block_rows, optional=False)
    plan = TablePlan.of(
        open_sources(source, text_columns=[qid] if qid is not None else []),
        label=label,
        qid=qid,
        features=features,
        embedding=embedding,
        missing=missing,
        dtype=dtype,
    )
    return (Table(*block, plan.names) for block in plan.blocks(block_rows))
