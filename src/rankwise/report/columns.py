"""Which columns matter: the parts of scores, read from the formula of a model, with pictures of curves and surfaces."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp

from rankwise.arrays import AnyArray, Floats, Ints, MatrixLike, is_sparse
from rankwise.data.queries import Queries
from rankwise.exceptions import InvalidInputError
from rankwise.explanations.explaining import contributions
from rankwise.exporters.trees import edges_of
from rankwise.formula.folding import folded
from rankwise.formula.formula import Column, Formula, Surface, Table, Term
from rankwise.formula.reading import formula_of
from rankwise.formula.steps import Affine, Levels, QueryScale, Step
from rankwise.formula.view import dense_rows
from rankwise.report.charts import axis, span, ticks
from rankwise.report.markup import alike, details, name, number, plain, section, signed, table, text

__all__ = ["Parts", "columns_section", "parts_of", "pictures_of", "pictures_section"]

_SHOWN, _AT_ONCE = 20, 5  # columns in the table, and in sight
_CURVES, _SURFACES, _LEVELS = 12, 4, 12
_NUMBERS = 20_000_000  # contributions that are held at once
# In percent of a picture: where a curve ends if a place for missing values follows, and where that place is.
_END, _MISSING = 86.0, 95.0
_SKEWED = 0.15  # a column whose median stands nearer to an end is drawn by quantiles
_ROWS_HEIGHT = 12.0  # of the histogram of the rows, at the bottom
_POINTS, _BINS, _CELLS = 81, 24, 24  # of a curve, of a histogram, of a side of a surface
# Lowers the score, nothing, raises it: orange to blue by way of nearly white.
_TONES = ((178, 80, 11), (244, 244, 242), (26, 111, 181))
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
        linear = _linear(formula)
        self.weights: Floats | None = None if linear is None else linear[0]
        self._centers: Floats | None = None if linear is None else linear[1]
        self.inputs: list[Inputs] = [((at,),) for at in range(len(formula.names))]
        if linear is None:
            singles = [(term.column.inputs,) for term in formula.terms]
            pairs = [tuple(column.inputs for column in one.columns) for one in formula.surfaces]
            self.inputs = list(dict.fromkeys([*singles, *pairs]))
        n_basis = 0 if formula.kernel is None else formula.kernel.dual.size
        self.names = [*map(formula.title, self.inputs), *(f"basis row {at}" for at in range(n_basis))]
        of_columns = "what each column adds, after all that prepares it"
        of_basis = "what the kernel adds: how alike the row is to each of its basis rows, times a weight"
        told = [*([of_columns] if self.inputs else []), *([of_basis] if n_basis else [])]
        self.description = f"a sum of {', and of '.join(told)}"

    def of(self, rows: Ints) -> Floats:
        """Return what each part adds to the scores of some rows."""
        if self.weights is not None and self._centers is not None:
            return np.asarray((dense_rows(self._X, rows) - self._centers) * self.weights)
        if self.formula.kernel is None or self._qid is None:
            only = self.formula.kernel is None
            X, at = (self._X, rows.tolist()) if only else (_rows(self._X, rows), range(rows.size))
            return contributions(self.formula, X, self._qid if only else None, at).values
        # Kernels are evaluated on the queries of these rows alone.
        whole = np.flatnonzero(np.isin(self._queries.codes, self._queries.codes[rows]))
        places = np.searchsorted(whole, rows).tolist()
        return contributions(self.formula, _rows(self._X, whole), np.asarray(self._qid)[whole], places).values

    def values(self, rows: Ints, chosen: Ints) -> list[list[object]]:
        """Return the values of the columns of some parts, row by row; None where a part has several columns."""
        columns: list[Sequence[object]] = [[None] * rows.size for _ in chosen]
        for at, part in enumerate(chosen.tolist()):
            inputs: Inputs = self.inputs[part] if part < len(self.inputs) else ()
            if len(inputs) == 1 and len(inputs[0]) == 1:
                columns[at] = self.table.values(Column(inputs[0][0]))[rows].tolist()
        return [[column[row] for column in columns] for row in range(rows.size)]

    @cached_property
    def table(self) -> Table:
        """The rows, column by column."""
        return Table(self._X, self._qid)

    @cached_property
    def spread(self) -> Floats:
        """The standard deviation that each part of columns causes inside queries."""
        codes, sizes = self._queries.codes, self._queries.sizes
        if self.weights is not None and is_sparse(self._X):
            X: Any = self._X.tocsr()
            sums = sp.csr_matrix((np.ones(codes.size), (codes, np.arange(codes.size)))) @ X
            means = sums.multiply(sums).multiply(1 / sizes[:, None]).sum(axis=0)
            inside = np.asarray(X.multiply(X).sum(axis=0)).ravel() - np.asarray(means).ravel()
            return np.asarray(np.sqrt(np.maximum(inside, 0.0) / codes.size) * np.abs(self.weights))
        rows = np.arange(codes.size)
        if codes.size * len(self.inputs) > _NUMBERS:  # whole queries of a sample
            rows = np.flatnonzero(codes < codes[max(_NUMBERS // len(self.inputs), 1)])
        if self.weights is not None:
            added = self.of(rows)
        else:
            plain = contributions(_without_kernel(self.formula), self._X, self._qid, rows.tolist())
            added = plain.values
        own = codes[rows]
        counts = np.maximum(np.bincount(own, minlength=sizes.size), 1)
        found = np.zeros(added.shape[1])
        for at, column in enumerate(np.nan_to_num(added).T):
            mean = np.bincount(own, weights=column, minlength=sizes.size) / counts
            found[at] = np.sqrt(np.mean((column - mean[own]) ** 2)) if rows.size else 0.0
        return found

    @property
    def order(self) -> Ints:
        """The parts of columns, the strongest first."""
        return np.argsort(-self.spread, kind="stable")


def parts_of(
    model: object, X: MatrixLike, names: Sequence[str] | None, qid: Any, queries: Queries
) -> Parts | None:
    """Return the parts of a model that is a sum over columns or basis rows; None where it is not one."""
    try:
        formula = folded(formula_of(model, names))
    except InvalidInputError:  # a step that looks at several columns at once, or names that repeat
        return None
    return Parts(formula, X, qid, queries)


def _linear(formula: Formula) -> tuple[Floats, Floats] | None:
    """Return a weight and a centre for each column, where that is all that the formula has."""
    if formula.surfaces or formula.kernel is not None:
        return None
    weights, centers = np.zeros(len(formula.names)), np.zeros(len(formula.names))
    for term in formula.terms:
        steps, sides = term.column.steps, term.column.sides
        if sides or any(not isinstance(step, Affine) for step in steps) or weights[term.column.number]:
            return None
        weights[term.column.number] = term.weight
        centers[term.column.number] = sum(step.center for step in steps if isinstance(step, Affine))
    return weights, centers


def _without_kernel(formula: Formula) -> Formula:
    return Formula(formula.names, formula.is_text, terms=formula.terms, surfaces=formula.surfaces)


def _rows(X: Any, rows: Ints) -> Any:
    return X.tocsr()[rows] if is_sparse(X) else X.iloc[rows] if hasattr(X, "iloc") else np.asarray(X)[rows]


def columns_section(parts: Parts | None) -> str:
    """Show the columns that cause the largest differences inside queries."""
    if parts is None or not parts.inputs:
        return section(
            "columns",
            "Which columns matter",
            "<p>The scores of this model are not a sum over columns. <code>rankwise.feature_importance</code> measures "
            "how much of the order is lost without a column.</p>",
        )
    order = [at for at in parts.order[:_SHOWN].tolist() if parts.spread[at] > 0]
    largest = max((float(parts.spread[at]) for at in order), default=1.0)
    spreads = alike([float(parts.spread[at]) for at in order])
    weights = [""] * len(order)
    if parts.weights is not None:
        weights = alike(parts.weights[order].tolist(), with_sign=True)
    lines = []
    for at, spread, weight in zip(order, spreads, weights, strict=True):
        share = float(parts.spread[at]) / largest
        bar = f'<div class="length"><i style="width:{100 * share:.1f}%"></i></div>'
        if parts.weights is not None:
            way = "up" if parts.weights[at] > 0 else "down"
            bar = f'<div class="pull"><i class="{way}" style="width:{50 * share:.1f}%"></i></div>'
        cell = f'<td class="n">{weight}</td>' if weight else ""
        cells = f'<td class="n">{spread}</td>{cell}<td class="w">{bar}</td>'
        lines.append(f'<tr><th scope="row">{name(parts.names[at])}</th>{cells}</tr>')
    head = '<th>Column</th><th class="n">spread</th>'
    head += (
        '<th class="n">weight</th><th>lowers ← → raises the score</th>'
        if parts.weights is not None
        else "<th></th>"
    )
    shown = table("Columns", head, "".join(lines[:_AT_ONCE]), "weights")
    if lines[_AT_ONCE:]:
        more = table("More columns", head, "".join(lines[_AT_ONCE:]), "weights")
        shown += details(f"{len(lines) - _AT_ONCE} more", more)
    rest = len(parts.inputs) - len(lines)
    note = "Spread: the standard deviation of scores that a column causes inside queries, on these rows."
    note += " Weight: of the column in its own units." if parts.weights is not None else ""
    note += f" {number(rest)} more columns matter less, or not at all." if rest else ""
    return section("columns", "Which columns matter", f'{shown}<p class="note">{note}</p>')


@dataclass(frozen=True)
class Axis:
    """Values along a side of a picture: levels, or numbers between anchors that are drawn at equal distances.

    Attributes
    ----------
    column : Column
        As it is drawn: the column of the user's, or what scaling inside queries makes of it.
    rest : tuple of Step
        The steps that follow.
    anchors : array
        Numbers, or the levels.
    labels : list of str
        Of the levels; empty for numbers.
    """

    column: Column
    rest: tuple[Step, ...]
    anchors: AnyArray
    labels: list[str]

    def places(self, values: AnyArray) -> Floats:
        """Return where values stand, in percent; NaN for missing ones and unknown levels."""
        if self.labels:
            known = {
                value: 100 * (at + 0.5) / len(self.labels) for at, value in enumerate(self.anchors.tolist())
            }
            return np.array([known.get(value, np.nan) for value in values.tolist()])
        numbers = values.astype(np.float64)
        where = np.linspace(0.0, 100.0, self.anchors.size)
        return np.where(np.isnan(numbers), np.nan, np.interp(numbers, self.anchors, where))

    def values(self, places: Floats) -> AnyArray:
        """Return the values at some places."""
        if self.labels:
            which = (places * len(self.labels) / 100).astype(int)
            return np.asarray(self.anchors[np.minimum(which, len(self.labels) - 1)])
        return np.interp(places, np.linspace(0.0, 100.0, self.anchors.size), self.anchors)

    def marks(self) -> list[tuple[float, str]]:
        """Return some places with their words."""
        if self.labels:
            stride = max(1, -(-len(self.labels) // 4))
            every = [(100 * (at + 0.5) / len(self.labels), label) for at, label in enumerate(self.labels)]
            return every[::stride]
        low, high = float(self.anchors[0]), float(self.anchors[-1])
        shown: Floats = self.anchors[::2] if self.anchors.size > 2 else np.asarray(ticks(low, high, 3))
        return [
            (float(place), number(float(x), 3)) for place, x in zip(self.places(shown), shown, strict=True)
        ]

    def apply(self, values: AnyArray) -> AnyArray:
        """Return values after the steps that follow."""
        return Table(values[:, None]).values(Column(0, self.rest))


def _axis(source: Table, column: Column) -> Axis | None:
    """Return the axis of a column; None where no value of it is known."""
    after = [at for at, step in enumerate(column.steps) if isinstance(step, QueryScale)]
    cut = after[-1] + 1 if after else 0
    base, rest = Column(column.input, column.steps[:cut]), column.steps[cut:]
    values = source.values(base)
    is_levels = values.dtype.kind == "O" or any(isinstance(step, Levels) for step in rest)
    if is_levels:
        known = [value for value in values.tolist() if value is not None and value == value]  # noqa: PLR0124
        found, counts = np.unique(np.array(known, dtype=values.dtype), return_counts=True)
        kept = np.sort(np.argsort(-counts, kind="stable")[:_LEVELS])
        levels = found[kept]
        labels = [
            plain(one, 12) if isinstance(one, str) else number(float(one), 3) for one in levels.tolist()
        ]
        return Axis(base, rest, levels, labels) if labels else None
    finite = values[np.isfinite(values)]
    if not finite.size or finite.min() == finite.max():
        return None
    anchors = np.array([finite.min(), finite.max()])
    middle = (np.median(finite) - anchors[0]) / (anchors[1] - anchors[0])
    if not _SKEWED <= middle <= 1 - _SKEWED:
        anchors = np.unique(np.quantile(finite, np.linspace(0, 1, 9)))
    return Axis(base, rest, anchors, [])


@dataclass(frozen=True)
class Picture:
    """A curve or a surface: the part, its axes, what is drawn, and the place of every row.

    Attributes
    ----------
    part : int
    axes : tuple of Axis
    points : (points, 2) float64
        Of a curve: places and values; of levels one for each.
    grid : (cells, cells) float64
        Of a surface.
    missing : float or None
        The value of missing entries of a curve, where the rows have some.
    scale : (low, high)
        The ends of a curve's picture.
    """

    part: int
    axes: tuple[Axis, ...]
    points: Floats
    grid: Floats
    missing: float | None = None
    scale: tuple[float, float] = (0.0, 0.0)


def pictures_of(parts: Parts | None) -> list[Picture]:
    """Return the strongest curves, and then the strongest surfaces."""
    if parts is None or parts.weights is not None:
        return []
    curves: list[Picture] = []
    surfaces: list[Picture] = []
    for part in parts.order.tolist():
        own = parts.inputs[part]
        if len(own) == 2 and len(surfaces) < _SURFACES:
            found = [one for one in parts.formula.surfaces if tuple(c.inputs for c in one.columns) == own]
            surfaces += filter(None, [_surface(parts, part, found)])
        elif len(own) == 1 and len(own[0]) == 1 and len(curves) < _CURVES:
            terms = [term for term in parts.formula.terms if (term.column.inputs,) == own]
            curves += filter(None, [_curve(parts, part, terms)])
    return [*_on_one_scale(curves), *surfaces]


def _curve(parts: Parts, part: int, terms: Sequence[Term]) -> Picture | None:
    axes = [_axis(parts.table, term.column) for term in terms]
    first = next((one for one in axes if one is not None and one.labels), axes[0])
    if first is None or any(one is None or one.column != first.column for one in axes):
        return None  # constant, or drawn along several axes at once

    def added(values: AnyArray) -> Floats:
        table = Table(values[:, None])
        columns = [Column(0, one.rest) for one in axes if one is not None]
        return np.asarray(sum(t.weight * table.numbers(c) for t, c in zip(terms, columns, strict=True)))

    if first.labels:
        places, values = first.places(first.anchors), first.anchors
    else:
        edges = [] if first.column.steps else edges_of(terms).tolist()
        low, high = first.anchors[[0, -1]]
        inside = np.array([edge for edge in edges if low < edge < high])
        values = np.unique(np.concatenate([first.values(np.linspace(0, 100, _POINTS)), inside]))
        places = first.places(values)
    given = parts.table.values(first.column)
    gone = np.array([value is None or value != value for value in given.tolist()])  # noqa: PLR0124
    missing = float(added(given[gone][:1])[0]) if gone.any() else None
    low, high = np.nanquantile(added(given), [0.01, 0.99]).tolist()
    points = np.column_stack([places, added(values)])
    return Picture(part, (first,), points, np.zeros((0, 0)), missing, (low, high))


def _surface(parts: Parts, part: int, surfaces: Sequence[Surface]) -> Picture | None:
    axes = tuple(_axis(parts.table, column) for column in surfaces[0].columns)
    if len(surfaces) > 1 or axes[0] is None or axes[1] is None:
        return None
    places = (np.arange(_CELLS) + 0.5) / _CELLS * 100
    first, second = (one.apply(one.values(places)) for one in axes if one is not None)
    across, up = np.meshgrid(first, second, indexing="ij")
    grid = surfaces[0].apply(across.ravel(), up.ravel()).reshape(_CELLS, _CELLS)
    return Picture(part, (axes[0], axes[1]), np.zeros((0, 2)), grid)


def _on_one_scale(curves: Sequence[Picture]) -> list[Picture]:
    """Give all curves the scale that nearly all rows need; a curve that goes on outside gets a larger one."""
    low, high = (side([0.0, *(one.scale[at] for one in curves)]) for at, side in enumerate((min, max)))
    found = []
    for one in curves:
        values = [low, high, *one.points[:, 1].tolist(), *([] if one.missing is None else [one.missing])]
        bottom, top = min(values), max(values)
        pad = 0.05 * (top - bottom) or 0.01
        # Below the curve is room for how the rows are spread.
        room = (top - bottom + 2 * pad) * _ROWS_HEIGHT / (100 - _ROWS_HEIGHT)
        found.append(replace(one, scale=(bottom - pad - room, top + pad)))
    return found


def marks_of(parts: Parts, pictures: Sequence[Picture], rows: Ints) -> list[list[list[float]]]:
    """Return where rows stand on each picture, from the left and from the top, in percent."""
    found = []
    added = parts.of(rows) if pictures else np.zeros((0, 0))
    for one in pictures:
        sides = [axis.places(parts.table.values(axis.column)[rows]) for axis in one.axes]
        if len(sides) == 1:
            sides[0] = _with_missing(one, sides[0])
            sides.append(100.0 * (added[:, one.part] - one.scale[0]) / (one.scale[1] - one.scale[0]))
        across, up = (np.clip(np.nan_to_num(side), 0.0, 100.0) for side in sides)
        found.append(
            [[round(float(x), 1), round(100 - float(y), 1)] for x, y in zip(across, up, strict=True)]
        )
    return found


def _with_missing(picture: Picture, places: Floats) -> Floats:
    if picture.missing is None:
        return places
    return np.where(np.isnan(places), _MISSING, places * _END / 100)


def pictures_section(parts: Parts, pictures: Sequence[Picture]) -> str:
    """Draw curves and surfaces."""
    curves = [one for one in pictures if len(one.axes) == 1]
    surfaces = pictures[len(curves) :]
    strength = max((float(np.abs(one.grid).max()) for one in surfaces), default=1.0) or 1.0
    drawn = [_draw_curve(parts, one, place) for place, one in enumerate(curves)]
    maps = [_draw_surface(parts, one, len(curves) + at, strength) for at, one in enumerate(surfaces)]
    body = (
        "<p>What each column adds to a score; the number beside a name is the spread that it causes inside queries. "
        "The curves have one scale upwards, and a larger one where they need it; skewed columns are drawn by "
        'quantiles. The grey bars show how the rows of this page are spread. <span class="noprint">Rows of the query '
        'that you look at are marked: A and B as above.</span></p><div class="pickers one noprint"><label>Mark the '
        'rows of<select id="pick-marked"></select></label>'
        f'</div><div class="pictures">{"".join(drawn)}</div>'
    )
    if maps:
        body += (
            "<h3>Pairs of columns</h3><p>What two columns add together, beyond their curves: blue raises a score, "
            f'orange lowers it, by up to {number(strength, 3)}.</p><div class="pictures">{"".join(maps)}</div>'
        )
    return section("curves", "Curves", body + _as_table(parts, curves))


def _draw_curve(parts: Parts, one: Picture, place: int) -> str:
    axes, scale = one.axes[0], one.scale
    where = _with_missing(one, one.points[:, 0])
    heights = [100 - span(*scale, value) for value in one.points[:, 1].tolist()]
    rows = _with_missing(one, axes.places(parts.table.values(axes.column)))
    bins = min(_BINS, len(axes.labels) or _BINS)
    counts, edges = np.histogram(rows[np.isfinite(rows)], bins=bins, range=(0, 100))
    tall = _ROWS_HEIGHT * np.sqrt(
        counts / max(counts.max(), 1)
    )  # spikes, such as many zeros, hide nothing else
    drawn = f'<path class="rule" d="M0 {100 - span(*scale, 0.0):.2f}H100"/>' + "".join(
        f'<rect class="rows" x="{x:.2f}" width="{100 / bins:.2f}" y="{100 - height:.2f}" height="{height:.2f}"/>'
        for x, height in zip(edges, tall, strict=False)
        if height
    )
    marks = [(float(_with_missing(one, np.array([at]))[0]), label) for at, label in axes.marks()]
    if axes.labels:
        half = min(40.0 / len(axes.labels), 12.0)
        drawn += "".join(
            f'<path class="line chosen" d="M{x - half:.2f} {y:.2f}H{x + half:.2f}"/>'
            for x, y in zip(where, heights, strict=True)
        )
    else:
        points = " ".join(f"{x:.2f},{y:.2f}" for x, y in zip(where, heights, strict=True))
        drawn += f'<polyline class="line chosen" points="{points}"/>'
    if one.missing is not None:
        drawn += f'<path class="line chosen" d="M{_END + 4:.0f} {100 - span(*scale, one.missing):.2f}H100"/>'
        marks = [mark for mark in marks if mark[0] < _END - 14] + [(_MISSING, "missing")]
    levels = [(100 - span(*scale, tick), number(tick, 3)) for tick in ticks(*scale, 4)]
    return _figure(parts, one, place, drawn, (marks, levels))


def _draw_surface(parts: Parts, one: Picture, place: int, strength: float) -> str:
    tone = np.round((one.grid / strength + 1) / 2 * (_N_TONES - 1)).astype(int)
    paths = [""] * _N_TONES
    for across in range(_CELLS):
        for down in range(_CELLS):
            paths[tone[across, _CELLS - 1 - down]] += f"M{across} {down}h1v1h-1z"
    channels = np.column_stack(
        [np.interp(np.linspace(0, 2, _N_TONES), [0, 1, 2], channel) for channel in zip(*_TONES, strict=True)]
    )
    colours = ["#" + "".join(f"{round(value):02x}" for value in channel) for channel in channels.tolist()]
    drawn = "".join(f'<path fill="{c}" d="{path}"/>' for c, path in zip(colours, paths, strict=True) if path)
    across_marks, up = (axes.marks() for axes in one.axes)
    return _figure(parts, one, place, drawn, (across_marks, [(100 - y, label) for y, label in up]))


def _figure(
    parts: Parts, one: Picture, place: int, drawn: str, marks: tuple[Sequence[tuple[float, str]], ...]
) -> str:
    called, inputs = parts.names[one.part], parts.inputs[one.part]
    size, more = 100, ""
    if len(inputs) == 2:
        size = _CELLS
        across, up = (name(parts.formula.title([own]), 40) for own in inputs)
        more = f'<p class="note">across: {across}, up: {up}</p>'
    return (
        f"<figure><figcaption>{name(called, 60)} <small>{number(float(parts.spread[one.part]), 3)}</small></figcaption>"
        f'<div class="plot small"><div class="frame" data-picture="{place}"><svg viewBox="0 0 {size} {size}" '
        f'preserveAspectRatio="none" role="img" aria-label="What {text(plain(called))} adds"'
        f"{' shape-rendering=crispEdges' if more else ''}>{drawn}</svg>"
        f"{axis('y', marks[1])}{axis('x', marks[0])}</div></div>{more}</figure>"
    )


def _as_table(parts: Parts, curves: Sequence[Picture]) -> str:
    lines = ""
    for one in curves:
        axes, (places, values) = one.axes[0], one.points.T
        marks = axes.marks() if not axes.labels else list(zip(places.tolist(), axes.labels, strict=True))
        cells = [f"{label}: {signed(float(np.interp(at, places, values)))}" for at, label in marks]
        cells += [] if one.missing is None else [f"missing: {signed(one.missing)}"]
        lines += (
            f'<tr><th scope="row">{name(parts.names[one.part])}</th><td class="n">'
            f"{number(float(parts.spread[one.part]), 3)}</td><td>{text(' · '.join(cells))}</td></tr>"
        )
    head = '<th>Column</th><th class="n">spread</th><th>value: what it adds</th>'
    return details("Curves as a table", table("Curves as a table", head, lines)) if lines else ""
