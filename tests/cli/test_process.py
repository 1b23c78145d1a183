"""The program as a shell sees it: exit codes, streams, signals, pipes, mistakes."""

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from command_line import process
from rankwise.cli.parser import COMMANDS, build_parser
from rankwise.metrics import METRICS


def test_help_answers_without_importing_anything_heavy():
    code = (
        "import sys; from rankwise.cli import main\n"
        "try: main(['--help'])\nexcept SystemExit: pass\n"
        "print(*sorted({'numpy', 'scipy', 'sklearn', 'difflib'} & set(sys.modules)), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr.strip() == ""
    assert all(command in done.stdout for command in COMMANDS)


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help_with_examples_that_parse(command):
    done = process(command, "--help")
    assert done.returncode == 0
    text = done.stdout.decode()
    examples = text.partition("examples:")[2].strip().splitlines()
    assert examples
    for example in examples:
        words = example.partition("#")[0].partition(">")[0].split("|")[-1].split()
        if words[:2] == ["rankwise", command]:
            build_parser(command).parse_args(words[2:])


@pytest.mark.parametrize(
    ("arguments", "meant"),
    [
        (["fti"], "fit"),
        (["evalute", "a", "b"], "evaluate"),
        (["fit", "--vaild", "x"], "--valid"),
        (["predict", "--outptu=x"], "--output"),
        (["report", "--help", "--titel", "x"], "--title"),
        (["fit", "x", "--method", "ranksmv"], "svm"),
        (["fit", "x", "--scaling", "qury-minmax"], "query-minmax"),
        (["fit", "x", "--target", "y"], "--label"),
        (["fit", "x", "--group", "q"], "--qid"),
    ],
)
def test_a_typo_is_answered_with_what_was_meant(arguments, meant):
    done = process(*arguments)
    assert done.returncode == 2
    assert f"did you mean {meant}?" in done.stderr.decode()
    assert done.stdout == b""


def test_an_option_of_another_command_is_told_from_a_typo():
    said = process("predict", "m", "x", "--against", "y").stderr.decode()
    assert "--against is not an option of `predict`, but of `evaluate`" in said
    assert "did you mean" not in process("export", "m", "--ranks").stderr.decode()


def test_mistakes_of_usage_exit_with_2():
    for arguments in (
        [],
        ["fit"],
        ["fit", "--threads", "0", "x"],
        ["completion", "csh"],
        ["fit", "x", "--alpha", "y"],
        ["fit", "x"],
        ["predict", "-", "-"],
        ["convert", __file__, "-o", "x.unknown"],
    ):
        done = process(*arguments)
        assert done.returncode == 2
        assert b"Traceback" not in done.stderr


def test_the_version():
    assert process("--version").stdout.decode().startswith("rankwise 0.")


def failing(*arguments, **options):
    done = process(*arguments, **options)
    said = done.stderr.decode()
    assert done.returncode == 1, said
    assert said.startswith("rankwise: error: ")
    assert "\nHint: " in said
    assert "Traceback" not in said
    return said


def test_missing_files(tmp_path):
    assert "nothing.txt" in failing("fit", "nothing.txt", "-o", tmp_path / "m.rw")
    assert "nothing.rw" in failing("evaluate", "nothing.rw", "nothing.txt")


def test_files_that_are_not_what_they_should_be(searches, tmp_path):
    empty, folder, garbage = tmp_path / "empty.txt", tmp_path / "folder", tmp_path / "garbage.rw"
    empty.touch()
    folder.mkdir()
    garbage.write_bytes(os.urandom(500))
    assert "no rows" in failing("inspect", empty) or "empty" in failing("inspect", empty)
    assert "folder" in failing("inspect", folder)
    assert "model" in failing("predict", garbage, searches / "test.txt")
    assert "folder" in failing("predict", searches / "model.rw", searches / "test.txt", "-o", folder)
    failing("inspect", "/proc/self/mem")  # may be opened, cannot be read


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read and write everything")
def test_permission_denied(searches, tmp_path):
    secret = tmp_path / "secret.txt"
    secret.write_text("1 qid:1 1:1\n")
    secret.chmod(0)
    assert "ermission" in failing("inspect", secret)
    tmp_path.chmod(0o500)
    assert "ermission" in failing(
        "predict", searches / "model.rw", searches / "test.txt", "-o", tmp_path / "s"
    )


def test_where_nothing_can_be_written(searches):
    failing("predict", searches / "model.rw", searches / "test.txt", "-o", "/proc/scores.txt")
    assert "no folder" in failing(
        "predict", searches / "model.rw", searches / "test.txt", "-o", "missing/scores.txt"
    )


def test_a_huge_line_is_read_and_a_wrong_one_is_shown_in_part(tmp_path):
    entries = " ".join(f"{j}:0.5" for j in range(1, 300_001))
    huge = tmp_path / "huge.txt"
    huge.write_text(f"1 qid:1 {entries}\n0 qid:1 1:1\n")
    done = process("inspect", huge)
    assert done.returncode == 0
    assert "300,000" in done.stdout.decode()
    huge.write_text(f"1 qid:1 {entries}x\n")
    assert len(failing("inspect", huge)) < 1000


def test_control_characters_of_a_file_do_not_reach_the_terminal(tmp_path):
    data = tmp_path / "evil.txt"
    data.write_bytes(b"1 qid:1 \x1b[2Jbad:1\n")
    assert "\x1b" not in failing("inspect", data)


def test_standard_input_and_output_make_a_pipeline(searches):
    train = (searches / "train.txt").read_bytes()
    model = process("fit", "-", "--method", "rls", "--scaling", "none", "-o", "-", stdin=train)
    assert model.returncode == 0
    assert model.stdout.startswith(b"PK\3\4")
    scores = process("predict", "-", searches / "test.txt", stdin=model.stdout)
    assert scores.returncode == 0
    assert len(scores.stdout.splitlines()) == 400
    assert process("inspect", "-", stdin=model.stdout).stdout.startswith(
        b"file            standard input\nmodel"
    )


def test_a_reader_who_leaves_early_is_no_error(searches):
    test = searches / "test.txt"
    command = [sys.executable, "-m", "rankwise", "predict", str(searches / "model.rw"), *[str(test)] * 50]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as running:
        assert running.stdout.readline()
        running.stdout.close()
        assert running.stderr.read() == b""
        assert running.wait(60) in {0, 141}


def test_ctrl_c_leaves_nothing_behind(searches, tmp_path):
    """Interrupted while it waits for input, after everything was imported."""
    os.mkfifo(tmp_path / "pipe.txt")
    folder = tmp_path / "out"
    folder.mkdir()
    command = [
        sys.executable,
        "-m",
        "rankwise",
        "fit",
        str(tmp_path / "pipe.txt"),
        "-o",
        str(folder / "model.rw"),
    ]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as running:
        with (tmp_path / "pipe.txt").open("wb") as pipe:  # opens once the program reads
            pipe.write(b"1 qid:1 1:1\n")
            pipe.flush()
            time.sleep(0.2)
            running.send_signal(signal.SIGINT)
            assert running.wait(60) == 130
        said = running.stderr.read().decode()
    assert "interrupted" in said
    assert "Traceback" not in said
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize("module", ["rankwise.cli.entry", "argparse", "numpy"])
def test_ctrl_c_during_imports_is_quiet(module):
    """Whatever is being imported: some modules would make another error of it."""
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


def test_python_dash_m_and_the_command_are_the_same():
    script = shutil.which("rankwise", path=str(Path(sys.executable).parent))
    if script is None:
        pytest.skip("the package is not installed with its commands")
    assert (
        subprocess.run([script, "--help"], capture_output=True, check=True).stdout == process("--help").stdout
    )


@pytest.mark.parametrize(("shell", "check"), [("bash", "-n"), ("zsh", "-n"), ("fish", "--no-execute")])
def test_completion_scripts_are_understood_by_their_shell(shell, check, tmp_path):
    script = process("completion", shell).stdout
    assert b"--valid" in script or b"-l valid" in script
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    (tmp_path / "script").write_bytes(script)
    done = subprocess.run(
        [shell, check, str(tmp_path / "script")], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        (["rankwise", "ev"], "evaluate"),
        (["rankwise", "fit", "--val"], "--valid"),
        (["rankwise", "fit", "--method", "k"], "kernel"),
        (["rankwise", "completion", "f"], "fish"),
    ],
)
def test_bash_completes(words, offered):
    script = process("completion", "bash").stdout.decode()
    line = f'COMP_WORDS=({" ".join(words)}); COMP_CWORD={len(words) - 1}; _rankwise; echo "${{COMPREPLY[@]}}"'
    done = subprocess.run(["bash", "-c", script + line], capture_output=True, text=True, check=True)
    assert done.stdout.split() == [offered]


def test_help_shows_what_matters_and_the_rest_once():
    shown, reading = (process(*args).stdout.decode() for args in (("fit", "--help"), ("help", "reading")))
    assert shown.index("examples:") < shown.index("options:")
    assert "--zero-based" not in shown
    assert "`rankwise help reading`" in shown
    assert "--zero-based" in reading
    assert process("help", "fit").stdout.decode() == shown
    metrics = process("help", "metrics").stdout.decode()
    assert all(f"\n  {name} " in metrics for name in METRICS)
    wrong = process("help", "metircs")
    assert wrong.returncode == 2
    assert b"there is no help on metircs; did you mean metrics?" in wrong.stderr
