"""Tables on a terminal."""

import os

import pytest

from rankwise.cli import printing

ROWS = [["a long description of many short words that goes on and on", "0.5"], ["short", "0.25"]]


@pytest.mark.parametrize("columns", [30, 50, 200])
def test_a_table_fits_the_terminal_and_loses_no_word(monkeypatch, capsys, columns):
    monkeypatch.setattr(printing, "get_terminal_size", lambda: os.terminal_size((columns, 20)))
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    printing.print_table(["tried", "figure"], ROWS)
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= columns or columns == 30  # not narrower than can be read
    assert (
        " ".join(line[: lines[0].index("figure")].strip() for line in lines[1:-1]).split()
        == ROWS[0][0].split()
    )
    assert (len(lines) == 3) == (columns == 200)


def test_a_pipe_gets_a_line_per_row(capsys):
    printing.print_table(["tried", "figure"], ROWS)
    assert len(capsys.readouterr().out.splitlines()) == 3
