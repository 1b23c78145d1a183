"""Which pair to compare next: the largest expected information, with exact rank-one updates."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.special import expit

from rankwise.arrays import ArrayLike, Floats, Ints, MatrixLike
from rankwise.data.containers import as_array
from rankwise.exceptions import InvalidInputError

_MOST = 2_000_000  # candidate pairs


def choose_pairs(
    covariance: Floats, scores: Floats | None, n: int, doubt: Floats | None = None
) -> list[tuple[int, int]]:
    """Choose pairs of items one after the other by ``q v``, v the variance of the difference and q the information.

    Parameters
    ----------
    covariance : ndarray of shape (items, items)
        Of the scores.
    scores : ndarray of shape (items,) or None
        A battle has the information ``p (1 − p)``; 1 for None.
    n : int
    doubt : ndarray of shape (items,), optional
        A pair's gain is multiplied by the sum of both.
    """
    _check_size(len(covariance))
    a, b = np.triu_indices(len(covariance), 1)
    rate = np.ones(a.size)
    if scores is not None:
        rate = expit(scores[a] - scores[b]) * expit(scores[b] - scores[a])
    # Where every item is certain, the plain information decides.
    weight = rate * (1.0 if doubt is None else doubt[a] + doubt[b] + 1e-9)
    covariance, chosen, free = covariance.copy(), [], np.ones(a.size, bool)
    for _ in range(min(n, a.size)):
        own = covariance.diagonal()
        variance = own[a] + own[b] - 2 * covariance[a, b]
        best = int(np.argmax(np.where(free, weight * variance, -1.0)))
        chosen.append((int(a[best]), int(b[best])))
        free[best] = False
        column = covariance[:, a[best]] - covariance[:, b[best]]
        covariance -= np.outer(column, column) * (rate[best] / (1 + rate[best] * variance[best]))
    return chosen


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
    is_logistic = kind == "RankSVM" and model.loss == "logistic"
    if kind != "RankRLS" and not is_logistic:
        raise InvalidInputError(
            f"suggest cannot take a {kind}.", "pass a RankRLS, or a RankSVM with loss='logistic'."
        )
    rows = np.asarray(X.toarray() if sp.issparse(X) else as_array("X", X), dtype=float)  # type: ignore[union-attr]
    _check_size(len(rows))
    compared = np.asarray(as_array("pairs", pairs), dtype=np.int64)
    difference = rows[compared[:, 0]] - rows[compared[:, 1]]
    penalty, information, scores = float(model.alpha), np.ones(len(compared)), None
    if is_logistic:
        penalty *= 2 * len(compared)  # RankSVM minimises the mean
        scores, p = rows @ model.coef_, expit(difference @ model.coef_)
        information = p * (1 - p)
    matrix = difference.T @ (difference * information[:, None]) + penalty * np.eye(rows.shape[1])
    return np.array(choose_pairs(rows @ np.linalg.inv(matrix) @ rows.T, scores, n))


def _check_size(size: int) -> None:
    if size * (size - 1) // 2 > _MOST:
        raise InvalidInputError(f"{size:,} items have too many pairs to try all.", "pass fewer items.")
