"""``rankwise convert``: text, tables and stores into each other, without loss."""

from __future__ import annotations

import argparse
import shutil
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rankwise.cli.options import add_data, add_reading
from rankwise.cli.printing import check_target, print_facts, remark, size_of
from rankwise.exceptions import InvalidInputError

if TYPE_CHECKING:
    from rankwise.cli.reading import Data

__all__ = ["add_arguments", "run"]

_TEXTS = (".txt", ".svmlight", ".svm", ".libsvm", ".letor", ".dat")


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
    add("--regroup", action="store_true", help="stores: bring scattered rows of a query together")
    add_reading(parser)


def run(options: argparse.Namespace) -> int:
    """Read, and write the format that the target's name says."""
    if options.items is not None:
        raise InvalidInputError(
            "Preferences are not converted.", "convert the table of items, without --items."
        )
    target = options.to or _format_of(options.output)
    if options.regroup and target != "store":
        raise InvalidInputError(
            f"{options.output} is not a store, so rows are not regrouped.", "leave --regroup out."
        )
    if target == "table":
        _check_packing(options.output)
    check_target(options.output, force=options.force, is_store=target == "store")
    counts, has_comments = _convert(target, options)
    if has_comments:
        remark("of comments (# ...), only the ids of items are kept.")
    if options.output != "-":
        words = [f"{count:,} {what}" for what, count in counts.items()]
        wrote = f"{options.output}: {', '.join([*words, size_of(_size(options.output))])}"
        print_facts({"read": ", ".join(options.data), "wrote": wrote})
    return 0


def _convert(target: str, options: argparse.Namespace) -> tuple[dict[str, int], bool]:
    """Write the target; return the counts, and whether there were comments."""
    from rankwise.cli.reading import kind_of, open_reader, read_data
    from rankwise.data import open_store, save_store

    missing: Any = options.missing or "error"
    sources = {kind_of(path, options.format) for path in options.data}
    if target == "store" and sources == {"text"}:  # block by block: neither need fit in memory
        reader = open_reader(options.data, options, wants_items=True)
        reader.looks_for_comments = True
        save_store(reader, options.output, regroup=options.regroup, missing=missing)
        return _counts(open_store(options.output)), reader.has_comments
    if target == "store" and sources == {"table"}:
        _tables_to_store(options, missing)
        return _counts(open_store(options.output)), False
    if target == "text" and sources == {"store"} and len(options.data) == 1:
        return _store_to_text(options), False
    data = read_data(options.data, options, needs_labels=target != "table", wants_items=True)
    if target == "table":
        _write_table(data, options)
    elif target == "store":
        save_store(
            [(data.X, data.y, data.qid, data.item_ids)], options.output, regroup=options.regroup,
            zero_based=data.counts_from == 0, missing=missing,
        )  # fmt: skip
    else:
        _write_text(data, options)
    return data.counts(), data.has_comments


def _tables_to_store(options: argparse.Namespace, missing: Any) -> None:
    from rankwise.cli.reading import open_roles, text_base
    from rankwise.data import save_store
    from rankwise.data.tables import open_tables, sparse_width

    files = open_tables(options.data, [options.qid or "qid", *(options.id or ["id"])])
    roles = open_roles(files[0], ", ".join(options.data), options, None)
    if roles.label is None:
        raise InvalidInputError(
            f"{files[0].name} has no column 'label'.", "name the column of labels with --label."
        )
    is_sparse = options.features is None and sparse_width(files) is not None
    save_store(
        files, options.output, zero_based=text_base(options),
        regroup=options.regroup, missing=missing, label=roles.label, qid=roles.qid,
        features=None if is_sparse else roles.of_kind("number", "flag"),
        embedding=None if is_sparse else roles.of_kind("list"), item_id=roles.ids[0] if roles.ids else None,
    )  # fmt: skip


