"""A log of clicks as a table of preferences."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

import numpy as np

from rankwise.arrays import Floats
from rankwise.cli.columns import listed
from rankwise.cli.mistakes import UsageError
from rankwise.data.clicks import pairs_from_clicks
from rankwise.data.columns import check_columns, columns_hint
from rankwise.data.tables import TableFile, import_pyarrow, open_tables
from rankwise.exceptions import InvalidInputError

__all__ = ["CLICK_COLUMNS", "check_clicks", "click_columns", "is_log", "preferences_from_clicks"]

CLICK_COLUMNS = "session,position,clicked,item"
_HINT = "write positions as numbers from 1, and clicks as 1 and 0 or true and false."


def check_clicks(options: argparse.Namespace) -> None:
    """Raise where options about clicks were given that would change nothing."""
    if getattr(options, "clicks", None) is not None:
        if options.items is None:
            raise UsageError(
                "--clicks needs to know what was shown.", "add --items FILE, a table of the items that were."
            )
        if len(click_columns(options)) != 4:
            raise UsageError(
                "--click-columns names four columns.", f"write them in this order: {CLICK_COLUMNS}."
            )
        return
    for name in ("click_columns", "propensity", "max_weight"):
        if getattr(options, name, None) is not None:
            raise UsageError(
                f"--{name.replace('_', '-')} is for logs of clicks.", "add --clicks above, or leave it out."
            )


def _check_log(source: TableFile, options: argparse.Namespace) -> None:
    names = source.schema.names
    lacking = next((name for name in click_columns(options) if name not in names), None)
    if lacking is not None:
        named = "" if options.click_columns is None else ", which --click-columns names"
        raise InvalidInputError(
            f"{source.name} has no column {lacking!r} of a log of clicks{named}.",
            f"--click-columns names session, position, clicks and items, in this order; "
            f"{columns_hint(lacking, names)}",
        )


def is_log(names: Sequence[str], options: argparse.Namespace) -> bool:
    """Tell whether a table that is read as preferences has the usual columns of a log of clicks instead."""
    return (
        hasattr(options, "clicks") and options.winner not in names and {*CLICK_COLUMNS.split(",")} <= {*names}
    )


def click_columns(options: argparse.Namespace) -> list[str]:
    """Return the columns of a log: session, position, whether clicked, and the id of the item."""
    return listed(options.click_columns or CLICK_COLUMNS) or []


def preferences_from_clicks(sources: Sequence[TableFile], options: argparse.Namespace) -> list[TableFile]:
    """Return the preferences that a log tells of, as a table like those that people write by hand."""
    pa: Any = import_pyarrow()
    session, position, clicked, item = click_columns(options)
    sessions, items = [], []
    places: list[Floats] = []
    clicks: list[Floats] = []
    for source in sources:
        _check_log(source, options)
        check_columns(source, [session, position, clicked, item], "a column of the log of clicks")
        for batch in source.batches([session, position, clicked, item]):
            sessions.append(batch.texts(session))
            items.append(batch.texts(item))
            places.append(batch.numbers(position, _HINT))
            clicks.append(batch.numbers(clicked, _HINT))
    if not sessions:
        raise InvalidInputError(f"{sources[0].name} has no rows.", "check that the file is the one you mean.")
    shown = np.concatenate(items)
    pairs, weight = pairs_from_clicks(
        np.concatenate(sessions),
        np.concatenate(places),
        np.concatenate(clicks),
        against=options.clicks,
        propensity=options.propensity,
        max_weight=options.max_weight,
    )
    pairs, weight = pairs[differs := shown[pairs[:, 0]] != shown[pairs[:, 1]]], weight[differs]
    if not len(pairs):
        raise InvalidInputError(
            f"{sources[0].name}: nobody passed anything by that stood above what was clicked.",
            "use a longer log, or --clicks all, which counts what stood below as passed by too.",
        )
    table = {options.winner: shown[pairs[:, 0]], options.loser: shown[pairs[:, 1]]}
    return open_tables(pa.table({**table, options.weight or "weight": weight}))
