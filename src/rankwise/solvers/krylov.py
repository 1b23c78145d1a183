"""Many columns: conjugate gradients on the normal equations, one product ``X'LXv`` an iteration.

Departs from the large-scale RankRLS paper in stopping by the relative residual instead of SciPy's rule, in
solving several outputs in lockstep with block products, and in an optional Jacobi preconditioner for one
fixed alpha (which converges to the same model).
"""

from __future__ import annotations

import numpy as np

from rankwise.arrays import Floats
from rankwise.objectives import QuadraticObjective
from rankwise.solvers.scales import is_out_of_range, powers_of_two
from rankwise.solvers.solution import Monitor, Solution, Status

__all__ = ["conjugate_gradients"]

# Below this tolerance the recurrence's residual drifts from the true one: measure before believing it.
_TRUSTED_TOLERANCE = 1e-9


def conjugate_gradients(  # noqa: C901, PLR0915 - the steps of one method, in the order of its paper
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
    status = Status.MAX_ITER
    n_iter = 0
    error = np.linalg.norm(residual, axis=0)
    if np.all(error <= target):
        status = Status.CONVERGED  # b = 0: nothing pulls any row, and w = 0 is the minimum
    elif inverse is not None and not inverse.all():
        status = Status.OUT_OF_RANGE  # the inverse of an infinite diagonal
    best = np.inf
    while status is Status.MAX_ITER and n_iter < limit:
        try:
            image = objective.product(direction) + alpha * direction
        except KeyboardInterrupt:
            if not n_iter:
                raise
            status = Status.INTERRUPTED
            break
        with np.errstate(over="ignore", invalid="ignore"):  # noticed below
            curvature = _dots(direction, image)
        if is_out_of_range(float(np.max(curvature)), rhs if n_iter else objective.rhs):
            status = Status.OUT_OF_RANGE
            break
        active = (curvature > 0) & (error > 0)
        step = np.divide(rho, curvature, out=np.zeros_like(rho), where=active)
        coef += step * direction
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
    with np.errstate(over="ignore"):
        coef = coef * unit
    return Solution(
        coef,
        status if np.isfinite(coef).all() else Status.OUT_OF_RANGE,
        n_iter=n_iter,
        n_products=objective.n_products - before,
        certificate=_largest_ratio(error, rhs),
        history=history,
    )


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
