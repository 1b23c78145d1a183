"""Choosing by products with the kernel alone: the linear kernel's surface is that of the linear model."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.sparse.linalg import LinearOperator, aslinearoperator
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import rbf_kernel

from all_pairs import pairwise
from rankwise import KernelRankRLS, KernelRankRLSCV, RankRLSCV
from rankwise.exceptions import InvalidInputError
from rankwise.kernels import KernelDesign
from strategies import make_problem

ALPHAS = [0.01, 1.0, 10.0]


def data(seed=0, rows=80, features=6):
    problem = make_problem(seed, rows=rows, queries=10, features=features)
    rng = np.random.default_rng(seed)
    return problem.X, np.round(2 * problem.X[:, 0] + rng.normal(size=rows)), problem.qid


@pairwise(
    method=["hybrid", "tikhonov", "early-stopping"],
    settings=[{}, {"ties": "exclude", "cost": "unit"}, {"query_weight": "pairs"}],
    judged_by=["folds", "rows"],
    with_qid=[True, False],
)
def test_a_linear_kernel_has_the_surface_of_the_linear_model(method, settings, judged_by, with_qid):
    X, y, qid = data()
    qid = qid if with_qid else None
    given = {} if judged_by == "folds" else {"eval_set": data(1) if with_qid else data(1)[:2]}
    options = {"alphas": ALPHAS, "cv": 3, "method": method, "tol": 1e-12, **settings}
    linear = RankRLSCV(**options).fit(X, y, qid, **given)
    model = KernelRankRLSCV("linear", solver="cg", **options).fit(X, y, qid, **given)
    assert model.cv_ == linear.cv_
    assert (model.solver_, model.method_) == ("cg", method)
    steps = min(model.surface_.shape[1], linear.surface_.shape[1])
    np.testing.assert_allclose(model.surface_[:, :steps], linear.surface_[:, :steps], atol=0.02)
    assert np.mean(np.abs(model.surface_[:, :steps] - linear.surface_[:, :steps]) > 1e-12) < 0.05
    np.testing.assert_allclose(model.cv_errors_, linear.cv_errors_, atol=1e-9)
    assert (model.alpha_, model.best_score_) == (linear.alpha_, pytest.approx(linear.best_score_))
    np.testing.assert_allclose(model.predict(X), linear.predict(X), atol=1e-6)


def test_several_outputs():
    X, y, qid = data()
    Y = np.column_stack([y, -X[:, 1]])
    options = {"alphas": ALPHAS, "cv": 3, "tol": 1e-12}
    for given in ({}, {"eval_set": (X[:40], Y[:40], qid[:40])}):
        linear = RankRLSCV(**options).fit(X, Y, qid, **given)
        model = KernelRankRLSCV("linear", solver="cg", **options).fit(X, Y, qid, **given)
        np.testing.assert_allclose(model.cv_errors_, linear.cv_errors_, atol=1e-9)
        np.testing.assert_allclose(model.predict(X), linear.predict(X), atol=1e-6)
        assert model.dual_coef_.shape == (2, 80)


def test_every_storage_of_the_kernel(tmp_path, monkeypatch):
    """In memory, on disk, as an operator, and made again block by block."""
    X, y, qid = data()
    K = rbf_kernel(X, gamma=0.2)
    disk = np.lib.format.open_memmap(tmp_path / "kernel.npy", mode="w+", dtype=np.float64, shape=K.shape)
    disk[:] = K
    disk.flush()
    disk = np.load(tmp_path / "kernel.npy", mmap_mode="r")
    options = {
        "alphas": ALPHAS,
        "cv": [(np.flatnonzero(qid % 3 != k), np.flatnonzero(qid % 3 == k)) for k in range(3)],
    }
    exact = KernelRankRLSCV("precomputed", **options).fit(K, y, qid)
    options.update(solver="cg", method="tikhonov", tol=1e-13)
    for kernel in (K, disk, sp.csr_matrix(K), aslinearoperator(K)):
        model = KernelRankRLSCV("precomputed", **options).fit(kernel, y, qid)
        np.testing.assert_allclose(model.cv_errors_, exact.cv_errors_, atol=1e-12)
        np.testing.assert_allclose(model.predict(K), exact.predict(K), atol=1e-7)
    made = []
    products = KernelDesign.dot
    monkeypatch.setattr(KernelDesign, "dot", lambda self, v: made.append(1) or products(self, v))
    model = KernelRankRLSCV(gamma=0.2, memory_limit=1000, **options).fit(X, y, qid)
    assert len(made) >= model.n_iter_ > 0
    np.testing.assert_allclose(model.cv_errors_, exact.cv_errors_, atol=1e-12)
    one = KernelRankRLS("precomputed", alpha=model.alpha_, solver="cg", tol=1e-13).fit(disk, y, qid)
    np.testing.assert_allclose(one.predict(disk), exact.predict(K), atol=1e-7)


def test_an_operator_chooses_products():
    X, y, qid = data()
    operator = LinearOperator(
        (80, 80), matvec=lambda v: X @ (X.T @ v), rmatvec=lambda v: X @ (X.T @ v), dtype=float
    )
    model = KernelRankRLSCV("precomputed", alphas=ALPHAS).fit(operator, y, qid)
    assert (model.solver_, model.method_, model.cv_) == ("cg", "hybrid", "5 folds of queries")
    with pytest.raises(InvalidInputError, match=r"as a matrix.*Hint: use solver='cg'"):
        KernelRankRLSCV("precomputed", solver="eigen").fit(operator, y, qid)


def test_iterations_that_run_out_are_told():
    X, y, qid = data()
    with pytest.warns(ConvergenceWarning, match=r"max_iter=2 .*Hint: raise max_iter"):
        KernelRankRLSCV(solver="cg", method="tikhonov", max_iter=2, alphas=ALPHAS).fit(X, y, qid)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"solver": "cg", "cv": "leave-query-out"}, r"only multiplies.*Hint: use cv=5"),
        ({"method": "early-stopping"}, r"stops early.*Hint: use method='auto', or solver='cg'"),
        ({"solver": "cg", "basis": 10}, r"kernel of all rows.*Hint: use solver='eigen'"),
        ({"solver": "direct"}, r"'eigen'"),
        ({"patience": 0}, "patience"),
    ],
)
def test_bad_input(options, message):
    X, y, qid = data()
    with pytest.raises(InvalidInputError, match=message):
        KernelRankRLSCV(**options).fit(X, y, qid)
