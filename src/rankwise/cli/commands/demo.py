"""``rankwise demo``: made-up searches, and what the commands make of them."""

from __future__ import annotations

import argparse
import itertools
import os
import shlex
import tempfile
from pathlib import Path

import numpy as np

from rankwise.cli.outputs import check_target
from rankwise.cli.printing import print_facts, print_json, write
from rankwise.data import save_svmlight
from rankwise.exceptions import InvalidInputError

__all__ = ["make_searches", "run"]

_PARTS = {"train.txt": 120, "vali.txt": 40, "test.txt": 60}
_ROWS, _COLUMNS = 20, 12


def run(options: argparse.Namespace) -> int:
    """Write the data, or run everything on them."""
    if options.output is not None:
        folder = Path(options.output)
        if folder.exists() and not folder.is_dir():
            raise InvalidInputError(f"{folder} is a file.", "name a folder for the data.")
        for name in _PARTS:
            if folder.is_dir():
                check_target(str(folder / name), force=options.force)
        folder.mkdir(parents=True, exist_ok=True)
        _write_parts(folder)
        if options.json:
            print_json({"files": [{"file": str(folder / name), "queries": n} for name, n in _PARTS.items()]})
            return 0
        print_facts({"wrote": ", ".join(str(folder / name) for name in _PARTS)})
        write(f"\nNext: rankwise fit {folder / 'train.txt'} --valid {folder / 'vali.txt'} -o model.rw")
        return 0
    from rankwise.cli.entry import main  # noqa: PLC0415 - the commands themselves

    page = _place_of_page(force=options.force)
    with tempfile.TemporaryDirectory(prefix="rankwise-") as name:
        folder = Path(name)
        _write_parts(folder)
        train, vali, test = (str(folder / part) for part in _PARTS)
        model = str(folder / "model.rw")
        for arguments in (
            ["inspect", train],
            ["fit", train, "--valid", vali, "-o", model],
            ["evaluate", model, test, "--metrics", "ndcg@10,map,pairwise_error"],
            ["report", model, test, "-o", str(page), *(["--force"] if options.force else [])],
        ):
            shown = [argument.replace(f"{folder}/", "") for argument in arguments]
            write(f"\n$ rankwise {shlex.join(shown)}")
            code = main(arguments)
            if code:
                return code
    write(
        f"\nThe page stays: {page}. The data were made up, and are gone again; `rankwise demo -o data` writes them for "
        "you to try."
    )
    return 0


def _place_of_page(*, force: bool) -> Path:
    """Return a name that is free, here or, where nothing can be written, in a folder that stays."""
    here = Path.cwd() if os.access(Path.cwd(), os.W_OK) else Path(tempfile.mkdtemp(prefix="rankwise-demo-"))
    names = (here / f"rankwise-demo{f'-{n}' if n > 1 else ''}.html" for n in itertools.count(1))
    return next(page for page in names if force or not os.path.lexists(page))


def make_searches(queries: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Make up graded results of searches.

    Each search has its own offsets and ranges of the columns, as features such as lengths of documents have, so that
    scaling inside queries pays.
    """
    world = np.random.default_rng(7)
    weights = world.normal(size=_COLUMNS) * (np.arange(_COLUMNS) % 3 != 2)
    # Features of real searches say much the same thing in several ways: a few directions vary, the others little.
    mixing = np.linalg.qr(world.normal(size=(_COLUMNS, _COLUMNS)))[0] * np.geomspace(2.0, 0.1, _COLUMNS)
    rng = np.random.default_rng(seed)
    hidden = rng.normal(size=(queries, _ROWS, _COLUMNS)) @ mixing.T
    utility = hidden @ weights + rng.normal(scale=1.0, size=(queries, _ROWS))
    y = np.digitize(utility, np.quantile(utility, [0.5, 0.75, 0.9, 0.97])).astype(float)
    scale = rng.lognormal(sigma=0.8, size=(queries, 1, _COLUMNS))
    X = hidden * scale + rng.normal(scale=3.0, size=(queries, 1, _COLUMNS))
    return X.reshape(-1, _COLUMNS).round(4), y.ravel(), np.arange(1, queries + 1).repeat(_ROWS)


def _write_parts(folder: Path) -> None:
    for seed, (name, queries) in enumerate(_PARTS.items()):
        X, y, qid = make_searches(queries, seed)
        save_svmlight(X, y, folder / name, qid=qid)
