#!/usr/bin/env python3
"""What a sweep over the violated pairs costs: nanoseconds a row, sort included, and how it grows.

    python benchmarks/bench_order_statistics.py [--largest 1000000] [--repeats 3]

Beside it runs the paper's red-black tree (red_black_tree.cpp, compiled on demand); its counts must be equal.
Writes benchmarks/results/order_statistics.json, and ends with an error if a bar is missed.
"""

import argparse
import ctypes
import json
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from rankwise.pairs.violations import ViolationSweep

HERE = Path(__file__).parent
QUERY_SIZE = 70
LEVELS = {"distinct": None, "5 levels": 5, "2 levels": 2}
BARS = {"distinct": 250.0, "5 levels": 120.0}  # ns a row at the largest size, one query, one thread
LARGEST_EXPONENT = 1.15


def make(rows, levels, query_size, rng):
    """Ranks, where queries start, and the scores of a half-trained model."""
    n_queries = rows // query_size
    rows = n_queries * query_size
    if levels is None:
        ranks = rng.permuted(np.tile(np.arange(query_size), (n_queries, 1)), axis=1).ravel()
        signal = ranks / query_size
    else:
        ranks = rng.permuted(np.tile(np.arange(query_size) % levels, (n_queries, 1)), axis=1).ravel()
        signal = ranks / levels
    return ranks, np.arange(n_queries + 1) * query_size, 2 * signal + rng.normal(size=rows)


def nanoseconds_a_row(run, rows, repeats, clock):
    run()
    times = []
    for _ in range(repeats * max(1, 100_000 // rows)):
        started = clock()
        run()
        times.append(clock() - started)
    return min(times) / rows * 1e9


def measure(sweep, scores, repeats):
    """The four operations of a solver; all but the Laplacian products include the sort."""
    rng = np.random.default_rng(0)
    rows = scores.size
    v, block = rng.normal(size=rows), rng.normal(size=(rows, 4))
    point = sweep.at(scores)
    _ = point.weight
    operations = {
        "counts": lambda: sweep.at(scores).weight,
        "smoothed": lambda: sweep.at(scores).smoothed(0.1),
        "product": lambda: point.laplacian(v),
        "product of 4": lambda: point.laplacian(block),
    }
    # One thread is timed by its processor, which other work on the machine disturbs less than the wall clock.
    clock = time.process_time if sweep.n_threads == 1 else time.perf_counter
    return {name: nanoseconds_a_row(run, rows, repeats, clock) for name, run in operations.items()}


def load_red_black_tree(folder):
    compiler = shutil.which("g++")
    if compiler is None:
        return None
    library = Path(folder) / "red_black_tree.so"
    source = HERE / "red_black_tree.cpp"
    subprocess.run([compiler, "-O3", "-std=c++17", "-shared", "-fPIC", source, "-o", library], check=True)
    function = ctypes.CDLL(str(library)).red_black_counts
    doubles = np.ctypeslib.ndpointer(np.float64, flags="C")
    integers = np.ctypeslib.ndpointer(np.int64, flags="C")
    function.argtypes = [doubles, integers, ctypes.c_int64, doubles, doubles]
    function.restype = None
    return function


def measure_red_black_tree(function, ranks, scores, point):
    lost, won = np.empty_like(scores), np.empty_like(scores)
    labels = np.ascontiguousarray(ranks, dtype=np.int64)
    started = time.process_time()
    function(scores, labels, scores.size, lost, won)
    elapsed = time.process_time() - started
    np.testing.assert_array_equal(point.won, won)
    np.testing.assert_array_equal(point.lost, lost)
    return elapsed / scores.size * 1e9


def measure_shape(rows, labels, query_size, repeats, red_black_counts):
    rng = np.random.default_rng(0)
    ranks, start, scores = make(rows, LEVELS[labels], query_size or rows, rng)
    for n_threads in (1, 2):
        sweep = ViolationSweep(ranks, start, n_threads=n_threads)
        figures = measure(sweep, scores, repeats)
        if query_size is None and n_threads == 1 and red_black_counts is not None:
            point = sweep.at(scores)
            figures["red-black counts"] = measure_red_black_tree(red_black_counts, ranks, scores, point)
        text = "  ".join(f"{name} {value:.0f}" for name, value in figures.items())
        print(f"{rows:8} {query_size or rows:10} {labels:>9} {n_threads:7}  {text}", flush=True)
        shape = "one" if query_size is None else "small"
        yield {"rows": scores.size, "shape": shape, "labels": labels, "threads": n_threads, **figures}


def run(sizes, repeats, red_black_counts):
    print(f"{'rows':>8} {'queries of':>10} {'labels':>9} {'threads':>7}  ns a row")
    return [
        result
        for query_size in (None, QUERY_SIZE)
        for labels in LEVELS
        for rows in sizes
        for result in measure_shape(rows, labels, query_size, repeats, red_black_counts)
    ]


def one_query_one_thread(results, labels):
    return [r for r in results if (r["shape"], r["labels"], r["threads"]) == ("one", labels, 1)]


def growth(results):
    """The exponent of the time of the counts between the smallest and the largest size."""
    exponents = {}
    for labels in LEVELS:
        rows = one_query_one_thread(results, labels)
        first, last = rows[0], rows[-1]
        ratio = last["counts"] * last["rows"] / (first["counts"] * first["rows"])
        exponents[labels] = float(np.log(ratio) / np.log(last["rows"] / first["rows"]))
    return exponents


def missed_bars(results, exponents):
    missed = [f"{labels}: exponent {e:.3f}" for labels, e in exponents.items() if e > LARGEST_EXPONENT]
    for labels, bar in BARS.items():
        counts = one_query_one_thread(results, labels)[-1]["counts"]
        if counts > bar:
            missed.append(f"{labels}: {counts:.0f} ns a row, bar {bar:.0f}")
    return missed


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--largest", type=int, default=1_000_000)
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    sizes = [rows for rows in (10_000, 100_000, 1_000_000) if rows <= options.largest]
    with tempfile.TemporaryDirectory() as folder:
        results = run(sizes, options.repeats, load_red_black_tree(folder))
    exponents = growth(results) if len(sizes) > 1 else {}
    for labels, exponent in exponents.items():
        print(f"time of the counts grows as rows^{exponent:.3f} for {labels}")
    target = HERE / "results" / "order_statistics.json"
    target.parent.mkdir(exist_ok=True)
    target.write_text(json.dumps({"results": results, "exponents": exponents}, indent=1))
    missed = missed_bars(results, exponents)
    print("\n".join(missed) if missed else "all bars are met")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
