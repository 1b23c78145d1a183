"""Kernel RankRLS: dual, primal, precomputed and reduced sets agree; bad input is told how to get better."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.sparse.linalg import aslinearoperator
from sklearn.base import clone
from sklearn.metrics.pairwise import polynomial_kernel, rbf_kernel

from all_pairs import pairwise
from oracles import Pairs, label_pairs
from rankwise import KernelRankRLS, KernelRankRLSCV, KernelRankSVM, RankRLS
from rankwise.exceptions import InvalidInputError, MemoryLimitError
from rankwise.kernels import KernelDesign
from strategies import make_problem

SETTINGS = [
    {},
    {"query_weight": "pairs"},
    {"ties": "exclude"},
    {"ties": "exclude", "cost": "unit", "query_weight": "equal"},
    {"ties": "exclude", "cost": "relative"},
]


def fit(problem, kernel="rbf", X=None, **options):
    X = problem.X if X is None else X
    return KernelRankRLS(kernel, **options).fit(X, problem.y, problem.qid, problem.sample_weight)


def explicit_scores(K, pairs, alpha):
    """Minimise over all dual coefficients of the explicit pairs."""
    L = pairs.laplacian
    return K @ np.linalg.lstsq(L @ K + alpha * np.eye(K.shape[0]), pairs.pull, rcond=None)[0]


@pairwise(settings=SETTINGS, weighted=[False, True], alpha=[1e-3, 1.0, 100.0])
def test_every_road_to_the_same_model(settings, weighted, alpha):
    problem = make_problem(1, weighted=weighted)
    problem.X[5] = problem.X[4]  # a singular kernel
    K = rbf_kernel(problem.X, gamma=0.3)
    pairs = label_pairs(problem.y, problem.qid, sample_weight=problem.sample_weight, **settings)
    expected = explicit_scores(K, pairs, alpha)
    new = np.random.default_rng(0).normal(size=(7, 5))
    reference = None
    for how in (
        {"solver": "direct"},
        {"solver": "eigen"},
        {"solver": "cg", "tol": 1e-14},
        {"basis": np.arange(40)},
        {"basis": 40, "solver": "cg", "tol": 1e-14},
    ):
        model = fit(problem, gamma=0.3, alpha=alpha, **settings, **how)
        np.testing.assert_allclose(model.predict(problem.X), expected, atol=1e-8)
        given = fit(problem, "precomputed", K, alpha=alpha, **settings, **how)
        np.testing.assert_allclose(given.predict(K), expected, atol=1e-8)
        predicted = model.predict(new)
        np.testing.assert_allclose(given.predict(rbf_kernel(new, problem.X, gamma=0.3)), predicted, atol=1e-8)
        reference = predicted if reference is None else reference
        np.testing.assert_allclose(predicted, reference, atol=1e-8)


@pytest.mark.parametrize("settings", SETTINGS, ids=lambda s: "-".join(s.values()) or "size")
def test_a_linear_kernel_is_linear_rankrls(settings):
    problem = make_problem(2, weighted=True)
    linear = RankRLS(**settings).fit(problem.X, problem.y, problem.qid, problem.sample_weight)
    model = fit(problem, "linear", **settings)
    np.testing.assert_allclose(model.predict(problem.X), linear.predict(problem.X), atol=1e-8)
    reduced = fit(problem, "linear", basis=np.arange(10), **settings)  # ten rows span five columns
    np.testing.assert_allclose(reduced.predict(problem.X), linear.predict(problem.X), atol=1e-8)
    assert reduced.dual_coef_.shape == (10,)


@pytest.mark.parametrize(
    "how", [{}, {"solver": "eigen"}, {"solver": "cg", "tol": 1e-14}, {"basis": np.arange(40)}]
)
def test_explicit_preferences(how):
    problem = make_problem(2)
    rng = np.random.default_rng(0)
    edges = rng.permuted(np.tile(np.arange(40), (60, 1)), axis=1)[:, :2]
    magnitude, weight = rng.random(60), rng.random(60)
    K = rbf_kernel(problem.X, gamma=0.3)
    pairs = Pairs(edges[:, 0], edges[:, 1], weight, magnitude, 40)
    model = KernelRankRLS(gamma=0.3, alpha=0.1, **how).fit_pairs(problem.X, edges, magnitude, weight)
    np.testing.assert_allclose(model.predict(problem.X), explicit_scores(K, pairs, 0.1), atol=1e-8)


@pytest.mark.parametrize(
    "kernel", ["linear", "poly", "rbf", "laplacian", "cosine", "sigmoid", polynomial_kernel]
)
@pytest.mark.filterwarnings("ignore:The kernel is indefinite")
def test_kernels_and_containers(kernel):
    problem = make_problem(5)
    expected = fit(problem, kernel).predict(problem.X)
    assert np.isfinite(expected).all()
    np.testing.assert_allclose(
        fit(problem, kernel, problem.X.astype(np.float32)).predict(problem.X), expected, atol=1e-4
    )
    sparse = sp.csr_matrix(problem.X)
    np.testing.assert_allclose(fit(problem, kernel, sparse).predict(sparse), expected, atol=1e-8)


@pytest.mark.parametrize("basis", [15, ("random", 15), ("kmeans", 15), list(range(15))])
def test_choices_of_the_basis(basis):
    problem = make_problem(6)
    model = fit(problem, basis=basis)
    assert model.basis_.size == np.unique(model.basis_).size == 15
    np.testing.assert_array_equal(model.X_fit_, problem.X[model.basis_])
    again = fit(problem, basis=basis)
    np.testing.assert_array_equal(model.basis_, again.basis_)
    K = rbf_kernel(problem.X, problem.X[model.basis_], gamma=model.gamma_)
    np.testing.assert_allclose(K @ model.dual_coef_, model.predict(problem.X), atol=1e-10)


def test_features_that_do_not_fit_are_made_again(monkeypatch):
    problem = make_problem(7, rows=300)
    made = []
    original = KernelDesign.__init__

    def counting(self, *arguments, **options):
        made.append(1)
        original(self, *arguments, **options)

    monkeypatch.setattr(KernelDesign, "__init__", counting)
    expected = fit(problem, solver="cg", tol=1e-12)
    assert not made
    model = fit(problem, solver="cg", tol=1e-12, memory_limit=50_000)
    assert made
    np.testing.assert_allclose(model.predict(problem.X), expected.predict(problem.X), atol=1e-8)


def test_a_kernel_too_large_for_memory_names_a_basis_that_fits():
    problem = make_problem(8, rows=200)
    with pytest.raises(MemoryLimitError, match=r"200 rows .* takes about .* Hint: use basis=(\d+)") as error:
        fit(problem, memory_limit=100_000)
    basis = int(error.value.hint.split("basis=")[1].split(",")[0])
    fit(problem, basis=basis, memory_limit=100_000)


def test_an_operator_that_multiplies_by_the_kernel():
    problem = make_problem(9)
    K = rbf_kernel(problem.X)
    model = fit(problem, "precomputed", aslinearoperator(K), tol=1e-13)
    assert model.solver_ == "cg"
    expected = fit(problem, "precomputed", K)
    np.testing.assert_allclose(model.predict(aslinearoperator(K)), expected.predict(K), atol=1e-8)
    with pytest.raises(InvalidInputError, match="as a matrix"):
        fit(problem, "precomputed", aslinearoperator(K), solver="eigen")
    with pytest.raises(InvalidInputError, match="does not have"):
        fit(problem, "rbf", aslinearoperator(K))


def test_the_kernel_of_the_caller_is_left_alone():
    problem = make_problem(10)
    K = rbf_kernel(problem.X)
    before = K.copy()
    for solver in ("direct", "eigen", "cg"):
        fit(problem, "precomputed", K, solver=solver)
    np.testing.assert_array_equal(K, before)


@pytest.mark.parametrize("solver", ["direct", "eigen"])
def test_an_indefinite_kernel_is_cut_to_its_positive_part(solver):
    problem = make_problem(11, queries=1)
    rng = np.random.default_rng(0)
    Q = np.linalg.qr(rng.normal(size=(40, 40)))[0]
    K = (Q * np.linspace(-0.5, 2, 40)) @ Q.T
    C = np.eye(40) - 1 / 40
    with pytest.warns(UserWarning, match=r"indefinite .* go down to -0\.\d+, .* Hint: "):
        model = fit(problem, "precomputed", (K + K.T) / 2, solver=solver)
    values, V = np.linalg.eigh(C @ K @ C)
    positive = (V * np.maximum(values, 0)) @ V.T
    expected = positive @ np.linalg.solve(positive + np.eye(40), C @ problem.y)
    np.testing.assert_allclose(C @ model.predict(K), expected, atol=1e-8)


def test_alpha_zero_interpolates():
    X = np.linspace(0, 3, 8)[:, None]
    y = np.random.default_rng(0).normal(size=8)
    model = KernelRankRLS("laplacian", gamma=1.0, alpha=0).fit(X, y)
    np.testing.assert_allclose(np.diff(model.predict(X)), np.diff(y), atol=1e-8)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"gamma": 0}, "gamma=0 is not a positive"),
        ({"gamma": -1.0}, "gamma=-1.0"),
        ({"gamma": "scaled"}, "did you mean 'scale'"),
        ({"basis": 41}, "between 1 and 40.*Hint: use for example"),
        ({"basis": 0}, "basis=0"),
        ({"basis": ("kmean", 5)}, "did you mean 'kmeans'"),
        ({"basis": [1, 1, 2]}, "names a row twice"),
        ({"basis": [1, 40]}, "from 0 to 39"),
        ({"basis": [0.5]}, "from 0 to 39"),
    ],
)
def test_bad_parameters(options, message):
    problem = make_problem(13)
    with pytest.raises(InvalidInputError, match=message) as error:
        fit(problem, **options)
    assert error.value.hint


def test_bad_precomputed_kernels():
    problem = make_problem(14)
    K = rbf_kernel(problem.X)
    with pytest.raises(InvalidInputError, match="square"):
        fit(problem, "precomputed", K[:, :30])
    K[3, 7] += 0.25
    with pytest.raises(InvalidInputError, match=r"differ by up to 0\.25.*Hint: pass \(K \+ K.T\) / 2"):
        fit(problem, "precomputed", K)
    with pytest.raises(InvalidInputError, match="does not have"):
        fit(problem, "precomputed", rbf_kernel(problem.X), basis=("kmeans", 5))


@pytest.mark.parametrize("basis", [7, ("kmeans", 7)])
@pytest.mark.parametrize(
    "estimator", [KernelRankRLS(), KernelRankRLSCV(cv="leave-query-out"), KernelRankSVM(alpha=0.1)]
)
def test_rows_that_weigh_nothing_are_not_in_the_reduced_set(estimator, basis):
    problem = make_problem(3, rows=40, weighted=True)
    kept = np.flatnonzero(problem.sample_weight)
    assert kept.size < 40
    X, y, qid, weight = problem.X, problem.y, problem.qid, problem.sample_weight
    model = clone(estimator).set_params(basis=basis).fit(X, y, qid, weight)
    absent = clone(model).fit(X[kept], y[kept], qid[kept], weight[kept])
    np.testing.assert_array_equal(model.basis_, kept[absent.basis_])
    np.testing.assert_allclose(model.predict(X), absent.predict(X), atol=1e-9)
    every = clone(model).set_params(basis=40).fit(X, y, qid, weight)
    np.testing.assert_array_equal(every.basis_, kept)
    with pytest.raises(InvalidInputError, match="between 1 and 40"):
        clone(model).set_params(basis=41).fit(X, y, qid, weight)
