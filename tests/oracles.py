"""Slow, obvious twins of every fast formula: explicit pairs, explicit refits, explicit loops."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise, permutations

import numpy as np

# --- pairs that labels induce -------------------------------------------------------------------------------


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
    """L of a `QueryBlocks` pair by pair: each pair of a query adds weight * (e_i - e_j)(e_i - e_j)'.

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


# --- metrics ------------------------------------------------------------------------------------------------


def rows_of_queries(qid):
    """Return the rows of each query, queries in order of first appearance."""
    rows = {}
    for row, key in enumerate(qid):
        rows.setdefault(key, []).append(row)
    return rows


def pair_error_and_weight(y, scores, weights, ties):
    """Return the weight of the misordered pairs of one query and of all pairs with different labels."""
    error = total = 0.0
    for i in range(len(y)):
        for j in range(len(y)):
            if y[i] > y[j]:
                pair = weights[i] * weights[j]
                total += pair
                error += pair * (1.0 if scores[i] < scores[j] else ties if scores[i] == scores[j] else 0.0)
    return error, total


def pairwise_error(y, scores, qid, weights=None, *, ties=0.5, average="queries"):
    weights = np.ones(len(y)) if weights is None else weights
    parts = []
    for rows in rows_of_queries(qid).values():
        error, total = pair_error_and_weight(
            [y[r] for r in rows], [scores[r] for r in rows], [weights[r] for r in rows], ties
        )
        if total > 0:
            parts.append((error, total))
    if average == "pooled":
        return sum(error for error, _ in parts) / sum(total for _, total in parts)
    return float(np.mean([error / total for error, total in parts]))


def ranked_labels(y, scores):
    """Return the labels of one query, best score first, ties in the order of the rows."""
    return [y[i] for i in sorted(range(len(y)), key=lambda i: -scores[i])]


def tie_orders(y, scores):
    """Return every order of the labels of one query that the scores allow."""
    return [
        [y[i] for i in order]
        for order in permutations(range(len(y)))
        if all(scores[a] >= scores[b] for a, b in pairwise(order))
    ]


def discounted_gain(labels, k, gain, discount):
    total = 0.0
    for position, label in enumerate(labels[:k], start=1):
        worth = 2.0**label - 1 if gain == "exp" else label
        if discount == "log2":
            total += worth / np.log2(1 + position)
        else:
            total += worth if position <= 2 else worth / np.log2(position)
    return total


def ndcg_of_list(labels, k=None, gain="exp", discount="log2"):
    best = discounted_gain(sorted(labels, reverse=True), k, gain, discount)
    return discounted_gain(labels, k, gain, discount) / best if best > 0 else None


def mean_ndcg_of_list(labels, gain="exp", discount="letor"):
    if max(labels) <= 0:
        return None
    return float(np.mean([ndcg_of_list(labels, k, gain, discount) or 0.0 for k in range(1, len(labels) + 1)]))


def average_precision_of_list(labels, k=None, relevant=1):
    hits, total = 0, 0.0
    for position, label in enumerate(labels, start=1):
        if label >= relevant:
            hits += 1
            if k is None or position <= k:
                total += hits / position
    return total / hits if hits else None


def precision_of_list(labels, k=10, relevant=1):
    if not any(label >= relevant for label in labels):
        return None
    return sum(label >= relevant for label in labels[:k]) / k


def reciprocal_rank_of_list(labels, k=None, relevant=1):
    for position, label in enumerate(labels, start=1):
        if label >= relevant:
            return 1.0 / position if k is None or position <= k else 0.0
    return None


def err_of_list(labels, k=None, max_grade=4):
    if max(labels) <= 0:
        return None
    reading, total = 1.0, 0.0
    for position, label in enumerate(labels[:k], start=1):
        stop = (2.0**label - 1) / 2.0**max_grade
        total += reading * stop / position
        reading *= 1 - stop
    return total


