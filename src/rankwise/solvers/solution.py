"""The result type of all solvers."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import Protocol

from rankwise.arrays import Floats


class Monitor(Protocol):
    """Somebody who looks at a solver's progress."""

    def __call__(self, coef: Floats, gap: float, n_iter: int) -> bool:
        """Take note of coefficients and how far they are from the minimum; return True to stop.

        Solvers of margins tell the best so far and their proved gap; others every iterate and its relative residual.
        """


class Status(Enum):
    """How a solver ended; the value is the sentence that a reader gets."""

    CONVERGED = "the tolerance was met"
    EXACT = "the system was solved exactly"
    SINGULAR = "the system is singular; of all solutions the one of least norm was taken"
    MAX_ITER = "max_iter was reached before the tolerance was met"
    STOPPED = "whoever watched had seen enough"
    STAGNATED = "rounding errors prevent further progress before the tolerance is met"

    @property
    def is_good(self) -> bool:
        """Whether the solver reached its goal."""
        return self in {Status.CONVERGED, Status.EXACT, Status.STOPPED}


@dataclass(frozen=True)
class Solution:
    """The minimum as a solver found it.

    Attributes
    ----------
    coef : (features,) or (features, outputs) float64
    status : Status
    n_iter : int
        Iterations; 0 for solvers that do not iterate.
    certificate : float
        For a quadratic the relative residual ``‖b - (H + αI)w‖ / ‖b‖``, the largest over outputs, that iterations left;
        for losses with margins the proved duality gap, in units of the objective.
    gain : float
        For losses with margins the possible gain: the objective at 0 minus the proved lower bound of its minimum.
    history : list of float
        The certificate after each iteration.
    rank : int or None
        The rank that was found, where the system is singular.
    """

    coef: Floats
    status: Status
    n_iter: int = 0
    certificate: float = 0.0
    gain: float = 0.0
    history: list[float] = field(default_factory=list)
    rank: int | None = None

    @classmethod
    def proved(
        cls, coef: Floats, status: Status, history: list[float], decrease: float, n_iter: int | None = None
    ) -> Solution:
        """Return a solution by its gaps, of which the first is that of the start, and its decrease since ``w = 0``."""
        steps = len(history) - 1 if n_iter is None else n_iter
        gap = history[-1] if history else float("inf")
        return cls(coef, status, n_iter=steps, certificate=gap, gain=gap + decrease, history=history)
