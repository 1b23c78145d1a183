"""One line of progress on a terminal, for work that takes longer than a moment; silent everywhere else."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import Self

__all__ = ["ProgressLine"]

_PATIENCE = 2.0  # seconds before the line appears
_REFRESH = 0.2


class ProgressLine:
    """A line on standard error that is rewritten in place and wiped at the end.

    Examples
    --------
    >>> with ProgressLine("fitting") as progress:
    ...     progress.update("iteration 3")
    """

    def __init__(self, title: str) -> None:
        self._title = title
        self._start = time.monotonic()
        self._last = 0.0
        self._width = 0
        self._is_terminal = bool(getattr(sys.stderr, "isatty", lambda: False)())

    def update(self, text: str) -> None:
        """Show what is going on, if it is time to."""
        now = time.monotonic()
        if not self._is_terminal or now - self._start < _PATIENCE or now - self._last < _REFRESH:
            return
        self._last = now
        line = f"{self._title}: {text} ({now - self._start:.0f} s)"
        sys.stderr.write("\r" + line.ljust(self._width))
        sys.stderr.flush()
        self._width = len(line)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._width:
            sys.stderr.write("\r" + " " * self._width + "\r")
            sys.stderr.flush()
