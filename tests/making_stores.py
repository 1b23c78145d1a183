"""Rows to write to stores, and what a store that was opened must hold."""

from itertools import pairwise

import numpy as np
import scipy.sparse as sp


def make(seed=0, rows=60, columns=9, queries=7, kind="int", dtype=np.float64):
    rng = np.random.default_rng(seed)
    X = sp.random(rows, columns, density=0.4, random_state=seed % 2**31, format="csr").astype(dtype)
    number = rng.permutation(queries)[np.sort(rng.integers(queries, size=rows))]
    qid = {
        "none": None,
        "int": number - 3,
        "real": number + 0.1,
        "text": np.array([f"q{i} #é" for i in range(queries)])[number],
    }[kind]
    return X, rng.normal(size=rows), qid


def cut(data, pieces):
    X, y, qid = data
    bounds = np.linspace(0, X.shape[0], pieces + 1).astype(int)
    for a, b in pairwise(bounds):
        yield X[a:b], y[a:b], None if qid is None else qid[a:b]


def assert_holds(store, data):
    X, y, qid = data
    assert store.X.shape == X.shape
    assert store.X.data.dtype == X.data.dtype
    for mine, wanted in (
        (store.X.data, X.data),
        (store.X.indices, X.indices),
        (store.X.indptr, X.indptr),
        (store.y, y),
    ):
        np.testing.assert_array_equal(mine, wanted)
    assert (store.qid is None) == (qid is None)
    if qid is not None:
        assert store.qid.dtype.kind == np.asarray(qid).dtype.kind
        np.testing.assert_array_equal(store.qid, qid)
