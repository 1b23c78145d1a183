"""Jester: Table 6 of the 2009 paper, joke preferences of users from the ratings of other users.

The paper draws users from all 73,496; this part holds 24,983, each of whom rated 36 jokes or more. Its column "20-40"
is therefore 36 to 40 here.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.linalg
from comparing import GRID, print_rows, verdict
from sklearn.metrics.pairwise import euclidean_distances

import data_sets
from rankwise import RankSVM
from rankwise.data.validation import check_qid
from rankwise.kernels import FeatureMap, Kernel
from rankwise.metrics import get_metric
from rankwise.pairs.factor import factor_of
from rankwise.pairs.labels import label_graph
from rankwise.solvers.direct import DualSpectrum

N_USERS = 300
DENSITIES = {"20-40": (20, 40), "40-60": (40, 60), "60-80": (60, 80), "all sizes": (0, 100)}
COSTS = {"RankRLS (20)": "unit", "RankRLS (21)": "magnitude", "RankRLS (22)": "relative"}
PUBLISHED = {
    "RankRLS (20)": (0.413, 0.400, 0.378, 0.371),
    "RankRLS (21)": (0.413, 0.400, 0.379, 0.371),
    "RankRLS (22)": (0.445, 0.426, 0.388, 0.379),
    "RankSVM": (0.413, 0.400, 0.378, 0.371),
    "RLS": (0.414, 0.401, 0.378, 0.371),
}
ERROR = get_metric("pairwise_error", ties=1)
SVM_ALPHAS = 10.0 ** np.arange(-5, 2)


@dataclass
class Round:
    """Distances between jokes as reference users see them, and each active user's jokes to train and test on."""

    squared: np.ndarray
    users: list

    def kernel(self, gamma):
        return np.exp(-gamma * self.squared)


def draw(ratings, bounds, n_active, seed):
    """Choose reference users with so many ratings, active users among the others, and halves of their jokes."""
    rng = np.random.default_rng(seed)
    counts = np.isfinite(ratings).sum(axis=1)
    reference = rng.choice(
        np.flatnonzero((counts >= bounds[0]) & (counts <= bounds[1])), N_USERS, replace=False
    )
    active = rng.choice(np.setdiff1d(np.arange(counts.size), reference), n_active, replace=False)
    seen = ratings[reference]
    features = np.where(np.isfinite(seen), seen, np.nanmedian(seen, axis=1)[:, None]).T
    users = []
    for user in active:
        jokes = rng.permutation(np.flatnonzero(np.isfinite(ratings[user])))
        train, test = np.array_split(jokes, 2)
        users.append((train, ratings[user, train], test, ERROR.prepare(ratings[user, test])))
    return Round(euclidean_distances(features, squared=True), users)


def _rank_rls(cost):
    def decompose(K, y):
        graph = label_graph(y, check_qid(None, y.size), ties="exclude", cost=cost, query_weight="pairs")
        factor = factor_of(graph)
        spectrum = DualSpectrum.of_matrix(factor.sandwich(K.copy()))
        target = spectrum.vectors.T @ factor.target(graph.pull)
        return lambda alphas: factor.transposed(
            spectrum.vectors @ (target[:, None] / (spectrum.values[:, None] + alphas))
        )

    return decompose


def _regression(K, y):
    values, vectors = scipy.linalg.eigh(K)
    target = vectors.T @ y
    return lambda alphas: vectors @ (target[:, None] / (np.maximum(values, 0.0)[:, None] + alphas))


def _rank_svm(K, y):
    features = FeatureMap.of_basis(Kernel("precomputed"), K, K)
    Z = features.transform(K)
    return lambda alphas: np.column_stack(
        [features.dual_coefficients(RankSVM(a, n_threads=1).fit(Z, y).coef_) for a in alphas]
    )


def errors(made, decompose, gamma, alphas):
    """The disagreement of every active user (rows) for every alpha (columns)."""
    K = made.kernel(gamma)
    return np.array(
        [
            judge.many(K[np.ix_(test, train)] @ decompose(K[np.ix_(train, train)], y)(alphas))
            for train, y, test, judge in made.users
        ]
    )


def _chosen(holdout, decompose, gammas, alphas):
    """The gamma and alpha with the least mean error on the hold-out round."""
    means = np.array([errors(holdout, decompose, gamma, alphas).mean(axis=0) for gamma in gammas])
    at, best = np.unravel_index(np.argmin(means), means.shape)
    return gammas[at], alphas[best]


def jokes(holdout_users=100):
    """The table; parameters come from another draw of users."""
    ratings = data_sets.jester()
    figures = {name: [] for name in PUBLISHED}
    verdicts = []
    for column, bounds in DENSITIES.items():
        test = draw(ratings, bounds, N_USERS, seed=1)
        holdout = draw(ratings, bounds, holdout_users, seed=2)
        per_user, gammas = {}, {}
        for name in PUBLISHED:
            decompose = {"RLS": _regression, "RankSVM": _rank_svm}.get(name) or _rank_rls(COSTS[name])
            is_svm = name == "RankSVM"
            widths = [gammas["RankRLS (21)"]] if is_svm else GRID
            gamma, alpha = _chosen(holdout, decompose, widths, SVM_ALPHAS if is_svm else GRID)
            gammas[name] = gamma
            per_user[name] = errors(test, decompose, gamma, np.array([alpha]))[:, 0]
            figures[name].append(float(per_user[name].mean()))
        verdicts += [
            f"{column}: RankRLS (21) against {other}: {verdict(per_user['RankRLS (21)'], per_user[other])}"
            for other in ("RankRLS (22)", "RLS", "RankSVM")
        ]
    print_rows(
        "Jester: disagreement error by the density of the reference users, beside Table 6 of the 2009 paper",
        ["", *(cell for column in DENSITIES for cell in (column, "published"))],
        [
            [name, *(cell for pair in zip(figures[name], PUBLISHED[name], strict=True) for cell in pair)]
            for name in PUBLISHED
        ],
        "One of the three parts of the data; its users rated 36 jokes or more, so 20-40 means 36-40 here. "
        "RankSVM takes the width chosen for RankRLS (21).",
    )
    for line in verdicts:
        print("  " + line)
    return figures
