"""Groups of options that several commands have."""

from __future__ import annotations

import argparse

from rankwise.cli.argument_types import (
    alpha,
    folds,
    gamma,
    metric,
    not_negative,
    positive,
    positive_number,
    seconds,
    seed,
    served,
)

__all__ = [
    "METHODS",
    "READING",
    "SCALINGS",
    "TARGETS",
    "USUAL_COLUMNS",
    "add_choosing",
    "add_clicks",
    "add_encoding",
    "add_json",
    "add_model_and_data",
    "add_reading",
    "add_writing",
]

SCALINGS = (
    "auto", "none", "standard", "max-abs", "rank", "query-minmax", "query-standard", "query-rank",
    "standard+query-standard", "standard+query-rank",
)  # fmt: skip
METHODS = ("auto", "rls", "svm", "svm-squared", "logistic", "curves", "surfaces", "kernel")
TARGETS = (
    "solr",
    "elasticsearch-ltr",
    "opensearch-ltr",
    "vespa",
    "onnx",
    "sqlite",
    "postgresql",
    "duckdb",
    "c",
    "javascript",
    "python",
    "json",
)
READING = "reading"  # the title of the options that every command reads data by
# What each option that names columns of a table stands for where neither the command nor a model names any.
USUAL_COLUMNS = {
    "label": "label",
    "qid": "qid",
    "features": None,
    "embedding": None,
    "item_id": "id",
    "winner": "winner",
    "loser": "loser",
    "magnitude": None,
    "weight": None,
    "id": None,
    "category": None,
    "words": None,
    "cross": None,
}


def add_reading(parser: argparse.ArgumentParser) -> None:
    """Add the options that every command reads data by."""
    group = parser.add_argument_group(READING)
    group.add_argument(
        "--format", choices=("auto", "text", "table", "store"), default="auto",
        help="svmlight/LETOR text, a table (Parquet, Arrow, Feather, CSV) or a store; by default told by the name",
    )  # fmt: skip
    group.add_argument(
        "--label", metavar="COLUMN", help="tables: the column of labels; by default the model's, or label"
    )
    group.add_argument(
        "--qid", metavar="COLUMN", help="tables: the column of query ids; by default the model's, or qid"
    )
    group.add_argument(
        "--features",
        metavar="A,B,...",
        help="tables: the columns to learn from; by default the model's, or all others",
    )
    group.add_argument(
        "--embedding",
        metavar="A,B,...",
        help="tables: columns whose entries are lists of numbers; alone, or beside --features",
    )
    group.add_argument(
        "--zero-based", choices=("auto", "yes", "no"), default="auto",
        help="text: whether columns count from 0 or from 1; by default as the model's did, or from 0 if there is a 0",
    )  # fmt: skip
    group.add_argument(
        "--columns",
        type=positive,
        metavar="N",
        help="text: how many columns there are, where the last may not occur; by default as many as occur",
    )
    group.add_argument(
        "--longest-line",
        type=positive,
        metavar="MB",
        help="text: how long a line may be, so that something that is no text is noticed (268)",
    )
    group.add_argument(
        "--missing", choices=("auto", "error", "nan", "zero"), default="auto",
        help="what NULL and NaN mean: an error, missing (to inspect and convert), or 0; by default, in tables to learn from, they are filled in and marked in a column, and elsewhere an error",
    )  # fmt: skip
    group.add_argument(
        "--items",
        metavar="FILE",
        help="a table of items; the data are then preferences: columns winner and loser",
    )
    group.add_argument("--item-id", metavar="COLUMN", help="the column of ids in --items (id)")
    for role, words in (
        ("winner", "ids of what won (winner)"),
        ("loser", "ids of what lost (loser)"),
        ("magnitude", "by how much it won, 0 for a tie (magnitude, if there)"),
    ):
        group.add_argument(f"--{role}", metavar="COLUMN", help=f"preferences: the column of {words}")
    group.add_argument(
        "--weight",
        metavar="COLUMN",
        help="tables: the column of weights of the rows, none by default; preferences: how much each counts (weight, "
        "if there)",
    )
    group.add_argument("--threads", type=positive, metavar="N", help="threads to use; by default all")


def add_clicks(parser: argparse.ArgumentParser) -> None:
    """Add the options of click logs."""
    group = parser.add_argument_group("clicks (the data are a log of results that were shown, with --items)")
    group.add_argument(
        "--clicks",
        choices=("above", "above_and_next", "all"),
        help="what a clicked result beats: what was passed by above it, also the next one below, or all of its list",
    )
    group.add_argument(
        "--click-columns",
        metavar="S,P,C,I",
        help="the columns of the session, the position, whether it was clicked, and the id of the item "
        "(session,position,clicked,item)",
    )
    group.add_argument(
        "--propensity",
        type=not_negative,
        metavar="ETA",
        help="a position is looked at with probability position ** -ETA; clicks far down then weigh more",
    )
    group.add_argument(
        "--max-weight", type=positive_number, metavar="W", help="larger weights are cut to this one"
    )


