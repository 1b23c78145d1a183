"""Charts in plain SVG and HTML.

Shapes are SVG stretched to the width of the page; words are HTML on top of them, so that they keep their size on a
phone and on paper.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from rankwise.arrays import Floats
from rankwise.data.wording import how_many
from rankwise.displays.reading import Reading
from rankwise.report.markup import number, text

__all__ = [
    "PALETTE",
    "AlphaCurve",
    "alpha_curve",
    "alpha_name",
    "axis",
    "choice_sentence",
    "curves",
    "heatmap",
    "histogram",
    "span",
    "ticks",
]


@dataclass(frozen=True)
class AlphaCurve:
    """The value of a metric for every alpha."""

    alphas: Floats
    values: Floats
    chosen: float
    metric: str
    greater_is_better: bool
    judged_by: str


# From best to worst; distinct in lightness, so that it survives printing and colour blindness.
_ANCHORS = (
    "fde725",
    "b5de2b",
    "6ece58",
    "35b779",
    "1f9e89",
    "26828e",
    "31688e",
    "3e4989",
    "482878",
    "440154",
)
_SHADES = 24
_SIGNS = {"hybrid": "★", "tikhonov": "◆", "early-stopping": "●"}
_LINES = 5  # beside alpha = 0: as many as can be told apart by colour, by dashes and by their labels
_LABEL = 7.5  # the height of a label, in percent of a chart's


def _palette() -> list[str]:
    anchors = np.array([[int(colour[i : i + 2], 16) for i in (0, 2, 4)] for colour in _ANCHORS])
    where = np.linspace(0, len(_ANCHORS) - 1, _SHADES)
    channels = [np.interp(where, np.arange(len(_ANCHORS)), anchors[:, channel]) for channel in range(3)]
    return ["#" + "".join(f"{round(c[i]):02x}" for c in channels) for i in range(_SHADES)]


PALETTE = _palette()


def alpha_name(alpha: float) -> str:
    """Write an alpha, the same way everywhere."""
    return number(alpha, 3)


def span(low: float, high: float, value: float) -> float:
    """Return where a value stands between two others, in percent."""
    return 50.0 if high <= low else 100.0 * (value - low) / (high - low)


def ticks(low: float, high: float, count: int = 5) -> list[float]:
    """Return round numbers between two others, about so many."""
    if not high > low:
        return [low]
    raw = (high - low) / count
    size = 10.0 ** np.floor(np.log10(raw))
    step = size * min((m for m in (1, 2, 2.5, 5, 10) if m * size >= raw), default=10)
    first = np.ceil(low / step) * step
    return [float(round(value, 12)) for value in np.arange(first, high + step * 1e-9, step)]


def axis(kind: str, marks: Iterable[tuple[float, str]]) -> str:
    """Write words along an axis, each at its place in percent."""
    side = "left" if kind == "x" else "top"
    marks = list(marks)
    # On a phone there is room for about four words below a chart: every second gives way.
    may_go = kind == "x" and len(marks) > 4
    return "".join(
        f'<span class="tick {kind}{" between" if may_go and i % 2 else ""}" style="{side}:{where:.2f}%">'
        f"{text(label)}</span>"
        for i, (where, label) in enumerate(marks)
    )


def heatmap(table: Reading) -> str:
    """Draw the value of every alpha after every iteration; better is brighter."""
    n_alphas, n_steps = table.values.shape
    finite = table.values[np.isfinite(table.values)]
    best, worst = (finite.max(), finite.min()) if table.greater_is_better else (finite.min(), finite.max())
    # The square root spends most shades near the best value, where the choice is made.
    distance = np.sqrt(np.clip((table.values - best) / ((worst - best) or 1.0), 0, 1))
    shade = np.where(np.isfinite(distance), np.minimum(distance * _SHADES, _SHADES - 1), -1).astype(int)
    gap = 0.35  # sets alpha = 0 apart from the grid
    height = n_alphas + gap
    paths = [""] * _SHADES
    for row in range(n_alphas):
        top = n_alphas - 1 - row + (gap if row == 0 else 0)
        start = 0
        for column in range(1, n_steps + 1):
            if column < n_steps and shade[row, column] == shade[row, start]:
                continue
            if shade[row, start] >= 0:
                paths[shade[row, start]] += f"M{start} {top:g}h{column - start}v1h-{column - start}z"
            start = column
    drawn = "".join(
        f'<path fill="{colour}" d="{path}"/>' for colour, path in zip(PALETTE, paths, strict=True) if path
    )
    heights = [(n_alphas - 0.5 - row + (gap if row == 0 else 0)) / height * 100 for row in range(n_alphas)]
    stride = max(1, -(-(n_alphas - 1) // 10))
    shown = [0, *range(1, n_alphas, stride)]
    y_axis = axis("y", ((heights[row], alpha_name(table.alphas[row])) for row in shown))
    every = max(1, -(-n_steps // 8))
    x_axis = axis(
        "x",
        (((column + 0.5) / n_steps * 100, str(table.steps[column])) for column in range(0, n_steps, every)),
    )
    marks = ""
    for method, (alpha, step, _) in table.choices.items():
        row = int(np.argmin(np.abs(table.alphas - alpha)))
        column = int(np.searchsorted(table.steps, step))
        chosen = " chosen" if method == table.chosen else ""
        marks += (
            f'<span class="mark{chosen}" aria-hidden="true" style="left:{(column + 0.5) / n_steps * 100:.2f}%;'
            f'top:{heights[row]:.2f}%">{_SIGNS.get(method, "★")}</span>'
        )
    better = "higher" if table.greater_is_better else "lower"
    return (
        '<div class="plot tall"><div class="frame" id="surface" tabindex="0" role="application" '
        f'aria-label="Surface of {text(table.metric)} over alpha and iteration. Arrow keys move between cells." '
        f'aria-describedby="surface-says" data-gap="{gap}">'
        f'<svg viewBox="0 0 {n_steps} {height:g}" preserveAspectRatio="none" aria-hidden="true" '
        f'shape-rendering="crispEdges">{drawn}</svg>{marks}<span class="cell" hidden></span>{y_axis}{x_axis}</div>'
        '<span class="title y">alpha</span><span class="title x">iteration</span></div>'
        f'<p class="scale"><span>{number(best)} <small>best</small></span>'
        f'<i style="background:linear-gradient(90deg,{",".join(PALETTE)})"></i>'
        f"<span>{number(worst)} <small>worst</small></span></p>"
        f'<p class="legend">{_legend_of_choices(table)} <small>{text(table.metric)}, {better} is better; shades are '
        "finest near the best value</small></p>"
    )


def choice_sentence(table: Reading) -> str:
    """Say in a line where the choice stands."""
    alpha, step, value = table.choices[table.chosen]
    return f"alpha {alpha_name(alpha)}, iteration {step}: {table.metric} {number(value)} (the choice)"


def _legend_of_choices(table: Reading) -> str:
    words = []
    for method, (alpha, step, value) in table.choices.items():
        sign = _SIGNS.get(method, "★")
        line = f"{sign} {method}: alpha {alpha_name(alpha)}, iteration {step}, {number(value)}"
        words.append(f"<strong>{text(line)} (chosen)</strong>" if method == table.chosen else text(line))
    return " ".join(f"<span>{word}</span>" for word in words)


def curves(table: Reading) -> tuple[str, list[int]]:
    """Draw the course of a few alphas; return it and which alphas they are."""
    n_alphas = table.alphas.size
    chosen = int(np.argmin(np.abs(table.alphas - table.choices[table.chosen][0])))
    rows = sorted(
        {0, chosen, *np.linspace(1, n_alphas - 1, min(_LINES - 1, n_alphas - 1)).round().astype(int)}
    )
    rows = [int(row) for row in rows]
    shown = table.values[rows]
    low, high = float(np.nanmin(shown)), float(np.nanmax(shown))
    pad = (high - low) * 0.04 or 0.01
    low, high = low - pad, high + pad
    first, last = float(table.steps[0]), float(table.steps[-1])
    drawn, legend, kinds = {}, "", {}
    others = iter(("l1", "l2", "l3", "l4"))
    for row in rows:
        points = " ".join(
            f"{span(first, last, step):.2f},{100 - span(low, high, value):.2f}"
            for step, value in zip(table.steps, table.values[row], strict=True)
            if np.isfinite(value)
        )
        kind = kinds[row] = "chosen" if row == chosen else "zero" if row == 0 else next(others)
        drawn[kind] = f'<polyline class="line {kind}" points="{points}"/>'
        note = " (no penalty)" if row == 0 else ""
        note += " (chosen)" if row == chosen else ""
        legend += (
            '<span><svg class="key" viewBox="0 0 34 6" aria-hidden="true">'
            f'<path class="line {kind}" d="M0 3H34"/></svg>'
            f"{text(alpha_name(table.alphas[row]) + note)}</span> "
        )
    leaders, labels = _labels_at_the_end(table, kinds, (low, high))
    # The choice lies above the others; above it the dots of alpha = 0, along which small alphas run.
    order = sorted(drawn, key=lambda kind: ({"chosen": 1, "zero": 2}.get(kind, 0), kind))
    return (
        _line_plot(
            "".join(drawn[kind] for kind in order) + leaders,
            (low, high),
            (first, last),
            "iteration",
            f"held-out {table.metric}",
            "convergence",
            marks=labels,
            shape="headed ended",
        )
        + f'<p class="legend">alpha: {legend}</p>',
        rows,
    )


def _labels_at_the_end(
    table: Reading, kinds: Mapping[int, str], y_range: tuple[float, float]
) -> tuple[str, str]:
    """Write each line's alpha where it ends; labels that would meet are moved apart and led to their lines."""
    ends = {}
    for row in kinds:
        finite = table.values[row][np.isfinite(table.values[row])]
        if finite.size:
            ends[row] = 100 - span(*y_range, float(finite[-1]))
    order = sorted(ends, key=lambda row: (ends[row], -row))
    places: list[float] = []
    for row in order:
        places.append(max(ends[row], places[-1] + _LABEL if places else 0.0))
    limit = 100.0
    for i in range(len(places) - 1, -1, -1):
        places[i] = min(places[i], limit)
        limit = places[i] - _LABEL
    leaders, labels = "", '<span class="end head">alpha</span>'
    for row, place in zip(order, places, strict=True):
        leaders += f'<path class="leader {kinds[row]}" d="M100 {ends[row]:.2f}L102.2 {place:.2f}"/>'
        called = text(alpha_name(table.alphas[row]))
        labels += f'<span class="end {kinds[row]}" style="top:{place:.2f}%">{called}</span>'
    return leaders, labels


