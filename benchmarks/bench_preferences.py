#!/usr/bin/env python3
"""Learning from preferences costs O(ms + l) a product: time against the number of pairs l, on text-like rows.

    bench_preferences.py [--rows 100000] [--most 10000000] [--threads 1]

Prints a table and writes results/preferences.json. The part that grows with l is the graph's Laplacian; its
exponent (the slope in log-log) must be about 1. "whole" is one product X'LXv, "X only" the same without the graph.
"""

from __future__ import annotations

import argparse
import time

import numpy as np

from harness import plot_growth, write_json
from rankwise.design import as_design
from rankwise.objectives import SquaredObjective
from rankwise.pairs.preferences import preference_graph
from rcv1like import make


def best_of(function, repeats=5):
    function()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        function()
        times.append(time.perf_counter() - start)
    return min(times)


def measure(design, n_pairs, n_threads, seed=0):
    rng = np.random.default_rng(seed)
    rows, columns = design.shape
    winner = rng.integers(rows, size=n_pairs)
    loser = (winner + rng.integers(1, rows, size=n_pairs)) % rows
    graph = preference_graph(winner, loser, rows, n_threads=n_threads)
    start = time.perf_counter()
    graph.neighbours  # noqa: B018
    build = time.perf_counter() - start
    objective = SquaredObjective(design, graph)
    v, f = rng.normal(size=columns), rng.normal(size=rows)
    return {
        "pairs": n_pairs,
        "build": build,
        "laplacian": best_of(lambda: graph.laplacian(f)),
        "whole": best_of(lambda: objective.product(v)),
        "X only": best_of(lambda: design.tdot(design.dot(v))),
    }


def exponent(points, name):
    """The slope of time against pairs in log-log, over the larger half, where start-up costs are gone."""
    late = points[len(points) // 2 :]
    return float(np.polyfit(np.log([p["pairs"] for p in late]), np.log([p[name] for p in late]), 1)[0])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--most", type=int, default=10_000_000)
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    X, _, _ = make(options.rows)
    design = as_design(X, options.threads)
    sizes = [
        n for n in np.unique(np.geomspace(1e5, 1e7, 7).round().astype(int)).tolist() if n <= options.most
    ]
    print(
        f"{options.rows:,} rows, {X.nnz / options.rows:.0f} non-zeros a row, {options.threads} thread(s); milliseconds"
    )
    print(f"{'pairs':>12} {'build':>9} {'laplacian':>10} {'whole':>9} {'X only':>9} {'ns a pair':>10}")
    points = []
    for n_pairs in sizes:
        point = measure(design, n_pairs, options.threads)
        points.append(point)
        ms = {name: 1e3 * point[name] for name in ("build", "laplacian", "whole", "X only")}
        print(
            f"{n_pairs:12,} {ms['build']:9.1f} {ms['laplacian']:10.2f} {ms['whole']:9.2f} {ms['X only']:9.2f} "
            f"{1e9 * point['laplacian'] / n_pairs:10.2f}",
            flush=True,
        )
    slope = exponent(points, "laplacian")
    print(f"the Laplacian grows as pairs^{slope:.2f}")
    plot_growth("growth_with_pairs", "pairs", sizes, [point["laplacian"] for point in points], slope)
    write_json(
        "preferences",
        {},
        rows=options.rows,
        nonzeros=int(X.nnz),
        threads=options.threads,
        exponent=slope,
        points=points,
    )


if __name__ == "__main__":
    main()
