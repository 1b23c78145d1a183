"""Tables of held-out errors: every alpha after every iteration, how long they grow, and the cells that methods choose.

Tikhonov regularisation (each alpha converged), early stopping (alpha = 0) and the hybrid of the large-scale
RankRLS paper are three ways to read a table.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from rankwise.arrays import Floats

__all__ = ["EQUAL", "Choice", "Rule", "Surface", "are_stale", "best_cells", "have_converged", "have_steps"]

EQUAL = 1e-12  # errors that differ by less are equally good: sums of weights round in the order of the rows


class Choice(NamedTuple):
    """An alpha, an iteration (0 where models have converged), and the held-out error there."""

    alpha: float
    step: int
    error: float


@dataclass
class Surface:
    """The table of errors of one output, and what was learned while it grew.

    Attributes
    ----------
    alphas : (alphas,) float64
        In increasing order.
    tol : float
        The relative residual at which an alpha has converged; its column stays as it is from then on.
    errors : list of (alphas,) float64
        One entry per iteration; lower is better.
    converged_at : (alphas,) int64
        The iteration at which each alpha met the tolerance in every column; 0 while it has not.
    """

    alphas: Floats
    tol: float
    errors: list[Floats] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.converged_at = np.zeros(self.alphas.size, dtype=np.int64)

    @property
    def table(self) -> Floats:
        """The errors, alphas × iterations."""
        return np.array(self.errors).T if self.errors else np.empty((self.alphas.size, 0))

    @property
    def n_active(self) -> int:
        """Alphas up to the largest that has not converged still move."""
        open_ones = np.flatnonzero(self.converged_at == 0)
        return int(open_ones[-1]) + 1 if open_ones.size else 0

    def record(self, active_errors: Floats, residual: Floats) -> None:
        """Add an iteration: the errors of the active alphas, and the residuals of all, (columns, alphas)."""
        previous = self.errors[-1] if self.errors else np.zeros(self.alphas.size)
        row = previous.copy()
        row[: active_errors.size] = active_errors
        step = len(self.errors) + 1
        met = (residual <= self.tol).all(axis=0) & (self.converged_at == 0)
        self.converged_at[met] = step
        self.errors.append(row)

    def repeat(self) -> None:
        """Add an iteration in which nothing moved."""
        self.errors.append(self.errors[-1])

    def absorb(self, other: Surface) -> None:
        """Take over the alphas of another one, of the same rows after the same steps."""
        order = np.argsort(np.concatenate([self.alphas, other.alphas]))
        self.alphas = np.concatenate([self.alphas, other.alphas])[order]
        self.converged_at = np.concatenate([self.converged_at, other.converged_at])[order]
        self.errors = [
            np.concatenate([own, more])[order] for own, more in zip(self.errors, other.errors, strict=True)
        ]

    def best_cell(self, candidates: Sequence[int] | None = None) -> Choice:
        """Return the cell of least error: of equals the earliest, then the largest alpha."""
        chosen = range(self.alphas.size) if candidates is None else candidates
        table = self.table[list(chosen)]
        is_best = table <= table.min() + EQUAL
        step = int(np.argmax(is_best.any(axis=0)))
        row = int(np.flatnonzero(is_best[:, step])[-1])
        return Choice(float(self.alphas[chosen[row]]), step + 1, float(table[row, step]))

    def best_converged(self, candidates: Sequence[int]) -> Choice:
        """Return the alpha of least error where each has converged; of equals the largest alpha."""
        steps = [int(self.converged_at[i]) or len(self.errors) for i in candidates]
        cells = [
            Choice(float(self.alphas[i]), step, float(self.errors[step - 1][i]))
            for i, step in zip(candidates, steps, strict=True)
        ]
        least = min(cell.error for cell in cells)
        return [cell for cell in cells if cell.error <= least + EQUAL][-1]


Rule = Callable[[Sequence[Surface]], bool]


def have_converged(candidates: Sequence[int], surfaces: Sequence[Surface]) -> bool:
    """Tell whether all of some alphas have converged."""
    return all(bool((surface.converged_at[list(candidates)] > 0).all()) for surface in surfaces)


def are_stale(candidates: Sequence[int], patience: int, surfaces: Sequence[Surface]) -> bool:
    """Tell whether no cell of some alphas has beaten the best one for so many iterations."""
    return all(
        bool(surface.errors) and len(surface.errors) - surface.best_cell(candidates).step >= patience
        for surface in surfaces
    )


def have_steps(steps: int, surfaces: Sequence[Surface]) -> bool:
    """Tell whether so many iterations were made."""
    return len(surfaces[0].errors) >= steps


def best_cells(method: str, surfaces: Sequence[Surface], candidates: Sequence[int]) -> list[Choice]:
    """Read each output's surface the way a method does."""
    if method == "tikhonov":
        return [surface.best_converged(candidates) for surface in surfaces]
    return [surface.best_cell(candidates) for surface in surfaces]
