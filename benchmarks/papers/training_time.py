"""Table 1 of the 2009 paper: seconds to train with a Gaussian kernel, and its 12,000-document linear case.

Documents of Reuters-21578, acq against the rest. The pairwise SVM of scikit-learn is `LinearSVC` on explicit
differences of the kernel's features (the empirical kernel map), as many pairs as there are: it stops where they no
longer fit. The published rows are seconds of a desktop of 2009.
"""

from __future__ import annotations

import sys
import time

import numpy as np
from comparing import print_rows
from sklearn.svm import LinearSVC

import data_sets
from rankwise import KernelRankRLS, KernelRankSVM, RankRLS
from rankwise.kernels import FeatureMap, Kernel

SIZES = (200, 500, 750, 1000, 1500, 2000, 2500, 4000, 6000)
PUBLISHED = {
    "RankRLS, published": (1, 3, 5, 10, 24, 48, 83, 280, 841),
    "RankSVM (SVM-light), published": (2, 150, 579, 1740, 4685, 13707, 20055, None, None),
}
PAIR_BYTES = 2**30  # what explicit differences may take
MAP_ROWS = 2500  # the kernel map takes an eigendecomposition; beyond this, minutes
_GAMMA = 1.0


def _pairwise_svm(X, y):
    """Train on every pair's difference; None where they would not fit."""
    positive, negative = np.flatnonzero(y == 1), np.flatnonzero(y == 0)
    if 8 * positive.size * negative.size * y.size > PAIR_BYTES:
        return None
    features = FeatureMap.of_basis(Kernel("rbf", {"gamma": _GAMMA}), X)
    Z = features.transform(X)
    differences = (Z[positive][:, None] - Z[negative][None]).reshape(-1, Z.shape[1])
    sign = np.where(np.arange(differences.shape[0]) % 2, 1.0, -1.0)
    differences *= sign[:, None]
    return LinearSVC(C=1.0, loss="hinge", dual=True, fit_intercept=False, max_iter=1000).fit(
        differences, sign
    )


def _kernel_svm(X, y):
    return KernelRankSVM("rbf", gamma=_GAMMA).fit(X, y) if y.size <= MAP_ROWS else None


def _seconds(call, repeats=1):
    taken = []
    for _ in range(repeats):
        start = time.perf_counter()
        if call() is None:
            return None
        taken.append(time.perf_counter() - start)
    return float(np.median(taken))


def training_times():
    """The table."""
    data = data_sets.reuters()
    rows = np.flatnonzero(data.split != "unused")
    rows = np.random.default_rng(0).permutation(rows)
    labels = data.labels("acq")
    contenders = {
        "RankRLS, ours": lambda X, y: KernelRankRLS("rbf", gamma=_GAMMA).fit(X, y),
        "RankSVM on the kernel map, ours": _kernel_svm,
        "LinearSVC on explicit differences": _pairwise_svm,
    }
    found = {name: [] for name in contenders}
    for size in SIZES:
        X, y = data.X[rows[:size]].astype(np.float64), labels[rows[:size]]
        for name, fit in contenders.items():
            repeats = 3 if size <= 1000 and "ours" in name else 1
            found[name].append(_seconds(lambda fit=fit, X=X, y=y: fit(X, y), repeats))
            print(f"  {size} rows, {name}: {found[name][-1]} s", file=sys.stderr, flush=True)
    print_rows(
        "Training with a Gaussian kernel, seconds, beside Table 1 of the 2009 paper",
        ["rows", *(str(size) for size in SIZES)],
        [[name, *values] for name, values in [*found.items(), *PUBLISHED.items()]],
        f"LinearSVC: where its differences take less than {PAIR_BYTES / 2**30:g} GiB.",
    )
    X, y = data.X[rows], labels[rows]
    model = RankRLS(solver="cg")
    seconds = _seconds(lambda: model.fit(X, y), repeats=3)
    print(
        f"  {rows.size} documents, linear, {model.n_pairs_} pairs: {model.n_iter_} iterations, {seconds:.2f} s "
        "(published: more than 12,000 documents, 23 million pairs, a couple of hundred iterations, a few seconds)"
    )
    return {**found, "linear": {"rows": rows.size, "iterations": model.n_iter_, "seconds": seconds}}
