"""One line of progress for work that makes the rows of a kernel again and again."""

from __future__ import annotations

from types import TracebackType
from typing import Self

from rankwise.progress import ProgressLine

__all__ = ["KernelProgress"]


class KernelProgress:
    """Says how many kernel rows have been made, and where an iteration stands; may be entered more than once."""

    def __init__(self, title: str, n_rows: int) -> None:
        self._title, self._n_rows = title, n_rows
        self._line = ProgressLine(title)
        self._state = ""

    def rows(self, made: int) -> None:
        """Take note of rows made in the current read."""
        self._line.update(f"{self._state}kernel rows {made} of {self._n_rows}")

    def iterations(self, number: int, residual: float) -> None:
        """Take note of an iteration and its largest relative residual."""
        self._state = f"iteration {number}, relative residual {residual:.1e}; "
        self._line.update(self._state.rstrip("; "))

    def __enter__(self) -> Self:
        self._line = ProgressLine(self._title)
        self._state = ""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._line.__exit__(kind, error, trace)
