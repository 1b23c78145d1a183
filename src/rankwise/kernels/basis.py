"""Choice of basis rows: at random, near the centres of clusters, or by leverage scores.

A choice returns row indices, in increasing order and without repetition.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from sklearn.cluster import MiniBatchKMeans

from rankwise.arrays import ArrayLike, Floats, Matrix, Rows
from rankwise.data.containers import as_array
from rankwise.data.validation import check_choice
from rankwise.design.offsets import find_shift, sampled_rows
from rankwise.exceptions import InvalidInputError
from rankwise.kernels import FeatureMap, Kernel
from rankwise.runtime.decompositions import diagonalise
from rankwise.runtime.threads import large_algebra

__all__ = ["Basis", "basis_size", "choose_basis", "kmeans_rows"]

_METHODS = ("random", "kmeans", "leverage")

# A number of rows, with or without the method that chooses them, or the rows themselves.
Basis = int | tuple[str, int] | ArrayLike | None


def choose_basis(basis: Basis, kernel: Kernel, X: Matrix, seed: int, row_weight: Floats | None) -> Rows:
    """Return the rows of the reduced set: from their number, ``(method, number)``, or the rows themselves.

    Rows that weigh nothing are not chosen, as if they were not there.
    """
    n_rows = X.shape[0]
    method, size = _method_and_size(basis)
    check_choice("basis", method, _METHODS)
    if isinstance(size, (list, tuple)) or np.ndim(size) == 1:
        return _check_rows(as_array("basis", size), n_rows)
    if isinstance(size, bool) or not isinstance(size, (int, np.integer)) or not 1 <= size <= n_rows:
        raise InvalidInputError(
            f"basis={basis!r} is not a number of rows between 1 and {n_rows}.",
            f"use for example basis={min(n_rows, 500)}, ('kmeans', {min(n_rows, 500)}), or row indices.",
        )
    present = np.arange(n_rows) if row_weight is None else np.flatnonzero(row_weight)
    size = min(int(size), present.size)
    if method == "random":
        return present[_random_rows(present.size, size, seed)]
    if kernel.is_precomputed:
        raise InvalidInputError(
            f"basis={basis!r} needs the columns of X, which a precomputed kernel does not have.",
            "use a number, or row indices.",
        )
    rows = X if present.size == n_rows else X[present]
    if method == "kmeans":
        return present[kmeans_rows(rows, size, seed)]
    return present[_leverage_rows(kernel, rows, size, seed)]


def basis_size(basis: Basis, n_rows: int) -> int:
    """Return how many rows a reduced set will have; `choose_basis` checks it."""
    size = _method_and_size(basis)[1]
    if isinstance(size, (list, tuple)):
        return len(size)
    if np.ndim(size) == 1:
        return int(np.size(size))
    return int(size) if isinstance(size, (int, np.integer)) else n_rows


def _method_and_size(basis: Basis) -> tuple[str, ArrayLike]:
    if isinstance(basis, tuple) and len(basis) == 2 and isinstance(basis[0], str):
        return basis[0], basis[1]
    assert basis is not None
    return "random", basis


def _check_rows(rows: npt.NDArray[np.generic], n_rows: int) -> Rows:
    if rows.dtype.kind not in "iu" or rows.size == 0 or rows.min() < 0 or rows.max() >= n_rows:
        raise InvalidInputError(
            f"basis must hold row indices from 0 to {n_rows - 1}.",
            "pass integers, for example np.arange(200).",
        )
    if np.unique(rows).size != rows.size:
        raise InvalidInputError("basis names a row twice.", "pass np.unique(basis).")
    return rows.astype(np.int64)


def _random_rows(n_rows: int, size: int, seed: int) -> Rows:
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


def _leverage_rows(kernel: Kernel, X: Matrix, size: int, seed: int) -> Rows:
    """Choose rows with probability proportional to their ridge leverage, estimated on a random reduced set.

    The leverage of row i is ``z_i' (Z'Z + λI)^-1 z_i``; λ is an eigenvalue
    in the middle of those that matter, so that about half of `size` directions count as large.
    """
    n_rows = X.shape[0]
    rng = np.random.default_rng(seed)
    sketch = FeatureMap.of_basis(kernel, X[_random_rows(n_rows, min(n_rows, size), seed)])
    G = np.zeros((sketch.n_features, sketch.n_features))
    with large_algebra(sketch.n_features):
        for _, values in kernel.blocks(X, sketch.basis):
            Z = values @ sketch.projection
            G += Z.T @ Z
    eigenvalues, vectors = diagonalise(G, overwrite=True)
    penalty = max(float(eigenvalues[eigenvalues.size // 2]), 1e-10 * float(eigenvalues[-1]))
    whiten = sketch.projection @ (vectors / np.sqrt(np.maximum(eigenvalues, 0.0) + penalty))
    leverage = np.empty(n_rows)
    for rows, values in kernel.blocks(X, sketch.basis):
        leverage[rows] = np.square(values @ whiten).sum(axis=1)
    # Gumbel keys: the largest of log p + noise are a weighted choice without replacement.
    keys = np.log(np.maximum(leverage, np.finfo(np.float64).tiny)) + rng.gumbel(size=n_rows)
    return np.sort(np.argpartition(-keys, size - 1)[:size]).astype(np.int64)
