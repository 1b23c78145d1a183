#!/usr/bin/env python3
"""Reading and writing a LETOR file, against scikit-learn, xgboost and fastrank.

Makes a file of about 400 MB (46 columns, six decimals, queries of 100 rows, a comment a line), reads it with everybody
in every round and compares the arrays. scikit-learn reads it without query ids, for with them it is quadratic in the
rows; ours always reads them. xgboost and fastrank read into containers of their own, so only their time is compared,
for each processor second. A store is written under a new name each time, because removing the old one is not writing.
Peak memory is that of a process of its own, beyond what it takes before.

    python benchmarks/bench_svmlight.py [--megabytes 400] [--rounds 5] [--no-peers]
"""

import argparse
import importlib.util
import io
import json
import tempfile
import time
from itertools import count
from pathlib import Path

import numpy as np
from sklearn.datasets import dump_svmlight_file, load_svmlight_file

from harness import RESULTS, environment, interleave, print_table, run_python
from rankwise.data import load_svmlight, open_store, save_store, save_svmlight

COLUMNS = 46
WRITTEN = 100_000  # rows
BARS = {"read, 2 threads": 8.0, "read, 1 thread": 5.0, "write": 10.0, "store": 0.7, "memory": 1.6}


def make_file(path, megabytes):
    """Write rows as LETOR has them: all columns, six decimals, some plain zeros."""
    rng = np.random.default_rng(0)
    step, row = 10_000, 0
    with path.open("wb") as file:
        while file.tell() < megabytes * 1e6:
            values = np.round(rng.random((step, COLUMNS)), 6)
            values[rng.random(values.shape) < 0.15] = 0
            for features in values:
                entries = " ".join(
                    f"{j}:{v:.6f}" if v else f"{j}:0" for j, v in enumerate(features.tolist(), 1)
                )
                file.write(f"{rng.integers(3)} qid:{row // 100} {entries} #docid = {row}\n".encode())
                row += 1


def assert_equal(ours, theirs):
    X, y = ours[:2]
    for mine, other in (
        (X.data, theirs[0].data),
        (X.indices, theirs[0].indices),
        (X.indptr, theirs[0].indptr),
        (y, theirs[1]),
    ):
        np.testing.assert_array_equal(mine, other)


_PEAK = """
import numpy as np
from rankwise.data import load_svmlight
import scipy.sparse, sklearn.utils
def status(key):
    with open("/proc/self/status") as lines:
        return next(float(line.split()[1]) * 1024 for line in lines if line.startswith(key))
before = status("VmRSS")
X, y, qid = load_svmlight({path!r}, n_threads={n_threads})
size = X.data.nbytes + X.indices.nbytes + X.indptr.nbytes + y.nbytes + qid.nbytes
print((status("VmHWM") - before) / size)
"""


_STORE_PEAK = """
import sys
sys.path.insert(0, {benchmarks!r})
from memory_group import AnonymousPeak
from rankwise.data import save_store
with AnonymousPeak(0.002) as memory:
    save_store({path!r}, {store!r}, dtype="float32")
print((memory.most - memory.before) / 1e6)
"""


def peers(path):
    """Processor seconds of the peers that are installed."""
    calls = {}
    if importlib.util.find_spec("xgboost"):
        import xgboost  # noqa: PLC0415

        calls["xgboost"] = lambda: xgboost.DMatrix(f"{path}?format=libsvm", nthread=1)
    if importlib.util.find_spec("fastrank"):
        import fastrank  # noqa: PLC0415

        calls["fastrank"] = lambda: fastrank.CDataset.open_ranksvm(str(path))
    return calls


def store_speed(path, folder, rounds):
    """How fast a store is written beside how fast the reader alone goes through the text."""

    numbers = count()

    def write():
        save_store(path, folder / f"store{next(numbers)}", dtype=np.float32)

    def read():
        load_svmlight(path, dtype=np.float32)

    return interleave({"read to arrays": read, "write a store": write}, repeats=rounds)


def writing_speed(X, y, qid, rounds):
    """Into memory, so that no disk takes part."""
    return interleave(
        {
            "scikit-learn": lambda: dump_svmlight_file(X, y, io.BytesIO(), zero_based=False, query_id=qid),
            "rankwise, 2 threads": lambda: save_svmlight(X, y, io.BytesIO(), qid=qid, n_threads=2),
            "rankwise, 1 thread": lambda: save_svmlight(X, y, io.BytesIO(), qid=qid, n_threads=1),
        },
        repeats=rounds,
    )


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--megabytes", type=float, default=400)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--no-peers", action="store_true", help="leave out xgboost and fastrank")
    parser.add_argument("--file", type=Path, help="a file to read instead of making one")
    arguments = parser.parse_args()
    report = {}
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        path = arguments.file or folder / "letor.txt"
        if arguments.file is None:
            make_file(path, arguments.megabytes)
        size = path.stat().st_size
        contenders = {
            "scikit-learn": lambda: load_svmlight_file(str(path)),
            "rankwise, 2 threads": lambda: load_svmlight(path, n_threads=2),
            "rankwise, 1 thread": lambda: load_svmlight(path, n_threads=1),
        }
        assert_equal(contenders["rankwise, 2 threads"](), contenders["scikit-learn"]())
        timings = interleave(contenders, repeats=arguments.rounds)
        print_table(f"Reading {size / 1e6:.0f} MB", timings)
        report["read"] = {t.name: [t.median, t.speedup, t.speedup_low, t.speedup_high] for t in timings}

        calls = {"rankwise": lambda: load_svmlight(path, n_threads=1)}
        calls.update({} if arguments.no_peers else peers(path))
        for name, call in calls.items():
            start = time.process_time()
            call()
            report[f"{name}, MB a processor second"] = size / 1e6 / (time.process_time() - start)
            print(f"{name}: {report[f'{name}, MB a processor second']:.0f} MB a processor second")

        for n_threads in (1, 2):
            share = float(run_python(_PEAK.format(path=str(path), n_threads=n_threads)))
            report[f"peak memory, {n_threads} threads"] = share
            print(f"peak memory, {n_threads} threads: {share:.2f} times the result (bar {BARS['memory']})")

        timings = store_speed(path, folder, arguments.rounds)
        print_table("Text to a store, float32", timings)
        report["store"] = {t.name: [t.median, t.speedup, t.speedup_low, t.speedup_high] for t in timings}
        script = _STORE_PEAK.format(
            benchmarks=str(Path(__file__).parent), store=str(folder / "store"), path=str(path)
        )
        peak = report["anonymous MB while a store is written"] = float(run_python(script))
        print(f"anonymous memory while a store is written: {peak:.0f} MB at its peak")
        store = open_store(folder / "store0")
        X, y, qid = load_svmlight(path, dtype=np.float32)
        assert_equal((store.X, store.y), (X, y))
        np.testing.assert_array_equal(store.qid, qid)

        X, y, qid = (array[:WRITTEN] for array in load_svmlight(path))
        report["write"] = {}
        for what in ("six decimals, as they were read", "all digits"):
            if what == "all digits":
                X.data = np.random.default_rng(0).random(X.nnz)
            timings = writing_speed(X, y, qid, arguments.rounds)
            print_table(f"Writing {WRITTEN:,} rows, {what}", timings)
            report["write"][what] = {
                t.name: [t.median, t.speedup, t.speedup_low, t.speedup_high] for t in timings
            }
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "svmlight.json").write_text(
        json.dumps({**report, "bars": BARS, "environment": environment()}, indent=1)
    )


if __name__ == "__main__":
    main()
