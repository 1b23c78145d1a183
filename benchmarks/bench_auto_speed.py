"""What the automatic choice costs: 10,000 rows of 50 columns; or more rows, beside one RankRLSCV().

Processor seconds (sums over threads), and the most memory beyond X in times of X; each size in a process of its own:
generated search data of 46 columns (`letor_like.py`) with ``--rows 60000``, normal columns and five grades in queries
of 100 rows with ``--rows 1000000 --columns 136``; ``--scoring pairwise_error`` instead of NDCG@10. Test rows are 40,000
others.
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
from rankwise.metrics import get_metric


def small(seed):
    """10,000 rows of 50 columns, as graded queries and as one ranking."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(10_000, 50))
    worth = X[:, :10] @ rng.normal(size=10) + np.abs(X[:, 10]) * X[:, 11] + rng.normal(size=10_000)
    grades = np.digitize(worth, np.quantile(worth, [0.5, 0.75, 0.9, 0.97])).astype(float)
    return {"graded queries": (X, grades, np.arange(10_000) // 20), "one ranking": (X, worth, None)}


def normal(rows, columns, seed=0):
    """Normal columns in single precision, with a product, a bend and a wave in what grades depend on."""
    # Nothing here is a copy of X: the most memory before the fit has to be that of X.
    weights = (0.1 * np.random.default_rng(5).normal(size=columns)).astype(np.float32)
    rng = np.random.default_rng(seed)
    X = rng.standard_normal(size=(rows, columns), dtype=np.float32)
    worth = X @ weights + 0.5 * np.abs(X[:, 0]) * X[:, 1] + np.sin(2 * X[:, 2]) + rng.normal(size=rows)
    levels = np.quantile(worth, [0.5, 0.75, 0.9, 0.97])
    return X, np.digitize(worth, levels).astype(float), np.arange(rows) // 100


def seconds(model, X, y, qid):
    start, wall = time.process_time(), time.perf_counter()
    model.fit(X, y, qid)
    return time.process_time() - start, time.perf_counter() - wall


def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--rows", type=int, help="so many rows instead")
    parser.add_argument("--columns", type=int, help="normal columns instead of search data")
    parser.add_argument("--scoring", default="ndcg@10")
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    warnings.filterwarnings("ignore")
    results = []
    if options.rows is None:
        for name, (X, y, qid) in small(0).items():
            took, wall = seconds(AutoRanker(n_threads=options.threads), X, y, qid)
            results.append({"data": name, "processor seconds": took, "seconds": wall})
            print(
                f"10,000 x 50, {name:16} {took:6.2f} processor seconds, {wall:6.2f} on the clock", flush=True
            )
    else:
        made = normal(options.rows, options.columns) if options.columns else make(options.rows)
        others = normal(40_000, options.columns, 7) if options.columns else make(40_000, seed=7)
        X, y, qid = np.ascontiguousarray(made[0], dtype=np.float32), *made[1:]
        del made
        before = peak()
        given = {"scoring": options.scoring, "n_threads": options.threads}
        rls, auto = RankRLSCV(**given), AutoRanker(**given)
        one, one_wall = seconds(rls, X, y, qid)
        memory_of_one = (peak() - before) / X.nbytes
        took, wall = seconds(auto, X, y, qid)
        memory = (peak() - before) / X.nbytes
        metric = get_metric(options.scoring)
        scores = {
            "RankRLSCV": metric(others[1], rls.predict(others[0]), others[2]),
            "AutoRanker": metric(others[1], auto.predict(others[0], others[2]), others[2]),
        }
        results.append(
            {
                "rows": options.rows,
                "columns": X.shape[1],
                "RankRLSCV": one,
                "AutoRanker": took,
                "memory": memory,
                "scores": scores,
            }
        )
        print(
            f"{options.rows:,} x {X.shape[1]}: RankRLSCV() {one:.1f} ({one_wall:.1f} on the clock), "
            f"AutoRanker() {took:.1f} ({wall:.1f}): {took / one:.1f} times; {memory:.2f} times X beyond X "
            f"({memory_of_one:.2f} by RankRLSCV()); {options.scoring} of other rows {scores['RankRLSCV']:.4f} and "
            f"{scores['AutoRanker']:.4f}"
        )
        print(f"  {auto.cv_}\n  chosen: {auto.candidates_.chosen.description}")
        for trial in auto.search_.trials:
            print(f"  {trial.judged:6} {trial.seconds:7.2f} s  {trial.candidate.describe()}")
    write_json("auto-speed" if options.rows is None else f"auto-speed-{options.rows}", {}, results=results)


if __name__ == "__main__":
    main()
