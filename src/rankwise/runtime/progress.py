"""One line of progress on a terminal or in a notebook, for work that takes longer than a moment."""

from __future__ import annotations

import sys
import threading
import time
from shutil import get_terminal_size
from types import TracebackType
from typing import Self

_PATIENCE = 2.0  # seconds before the line appears
_REFRESH = 0.2
_BAR = 10
_KEPT = 30  # characters of a line that makes room for what goes on inside it


class _Screen(threading.local):
    """The state that all progress lines of a thread share, because they are shown as one line.

    Attributes
    ----------
    lines : list of ProgressLine
        The open lines, each nested in the one before.
    width : int
        The number of characters on the terminal.
    last : float
        The time at which they were written.
    """

    def __init__(self) -> None:
        self.lines: list[ProgressLine] = []
        self.width = 0
        self.last = 0.0


_SCREEN = _Screen()


class ProgressLine:
    """A line on standard error that is rewritten in place and wiped at the end.

    Work inside other work is shown behind it: ``choosing: [####......] 3 of 6, RankRLS, fitting: iteration 12 (9 s)``.

    Parameters
    ----------
    title : str
    total : float, optional
        About how many seconds the work may take, for the outermost line.
    verbose : bool
        Whether to print every update on a line of its own where there is neither a terminal nor a notebook.

    Attributes
    ----------
    is_shown : bool
        Whether there is one; without it, nothing needs to be put into words.

    Examples
    --------
    >>> with ProgressLine("fitting") as progress:
    ...     progress.update("iteration 3")
    """

    def __init__(self, title: str, total: float | None = None, *, verbose: bool = False) -> None:
        self.title, self.total, self.verbose = title, total, verbose
        self.text = ""
        self.start = time.monotonic()
        is_notebook = type(sys.stderr).__module__.startswith("ipykernel")
        self.is_shown = is_notebook or bool(getattr(sys.stderr, "isatty", lambda: False)())

    def update(self, text: str, share: float | None = None) -> None:
        """Show the current state of the work, if the last update is long enough ago.

        Parameters
        ----------
        text : str
        share : float, optional
            From 0 to 1: how much of the work is done, where that is known; drawn as a bar.
        """
        bar = "" if share is None else f"[{'#' * int(share * _BAR):.<{_BAR}}] "
        self.text = bar + text
        lines = _SCREEN.lines if self in _SCREEN.lines else [*_SCREEN.lines, self]
        now = time.monotonic()
        seconds, total = now - lines[0].start, lines[0].total
        most = "" if total is None else f" of about {total:.0f}"
        if self.verbose and not self.is_shown:
            sys.stderr.write(f"{self.title}: {self.text} ({seconds:.0f}{most} s)\n")
        if not self.is_shown or seconds < _PATIENCE or now - _SCREEN.last < _REFRESH:
            return
        _SCREEN.last = now
        _put([f"{line.title}: {line.text}" for line in lines if line.text], f" ({seconds:.0f}{most} s)")

    def __enter__(self) -> Self:
        _SCREEN.lines.append(self)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self in _SCREEN.lines:
            del _SCREEN.lines[_SCREEN.lines.index(self) :]
        # The line around this one stays until it is done; what is printed after that starts on an empty line.
        if not _SCREEN.lines:
            wipe()


class ShareProgress(ProgressLine):
    """A line for work of a known size: how much of it is done, and how long the rest will take.

    Parameters
    ----------
    what : str
        The whole work, such as ``"4,950 pairs"``.
    """

    def __init__(self, title: str, what: str) -> None:
        super().__init__(title)
        self._what = what

    def reach(self, share: float) -> None:
        """Show the share of the work that is done, from 0 (exclusive) to 1."""
        seconds = (time.monotonic() - self.start) * (1.0 - share) / share
        self.update(f"{self._what}, about {in_words(seconds)} left", share)


def in_words(seconds: float) -> str:
    """Return a duration in the unit that suits it: seconds, minutes or hours."""
    for unit, name in ((3600, "h"), (60, "min")):
        if seconds >= 2 * unit:
            return f"{seconds / unit:.0f} {name}"
    return f"{seconds:.0f} s"


def wipe() -> None:
    """Erase the line, so that other output can be printed in its place; the next update shows it again."""
    if _SCREEN.width:
        sys.stderr.write("\r" + " " * _SCREEN.width + "\r")
        sys.stderr.flush()
        _SCREEN.width, _SCREEN.last = 0, 0.0


def _put(parts: list[str], ending: str) -> None:
    """Show a line in place of the one before; one that is wider than the terminal could not be taken back."""
    room = get_terminal_size().columns - 1 - len(ending)
    *outer, last = parts
    line = _cut(", ".join([*(_cut(part, _KEPT) for part in outer), last]), room) + ending
    sys.stderr.write("\r" + line.ljust(_SCREEN.width))
    sys.stderr.flush()
    _SCREEN.width = len(line)


def _cut(text: str, room: int) -> str:
    return text if len(text) <= room else text[: max(room - 3, 0)] + "..."
