"""Tables that are opened, with a word on first lines that may be something else than they were taken for."""

from __future__ import annotations

from rankwise.cli.printing import remark
from rankwise.data import tables
from rankwise.data.tables import TableFile

__all__ = ["open_tables"]


def open_tables(paths: list[str], text_columns: list[str]) -> list[TableFile]:
    """Open tables, and say where the first line of a text file may be something else than it was taken for."""
    sources = tables.open_tables(paths, text_columns)
    for source in sources:
        names = source.schema.names
        if source.is_numbered:
            remark(f"{source.name} has no header line: its columns are called 1 to {len(names)}")
        elif source.first_line is not None and names == [str(at) for at in range(len(names))]:
            remark(
                f"{source.name}: the first line, which counts from 0, is taken as the names of the columns"
            )
    return sources
