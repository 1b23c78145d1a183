"""Ctrl-C, SIGTERM and SIGHUP: a command ends within a second, leaves nothing behind, and says what it has changed."""

from __future__ import annotations

import os
import select
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any

from rankwise.files.hidden_folders import remove_own
from rankwise.files.replacing import TAKING_PLACE
from rankwise.runtime.interrupts import HEARD

__all__ = ["Terminated", "exit_code", "signal_behind", "stoppable", "what_was_changed"]

# Seconds after a signal in which the command may end by itself. Compiled code of others does not look for signals.
_PATIENCE = 0.8
_WORDS = {signal.SIGINT: "interrupted"}


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


def what_was_changed(number: int, written: Sequence[str]) -> str:
    """Say why a command ended, and which files are there already."""
    word = _WORDS.get(signal.Signals(number), "terminated")
    if not written:
        return f"{word}; no file was changed."
    return f"{word}, after {', '.join(written)} had been written."


@contextmanager
def stoppable(written: Sequence[str]) -> Iterator[None]:
    """Turn SIGTERM and SIGHUP into exceptions, as SIGINT is, and end the process where none gets through.

    Parameters
    ----------
    written : list of str
        What is there already, as it grows; for the last words.
    """
    own = [signal.SIGINT] if signal.getsignal(signal.SIGINT) is signal.default_int_handler else []
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
        with _watched({*own, *changed}, written):
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


@contextmanager
def _watched(numbers: set[signal.Signals], written: Sequence[str]) -> Iterator[None]:
    """Have a thread wait for signals, which gets them even while the main one is inside compiled code."""
    if not numbers or os.name != "posix":
        yield
        return
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    before = signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    watcher = threading.Thread(target=_watch, args=(reader, numbers, written), daemon=True)
    with suppress(RuntimeError):  # where no thread can be had, signals wait for compiled code
        watcher.start()
    try:
        yield
    finally:
        signal.set_wakeup_fd(before, warn_on_full_buffer=False)
        os.close(writer)  # which ends the thread
        if watcher.ident is not None:
            watcher.join()
        os.close(reader)


def _watch(reader: int, numbers: set[signal.Signals], written: Sequence[str]) -> None:
    while came := os.read(reader, 1):
        if came[0] not in numbers:
            continue
        deadline = time.monotonic() + _PATIENCE
        while (left := deadline - time.monotonic()) > 0:
            if select.select([reader], [], [], left)[0]:
                if not os.read(reader, 1):
                    return
                HEARD.clear()  # this one was not
                deadline = time.monotonic() + _PATIENCE
        if came[0] == signal.SIGINT and HEARD.is_set():
            HEARD.clear()  # the best so far is kept, which takes as long as it takes; the next one ends it
            continue
        _end_now(came[0], written)


def _end_now(number: int, written: Sequence[str]) -> None:
    with TAKING_PLACE:
        remove_own()
        if sys.stderr is not None:
            os.write(2, f"rankwise: error: {what_was_changed(number, written)}\n".encode(errors="replace"))
        os._exit(exit_code(number))
