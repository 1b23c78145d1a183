"""The small quadratic program of the bundle method: ``min ½ x'Hx - b'x`` over the simplex ``x >= 0, Σx = 1``.

A primal active-set method: minimise over the face where x is positive, walk until a coordinate hits zero and leaves,
and when the face is done let in the coordinate that promises most. From the last solution it needs a few steps.

Gram matrices of cutting planes are nearly singular, since late planes resemble each other. Each face therefore
carries a tiny proximal term at the current x, which does not move the solution: steps become shorter, not wrong.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import scipy.linalg

from rankwise.arrays import Floats

__all__ = ["minimise_on_simplex", "simplex_gap"]

_PROXIMAL = 1e-11  # after scaling H to unit size
_RELATIVE_GAP = 1e-15
_PATIENCE = 10  # finished faces without a smaller gap or value, after which rounding is to blame
_ROUNDING = 1e-16
_STEPS_A_COORDINATE = 20


def minimise_on_simplex(
    H: Floats, b: Floats, start: Floats | None = None, tol: float | None = None
) -> Floats:
    """Return the minimiser.

    Parameters
    ----------
    H : (k, k) float64
        Symmetric, positive semidefinite.
    b : (k,) float64
    start : (k,) float64, optional
        A point of the simplex.
    tol : float, optional
        Stop when the value is proved to be within this of the minimum; by default near rounding.
    """
    size = b.size
    # Shifting b by a constant and scaling both change nothing: Σx = 1.
    offset = float(b.max(initial=0.0)) if size else 0.0
    unit = max(float(np.max(np.diagonal(H), initial=0.0)), float(np.ptp(b)) if size else 0.0)
    if unit <= 0 or not np.isfinite(unit):  # nothing to decide, or an overflow before
        return np.full(size, 1.0 / size) if start is None else start
    H, b = H / unit, (b - offset) / unit
    target = _RELATIVE_GAP if tol is None else max(tol / unit, _RELATIVE_GAP)
    x = _vertex(H, b) if start is None else start.copy()
    is_free = x > 0
    best, best_gap, lowest, stale = x, np.inf, np.inf, 0
    for _ in range(_STEPS_A_COORDINATE * size + 100):
        free = np.flatnonzero(is_free)
        gradient = H @ x - b
        # On a face's minimum the gradient is constant: without that constant, repeated steps refine each other.
        step = _face_step(H, gradient - float(x @ gradient), free)
        length, leaves = _longest(x[free], step)
        x = x.copy()
        x[free] = np.maximum(x[free] + length * step, 0.0)
        if leaves is not None:
            x[free[leaves]] = 0.0
            is_free[free[leaves]] = False
        x /= x.sum()
        if leaves is not None:
            continue
        gradient = H @ x - b
        gap = float(x @ gradient) - float(gradient.min())
        value = float(x @ (gradient - b)) / 2
        stale = 0 if gap < best_gap or value < lowest - _ROUNDING else stale + 1
        lowest = min(lowest, value)
        if gap < best_gap:
            best, best_gap = x, gap
        if gap <= target or stale >= _PATIENCE:
            break
        is_free[int(np.argmin(gradient))] = True  # where the gap is widest; it may be free already
    return best


def simplex_gap(H: Floats, b: Floats, x: Floats) -> float:
    """Return a bound on how far the value at x is above the minimum (Frank and Wolfe's)."""
    gradient = H @ x - b
    return float(x @ gradient - gradient.min())


def _vertex(H: Floats, b: Floats) -> Floats:
    x = np.zeros(b.size)
    x[int(np.argmin(np.diagonal(H) / 2 - b))] = 1.0
    return x


def _face_step(H: Floats, gradient: Floats, free: npt.NDArray[np.int64]) -> Floats:
    """Return the step to the minimum on a face, with ``Σ step = 0``."""
    face = H[np.ix_(free, free)]
    proximal = _PROXIMAL
    while True:
        try:
            factor = scipy.linalg.cho_factor(face + proximal * np.eye(free.size), check_finite=False)
            break
        except scipy.linalg.LinAlgError:
            proximal *= 10
    solved = scipy.linalg.cho_solve(
        factor, np.column_stack([np.ones(free.size), -gradient[free]]), check_finite=False
    )
    multiplier = -float(solved[:, 1].sum() / solved[:, 0].sum())
    step: Floats = solved[:, 1] + multiplier * solved[:, 0]
    return step


def _longest(x: Floats, step: Floats) -> tuple[float, int | None]:
    """Return how far x may go (at most 1), and which coordinate stops it."""
    falling = step < 0
    ratio = np.divide(x, -step, out=np.full(x.size, np.inf), where=falling)
    first = int(np.argmin(ratio))
    return (float(ratio[first]), first) if ratio[first] < 1 else (1.0, None)
