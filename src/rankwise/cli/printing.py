"""What a person reads: tables, remarks and complaints; and JSON for machines."""

from __future__ import annotations

import json
import math
import sys
import warnings
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from itertools import zip_longest
from shutil import get_terminal_size
from textwrap import wrap

from rankwise.exceptions import OutputError, visible
from rankwise.json_values import json_value
from rankwise.runtime.progress import wipe

__all__ = [
    "complain",
    "figure",
    "print_facts",
    "print_json",
    "print_table",
    "remark",
    "show_warnings",
    "size_of",
    "to_standard_output",
    "write",
]


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
    """Name what cannot be written to; a reader who left is no fault."""
    try:
        yield
    except OSError as error:
        if isinstance(error, BrokenPipeError):
            raise
        raise OutputError(
            f"Standard output cannot be written: {error.strerror or error}.",
            "check where it goes, or name a file with -o.",
        ) from error


def complain(problem: str, hint: str | None = None) -> None:
    """Say on standard error what went wrong, and what to do about it."""
    write(f"rankwise: error: {visible(problem)}", to_error=True)
    if hint:
        write(f"Hint: {visible(hint)}", to_error=True)


def remark(text: str) -> None:
    """Say something on standard error that is no result."""
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
    warnings.showwarning = show


def figure(value: float | None, digits: int = 4) -> str:
    """Write a figure of a metric."""
    return "-" if value is None or not math.isfinite(value) else f"{value:.{digits}f}"


def size_of(n_bytes: int) -> str:
    """Write how large a file is."""
    return f"{n_bytes / 1e6:,.1f} MB" if n_bytes >= 1e6 else f"{n_bytes / 1e3:,.1f} kB"


def print_table(
    headers: Sequence[str], rows: Sequence[Sequence[str]], *, left: Collection[int] = (0,), indent: str = ""
) -> None:
    """Print aligned columns; those in `left` to the left, the others to the right.

    On a terminal that is too narrow, the longest of the left ones goes on in further lines.
    """
    cells = [[visible(cell) for cell in row] for row in ([headers, *rows] if any(headers) else rows)]
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
    """Print names and what they are, one per line."""
    width = max(len(key) for key in facts)
    for key, value in facts.items():
        write(f"{key.ljust(width)}  {visible(value)}", to_error=to_error)


def print_json(data: object) -> None:
    """Print data for machines; what is not a finite number becomes null."""
    write(json.dumps(json_value(data), indent=2, ensure_ascii=False, allow_nan=False))
