"""The large-scale RankRLS paper's own recipe, written plainly: a baseline, not a part of rankwise.

The normal equations ``(X L X' + λI) w = X L y`` with ``L = I - PP'``, by SciPy's sparse products and SciPy's
conjugate gradients. (The paper's X has a column an example; here rows are examples.)
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import LinearOperator, cg


class PaperRecipe:
    """RankRLS as the paper trains it; `n_products` counts multiplications by the Hessian."""

    def __init__(self, alpha, *, tol=1e-5, max_iter=None):
        self.alpha = alpha
        self.tol = tol
        self.max_iter = max_iter

    def fit(self, X, y, qid=None, callback=None):
        m, n = X.shape
        codes = np.zeros(m, dtype=int) if qid is None else np.unique(qid, return_inverse=True)[1]
        sizes = np.bincount(codes)
        P = sp.csr_matrix((1 / np.sqrt(sizes[codes]), (np.arange(m), codes)), shape=(m, sizes.size))
        self.n_products = 0

        def centre(f):
            return f - P @ (P.T @ f)

        def multiply(w):
            self.n_products += 1
            return X.T @ centre(X @ w) + self.alpha * w

        operator = LinearOperator((n, n), matvec=multiply, dtype=np.float64)
        self.coef_, _ = cg(operator, X.T @ centre(y), rtol=self.tol, maxiter=self.max_iter, callback=callback)
        return self
