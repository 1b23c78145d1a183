"""Importance of columns: the parts of scores, from the formula of a model, with plots of curves and surfaces."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp

from rankwise.arrays import AnyArray, Floats, Ints, MatrixLike, is_sparse
from rankwise.data.queries import Queries
from rankwise.displays.models import LARGEST, ROOM, curve_limits
from rankwise.explanations.explaining import contributions
from rankwise.exporters.engines import edges_of, function_of
from rankwise.formula.formula import Column, Formula, Surface, Table, Term
from rankwise.formula.steps import Affine, Levels, QueryScale, Step, is_missing
from rankwise.report import markup as html

_SHOWN, _FIRST = 20, 5  # columns in the table, and of them in sight
_CURVES, _SURFACES, _LEVELS = 12, 4, 12
_NUMBERS = 20_000_000  # contributions that are held at once
# In percent of a picture: where a curve ends if a place for missing values follows, and where that place is.
_END, _MISSING = 86.0, 95.0
_SKEWED = 0.15  # a column whose median stands nearer to an end is drawn by quantiles
_POINTS, _BINS, _CELLS = 81, 24, 24  # of a curve, of a histogram, of a side of a surface
# Lowers the score, nothing, raises it: orange to blue by way of nearly white.
_TONES = "b2500b f4f4f2 1a6fb5"
_N_TONES = 17

Inputs = tuple[tuple[int, ...], ...]


class Parts:
    """The parts that scores are sums of: columns, pairs of columns, and basis rows of a kernel.

    Attributes
    ----------
    names : list of str
    description : str
        The sum in words, inside "A score is ...".
    spread : (column parts,) float64
        The standard deviation that each part of columns causes inside queries, on the rows of the report.
    weights : (columns,) float64 or None
        Where the model is linear in its columns.
    """

    def __init__(self, formula: Formula, X: MatrixLike, qid: Any, queries: Queries) -> None:
        self.formula, self._X, self._qid, self._queries = formula, X, qid, queries
        self.weights, self._centers = _linear(formula)
        self.inputs: list[Inputs] = [((at,),) for at in range(len(formula.names))]
        if self.weights is None:
            singles = [(term.column.inputs,) for term in formula.terms]
            pairs = [tuple(column.inputs for column in one.columns) for one in formula.surfaces]
            self.inputs = list(dict.fromkeys([*singles, *pairs]))
        n_basis = 0 if formula.kernel is None else formula.kernel.dual.size
        self.names = [*map(formula.title, self.inputs), *(f"basis row {at}" for at in range(n_basis))]
        of_columns = "the contributions of the columns, after their preparation"
        of_basis = (
            "the contribution of the kernel: the similarity of the row to each basis row, times a weight"
        )
        told = [*([of_columns] if self.inputs else []), *([of_basis] if n_basis else [])]
        self.description = f"a sum of {', and of '.join(told)}"

    def of(self, rows: Ints, *, with_kernel: bool = True) -> Floats:
        """Return the contribution of each part to the scores of some rows."""
        if self.weights is not None:
            own: Any = _rows(self._X, rows)
            own = own.toarray() if is_sparse(own) else np.asarray(own, dtype=np.float64)
            return np.asarray((own - self._centers) * self.weights)
        # Evaluated on the whole queries of these rows, and on no others.
        whole = np.flatnonzero(np.isin(self._queries.codes, self._queries.codes[rows]))
        qid = None if self._qid is None else np.asarray(self._qid)[whole]
        formula = self.formula if with_kernel else replace(self.formula, kernel=None)
        places = np.searchsorted(whole, rows).tolist()
        return contributions(formula, _rows(self._X, whole), qid, places).values

    def values(self, rows: Ints, chosen: Ints) -> list[list[object]]:
        """Return the values of the columns of some parts, row by row; None where a part has several columns."""
        found: list[Sequence[object]] = []
        for part in chosen.tolist():
            at = self.column(part)
            values = [None] * rows.size if at is None else self.table.values(Column(at))[rows].tolist()
            found.append(list(map(as_date, values)) if at in self.formula.dates else values)
        return [[column[row] for column in found] for row in range(rows.size)]

    def column(self, part: int) -> int | None:
        """Return the column that a part is about; None for a part of several, or of none."""
        inputs = self.inputs[part] if part < len(self.inputs) else ()
        return inputs[0][0] if len(inputs) == 1 and len(inputs[0]) == 1 else None

    @cached_property
    def table(self) -> Table:
        """The rows, column by column."""
        return Table(self._X, self._qid)

    @cached_property
    def spread(self) -> Floats:
        """The standard deviation that each part of columns causes inside queries."""
        codes, sizes = self._queries.codes, self._queries.sizes
        rows = np.arange(codes.size)
        if self.weights is None or not is_sparse(self._X):
            if codes.size * len(self.inputs) > _NUMBERS:  # whole queries of a sample
                rows = np.flatnonzero(codes < codes[max(_NUMBERS // len(self.inputs), 1)])
            added = np.nan_to_num(self.of(rows, with_kernel=False))
            to_query = sp.csr_matrix((1 / sizes[codes[rows]], (codes[rows], np.arange(rows.size))))
            inside = added - (to_query @ added)[codes[rows]]
            return np.asarray(np.sqrt((inside**2).mean(axis=0)))
        X: Any = self._X.tocsr()
        sums = sp.csr_matrix((1 / np.sqrt(sizes[codes]), (codes, rows))) @ X
        squares = (np.asarray(one.multiply(one).sum(axis=0)).ravel() for one in (X, sums))
        return np.asarray(np.sqrt(np.maximum(np.subtract(*squares), 0.0) / codes.size) * np.abs(self.weights))

    @property
    def order(self) -> Ints:
        """The parts of columns, the strongest first."""
        return np.argsort(-self.spread, kind="stable")


def _linear(formula: Formula) -> tuple[Floats | None, Floats]:
    """Return a weight and a centre for each column; no weights where the formula has more than these."""
    weights, centers = np.zeros(len(formula.names)), np.zeros(len(formula.names))
    for (at, *others), column, weight in ((t.column.inputs, t.column, t.weight) for t in formula.terms):
        if others or any(not isinstance(step, Affine) for step in column.steps) or weights[at]:
            return None, centers
        weights[at] = weight
        centers[at] = sum(step.center for step in column.steps if isinstance(step, Affine))
    return None if formula.surfaces or formula.kernel is not None else weights, centers


def as_date(days: float) -> str:
    """Write days since 1970 as a date."""
    return "missing" if np.isnan(days) else str(np.datetime64(int(days), "D"))


def _rows(X: Any, rows: Ints) -> Any:
    return X.tocsr()[rows] if is_sparse(X) else X.iloc[rows] if hasattr(X, "iloc") else np.asarray(X)[rows]


def columns_section(parts: Parts | None) -> str:
    """Show the columns that cause the largest differences inside queries."""
    if parts is None or not parts.inputs:
        return html.section(
            "columns",
            "Which columns matter",
            "<p>The scores of this model are not a sum over columns. <code>rankwise.feature_importance</code> measures "
            "how much of the order is lost without a column.</p>",
        )
    order = [at for at in parts.order[:_SHOWN].tolist() if parts.spread[at] > 0]
    spreads, weights = parts.spread[order], parts.weights
    shares = spreads / spreads.max(initial=1e-300)
    head = ["Column", "#spread"]
    cells = [[html.name(parts.names[at]) for at in order], html.alike(spreads.tolist())]
    if weights is None:
        head.append("~")
        cells.append(list(map(html.bar, shares)))
    else:
        head += ["#weight", "~lowers ← → raises the score"]
        drawn = [
            f'<div class="pull"><i class="{"up" if weights[at] > 0 else "down"}" style="width:{50 * s:.1f}%"></i></div>'
            for at, s in zip(order, shares, strict=True)
        ]
        cells += [html.alike(weights[order].tolist(), with_sign=True), drawn]
    rows = list(zip(*cells, strict=True))
    shown = html.listing("Columns", head, rows[:_FIRST], "weights")
    if rows[_FIRST:]:
        more = html.listing("More columns", head, rows[_FIRST:], "weights")
        shown += html.details(f"{len(rows) - _FIRST} more", more)
    rest = len(parts.inputs) - len(order)
    note = "Spread: the standard deviation of scores that a column causes inside queries, on these rows."
    note += " Weight: of the column in its own units." if weights is not None else ""
    note += f" {html.number(rest)} more columns matter less, or not at all." if rest else ""
    return html.section("columns", "Which columns matter", f'{shown}<p class="note">{note}</p>')


@dataclass(frozen=True)
class Axis:
    """Values along a side of a picture: levels, or numbers between anchors that are drawn at equal distances.

    Attributes
    ----------
    column : Column
        The values that are drawn: the user's column, or the column scaled inside queries.
    rest : tuple of Step
        The steps that follow.
    anchors : array
        Numbers, or the levels.
    labels : list of str
        Of the levels; empty for numbers.
    is_date : bool
        Whether numbers are days since 1970.
    """

    column: Column
    rest: tuple[Step, ...]
    anchors: AnyArray
    labels: list[str]
    is_date: bool = False

    def places(self, values: AnyArray) -> Floats:
        """Return where values stand, in percent; NaN for missing ones and unknown levels."""
        n = self.anchors.size
        if self.labels:
            known = {level: 100 * (at + 0.5) / n for at, level in enumerate(self.anchors.tolist())}
            return np.array([known.get(value, np.nan) for value in values.tolist()])
        return np.interp(values.astype(np.float64), self.anchors, np.linspace(0.0, 100.0, n))

    def values(self, places: Floats) -> AnyArray:
        """Return the values at some places."""
        n = self.anchors.size
        if self.labels:
            return np.asarray(self.anchors[np.minimum((places * n / 100).astype(int), n - 1)])
        return np.interp(places, np.linspace(0.0, 100.0, n), self.anchors)

    def marks(self) -> list[tuple[float, str]]:
        """Return some places with their words."""
        shown, words, at_most = self.anchors, self.labels, 4
        if not words and shown.size == 2 and self.is_date:
            shown, words = _round_dates(shown)
        elif not words:
            shown = np.asarray(html.ticks(shown[0], shown[1], 4)) if shown.size == 2 else shown
            # Years among the numbers have no separator.
            words = [
                as_date(x) if self.is_date else html.number(x, 3).replace(",", "") for x in shown.tolist()
            ]
            at_most = 3 if self.is_date else 5
        every = list(zip(self.places(shown).tolist(), words, strict=True))
        return every[:: -(-len(every) // at_most)]

    def apply(self, values: AnyArray) -> AnyArray:
        """Return values after the steps that follow."""
        return Table(values[:, None]).values(Column(0, self.rest))


def _round_dates(ends: Floats) -> tuple[Floats, list[str]]:
    """Return the beginnings of some years, months or days between two days, with their words."""
    unit = next(one for one, days in (("Y", 1000), ("M", 90), ("D", 0)) if ends[1] - ends[0] >= days)
    low, high = ends.astype("datetime64[D]").astype(f"datetime64[{unit}]").astype(int)
    found = (
        np.unique(np.ceil(html.ticks(min(low + 1, high), high, 3))).astype(int).astype(f"datetime64[{unit}]")
    )
    return found.astype("datetime64[D]").astype(np.float64), found.astype(str).tolist()


def _axis(parts: Parts, column: Column) -> Axis | None:
    """Return the axis of a column; None where no value of it is known."""
    cut = max((at + 1 for at, step in enumerate(column.steps) if isinstance(step, QueryScale)), default=0)
    base, rest = Column(column.input, column.steps[:cut]), column.steps[cut:]
    values = parts.table.values(base)
    known = values[~is_missing(values)]
    is_date = not cut and column.inputs[0] in parts.formula.dates
    found, counts = np.unique(known, return_counts=True)
    has_levels = values.dtype.kind == "O" or any(isinstance(step, Levels) for step in rest)
    if has_levels or (found.size == 2 and np.isfinite(found).all() and not is_date):
        levels = found[np.sort(np.argsort(-counts, kind="stable")[:_LEVELS])]
        labels = [html.plain(x, 12) if isinstance(x, str) else html.number(x, 3) for x in levels.tolist()]
        return Axis(base, rest, levels, labels) if labels else None
    finite = known[np.isfinite(known)]
    if not finite.size or finite.min() == finite.max():
        return None
    anchors = np.array([finite.min(), finite.max()])
    middle = (np.median(finite) - anchors[0]) / (anchors[1] - anchors[0])
    if not _SKEWED <= middle <= 1 - _SKEWED:
        anchors = np.unique(np.quantile(finite, np.linspace(0, 1, 9)))
    return Axis(base, rest, anchors, [], is_date)


@dataclass(frozen=True)
class Picture:
    """A curve or a surface: the part, its axes and the values to draw.

    Attributes
    ----------
    part : int
    axes : tuple of Axis
    values : (points, 2) or (cells, cells) float64
        Of a curve places and values, of levels one for each; of a surface its values.
    missing : float or None
        The value of missing entries of a curve, where the rows have some.
    scale : (low, high)
        The ends of a curve's picture.
    """

    part: int
    axes: tuple[Axis, ...]
    values: Floats
    missing: float | None = None
    scale: tuple[float, float] = (0.0, 1.0)


def pictures_of(parts: Parts) -> list[Picture]:
    """Return the strongest curves, then the strongest surfaces; none of a linear model."""
    if parts.weights is not None:
        return []
    curves: list[Picture] = []
    surfaces: list[Picture] = []
    for part in parts.order.tolist():
        own = parts.inputs[part]
        if len(own) == 2 and len(surfaces) < _SURFACES:
            found = [one for one in parts.formula.surfaces if tuple(c.inputs for c in one.columns) == own]
            surfaces += filter(None, [_surface(parts, part, found)])
        elif parts.column(part) is not None and len(curves) < _CURVES:
            terms = [term for term in parts.formula.terms if (term.column.inputs,) == own]
            curves += filter(None, [_curve(parts, part, terms)])
    values = [[0.0 if one.missing is None else one.missing, *one.values[:, 1].tolist()] for one in curves]
    scaled = [replace(one, scale=ends) for one, ends in zip(curves, curve_limits(values), strict=True)]
    return [*scaled, *surfaces]


def _curve(parts: Parts, part: int, terms: Sequence[Term]) -> Picture | None:
    axes = [_axis(parts, term.column) for term in terms]
    first = next((one for one in axes if one is not None and one.labels), axes[0])
    if first is None or any(one is None or one.column != first.column for one in axes):
        return None  # constant, or drawn along several axes at once

    sides = zip(terms, (one.rest for one in axes if one is not None), strict=True)
    added = function_of([replace(term, column=Column(0, rest)) for term, rest in sides])
    values = first.anchors
    if not first.labels:
        edges = np.zeros(0) if first.column.steps else edges_of(terms)
        inside = edges[(edges > values[0]) & (edges < values[-1])]
        values = np.unique(np.concatenate([first.values(np.linspace(0, 100, _POINTS)), inside]))
    given = parts.table.values(first.column)
    gone = given[is_missing(given)]
    missing = float(added(gone[:1])[0]) if gone.size else None
    return Picture(part, (first,), np.column_stack([first.places(values), added(values)]), missing)


def _surface(parts: Parts, part: int, surfaces: Sequence[Surface]) -> Picture | None:
    axes = tuple(_axis(parts, column) for column in surfaces[0].columns)
    if len(surfaces) > 1 or axes[0] is None or axes[1] is None:
        return None
    places = (np.arange(_CELLS) + 0.5) / _CELLS * 100
    first, second = (one.apply(one.values(places)) for one in axes if one is not None)
    across, up = np.meshgrid(first, second, indexing="ij")
    grid = surfaces[0].apply(across.ravel(), up.ravel()).reshape(_CELLS, _CELLS)
    return Picture(part, (axes[0], axes[1]), grid)


def marks_of(parts: Parts, pictures: Sequence[Picture], rows: Ints) -> list[list[list[float]]]:
    """Return where rows stand on each picture, from the left and from the top, in percent."""
    found = []
    added = parts.of(rows) if pictures else np.zeros((0, 0))
    for one in pictures:
        sides = [axis.places(parts.table.values(axis.column)[rows]) for axis in one.axes]
        if len(sides) == 1:
            low, high = one.scale
            sides = [_with_missing(one, sides[0]), 100.0 * (added[:, one.part] - low) / (high - low)]
        across, up = (np.clip(np.nan_to_num(side), 0.0, 100.0) for side in sides)
        found.append(np.column_stack([across, 100 - up]).round(1).tolist())
    return found


def _with_missing(picture: Picture, places: Floats) -> Floats:
    if picture.missing is None:
        return places
    return np.where(np.isnan(places), _MISSING, places * _END / 100)


def pictures_section(parts: Parts, pictures: Sequence[Picture]) -> str:
    """Draw curves and surfaces."""
    curves = [one for one in pictures if len(one.axes) == 1]
    surfaces = pictures[len(curves) :]
    strength = max((float(np.abs(one.values).max()) for one in surfaces), default=1.0) or 1.0
    drawn = [_draw_curve(parts, one, place) for place, one in enumerate(curves)]
    maps = [_draw_surface(parts, one, len(curves) + at, strength) for at, one in enumerate(surfaces)]
    body = (
        "<p>The contribution of each column to the score; the number beside a name is its spread inside queries. "
        f"Weak curves are enlarged, up to {html.number(LARGEST)} times; skewed columns are drawn by quantiles. "
        "The grey bars show how the rows of this page are spread. "
        '<span class="noprint">Rows of the query that you look at are marked: A and B as above.</span></p>'
        '<div class="pickers one noprint"><label>Mark the rows of<select id="pick-marked"></select></label></div>'
        f'<div class="pictures">{"".join(drawn)}</div>'
    )
    if maps:
        body += (
            "<h3>Pairs of columns</h3><p>Joint contributions of two columns, beyond their curves: blue raises a score, "
            f'orange lowers it, by up to {html.number(strength, 3)}.</p><div class="pictures">{"".join(maps)}</div>'
        )
    return html.section("curves", "Curves", body + _as_table(parts, curves))


def _draw_curve(parts: Parts, one: Picture, place: int) -> str:
    axes, scale = one.axes[0], one.scale
    where = _with_missing(one, one.values[:, 0])
    heights = [100 - html.span(*scale, value) for value in one.values[:, 1].tolist()]
    rows = _with_missing(one, axes.places(parts.table.values(axes.column)))
    bins = min(_BINS, len(axes.labels) or _BINS)
    counts, edges = np.histogram(rows[np.isfinite(rows)], bins=bins, range=(0, 100))
    # The root, because spikes such as many zeros would hide everything else.
    tall = 100 * ROOM * np.sqrt(counts / max(counts.max(), 1))
    drawn = f'<path class="rule" d="M0 {100 - html.span(*scale, 0.0):.2f}H100"/>' + "".join(
        f'<rect class="rows" x="{x:.2f}" width="{100 / bins:.2f}" y="{100 - height:.2f}" height="{height:.2f}"/>'
        for x, height in zip(edges, tall, strict=False)
        if height
    )
    marks = [(float(_with_missing(one, np.array([at]))[0]), label) for at, label in axes.marks()]
    points = list(zip(where, heights, strict=True))
    if axes.labels:
        half = min(40.0 / len(axes.labels), 12.0)
        ends = (f"M{x - half:.2f} {y:.2f}H{x + half:.2f}" for x, y in points)
        drawn += f'<path class="line chosen" d="{"".join(ends)}"/>'
    else:
        drawn += html.line(points, "chosen")
    if one.missing is not None:
        drawn += (
            f'<path class="line chosen" d="M{_END + 4:.0f} {100 - html.span(*scale, one.missing):.2f}H100"/>'
        )
        marks = [mark for mark in marks if mark[0] < _END - 14] + [(_MISSING, "missing")]
    levels = [(100 - html.span(*scale, tick), html.number(tick, 3)) for tick in html.ticks(*scale, 4)]
    return _figure(parts, one, place, drawn, (marks, levels))


def _draw_surface(parts: Parts, one: Picture, place: int, strength: float) -> str:
    tone = np.round((one.values / strength + 1) / 2 * (_N_TONES - 1)).astype(int)
    drawn = html.cells(tone.T[::-1], html.palette(_TONES, _N_TONES), range(_CELLS))
    across_marks, up = (axes.marks() for axes in one.axes)
    return _figure(parts, one, place, drawn, (across_marks, [(100 - y, label) for y, label in up]))


def _figure(parts: Parts, one: Picture, place: int, drawn: str, marks: Any) -> str:
    called, inputs = parts.names[one.part], parts.inputs[one.part]
    size, note, shape = 100, "", "small"
    if len(inputs) == 2:
        across, up = (html.name(parts.formula.title([own]), 40) for own in inputs)
        size, note, shape = _CELLS, f'<p class="note">across: {across}, up: {up}</p>', "small crisp"
    spread = html.number(float(parts.spread[one.part]), 3)
    frame, label = f'data-picture="{place}"', f"Contribution of {html.plain(called)}"
    return (
        f"<figure><figcaption>{html.name(called, 60)} <small>{spread}</small></figcaption>"
        f"{html.plot(drawn, marks, label, shape=shape, frame=frame, box=f'{size} {size}')}{note}</figure>"
    )


def _as_table(parts: Parts, curves: Sequence[Picture]) -> str:
    rows = []
    for one in curves:
        axes, (places, values) = one.axes[0], one.values.T
        marks = axes.marks() if not axes.labels else list(zip(places.tolist(), axes.labels, strict=True))
        written = [f"{label}: {html.signed(float(np.interp(at, places, values)))}" for at, label in marks]
        written += [] if one.missing is None else [f"missing: {html.signed(one.missing)}"]
        spread = html.number(float(parts.spread[one.part]), 3)
        rows.append((html.name(parts.names[one.part]), spread, html.text(" · ".join(written))))
    head, title = ["Column", "#spread", "value: contribution"], "Curves as a table"
    return html.details(title, html.listing(title, head, rows)) if rows else ""
