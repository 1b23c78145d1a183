"""What the campaigns share: random moments that can be had again, and counts of what was done.

``RANKWISE_FAULTS_SEED=7`` chooses other moments, ``RANKWISE_FAULTS=20`` makes twenty times as many faults. The counts
are printed at the end, and written to ``build/faults.json``.
"""

import json
import os
import zlib
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from commands_server import CommandsServer
from rankwise.cli import main
from rankwise.cli.commands.demo import make_searches
from rankwise.data import save_store, save_svmlight

SEED = int(os.environ.get("RANKWISE_FAULTS_SEED", "0"))
TIMES = float(os.environ.get("RANKWISE_FAULTS", "0.5"))
COUNTS: dict[str, Counter] = {}


class Campaign:
    """Faults of one kind.

    Attributes
    ----------
    rng : Generator
        Made from the seed and the name of the test.
    counts : Counter
        What came of the faults, in words.
    """

    def __init__(self, name):
        self.rng = np.random.default_rng([SEED, zlib.crc32(name.encode())])
        self.counts = COUNTS.setdefault(name, Counter())

    def faults(self, n):
        """Yield so many numbers, or as many times more as were asked for."""
        yield from range(max(1, round(n * TIMES)))

    def count(self, outcome):
        self.counts[outcome] += 1


@pytest.fixture
def campaign(request):
    return Campaign(request.node.nodeid.split("/")[-1])


def pytest_terminal_summary(terminalreporter):
    if not COUNTS:
        return
    total = sum(sum(counts.values()) for counts in COUNTS.values())
    terminalreporter.section(f"{total} faults, RANKWISE_FAULTS_SEED={SEED} RANKWISE_FAULTS={TIMES:g}")
    for name, counts in COUNTS.items():
        words = ", ".join(f"{count} {outcome}" for outcome, count in sorted(counts.items()))
        terminalreporter.write_line(f"{name}: {words}")
    build = Path(__file__).parents[2] / "build"
    if build.is_dir():
        (build / "faults.json").write_text(json.dumps(COUNTS, indent=1))


@pytest.fixture(scope="session")
def server(tmp_path_factory):
    with CommandsServer(tmp_path_factory.mktemp("server")) as server:
        yield server


@pytest.fixture(scope="session")
def rows(tmp_path_factory):
    """A folder with a.txt and b.txt, a.store and b.store, a.rw and b.rw, and test.txt."""
    folder = tmp_path_factory.mktemp("rows")
    for seed, name in enumerate(("a", "b", "test")):
        X, y, qid = make_searches(25, seed)
        save_svmlight(X, y, folder / f"{name}.txt", qid=qid)
        if name != "test":
            save_store([(X, y, qid)], folder / f"{name}.store")
            options = ["--methods", "rls", "-o", str(folder / f"{name}.rw")]
            assert main(["fit", str(folder / f"{name}.txt"), *options]) == 0
    return folder
