"""The vocabulary of pages: text and numbers, tables, charts in plain SVG, and the whole page.

Functions escape everything that comes from the user. Shapes of charts are SVG stretched to the width of the page;
words are HTML on top of them, so that they keep their size on a phone and on paper.
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
import math
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from importlib.resources import files

import numpy as np

import rankwise
from rankwise.arrays import Floats, Ints
from rankwise.data.summary import how_many
from rankwise.files import replacing
from rankwise.json_values import Json

_LONGEST = 80
LONG = 1000  # characters of texts that are shown in full, such as the names of all files
# Characters that a browser may not show, or that reorder what stands around them.
_UNSEEN = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ufeff\ud800-\udfff]")


def plain(value: object, longest: int = _LONGEST) -> str:
    """Shorten a name from the user, and escape invisible characters."""
    shown = _UNSEEN.sub("\N{REPLACEMENT CHARACTER}", str(value))
    return shown if len(shown) <= longest else shown[: longest - 1] + "…"


def text(value: object) -> str:
    """Escape text of our own or an attribute."""
    return html.escape(_UNSEEN.sub("\N{REPLACEMENT CHARACTER}", str(value)))


def lines(value: object) -> str:
    """Escape text that is shown as it is, line by line."""
    return "\n".join(text(line) for line in str(value).split("\n"))


def name(value: object, longest: int = _LONGEST) -> str:
    """Show a name from outside, isolated from the direction of the text around it."""
    return f"<bdi>{html.escape(plain(value, longest))}</bdi>"


def number(value: float | None, digits: int = 4) -> str:
    """Format a number with a given number of significant digits."""
    if value is None or not math.isfinite(value):
        return "–"
    if value == int(value) and abs(value) < 1e15:
        return f"{int(value):,}".replace("-", "−")  # separated as in the terminal
    return f"{value:.{digits}g}".replace("-", "−").replace("e+0", "e").replace("e−0", "e−")


def decimals(value: float | None, digits: int = 4) -> str:
    """Format a figure with the number of decimals of its column."""
    if value is None or not math.isfinite(value):
        return "–"
    return f"{value:.{digits}f}".replace("-", "−")


def counted(count: int, thing: str) -> str:
    """Write how many there are of a thing."""
    return f"{number(count)} {thing}{'' if count == 1 else 's'}"


def signed(value: float) -> str:
    """Write a number with its sign."""
    return ("+" if value > 0 else "") + number(value, 3)


def alike(values: Sequence[float], *, with_sign: bool = False) -> list[str]:
    """Write the numbers of a column with the same decimals: as many as give the largest four digits."""
    largest = max((abs(value) for value in values if math.isfinite(value)), default=0.0)
    write: Callable[[float], str] = number  # values of any size
    if 1e-3 <= largest < 1e5:
        write = partial(decimals, digits=max(0, 3 - math.floor(math.log10(largest))))
    return [("+" if with_sign and value > 0 else "") + write(value) for value in values]


def embed(data: object) -> str:
    """Write data for a script element: nothing in it can end the element."""
    written = json.dumps(data, separators=(",", ":"), allow_nan=False)
    return written.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def short(value: object, digits: int) -> float | int | None:
    """Round a number that is embedded; None for anything else."""
    if not isinstance(value, int | float) or not math.isfinite(value):
        return None
    rounded = float(f"{value:.{digits}g}")
    return int(rounded) if rounded == int(rounded) and abs(rounded) < 1e6 else rounded


def table(label: str, head: str, lines: str, kind: str = "") -> str:
    """Write a table with its own scroll bar; `head` and `lines` are cells and rows."""
    named = f' class="{kind}"' if kind else ""
    return (
        f'<div class="scroll" tabindex="0" role="group" aria-label="{text(label)}"><table{named}>'
        f"<thead><tr>{head}</tr></thead><tbody>{lines}</tbody></table></div>"
    )


def listing(
    label: str, head: Sequence[str], rows: Sequence[Sequence[str]], kind: str = "", chosen: int | None = None
) -> str:
    """Set a table of cells, which are markup; the first cell of a row names it.

    A head that begins with "#" stands above numbers, and one with "~" above bars.
    """
    kinds = [{"#": ' class="n"', "~": ' class="w"'}.get(one[:1], "") for one in head]
    heads = [one.lstrip("#~") for one in head]
    lines = ""
    for at, (first, *cells) in enumerate(rows):
        lines += f'<tr{" class=chosen" if at == chosen else ""}><th scope="row"{kinds[0]}>{first}</th>'
        lines += "".join(
            f'<td{own} data-label="{text(plain(called))}">{cell}</td>'
            for own, called, cell in zip(kinds[1:], heads[1:], cells, strict=True)
        )
        lines += "</tr>"
    top = "".join(f"<th{own}>{name(one)}</th>" for own, one in zip(kinds, heads, strict=True))
    return table(label, top, lines, kind)


def bar(share: float) -> str:
    """Draw a share as a bar."""
    return f'<div class="length"><i style="width:{100 * share:.1f}%"></i></div>'


def details(summary: str, body: str, kind: str = "") -> str:
    """Fold a part away; `summary` is markup."""
    named = f' class="{kind}"' if kind else ""
    return f"<details{named}><summary>{summary}</summary><div>{body}</div></details>"


def brackets(low: float, high: float) -> str:
    """Format an interval; empty if it is missing."""
    return f"[{decimals(low, 3)}, {decimals(high, 3)}]" if math.isfinite(low) else ""


def section(identity: str, title: str, body: str) -> str:
    """Set a part of the page apart."""
    return f'<section id="{identity}"><h2>{text(title)}</h2>{body}</section>'


def without_folders(line: str) -> str:
    """Leave out the folders of absolute paths: a page is for others, whom they tell who made it and nothing else."""
    return re.sub(r"(?<![\w./])/(?:[^\s/'\"]+/)+(?=[^\s/'\"])", "…/", line)


# --- charts ---

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


def cells(shades: Ints, colours: Sequence[str], tops: Iterable[float]) -> str:
    """Draw a table of shades, each row below its top; a shade of −1 is left out."""
    paths = [""] * (len(colours) + 1)  # the last is not drawn
    for own, top in zip(shades, tops, strict=True):
        starts = np.flatnonzero(np.diff(own, prepend=-2))
        for start, end in zip(starts, [*starts[1:], own.size], strict=True):
            paths[own[start]] += f"M{start} {top:g}h{end - start}v1h-{end - start}z"
    return "".join(f'<path fill="{c}" d="{path}"/>' for c, path in zip(colours, paths, strict=False) if path)


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


# --- pages ---


def fact_table(facts: Mapping[str, object], kind: str = "facts") -> str:
    """List names and values."""
    rows = "".join(
        f'<tr><th scope="row">{name(k)}</th><td>{name(v, LONG)}</td></tr>' for k, v in facts.items()
    )
    return f'<table class="{kind}"><tbody>{rows}</tbody></table>' if facts else ""


class Page:
    """A page that is written once."""

    _page: str

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the page to a file; one that is there is replaced, and never left half-written."""
        with replacing(path) as stream:
            stream.write(self._page.encode())

    def html(self) -> str:
        """Return the page."""
        return self._page

    def _repr_html_(self) -> str:
        """Show the page in a notebook, in a frame of its own."""
        return f'<iframe srcdoc="{html.escape(self._page)}" style="width:100%;height:80vh;border:0"></iframe>'


def whole_page(title: str, head: str, sections: Mapping[str, str], data: dict[str, Json]) -> str:
    """Put everything together; sections are named by their links, and begin with their id."""
    style, script = (
        files("rankwise.report").joinpath(f"page.{kind}").read_text("utf-8") for kind in ("css", "js")
    )
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    # Only our own script runs, whatever a file's feature names hold, and nothing is fetched.
    policy = f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'; img-src data:"
    places = ((re.findall('id="(.*?)"', one)[0], label) for label, one in sections.items())
    anchors = "".join(f'<a href="#{place}">{label}</a>' for place, label in places)
    written = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{text(policy)}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<link rel="icon" href="data:,"><title>{text(plain(title))}</title><style>{style}</style></head><body>'
        f'<header><h1>{name(title)}</h1>{head}<nav aria-label="Sections">{anchors}</nav></header>'
        f"<main>{''.join(sections.values())}</main>"
        f"<footer>Written by rankwise {text(rankwise.__version__)} on {written}.</footer>"
        f'<script type="application/json" id="embedded">{embed(data)}</script><script>{script}</script></body></html>\n'
    )
