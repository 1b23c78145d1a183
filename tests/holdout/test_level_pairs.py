"""Leave-pair-out by levels against refits without the two rows."""

from functools import partial

import numpy as np
import pytest
from sklearn.metrics.pairwise import rbf_kernel

from oracles import label_pairs
from rankwise.design import as_design
from rankwise.estimators.kernel_problem import KernelProblem
from rankwise.estimators.kernel_selection import reweighted_features, reweighted_kernel
from rankwise.holdout import LevelRanking, level_pair_out_error, level_pair_out_scores
from rankwise.kernels import Kernel
from rankwise.memory import MemoryBudget

ALPHAS = np.array([1e-3, 0.1, 1.0, 30.0])
SETTINGS = [
    {"ties": "exclude", "cost": "magnitude", "query_weight": "size"},
    {"ties": "exclude", "cost": "magnitude", "query_weight": "equal"},
    {"ties": "exclude", "cost": "unit", "query_weight": "pairs"},
    {"ties": "exclude", "cost": "relative", "query_weight": "size"},
    {"ties": "include", "cost": "unit", "query_weight": "size"},
    {"ties": "include", "cost": "magnitude", "query_weight": "equal"},
]


def labels(sizes):
    """So many rows of each level, whose values are not evenly spaced."""
    return np.random.default_rng(0).permutation(np.repeat(np.arange(len(sizes)) ** 1.5, sizes))


def refit_without(K, y, rows, alpha, settings):
    kept = np.setdiff1d(np.arange(y.size), rows)
    pairs = label_pairs(y[kept], **settings)
    among = K[np.ix_(kept, kept)]
    dual = np.linalg.lstsq(pairs.laplacian @ among + alpha * np.eye(kept.size), pairs.pull, rcond=None)[0]
    return K[np.ix_(rows, kept)] @ dual


@pytest.mark.parametrize("settings", SETTINGS, ids=lambda s: "-".join(s.values()))
@pytest.mark.parametrize("sizes", [(5, 6), (1, 7, 4), (3, 1, 4, 2)], ids=str)
@pytest.mark.parametrize("kind", ["kernel", "features"])
def test_scores(settings, sizes, kind):
    y = labels(sizes)
    X = np.random.default_rng(1).normal(size=(y.size, 3))
    X[1] = X[0]  # a singular kernel
    K = rbf_kernel(X, gamma=0.4) if kind == "kernel" else X @ X.T
    reweighted = (
        partial(reweighted_kernel, KernelProblem(Kernel("precomputed"), K, None, MemoryBudget(), 1))
        if kind == "kernel"
        else partial(reweighted_features, X)
    )
    ranking = LevelRanking.of_labels(y, **settings)
    wrong, seen = np.zeros(ALPHAS.size), np.zeros(ALPHAS.size)
    for a, i, j, scores in level_pair_out_scores(reweighted, ranking, ALPHAS, n_threads=2):
        for row, first in enumerate(i):
            for column, second in enumerate(j):
                expected = refit_without(K, y, np.array([first, second]), ALPHAS[a], settings)
                np.testing.assert_allclose(scores[row, column], expected, atol=1e-8)
                difference = (expected[0] - expected[1]) * (y[first] - y[second])
                wrong[a] += 0.5 if abs(difference) < 1e-9 else difference < 0
                seen[a] += 1
    assert (seen == (y[:, None] > y).sum()).all()
    errors = level_pair_out_error(reweighted, ranking, ALPHAS)
    np.testing.assert_allclose(errors, wrong / seen, atol=1e-12)


def test_nothing_left_to_learn_from():
    """Without the only row of a level no pair is left, and all scores are equal."""
    y = np.array([0.0, 0.0, 0.0, 1.0])
    ranking = LevelRanking.of_labels(y, ties="exclude", cost="magnitude", query_weight="size")
    X = as_design(np.random.default_rng(0).normal(size=(4, 2))).X
    np.testing.assert_array_equal(
        level_pair_out_error(partial(reweighted_features, X), ranking, ALPHAS), np.full(ALPHAS.size, 0.5)
    )
