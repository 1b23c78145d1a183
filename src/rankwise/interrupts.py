"""Signals that ask a process to stop, and the moments at which they have to wait."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

__all__ = ["signals_later"]

# Those that somebody sends to end a process, and that a handler may turn into an exception.
_SIGNALS = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]


@contextmanager
def signals_later() -> Iterator[None]:
    """Let Ctrl-C and its like take effect at the end of the block; only for blocks that take a moment.

    What is done by handlers of Python's waits; a signal that ends the process at once, or that is ignored, stays as it
    is. Other threads than the main one are not interrupted anyway.

    Examples
    --------
    >>> from rankwise.interrupts import signals_later
    >>> with signals_later():
    ...     pass  # two steps of which nobody may see the first alone
    """
    came: list[signal.Signals] = []

    def note(number: int, _: FrameType | None) -> None:
        came.append(signal.Signals(number))

    before = {}
    try:
        for number in _SIGNALS:
            handler = signal.getsignal(number)
            if callable(handler):
                signal.signal(number, note)
                before[number] = handler
    except ValueError:  # not the main thread, where signals do not arrive
        yield
        return
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    for number in came:
        before[number](number, None)
