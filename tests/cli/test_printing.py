"""Tables and help on terminals and in pipes."""

import pytest

from command_line import call
from rankwise.cli import printing
from rankwise.cli.entry import COMMANDS, build_parser

ROWS = [["a", "a sentence of many words that does not fit", "0.5"], ["b", "short", "12.25"]]


@pytest.mark.parametrize("columns", [30, 50, 200])
def test_a_table_fits_the_terminal_and_loses_no_word(monkeypatch, capsys, columns):
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    printing.print_table(["", "what", "value"], ROWS, left=(0, 1))
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= max(columns, 24 + 12)
    words = " ".join(lines).split()
    assert all(word in words for row in ROWS for cell in row for word in cell.split())


def test_a_pipe_gets_a_line_per_row(monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "20")
    printing.print_table(["", "what", "value"], ROWS, left=(0, 1))
    assert len(capsys.readouterr().out.splitlines()) == 3


@pytest.mark.parametrize("command", COMMANDS)
def test_help_has_examples_that_parse_and_fits_eighty_columns(command, monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "80")
    code, out, _ = call(capsys, command, "--help")
    assert code == 0
    text, _, examples = out.partition("examples:")
    assert max(map(len, text.splitlines())) <= 80
    parsed = 0
    for example in examples.strip().splitlines():
        words = example.partition(">")[0].split("|")[-1].split()
        assert words[:2] == ["rankwise", command]
        build_parser(command).parse_args(words[2:])
        parsed += 1
    assert parsed


def test_the_overview_lists_every_command(capsys):
    for arguments, expected in ((["--help"], 0), ([], 2)):
        code, out, _ = call(capsys, *arguments)
        assert code == expected
        assert all(f"\n  {command} " in out for command in COMMANDS)
    assert call(capsys, "--version")[1].startswith("rankwise 0.")
