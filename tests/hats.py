"""The expanded matrix of an additive model, for tests and comparisons: the weights of its terms, row by row."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp


def hat_matrix(X, terms):
    """Return the weights that every row gives to the values of the terms: a CSR matrix (rows, n_values) in float64.

    X is an array or a SciPy sparse matrix, whose absent entries are zeros. Weights that are zero are not stored.
    """
    used = terms.columns.tolist()
    rows = X[:, used].toarray() if sp.issparse(X) else X[:, used]
    columns = dict(zip(used, rows.T, strict=True))
    ids, weights = [], []
    for curve, offset in zip(terms.curves, terms.offsets, strict=False):
        own_ids, own_weights = curve.weights(columns[curve.column])
        ids.append(own_ids + offset)
        weights.append(own_weights)
    for surface, offset in zip(terms.surfaces, terms.offsets[len(terms.curves) :], strict=False):
        own_ids, own_weights = surface_weights(surface, columns)
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


def surface_weights(surface, columns):
    """Return which four values each row reads, (rows, 4), and their weights: products of those of both sides."""
    ids, weights = surface.first.weights(columns[surface.first.column])
    other_ids, other_weights = surface.second.weights(columns[surface.second.column])
    both = ids[:, :, None] * surface.second.n_values + other_ids[:, None, :]
    return both.reshape(-1, 4), (weights[:, :, None] * other_weights[:, None, :]).reshape(-1, 4)
