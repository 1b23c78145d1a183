"""Two-sided ranking: speed, memory, and the exact hold-out beside random folds and peers.

Run with ``python benchmarks/bench_two_sided.py`` on one thread (OMP_NUM_THREADS=1); ``--write`` puts the figures into
docs/two-sided.md. The drug-target table (nuclear receptors, 54 drugs × 26 targets) is read from RANKWISE_DATA and left
out where that is absent. Ridge on the Kronecker kernel is the model of RLScore's KronRLS, whose release 0.8.1 cannot be
built for Python 3.11 (its generated C needs longintrepr.h).
"""

from __future__ import annotations

import argparse
import os
import re
import time
import tracemalloc
import warnings
from functools import partial
from pathlib import Path

import numpy as np

from rankwise import TwoSidedRankRLSCV
from rankwise.metrics import get_metric
from rankwise.two_sided.gaps import Edges, Run, known_scores

ALPHAS = 2.0 ** np.arange(-10, 11)
PAGE = Path(__file__).parents[1] / "docs" / "two-sided.md"
DATA = Path(os.environ.get("RANKWISE_DATA", "../shared/data")) / "rlscore-legacy"
COMMAND = "OMP_NUM_THREADS=1 python benchmarks/bench_two_sided.py --write"
AUC = get_metric("auc")


def seconds(call):
    start = time.process_time()
    call()
    return time.process_time() - start


def complete():
    """Return lines of a table with the times of exact hold-outs of 500 × 400, 21 alphas."""
    rng = np.random.default_rng(0)
    lines = []
    for name, width in (("50 features", 50), ("kernels of full rank", 600)):
        rows, columns = rng.normal(size=(500, width)), rng.normal(size=(400, width))
        Y = rng.normal(size=(500, 400))
        kernel = "linear" if width < 400 else "precomputed"
        sides = (rows, columns) if width < 400 else (rows @ rows.T, columns @ columns.T)
        for cv, ranked in (
            ("leave-row-out", "columns"),
            ("leave-column-out", "rows"),
            ("leave-row-out", "both"),
        ):
            model = TwoSidedRankRLSCV(ALPHAS, cv=cv, ranked=ranked, row_kernel=kernel, column_kernel=kernel)
            taken = min(seconds(partial(model.fit, *sides, Y)) for _ in range(3))
            lines.append((f"{name}, {cv}, ranked={ranked!r}", taken))
    rows, columns, Y = rng.normal(size=(70, 20)), rng.normal(size=(60, 20)), rng.normal(size=(70, 60))
    for cv in ("leave-column-out", "leave-both-out", "leave-entry-out"):
        model = TwoSidedRankRLSCV(ALPHAS, cv=cv)
        lines.append(
            (f"70 × 60, 20 features, {cv}", seconds(lambda model=model: model.fit(rows, columns, Y)))
        )
    return lines


def products():
    """Return the time and the memory of a product with 10⁶ edges of 10⁴ × 10⁴ with 100 features per side."""
    rng = np.random.default_rng(0)
    n, size = 10**4, 10**6
    row, column = np.sort(rng.integers(0, n, size)), rng.integers(0, n, size)
    edges = Edges(row, column, rng.normal(size=size), row)
    rows, columns = rng.normal(size=(n, 100)), rng.normal(size=(n, 100))
    run = Run(rows, columns, edges, "kronecker", 10)
    theta = rng.normal(size=(100, 100))

    def product():
        return run._gathered(known_scores(rows, theta, columns, edges))  # noqa: SLF001

    taken = min(seconds(product) for _ in range(5))
    tracemalloc.start()
    product()
    peak = tracemalloc.get_traced_memory()[1] / 2**20
    tracemalloc.stop()
    return taken, peak


# --- drugs and targets ---


def read_receptors():
    table = np.loadtxt(DATA / "nr_admat_dgc.txt")
    drugs, targets = (np.loadtxt(DATA / f"nr_simmat_{side}.txt") for side in ("dc", "dg"))

    def positive(K):
        K = (K + K.T) / 2
        return K + max(0.0, 1e-6 - np.linalg.eigvalsh(K)[0]) * np.eye(len(K))

    return positive(drugs), positive(targets), table


def auc_of(Y, scores):
    """Return the AUC of the ranking of each drug's targets, for drugs that have one."""
    n, m = Y.shape
    found = AUC.prepare(Y.ravel(), np.repeat(np.arange(n), m)).per_query(scores.ravel())
    return float(found.mean())