def _counts(store: Any) -> dict[str, int]:
    queries = {} if store.query_ids is None else {"queries": store.query_ids.size}
    return {"rows": store.X.shape[0], **queries, "columns": store.X.shape[1]}


def _store_to_text(options: argparse.Namespace) -> dict[str, int]:
    import scipy.sparse as sp

    from rankwise.cli.reading import naming
    from rankwise.data import open_store
    from rankwise.data.svmlight import TextWriter, open_text

    store = open_store(options.data[0])
    with open_text(options.output) as stream, naming(options.data[0]):
        writer = TextWriter(
            stream, zero_based=store.first_column == 0, missing=_written(options), n_threads=options.n_threads
        )
        for X, y, qid, items in store.named_blocks():
            writer.write(sp.csr_matrix(X), y, qid, None if items is None else _comments(items.tolist()))
    return _counts(store)


def _write_text(data: Data, options: argparse.Namespace) -> None:
    from rankwise.cli.reading import naming
    from rankwise.data import save_svmlight

    with naming(data.source):
        save_svmlight(
            data.X, data.labels, options.output, qid=data.qid, zero_based=data.counts_from == 0,
            comments=None if data.item_ids is None else _comments(map(str, data.item_ids.tolist())),
            missing=_written(options), n_threads=options.n_threads,
        )  # fmt: skip


def _write_table(data: Data, options: argparse.Namespace) -> None:
    import scipy.sparse as sp

    from rankwise.data.svmlight import open_text
    from rankwise.data.tables import is_flat, save_table

    plain = _unpacked(options.output)
    X = data.X.toarray() if sp.issparse(data.X) and is_flat(plain) else data.X
    roles = data.roles
    given: dict[str, Any] = {
        "qid": data.qid,
        "feature_names": data.column_names(),
        "label": (roles.label if roles else options.label) or "label",
        "qid_name": (roles.qid if roles else options.qid) or "qid",
    }
    if data.item_ids is not None:
        given |= {
            "item_ids": data.item_ids,
            "item_name": roles.ids[0] if roles else (options.id or ["id"])[0],
        }
    if plain == options.output:
        save_table(X, data.y, plain, **given)
        return
    with tempfile.TemporaryDirectory(prefix="rankwise-") as folder:
        scratch = Path(folder, Path(plain).name)
        save_table(X, data.y, scratch, **given)
        with scratch.open("rb") as text, open_text(options.output) as stream:
            shutil.copyfileobj(text, stream)


def _written(options: argparse.Namespace) -> Any:
    return "error" if options.missing in {None, "error"} else "nan"


def _comments(items: Iterable[str]) -> list[str]:
    """Return ids as comments of rows of text."""
    return [f"docid = {item}" if item else "" for item in items]


def _unpacked(name: str) -> str:
    """Return a name without the ending of a compression."""
    from rankwise.cli.reading import PACKED

    packing = next((ending for ending in PACKED if name.lower().endswith(ending)), "")
    return name[: len(name) - len(packing)]


def _check_packing(output: str) -> None:
    from rankwise.data.tables import is_flat

    plain = _unpacked(output)
    if plain != output and not is_flat(plain):
        raise InvalidInputError(
            f"{output} would be compressed twice.", f"write {plain}, which is compressed."
        )


def _format_of(output: str) -> str:
    """Return the format that a name says; a typo in the ending of a table must not write text."""
    from rankwise.cli.reading import kind_of
    from rankwise.data.tables import TABLE_ENDINGS

    target = kind_of(output)
    ending = Path(_unpacked(output).lower()).suffix
    if target == "text" and output != "-" and ending and ending not in _TEXTS:
        known = ", ".join((*TABLE_ENDINGS, ".store", *_TEXTS))
        raise InvalidInputError(f"{output} does not name a known format.", f"end it in {known}; or add --to.")
    return target


def _size(target: str) -> int:
    path = Path(target)
    files = [path] if path.is_file() else [file for file in path.rglob("*") if file.is_file()]
    return sum(file.stat().st_size for file in files)
