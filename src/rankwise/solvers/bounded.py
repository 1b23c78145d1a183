"""Losses whose coefficients have bounds: projected Newton steps, with a proved gap.

Coordinates that stand at a bound and are pushed further stay there; on the others Newton's equation is solved inexactly
by conjugate gradients, and the step is shortened along its projection until the objective falls enough (Bertsekas 1982,
Lin and Moré 1999). The gap is proved: as ``F(v) >= F(w) + g'(v - w) + α‖v - w‖²`` for every v, the minimum lies at most
``-Σ min_{v_i} g_i (v_i - w_i) + α (v_i - w_i)²`` below, each over the v_i that are allowed.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import numpy.typing as npt

from rankwise.arrays import Floats
from rankwise.objectives import (
    MarginObjective,
    MarginPoint,
    MatrixQuadratic,
    QuadraticObjective,
    QuadraticPoint,
)
from rankwise.solvers.direct import DirectFactor
from rankwise.solvers.krylov import newton_step
from rankwise.solvers.solution import Monitor, Solution, Status


@dataclass(frozen=True)
class Bounds:
    """The bounds of each coefficient; infinite for free coefficients."""

    lower: Floats
    upper: Floats

    @classmethod
    def not_negative(cls, chosen: npt.NDArray[np.bool_]) -> Bounds:
        """Return the bounds of coefficients, some of which must not be negative."""
        return cls(np.where(chosen, 0.0, -np.inf), np.full(chosen.size, np.inf))

    def projected(self, coef: Floats) -> Floats:
        """Return the nearest coefficients that are allowed."""
        return np.clip(coef, self.lower, self.upper)

    def held(self, coef: Floats, gradient: Floats, near: float) -> npt.NDArray[np.bool_]:
        """Tell which coefficients stand at a bound, or as near to it, and are pushed against it."""
        return ((coef <= self.lower + near) & (gradient > 0)) | ((coef >= self.upper - near) & (gradient < 0))


_MAX_ITER = 1000
_FORCING = 0.1  # Newton's equation is solved to this share of the gradient
_SUFFICIENT = 1e-4  # share of the predicted decrease that a step must achieve
_SHORTEST = 2.0**-40
_STEADY = 0.9  # share of the gap that may remain after a step whose decrease cannot be seen
_ROUNDING = 8 * np.finfo(np.float64).eps  # share of the loss that a gap may be off by


def minimise_bounded(
    objective: QuadraticObjective | MarginObjective,
    alpha: float,
    bounds: Bounds,
    *,
    tol: float = 1e-3,
    max_iter: int | None = None,
    start: Floats | None = None,
    monitor: Monitor | None = None,
    diagonal: Floats | None = None,
) -> Solution:
    """Minimise ``loss + α‖w‖²`` inside bounds until the gap is at most `tol` times the gain.

    Parameters
    ----------
    diagonal : (features,) float64, optional
        Of the Hessian of the loss, where it is known: conjugate gradients are preconditioned by it.
    """
    limit = _MAX_ITER if max_iter is None else max_iter
    inverse: float | Floats = 1.0 if diagonal is None else 1.0 / (diagonal + 2 * alpha)
    origin = bounds.projected(np.zeros(objective.n_features))
    coef = origin if start is None else bounds.projected(start)
    point = objective.at(coef)
    loss = float(point.value)
    at_origin = loss if start is None else float(objective.at(origin).value)
    decrease = at_origin - loss + _penalty_change(coef, origin, alpha)
    history: list[float] = []
    status = Status.MAX_ITER
    while True:
        gradient = point.gradient + 2 * alpha * coef
        gap = bounded_gap(coef, gradient, alpha, bounds)
        history.append(gap)
        rounding = _ROUNDING * max(abs(loss), abs(at_origin))
        if gap <= max(tol * (gap + max(decrease, 0.0)), rounding):
            status = Status.CONVERGED
        elif monitor is not None and monitor(coef, gap, len(history) - 1):
            status = Status.STOPPED
        if status is not Status.MAX_ITER or len(history) > limit:
            break
        # Those that are nearly at their bound count as there, so that a step is not cut short at once.
        near = min(1e-8, float(np.abs(coef - bounds.projected(coef - gradient)).max()))
        is_held = bounds.held(coef, gradient, near)
        step = newton_step(
            partial(_product, point, ~is_held, alpha),
            np.where(is_held, 0.0, gradient),
            partial(np.multiply, inverse),
            forcing=_FORCING,
        ).step
        at_bound = np.where(gradient > 0, bounds.lower, bounds.upper)
        length = 1.0
        while length > _SHORTEST:
            trial = np.where(is_held, at_bound, bounds.projected(coef + length * step))
            trial_point = objective.at(trial)
            trial_loss = float(trial_point.value)
            # Of differences, because a large penalty hides gains of the loss.
            change = trial_loss - loss + _penalty_change(coef, trial, alpha)
            predicted = float(gradient @ (trial - coef))
            if abs(predicted) <= rounding:
                # Values no longer tell, but slopes do.
                slope = trial_point.gradient + 2 * alpha * trial
                if bounded_gap(trial, slope, alpha, bounds) < _STEADY * gap:
                    break
                length = 0.0
            elif (
                predicted < 0 and change <= _SUFFICIENT * predicted
            ):  # a step cut off at the bounds may lead uphill
                break
            length /= 2
        else:
            status = Status.STAGNATED
            break
        coef, point, loss, decrease = trial, trial_point, trial_loss, decrease - change
    return Solution.proved(coef, status, history, max(decrease, 0.0))


def _product(
    point: QuadraticPoint | MarginPoint, is_free: npt.NDArray[np.bool_], alpha: float, v: Floats
) -> tuple[Floats, Floats]:
    """Apply the Hessian of the objective among the free coordinates."""
    return np.where(is_free, point.hessian_product(v) + 2 * alpha * v, 0.0), v


def _penalty_change(before: Floats, after: Floats, alpha: float) -> float:
    """Return by how much the penalty grows from one point to another."""
    return alpha * float((after - before) @ (after + before))


def polished(solution: Solution, objective: QuadraticObjective, alpha: float, bounds: Bounds) -> Solution:
    """Solve for the coefficients that stand at no bound exactly, where that stays inside the bounds."""
    coef = solution.coef
    is_free = (coef > bounds.lower) & (coef < bounds.upper)
    fixed = np.where(is_free, 0.0, coef)
    matrix = objective.matrix()
    exact = fixed.copy()
    if is_free.any():
        inner = MatrixQuadratic(matrix[np.ix_(is_free, is_free)], (objective.rhs - matrix @ fixed)[is_free])
        exact[is_free] = DirectFactor(inner).solve(alpha).coef
    gap = bounded_gap(exact, objective.at(exact).gradient + 2 * alpha * exact, alpha, bounds)
    if not np.array_equal(bounds.projected(exact), exact) or not gap <= solution.certificate:
        return solution
    return replace(solution, coef=exact, status=Status.EXACT, certificate=gap)


def bounded_gap(coef: Floats, gradient: Floats, alpha: float, bounds: Bounds) -> float:
    """Return how far below ``F(w)`` the minimum can be at most, by strong convexity."""
    move = bounds.projected(coef - gradient / (2 * alpha)) - coef
    return max(-float(gradient @ move + alpha * (move @ move)), 0.0)
