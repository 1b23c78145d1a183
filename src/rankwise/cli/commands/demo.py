"""``rankwise demo``: generate search data and run the commands on them."""

from __future__ import annotations

import argparse
import itertools
import os
import shlex
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from rankwise.cli.printing import check_target, print_facts, write
from rankwise.exceptions import InvalidInputError

if TYPE_CHECKING:
    import numpy as np

_PARTS = {"train.txt": 120, "vali.txt": 40, "test.txt": 60}
_ROWS, _COLUMNS = 20, 12


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.epilog = "examples:\n  rankwise demo\n  rankwise demo -o data"
    parser.add_argument(
        "-o",
        "--output",
        metavar="FOLDER",
        help="only write the searches, as train.txt, vali.txt and test.txt",
    )
    parser.add_argument("-f", "--force", action="store_true", help="replace existing files")


def run(options: argparse.Namespace) -> int:
    """Write the data, or run the commands on them."""
    if options.output is not None:
        folder = Path(options.output)
        if folder.exists() and not folder.is_dir():
            raise InvalidInputError(f"{folder} is a file.", "name a folder for the data.")
        for name in _PARTS if folder.is_dir() else ():
            check_target(str(folder / name), force=options.force)
        folder.mkdir(parents=True, exist_ok=True)
        _write_parts(folder)
        train, valid = folder / "train.txt", folder / "vali.txt"
        print_facts({"wrote": ", ".join(str(folder / name) for name in _PARTS)})
        write(f"\nNext: rankwise fit {train} --eval-set {valid} -o model.rw")
        return 0
    from rankwise.cli.entry import main

    page = _place_of_page(force=options.force)
    with tempfile.TemporaryDirectory(prefix="rankwise-") as name:
        folder = Path(name)
        _write_parts(folder)
        paths = [str(folder / part) for part in _PARTS]
        model = str(folder / "model.rw")
        for arguments in (
            ["inspect", paths[0]],
            ["fit", paths[0], "--eval-set", paths[1], "-o", model],
            ["evaluate", model, paths[2], "--metrics", "ndcg@10,average_precision,pairwise_error"],
            ["report", model, paths[2], "-o", str(page), *(["--force"] if options.force else [])],
        ):
            shown = [argument.replace(f"{folder}/", "") for argument in arguments]
            write(f"\n$ rankwise {shlex.join(shown)}")
            code = main(arguments)
            if code:
                return code
    write(
        f"\nThe page stays: {page}. The searches were generated; `rankwise demo -o data` writes them to a folder."
    )
    return 0


def _place_of_page(*, force: bool) -> Path:
    """Return a free name in the current folder or, if that cannot be written, in a new one."""
    here = Path.cwd() if os.access(Path.cwd(), os.W_OK) else Path(tempfile.mkdtemp(prefix="rankwise-demo-"))
    names = (here / f"rankwise-demo{f'-{n}' if n > 1 else ''}.html" for n in itertools.count(1))
    return next(page for page in names if force or not os.path.lexists(page))


def make_searches(queries: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Generate graded results of searches.

    Each search has its own offsets and ranges of the columns, as lengths of documents have, so that scaling inside
    queries pays.
    """
    import numpy as np

    world = np.random.default_rng(7)
    weights = world.normal(size=_COLUMNS) * (np.arange(_COLUMNS) % 3 != 2)
    # Features of real searches are correlated: a few directions vary much, the others little.
    mixing = np.linalg.qr(world.normal(size=(_COLUMNS, _COLUMNS)))[0] * np.geomspace(2.0, 0.1, _COLUMNS)
    rng = np.random.default_rng(seed)
    hidden = rng.normal(size=(queries, _ROWS, _COLUMNS)) @ mixing.T
    utility = hidden @ weights + rng.normal(scale=1.0, size=(queries, _ROWS))
    y = np.digitize(utility, np.quantile(utility, [0.5, 0.75, 0.9, 0.97])).astype(float)
    scale = rng.lognormal(sigma=0.8, size=(queries, 1, _COLUMNS))
    X = hidden * scale + rng.normal(scale=3.0, size=(queries, 1, _COLUMNS))
    return X.reshape(-1, _COLUMNS).round(4), y.ravel(), np.arange(1, queries + 1).repeat(_ROWS)


def _write_parts(folder: Path) -> None:
    from rankwise.data import save_svmlight

    for seed, (name, queries) in enumerate(_PARTS.items()):
        X, y, qid = make_searches(queries, seed)
        save_svmlight(X, y, folder / name, qid=qid)
