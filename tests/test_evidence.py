"""The benchmarks run, and the pages say what the file of results says."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


def evidence(*words):
    command = [sys.executable, str(ROOT / "benchmarks" / "evidence.py"), *words]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    "only",
    [
        ["--only", "smoke"],
        pytest.param([], marks=pytest.mark.long),
    ],
    ids=["smoke", "all"],
)
def test_quick_run_is_complete(only):
    """One case of every module with scikit-learn alone; the long run has all with every peer there is."""
    done = evidence("run", "--quick", *only)
    assert done.returncode == 0, done.stdout + done.stderr
    checked = evidence("check", "--quick", *only)
    assert checked.returncode == 0, checked.stdout


def test_pages_say_what_was_measured():
    checked = evidence("check")
    assert checked.returncode == 0, checked.stdout
