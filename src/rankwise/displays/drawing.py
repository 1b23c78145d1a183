"""The part that displays share: axes of matplotlib, a line about themselves, and an HTML table for notebooks."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from rankwise.explanations.explanation import html_table, import_pyplot

__all__ = ["Display", "axes_to_draw_on"]


class Display(ABC):
    """The base of displays."""

    @abstractmethod
    def _table(self) -> tuple[str, list[str], list[list[str]]]:
        """Return the content in a few words, the names of columns, and rows of cells."""

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self._table()[0]}>"

    def _repr_html_(self) -> str:
        return html_table(*self._table())


def axes_to_draw_on(ax: Any, size: tuple[float, float]) -> Any:
    """Return the given axes, or those of a new figure of this size in inches."""
    return import_pyplot().subplots(figsize=size, layout="constrained")[1] if ax is None else ax
