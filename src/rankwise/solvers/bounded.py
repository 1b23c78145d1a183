"""Losses whose coefficients have bounds: projected Newton steps, with a proved gap.

Coordinates that stand at a bound and are pushed further stay there; on the others Newton's equation is solved inexactly
by conjugate gradients, and the step is shortened along its projection until the objective falls enough (Bertsekas 1982,
Lin and Moré 1999). The gap is proved: as ``F(v) >= F(w) + g'(v - w) + α‖v - w‖²`` for every v, the minimum lies at most
``-Σ min_{v_i} g_i (v_i - w_i) + α (v_i - w_i)²`` below, each over the v_i that are allowed.

Coefficients may go without a penalty. Nothing then bounds how far away a minimum can be, so that the gap is proved
against the models in which they are at most `_REACH` times as large as here, or as where they would begin to matter.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
import numpy.typing as npt

from rankwise.arrays import Floats
from rankwise.objectives import QuadraticObjective
from rankwise.runtime.threads import large_algebra
from rankwise.solvers.solution import Monitor, Solution, Status

__all__ = [
    "MAX_ITER",
    "ROUNDING",
    "BoundedObjective",
    "Bounds",
    "bounded_gap",
    "minimise_bounded",
    "penalty_change",
    "polished",
]


class SmoothPoint(Protocol):
    """A smooth loss at one coefficient vector."""

    @property
    def value(self) -> Floats:
        """The loss."""

    @property
    def gradient(self) -> Floats:
        """Its gradient."""

    def hessian_product(self, v: Floats) -> Floats:
        """Apply the (generalised) Hessian."""


class BoundedObjective(Protocol):
    """A smooth convex loss of coefficients."""

    @property
    def n_features(self) -> int:
        """The number of coefficients."""

    @property
    def n_reads(self) -> int:
        """How many times the data were read so far."""

    def at(self, coef: Floats) -> SmoothPoint:
        """Evaluate at coefficients."""


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

    def held(self, coef: Floats, gradient: Floats, near: float | Floats) -> npt.NDArray[np.bool_]:
        """Tell which coefficients stand at a bound, or as near to it, and are pushed against it."""
        return ((coef <= self.lower + near) & (gradient > 0)) | ((coef >= self.upper - near) & (gradient < 0))


MAX_ITER = 1000
_FORCING = 0.1  # Newton's equation is solved to this share of the gradient
_FINER = 1e-3  # and to this one without a penalty: the gap then falls as the gradient, not as its square
_SUFFICIENT = 1e-4  # share of the predicted decrease that a step must achieve
_SHORTEST = 2.0**-40
_STEADY = 0.9  # share of the gap that may remain after a step whose decrease cannot be seen
_REACH = 10.0
_STRIDE = 10.0  # by how many times their size coefficients without a penalty may grow in one step
ROUNDING = 8 * np.finfo(np.float64).eps  # share of the loss that a gap may be off by


def minimise_bounded(
    objective: BoundedObjective,
    alpha: float,
    bounds: Bounds,
    *,
    tol: float = 1e-3,
    max_iter: int | None = None,
    start: Floats | None = None,
    monitor: Monitor | None = None,
    diagonal: Floats | None = None,
    enough: float = 0.0,
    units: Floats | None = None,
) -> Solution:
    """Minimise ``loss + α‖w‖²`` inside bounds until the gap is at most `tol` times the gain.

    Parameters
    ----------
    diagonal : (features,) float64, optional
        Of the Hessian of the loss, where it is known: conjugate gradients are preconditioned by it.
    enough : float
        A gap that is small enough, whatever the gain.
    units : (features,) float64, optional
        0 for coefficients with a penalty, and for those without one the size at which they begin to matter.
    """
    limit = MAX_ITER if max_iter is None else max_iter
    reads = objective.n_reads
    penalty, inverse = _penalty_and_inverse(alpha, diagonal, units)
    origin = bounds.projected(np.zeros(objective.n_features))
    coef = origin if start is None else bounds.projected(start)
    point = objective.at(coef)
    loss = float(point.value)
    at_origin = loss if start is None else float(objective.at(origin).value)
    decrease = at_origin - loss + penalty_change(coef, origin, penalty)
    history: list[float] = []
    status = Status.MAX_ITER
    while True:
        gradient = point.gradient + 2 * penalty * coef
        gap = bounded_gap(coef, gradient, alpha, bounds, units)
        history.append(gap)
        rounding = ROUNDING * max(abs(loss), abs(at_origin)) * (1.0 if units is None else _REACH)
        if gap <= max(tol * (gap + max(decrease, 0.0)), rounding, enough):
            status = Status.CONVERGED
        elif monitor is not None and monitor(coef, gap, len(history) - 1):
            status = Status.STOPPED
        if status is not Status.MAX_ITER or len(history) > limit:
            break
        # Those that are nearly at their bound count as there, so that a step is not cut short at once.
        near: float | Floats = min(1e-8, float(np.abs(coef - bounds.projected(coef - gradient)).max()))
        stride = None
        if units is not None:
            near = near * np.where(units > 0, units, 1.0)
            stride = np.where(units > 0, _STRIDE * np.maximum(units, np.abs(coef)), np.inf)
        is_held = bounds.held(coef, gradient, near)
        step = _newton_step(point, np.where(is_held, 0.0, gradient), penalty, ~is_held, inverse, stride)
        at_bound = np.where(gradient > 0, bounds.lower, bounds.upper)
        length = 1.0
        while length > _SHORTEST:
            trial = np.where(is_held, at_bound, bounds.projected(coef + length * step))
            trial_point = objective.at(trial)
            trial_loss = float(trial_point.value)
            # Of differences, because a large penalty hides gains of the loss.
            change = trial_loss - loss + penalty_change(coef, trial, penalty)
            predicted = float(gradient @ (trial - coef))
            if abs(predicted) <= rounding:
                # Values no longer tell, but slopes do.
                slope = trial_point.gradient + 2 * penalty * trial
                if bounded_gap(trial, slope, alpha, bounds, units) < _STEADY * gap:
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
    return Solution(
        coef,
        status,
        n_iter=len(history) - 1,
        n_reads=objective.n_reads - reads,
        certificate=history[-1],
        gain=history[-1] + max(decrease, 0.0),
        history=history,
    )


def _penalty_and_inverse(
    alpha: float, diagonal: Floats | None, units: Floats | None
) -> tuple[float | Floats, float | Floats]:
    """Return the penalty of each coefficient, and a preconditioner of Newton's equation: about an inverse diagonal."""
    if units is None:
        return alpha, 1.0 if diagonal is None else 1.0 / (diagonal + 2 * alpha)
    penalty = np.where(units > 0, 0.0, alpha)
    if diagonal is None:
        return penalty, np.where(units > 0, units**2, 1.0)
    curved = diagonal + 2 * penalty  # 0 for a column that says nothing and has no penalty
    return penalty, np.divide(1.0, curved, out=np.zeros_like(curved), where=curved > 0)


