"""Other ways to learn from blocks of rows, for comparison: what `rankwise.solvers.stochastic` was chosen over.

All of them minimise ``Σ (ȳ - x̄'w)² + alpha ‖w‖²`` over rows centred as a whole: RankRLS of one ranking.
"""

from __future__ import annotations

import numpy as np


class Centred:
    """The rows of one ranking, centred by their common mean without being touched."""

    def __init__(self, X, y, block_rows):
        self.X, self.y = X.astype(np.float64), y - y.mean()
        self.mean = np.asarray(self.X.mean(axis=0)).ravel()
        self.cuts = range(0, X.shape[0], block_rows)
        self.block_rows = block_rows

    def blocks(self):
        for first in self.cuts:
            rows = slice(first, first + self.block_rows)
            yield rows, self.X[rows], self.y[rows]

    def dot(self, block, v):
        return block @ v - self.mean @ v

    def tdot(self, block, u):
        return block.T @ u - self.mean * u.sum()


def dual_ascent(data, alpha, reads, local=3):
    """Block dual coordinate ascent (SDCA with blocks): w = X'a; each block's a by some conjugate gradient steps."""
    a, w = np.zeros(data.y.size), np.zeros(data.X.shape[1])
    for _ in range(reads):
        for rows, X, y in data.blocks():
            e = y - data.dot(X, w) - alpha * a[rows]
            z = data.tdot(X, e)
            d, p, rho = e.copy(), z.copy(), z @ z
            for _ in range(local):
                if rho == 0:
                    break
                image = data.dot(X, p) + alpha * d
                back = data.tdot(X, image)
                step = rho / (p @ back)
                a[rows] += step * d
                w += step * p
                e, z = e - step * image, z - step * back
                rho, before = z @ z, rho
                d, p = e + rho / before * d, z + rho / before * p
        yield w


def averaged_gradients(data, alpha, reads, batch=100):
    """Averaged stochastic gradients: a constant step of 1 over twice the largest squared row; the mean iterate."""
    n = data.X.shape[1]
    w, mean, steps = np.zeros(n), np.zeros(n), 0
    longest = float(data.X.multiply(data.X).sum(axis=1).max())
    step, decay = 1 / (2 * longest), alpha / data.y.size
    for _ in range(reads):
        for _, X, y in data.blocks():
            for first in range(0, y.size, batch):
                part, label = X[first : first + batch], y[first : first + batch]
                gradient = data.tdot(part, data.dot(part, w) - label) / label.size + decay * w
                w -= step * gradient
                steps += 1
                mean += (w - mean) / steps
        yield mean
