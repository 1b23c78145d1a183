"""What the page's script reads: rows of opened queries with the parts of their scores, and the surface."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rankwise.json_values import Json
from rankwise.report.charts import alpha_name, curves
from rankwise.report.markup import decimals, plain
from rankwise.report.openings import OpenQuery
from rankwise.report.score_parts import ScoreParts
from rankwise.report.sections import RowNaming
from rankwise.report.selection import SurfaceTable

__all__ = ["embedded_data"]


def embedded_data(
    surface: SurfaceTable | None,
    opened: Sequence[OpenQuery],
    parts: ScoreParts | None,
    naming: RowNaming,
    names: Sequence[str],
    marks: list[list[list[list[float]]]],
) -> dict[str, Json]:
    """Return everything that the script shows when somebody asks for it."""
    data: dict[str, Json] = {
        "open": [] if parts is None else [_open(query, parts, naming) for query in opened],
        "columns": len(names if parts is None else parts.names),
        "marks": marks,
    }
    if surface is not None:
        alpha, step, _ = surface.choices[surface.chosen]
        data["surface"] = {
            "alphas": [alpha_name(value) for value in surface.alphas],
            "steps": surface.steps.tolist(),
            "values": [[_short(value, 5) for value in row] for row in surface.values],
            "metric": surface.metric,
            "chosen": [
                int(np.argmin(np.abs(surface.alphas - alpha))),
                int(np.searchsorted(surface.steps, step)),
            ],
            "shown": curves(surface)[1],
        }
    return data


def _open(query: OpenQuery, parts: ScoreParts, naming: RowNaming) -> dict[str, Json]:
    label = (
        f"all {naming.thing}s"
        if query.kind == "only"
        else f"{plain(query.name)} ({query.kind}, {decimals(query.value)})"
    )
    return {
        "label": label,
        "columns": [plain(parts.names[part]) for part in query.columns],
        "rows": [
            [
                plain(row.called),
                row.rank,
                None if row.label is None else _short(row.label, 6),
                _short(row.score, 7),
                [_short(value, 6) for value in row.parts],
                [_short(value, 4) for value in row.values],
            ]
            for row in query.rows
        ],
    }


def _short(value: float, digits: int) -> float | int | None:
    if not np.isfinite(value):
        return None
    rounded = float(f"{value:.{digits}g}")
    return int(rounded) if rounded == int(rounded) and abs(rounded) < 1e6 else rounded
