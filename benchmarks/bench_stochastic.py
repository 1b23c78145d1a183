#!/usr/bin/env python3
"""Learning from few reads of the data: which method, and one pass of partial_fit beside a converged model.

    python benchmarks/bench_stochastic.py [--rows 85000] [--calls 10] [--call-rows 100000]

The first table counts reads: the objective's gap to the minimum, relative to that of w = 0, and the validation error
after each read. The second streams calls of generated rows once, and compares with conjugate gradients on all of them,
and with `sklearn.linear_model.SGDClassifier` on differences of sampled pairs, a pair a row. The third streams uniform
sparse rows in calls of several sizes.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
import scipy.sparse as sp
from sklearn.linear_model import SGDClassifier

import rcv1like
from harness import write_json
from rankwise import RankRLS
from rankwise.data.validation import check_qid
from rankwise.design import as_design
from rankwise.metrics import get_metric
from rankwise.objectives import SquaredObjective
from rankwise.pairs.labels import label_graph
from rankwise.solvers.krylov import conjugate_gradients
from rankwise.solvers.stochastic import stochastic
from stochastic_methods import Centred, averaged_gradients, dual_ascent

READS = 8
PAIR_ALPHAS = (1e-4, 1e-5, 1e-6)
error = get_metric("pairwise_error")


class Iterates:
    """Keeps what a solver of rankwise has after each read."""

    def __init__(self):
        self.kept = []

    def __call__(self, coef, gap, n_iter):
        self.kept.append(coef.copy())
        return len(self.kept) >= READS


def reads_table(X, y, validation, alpha, block_rows=10_000):
    """Return {method: [(gap, validation error) after each read]}."""
    objective = SquaredObjective(as_design(X), label_graph(y, check_qid(None, y.size)))
    best = conjugate_gradients(objective, alpha, tol=1e-8).coef

    def value(w):
        return float(objective.at(w).value) + alpha * (w @ w)

    least, most = value(best), value(np.zeros_like(best))
    data = Centred(X, y, block_rows)
    ours, gradients = Iterates(), Iterates()
    stochastic(objective, alpha, tol=1e-12, monitor=ours)
    conjugate_gradients(objective, alpha, tol=1e-12, monitor=gradients)
    methods = {
        # The residual from which conjugate gradients continue takes a read that changes nothing.
        "ours: a block memory, then CG": [ours.kept[0], *ours.kept][:READS],
        "conjugate gradients": gradients.kept,
        "block dual ascent": [w.copy() for w in dual_ascent(data, alpha, READS)],
        "averaged gradients": [w.copy() for w in averaged_gradients(data, alpha, READS)],
    }
    rows = as_design(validation[0])
    judged = {
        name: [((value(w) - least) / (most - least), error(validation[1], rows.dot(w))) for w in iterates]
        for name, iterates in methods.items()
    }
    judged["minimum"] = [(0.0, error(validation[1], rows.dot(best)))]
    return judged


def print_reads(alpha, table):
    print(f"\nalpha {alpha}: gap | validation error after 1, 2, 3, 5, 8 reads")
    for name, values in table.items():
        shown = [values[k] for k in (0, 1, 2, 4, 7) if k < len(values)]
        print(f"{name:30} " + "  ".join(f"{gap:7.1e} | {err:.5f}" for gap, err in shown))


def pair_differences(X, y, seed):
    """Differences of as many pairs of unlike labels as there are rows, half of them turned round."""
    rng = np.random.default_rng(seed)
    winner, loser = (rng.choice(np.flatnonzero(y == c), y.size) for c in (1, 0))
    sign = np.where(np.arange(y.size) % 2 == 0, 1.0, -1.0)
    return sp.diags_array(sign) @ (X[winner] - X[loser]), sign


def stream(calls, call_rows, alphas):
    """One pass over all calls by every model, and conjugate gradients on all rows together."""
    X, y, _ = rcv1like.make(call_rows, seed=calls)
    X_val, y_val = X[:20_000], y[:20_000]
    models = {f"partial_fit, alpha {alpha:g}": RankRLS(alpha) for alpha in alphas}
    pairs = {
        f"SGDClassifier on pairs, alpha {a:g}": SGDClassifier(alpha=a, random_state=0) for a in PAIR_ALPHAS
    }
    seconds = dict.fromkeys([*models, *pairs], 0.0)
    parts, lines = [], []
    for call in range(calls):
        X, y, _ = rcv1like.make(call_rows, seed=call)
        parts.append((X, y))
        for name, model in models.items():
            start = time.process_time()
            model.partial_fit(X, y)
            seconds[name] += time.process_time() - start
        differences, signs = pair_differences(X, y, call)
        for name, model in pairs.items():
            start = time.process_time()
            model.partial_fit(differences, signs, classes=[-1.0, 1.0])
            seconds[name] += time.process_time() - start
        errors = {name: error(y_val, model.predict(X_val)) for name, model in models.items()}
        errors |= {name: error(y_val, X_val @ model.coef_.ravel()) for name, model in pairs.items()}
        lines.append({"rows": (call + 1) * call_rows, **errors})
        print(f"{lines[-1]['rows']:9d} rows: " + ", ".join(f"{e:.5f}" for e in errors.values()))
    print("  in the order: " + "; ".join(errors))
    X = sp.vstack([X for X, _ in parts], format="csr")
    y = np.concatenate([y for _, y in parts])
    parts.clear()
    converged = {alpha: converge(X, y, alpha, X_val, y_val, lines[-1]) for alpha in alphas}
    print(
        "processor seconds, making the pairs not counted: "
        + str({k: round(v, 1) for k, v in seconds.items()})
    )
    return {"errors": lines, "converged": converged, "seconds": seconds}


def small_calls(sizes, alpha=1.0, rows=50_000, columns=5_000):
    """One pass over columns that are all alike, in calls of several sizes: the error over the converged model's."""
    rng = np.random.default_rng(0)
    X = sp.random(rows + 10_000, columns, density=20 / columns, random_state=rng, format="csr")
    y = X @ rng.normal(size=columns) + 0.3 * rng.normal(size=X.shape[0])
    X_val, y_val = X[rows:], y[rows:]
    ratios = {}
    for n_rows in (rows, 6_000):  # blocks that are complete, and a stream that ends before the first one is
        best = RankRLS(alpha, solver="cg", tol=1e-8).fit(X[:n_rows], y[:n_rows])
        for size in sizes:
            model = RankRLS(alpha)
            start = time.process_time()
            for first in range(0, n_rows, size):
                part = slice(first, min(first + size, n_rows))
                model.partial_fit(X[part], y[part])
            seconds = time.process_time() - start
            ratio = error(y_val, model.predict(X_val)) / error(y_val, best.predict(X_val))
            ratios[f"{n_rows} in {size}"] = ratio
            print(
                f"{n_rows:7d} rows in calls of {size:6d}: {ratio:.3f} times the converged error, {seconds:.2f} s"
            )
    return ratios


