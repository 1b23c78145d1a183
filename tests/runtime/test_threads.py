"""How many threads a fit uses: its own, and those of BLAS, which are held to one and given back."""

from __future__ import annotations

import subprocess
import sys
import threading
from contextlib import suppress

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import ThreadpoolController

from rankwise import (
    KernelRankRLS,
    KernelRankRLSCV,
    KernelRankSVM,
    RankRLS,
    RankRLSCV,
    RankSVM,
    RankSVMCV,
)
from rankwise.design import DenseDesign
from rankwise.exceptions import InvalidInputError
from rankwise.kernels import Kernel
from rankwise.runtime import threads

ESTIMATORS = [
    RankRLS(solver="direct"),
    RankRLS(solver="cg"),
    RankRLS(solver="gdm"),
    RankRLS(early_stopping=True),
    RankRLSCV(),
    RankRLSCV(cv=3),
    RankSVM(),
    RankSVM(loss="squared_hinge"),
    RankSVMCV([0.1, 1.0], cv=3),
    KernelRankRLS(kernel="rbf"),
    KernelRankRLS(kernel="rbf", solver="cg"),
    KernelRankRLSCV(kernel="rbf", cv=3),
    KernelRankSVM(kernel="rbf"),
]


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
    noting(Kernel, "towards")
    return noted


@pytest.mark.parametrize("model", ESTIMATORS, ids=repr)
def test_blas_has_one_thread_while_a_model_is_fitted_and_predicts(model, data, two, seen):
    X, y, qid = data
    model.fit(X, y, qid)
    model.predict(np.tile(X, (40, 1)))  # small products have one thread anyway, and are not held
    assert seen
    assert all(count == {1} for count in seen)


@pytest.mark.parametrize("model", [RankRLS(), RankRLSCV(), RankSVM(), RankSVMCV([1.0])], ids=repr)
def test_blas_has_one_thread_with_listed_pairs(model, data, two, seen):
    X, y, _ = data
    order = np.argsort(y)
    model.fit_pairs(X, np.column_stack([order[-20:], order[:20]]))
    assert seen
    assert all(count == {1} for count in seen)


def test_blas_has_one_thread_while_a_stream_is_learned(data, two, seen):
    RankRLS().partial_fit(*data)
    assert all(count == {1} for count in seen)


@pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError, ValueError])
def test_blas_gets_its_threads_back_after_an_error(error, data, two, monkeypatch):
    def fail(design, v):
        raise error

    monkeypatch.setattr(DenseDesign, "dot", fail)
    with pytest.raises(error):
        RankRLS(solver="cg").fit(*data)
    assert blas_threads() == {2}
    with pytest.raises(InvalidInputError):
        RankRLS(alpha=-1).fit(*data)


def test_a_fit_inside_a_fit_lets_go_last(data, two, monkeypatch):
    X, y, qid = data
    after = []
    original = DenseDesign.dot

    def fit_inside(design, v):
        monkeypatch.setattr(DenseDesign, "dot", original)
        RankRLS().fit(X, y, qid)
        after.append(blas_threads())
        return original(design, v)

    monkeypatch.setattr(DenseDesign, "dot", fit_inside)
    RankRLS(solver="cg").fit(X, y, qid)
    assert after == [{1}]


def test_fits_in_threads_let_go_last(two):
    """The one that began first ends first; the other one is still at it."""
    both_began, first_ended = threading.Barrier(2, timeout=30), threading.Event()
    counts = []

    @threads.one_blas_thread
    def first():
        both_began.wait()

    @threads.one_blas_thread
    def second():
        both_began.wait()
        assert first_ended.wait(30)
        counts.append(blas_threads())
        with threads.large_algebra(threads.LARGE_MATRIX):
            counts.append(blas_threads())

    thread = threading.Thread(target=second)
    thread.start()
    first()
    counts.append(blas_threads())
    first_ended.set()
    thread.join()
    assert counts[:2] == [{1}, {1}]


def test_large_algebra_gets_the_threads_back_on_a_quiet_machine(two, monkeypatch):
    monkeypatch.setattr(threads, "_is_busy", lambda: False)

    @threads.one_blas_thread
    def counts(size):
        with suppress(np.linalg.LinAlgError), threads.large_algebra(size):
            inside = blas_threads()
            if size > threads.LARGE_MATRIX:
                np.linalg.cholesky(-np.eye(2))
        return inside, blas_threads()

    assert counts(threads.LARGE_MATRIX - 1) == ({1}, {1})
    assert counts(threads.LARGE_MATRIX) == ({2}, {1})
    assert counts(threads.LARGE_MATRIX + 1) == ({2}, {1})
    assert threads.one_blas_thread(counts)(threads.LARGE_MATRIX) == ({2}, {1})  # a fit inside a fit
    monkeypatch.setattr(threads, "_is_busy", lambda: True)
    assert counts(threads.LARGE_MATRIX) == ({1}, {1})


