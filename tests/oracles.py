"""What the fast code must agree with: definitions written out, quadratic in the rows."""

import numpy as np

# --- The Laplacian of query blocks -----------------------------------------------------------------------------------


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
