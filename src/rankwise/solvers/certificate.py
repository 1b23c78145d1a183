"""Proof of how far a minimum of ``loss(w) + α‖w‖²`` still is: a lower bound from planes below the loss.

If ``loss(v) >= g'v + s`` for every v, the minimum is at least ``min_v g'v + s + α‖v‖² = s - ‖g‖²/(4α)``. Gradients of a
convex loss are such planes, and so are convex combinations of them: `LowerBound` keeps the best combination of its
own plane and each new one, so that the bound never falls and costs one vector. The first plane is 0: no loss of pairs
is negative, so the bound is not either, and a gap is never more than the objective.

For a smooth loss at w the plane is ``g = ∇loss(w)``, ``s = loss(w) - g'w``, and the gap is
``‖∇loss(w) + 2αw‖²/(4α)``: the duality gap and the bound of strong convexity at once.
"""

from __future__ import annotations

import numpy as np

from rankwise.arrays import Floats

__all__ = ["LowerBound"]


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
