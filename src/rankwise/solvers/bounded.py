"""Smooth losses with some coordinates that must not be negative: projected Newton steps.

Coordinates that stand at 0 and are pushed further stay there; on the others Newton's equation is solved inexactly by
conjugate gradients, and the step is shortened along its projection until the objective falls enough (Bertsekas 1982,
Lin and Moré 1999). The gap is proved: as ``F(v) >= F(w) + g'(v - w) + α‖v - w‖²`` for every v, the minimum lies at most
``-Σ min_{v_i} g_i (v_i - w_i) + α (v_i - w_i)²`` below, each over the v_i that are allowed.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
import numpy.typing as npt

from rankwise.arrays import Floats
from rankwise.solvers.certificate import StoppingRule
from rankwise.solvers.solution import Monitor, Solution, Status

__all__ = ["BoundedObjective", "bounded_gap", "minimise_bounded"]


class RowsOfPairs(Protocol):
    """The pairs of an objective."""

    @property
    def n_rows(self) -> int:
        """How many rows they refer to."""


class BoundedPoint(Protocol):
    """A mean loss at some scores."""

    @property
    def value(self) -> Floats:
        """The loss."""

    @property
    def gradient(self) -> Floats:
        """Its derivative by the coefficients."""

    def hessian_product(self, v: Floats) -> Floats:
        """Apply its Hessian."""


class BoundedObjective(Protocol):
    """A smooth mean loss over pairs of the scores of a design, such as `MeanLoss`."""

    @property
    def pairs(self) -> RowsOfPairs:
        """The pairs."""

    @property
    def n_features(self) -> int:
        """The number of coefficients."""

    @property
    def n_reads(self) -> int:
        """How many times the data were read so far."""

    def scores(self, coef: Floats) -> Floats:
        """Return ``Xw``."""

    def at_scores(self, scores: Floats) -> BoundedPoint:
        """Evaluate where the scores are known."""


_MAX_ITER = 1000
_FORCING = 0.1  # Newton's equation is solved to this share of the gradient
_SUFFICIENT = 1e-4  # share of the predicted decrease that a step must achieve
_SHORTEST = 2.0**-40


def minimise_bounded(
    objective: BoundedObjective,
    alpha: float,
    nonnegative: npt.NDArray[np.bool_],
    *,
    tol: float = 1e-3,
    max_iter: int | None = None,
    start: Floats | None = None,
    monitor: Monitor | None = None,
) -> Solution:
    """Minimise ``mean loss + α‖w‖²`` over ``w[nonnegative] >= 0`` until the gap is at most `tol` times the gain."""
    limit = _MAX_ITER if max_iter is None else max_iter
    reads = objective.n_reads
    coef = np.zeros(objective.n_features) if start is None else start.copy()
    coef[nonnegative] = np.maximum(coef[nonnegative], 0.0)
    rule = StoppingRule(tol, float(objective.at_scores(np.zeros(objective.pairs.n_rows)).value), alpha)
    scores = objective.scores(coef)
    point = objective.at_scores(scores)
    value = float(point.value) + alpha * float(coef @ coef)
    history: list[float] = []
    status = Status.MAX_ITER
    while True:
        gradient = point.gradient + 2 * alpha * coef
        gap = bounded_gap(coef, gradient, alpha, nonnegative)
        decrease = rule.decrease(value, coef)
        history.append(gap)
        if gap <= max(rule.allowed(gap, decrease), rule.rounding):
            status = Status.CONVERGED
        elif monitor is not None and monitor(coef, gap, len(history) - 1):
            status = Status.STOPPED
        if status is not Status.MAX_ITER or len(history) > limit:
            break
        # Those that are nearly at their bound count as there, so that a step is not cut short at once.
        near = min(1e-8, float(np.abs(coef - _projected(coef - gradient, nonnegative)).max()))
        is_free = ~(nonnegative & (coef <= near) & (gradient > 0))
        step = _newton_step(point, np.where(is_free, gradient, 0.0), alpha, is_free)
        length = 1.0
        while length > _SHORTEST:
            trial = _projected(coef + length * step, nonnegative)
            trial[~is_free] = 0.0
            trial_scores = objective.scores(trial)
            trial_point = objective.at_scores(trial_scores)
            trial_value = float(trial_point.value) + alpha * float(trial @ trial)
            if trial_value <= value + _SUFFICIENT * float(gradient @ (trial - coef)):
                break
            length /= 2
        else:
            status = Status.STAGNATED
            break
        coef, scores, point, value = trial, trial_scores, trial_point, trial_value
    return Solution(
        coef,
        status,
        n_iter=len(history) - 1,
        n_reads=objective.n_reads - reads,
        certificate=history[-1],
        gain=history[-1] + decrease,
        history=history,
    )


def bounded_gap(coef: Floats, gradient: Floats, alpha: float, nonnegative: npt.NDArray[np.bool_]) -> float:
    """Return how far below ``F(w)`` the minimum can be at most, by strong convexity."""
    move = _projected(coef - gradient / (2 * alpha), nonnegative) - coef
    return max(-float(gradient @ move + alpha * (move @ move)), 0.0)


def _projected(coef: Floats, nonnegative: npt.NDArray[np.bool_]) -> Floats:
    out = coef.copy()
    out[nonnegative] = np.maximum(out[nonnegative], 0.0)
    return out


def _newton_step(
    point: BoundedPoint, gradient: Floats, alpha: float, is_free: npt.NDArray[np.bool_]
) -> Floats:
    """Solve Newton's equation among the free coordinates."""
    step = np.zeros_like(gradient)
    residual = -gradient
    direction = residual.copy()
    rho = float(residual @ residual)
    target = _FORCING**2 * rho
    for _ in range(2 * gradient.size + 10):
        if rho <= target:
            break
        image = np.where(is_free, point.hessian_product(direction) + 2 * alpha * direction, 0.0)
        share = rho / float(direction @ image)
        step += share * direction
        residual -= share * image
        before, rho = rho, float(residual @ residual)
        direction = residual + rho / before * direction
    return step