def alpha_curve(curve: AlphaCurve) -> str:
    """Draw a value for each alpha, where there are no iterations to show."""
    positive = curve.alphas > 0
    where = np.log2(curve.alphas[positive])
    values = curve.values[positive]
    low, high = float(values.min()), float(values.max())
    pad = (high - low) * 0.08 or 0.01
    low, high = low - pad, high + pad
    points = [
        (span(where[0], where[-1], x), 100 - span(low, high, y)) for x, y in zip(where, values, strict=True)
    ]
    drawn = '<polyline class="line chosen" points="' + " ".join(f"{x:.2f},{y:.2f}" for x, y in points) + '"/>'
    marks = "".join(
        f'<span class="dot{" chosen" if alpha == curve.chosen else ""}" style="left:{x:.2f}%;top:{y:.2f}%" '
        f'title="alpha {text(alpha_name(alpha))}: {number(value)}"></span>'
        for (x, y), alpha, value in zip(points, curve.alphas[positive], values, strict=True)
    )
    stride = max(1, -(-len(points) // 7))
    ticks = [
        (x, alpha_name(alpha))
        for (x, _), alpha in list(zip(points, curve.alphas[positive], strict=True))[::stride]
    ]
    return _line_plot(
        drawn, (low, high), None, "alpha", f"held-out {curve.metric}", "alphas", marks=marks, x_ticks=ticks
    )


def _line_plot(
    drawn: str,
    y_range: tuple[float, float],
    x_range: tuple[float, float] | None,
    x_title: str,
    y_title: str,
    identity: str,
    *,
    marks: str = "",
    x_ticks: Sequence[tuple[float, str]] = (),
    shape: str = "",
) -> str:
    levels = ticks(*y_range, 4)
    rules = "".join(f'<path class="rule" d="M0 {100 - span(*y_range, level):.2f}H100"/>' for level in levels)
    y_axis = axis("y", ((100 - span(*y_range, level), number(level)) for level in levels))
    if x_range is not None:
        x_ticks = [(span(*x_range, tick), number(tick)) for tick in ticks(*x_range, 6) if tick == int(tick)]
    return (
        f'<div class="plot {shape}"><div class="frame" id="{identity}"><svg viewBox="0 0 100 100" '
        f'preserveAspectRatio="none" role="img" aria-label="{text(y_title)} against {text(x_title)}">'
        f'{rules}{drawn}</svg>{marks}<span class="guide" hidden></span>{y_axis}{axis("x", x_ticks)}</div>'
        f'<span class="title y">{text(y_title)}</span><span class="title x">{text(x_title)}</span></div>'
    )


def histogram(values: Floats, mean: float, title: str, bins: int = 20) -> str:
    """Draw how many queries have which value."""
    low, high = float(values.min()), float(values.max())
    if low >= 0 and high <= 1:
        low, high = 0.0, 1.0
    if high <= low:
        low, high = low - 0.5, high + 0.5
    counts, edges = np.histogram(values, bins=bins, range=(low, high))
    tallest = max(int(counts.max()), 1)
    bars = "".join(
        f'<rect class="bar" x="{i + 0.06:.2f}" width="0.88" y="{100 - 100 * count / tallest:.2f}" '
        f'height="{100 * count / tallest:.2f}"><title>'
        f"{how_many(int(count), 'queries')} from {number(edges[i], 3)} to {number(edges[i + 1], 3)}</title></rect>"
        for i, count in enumerate(counts)
        if count
    )
    x_axis = axis("x", ((span(low, high, tick), number(tick, 3)) for tick in ticks(low, high, 5)))
    levels = [tick for tick in ticks(0, tallest, 3) if tick == int(tick)]
    y_axis = axis("y", ((100 - 100 * tick / tallest, number(tick)) for tick in levels))
    where = span(low, high, mean)
    side = " left" if where > 70 else ""
    # The mean is written above the frame: a label between the bars would hide some of them.
    return (
        f'<div class="plot headed"><div class="frame"><svg viewBox="0 0 {bins} 100" preserveAspectRatio="none" '
        f'role="img" aria-label="Histogram of {text(title)} over queries">{bars}</svg>'
        f'<span class="mean{side}" style="left:{where:.2f}%"><b>mean {number(mean)}</b></span>{y_axis}{x_axis}</div>'
        f'<span class="title y">queries</span><span class="title x">{text(title)}</span></div>'
    )
