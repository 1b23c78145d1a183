"""Figures that depend on differences far below the numbers they are computed from, against models fitted again."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import KFold

from all_pairs import pairwise
from oracles import label_pairs, pairwise_error, solve_rankrls
from rankwise import KernelRankRLS, KernelRankRLSCV, RankRLS, RankRLSCV

ROWS, QUERIES = 40, 8
LARGE = [1.0, 1e9, 1e14, 1e20]


def rows(seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(ROWS, 3))
    y = X[:, 0] + 0.3 * X[:, 1] ** 2 + 0.3 * rng.normal(size=ROWS)
    return X, y, np.arange(ROWS) % QUERIES


def chooser(kind, alphas, **settings):
    if kind == "columns":
        return RankRLSCV(alphas, method="tikhonov", **settings)
    return KernelRankRLSCV(kind, alphas=alphas, gamma=0.2, **settings)


def refitted(kind, alpha, **settings):
    if kind == "columns":
        return RankRLS(alpha, solver="direct", **settings)
    return KernelRankRLS(kind, alpha=alpha, gamma=0.2, **settings)


@pytest.mark.parametrize("kind", ["columns", "linear", "rbf"])
def test_large_alphas_hold_out_queries_as_refits_do(kind):
    X, y, qid = rows(0)
    found = chooser(kind, LARGE, cv="leave-query-out").fit(X, y, qid=qid).cv_errors_
    for alpha, error in zip(LARGE, found, strict=True):
        scores = np.empty(ROWS)
        for query in range(QUERIES):
            out = qid == query
            scores[out] = refitted(kind, alpha).fit(X[~out], y[~out], qid=qid[~out]).predict(X[out])
        np.testing.assert_allclose(error, pairwise_error(y, scores, qid), rtol=1e-12)


@pytest.mark.parametrize("kind", ["columns", "linear", "rbf"])
def test_large_alphas_hold_out_folds_of_rows_as_refits_do(kind):
    X, y, _ = rows(1)
    cv = KFold(5)
    found = chooser(kind, LARGE, cv=list(cv.split(X))).fit(X, y).cv_errors_
    for alpha, error in zip(LARGE, found, strict=True):
        fold, scores = np.empty(ROWS), np.empty(ROWS)
        for at, (train, test) in enumerate(cv.split(X)):
            fold[test] = at
            scores[test] = refitted(kind, alpha).fit(X[train], y[train]).predict(X[test])
        np.testing.assert_allclose(error, pairwise_error(y, scores, fold), rtol=1e-12)


@pytest.mark.parametrize("settings", [{}, {"cost": "unit"}, {"query_weight": "pairs"}])
@pytest.mark.parametrize("kind", ["columns", "linear", "rbf"])
def test_large_alphas_hold_out_pairs_as_refits_do(kind, settings):
    X, y, _ = rows(2)
    y, X = np.round(y[:12]), X[:12]
    found = chooser(kind, LARGE[1:], cv="leave-pair-out", **settings).fit(X, y).cv_errors_
    for alpha, error in zip(LARGE[1:], found, strict=True):
        wrong = []
        for i, j in zip(*np.nonzero(y[:, None] > y), strict=True):
            kept = np.setdiff1d(np.arange(y.size), [i, j])
            better, worse = refitted(kind, alpha, **settings).fit(X[kept], y[kept]).predict(X[[i, j]])
            wrong.append(better < worse)
        np.testing.assert_allclose(error, np.mean(wrong), rtol=1e-12)


def test_large_alphas_hold_out_listed_pairs_as_refits_do():
    X, y, _ = rows(3)
    rng = np.random.default_rng(3)
    pairs = np.array([rng.choice(ROWS, 2, replace=False) for _ in range(30)])
    pairs = np.where((y[pairs[:, 0]] > y[pairs[:, 1]])[:, None], pairs, pairs[:, ::-1])
    folds = list(KFold(5).split(pairs))
    found = KernelRankRLSCV(alphas=LARGE, gamma=0.2, cv=folds, averaging="pooled").fit_pairs(X, pairs)
    for alpha, error in zip(LARGE, found.cv_errors_, strict=True):
        wrong = []
        for train, test in folds:
            scores = KernelRankRLS(alpha=alpha, gamma=0.2).fit_pairs(X, pairs[train]).predict(X)
            wrong.append(scores[pairs[test, 0]] < scores[pairs[test, 1]])
        np.testing.assert_allclose(error, np.concatenate(wrong).mean(), rtol=1e-12)


SMALL = [1e-8, 1e-5, 1e-2, 1.0]
TIED = [
    {},
    {"cost": "unit"},
    {"query_weight": "pairs", "cost": "unit"},
]


def without_pairs(Z, y, settings):
    """Refit without every two rows with different labels; one error per alpha."""
    wrong = []
    for i, j in zip(*np.nonzero(y[:, None] > y), strict=True):
        kept = np.setdiff1d(np.arange(y.size), [i, j])
        pairs = label_pairs(y[kept], **settings)
        better = [(Z[i] - Z[j]) @ solve_rankrls(Z[kept], pairs, alpha) for alpha in SMALL]
        wrong.append(np.where(np.abs(better) < 1e-9, 0.5, np.less(better, 0)))
    return np.mean(wrong, axis=0)


@pytest.mark.parametrize("settings", TIED)
def test_leave_pair_out_of_a_small_alpha_keeps_ties_of_a_linear_kernel(settings):
    rng = np.random.default_rng(4)
    X = rng.integers(0, 3, size=(16, 2)).astype(float)
    y = rng.integers(0, 3, size=16).astype(float)
    found = chooser("linear", SMALL, cv="leave-pair-out", **settings).fit(X, y).cv_errors_
    np.testing.assert_allclose(found, without_pairs(X, y, settings), rtol=1e-12)


@pytest.mark.parametrize("settings", TIED)
@pytest.mark.parametrize("kind", ["columns", "rbf"])
def test_leave_pair_out_of_a_small_alpha_keeps_ties_of_equal_rows(kind, settings):
    rng = np.random.default_rng(5)
    distinct = rng.normal(size=(6, 2))
    code, y = rng.integers(0, 6, size=16), rng.integers(0, 3, size=16).astype(float)
    Z = (distinct if kind == "columns" else np.linalg.cholesky(rbf_kernel(distinct, gamma=0.2)))[code]
    found = chooser(kind, SMALL, cv="leave-pair-out", **settings).fit(distinct[code], y).cv_errors_
    np.testing.assert_allclose(found, without_pairs(Z, y, settings), rtol=1e-12)


@pairwise(
    storage=[np.asarray, np.float32, sp.csr_matrix], weighted=[False, True], constant=[1e12, 1e15, 1.1e17 / 3]
)
def test_gamma_scale_does_not_see_a_constant_column(storage, weighted, constant):
    X, y, _ = rows(6)
    weight = np.random.default_rng(6).uniform(size=ROWS) if weighted else None
    wide = storage(np.column_stack([X, np.full(ROWS, constant)]))
    plain, beside = (KernelRankRLS().fit(Z, y, sample_weight=weight).gamma_ for Z in (storage(X), wide))
    np.testing.assert_allclose(beside, plain, rtol=1e-10)


@pytest.mark.parametrize("scale", [1e-7, 1e-3, 1e5, 1e7])
@pytest.mark.parametrize("alpha", [1e4, 1e8])
def test_the_eigen_solver_is_exact_whatever_the_units_of_a_column(alpha, scale):
    X, y, qid = rows(7)
    X = X * [1.0, 1.0, scale]
    found, expected = (RankRLS(alpha, solver=s).fit(X, y, qid=qid).coef_ for s in ("eigen", "direct"))
    np.testing.assert_allclose(found, expected, rtol=1e-7)
