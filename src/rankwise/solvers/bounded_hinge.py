"""The hinge with bounds on its coefficients: rounded off ever more narrowly, with a proved gap."""

from __future__ import annotations

import numpy as np

from rankwise.arrays import Floats
from rankwise.objectives import HingeObjective, HingePoint
from rankwise.solvers.bounded import MAX_ITER, ROUNDING, Bounds, bounded_gap, minimise_bounded, penalty_change
from rankwise.solvers.solution import Monitor, Solution, Status

__all__ = ["minimise_bounded_hinge"]

_AIM = 0.25  # share of the gap aimed at that rounding the kink of a hinge off may cost in the end
_SOLVED = 0.02  # share of its width to which a rounded hinge is minimised before it is narrowed
_NARROWEST = 1e-9  # in units of the mean margin
_TINY = np.finfo(np.float64).tiny


def minimise_bounded_hinge(
    objective: HingeObjective,
    alpha: float,
    bounds: Bounds,
    *,
    tol: float = 1e-3,
    max_iter: int | None = None,
    start: Floats | None = None,
    monitor: Monitor | None = None,
    units: Floats | None = None,
) -> Solution:
    """Minimise ``mean hinge + α‖w‖²`` inside bounds until the gap is at most `tol` times the gain.

    The kink is rounded off over a width that shrinks (`rankwise.solvers.smoothing`); the slopes of the rounded hinge
    are a plane below the hinge itself, whose minimum inside the bounds, coordinate by coordinate, proves the gap.
    """
    limit = MAX_ITER if max_iter is None else max_iter
    reads = objective.n_reads
    penalty = alpha if units is None else np.where(units > 0, 0.0, alpha)
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
            units=units,
        )
        coef, n_iter = inner.coef, n_iter + max(inner.n_iter, 1)
        hinge = objective.at(coef)
        rounded_off, slope = _plane_below(objective, hinge, coef, width)
        unsolved = bounded_gap(coef, slope + 2 * penalty * coef, alpha, bounds, units)
        if rounded_off + unsolved < lowest:
            best, lowest = coef, rounded_off + unsolved
        gap = lowest
        decrease = max(at_origin - float(hinge.value) - penalty_change(origin, coef, penalty), 0.0)
        history.append(gap)
        allowed = tol * (gap + decrease)
        aim = _AIM * allowed
        if gap <= max(allowed, ROUNDING * at_origin):
            status = Status.CONVERGED
        elif monitor is not None and monitor(best, gap, n_iter):
            status = Status.STOPPED
        elif width < _NARROWEST * at_origin or (
            rounded_off <= aim and inner.n_iter == 0 and not inner.status.is_good
        ):
            status = Status.STAGNATED  # neither a narrower kink nor a step would help
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


def _plane_below(
    objective: HingeObjective, hinge: HingePoint, coef: Floats, width: float
) -> tuple[float, Floats]:
    """Return how far the hinge lies above the plane of the rounded one, and the slope of that.

    The plane lies below the hinge everywhere, so that with the gap by its slope this is a gap of the hinge.
    """
    smooth = hinge.smoothed(width)
    slope = objective.pull_back(smooth.gradient)
    return max(float(hinge.value) - smooth.active - float(slope @ coef), 0.0), slope
