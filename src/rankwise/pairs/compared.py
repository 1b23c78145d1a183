"""One ranking in which every two rows are compared: the labels and alphas of models without two of its rows.

The formulas are in `rankwise.holdout.compared_pairs`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from rankwise.arrays import Floats, Rows

__all__ = ["ComparedRows"]

_NEGLIGIBLE = 1e-13  # of the weight of pairs is rounding


@dataclass(frozen=True)
class ComparedRows:
    """One ranking in which every two rows are compared, tied or not.

    Attributes
    ----------
    y : (rows,) float64
    weight : (rows,) float64
        Positive.
    cost : {"magnitude", "unit"}
    query_weight : {"size", "pairs", "equal"}
    rows : (rows,) int64 or None
        Their numbers in the design; the others weigh nothing.
    """

    y: Floats
    weight: Floats
    cost: str
    query_weight: str
    rows: Rows | None = None

    @cached_property
    def level(self) -> Rows:
        """The level of each row's label, from the lowest."""
        return np.unique(self.y, return_inverse=True)[1].astype(np.int64)

    @cached_property
    def labels(self) -> Floats:
        """Targets of the equivalent ridge regression: centred y, or the weight of the rows below minus above."""
        if self.cost != "unit":
            return np.asarray(self.y - self.weight @ self.y / self.weight.sum())
        of_level = np.bincount(self.level, weights=self.weight)
        below = np.cumsum(of_level) - of_level
        return np.asarray((2 * below + of_level - of_level.sum())[self.level])

    @cached_property
    def _opponents(self) -> Floats:
        """The weight of each row's pairs with different labels."""
        of_level = np.bincount(self.level, weights=self.weight)
        return np.asarray(self.weight * (of_level.sum() - of_level)[self.level])

    @property
    def is_even(self) -> bool:
        """Whether all pairs with different labels change alpha alike."""
        if self.query_weight == "size":
            return True
        varies = np.ptp(self.weight) > 0
        return not varies and (self.query_weight == "pairs" or np.ptp(self._opponents) == 0)

    def alpha_factor(self, i: Rows, j: Rows) -> Floats:
        """Return the factor of alpha when i and j are held out; 0 where no pair with weight remains."""
        total = float(self.weight.sum())
        w_i, w_j = self.weight[i], self.weight[j]
        if self.query_weight == "size":
            return np.ones(np.broadcast_shapes(i.shape, j.shape))
        factor = total / np.maximum(total - w_i - w_j, self.weight.min())
        if self.query_weight == "pairs":
            return np.asarray(factor)
        ordered = float(self._opponents.sum()) / 2
        left = ordered - self._opponents[i] - self._opponents[j] + w_i * w_j
        return np.asarray(factor * np.where(left > _NEGLIGIBLE * ordered, left / ordered, 0.0))
