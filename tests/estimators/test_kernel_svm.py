"""KernelRankSVM: the same minimum as a direct dual over explicit pairs, and the contract of the kernel estimators."""

import numpy as np
import pytest
import scipy.optimize
from sklearn.metrics.pairwise import rbf_kernel

from all_pairs import pairwise
from oracles import label_pairs
from rankwise import KernelRankSVM, KernelRankSVMCV, RankSVM
from rankwise.metrics import pairwise_error, preference_error
from strategies import make_problem


def direct_dual(K, pairs, alpha):
    """Maximise ``Σ ω a - ‖Σ ω a (φ_i - φ_j)‖²/(4α)`` over ``0 <= a <= 1``, pair by pair."""
    A = pairs.incidence
    share = pairs.weight / pairs.weight.sum()
    Q = A @ K @ A.T

    def negative(a):
        v = Q @ (share * a) / (2 * alpha)
        return share @ (a * v) / 2 - share @ a, share * (v - 1)

    result = scipy.optimize.minimize(
        negative,
        np.full(share.size, 0.5),
        jac=True,
        bounds=[(0, 1)] * share.size,
        options={"maxiter": 20000, "maxfun": 50000, "ftol": 1e-15, "gtol": 1e-12},
    )
    return -result.fun


@pytest.mark.parametrize("alpha", [1e-1, 1e-3])
def test_reaches_the_objective_of_a_direct_dual_program(alpha):
    problem = make_problem(1, rows=40)
    K = rbf_kernel(problem.X, gamma=0.3)
    pairs = label_pairs(problem.y, problem.qid, ties="exclude", cost="unit", query_weight="equal")
    model = KernelRankSVM("rbf", gamma=0.3, alpha=alpha, tol=1e-6).fit(problem.X, problem.y, problem.qid)
    a = model.dual_coef_
    scores = K @ a
    t = np.maximum(0, 1 - (scores[pairs.winner] - scores[pairs.loser]))
    value = pairs.weight @ t / pairs.weight.sum() + alpha * a @ K @ a
    expected = direct_dual(K, pairs, alpha)
    assert value == pytest.approx(expected, abs=1e-4)
    np.testing.assert_allclose(model.predict(problem.X), scores, atol=1e-9)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_the_linear_kernel_is_the_linear_model(loss):
    problem = make_problem(2, rows=60)
    options = {"alpha": 1e-2, "loss": loss, "tol": 1e-8}
    linear = RankSVM(**options).fit(problem.X, problem.y, problem.qid)
    kernel = KernelRankSVM("linear", **options).fit(problem.X, problem.y, problem.qid)
    precomputed = KernelRankSVM("precomputed", **options)
    precomputed.fit(problem.X @ problem.X.T, problem.y, problem.qid)
    np.testing.assert_allclose(kernel.predict(problem.X), linear.predict(problem.X), atol=2e-2)
    np.testing.assert_allclose(
        precomputed.predict(problem.X @ problem.X.T), kernel.predict(problem.X), atol=2e-2
    )


def test_reduced_sets_outputs_and_pairs():
    problem = make_problem(3, rows=80)
    Y = np.column_stack([problem.y, -problem.y])
    model = KernelRankSVM(basis=20, alpha=1e-3).fit(problem.X, Y, problem.qid)
    assert model.dual_coef_.shape == (2, 20)
    assert model.predict(problem.X).shape == (80, 2)
    assert (model.duality_gap_ <= 1e-3).all()
    listed = label_pairs(problem.y, problem.qid, ties="exclude", cost="unit", query_weight="equal")
    edges = np.column_stack([listed.winner, listed.loser])
    one = KernelRankSVM(basis=("kmeans", 20), alpha=1e-3, loss="logistic").fit_pairs(problem.X, edges)
    p = one.predict_pairs(problem.X[:5], problem.X[5:10])
    assert ((p > 0) & (p < 1)).all()


@pairwise(loss=["hinge", "squared_hinge"], kernel=["linear", "rbf"], alpha=[1e4, 1e12])
def test_a_large_penalty_still_ranks(kernel, loss, alpha):
    """As alpha grows, scores tend to ``K A'ω / (2 alpha Σω)``, and not to ties."""
    problem = make_problem(2, rows=60)
    pairs = label_pairs(problem.y, problem.qid, ties="exclude", cost="unit", query_weight="equal")
    model = KernelRankSVM(kernel, gamma=0.3, alpha=alpha, loss=loss).fit(problem.X, problem.y, problem.qid)
    K = problem.X @ problem.X.T if kernel == "linear" else rbf_kernel(problem.X, gamma=0.3)
    expected = K @ (pairs.incidence.T @ pairs.weight) / pairs.weight.sum() * (1 if loss == "hinge" else 2)
    actual = 2 * alpha * model.predict(problem.X)
    differences = pairs.incidence @ np.column_stack([actual, expected])
    np.testing.assert_allclose(differences[:, 0], differences[:, 1], atol=1e-2 * np.abs(differences).max())


