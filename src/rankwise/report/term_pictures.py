"""Curves and surfaces as small pictures, with the rows of a query marked on them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from rankwise.additive.shapes import FittedCurve, FittedSurface
from rankwise.formula.view import Doubles, dense_rows
from rankwise.report.charts import axis, span, ticks
from rankwise.report.markup import name, number, plain, section, signed, text
from rankwise.report.openings import OpenQuery
from rankwise.report.score_parts import TermParts

__all__ = ["TermPictures"]

_CURVES, _SURFACES = 12, 4
# In percent of a picture: where knots end if a place for missing values follows, and where that place is.
_KNOTS_END, _MISSING = 86.0, 95.0
_FEW = 0.05  # of the rows; half of what an end has where eight knots share the rows evenly
# A column whose middle knot stands nearer to an end is skewed: its knots are drawn at equal distances.
_SKEWED = 0.15
_ROWS_HEIGHT = 12.0  # of the histogram of the rows, at the bottom
_CELLS = 24  # a side of a surface's picture
# Lowers the score, nothing, raises it: orange to blue by way of nearly white.
_LOW, _MIDDLE, _HIGH = (178, 80, 11), (244, 244, 242), (26, 111, 181)
_TONES = 17


class TermPictures:
    """The strongest curves and surfaces of a model.

    Parameters
    ----------
    parts : TermParts
    is_scaled : bool
        Whether the columns were scaled before the model got them.
    """

    def __init__(self, parts: TermParts, *, is_scaled: bool) -> None:
        ranker = parts.ranker
        self.curves: list[FittedCurve] = sorted(ranker.curves_, key=lambda curve: -curve.importance)[:_CURVES]
        self.surfaces: list[FittedSurface] = ranker.surfaces_[:_SURFACES]
        self.names, self.is_scaled = parts.columns, is_scaled
        self.n_curves, self.n_surfaces = len(ranker.terms_.curves), len(ranker.terms_.surfaces)
        # Ends that few rows reach may leave the picture: they would make the rest of every curve flat.
        added = [np.append(curve.values[curve.shares >= _FEW], curve.missing) for curve in self.curves]
        ends = np.concatenate([*added, [0.0]])
        low, high = min(float(ends.min()), 0.0), max(float(ends.max()), 0.0)
        pad = 0.05 * (high - low) or 0.01
        # Below the curves is room for how the rows are spread.
        self.range = low - pad - (high - low + 2 * pad) * _ROWS_HEIGHT / (100 - _ROWS_HEIGHT), high + pad
        self.strength = (
            max((float(np.abs(surface.values).max()) for surface in self.surfaces), default=1.0) or 1.0
        )

    def section(self) -> str:
        """Return the part of the page."""
        pictures = "".join(self._curve(number, curve) for number, curve in enumerate(self.curves))
        maps = "".join(self._surface(number, one) for number, one in enumerate(self.surfaces))
        scaled = ", after scaling" if self.is_scaled else ""
        introduction = (
            f"<p>What each column{scaled} adds to a score; the number beside a name is the spread that it causes "
            "inside queries. All curves have the same scale upwards; along a skewed column the knots are drawn at "
            "equal distances. The grey bars show how the training rows are "
            f'spread.{_shown(len(self.curves), self.n_curves, "curve")} <span class="noprint">Rows of the query '
            "that you look at are marked: A and B as above.</span></p>"
            '<div class="pickers one noprint"><label>Mark the rows of<select id="pick-marked"></select></label></div>'
        )
        if maps:
            maps = (
                "<h3>Pairs of columns</h3><p>What two columns add together, beyond their curves: blue raises a score, "
                f"orange lowers it, by up to {number(self.strength, 3)}."
                f'{_shown(len(self.surfaces), self.n_surfaces, "surface")}</p><div class="pictures">{maps}</div>'
            )
        return section(
            "curves", "Curves", f'{introduction}<div class="pictures">{pictures}</div>{maps}{self._table()}'
        )

    def marks(self, prepared: Any, query: OpenQuery) -> list[list[list[float]]]:
        """Return where the rows of a query stand on each picture, from the left and from the top, in percent."""
        X = dense_rows(prepared, np.array([row.row for row in query.rows], dtype=np.int64))
        found = []
        for curve in self.curves:
            column = X[:, curve.column]
            across = _places(curve, column)
            down = 100 - span_of(*self.range, _read(curve, column))
            found.append(_rounded(across, down))
        for surface in self.surfaces:
            first, second = (
                _along(knots, X[:, column], is_levels=is_levels)
                for knots, column, is_levels in zip(
                    surface.knots, surface.columns, surface.is_levels, strict=True
                )
            )
            found.append(_rounded(first, 100 - second))
        return found

    def _curve(self, place: int, curve: FittedCurve) -> str:
        where = _places(curve, curve.knots)
        heights = 100 - span_of(*self.range, curve.values)
        zero = 100 - span(*self.range, 0.0)
        drawn = f'<path class="rule" d="M0 {zero:.2f}H100"/>{_spread(curve, where)}'
        if curve.is_levels or curve.knots.size == 1:
            half = min(40.0 / max(where.size, 1), 12.0)
            drawn += "".join(
                f'<path class="line chosen" d="M{x - half:.2f} {y:.2f}H{x + half:.2f}"/>'
                for x, y in zip(where, heights, strict=True)
            )
            stride = max(1, -(-where.size // 4))
            x_marks = [(x, number(level, 3)) for x, level in zip(where, curve.knots, strict=True)][::stride]
        else:
            points = " ".join(f"{x:.2f},{y:.2f}" for x, y in zip(where, heights, strict=True))
            drawn += f'<polyline class="line chosen" points="{points}"/>'
            shown = _ticks_of(curve.knots)
            x_marks = [(x, number(tick, 3)) for x, tick in zip(_places(curve, shown), shown, strict=True)]
        if curve.missing != 0.0:
            height = 100 - span(*self.range, curve.missing)
            drawn += f'<path class="line chosen" d="M{_KNOTS_END + 4:.0f} {height:.2f}H100"/>'
            x_marks = [mark for mark in x_marks if mark[0] < _KNOTS_END - 14] + [(_MISSING, "missing")]
        levels = [(100 - span(*self.range, tick), number(tick, 3)) for tick in ticks(*self.range, 4)]
        return self._figure(place, self.names[curve.column], curve.importance, drawn, x_marks, levels)

    def _surface(self, place: int, surface: FittedSurface) -> str:
        shares = (np.arange(_CELLS) + 0.5) / _CELLS
        grid = surface.values
        for side, (knots, is_levels) in enumerate(zip(surface.knots, surface.is_levels, strict=True)):
            grid = _stretched(np.moveaxis(grid, side, 0)[: knots.size], knots, shares, is_levels=is_levels)
            grid = np.moveaxis(grid, 0, side)
        tone = np.round((grid / self.strength + 1) / 2 * (_TONES - 1)).astype(int)
        paths = [""] * _TONES
        for across in range(_CELLS):
            for down in range(_CELLS):
                paths[tone[across, _CELLS - 1 - down]] += f"M{across} {down}h1v1h-1z"
        drawn = "".join(
            f'<path fill="{colour}" d="{path}"/>'
            for colour, path in zip(_tones(), paths, strict=True)
            if path
        )
        sides = []
        for knots, is_levels in zip(surface.knots, surface.is_levels, strict=True):
            shown = knots[:: max(1, -(-knots.size // 4))] if is_levels else _ticks_of(knots)
            where = _along(knots, shown, is_levels=is_levels)
            sides.append([(float(x), number(value, 3)) for x, value in zip(where, shown, strict=True)])
        first, second = (self.names[column] for column in surface.columns)
        return self._figure(
            len(self.curves) + place,
            f"{first} × {second}",
            surface.importance,
            drawn,
            sides[0],
            [(100 - y, label) for y, label in sides[1]],
            size=_CELLS,
            titles=(first, second),
        )

    def _figure(
        self,
        place: int,
        called: str,
        importance: float,
        drawn: str,
        x_marks: Sequence[tuple[float, str]],
        y_marks: Sequence[tuple[float, str]],
        *,
        size: int = 100,
        titles: tuple[str, str] | None = None,
    ) -> str:
        crisp = "" if titles is None else ' shape-rendering="crispEdges"'
        below = (
            ""
            if titles is None
            else f'<p class="note">across: {name(titles[0], 40)}, up: {name(titles[1], 40)}</p>'
        )
        return (
            f"<figure><figcaption>{name(called, 60)} <small>{number(importance, 3)}</small></figcaption>"
            f'<div class="plot small"><div class="frame" data-picture="{place}"><svg viewBox="0 0 {size} {size}" '
            f'preserveAspectRatio="none" role="img" aria-label="What {text(plain(called))} adds"{crisp}>{drawn}</svg>'
            f"{axis('y', y_marks)}{axis('x', x_marks)}</div></div>{below}</figure>"
        )

    def _table(self) -> str:
        lines = ""
        for curve in self.curves:
            cells = [
                f"{number(knot, 4)}: {signed(float(value))}"
                for knot, value in zip(curve.knots, curve.values, strict=True)
            ]
            cells += [f"missing: {signed(curve.missing)}"] if curve.missing != 0.0 else []
            lines += (
                f'<tr><th scope="row">{name(self.names[curve.column])}</th><td class="n">'
                f"{number(curve.importance, 3)}</td><td>{text(' · '.join(cells))}</td></tr>"
            )
        return (
            '<details><summary>Curves as a table</summary><div class="scroll" tabindex="0" role="group" '
            'aria-label="Curves as a table"><table><thead><tr><th>Column</th><th class="n">spread</th>'
            f"<th>value: what it adds</th></tr></thead><tbody>{lines}</tbody></table></div></details>"
        )


def _shown(shown: int, there: int, thing: str) -> str:
    return "" if shown == there else f" These are the {shown} strongest of {number(there)} {thing}s."


def span_of(low: float, high: float, values: Doubles) -> Doubles:
    """Return where values stand between two others, in percent."""
    return 100.0 * (values - low) / (high - low)


def _along(knots: Doubles, values: Doubles, *, is_levels: bool) -> Doubles:
    """Return where values stand along knots, in percent; outside they stand at the nearest end."""
    if is_levels or knots.size == 1:
        place = np.clip(np.searchsorted(knots, values), 0, knots.size - 1)
        return np.asarray(100.0 * (place + 0.5) / knots.size)
    return np.interp(values, knots, _knot_places(knots))


def _knot_places(knots: Doubles) -> Doubles:
    """Return where knots are drawn, in percent."""
    places = span_of(float(knots[0]), float(knots[-1]), knots)
    middle = places[(knots.size - 1) // 2 : knots.size // 2 + 1].mean()
    return places if 100 * _SKEWED <= middle <= 100 * (1 - _SKEWED) else np.linspace(0.0, 100.0, knots.size)


def _ticks_of(knots: Doubles) -> Doubles:
    """Return round numbers along the knots, or some of the knots where those are drawn at equal distances."""
    even = np.linspace(0.0, 100.0, knots.size)
    if knots.size > 2 and np.array_equal(_knot_places(knots), even):
        return knots[:: max(1, -(-knots.size // 4))]
    return np.array(ticks(float(knots[0]), float(knots[-1]), 3))


def _places(curve: FittedCurve, values: Doubles) -> Doubles:
    along = _along(curve.knots, values, is_levels=curve.is_levels)
    if curve.missing == 0.0:
        return np.where(np.isnan(values), 0.0, along)
    return np.where(np.isnan(values), _MISSING, along * _KNOTS_END / 100)


def _read(curve: FittedCurve, values: Doubles) -> Doubles:
    """Read values off a curve, as the model does."""
    if curve.is_levels:
        place = np.clip(np.searchsorted(curve.knots, values), 0, curve.knots.size - 1)
        return np.where(curve.knots[place] == values, curve.values[place], curve.missing)
    return np.where(np.isnan(values), curve.missing, np.interp(values, curve.knots, curve.values))


def _spread(curve: FittedCurve, where: Doubles) -> str:
    """Draw how the training rows are spread: the share of a knot lies half-way to its neighbours."""
    if curve.is_levels or curve.knots.size == 1:
        edges = np.column_stack([where - 6, where + 6]).clip(0, 100)
        heights = curve.shares
    else:
        middle = (where[1:] + where[:-1]) / 2
        edges = np.column_stack([np.append(where[0], middle), np.append(middle, where[-1])])
        # Spikes, such as many zeros, would make the rest invisible: the root shows both.
        heights = np.sqrt(curve.shares / np.maximum(np.diff(edges, axis=1)[:, 0], 1e-9))
    tallest = float(heights.max()) or 1.0
    return "".join(
        f'<rect class="rows" x="{left:.2f}" width="{right - left:.2f}" y="{100 - _ROWS_HEIGHT * height / tallest:.2f}" '
        f'height="{_ROWS_HEIGHT * height / tallest:.2f}"/>'
        for (left, right), height in zip(edges, heights, strict=True)
    )


def _stretched(values: Doubles, knots: Doubles, shares: Doubles, *, is_levels: bool) -> Doubles:
    """Interpolate lines of a grid at places between the first and the last knot, or repeat those of levels."""
    if is_levels or knots.size == 1:
        return np.asarray(values[np.minimum((shares * knots.size).astype(int), knots.size - 1)])
    where = np.interp(100 * shares, _knot_places(knots), knots)
    return np.column_stack([np.interp(where, knots, line) for line in values.T])


def _rounded(across: Doubles, down: Doubles) -> list[list[float]]:
    down = np.clip(np.nan_to_num(down, nan=100.0), 0.0, 100.0)
    return [
        [round(float(x), 1), round(float(y), 1)] for x, y in zip(np.nan_to_num(across), down, strict=True)
    ]


def _tones() -> list[str]:
    where = np.linspace(0, 2, _TONES)
    anchors: npt.NDArray[Any] = np.array([_LOW, _MIDDLE, _HIGH])
    channels = [np.interp(where, [0, 1, 2], anchors[:, channel]) for channel in range(3)]
    return ["#" + "".join(f"{round(c[i]):02x}" for c in channels) for i in range(_TONES)]