def add_encoding(parser: argparse.ArgumentParser) -> None:
    """Add the options that say what columns of a table hold."""
    group = parser.add_argument_group("columns of tables that are not numbers")
    group.add_argument(
        "--id", metavar="A,B,...", help="columns that only name rows, and are not learned from"
    )
    group.add_argument(
        "--category",
        metavar="A,B,...",
        help="columns of numbers that are names, such as postcodes; text is by itself",
    )
    group.add_argument("--words", metavar="A,B,...", help="columns of text to read word by word (hashed)")
    group.add_argument(
        "--cross",
        metavar="A:B,...",
        help="also the product of two columns: price:country is the price in each country",
    )


def add_choosing(parser: argparse.ArgumentParser) -> None:
    """Add the options that say what may be chosen."""
    group = parser.add_argument_group("choosing (everything is chosen by itself, unless you say)")
    group.add_argument(
        "--valid",
        action="append",
        metavar="FILE",
        help="rows to validate on; without, folds of the training data",
    )
    group.add_argument(
        "--metric",
        type=metric,
        metavar="NAME",
        help="what to choose by, such as ndcg@10, map or pairwise_error",
    )
    group.add_argument(
        "--method",
        choices=METHODS,
        default="auto",
        help="least squares, hinge, squared hinge, logistic (for preferences), a curve for each column, also surfaces of two, or a kernel",
    )
    group.add_argument(
        "--scaling",
        choices=SCALINGS,
        default="auto",
        metavar="HOW",
        help=f"how columns are scaled, all together or inside each query: {', '.join(SCALINGS)}",
    )
    group.add_argument(
        "--alpha", type=alpha, action="append", metavar="A", help="regularisation; repeat it for a grid"
    )
    group.add_argument(
        "--rule",
        choices=("best", "one-standard-error"),
        default="best",
        help="the best figure; or the simplest model that is not worse by more than a standard error. Means and kernels "
        "have to be ahead of other models by a standard error",
    )
    group.add_argument(
        "--time",
        type=seconds,
        metavar="60s",
        help="how long to try: begin nothing after so many seconds (60s, 5m, 1h), and keep the best so far",
    )
    group.add_argument(
        "--nested", action="store_true", help="also say what to expect of new data: outer folds that take no part in the choice; takes five times as long"
    )  # fmt: skip
    group.add_argument(
        "--query-weight",
        choices=("size", "pairs", "equal"),
        help="what the weight of a query is proportional to",
    )
    group.add_argument(
        "--ties",
        choices=("include", "exclude"),
        help="least squares, kernel: whether rows with equal labels are compared",
    )
    group.add_argument(
        "--cost",
        choices=("magnitude", "unit", "relative"),
        help="least squares, kernel: what a pair of labels asks for",
    )
    group.add_argument("--folds", type=folds, metavar="N", help="how many folds to score by, without --valid")
    group.add_argument(
        "--gamma", type=gamma, action="append", metavar="G", help="kernel: its width; repeat it for a grid"
    )
    group.add_argument(
        "--basis",
        type=positive,
        metavar="N",
        help="kernel: how many rows it is made of (200, or more where a kernel is ahead)",
    )
    group.add_argument(
        "--for",
        dest="serve",
        type=served,
        choices=TARGETS,
        metavar="TARGET",
        help=f"try only what this target can run: {', '.join(TARGETS)}; sql is any of the three",
    )
    group.add_argument("--seed", type=seed, default=0, metavar="N", help="seeds folds (0)")


def add_writing(parser: argparse.ArgumentParser, help_text: str, default: str | None = None) -> None:
    """Add where to write."""
    parser.add_argument(
        "-o", "--output", metavar="FILE", default=default, help=f"{help_text}; - is standard output"
    )
    parser.add_argument("-f", "--force", action="store_true", help="replace a file that is already there")


def add_json(parser: argparse.ArgumentParser, help_text: str = "print JSON for machines") -> None:
    """Add whether to print JSON."""
    parser.add_argument("--json", action="store_true", help=help_text)


def add_model_and_data(parser: argparse.ArgumentParser) -> None:
    """Add a model file and files of rows."""
    parser.add_argument("model", metavar="MODEL", help="a model file that `rankwise fit` wrote")
    parser.add_argument(
        "data", metavar="DATA", nargs="+", help="files of rows, read one after the other; - is standard input"
    )
