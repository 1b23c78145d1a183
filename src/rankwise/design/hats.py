"""The weights of an additive model's terms, row by row: the expanded matrix, as SciPy keeps it."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from rankwise.arrays import AnyArray, InMemory, is_sparse
from rankwise.design.terms import Terms

__all__ = ["dense_columns", "hat_matrix"]


def hat_matrix(X: InMemory, terms: Terms) -> sp.csr_matrix:
    """Return the weights that every row gives to the values of the terms: a CSR matrix (rows, n_values) in float64.

    X is an array or a SciPy sparse matrix, whose absent entries are zeros. Weights that are zero are not stored.
    """
    used = terms.columns.tolist()
    columns = dict(zip(used, dense_columns(X, used).T, strict=True))
    ids, weights = [], []
    for curve, offset in zip(terms.curves, terms.offsets, strict=False):
        own_ids, own_weights = curve.weights(columns[curve.column])
        ids.append(own_ids + offset)
        weights.append(own_weights)
    for surface, offset in zip(terms.surfaces, terms.offsets[len(terms.curves) :], strict=False):
        own_ids, own_weights = surface.weights(columns[surface.first.column], columns[surface.second.column])
        ids.append(own_ids + offset)
        weights.append(own_weights)
    n_rows = int(X.shape[0])
    if not ids:
        return sp.csr_matrix((n_rows, 0))
    all_ids, all_weights = np.concatenate(ids, axis=1), np.concatenate(weights, axis=1)
    start = np.arange(n_rows + 1, dtype=np.int64) * all_ids.shape[1]
    E = sp.csr_matrix((all_weights.ravel(), all_ids.ravel(), start), shape=(n_rows, terms.n_values))
    E.eliminate_zeros()
    return E


def dense_columns(X: InMemory, columns: list[int]) -> AnyArray:
    """Return some columns of an array or a SciPy matrix as an array."""
    return np.asarray(X[:, columns].toarray() if is_sparse(X) else X[:, columns])
