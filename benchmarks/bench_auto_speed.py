"""What the automatic choice costs: 10,000 rows of 50 columns, and search data of 136 columns beside one RankRLSCV().

Processor seconds of two threads (their sum), and the most memory beyond X in times of X; each size in a process of its
own. ``python benchmarks/bench_auto_speed.py [--rows 300000]``
"""

from __future__ import annotations

import argparse
import resource
import time
import warnings

import numpy as np

from harness import write_json
from letor_like import make
from rankwise import AutoRanker, RankRLSCV


def small(seed):
    """10,000 rows of 50 columns, as graded queries and as one ranking."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(10_000, 50))
    worth = X[:, :10] @ rng.normal(size=10) + np.abs(X[:, 10]) * X[:, 11] + rng.normal(size=10_000)
    grades = np.digitize(worth, np.quantile(worth, [0.5, 0.75, 0.9, 0.97])).astype(float)
    return {"graded queries": (X, grades, np.arange(10_000) // 20), "one ranking": (X, worth, None)}


def seconds(model, X, y, qid):
    start, wall = time.process_time(), time.perf_counter()
    model.fit(X, y, qid)
    return time.process_time() - start, time.perf_counter() - wall


def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--rows", type=int, help="search data of so many rows instead")
    options = parser.parse_args()
    warnings.filterwarnings("ignore")
    results = []
    if options.rows is None:
        for name, (X, y, qid) in small(0).items():
            took, wall = seconds(AutoRanker(n_threads=2), X, y, qid)
            results.append({"data": name, "processor seconds": took, "seconds": wall})
            print(
                f"10,000 x 50, {name:16} {took:6.2f} processor seconds, {wall:6.2f} on the clock", flush=True
            )
    else:
        X, y, qid = make(options.rows)
        X = np.ascontiguousarray(X, dtype=np.float32)
        before = peak()
        one, one_wall = seconds(RankRLSCV(n_threads=2), X, y, qid)
        auto = AutoRanker(n_threads=2)
        took, wall = seconds(auto, X, y, qid)
        memory = (peak() - before) / X.nbytes
        results.append(
            {
                "rows": options.rows,
                "columns": X.shape[1],
                "RankRLSCV": one,
                "AutoRanker": took,
                "memory": memory,
            }
        )
        print(
            f"{options.rows:,} x {X.shape[1]}: RankRLSCV() {one:.1f} ({one_wall:.1f} on the clock), "
            f"AutoRanker() {took:.1f} ({wall:.1f}): {took / one:.1f} times; {memory:.2f} times X beyond X"
        )
        for trial in auto.search_.trials:
            print(f"  {trial.judged:6} {trial.seconds:7.2f} s  {trial.candidate.describe()}")
    write_json("auto-speed" if options.rows is None else f"auto-speed-{options.rows}", {}, results=results)


if __name__ == "__main__":
    main()
