"""``rankwise evaluate``: every metric with its interval and its convention; several models side by side."""

from __future__ import annotations

import argparse
import contextlib
import csv
import io
import math
import sys
from dataclasses import asdict
from typing import TYPE_CHECKING

from rankwise.cli.options import add_data, add_reading, names
from rankwise.cli.printing import figure, output_stream, print_facts, print_json, print_table, write
from rankwise.exceptions import InvalidInputError

if TYPE_CHECKING:
    from rankwise.arrays import Floats
    from rankwise.cli.reading import Data
    from rankwise.metrics import Comparison, Interval, Metric
    from rankwise.report.evidence import ByLabels, Judge

_GRADED = (
    "ndcg@1", "ndcg@3", "ndcg@5", "ndcg@10", "ndcg", "average_precision", "reciprocal_rank",
    "precision@1", "precision@5", "precision@10", "err", "pairwise_error", "concordance", "kendall_tau",
)  # fmt: skip
_ANY = ("pairwise_error", "concordance", "kendall_tau")  # these also take weights of rows
_WITH_CONVENTION = ("ndcg", "average_precision", "precision", "mean_ndcg")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.epilog = (
        "examples:\n"
        "  rankwise evaluate model.rw test.txt\n"
        "  rankwise evaluate model.rw test.txt --against old.rw --metrics ndcg@10,average_precision\n"
        "  rankwise evaluate model.rw test.txt --per-query queries.csv --json"
    )
    add_data(parser, model=True)
    add = parser.add_argument
    add(
        "--against",
        action="append",
        default=[],
        metavar="MODEL",
        help="compare with another model; may be repeated",
    )
    add(
        "--metrics",
        type=names,
        metavar="A,B",
        help="such as ndcg@10,average_precision; by default all that suit the labels",
    )
    add("--convention", choices=("letor3", "letor4"), help="count as the scripts of the LETOR benchmarks do")
    add("--per-query", metavar="FILE", help="write the values of every query as CSV; - is standard output")
    add("-f", "--force", action="store_true", help="replace an existing file")
    add("--json", action="store_true", help="print JSON")
    add_reading(parser)


def run(options: argparse.Namespace) -> int:
    """Evaluate one model, or several on the same rows."""
    from rankwise.cli.reading import naming
    from rankwise.metrics import holm
    from rankwise.report.evidence import ByLabels, ByPairs

    metrics = _read_metrics(options)
    data, scores = _read_models(options)
    first, *others = scores
    with naming(data.source):
        judge: Judge
        if data.pairs is not None:
            judge = ByPairs(*data.decided(), data.shape[0])
        else:
            judge = ByLabels(
                data.labels, data.queries, metrics or _usual_metrics(data, options), weight=data.weight
            )
            if options.per_query is not None:
                _write_per_query(judge, scores, options.per_query)
        figures = {
            metric.name: {name: judge.interval(metric, values) for name, values in scores.items()}
            for metric in judge.metrics
        }
        comparisons = [
            (metric.name, other, judge.compare(metric, scores[first], scores[other]))
            for metric in judge.metrics
            for other in others
        ]
    conventions = {metric.name: judge.describe(metric) for metric in judge.metrics}
    adjusted = holm([one.p_value for _, _, one in comparisons])
    # With --per-query - standard output has the values of the queries.
    with contextlib.redirect_stdout(sys.stderr if options.per_query == "-" else sys.stdout):
        if options.json:
            models = {name: {metric: asdict(own[name]) for metric, own in figures.items()} for name in scores}
            compared = [
                {**asdict(one), "against": other, "p_adjusted": float(p)}
                for (_, other, one), p in zip(comparisons, adjusted, strict=True)
            ]
            print_json(
                {"data": data.facts(), "conventions": conventions, "models": models, "comparisons": compared}
            )
            return 0
        _print(data, figures, comparisons, adjusted, conventions)
        if options.per_query not in {None, "-"}:
            write(f"\nwrote {options.per_query}")
    return 0


def _read_metrics(options: argparse.Namespace) -> list[Metric]:
    """Read the metrics that the options name, before any data."""
    from rankwise.metrics import get_metric

    found = [_with_convention(name.lower(), options) for name in options.metrics or ()]
    if options.items is not None and any(metric.name != "pairwise_error" for metric in found):
        raise InvalidInputError("Preferences are evaluated by pairwise_error alone.", "leave --metrics out.")
    if options.items is not None and options.per_query is not None:
        raise InvalidInputError("Preferences have no queries.", "leave --per-query out.")
    unweighted = [get_metric(one.name).name for one in found if not one.takes_weights]
    if options.weight is not None and options.items is None and unweighted:
        raise InvalidInputError(f"{unweighted[0]} takes no weights of rows.", f"use {', '.join(_ANY)}.")
    return found


