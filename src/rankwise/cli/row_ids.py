"""Which columns name rows, and so are neither learned from nor read as numbers."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING

from rankwise.cli.columns import LISTS, decided, listed
from rankwise.data.columns import columns_hint
from rankwise.data.duels import WINNER_AND_LOSER
from rankwise.exceptions import InvalidInputError

if TYPE_CHECKING:
    from pyarrow import Schema

__all__ = ["item_column", "naming_rows", "text_columns"]


def text_columns(options: argparse.Namespace) -> list[str]:
    """Return the columns that are text in files that do not say what they hold, in rows or on both sides of duels."""
    sides = [side + name for name in options.texts for side in WINNER_AND_LOSER]
    ids = [options.item_id] if options.item_id not in _other_columns(options) else []
    return [options.qid, *ids, *options.texts, *sides]


def naming_rows(options: argparse.Namespace, schema: Schema, source: str) -> argparse.Namespace:
    """Take columns with the usual names of ids for what names the rows, unless something else was said of them.

    What numbers the rows says nothing of others, and where rows are sorted by what is to be learned, it says too much.
    A column that looks like query ids is not learned from either: new queries have other ids.
    """
    if not hasattr(options, "id"):
        return options
    found = decided(schema, source, options)
    said, queries = listed(options.id) or [], list(found.queries)
    usual = [name for name in found.ids if name not in said]
    changed = {"id": [*said, *usual, *queries] or None, "taken_as_ids": usual, "taken_as_queries": queries}
    return argparse.Namespace(**{**vars(options), **changed})


def item_column(schema: Schema, options: argparse.Namespace) -> str | None:
    """Return the column of ids of items: as it was named, or the usual one unless something else was said of it."""
    name: str = options.item_id
    if "item_id" in options.given:
        if name not in schema.names:
            raise InvalidInputError(
                f"There is no column {name!r}, which --item-id names.", columns_hint(name, schema.names)
            )
        return name
    return name if _is_usual_id(options, schema.names) else None


def _is_usual_id(options: argparse.Namespace, names: Sequence[str]) -> bool:
    own = options.item_id
    return "item_id" not in options.given and own in names and own not in _other_columns(options)


def _other_columns(options: argparse.Namespace) -> set[str]:
    """Return the columns that have another role than to name rows."""
    roles = ("label", "qid", "weight", *LISTS, "category", "words")
    crossed = [name for cross in listed(getattr(options, "cross", None)) or [] for name in cross.split(":")]
    return {name for role in roles for name in listed(getattr(options, role, None)) or []}.union(crossed)
