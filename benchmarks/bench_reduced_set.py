"""A large reduced set: the direct streamed solution against preconditioned conjugate gradients.

Prints time, peak memory and the objective of each, every contender in a process of its own. Run with
``python benchmarks/bench_reduced_set.py --rows 500000 --basis 2000 --memory-limit 4``; the default is a small size. The
bar at full size: less than 10 GiB, and objectives that agree to 1e-3.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time

import numpy as np

from harness import write_json
from rankwise import KernelRankRLS
from rankwise.data.validation import check_qid
from rankwise.losses import SquaredLoss
from rankwise.pairs.labels import label_graph


def make(rows, columns, queries, seed=0):
    """Return rows whose label depends on an interaction, so that a kernel is worth its price."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, columns))
    y = np.round(X[:, 0] * X[:, 1] + np.abs(X[:, 2]) + 0.5 * rng.normal(size=rows))
    return X, y, None if queries == 1 else np.sort(rng.integers(queries, size=rows))


def run(solver, args):
    X, y, qid = make(args.rows, args.columns, args.queries)
    model = KernelRankRLS(
        gamma=0.5 / args.columns,
        alpha=args.alpha,
        basis=args.basis,
        solver=solver,
        tol=args.tol,
        memory_limit=int(args.memory_limit * 2**30),
    )
    start = time.perf_counter()
    model.fit(X, y, qid)
    seconds = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    loss = float(SquaredLoss().at(label_graph(y, check_qid(qid, y.size)), model.predict(X)).value)
    between = model.kernel_.matrix(model.X_fit_, model.X_fit_)
    penalty = args.alpha * float(model.dual_coef_ @ between @ model.dual_coef_)
    return {"seconds": seconds, "peak_gib": peak, "n_iter": model.n_iter_, "objective": loss + penalty}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--basis", type=int, default=300)
    parser.add_argument("--columns", type=int, default=46)
    parser.add_argument("--queries", type=int, default=1)
    parser.add_argument("--alpha", type=float, default=1.0)
    parser.add_argument("--tol", type=float, default=1e-5)
    parser.add_argument(
        "--memory-limit", type=float, default=4.0, help="GiB; features that exceed it are made again"
    )
    parser.add_argument("--solver", choices=("direct", "cg"), help="run one in this process and print JSON")
    args = parser.parse_args()
    if args.solver:
        print(json.dumps(run(args.solver, args)))
        return
    results = {}
    for solver in ("direct", "cg"):
        command = [sys.executable, __file__, *sys.argv[1:], "--solver", solver]
        results[solver] = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
        found = results[solver]
        print(
            f"{solver:6s} {found['seconds']:8.1f} s  {found['peak_gib']:6.2f} GiB  {found['n_iter']:4d} iterations  "
            f"objective {found['objective']:.10g}"
        )
    excess = results["cg"]["objective"] / results["direct"]["objective"] - 1
    print(f"relative excess of the objective: {excess:.1e} (bar: 1e-3)")
    write_json("reduced_set", {}, results=results, **vars(args))


if __name__ == "__main__":
    main()
