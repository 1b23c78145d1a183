"""A figure with its standard error, and the difference of two figures of the same units."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rankwise.arrays import Floats

__all__ = ["Figure", "paired_difference", "standard_error"]


@dataclass(frozen=True)
class Figure:
    """The value of a metric on held-out units: queries, blocks of the rows of one ranking, or compared couples.

    Attributes
    ----------
    value : float
    per_unit : (units,) float64
    share : (units,) float64
        How much each unit counts; they sum to 1.
    repeats : int
        How often the same rows are among the units, in folds that were assigned again. That makes a value steadier, and
        the rows no more: standard errors are those of one time.
    """

    value: float
    per_unit: Floats
    share: Floats
    repeats: int = 1

    @property
    def standard_error(self) -> float:
        """Of the value; NaN where there is one unit."""
        return standard_error(self.per_unit, self.share, self.repeats)


def standard_error(values: Floats, share: Floats, repeats: int = 1) -> float:
    """Return the standard error of the mean of units that count by their share, each there so many times."""
    n_units = int((share > 0).sum())
    if n_units < 2:
        return float("nan")
    centred = values - (share * values).sum()
    spread = float(((share * centred) ** 2).sum()) * n_units / (n_units - 1)
    return float(np.sqrt(spread * repeats))


def paired_difference(first: Figure, second: Figure) -> tuple[float, float]:
    """Return ``first - second`` and the standard error of that difference, unit by unit."""
    error = standard_error(first.per_unit - second.per_unit, first.share, first.repeats)
    return first.value - second.value, error
