"""How the large-scale RankRLS paper selects alpha: one run of conjugate gradients for each; a baseline.

Method 1 lets every run converge; method 3 stops each when the validation error has not improved for ten
iterations. Both use rankwise's own fused products, so that only the number of products differs.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass
class Selection:
    """What a grid search found, and what it cost."""

    alpha: float
    error: float
    coef: np.ndarray
    n_products: int


def separate_runs(objective, validation, judge, alphas, *, tol=1e-5, max_iter=500, patience=None):
    """Search the grid; with `patience` by early stopping (method 3), without to convergence (method 1)."""
    best, products = None, 0
    for alpha in alphas:
        coef, error, taken = _one_run(objective, validation, judge, alpha, tol, max_iter, patience)
        products += taken
        if best is None or error < best.error:
            best = Selection(float(alpha), error, coef, 0)
    best.n_products = products
    return best


def _one_run(objective, validation, judge, alpha, tol, max_iter, patience):
    b = objective.rhs
    w, r = np.zeros_like(b), b.copy()
    p, rho = r.copy(), r @ r
    target = (tol * np.linalg.norm(b)) ** 2
    best_error, best_w, stale, step = np.inf, w, 0, 0
    while step < max_iter and rho > target:
        q = objective.product(p) + alpha * p
        a = rho / (p @ q)
        w = w + a * p
        r -= a * q
        step += 1
        if patience is not None:
            error = judge(validation.dot(w))
            stale = 0 if error < best_error else stale + 1
            if error < best_error:
                best_error, best_w = error, w
            if stale >= patience:
                break
        rho_next = r @ r
        p = r + (rho_next / rho) * p
        rho = rho_next
    if patience is None:
        return w, judge(validation.dot(w)), step
    return best_w, best_error, step
