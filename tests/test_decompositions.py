"""Large decompositions are those of SciPy to the last bit, and Ctrl-C does not wait for them."""

import os
import signal
import threading

import numpy as np
import pytest
import scipy.linalg

from rankwise import decompositions
from rankwise.decompositions import decompose, diagonalise
from rankwise.interrupts import left_on_interrupt
from rankwise.threads import LARGE_MATRIX


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


def test_another_kind_of_lapack_is_left_to_scipy(monkeypatch):
    monkeypatch.setattr(decompositions, "_SIGNATURE", ["long"])
    decompositions._syevd.cache_clear()
    try:
        assert decompositions._syevd() is None
        A = symmetric(LARGE_MATRIX)
        np.testing.assert_array_equal(diagonalise(A)[0], scipy.linalg.eigh(A, driver="evd")[0])
    finally:
        decompositions._syevd.cache_clear()


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
