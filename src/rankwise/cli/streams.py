"""Standard input and output that are not there, or are named as files."""

from __future__ import annotations

import argparse
import os
import sys

from rankwise.cli.mistakes import UsageError
from rankwise.exceptions import InvalidInputError, OutputError

__all__ = ["MODEL_START", "begins_model", "check_streams", "is_standard_output", "never_closed"]

_NAMES = {"/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"}


def never_closed() -> None:
    """Open what the shell closed (``>&-``) on nothing, or the next file that is opened would get its number."""
    if sys.stdin is None or sys.stdout is None or sys.stderr is None:
        while (number := os.open(os.devnull, os.O_RDWR)) < 3:  # the smallest that is free
            pass
        os.close(number)
    if sys.stdout is None:
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123, SIM115 - as long as the process
        sys.stdout.is_closed = True  # type: ignore[attr-defined]
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123, SIM115 - as long as the process


def check_streams(options: argparse.Namespace) -> None:
    """Refuse, before any work is done, to read or write what is closed; remarks alone are not missed."""
    # A lone -- leaves nothing to read; only judgments of runs need no data.
    is_of_runs = getattr(options, "qrels", None) is not None or getattr(options, "run", None)
    if getattr(options, "data", None) == [] and not is_of_runs:
        raise UsageError(
            "Missing DATA: which files hold the rows?", "name them after the model, such as test.txt."
        )
    is_result = getattr(options, "json", False) or getattr(options, "output", None) in {None, "-"}
    if getattr(sys.stdout, "is_closed", False) and is_result:
        raise OutputError("Standard output is closed.", "leave it open, or name a file with -o.")
    if sys.stdin is None and "-" in {
        getattr(options, "model", None),
        *(getattr(options, "data", None) or []),
    }:
        raise InvalidInputError("Standard input is closed.", "name a file.")


def is_standard_output(target: str | None) -> bool:
    """Tell whether a file is the one that is open already: it must not be replaced, for others hold it."""
    return target in _NAMES


MODEL_START = 40  # bytes; known here because looking at data should not import every estimator


def begins_model(start: bytes) -> bool:
    """Tell from its first bytes whether a file is a model file: a zip archive that begins with the model's JSON."""
    return start[:4] == b"PK\3\4" and start[30:MODEL_START] == b"model.json"
