"""One column in other units: solvers that iterate reach the minimum all the same, and without a warning."""

import numpy as np
import pytest
import scipy.optimize
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse.linalg import aslinearoperator

from all_pairs import pairwise
from oracles import label_pairs
from rankwise import KernelRankRLS, KernelRankRLSCV, RankRLS, RankRLSCV, RankSVM

pytestmark = pytest.mark.filterwarnings("error")

SOLVERS = ["cg", "gdm", "egdm", "egdm-power", "egdm-blocks", "stochastic"]
STORAGES = {"dense": np.asarray, "sparse": sp.csr_matrix, "operator": aslinearoperator}
SCALES = [1e-6, 1e-3, 1e2, 1e3, 1e4, 1e5, 1e6]
PRECISION = 1e-6

exponents = st.floats(-6, 6)


def rows(seed=0, n_rows=90, n_columns=8, n_queries=9, density=1.0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, n_columns)) * (rng.random((n_rows, n_columns)) < density)
    y = X @ rng.normal(size=n_columns) + 2 * rng.normal(size=n_rows)
    return X, y, np.arange(n_rows) * n_queries // n_rows


def in_units(X, scale, column=3):
    X = X.copy()
    X[:, column] *= scale
    return X


class Squares:
    """The objective of RankRLS by its pairs, and its minimum by orthogonal factors of columns of unit length."""

    def __init__(self, X, pairs, alpha):
        root = np.sqrt(pairs.weight)
        self._X = np.vstack([root[:, None] * (pairs.incidence @ X), np.sqrt(alpha) * np.eye(X.shape[1])])
        self._y = np.append(root * pairs.difference, np.zeros(X.shape[1]))
        length = np.linalg.norm(self._X, axis=0)
        length[length == 0] = 1.0
        self.minimiser = np.linalg.lstsq(self._X / length, self._y, rcond=None)[0] / length

    def value(self, coef):
        return float(np.sum((self._X @ coef - self._y) ** 2))

    def is_least(self, coef):
        least = self.value(self.minimiser)
        return least * (1 - 1e-9) <= self.value(coef) <= least * (1 + PRECISION)


@pytest.mark.parametrize("solver", SOLVERS)
@settings(max_examples=25)
@given(exponent=exponents, column=st.integers(0, 7), alpha=st.sampled_from([0.01, 1.0, 100.0]))
def test_least_squares(solver, exponent, column, alpha):
    X, y, qid = rows()
    X = in_units(X, 10**exponent, column)
    model = RankRLS(alpha, solver=solver).fit(X, y, qid=qid)
    assert Squares(X, label_pairs(y, qid), alpha).is_least(model.coef_)


@pairwise(storage=STORAGES, solver=["cg", "egdm"], scale=SCALES)
def test_storages(storage, solver, scale):
    X, y, qid = rows(1, density=0.5)
    X = in_units(X, scale)
    model = RankRLS(0.1, solver=solver).fit(STORAGES[storage](X), y, qid=qid)
    assert Squares(X, label_pairs(y, qid), 0.1).is_least(model.coef_)


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("scale", [1e-6, 1e3, 1e6])
def test_several_outputs(solver, scale):
    X, y, qid = rows(3)
    X, Y = in_units(X, scale), np.column_stack([y, np.abs(y)])
    model = RankRLS(0.1, solver=solver).fit(X, Y, qid=qid)
    for labels, coef in zip(Y.T, model.coef_, strict=True):
        assert Squares(X, label_pairs(labels, qid), 0.1).is_least(coef)


@pytest.mark.parametrize("solver", ["cg", "egdm", "gdm"])
def test_every_column_in_units_of_its_own(solver):
    X, y, qid = rows(4)
    X = X * np.geomspace(1e-3, 1e3, X.shape[1])
    model = RankRLS(0.1, solver=solver).fit(X, y, qid=qid)
    assert Squares(X, label_pairs(y, qid), 0.1).is_least(model.coef_)


