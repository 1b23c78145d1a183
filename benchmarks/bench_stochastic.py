#!/usr/bin/env python3
"""Learning from few reads of the data: which method.

    python benchmarks/bench_stochastic.py [--rows 85000]

The table counts reads: the objective's gap to the minimum, relative to that of w = 0, and the validation error after
each read.
"""

from __future__ import annotations

import argparse

import numpy as np

import rcv1like
from harness import write_json
from rankwise.data.validation import check_qid
from rankwise.design import as_design
from rankwise.metrics import get_metric
from rankwise.objectives import SquaredObjective
from rankwise.pairs.labels import label_graph
from rankwise.solvers.krylov import conjugate_gradients
from rankwise.solvers.stochastic import stochastic
from stochastic_methods import Centred, averaged_gradients, dual_ascent

READS = 8
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


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=85_000)
    parser.add_argument("--alphas", type=float, nargs="*", default=[1.0, 16.0])
    args = parser.parse_args()
    X, y, _ = rcv1like.make(args.rows + 15_000)
    train, held = slice(0, args.rows), slice(args.rows, None)
    tables = {}
    for alpha in args.alphas:
        tables[alpha] = reads_table(X[train], y[train], (X[held], y[held]), alpha)
        print_reads(alpha, tables[alpha])
    write_json("stochastic", {}, reads=tables)


if __name__ == "__main__":
    main()
