"""Which pair to compare next: the largest expected information, with exact rank-one updates."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.special import expit

from rankwise.arrays import ArrayLike, Floats, Ints, MatrixLike
from rankwise.data.containers import as_array
from rankwise.exceptions import InvalidInputError

__all__ = ["choose_pairs", "suggest"]

_MOST = 2_000_000  # candidate pairs


def choose_pairs(rows: Floats, covariance: Floats, pairs: Ints, rate: Floats, n: int, weight: Floats) -> Ints:
    """Choose pairs one after the other by ``weight · q v``, v the variance of the difference and q its information.

    Parameters
    ----------
    rows : ndarray of shape (items, columns)
        Features of the items; the identity for a leaderboard.
    covariance : ndarray of shape (columns, columns)
    pairs : ndarray of shape (candidates, 2)
    rate : ndarray of shape (candidates,)
        The information of one battle, p(1 − p).
    n : int
    weight : ndarray of shape (candidates,)
    """
    inner = rows @ covariance @ rows.T
    free = np.ones(len(pairs), bool)
    chosen: list[int] = []
    a, b = pairs.T
    for _ in range(min(n, len(pairs))):
        own = inner.diagonal()
        variance = own[a] + own[b] - 2 * inner[a, b]
        best = int(np.argmax(np.where(free, weight * rate * variance, -1.0)))
        chosen.append(best)
        free[best] = False
        column = inner[:, a[best]] - inner[:, b[best]]
        inner -= np.outer(column, column) * (rate[best] / (1 + rate[best] * variance[best]))
    return pairs[chosen]


def suggest(model: Any, X: MatrixLike, pairs: ArrayLike, n: int = 10) -> Ints:
    """Return the pairs of rows whose comparison tells most about a fitted model.

    Parameters
    ----------
    model : RankRLS, or RankSVM with loss="logistic"
        Fitted by ``fit_pairs(X, pairs)``.
    X : array-like or sparse matrix of shape (rows, features)
    pairs : array-like of shape (pairs, 2)
        The pairs that were compared already.
    n : int, default=10

    Returns
    -------
    ndarray of shape (n, 2)
        Pairs of row numbers, the most informative first; no pair twice.

    Examples
    --------
    >>> import rankwise
    >>> X, pairs = [[0.0, 1.0], [1.0, 0.0], [2.0, 2.0]], [[1, 0]]
    >>> rankwise.suggest(rankwise.RankRLS().fit_pairs(X, pairs), X, pairs, n=1).tolist()
    [[0, 2]]
    """
    kind = type(model).__name__
    if kind != "RankRLS" and not (kind == "RankSVM" and model.loss == "logistic"):
        raise InvalidInputError(
            f"suggest cannot take a {kind}.", "pass a RankRLS, or a RankSVM with loss='logistic'."
        )
    rows = np.asarray(X.toarray() if sp.issparse(X) else as_array("X", X), dtype=float)  # type: ignore[union-attr]
    compared = np.asarray(as_array("pairs", pairs), dtype=np.int64)
    candidates = np.column_stack(np.triu_indices(len(rows), 1))
    if len(candidates) > _MOST:
        raise InvalidInputError(
            f"X has {len(rows)} rows, too many to try all pairs.", "pass some of the rows."
        )
    difference = rows[compared[:, 0]] - rows[compared[:, 1]]
    penalty, rate = float(model.alpha), np.ones(len(candidates))
    information = np.ones(len(compared))
    if kind == "RankSVM":
        penalty *= 2 * len(compared)
        p = expit(difference @ model.coef_)
        information = p * (1 - p)
        scores = rows @ model.coef_
        p = expit(scores[candidates[:, 0]] - scores[candidates[:, 1]])
        rate = p * (1 - p)
    matrix = difference.T @ (difference * information[:, None]) + penalty * np.eye(rows.shape[1])
    return choose_pairs(rows, np.linalg.inv(matrix), candidates, rate, n, np.ones(len(candidates)))
