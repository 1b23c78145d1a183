"""Explanations, and their display as text, HTML and figure."""

from __future__ import annotations

import html
import math
from collections.abc import Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import TYPE_CHECKING

from rankwise.exceptions import MissingPackageError

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_WIDTH = 24  # letters of the longest bar in text


@dataclass(frozen=True)
class Part:
    """The contribution of one column, product or pair of columns, or basis row.

    Attributes
    ----------
    name : str
        Of the column, in the user's words; ``a:b`` for a product, ``a × b`` for a pair; ``basis row 3`` for a
        kernel.
    values : tuple
        The row's values, in the column's own units; for a pair of rows, those of both.
    contribution : float

    Examples
    --------
    >>> from rankwise.explanations import Part
    >>> part = Part("price", (9.5,), -0.25)
    >>> part.name, part.contribution
    ('price', -0.25)
    """

    name: str
    values: tuple[object, ...]
    contribution: float


@dataclass(frozen=True)
class Explanation:
    """Parts that add up to a score, or to the difference of two.

    Attributes
    ----------
    title : str
    total : float
        The score that `predict` returns, or the difference of two.
    constant : float
        The part of the score that belongs to no column; 0 in a difference.
    parts : tuple of Part
        The largest first; those that contribute nothing are left out.

    Examples
    --------
    >>> import numpy as np
    >>> import rankwise
    >>> model = rankwise.RankRLS(alpha=0.1).fit([[0.0], [1.0], [2.0]], [0, 1, 2])
    >>> (why,) = rankwise.explain(model, np.array([[2.0]]), feature_names=["rating"])
    >>> bool(abs(why.constant + sum(part.contribution for part in why.parts) - why.total) < 1e-12)
    True
    """

    title: str
    total: float
    constant: float
    parts: tuple[Part, ...]

    def __str__(self) -> str:
        return self.text()

    def text(self, n_parts: int = 12) -> str:
        """Return it as lines of text.

        Parameters
        ----------
        n_parts : int
            How many parts are shown; the others become one line.
        """
        rows = self._rows(n_parts)
        width = max(len(name) for name, _, _ in rows)
        values = max(len(value) for _, value, _ in rows)
        largest = max(abs(number) for _, _, number in rows) or 1.0
        lines = [self.title]
        for name, value, number in rows:
            bar = ("+" if number > 0 else "-") * round(_WIDTH * abs(number) / largest)
            lines.append(f"  {name.ljust(width)}  {value.rjust(values)}  {number:+11.4g}  {bar}".rstrip())
        lines.append(f"  {'total'.ljust(width)}  {''.rjust(values)}  {self.total:+11.4g}")
        return "\n".join(lines)

    def to_html(self, n_parts: int = 12) -> str:
        """Return it as a table in HTML that needs nothing else; everything from outside is escaped."""
        rows = self._rows(n_parts)
        largest = max(abs(number) for _, _, number in rows) or 1.0
        bars = [
            f'<div style="height:.7em;width:{8 * abs(number) / largest:.2f}em;'
            f'background:{"#2a78b5" if number > 0 else "#c0504d"}"></div>'
            for *_, number in rows
        ]
        cells = [[name, value, f"{number:+.4g}"] for name, value, number in rows]
        head = ["column", "value", "contribution"]
        return html_table(self.title, head, [*cells, ["total", "", f"{self.total:+.4g}"]], [*bars, ""])

    _repr_html_ = to_html

    def plot(self, ax: Axes | None = None, n_parts: int = 12) -> Axes:
        """Draw bars with matplotlib, and return the axes.

        Parameters
        ----------
        ax : matplotlib axes, optional
        n_parts : int
        """
        rows = self._rows(n_parts)
        if ax is None:
            _, ax = import_pyplot().subplots(figsize=(6, 0.6 + 0.3 * len(rows)))
        labels = [f"{name} = {value}" if value else name for name, value, _ in rows]
        numbers = [number for _, _, number in rows]
        ax.barh(range(len(rows)), numbers, color=["C0" if number > 0 else "C3" for number in numbers])
        ax.set_yticks(range(len(rows)), labels)
        ax.invert_yaxis()
        ax.axvline(0, color="black", linewidth=0.8)
        ax.set_title(self.title)
        ax.set_xlabel("contribution")
        return ax

    def _rows(self, n_parts: int) -> list[tuple[str, str, float]]:
        rows = [(part.name, shown(part.values), part.contribution) for part in self.parts[:n_parts]]
        others = self.parts[n_parts:]
        if others:
            rows.append((f"{len(others):,} others", "", math.fsum(part.contribution for part in others)))
        if self.constant or not rows:
            rows.append(("constant", "", self.constant))
        return rows


def html_table(
    title: str, head: Sequence[str], rows: Sequence[Sequence[str]], bars: Sequence[str] | None = None
) -> str:
    """Return a table in HTML that needs nothing else; all but the markup of bars is escaped."""
    heads = "".join(f"<th>{html.escape(one)}</th>" for one in head)
    lines = ""
    for row, bar in zip(rows, bars or [""] * len(rows), strict=True):
        first, *others = map(html.escape, row)
        cells = "".join(f'<td style="text-align:right">{cell}</td>' for cell in others)
        lines += f"<tr><td>{first}</td>{cells}{f'<td>{bar}</td>' if bars else ''}</tr>"
    top = f"<caption>{html.escape(title)}</caption><thead><tr>{heads}</tr></thead>"
    return f'<table class="rankwise">{top}<tbody>{lines}</tbody></table>'


def import_pyplot() -> ModuleType:
    """Import matplotlib, or say how to get it."""
    try:
        import matplotlib.pyplot as plt  # noqa: PLC0415 - only when something is drawn
    except ImportError as error:
        raise MissingPackageError(
            "Pictures need matplotlib, which is not installed.", "pip install 'rankwise[report]'."
        ) from error
    return plt


def shown(values: Sequence[object]) -> str:
    """Return the text of a cell: one value, or those of a pair of rows."""
    return " / ".join(_one(value) for value in values)


def _one(value: object) -> str:
    if isinstance(value, tuple):
        return ", ".join(_one(part) for part in value)
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return "missing"
    return f"{value:.6g}" if isinstance(value, int | float) else str(value)
