"""Columns of extreme scales: the right model, or one clear error; and columns that say nothing."""

import warnings

import numpy as np
import pytest
import scipy.linalg
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from oracles import label_pairs, solve_rankrls
from rankwise import KernelRankRLS, KernelRankRLSCV, RankRLS, RankRLSCV, RankSVM, RankSVMCV
from rankwise.exceptions import InvalidInputError
from rankwise.solvers.choose import SOLVERS
from strategies import make_problem

STORAGES = {"dense": np.asarray, "csr": sp.csr_matrix}


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("x_scale", [1e-140, 1e-100, 1e-60, 1e60, 1e100, 1e140])
@pytest.mark.parametrize("y_scale", [1e-100, 1.0, 1e100])
def test_a_model_scales_with_its_data(solver, storage, x_scale, y_scale):
    """Rows s times as large, under a penalty s² times as large, have a model 1/s times as large."""
    problem = make_problem(0, real=True)
    model = RankRLS(0.5 * x_scale * x_scale, solver=solver, tol=1e-10)
    model.fit(STORAGES[storage](problem.X * x_scale), problem.y * y_scale, problem.qid)
    expected = solve_rankrls(problem.X, label_pairs(problem.y, problem.qid), 0.5)
    np.testing.assert_allclose(model.coef_ / y_scale * x_scale, expected, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("x_scale", [1e-300, 1e-200, 1e-100])
def test_a_penalty_that_outweighs_everything(solver, x_scale):
    problem = make_problem(1, real=True)
    model = RankRLS(2.0, solver=solver, tol=1e-12).fit(problem.X * x_scale, problem.y, problem.qid)
    pull = problem.X.T @ label_pairs(problem.y, problem.qid).pull
    np.testing.assert_allclose(model.coef_ / x_scale, pull / 2.0, rtol=1e-9)


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("x_scale", [1e-300, 1e-160, 1e160, 1e300])
def test_what_cannot_be_computed_is_an_error_with_a_remedy(solver, x_scale):
    problem = make_problem(2, real=True)
    with pytest.raises(InvalidInputError, match=r"too (large|small).*Hint: bring X to values around 1"):
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


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("alpha", [0.0, 1.0])
@pytest.mark.parametrize("name", ["zeros", "constant", "constant inside queries"])
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
