"""Slow, obvious twins of every fast formula: explicit pairs, explicit refits, explicit loops."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

# --- pairs that labels induce --------------------------------------------------------------------------------


@dataclass
class Pairs:
    """A list of pairs: row `winner[k]` should beat row `loser[k]` by `difference[k]`, with `weight[k]`."""

    winner: np.ndarray
    loser: np.ndarray
    weight: np.ndarray
    difference: np.ndarray
    n_rows: int

    @property
    def incidence(self):
        A = np.zeros((self.winner.size, self.n_rows))
        A[np.arange(self.winner.size), self.winner] += 1
        A[np.arange(self.winner.size), self.loser] -= 1
        return A

    @property
    def laplacian(self):
        return self.incidence.T @ np.diag(self.weight) @ self.incidence

    @property
    def pull(self):
        return self.incidence.T @ (self.weight * self.difference)

    @property
    def constant(self):
        return float(self.weight @ self.difference**2)

    def squared_loss(self, scores):
        return float(self.weight @ (self.difference - (scores[self.winner] - scores[self.loser])) ** 2)


def label_pairs(
    y,
    qid=None,
    *,
    ties="include",
    cost="magnitude",
    query_weight="size",
    sample_weight=None,
    query_importance=None,
):
    """List every pair of rows of a query, one by one."""
    y = np.asarray(y, dtype=float)
    m = y.size
    qid = [0] * m if qid is None else list(qid)
    w = np.ones(m) if sample_weight is None else np.asarray(sample_weight, dtype=float)
    winner, loser, weight, difference = [], [], [], []
    for q in dict.fromkeys(qid):
        rows = [i for i in range(m) if qid[i] == q]
        size = sum(w[i] for i in rows)
        ordered = sum(w[i] * w[j] for i in rows for j in rows if y[i] > y[j])
        if query_weight == "size":
            scale = 1 / size if size else 0.0
        elif query_weight == "pairs":
            scale = 1.0
        else:
            scale = 1 / ordered if ordered else 0.0
        if query_importance is not None:
            scale *= query_importance.get(q, 1.0)
        for a, i in enumerate(rows):
            for j in rows[a + 1 :]:
                if y[i] == y[j] and ties == "exclude":
                    continue
                up, down = (i, j) if y[i] >= y[j] else (j, i)
                gap = y[up] - y[down]
                omega = scale * w[i] * w[j]
                if cost == "relative":
                    omega /= gap**2
                winner.append(up)
                loser.append(down)
                weight.append(omega)
                difference.append(np.sign(gap) if cost == "unit" else gap)
    return Pairs(
        np.array(winner, dtype=int), np.array(loser, dtype=int), np.array(weight), np.array(difference), m
    )


def solve_rankrls(X, pairs, alpha):
    """Solve the normal equations of the explicit pairs; least norm where they are singular."""
    X = np.asarray(X, dtype=float)
    H = X.T @ pairs.laplacian @ X + alpha * np.eye(X.shape[1])
    return np.linalg.lstsq(H, X.T @ pairs.pull, rcond=None)[0]


# --- the Laplacian of query blocks -----------------------------------------------------------------------


def laplacian_matrix(blocks, *, hidden=None, rows=None):
    """L of a `QueryBlocks` pair by pair: each unordered pair of a query adds weight * (e_i - e_j)(e_i - e_j)'.

    `hidden` marks rows (in the caller's order) whose weight counts as 0.
    """
    size = blocks.order.size if rows is None else rows
    L = np.zeros((size, size))
    segment = np.repeat(np.arange(blocks.degree.size), np.diff(blocks.segment_start))
    for q in range(blocks.scale.size):
        members = range(blocks.query_start[q], blocks.query_start[q + 1])
        for a in members:
            for b in range(a + 1, members.stop):
                i, j = blocks.order[a], blocks.order[b]
                weight = blocks.scale[q] * pair_weight(blocks, segment[a], segment[b])
                if blocks.row_weight is not None:
                    weight *= blocks.row_weight[a] * blocks.row_weight[b]
                if hidden is not None and (hidden[i] or hidden[j]):
                    weight = 0.0
                L[[i, j, i, j], [i, j, j, i]] += weight * np.array([1, 1, -1, -1])
    return L


def pair_weight(blocks, k, l):  # noqa: E741
    if blocks.coupling == "all":
        return 1.0
    if k == l:
        return 0.0
    if blocks.coupling == "others":
        return 1.0
    return 1.0 / (blocks.level_value[k] - blocks.level_value[l]) ** 2
