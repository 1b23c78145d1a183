"""Proof of how far a minimum of ``F(w) = loss(w) + α‖w‖²`` still is, and the rule for stopping.

See docs/mathematics.md, section 6.2.

If ``loss(v) >= g'v + s`` for every v, the minimum is at least ``min_v g'v + s + α‖v‖² = s - ‖g‖²/(4α)``. Gradients of a
convex loss are such planes, and so are convex combinations of them: `LowerBound` keeps the best combination of its
own plane and each new one, so that the bound never falls and costs one vector. The first plane is 0: no loss of pairs
is negative, so the bound is not either, and a gap is never more than the objective.

For a smooth loss at w the plane is ``g = ∇loss(w)``, ``s = loss(w) - g'w``, and the gap is
``‖∇loss(w) + 2αw‖²/(4α)``: the duality gap and the bound of strong convexity at once.

**When to stop.** ``F(w) - bound <= tol (F(0) - bound)``: what may still be gained is at most the share `tol` of what
there was to gain. The rule has no units: X scaled by c under an alpha scaled by c² stops at the same place. And it
never takes ``w = 0`` for the minimum while anything pulls. Gains may be far below the rounding errors of F itself
(where alpha is large beside the columns); so gradients measure the gap as well, and convexity the gain:
``F(0) - F(w) >= α‖w‖² - ∇F(w)'w``, of which nothing cancels.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rankwise.arrays import Floats
from rankwise.objectives import MarginObjective
from rankwise.solvers.solution import Solution, Status

__all__ = ["LowerBound", "StoppingRule", "solve_linear_limit"]

_ROUNDING = 8 * np.finfo(np.float64).eps  # share of F(0) that the difference of two values may be off by


class LowerBound:
    """The best lower bound so far on the minimum of ``loss(w) + α‖w‖²`` of a loss that is never negative."""

    def __init__(self, alpha: float) -> None:
        self._alpha = alpha
        self._plane: Floats | None = None
        self._offset = 0.0
        self.value = 0.0

    def add(self, plane: Floats, offset: float) -> None:
        """Take in a plane: ``loss(v) >= plane'v + offset`` for every v."""
        if self._plane is None:
            self._plane = np.zeros_like(plane)
        # max over 0 <= θ <= 1 of (1-θ) s + θ s' - ‖(1-θ) g + θ g'‖²/(4α), a parabola in θ
        step = plane - self._plane
        curvature = float(step @ step)
        slope = 4 * self._alpha * (offset - self._offset) / 2 - float(self._plane @ step)
        if slope <= 0:
            return
        share = min(slope / curvature, 1.0) if curvature > 0 else 1.0
        self._plane += share * step
        self._offset += share * (offset - self._offset)
        self.value = max(self.value, self._offset - float(self._plane @ self._plane) / (4 * self._alpha))


@dataclass(frozen=True)
class StoppingRule:
    """When a gap is small enough (see the module's docstring).

    Attributes
    ----------
    tol : float
        A share of the gain; of F itself where `is_absolute`, as in the RankSVM paper.
    at_zero : float
        ``F(0)``.
    """

    tol: float
    at_zero: float
    alpha: float
    is_absolute: bool = False

    @property
    def rounding(self) -> float:
        """How much the difference of two values may be off by."""
        return _ROUNDING * self.at_zero

    def gap(self, value: float, bound: float) -> float:
        """Return what two values prove, less than which is rounding."""
        return max(value - bound, 0.0) + self.rounding

    def gap_of_slope(self, gradient: Floats) -> float:
        """Return what the gradient of F proves: ``‖∇F‖²/(4α)``."""
        return float(gradient @ gradient) / (4 * self.alpha)

    def decrease(self, value: float, coef: Floats, gradient: Floats | None = None) -> float:
        """Return ``F(0) - F(w)``; more exactly where ``∇F(w)`` is known and values have no digits left for it."""
        from_values = self.at_zero - value - self.rounding
        if gradient is None:
            return max(from_values, 0.0)
        return max(from_values, self.alpha * float(coef @ coef) - float(gradient @ coef), 0.0)

    def allowed(self, gap: float, decrease: float) -> float:
        """Return the gap that is small enough, where this is the gap and so much was gained since 0."""
        return self.tol if self.is_absolute else self.tol * (gap + decrease)


def solve_linear_limit(objective: MarginObjective, rule: StoppingRule, gradient: Floats) -> Solution | None:
    """Return ``w = -g₀/(2α)`` where it is the minimum: alpha so large that the loss is as good as linear up to there.

    For the hinge it is the exact minimum where no pair reaches its margin. Costs two reads, and none where the slope of
    the loss at 0 alone says that pairs do.
    """
    alpha, reads = rule.alpha, objective.n_reads
    if float(gradient @ gradient) > 2 * alpha * rule.at_zero:
        return None
    coef = gradient / (-2 * alpha) + 0.0  # not -0
    point = objective.at_scores(objective.scores(coef))
    change = objective.pull_back(point.score_gradient) - gradient
    gap = rule.gap_of_slope(change)
    decrease = rule.decrease(float(point.value) + alpha * float(coef @ coef), coef, change)
    if gap > rule.allowed(gap, decrease):
        return None
    n_reads = objective.n_reads - reads
    return Solution(
        coef, Status.CONVERGED, n_iter=1, n_reads=n_reads, certificate=gap, gain=gap + decrease, history=[gap]
    )
