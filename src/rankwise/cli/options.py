"""Options that several commands share. Options are named as the parameters of the Python functions are."""

from __future__ import annotations

import argparse


def names(text: str) -> list[str]:
    """Read a list of names, separated by commas."""
    return [name.strip() for name in text.split(",")]


def positive(text: str) -> int:
    """Read a positive whole number."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text} is not a positive whole number")
    return int(text)


def seconds(text: str) -> float:
    """Read a time, such as 90, 10m or 1h."""
    factor = {"s": 1.0, "m": 60.0, "h": 3600.0}.get(text[-1:].lower())
    try:
        value = float(text[:-1]) * factor if factor else float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"{text} is not a time, such as 60s, 5m or 1h")
    return value


def add_data(parser: argparse.ArgumentParser, *, model: bool) -> None:
    """Add a model file, where a command takes one, and files of rows."""
    if model:
        parser.add_argument("model", metavar="MODEL", help="a model file; - is standard input")
    parser.add_argument(
        "data", metavar="DATA", nargs="+", help="files of rows, read as one; - is standard input"
    )


def add_output(parser: argparse.ArgumentParser, content: str, default: str | None = None) -> None:
    """Add the file to write."""
    parser.add_argument(
        "-o", "--output", metavar="FILE", default=default, help=f"{content}; - is standard output"
    )
    parser.add_argument("-f", "--force", action="store_true", help="replace an existing file")


def add_reading(parser: argparse.ArgumentParser) -> None:
    """Add the options by which data are read."""
    parser.set_defaults(categories=[], words=[], crosses=[], encodes=None)
    group = parser.add_argument_group("reading data")
    add = group.add_argument
    add(
        "--format", choices=("text", "table", "store"),
        help="svmlight or LETOR text, a table (CSV, Parquet, Arrow) or a store (by the ending of the name)",
    )  # fmt: skip
    for name, content in (
        ("label", "labels, higher is better"),
        ("qid", "query ids"),
        ("weight", "weights, of rows or of preferences"),
    ):
        usual = f" ({name} or the model's)" if name != "weight" else ""
        add(f"--{name}", metavar="COLUMN", help=f"tables: the column of {content}{usual}")
    add("--id", type=names, metavar="A,B", help="tables: columns that name rows, the first in output (id)")
    add("--features", type=names, metavar="A,B", help="tables: the columns to learn from (all others)")
    add(
        "--items",
        metavar="FILE",
        help="a table of items with an id; the data are then preferences between them",
    )
    add("--winner", default="winner", metavar="COLUMN", help="preferences: ids of winners (winner)")
    add("--loser", default="loser", metavar="COLUMN", help="preferences: ids of losers (loser)")
    add(
        "--missing", choices=("error", "nan", "zero"),
        help="missing values raise an error, stay (to inspect and convert) or become 0; `fit` fills tables",
    )  # fmt: skip
    add(
        "--zero-based",
        choices=("true", "false"),
        help="text: whether columns count from 0 (as in the model, or detected)",
    )
    add(
        "--n-features",
        type=positive,
        metavar="N",
        help="text: the number of columns, if the last may be empty",
    )
    add("--n-threads", type=positive, metavar="N", help="threads to use (all)")


def add_columns(parser: argparse.ArgumentParser) -> None:
    """Add the options that declare the contents of a table's feature columns."""
    add = parser.add_argument_group("columns that are not numbers").add_argument
    add(
        "--categories",
        type=names,
        metavar="A,B",
        help="columns of numbers that are categories, such as postcodes",
    )
    add("--words", type=names, metavar="A,B", help="columns of text to read word by word")
    add("--crosses", type=names, metavar="A:B,C:D", help="products of two columns: price:country")
