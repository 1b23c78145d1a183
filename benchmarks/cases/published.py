"""Published figures (published.json), and tables in Markdown."""

from __future__ import annotations

import json
from collections.abc import Iterable

from harness import HERE

PUBLISHED = json.loads((HERE / "published.json").read_text(encoding="utf-8"))


def markdown(head: list[str], rows: Iterable[list]) -> str:
    """Return a table; numbers get three digits, None is empty."""
    lines = [f"| {' | '.join(head)} |", "|" + " --- |" * len(head)]
    return "\n".join([*lines, *(f"| {' | '.join(cell(value) for value in row)} |" for row in rows)])


def cell(value: object) -> str:
    """Return the text of a cell."""
    if value is None:
        return ""
    return f"{value:.3f}" if isinstance(value, float) else str(value)
