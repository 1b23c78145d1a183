"""Charts in plain SVG and HTML.

Shapes are SVG stretched to the width of the page; words are HTML on top of them, so that they keep their size on a
phone and on paper.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from rankwise.arrays import Floats
from rankwise.data.wording import how_many
from rankwise.report.markup import number, text

_BINS = 20  # of a histogram

Marks = Iterable[tuple[float, str]]


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


def line(points: Iterable[tuple[float, float]], kind: str) -> str:
    """Draw a line through points; it breaks nowhere, because points without a value are left out."""
    written = " ".join(f"{x:.2f},{y:.2f}" for x, y in points if np.isfinite(y))
    return f'<polyline class="line {kind}" points="{written}"/>'


def interval(ends: tuple[float, float], low: float, high: float, value: float) -> str:
    """Draw an interval and a value between the ends of a scale."""
    left, right, middle = (span(*ends, place) for place in (low, high, value))
    drawn = f'<i style="left:{left:.2f}%;width:{right - left:.2f}%"></i><s style="left:{middle:.2f}%"></s>'
    return f'<div class="interval">{drawn}</div>'


def palette(anchors: str, n: int) -> list[str]:
    """Return colours between those of some hexadecimal anchors."""
    tones = np.frombuffer(bytes.fromhex(anchors), dtype=np.uint8).reshape(-1, 3)
    where = np.linspace(0, len(tones) - 1, n)
    channels = [np.interp(where, np.arange(len(tones)), channel) for channel in tones.T]
    return [f"#{round(r):02x}{round(g):02x}{round(b):02x}" for r, g, b in zip(*channels, strict=True)]


def histogram(values: Floats, mean: float, title: str, of: str = "queries") -> str:
    """Draw how many queries, or other things, have which value."""
    low, high = float(values.min()), float(values.max())
    if low >= 0 and high <= 1:
        low, high = 0.0, 1.0
    if high <= low:
        low, high = low - 0.5, high + 0.5
    counts, edges = np.histogram(values, bins=_BINS, range=(low, high))
    tallest = max(int(counts.max()), 1)
    bars = "".join(
        f'<rect class="bar" x="{i + 0.06:.2f}" width="0.88" y="{100 - 100 * count / tallest:.2f}" '
        f'height="{100 * count / tallest:.2f}"><title>'
        f"{how_many(int(count), of)} from {number(edges[i], 3)} to {number(edges[i + 1], 3)}</title></rect>"
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
        f"Histogram of {title} over {of}",
        shape="headed",
        box=f"{_BINS} 100",
        inside=f'<span class="mean{" left" if where > 70 else ""}" style="left:{where:.2f}%"><b>mean {number(mean)}'
        "</b></span>",
        titles=(title, of),
    )
