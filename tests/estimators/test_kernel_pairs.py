"""KernelRankRLSCV on listed pairs, against refits without the pairs."""

import numpy as np
import pytest
from scipy.sparse.linalg import aslinearoperator
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import ShuffleSplit

from all_pairs import pairwise
from rankwise import KernelRankRLS, KernelRankRLSCV
from rankwise.exceptions import InvalidInputError, NoPairsError
from rankwise.metrics import preference_error

ALPHAS = [0.01, 1.0, 10.0]


def data(n_pairs=120):
    """Pairs inside ten queries of four rows, and two rows in no pair."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(42, 3))
    block = rng.integers(10, size=n_pairs) * 4
    pairs = block[:, None] + np.array([rng.choice(4, 2, replace=False) for _ in range(n_pairs)])
    return X, pairs, rng.uniform(0.5, 2, n_pairs), rng.uniform(0.5, 2, n_pairs), block


def held_out_error(X, pairs, magnitude, weight, key, *, averaging="folds", **options):
    wrong = np.empty(len(pairs))
    for k in np.unique(key):
        test = key == k
        model = KernelRankRLS(solver="eigen", **options)
        f = model.fit_pairs(X, pairs[~test], magnitude[~test], weight[~test]).predict(X)
        wrong[test] = f[pairs[test, 0]] < f[pairs[test, 1]]
    if averaging == "pooled":
        return np.average(wrong, weights=weight)
    return np.mean([np.average(wrong[key == k], weights=weight[key == k]) for k in np.unique(key)])


@pairwise(
    cv=["leave-query-out", "leave-pair-out", "auto", 4],
    n_pairs=[30, 120],
    settings=[{}, {"cost": "unit"}, {"cost": "relative", "ties": "exclude"}],
    averaging=["folds", "pooled"],
)
def test_groups_of_pairs(cv, n_pairs, settings, averaging):
    X, pairs, magnitude, weight, block = data(n_pairs)
    groups = block if cv == 4 else None
    model = KernelRankRLSCV(gamma=0.3, alphas=ALPHAS, cv=cv, averaging=averaging, **settings)
    model.fit_pairs(X, pairs, magnitude, weight, groups=groups)
    if cv == "leave-pair-out":
        key = np.sort(pairs, axis=1) @ [100, 1]
    elif cv == 4:
        assert model.cv_ == "4 folds of groups"
        key = None
    else:
        key = block
        assert "connected components" in model.cv_
    if key is not None:
        # A refit for each of sixty couples: one alpha of them suffices there.
        for a, alpha in list(enumerate(ALPHAS))[1:2] if cv == "leave-pair-out" else enumerate(ALPHAS):
            expected = held_out_error(
                X, pairs, magnitude, weight, key, gamma=0.3, alpha=alpha, averaging=averaging, **settings
            )
            assert model.cv_errors_[a] == pytest.approx(expected, abs=1e-9)
    same = KernelRankRLS(gamma=0.3, alpha=model.alpha_, **settings).fit_pairs(X, pairs, magnitude, weight)
    np.testing.assert_allclose(model.predict(X), same.predict(X), atol=1e-8)
    K = rbf_kernel(X, gamma=0.3)
    given = KernelRankRLSCV("precomputed", alphas=ALPHAS, cv=cv, averaging=averaging, **settings)
    given.fit_pairs(K, pairs, magnitude, weight, groups=groups)
    if cv != 4:  # folds are dealt by the content of the rows, which here are kernel values
        np.testing.assert_allclose(given.predict(K), same.predict(X), atol=1e-8)


def test_a_reduced_set():
    X, pairs, magnitude, weight, block = data()
    rows = np.arange(0, 42, 2)
    model = KernelRankRLSCV(gamma=0.3, alphas=ALPHAS, basis=rows).fit_pairs(X, pairs, magnitude, weight)
    values, vectors = np.linalg.eigh(rbf_kernel(X[rows], gamma=0.3))
    Z = rbf_kernel(X, X[rows], gamma=0.3) @ (vectors / np.sqrt(values))
    for a, alpha in enumerate(ALPHAS):
        expected = held_out_error(Z, pairs, magnitude, weight, block, kernel="linear", alpha=alpha)
        assert model.cv_errors_[a] == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("storage", [np.asarray, aslinearoperator])
def test_products_alone(storage):
    """Converged folds by conjugate gradients say what the decomposition says."""
    X, pairs, magnitude, weight, block = data()
    K = rbf_kernel(X, gamma=0.3)
    splits = [(np.flatnonzero(block % 3 != k), np.flatnonzero(block % 3 == k)) for k in range(3)]
    options = {"alphas": ALPHAS, "cv": splits}
    exact = KernelRankRLSCV("precomputed", **options).fit_pairs(K, pairs, magnitude, weight)
    model = KernelRankRLSCV("precomputed", solver="cg", method="tikhonov", tol=1e-13, **options)
    model.fit_pairs(storage(K), pairs, magnitude, weight)
    np.testing.assert_allclose(model.cv_errors_, exact.cv_errors_, atol=1e-12)
    np.testing.assert_allclose(model.predict(storage(K)), exact.predict(K), atol=1e-7)


def test_auto_keeps_components_whole():
    X, pairs, magnitude, weight, block = data()
    model = KernelRankRLSCV(gamma=0.3, alphas=ALPHAS, solver="cg", method="tikhonov", tol=1e-13)
    model.fit_pairs(X, pairs, magnitude, weight)
    assert model.cv_ == "5 folds of connected components"
    again = KernelRankRLSCV(gamma=0.3, alphas=ALPHAS, cv=5).fit_pairs(
        X, pairs, magnitude, weight, groups=block
    )
    np.testing.assert_allclose(model.cv_errors_, again.cv_errors_, atol=1e-12)
    # All pairs connected: nothing but pairs can be folded.
    chain = np.column_stack([np.arange(1, 42), np.arange(41)])
    assert KernelRankRLSCV(alphas=ALPHAS).fit_pairs(X, chain).cv_ == "5 folds of pairs"


@pytest.mark.parametrize("solver", ["eigen", "cg"])
def test_an_evaluation_set_of_pairs(solver):
    X, pairs, magnitude, weight, _ = data()
    rng = np.random.default_rng(2)
    X_val = rng.normal(size=(20, 3))
    pairs_val = rng.permuted(np.tile(np.arange(20), (50, 1)), axis=1)[:, :2]
    model = KernelRankRLSCV(gamma=0.3, alphas=ALPHAS, solver=solver, method="tikhonov", tol=1e-13)
    model.fit_pairs(X, pairs, magnitude, weight, eval_set=(X_val, pairs_val))
    assert model.cv_ == "an evaluation set of 50 pairs"
    for a, alpha in enumerate(ALPHAS):
        same = KernelRankRLS(gamma=0.3, alpha=alpha).fit_pairs(X, pairs, magnitude, weight)
        expected = preference_error(pairs_val, same.predict(X_val))
        assert model.cv_errors_[a] == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("cv", ["leave-query-out", "leave-pair-out"])
@pytest.mark.parametrize("basis", [None, np.arange(5)])
def test_a_kernel_without_a_positive_part_orders_nothing(cv, basis):
    _, pairs, *_ = data()
    model = KernelRankRLSCV("precomputed", alphas=ALPHAS, cv=cv, basis=basis)
    with pytest.warns(UserWarning, match="indefinite"):
        model.fit_pairs(-np.eye(42), pairs)
    np.testing.assert_array_equal(model.cv_errors_, 0.5)
    np.testing.assert_allclose(model.predict(-np.eye(42)), 0.0, atol=1e-12)


def test_bad_input():
    X, pairs, *_ = data()
    with pytest.raises(InvalidInputError, match=r"kernel of all rows.*Hint: use solver='eigen'"):
        KernelRankRLSCV(solver="cg", basis=10).fit_pairs(X, pairs)
    with pytest.raises(InvalidInputError, match=r"several times.*Hint: .* solver='cg'"):
        KernelRankRLSCV(cv=ShuffleSplit(3, random_state=0)).fit_pairs(X, pairs)
    with pytest.raises(InvalidInputError, match=r"only multiplies.*Hint: use cv=5"):
        KernelRankRLSCV(solver="cg", cv="leave-query-out").fit_pairs(X, pairs)
    with pytest.raises(InvalidInputError, match="Hint: pass qid, or groups"):
        KernelRankRLSCV(cv="leave-query-out").fit_pairs(X, [[0, 1], [1, 2]])
    with pytest.raises(NoPairsError, match="Hint"):
        KernelRankRLSCV().fit_pairs(X, pairs, 0.0)
