"""The hinge, smoothed just enough: L-BFGS on the Huberised hinge, with a proved gap of the hinge itself.

The Huberised hinge φ_δ rounds the kink of ``max(0, t)`` off over ``0 <= t <= δ``. Its slopes ``a = φ_δ'(t)`` lie
between 0 and 1, so they are feasible dual variables of the *original* problem: ``(1/N) Σ ω a z - ‖g‖²/(4α)`` with
``g = (1/N) X'A'Ωa`` is a lower bound of its minimum, from what the gradient needs anyway.

At the minimum of φ_δ the gap is ``(1/N) Σ ω t (1 - t/δ)`` over the pairs with ``0 < t < δ``: with a density p of pairs
near the kink about ``p δ²/6``. So δ shrinks with the *root* of the gap, and with many pairs the problem hardly becomes
harder.

Each iteration reads the data twice (``X d`` and ``X'u``); the line search moves along scores and reads nothing.
A start from a few steps of RankRLS did not pay: 5 reads for it saved as many.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rankwise.arrays import Floats
from rankwise.objectives import HingeObjective, HingePoint
from rankwise.pairs.graph import SmoothedHinge
from rankwise.solvers.certificate import LowerBound
from rankwise.solvers.lbfgs import LbfgsMemory, Trial, search_line
from rankwise.solvers.solution import Monitor, Solution, Status

__all__ = ["minimise_smoothed"]

_MEMORY = 20  # steps that the quasi-Newton method remembers
_FIRST_WIDTH = 1.0  # δ, in units of the margin
_AIM = 0.25  # the share of `tol` that the smoothing may cost in the end
_LARGEST_CUT = 0.1  # of δ at a time
_NARROWEST = 1e-9  # δ below which slopes are rounding errors
_MAX_ITER = 10_000
# If the gap falls by less than this share in so many iterations, rounding is to blame.
_PROGRESS, _PATIENCE = 1e-3, 100


@dataclass(frozen=True)
class _Point:
    """Where the search stands: the hinge and its smoothed form at the same scores."""

    hinge: HingePoint
    smooth: SmoothedHinge


def minimise_smoothed(
    objective: HingeObjective,
    alpha: float,
    *,
    tol: float = 1e-3,
    max_iter: int | None = None,
    start: Floats | None = None,
    monitor: Monitor | None = None,
) -> Solution:
    """Minimise ``mean hinge + α‖w‖²`` to an absolute duality gap of `tol`."""
    limit = _MAX_ITER if max_iter is None else max_iter
    reads = objective.n_reads
    coef = np.zeros(objective.n_features) if start is None else start.copy()
    scores = objective.scores(coef) if start is not None else np.zeros(objective.pairs.n_rows)
    memory, bound = LbfgsMemory(_MEMORY), LowerBound(alpha)

    hinge = objective.at_scores(scores)
    width, smooth, loss_gradient = _first_width(objective, hinge, alpha, is_cold=start is None)
    best, lowest = coef, np.inf
    milestone, reached = np.inf, 0
    history: list[float] = []
    status = Status.MAX_ITER
    while True:
        # 1. What is proved. The hinge itself is counted only where it decides something: it is at most δ/2 more.
        penalty = alpha * float(coef @ coef)
        bound.add(loss_gradient, smooth.active)
        gradient = loss_gradient + 2 * alpha * coef
        unsolved = float(gradient @ gradient) / (4 * alpha)
        is_close = smooth.value + penalty - bound.value <= tol
        is_flat = unsolved < width / 4  # more than any smoothing by δ can cost
        loss = float(hinge.value) if is_close or is_flat else smooth.value + width / 2
        if loss + penalty < lowest:
            best, lowest = coef, loss + penalty
        gap = max(lowest - bound.value, 0.0)  # rounding
        history.append(gap)
        if gap <= (1 - _PROGRESS) * milestone:
            milestone, reached = gap, len(history)
        if gap <= tol:
            status = Status.CONVERGED
        elif len(history) - reached >= _PATIENCE:
            status = Status.STAGNATED
        elif monitor is not None and monitor(best, gap, len(history) - 1):
            status = Status.STOPPED
        if status is not Status.MAX_ITER or len(history) > limit:
            break
        # 2. Smooth less, once the smoothing costs as much as what remains to be minimised.
        rounded_off = max(loss - smooth.active - float(smooth.gradient @ scores), 0.0)
        if is_flat and rounded_off > max(_AIM * tol, unsolved) and width > _NARROWEST:
            cut = np.sqrt(max(_AIM * tol, 0.01 * rounded_off) / rounded_off)
            width *= float(np.clip(0.9 * cut, _LARGEST_CUT, 0.5))
            smooth = hinge.smoothed(width)
            loss_gradient = objective.pull_back(smooth.gradient)
            gradient = loss_gradient + 2 * alpha * coef
        # 3. A step.
        direction = memory.direction(gradient)
        slope = float(gradient @ direction)
        if slope >= 0:
            memory.forget()
            direction, slope = -gradient, -float(gradient @ gradient)
        moved = objective.scores(direction)
        value = smooth.value + penalty
        cross, square = float(coef @ direction), float(direction @ direction)

        def at(
            length: float,
            scores: Floats = scores,
            moved: Floats = moved,
            width: float = width,
            penalty: float = penalty,
            cross: float = cross,
            square: float = square,
        ) -> Trial[_Point]:
            hinge = objective.at_scores(scores + length * moved)
            smooth = hinge.smoothed(width)
            return Trial(
                length,
                smooth.value + penalty + alpha * length * (2 * cross + length * square),
                float(smooth.gradient @ moved) + 2 * alpha * (cross + length * square),
                _Point(hinge, smooth),
            )

        # Without memory: where the slope, if it stayed, would use up what there is to gain.
        trial = search_line(at, value, slope, 1.0 if len(memory) else -min(gap, value) / slope)
        if trial is None:
            if len(memory) == 0:
                status = Status.STAGNATED
                break
            memory.forget()
            continue
        step = trial.length * direction
        coef = coef + step
        scores = scores + trial.length * moved
        hinge, smooth = trial.point.hinge, trial.point.smooth
        loss_gradient = objective.pull_back(smooth.gradient)
        memory.add(step, loss_gradient + 2 * alpha * coef - gradient)
    return Solution(
        best,
        status,
        n_iter=len(history) - 1,
        n_reads=objective.n_reads - reads,
        certificate=history[-1],
        history=history,
    )


def _first_width(
    objective: HingeObjective, hinge: HingePoint, alpha: float, *, is_cold: bool
) -> tuple[float, SmoothedHinge, Floats]:
    """Choose δ by the lower bound it gives: wide for a cold start, narrower near the minimum."""
    width, found = _FIRST_WIDTH, None
    bound = -np.inf
    while True:
        smooth = hinge.smoothed(width)
        gradient = objective.pull_back(smooth.gradient)
        value = smooth.active - float(gradient @ gradient) / (4 * alpha)
        if found is not None and value <= bound:
            return found
        found, bound = (width, smooth, gradient), value
        if is_cold or width <= _NARROWEST:
            return found
        width /= 8
