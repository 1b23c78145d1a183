"""Files that are read: rows of text, tables, stores and preferences, told apart by their names."""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path
from typing import Any

import scipy.sparse

from rankwise.arrays import AnyArray
from rankwise.cli.columns import (
    listed,
    remarks,
    remember,
    roles_of,
)
from rankwise.cli.duels import are_duels, read_duels
from rankwise.cli.encoding import is_to_be_encoded, learned, read_to_encode, was_missing
from rankwise.cli.preferences import read_preferences
from rankwise.cli.row_ids import item_column, naming_rows, text_columns
from rankwise.cli.rows import Rows
from rankwise.cli.table_files import open_tables
from rankwise.data.query_ids import decode_ids
from rankwise.data.store import META, open_store
from rankwise.data.svmlight import LONGEST_LINE, TextReader, ZeroBased, check_last_column, item_ids, no_rows
from rankwise.data.tables import TableReader, is_table, texts_of
from rankwise.exceptions import Change, InvalidInputError
from rankwise.runtime.memory import available_memory
from rankwise.runtime.progress import ProgressLine

__all__ = [
    "PACKED",
    "Rows",
    "ids_of",
    "kind_of",
    "listed",
    "open_reader",
    "read_rows",
    "stored",
    "text_base",
    "widen",
]

PACKED = (".gz", ".bz2", ".xz", ".zst")
_BYTES_A_VALUE = 12  # of a sparse matrix


def kind_of(path: str, given: str = "auto") -> str:
    """Tell text, tables and stores apart by their name."""
    if given != "auto":
        return given
    if is_table(path):
        return "table"
    folder = Path(path)
    if (
        path != "-"
        and folder.is_dir()
        and not (folder / META).exists()
        and any(map(is_table, folder.iterdir()))
    ):
        return "table"
    name = path.lower()
    for ending in PACKED:
        name = name.removesuffix(ending)
    return "store" if path != "-" and (folder.is_dir() or name.endswith(".store")) else "text"


def text_base(options: argparse.Namespace) -> ZeroBased:
    """Return what ``--zero-based`` says, as the reader of text takes it."""
    return {"auto": "auto", "yes": True, "no": False}[options.zero_based]  # type: ignore[return-value]


