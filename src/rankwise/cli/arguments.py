"""The arguments of every command."""

from __future__ import annotations

import argparse

from rankwise.cli.argument_groups import (
    TARGETS,
    add_choosing,
    add_clicks,
    add_encoding,
    add_json,
    add_model_and_data,
    add_reading,
    add_writing,
)
from rankwise.cli.argument_types import (
    Joined,
    bounds,
    level,
    metrics,
    picture,
    positive,
    positive_number,
    written,
)

__all__ = ["ADD_ARGUMENTS", "SHELLS"]

SHELLS = ("bash", "zsh", "fish")


def _fit(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("data", metavar="TRAIN", nargs="+", help="training files; - is standard input")
    add_writing(parser, "the model file")
    add_json(parser)
    add_choosing(parser)
    add_reading(parser)
    add_clicks(parser)
    add_encoding(parser)


def _select(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("data", metavar="TRAIN", nargs="+", help="training files; - is standard input")
    parser.add_argument(
        "--plot",
        type=picture,
        metavar="FILE",
        help="draw the surface into a .png, .svg or .pdf (needs matplotlib)",
    )
    parser.add_argument("-f", "--force", action="store_true", help="replace a file that is already there")
    add_json(parser)
    add_choosing(parser)
    add_reading(parser)
    add_clicks(parser)
    add_encoding(parser)


def _predict(parser: argparse.ArgumentParser) -> None:
    add_model_and_data(parser)
    add_writing(
        parser, "one score per line, or what its ending says (.csv, .tsv, .parquet, .run)", default="-"
    )
    add_json(parser, "print what was written, as JSON; needs -o")
    parser.add_argument(
        "--to",
        choices=("scores", "csv", "tsv", "parquet", "trec"),
        help="scores alone; or qid, item, rank and score as a table or as a TREC run",
    )
    parser.add_argument(
        "--ranks", action="store_true", help="write ranks inside each query instead of scores: 1 is best"
    )
    parser.add_argument(
        "--tag", default="rankwise", metavar="NAME", help="TREC: the name of the run (rankwise)"
    )
    parser.add_argument(
        "--stream",
        action="store_true",
        help="text and tables: score block by block; by default where a file is too large for memory",
    )
    add_reading(parser)


def _evaluate(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", metavar="MODEL", nargs="?", help="a model file that `rankwise fit` wrote")
    parser.add_argument(
        "data", metavar="DATA", nargs="*", help="files of rows, read one after the other; - is standard input"
    )
    parser.add_argument(
        "--run", action="append", metavar="FILE", help="score a run instead: TREC's, or a .tsv of predict"
    )
    parser.add_argument("--qrels", metavar="FILE", help="what is right, in TREC's lines, for --run")
    parser.add_argument(
        "--against", action="append", metavar="MODEL", help="compare with another model; may be repeated"
    )
    parser.add_argument(
        "--metrics",
        "--metric",
        type=metrics,
        action=Joined,
        metavar="A,B,...",
        help="such as ndcg@10,map; by default all that fit the labels",
    )
    parser.add_argument(
        "--convention", choices=("letor3", "letor4"), help="count as the scripts of the LETOR benchmarks do"
    )
    parser.add_argument(
        "--per-query",
        metavar="FILE",
        help="write every query's figures as CSV; - is standard output, and the rest goes to standard error",
    )
    parser.add_argument(
        "--level", type=level, default=0.95, metavar="P", help="confidence of the intervals (0.95)"
    )
    parser.add_argument("-f", "--force", action="store_true", help="replace a file that is already there")
    add_json(parser)
    add_reading(parser)
    add_clicks(parser)


def _report(parser: argparse.ArgumentParser) -> None:
    add_model_and_data(parser)
    add_writing(parser, "the page (report.html)", default="report.html")
    parser.add_argument(
        "--metrics",
        "--metric",
        type=metrics,
        action=Joined,
        metavar="A,B,...",
        help="such as ndcg@10,map; the page leads with the first",
    )
    parser.add_argument(
        "--against", metavar="MODEL", help="show another model beside it, with paired differences"
    )
    parser.add_argument("--title", metavar="TEXT", help="heading of the page; by default names the two files")
    add_reading(parser)
    add_clicks(parser)


def _explain(parser: argparse.ArgumentParser) -> None:
    add_model_and_data(parser)
    which = parser.add_mutually_exclusive_group()
    parser.add_argument(
        "--query", metavar="ID", help="which query; by default the first, or that of the item"
    )
    parser.add_argument("--top", type=positive, default=3, metavar="N", help="explain the first N rows (3)")
    which.add_argument("--item", metavar="A", help="explain this row: the id of an item, or a number from 0")
    which.add_argument(
        "--pair",
        nargs=2,
        metavar=("A", "B"),
        help="why A stands above B: ids of items, or numbers of rows from 0",
    )
    parser.add_argument(
        "--parts", type=positive, default=12, metavar="N", help="columns that are told apart (12)"
    )
    add_writing(parser, "a page in HTML instead of text")
    add_json(parser)
    add_reading(parser)


def _export(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", metavar="MODEL", help="a model file that `rankwise fit` wrote")
    parser.add_argument(
        "--to",
        type=written,
        choices=TARGETS,
        default="json",
        metavar="TARGET",
        help=f"what to write for: {', '.join(TARGETS)}; json by default",
    )
    add_writing(parser, "where to write", default="-")
    parser.add_argument(
        "--name", metavar="NAME", help="of the model, function, profile or column that is made"
    )
    parser.add_argument(
        "--feature-names",
        metavar="A,B,...",
        help="what the target calls the columns; by default as in training",
    )
    parser.add_argument("--table", default="rows", metavar="NAME", help="SQL: the table of rows (rows)")
    parser.add_argument(
        "--error",
        type=positive_number,
        metavar="E",
        help="trees: by how much a score may differ from the model's",
    )
    parser.add_argument(
        "--bounds",
        type=bounds,
        action="append",
        metavar="COLUMN=LOW:HIGH",
        help="what values a column can have, for --nonnegative; may be repeated",
    )
    parser.add_argument(
        "--nonnegative", action="store_true", help="add a constant so that no score is negative"
    )
    parser.add_argument("--filled", action="store_true", help="values are never missing where the model runs")
    parser.add_argument(
        "--whole-query", action="store_true", help="ONNX: the model gets the rows of one query at a time"
    )
    add_json(parser, "print what was written, as JSON; needs -o")
    add_reading(parser)


def _convert(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "data", metavar="SOURCE", nargs="+", help="files to read, one after the other; - is standard input"
    )
    parser.add_argument(
        "-o",
        "--output",
        metavar="TARGET",
        required=True,
        help="its ending says what to write; - is text on standard output",
    )
    parser.add_argument(
        "--to", choices=("text", "table", "store"), help="what to write, where the ending does not say it"
    )
    parser.add_argument("-f", "--force", action="store_true", help="replace what is already there")
    parser.add_argument(
        "--regroup", action="store_true", help="stores: bring rows of a query together that do not stand so"
    )
    add_json(parser, "print what was written, as JSON")
    add_reading(parser)


def _inspect(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("data", metavar="FILE", nargs="+", help="a model file, or files of rows")
    add_json(parser)
    add_reading(parser)
    add_encoding(parser)


def _demo(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "-o",
        "--output",
        metavar="FOLDER",
        help="write made-up searches as train.txt, vali.txt and test.txt, and stop; without, a page stays here",
    )
    parser.add_argument("-f", "--force", action="store_true", help="replace files that are already there")
    add_json(parser, "print what was written, as JSON; needs -o")


def _completion(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("shell", choices=SHELLS)


ADD_ARGUMENTS = {
    "fit": _fit,
    "select": _select,
    "predict": _predict,
    "evaluate": _evaluate,
    "report": _report,
    "explain": _explain,
    "export": _export,
    "convert": _convert,
    "inspect": _inspect,
    "demo": _demo,
    "completion": _completion,
}
