"""``rankwise fit``: choose the settings that the options leave open, train, save, and print the choice."""

from __future__ import annotations

import argparse
import shlex
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rankwise.cli.options import add_columns, add_data, add_output, add_reading, names, positive, seconds
from rankwise.cli.printing import (
    figure,
    output_stream,
    print_facts,
    print_json,
    print_table,
    remark,
    size_of,
    write,
)
from rankwise.exceptions import InvalidInputError

if TYPE_CHECKING:
    from rankwise.automatic.ranker import AutoRanker
    from rankwise.cli.reading import Data


def _numbers(text: str) -> list[float]:
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text} is not a list of numbers") from None


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.epilog = (
        "examples:\n"
        "  rankwise fit train.txt --eval-set vali.txt -o model.rw\n"
        "  rankwise fit train.parquet --label grade --qid search -o model.rw\n"
        "  rankwise fit duels.csv --items items.csv -o model.rw\n"
        "  rankwise fit train.txt --methods rls,curves --scoring average_precision --time-limit 5m -o model.rw\n"
        "  rankwise fit train.txt --target solr -o model.rw"
    )
    add_data(parser, model=False)
    add_output(parser, "the model file")
    add = parser.add_argument_group("choosing (by default everything is chosen)").add_argument
    add("--eval-set", action="append", metavar="FILE", help="rows to score candidates on, instead of folds")
    add("--scoring", metavar="METRIC", help="the metric to choose by, such as ndcg@10 or average_precision")
    add(
        "--methods", type=names, metavar="A,B",
        help="rls (squared loss), svm (hinge), svm-squared, logistic (preferences), curves, surfaces, kernel",
    )  # fmt: skip
    add(
        "--prefer",
        choices=("readable", "accuracy"),
        help="the simplest good model (default), or the most accurate",
    )
    add("--alphas", type=_numbers, metavar="A,B", help="the grid of regularisation, or one value")
    add("--cv", type=positive, metavar="N", help="the number of folds")
    add(
        "--time-limit",
        type=seconds,
        metavar="5m",
        help="stop after this time, with the best candidate (60s, 5m, 1h)",
    )
    add(
        "--target",
        metavar="NAME",
        help="only models that can be exported to this target, such as solr or sqlite",
    )
    add("--verbose", action="store_true", help="print all candidates, not only the best of each form")
    parser.add_argument("--json", action="store_true", help="print JSON")
    add_columns(parser)
    add_reading(parser)


def run(options: argparse.Namespace) -> int:
    """Fit and save."""
    from rankwise.persistence import save

    if options.output is None:
        raise InvalidInputError("No output file was given for the model.", "add -o model.rw.")
    if options.json and options.output == "-":
        raise InvalidInputError(
            "The model and the JSON would both go to standard output.", "add -o model.rw."
        )
    start = time.perf_counter()
    train, valid = _read(options)
    ranker = _fit(train, valid, options)
    found = ranker.candidates_
    encoder = ranker.encoder_
    columns = train.names or (None if encoder is not None else getattr(ranker, "feature_names_in_", None))
    notes = {
        "command": options.line,
        "train": train.describe(),
        "valid": None if valid is None else valid.describe(),
        "roles": None if train.roles is None else train.roles.saved(),
        "feature_names": None if columns is None else [str(name) for name in columns],
        "first_column": train.counts_from,
        "metric": ranker.metric_.name,
        "scored_by": ranker.cv_ if valid is None else valid.source,
    }
    with output_stream(options.output) as stream:
        save(ranker, stream, notes=notes)
    if options.output == "-":
        return 0
    spent = time.perf_counter() - start
    if options.json:
        more = {
            "train": train.facts(),
            "valid": None if valid is None else valid.facts(),
            "model": options.output,
            "constant": found.constant,
            "is_clear": found.is_clear,
            "tried": [{**row, "chosen": row["is_chosen"]} for row in found.as_dicts(times=False)],
        }
        if hasattr(ranker, "expected_score_"):
            more["expected"] = {"value": ranker.expected_score_, "interval": ranker.expected_interval_}
        print_json(
            {**notes, **more, "runs_in": _targets(ranker), "skipped": ranker.skipped_, "seconds": spent}
        )
        return 0
    facts: dict[str, Any] = {"train": train.describe()}
    if encoder is not None:
        facts["columns"] = encoder.describe()
    facts["scored by"] = [f"{notes['scored_by']}, {ranker.metric_.name}", _convention(ranker, train)]
    print_facts(facts)
    write()
    print_table(found.header(), found.lines(every=options.verbose), left=(0, 1))
    for line in found.remarks():
        write(line)
    write()
    size = size_of(Path(options.output).stat().st_size)
    print_facts(_chosen(ranker) | {"wrote": f"{options.output}: {size}, in {spent:.1f} s"})
    items = f" --items {shlex.quote(options.items)}" if options.items else ""
    write(f"\nNext: rankwise evaluate {shlex.quote(options.output)} TEST{items}")
    return 0


