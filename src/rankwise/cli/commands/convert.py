"""``rankwise convert``: text, tables and stores into each other, without loss."""

from __future__ import annotations

import argparse
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

import scipy.sparse

from rankwise.cli.applicable import check_applicable
from rankwise.cli.columns import roles_of
from rankwise.cli.inputs import (
    PACKED,
    Rows,
    kind_of,
    open_reader,
    read_rows,
    text_base,
)
from rankwise.cli.mistakes import UsageError
from rankwise.cli.outputs import check_target
from rankwise.cli.printing import print_facts, print_json, remark, size_of
from rankwise.cli.row_ids import item_column, text_columns
from rankwise.cli.table_files import open_tables
from rankwise.data import Store, open_store, save_store, save_svmlight
from rankwise.data.svmlight import TextWriter, open_text
from rankwise.data.tables import TABLE_ENDINGS, is_flat, save_table
from rankwise.exceptions import InvalidInputError

__all__ = ["run"]

_TEXTS = (".txt", ".svmlight", ".svm", ".libsvm", ".letor", ".dat")
_WRITTEN = {"X": "a value", "comments": "ids of items"}  # what the writer of text has them for


def run(options: argparse.Namespace) -> int:
    """Read, and write what the target's name says."""
    if options.items is not None:
        raise UsageError("Preferences are not converted.", "convert the table of items, without --items.")
    target = options.to or _told_by_name(options.output)
    if options.regroup and target != "store":
        raise UsageError(f"--regroup is for stores, and {options.output} is none.", "leave it out.")
    check_applicable(options)
    if target == "table":
        _check_packing(options.output)
    check_target(options.output, force=options.force, is_store=target == "store")
    options.wants_items = True
    counts, has_comments = _convert(target, options)
    if has_comments:
        remark("of comments (# ...) the ids of items are kept, and nothing else.")
    size = 0 if options.output == "-" else _size(options.output)
    if options.json:
        print_json({"read": options.data, "file": options.output, **counts, "bytes": size})
    elif options.output != "-":
        words = [f"{count:,} {what}" for what, count in counts.items()]
        print_facts(
            {
                "read": ", ".join(options.data),
                "wrote": f"{options.output}: {', '.join([*words, size_of(size)])}",
            }
        )
    return 0


def _counts(store: Store) -> dict[str, int]:
    queries = {} if store.query_ids is None else {"queries": store.query_ids.size}
    return {"rows": store.X.shape[0], **queries, "columns": store.X.shape[1]}


def _convert(target: str, options: argparse.Namespace) -> tuple[dict[str, int], bool]:
    """Write the target; return how much of what was written, and whether there were comments."""
    sources = {kind_of(path, options.format) for path in options.data}
    if target == "store" and sources == {"text"}:
        # Block by block: neither need fit in memory.
        reader = open_reader(options.data, options)
        save_store(reader, options.output, regroup=options.regroup, missing=options.missing)
        return _counts(open_store(options.output)), reader.has_comments
    if target == "store" and sources == {"table"}:
        _tables_to_store(options)
        return _counts(open_store(options.output)), False
    if target == "text" and sources == {"store"} and len(options.data) == 1:
        return _store_to_text(options), False
    rows = read_rows(options.data, options, needs_labels=target != "table")
    with _named(rows.source):
        _write(rows, target, options)
    return rows.counts(), rows.has_comments


def _tables_to_store(options: argparse.Namespace) -> None:
    opened = open_tables(options.data, text_columns(options))
    source = ", ".join(options.data)
    roles = roles_of(opened[0].schema, source, options, needs_labels=True)._asdict()
    roles.pop("weight")
    save_store(
        opened,
        options.output,
        zero_based=text_base(options),
        regroup=options.regroup,
        missing=options.missing,
        **roles,
        item_id=item_column(opened[0].schema, options),
    )


def _store_to_text(options: argparse.Namespace) -> dict[str, int]:
    store = open_store(options.data[0])
    with open_text(options.output) as stream, _named(options.data[0]):
        writer = TextWriter(
            stream,
            zero_based=store.first_column == 0,
            missing=_written(options),
            n_threads=options.threads,
        )
        for X, y, qid, items in store.named_blocks():
            comments = None if items is None else _comments(items.tolist())
            writer.write(scipy.sparse.csr_matrix(X), y, qid, comments)
    return _counts(store)


def _comments(items: Iterable[str]) -> list[str]:
    """Return ids as they stand behind rows of text."""
    return [f"docid = {item}" if item else "" for item in items]


@contextmanager
def _named(source: str) -> Iterator[None]:
    """Name the file in what the writer of text says of its arguments."""
    try:
        yield
    except InvalidInputError as error:
        if error.about not in _WRITTEN:
            raise
        raise error.restated(f"{source}: {_WRITTEN[error.about]} {error.predicate}") from error


def _unpacked(name: str) -> str:
    """Return a name without what says how the file is compressed."""
    packing = next((ending for ending in PACKED if name.lower().endswith(ending)), "")
    return name[: len(name) - len(packing)]


def _check_packing(output: str) -> None:
    plain = _unpacked(output)
    if plain != output and not is_flat(plain):
        raise UsageError(
            f"{output} would be compressed twice: such tables compress themselves.", f"write {plain}."
        )


def _told_by_name(output: str) -> str:
    """Tell what to write; a typo in the name of a table would else be taken as text."""
    target = kind_of(output)
    ending = Path(_unpacked(output).lower()).suffix
    if target == "text" and output != "-" and ending and ending not in _TEXTS:
        raise UsageError(
            f"{output} does not say what to write.",
            f"end it in one of {', '.join((*TABLE_ENDINGS, '.store', *_TEXTS))}, or add --to text, table or store.",
        )
    return target


def _written(options: argparse.Namespace) -> Literal["error", "nan"]:
    return "error" if options.missing == "error" else "nan"


def _write(rows: Rows, target: str, options: argparse.Namespace) -> None:
    if target == "table":
        _write_table(rows, options)
    elif target == "store":
        save_store(
            [(rows.X, rows.y, rows.qid, rows.item_ids)],
            options.output,
            regroup=options.regroup,
            zero_based=rows.counts_from == 0,
            missing=options.missing,
        )
    else:
        assert rows.y is not None
        save_svmlight(
            rows.X,
            rows.y,
            options.output,
            qid=rows.qid,
            zero_based=rows.counts_from == 0,
            comments=None if rows.item_ids is None else _comments(map(str, rows.item_ids.tolist())),
            missing=_written(options),
            n_threads=options.threads,
        )


def _write_table(rows: Rows, options: argparse.Namespace) -> None:
    plain = _unpacked(options.output)
    X = rows.X.toarray() if scipy.sparse.issparse(rows.X) and is_flat(plain) else rows.X
    items = {} if rows.item_ids is None else {"item_ids": rows.item_ids, "item_name": options.item_id}
    named: dict[str, Any] = {
        "feature_names": rows.column_names(),
        "label": options.label,
        "qid_name": options.qid,
        **items,
    }
    if plain == options.output:
        save_table(X, rows.y, plain, qid=rows.qid, **named)
        return
    with tempfile.TemporaryDirectory(prefix="rankwise-") as folder:
        scratch = Path(folder, Path(plain).name)
        save_table(X, rows.y, scratch, qid=rows.qid, **named)
        with scratch.open("rb") as text, open_text(options.output) as stream:
            shutil.copyfileobj(text, stream)


def _size(target: str) -> int:
    path = Path(target)
    files = [path] if path.is_file() else [file for file in path.rglob("*") if file.is_file()]
    return sum(file.stat().st_size for file in files)
