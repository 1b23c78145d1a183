"""Which results are the same to the last bit, and which to rounding; `docs/reliability.md` promises it.

The same data, parameters and versions give the same bits again, in other processes, whatever the number of threads.
Another order of the rows, or a store instead of an array, may change the last digits: sums are made in another order.
"""

import hashlib
import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone

from rankwise import (
    KernelRankRLS,
    KernelRankRLSCV,
    KernelRankSVM,
    RankRLS,
    RankRLSCV,
    RankSVM,
    RankSVMCV,
)
from rankwise.data import open_store, save_store
from strategies import make_problem

MODELS = {
    "direct": RankRLS(solver="direct"),
    "eigen": RankRLS(solver="eigen"),
    "cg": RankRLS(solver="cg", tol=1e-10),
    "gdm": RankRLS(solver="gdm"),
    "egdm": RankRLS(solver="egdm"),
    "stochastic": RankRLS(solver="stochastic"),
    "early stopping": RankRLS(early_stopping=True),
    "surface": RankRLSCV(cv=3),
    "leave-query-out": RankRLSCV(cv="leave-query-out"),
    "smoothing": RankSVM(solver="smoothing"),
    "bundle": RankSVM(solver="bundle"),
    "newton": RankSVM(loss="squared_hinge", solver="newton"),
    "alphas": RankSVMCV(cv=2),
    "kernel": KernelRankRLS(),
    "reduced set": KernelRankRLS(basis=25),
    "kernel choice": KernelRankRLSCV(),
    "kernel hinge": KernelRankSVM(basis=25),
}


def data():
    problem = make_problem(11, rows=300, features=7, queries=15)
    order = np.argsort(problem.qid, kind="stable")
    return problem.X[order], problem.y[order], problem.qid[order]


def scores(name, X, y, qid, **parameters):
    model = clone(MODELS[name]).set_params(**parameters)
    return model.fit(X, y, qid=qid).predict(data()[0])


@pytest.mark.parametrize("name", MODELS)
def test_the_same_bits_again_and_with_any_number_of_threads(name):
    X, y, qid = data()
    once = scores(name, X, y, qid, n_threads=1)
    for n_threads in (1, 2, 3, 7):
        np.testing.assert_array_equal(scores(name, X, y, qid, n_threads=n_threads), once)


@pytest.mark.parametrize("name", [name for name in MODELS if "kernel" not in name and name != "reduced set"])
def test_sparse_rows_agree_to_rounding_whatever_the_number_of_threads(name):
    X, y, qid = data()
    once = scores(name, sp.csr_matrix(X), y, qid, n_threads=1)
    for n_threads in (2, 5):
        again = scores(name, sp.csr_matrix(X), y, qid, n_threads=n_threads)
        np.testing.assert_allclose(again, once, rtol=1e-9, atol=1e-12 * np.abs(once).max())


@pytest.mark.parametrize("name", ["direct", "cg", "surface", "smoothing", "newton"])
def test_a_store_gives_what_its_rows_in_memory_give(name, tmp_path):
    X, y, qid = data()
    for rows in (X, sp.csr_matrix(X)):
        save_store([(rows, y, qid)], tmp_path / "store")
        store = open_store(tmp_path / "store")
        once = scores(name, rows, y, qid)
        np.testing.assert_allclose(scores(name, store.X, store.y, store.qid), once, rtol=1e-9, atol=1e-12)


ELSEWHERE = ["direct", "stochastic", "surface", "smoothing", "newton", "reduced set"]
_ELSEWHERE = """
import hashlib, sys
sys.path[:0] = sys.argv[1:]
from test_determinism import ELSEWHERE, data, scores
print(hashlib.sha256(b"".join(scores(name, *data()).tobytes() for name in ELSEWHERE)).hexdigest())
"""


def test_another_process_gets_the_same_bits():
    here = hashlib.sha256(b"".join(scores(name, *data()).tobytes() for name in ELSEWHERE)).hexdigest()
    folder = __file__.rpartition("/")[0]
    done = subprocess.run(
        [sys.executable, "-c", _ELSEWHERE, folder], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == here
