"""Many columns: conjugate gradients on the normal equations, one product ``X'LXv`` an iteration.

Departs from the large-scale RankRLS paper in stopping by the relative residual instead of SciPy's rule, in
solving several outputs in lockstep with block products, and in an optional Jacobi preconditioner for one
fixed alpha (which converges to the same model). That residual is in the units of the largest column, so where it is
small although the objective still falls, and columns differ in scale, the run goes on without their units
(`rankwise.solvers.balance`).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from rankwise.arrays import Floats
from rankwise.objectives import QuadraticObjective
from rankwise.solvers.balance import balanced_solution, balancing
from rankwise.solvers.scales import is_out_of_range, powers_of_two
from rankwise.solvers.solution import Monitor, Solution, Status

__all__ = ["conjugate_gradients"]

# Below this tolerance the recurrence's residual drifts from the true one: measure before believing it.
_TRUSTED_TOLERANCE = 1e-9
# Of what was gained over w = 0: less than this is left to gain where the last quarter of the iterations gained less.
_SETTLED = 1e-8


def conjugate_gradients(
    objective: QuadraticObjective,
    alpha: float,
    *,
    tol: float = 1e-5,
    max_iter: int | None = None,
    precondition: str | None = None,
    start: Floats | None = None,
    monitor: Monitor | None = None,
) -> Solution:
    """Solve ``(H + αI) w = b``; where it is singular, from ``w = 0`` this ends in the least-norm solution.

    Parameters
    ----------
    tol : float
        Stop when ``‖b - (H + αI)w‖ <= tol ‖b‖`` for every output.
    max_iter : int, optional
        At most this many iterations; by default what exact arithmetic could ever need, and some more.
    precondition : "jacobi", optional
        Divide by ``diag(H) + α``. Helps where columns have very different scales; hurts on tf-idf text.
    start : array, optional
        Where to start instead of at 0; costs one more product.
    monitor : Monitor, optional
        Told the coefficients and the relative residual after every iteration; may stop.
    """
    before = objective.n_products
    first, is_settled = _iterated(objective, alpha, tol, max_iter, precondition, start, monitor)
    left = None if max_iter is None else max_iter - first.n_iter
    may_go_on = first.status in {Status.CONVERGED, Status.MAX_ITER, Status.STAGNATED} and left != 0
    balanced = balancing(objective, alpha) if may_go_on and not is_settled else None
    if balanced is None:
        return first

    def go_on(told: Monitor | None) -> Solution:
        later = None if told is None else lambda coef, gap, n_iter: told(coef, gap, first.n_iter + n_iter)
        units = balanced.column_scale if first.coef.ndim == 1 else balanced.column_scale[:, None]
        closer = min(tol, max(tol / 10, _TRUSTED_TOLERANCE))  # this norm counts small columns in full
        return _iterated(balanced, balanced.floor, closer, left, None, first.coef / units, later)[0]

    second = balanced_solution(balanced, go_on, monitor)
    return replace(
        second,
        n_iter=first.n_iter + second.n_iter,
        n_products=objective.n_products - before,
        history=first.history + second.history,
    )


def _iterated(  # noqa: C901, PLR0915 - the steps of one method, in the order of its paper
    objective: QuadraticObjective,
    alpha: float,
    tol: float,
    max_iter: int | None,
    precondition: str | None,
    start: Floats | None,
    monitor: Monitor | None,
) -> tuple[Solution, bool]:
    """Return the solution by the residual in the columns' own units, and whether the objective has settled too."""
    before = objective.n_products
    unit = powers_of_two(objective.rhs)  # the squares of anything from 1e-300 to 1e300 are then in range
    rhs = objective.rhs / unit
    limit = max(1000, 2 * objective.n_features) if max_iter is None else max_iter
    target = tol * np.linalg.norm(rhs, axis=0)
    inverse = _jacobi(objective, alpha, rhs) if precondition == "jacobi" else None

    coef = np.zeros_like(rhs) if start is None else start / unit
    residual = rhs.copy() if start is None else rhs - objective.product(coef) - alpha * coef
    direction = _scaled(residual, inverse).copy()
    rho = _dots(residual, direction)
    history: list[float] = []
    gains: list[Floats] = []
    status = Status.MAX_ITER
    n_iter = 0
    error = np.linalg.norm(residual, axis=0)
    if np.all(error <= target):
        status = Status.CONVERGED  # b = 0: nothing pulls any row, and w = 0 is the minimum
    elif inverse is not None and not inverse.all():
        status = Status.OUT_OF_RANGE  # the inverse of an infinite diagonal
    best = np.inf
    while status is Status.MAX_ITER and n_iter < limit:
        image = objective.product(direction) + alpha * direction
        with np.errstate(over="ignore", invalid="ignore"):  # noticed below
            curvature = _dots(direction, image)
        if is_out_of_range(float(np.max(curvature)), rhs if n_iter else objective.rhs):
            status = Status.OUT_OF_RANGE
            break
        active = (curvature > 0) & (error > 0)
        step = np.divide(rho, curvature, out=np.zeros_like(rho), where=active)
        coef += step * direction
        gains.append(step * rho)
        residual -= step * image
        n_iter += 1
        error = np.linalg.norm(residual, axis=0)
        history.append(_largest_ratio(error, rhs))
        if not np.any(active):
            status = Status.STAGNATED
        if monitor is not None and monitor(coef * unit, history[-1], n_iter):
            status = Status.STOPPED
            break
        if np.all(error <= target):
            if tol >= _TRUSTED_TOLERANCE:
                status = Status.CONVERGED
                break
            residual = rhs - objective.product(coef) - alpha * coef
            error = np.linalg.norm(residual, axis=0)
            history[-1] = _largest_ratio(error, rhs)
            if np.all(error <= target):
                status = Status.CONVERGED
                break
            if history[-1] > 0.5 * best:
                status = Status.STAGNATED
                break
            best = history[-1]
            direction = _scaled(residual, inverse).copy()  # start over from the true residual
            rho = _dots(residual, direction)
            continue
        scaled = _scaled(residual, inverse)
        rho_next = _dots(residual, scaled)
        direction *= np.divide(rho_next, rho, out=np.zeros_like(rho), where=rho > 0)
        direction += scaled
        rho = rho_next
    gained = _SETTLED * _dots(coef, rhs + residual)
    latest = np.sum(gains[-(n_iter // 4) :], axis=0) if n_iter >= 4 else np.inf
    is_settled = bool(np.all((error**2 <= alpha * gained) | (latest <= gained)))  # no gap exceeds ‖r‖²/α
    with np.errstate(over="ignore"):
        coef = coef * unit
    solution = Solution(
        coef,
        status if np.isfinite(coef).all() else Status.OUT_OF_RANGE,
        n_iter=n_iter,
        n_products=objective.n_products - before,
        certificate=_largest_ratio(error, rhs),
        history=history,
    )
    return solution, is_settled


def _jacobi(objective: QuadraticObjective, alpha: float, rhs: Floats) -> Floats:
    diagonal = objective.diagonal() + alpha
    inverse = np.divide(1.0, diagonal, out=np.ones_like(diagonal), where=diagonal > 0)
    return inverse if rhs.ndim == 1 else inverse[:, None]


def _scaled(residual: Floats, inverse: Floats | None) -> Floats:
    return residual if inverse is None else residual * inverse


def _dots(a: Floats, b: Floats) -> Floats:
    return np.asarray(np.einsum("i...,i...->...", a, b))


def _largest_ratio(error: Floats, rhs: Floats) -> float:
    norm = np.linalg.norm(rhs, axis=0)
    return float(np.max(np.divide(error, norm, out=np.zeros_like(norm), where=norm > 0), initial=0.0))
