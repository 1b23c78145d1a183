"""Ctrl-C, SIGTERM and SIGHUP end a command, which then removes its temporary files."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

__all__ = ["Terminated", "exit_code", "reason", "signal_behind", "stoppable"]


class Terminated(BaseException):
    """Somebody asked the process to end.

    Parameters
    ----------
    number : int
        The signal.
    """

    def __init__(self, number: int) -> None:
        super().__init__(f"signal {number}")
        self.number = number


def signal_behind(error: BaseException | None) -> int | None:
    """Return the signal that an error comes of: imports turn what interrupts them into errors of their own."""
    while error is not None:
        if isinstance(error, Terminated):
            return error.number
        if isinstance(error, KeyboardInterrupt):
            return signal.SIGINT
        error = error.__cause__ or error.__context__
    return None


def exit_code(number: int) -> int:
    """Return what a process that ended because of a signal returns: 130 for Ctrl-C, 143 for SIGTERM."""
    return 128 + number


def reason(number: int) -> str:
    """Return why a command ended."""
    return "interrupted." if number == signal.SIGINT else "terminated."


@contextmanager
def stoppable() -> Iterator[None]:
    """Turn SIGTERM and SIGHUP into exceptions, as SIGINT is, so that temporary files are removed."""
    changed = []
    try:
        for number in (signal.SIGTERM, getattr(signal, "SIGHUP", signal.SIGTERM)):
            if signal.getsignal(number) is signal.SIG_DFL:
                signal.signal(number, _terminate)
                changed.append(number)
    except ValueError:  # not the main thread, where signals do not arrive
        yield
        return
    before = sys.unraisablehook
    sys.unraisablehook = lambda unraisable: _ask_again(unraisable, before)
    try:
        yield
    finally:
        sys.unraisablehook = before
        for number in changed:
            signal.signal(number, signal.SIG_DFL)


def _ask_again(unraisable: Any, otherwise: Callable[[Any], Any]) -> None:
    """Send a signal once more where it came while something was being finalised, which lets no exception through."""
    error = unraisable.exc_value
    if not isinstance(error, KeyboardInterrupt | Terminated):
        otherwise(unraisable)
        return
    number = error.number if isinstance(error, Terminated) else signal.SIGINT
    # From another thread, and a moment later: here it would be in the same place.
    threading.Timer(0.01, os.kill, (os.getpid(), number)).start()


def _terminate(number: int, _: FrameType | None) -> None:
    raise Terminated(number)
