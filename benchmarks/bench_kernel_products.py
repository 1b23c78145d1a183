"""Kernel RankRLS by products alone: the 2009 paper's section 4.3, more than 12,000 documents and a linear kernel.

The paper runs conjugate gradients on ``(K L K + λK) a = K L y`` for one topic of Reuters: "a couple of hundred
iterations", "a few seconds". Ours multiplies by the same kernel: as the sparse operator ``X (X'v)``, as a matrix on
disk, and made again block by block; and chooses among 21 alphas, which the paper's run does not. Run with
``RANKWISE_DATA=... python benchmarks/bench_kernel_products.py`` (``--rows 3000`` for a small size).
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

import numpy as np
from scipy.sparse.linalg import LinearOperator, cg

from data_sets import reuters
from harness import write_json
from rankwise import KernelRankRLS, KernelRankRLSCV, RankRLS
from rankwise.metrics import pairwise_error

ALPHA = 1.0


def paper_recipe(X, y, alpha):
    """Formula 17 as section 4.3 multiplies it, with weights of 1/m a pair, by SciPy's conjugate gradients."""
    m = y.size
    products = 0

    def kernel(v):
        return X @ (X.T @ v)

    def multiply(v):
        nonlocal products
        products += 2
        Kv = kernel(v)
        return kernel(Kv - Kv.mean()) + alpha * Kv

    operator = LinearOperator((m, m), matvec=multiply, dtype=np.float64)
    dual, _ = cg(operator, kernel(y - y.mean()), rtol=1e-5)
    return X.T @ dual, products


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=12_000)
    parser.add_argument("--topic", default="earn")
    args = parser.parse_args()
    data = reuters()
    rows = np.random.default_rng(0).permutation(data.X.shape[0])
    train, test = rows[: args.rows], rows[args.rows : args.rows + 5000]
    y = data.labels(args.topic)
    X, X_test = data.X[train].astype(np.float64), data.X[test].astype(np.float64)
    m = train.size
    print(
        f"{m} documents, {X.shape[1]} words, {int(y[train].sum() * (m - y[train].sum()))} pairs, topic {args.topic}"
    )
    operator = LinearOperator(
        (m, m),
        matvec=lambda v: X @ (X.T @ v),
        matmat=lambda V: X @ (X.T @ V),
        rmatvec=lambda v: X @ (X.T @ v),
        dtype=float,
    )
    results = {}

    def report(name, fit):
        start = time.perf_counter()
        scores, counted = fit()
        seconds = time.perf_counter() - start
        error = float(pairwise_error(y[test], scores))
        results[name] = {"seconds": seconds, "counted": counted, "test_error": error}
        print(f"{name:52s} {seconds:8.2f} s  {counted:5d}  test error {error:.5f}", flush=True)

    def of_recipe():
        w, products = paper_recipe(X, y[train], ALPHA)
        return X_test @ w, products

    def of_model(model, given, rows_of_test):
        model.fit(given, y[train])
        return model.predict(rows_of_test), model.n_products_ if hasattr(
            model, "n_products_"
        ) else model.n_iter_

    report("paper's recipe, products with K", of_recipe)
    report("RankRLS(1), the primal", lambda: of_model(RankRLS(ALPHA, solver="cg"), X, X_test))
    across = LinearOperator((test.size, m), matvec=lambda v: X_test @ (X.T @ v), dtype=float)
    by_operator = KernelRankRLS("precomputed", alpha=ALPHA)
    report("KernelRankRLS(1), an operator", lambda: of_model(by_operator, operator, across))
    chosen = KernelRankRLSCV("precomputed")
    report("KernelRankRLSCV, 21 alphas, 5 folds, an operator", lambda: of_model(chosen, operator, across))
    with tempfile.TemporaryDirectory() as folder:
        disk = np.lib.format.open_memmap(Path(folder) / "K.npy", mode="w+", dtype=np.float32, shape=(m, m))
        for first in range(0, m, 1000):
            disk[first : first + 1000] = (X[first : first + 1000] @ X.T).toarray()
        disk.flush()
        kept = np.load(Path(folder) / "K.npy", mmap_mode="r")
        model = KernelRankRLSCV("precomputed", solver="cg")
        report("the same, a float32 matrix on disk", lambda: of_model(model, kept, (X_test @ X.T).toarray()))
    again = KernelRankRLSCV("linear", solver="cg", memory_limit=2**28)
    report("the same, made again block by block", lambda: of_model(again, X, X_test))
    write_json("kernel_products", {}, results=results, rows=m, columns=X.shape[1], topic=args.topic)


if __name__ == "__main__":
    main()
