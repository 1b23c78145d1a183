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
import subprocess
import sys
import tempfile
import textwrap
from pathlib import Path

import numpy as np
from sklearn.linear_model import Ridge

import rcv1like
from harness import interleave, print_table, write_json
from paper_recipe import PaperRecipe
from rankwise import RankRLS

HERE = Path(__file__).parent
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

MEMORY = """
import sys
import numpy as np, scipy.sparse as sp
sys.path.insert(0, {here!r})
from sklearn.linear_model import Ridge
from paper_recipe import PaperRecipe
from rankwise import RankRLS
data = {{name: np.load({folder!r} + "/" + name + ".npy") for name in ("data", "indices", "indptr", "y")}}
X = sp.csr_matrix((data["data"], data["indices"], data["indptr"]), shape={shape!r})
y = data["y"]
def status(key):
    with open("/proc/self/status") as lines:
        return next(float(line.split()[1]) / 1024 for line in lines if line.startswith(key))
with open("/proc/self/clear_refs", "w") as reset:
    reset.write("5")  # the peak of loading is not the fit's
before = status("VmRSS")
{fit}
print(status("VmHWM") - before)
"""

FITS = {
    "Ridge(solver='sparse_cg')": f"Ridge({ALPHA}, solver='sparse_cg', tol={TOL}).fit(X, y)",
    "the paper's recipe, float64": f"PaperRecipe({ALPHA}, tol={TOL}).fit(X.astype(np.float64), y)",
    "RankRLS(solver='cg')": f"RankRLS({ALPHA}, solver='cg', tol={TOL}).fit(X, y)",
}


def peak_memory(X, y):
    with tempfile.TemporaryDirectory() as folder:
        for name, array in (("data", X.data), ("indices", X.indices), ("indptr", X.indptr), ("y", y)):
            np.save(Path(folder, name), array)
        taken = {}
        for name, fit in FITS.items():
            code = MEMORY.format(here=str(HERE), folder=folder, shape=X.shape, fit=fit)
            taken[name] = float(_run(code))
    return taken


START = """
import time
start = time.perf_counter()
import {module}
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
        "import sklearn.linear_model": START.format(module="sklearn.linear_model"),
        "import rankwise": START.format(module="rankwise"),
        "first fit of 1,000 × 20": FIRST_FIT,
    }
    seconds = {name: [] for name in calls}
    for _ in range(repeats):
        for name, code in calls.items():
            seconds[name].append(float(_run(code)))
    return {name: float(np.median(values)) for name, values in seconds.items()}


def _run(code):
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], check=True, capture_output=True, text=True
    ).stdout


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

    memory = peak_memory(X, y)
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
    print(f"import ratio {start['import rankwise'] / start['import sklearn.linear_model']:.2f}")
    write_json("rank_rls", tables, extra_memory_mib=memory, data_mib=data, start_up_seconds=start)


if __name__ == "__main__":
    main()