def _convention(ranker: AutoRanker, train: Data) -> str:
    from rankwise.report.evidence import OF_PAIRS

    return OF_PAIRS if train.pairs is not None else ranker.metric_.describe()


def _read(options: argparse.Namespace) -> tuple[Data, Data | None]:
    """Read the training rows, and those to score candidates on."""
    from rankwise.cli.reading import read_data
    from rankwise.data.columns import some_names

    train = read_data(options.data, options)
    roles = train.roles
    if roles is not None and options.items is None:
        apart = [name or "the column without a name" for name in roles.ids if name not in (options.id or ())]
        if apart or roles.queries:
            names = some_names([*apart, *roles.queries])
            remark(f"not learned from: {names} (names of rows or queries; --features lists features)")
        if roles.unused:
            remark(f"not used: {some_names(list(roles.unused))}")
    return (train, None) if options.eval_set is None else _read_valid(train, options)


def _read_valid(train: Data, options: argparse.Namespace) -> tuple[Data, Data]:
    """Read rows to score candidates on with the columns of the training rows, and give both the same width."""
    from rankwise.cli.reading import read_data, widened

    own = argparse.Namespace(**vars(options))
    if train.pairs is None:
        own.weight = None  # rows to score on count alike
    if train.roles is not None and not train.is_duels:
        own.features = list(train.roles.features) or None
        own.categories = [*options.categories, *train.roles.of_kind("text")]
        own.encodes = _is_table(train)
    elif train.first_column is not None and options.zero_based is None:
        own.zero_based = "true" if train.first_column == 0 else "false"
    valid = read_data(options.eval_set, own)
    if _is_table(train) or _is_table(valid):
        return train, valid
    width = max(train.shape[1], valid.shape[1])  # text does not store zeros: the last columns may not occur
    train, valid = widened(train, width), widened(valid, width)
    is_named = train.names or valid.names or train.first_column != valid.first_column
    if is_named and train.column_names() != valid.column_names():
        raise InvalidInputError(
            f"{valid.source} has other columns than {train.source}.",
            "give both the same columns; text: set --zero-based.",
        )
    return train, valid


def _is_table(data: Data) -> bool:
    return hasattr(data.X, "column_names")


def _fit(train: Data, valid: Data | None, options: argparse.Namespace) -> AutoRanker:
    from rankwise.automatic.ranker import AutoRanker
    from rankwise.cli.reading import naming
    from rankwise.preprocessing import TableEncoder

    chosen = ("scoring", "prefer", "methods", "alphas", "cv", "time_limit", "target", "n_threads")
    given: dict[str, Any] = {name: getattr(options, name) for name in chosen}
    declared = {name: getattr(options, name) for name in ("categories", "words", "crosses")}
    if _is_table(train) and (not train.is_duels or any(declared.values())):
        given["encoder"] = TableEncoder(**declared)
    ranker = AutoRanker(**{name: value for name, value in given.items() if value is not None})
    files = train.source if valid is None else f"{train.source}, {valid.source}"
    with naming(files):
        scored = None if valid is None else valid.eval_set()
        if train.pairs is not None:
            return ranker.fit_pairs(train.X, train.pairs, train.magnitude, train.weight, eval_set=scored)
        return ranker.fit(train.X, train.labels, train.qid, sample_weight=train.weight, eval_set=scored)


def _chosen(ranker: AutoRanker) -> dict[str, Any]:
    chosen = ranker.candidates_.chosen
    facts: dict[str, Any] = {"chose": [chosen.parameters, *(f"- {part}" for part in chosen.parts)]}
    if hasattr(ranker, "expected_score_"):
        low, high = ranker.expected_interval_
        facts["expect"] = (
            f"{ranker.metric_.name} {figure(ranker.expected_score_)} on new data, "
            f"95 % interval {figure(low)} to {figure(high)}"
        )
    if ranker.skipped_:
        facts["skipped"] = list(ranker.skipped_)
    return facts | {"runs in": ", ".join(_targets(ranker)) or "Python with rankwise"}


def _targets(ranker: AutoRanker) -> list[str]:
    """Return the targets that the model can be exported to."""
    from rankwise.exporters.targets import exportable_to
    from rankwise.formula.reading import formula_of

    try:
        return exportable_to(formula_of(ranker))
    except InvalidInputError:  # words have no formula in columns
        return []
