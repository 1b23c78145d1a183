"""Data that the tests of the command line share."""

import pytest

from rankwise.cli import main
from rankwise.cli.commands.demo import make_searches
from rankwise.data import save_svmlight


@pytest.fixture(scope="session")
def searches(tmp_path_factory):
    """A folder with train.txt, vali.txt, test.txt of made-up searches, and a model."""
    folder = tmp_path_factory.mktemp("searches")
    for seed, (name, queries) in enumerate({"train": 40, "vali": 15, "test": 20}.items()):
        X, y, qid = make_searches(queries, seed)
        save_svmlight(X, y, folder / f"{name}.txt", qid=qid)
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
