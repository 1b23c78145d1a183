#!/usr/bin/env python3
"""The RankSVM paper's Figure 1 on text of the shape of RCV1: cost of an evaluation, run time, test error.

    python benchmarks/papers/tree_ranksvm.py [--smallest 1000] [--largest 512000] [--seconds 30]

alpha 1e-5, gap 1e-3, m = 1,000, 2,000, ... rows with real-valued scores; test error on 20,000 rows of another seed.

ours        RankSVM with its defaults, which stops at 1e-3 of what can be gained: at most the gap of the others
TreeRSVM    plain bundle method with the paper's red-black tree: its method, our implementation of it
PairRSVM    the same with all pairs enumerated; its evaluations are measured, and once a training would take more than
            `--seconds` its time is extrapolated (marked ~) from an evaluation's quadratic cost and TreeRSVM's steps
PRSVM       Newton on the squared hinge of a list of all pairs: memory grows with their number, up to 8,000 rows
sksurv      scikit-survival's FastSurvivalSVM (squared hinge), if it is installed; it needs a dense X, up to 2,000 rows

The paper: 18 minutes for TreeRSVM at 512,000 rows, 83 hours for SVM^rank and 122 for PairRSVM, on a machine of 2006.
"""

import argparse
import functools
import sys
import time
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import rcv1like
from harness import write_json
from ranksvm_methods import (
    CountedPairs,
    by_enumeration,
    by_red_black_tree,
    label_ranks,
    listed_pairs,
    make_design,
    our_hinge,
)
from rankwise import RankSVM
from rankwise.losses import SquaredHingeLoss
from rankwise.metrics import pairwise_error
from rankwise.objectives import HingeObjective, MeanLoss
from rankwise.solvers.bundle import minimise_by_planes
from rankwise.solvers.newton import minimise_by_newton

ALPHA, GAP = 1e-5, 1e-3
LARGEST_LIST = 8000
LARGEST_DENSE = 2000


def seconds(call):
    start = time.perf_counter()
    result = call()
    return time.perf_counter() - start, result


def evaluation(objective, coef):
    """Seconds of one loss and subgradient, from coefficients to coefficients."""

    def evaluate():
        point = objective.at(coef)
        return point.value, point.gradient

    return min(seconds(evaluate)[0] for _ in range(2))


def scikit_survival(X, y):
    try:
        from sksurv.svm import FastSurvivalSVM  # noqa: PLC0415
        from sksurv.util import Surv  # noqa: PLC0415
    except ImportError:
        return None
    events = Surv.from_arrays(np.ones(y.size, dtype=bool), y - y.min() + 1e-3)
    # Its objective is ½‖w‖² + ½ alpha Σ loss.
    model = FastSurvivalSVM(alpha=1 / (ALPHA * y.size * (y.size - 1) / 2), fit_intercept=False)
    dense = X.toarray().astype(np.float64)
    took, _ = seconds(lambda: model.fit(dense, events))
    return took, model.coef_


def run(rows, test, limit):
    X, y, _ = rcv1like.make(rows, "real")
    error = functools.partial(lambda coef: pairwise_error(test[1], test[0] @ coef))
    row = {"rows": rows}
    took, model = seconds(lambda: RankSVM(ALPHA, tol=GAP, n_threads=1).fit(X, y))
    row["ours"] = {"seconds": took, "reads": model.n_reads_, "error": error(model.coef_)}
    design = make_design(X, 1)
    row["ours"]["evaluation"] = evaluation(our_hinge(design, y), model.coef_)
    tree = HingeObjective(design, CountedPairs(label_ranks(y), by_red_black_tree))
    row["TreeRSVM"] = {"evaluation": evaluation(tree, model.coef_)}
    took, solution = seconds(
        lambda: minimise_by_planes(tree, ALPHA, tol=GAP, is_absolute=True, line_search=False)
    )
    row["TreeRSVM"].update(seconds=took, reads=solution.n_reads, error=error(solution.coef))
    pair = HingeObjective(design, CountedPairs(label_ranks(y), by_enumeration))
    if not run.pair_rows:  # the first size may be far beyond what can be enumerated
        some = slice(min(rows, 4000))
        few = HingeObjective(make_design(X[some], 1), CountedPairs(label_ranks(y[some]), by_enumeration))
        run.pair_evaluation, run.pair_rows = evaluation(few, model.coef_), y[some].size
    known = run.pair_evaluation * (rows / run.pair_rows) ** 2
    measured = known < limit / 4
    if measured:
        run.pair_evaluation, run.pair_rows = evaluation(pair, model.coef_), rows
        known = run.pair_evaluation
    row["PairRSVM"] = {
        "evaluation": known,
        "evaluation_extrapolated": not measured,
        "seconds": known * solution.n_iter,
        "extrapolated": True,
    }
    if known * solution.n_iter < limit:
        took, _ = seconds(
            lambda: minimise_by_planes(pair, ALPHA, tol=GAP, is_absolute=True, line_search=False)
        )
        row["PairRSVM"].update(seconds=took, extrapolated=False)
    if rows <= LARGEST_LIST:
        listed = MeanLoss(design, listed_pairs(y), SquaredHingeLoss())
        took, newton = seconds(lambda: minimise_by_newton(listed, ALPHA, tol=GAP, is_absolute=True))
        row["PRSVM"] = {"seconds": took, "error": error(newton.coef)}
    if rows <= LARGEST_DENSE:
        peer = scikit_survival(X, y)
        if peer is not None:
            row["sksurv"] = {"seconds": peer[0], "error": error(peer[1])}
    return row


run.pair_evaluation, run.pair_rows = 0.0, 0


def show(row):
    def cell(name, key, scale=1.0):
        value = row.get(name, {}).get(key)
        if value is None:
            return f"{'-':>10}"
        extrapolated = row[name].get("extrapolated" if key == "seconds" else "evaluation_extrapolated", False)
        return f"{'~' if extrapolated else ' '}{value * scale:9.4g}"

    cells = [cell(name, "evaluation", 1e3) for name in ("ours", "TreeRSVM", "PairRSVM")]
    cells += [cell(name, "seconds") for name in ("ours", "TreeRSVM", "PairRSVM", "PRSVM", "sksurv")]
    cells += [cell(name, "error") for name in ("ours", "TreeRSVM", "PRSVM", "sksurv")]
    print(f"{row['rows']:8} " + " ".join(cells), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--smallest", type=int, default=1000)
    parser.add_argument("--largest", type=int, default=512_000)
    parser.add_argument("--seconds", type=float, default=30, help="the most that a quadratic method may take")
    options = parser.parse_args()
    test = rcv1like.make(20_000, "real", seed=1)[:2]
    heads = [
        "eval ms",
        "tree",
        "pairs",
        "train s",
        "tree",
        "pairs",
        "PRSVM",
        "sksurv",
        "error",
        "tree",
        "PRSVM",
        "sksurv",
    ]
    print(f"{'rows':>8} " + " ".join(f"{head:>10}" for head in heads))
    results = []
    rows = options.smallest
    with threadpool_limits(1, user_api="blas"):
        while rows <= options.largest:
            results.append(run(rows, test, options.seconds))
            show(results[-1])
            rows *= 2
    name = "tree_ranksvm"
    if (options.smallest, options.largest) != (1000, 512_000):
        name += f"_{options.smallest}_{options.largest}"
    write_json(name, {}, figure=results, alpha=ALPHA, gap=GAP)


if __name__ == "__main__":
    main()
