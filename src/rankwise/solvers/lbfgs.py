"""Limited-memory BFGS: directions from the last few steps, and a line search that reads no data."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np

from rankwise.arrays import Floats
from rankwise.solvers.preconditioner import Preconditioner

__all__ = ["LbfgsMemory", "Trial", "search_line"]

Point = TypeVar("Point")

_SUFFICIENT = 1e-4  # Wolfe's first condition: share of the predicted decrease
_FLAT = 0.9  # Wolfe's second: share of the slope that may remain
_TRIALS = 30
_ROUNDING = 1e-14  # share of the value below which a difference says nothing, and the slopes decide


class LbfgsMemory:
    """The two-loop recursion of Nocedal over the last `size` steps."""

    def __init__(self, size: int) -> None:
        self._steps: deque[tuple[Floats, Floats, float]] = deque(maxlen=size)

    def add(self, step: Floats, change: Floats) -> None:
        """Remember a step and the change of the gradient over it; a step without curvature says nothing."""
        curvature = float(step @ change)
        if curvature > np.finfo(np.float64).eps * np.linalg.norm(step) * np.linalg.norm(change):
            self._steps.append((step, change, curvature))

    def forget(self) -> None:
        """Start over."""
        self._steps.clear()

    def __len__(self) -> int:
        return len(self._steps)

    def direction(self, gradient: Floats, preconditioner: Preconditioner) -> Floats:
        """Return minus the inverse Hessian's estimate times the gradient; without memory the preconditioner's."""
        q = -gradient
        shares = []
        for step, change, curvature in reversed(self._steps):
            share = float(step @ q) / curvature
            shares.append(share)
            q -= share * change
        q = preconditioner.solve(q)
        if self._steps:
            step, change, curvature = self._steps[-1]
            expected = float(change @ preconditioner.solve(change))
            if expected > 0:  # of columns of 1e75 it may underflow
                q *= curvature / expected
        for (step, change, curvature), share in zip(self._steps, reversed(shares), strict=True):
            q += (share - float(change @ q) / curvature) * step
        return q


@dataclass(frozen=True)
class Trial(Generic[Point]):
    """A point on a line: how far, the value and the slope there, and whatever else was found."""

    length: float
    value: float
    slope: float
    point: Point


def search_line(
    at: Callable[[float], Trial[Point]], value: float, slope: float, first: float
) -> Trial[Point] | None:
    """Find a step that satisfies Wolfe's conditions for a convex function with ``value`` and ``slope < 0`` at 0.

    The bracket shrinks by the secant of the slopes, which for a piecewise quadratic is nearly Newton's step. Near the
    minimum values are equal but for rounding long before slopes are; as Hager and Zhang do, the slopes then decide
    alone. Returns None where no step decreases the value: rounding errors have the last word then.
    """
    rounding = _ROUNDING * abs(value)
    low, low_slope, high, high_slope = 0.0, slope, np.inf, np.inf
    length = first
    best: Trial[Point] | None = None
    for _ in range(_TRIALS):
        trial = at(length)
        promised = -_SUFFICIENT * length * slope
        decreases = trial.value <= value + (rounding if promised < rounding else -promised)
        if trial.value < value and (best is None or trial.value < best.value):
            best = trial
        if decreases and abs(trial.slope) <= -_FLAT * slope:
            return trial
        if decreases and trial.slope < 0:
            low, low_slope = length, trial.slope
        else:
            high, high_slope = length, trial.slope
        if np.isinf(high):
            length = 10 * low  # the slope is less than a tenth flatter, so that its zero lies further still
            continue
        secant = low - low_slope * (high - low) / (high_slope - low_slope) if high_slope > 0 else low
        margin = 0.1 * (high - low)
        length = float(np.clip(secant, low + margin, high - margin))
        if high - low <= 1e-12 * high:
            break
    return best
