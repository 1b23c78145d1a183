"""What every solver returns."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from rankwise.pairs.graph import Floats

__all__ = ["Solution", "Status"]


class Status(Enum):
    """How a solver ended; the value is the sentence that a reader gets."""

    CONVERGED = "the tolerance was met"
    EXACT = "the system was solved exactly"
    SINGULAR = "the system is singular; of all solutions the one of least norm was taken"
    MAX_ITER = "max_iter was reached before the tolerance was met"
    STAGNATED = "rounding errors prevent further progress before the tolerance is met"

    @property
    def is_good(self) -> bool:
        """Whether the solution is what was asked for."""
        return self in {Status.CONVERGED, Status.EXACT}


@dataclass(frozen=True)
class Solution:
    """The minimum as a solver found it.

    Attributes
    ----------
    coef : (features,) or (features, outputs) float64
    status : Status
    n_iter : int
        Iterations; 0 for solvers that do not iterate.
    n_products : int
        Products of the Hessian with a vector that this solution took.
    certificate : float
        The relative residual ``‖b - (H + αI)w‖ / ‖b‖``, the largest over outputs.
    history : list of float
        That residual after each iteration.
    rank : int or None
        The rank that was found, where the system is singular.
    """

    coef: Floats
    status: Status
    n_iter: int = 0
    n_products: int = 0
    certificate: float = 0.0
    history: list[float] = field(default_factory=list)
    rank: int | None = None
