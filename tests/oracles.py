"""Slow and obvious twins of the library's fast formulas: explicit pairs, explicit loops."""

from __future__ import annotations

from itertools import permutations

import numpy as np

# ---- metrics --------------------------------------------------------------------------------------------


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


def pairwise_error(y, scores, qid, weights=None, ties=0.5, average="queries"):
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
    orders = []
    for permutation in permutations(range(len(y))):
        if all(scores[a] >= scores[b] for a, b in zip(permutation, permutation[1:], strict=False)):
            orders.append([y[i] for i in permutation])
    return orders


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
