"""The command line as a process of its own, and inside this one where only its work is looked at."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import numpy as np

from rankwise.cli import main


def process(*arguments, cwd=None, stdin=b""):
    """Run ``rankwise`` as a process and return what it said."""
    return subprocess.run(
        [sys.executable, "-m", "rankwise", *map(str, arguments)],
        cwd=cwd,
        input=stdin,
        capture_output=True,
        check=False,
        env={**os.environ, "PYTHONWARNINGS": "error"},
        timeout=120,
    )


def call(capsys, *arguments):
    """Run a command inside this process: exit code, standard output, standard error."""
    try:
        code = main([str(argument) for argument in arguments])
    except SystemExit as error:
        code = error.code
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def call_json(capsys, *arguments):
    code, out, err = call(capsys, *arguments, "--json")
    assert code == 0, err
    return json.loads(out)


def duels(folder, seed=0):
    """Write items.csv and duels.csv."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(30, 3))
    pairs = rng.integers(0, 30, size=(200, 2))
    pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    won = (X[pairs] @ [1.0, -1.0, 0.0]) + 0.3 * rng.normal(size=pairs.shape)
    pairs = np.where((won[:, 0] > won[:, 1])[:, None], pairs, pairs[:, ::-1])
    items = "".join(f"item {i},{','.join(map(repr, row.tolist()))}\n" for i, row in enumerate(X))
    (folder / "items.csv").write_text("id,price,sugar,size\n" + items)
    (folder / "duels.csv").write_text("winner,loser\n" + "".join(f"item {a},item {b}\n" for a, b in pairs))
    return X, pairs
