"""What the README shows must run as it stands."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

README = Path(__file__).parents[1] / "README.md"


def test_the_examples_run():
    blocks = re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)
    assert len(blocks) >= 2
    namespace = {}
    for block in blocks:
        exec(compile(block, str(README), "exec"), namespace)
    assert namespace["model"].alpha_ > 0


def test_a_newcomers_first_commands_work_as_they_stand(tmp_path):
    (block,) = re.findall(r"```console\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)
    commands = [line.removeprefix("$ ") for line in block.splitlines() if line.startswith("$ ")]
    assert len(commands) == 6
    for command in commands:
        program, *arguments = shlex.split(command)
        assert program == "rankwise"
        done = subprocess.run(
            [sys.executable, "-m", program, *arguments],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        assert "rankwise:" not in done.stderr  # neither errors nor remarks
    assert len((tmp_path / "scores.txt").read_text().split()) == 1200
    assert (tmp_path / "report.html").read_text("utf-8").startswith("<!doctype html>")
