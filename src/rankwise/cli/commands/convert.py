"""``rankwise convert``: text, tables and stores into each other."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from rankwise.cli.options import add_data, add_reading
from rankwise.cli.printing import check_target, print_facts, size_of
from rankwise.exceptions import InvalidInputError

if TYPE_CHECKING:
    from rankwise.cli.reading import Data

_TEXTS = (".txt", ".svmlight", ".svm", ".libsvm", ".letor", ".dat")
_MOST_COLUMNS = 1000  # of a table that sparse rows become


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.epilog = (
        "examples:\n  rankwise convert train.txt -o train.parquet\n  rankwise convert a.csv -o b.txt.gz"
    )
    add_data(parser, model=False)
    add = parser.add_argument
    add(
        "-o",
        "--output",
        metavar="TARGET",
        required=True,
        help="its ending names the format; - is text on standard output",
    )
    add("--to", choices=("text", "table", "store"), help="the format, unless the ending determines it")
    add("-f", "--force", action="store_true", help="replace an existing target")
    add_reading(parser)


def run(options: argparse.Namespace) -> int:
    """Read, and write the format that the target's name says."""
    if options.items is not None:
        raise InvalidInputError(
            "convert does not read preferences (--items).", "convert the table of items, without --items."
        )
    target = options.to or _format_of(options.output)
    check_target(options.output, force=options.force, is_store=target == "store")
    counts = _convert(target, options)
    if options.output != "-":
        words = [f"{count:,} {what}" for what, count in counts.items()]
        wrote = f"{options.output}: {', '.join([*words, size_of(_size(options.output))])}"
        print_facts({"read": ", ".join(options.data), "wrote": wrote})
    return 0


def _convert(target: str, options: argparse.Namespace) -> dict[str, int]:
    """Write the target; return the counts."""
    from rankwise.cli.reading import kind_of, open_columns, open_reader, read_data
    from rankwise.data import open_store, save_store

    sources = {kind_of(path, options.format) for path in options.data}
    if target == "store" and sources in ({"text"}, {"table"}):  # block by block: neither need fit in memory
        open_source = open_reader if sources == {"text"} else open_columns
        save_store(open_source(options.data, options), options.output)
        store = open_store(options.output)
        queries = {} if store.query_ids is None else {"queries": store.query_ids.size}
        return {"rows": store.X.shape[0], **queries, "columns": store.X.shape[1]}
    data = read_data(options.data, options, needs_labels=target != "table", wants_items=target != "store")
    if target == "table":
        _write_table(data, options)
    elif target == "store":
        save_store([(data.X, data.y, data.qid)], options.output, zero_based=data.counts_from == 0)
    else:
        _write_text(data, options)
    return data.counts()


def _write_text(data: Data, options: argparse.Namespace) -> None:
    from rankwise.cli.reading import naming
    from rankwise.data import save_svmlight

    items = None if data.item_ids is None else map(str, data.item_ids.tolist())
    comments = None if items is None else [f"docid = {item}" if item else "" for item in items]
    with naming(data.source):
        save_svmlight(
            data.X, data.labels, options.output, qid=data.qid, zero_based=data.counts_from == 0,
            comments=comments, n_threads=options.n_threads,
        )  # fmt: skip


def _write_table(data: Data, options: argparse.Namespace) -> None:
    import scipy.sparse as sp

    from rankwise.data.columns import Roles
    from rankwise.data.tables import save_table

    if sp.issparse(data.X) and data.shape[1] > _MOST_COLUMNS:
        raise InvalidInputError(
            f"{data.source} has {data.shape[1]:,} sparse columns, and a table would have a column for each.",
            "write text (.txt) or a store (.store).",
        )
    roles = data.roles or Roles(options.label, options.qid, ids=tuple(options.id or ()))
    save_table(
        data.X.toarray() if sp.issparse(data.X) else data.X,
        data.y,
        options.output,
        qid=data.qid,
        feature_names=data.column_names(),
        label=roles.label or "label",
        qid_name=roles.qid or "qid",
        item_ids=data.item_ids,
        item_name=(*roles.ids, "id")[0],
    )


def _format_of(output: str) -> str:
    """Return the format that a name says; a typo in the ending of a table must not write text."""
    from rankwise.cli.reading import kind_of, unpacked
    from rankwise.data.tables import TABLE_ENDINGS

    target = kind_of(output)
    ending = Path(unpacked(output)).suffix
    if target == "text" and output != "-" and ending and ending not in _TEXTS:
        known = ", ".join((*TABLE_ENDINGS, ".store", *_TEXTS))
        raise InvalidInputError(f"{output} does not name a known format.", f"end it in {known}; or add --to.")
    return target


def _size(target: str) -> int:
    path = Path(target)
    files = [path] if path.is_file() else [file for file in path.rglob("*") if file.is_file()]
    return sum(file.stat().st_size for file in files)
