#!/usr/bin/env python3
"""What it costs that columns far from zero are shifted: products with and without such columns.

    python benchmarks/bench_offsets.py [--repeats 15] [--rows 100000] [--columns 1]

The same matrix twice, once with an offset of 1e9 standard deviations on some columns, which are filled in both; one
thread, processor time, in turn in every round. Arrays in float64 are shifted in a copy, the others beside the matrix.
At the end, how long it takes to see that no column is far from zero. Writes benchmarks/results/offsets.json.
"""

import argparse
import tempfile
import time
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from threadpoolctl import threadpool_limits

from bench_fused_product import equal_queries
from harness import interleave, print_table, write_json
from rankwise.data import open_store, save_store
from rankwise.design import as_design, comparing_design

FAR = 1e9
QUERY = 50


def matrices(rows, far, *, sparse):
    """Return the matrix with its first columns filled, near zero and far from it."""
    rng = np.random.default_rng(0)
    if sparse:
        rest = sp.random(rows, 20_000, density=60 / 20_000, format="csr", random_state=rng)
        first = rng.normal(size=(rows, far))
        return tuple(sp.csr_matrix(sp.hstack([first + offset, rest])) for offset in (0.0, FAR))
    X = rng.normal(size=(rows, 100))
    moved = X.copy()
    moved[:, :far] += FAR
    return X, moved


def in_store(X, folder):
    save_store([(X, np.zeros(X.shape[0]), None)], folder, dtype=np.float64)
    return open_store(folder).X


def storages(folder):
    return {
        "dense, float64": (False, lambda X, _: X),
        "dense, float32": (False, lambda X, _: np.float32(X)),
        "sparse, float64": (True, lambda X, _: X),
        "sparse, float32": (True, lambda X, _: X.astype(np.float32)),
        "store": (True, lambda X, name: in_store(X, folder / name)),
    }


def products(design, rows):
    rng = np.random.default_rng(1)
    v, u = rng.normal(size=design.shape[1]), rng.normal(size=rows)
    fused = design.gram_product(equal_queries(rows, QUERY))
    calls = {"Xv": lambda: design.dot(v), "X'u": lambda: design.tdot(u)}
    if fused is not None:
        calls["X'LXv"] = lambda: fused(v[:, None])
    return calls


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--repeats", type=int, default=15)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--columns", type=int, default=1, help="how many are far from zero")
    options = parser.parse_args()
    tables = {}
    with threadpool_limits(1), tempfile.TemporaryDirectory() as folder:
        for name, (sparse, store) in storages(Path(folder)).items():
            near, far = (
                store(X, str(number))
                for number, X in enumerate(matrices(options.rows, options.columns, sparse=sparse))
            )
            calls = [products(comparing_design(X, 1), options.rows) for X in (near, far)]
            for product in calls[0]:
                both = {"near zero": calls[0][product], "far from zero": calls[1][product]}
                title = f"{name}: {product}"
                tables[title] = interleave(both, options.repeats, clock=time.process_time)
                print_table(title, tables[title])
            looking = {
                "one product": calls[0]["Xv"],
                "looking at the columns": lambda X=near: comparing_design(X, 1),
                "without looking": lambda X=near: as_design(X, 1),
            }
            title = f"{name}: looking"
            tables[title] = interleave(looking, options.repeats, clock=time.process_time)
            print_table(title, tables[title])
    write_json("offsets", tables, rows=options.rows, columns=options.columns)


if __name__ == "__main__":
    main()
