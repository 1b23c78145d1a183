"""Names of columns: which of them a table has, and those in data that only number them."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches
from typing import TYPE_CHECKING

from rankwise.exceptions import InvalidInputError

if TYPE_CHECKING:
    from rankwise.data.tables.table_source import TableSource

__all__ = ["check_columns", "column_name", "columns_hint", "first_column_of", "nearest_name", "some_names"]

_SHOWN_COLUMNS = 12


def check_columns(source: TableSource, wanted: Sequence[str], role: str) -> None:
    """Raise unless a table has each of some columns, once."""
    names = source.schema.names
    for name in wanted:
        if not isinstance(name, str):
            raise InvalidInputError(f"{role}={name!r} is no column name.", "pass the name as a string.")
        count = names.count(name)
        if count == 1:
            continue
        if count > 1:
            raise InvalidInputError(
                f"{source.name} has {count} columns named {name!r}.", "give each column a name of its own."
            )
        why = "it has no header line: " if source.is_numbered else ""
        raise InvalidInputError(
            f"{source.name} has no column {name!r}, which was named as {role}.",
            why + columns_hint(name, names),
        )


def columns_hint(wanted: str, names: Sequence[str]) -> str:
    """Say which columns a table has, where it has none of a name that was wanted."""
    close = nearest_name(wanted, names)
    meant = "" if close is None else f"did you mean {close!r}? "
    return f"{meant}its columns are {some_names([repr(name) for name in names])}."


def nearest_name(wanted: str, names: Sequence[str], cutoff: float = 0.6) -> str | None:
    """Return the name that may have been meant: one in other letters, or a similar one."""
    small = wanted.strip().casefold()
    same = [name for name in names if name.strip().casefold() == small]
    return next(iter([*same, *get_close_matches(wanted, names, n=1, cutoff=cutoff)]), None)


def some_names(names: Sequence[str]) -> str:
    """List names, the first dozen if there are more."""
    more = f" and {len(names) - _SHOWN_COLUMNS} more" if len(names) > _SHOWN_COLUMNS else ""
    return ", ".join(names[:_SHOWN_COLUMNS]) + more


def column_name(position: int, first_column: int | None) -> str:
    """Name a column of data that only numbers its columns, from 0 or from 1."""
    return f"feature {position + (first_column or 0)}"


def first_column_of(name: str | None) -> int | None:
    """Return from what columns count, 0 or 1, given the name of the first; None if it is another name."""
    return {column_name(0, 0): 0, column_name(0, 1): 1}.get(name or "")