def penalty_change(before: Floats, after: Floats, penalty: float | Floats) -> float:
    """Return by how much the penalty grows from one point to another."""
    if isinstance(penalty, float):
        return penalty * float((after - before) @ (after + before))
    return float((penalty * (after - before)) @ (after + before))


def polished(
    solution: Solution,
    objective: QuadraticObjective,
    alpha: float,
    bounds: Bounds,
    units: Floats | None = None,
) -> Solution:
    """Solve for the coefficients that stand at no bound exactly, where that stays inside the bounds."""
    coef = solution.coef
    is_free = (coef > bounds.lower) & (coef < bounds.upper)
    fixed = np.where(is_free, 0.0, coef)
    matrix = objective.matrix()
    penalty = np.full(coef.size, alpha) if units is None else np.where(units > 0, 0.0, alpha)
    system = matrix[np.ix_(is_free, is_free)] + np.diag(penalty[is_free])
    exact = fixed.copy()
    try:
        wanted = (objective.rhs - matrix @ fixed)[is_free]
        with large_algebra(wanted.size):
            exact[is_free] = np.linalg.solve(system, wanted)
    except np.linalg.LinAlgError:  # two columns without a penalty are the same
        return solution
    gradient = objective.at(exact).gradient + 2 * penalty * exact
    gap = bounded_gap(exact, gradient, alpha, bounds, units)
    if not np.array_equal(bounds.projected(exact), exact) or not gap <= solution.certificate:
        return solution
    return replace(solution, coef=exact, status=Status.EXACT, certificate=gap)


def bounded_gap(
    coef: Floats, gradient: Floats, alpha: float, bounds: Bounds, units: Floats | None = None
) -> float:
    """Return how far below ``F(w)`` the minimum can be at most, by strong convexity; `units` as above."""
    if units is None:
        move = bounds.projected(coef - gradient / (2 * alpha)) - coef
        return max(-float(gradient @ move + alpha * (move @ move)), 0.0)
    is_out = units > 0
    reach = _REACH * np.maximum(units, np.abs(coef))
    end = coef - np.where(is_out, np.sign(gradient) * reach, gradient / (2 * alpha))
    move = bounds.projected(end) - coef
    return max(-float(gradient @ move + alpha * (move[~is_out] @ move[~is_out])), 0.0)


def _newton_step(
    point: SmoothPoint,
    gradient: Floats,
    penalty: float | Floats,
    is_free: npt.NDArray[np.bool_],
    inverse: float | Floats,
    stride: Floats | None,
) -> Floats:
    """Solve Newton's equation among the free coordinates; end where a step would be longer than `stride` somewhere.

    Without a penalty there may be next to no curvature, and then no end to a step.
    """
    step = np.zeros_like(gradient)
    residual = -gradient
    solved = inverse * residual
    direction = solved.copy()
    rho = float(residual @ solved)
    target = (_FORCING if stride is None else _FINER) ** 2 * rho
    for _ in range(2 * gradient.size + 10):
        if rho <= target:
            break
        image = np.where(is_free, point.hessian_product(direction) + 2 * penalty * direction, 0.0)
        curvature = float(direction @ image)
        share = rho / curvature if curvature > 0 else np.inf
        if stride is not None and share > (longest := _longest(step, direction, stride)):
            return step + longest * direction
        step += share * direction
        residual -= share * image
        solved = inverse * residual
        before, rho = rho, float(residual @ solved)
        direction = solved + rho / before * direction
    return step


def _longest(step: Floats, direction: Floats, stride: Floats) -> float:
    """Return how far a step can be led on before it is longer than `stride` somewhere."""
    moves = direction != 0
    left = stride[moves] - step[moves] * np.sign(direction[moves])
    return float((left / np.abs(direction[moves])).min(initial=np.inf))
