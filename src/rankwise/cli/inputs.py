"""Files that are read: rows of text, tables, stores and preferences, told apart by their names; and models."""

from __future__ import annotations

import argparse
import io
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse

from rankwise.cli.printing import remark
from rankwise.data.mapped import MappedMatrix
from rankwise.data.queries import Queries
from rankwise.data.query_text import decode_ids
from rankwise.data.text_reader import TextReader, ZeroBased, no_rows
from rankwise.data.validation import check_qid
from rankwise.exceptions import InvalidInputError
from rankwise.memory import available_memory

__all__ = ["Rows", "SavedModel", "fit_columns", "kind_of", "read_model", "read_rows", "widen"]

_TABLES = (".parquet", ".pq", ".arrow", ".ipc", ".feather", ".csv", ".tsv")
_PACKED = (".gz", ".bz2", ".xz", ".zst")
# Above this share of filled cells an array takes less memory than a sparse matrix, and is faster.
_DENSE = 0.5
_BYTES_A_VALUE = 12  # of a sparse matrix


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
    names : list of str
        A name a column.
    first_column : int or None
        For text: what its first column is called, 0 or 1.
    pairs : (pairs, 2) int64 or None
    magnitude, weight : (pairs,) float64 or None
    """

    source: str
    X: Any
    y: npt.NDArray[np.float64] | None
    qid: npt.NDArray[Any] | None
    names: list[str]
    first_column: int | None = None
    pairs: npt.NDArray[np.int64] | None = None
    magnitude: npt.NDArray[np.float64] | None = None
    weight: npt.NDArray[np.float64] | None = None

    @property
    def queries(self) -> Queries:
        """The rows grouped by query."""
        return check_qid(self.qid, int(self.X.shape[0]))

    def describe(self) -> str:
        """Say how much was read, in a line."""
        words = [f"{self.X.shape[0]:,} rows", f"{self.X.shape[1]:,} columns"]
        if self.pairs is not None:
            words[0] = f"{self.X.shape[0]:,} items"
            words.insert(0, f"{len(self.pairs):,} preferences")
        elif self.qid is not None:
            words.insert(1, f"{len(self.queries):,} queries")
        return f"{self.source}: {', '.join(words)}"


@dataclass(frozen=True)
class SavedModel:
    """A model that was read, and what its file says beside it."""

    path: str
    model: Any
    notes: dict[str, Any]

    @property
    def n_columns(self) -> int:
        """How many columns the model takes."""
        steps = getattr(self.model, "steps", None)
        first = self.model if steps is None else steps[0][1]
        return int(first.n_features_in_)

    def names(self, rows: Rows) -> list[str]:
        """Return the names of the columns, as training had them or as the data have them."""
        own = self.notes.get("feature_names")
        return [str(name) for name in own] if own else rows.names


def kind_of(path: str, given: str = "auto") -> str:
    """Tell text, tables and stores apart by their name."""
    if given != "auto":
        return given
    name = path.lower()
    for ending in _PACKED:
        name = name.removesuffix(ending)
    if name.endswith(_TABLES):
        return "table"
    return "store" if path != "-" and (Path(path).is_dir() or name.endswith(".store")) else "text"


def read_rows(
    paths: list[str], options: argparse.Namespace, *, needs_labels: bool = True, first_column: Any = None
) -> Rows:
    """Read files of one kind, one after the other.

    Parameters
    ----------
    paths : list of str
    options : Namespace
        What the group "reading" of the arguments holds.
    needs_labels : bool
        Whether a table without labels is an error.
    first_column : {0, 1}, optional
        For text: what its first column is called, where a model knows it.
    """
    kinds = {kind_of(path, options.format) for path in paths}
    if len(kinds) > 1:
        raise InvalidInputError(
            f"The files are of several kinds: {', '.join(sorted(kinds))}.",
            "convert them to one: rankwise convert --help.",
        )
    source = paths[0] if len(paths) == 1 else f"{paths[0]} and {len(paths) - 1} more"
    source = "standard input" if paths == ["-"] else source
    if options.items is not None:
        rows = _read_preferences(paths, source, options)
    elif kinds == {"table"}:
        rows = _read_table(paths, source, options, needs_labels=needs_labels)
    elif kinds == {"store"}:
        rows = _read_store(paths, source, options)
    else:
        rows = _read_text(paths, source, options, first_column)
    return replace(rows, X=_compact(rows.X))


def _read_text(paths: list[str], source: str, options: argparse.Namespace, first_column: Any) -> Rows:
    base: ZeroBased = "auto" if first_column is None else first_column == 0
    reader = TextReader(
        paths if len(paths) > 1 else paths[0],
        zero_based=base,
        missing=options.missing,
        n_threads=options.threads,
    )
    for _ in reader.parse():
        pass
    if reader.rows.rows == 0:
        raise no_rows(reader)
    block = reader.take()
    qid = None if block.runs is None else block.runs.repeat(decode_ids(block.runs.texts()), block.labels.size)
    X = block.matrix(reader.n_columns)
    names = [f"feature {number + reader.base}" for number in range(X.shape[1])]
    return Rows(source, X, block.labels, qid, names, reader.base)


def _read_table(paths: list[str], source: str, options: argparse.Namespace, *, needs_labels: bool) -> Rows:
    from rankwise.data.arrow_files import open_sources  # noqa: PLC0415 - needs an optional package
    from rankwise.data.tables import load_table  # noqa: PLC0415

    place = paths if len(paths) > 1 else paths[0]
    columns = set(open_sources(place)[0].schema.names)
    label = options.label if needs_labels or options.label in columns else None
    # A table without the usual column of ids is one ranking; a column that was asked for must be there.
    qid = options.qid if options.qid in columns or options.qid != "qid" else None
    features = None if options.features is None else [name.strip() for name in options.features.split(",")]
    missing = "error" if options.missing == "error" else "nan"
    table = load_table(place, label=label, qid=qid, features=features, missing=missing)
    X = (
        np.nan_to_num(table.X, nan=0.0)
        if options.missing == "zero" and not scipy.sparse.issparse(table.X)
        else table.X
    )
    return Rows(source, X, table.y, table.qid, table.feature_names)


def _read_preferences(paths: list[str], source: str, options: argparse.Namespace) -> Rows:
    from rankwise.data.preference_tables import load_preferences  # noqa: PLC0415 - needs an optional package

    features = None if options.features is None else [name.strip() for name in options.features.split(",")]
    found = load_preferences(
        paths if len(paths) > 1 else paths[0],
        options.items,
        item_id=options.item_id,
        features=features,
        missing="error" if options.missing == "error" else "nan",
    )
    return Rows(
        source,
        found.X,
        None,
        None,
        found.feature_names,
        pairs=found.pairs,
        magnitude=found.magnitude,
        weight=found.weight,
    )


def _read_store(paths: list[str], source: str, options: argparse.Namespace) -> Rows:
    from rankwise.data.store import open_store  # noqa: PLC0415

    if len(paths) > 1:
        raise InvalidInputError(
            "Several stores were named.", "convert them to one: rankwise convert A B -o C.store."
        )
    store = open_store(paths[0], n_threads=options.threads)
    X: Any = store.X
    if X.nnz * _BYTES_A_VALUE * 4 < available_memory():
        X = scipy.sparse.csr_matrix((X.data, X.indices, X.indptr), shape=X.shape)
    return Rows(source, X, store.y, store.qid, [f"feature {number + 1}" for number in range(X.shape[1])], 1)


def _compact(X: Any) -> Any:
    """Turn a sparse matrix that is mostly filled into an array; models do not depend on the storage."""
    if not scipy.sparse.issparse(X) or isinstance(X, MappedMatrix):
        return X
    return X.toarray() if X.nnz >= _DENSE * X.shape[0] * X.shape[1] else X


def read_model(path: str) -> SavedModel:
    """Read a model and what its file says beside it."""
    from rankwise.persistence import load, read_header  # noqa: PLC0415 - imports every estimator

    if path == "-":
        content = sys.stdin.buffer.read()
        return SavedModel(
            "standard input", load(io.BytesIO(content)), read_header(io.BytesIO(content))["notes"]
        )
    if Path(path).is_dir():
        raise InvalidInputError(
            f"{path} is a folder, not a model file.", "name the file that `rankwise fit -o` wrote."
        )
    return SavedModel(path, load(path), read_header(path)["notes"])


def fit_columns(rows: Rows, saved: SavedModel) -> Rows:
    """Bring the columns of the data into the order and number that the model knows."""
    wanted, given = saved.n_columns, int(rows.X.shape[1])
    names = saved.notes.get("feature_names")
    if names and rows.first_column is None and set(names) <= set(rows.names):
        order = [rows.names.index(name) for name in names]
        return replace(rows, X=rows.X[:, order], names=list(names))
    if names and rows.first_column is None:
        missing = [name for name in names if name not in set(rows.names)]
        raise InvalidInputError(
            f"{rows.source} lacks {len(missing)} of the model's {wanted} columns, such as {missing[0]!r}.",
            "predict on tables that have the columns of the training table, under the same names.",
        )
    if given > wanted:
        raise InvalidInputError(
            f"{rows.source} has {given} columns, but the model {saved.path} was trained on {wanted}.",
            "use data with the columns of the training data; `rankwise inspect` shows what a file or a model has.",
        )
    if given < wanted:
        if rows.first_column is None:
            raise InvalidInputError(
                f"{rows.source} has {given} columns, but the model {saved.path} was trained on {wanted}.",
                "use data with the columns of the training data; `rankwise inspect` shows what a file or a model has.",
            )
        # Text does not write zeros, so its last columns may not occur; worth a word, for it may be the wrong file.
        remark(f"{rows.source} has {given} columns and the model {wanted}; the others are taken as 0.")
        return widen(rows, wanted)
    return rows


def widen(rows: Rows, width: int) -> Rows:
    """Add columns of zeros to text, which does not write them."""
    given, first = int(rows.X.shape[1]), rows.first_column or 0
    if given == width:
        return rows
    X = scipy.sparse.csr_matrix(rows.X, copy=True)
    X.resize((X.shape[0], width))
    names = [*rows.names, *(f"feature {number + first}" for number in range(given, width))]
    return replace(rows, X=_compact(X), names=names)
