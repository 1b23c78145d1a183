#!/usr/bin/env python3
"""RankRLS beside the peers that give the same model: time, memory, and what a fresh process costs.

    python benchmarks/bench_rank_rls.py [--rows 400000] [--repeats 5]

For one global ranking RankRLS is ridge regression with a free intercept, so scikit-learn's Ridge is a peer; so is
the paper's own recipe (`paper_recipe.py`). SciPy converts a float32 matrix at every product with a float64 vector, so
both are shown on the data as they come (float32) and on a float64 copy whose making is not timed; Ridge on float32 data
works in float32 throughout.
"""

from __future__ import annotations

import argparse

import numpy as np
from sklearn.linear_model import Ridge

import rcv1like
from harness import interleave, peak_memory, print_table, run_python, write_json
from paper_recipe import PaperRecipe
from rankwise import RankRLS

ALPHA, TOL = 1.0, 1e-5


def sparse_contenders(X, y):
    X64 = X.astype(np.float64)
    return {
        "Ridge(solver='sparse_cg')": lambda: Ridge(ALPHA, solver="sparse_cg", tol=TOL).fit(X, y),
        "Ridge(solver='sparse_cg'), float64": lambda: Ridge(ALPHA, solver="sparse_cg", tol=TOL).fit(X64, y),
        "the paper's recipe": lambda: PaperRecipe(ALPHA, tol=TOL).fit(X, y),
        "the paper's recipe, float64": lambda: PaperRecipe(ALPHA, tol=TOL).fit(X64, y),
        "RankRLS(solver='cg')": lambda: RankRLS(ALPHA, solver="cg", tol=TOL).fit(X, y),
        "RankRLS(solver='cg'), 1 thread": lambda: RankRLS(ALPHA, solver="cg", tol=TOL, n_threads=1).fit(X, y),
    }


def dense_problem(rows=500_000, columns=46, queries=5_000):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(rows, columns))
    qid = np.sort(rng.integers(queries, size=rows))
    y = rng.integers(5, size=rows).astype(float)
    return X, y, qid


def centre_and_ridge(X, y, qid):
    """What a user does without rankwise: subtract each query's mean, then ridge regression."""
    codes = np.unique(qid, return_inverse=True)[1]
    start = np.flatnonzero(np.r_[True, codes[1:] != codes[:-1]])
    sizes = np.diff(np.r_[start, codes.size])
    X_mean = np.add.reduceat(X, start, axis=0) / sizes[:, None]
    y_mean = np.add.reduceat(y, start) / sizes
    return Ridge(ALPHA, fit_intercept=False).fit(X - X_mean[codes], y - y_mean[codes])


# --- memory and start-up, each in a process of its own ----------------------------------------------------------

IMPORTS = """
from sklearn.linear_model import Ridge
from paper_recipe import PaperRecipe
from rankwise import RankRLS
"""

FITS = {
    "Ridge(solver='sparse_cg')": f"Ridge({ALPHA}, solver='sparse_cg', tol={TOL}).fit(X, y)",
    "the paper's recipe, float64": f"PaperRecipe({ALPHA}, tol={TOL}).fit(X.astype(np.float64), y)",
    "RankRLS(solver='cg')": f"RankRLS({ALPHA}, solver='cg', tol={TOL}).fit(X, y)",
}


START = """
import time
start = time.perf_counter()
{statement}
print(time.perf_counter() - start)
"""

FIRST_FIT = """
import time
import numpy as np
from rankwise import RankRLS
rng = np.random.default_rng(0)
X, y = rng.normal(size=(1000, 20)), rng.normal(size=1000)
start = time.perf_counter()
RankRLS().fit(X, y)
print(time.perf_counter() - start)
"""


def start_up(repeats):
    calls = {
        "import sklearn.linear_model": START.format(statement="import sklearn.linear_model"),
        "import rankwise": START.format(statement="import rankwise"),
        "from rankwise import RankRLS": START.format(statement="from rankwise import RankRLS"),
        "first fit of 1,000 × 20": FIRST_FIT,
    }
    seconds = {name: [] for name in calls}
    for _ in range(repeats):
        for name, code in calls.items():
            seconds[name].append(float(run_python(code)))
    return {name: float(np.median(values)) for name, values in seconds.items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=400_000)
    parser.add_argument("--repeats", type=int, default=5)
    args = parser.parse_args()

    X, y, _ = rcv1like.make(args.rows)
    tables = {}
    title = f"One global ranking, {X.shape[0]} × {X.shape[1]}, {X.nnz} non-zeros, float32, alpha {ALPHA}, tol {TOL}"
    tables[title] = interleave(sparse_contenders(X, y), args.repeats)
    print_table(title, tables[title])
    recipe, ours = PaperRecipe(ALPHA, tol=TOL).fit(X.astype(float), y), RankRLS(ALPHA, solver="cg").fit(X, y)
    print(f"iterations: the paper's recipe {recipe.n_products}, RankRLS {ours.n_iter_}; coefficients differ by "
          f"{np.abs(recipe.coef_ - ours.coef_).max() / np.abs(ours.coef_).max():.1e} relative")  # fmt: skip

    memory = peak_memory(X, y, IMPORTS, FITS)
    data = (X.data.nbytes + X.indices.nbytes + X.indptr.nbytes) / 2**20
    print(f"\nPeak memory of a fit beyond the data itself ({data:.0f} MiB)")
    for name, value in memory.items():
        print(f"{name:32} {value:8.0f} MiB")
    del X

    X, y, qid = dense_problem()
    title = "Dense 500,000 × 46 in 5,000 queries, float64"
    contenders = {
        "centre by query, then Ridge": lambda: centre_and_ridge(X, y, qid),
        "RankRLS()": lambda: RankRLS(ALPHA).fit(X, y, qid),
    }
    tables[title] = interleave(contenders, args.repeats)
    print_table(title, tables[title])

    start = start_up(args.repeats)
    print("\nA fresh process")
    for name, value in start.items():
        print(f"{name:32} {value * 1e3:8.1f} ms")
    for name in ("import rankwise", "from rankwise import RankRLS"):
        print(
            f"{name}: {start[name] / start['import sklearn.linear_model']:.2f} of import sklearn.linear_model"
        )
    write_json("rank_rls", tables, extra_memory_mib=memory, data_mib=data, start_up_seconds=start)


if __name__ == "__main__":
    main()