def read_rows(
    paths: list[str], options: argparse.Namespace, *, needs_labels: bool = True, first_column: object = None
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
    if options.items is not None or kinds == {"table"}:
        if options.items is not None:
            return read_preferences(paths, source, options)
        return _read_table(paths, source, options, needs_labels=needs_labels)
    if kinds == {"store"}:
        return _read_store(paths, source, options)
    return _read_text(paths, source, options, first_column)


def open_reader(paths: list[str], options: argparse.Namespace, first_column: object = None) -> TextReader:
    """Return a reader of text as the options say; see `read_rows`."""
    base = text_base(options)
    is_told = base == "auto" and first_column is not None
    if is_told:
        base = first_column == 0
    reader = TextReader(
        paths if len(paths) > 1 else paths[0],
        n_features=options.columns,
        zero_based=base,
        missing=options.missing,
        n_threads=options.threads,
        longest_line=LONGEST_LINE if options.longest_line is None else options.longest_line * 1_000_000,
    )
    if is_told:
        reader.counting = "columns of the training data count"
    reader.looks_for_comments = options.command == "convert"
    reader.keeps_comments = getattr(options, "wants_items", False)
    return reader


def _read_text(paths: list[str], source: str, options: argparse.Namespace, first_column: object) -> Rows:
    reader = open_reader(paths, options, first_column)
    total = _text_bytes(paths)
    try:
        with ProgressLine(f"reading {source}") as progress:
            for _ in reader.parse():
                share = None if total is None else min(reader.n_bytes / total, 1.0)
                progress.update(f"{reader.n_bytes / 1e6:,.0f} MB", share)
    except InvalidInputError as error:
        if Change("zero_based", True) not in error.changes or options.zero_based != "auto":
            raise
        raise InvalidInputError(
            error.problem,
            "use text whose columns count as those do; if they count from 0, and column 0 did not occur in training, "
            "train again with --zero-based yes.",
        ) from error
    if reader.rows.rows == 0:
        raise no_rows(reader)
    block = reader.take()
    check_last_column(reader, block)
    qid = None if block.runs is None else block.runs.repeat(decode_ids(block.runs.texts()), block.labels.size)
    X = block.matrix(reader.n_columns)
    items = ids_of(reader.comments) if reader.keeps_comments else None
    return Rows(
        source, X, block.labels, qid, None, reader.base, item_ids=items, has_comments=reader.has_comments
    )


def ids_of(comments: list[str]) -> AnyArray | None:
    """Return the ids that comments of rows name; None where they name none."""
    found = item_ids(comments)
    return found if (found != "").any() else None


def _text_bytes(paths: list[str]) -> int | None:
    """Return how much text there is, where the files tell: neither pipes do, nor what is compressed."""
    files = [Path(path) for path in paths]
    if any(file.suffix.lower() in PACKED or not file.is_file() for file in files):
        return None
    return sum(file.stat().st_size for file in files) or None


def _read_table(paths: list[str], source: str, options: argparse.Namespace, *, needs_labels: bool) -> Rows:
    sources = open_tables(paths, text_columns(options))
    schema = sources[0].schema
    options = naming_rows(options, schema, source)
    if are_duels(schema.names, options):
        return read_duels(sources, source, options)
    roles = roles_of(schema, source, options, needs_labels=needs_labels)
    if options.keeps_table:
        return read_to_encode(sources, source, roles, options)
    if is_to_be_encoded(sources, roles, options):
        return learned(read_to_encode(sources, source, roles, options), options)
    left_out = item_column(schema, options) if options.command == "convert" else None
    plan = TableReader(
        sources,
        **roles._asdict(),
        missing=options.missing,
        item_id=left_out,
        ids=listed(getattr(options, "id", None)) or (),
    )
    try:
        X, y, qid, _ = plan.load()
    except InvalidInputError as error:
        if not was_missing(error, options) or plan.sparse is not None:
            raise
        return learned(read_to_encode(sources, source, roles, options), options)
    wants_items = getattr(options, "wants_items", False)
    if options.command == "convert":
        wants_items = left_out is not None
    has_items = wants_items and options.item_id in schema.names
    return Rows(
        source,
        X,
        y,
        qid,
        plan.names,
        weight=plan.weights(),
        item_ids=texts_of(sources, options.item_id) if has_items else None,
        reading=remember(options, plan),
        remarks=remarks(schema, source, options, roles, plan.columns),
    )


def _read_store(paths: list[str], source: str, options: argparse.Namespace) -> Rows:
    if len(paths) > 1:
        raise InvalidInputError(
            "Several stores were named.", "convert them to one: rankwise convert A B -o C.store."
        )
    store = open_store(paths[0])
    X: Any = store.X
    if scipy.sparse.issparse(X) and X.nnz * _BYTES_A_VALUE * 4 < available_memory():
        X = scipy.sparse.csr_matrix((X.data, X.indices, X.indptr), shape=X.shape)
    items = store.item_ids if getattr(options, "wants_items", False) else None
    return Rows(source, X, store.y, store.qid, None, store.first_column, item_ids=items)


def stored(rows: Rows, *, is_dense: bool) -> Rows:
    """Return the rows in an array or a sparse matrix; what a model was trained on, it is used on."""
    if is_dense == (not scipy.sparse.issparse(rows.X)):
        return rows
    return replace(rows, X=rows.X.toarray() if is_dense else scipy.sparse.csr_matrix(rows.X))


def widen(rows: Rows, width: int) -> Rows:
    """Add columns of zeros to text, which does not write them."""
    if rows.X.shape[1] == width:
        return rows
    narrow = rows.X if scipy.sparse.issparse(rows.X) else scipy.sparse.csr_matrix(rows.X)
    X = scipy.sparse.csr_matrix((narrow.data, narrow.indices, narrow.indptr), shape=(narrow.shape[0], width))
    return replace(rows, X=X)