def test_large_algebra_inside_large_algebra_does_not_end_it(two, monkeypatch):
    monkeypatch.setattr(threads, "_is_busy", lambda: False)
    with threads.blas_held():
        with threads.large_algebra(threads.LARGE_MATRIX):
            with threads.large_algebra(threads.LARGE_MATRIX):
                assert blas_threads() == {2}
            assert blas_threads() == {2}
        assert blas_threads() == {1}


def test_large_algebra_leaves_the_threads_down_that_somebody_else_holds(two, monkeypatch):
    monkeypatch.setattr(threads, "_is_busy", lambda: False)
    counts = []

    def other():
        with threads.large_algebra(threads.LARGE_MATRIX):
            counts.append(blas_threads())

    with threads.blas_held():
        thread = threading.Thread(target=threads.one_blas_thread(other))
        thread.start()
        thread.join()
    assert counts == [{1}]


def test_a_limit_that_the_caller_sets_meanwhile_is_kept(two):
    with blas().limit(limits=2):  # ends before the fixture looks
        with threads.blas_held():
            for library in blas().lib_controllers:
                library.set_num_threads(3)
        assert blas_threads() == {3}


def test_a_machine_is_busy_where_more_threads_run_than_processors(monkeypatch, tmp_path):
    processors = threads.os.cpu_count()
    for running, is_busy in ((1, False), (processors, False), (processors + 1, True)):
        (tmp_path / "loadavg").write_text(f"0.00 0.00 0.00 {running}/100 1234\n")
        assert threads._is_busy(tmp_path / "loadavg") == is_busy
    monkeypatch.setattr(threads.os, "getloadavg", lambda: (processors + 1.0, 0.0, 0.0))
    assert threads._is_busy(tmp_path / "missing")


@pytest.mark.parametrize(
    ("membership", "files", "expected"),
    [
        ("0::/a/b\n", {"a/b/cpu.max": "100000 100000\n"}, 1),
        ("0::/a/b\n", {"a/b/cpu.max": "150000 100000\n"}, 2),
        ("0::/a/b\n", {"a/b/cpu.max": "max 100000\n", "a/cpu.max": "300000 100000\n"}, 3),
        ("0::/a/b\n", {"cpu.max": "50000 100000\n"}, 1),  # in a container, where its own group is the root
        ("0::/../b\n", {"b/cpu.max": "50000 100000\n"}, 1),
        ("0::/\n", {"cpu.max": "max 100000\n"}, None),
        ("4:memory:/x\n2:cpu,cpuacct:/x\n", {"cpu,cpuacct/x/cpu.cfs_quota_us": "200000"}, 2),
        ("2:cpu,cpuacct:/x\n", {"cpu/x/cpu.cfs_quota_us": "-1"}, None),
        ("1:name=systemd:/\n", {}, None),
    ],
)
def test_the_quota_of_a_control_group(membership, files, expected, tmp_path, monkeypatch):
    (tmp_path / "cgroup").write_text(membership)
    for name, text in files.items():
        path = tmp_path / "root" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        if path.name == "cpu.cfs_quota_us":
            path.with_name("cpu.cfs_period_us").write_text("100000")
    quota = threads._control_group_quota(str(tmp_path / "root"), str(tmp_path / "cgroup"))
    assert quota == expected
    monkeypatch.delenv("RANKWISE_NUM_THREADS", raising=False)
    monkeypatch.setattr(threads, "_control_group_quota", lambda: 1)
    assert threads.default_threads() == 1


@pytest.mark.parametrize(
    "model", [RankRLS(solver="cg"), RankSVM(0.01), RankSVM(0.01, loss="squared_hinge")], ids=repr
)
def test_dense_models_have_the_same_bits_on_any_number_of_threads(model):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(6000, 3))
    y, qid = np.round(X @ [1.0, 2.0, 0.0] + rng.normal(size=6000)), np.arange(6000) // 30
    one, three = (model.set_params(n_threads=n).fit(X, y, qid).coef_ for n in (1, 3))
    np.testing.assert_array_equal(one, three)


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
        RankRLSCV([1e-9], cv=3, method="tikhonov", max_iter=1),
        RankSVM(1e-9, max_iter=1),
        RankSVMCV([1e-9], cv=3, max_iter=1),
        KernelRankRLS("rbf", alpha=1e-9, solver="cg", max_iter=1),
        KernelRankSVM("rbf", alpha=1e-9, max_iter=1, tol=1e-12),
    ],
    ids=repr,
)
def test_warnings_point_at_the_line_that_called(model, data):
    with pytest.warns(ConvergenceWarning) as noted:
        model.fit(*data)
    assert {warning.filename for warning in noted} == {__file__}
