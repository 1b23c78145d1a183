"""``rankwise fit``: choose everything that was not said, train, save, and say what was chosen."""

from __future__ import annotations

import argparse
import shlex
import time
from pathlib import Path

import scipy.sparse

import rankwise
from rankwise.cli.applicable import check_applicable
from rankwise.cli.checks import check_trainable, check_valid
from rankwise.cli.choosing import Choice, choose
from rankwise.cli.columns import recall
from rankwise.cli.encoding import encoded, encoding_lines
from rankwise.cli.inputs import Rows, read_rows, stored, widen
from rankwise.cli.outputs import output_stream
from rankwise.cli.printing import (
    figure,
    print_facts,
    print_json,
    print_table,
    remark,
    show_warnings,
    size_of,
    write,
)
from rankwise.data.columns import column_name
from rankwise.data.containers import pays_as_array
from rankwise.data.summary import constant_inside_queries, of_query_columns
from rankwise.exceptions import InvalidInputError
from rankwise.exporters.targets import exportable_to
from rankwise.formula.reading import formula_of
from rankwise.persistence import save

__all__ = ["choice_json", "chosen_facts", "print_encoding", "print_tried", "read_train_and_valid", "run"]


def run(options: argparse.Namespace) -> int:
    """Fit and save."""
    show_warnings()
    start = time.perf_counter()
    train, valid = read_train_and_valid(options)
    choice = choose(train, valid, options)
    if train.encoder is not None:
        from rankwise.automatic.ranker import keep_encoder  # noqa: PLC0415 - `choose` has imported it by now

        keep_encoder(choice.ranker, train.encoder)
    notes = {
        "command": options.line,
        "train": train.describe(),
        "valid": None if valid is None else valid.describe(),
        "feature_names": train.names,
        "first_column": train.counts_from,
        "reading": train.reading,
        "columns": encoding_lines(train) or None,
        "is_dense": not scipy.sparse.issparse(train.X),
        **choice_json(choice, times=False),  # the same data give the same file
    }
    with output_stream(options.output) as stream:
        save(choice.ranker, stream, notes=notes)
    seconds = time.perf_counter() - start
    if options.output == "-":
        return 0
    if options.json:
        print_json(
            {
                **notes,
                **choice_json(choice),
                "train": train.facts(),
                "valid": None if valid is None else valid.facts(),
                "model": options.output,
                "runs_in": _targets(choice),
                "seconds": round(seconds, 3),
                "rankwise": rankwise.__version__,
            }
        )
        return 0
    print_facts({"train": train.describe()})
    print_encoding(train)
    print_facts({"scored by": f"{choice.scored_by}, {choice.metric.name}"})
    write(f"           {choice.convention}")
    write()
    print_tried(choice)
    write()
    size = Path(options.output).stat().st_size
    print_facts(
        {
            **chosen_facts(choice),
            "runs in": ", ".join(_targets(choice)) or "Python with rankwise",
            "wrote": f"{options.output}: {size_of(size)}, in {seconds:.1f} s in all",
        }
    )
    write(f"\nNext: rankwise evaluate {shlex.quote(options.output)} TEST{_as_trained(options)}")
    return 0


def _targets(choice: Choice) -> list[str]:
    """Return what the model can be exported to; `--for` keeps to what one of these can run."""
    try:
        return exportable_to(formula_of(choice.ranker))
    except InvalidInputError:  # words have no formula in columns
        return []


def read_train_and_valid(options: argparse.Namespace) -> tuple[Rows, Rows | None]:
    """Read the files that `fit` and `select` name; both get the same columns."""
    check_applicable(options)
    train = read_rows(options.data, options)
    is_dense = pays_as_array(train.X)
    train = check_trainable(stored(train, is_dense=is_dense))
    for text in train.remarks:
        remark(text)
    _remark_on_queries(train)
    if options.valid is None:
        return train, None
    own = recall(options, {"reading": train.reading}, encoders=[train.encoder])
    if train.pairs is None:
        # Rows to validate on count alike, and need no column of weights.
        own.weight, own.given = None, own.given - {"weight"}
    read = read_rows(options.valid, own, first_column=train.counts_from)
    valid = check_valid(read if train.encoder is None else encoded(read, train.encoder), train)
    train, valid = _same_columns(train, valid)
    return stored(train, is_dense=is_dense), stored(valid, is_dense=is_dense)


