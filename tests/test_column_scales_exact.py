"""One column in other units: every exact solver and selector finds the minimum, and holds out as refits do."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.preprocessing import StandardScaler

from all_pairs import pairwise
from oracles import label_pairs, pairwise_error
from rankwise import AutoRanker, KernelRankRLS, KernelRankRLSCV, RankRLS, RankRLSCV

SCALES = [1e-6, 1e-3, 1.0, 1e3, 1e6]
FAR = [1e-12, 1e-8, 1e8, 1e12]
ALPHA = 0.5
SHAPES = {"tall": (48, 4), "wide": (48, 70)}
SPLITS = [
    (np.flatnonzero(np.arange(48) // 12 != k), np.flatnonzero(np.arange(48) // 12 == k)) for k in range(4)
]


def problem_of(shape, scale, levels=None):
    """Queries of six rows, and a column in other units."""
    n_rows, n_columns = SHAPES[shape]
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n_rows, n_columns))
    y = X[:, :3] @ [1.0, 1.5, -1.0] + rng.normal(size=n_rows)
    if levels is not None:
        y = np.floor(levels * np.argsort(np.argsort(y)) / n_rows)
    X[:, 1] *= scale
    return X, y, np.arange(n_rows) // 6


def minimum(X, pairs, alpha=ALPHA):
    """Orthogonal least squares on listed pairs and the penalty, every column divided by its length."""
    A = np.vstack(
        [np.sqrt(pairs.weight)[:, None] * (pairs.incidence @ X), np.sqrt(alpha) * np.eye(X.shape[1])]
    )
    b = np.concatenate([np.sqrt(pairs.weight) * pairs.difference, np.zeros(X.shape[1])])
    length = np.linalg.norm(A, axis=0)
    Q, R = np.linalg.qr(A / length)
    return np.linalg.solve(R, Q.T @ b) / length


def objective(model, X, pairs):
    """Loss of the predictions plus penalty."""
    w = model.coef_ if hasattr(model, "coef_") else model.X_fit_.T @ model.dual_coef_
    return pairs.squared_loss(model.predict(X)) + ALPHA * w @ w


def fitted(model, *data):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return clone(model).fit(*data)


QUERIES = [
    RankRLS(ALPHA, solver="direct"),
    RankRLS(ALPHA, solver="eigen"),
    RankRLSCV([ALPHA], cv="leave-query-out"),
    RankRLSCV([ALPHA], method="tikhonov"),
    RankRLSCV([ALPHA], cv=SPLITS, method="tikhonov"),
    KernelRankRLS("linear", alpha=ALPHA),
    KernelRankRLS("linear", alpha=ALPHA, solver="eigen"),
    KernelRankRLS("linear", alpha=ALPHA, basis=np.arange(48)),
    KernelRankRLSCV("linear", alphas=[ALPHA], cv="leave-query-out"),
    KernelRankRLSCV("linear", alphas=[ALPHA], cv=SPLITS),
]
ONE_RANKING = [
    RankRLSCV([ALPHA], cv="leave-pair-out"),
    RankRLSCV([ALPHA], cv=SPLITS, method="tikhonov"),
    KernelRankRLSCV("linear", alphas=[ALPHA], cv="leave-pair-out"),
    KernelRankRLSCV("linear", alphas=[ALPHA], cv=SPLITS),
]


def precision(model, scale):
    """Return the relative precision of an objective value: a kernel matrix of large columns has squares to round."""
    return 1e-5 if "Kernel" in type(model).__name__ and scale >= 1e6 else 1e-6


@pairwise(scale=SCALES, shape=SHAPES, storage=[np.asarray, sp.csr_matrix], model=QUERIES)
def test_the_minimum_with_queries(model, storage, shape, scale):
    X, y, qid = problem_of(shape, scale)
    pairs, w = label_pairs(y, qid), minimum(X, label_pairs(y, qid))
    least = pairs.squared_loss(X @ w) + ALPHA * w @ w
    found = fitted(model, storage(X), y, qid)
    assert objective(found, X, pairs) == pytest.approx(least, rel=precision(model, scale))


@pairwise(scale=SCALES, shape=SHAPES, model=ONE_RANKING)
def test_the_minimum_of_one_ranking(model, shape, scale):
    X, y, _ = problem_of(shape, scale, levels=3)
    pairs = label_pairs(y)
    w = minimum(X, pairs)
    least = pairs.squared_loss(X @ w) + ALPHA * w @ w
    found = fitted(model, X, y)
    assert objective(found, X, pairs) == pytest.approx(least, rel=precision(model, scale))


@pairwise(scale=[*SCALES, *FAR], shape=SHAPES, alpha=[1e-3, ALPHA, 1e3])
def test_columns_far_apart_have_the_model_of_one_alpha(shape, alpha, scale):
    """A time stamp beside columns of order 1."""
    X, y, qid = problem_of(shape, scale)
    w = minimum(X, label_pairs(y, qid), alpha)
    for cv in ("leave-query-out", SPLITS):
        found = fitted(RankRLSCV([alpha], cv=cv, method="tikhonov"), X, y, qid)
        np.testing.assert_allclose(found.predict(X), X @ w, rtol=0, atol=1e-6)


@pairwise(scale=[*SCALES, *FAR], shape=SHAPES, model=[RankRLSCV, KernelRankRLSCV])
@pytest.mark.filterwarnings("ignore:Columns of X")
def test_queries_are_held_out_as_refits_do(model, shape, scale):
    X, y, qid = problem_of(shape, scale)
    for held_out, cv in ((qid, "leave-query-out"), (np.arange(48) // 12, SPLITS)):
        scores = np.empty(y.size)
        for group in np.unique(held_out):
            rest = held_out != group
            w = minimum(X[rest], label_pairs(y[rest], qid[rest]))
            scores[~rest] = X[~rest] @ w
        options = {"kernel": "linear"} if model is KernelRankRLSCV else {"method": "tikhonov"}
        found = model(alphas=[ALPHA], cv=cv, averaging="pooled", **options).fit(X, y, qid)
        assert found.cv_errors_[0] == pytest.approx(pairwise_error(y, scores, qid), abs=1e-12)


@pairwise(scale=[*SCALES, *FAR], shape=SHAPES, model=[RankRLSCV, KernelRankRLSCV])
@pytest.mark.filterwarnings("ignore:Columns of X")
def test_pairs_are_held_out_as_refits_do(model, shape, scale):
    X, y, _ = problem_of(shape, scale, levels=3)
    X, y = X[::3], y[::3]
    wrong, total = 0.0, 0
    for i in range(y.size):
        for j in np.flatnonzero(y > y[i]):
            rest = np.delete(np.arange(y.size), [i, j])
            better = (X[j] - X[i]) @ minimum(X[rest], label_pairs(y[rest]))
            wrong, total = wrong + (better < 0), total + 1
    options = {"kernel": "linear"} if model is KernelRankRLSCV else {}
    found = model(alphas=[ALPHA], cv="leave-pair-out", **options).fit(X, y)
    assert found.cv_errors_[0] == pytest.approx(wrong / total, abs=1e-12)


@pytest.mark.parametrize("scale", [1e8, 1e12])
@pytest.mark.parametrize("options", [{}, {"solver": "eigen"}, {"basis": 20}], ids=repr)
def test_dual_coefficients_name_columns_that_are_too_large(options, scale):
    X, y, qid = problem_of("tall", scale)
    said = r"Columns of X \(numbers 1, counted from 0\).*StandardScaler"
    with pytest.warns(UserWarning, match=said):
        KernelRankRLS("linear", alpha=ALPHA, **options).fit(X, y, qid)
    with pytest.warns(UserWarning, match=said):
        KernelRankRLSCV("linear", alphas=[ALPHA], cv="leave-query-out").fit(X, y, qid)


@pytest.mark.parametrize(
    "model", [RankRLSCV(method="tikhonov"), KernelRankRLSCV("linear"), AutoRanker(methods="rls")]
)
@pytest.mark.parametrize("has_queries", [False, True])
def test_constant_columns_that_scaling_leaves_as_rounding_are_not_called_small(model, has_queries):
    rng = np.random.default_rng(0)
    X, qid = rng.normal(size=(310, 4)), np.repeat(np.arange(31), 10) if has_queries else None
    y = X[:, 0] + rng.normal(size=310)
    X[:, 2] = 0.1
    scaled = StandardScaler().fit_transform(X)
    assert 0 < np.abs(scaled[:, 2]).max() < 1e-14
    clone(model).fit(X if isinstance(model, AutoRanker) else scaled, y, qid=qid)


def test_exact_hold_out_names_columns_beyond_all_digits():
    X, y, qid = problem_of("tall", 1e16)
    with pytest.warns(UserWarning, match=r"Columns of X \(numbers 1, counted from 0\).*StandardScaler"):
        RankRLSCV([ALPHA], cv="leave-query-out").fit(X, y, qid)


@pytest.mark.parametrize("scale", [*SCALES, *FAR])
def test_listed_pairs_in_groups(scale):
    X, y, qid = problem_of("tall", scale)
    pairs = label_pairs(y, qid)
    listed = np.column_stack([pairs.winner, pairs.loser])
    w = minimum(X, pairs)
    for groups in (qid[pairs.winner], np.arange(pairs.winner.size) % 5):  # which share rows, or do not
        model = RankRLSCV([ALPHA], cv="leave-query-out")
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            model.fit_pairs(X, listed, pairs.difference, pairs.weight, groups=groups)
        np.testing.assert_allclose(model.predict(X), X @ w, rtol=0, atol=1e-6)
