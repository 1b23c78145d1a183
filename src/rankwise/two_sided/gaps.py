"""Tables with gaps, and symmetric or antisymmetric kernels: products with the known entries (edges) only.

The score of an edge is ``z_i'θ z_k``: with the vec trick, scores of all edges and the transposed product take O(edges ×
features), and the Kronecker matrix is never made. (Anti)symmetric functions of two objects of one set have an
(anti)symmetric θ, which is the kernel ``½ (k(a, c) k(b, d) ± k(a, d) k(b, c))``.

Lanczos' process, which conjugate gradients are a short form of, runs in the space of θ, or of the dual coefficients
where θ is much larger. Its basis serves every alpha: after k steps the model is ``Q (T + alpha I)⁻¹ ‖r‖ e₁``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import scipy.linalg
import scipy.sparse as sp
from sklearn.utils import check_random_state

from rankwise.arrays import Bools, Floats, Ints, RandomSource
from rankwise.exceptions import InvalidInputError, NoPairsError
from rankwise.metrics import Evaluator, Metric
from rankwise.solvers.krylov import Lanczos
from rankwise.two_sided.sides import require_memory

_BLOCK = 256  # edges whose features are copied at a time: 0.2 s for 10⁶ edges, 0.6 s with blocks of 16,384
_LONG = (
    32  # edges of a row from which a product for each row is faster: 0.14 s for 10⁶ edges, 100 in each row
)
# How many times as large as the dual coefficients θ may be: labels that no model explains are as large as 1 / alpha in
# the dual, and their rounding errors spoil the rest.
_LARGER = 4
_TINY = np.finfo(np.float64).tiny


@dataclass(frozen=True)
class Edges:
    """Known entries of a table, sorted by row.

    Attributes
    ----------
    rows, columns : (edges,) int64
    labels : (edges,) float64
    query : (edges,) int64
        The ranking that each edge belongs to.
    """

    rows: Ints
    columns: Ints
    labels: Floats
    query: Ints

    @classmethod
    def of(cls, Y: Any, ranked: str) -> Edges:
        """Read a dense table, in which NaN is a gap, or the stored entries of a sparse one."""
        if sp.issparse(Y):
            rows = np.repeat(np.arange(Y.shape[0]), np.diff(Y.indptr))
            columns, labels = Y.indices, Y.data
        else:
            rows, columns = np.nonzero(~np.isnan(Y))
            labels = Y[rows, columns]
        query = {"columns": rows, "rows": columns}.get(ranked, np.zeros_like(rows))
        rows, columns, query = (one.astype(np.int64) for one in (rows, columns, query))
        return cls(rows, columns, labels.astype(np.float64), query)

    def part(self, chosen: Bools) -> Edges:
        """Return some of the edges."""
        return Edges(self.rows[chosen], self.columns[chosen], self.labels[chosen], self.query[chosen])


def known_scores(rows: Floats, theta: Floats, columns: Floats, edges: Edges) -> Floats:
    """Return the scores of edges, for features of all rows and all columns."""
    left, n_edges = rows @ theta, edges.rows.size
    starts = np.flatnonzero(np.diff(edges.rows, prepend=-1))
    by_row = n_edges >= _LONG * starts.size
    scores = np.empty(n_edges)
    for first, last in pairwise([*(starts if by_row else range(0, n_edges, _BLOCK)), n_edges]):
        near, own = columns[edges.columns[first:last]], edges.rows[first:last]
        scores[first:last] = near @ left[own[0]] if by_row else np.einsum("eb,eb->e", near, left[own])
    return scores


class Run:
    """Lanczos' process for the edges that a model is fitted on.

    Parameters
    ----------
    rows, columns : (objects, features) float64
        Features of all rows and all columns.
    edges : Edges
    pair_kernel : {"kronecker", "symmetric", "antisymmetric"}
    max_iter : int
        Steps to take at most.
    """

    def __init__(self, rows: Floats, columns: Floats, edges: Edges, pair_kernel: str, max_iter: int) -> None:
        self.rows, self.columns, self.edges = rows, columns, edges
        self._sign = {"kronecker": 0, "symmetric": 1, "antisymmetric": -1}[pair_kernel]
        self._shape = (rows.shape[1], columns.shape[1])
        self._counts = np.maximum(np.bincount(edges.query), 1)
        ends = np.cumsum(np.bincount(edges.rows, minlength=rows.shape[0]))
        parts = (np.empty(edges.rows.size), edges.columns, np.concatenate([[0], ends]))
        self._table = sp.csr_array(parts, shape=(rows.shape[0], columns.shape[0]))
        size = self._shape[0] * self._shape[1]
        self.is_primal = size <= _LARGER * edges.rows.size
        size = size if self.is_primal else edges.rows.size
        self.max_iter = min(max_iter, size)
        n_bytes = 8.0 * size * self.max_iter
        require_memory(n_bytes, f"A basis of {self.max_iter:,} vectors", "use a smaller max_iter.")
        start = self._centred(edges.labels)
        start = self._gathered(start).ravel() if self.is_primal else start
        self._lanczos = Lanczos(start[:, None])

    @property
    def n_steps(self) -> int:
        """Steps taken."""
        return self._lanczos.n_steps

    def _centred(self, values: Floats) -> Floats:
        means = np.bincount(self.edges.query, values) / self._counts
        return np.asarray(values - means[self.edges.query])

    def _gathered(self, dual: Floats) -> Floats:
        """Return θ of dual coefficients."""
        self._table.data = dual
        theta = self.rows.T @ (self._table @ self.columns)
        return np.asarray((theta + self._sign * theta.T) / 2 if self._sign else theta)

    def _theta(self, vector: Floats) -> Floats:
        return vector.reshape(self._shape) if self.is_primal else self._gathered(vector)

    def weights(self, alphas: Floats, steps: int) -> Floats:
        """Return the coefficients of the first basis vectors, (steps, alphas)."""
        if steps == 0:
            return np.zeros((0, alphas.size))
        diagonal, beside = self._lanczos.tridiagonal(0, steps)
        values, vectors = scipy.linalg.eigh_tridiagonal(diagonal, beside[:-1])
        start = self._lanczos.start_norm * vectors[0]
        filtered = start[:, None] / (np.maximum(values, 0.0)[:, None] + alphas)
        return np.asarray(vectors @ filtered)

    def residual(self, alpha: float) -> float:
        """Return the norm of the residual, relative to the right-hand side."""
        if not self.n_steps:  # the right-hand side is zero
            return 0.0
        last = self.weights(np.array([alpha]), self.n_steps)[-1, 0]
        return float(abs(self._lanczos.off_diagonal[-1] * last)[0] / self._lanczos.start_norm[0])

    def model(self, alpha: float) -> Floats:
        """Return θ of an alpha after the steps taken."""
        weights = self.weights(np.array([alpha]), self.n_steps)[:, 0]
        return self._theta(self._lanczos.combine(0, weights))

    def steps(self, alpha: float, tol: float) -> Iterator[Floats]:
        """Take steps until an alpha has converged, and yield θ of each new basis vector."""
        while self.n_steps < self.max_iter and (vector := self._lanczos.vectors[:, 0]).any():
            theta = self._theta(vector)
            scores = self._centred(known_scores(self.rows, theta, self.columns, self.edges))
            image = self._gathered(scores).ravel() if self.is_primal else scores
            self._lanczos.advance(image[:, None])
            yield theta
            if self.residual(alpha) <= tol:
                return


Split = tuple[Bools, Bools]  # training and test edges


def make_folds(
    edges: Edges, held_out: str, n_folds: int, shape: tuple[int, int], seed: RandomSource, *, one_set: bool
) -> list[Split]:
    """Return the training and test edges of folds of rows, columns, both, or entries.

    A fold of both tests the edges between some rows and some columns, and trains on those that touch neither. In one
    set with itself an object is a row and a column, so training leaves out all edges that touch the fold.
    """
    rng = check_random_state(seed)

    def deal(size: int) -> Ints:
        return np.asarray(rng.permutation(size) % n_folds)

    if held_out == "entries":
        ends = np.array([edges.rows, edges.columns])
        if one_set:  # an entry and its mirror image are held out together
            ends.sort(axis=0)
        _, entry = np.unique(ends[0] * shape[1] + ends[1], return_inverse=True)
        fold = deal(int(entry.max()) + 1)[entry]
        return [(fold != one, fold == one) for one in range(n_folds)]
    of_rows = deal(shape[0])
    of_columns = of_rows if one_set else deal(shape[1])
    row, column = of_rows[edges.rows], of_columns[edges.columns]
    if held_out == "both" and not one_set:
        pairs = np.ndindex(n_folds, n_folds)
        return [((row != i) & (column != k), (row == i) & (column == k)) for i, k in pairs]
    splits = []
    for one in range(n_folds):
        in_row, in_column = row == one, column == one
        test = {"rows": in_row, "columns": in_column, "both": in_row & in_column}[held_out]
        splits.append((~(in_row | in_column) if one_set else ~test, test))
    return splits


class Fold(NamedTuple):
    """A run on training edges, with the scores that its basis gives to test edges."""

    run: Run
    evaluator: Evaluator
    scores: Floats

    def mixed(self, alphas: Floats, step: int) -> Floats:
        """Return the scores of alphas after a step, or after the last one; equal objects tie."""
        step = min(step, self.run.n_steps)
        mixed = self.scores[:, :step] @ self.run.weights(alphas, step)
        return np.asarray(np.round(mixed / (np.abs(mixed).max(axis=0) + _TINY), 12))


def figures(folds: list[Fold], size: int, alpha: float, step: int) -> Floats:
    """Return the held-out metric of each ranking, the mean of its folds; NaN if no fold has a value."""
    found = np.full((len(folds), size), np.nan)
    for values, fold in zip(found, folds, strict=True):
        one = fold.evaluator.per_query(fold.mixed(np.array([alpha]), step)[:, 0])
        values[one.ids] = one.values
    counts = (~np.isnan(found)).sum(axis=0)
    return np.asarray(np.where(counts, np.nansum(found, axis=0) / np.maximum(counts, 1), np.nan))


def surface(
    features: tuple[Floats, Floats],
    edges: Edges,
    splits: list[Split],
    query: Ints,
    metric: Metric,
    alphas: Floats,
    settings: tuple[str, int, float],
    reach: Callable[[float], None],
) -> tuple[Floats, list[Fold]]:
    """Return the held-out metric of every alpha after every iteration, and the folds.

    Parameters
    ----------
    query : (edges,) int64
        The rankings in which held-out edges are scored.
    settings : tuple
        The pair kernel, the most iterations, and the tolerance at which the smallest alpha has converged.
    """
    pair_kernel, max_iter, tol = settings
    n_bytes = 8.0 * max_iter * edges.rows.size
    require_memory(n_bytes, f"Held-out scores of {max_iter:,} iterations", "use a smaller max_iter.")
    folds: list[Fold] = []
    for at, (train, test) in enumerate(splits):
        try:
            evaluator = metric.prepare(edges.labels[test], query[test])
        except InvalidInputError:  # no test edges, or none that differ
            continue
        run = Run(*features, edges.part(train), pair_kernel, max_iter)
        held, scores = edges.part(test), []
        for theta in run.steps(alphas[0], tol):
            scores.append(known_scores(features[0], theta, features[1], held))
            reach((at + run.n_steps / run.max_iter) / len(splits))
        columns = np.column_stack(scores) if scores else np.empty((held.rows.size, 0))
        folds.append(Fold(run, evaluator, columns))
    if not folds:
        raise NoPairsError("No fold has two different held-out entries.", "use fewer folds, or another cv.")
    weight = np.array([fold.evaluator.shares.sum() for fold in folds])
    n_steps = max(1, *(fold.run.n_steps for fold in folds))
    table = [
        weight @ np.array([fold.evaluator.many(fold.mixed(alphas, step)) for fold in folds]) / weight.sum()
        for step in range(1, n_steps + 1)
    ]
    return np.array(table).T, folds
