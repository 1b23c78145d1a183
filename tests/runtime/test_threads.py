"""How many threads a fit uses: its own, and those of BLAS, which are limited to one and given back."""

from __future__ import annotations

import subprocess
import sys
import threading

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import ThreadpoolController

from rankwise import KernelRankRLS, KernelRankSVM, RankRLS, RankRLSCV, RankSVM, RankSVMCV
from rankwise.design import DenseDesign
from rankwise.kernels import Kernel
from rankwise.runtime import threads

ESTIMATORS = [RankRLS(solver="cg"), RankRLSCV(cv=3), RankSVM(), KernelRankRLS(kernel="rbf")]


def blas():
    return ThreadpoolController().select(user_api="blas")


def blas_threads():
    return {library.get_num_threads() for library in blas().lib_controllers}


@pytest.fixture
def two():
    """Let BLAS have two threads, whatever the environment says."""
    controller = blas()
    if not controller.lib_controllers:
        pytest.skip("no BLAS whose threads can be set")
    with controller.limit(limits=2):
        yield
        assert blas_threads() == {2}  # whatever the test did


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 4))
    return X, (X[:, 0] + rng.normal(size=60) > 0).astype(float), np.arange(60) // 10


@pytest.fixture
def seen(monkeypatch):
    """Note the threads of BLAS whenever rows or kernels are multiplied."""
    noted = []

    def noting(owner, name):
        original = getattr(owner, name)

        def note(*args, **kwargs):
            noted.append(blas_threads())
            return original(*args, **kwargs)

        monkeypatch.setattr(owner, name, note)

    for name in ("dot", "tdot", "gram_matrix"):
        noting(DenseDesign, name)
    noting(Kernel, "matrix")
    return noted


@pytest.mark.parametrize("model", ESTIMATORS, ids=repr)
def test_blas_has_one_thread_while_a_model_is_fitted_and_predicts(model, data, two, seen):
    X, y, qid = data
    model.fit(X, y, qid)
    model.predict(np.tile(X, (40, 1)))  # small products have one thread anyway, and are not limited
    assert seen
    assert all(count == {1} for count in seen)


@pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError])
def test_blas_gets_its_threads_back_after_an_error(error, data, two, monkeypatch):
    def fail(design, v):
        raise error

    monkeypatch.setattr(DenseDesign, "dot", fail)
    with pytest.raises(error):
        RankRLS(solver="cg").fit(*data)
    assert blas_threads() == {2}


def test_fits_in_several_threads_leave_the_limit_as_it_was(data, two):
    workers = [threading.Thread(target=RankRLSCV(cv=3).fit, args=data) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert blas_threads() == {2}


def test_large_algebra_gets_the_threads_back_on_a_quiet_machine(two, monkeypatch):
    monkeypatch.setattr(threads, "_is_busy", lambda: False)

    @threads.one_blas_thread
    def counts(size):
        with threads.large_algebra(size):
            with threads.large_algebra(size):
                inside = blas_threads()
            assert blas_threads() == inside
        return inside, blas_threads()

    assert counts(threads.LARGE_MATRIX - 1) == ({1}, {1})
    assert counts(threads.LARGE_MATRIX) == ({2}, {1})
    assert threads.one_blas_thread(counts)(threads.LARGE_MATRIX) == ({2}, {1})  # a fit inside a fit
    monkeypatch.setattr(threads, "_is_busy", lambda: True)
    assert counts(threads.LARGE_MATRIX) == ({1}, {1})


def test_a_limit_that_the_caller_sets_meanwhile_is_kept(two):
    with blas().limit(limits=2):  # ends before the fixture looks
        with threads.blas_held():
            for library in blas().lib_controllers:
                library.set_num_threads(3)
        assert blas_threads() == {3}


def test_a_machine_is_busy_where_more_threads_run_than_processors(tmp_path):
    processors = threads.os.cpu_count()
    for running, is_busy in ((processors, False), (processors + 1, True)):
        (tmp_path / "loadavg").write_text(f"0.00 0.00 0.00 {running}/100 1234\n")
        assert threads._is_busy(tmp_path / "loadavg") == is_busy


_FORKED = """
import os
import numpy as np
from rankwise import RankSVM
rng = np.random.default_rng(0)
X, y, qid = rng.normal(size=(5000, 3)), rng.integers(3, size=5000), np.arange(5000) // 20
before = RankSVM(n_threads=2).fit(X, y, qid).coef_
child = os.fork()
if child == 0:
    os._exit(not np.array_equal(RankSVM(n_threads=2).fit(X, y, qid).coef_, before))
raise SystemExit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


@pytest.mark.skipif(not hasattr(threads.os, "fork"), reason="no fork")
def test_a_child_forked_after_a_fit_can_fit():
    command = [sys.executable, "-W", "ignore::DeprecationWarning", "-c", _FORKED]
    assert subprocess.run(command, check=False, timeout=120).returncode == 0


@pytest.mark.parametrize(
    "model",
    [
        RankRLS(1e-9, solver="cg", max_iter=1),
        RankSVMCV([1e-9], cv=3, max_iter=1),
        KernelRankSVM("rbf", alpha=1e-9, max_iter=1, tol=1e-12),
    ],
    ids=repr,
)
def test_warnings_point_at_the_line_that_called(model, data):
    with pytest.warns(ConvergenceWarning) as noted:
        model.fit(*data)
    assert {warning.filename for warning in noted} == {__file__}
