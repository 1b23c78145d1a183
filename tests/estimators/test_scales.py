"""Columns of extreme scales: the right model, or one clear error; and columns that say nothing."""

import warnings
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.linalg
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from all_pairs import pairwise
from oracles import label_pairs, solve_rankrls
from rankwise import KernelRankRLS, KernelRankRLSCV, KernelRankSVM, RankRLS, RankRLSCV, RankSVM, RankSVMCV
from rankwise.exceptions import InvalidInputError
from rankwise.solvers.choose import SOLVERS
from strategies import make_problem

STORAGES = {"dense": np.asarray, "csr": sp.csr_matrix}


@pairwise(
    solver=SOLVERS,
    storage=STORAGES,
    x_scale=[1e-50, 1e-20, 1e20, 1e50],
    y_scale=[1e-30, 1.0, 1e30],
)
def test_a_model_scales_with_its_data(solver, storage, x_scale, y_scale):
    """Rows s times as large, under a penalty s² times as large, have a model 1/s times as large."""
    problem = make_problem(0, real=True)
    model = RankRLS(0.5 * x_scale * x_scale, solver=solver, tol=1e-10)
    model.fit(STORAGES[storage](problem.X * x_scale), problem.y * y_scale, problem.qid)
    expected = solve_rankrls(problem.X, label_pairs(problem.y, problem.qid), 0.5)
    np.testing.assert_allclose(model.coef_ / y_scale * x_scale, expected, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("x_scale", [1e-100, 1e-50])
def test_a_penalty_that_outweighs_everything(solver, x_scale):
    problem = make_problem(1, real=True)
    model = RankRLS(2.0, solver=solver, tol=1e-12).fit(problem.X * x_scale, problem.y, problem.qid)
    pull = problem.X.T @ label_pairs(problem.y, problem.qid).pull
    np.testing.assert_allclose(model.coef_ / x_scale, pull / 2.0, rtol=1e-9)


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("x_scale", [1e76, 1e300])
def test_what_cannot_be_computed_is_an_error_with_a_remedy(solver, x_scale):
    problem = make_problem(2, real=True)
    with pytest.raises(InvalidInputError, match=r"too large.*Hint: bring X to values around 1"):
        RankRLS(0.0, solver=solver).fit(problem.X * x_scale, problem.y, problem.qid)


@pytest.mark.parametrize(
    "model", [RankRLS(), RankRLSCV(), RankSVM(), RankSVMCV(), KernelRankRLS(), KernelRankRLSCV()], ids=repr
)
@pytest.mark.parametrize(
    "stored",
    [np.ascontiguousarray, np.asfortranarray, lambda X: np.repeat(X, 2, axis=1)[:, ::2], sp.csr_matrix],
    ids=["rows", "columns", "strided", "sparse"],
)
def test_a_number_that_stands_for_a_missing_value_is_refused(model, stored):
    """As some published data sets have it."""
    rng = np.random.default_rng(0)
    X, y, qid = rng.normal(size=(60, 3)), rng.normal(size=60), np.arange(60) // 10
    X[7, 1] = -1.7976931348623157e308
    said = r"values as large as 1\.8e\+308, .* too large .*Hint: bring X to values around 1, .*missing value"
    with pytest.raises(InvalidInputError, match=said):
        clone(model).fit(stored(X), y, qid)
    X[7, 1] = 0.0
    clone(model).fit(stored(X), y, qid)


@pairwise(
    solver=SOLVERS, storage=STORAGES, alpha=[0.0, 1.0], name=["zeros", "constant", "constant inside queries"]
)
def test_columns_that_say_nothing(solver, storage, alpha, name):
    """Nothing can be learned, so nothing is; without a penalty that may take a warning, for rounding is left."""
    problem = make_problem(3)
    X = {
        "zeros": np.zeros((40, 3)),
        "constant": np.ones((40, 3)) * [1.0, 2.5, -0.1],
        "constant inside queries": np.outer(problem.qid, [1.0, 2.5, -0.1]),
    }[name]
    with warnings.catch_warnings():
        for category in (ConvergenceWarning, scipy.linalg.LinAlgWarning):
            warnings.simplefilter("ignore", category if alpha == 0 else UserWarning)
        model = RankRLS(alpha, solver=solver, max_iter=50).fit(STORAGES[storage](X), problem.y, problem.qid)
    assert np.isfinite(model.coef_).all()
    if alpha > 0 or name == "zeros":
        np.testing.assert_allclose(model.coef_, 0.0, atol=1e-12)


# Every estimator, and every way in which kernels are computed with. A raw warning of NumPy is an error in the tests.
EVERYONE = [
    RankRLS(),
    RankRLS(solver="cg"),
    RankRLSCV(),
    RankSVM(),
    RankSVM(loss="squared_hinge"),
    RankSVMCV(alphas=[0.01, 1.0]),
    KernelRankRLS("rbf"),
    KernelRankRLS("linear", solver="cg"),
    KernelRankRLS("laplacian", basis=10),
    KernelRankRLSCV("rbf"),
    KernelRankRLSCV("linear", solver="cg"),
    KernelRankSVM("rbf"),
    KernelRankSVM("poly", basis=10),
]


def sixty_rows():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    return SimpleNamespace(X=X, y=X @ [1.0, 2.0, -1.0] + rng.normal(size=60), qid=np.arange(60) // 10)


everyone = pytest.mark.parametrize("model", EVERYONE, ids=repr)


@everyone
@pytest.mark.parametrize("scale", [2.0**-250, 2.0**250])
def test_very_large_and_small_labels_give_the_same_ranking(model, scale):
    """Powers of two, so that no label is rounded."""
    problem = sixty_rows()
    expected = clone(model).fit(problem.X, problem.y, problem.qid).rank(problem.X, problem.qid)
    scaled = clone(model).fit(problem.X, problem.y * scale, problem.qid)
    np.testing.assert_array_equal(scaled.rank(problem.X, problem.qid), expected)


@everyone
@pytest.mark.parametrize("storage", STORAGES)
def test_rows_too_large_to_be_scored(model, storage):
    """Where nothing is squared and the kernel is bounded, every row has a score."""
    problem = sixty_rows()
    model = clone(model).fit(problem.X, problem.y, problem.qid)
    weights = "dual_coef_" if hasattr(model, "dual_coef_") else "coef_"
    setattr(model, weights, 1e3 * getattr(model, weights))
    rows = problem.X.copy()
    rows[1, 0] = 1.7e308
    if getattr(model, "kernel", None) == "laplacian":
        assert np.isfinite(model.predict(STORAGES[storage](rows))).all()
        return
    with pytest.raises(
        InvalidInputError, match=r"too large for floating-point numbers.*Hint: (score rows|scale)"
    ):
        model.predict(STORAGES[storage](rows))


@pytest.mark.parametrize("scale", [2.0**-100, 2.0**-20, 2.0**20, 2.0**100])
@pytest.mark.parametrize(
    "model",
    [
        RankSVM(0.125, tol=1e-6),
        RankSVM(0.125, solver="smoothing"),
        RankSVM(0.125, solver="bundle"),
        RankSVM(0.125, loss="squared_hinge"),
        KernelRankSVM("linear", alpha=0.125),
    ],
    ids=repr,
)
def test_margins_of_any_size(model, scale):
    """Margins s times as large have a model s times as large; for the hinge under a penalty 1/s as large."""
    problem, rng = sixty_rows(), np.random.default_rng(1)
    pairs = np.column_stack([np.arange(59), np.arange(1, 60)])
    pairs = np.where((problem.y[pairs[:, 0]] >= problem.y[pairs[:, 1]])[:, None], pairs, pairs[:, ::-1])
    margin = rng.integers(1, 5, size=59).astype(float)
    expected = clone(model).fit_pairs(problem.X, pairs, margin).predict(problem.X)
    alpha = model.alpha / (scale if model.loss == "hinge" else 1.0)
    scaled = clone(model).set_params(alpha=alpha).fit_pairs(problem.X, pairs, margin * scale)
    np.testing.assert_allclose(scaled.predict(problem.X) / scale, expected, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("margin", [1e-3, 1e-6, 1e-12])
def test_small_margins_still_rank(margin):
    """One alpha for all margins: the smaller they are, the less it counts."""
    problem = sixty_rows()
    pairs = np.column_stack([np.arange(59), np.arange(1, 60)])
    pairs = np.where((problem.y[pairs[:, 0]] >= problem.y[pairs[:, 1]])[:, None], pairs, pairs[:, ::-1])
    with warnings.catch_warnings():
        warnings.simplefilter(
            "ignore", ConvergenceWarning
        )  # where alpha counts for nothing, a proof may fail
        model = RankSVM().fit_pairs(problem.X, pairs, np.full(59, margin))
    assert model.score_pairs(problem.X, pairs) > 0.75


@pytest.mark.parametrize("make", [RankSVM, pytest.param(RankSVMCV, marks=pytest.mark.long)])
@pytest.mark.parametrize(("scale", "storage"), [(1e30, "csr"), (1e70, "dense")])
def test_margins_on_huge_columns(make, scale, storage):
    problem, rng = sixty_rows(), np.random.default_rng(0)
    noise = rng.normal(size=(40, 4))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = make().fit(STORAGES[storage](problem.X * scale), problem.y, problem.qid)
        lost = make().fit(
            STORAGES[storage](noise * scale), rng.integers(3, size=40).astype(float), np.arange(40) // 8
        )
    assert model.score(problem.X * scale, problem.y, problem.qid) > 0.75
    assert np.ptp(lost.predict(noise * scale)) > 0


def broken(A, B):
    return np.where(np.arange(A.shape[0])[:, None] == 0, np.nan, np.asarray(A @ B.T))


@pairwise(
    lambda make, options, **_: not (make is KernelRankSVM and "solver" in options),
    options=[{}, {"basis": 10}, {"solver": "cg"}],
    make=[KernelRankRLS, KernelRankRLSCV, KernelRankSVM],
    kernel=[
        {"kernel": "poly", "kernel_params": {"degree": 900}},
        {"kernel": "poly", "kernel_params": {"coef0": 1e200}},
        {"kernel": broken},
    ],
)
def test_kernels_that_overflow(make, kernel, options):
    problem = sixty_rows()
    with pytest.raises(InvalidInputError, match=r"The kernel .* NaN or too large .*Hint: scale the columns"):
        make(**kernel, **options).fit(10 * problem.X, problem.y, problem.qid)
