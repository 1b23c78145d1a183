"""Truncated Newton in a trust region, for smooth losses of linear scores: squared hinge, logistic.

Conjugate gradients solve Newton's equation inexactly inside a ball (Steihaug), and the ball grows and shrinks with how
well the quadratic model predicted the decrease (TRON of Lin, Weng and Keerthi, which LIBLINEAR builds on; Chapelle and
Keerthi's PRSVM is a Newton method of this kind). Departures: products are made in score space, ``X'(D(Xd))``, so that
the scores of the step come with it and a trial reads no data; and the search stops at a proved gap, ``‖∇F‖²/(4α)`` or
better, instead of a relative gradient. Conjugate gradients are preconditioned, and the ball is one in the
preconditioner's norm: columns of very different scales do not shrink it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rankwise.arrays import Floats
from rankwise.objectives import MeanLoss, MeanLossPoint
from rankwise.solvers.certificate import LowerBound, StoppingRule
from rankwise.solvers.preconditioner import Curvature, Preconditioner
from rankwise.solvers.solution import Monitor, Solution, Status

__all__ = ["minimise_by_newton"]

_MAX_ITER = 1000
_FORCING = 0.3  # Newton's equation is solved to this share of the gradient
_ACCEPT = 1e-4  # share of the predicted decrease that makes a step acceptable
_POOR, _GOOD = 0.25, 0.75  # shares below and above which the region shrinks and grows
_SHRINK, _GROW = 0.25, 4.0
_ROUNDING = 4 * np.finfo(np.float64).eps  # share of the value below which a decrease cannot be seen
_STEADY = 0.9  # share of the gradient that may remain after a step whose decrease cannot be seen


def minimise_by_newton(  # noqa: C901, PLR0912, PLR0915 - the steps of one method, in the order of its paper
    objective: MeanLoss,
    alpha: float,
    *,
    tol: float = 1e-3,
    is_absolute: bool = False,
    max_iter: int | None = None,
    start: Floats | None = None,
    curvature: Curvature | None = None,
    monitor: Monitor | None = None,
) -> Solution:
    """Minimise ``mean loss + α‖w‖²`` until the duality gap is at most `tol` times the gain (`StoppingRule`)."""
    limit = _MAX_ITER if max_iter is None else max_iter
    reads = objective.n_reads
    scores = objective.zero_scores()
    point = objective.at_scores(scores)
    rule = StoppingRule(tol, float(point.value), alpha, is_absolute)
    # Counted again where it is asked for: to keep this point would take ten vectors of the rows' length.
    preconditioner = Preconditioner(
        curvature, alpha, lambda: objective.at_scores(objective.zero_scores()).score_hessian_diagonal()
    )
    coef = np.zeros(objective.n_features) if start is None else start.copy()
    if start is not None:
        scores = objective.scores(coef)
        point = objective.at_scores(scores)
    value = float(point.value) + alpha * float(coef @ coef)
    bound = LowerBound(alpha)
    gradient = _gradient(point, coef, alpha, bound)
    radius = np.inf  # the first step is Newton's own: the region is known after it
    history: list[float] = []
    status = Status.MAX_ITER
    while True:
        gap = min(rule.gap(value, bound.value), rule.gap_of_slope(gradient))
        decrease = rule.decrease(value, coef, gradient)
        history.append(gap)
        if gap <= rule.allowed(gap, decrease):
            status = Status.CONVERGED
        elif monitor is not None and monitor(coef, gap, len(history) - 1):
            status = Status.STOPPED
        if status is not Status.MAX_ITER or len(history) > limit:
            break
        if preconditioner.is_due:
            preconditioner.update(point.score_hessian_diagonal())
            radius = np.inf  # it was one of the old norm
        step = _newton_step(objective, point, gradient, alpha, radius, preconditioner)
        new_coef, new_scores = coef + step.coef, scores + step.scores
        new_point = objective.at_scores(new_scores)
        new_value = float(new_point.value) + alpha * float(new_coef @ new_coef)
        achieved = value - new_value
        if step.predicted <= _ROUNDING * abs(value):
            # Values no longer tell, but slopes do: where X is large and alpha small, they still are the whole gap.
            new_gradient = _gradient(new_point, new_coef, alpha, bound)
            if np.linalg.norm(new_gradient) > _STEADY * np.linalg.norm(gradient):
                # Pairs that contradict each other exactly leave slopes that are rounding errors alone.
                status = Status.CONVERGED if gap <= rule.rounding else Status.STAGNATED
                break
            coef, scores, point, value, gradient = new_coef, new_scores, new_point, new_value, new_gradient
            continue
        if achieved < _POOR * step.predicted:
            radius = _SHRINK * step.length
        elif achieved > _GOOD * step.predicted and step.length > 0.9 * radius:
            radius *= _GROW
        elif np.isinf(radius):
            radius = _GROW * step.length
        if achieved > _ACCEPT * step.predicted:
            coef, scores, point, value = new_coef, new_scores, new_point, new_value
            gradient = _gradient(point, coef, alpha, bound)
        elif _SHRINK * np.linalg.norm(step.coef) <= np.finfo(np.float64).eps * np.linalg.norm(coef):
            status = Status.STAGNATED
            break
    return Solution(
        coef,
        status,
        n_iter=len(history) - 1,
        n_reads=objective.n_reads - reads,
        certificate=history[-1],
        gain=history[-1] + decrease,
        history=history,
    )


@dataclass(frozen=True)
class _Step:
    """A step inside the region, how it moves the scores, its length, and the decrease that the model predicts."""

    coef: Floats
    scores: Floats
    length: float
    predicted: float


def _gradient(point: MeanLossPoint, coef: Floats, alpha: float, bound: LowerBound) -> Floats:
    plane = point.gradient
    bound.add(plane, point.offset)
    return plane + 2 * alpha * coef


def _newton_step(
    objective: MeanLoss,
    point: MeanLossPoint,
    gradient: Floats,
    alpha: float,
    radius: float,
    preconditioner: Preconditioner,
) -> _Step:
    """Solve Newton's equation inexactly; lengths are in the preconditioner's norm."""
    step, moved = np.zeros_like(gradient), objective.zero_scores()
    residual = -gradient
    direction = preconditioner.solve(residual)
    rho = float(residual @ direction)
    target = _FORCING**2 * rho
    # Squared lengths of step and direction and their product, by the recurrences of Conn, Gould and Toint.
    length, cross, square = 0.0, 0.0, rho
    n_iter = 0
    limit = min(2 * gradient.size + 10, preconditioner.n_plain)
    while n_iter < limit:
        if rho <= target:
            break
        n_iter += 1
        direction_moves = objective.scores(direction)
        image = objective.pull_back(point.score_hessian_product(direction_moves)) + 2 * alpha * direction
        share = rho / float(direction @ image)
        is_outside = length + share * (2 * cross + share * square) >= radius**2
        if is_outside:
            share = _to_boundary(length, cross, square, radius)
        step += share * direction
        moved += share * direction_moves
        residual -= share * image
        length += share * (2 * cross + share * square)
        if is_outside:
            break
        solved = preconditioner.solve(residual)
        before, rho = rho, float(residual @ solved)
        ratio = rho / before
        direction = solved + ratio * direction
        cross = ratio * (cross + share * square)
        square = rho + ratio**2 * square
    curved = -gradient - residual  # the Hessian times the step
    preconditioner.learn(step, float(step @ curved), n_iter)
    predicted = -float(step @ gradient) - float(step @ curved) / 2
    return _Step(step, moved, float(np.sqrt(max(length, 0.0))), predicted)


def _to_boundary(length: float, cross: float, square: float, radius: float) -> float:
    """Return how far along the direction the sphere is."""
    c = radius**2 - length
    root = float(np.sqrt(cross * cross + square * c))
    return c / (cross + root) if cross > 0 else (root - cross) / square
