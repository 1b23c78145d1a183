"""Columns of very different scales: a residual that is measured, and a path that is taken, without their units.

``‖b - (H + αI)w‖ / ‖b‖`` is in the units of the largest column: beside a column 1e5 times larger, all others may be as
good as untouched when it is small. With ``D = diag(H) + α``, residuals of ``D^-1/2 (H + αI) D^-1/2 u = D^-1/2 b`` have
no units, and the path to them is that of a Jacobi preconditioner: it ends in the same model. Columns of like scales,
text among them, need neither (docs/mathematics.md, section 3).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from rankwise.arrays import Floats
from rankwise.objectives import BalancedObjective, QuadraticObjective
from rankwise.solvers.solution import Monitor, Solution

__all__ = ["balanced_solution", "balancing", "differ_in_scale", "unit_free"]

# Squares of columns, penalty included, that are so many times the median, or the median such a column, differ in scale.
# On text the largest is about 80 times the median, and the median 500 times the smallest.
_LIKE = 1e3


def differ_in_scale(sizes: Floats, alpha: float) -> bool:
    """Tell whether columns with this ``diag(H)`` need their units taken out; not where squares overflow."""
    seen = sizes[sizes > 0] + alpha
    if not seen.size or not np.isfinite(seen).all():
        return False
    typical = float(np.median(seen))
    return bool(seen.max() > _LIKE * typical or typical > _LIKE * seen.min())


def unit_free(sizes: Floats, alpha: float) -> Floats:
    """Return ``(diag(H) + α)^-1/2``: what residuals are multiplied by to have no units."""
    squares = sizes + alpha
    return np.asarray(np.where(squares > 0, squares, 1.0) ** -0.5)


def balancing(objective: QuadraticObjective, alpha: float) -> BalancedObjective | None:
    """Return the objective in units in which columns have like sizes; None where they have them as they are."""
    sizes = objective.sizes()
    if sizes is None or not differ_in_scale(sizes, alpha):
        return None
    return BalancedObjective(objective, alpha, unit_free(sizes, alpha))


def balanced_solution(
    balanced: BalancedObjective, solve: Callable[[Monitor | None], Solution], monitor: Monitor | None
) -> Solution:
    """Solve in those units, and return the solution in the columns' own; whoever watches sees these too."""

    def shown(coef: Floats, gap: float, n_iter: int) -> bool:
        assert monitor is not None
        return monitor(balanced.to_coef(coef), gap, n_iter)

    solution = solve(None if monitor is None else shown)
    return replace(solution, coef=balanced.to_coef(solution.coef))
