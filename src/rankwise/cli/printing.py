"""Output for readers and machines: tables, facts, remarks, errors and JSON, and files that appear whole."""

from __future__ import annotations

import json
import math
import os
import sys
import warnings
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from itertools import zip_longest
from shutil import get_terminal_size
from textwrap import wrap
from typing import BinaryIO

from rankwise.exceptions import InvalidInputError, OutputError, visible
from rankwise.files import place_of, replacing
from rankwise.json_values import json_value
from rankwise.runtime.progress import wipe

_NARROWEST = 24  # characters of a column that is wrapped


def write(text: str = "", *, to_error: bool = False) -> None:
    """Print a line; characters that the terminal cannot show become question marks."""
    wipe()
    stream = sys.stderr if to_error else sys.stdout
    encoding = stream.encoding or "utf-8"
    with nullcontext() if to_error else to_standard_output():
        stream.write(text.encode(encoding, "replace").decode(encoding) + "\n")


@contextmanager
def to_standard_output() -> Iterator[None]:
    """Raise an `OutputError` where standard output cannot be written; a reader that left is not an error."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        raise OutputError(
            f"Standard output cannot be written: {error.strerror or error}.",
            "check where it goes, or name a file with -o.",
        ) from error


def complain(problem: str, hint: str | None = None) -> None:
    """Print an error and its hint on standard error."""
    write(f"rankwise: error: {visible(problem)}", to_error=True)
    if hint:
        write(f"Hint: {visible(hint)}", to_error=True)


def remark(text: str) -> None:
    """Print a remark on standard error."""
    write(f"rankwise: {visible(text)}", to_error=True)


def show_warnings() -> None:
    """Print the library's warnings as remarks, each once."""
    seen = set()

    def show(message: object, *details: object, **more: object) -> None:
        text = str(message)
        if text not in seen:
            seen.add(text)
            remark(f"warning: {text}")

    warnings.simplefilter("ignore", DeprecationWarning)
    warnings.filterwarnings("ignore", "X does not have valid feature names", UserWarning)  # they were matched
    warnings.showwarning = show


def figure(value: float | None) -> str:
    """Format the value of a metric."""
    return "-" if value is None or not math.isfinite(value) else f"{value:.4f}"


def size_of(n_bytes: int) -> str:
    """Format the size of a file."""
    return f"{n_bytes / 1e6:,.1f} MB" if n_bytes >= 1e6 else f"{n_bytes / 1e3:,.1f} kB"


def print_table(
    headers: Sequence[str], rows: Sequence[Sequence[str]], *, left: Collection[int] = (0,), indent: str = ""
) -> None:
    """Print aligned columns: those in `left` to the left, the others to the right.

    On a terminal that is too narrow, the longest of the left ones is wrapped.
    """
    cells = [[visible(cell) for cell in row] for row in [headers, *rows]]
    widths = [max(len(row[i]) for row in cells) for i in range(len(cells[0]))]
    longest = max(left, key=lambda i: widths[i], default=None)
    over = len(indent) + sum(widths) + 2 * (len(widths) - 1) - get_terminal_size().columns
    if sys.stdout.isatty() and over > 0 and longest is not None:
        widths[longest] = max(min(widths[longest], _NARROWEST), widths[longest] - over)
    else:
        longest = None
    for row in cells:
        parts = [wrap(cell, widths[i]) or [""] if i == longest else [cell] for i, cell in enumerate(row)]
        for line in zip_longest(*parts, fillvalue=""):
            aligned = (
                cell.ljust(width) if i in left else cell.rjust(width)
                for i, (cell, width) in enumerate(zip(line, widths, strict=True))
            )
            write(indent + "  ".join(aligned).rstrip())


def print_facts(facts: Mapping[str, object], *, to_error: bool = False) -> None:
    """Print names and values, one per line; each entry of a list has its own line."""
    width = max(len(key) for key in facts)
    for key, value in facts.items():
        for number, one in enumerate(value if isinstance(value, list) else [value]):
            write(f"{('' if number else key).ljust(width)}  {visible(one)}", to_error=to_error)


def print_json(data: object) -> None:
    """Print data for machines; numbers that are not finite become null."""
    write(json.dumps(json_value(data), indent=2, ensure_ascii=False, allow_nan=False))


def check_target(target: str | None, *, force: bool, is_store: bool = False) -> None:
    """Raise where a target exists already, or its folder does not, before any work is done."""
    if target is None or target == "-":
        return
    path = place_of(target)  # links are followed
    if path.is_dir() and not is_store:
        raise InvalidInputError(f"{target} is a folder.", "name a file.")
    if path.exists() and not force:
        raise InvalidInputError(
            f"{target} exists already.", "replace it with --force, or choose another name."
        )
    if not path.parent.is_dir():
        raise InvalidInputError(
            f"{target} cannot be written: there is no folder {path.parent}.", "create it."
        )
    if not os.access(path.parent, os.W_OK):
        raise InvalidInputError(
            f"{target} cannot be written: permission denied in {path.parent}.", "choose another folder."
        )


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
