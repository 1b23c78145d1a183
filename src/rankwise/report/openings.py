"""The queries that a reader can open: their ranked rows, and what each column adds to each row's score."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from rankwise.arrays import MatrixLike
from rankwise.data.queries import Queries
from rankwise.formula.view import Doubles
from rankwise.metrics import PerQuery
from rankwise.report.score_parts import ScoreParts

__all__ = ["OpenQuery", "RankedRow", "open_queries"]

_OPENED = 8  # best queries, and as many of the worst
_TOP = 15  # rows shown from the top of a query
_MISSED = 5  # good rows shown from below
_COLUMNS = 30  # parts of scores that are told apart
_NUMBERS = 50_000  # all that is embedded in the page


@dataclass(frozen=True)
class RankedRow:
    """A row where the model put it.

    Attributes
    ----------
    row : int
        Its position in the data, from 0.
    called : str
        Its name, or "row" and its position where rows have no names.
    rank : int
    score : float
    label : float or None
    parts : (columns,) float64
        What the shown parts add to the score.
    values : (columns,) float64
        Their columns as they are in the data; NaN for a part of two columns.
    """

    row: int
    called: str
    rank: int
    score: float
    label: float | None
    parts: Doubles
    values: Doubles


@dataclass(frozen=True)
class OpenQuery:
    """A query and its rows, best first.

    Attributes
    ----------
    name : str
    kind : str
        "best", "worst", or "only" where there is one ranking.
    value : float or None
        Its own value of the leading metric.
    size : int
    columns : (columns,) int64
        The parts of scores that are told apart: those that vary most among these rows.
    rows : list of RankedRow
    n_top : int
        How many of the rows come from the top; the others stand further down, and should not.
    """

    name: str
    kind: str
    value: float | None
    size: int
    columns: npt.NDArray[np.int64]
    rows: list[RankedRow]
    n_top: int


def open_queries(
    X: MatrixLike,
    prepared: MatrixLike,
    score_parts: ScoreParts | None,
    scores: Doubles,
    labels: Doubles | None,
    queries: Queries,
    per_query: PerQuery | None,
    *,
    greater_is_better: bool,
    row_names: Sequence[str] | None = None,
) -> list[OpenQuery]:
    """Choose the best and the worst queries and rank their rows."""
    chosen = _choose(per_query, queries, greater_is_better=greater_is_better)
    n_parts = max(5, min(_COLUMNS, _NUMBERS // (2 * (_TOP + _MISSED) * max(len(chosen), 1))))
    opened = []
    for code, kind in chosen:
        rows, ranks = _ranked(np.flatnonzero(queries.codes == code), scores, labels)
        columns = np.empty(0, dtype=np.int64)
        parts = values = np.empty((rows.size, 0))
        if score_parts is not None:
            parts, values = score_parts.of(X, prepared, rows)
            columns = np.argsort(-np.ptp(parts, axis=0), kind="stable")[:n_parts]
            parts, values = parts[:, columns], values[:, columns]
        opened.append(
            OpenQuery(
                str(queries.ids[code]),
                kind,
                None if per_query is None else float(per_query.values[code]),
                int(queries.sizes[code]),
                columns,
                [
                    RankedRow(
                        int(row),
                        f"row {row}" if row_names is None else row_names[row],
                        int(rank),
                        float(scores[row]),
                        None if labels is None else float(labels[row]),
                        part,
                        value,
                    )
                    for row, rank, part, value in zip(rows, ranks, parts, values, strict=True)
                ],
                min(_TOP, int(queries.sizes[code])),
            )
        )
    return opened


def _choose(
    per_query: PerQuery | None, queries: Queries, *, greater_is_better: bool
) -> list[tuple[int, str]]:
    if per_query is None or len(queries) == 1:
        return [(0, "only")]
    counted = np.flatnonzero(per_query.counted)
    goodness = per_query.values[counted] * (1 if greater_is_better else -1)
    order = counted[np.argsort(-goodness, kind="stable")]
    n_best = min(_OPENED, (order.size + 1) // 2)
    n_worst = min(_OPENED, order.size - n_best)
    worst = order[order.size - n_worst :][::-1]
    return [(int(code), "worst") for code in worst] + [(int(code), "best") for code in order[:n_best]]


def _ranked(
    rows: npt.NDArray[np.int64], scores: Doubles, labels: Doubles | None
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return the top rows of a query, and of what is below the best-labelled rows, with their ranks."""
    order = rows[np.argsort(-scores[rows], kind="stable")]
    ranks = np.searchsorted(-scores[order], -scores[order], side="left") + 1
    shown = np.arange(min(_TOP, order.size))
    if labels is not None and order.size > _TOP:
        below = np.arange(_TOP, order.size)
        better = labels[order[below]]
        missed = below[np.argsort(-better, kind="stable")[:_MISSED]]
        # Only those that should have been at the top: better than the least that is there.
        missed = missed[labels[order[missed]] > labels[order[shown]].min()]
        shown = np.concatenate([shown, np.sort(missed)])
    return order[shown], ranks[shown]
