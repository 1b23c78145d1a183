"""The part that displays share: axes of matplotlib, a line about themselves, and an HTML table for notebooks."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

from rankwise.explanations.explanation import html_table, import_pyplot

LARGEST = 4.0  # how often the scale of the strongest curve may be enlarged for a weak one
ROOM = 0.12  # of a picture's height, at the bottom: a histogram of the rows


class Display(ABC):
    """The base of displays."""

    @abstractmethod
    def _table(self) -> tuple[str, list[str], list[list[str]]]:
        """Return the content in a few words, the names of columns, and rows of cells."""

    def _axes(self, ax: Any, size: tuple[float, float]) -> Any:
        """Keep and return the given axes, or those of a new figure of this size in inches."""
        if ax is None:
            _, ax = import_pyplot().subplots(figsize=size, layout="constrained")
        self.ax_, self.figure_ = ax, ax.figure
        return ax

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self._table()[0]}>"

    def _repr_html_(self) -> str:
        return html_table(*self._table())


def curve_limits(curves: Sequence[Sequence[float]]) -> list[tuple[float, float]]:
    """Return the vertical limits of pictures of curves: zero, all values of a curve, and room below.

    No curve's scale is much finer than that of the strongest one.
    """
    ends = [(min(0.0, *values), max(0.0, *values)) for values in curves]
    least = max((high - low for low, high in ends), default=0.0) / LARGEST
    found = []
    for low, high in ends:
        pad = 0.05 * (high - low) + max(least - (high - low), 0.0) / 2 or 0.01
        room = (high - low + 2 * pad) * ROOM / (1 - ROOM)
        found.append((low - pad - room, high + pad))
    return found
