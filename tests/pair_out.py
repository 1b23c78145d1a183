"""Differences of the scores of two rows under the models without them, as leave-pair-out computes them."""

import numpy as np

from rankwise.holdout import leave_pair_out


def pair_out_differences(decomposition, ranking, pairs, alphas):
    """Return ``f(i) - f(j)`` of the models fitted without rows i and j, (alphas, pairs), as the errors count them."""
    terms, interpolation = (
        leave_pair_out._Terms(decomposition, ranking),
        leave_pair_out._interpolation(ranking),
    )
    rows = np.arange(ranking.y.size)
    factor = ranking.alpha_factor(rows[:, None], rows)
    shares = interpolation.weights(np.clip(factor, interpolation.low, interpolation.high))
    found = []
    for alpha in alphas:
        at_nodes = leave_pair_out._AtNodes(terms, alpha * interpolation.nodes)
        block = slice(0, rows.size), slice(0, rows.size)
        sign = np.sign(ranking.level[:, None] - ranking.level)
        signed = terms.of_block(block, at_nodes, shares)[0] * sign
        found.append(np.where(factor > 0, signed, 0.0)[pairs])
    return np.stack(found)