@pytest.mark.parametrize("solver", ["cg", "egdm"])
@pytest.mark.parametrize("scale", [1e-6, 1e3, 1e6])
def test_known_columns(solver, scale):
    """A prior and penalties of columns move the problem into other coordinates."""
    X, y, qid = rows(5)
    X = in_units(X, scale)
    prior, penalty = np.zeros(8), np.ones(8)
    prior[0], penalty[1] = 0.5, 4.0
    model = RankRLS(0.1, solver=solver, prior=prior, column_penalty=penalty).fit(X, y, qid=qid)
    pairs = label_pairs(y, qid)
    pairs.difference = pairs.difference - pairs.incidence @ X @ prior
    moved = Squares(X / np.sqrt(penalty), pairs, 0.1)
    assert moved.is_least((model.coef_ - prior) * np.sqrt(penalty))


@pytest.mark.parametrize("solver", ["cg", "egdm", "gdm"])
@pytest.mark.parametrize("scale", [1e-6, 1e3, 1e6])
def test_listed_pairs(solver, scale):
    X, y, qid = rows(6)
    X, pairs = in_units(X, scale), label_pairs(y, qid, ties="exclude")
    model = RankRLS(0.1, solver=solver).fit_pairs(X, np.column_stack([pairs.winner, pairs.loser]))
    pairs.weight, pairs.difference = np.ones(pairs.winner.size), np.ones(pairs.winner.size)
    assert Squares(X, pairs, 0.1).is_least(model.coef_)


@pytest.mark.parametrize("scale", SCALES)
def test_more_columns_than_rows(scale):
    X, y, qid = rows(7, n_rows=150, n_columns=400, density=0.1)
    X = in_units(X, scale)
    model = RankRLS(0.1, solver="cg").fit(sp.csr_matrix(X), y, qid=qid)
    assert Squares(X, label_pairs(y, qid), 0.1).is_least(model.coef_)


@pytest.mark.parametrize("solver", ["gdm", "egdm"])
def test_early_stopping_of_other_solvers_goes_beyond_the_large_column(solver):
    """The large column says nothing: an iteration that moves it alone ranks no held-out row."""
    X, y, qid = rows(8, n_rows=300, n_queries=30)
    X[:, 3] = 1e6 * np.random.default_rng(0).normal(size=300)
    model = RankRLS(0.1, solver=solver, early_stopping=True).fit(X, y, qid=qid)
    exact = RankRLS(0.1, solver="direct").fit(X, y, qid=qid)
    assert np.corrcoef(model.predict(X), exact.predict(X))[0, 1] > 0.99


def textbook_iterations(H, b, tol=1e-5):
    """How many iterations conjugate gradients take until the residual is small beside the right-hand side."""
    residual, direction, n_iter = b.copy(), b.copy(), 0
    while np.linalg.norm(residual) > tol * np.linalg.norm(b):
        image, before = H @ direction, residual @ residual
        residual = residual - before / (direction @ image) * image
        direction = residual + (residual @ residual) / before * direction
        n_iter += 1
    return n_iter


@pytest.mark.parametrize("alpha", [1e-3, 1.0, 1e3])
@pytest.mark.parametrize("seed", range(3))
def test_columns_of_like_scales_take_no_more_iterations(alpha, seed):
    X, y, qid = rows(seed, n_rows=200, n_columns=30, density=0.3)
    X *= np.random.default_rng(seed).uniform(0.5, 2, size=30)
    pairs = label_pairs(y, qid)
    H, b = X.T @ pairs.laplacian @ X + alpha * np.eye(30), X.T @ pairs.pull
    model = RankRLS(alpha, solver="cg").fit(sp.csr_matrix(X), y, qid=qid)
    assert model.n_iter_ == textbook_iterations(H, b)


# --- the regularisation surface, of which "tikhonov" reads converged models ---


