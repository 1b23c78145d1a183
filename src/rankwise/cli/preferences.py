"""Preferences between the items of a table: by id, or from a log of clicks."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace

from rankwise.cli.clicks import CLICK_COLUMNS, click_columns, is_log, preferences_from_clicks
from rankwise.cli.columns import (
    Roles,
    check_preference_columns,
    item_columns,
    listed,
    remarks_on_ids,
    remember,
)
from rankwise.cli.encoding import is_to_be_encoded, learned, names_to_encode, table_to_encode, was_missing
from rankwise.cli.row_ids import naming_rows
from rankwise.cli.rows import Rows
from rankwise.cli.table_files import open_tables
from rankwise.data.tables import TableFile, TableReader
from rankwise.data.tables import read_preferences as read_comparisons
from rankwise.exceptions import InvalidInputError

__all__ = ["read_preferences"]


def read_preferences(paths: list[str], source: str, options: argparse.Namespace) -> Rows:
    """Read who was preferred to whom, and what is known of each item.

    Parameters
    ----------
    paths : list of str
    source : str
        The files, for messages.
    options : Namespace
        What the group "reading" of the arguments holds.
    """
    has_clicks = getattr(options, "clicks", None) is not None
    ids = [*click_columns(options)[::3]] if has_clicks else [options.winner, options.loser]
    comparisons = open_tables(paths, ids)
    if has_clicks:
        comparisons = preferences_from_clicks(comparisons, options)
    elif is_log(comparisons[0].schema.names, options):
        raise InvalidInputError(
            f"{source} is a log of clicks (columns {CLICK_COLUMNS}), and lists no preferences.",
            "add --clicks above, which makes preferences of it.",
        )
    items = open_tables([options.items], [options.item_id, *options.texts])
    schema = items[0].schema
    check_preference_columns(comparisons[0].schema.names, schema.names, source, options)
    features, embedding = item_columns(schema, options)
    options = naming_rows(options, schema, options.items)
    roles = Roles(None, options.item_id, features, embedding)
    if options.keeps_table:
        return _to_encode(comparisons, items, roles, source, options)
    if is_to_be_encoded(items, roles, options):
        return learned(_to_encode(comparisons, items, roles, source, options), options)
    try:
        return _numbers(comparisons, items, roles, source, options)
    except InvalidInputError as error:
        if not was_missing(error, options):
            raise
        return learned(_to_encode(comparisons, items, roles, source, options), options)


def _numbers(
    comparisons: Sequence[TableFile],
    items: Sequence[TableFile],
    roles: Roles,
    source: str,
    options: argparse.Namespace,
) -> Rows:
    """Read items whose columns are numbers."""
    plan = TableReader(
        items,
        None,
        options.item_id,
        roles.features,
        roles.embedding,
        missing=options.missing,
        ids=listed(getattr(options, "id", None)) or (),
    )
    found = read_comparisons(
        comparisons,
        plan,
        winner=options.winner,
        loser=options.loser,
        magnitude=options.magnitude,
        weight=options.weight,
    )
    return Rows(
        source,
        found.X,
        None,
        None,
        found.feature_names,
        pairs=found.pairs,
        magnitude=found.magnitude,
        weight=found.weight,
        item_ids=found.item_ids,
        reading=remember(options, plan),
        remarks=remarks_on_ids(options),
    )


def _to_encode(
    comparisons: Sequence[TableFile],
    items: Sequence[TableFile],
    roles: Roles,
    source: str,
    options: argparse.Namespace,
) -> Rows:
    """Read the columns of items as they are, for an encoder."""
    names = names_to_encode(items[0], roles, options)
    table = table_to_encode(items, names, options)
    rows = _numbers(comparisons, items, roles._replace(features=[], embedding=None), source, options)
    reading = {**(rows.reading or {}), "features": names, "encoded": "yes"}
    return replace(rows, table=table, reading=reading)
