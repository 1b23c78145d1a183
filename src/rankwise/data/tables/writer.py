"""Rows go out as a table: Parquet, Arrow IPC, Feather or CSV, by the name of the file."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import ModuleType, TracebackType
from typing import TYPE_CHECKING, Any, BinaryIO, Protocol, Self

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from rankwise.arrays import AnyArray, MatrixLike
from rankwise.data.arguments import check_name, check_names, check_path
from rankwise.data.containers import as_array, readable
from rankwise.data.tables.sparse_columns import INDICES, SPARSE_KEY, VALUES
from rankwise.data.tables.table_source import import_pyarrow
from rankwise.data.validation import check_flag
from rankwise.exceptions import InvalidInputError
from rankwise.files import replacing

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["TableWriter", "is_flat", "save_table"]

_FORMATS = {
    ".parquet": "parquet",
    ".pq": "parquet",
    ".arrow": "ipc",
    ".ipc": "ipc",
    ".feather": "ipc",
    ".csv": "csv",
    ".tsv": "csv",
}


def is_flat(file: str | os.PathLike[str]) -> bool:
    """Tell whether a file of this name has no lists, so no sparse rows."""
    return _FORMATS.get(Path(file).suffix.lower()) == "csv"


def save_table(
    X: MatrixLike,
    y: npt.ArrayLike | None,
    path: str | os.PathLike[str],
    *,
    qid: npt.ArrayLike | None = None,
    feature_names: Sequence[str] | None = None,
    label: str = "label",
    qid_name: str = "qid",
    item_ids: npt.ArrayLike | None = None,
    item_name: str = "id",
    durable: bool = True,
) -> None:
    """Write rows as a table that `load_table` reads back exactly, but for the sign of -0.0 among whole numbers in CSV.

    Dense rows become one column per feature. Sparse rows become two columns of lists, ``indices`` and ``values``, which
    a CSV file cannot hold; `load_table` makes them a CSR matrix again.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (rows, features)
    y : array-like of shape (rows,) or None
        Labels, if there are any.
    path : path
        Ends in .parquet, .pq, .arrow, .ipc, .feather, .csv or .tsv. Written under a temporary name and renamed.
    qid : array-like of shape (rows,), optional
    feature_names : list of str, optional
        By default ``f0``, ``f1``, ...
    label, qid_name : str
        The names of the columns of `y` and `qid`.
    item_ids : array-like of shape (rows,), optional
        What the rows are called.
    item_name : str, default="id"
        The name of that column.
    durable : bool, default=True
        Whether to wait until the disk has the file before it takes the place of another one.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from rankwise.data import load_table, save_table
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder, "rows.parquet")
    ...     save_table([[0.5], [0.1]], [1, 0], file, qid=["a", "a"], feature_names=["bm25"])
    ...     load_table(file).feature_names
    ['bm25']
    """
    with TableWriter(path, feature_names, label=label, qid_name=qid_name, durable=durable) as writer:
        writer.write(X, y, qid, None if item_ids is None else {check_name("item_name", item_name): item_ids})


class TableWriter:
    """Writes a table a block of rows at a time; the file appears when the ``with`` block ends well.

    Parameters
    ----------
    path : path
    feature_names : list of str, optional
    label, qid_name : str
    durable : bool, default=True
        As in `save_table`.

    Examples
    --------
    >>> import os, tempfile
    >>> import numpy as np
    >>> from rankwise.data import TableWriter, load_table
    >>> path = os.path.join(tempfile.mkdtemp(), "rows.parquet")
    >>> with TableWriter(path, ["price"]) as writer:
    ...     for price in (2.0, 3.0):
    ...         writer.write(np.array([[price]]), [1.0], ["a"])
    >>> load_table(path).X.tolist()
    [[2.0], [3.0]]
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        feature_names: Sequence[str] | None = None,
        *,
        label: str = "label",
        qid_name: str = "qid",
        durable: bool = True,
    ) -> None:
        check_flag("durable", durable)
        self._durable = durable
        kind = _FORMATS.get(Path(check_path("path", path)).suffix.lower())
        if kind is None:
            raise InvalidInputError(
                f"{os.fsdecode(path)!r} does not say what kind of table it is.",
                f"end its name in one of {', '.join(_FORMATS)}; .parquet is compressed as it is.",
            )
        self._file, self._kind, self._label, self._qid_name = path, kind, label, qid_name
        check_name("label", label)
        check_name("qid_name", qid_name)
        self._names = None if feature_names is None else check_names("feature_names", feature_names)
        self._stack = ExitStack()
        self._stream: BinaryIO | None = None
        self._writer: Any = None

    def __enter__(self) -> Self:
        self._stream = self._stack.enter_context(replacing(self._file, durable=self._durable))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None and self._writer is None:
            error = InvalidInputError(
                "Nothing was written to the table.", "write at least one block of rows."
            )
            self._stack.__exit__(type(error), error, None)
            raise error
        self._stack.__exit__(kind, error, trace)

    def write(
        self,
        X: MatrixLike,
        y: npt.ArrayLike | None = None,
        qid: npt.ArrayLike | None = None,
        others: Mapping[str, npt.ArrayLike] | None = None,
    ) -> None:
        """Write some rows; every block has the same columns. `others` are columns beside labels and ids."""
        pa = import_pyarrow()
        if self._stream is None:
            raise InvalidInputError("The writer is not open.", "use it in a with statement.")
        given, y, qid = readable("X", X), readable("y", y), readable("qid", qid)
        rows = given.tocsr() if sp.issparse(given) else as_array("X", given)
        if rows.ndim != 2:
            raise InvalidInputError(f"X has shape {rows.shape}.", "pass one row per item.")
        beside: dict[str, object] = {} if qid is None else {self._qid_name: qid}
        beside |= {} if y is None else {self._label: y}
        if not isinstance(others, Mapping | None):
            raise InvalidInputError(f"others={others!r} is no mapping.", "pass {'name of a column': values}.")
        columns = {
            name: self._beside(pa, name, values, rows.shape[0])
            for name, values in {**beside, **(others or {})}.items()
        }
        table = self._sparse(pa, rows, columns) if sp.issparse(rows) else self._dense(pa, rows, columns)
        if self._writer is None:
            self._writer = self._open(pa, table.schema)
            self._stack.callback(self._writer.close)
        self._writer.write_table(table.cast(self._writer.schema) if self._kind != "csv" else table)

    def _open(self, pa: ModuleType, schema: pa.Schema) -> _Writes:
        if self._kind == "parquet":
            import pyarrow.parquet as pq  # noqa: PLC0415 - only when a Parquet file is written

            parquet: _Writes = pq.ParquetWriter(self._stream, schema)
            return parquet
        if self._kind == "ipc":
            return _IpcWriter(pa.ipc.new_file(self._stream, schema), schema)
        import pyarrow.csv  # noqa: PLC0415 - only when such a file is written

        delimiter = "\t" if Path(self._file).suffix.lower() == ".tsv" else ","
        options = pyarrow.csv.WriteOptions(quoting_style="needed", delimiter=delimiter)
        text: _Writes = pyarrow.csv.CSVWriter(self._stream, schema, write_options=options)
        return text

    def _beside(self, pa: ModuleType, name: str, given: object, n_rows: int) -> pa.Array:
        values = as_array(name, given)
        if values.ndim != 1 or values.size != n_rows:
            n_given = values.size if values.ndim == 1 else f"{values.ndim} dimensions and {values.size}"
            raise InvalidInputError(
                f"Column {name!r} has {n_given} entries, but X has {n_rows} rows.", "pass one per row."
            )
        if self._kind == "csv" and name == self._qid_name and values.dtype.kind == "f":
            values = np.array([str(value) for value in values.tolist()])  # 1.0, where pyarrow would write 1
        try:
            return pa.array(values)
        except pa.ArrowException as error:
            raise InvalidInputError(
                f"Column {name!r} holds what no table can ({error}).",
                "pass numbers or texts, all of one kind.",
            ) from error

    def _dense(self, pa: ModuleType, X: AnyArray, columns: dict[str, pa.Array]) -> pa.Table:
        names = self._feature_names(X.shape[1])
        taken = set(columns) & set(names)
        if taken or len(set(names)) != len(names):
            raise InvalidInputError(
                f"Two columns have the same name{f', {taken.pop()!r}' if taken else ''}.",
                "rename the feature, or pass other names as label and qid_name.",
            )
        for at, name in enumerate(names):
            columns[name] = pa.array(np.ascontiguousarray(X[:, at]))
        return pa.table(columns)

    def _sparse(self, pa: ModuleType, X: sp.csr_matrix, columns: dict[str, pa.Array]) -> pa.Table:
        if self._kind == "csv":
            raise InvalidInputError(
                f"A CSV file has one column per feature, {X.shape[1]} in all, and X is sparse.",
                "write Parquet, or svmlight text; or pass X.toarray().",
            )
        if not X.has_canonical_format:
            X = X.copy()
            X.sum_duplicates()
        pointer = X.indptr.astype(np.int64)
        for name, values in ((INDICES, X.indices.astype(np.int32)), (VALUES, X.data)):
            columns[name] = pa.LargeListArray.from_arrays(pa.array(pointer), pa.array(values))
        about: dict[str, Any] = {"indices": INDICES, "values": VALUES, "columns": X.shape[1]}
        if self._names is not None:
            about["names"] = self._feature_names(X.shape[1])
        return pa.table(columns).replace_schema_metadata({SPARSE_KEY: json.dumps(about).encode()})

    def _feature_names(self, n_features: int) -> list[str]:
        if self._names is None:
            self._names = [f"f{at}" for at in range(n_features)]
        if len(self._names) != n_features:
            raise InvalidInputError(
                f"There are {len(self._names)} feature names, but X has {n_features} columns.",
                "pass one name per column.",
            )
        return self._names


class _Writes(Protocol):
    """What pyarrow's writers of files offer."""

    schema: pa.Schema

    def write_table(self, table: pa.Table) -> None:
        """Write rows."""

    def close(self) -> None:
        """Write what comes last."""


class _IpcWriter:
    """What the other writers offer: a schema beside the writing."""

    def __init__(self, writer: pa.ipc.RecordBatchFileWriter, schema: pa.Schema) -> None:
        self._writer, self.schema = writer, schema

    def write_table(self, table: pa.Table) -> None:
        self._writer.write_table(table)

    def close(self) -> None:
        self._writer.close()
