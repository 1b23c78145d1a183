"""Tables of duels: winner_age and loser_age in one row, recognised by the names of their columns."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from rankwise.arrays import MatrixLike
from rankwise.cli.columns import listed
from rankwise.cli.encoding import learned, numbers_of_table
from rankwise.cli.printing import remark
from rankwise.cli.rows import Rows
from rankwise.data.columns import needs_encoding, read_columns, some_names
from rankwise.data.duels import WINNER_AND_LOSER, duel_columns, duel_sides, same_rows, stack_duels
from rankwise.data.tables import TableFile, import_pyarrow
from rankwise.exceptions import InvalidInputError

__all__ = ["are_duels", "read_duels"]

_AMOUNTS = ("magnitude", "weight")  # what a duel has for itself


def are_duels(names: Sequence[str], options: argparse.Namespace) -> bool:
    """Tell whether a table without labels has columns such as winner_age and loser_age."""
    return options.label not in names and bool(duel_columns(names)) and options.command != "convert"


def read_duels(sources: Sequence[TableFile], source: str, options: argparse.Namespace) -> Rows:
    """Read what won and what lost as items of their own, and which won.

    Parameters
    ----------
    sources : sequence of TableFile
    source : str
        The files, for messages.
    options : Namespace
        What the group "reading" of the arguments holds.
    """
    pa = import_pyarrow()
    names = sources[0].schema.names
    chosen = duel_columns(names)
    wanted = listed(options.features) if "features" in options.given else None
    lacking = [name for name in wanted or () if name not in chosen]
    if lacking:
        raise InvalidInputError(
            f"{source} has no columns winner_{lacking[0]} and loser_{lacking[0]}, which --features names.",
            f"write what comes after winner_ and loser_: {some_names(chosen)}.",
        )
    kept = [side + name for side in WINNER_AND_LOSER for name in (wanted or chosen)]
    amounts = {role: getattr(options, role) or role for role in _AMOUNTS}
    amounts = {role: name for role, name in amounts.items() if name in names}
    table = pa.concat_tables(
        [
            pa.Table.from_batches([batch.data for batch in one.batches([*kept, *amounts.values()])])
            for one in sources
            if one.n_rows
        ],
        promote_options="permissive",
    )
    stacked, pairs = stack_duels(*duel_sides(table.select(kept)))
    read: dict[str, Any] = {role: _amount(table, name, source) for role, name in amounts.items()}
    unused = [name for name in names if name not in {*kept, *amounts.values()}]
    rows = Rows(
        source,
        np.empty((stacked.num_rows, 0)),
        None,
        None,
        [],
        pairs=pairs,
        reading={"features": list(wanted or chosen), "embedding": None},
        remarks=[f"not used of {source}: {some_names(unused)}"] if unused else [],
        table=stacked,
        **read,
    )
    if not hasattr(options, "category"):  # a model knows what to make of its columns
        # Scores are one a duel, and figures are of competitors, who may have fought more than once.
        return rows if options.command == "predict" else _merged(rows, _same_in_table(stacked))
    asked = any(getattr(options, name) for name in ("category", "words", "cross"))
    if asked or (options.fills_missing and needs_encoding(stacked)):
        rows = learned(rows, options)
        rows = replace(rows, reading={**(rows.reading or {}), "encoded": "yes"})
    else:
        rows = numbers_of_table(rows, stacked.column_names)
    return _merged(replace(rows, table=None), same_rows(rows.X)) if options.command != "inspect" else rows


def _amount(table: MatrixLike, name: str, source: str) -> npt.NDArray[np.float64]:
    column = read_columns(table, [name])[0]
    if column.kind not in {"number", "flag"} or np.isnan(column.values).any():
        raise InvalidInputError(
            f"column {name!r} of {source} has entries that are no numbers.", "write a number for each duel."
        )
    return column.values


def _same_in_table(table: Any) -> npt.NDArray[np.int64]:
    """Number rows by what they hold, whatever that is."""
    written = [np.unique([repr(one) for one in column.to_pylist()], return_inverse=True) for column in table]
    return same_rows(np.column_stack([place.reshape(-1) for _, place in written]))


def _merged(rows: Rows, same: npt.NDArray[np.int64]) -> Rows:
    """Make one item of rows that are equal, so that folds do not divide what two competitors did against each other.

    Intervals count two duels of one competitor as dependent.
    """
    assert rows.pairs is not None
    _, first, place = np.unique(same, return_index=True, return_inverse=True)
    pairs = place.reshape(-1)[rows.pairs]
    differ = pairs[:, 0] != pairs[:, 1]
    if not differ.all():
        left = int((~differ).sum())
        remark(f"left out {left:,} duel{'s' * (left != 1)} of {rows.source} between rows that are equal")
    return replace(
        rows,
        X=rows.X[first],
        pairs=pairs[differ],
        magnitude=None if rows.magnitude is None else rows.magnitude[differ],
        weight=None if rows.weight is None else rows.weight[differ],
        table=None if rows.table is None else rows.table.take(first),
    )
