"""Charts in plain SVG and HTML.

Shapes are SVG stretched to the width of the page; words are HTML on top of them, so that they keep their size on a
phone and on paper.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from rankwise.arrays import Floats
from rankwise.data.wording import how_many
from rankwise.displays.regularisation import Reading
from rankwise.report.markup import number, text

__all__ = [
    "alpha_curve",
    "alpha_name",
    "axis",
    "choice_sentence",
    "curves",
    "heatmap",
    "histogram",
    "plot",
    "span",
    "ticks",
]

Marks = Iterable[tuple[float, str]]

# From best to worst; distinct in lightness, so that it survives printing and colour blindness.
_ANCHORS = "fde725 b5de2b 6ece58 35b779 1f9e89 26828e 31688e 3e4989 482878 440154"
_SHADES = 24
_SIGNS = {"hybrid": "★", "tikhonov": "◆", "early-stopping": "●"}
_LINES = 5  # beside alpha = 0: as many as can be told apart by colour and by dashes
_GAP = 0.35  # sets alpha = 0 apart from the grid, in rows


def alpha_name(alpha: float) -> str:
    """Write an alpha, the same way everywhere."""
    return number(alpha, 3)


def span(low: float, high: float, value: float) -> float:
    """Return where a value stands between two others, in percent."""
    return 50.0 if high <= low else 100.0 * (value - low) / (high - low)


def ticks(low: float, high: float, count: int = 5) -> list[float]:
    """Return about `count` round numbers between two limits."""
    if not 0 < high - low < np.inf:
        return [low]
    raw = (high - low) / count
    size = 10.0 ** np.floor(np.log10(raw))
    step = size * min((m for m in (1, 2, 2.5, 5, 10) if m * size >= raw), default=10)
    first = np.ceil(low / step) * step
    return [float(round(value, 12)) for value in np.arange(first, high + step * 1e-9, step)]


def axis(kind: str, marks: Marks) -> str:
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


def plot(
    drawn: str,
    marks: tuple[Marks, Marks],
    label: str,
    *,
    shape: str = "",
    frame: str = "",
    box: str = "100 100",
    inside: str = "",
    titles: tuple[str, str] = ("", ""),
) -> str:
    """Put shapes into a frame with words along both axes; `frame` has more attributes, `inside` more markup."""
    named = "".join(
        f'<span class="title {k}">{text(t)}</span>' for k, t in zip("xy", titles, strict=True) if t
    )
    return (
        f'<div class="plot {shape}"><div class="frame" {frame}><svg viewBox="0 0 {box}" preserveAspectRatio="none" '
        f'role="img" aria-label="{text(label)}">{drawn}</svg>{inside}{axis("y", marks[1])}{axis("x", marks[0])}</div>'
        f"{named}</div>"
    )


def heatmap(table: Reading) -> str:
    """Draw the value of every alpha after every iteration; better is brighter."""
    n_alphas, n_steps = table.values.shape
    finite = table.values[np.isfinite(table.values)]
    best, worst = (finite.max(), finite.min()) if table.greater_is_better else (finite.min(), finite.max())
    # The square root spends most shades near the best value, where the choice is made.
    distance = np.sqrt(np.clip((table.values - best) / ((worst - best) or 1.0), 0, 1))
    shade = np.where(np.isfinite(distance), np.minimum(distance * _SHADES, _SHADES - 1), -1).astype(int)
    tops = [n_alphas - 1 - row + (_GAP if row == 0 else 0) for row in range(n_alphas)]
    paths = [""] * (_SHADES + 1)  # the last is not drawn: no value
    for row, top in enumerate(tops):
        starts = np.flatnonzero(np.diff(shade[row], prepend=-2))
        for start, end in zip(starts, [*starts[1:], n_steps], strict=True):
            paths[shade[row, start]] += f"M{start} {top:g}h{end - start}v1h-{end - start}z"
    palette = _palette()
    drawn = "".join(f'<path fill="{c}" d="{path}"/>' for c, path in zip(palette, paths, strict=False) if path)
    heights = [(top + 0.5) / (n_alphas + _GAP) * 100 for top in tops]
    shown = [0, *range(1, n_alphas, max(1, -(-(n_alphas - 1) // 10)))]
    marks = (
        [
            ((at + 0.5) / n_steps * 100, str(table.steps[at]))
            for at in range(0, n_steps, max(1, -(-n_steps // 8)))
        ],
        [(heights[row], alpha_name(table.alphas[row])) for row in shown],
    )
    signs, words = "", ""
    for method, (alpha, step, value) in table.choices.items():
        row, column = int(np.argmin(np.abs(table.alphas - alpha))), int(np.searchsorted(table.steps, step))
        sign, is_chosen = _SIGNS.get(method, "★"), method == table.chosen
        signs += (
            f'<span class="mark{" chosen" if is_chosen else ""}" aria-hidden="true" '
            f'style="left:{(column + 0.5) / n_steps * 100:.2f}%;top:{heights[row]:.2f}%">{sign}</span>'
        )
        line = text(f"{sign} {method}: alpha {alpha_name(alpha)}, iteration {step}, {number(value)}")
        words += f"<span>{f'<strong>{line} (chosen)</strong>' if is_chosen else line}</span> "
    better = "higher" if table.greater_is_better else "lower"
    drawing = plot(
        drawn,
        marks,
        f"Surface of {table.metric}",
        shape="tall",
        frame='id="surface" tabindex="0" role="application" aria-label="Surface over alpha and iteration. Arrow keys '
        f'move between cells." aria-describedby="surface-says" data-gap="{_GAP}"',
        box=f"{n_steps} {n_alphas + _GAP:g}",
        inside=f'{signs}<span class="cell" hidden></span>',
        titles=("iteration", "alpha"),
    )
    return (
        f'{drawing}<p class="scale"><span>{number(best)} <small>best</small></span>'
        f'<i style="background:linear-gradient(90deg,{",".join(palette)})"></i>'
        f"<span>{number(worst)} <small>worst</small></span></p>"
        f'<p class="legend">{words}<small>{text(table.metric)}, {better} is better; shades are finest near the best '
        "value</small></p>"
    )


def _palette() -> list[str]:
    anchors = np.frombuffer(bytes.fromhex(_ANCHORS), dtype=np.uint8).reshape(-1, 3)
    where = np.linspace(0, len(anchors) - 1, _SHADES)
    channels = [np.interp(where, np.arange(len(anchors)), channel) for channel in anchors.T]
    return [f"#{round(r):02x}{round(g):02x}{round(b):02x}" for r, g, b in zip(*channels, strict=True)]


def choice_sentence(table: Reading) -> str:
    """Say in a line where the choice stands."""
    alpha, step, value = table.choice
    return f"alpha {alpha_name(alpha)}, iteration {step}: {table.metric} {number(value)} (the choice)"


def curves(table: Reading) -> tuple[str, list[int]]:
    """Draw the course of a few alphas; return it and which alphas they are."""
    n_alphas = table.alphas.size
    chosen = table.chosen_row
    spread = np.linspace(1, n_alphas - 1, min(_LINES - 1, n_alphas - 1)).round().astype(int).tolist()
    rows = sorted({0, chosen, *spread})
    low, high = _padded(table.values[rows], 0.04)
    first, last = float(table.steps[0]), float(table.steps[-1])
    drawn, legend = {}, ""
    others = iter(("l1", "l2", "l3", "l4"))
    for row in rows:
        points = " ".join(
            f"{span(first, last, step):.2f},{100 - span(low, high, value):.2f}"
            for step, value in zip(table.steps, table.values[row], strict=True)
            if np.isfinite(value)
        )
        kind = "chosen" if row == chosen else "zero" if row == 0 else next(others)
        drawn[kind] = f'<polyline class="line {kind}" points="{points}"/>'
        note = " (no penalty)" * (row == 0) + " (chosen)" * (row == chosen)
        legend += (
            '<span><svg class="key" viewBox="0 0 34 6" aria-hidden="true">'
            f'<path class="line {kind}" d="M0 3H34"/></svg>{text(alpha_name(table.alphas[row]) + note)}</span> '
        )
    # The choice lies above the others; above it the dots of alpha = 0, along which small alphas run.
    order = sorted(drawn, key=lambda kind: ({"chosen": 1, "zero": 2}.get(kind, 0), kind))
    marks = [(span(first, last, tick), number(tick)) for tick in ticks(first, last, 6) if tick == int(tick)]
    lines = "".join(drawn[kind] for kind in order)
    return (
        _line_plot(lines, (low, high), marks, ("iteration", f"held-out {table.metric}"), "convergence")
        + f'<p class="legend">alpha: {legend}</p>',
        rows,
    )


def alpha_curve(table: Reading) -> str:
    """Draw a value for each alpha, where there are no iterations to show."""
    positive = table.alphas > 0
    alphas, values = table.alphas[positive], table.values[positive, 0]
    where, (low, high) = np.log2(alphas), _padded(values, 0.08)
    points = [
        (span(where[0], where[-1], x), 100 - span(low, high, y)) for x, y in zip(where, values, strict=True)
    ]
    drawn = '<polyline class="line chosen" points="' + " ".join(f"{x:.2f},{y:.2f}" for x, y in points) + '"/>'
    dots = "".join(
        f'<span class="dot{" chosen" if alpha == table.choice[0] else ""}" style="left:{x:.2f}%;top:{y:.2f}%" '
        f'title="alpha {text(alpha_name(alpha))}: {number(value)}"></span>'
        for (x, y), alpha, value in zip(points, alphas, values, strict=True)
    )
    named = [(x, alpha_name(alpha)) for (x, _), alpha in zip(points, alphas, strict=True)]
    marks = named[:: max(1, -(-len(named) // 7))]
    return _line_plot(drawn, (low, high), marks, ("alpha", f"held-out {table.metric}"), "alphas", dots)


def _padded(values: Floats, share: float) -> tuple[float, float]:
    low, high = float(np.nanmin(values)), float(np.nanmax(values))
    pad = (high - low) * share or 0.01
    return low - pad, high + pad


def _line_plot(
    drawn: str,
    y_range: tuple[float, float],
    marks: Marks,
    titles: tuple[str, str],
    identity: str,
    inside: str = "",
) -> str:
    levels = [(100 - span(*y_range, level), number(level)) for level in ticks(*y_range, 4)]
    rules = "".join(f'<path class="rule" d="M0 {height:.2f}H100"/>' for height, _ in levels)
    return plot(
        rules + drawn,
        (marks, levels),
        f"{titles[1]} against {titles[0]}",
        frame=f'id="{identity}"',
        inside=f'{inside}<span class="guide" hidden></span>',
        titles=titles,
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
    levels = [
        (100 - 100 * tick / tallest, number(tick)) for tick in ticks(0, tallest, 3) if tick == int(tick)
    ]
    where = span(low, high, mean)
    # The mean is written above the frame: a label between the bars would hide some of them.
    return plot(
        bars,
        ([(span(low, high, tick), number(tick, 3)) for tick in ticks(low, high, 5)], levels),
        f"Histogram of {title} over queries",
        shape="headed",
        box=f"{bins} 100",
        inside=f'<span class="mean{" left" if where > 70 else ""}" style="left:{where:.2f}%"><b>mean {number(mean)}'
        "</b></span>",
        titles=(title, "queries"),
    )
