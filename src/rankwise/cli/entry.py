"""Entry point: parse arguments, run a command and return an exit code.

0 is success, 1 a failure (a full disk, too little memory), 2 a wrong command or invalid input, 130 an interrupt, and
141 means that the reader of standard output left, as ``head`` does.
"""

from __future__ import annotations

import argparse
import glob
import os
import shlex
import sys
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any, NoReturn

import rankwise
from rankwise.cli.printing import check_target, complain, show_warnings, to_standard_output
from rankwise.exceptions import InvalidInputError, OutputError, RankwiseError, visible

_FAILED, _INVALID, _INTERRUPTED, _PIPE_CLOSED = 1, 2, 130, 141

# Each command with a summary; its module is rankwise.cli.commands.NAME.
COMMANDS = {
    "demo": "see everything work on generated searches",
    "inspect": "show what a data file or a model contains, and its problems",
    "convert": "convert between text, tables and stores",
    "fit": "choose and train a model, and save it",
    "evaluate": "evaluate a model by every metric, with intervals; compare models",
    "predict": "score rows: plain scores, a table, or a TREC run",
    "explain": "show how much each column adds to a score, or to a difference",
    "report": "write one HTML page about a model",
    "export": "write a model for other programs",
    "leaderboard": "rank items from battles, with intervals of strengths and places",
}
_INPUTS = ("model", "data", "eval_set", "against", "items")
_OUTPUTS = ("output", "per_query")
_REMEDIES: dict[type, str] = {
    FileNotFoundError: "check the path.",
    PermissionError: "check that you may read it, and write where the output goes.",
    IsADirectoryError: "name a file, not a folder.",
}
_STANDARD_OUTPUT = {"/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"}


class _Parser(argparse.ArgumentParser):
    """A parser with short errors that suggest the option that was probably meant."""

    def __init__(self, **options: Any) -> None:
        super().__init__(formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False, **options)

    def error(self, message: str) -> NoReturn:
        """Print the error in the arguments, and exit with code 2."""
        sys.stderr.write(f"rankwise: error: {visible(message)}\nHint: see `{self.prog} --help`.\n")
        sys.exit(_INVALID)


def build_parser(command: str) -> argparse.ArgumentParser:
    """Return the parser of one command."""
    summary = COMMANDS[command]
    parser = _Parser(prog=f"rankwise {command}", description=f"{summary[0].upper()}{summary[1:]}.")
    import_module(f"rankwise.cli.commands.{command}").add_arguments(parser)
    arguments = [action.metavar or "" for action in parser._actions if not action.option_strings]  # noqa: SLF001
    parser.usage = f"%(prog)s [options] {' '.join(map(str, arguments))}"
    return parser


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
    for name in ("stdout", "stderr"):  # closed by the shell (``>&-``)
        setattr(sys, name, getattr(sys, name) or open(os.devnull, "w", encoding="utf-8"))  # noqa: PTH123, SIM115
    try:
        return _run(sys.argv[1:] if argv is None else list(argv))
    except KeyboardInterrupt:
        complain("interrupted.")
        return _INTERRUPTED


def _run(arguments: list[str]) -> int:
    try:
        options = _parse(arguments)
        _check_files(options)
        show_warnings()
        code: int = import_module(f"rankwise.cli.commands.{options.command}").run(options)
        with to_standard_output():
            sys.stdout.flush()
    except BrokenPipeError:
        _drop_output()
        return _PIPE_CLOSED
    except RankwiseError as error:
        _drop_output()
        complain(error.problem, error.hint)
        return _FAILED if isinstance(error, OutputError | MemoryError) else _INVALID
    except OSError as error:
        complain(
            f"{f'{error.filename}: ' if error.filename else ''}{error.strerror or error}.",
            _REMEDIES.get(type(error), "check the path and the disk."),
        )
        return _INVALID if type(error) in _REMEDIES else _FAILED
    except MemoryError:
        complain(
            "The data do not fit in memory.", "use fewer rows, or a store: see `rankwise convert --help`."
        )
        return _FAILED
    return code


def _parse(arguments: list[str]) -> argparse.Namespace:
    command = arguments[0] if arguments else "--help"
    if command in {"-h", "--help", "help"}:
        sys.stdout.write(_overview())
        sys.exit(0 if arguments else _INVALID)
    if command == "--version":
        sys.stdout.write(f"rankwise {rankwise.__version__}\n")
        sys.exit(0)
    if command not in COMMANDS:
        _Parser(prog="rankwise").error(f"there is no command {command}{_suggestion(command, [*COMMANDS])}")
    parser = build_parser(command)
    known = parser._option_string_actions  # noqa: SLF001 - argparse has no public list
    for argument in arguments[1:]:
        word = argument.partition("=")[0]
        if word.startswith("--") and word != "--" and word not in known:  # before errors that a typo causes
            parser.error(f"{command} has no option {word}{_suggestion(word, [*known])}")
    options = parser.parse_args(arguments[1:])
    if getattr(options, "data", None) == []:  # argparse takes a second -- for the file
        parser.error("the following arguments are required: DATA")
    options.command, options.line = command, shlex.join(["rankwise", *arguments])
    return options


def _suggestion(word: str, known: Sequence[str]) -> str:
    from difflib import get_close_matches  # noqa: PLC0415 - only after a typo

    bare = {name.lstrip("-"): name for name in known}
    close = get_close_matches(word.lstrip("-").lower(), bare, n=1)
    return f"; did you mean {bare[close[0]]}?" if close else ""


def _overview() -> str:
    width = max(map(len, COMMANDS))
    lines = "\n".join(f"  {name.ljust(width)}  {summary}" for name, summary in COMMANDS.items())
    return (
        "usage: rankwise COMMAND ...\n\nLearn to rank: from files to a chosen, evaluated, saved model.\n\n"
        f"commands:\n{lines}\n\nexamples:\n"
        "  rankwise demo -o data                   # generated searches to try\n"
        "  rankwise fit data/train.txt --eval-set data/vali.txt -o model.rw\n"
        "  rankwise evaluate model.rw data/test.txt\n"
        "  rankwise report model.rw data/test.txt -o report.html\n\n"
        "`rankwise COMMAND --help` shows examples and options.\n"
    )


def _check_files(options: argparse.Namespace) -> None:
    """Report a missing input, or an output that exists, before any work is done."""
    for name in _OUTPUTS:
        if getattr(options, name, None) in _STANDARD_OUTPUT:  # must not be replaced by a file
            setattr(options, name, "-")
    given = [getattr(options, name, None) or [] for name in _INPUTS]
    inputs = [path for one in given for path in ([one] if isinstance(one, str) else one)]
    if inputs.count("-") > 1:
        raise InvalidInputError("Standard input is named twice.", "read one of the two from a file.")
    if "-" in inputs and sys.stdin is None:
        raise InvalidInputError("Standard input is closed.", "name a file.")
    files = [Path(path) for path in inputs if path != "-" and not glob.has_magic(path)]
    for file in files:
        file.stat()
    for name in _OUTPUTS:
        target = getattr(options, name, None)
        if target not in {None, "-"} and Path(target).exists() and any(map(Path(target).samefile, files)):
            raise InvalidInputError(f"{target} would be read and written.", "write to another file.")
        if options.command not in {"convert", "demo"}:  # which may write folders
            check_target(target, force=getattr(options, "force", False))


def _drop_output() -> None:
    """Discard output that cannot be written, which Python would try to write again at its end."""
    try:
        sys.stdout.flush()
    except OSError:
        with suppress(OSError):  # a stream without a descriptor belongs to the caller
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
