"""Which rows make the basis of a reduced set: at random, near the centres of clusters, or by leverage.

A choice returns row indices, in increasing order and without repetition.
"""

from __future__ import annotations

import numpy as np
import scipy.linalg
from sklearn.cluster import MiniBatchKMeans

from rankwise.arrays import Matrix, Rows
from rankwise.design.offsets import find_shift, sampled_rows
from rankwise.kernels import FeatureMap, Kernel
from rankwise.threads import large_algebra

__all__ = ["BASIS_METHODS", "kmeans_rows", "leverage_rows", "random_rows"]

BASIS_METHODS = ("random", "kmeans", "leverage")


def random_rows(n_rows: int, size: int, seed: int) -> Rows:
    """Choose rows without replacement, each as likely as any other."""
    return np.sort(np.random.default_rng(seed).choice(n_rows, size=size, replace=False)).astype(np.int64)


def kmeans_rows(X: Matrix, size: int, seed: int) -> Rows:
    """Choose the row nearest to each centre of k-means; where a row is nearest to two, another is drawn."""
    batch = max(1024, 3 * size)
    shift = find_shift(X[sampled_rows(*X.shape)])
    X = X if shift is None else shift.taken_off(X)
    clusters = MiniBatchKMeans(size, random_state=seed, n_init=1, batch_size=batch, reassignment_ratio=0.0)
    nearest = np.unique(np.argmin(clusters.fit_transform(X), axis=0))
    others = np.setdiff1d(np.arange(X.shape[0]), nearest)
    extra = np.random.default_rng(seed).choice(others, size=size - nearest.size, replace=False)
    return np.sort(np.concatenate([nearest, extra])).astype(np.int64)


def leverage_rows(kernel: Kernel, X: Matrix, size: int, seed: int) -> Rows:
    """Choose rows with probability proportional to their ridge leverage, estimated on a random reduced set.

    The leverage of row i is ``z_i' (Z'Z + λI)^-1 z_i``; λ is an eigenvalue
    in the middle of those that matter, so that about half of `size` directions count as large.
    """
    n_rows = X.shape[0]
    rng = np.random.default_rng(seed)
    sketch = FeatureMap.of_basis(kernel, X[random_rows(n_rows, min(n_rows, size), seed)])
    G = np.zeros((sketch.n_features, sketch.n_features))
    with large_algebra(sketch.n_features):
        for _, values in kernel.blocks(X, sketch.basis):
            Z = values @ sketch.projection
            G += Z.T @ Z
        eigenvalues, vectors = scipy.linalg.eigh(G, check_finite=False)
    penalty = max(float(eigenvalues[eigenvalues.size // 2]), 1e-10 * float(eigenvalues[-1]))
    whiten = sketch.projection @ (vectors / np.sqrt(np.maximum(eigenvalues, 0.0) + penalty))
    leverage = np.empty(n_rows)
    for rows, values in kernel.blocks(X, sketch.basis):
        leverage[rows] = np.square(values @ whiten).sum(axis=1)
    # Gumbel keys: the largest of log p + noise are a weighted choice without replacement.
    keys = np.log(np.maximum(leverage, np.finfo(np.float64).tiny)) + rng.gumbel(size=n_rows)
    return np.sort(np.argpartition(-keys, size - 1)[:size]).astype(np.int64)
