"""The command line as a process of its own, and inside this one where only its work is looked at."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import numpy as np
import pytest

from rankwise.cli import main
from rankwise.cli.commands.demo import make_searches
from rankwise.data import dump_svmlight


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


@pytest.fixture(scope="session")
def searches(tmp_path_factory):
    """A folder with train.txt, vali.txt, test.txt of made-up searches, and a model."""
    folder = tmp_path_factory.mktemp("searches")
    for seed, (name, queries) in enumerate({"train": 40, "vali": 15, "test": 20}.items()):
        X, y, qid = make_searches(queries, seed)
        dump_svmlight(X, y, folder / f"{name}.txt", qid=qid)
    fit = [
        "fit",
        folder / "train.txt",
        "--valid",
        folder / "vali.txt",
        "--method",
        "rls",
        "--scaling",
        "standard",
    ]
    assert main([str(part) for part in [*fit, "-o", folder / "model.rw"]]) == 0
    return folder


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
