"""Large decompositions are those of SciPy to the last bit, and Ctrl-C does not wait for them."""

import os
import signal
import threading
import time

import numpy as np
import pytest
import scipy.linalg

from rankwise.runtime import decompositions
from rankwise.runtime.decompositions import decompose, diagonalise, factorise
from rankwise.runtime.interrupts import left_on_interrupt
from rankwise.runtime.threads import LARGE_MATRIX


def symmetric(size, order="C"):
    A = np.random.default_rng(size).normal(size=(size, size))
    return np.array(A + A.T, order=order)


@pytest.mark.parametrize("size", [0, 1, 2, 7, LARGE_MATRIX - 1, LARGE_MATRIX, LARGE_MATRIX + 5])
@pytest.mark.parametrize("order", "CF")
@pytest.mark.parametrize("overwrite", [False, True])
def test_eigenvectors_are_those_of_scipy(size, order, overwrite):
    A = symmetric(size, order)
    given = A.copy(order="K")
    values, vectors = diagonalise(given, overwrite=overwrite)
    if size:
        wanted = scipy.linalg.eigh(A, driver="evd" if size > 1 else "ev")
        np.testing.assert_array_equal(values, wanted[0])
        np.testing.assert_array_equal(vectors, wanted[1])
    assert overwrite or np.array_equal(given, A)
    np.testing.assert_allclose(vectors * values @ vectors.T, A, atol=1e-10 * max(size, 1))


@pytest.mark.parametrize("size", [0, 1, 2, 7, LARGE_MATRIX - 1, LARGE_MATRIX, LARGE_MATRIX + 5])
def test_cholesky_factors_are_those_of_scipy(size):
    A = np.random.default_rng(size).normal(size=(size, size))
    A = A @ A.T + np.eye(size)
    factor = A.copy().T
    assert factorise(factor)
    if size:
        np.testing.assert_array_equal(np.tril(factor), scipy.linalg.cholesky(A, lower=True))
        A[size // 2, size // 2] = -1.0
        assert not factorise(A.T)


@pytest.mark.parametrize("work", [factorise, diagonalise])
def test_other_threads_run_meanwhile(work):
    """Who holds the interpreter's lock lets no other thread take a single step."""
    goes_on, steps = True, [0]

    def step():
        while goes_on:
            steps[0] += 1
            time.sleep(1e-4)

    other = threading.Thread(target=step)
    other.start()
    seen = []
    for _ in range(50):  # a busy machine may leave the other thread no time
        A = 1000 * np.eye(1200, order="F") + symmetric(1200, "F")
        before = steps[0]
        work(A)
        seen.append(steps[0] - before)
        if seen[-1] > 10:
            break
    goes_on = False
    other.join()
    assert max(seen) > 10


def test_another_kind_of_lapack_is_left_to_scipy(monkeypatch):
    monkeypatch.setattr(
        decompositions, "_SIGNATURES", {name: ["long"] for name in decompositions._SIGNATURES}
    )
    decompositions._lapack.cache_clear()
    try:
        assert decompositions._lapack("dsyevd") is None
        A = symmetric(LARGE_MATRIX)
        np.testing.assert_array_equal(diagonalise(A)[0], scipy.linalg.eigh(A, driver="evd")[0])
        assert not factorise(A.T)
        assert factorise(np.eye(LARGE_MATRIX, order="F"))
    finally:
        decompositions._lapack.cache_clear()


def test_what_fails_in_the_thread_is_raised_to_who_waits():
    with pytest.raises(np.linalg.LinAlgError):
        decompose(LARGE_MATRIX, lambda: scipy.linalg.cholesky(-np.eye(3)))


def test_ctrl_c_does_not_wait_for_work_that_looks_for_no_signals():
    began, goes_on, ended = threading.Event(), threading.Event(), threading.Event()

    def work():
        began.set()
        goes_on.wait()
        ended.set()

    def interrupt():
        began.wait()
        os.kill(os.getpid(), signal.SIGINT)

    interrupter = threading.Thread(target=interrupt)
    interrupter.start()
    with pytest.raises(KeyboardInterrupt):
        left_on_interrupt(work)
    assert not ended.is_set()
    goes_on.set()
    interrupter.join()
    ended.wait()


def test_another_thread_does_the_work_itself():
    where = []
    thread = threading.Thread(
        target=lambda: left_on_interrupt(lambda: where.append(threading.current_thread()))
    )
    thread.start()
    thread.join()
    assert where == [thread]


def test_where_no_thread_can_be_started_the_work_is_done_here(monkeypatch):
    def refuse(_):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    assert left_on_interrupt(threading.current_thread) is threading.main_thread()
