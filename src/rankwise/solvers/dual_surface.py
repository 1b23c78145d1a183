"""The regularisation surface of a kernel, from products with it alone.

Lanczos on the symmetric ``K̃ = FKF'`` started at t builds the space of the dual variables b. In the kernel's own space the
functions ``Z'F'b`` are the Krylov space that conjugate gradients on ``(Z'LZ + αI) w = Z'r`` builds, and its iterates are
the ones wanted: the minimum of the objective over the space, which is what early stopping regularises by. They come from the
same run. With ``U'K̃U = T = BB'`` (B lower bidiagonal) and B̂ that matrix with the next row,

    (B̂'B̂ + αI) y = B̂' ‖t‖ e_1          b = U B'^-1 y

so an alpha costs O(steps) an iteration, and rows are scored by their scores under the basis vectors. Conjugate gradients
on ``(K̃ + αI) b = t`` itself, the Galerkin solution of the same space, would minimise the error instead of the objective, and
diverge where labels cannot be interpolated and alpha is 0.

Converged is an alpha by the relative residual of the normal equations in the kernel's space, which is that of the linear
model: ``‖F'(t - (K̃ + αI) b)‖_K / ‖F't‖_K``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np
import scipy.linalg

from rankwise.pairs.graph import Floats
from rankwise.solvers.lanczos import Lanczos, solve_tridiagonal
from rankwise.solvers.surface import Surface, System

__all__ = ["DualSurfaceRun", "DualSystem"]

# A pivot below this share of the largest one is rounding: the space of the lane is complete.
_ROUNDING = 1e-13


class DualSystem(System, Protocol):
    """A `System` of dual variables: its right-hand sides are ``t``, its products ``K̃v``."""

    def dual_coefficients(self, lane: int, b: Floats) -> Floats:
        """Return ``F'b`` of a lane: what the kernel's columns are multiplied by."""


class _Bidiagonal:
    """``T = BB'`` of one lane, a step at a time."""

    def __init__(self, start_norm: float) -> None:
        self._start = start_norm
        self._pivots: list[float] = []  # the diagonal of B
        self._below: list[float] = []  # what stands below it; the last one belongs to the next row
        self._ended = start_norm == 0

    def add(self, a: float, beta_next: float) -> None:
        """Take in a step of Lanczos."""
        if self._ended:
            return
        square = a - (self._below[-1] ** 2 if self._below else 0.0)
        largest = max((pivot * pivot for pivot in self._pivots), default=abs(a))
        if square <= _ROUNDING * largest:
            self._ended = True
            return
        self._pivots.append(square**0.5)
        self._below.append(beta_next / self._pivots[-1])
        self._ended = beta_next == 0

    def solve(self, alphas: Floats, steps: int) -> tuple[Floats, Floats]:
        """Return the weights of the basis vectors, (steps, alphas), and the relative residuals."""
        size = min(steps, len(self._pivots))
        weights = np.zeros((steps, alphas.size))
        if size == 0:
            return weights, np.zeros(alphas.size)
        pivot, below = np.array(self._pivots[:size]), np.array(self._below[:size])
        diagonal, off_diagonal = pivot**2 + below**2, pivot[1:] * below[:-1]
        y = self._start * pivot[0] * np.column_stack(
            [solve_tridiagonal(diagonal + alpha, off_diagonal) for alpha in alphas]
        )
        bands = np.zeros((2, size))  # of B'
        bands[1], bands[0, 1:] = pivot, below[:-1]
        x = scipy.linalg.solve_banded((0, 1), bands, y, check_finite=False)
        weights[:size] = x
        if self._ended and size == len(self._pivots):
            return weights, np.zeros(alphas.size)  # the space is complete
        # t - (K̃ + αI)Ux in the basis of one more step, by B and its transpose; then its norm in the kernel's space,
        # where the pivot to come is bounded by the largest eigenvalue, and that by what is known of T.
        rest = np.zeros((size + 1, alphas.size))
        rest[:size] = pivot[:, None] * y + alphas * x
        rest[1:] += below[:, None] * y
        rest[0] -= self._start
        image = pivot[:, None] * rest[:-1] + below[:, None] * rest[1:]
        a, beta = pivot**2 + np.append(0.0, below[:-1]) ** 2, pivot * below
        bound = float((a + beta + np.append(0.0, beta[:-1])).max())
        norm = np.sqrt(np.square(image).sum(axis=0) + bound * rest[-1] ** 2)
        return weights, norm / (self._start * pivot[0])


class DualSurfaceRun:
    """As `rankwise.solvers.surface.SurfaceRun`, in the dual variables of a kernel.

    Parameters
    ----------
    system : DualSystem
    alphas : (alphas,) float64
        In increasing order.
    tol : float
    keep_basis : bool
        Whether the basis is stored (see `Lanczos`).
    """

    def __init__(self, system: DualSystem, alphas: Floats, *, tol: float, keep_basis: bool = True) -> None:
        self._system = system
        self._alphas = alphas
        self.space = Lanczos(system.rhs, keep_basis=keep_basis)
        self._lanes = [_Bidiagonal(float(norm)) for norm in self.space.start_norm]
        self._scores: list[list[Floats]] = [[] for _ in system.row_lanes]  # by output, then by step
        self.surfaces = [Surface(alphas, tol) for _ in system.row_lanes]

    def advance(
        self,
        is_done: Callable[[Sequence[Surface]], bool],
        max_iter: int,
        on_step: Callable[[Sequence[Surface]], None] | None = None,
    ) -> bool:
        """Take steps until the rule is satisfied, every alpha has converged, or `max_iter` steps are taken."""
        while not is_done(self.surfaces) and any(surface.n_active for surface in self.surfaces):
            if self.space.n_steps >= max_iter:
                return False
            self._step()
            if on_step is not None:
                on_step(self.surfaces)
        return True

    def coefficients(self, lane: int, alpha: float, steps: int) -> Floats:
        """Return the dual coefficients of an alpha after some steps."""
        weights = self._lanes[lane].solve(np.array([alpha]), steps)[0][:, 0]
        if self.space.keep_basis:
            b = self.space.combine(lane, weights)
        else:
            b = self.space.replay(lambda v: self._system.multiply(v)[0], lane, weights)
        return self._system.dual_coefficients(lane, b)

    def _step(self) -> None:
        image, row_scores = self._system.multiply(self.space.vectors)
        self.space.advance(image)
        for lane, (a, beta) in enumerate(
            zip(self.space.diagonal[-1], self.space.off_diagonal[-1], strict=True)
        ):
            self._lanes[lane].add(float(a), float(beta))
        steps = self.space.n_steps
        for output, surface in enumerate(self.surfaces):
            self._scores[output].append(row_scores[output])
            active = surface.n_active
            if active == 0:
                surface.repeat()
                continue
            # Rows of an output are scored by its own lane, or by the lane of their fold.
            row_lane = self._system.row_lanes[output]
            lanes = np.unique(row_lane) if row_lane.size else np.array([output])
            solved = [self._lanes[lane].solve(self._alphas, steps) for lane in lanes]
            table = np.array(self._scores[output])
            scores = np.empty((active, row_lane.size))
            for lane, (weights, _) in zip(lanes, solved, strict=True):
                rows = row_lane == lane
                scores[:, rows] = weights[:, :active].T @ table[:, rows]
            residual = np.array([found for _, found in solved])
            surface.record(self._system.errors(output, scores), residual)
