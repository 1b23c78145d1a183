"""Standard streams that are closed, full or named as files; signals, and what is said about them."""

import os
import subprocess
import sys

import pytest

from command_line import call
from rankwise.cli import main


def shell(line, cwd):
    """Run a line of a shell in which ``rankwise`` is this one."""
    script = f'rankwise() {{ "{sys.executable}" -m rankwise "$@"; }}; {line}'
    return subprocess.run(
        ["bash", "-c", script], cwd=cwd, capture_output=True, text=True, check=False, timeout=120
    )


def test_results_for_a_closed_output_are_refused_before_any_work(searches, tmp_path):
    for command in (f"inspect {searches}/test.txt", f"convert {searches}/test.txt -o out.store --json"):
        done = shell(f"rankwise {command} >&-", tmp_path)
        assert done.returncode == 1
        assert "Standard output is closed.\nHint: " in done.stderr
        assert "Traceback" not in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_file_is_written_though_all_streams_are_closed(searches, tmp_path):
    """And no file gets the number of one of them, or remarks would be written into it."""
    line = f"rankwise predict {searches}/model.rw {searches}/test.txt -o scores.txt <&- >&- 2>&-"
    assert shell(line, tmp_path).returncode == 0
    assert len((tmp_path / "scores.txt").read_text().splitlines()) == 400


def test_a_closed_input_is_told(searches, tmp_path):
    done = shell(f"rankwise predict - {searches}/test.txt <&-", tmp_path)
    assert (done.returncode, done.stderr) == (
        1,
        "rankwise: error: Standard input is closed.\nHint: name a file.\n",
    )


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full")  # noqa: PTH110
def test_a_full_output_is_named(searches, tmp_path):
    done = shell(f"rankwise predict {searches}/model.rw {searches}/test.txt > /dev/full", tmp_path)
    assert done.returncode == 1
    assert done.stderr.startswith(
        "rankwise: error: Standard output cannot be written: No space left on device.\nHint: "
    )
    assert "Exception ignored" not in done.stderr


@pytest.mark.parametrize("through", ["| cat", "> scores.txt; cat scores.txt"], ids=["pipe", "file"])
def test_standard_output_by_its_name(through, searches, tmp_path):
    done = shell(
        f"rankwise predict {searches}/model.rw {searches}/test.txt -o /dev/stdout {through}", tmp_path
    )
    assert len(done.stdout.splitlines()) == 400, done.stderr


def test_targets_that_cannot_be_are_refused_before_any_work(searches, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for target, told in (("none/file", "there is no folder"), ("n" * 300, "File name too long")):
        code, _, said = call(capsys, "fit", searches / "train.txt", "-o", target)
        assert code == 1
        assert told in said
        assert "Hint: " in said


def test_names_as_long_as_they_can_be(searches, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    model, data = str(searches / "model.rw"), str(searches / "test.txt")
    for _ in range(2):
        assert main(["predict", model, data, "-o", "n" * 255, "--force"]) == 0
        assert main(["convert", data, "-o", "n" * 249 + ".store", "--force"]) == 0
    assert len(list(tmp_path.iterdir())) == 2


@pytest.mark.parametrize("when", ["before", "after"])
def test_ctrl_c_around_the_rename(when, searches, tmp_path):
    """The signal comes right before or right after the file takes its place."""
    script = (
        "import os, signal, sys, rankwise.files as module\n"
        "step = module._take_place if sys.argv[1] == 'after' else module._sync\n"
        "def signalled(*a):\n"
        "    step(*a)\n"
        "    os.kill(os.getpid(), signal.SIGINT)\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "setattr(module, step.__name__, signalled)\n"
        "from rankwise.cli import main\n"
        "sys.exit(main(['predict', *sys.argv[2:], '-o', 'scores.txt']))"
    )
    arguments = [when, searches / "model.rw", searches / "test.txt"]
    done = subprocess.run(
        [sys.executable, "-c", script, *arguments], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 130
    assert done.stderr == "rankwise: error: interrupted.\n"
    assert [path.name for path in tmp_path.iterdir()] == ["scores.txt"] * (when == "after")
