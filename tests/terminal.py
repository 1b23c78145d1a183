"""A terminal for progress lines, and how it looks after each part that is written to it."""

import io
import sys

from rankwise.runtime import progress


class Terminal(io.StringIO):
    def __init__(self, *, is_terminal):
        super().__init__()
        self._is_terminal = is_terminal

    def isatty(self):
        return self._is_terminal


def on_screen(text, columns=80):
    """Return what a terminal shows after each part of what was written to it."""
    screens, line = [], [" "] * columns
    for part in text.split("\r"):
        assert len(part) < columns  # a line that wraps cannot be taken back
        line[: len(part)] = part
        screens.append("".join(line).rstrip())
    return screens


def make_terminal(monkeypatch):
    """Show everything on a terminal; called by the test itself, because pytest sets sys.stderr before it."""
    stream = Terminal(is_terminal=True)
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setattr(progress, "_PATIENCE", 0.0)
    monkeypatch.setattr(progress, "_REFRESH", 0.0)
    return stream
