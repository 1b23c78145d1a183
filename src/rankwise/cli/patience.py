"""Ctrl-C that waits for imports, which may be left half done by it, or turn it into other errors."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["interrupted_later"]


@contextmanager
def interrupted_later() -> Iterator[None]:
    """Let Ctrl-C take effect at the end of the block; only for blocks that take a moment."""
    if signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield  # somebody else's, or ignored, as in a background job
        return
    pressed: list[int] = []
    try:
        signal.signal(signal.SIGINT, lambda number, _: pressed.append(number))
    except ValueError:  # not the main thread, where signals do not arrive
        yield
        return
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if pressed:
        raise KeyboardInterrupt
