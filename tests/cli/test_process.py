"""The program as a shell sees it: exit codes, streams, signals and pipes, in processes of their own."""

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from command_line import call, process
from rankwise import files


def shell(line, cwd):
    """Run a line of a shell in which ``rankwise`` is this one."""
    script = f'rankwise() {{ "{sys.executable}" -m rankwise "$@"; }}; {line}'
    return subprocess.run(
        ["bash", "-c", script], cwd=cwd, capture_output=True, text=True, check=False, timeout=120
    )


def test_help_imports_nothing_heavy():
    code = (
        "import sys; from rankwise.cli import main\n"
        "from rankwise.cli.entry import COMMANDS\n"
        "for arguments in ['--help'], *([command, '--help'] for command in COMMANDS):\n"
        "    try: main(arguments)\n"
        "    except SystemExit: pass\n"
        "print(*sorted({'numpy', 'scipy', 'sklearn', 'difflib'} & set(sys.modules)), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr.strip() == ""


def test_the_script_is_python_dash_m():
    script = shutil.which("rankwise", path=str(Path(sys.executable).parent))
    if script is None:
        pytest.skip("the package is not installed with its commands")
    assert (
        subprocess.run([script, "--help"], capture_output=True, check=True).stdout == process("--help").stdout
    )


def test_standard_input_and_output_make_a_pipeline(searches):
    line = f"cat {searches}/train.txt | rankwise fit - --methods rls -o - | rankwise inspect -"
    assert shell(line, searches).stdout.startswith("file            standard input\nmodel")


def test_a_table_comes_through_a_pipe(capsys, searches):
    test, model = searches / "test.txt", searches / "model.rw"
    assert call(capsys, "convert", test, "--to", "table", "-o", searches / "t.csv")[0] == 0
    done = shell("cat t.csv | rankwise predict model.rw - --format table", searches)
    assert done.stdout == call(capsys, "predict", model, test)[1]


def test_a_reader_that_leaves_is_not_an_error(searches):
    test = searches / "test.txt"
    command = [sys.executable, "-m", "rankwise", "predict", str(searches / "model.rw"), *[str(test)] * 50]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as running:
        assert running.stdout.readline()
        running.stdout.close()
        assert running.stderr.read() == b""
        assert running.wait(60) in {0, 141}


def test_ctrl_c_leaves_nothing_behind(tmp_path):
    """Interrupted while it waits for input, after everything was imported."""
    os.mkfifo(tmp_path / "pipe.txt")
    folder = tmp_path / "out"
    folder.mkdir()
    command = ["fit", str(tmp_path / "pipe.txt"), "-o", str(folder / "model.rw")]
    with subprocess.Popen(
        [sys.executable, "-m", "rankwise", *command], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as running:
        with (tmp_path / "pipe.txt").open("wb") as pipe:  # opens once the program reads
            pipe.write(b"1 qid:1 1:1\n")
            pipe.flush()
            time.sleep(0.2)
            running.send_signal(signal.SIGINT)
            assert running.wait(60) == 130
        assert running.stderr.read().decode() == "rankwise: error: interrupted.\n"
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize("module", ["rankwise.cli.entry", "numpy"])
def test_ctrl_c_during_imports_is_quiet(module):
    code = (
        "import os, signal, sys\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"  # a background job ignores it
        "class Impatient:\n"
        "    def find_spec(self, name, *rest):\n"
        f"        if name == {module!r}: os.kill(os.getpid(), signal.SIGINT)\n"
        "sys.meta_path.insert(0, Impatient())\n"
        "from rankwise.cli import main\n"
        f"sys.exit(main(['inspect', {__file__!r}]))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 130
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("when", ["before", "after"])
def test_ctrl_c_around_the_rename(when, searches, tmp_path, monkeypatch, capsys):
    """The signal comes right before or right after the file takes its place."""
    owner, step = (Path, Path.replace) if when == "after" else (files, files._sync)

    def signalled(*arguments):
        step(*arguments)
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(owner, step.__name__, signalled)
    predict = ["predict", searches / "model.rw", searches / "test.txt", "-o", tmp_path / "scores.txt"]
    assert call(capsys, *predict) == (130, "", "rankwise: error: interrupted.\n")
    assert [path.name for path in tmp_path.iterdir()] == ["scores.txt"] * (when == "after")


def test_a_file_is_written_though_all_streams_are_closed(searches, tmp_path):
    """No file gets the number of a closed stream, or remarks would be written into it."""
    line = f"rankwise predict {searches}/model.rw {searches}/test.txt -o scores.txt <&- >&- 2>&-"
    assert shell(line, tmp_path).returncode == 0
    assert len((tmp_path / "scores.txt").read_text().splitlines()) == 400


def test_a_closed_input_is_an_error(searches, tmp_path):
    done = shell(f"rankwise predict - {searches}/test.txt <&-", tmp_path)
    assert (done.returncode, done.stderr) == (
        2,
        "rankwise: error: Standard input is closed.\nHint: name a file.\n",
    )


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full")
def test_a_full_output_is_an_error(searches, tmp_path):
    done = shell(f"rankwise predict {searches}/model.rw {searches}/test.txt > /dev/full", tmp_path)
    assert done.returncode == 1
    assert done.stderr.startswith(
        "rankwise: error: Standard output cannot be written: No space left on device.\nHint: "
    )
    assert "Exception ignored" not in done.stderr


def test_standard_output_by_its_name(searches, tmp_path):
    done = shell(f"rankwise predict {searches}/model.rw {searches}/test.txt -o /dev/stdout > s.txt", tmp_path)
    assert len((tmp_path / "s.txt").read_text().splitlines()) == 400, done.stderr


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read and write everything")
def test_permission_denied(searches, tmp_path):
    secret = tmp_path / "secret.txt"
    secret.write_text("1 qid:1 1:1\n")
    secret.chmod(0)
    done = process("inspect", secret)
    assert done.returncode == 2
    assert b"ermission" in done.stderr
    tmp_path.chmod(0o500)
    done = process("predict", searches / "model.rw", searches / "test.txt", "-o", tmp_path / "s")
    assert done.returncode == 2
    assert b"ermission" in done.stderr
