"""Start-up of the command, and `rankwise fit` on OHSUMED fold 1 from files to a saved model, start-up included."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

from harness import interleave, print_table, write_json

PYTHON = sys.executable


def run(*arguments, cwd=None):
    """Run a process; return its processor seconds."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(arguments, cwd=cwd, check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def start_up():
    script = Path(PYTHON).with_name("rankwise")
    contenders = {
        "python -c pass": lambda: run(PYTHON, "-c", "pass"),
        "rankwise --help": lambda: run(script, "--help"),
        "rankwise fit --help": lambda: run(script, "fit", "--help"),
        "import sklearn.linear_model": lambda: run(PYTHON, "-c", "import sklearn.linear_model"),
    }
    timings = interleave(contenders, repeats=15)
    print_table("start-up", timings)
    return timings


def fit_ohsumed(folder):
    data = Path(os.environ["RANKWISE_DATA"], "OHSUMED", "QueryLevelNorm")
    train = [str(data / f"S{part}.txt.gz") for part in (1, 2, 3)]
    target = str(Path(folder, "model.rw"))
    script = Path(PYTHON).with_name("rankwise")
    fit = [script, "fit", *train, "--valid", data / "S4.txt.gz", "-o", target, "--force"]
    seconds = []
    contenders = {
        "rankwise fit, everything chosen": lambda: seconds.append(run(*fit)),
        "rankwise fit --method rls --scaling none": lambda: run(*fit, "--method", "rls", "--scaling", "none"),
        "rankwise evaluate, all metrics": lambda: run(script, "evaluate", target, data / "S5.txt.gz"),
        "rankwise report": lambda: run(
            script, "report", target, data / "S5.txt.gz", "-o", Path(folder, "report.html"), "--force"
        ),
    }
    timings = interleave(contenders, repeats=7)
    print_table("OHSUMED fold 1, from gzipped text; a process each", timings)
    print(f"processor seconds of fit: {min(seconds):.2f} to {max(seconds):.2f}")
    said = subprocess.run([*fit], check=True, capture_output=True, text=True).stdout
    print(said)
    return timings


def main():
    tables = {"start-up": start_up()}
    if os.environ.get("RANKWISE_DATA"):
        with tempfile.TemporaryDirectory() as folder:
            tables["OHSUMED fold 1"] = fit_ohsumed(folder)
    else:
        print("skipped OHSUMED: set RANKWISE_DATA to the folder of the real data sets")
    write_json("cli", tables)


if __name__ == "__main__":
    main()
