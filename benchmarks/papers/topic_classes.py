"""Reuters-21578: Tables 4 and 5 of the 2009 paper, the AUC of 25 topics learned from 500 documents.

The papers' 500 documents are not listed: these are drawn at random from the ModApte split, the first draw that has
two documents of every topic, as theirs has. Words are weighed by tf-idf; the paper does not say how.
"""

from __future__ import annotations

import numpy as np
from comparing import GRID, print_rows, verdict
from sklearn.kernel_ridge import KernelRidge
from sklearn.model_selection import KFold

import data_sets
from rankwise import KernelRankRLSCV, RankSVM
from rankwise.kernels import FeatureMap, Kernel
from rankwise.metrics import auc, auc_estimate

N_TRAIN = 500
PUBLISHED = {  # RankRLS, RLS, RankSVM
    "acq": (0.980, 0.979, 0.979), "bop": (0.966, 0.880, 0.966), "cocoa": (0.931, 0.837, 0.923),
    "coffee": (0.969, 0.962, 0.962), "corn": (0.970, 0.950, 0.966), "cpi": (0.947, 0.601, 0.947),
    "crude": (0.976, 0.975, 0.976), "dlr": (0.971, 0.946, 0.972), "earn": (0.994, 0.993, 0.994),
    "gnp": (0.987, 0.923, 0.987), "gold": (0.970, 0.922, 0.960), "grain": (0.979, 0.974, 0.979),
    "interest": (0.965, 0.952, 0.968), "livestock": (0.701, 0.637, 0.741), "money-fx": (0.954, 0.947, 0.959),
    "money-supply": (0.949, 0.907, 0.963), "nat-gas": (0.957, 0.941, 0.957), "oilseed": (0.898, 0.816, 0.895),
    "reserves": (0.943, 0.511, 0.920), "ship": (0.949, 0.925, 0.951), "soybean": (0.876, 0.805, 0.882),
    "sugar": (0.985, 0.964, 0.977), "trade": (0.978, 0.969, 0.982), "veg-oil": (0.890, 0.697, 0.853),
    "wheat": (0.984, 0.976, 0.983),
}  # fmt: skip
METHODS = ("RankRLS", "RLS", "RankSVM")


def _documents():
    """The kernel among 500 documents, that of the others with them, and the topics of both as columns."""
    data = data_sets.reuters()
    rows = np.flatnonzero(data.split != "unused")
    Y = np.column_stack([data.labels(topic)[rows] for topic in PUBLISHED])
    for seed in range(1000):
        order = np.random.default_rng(seed).permutation(rows.size)
        if (Y[order[:N_TRAIN]].sum(axis=0) >= 2).all():
            break
    train, test = order[:N_TRAIN], order[N_TRAIN:]
    X, others = data.X[rows[train]].astype(np.float64), data.X[rows[test]].astype(np.float64)
    return (X @ X.T).toarray(), (others @ X.T).toarray(), Y[train], Y[test]


def _best(held_out, Y):
    """The alpha of each topic with the best AUC of the held-out scores, pooled over folds: (alphas, rows, topics)."""
    value = np.array([[auc(y, scores) for y, scores in zip(Y.T, one.T, strict=True)] for one in held_out])
    # RankSVM walks only some of the alphas; of the others there are no scores, so that they are no candidates.
    value[np.ptp(held_out, axis=1) == 0] = -np.inf
    return GRID[GRID.size - 1 - np.argmax(value[::-1], axis=0)]


def _regression(K, K_test, Y, folds):
    """Ridge regression without intercept on all topics at once."""
    held_out = np.empty((GRID.size, *Y.shape))
    for train, test in folds:
        for a, alpha in enumerate(GRID):
            model = KernelRidge(alpha=alpha, kernel="precomputed").fit(K[np.ix_(train, train)], Y[train])
            held_out[a, test] = model.predict(K[np.ix_(test, train)])
    chosen = _best(held_out, Y)
    scores = np.empty((K_test.shape[0], Y.shape[1]))
    for alpha in np.unique(chosen):
        model = KernelRidge(alpha=alpha, kernel="precomputed").fit(K, Y[:, chosen == alpha])
        scores[:, chosen == alpha] = model.predict(K_test)
    return scores


def _margins(K, K_test, Y, folds, every):
    """RankSVM on the kernel's explicit features, a topic at a time, along every so many alphas of the grid."""
    features = FeatureMap.of_basis(Kernel("precomputed"), K, K)
    Z, Z_test = features.transform(K), features.transform(K_test)
    grid = np.flatnonzero(np.arange(GRID.size) % every == 0)
    held_out = np.full((GRID.size, *Y.shape), 0.0)
    for train, test in folds:
        for topic, y in enumerate(Y.T):
            if np.unique(y[train]).size == 1:
                continue  # a fold holds every document of the topic: nothing to learn from
            for a in grid:
                model = RankSVM(float(GRID[a]), n_threads=1).fit(Z[train], y[train])
                # Folds are pooled: as RankRLS does, let each fold's training rows score alike on average.
                held_out[a, test, topic] = (Z[test] - Z[train].mean(axis=0)) @ model.coef_
    chosen = _best(held_out, Y)
    models = [RankSVM(float(alpha)).fit(Z, y) for alpha, y in zip(chosen, Y.T, strict=True)]
    return np.column_stack([Z_test @ model.coef_ for model in models])


def topics(every=3):
    """Both tables, with DeLong's 95 % intervals."""
    K, K_test, Y, Y_test = _documents()
    folds = list(KFold(10, shuffle=True, random_state=0).split(K))
    ours = KernelRankRLSCV("precomputed", alphas=GRID, cv=folds, averaging="pooled", scoring="auc").fit(K, Y)
    scores = {
        "RankRLS": ours.predict(K_test),
        "RLS": _regression(K, K_test, Y, folds),
        "RankSVM": _margins(K, K_test, Y, folds, every),
    }
    rows, figures = [], {name: [] for name in METHODS}
    for topic, (name, published) in enumerate(PUBLISHED.items()):
        estimate = auc_estimate(Y_test[:, topic], np.column_stack([scores[m][:, topic] for m in METHODS]))
        cells = []
        for method, value, (low, high), other in zip(
            METHODS, estimate.auc, estimate.interval(), published, strict=True
        ):
            figures[method].append(float(value))
            cells += [f"{value:.3f} ({low:.3f}-{high:.3f})", other]
        rows.append([name, *cells, int(Y[:, topic].sum()), int(Y_test[:, topic].sum())])
    rows.append(
        ["mean", *(cell for at, m in enumerate(METHODS) for cell in (
            float(np.mean(figures[m])), float(np.mean([p[at] for p in PUBLISHED.values()])))), "", ""]
    )  # fmt: skip
    print_rows(
        "Reuters-21578, 500 training documents: AUC (95 % interval by DeLong), beside Tables 4 and 5 of the 2009 paper",
        ["", *(cell for m in METHODS for cell in (m, "published")), "+train", "+test"],
        rows,
        "RankRLS: 25 outputs of one fit, ties included. RLS: ridge regression without intercept. Other documents.",
    )
    for other in METHODS[1:]:
        print(f"  over topics, RankRLS against {other}: {verdict(figures['RankRLS'], figures[other])}")
    return figures