def mean_over_queries(of_list, y, scores, qid, *, ties, empty):
    """Return the mean of a metric of one list; averaging ties by going through every order they allow."""
    values = []
    for rows in rows_of_queries(qid).values():
        labels, own = [y[r] for r in rows], [scores[r] for r in rows]
        if ties == "stable":
            value = of_list(ranked_labels(labels, own))
        else:
            parts = [of_list(order) for order in tie_orders(labels, own)]
            value = None if parts[0] is None else float(np.mean(parts))
        if value is None and empty != "skip":
            value = {"zero": 0.0, "one": 1.0}[empty]
        if value is not None:
            values.append(value)
    return float(np.mean(values)) if values else None


# --- violated pairs (pairs/violations.py): explicit enumeration, O(m²) --------------------------------------


def violated_pairs(scores, label_ranks, query, margin=1.0):
    """Matrix V[i, j]: row i should beat row j of the same query, and f_i - f_j < margin."""
    is_pair = (label_ranks[:, None] > label_ranks[None, :]) & (query[:, None] == query[None, :])
    return is_pair & (scores[:, None] - scores[None, :] < margin)


def pair_weights(query, row_weight=None, scale=None):
    """Matrix of the weights that pairs have where they exist."""
    weight = np.ones(query.size) if row_weight is None else row_weight
    factor = np.ones(query.size) if scale is None else scale[query]
    return factor[:, None] * weight[:, None] * weight[None, :]


def hinge_of_pairs(scores, violated, weights, margin=1.0):
    t = margin - (scores[:, None] - scores[None, :])
    return float(np.sum(np.where(violated, weights * t, 0.0)))


def laplacian_of_pairs(violated, weights):
    """The matrix L_V = A'ΩA of the violated pairs."""
    adjacency = np.where(violated, weights, 0.0)
    adjacency = adjacency + adjacency.T
    return np.diag(adjacency.sum(axis=1)) - adjacency


def smoothed_hinge_of_pairs(scores, violated, weights, delta, margin=1.0):
    """Value, gradient and slopes times margin of phi(t) = 0 | t²/2δ | t - δ/2 over the violated pairs (t > 0)."""
    t = margin - (scores[:, None] - scores[None, :])
    slope = np.where(violated, weights * np.clip(t / delta, 0.0, 1.0), 0.0)
    loss = np.where(t <= delta, t**2 / (2 * delta), t - delta / 2)
    value = float(np.sum(np.where(violated, weights * loss, 0.0)))
    return value, slope.sum(axis=0) - slope.sum(axis=1), margin * float(slope.sum())


# --- svmlight text: a line at a time, numbers as exact fractions ---------------------------------------------


def nearest_float32(text):
    """The float32 nearest to a decimal number, ties to even; float() alone would round twice."""
    exact = Fraction(text)
    with np.errstate(over="ignore"):
        guess = np.float32(float(exact))
    around = [np.nextafter(guess, np.float32(-np.inf)), guess, np.nextafter(guess, np.float32(np.inf))]
    finite = [value for value in around if np.isfinite(value)]
    return min(
        finite, key=lambda value: (abs(Fraction(float(value)) - exact), int(value.view(np.uint32)) & 1)
    )


def parse_svmlight(text, *, zero_based="auto", missing="error", dtype=np.float64):
    """Read text that is well formed: rows as lists of (column, value), labels, ids as text or None."""
    rows, labels, ids = [], [], []
    for line in text.decode("utf-8", "surrogateescape").split("\n"):
        words = [word for word in re.split(r"[ \t\r\v\f]", line.partition("#")[0]) if word]
        if not words:
            continue
        label, *tokens = words
        labels.append(float(label))
        ids.append(tokens.pop(0)[4:] if tokens and tokens[0].startswith("qid:") else None)
        row = []
        for token in tokens:
            column, _, value = token.partition(":")
            if value.lower().lstrip("-+") in {"nan", "null"}:
                assert missing != "error"
                row.append((int(column), np.nan if missing == "nan" else None))
            elif dtype == np.float32:
                sign = -1 if value.startswith("-") else 1
                row.append((int(column), np.copysign(nearest_float32(value), np.float32(sign))))
            else:
                row.append((int(column), float(value)))
        rows.append(sorted(row))
    columns = [column for row in rows for column, _ in row]
    if zero_based == "auto":
        zero_based = 0 in columns
    base = 0 if zero_based else 1
    rows = [[(column - base, value) for column, value in row if value is not None] for row in rows]
    n_columns = max((column - base + 1 for column in columns), default=0)
    return rows, labels, ids if ids and ids[0] is not None else None, n_columns