@pairwise(storage=["sparse", "operator"], alphas=[[0.1], [0.03, 0.1, 10.0]], scale=SCALES)
def test_surface(storage, alphas, scale):
    """So wide that no matrix is formed, and runs end by their tolerance."""
    X, y, qid = rows(9, n_rows=120, n_columns=300, n_queries=12, density=0.1)
    X = in_units(X, scale)
    model = RankRLSCV(alphas, method="tikhonov", cv=3).fit(STORAGES[storage](X), y, qid=qid)
    assert Squares(X, label_pairs(y, qid), model.alpha_).is_least(model.coef_)


@pytest.mark.parametrize("scale", [1e3, 1e6])
def test_surface_of_held_out_models(scale):
    """Errors are those of models that are fitted on the other folds one by one."""
    X, y, qid = rows(10, n_rows=120, n_columns=300, n_queries=12, density=0.1)
    X = in_units(X, scale)
    folds = [(np.flatnonzero(qid % 3 != k), np.flatnonzero(qid % 3 == k)) for k in range(3)]
    alphas = [0.1, 1.0]
    model = RankRLSCV(alphas, method="tikhonov", cv=folds).fit(sp.csr_matrix(X), y, qid=qid)
    for alpha, error in zip(alphas, model.cv_errors_, strict=True):
        found = []
        for train, test in folds:
            coef = Squares(X[train], label_pairs(y[train], qid[train]), alpha).minimiser
            pairs, scores = label_pairs(y[test], qid[test]), X[test] @ coef
            is_wrong = (scores[pairs.winner] - scores[pairs.loser]) * pairs.difference < 0
            query = qid[test][pairs.winner]
            found += [is_wrong[query == q].mean() for q in np.unique(query)]
        assert error == pytest.approx(np.mean(found), abs=1e-9)


@pytest.mark.parametrize("scale", [1e-6, 1e3, 1e6])
def test_surface_of_listed_pairs(scale):
    X, y, qid = rows(11, n_rows=120, n_columns=300, n_queries=12, density=0.1)
    X, pairs = in_units(X, scale), label_pairs(y, qid, ties="exclude")
    model = RankRLSCV([0.1, 1.0], method="tikhonov", cv=3)
    model.fit_pairs(sp.csr_matrix(X), np.column_stack([pairs.winner, pairs.loser]))
    pairs.weight, pairs.difference = np.ones(pairs.winner.size), np.ones(pairs.winner.size)
    assert Squares(X, pairs, model.alpha_).is_least(model.coef_)


# --- kernels by products: the linear one has the models of its columns ---


def linear_coefficients(model, X):
    """The coefficients whose scores are those of a linear kernel's model."""
    length = np.linalg.norm(X, axis=0)
    return np.linalg.lstsq(X / length, model.predict(X), rcond=None)[0] / length


@pytest.mark.parametrize("scale", SCALES)
def test_reduced_set(scale):
    X, y, qid = rows(12)
    X = in_units(X, scale)
    model = KernelRankRLS("linear", alpha=0.1, basis=20, solver="cg").fit(X, y, qid=qid)
    assert Squares(X, label_pairs(y, qid), 0.1).is_least(linear_coefficients(model, X))


@pytest.mark.parametrize("scale", SCALES)
def test_kernel_surface(scale):
    X, y, qid = rows(13)
    X = in_units(X, scale)
    model = KernelRankRLSCV("linear", alphas=[0.1], solver="cg", method="tikhonov", cv=3).fit(X, y, qid=qid)
    assert Squares(X, label_pairs(y, qid), 0.1).is_least(linear_coefficients(model, X))


@pytest.mark.parametrize("scale", [scale for scale in SCALES if scale <= 1e5])
def test_kernel(scale):
    """Beyond, a model that is a sum over rows has no digits for a column whose values nearly cancel."""
    X, y, qid = rows(14)
    X = in_units(X, scale)
    model = KernelRankRLS("linear", alpha=1.0, solver="cg").fit(X, y, qid=qid)
    assert Squares(X, label_pairs(y, qid), 1.0).is_least(linear_coefficients(model, X))


