"""``rankwise report``: one HTML page about a model."""

from __future__ import annotations

import argparse
from pathlib import Path

from rankwise.cli.options import add_data, add_output, add_reading, names
from rankwise.cli.printing import output_stream, print_facts

_NAMED = 3  # files in a title


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.epilog = (
        "examples:\n"
        "  rankwise report model.rw test.txt -o report.html\n"
        "  rankwise report model.rw test.txt --against old.rw"
    )
    add_data(parser, model=True)
    add_output(parser, "the page (report.html)", default="report.html")
    parser.add_argument(
        "--metrics",
        type=names,
        metavar="A,B",
        help="such as ndcg@10,average_precision; the page leads with the first",
    )
    parser.add_argument(
        "--against", metavar="MODEL", help="show another model beside it, with paired differences"
    )
    parser.add_argument("--title", metavar="TEXT", help="the heading of the page")
    add_reading(parser)


def run(options: argparse.Namespace) -> int:
    """Evaluate the model and write the page."""
    from rankwise.cli.reading import naming, read_data, read_model, score
    from rankwise.report import Report

    model = read_model(options.model)
    data = read_data(options.data, options, model, wants_items=True)
    other = None if options.against is None else read_model(options.against)
    beside = None if other is None else score(other, read_data(options.data, options, other))
    pairs, weight = (None, None) if data.pairs is None else data.decided()
    files = [*options.data, *([] if options.items is None else [options.items])]
    short = ["standard input" if path == "-" else Path(path).name for path in files]
    more = "" if len(short) <= _NAMED else f" and {len(short) - _NAMED} more"
    with naming(data.source):
        report = Report(
            model.estimator,
            data.X,
            data.y,
            data.qid,
            pairs=pairs,
            weight=weight if data.pairs is not None else data.weight,
            metrics=options.metrics,
            feature_names=model.names(),
            row_names=None if data.item_ids is None else list(data.item_ids),
            title=options.title or f"{Path(options.model).name} on {', '.join(short[:_NAMED])}{more}",
            command=options.line,
            source=", ".join(short),
            notes=model.notes,
            against=beside,
            against_name=None if other is None else Path(other.path).name,
            own_name=Path(options.model).name,
        )
    page = report.html().encode()
    with output_stream(options.output) as stream:
        stream.write(page)
    if options.output != "-":
        print_facts({"wrote": f"{options.output} ({len(page) / 1000:,.0f} kB): open it in a browser"})
    return 0
