"""``rankwise export``: a model for other programs."""

from __future__ import annotations

import argparse
import sys

from rankwise.cli.options import add_output, names
from rankwise.cli.printing import output_stream, print_facts
from rankwise.exceptions import InvalidInputError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.epilog = (
        "examples:\n"
        "  rankwise export model.rw -o weights.json\n"
        "  rankwise export model.rw --to solr --name mine -o model.json\n"
        "  rankwise export model.rw --to postgresql --table items -o score.sql\n"
        "  rankwise export model.rw --to onnx -o model.onnx"
    )
    add = parser.add_argument
    add("model", metavar="MODEL", help="a model file; - is standard input")
    add(
        "--to", default="json", metavar="FORMAT",
        help="solr, elasticsearch-ltr, opensearch-ltr, vespa, onnx, sqlite, postgresql, duckdb, c, javascript, python, "
        "json (the default)",
    )  # fmt: skip
    add_output(parser, "the file to write", default="-")
    add("--name", metavar="NAME", help="the name of the model, function, profile or column of scores")
    add("--feature-names", type=names, metavar="A,B", help="the target's names of the columns (the model's)")
    add("--table", default="rows", metavar="NAME", help="SQL: the table of rows (rows)")
    add("--qid", metavar="COLUMN", help="SQL: the column of query ids (the model's)")
    add("--error", type=float, metavar="E", help="trees: the largest difference from the model's scores")
    add("--nonnegative", action="store_true", help="trees: add a constant so that no score is negative")
    add("--filled", action="store_true", help="values are never missing where the model runs")
    add("--whole-query", action="store_true", help="ONNX: the model gets the rows of one query at a time")


def run(options: argparse.Namespace) -> int:
    """Write the model in a format of another program."""
    from rankwise.cli.reading import read_model
    from rankwise.exporters import export

    if options.to == "onnx" and options.output == "-" and sys.stdout.isatty():
        raise InvalidInputError("ONNX output is binary.", "write it to a file with -o model.onnx.")
    model = read_model(options.model)
    made = export(
        model.estimator,
        options.to,
        feature_names=options.feature_names or model.names(),
        name=options.name,
        table=options.table,
        qid=options.qid or model.roles.qid or "qid",
        error=options.error,
        nonnegative=options.nonnegative,
        filled=options.filled,
        whole_query=options.whole_query,
    )
    content = made if isinstance(made, bytes) else made.encode()
    with output_stream(options.output) as stream:
        stream.write(content)
    if options.output != "-":
        print_facts(
            {"wrote": f"{options.output}: {model.path} for {options.to}, {len(content):,} bytes"},
            to_error=True,
        )
    return 0
