"""Small problems for the golden results: the same numbers with every version of NumPy.

Uniform numbers are the simplest that a generator makes, and every entry is rounded to a multiple of a power of two.
Columns have ordinary scales, and the rows of a query stand together, as a store on disk wants them.
"""

from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.linalg import aslinearoperator

from rankwise.data import open_store, save_store

N_ROWS, N_COLUMNS, QUERY = 48, 6, 8
STEP = 2.0**-10


@dataclass(frozen=True)
class Problem:
    X: np.ndarray
    y: np.ndarray
    qid: np.ndarray
    sample_weight: np.ndarray
    query_importance: dict
    fold: np.ndarray  # of rows; queries are whole
    row_fold: np.ndarray  # of the rows of one ranking
    pairs: np.ndarray
    magnitude: np.ndarray
    weight: np.ndarray
    pair_fold: np.ndarray
    eval_rows: tuple
    eval_pairs: np.ndarray
    new: np.ndarray


def rounded(values):
    return np.round(np.asarray(values) / STEP) * STEP


@cache
def problem(labels="real", outputs=1):
    """Return rows in queries, listed pairs of them, folds, rows to validate on and new rows."""
    rng = np.random.default_rng(20_070)
    direction = rounded(2 * rng.random((N_COLUMNS, outputs)) - 0.8)

    def draw(n_rows):
        X = rounded(2 * rng.random((n_rows, N_COLUMNS)) + 2 * rng.random((n_rows, N_COLUMNS)) - 2)
        X[rng.random(X.shape) < 0.2] = 0.0
        y = rounded(X @ direction + 1.5 * np.sin(3 * X[:, :1]) + 2 * rng.random((n_rows, outputs)))
        if labels == "grades":
            y = np.clip(np.floor(y + 1.5), 0, 3)
        return X, y[:, 0] if outputs == 1 else y

    X, y = draw(N_ROWS)
    qid = np.arange(N_ROWS) // QUERY
    eval_X, eval_y = draw(24)
    first = y if outputs == 1 else y[:, 0]
    pairs = np.floor(N_ROWS * rng.random((60, 2))).astype(int)
    pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    wrong = (first[pairs[:, 0]] < first[pairs[:, 1]]) & (rng.random(len(pairs)) < 0.9)
    pairs[wrong] = pairs[wrong, ::-1]
    return Problem(
        X=X,
        y=y,
        qid=qid,
        sample_weight=1 + np.floor(3 * rng.random(N_ROWS)),
        query_importance={query: 1.0 + query % 3 for query in range(N_ROWS // QUERY)},
        fold=qid % 3,
        row_fold=np.arange(N_ROWS) % 3,
        pairs=pairs,
        magnitude=1 + np.floor(4 * rng.random(len(pairs))),
        weight=1 + np.floor(3 * rng.random(len(pairs))),
        pair_fold=np.sort(pairs, axis=1).sum(axis=1) % 3,  # both directions of a couple are in one fold
        eval_rows=(eval_X, eval_y, np.arange(24) // QUERY),
        eval_pairs=np.column_stack([np.arange(12), np.arange(12, 24)]),
        new=draw(10)[0],
    )


def splits(fold):
    return [(np.flatnonzero(fold != k), np.flatnonzero(fold == k)) for k in range(3)]


def stored(X, storage, folder):
    """Return the matrix in one of the containers that estimators take."""
    if storage == "store":
        path = Path(folder, f"{len(X)}-{X.sum().hex()}.store")
        if not path.exists():
            save_store([(X, np.zeros(len(X)), np.arange(len(X)) // QUERY)], path)
        return open_store(path).X
    return {
        "dense": lambda: X,
        "fortran": lambda: np.asfortranarray(X),
        "float32": lambda: X.astype(np.float32),
        "csr": lambda: csr_array(X),
        "operator": lambda: aslinearoperator(X),
    }[storage]()