def _with_convention(name: str, options: argparse.Namespace) -> Metric:
    from rankwise.metrics import get_metric

    metric = get_metric(name)
    takes = options.convention is not None and metric.base_name in _WITH_CONVENTION
    return get_metric(name, convention=options.convention) if takes else metric


def _usual_metrics(data: Data, options: argparse.Namespace) -> list[Metric]:
    from rankwise.data.summary import is_graded

    usual = _GRADED if is_graded(data.labels) and data.weight is None else _ANY
    more = ["mean_ndcg"] if options.convention == "letor4" else []
    return [_with_convention(name, options) for name in (*usual, *more)]


def _read_models(options: argparse.Namespace) -> tuple[Data, dict[str, Floats]]:
    """Read models and rows, and score the rows."""
    from rankwise.cli.reading import read_data, read_model, score

    if options.against and "-" in options.data:
        raise InvalidInputError("Standard input can be read once.", "compare models on a file.")
    models = [read_model(path) for path in (options.model, *options.against)]
    data = [read_data(options.data, options, model) for model in models]
    paths = [model.path for model in models]
    labels = [path if path not in paths[:at] else f"{path} ({at + 1})" for at, path in enumerate(paths)]
    scores = [score(model, rows) for model, rows in zip(models, data, strict=True)]
    return data[0], dict(zip(labels, scores, strict=True))


def _print(
    data: Data,
    figures: dict[str, dict[str, Interval]],
    comparisons: list[tuple[str, str, Comparison]],
    adjusted: Floats,
    conventions: dict[str, str],
) -> None:
    from rankwise.metrics.comparison import p_text

    models, some = list(next(iter(figures.values()))), next(iter(next(iter(figures.values())).values()))
    kinds = {"pairs": ", where pairs that share an item are dependent", "rows": ", bootstrap"}
    over = f"95%, over {some.n:,} {some.unit}{kinds.get(some.unit, '')}"
    print_facts({"data": data.describe(), "intervals": over})
    write()
    lines = [
        [name, *(cell for one in own.values() for cell in (figure(one.value), _brackets(one)))]
        for name, own in figures.items()
    ]
    heads = ["value"] if len(models) == 1 else models
    print_table(["metric", *(cell for head in heads for cell in (head, "interval"))], lines)
    if comparisons:
        write(
            f"\n{models[0]} against the others; p of the paired randomisation test, and adjusted by Holm's method:"
        )
        lines = []
        for (metric, other, one), p in zip(comparisons, adjusted, strict=True):
            count = f"{one.wins}/{one.losses}/{one.ties}" if one.wins + one.losses + one.ties else "-"
            values = [p_text(value).removeprefix("= ") for value in (one.p_value, p)]
            difference = [f"{one.difference.value:+.4f}", _brackets(one.difference, "+")]
            lines.append([metric, other, *difference, count, *values])
        heads = ["metric", "against", "difference", "interval", "better/worse/same", "p", "adjusted"]
        print_table(heads, lines, left=(0, 1))
    gathered: dict[str, list[str]] = {}  # metrics that differ in their cutoff alone
    for name, words in conventions.items():
        text = words.partition(": ")[2] or words
        text = text.replace(f"the first {name.partition('@')[2]};", "the first k;")
        gathered.setdefault(text, []).append(name)
    write("\nconventions")
    for words, own in gathered.items():
        write(f"  {', '.join(own)}: {words}")


def _brackets(interval: Interval, sign: str = "") -> str:
    return f"[{interval.low:{sign}.3f}, {interval.high:{sign}.3f}]" if math.isfinite(interval.low) else ""


def _write_per_query(judge: ByLabels, scores: dict[str, Floats], target: str) -> None:
    columns = {
        f"{name} {metric.name}" if len(scores) > 1 else metric.name: judge.per_query(metric, values).values
        for name, values in scores.items()
        for metric in judge.metrics
    }
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["qid", "rows", *columns])
    rows = zip(judge.queries.ids.tolist(), judge.queries.sizes.tolist(), strict=True)
    for at, (qid, size) in enumerate(rows):
        cells = (float(column[at]) for column in columns.values())
        writer.writerow([qid, size, *("" if math.isnan(value) else repr(value) for value in cells)])
    with output_stream(target) as stream:
        stream.write(text.getvalue().encode())