def ours(D, T, Y, train, test):
    options = {"scoring": "auc", "row_kernel": "precomputed", "column_kernel": "precomputed"}
    model = TwoSidedRankRLSCV(ALPHAS, **options).fit(D[np.ix_(train, train)], T, Y[train])
    return model.predict(D[np.ix_(test, train)], T)


def ridge(D, T, Y, train, test):
    """Kernel ridge on the Kronecker kernel, alpha by the same leave-drug-out, of squared errors."""
    K = D[np.ix_(train, train)]
    (values, U), (others, V) = np.linalg.eigh(K), np.linalg.eigh(T)
    best = None
    for alpha in ALPHAS:
        G = 1 / (np.outer(values, others) + alpha)
        dual = U @ (G * (U.T @ Y[train] @ V))
        held_out = dual / (np.square(U) @ G)
        error = np.square(held_out).sum()
        if best is None or error < best[0]:
            best = error, dual @ V.T
    return D[np.ix_(test, train)] @ best[1] @ T


def lightgbm(D, T, Y, train, test):
    """LambdaMART on the similarities of drug and target to all training drugs and targets, joined."""
    from lightgbm import LGBMRanker  # noqa: PLC0415

    def joined(rows):
        left = np.repeat(D[np.ix_(rows, train)], len(T), axis=0)
        return np.column_stack([left, np.tile(T, (len(rows), 1))])

    model = LGBMRanker(n_estimators=100, min_child_samples=5, verbose=-1, n_jobs=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(joined(train), Y[train].ravel().astype(int), group=[len(T)] * len(train))
        return model.predict(joined(test)).reshape(len(test), len(T))


def receptors(n_splits=20):
    """Return the exact figure of ours, and for every method the AUC of new drugs in 20 random five-fold splits."""
    D, T, Y = read_receptors()
    options = {"scoring": "auc", "row_kernel": "precomputed", "column_kernel": "precomputed"}
    exact = TwoSidedRankRLSCV(ALPHAS, **options).fit(D, T, Y)
    methods = {
        "TwoSidedRankRLSCV": ours,
        "ridge on the Kronecker kernel": ridge,
        "LightGBM, joined": lightgbm,
    }
    found = {name: [] for name in methods}
    taken = dict.fromkeys(methods, 0.0)
    for seed in range(n_splits):
        fold = np.random.default_rng(seed).permutation(len(D)) % 5
        for name, method in methods.items():
            scores = np.empty(Y.shape)
            start = time.perf_counter()
            for one in range(5):
                train, test = np.flatnonzero(fold != one), np.flatnonzero(fold == one)
                scores[test] = method(D, T, Y, train, test)
            taken[name] += time.perf_counter() - start
            found[name].append(auc_of(Y, scores))
    return exact, found, taken


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="put the figures into docs/two-sided.md")
    arguments = parser.parse_args()
    lines = ["| 21 alphas, exact, 500 × 400 unless said | processor seconds |", "| --- | --- |"]
    lines += [f"| {name} | {taken:.2f} |" for name, taken in complete()]
    taken, peak = products()
    lines += [
        "",
        (
            f"A product with 10⁶ edges of 10⁴ × 10⁴ and 100 features per side takes {taken:.2f} s and {peak:.0f} MB "
            "beyond the data."
        ),
    ]
    if DATA.exists():
        exact, found, times = receptors()
        low, high = exact.interval_
        lines += [
            "",
            (
                "Targets of new drugs (nuclear receptors, 54 drugs × 26 targets), mean AUC. The exact hold-out gives "
                f"{exact.best_score_:.3f} ({low:.3f} to {high:.3f}), and has no seed. 20 random five-fold splits:"
            ),
            "",
            "| method | mean | lowest split | highest split | seconds per split |",
            "| --- | --- | --- | --- | --- |",
        ]
        lines += [
            f"| {name} | {np.mean(each):.3f} | {min(each):.3f} | {max(each):.3f} | {times[name] / len(each):.2f} |"
            for name, each in found.items()
        ]
    lines += ["", f"Measured with `{COMMAND}`."]
    text = "\n".join(lines)
    print(text)
    if arguments.write:
        page = PAGE.read_text(encoding="utf-8")
        pattern = "(?s)(<!-- two-sided -->\n).*?(<!-- /two-sided -->)"
        page = re.sub(pattern, lambda found: f"{found[1]}\n{text}\n\n{found[2]}", page)
        PAGE.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
