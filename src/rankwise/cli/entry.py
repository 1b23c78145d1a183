"""From the arguments to an exit code: 0 fine, 1 the work failed, 2 usage, 130 interrupted."""

from __future__ import annotations

import argparse
import glob
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path

from rankwise.cli.mistakes import UsageError
from rankwise.cli.outputs import check_target
from rankwise.cli.parser import parse
from rankwise.cli.printing import complain, to_standard_output
from rankwise.cli.remedies import hint_of
from rankwise.cli.streams import MODEL_START, begins_model, check_streams, is_standard_output, never_closed
from rankwise.exceptions import (
    InvalidInputError,
    MissingQueriesError,
    ModelFileError,
    NoPairsError,
    RankwiseError,
    UndefinedMetricError,
)

__all__ = ["main"]

_FAILED, _USAGE, _INTERRUPTED, _PIPE_CLOSED = 1, 2, 130, 141


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command.

    Parameters
    ----------
    argv : sequence of str, optional
        The arguments after the program's name; by default those of the process.

    Returns
    -------
    int
        The exit code.
    """
    never_closed()
    try:
        return _run(sys.argv[1:] if argv is None else list(argv))
    except KeyboardInterrupt:
        complain("interrupted.")
        return _INTERRUPTED


def _run(argv: list[str]) -> int:
    options = argparse.Namespace()
    try:
        options = parse(argv)
        _check_files(options)
        command = import_module(f"rankwise.cli.commands.{options.command}")
        if "data" in options:
            import_module("rankwise.cli.packages").check_packages(options)
        code: int = command.run(options)
        with to_standard_output():
            sys.stdout.flush()
    except BrokenPipeError:
        # Whoever read our output has seen enough; what Python flushes at the end must not complain either.
        _drop_output()
        return _PIPE_CLOSED
    except RankwiseError as error:
        _drop_output()
        model = None if isinstance(error, UsageError) else _model_among_data(options)
        if model is not None and isinstance(error, ModelFileError) and "model" in options:
            complain(f"{options.model} is not a rankwise model.", "did you swap MODEL and DATA?")
        elif model is not None and not isinstance(error, ModelFileError):
            complain(
                f"{model} is a rankwise model, not data.",
                "name the file with the rows in its place; rankwise inspect says what a model holds.",
            )
        else:
            complain(_of_files(error, options), hint_of(error))
        return _USAGE if isinstance(error, UsageError) else _FAILED
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        complain(f"{where}{error.strerror or error}.", _remedy(error))
        return _FAILED
    except MemoryError:
        complain(
            "the data do not fit in memory.",
            "use fewer rows, or convert them to a store: rankwise convert --help.",
        )
        return _FAILED
    except RuntimeError as error:
        if "start new thread" not in str(error):
            raise
        complain(
            "the system lets this process start no more threads.",
            "allow it more (ulimit -u, or pids.max of its control group), or run fewer processes beside it.",
        )
        return _FAILED
    return code


def _drop_output() -> None:
    """Have what cannot be written to standard output go nowhere: Python would try again at its end."""
    try:
        sys.stdout.flush()
    except OSError:
        with suppress(OSError):  # a stream without a descriptor is somebody else's
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _check_files(options: argparse.Namespace) -> None:
    """Say at once, before anything is imported, that a file is not there, or is there already."""
    _check_output(options)
    check_streams(options)
    for option in ("output", "plot", "per_query"):
        if is_standard_output(getattr(options, option, None)):
            setattr(options, option, "-")
    named: list[str] = []
    for option in ("model", "data", "valid", "against", "items", "run", "qrels", "sample"):
        value = getattr(options, option, None)
        named += [] if value is None else [value] if isinstance(value, str) else value
    if named.count("-") > 1:
        raise UsageError("Standard input is named twice.", "read one of the two from a file.")
    for path in named:
        if path != "-" and not glob.has_magic(path):
            Path(path).stat()
    read = [Path(path) for path in named if path != "-" and Path(path).exists()]
    for option in ("output", "plot", "per_query"):
        target = getattr(options, option, None)
        if target not in {None, "-"} and Path(target).exists() and any(map(Path(target).samefile, read)):
            raise InvalidInputError(f"{target} would be read and written.", "write to another file.")
    for option in () if options.command in {"convert", "demo"} else ("output", "plot", "per_query"):
        check_target(getattr(options, option, None), force=getattr(options, "force", False))


def _check_output(options: argparse.Namespace) -> None:
    if options.command == "fit" and options.output is None:
        raise UsageError("Missing -o: where should the model be saved?", "add -o model.rw.")
    if options.command == "explain" and options.output is None:
        return  # what is explained is what is printed
    if getattr(options, "json", False) and "output" in options and options.output in {None, "-"}:
        if options.command == "fit":
            raise UsageError("The model and the JSON would both go to standard output.", "add -o model.rw.")
        raise UsageError("--json says what was written to a file, and none is named.", "add -o FILE.")


def _model_among_data(options: argparse.Namespace) -> Path | None:
    """Return the model that stands where data are expected, if there is one."""
    for file in map(Path, getattr(options, "data", None) or ()):
        if file.is_file():
            with file.open("rb") as stream:
                if begins_model(stream.read(MODEL_START)):
                    return file
    return None


def _of_files(error: RankwiseError, options: argparse.Namespace) -> str:
    """Name the file that labels or queries are wrong in, where the library only saw arrays."""
    named = ["standard input" if file == "-" else file for file in getattr(options, "data", [])]
    if error.about == "y_true":
        return f"the file {' and '.join(named)} {error.predicate}"
    is_of_rows = isinstance(error, (NoPairsError, MissingQueriesError, UndefinedMetricError))
    if error.names_file or not named or not is_of_rows:
        return error.problem
    return f"{', '.join(named)}: {error.problem}"


def _remedy(error: OSError) -> str:
    if isinstance(error, FileNotFoundError):
        return "check the path."
    if isinstance(error, PermissionError):
        return "check that you may read it, and write where the output goes."
    if isinstance(error, IsADirectoryError):
        return "name a file, not a folder."
    return "check the path and the disk."
