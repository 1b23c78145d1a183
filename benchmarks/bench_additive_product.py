#!/usr/bin/env python3
"""The fused product X'LXv of an additive model from codes, against the fused product on the expanded CSR matrix.

Processor time, interleaved, one and two threads, one vector, five and eight. The default is a tenth of the full size,
which ``--rows 1000000`` gives. Then the bytes of both storages, and what encoding, predicting, a Gram matrix and the
gains of all pairs of columns take.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
import scipy.sparse as sp

from bench_fused_product import equal_queries
from harness import interleave, print_table, write_json
from hats import hat_matrix
from rankwise.design import AdditiveDesign, CsrDesign
from rankwise.design.pair_statistics import pair_gains
from rankwise.design.term_scores import predict
from rankwise.design.terms import Curve, Surface, Terms


def make(rows, columns, kind):
    """Columns as ranking sets have them: skewed numbers, or counts with many ties."""
    rng = np.random.default_rng(0)
    if kind == "ties":
        return np.minimum(rng.geometric(0.5, size=(rows, columns)), 9).astype(np.float32)
    return rng.gamma(1.0, size=(rows, columns)).astype(np.float32)


def quantile_terms(X, n_knots, n_pairs, grid=5):
    """Curves of unique quantiles for every column, and surfaces of neighbouring columns on coarse grids."""

    def curve(column, n):
        # A grid's knots are among the curve's where that can be, as the estimators choose them.
        knots = np.unique(np.quantile(X[:20_000, column], np.linspace(0, 1, n)))
        return Curve(column, knots.astype(np.float64))

    curves = tuple(curve(j, n_knots) for j in range(X.shape[1]))
    surfaces = tuple(Surface(curve(2 * p, grid), curve(2 * p + 1, grid)) for p in range(n_pairs))
    return Terms(curves, surfaces)


def expand(X, terms, step=50_000):
    """The expanded matrix in float32, made in blocks of rows."""
    blocks = [hat_matrix(X[a : a + step], terms).astype(np.float32) for a in range(0, X.shape[0], step)]
    return sp.vstack(blocks, format="csr")


def contenders(X, terms, query_size, expansion):
    v = np.random.default_rng(1).standard_normal(terms.n_values)
    V5, V = (np.random.default_rng(1).standard_normal((terms.n_values, k)) for k in (5, 8))
    blocks = equal_queries(X.shape[0], query_size)
    calls = {}
    for threads in (1, 2):
        label = f"{threads} thread{'s' * (threads > 1)}"
        plain = CsrDesign(expansion, threads)
        coded = AdditiveDesign.encode(X, terms, n_threads=threads)
        product, peer = coded.gram_product(blocks), plain.gram_product(blocks)
        np.testing.assert_allclose(product(v), peer(v), rtol=1e-4, atol=1e-3)
        calls[f"CSR, {label}"] = lambda p=peer: p(v)
        calls[f"codes, {label}"] = lambda p=product: p(v)
        calls[f"codes, 5 vectors, {label}"] = lambda p=product: p(V5)
        calls[f"CSR, 8 vectors, {label}"] = lambda p=peer: p(V)
        calls[f"codes, 8 vectors, {label}"] = lambda p=product: p(V)
        calls[f"codes, X v alone, {label}"] = lambda d=coded: d.dot(v)
        u = np.ones(X.shape[0])
        calls[f"codes, X'u alone, {label}"] = lambda d=coded, u=u: d.tdot(u)
        if threads == 1:
            calls["reading the codes"] = lambda d=coded: d.codes.view(np.uint64).sum()
    return calls


def other_work(X, terms):
    """What is done once a fit, and predicting."""
    blocks = equal_queries(X.shape[0], 100)
    v = np.random.default_rng(1).standard_normal(terms.n_values)
    coded = AdditiveDesign.encode(X, terms)
    product, bins, g = (
        coded.gram_product(blocks),
        coded.bins(),
        np.random.default_rng(2).standard_normal(X.shape[0]),
    )
    query = np.ascontiguousarray(X[:20])
    return {
        "one product": lambda: product(v),
        "encoding": lambda: AdditiveDesign.encode(X, terms),
        "predicting, all rows": lambda: predict(X, terms, v),
        "predicting, 20 rows, 1,000 times": lambda: [predict(query, terms, v) for _ in range(1_000)],
        f"gains of {bins.shape[0] * (bins.shape[0] - 1) // 2:,} pairs": lambda: pair_gains(
            bins, g, np.ones(g.size)
        ),
        f"Gram matrix, {terms.n_values} values": lambda: coded.gram_matrix(blocks),
        f"its diagonal, {terms.n_values} values": lambda: coded.gram_diagonal(blocks),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--columns", type=int, default=136)
    parser.add_argument("--knots", type=int, nargs="*", default=[8])
    parser.add_argument("--pairs", type=int, nargs="*", default=[0, 20])
    parser.add_argument("--repeats", type=int, default=7)
    args = parser.parse_args()
    tables, sizes = {}, {}
    for kind in ("numbers", "ties"):
        X = make(args.rows, args.columns, kind)
        for n_knots in args.knots:
            for n_pairs in args.pairs:
                terms = quantile_terms(X, n_knots, n_pairs)
                expansion = expand(X, terms)
                coded = AdditiveDesign.encode(X, terms)
                title = f"{kind}: {args.rows:,} x {args.columns}, {n_knots} knots, {n_pairs} pairs"
                cells = args.rows * args.columns
                calls = contenders(X, terms, 100, expansion)
                tables[title] = interleave(calls, args.repeats, clock=time.process_time)
                print_table(title, tables[title], per=cells)
                sizes[title] = {
                    "codes": coded.nbytes / X.nbytes,
                    "csr": (expansion.data.nbytes + expansion.indices.nbytes) / X.nbytes,
                }
                print("bytes, in float32 matrices:", sizes[title])
    for columns, rows in ((46, 20_000), (136, 20_000)):
        X = make(rows, columns, "numbers")
        title = f"other work: {rows:,} x {columns}, 8 knots, 20 pairs"
        tables[title] = interleave(other_work(X, quantile_terms(X, 8, 20)), 3, clock=time.process_time)
        print_table(title, tables[title])
    write_json("additive_product", tables, sizes=sizes)


if __name__ == "__main__":
    main()