def converge(X, y, alpha, X_val, y_val, streamed):
    """Conjugate gradients to 1e-6: the validation error after every iteration."""
    errors = []

    def judge(coef, gap, n_iter):
        errors.append(error(y_val, X_val @ coef))
        return False

    objective = SquaredObjective(as_design(X), label_graph(y, check_qid(None, y.size)))
    conjugate_gradients(objective, alpha, tol=1e-6, monitor=judge)
    print(f"alpha {alpha}: conjugate gradients end at {errors[-1]:.5f} after {len(errors)} reads; after 1, 2, ...: "
          + " ".join(f"{e:.5f}" for e in errors[:10]))  # fmt: skip
    ratio = streamed[f"partial_fit, alpha {alpha:g}"] / errors[-1]
    print(f"  one pass of partial_fit: {ratio:.3f} times the converged error (bar 1.1)")
    return errors


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=85_000)
    parser.add_argument("--calls", type=int, default=10)
    parser.add_argument("--call-rows", type=int, default=100_000)
    parser.add_argument("--small-calls", type=int, nargs="*", default=[100, 500, 2_000, 10_000])
    parser.add_argument("--alphas", type=float, nargs="*", default=[1.0, 16.0])
    args = parser.parse_args()
    X, y, _ = rcv1like.make(args.rows + 15_000)
    train, held = slice(0, args.rows), slice(args.rows, None)
    tables = {}
    for alpha in args.alphas:
        tables[alpha] = reads_table(X[train], y[train], (X[held], y[held]), alpha)
        print_reads(alpha, tables[alpha])
    del X
    print(f"\nA stream of {args.calls} calls of {args.call_rows} rows: validation error")
    streamed = stream(args.calls, args.call_rows, args.alphas)
    print("\nA stream in small calls, of uniform sparse rows")
    write_json("stochastic", {}, reads=tables, stream=streamed, small_calls=small_calls(args.small_calls))


if __name__ == "__main__":
    main()
