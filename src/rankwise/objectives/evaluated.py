"""Evaluation of quadratic objectives at a coefficient vector, by products alone."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from rankwise.arrays import Floats
from rankwise.objectives.protocols import QuadraticObjective

__all__ = ["Evaluated", "QuadraticPoint"]


class QuadraticPoint:
    """``w'Hw - 2b'w`` at a point, without the constant, which does not change the minimum."""

    def __init__(self, objective: QuadraticObjective, coef: Floats) -> None:
        self._objective, self._coef = objective, coef

    @cached_property
    def _image(self) -> Floats:
        return self._objective.product(self._coef)

    @property
    def value(self) -> Floats:
        """The objective, one entry per output."""
        return np.asarray((self._coef * (self._image - 2 * self._objective.rhs)).sum(axis=0))

    @property
    def gradient(self) -> Floats:
        """``2 (Hw - b)``."""
        return 2 * (self._image - self._objective.rhs)

    def hessian_product(self, v: Floats) -> Floats:
        """Apply ``2 H``."""
        return 2 * self._objective.product(v)


class Evaluated:
    """The part of a quadratic objective that follows from the others."""

    def at(self: QuadraticObjective, coef: Floats) -> QuadraticPoint:
        """Evaluate at a coefficient vector, or at several as columns."""
        return QuadraticPoint(self, coef)

    def sizes(self) -> Floats | None:
        """Return None: by default the unknowns are not coefficients of columns."""
        return None
