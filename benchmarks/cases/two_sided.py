"""Two-sided ranking: times, and the exact hold-out beside random folds and peers.

Ridge on the Kronecker kernel is the model of RLScore's KronRLS, whose release 0.8.1 cannot be built for Python 3.11
(its generated C needs longintrepr.h).
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import numpy as np
import scipy.sparse as sp
from threadpoolctl import threadpool_limits

import data
from cases.published import markdown
from harness import Case, Figure, Results, measured, short
from rankwise import TwoSidedRankRLS, TwoSidedRankRLSCV
from rankwise.metrics import get_metric

ALPHAS = 2.0 ** np.arange(-10, 11)
CLAIM, OURS = "two-sided", "TwoSidedRankRLSCV"
KERNELS = {"scoring": "auc", "row_kernel": "precomputed", "column_kernel": "precomputed"}
# Name: the fitting of complete tables, 21 alphas.
EXACT = {
    **{
        f"500 × 400, {width}, {cv}, ranked={ranked!r}": {"cv": cv, "ranked": ranked}
        for width, (cv, ranked) in product(
            ("50 features", "kernels of full rank"),
            (("leave-row-out", "columns"), ("leave-column-out", "rows"), ("leave-row-out", "both")),
        )
    },
    **{
        f"70 × 60, 20 features, {cv}": {"cv": cv}
        for cv in ("leave-column-out", "leave-both-out", "leave-entry-out")
    },
}


def exact(contenders: tuple[str, ...], quick: bool) -> Iterator[Figure]:
    """Yield the processor seconds of exact hold-outs, the fastest of three."""
    for name, options in EXACT.items():
        rng = np.random.default_rng(0)
        sizes = (70, 60) if quick or name.startswith("70") else (500, 400)
        width = 20 if name.startswith("70") else 600 if "kernels" in name else 50
        sides = [rng.normal(size=(size, width)) for size in sizes]
        kernel = "linear"
        if "kernels" in name:
            sides, kernel = [X @ X.T for X in sides], "precomputed"
        model = TwoSidedRankRLSCV(ALPHAS, row_kernel=kernel, column_kernel=kernel, **options)
        Y, costs = rng.normal(size=sizes), []
        for _ in range(1 if quick else 3):
            with threadpool_limits(1), measured() as cost:
                model.fit(*sides, Y)
            costs.append(cost.processor_seconds)
        yield Figure(OURS, name, min(costs), n=len(costs))


def known_entries(contenders: tuple[str, ...], quick: bool) -> Iterator[Figure]:
    """Yield time and memory of a fit to the known entries of a large table."""
    rng = np.random.default_rng(0)
    n, size = (100, 1_000) if quick else (10**4, 10**6)
    cells = rng.integers(0, n, (2, size))
    Y = sp.coo_matrix((rng.normal(size=size), cells), (n, n)).tocsr()
    rows, columns = rng.normal(size=(2, n, 20 if quick else 100))
    with threadpool_limits(1), measured() as cost:
        model = TwoSidedRankRLS(tol=1e-3).fit(rows, columns, Y)
    spent = {"processor_seconds": cost.processor_seconds, "peak_memory": cost.memory}
    yield Figure(OURS, "seconds", cost.processor_seconds, **spent)
    yield Figure(OURS, "iterations", float(model.n_iter_))


def auc_of(Y, scores):
    """Return the AUC of the ranking of each drug's targets, for drugs that have one."""
    n, m = Y.shape
    found = get_metric("auc").prepare(Y.ravel(), np.repeat(np.arange(n), m)).per_query(scores.ravel())
    return float(found.mean())


def ours(D, T, Y, train, test):
    model = TwoSidedRankRLSCV(ALPHAS, **KERNELS).fit(D[np.ix_(train, train)], T, Y[train])
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
    model.fit(joined(train), Y[train].ravel().astype(int), group=[len(T)] * len(train))
    return model.predict(joined(test)).reshape(len(test), len(T))


METHODS = {OURS: ours, "NumPy, ridge on the Kronecker kernel": ridge, "LightGBM, joined": lightgbm}


def new_drugs(contenders: tuple[str, ...], quick: bool) -> Iterator[Figure]:
    """Yield the AUC of targets of new drugs in random five-fold splits, and of ours the exact hold-out."""
    D, T, Y = data.receptors()
    for name in contenders:
        found, spent = [], []
        for seed in range(2 if quick else 20):
            fold, scores = np.random.default_rng(seed).permutation(len(D)) % 5, np.empty(Y.shape)
            with threadpool_limits(1), measured() as cost:
                for one in range(5):
                    train, test = np.flatnonzero(fold != one), np.flatnonzero(fold == one)
                    scores[test] = METHODS[name](D, T, Y, train, test)
            found.append(auc_of(Y, scores))
            spent.append(cost.processor_seconds)
        value, seconds = float(np.mean(found)), float(np.mean(spent))
        yield Figure(name, "AUC", value, min(found), max(found), len(found), processor_seconds=seconds)
        if name == OURS:
            model = TwoSidedRankRLSCV(ALPHAS, **KERNELS).fit(D, T, Y)
            yield Figure(OURS, "AUC, exact hold-out", model.best_score_, *model.interval_, len(D))


SPLITS, LARGE = (
    "nuclear receptors, 54 drugs × 26 targets",
    "10⁶ known entries of 10⁴ × 10⁴, 100 features per side",
)
CASES = [
    Case(CLAIM, "exact hold-outs", (OURS,), exact, minutes=0.3, smoke=True),
    Case(CLAIM, LARGE, (OURS,), known_entries, minutes=0.3),
    Case(CLAIM, SPLITS, tuple(METHODS), new_drugs, ("receptors",), 0.5),
]


def times(results: Results) -> str:
    """Return the seconds of exact hold-outs, and of a table with gaps."""
    rows = [[name, results.show("{value:.2f}", CLAIM, "exact hold-outs", OURS, name)] for name in EXACT]
    made = markdown(["21 alphas, exact", "processor seconds"], rows)
    forms = {
        "iterations": "{value:.0f} iterations",
        "seconds": "{value:.1f} s and {peak_memory:.0f} MiB beyond the data",
    }
    shown = [results.show(form, CLAIM, LARGE, OURS, metric) for metric, form in forms.items()]
    return f"{made}\n\nA fit to {LARGE}: {' in '.join(shown)}."


def receptors(results: Results) -> str:
    """Return the exact figure, and a row per method."""
    rows = []
    for name in METHODS:
        line = results.find(CLAIM, SPLITS, name, "AUC")
        cells = [f"{line[key]:.3f}" for key in ("value", "low", "high")] if line else ["not run", "", ""]
        rows.append([name, *cells, short(line["processor_seconds"]) if line else ""])
    made = markdown(
        ["20 random five-fold splits", "mean AUC", "lowest", "highest", "seconds per split"], rows
    )
    whole = results.show("{value:.3f} ({low:.3f} to {high:.3f})", CLAIM, SPLITS, OURS, "AUC, exact hold-out")
    return f"{made}\n\nThe exact hold-out gives {whole}, and has no seed."


TABLES = {"two-sided-times": times, "two-sided": receptors}
