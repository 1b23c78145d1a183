"""Truncated Newton in a trust region, for smooth losses of linear scores: squared hinge, logistic.

Conjugate gradients solve Newton's equation inexactly inside a ball (Steihaug), and the ball grows and shrinks with how
well the quadratic model predicted the decrease (TRON of Lin, Weng and Keerthi, which LIBLINEAR builds on; Chapelle and
Keerthi's PRSVM is a Newton method of this kind). Departures: products are made in score space, ``X'(D(Xd))``, so that
the scores of the step come with it and a trial reads no data; and the search stops at a proved gap, ``‖∇F‖²/(4α)`` or
better, instead of a relative gradient.
"""

from __future__ import annotations

import numpy as np

from rankwise.arrays import Floats
from rankwise.objectives import MeanLoss, MeanLossPoint
from rankwise.solvers.certificate import LowerBound
from rankwise.solvers.solution import Monitor, Solution, Status

__all__ = ["minimise_by_newton"]

_MAX_ITER = 1000
_FORCING = 0.3  # Newton's equation is solved to this share of the gradient
_ACCEPT = 1e-4  # share of the predicted decrease that makes a step acceptable
_POOR, _GOOD = 0.25, 0.75  # shares below and above which the region shrinks and grows
_SHRINK, _GROW = 0.25, 4.0
_ROUNDING = 4 * np.finfo(np.float64).eps  # share of the value below which a decrease cannot be seen
_STEADY = 0.9  # share of the gradient that may remain after a step whose decrease cannot be seen


def minimise_by_newton(
    objective: MeanLoss,
    alpha: float,
    *,
    tol: float = 1e-3,
    max_iter: int | None = None,
    start: Floats | None = None,
    monitor: Monitor | None = None,
) -> Solution:
    """Minimise ``mean loss + α‖w‖²`` to an absolute duality gap of `tol`."""
    limit = _MAX_ITER if max_iter is None else max_iter
    reads = objective.n_reads
    coef = np.zeros(objective.n_features) if start is None else start.copy()
    scores = objective.scores(coef) if start is not None else np.zeros(objective.pairs.n_rows)
    point = objective.at_scores(scores)
    value = float(point.value) + alpha * float(coef @ coef)
    bound = LowerBound(alpha)
    gradient = _gradient(point, coef, alpha, bound)
    radius = np.inf  # the first step is Newton's own: the region is known after it
    history = [max(value - bound.value, 0.0)]  # rounding
    status = Status.MAX_ITER
    while True:
        gap = history[-1]
        if gap <= tol:
            status = Status.CONVERGED
        elif monitor is not None and monitor(coef, gap, len(history) - 1):
            status = Status.STOPPED
        if status is not Status.MAX_ITER or len(history) > limit:
            break
        step, moved, predicted = _newton_step(objective, point, gradient, alpha, radius)
        new_coef, new_scores = coef + step, scores + moved
        new_point = objective.at_scores(new_scores)
        new_value = float(new_point.value) + alpha * float(new_coef @ new_coef)
        achieved = value - new_value
        length = float(np.linalg.norm(step))
        if predicted <= _ROUNDING * abs(value):
            # Values no longer tell, but slopes do: where X is large and alpha small, they still are the whole gap.
            new_gradient = _gradient(new_point, new_coef, alpha, bound)
            if np.linalg.norm(new_gradient) > _STEADY * np.linalg.norm(gradient):
                status = Status.STAGNATED
                break
            coef, scores, point, value, gradient = new_coef, new_scores, new_point, new_value, new_gradient
            history.append(max(value - bound.value, 0.0))
            continue
        if achieved < _POOR * predicted:
            radius = _SHRINK * length
        elif achieved > _GOOD * predicted and length > 0.9 * radius:
            radius *= _GROW
        elif np.isinf(radius):
            radius = _GROW * length
        if achieved > _ACCEPT * predicted:
            coef, scores, point, value = new_coef, new_scores, new_point, new_value
            gradient = _gradient(point, coef, alpha, bound)
        elif radius <= np.finfo(np.float64).eps * float(np.linalg.norm(coef)):
            status = Status.STAGNATED
            break
        history.append(max(value - bound.value, 0.0))
    return Solution(
        coef,
        status,
        n_iter=len(history) - 1,
        n_reads=objective.n_reads - reads,
        certificate=history[-1],
        history=history,
    )


def _gradient(point: MeanLossPoint, coef: Floats, alpha: float, bound: LowerBound) -> Floats:
    plane = point.gradient
    bound.add(plane, point.offset)
    return plane + 2 * alpha * coef


def _newton_step(
    objective: MeanLoss, point: MeanLossPoint, gradient: Floats, alpha: float, radius: float
) -> tuple[Floats, Floats, float]:
    """Return a step inside the region, how it moves the scores, and the decrease that the model predicts."""
    step, moved = np.zeros_like(gradient), np.zeros(objective.pairs.n_rows)
    residual = -gradient
    direction = residual.copy()
    rho = float(residual @ residual)
    target = _FORCING * np.sqrt(rho)
    for _ in range(2 * gradient.size + 10):
        if np.sqrt(rho) <= target:
            break
        direction_moves = objective.scores(direction)
        image = objective.pull_back(point.score_hessian_product(direction_moves)) + 2 * alpha * direction
        length = rho / float(direction @ image)
        is_outside = np.linalg.norm(step + length * direction) >= radius
        if is_outside:
            length = _to_boundary(step, direction, radius)
        step += length * direction
        moved += length * direction_moves
        residual -= length * image
        if is_outside:
            break
        before, rho = rho, float(residual @ residual)
        direction = residual + (rho / before) * direction
    predicted = float(step @ (residual - gradient)) / 2  # -g's - ½s'Hs, with Hs = -g - residual
    return step, moved, predicted


def _to_boundary(step: Floats, direction: Floats, radius: float) -> float:
    """Return how far along the direction the sphere is."""
    a, b = float(direction @ direction), float(step @ direction)
    c = radius**2 - float(step @ step)
    root = float(np.sqrt(b * b + a * c))
    return c / (b + root) if b > 0 else (root - b) / a