# --- margins ---


class Margins:
    """The objective of RankSVM by its pairs, each wanted apart by 1, and its minimum by SciPy."""

    def __init__(self, X, pairs, alpha, loss):
        self._X, self._alpha, self._loss = pairs.incidence @ X, alpha, loss

    def value(self, coef):
        missed = np.maximum(1 - self._X @ coef, 0.0)
        loss = {
            "hinge": missed,
            "squared_hinge": missed**2,
            "logistic": np.logaddexp(0, -(self._X @ coef)),
        }[self._loss]
        return float(loss.mean() + self._alpha * coef @ coef)

    def least(self):
        """The value at the minimum: in columns of unit length, with a variable per pair where there is a kink."""
        length = np.sqrt((self._X**2).mean(axis=0) + self._alpha)
        X, penalty = self._X / length, self._alpha / length**2
        n_pairs, n_columns = X.shape
        if self._loss != "hinge":
            found = scipy.optimize.minimize(
                lambda u: self.value(u / length), np.zeros(n_columns), method="BFGS", options={"gtol": 1e-9}
            )
            return float(found.fun)
        found = scipy.optimize.minimize(
            lambda v: v[n_columns:].mean() + penalty @ v[:n_columns] ** 2,
            np.append(np.zeros(n_columns), np.ones(n_pairs)),
            jac=lambda v: np.append(2 * penalty * v[:n_columns], np.full(n_pairs, 1 / n_pairs)),
            bounds=[(None, None)] * n_columns + [(0, None)] * n_pairs,
            constraints={
                "type": "ineq",
                "fun": lambda v: X @ v[:n_columns] + v[n_columns:] - 1,
                "jac": lambda _: np.hstack([X, np.eye(n_pairs)]),
            },
            method="SLSQP",
            options={"ftol": 1e-12, "maxiter": 1000},
        )
        return float(found.fun)


@pytest.mark.parametrize(
    ("loss", "solver"),
    [
        ("hinge", "smoothing"),
        ("hinge", "bundle"),
        ("squared_hinge", "newton"),
        ("squared_hinge", "bundle"),
        ("logistic", "newton"),
    ],
)
@pytest.mark.parametrize("scale", [1e-6, 1e-3, 1e2, 1e4, 1e5, 1e6])
def test_margins(loss, solver, scale):
    X, y, qid = rows(15, n_rows=30, n_columns=5, n_queries=6)
    X, pairs = in_units(X, scale), label_pairs(y, qid, ties="exclude")
    model = RankSVM(0.01, loss=loss, solver=solver, tol=1e-7).fit_pairs(
        X, np.column_stack([pairs.winner, pairs.loser])
    )
    expected = Margins(X, pairs, 0.01, loss)
    assert expected.value(model.coef_) == pytest.approx(expected.least(), rel=PRECISION)


@pytest.mark.parametrize("solver", ["auto", "cg"])
@pytest.mark.parametrize("scale", SCALES)
def test_signs(solver, scale):
    """Coefficients that must not be negative have a solver of their own."""
    n_columns = 8 if solver == "auto" else 200
    X, y, qid = rows(16, n_columns=n_columns, density=0.3)
    X = in_units(X, scale)
    model = RankRLS(0.1, positive=True).fit(sp.csr_matrix(X), y, qid=qid)
    pairs = label_pairs(y, qid)
    root = np.sqrt(pairs.weight)
    A = np.vstack([root[:, None] * (pairs.incidence @ X), np.sqrt(0.1) * np.eye(n_columns)])
    length = np.linalg.norm(A, axis=0)
    best = (
        scipy.optimize.nnls(A / length, np.append(root * pairs.difference, np.zeros(n_columns)))[0] / length
    )
    value = Squares(X, pairs, 0.1).value
    assert value(model.coef_) == pytest.approx(value(best), rel=PRECISION)
