"""Ctrl-C noticed even where an estimator has caught it and gone on with what it had."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

__all__ = ["noticing_interrupts"]


@contextmanager
def noticing_interrupts() -> Iterator[Callable[[], bool]]:
    """Yield what tells whether Ctrl-C was pressed meanwhile; outside the main thread nobody can press it."""
    pressed: list[int] = []

    def note(number: int, frame: FrameType | None) -> None:
        pressed.append(number)
        raise KeyboardInterrupt

    is_main = threading.current_thread() is threading.main_thread()
    if not is_main or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield lambda: False
        return
    before = signal.signal(signal.SIGINT, note)
    try:
        yield lambda: bool(pressed)
    finally:
        signal.signal(signal.SIGINT, before)
