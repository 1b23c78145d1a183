"""``rankwise convert``: text, tables and stores into each other, without loss."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Literal

import scipy.sparse

from rankwise.cli.inputs import PACKED, Rows, kept_input, kind_of, listed, open_reader, read_rows, text_base
from rankwise.cli.outputs import check_target
from rankwise.cli.printing import print_facts, remark
from rankwise.data import dump_svmlight, open_store, write_store
from rankwise.data.arrow_files import TABLE_ENDINGS, open_sources
from rankwise.data.svmlight_writer import TextWriter, open_text
from rankwise.data.table_writer import is_flat, save_table
from rankwise.exceptions import InvalidInputError

__all__ = ["run"]

_TEXTS = (".txt", ".svmlight", ".svm", ".libsvm", ".letor", ".dat")


def run(options: argparse.Namespace) -> int:
    """Read, and write what the target's name says."""
    if options.items is not None:
        raise InvalidInputError(
            "Preferences are not converted.", "convert the table of items, without --items."
        )
    target = options.to or _told_by_name(options.output)
    check_target(options.output, force=options.force, is_store=target == "store")
    sources = {kind_of(path, options.format) for path in options.data}
    has_comments = False
    if target == "store" and sources == {"text"}:
        # Block by block: neither need fit in memory.
        reader = open_reader(options.data, options)
        write_store(options.output, reader, regroup=options.regroup)
        read, has_comments = ", ".join(options.data), reader.has_comments
    elif target == "store" and sources == {"table"}:
        with kept_input(options.data) as files:
            write_store(
                options.output,
                open_sources(files, [options.qid]),
                zero_based=text_base(options),
                regroup=options.regroup,
                missing=options.missing,
                label=options.label,
                qid=options.qid,
                features=listed(options.features),
                embedding=listed(options.embedding),
                n_threads=options.threads,
            )
        read = ", ".join(options.data)
    elif target == "text" and sources == {"store"} and len(options.data) == 1:
        store = open_store(options.data[0], n_threads=options.threads)
        with open_text(options.output) as stream:
            writer = TextWriter(
                stream,
                zero_based=store.header.first_column == 0,
                missing=_written(options),
                n_threads=options.threads,
            )
            for X, y, qid in store.blocks():
                writer.write(X, y, qid)
        read = repr(store).strip("<>")
    else:
        rows = read_rows(options.data, options, needs_labels=target != "table")
        _write(rows, target, options)
        read, has_comments = rows.describe(), rows.has_comments
    if has_comments:
        remark("comments (# ...) of the text are not kept.")
    if options.output != "-":
        print_facts({"read": read, "wrote": f"{options.output} ({_size(options.output):,.1f} MB)"})
    return 0


def _told_by_name(output: str) -> str:
    """Tell what to write; a typo in the name of a table would else be taken as text."""
    target = kind_of(output)
    name = output.lower()
    for ending in PACKED:
        name = name.removesuffix(ending)
    ending = Path(name).suffix
    if target == "text" and output != "-" and ending and ending not in _TEXTS:
        raise InvalidInputError(
            f"{output} does not say what to write.",
            f"end it in one of {', '.join((*TABLE_ENDINGS, '.store', *_TEXTS))}, or add --to text, table or store.",
        )
    return target


def _written(options: argparse.Namespace) -> Literal["error", "nan"]:
    return "error" if options.missing == "error" else "nan"


def _write(rows: Rows, target: str, options: argparse.Namespace) -> None:
    if target == "table":
        X = rows.X.toarray() if scipy.sparse.issparse(rows.X) and is_flat(options.output) else rows.X
        names, label, qid = rows.column_names(), options.label, options.qid
        save_table(options.output, X, rows.y, rows.qid, feature_names=names, label=label, qid_name=qid)
    elif target == "store":
        block = (rows.X, rows.y) if rows.qid is None else (rows.X, rows.y, rows.qid)
        write_store(
            options.output,
            [block],
            regroup=options.regroup,
            zero_based=rows.counts_from == 0,
            missing=options.missing,
            n_threads=options.threads,
        )
    else:
        dump_svmlight(
            rows.X,
            rows.y,
            options.output,
            qid=rows.qid,
            zero_based=rows.counts_from == 0,
            missing=_written(options),
            n_threads=options.threads,
        )


def _size(target: str) -> float:
    path = Path(target)
    files = [path] if path.is_file() else [file for file in path.rglob("*") if file.is_file()]
    return sum(file.stat().st_size for file in files) / 1e6
