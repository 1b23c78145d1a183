"""The grid of alphas of an additive model, extended where the best alpha lies at an end."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rankwise.selection.grids import WORTH, is_default_grid

__all__ = ["DEFAULT_ALPHAS", "Ladder", "is_worth"]

_BEYOND = 6  # steps of the default grid beyond either end: three decades


def _step(number: int) -> float:
    """Return one of the default alphas, two per decade from 0.1 down."""
    return float(f"{10.0 ** (-(number + 2) / 2):.1g}")


DEFAULT_ALPHAS = tuple(_step(number) for number in range(9))


@dataclass(frozen=True)
class Ladder:
    """A grid of alphas, numbered from the largest one at 0; the default grid continues beyond its ends.

    Attributes
    ----------
    alphas : sequence of float
        From the largest down.
    """

    alphas: Sequence[float]

    @classmethod
    def of_grid(cls, grid: Sequence[float]) -> Ladder:
        """Return the ladder of a checked grid."""
        return cls(sorted(grid, reverse=True))

    def at(self, step: int) -> float | None:
        """Return an alpha; None beyond the ends of the ladder."""
        if not self.is_beyond(step):
            return self.alphas[step]
        return _step(step) if self.is_default and -_BEYOND <= step < len(self.alphas) + _BEYOND else None

    @property
    def is_default(self) -> bool:
        """Whether this is the default grid."""
        return is_default_grid(np.sort(self.alphas), DEFAULT_ALPHAS)

    @property
    def first(self) -> int:
        """Where a search starts: at 1e-2 in the default grid, which most data want or less."""
        return 2 if self.is_default else 0

    @property
    def stride(self) -> int:
        """Steps between the alphas of a coarse search: a decade of the default grid, every alpha of another."""
        return 2 if self.is_default else 1

    def is_beyond(self, step: int) -> bool:
        """Tell whether a step lies beyond the grid."""
        return not 0 <= step < len(self.alphas)


def is_worth(error: float, before: float) -> bool:
    """Tell whether going beyond a grid, or to finer knots, gains as much as it must in every other grid."""
    return error < before - WORTH * abs(before)