def _remark_on_queries(train: Rows) -> None:
    """Name columns that no ranker can use."""
    if train.qid is None or len(train.queries) < 2:
        return
    found = constant_inside_queries(train.X, train.queries)
    if found:
        names = [train.names[j] if train.names else column_name(j, train.first_column) for j in found[:5]]
        more = ", …" if len(found) > len(names) else ""
        words = of_query_columns(len(found), train.X.shape[1])
        remark(f"{words} ({', '.join(names)}{more})")


def _same_columns(train: Rows, valid: Rows) -> tuple[Rows, Rows]:
    counts = {train.counts_from, valid.counts_from}
    if counts == {0, 1}:
        raise InvalidInputError(
            f"{valid.source} and {train.source} do not both count their columns from 0, or both from 1.",
            "give both the same columns; for text, --zero-based says from what they count.",
        )
    if None in counts or train.first_column is None or train.X.shape[1] == valid.X.shape[1]:
        has_names = train.names is not None or valid.names is not None
        if has_names and train.column_names() != valid.column_names():
            raise InvalidInputError(
                f"{valid.source} has other columns than {train.source}.",
                "give both the same columns, in the same order.",
            )
        return train, valid
    width = max(train.X.shape[1], valid.X.shape[1])  # text does not write zeros: last columns may not occur
    return widen(train, width), widen(valid, width)


def print_encoding(rows: Rows) -> None:
    """Print what was done with each column of a table, where anything had to be."""
    for number, line in enumerate(encoding_lines(rows)):
        print_facts({"columns" if number == 0 else "       ": line})


def print_tried(choice: Choice) -> None:
    """Print what was tried, and mark the choice."""
    board = choice.ranker.candidates_
    print_table(board.header(), board.lines(), left=(0, 1))
    for line in board.remarks():
        write(line)


def chosen_facts(choice: Choice) -> dict[str, str]:
    """Name the choice for a reader, and say what its figure is worth."""
    best, ranker = choice.best, choice.ranker
    facts = {"chose": best.summary}
    facts |= {" " * number: f"- {part}" for number, part in enumerate(best.parts, 1)}
    board = ranker.candidates_
    if hasattr(ranker, "nested_score_"):
        facts["expect"] = (
            f"{choice.metric.name} {figure(ranker.nested_score_)} ± {figure(ranker.nested_error_)} on new data: outer "
            "folds that took no part in the choice"
        )
    elif len(board) > 1:
        facts["expect"] = (
            "a little worse than its figure, which was selected on the same rows (--nested says what)"
        )
    for number, words in enumerate(ranker.skipped_):
        facts[f"left out{' ' * number}"] = words
    return facts


def choice_json(choice: Choice, *, times: bool = True) -> dict[str, object]:
    """Name the choice for a machine."""
    ranker = choice.ranker
    nested = (
        {"nested": {"value": ranker.nested_score_, "standard_error": ranker.nested_error_}}
        if hasattr(ranker, "nested_score_")
        else {}
    )
    return {
        "metric": choice.metric.name,
        "convention": choice.convention,
        "judged_by": choice.scored_by,
        "prefer": ranker.prefer,
        "skipped": ranker.skipped_,
        **nested,
        "constant": ranker.candidates_.constant,
        "is_clear": ranker.candidates_.is_clear,
        "tried": [
            {**{key: value for key, value in row.items() if key != "is_chosen"}, "chosen": row["is_chosen"]}
            for row in ranker.candidates_.as_dicts(times=times)
        ],
    }


def _as_trained(options: argparse.Namespace) -> str:
    """Return the options by which data like those at hand are read again; a model remembers those of its columns."""
    named = {
        f"--{name.replace('_', '-')}": getattr(options, name, None)
        for name in ("items", "clicks", "click_columns", "propensity", "max_weight")
    }
    return "".join(f" {name} {shlex.quote(f'{value}')}" for name, value in named.items() if value is not None)
