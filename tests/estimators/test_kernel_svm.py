"""KernelRankSVM: the same minimum as a direct dual over explicit pairs, and the contract of the kernel estimators."""

import numpy as np
import pytest
import scipy.optimize
from sklearn.metrics.pairwise import rbf_kernel

from all_pairs import pairwise
from oracles import label_pairs
from rankwise import KernelRankSVM, RankSVM
from rankwise.exceptions import InvalidInputError, MemoryLimitError
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


def test_bad_input():
    problem = make_problem(3, rows=80)
    with pytest.raises(InvalidInputError, match="kernel"):
        KernelRankSVM("rbv").fit(problem.X, problem.y)
    with pytest.raises(InvalidInputError, match="'alpha' parameter"):
        KernelRankSVM(alpha=0).fit(problem.X, problem.y)
    with pytest.raises(InvalidInputError, match="basis"):
        KernelRankSVM(basis=81).fit(problem.X, problem.y)
    with pytest.raises(MemoryLimitError, match="basis="):
        KernelRankSVM(memory_limit=1000).fit(problem.X, problem.y)
