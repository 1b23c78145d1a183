"""Losses whose coefficients have bounds: projected Newton steps, with a proved gap.

Coordinates that stand at a bound and are pushed further stay there; on the others Newton's equation is solved inexactly
by conjugate gradients, and the step is shortened along its projection until the objective falls enough (Bertsekas 1982,
Lin and Moré 1999). The gap is proved: as ``F(v) >= F(w) + g'(v - w) + α‖v - w‖²`` for every v, the minimum lies at most
``-Σ min_{v_i} g_i (v_i - w_i) + α (v_i - w_i)²`` below, each over the v_i that are allowed.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
import numpy.typing as npt

from rankwise.arrays import Floats
from rankwise.objectives import HingeObjective, HingePoint, QuadraticObjective, SmoothPoint
from rankwise.solvers.solution import Monitor, Solution, Status

__all__ = [
    "BoundedObjective",
    "Bounds",
    "bounded_gap",
    "minimise_bounded",
    "minimise_bounded_hinge",
    "polished",
]


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
    """Between what each coefficient must stay; infinite where nothing is asked."""

    lower: Floats
    upper: Floats

    @classmethod
    def not_negative(cls, chosen: npt.NDArray[np.bool_]) -> Bounds:
        """Return the bounds of coefficients of which some must not be negative."""
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
_AIM = 0.25  # share of the gap aimed at that rounding the kink of a hinge off may cost in the end
_SOLVED = 0.02  # share of its width to which a rounded hinge is minimised before it is narrowed
_NARROWEST = 1e-9  # in units of the mean margin
_ROUNDING = 8 * np.finfo(np.float64).eps  # share of the loss that a gap may be off by
_TINY = np.finfo(np.float64).tiny


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
) -> Solution:
    """Minimise ``loss + α‖w‖²`` inside bounds until the gap is at most `tol` times the gain.

    Parameters
    ----------
    diagonal : (features,) float64, optional
        Of the Hessian of the loss, where it is known: conjugate gradients are preconditioned by it.
    enough : float
        A gap that is small enough, whatever the gain.
    """
    limit = _MAX_ITER if max_iter is None else max_iter
    reads = objective.n_reads
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
        if gap <= max(tol * (gap + max(decrease, 0.0)), rounding, enough):
            status = Status.CONVERGED
        elif monitor is not None and monitor(coef, gap, len(history) - 1):
            status = Status.STOPPED
        if status is not Status.MAX_ITER or len(history) > limit:
            break
        # Those that are nearly at their bound count as there, so that a step is not cut short at once.
        near = min(1e-8, float(np.abs(coef - bounds.projected(coef - gradient)).max()))
        is_held = bounds.held(coef, gradient, near)
        step = _newton_step(point, np.where(is_held, 0.0, gradient), alpha, ~is_held, diagonal)
        at_bound = np.where(gradient > 0, bounds.lower, bounds.upper)
        length = 1.0
        while length > _SHORTEST:
            trial = np.where(is_held, at_bound, bounds.projected(coef + length * step))
            trial_point = objective.at(trial)
            trial_loss = float(trial_point.value)
            # Of differences, for a large penalty hides what the loss gains.
            change = trial_loss - loss + _penalty_change(coef, trial, alpha)
            predicted = float(gradient @ (trial - coef))
            if -predicted <= rounding:
                # Values no longer tell, but slopes do.
                slope = trial_point.gradient + 2 * alpha * trial
                if bounded_gap(trial, slope, alpha, bounds) < _STEADY * gap:
                    break
                length = 0.0
            elif change <= _SUFFICIENT * predicted:
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


def _penalty_change(before: Floats, after: Floats, alpha: float) -> float:
    return alpha * float((after - before) @ (after + before))


def minimise_bounded_hinge(
    objective: HingeObjective,
    alpha: float,
    bounds: Bounds,
    *,
    tol: float = 1e-3,
    max_iter: int | None = None,
    start: Floats | None = None,
    monitor: Monitor | None = None,
) -> Solution:
    """Minimise ``mean hinge + α‖w‖²`` inside bounds until the gap is at most `tol` times the gain.

    The kink is rounded off over a width that shrinks (`rankwise.solvers.smoothing`); the slopes of the rounded hinge
    are a plane below the hinge itself, whose minimum inside the bounds, coordinate by coordinate, proves the gap.
    """
    limit = _MAX_ITER if max_iter is None else max_iter
    reads = objective.n_reads
    origin = bounds.projected(np.zeros(objective.n_features))
    at_origin = float(objective.at(origin).value)
    coef = origin if start is None else bounds.projected(start)
    width = max(at_origin, _TINY) * (1.0 if start is None else 0.1)
    enough, n_iter = _SOLVED * width, 0
    best, lowest = coef, np.inf
    history: list[float] = []
    status = Status.MAX_ITER
    while True:
        inner = minimise_bounded(
            _Rounded(objective, width),
            alpha,
            bounds,
            tol=0.0,
            max_iter=limit - n_iter,
            start=coef,
            enough=enough,
        )
        coef, n_iter = inner.coef, n_iter + max(inner.n_iter, 1)
        hinge = objective.at(coef)
        rounded_off, unsolved = _proof(objective, hinge, coef, width, alpha, bounds)
        if rounded_off + unsolved < lowest:
            best, lowest = coef, rounded_off + unsolved
        gap = lowest
        decrease = max(at_origin - float(hinge.value) - _penalty_change(origin, coef, alpha), 0.0)
        history.append(gap)
        allowed = tol * (gap + decrease)
        aim = _AIM * allowed
        if gap <= max(allowed, _ROUNDING * at_origin):
            status = Status.CONVERGED
        elif monitor is not None and monitor(best, gap, n_iter):
            status = Status.STOPPED
        elif width < _NARROWEST * at_origin:
            status = Status.STAGNATED
        if status is not Status.MAX_ITER or n_iter >= limit:
            break
        if rounded_off > aim:
            width *= float(np.clip(0.9 * np.sqrt(aim / rounded_off), 0.1, 0.5))
        enough = min(max(aim, _SOLVED * width), enough) / (1 if rounded_off > aim else 4)
    return Solution(
        best,
        status,
        n_iter=n_iter,
        n_reads=objective.n_reads - reads,
        certificate=history[-1],
        gain=history[-1] + decrease,
        history=history,
    )


class _Rounded:
    """The mean hinge with its kink rounded off."""

    def __init__(self, objective: HingeObjective, width: float) -> None:
        self._objective, self._width = objective, width
        self.n_features = objective.n_features

    @property
    def n_reads(self) -> int:
        return self._objective.n_reads

    def at(self, coef: Floats) -> _RoundedPoint:
        return _RoundedPoint(self._objective, self._objective.at(coef), self._width)


class _RoundedPoint:
    def __init__(self, objective: HingeObjective, hinge: HingePoint, width: float) -> None:
        self._objective, self._hinge, self._width = objective, hinge, width
        self._smooth = hinge.smoothed(width)

    @property
    def value(self) -> Floats:
        return np.asarray(self._smooth.value)

    @property
    def gradient(self) -> Floats:
        return self._objective.pull_back(self._smooth.gradient)

    def hessian_product(self, v: Floats) -> Floats:
        moved = self._hinge.smoothed_hessian_product(self._objective.scores(v), self._width)
        return self._objective.pull_back(moved)


def _proof(
    objective: HingeObjective, hinge: HingePoint, coef: Floats, width: float, alpha: float, bounds: Bounds
) -> tuple[float, float]:
    """Return how far the hinge lies above the plane of the rounded one, and that one above its minimum.

    The plane lies below the hinge everywhere, so that both together are a gap.
    """
    smooth = hinge.smoothed(width)
    slope = objective.pull_back(smooth.gradient)
    above = max(float(hinge.value) - smooth.active - float(slope @ coef), 0.0)
    return above, bounded_gap(coef, slope + 2 * alpha * coef, alpha, bounds)


def polished(solution: Solution, objective: QuadraticObjective, alpha: float, bounds: Bounds) -> Solution:
    """Solve for the coefficients that stand at no bound exactly, where that stays inside the bounds."""
    coef = solution.coef
    is_free = (coef > bounds.lower) & (coef < bounds.upper)
    fixed = np.where(is_free, 0.0, coef)
    matrix = objective.matrix()
    system = matrix[np.ix_(is_free, is_free)] + alpha * np.eye(int(is_free.sum()))
    exact = fixed.copy()
    exact[is_free] = np.linalg.solve(system, (objective.rhs - matrix @ fixed)[is_free])
    gradient = objective.at(exact).gradient + 2 * alpha * exact
    gap = bounded_gap(exact, gradient, alpha, bounds)
    if not np.array_equal(bounds.projected(exact), exact) or not gap <= solution.certificate:
        return solution
    return replace(solution, coef=exact, status=Status.EXACT, certificate=gap)


def bounded_gap(coef: Floats, gradient: Floats, alpha: float, bounds: Bounds) -> float:
    """Return how far below ``F(w)`` the minimum can be at most, by strong convexity."""
    move = bounds.projected(coef - gradient / (2 * alpha)) - coef
    return max(-float(gradient @ move + alpha * (move @ move)), 0.0)


def _newton_step(
    point: SmoothPoint,
    gradient: Floats,
    alpha: float,
    is_free: npt.NDArray[np.bool_],
    diagonal: Floats | None,
) -> Floats:
    """Solve Newton's equation among the free coordinates."""
    inverse = 1.0 if diagonal is None else 1.0 / (diagonal + 2 * alpha)
    step = np.zeros_like(gradient)
    residual = -gradient
    solved = inverse * residual
    direction = solved.copy()
    rho = float(residual @ solved)
    target = _FORCING**2 * rho
    for _ in range(2 * gradient.size + 10):
        if rho <= target:
            break
        image = np.where(is_free, point.hessian_product(direction) + 2 * alpha * direction, 0.0)
        share = rho / float(direction @ image)
        step += share * direction
        residual -= share * image
        solved = inverse * residual
        before, rho = rho, float(residual @ solved)
        direction = solved + rho / before * direction
    return step
