"""Two-sided ranking by the explicit Kronecker matrix, solved with 60 digits and refitted for every hold-out."""

import decimal
from decimal import Decimal
from itertools import product

import numpy as np

exact = np.vectorize(Decimal, otypes=[object])


def solve(A, b):
    """Gauss-Jordan elimination with pivots, in whatever numbers the matrix holds."""
    A = np.column_stack([A, b])
    for j in range(len(A)):
        pivot = j + max(range(len(A) - j), key=lambda below: abs(A[j + below, j]))
        A[[j, pivot]] = A[[pivot, j]]
        A[j] = A[j] / A[j, j]
        for row in range(len(A)):
            if row != j and A[row, j] != 0:
                A[row, j:] = A[row, j:] - A[row, j] * A[j, j:]
    return A[:, -1]


def gram(Z):
    with decimal.localcontext(prec=60):
        return exact(Z) @ exact(Z).T


def refit(D, T, Y, known, alpha, ranked, sign=0):
    """Return the scores of all entries by the model of the known ones: (LK + alpha I) c = Ly."""
    with decimal.localcontext(prec=60):
        D, T = exact(D), exact(T)
        i, j = np.nonzero(known)
        K = D[np.ix_(i, i)] * T[np.ix_(j, j)]
        if sign:  # of one set with itself
            K = (K + sign * D[np.ix_(i, j)] * T[np.ix_(j, i)]) / 2
        query = {"columns": i, "rows": j}.get(ranked, 0 * i)
        same = (query[:, None] == query).astype(float)
        L = exact(np.eye(i.size)) - exact(same) / exact(same.sum(axis=1, keepdims=True))
        c = exact(np.zeros(Y.shape))
        c[i, j] = solve(L @ K + exact(np.eye(i.size)) * Decimal(alpha), L @ exact(Y[known]))
        return D @ ((c + sign * c.T) / 2 if sign else c) @ T


def centred(scores):
    """Centre the scores of a row before they lose digits."""
    with decimal.localcontext(prec=60):
        return (scores - scores.sum() / scores.size).astype(float)


def without(shape, rows=(), columns=(), entry=None):
    known = np.ones(shape, dtype=bool)
    known[list(rows)] = False
    known[:, list(columns)] = False
    if entry is not None:
        known[entry] = False
    return known


def compared(D, T, Y, alpha, ranked, cv):
    """Return for each row the scores of its entries (columns) by the model without one of them (rows)."""
    n, m = Y.shape
    out = np.empty((n, m, m))
    fits = {}
    for i, k in product(range(n), range(m)):
        known = {
            "leave-entry-out": without((n, m), entry=(i, k)),
            "leave-column-out": without((n, m), columns=[k]),
            "leave-both-out": without((n, m), rows=[i], columns=[k]),
        }[cv]
        key = known.tobytes()
        if key not in fits:
            fits[key] = refit(D, T, Y, known, alpha, ranked)
        out[i, k] = centred(fits[key][i])
    return out


def comparison_errors(Y, scores):
    """Return for each row the share of comparisons of held-out entries that are wrong; NaN without pairs."""
    found = []
    for labels, by_model in zip(Y, scores, strict=True):
        costs = []
        for k, others in enumerate(by_model):
            size = abs(others).max()
            for other in np.flatnonzero(labels != labels[k]):
                gap = (others[k] - others[other]) * np.sign(labels[k] - labels[other])
                costs.append(0.5 if abs(gap) <= 1e-10 * size else float(gap < 0))
        found.append(np.mean(costs) if costs else np.nan)
    return np.array(found)
