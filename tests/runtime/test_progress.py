"""Progress is shown on a terminal, only there, and only for work that takes a moment."""

import re
import sys

import numpy as np
import pytest

from rankwise import RankRLSCV
from rankwise.runtime import progress
from rankwise.runtime.progress import ProgressLine, ShareProgress
from strategies import make_problem
from terminal import Terminal, make_terminal, on_screen


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
        "choosing: [..........] 1 of..., selecting: iteration 100 (0 s)",
        "choosing: [..........] 1 of..., selecting: iteration 9 (0 s)",
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


def test_the_last_words_are_the_clock_and_about_what_it_may_show(monkeypatch):
    terminal = make_terminal(monkeypatch)
    with ProgressLine("choosing", 60.0) as outer:
        outer.update("best 0.1234, curves and surfaces of a long name")
        with ProgressLine("fitting") as inner:
            inner.update("iteration 3")
    shown = on_screen(terminal.getvalue())
    assert shown[2] == "choosing: best 0.1234, curv..., fitting: iteration 3 (0 of about 60 s)"


def test_notebooks_show_progress(monkeypatch):
    stream = Terminal(is_terminal=False)
    monkeypatch.setattr(type(stream), "__module__", "ipykernel.iostream")
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setattr(progress, "_PATIENCE", 0.0)
    with ProgressLine("selecting") as line:
        line.update("iteration 3")
    assert "selecting: iteration 3" in stream.getvalue()


def test_what_is_printed_meanwhile_has_a_line_of_its_own(monkeypatch):
    terminal = make_terminal(monkeypatch)
    with ProgressLine("choosing") as line:
        line.update("something")
        progress.wipe()
        terminal.write("rankwise: warning\n")
        line.update("something else")
    assert on_screen(terminal.getvalue().partition("rankwise: warning\n")[0])[-1] == ""


@pytest.mark.parametrize(
    ("seconds", "share", "left"),
    [(10, 0.5, "10 s"), (600, 0.25, "30 min"), (3600, 0.1, "9 h"), (60, 1.0, "0 s")],
)
def test_a_share_of_the_work_tells_how_long_the_rest_takes(monkeypatch, seconds, share, left):
    terminal = make_terminal(monkeypatch)
    with ShareProgress("leave-pair-out", "45 pairs") as line:
        line.start -= seconds
        line.reach(share)
    assert f"] 45 pairs, about {left} left ({seconds} s)" in terminal.getvalue()


def test_gains_are_shown_as_gains(monkeypatch):
    terminal = make_terminal(monkeypatch)
    problem = make_problem(0, rows=200, queries=20, features=5)
    grades = np.digitize(problem.y, np.quantile(problem.y, [0.5, 0.8]))
    RankRLSCV(scoring="ndcg@10").fit(problem.X, grades, problem.qid)
    values = re.findall(r"ndcg@10 (\S+)", terminal.getvalue())
    assert values
    assert all(0 <= float(value) <= 1 for value in values)
    assert "best" not in terminal.getvalue()
