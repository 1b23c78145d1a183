#!/usr/bin/env python3
"""The RankSVM paper's Figure 1 on text of the shape of RCV1: cost of an evaluation, run time, test error.

    python benchmarks/papers/tree_ranksvm.py [--largest 512000] [--seconds 120]

alpha 1e-5, gap 1e-3, m = 1,000, 2,000, ... rows with real-valued scores; test error on 20,000 rows of another seed.

ours        RankSVM with its defaults
TreeRSVM    plain bundle method with the paper's red-black tree: its method, our implementation of it
PairRSVM    the same with all pairs enumerated; its evaluations are measured, and once a training would take more than
            `--seconds` its time is extrapolated (marked ~) from an evaluation's quadratic cost and TreeRSVM's steps
PRSVM       Newton on the squared hinge of a list of all pairs: memory grows with their number, up to 8,000 rows
sksurv      scikit-survival's FastSurvivalSVM (squared hinge), if it is installed; it needs a dense X

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
    model = FastSurvivalSVM(alpha=1 / (2 * ALPHA * y.size * (y.size - 1) / 2), fit_intercept=False)
    took, _ = seconds(lambda: model.fit(X.toarray(), events))
    return took


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
    took, solution = seconds(lambda: minimise_by_planes(tree, ALPHA, tol=GAP, line_search=False))
    row["TreeRSVM"].update(seconds=took, reads=solution.n_reads, error=error(solution.coef))
    pair = HingeObjective(design, CountedPairs(label_ranks(y), by_enumeration))
    known = run.pair_evaluation * (rows / run.pair_rows) ** 2 if run.pair_rows else 0.0
    measured = known < limit
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
        took, _ = seconds(lambda: minimise_by_planes(pair, ALPHA, tol=GAP, line_search=False))
        row["PairRSVM"].update(seconds=took, extrapolated=False)
    if rows <= LARGEST_LIST:
        listed = MeanLoss(design, listed_pairs(y), SquaredHingeLoss())
        took, newton = seconds(lambda: minimise_by_newton(listed, ALPHA, tol=GAP))
        row["PRSVM"] = {"seconds": took, "error": error(newton.coef)}
    if rows <= LARGEST_DENSE:
        took = scikit_survival(X, y)
        if took is not None:
            row["sksurv"] = {"seconds": took}
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
    cells += [cell(name, "error") for name in ("ours", "TreeRSVM", "PRSVM")]
    print(f"{row['rows']:8} " + " ".join(cells), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--largest", type=int, default=512_000)
    parser.add_argument(
        "--seconds", type=float, default=120, help="the most that a quadratic method may take"
    )
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
    ]
    print(f"{'rows':>8} " + " ".join(f"{head:>10}" for head in heads))
    results = []
    rows = 1000
    with threadpool_limits(1, user_api="blas"):
        while rows <= options.largest:
            results.append(run(rows, test, options.seconds))
            show(results[-1])
            rows *= 2
    write_json("tree_ranksvm", {}, figure=results, alpha=ALPHA, gap=GAP)


if __name__ == "__main__":
    main()
