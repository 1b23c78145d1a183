"""What the README shows must run as it stands."""

import re
import shlex
from pathlib import Path

from rankwise.cli import main

README = Path(__file__).parents[1] / "README.md"


def test_the_example_prints_what_stands_below_it(capsys):
    (code, output) = re.search(
        r"```python\n(.*?)```\n\n```text\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL
    ).groups()
    exec(compile(code, str(README), "exec"), {})
    assert capsys.readouterr().out == output


def test_a_table_helps_to_choose_an_estimator_on_the_first_screen():
    lines = README.read_text(encoding="utf-8").splitlines()
    assert next(number for number, line in enumerate(lines) if line.startswith("| ")) < 60


def test_a_newcomers_first_commands_work_as_they_stand(tmp_path, monkeypatch, capsys):
    (block,) = re.findall(r"```console\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)
    commands = [line.removeprefix("$ ") for line in block.splitlines() if line.startswith("$ ")]
    assert len(commands) == 6
    monkeypatch.chdir(tmp_path)
    for command in commands:
        program, *arguments = shlex.split(command)
        assert program == "rankwise"
        assert main(arguments) == 0
        assert "rankwise:" not in capsys.readouterr().err  # neither errors nor remarks
    assert len((tmp_path / "scores.txt").read_text().split()) == 1200
    assert (tmp_path / "report.html").read_text("utf-8").startswith("<!doctype html>")
