"""The regularisation surface of a kernel, from products with it alone.

Lanczos on the symmetric ``H = FKF'`` started at t builds the space of the dual variables b. In the kernel's own space
the functions ``Z'F'b`` are the Krylov space that conjugate gradients on ``(Z'LZ + αI) w = Z'r`` builds, and its
iterates are the ones wanted: the minimum of the objective over the space, which is what early stopping regularises
by. They come from the same run. With ``U'HU = T = Q diag(θ) Q'`` and β the length of the next step,
``b = U Q θ^-1/2 y`` where

    (diag(θ) + β² hh' + αI) y = ‖t‖ θ^1/2 Q'e_1          h = θ^-1/2 Q'e_k

so all alphas cost two decompositions of steps × steps per iteration; rows are scored by their scores under the basis
vectors. (A Cholesky factor of T would do in exact arithmetic; where t is mostly outside the kernel's range, T is nearly
singular from the first steps on, and the factor's rounding errors grow exponentially.) Conjugate gradients on
``(H + αI) b = t`` itself, the Galerkin solution of the same space, would minimise the error instead of the objective,
and diverge where labels cannot be interpolated and alpha is 0.

An alpha has converged by the relative residual of the normal equations in the kernel's space, as in a linear model:
``‖F'(t - (H + αI) b)‖_K / ‖F't‖_K``.
"""

from __future__ import annotations

import numpy as np
import scipy.linalg

from rankwise.arrays import Floats
from rankwise.selection.krylov_run import KrylovRun
from rankwise.selection.tables import Surface

__all__ = ["DualSurfaceRun"]


class _Projection:
    """``T`` of one column, a step at a time, and the projected problems of all alphas."""

    def __init__(self, start_norm: float) -> None:
        self._start = start_norm
        self._diagonal: list[float] = []
        self._off_diagonal: list[float] = []  # the last one joins the last step to the next
        self._ended = start_norm == 0

    def add(self, a: float, beta_next: float) -> None:
        """Take in a step of Lanczos."""
        if not self._ended:
            self._diagonal.append(a)
            self._off_diagonal.append(beta_next)
            self._ended = beta_next == 0

    def extremes(self) -> tuple[float, float]:
        """Return the smallest and the largest Ritz value: the spectrum reaches at least so far."""
        if not self._diagonal:
            return 0.0, 0.0
        theta = scipy.linalg.eigvalsh_tridiagonal(
            np.array(self._diagonal), np.array(self._off_diagonal[:-1]), check_finite=False
        )
        return float(theta[0]), float(theta[-1])

    def solve(self, alphas: Floats, steps: int) -> tuple[Floats, Floats]:
        """Return the weights of the basis vectors, (steps, alphas), and the relative residuals."""
        size = min(steps, len(self._diagonal))
        weights = np.zeros((steps, alphas.size))
        if size == 0:
            return weights, np.zeros(alphas.size)
        a, beta = np.array(self._diagonal[:size]), np.array(self._off_diagonal[:size])
        theta, Q = scipy.linalg.eigh_tridiagonal(a, beta[:-1], check_finite=False)
        # Ritz values that rounding cannot tell from zero: functions that are zero everywhere.
        kept = theta > 10 * size * np.finfo(np.float64).eps * max(theta[-1], 0.0)
        if not kept.any():
            return weights, np.zeros(alphas.size)
        root = np.sqrt(theta[kept])
        last, first = Q[-1, kept] / root, self._start * root * Q[0, kept]
        values, vectors = scipy.linalg.eigh(
            np.diag(theta[kept]) + np.outer(beta[-1] * last, beta[-1] * last), check_finite=False
        )
        shifted = np.maximum(values, 0.0)[:, None] + alphas
        y = vectors @ ((vectors.T @ first)[:, None] / np.maximum(shifted, np.finfo(np.float64).tiny))
        weights[:size] = (Q[:, kept] / root) @ y
        # What is left points along the step to come, whose length the largest eigenvalue bounds.
        bound = float((a + beta + np.append(0.0, beta[:-1])).max())
        left = beta[-1] * np.abs(last @ y) * np.sqrt(bound)
        return weights, np.asarray(left / (self._start * np.sqrt(a[0])))


class DualSurfaceRun(KrylovRun):
    """In the dual variables of a kernel; scores are kept in any case.

    Its system has right-hand sides ``t``, products ``FKF'v`` and models ``F'b``.
    """

    def _begin(self, alphas: Floats) -> None:
        self._models = [_Projection(float(norm)) for norm in self.space.start_norm]
        self._scores: list[list[Floats]] = [[] for _ in self._system.row_columns]  # by output, then by step

    @property
    def extremes(self) -> tuple[float, float]:
        """How far the spectrum of ``FKF'`` reaches at least, both ways; negative directions take no part."""
        found = [column.extremes() for column in self._models]
        return min(low for low, _ in found), max(high for _, high in found)

    def _weights(self, column: int, alpha: float, steps: int) -> Floats:
        return self._models[column].solve(np.array([alpha]), steps)[0][:, 0]

    def _step(self) -> None:
        image, row_scores = self._system.multiply(self.space.vectors)
        self.space.advance(image)
        for column, (a, beta) in enumerate(
            zip(self.space.diagonal[-1], self.space.off_diagonal[-1], strict=True)
        ):
            self._models[column].add(float(a), float(beta))
        for output, surface in enumerate(self.surfaces):
            self._scores[output].append(row_scores[output])
            self._record(output, self.space.n_steps, surface)

    def widen(self, alphas: Floats) -> None:
        """Add alphas to the tables."""
        for output, surface in enumerate(self.surfaces):
            added = Surface(alphas, surface.tol)
            for step in range(1, self.space.n_steps + 1):
                self._record(output, step, added)
            surface.absorb(added)

    def _record(self, output: int, steps: int, surface: Surface) -> None:
        """Score an output after some steps."""
        active = surface.n_active
        if active == 0:
            surface.repeat()
            return
        # Rows of an output are scored by its own column, or by the column of their fold.
        row_column = self._system.row_columns[output]
        columns = np.unique(row_column) if row_column.size else np.array([output])
        solved = [self._models[column].solve(surface.alphas, steps) for column in columns]
        table = np.array(self._scores[output][:steps])
        scores = np.empty((active, row_column.size))
        for column, (weights, _) in zip(columns, solved, strict=True):
            rows = row_column == column
            scores[:, rows] = weights[:, :active].T @ table[:, rows]
        surface.record(self._system.errors(output, scores), np.array([found for _, found in solved]))
