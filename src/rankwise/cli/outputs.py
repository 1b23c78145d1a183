"""Files that are written: never over something that is there, unless told to, and never half."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from rankwise.cli.mistakes import UsageError
from rankwise.cli.printing import to_standard_output
from rankwise.exceptions import InvalidInputError
from rankwise.files import place_of, replacing

__all__ = ["check_target", "output_stream", "score_target"]


_TARGETS = {".csv": "csv", ".tsv": "tsv", ".parquet": "parquet", ".run": "trec", ".trec": "trec"}


def check_target(target: str | None, *, force: bool, is_store: bool = False) -> None:
    """Refuse a target before any work is done: one that is there already, or whose folder is not."""
    if target is None or target == "-":
        return
    path = place_of(target)  # links are followed
    if path.is_dir() and not is_store:
        raise InvalidInputError(f"{target} is a folder.", "name a file.")
    if path.exists() and not force:
        raise InvalidInputError(
            f"{target} is already there, and was left as it is.",
            "add --force to replace it, or choose another name.",
        )
    if not path.parent.is_dir():
        raise InvalidInputError(
            f"{target} cannot be written: there is no folder {path.parent}.", "make the folder first."
        )
    if not os.access(path.parent, os.W_OK):
        raise InvalidInputError(
            f"{target} cannot be written: permission denied in {path.parent}.", "choose another folder."
        )


def score_target(options: argparse.Namespace) -> str:
    """Return what `predict` writes: what was asked for, or what the ending says."""
    ending = Path(options.output).suffix.lower()
    if options.to is None and ending in {".xlsx", ".xls", ".json", ".arrow", ".feather", ".store"}:
        raise UsageError(
            f"{options.output}: predict writes no {ending} files.",
            "end it in .csv, .tsv, .parquet or .run, or in .txt for one score per line.",
        )
    return options.to or _TARGETS.get(ending, "scores")


@contextmanager
def output_stream(target: str) -> Iterator[BinaryIO]:
    """Open a target for writing bytes: standard output, or a file that appears once it is complete."""
    if target == "-":
        with to_standard_output():
            yield sys.stdout.buffer
            sys.stdout.buffer.flush()
    else:
        with replacing(target) as stream:
            yield stream
