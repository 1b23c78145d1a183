"""What stands at the top: NDCG at every cutoff, and the grades of the first positions."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rankwise.arrays import Floats
from rankwise.data.queries import Queries
from rankwise.metrics import ndcg
from rankwise.report.markup import decimals, number

__all__ = ["Top", "look_at_top", "top_pictures"]

_CUTOFFS = (1, 2, 3, 5, 10, 20, 50)
_POSITIONS = 10
_GRADES = 5  # shades there are


@dataclass(frozen=True)
class Top:
    """What stands at the top of the queries.

    Attributes
    ----------
    ndcg : list of (cutoff, NDCG)
    grades : list of float
        From the best to the worst.
    shares : array of shape (positions, grades)
        How many of the rows at a position have a grade, as a share.
    """

    ndcg: list[tuple[int, float]]
    grades: list[float]
    shares: Floats


def look_at_top(y: Floats, queries: Queries, scores: Floats) -> Top | None:
    """Return what stands at the top; None where there are more grades than shades."""
    grades = np.unique(y)[::-1]
    if grades.size > _GRADES:
        return None
    longest = int(queries.sizes.max())
    cutoffs = [k for k in _CUTOFFS if k < longest]
    curve = [(k, float(ndcg(y, scores, queries.codes, k=k))) for k in (*cutoffs, longest)[: len(_CUTOFFS)]]
    # Tied scores in the order of their rows: a picture of many queries does not show it.
    order = np.lexsort((-scores, queries.codes))
    codes = queries.codes[order]
    position = np.arange(y.size) - np.flatnonzero(np.r_[True, codes[1:] != codes[:-1]])[codes]
    first = position < _POSITIONS
    grade = np.searchsorted(-grades, -y[order])
    counts = np.zeros((min(_POSITIONS, longest), grades.size))
    np.add.at(counts, (position[first], grade[first]), 1.0)
    return Top(curve, grades.tolist(), counts / counts.sum(axis=1, keepdims=True))


def top_pictures(top: Top) -> str:
    """Draw both."""
    figures = "".join(
        f'<tr><th scope="row">NDCG@{k}</th><td class="n">{decimals(value)}</td><td class="w"><div class="length">'
        f'<i style="width:{100 * value:.1f}%"></i></div></td></tr>'
        for k, value in top.ndcg
    )
    rows = ""
    for position, shares in enumerate(top.shares, 1):
        parts = "".join(
            f'<span class="grade g{_shade(place, len(top.grades))}" style="width:{100 * share:.1f}%" '
            f'title="grade {number(grade)}: {share:.0%}"></span>'
            for place, (grade, share) in enumerate(zip(top.grades, shares, strict=True))
            if share > 0
        )
        rows += f'<tr><th scope="row" class="n">{position}</th><td><div class="stack">{parts}</div></td></tr>'
    legend = " ".join(
        f'<span class="grade g{_shade(place, len(top.grades))}">{number(grade)}</span>'
        for place, grade in enumerate(top.grades)
    )
    return (
        '<div class="columns top"><div><h3>At every cutoff</h3><table><tbody>'
        f"{figures}</tbody></table></div><div><h3>Grades in the top ten</h3><table><tbody>{rows}</tbody></table>"
        f'<p class="note">Shares of grades {legend} at each position, over all queries.</p></div></div>'
    )


def _shade(place: int, n_grades: int) -> int:
    """Return a shade from 4, the best grade, to 0, the worst."""
    return round(4 * (1 - place / max(n_grades - 1, 1)))
