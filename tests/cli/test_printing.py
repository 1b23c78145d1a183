"""Tables on a terminal."""

import os

import pytest

import rankwise
from rankwise.cli import printing
from rankwise.cli.parser import COMMANDS, parse
from rankwise.cli.remedies import hint_of
from rankwise.exceptions import InvalidInputError

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


TOPICS = [["--help"], ["help", "reading"], ["help", "metrics"], *([name, "--help"] for name in COMMANDS)]


@pytest.mark.parametrize("arguments", TOPICS)
def test_helps_fit_a_terminal_of_eighty_columns(arguments, monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "80")
    with pytest.raises(SystemExit) as ended:
        parse(arguments)
    assert ended.value.code == 0
    shown = capsys.readouterr().out
    assert len(shown.splitlines()) > 5
    assert [line for line in shown.splitlines() if len(line) > 80] == []


def test_names_that_vespa_cannot_take_are_remedied_by_an_option():
    model = rankwise.RankRLS().fit([[0.0], [1.0]], [0, 1])
    with pytest.raises(InvalidInputError) as refused:
        rankwise.export(model, "vespa", feature_names=["a name with spaces"])
    assert "--feature-names" in hint_of(refused.value)
    assert "--feature-names" not in str(refused.value)  # in Python it is a parameter
