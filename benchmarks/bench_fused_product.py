#!/usr/bin/env python3
"""The fused product X'LXv against SciPy's two products X'(Xv), on text-like data.

SciPy multiplies a float32 matrix and a float64 vector by converting the whole matrix first, so it is shown
with the matrix in float64 as well: that is the reference. At the end, what a dense Gram matrix costs.
"""

from __future__ import annotations

import argparse

import numpy as np

import rcv1like
from harness import interleave, print_table, write_json
from rankwise.design import CsrDesign, as_design
from rankwise.pairs.blocks import QueryBlocks, laplacian


def equal_queries(rows, size):
    """Query centering (each pair weighs 1 / size) of queries of `size` consecutive rows."""
    start = np.unique(np.append(np.arange(0, rows, size), rows)).astype(np.int64)
    queries = start.size - 1
    return QueryBlocks(
        order=np.arange(rows),
        query_start=start,
        segment_start=start,
        query_segment=np.arange(queries + 1),
        degree=np.ones(queries),
        scale=1.0 / np.diff(start),
        coupling="all",
    )


def contenders(X, query_size):
    X64 = X.astype(np.float64)
    v = np.random.default_rng(0).standard_normal(X.shape[1])
    V = np.random.default_rng(0).standard_normal((X.shape[1], 8))
    blocks = equal_queries(X.shape[0], query_size)
    calls = {
        "SciPy, float64": lambda: X64.T @ (X64 @ v),
        "SciPy, float32": lambda: X.T @ (X @ v),
    }
    for dtype, matrix in (("float32", X), ("float64", X64)):
        for threads in (1, 2):
            label = f"{dtype}, {threads} thread{'s' * (threads > 1)}"
            plain, renamed = CsrDesign(matrix, threads), CsrDesign(matrix, threads)
            calls[f"unfused, {label}"] = lambda d=plain, t=threads: d.tdot(
                laplacian(blocks, d.dot(v), n_threads=t)
            )
            product = plain.gram_product(blocks, relabel=False)
            calls[f"fused, {label}"] = lambda p=product: p(v)
            product = renamed.gram_product(blocks, relabel=True)
            calls[f"fused, columns by frequency, {label}"] = lambda p=product: p(v)
            calls[f"the same, 8 vectors, {label}"] = lambda p=product: p(V)
    # What reading the bytes alone costs: values and 16-bit ids, summed in one pass.
    bytes_read = X.nnz * (4 + (2 if X.shape[1] < 1 << 16 else 4))
    words = np.ones(bytes_read // 8)
    calls["reading the bytes of float32, 1 thread"] = words.sum
    return calls


def dense_contenders(rows=500_000, columns=46, queries=5_000):
    X = np.random.default_rng(0).standard_normal((rows, columns))
    size = rows // queries
    blocks = equal_queries(rows, size)

    def centre_a_copy():
        centred = X - np.repeat(np.add.reduceat(X, blocks.query_start[:-1]) / size, size, axis=0)
        return centred.T @ centred

    design, half = as_design(X), as_design(X.astype(np.float32))
    np.testing.assert_allclose(design.gram_matrix(blocks), centre_a_copy(), rtol=1e-9, atol=1e-6)
    return {
        "numpy: centre a copy, X'X": centre_a_copy,
        "gram_matrix, float64": lambda: design.gram_matrix(blocks),
        "gram_matrix, float32": lambda: half.gram_matrix(blocks),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=400_000)
    parser.add_argument("--columns", type=int, nargs="*", default=[rcv1like.N_FEATURES, 1_000_000])
    parser.add_argument("--repeats", type=int, default=9)
    args = parser.parse_args()
    tables = {}
    for columns in args.columns:
        X, _, _ = rcv1like.make(args.rows, features=columns)
        for name, size in (("queries of 100", 100), ("one global ranking", args.rows)):
            title = f"X'LXv, {X.shape[0]:,} x {columns:,}, {X.nnz:,} non-zeros, {name}"
            tables[title] = interleave(contenders(X, size), args.repeats)
            print_table(title, tables[title], per=X.nnz)
    title = "X'LX, dense 500,000 x 46, 5,000 queries"
    tables[title] = interleave(dense_contenders(), args.repeats)
    print_table(title, tables[title])
    write_json("fused_product", tables)


if __name__ == "__main__":
    main()
