#!/usr/bin/env python3
"""The whole regularisation surface against the paper's grid search, and against one fit of a peer.

    python benchmarks/bench_surface.py [--rows 100000] [--large 400000 781265] [--repeats 3]

First, the surface beside 21 separate runs of conjugate gradients (the paper's method 1) and 21 early-stopped runs (its
method 3), on the same fused products: how many products, how long, how good. Then the whole selection beside one
`Ridge(solver="sparse_cg")` fit at the chosen alpha. Last, how the cost of a product grows with the rows.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
from sklearn.linear_model import Ridge

import rcv1like
from harness import interleave, peak_memory, plot_growth, print_table, write_json
from rankwise import RankRLS, RankRLSCV
from rankwise.data.queries import one_query
from rankwise.design import as_design
from rankwise.metrics import get_metric
from rankwise.objectives import SquaredObjective
from rankwise.pairs.labels import label_graph
from separate_runs import separate_runs

GRID = 2.0 ** np.arange(-10, 11)
VALIDATION_ROWS = 10_000


def split(rows):
    X, y, _ = rcv1like.make(rows + VALIDATION_ROWS)
    return X[:rows], y[:rows], X[rows:], y[rows:]


def against_separate_runs(rows):
    """Count products and time the three ways once; grid searches take minutes."""
    X, y, X_val, y_val = split(rows)
    design, validation = as_design(X), as_design(X_val)
    judge = get_metric("pairwise_error").prepare(y_val)
    objective = SquaredObjective(design, label_graph(y, one_query(rows), n_threads=design.n_threads))
    objective.product(objective.rhs)  # the columns are renamed before anybody is timed

    def timed(run):
        start = time.perf_counter()
        found = run()
        return found, time.perf_counter() - start

    def separate(tol, patience):
        found, seconds = timed(
            lambda: separate_runs(objective, validation, judge, GRID, tol=tol, patience=patience)
        )
        return {"products": found.n_products, "seconds": seconds, "error": found.error, "alpha": found.alpha}

    def surface(method, tol):
        model, seconds = timed(
            lambda: RankRLSCV(GRID, method=method, tol=tol).fit(X, y, eval_set=(X_val, y_val))
        )
        row = {
            "products": model.n_products_, "seconds": seconds, "error": model.best_score_, "alpha": model.alpha_,
        }  # fmt: skip
        if method == "tikhonov":
            row["distance"] = max(_distance(model, X, y, alpha) for alpha in GRID[::5])
        return row

    return {
        "21 runs to 1e-5": separate(1e-5, None),
        "21 early-stopped runs": separate(1e-5, 10),
        "surface, hybrid": surface("hybrid", 1e-5),
        "surface, every alpha to 1e-5": surface("tikhonov", 1e-5),
        "21 runs to 1e-6": separate(1e-6, None),
        "surface, every alpha to 1e-6": surface("tikhonov", 1e-6),
    }


def _distance(model, X, y, alpha):
    tight = RankRLS(alpha, solver="cg", tol=1e-10).fit(X, y).coef_
    step = model.n_iter_ - 1
    return float(np.linalg.norm(model.coef_path(alpha)[step] - tight) / np.linalg.norm(tight))


def print_selection(rows, results):
    print(f"\nChoosing alpha from 21 at {rows} rows, {VALIDATION_ROWS} validation rows")
    head = ("products", "seconds", "best error", "alpha")
    print(f"{'':32} {head[0]:>9} {head[1]:>9} {head[2]:>11} {head[3]:>9}   the hybrid surface took")
    hybrid = results["surface, hybrid"]
    for name, r in results.items():
        ratio = f"1/{r['products'] / hybrid['products']:.0f}, 1/{r['seconds'] / hybrid['seconds']:.1f}"
        print(
            f"{name:32} {r['products']:9d} {r['seconds']:9.2f} {r['error']:11.5f} {r['alpha']:9.4g}   {ratio}"
        )
    for tol in ("1e-5", "1e-6"):
        ours, theirs = results[f"surface, every alpha to {tol}"], results[f"21 runs to {tol}"]
        print(
            f"every alpha to a residual of {tol}: 1/{theirs['products'] / ours['products']:.1f} of the products; "
            f"coefficients at most {ours['distance']:.1e} from a tight solve (every fifth alpha, relative)"
        )


def against_one_fit(rows, repeats):
    X, y, X_val, y_val = split(rows)
    chosen = RankRLSCV(GRID).fit(X, y, eval_set=(X_val, y_val))
    title = f"Selection and training at {rows} rows, against one fit at the chosen alpha {chosen.alpha_:g}"
    ridge = Ridge(chosen.alpha_, solver="sparse_cg", tol=1e-5)
    timings = interleave(
        {
            "Ridge(solver='sparse_cg'), one alpha": lambda: ridge.fit(X, y),
            "RankRLSCV, evaluation set": lambda: RankRLSCV(GRID).fit(X, y, eval_set=(X_val, y_val)),
            "RankRLSCV, eight folds": lambda: RankRLSCV(GRID, cv=8).fit(X, y),
        },
        repeats,
    )
    print_table(title, timings)
    print(f"iterations of the selection {chosen.n_iter_}, best after {chosen.best_iteration_}")
    return title, timings


IMPORTS = "from rankwise import RankRLSCV"
FITS = {
    "evaluation set of 10,000 rows": "RankRLSCV().fit(X, y, eval_set=(X[-10000:], y[-10000:]))",
    "eight folds": "RankRLSCV(cv=8).fit(X, y)",
}


def memory(rows):
    """What a selection takes beyond the data, against half the data plus the basis."""
    X, y, _ = rcv1like.make(rows)
    data = (X.data.nbytes + X.indices.nbytes + X.indptr.nbytes) / 2**20
    taken = peak_memory(X, y, IMPORTS, FITS)
    steps = RankRLSCV().fit(X, y, eval_set=(X[-10_000:], y[-10_000:])).n_iter_
    basis = {name: 8 * X.shape[1] * steps * lanes / 2**20 for name, lanes in zip(FITS, (1, 8), strict=True)}
    print(f"\nPeak memory beyond the data ({data:.0f} MiB) at {rows} rows")
    for name, value in taken.items():
        print(f"{name:32} {value:6.0f} MiB, of which about {basis[name]:.0f} for the basis")
    return {"data": data, "taken": taken, "basis": basis}


def growth(sizes, repeats=9, warm_up=2):
    """Time a product against the rows, on one thread; the slope in logarithms is the exponent.

    With two threads a virtual machine that is slow to wake its second processor blurs the smaller sizes.
    """
    seconds = []
    X, y, _ = rcv1like.make(max(sizes))
    v = np.random.default_rng(0).normal(size=X.shape[1])
    nonzeros = []
    for rows in sizes:
        design = as_design(X[:rows], 1)
        objective = SquaredObjective(design, label_graph(y[:rows], one_query(rows)))
        for _ in range(warm_up):
            objective.product(v)
        taken = []
        for _ in range(repeats):
            start = time.perf_counter()
            objective.product(v)
            taken.append(time.perf_counter() - start)
        seconds.append(float(np.median(taken)))
        nonzeros.append(design.nnz)
    exponent = float(np.polyfit(np.log(sizes), np.log(seconds), 1)[0])
    print("\nOne product against rows")
    for rows, nnz, t in zip(sizes, nonzeros, seconds, strict=True):
        print(f"{rows:9d} rows {t * 1e3:8.2f} ms {t / nnz * 1e9:6.2f} ns a non-zero")
    print(f"exponent {exponent:.3f}")
    plot_growth("growth_with_rows", "rows", sizes, seconds, exponent)
    return {"rows": list(sizes), "seconds": seconds, "exponent": exponent}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--large", type=int, nargs="*", default=[400_000, 781_265])
    parser.add_argument("--repeats", type=int, default=3)
    args = parser.parse_args()
    selection = against_separate_runs(args.rows)
    print_selection(args.rows, selection)
    tables = dict(against_one_fit(rows, args.repeats) for rows in args.large)
    peak = memory(args.large[0]) if args.large else None
    linear = growth([50_000, 100_000, 200_000, 400_000, 800_000])
    write_json("surface", tables, selection=selection, growth=linear, memory_mib=peak)


if __name__ == "__main__":
    main()