# --- choosing alpha ---------------------------------------------------------------------------------------

ALPHAS = [1e-3, 1e-2, 1e-1]


def thirds(n):
    fold = np.arange(n) // 5 % 3
    return [(np.flatnonzero(fold != k), np.flatnonzero(fold == k)) for k in range(3)]


@pytest.mark.parametrize("options", [{}, {"basis": np.arange(0, 60, 3)}])
def test_errors_are_those_of_refits_and_the_model_that_of_the_chosen_alpha(options):
    """The kernel map of all rows gives every fold the model of its training rows alone."""
    problem = make_problem(3, rows=60, queries=12)
    X, y, qid = problem.X, problem.y, problem.qid
    fixed = {"loss": "squared_hinge", "tol": 1e-10, "gamma": 0.3}
    fold = np.array([int(q) % 3 for q in qid])
    splits = [(np.flatnonzero(fold != k), np.flatnonzero(fold == k)) for k in range(3)]
    model = KernelRankSVMCV(alphas=ALPHAS, cv=splits, **fixed, **options).fit(X, y, qid)
    K = rbf_kernel(X, gamma=0.3)
    for at, alpha in enumerate(ALPHAS):
        errors, shares = [], []
        for train, test in splits:
            own = KernelRankSVM("precomputed" if options else "rbf", alpha=alpha, **fixed)
            if options:  # the same basis, whose rows a fold may hold out: as weights of 0
                own.set_params(**options)
                weight = np.isin(np.arange(60), train).astype(float)
                scores = own.fit(K, y, qid, weight).predict(K)[test]
            else:
                scores = own.fit(X[train], y[train], qid[train]).predict(X[test])
            errors.append(pairwise_error(y[test], scores, qid[test]))
            shares.append(len({q for q in qid[test] if len(set(y[qid == q])) > 1}))
        assert model.cv_errors_[at] == pytest.approx(np.average(errors, weights=shares), abs=1e-9)
    whole = KernelRankSVM(alpha=model.alpha_, **fixed, **options).fit(X, y, qid)
    np.testing.assert_allclose(model.predict(X), whole.predict(X), atol=1e-4)
    columns = options.get("basis", np.arange(60))
    np.testing.assert_allclose(model.predict(X), K[:, columns] @ model.dual_coef_, atol=1e-9)


def test_the_chosen_model_reaches_the_objective_of_explicit_pairs():
    problem = make_problem(4, rows=40)
    model = KernelRankSVMCV(alphas=ALPHAS, gamma=0.3, cv=3, tol=1e-6).fit(problem.X, problem.y, problem.qid)
    K, a = rbf_kernel(problem.X, gamma=0.3), model.dual_coef_
    pairs = label_pairs(problem.y, problem.qid, ties="exclude", cost="unit", query_weight="equal")
    scores = K @ a
    t = np.maximum(0, 1 - (scores[pairs.winner] - scores[pairs.loser]))
    value = pairs.weight @ t / pairs.weight.sum() + model.alpha_ * a @ K @ a
    assert value == pytest.approx(direct_dual(K, pairs, model.alpha_), abs=1e-4)


def test_listed_pairs_eval_sets_and_precomputed_kernels():
    problem = make_problem(5, rows=60)
    X, K = problem.X, rbf_kernel(problem.X, gamma=0.3)
    rng = np.random.default_rng(0)
    pairs = np.array([rng.choice(60, 2, replace=False) for _ in range(90)])
    fixed = {"alphas": ALPHAS, "loss": "squared_hinge", "tol": 1e-9}
    folds = thirds(90)
    one = KernelRankSVMCV(gamma=0.3, cv=folds, **fixed).fit_pairs(X, pairs)
    other = KernelRankSVMCV("precomputed", cv=folds, **fixed).fit_pairs(K, pairs)
    np.testing.assert_allclose(one.cv_errors_, other.cv_errors_, atol=1e-9)
    scored = pairs[:20]
    watched = KernelRankSVMCV(gamma=0.3, **fixed).fit_pairs(X, pairs[20:], eval_set=(X, scored))
    for at, alpha in enumerate(ALPHAS):
        refit = KernelRankSVM(gamma=0.3, alpha=alpha, loss="squared_hinge", tol=1e-9).fit_pairs(X, pairs[20:])
        assert watched.cv_errors_[at] == pytest.approx(preference_error(scored, refit.predict(X)), abs=1e-9)
    given = KernelRankSVMCV("precomputed", **fixed).fit_pairs(K, pairs[20:], eval_set=(K, scored))
    np.testing.assert_allclose(given.cv_errors_, watched.cv_errors_, atol=1e-9)
