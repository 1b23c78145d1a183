"""Slow and obviously right: what the fast code is compared with."""

import numpy as np

# ---- violated pairs (pairs/violations.py): explicit enumeration, O(m²) ----


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
    """Value, gradient and sum of slopes of phi(t) = 0 | t²/2δ | t - δ/2 over the violated pairs (t > 0)."""
    t = margin - (scores[:, None] - scores[None, :])
    slope = np.where(violated, weights * np.clip(t / delta, 0.0, 1.0), 0.0)
    loss = np.where(t <= delta, t**2 / (2 * delta), t - delta / 2)
    value = float(np.sum(np.where(violated, weights * loss, 0.0)))
    return value, slope.sum(axis=0) - slope.sum(axis=1), float(slope.sum())
