"""``rankwise convert``: text, tables and stores into each other, without loss."""

from __future__ import annotations

import argparse
from pathlib import Path

import scipy.sparse

from rankwise.cli.inputs import Rows, kind_of, read_rows
from rankwise.cli.outputs import check_target
from rankwise.cli.printing import print_facts
from rankwise.data import dump_svmlight
from rankwise.exceptions import InvalidInputError

__all__ = ["run"]


def run(options: argparse.Namespace) -> int:
    """Read, and write what the target's name says."""
    if options.items is not None:
        raise InvalidInputError(
            "Preferences are not converted.", "convert the table of items, without --items."
        )
    kind = kind_of(options.output)
    check_target(options.output, force=options.force, what="the rows")
    rows = read_rows(options.data, options, needs_labels=kind != "table")
    if kind == "table":
        _write_table(rows, options)
    elif kind == "store":
        _write_store(rows, options)
    else:
        dump_svmlight(
            rows.X,
            rows.y,
            options.output,
            qid=rows.qid,
            zero_based=rows.first_column == 0,
            missing="error" if options.missing == "error" else "nan",
            n_threads=options.threads,
        )
    if options.output != "-":
        print_facts({"read": rows.describe(), "wrote": f"{options.output} ({_size(options.output):,.1f} MB)"})
    return 0


def _size(target: str) -> float:
    path = Path(target)
    files = [path] if path.is_file() else [file for file in path.rglob("*") if file.is_file()]
    return sum(file.stat().st_size for file in files) / 1e6


def _write_table(rows: Rows, options: argparse.Namespace) -> None:
    from rankwise.data.table_writer import save_table  # noqa: PLC0415 - needs an optional package

    X = rows.X.toarray() if scipy.sparse.issparse(rows.X) and options.output.endswith(".csv") else rows.X
    save_table(
        options.output,
        X,
        rows.y,
        rows.qid,
        feature_names=rows.names,
        label=options.label,
        qid_name=options.qid,
    )


def _write_store(rows: Rows, options: argparse.Namespace) -> None:
    raise NotImplementedError
