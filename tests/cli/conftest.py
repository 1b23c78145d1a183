"""Data that the tests of the command line share."""

import pytest

from rankwise.cli import main
from rankwise.cli.commands.demo import make_searches
from rankwise.data import save_svmlight


@pytest.fixture(scope="session")
def searches(tmp_path_factory):
    """A folder with train.txt, vali.txt, test.txt of generated searches, and a model."""
    folder = tmp_path_factory.mktemp("searches")
    for seed, (name, queries) in enumerate({"train": 40, "vali": 15, "test": 20}.items()):
        X, y, qid = make_searches(queries, seed)
        save_svmlight(X, y, folder / f"{name}.txt", qid=qid)
    train, valid, model = (str(folder / name) for name in ("train.txt", "vali.txt", "model.rw"))
    assert main(["fit", train, "--eval-set", valid, "--methods", "rls", "-o", model]) == 0
    return folder