def scaled_in_queries(X, qid, method):
    """Every column of every query on its own, value by value; NaN takes no part."""
    X = np.asarray(X, dtype=float)
    out = np.full(X.shape, np.nan)
    for query in dict.fromkeys(qid):
        rows = [row for row, other in enumerate(qid) if other == query]
        for column in range(X.shape[1]):
            known = [row for row in rows if not math.isnan(X[row, column])]
            values = [float(X[row, column]) for row in known]
            mean = math.fsum(value / len(values) for value in values)
            for row, value in zip(known, values, strict=True):
                if max(values) == min(values):
                    scaled = 0.0
                elif method == "minmax":
                    scaled = (value / 2 - min(values) / 2) / (max(values) / 2 - min(values) / 2)
                elif method == "standard":
                    variance = math.fsum((other - mean) ** 2 for other in values) / len(values)
                    scaled = (value - mean) / math.sqrt(variance)
                else:
                    below = sum(other < value for other in values)
                    equal = sum(other == value for other in values)
                    scaled = (below + (equal - 1) / 2) / (len(values) - 1)
                out[row, column] = scaled
    return out


def delong_covariance(y, columns):
    """The covariance of AUCs from explicit pairs: structural components of positive and of negative rows."""
    positive, negative = np.flatnonzero(y == np.max(y)), np.flatnonzero(y == np.min(y))
    wins = [
        np.array([[(s[i] > s[j]) + 0.5 * (s[i] == s[j]) for j in negative] for i in positive])
        for s in columns.T
    ]
    rows = np.atleast_2d(np.cov([w.mean(axis=1) for w in wins]))
    others = np.atleast_2d(np.cov([w.mean(axis=0) for w in wins]))
    return np.array([w.mean() for w in wins]), rows / positive.size + others / negative.size


# --- gradient descent with momentum (solvers/momentum.py): equation 7 of the eGDM paper, as a matrix ---------------


def galerkin(H, basis, rhs):
    """The w in the span of the basis whose residual ``rhs - Hw`` is orthogonal to it."""
    return basis @ np.linalg.solve(basis.T @ H @ basis, basis.T @ rhs)


def momentum_iterates(H, b, learning_rate, momentum, steps):
    """w_0 = 0 and the next iterates of ``[(1 + μ)I - (1 - μ)ηH] w_t - μ w_(t-1) + (1 - μ)η b``."""
    iterates = [np.zeros_like(b), np.zeros_like(b)]
    for _ in range(steps):
        matrix = (1 + momentum) * np.eye(b.size) - (1 - momentum) * learning_rate * H
        iterates.append(matrix @ iterates[-1] - momentum * iterates[-2] + (1 - momentum) * learning_rate * b)
    return iterates[1:]


# --- learning block by block (solvers/stochastic.py) -----------------------------------------------------------


def block_least_squares(blocks, alpha):
    """Each block (H_B, b_B) solved exactly beside the diagonal of all before it."""
    n = blocks[0][0].shape[0]
    w, past = np.zeros_like(blocks[0][1]), np.zeros((n, n))
    for H, b in blocks:
        w = w + np.linalg.solve(H + np.diag(np.diag(past)) + alpha * np.eye(n), b - H @ w)
        past = past + H
    return w


def simplex_gap(H, b, x):
    """Return a bound on how far ``½ x'Hx - b'x`` is above its minimum over the simplex (Frank and Wolfe's)."""
    gradient = H @ x - b
    return float(x @ gradient - gradient.min())
