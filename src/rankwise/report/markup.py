"""Text and numbers of the page: this module escapes everything that comes from the user."""

from __future__ import annotations

import html
import json
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial

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


def columns(label: str, cells: Mapping[str, Iterable[str]], kind: str = "") -> str:
    """Set a table of columns by their heads; see `listing`."""
    return listing(label, list(cells), list(zip(*cells.values(), strict=True)), kind)
