"""Progress is shown on a terminal, only there, and only for work that takes a moment."""

import io
import re
import sys

import numpy as np
import pytest

from rankwise import RankRLSCV
from rankwise.runtime import progress
from rankwise.runtime.progress import ProgressLine
from strategies import make_problem


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


def test_lines_inside_one_another_are_one_line(monkeypatch):
    terminal = make_terminal(monkeypatch)
    with ProgressLine("choosing") as outer:
        outer.update("1 of 2, a method with a long name", 0.0)
        with ProgressLine("selecting") as inner:
            inner.update("iteration 100")
            inner.update("iteration 9")
        outer.update("2 of 2, another", 0.5)
    shown = on_screen(terminal.getvalue())
    assert shown[1:5] == [
        "choosing: [..........] 1 of 2, a method with a long name (0 s)",
        "choosing: [..........] 1 of 2, a method with..., selecting: iteration 100 (0 s)",
        "choosing: [..........] 1 of 2, a method with a..., selecting: iteration 9 (0 s)",
        "choosing: [#####.....] 2 of 2, another (0 s)",
    ]
    assert shown[-1] == ""


def test_long_lines_are_cut(monkeypatch):
    terminal = make_terminal(monkeypatch)
    with ProgressLine("reading " + "x" * 200) as line:
        line.update("5 MB")
    shown = on_screen(terminal.getvalue())
    assert shown[1].endswith("... (0 s)")
    assert shown[-1] == ""


def test_what_is_printed_meanwhile_has_a_line_of_its_own(monkeypatch):
    terminal = make_terminal(monkeypatch)
    with ProgressLine("choosing") as line:
        line.update("something")
        progress.wipe()
        terminal.write("rankwise: warning\n")
        line.update("something else")
    assert on_screen(terminal.getvalue().partition("rankwise: warning\n")[0])[-1] == ""


def test_gains_are_shown_as_gains(monkeypatch):
    terminal = make_terminal(monkeypatch)
    problem = make_problem(0, rows=200, queries=20, features=5)
    grades = np.digitize(problem.y, np.quantile(problem.y, [0.5, 0.8]))
    RankRLSCV(scoring="ndcg@10").fit(problem.X, grades, problem.qid)
    values = re.findall(r"ndcg@10 (\S+)", terminal.getvalue())
    assert values
    assert all(0 <= float(value) <= 1 for value in values)
    assert "best" not in terminal.getvalue()
