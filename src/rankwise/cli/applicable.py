"""Options of reading that say nothing about the files that are read: a typo, or the wrong file."""

from __future__ import annotations

import argparse
from collections.abc import Collection

from rankwise.cli.clicks import check_clicks
from rankwise.cli.inputs import kind_of
from rankwise.cli.mistakes import UsageError
from rankwise.cli.outputs import score_target

__all__ = ["check_applicable", "check_data_only"]

_OF_TABLES = frozenset(
    {"label", "qid", "features", "embedding", "weight", "id", "category", "words", "cross"}
)
_OF_PREFERENCES = frozenset({"item_id", "winner", "loser", "magnitude"})
_OF_TEXT = frozenset({"zero_based", "columns", "longest_line"})
# What writes rows again, or scores them, has no use for their weights.
_WEIGHS = frozenset({"fit", "select", "evaluate", "inspect"})
_WORDS = {"text": "text", "store": "a store", "table": "a table"}


def check_applicable(options: argparse.Namespace) -> None:
    """Raise where an option was given that would change nothing."""
    given = _given(options)
    check_clicks(options)
    files = [*options.data, *(getattr(options, "valid", None) or [])]
    kinds = {"table"} if options.items else {kind_of(path, options.format) for path in files}
    is_what = f"{'standard input' if files[0] == '-' else files[0]} is {_WORDS[min(kinds)]}"
    target = (options.to or kind_of(options.output)) if options.command == "convert" else None
    if options.items is None:
        _refuse(
            given & (_OF_PREFERENCES - ({"item_id"} if "table" in kinds and _names_rows(options) else set())),
            "names a column of preferences, and without --items there are none",
            "add --items FILE, a table of what is compared, or leave it out"
            + ("; --id COLUMN names a column of row ids." if hasattr(options, "id") else "."),
        )
        if options.command not in _WEIGHS:
            _refuse(
                given & {"weight"},
                f"is for training and evaluation, and {options.command} does not weigh rows",
                "leave it out; --features says which columns are read.",
            )
    else:
        _refuse(
            given & {"label", "qid"},
            "is for rows with labels, and with --items the data are preferences",
            "leave it out; --winner, --loser and --item-id name the columns of preferences.",
        )
        if options.format in {"text", "store"}:
            raise UsageError(f"--format {options.format}: preferences are tables.", "leave --format out.")
    if "table" not in kinds:
        _refuse(
            # A table that is written gets the names.
            given & _OF_TABLES - ({"label", "qid"} if target == "table" else set()),
            f"names a column of a table, and {is_what}",
            "leave it out; if the file is a table, add --format table.",
        )
    if "text" not in kinds:
        _refuse(
            # A store keeps from what its columns count.
            given & _OF_TEXT - ({"zero_based"} if target == "store" and "table" in kinds else set()),
            f"is for text, and {is_what}",
            "leave it out.",
        )
    if kinds == {"store"} and options.missing == "zero":
        raise UsageError(
            f"--missing zero does not change what was written, and {is_what}.",
            "convert what it was made of again, with --missing zero.",
        )


def _names_rows(options: argparse.Namespace) -> bool:
    """Tell whether the command says something of single rows, which it calls by their ids."""
    return options.command in {"convert", "explain", "report"} or (
        options.command == "predict" and score_target(options) != "scores"
    )


def check_data_only(options: argparse.Namespace) -> None:
    """Raise where options that say how data are read were given for a model."""
    _refuse(
        _given(options) | ({"items"} if options.items else set()),
        f"says how data are read, and {options.data[0]} is a model",
        "leave it out.",
    )


def _given(options: argparse.Namespace) -> set[str]:
    found = set(options.given)
    found |= {"zero_based"} if options.zero_based != "auto" else set()
    return found | {name for name in ("columns", "longest_line") if getattr(options, name) is not None}


def _refuse(roles: Collection[str], why: str, hint: str) -> None:
    for role in sorted(roles):
        raise UsageError(f"--{role.replace('_', '-')} {why}.", hint)
