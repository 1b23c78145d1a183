"""Names of columns in data that only number them, and the numbers again from such names."""

from __future__ import annotations

__all__ = ["column_name", "first_column_of"]


def column_name(position: int, first_column: int | None) -> str:
    """Name a column of data that only numbers its columns, from 0 or from 1."""
    return f"feature {position + (first_column or 0)}"


def first_column_of(name: str | None) -> int | None:
    """Return from what columns count, 0 or 1, given the name of the first; None if it is another name."""
    return {column_name(0, 0): 0, column_name(0, 1): 1}.get(name or "")
