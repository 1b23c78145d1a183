"""Progress is shown on a terminal, only there, and only for work that takes a moment."""

import io
import sys

import pytest

from rankwise import progress
from rankwise.progress import ProgressLine


class Terminal(io.StringIO):
    def __init__(self, *, is_terminal):
        super().__init__()
        self._is_terminal = is_terminal

    def isatty(self):
        return self._is_terminal


def shown(monkeypatch, *, is_terminal, patience):
    stream = Terminal(is_terminal=is_terminal)
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setattr(progress, "_PATIENCE", patience)
    with ProgressLine("selecting") as line:
        line.update("iteration 3")
    return stream.getvalue()


def test_a_terminal_gets_a_line_that_is_wiped_at_the_end(monkeypatch):
    text = shown(monkeypatch, is_terminal=True, patience=0.0)
    assert "selecting: iteration 3" in text
    assert text.endswith(" \r")


@pytest.mark.parametrize(("is_terminal", "patience"), [(False, 0.0), (True, 60.0)])
def test_pipes_and_short_work_get_nothing(monkeypatch, is_terminal, patience):
    assert shown(monkeypatch, is_terminal=is_terminal, patience=patience) == ""
