"""Tables with columns that are not numbers, or with missing values: learned by an encoder, or kept for a model's."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np

from rankwise.cli.columns import Roles, decided, listed, remarks, row_id
from rankwise.cli.rows import Rows
from rankwise.data.columns import (
    NULLS,
    check_columns,
    columns_hint,
    number_text_problem,
    read_columns,
)
from rankwise.data.tables import TableFile, TableReader, import_pyarrow, sparse_width, texts_of
from rankwise.exceptions import Change, InvalidInputError
from rankwise.preprocessing.table_encoder import TableEncoder

__all__ = [
    "encoded",
    "encoding_lines",
    "is_to_be_encoded",
    "learned",
    "names_to_encode",
    "numbers_of_table",
    "read_to_encode",
    "table_to_encode",
    "was_missing",
]

_ASKED = ("category", "words", "cross")


def is_to_be_encoded(sources: Sequence[TableFile], roles: Roles, options: argparse.Namespace) -> bool:
    """Tell whether a table to learn from has columns that are not numbers, or options that say what to make of them."""
    if not options.fills_missing or roles.embedding or not hasattr(options, "category"):
        return False
    if any(getattr(options, name) for name in _ASKED):
        return True
    if roles.features is None and sparse_width(sources) is not None:
        return False
    check_columns(sources[0], names_to_encode(sources[0], roles, options), "a feature")
    return decided(sources[0].schema, sources[0].name, options).needs_encoding


def was_missing(error: InvalidInputError, options: argparse.Namespace) -> bool:
    """Tell whether reading failed on a missing value that an encoder would fill in."""
    return Change("missing") in error.changes and options.fills_missing and hasattr(options, "category")


def read_to_encode(
    sources: Sequence[TableFile], source: str, roles: Roles, options: argparse.Namespace
) -> Rows:
    """Read labels, ids and weights as ever, and the other columns as they are."""
    names = names_to_encode(sources[0], roles, options)
    table = table_to_encode(sources, names, options)
    plan = TableReader(sources, roles.label, roles.qid, [], weight=roles.weight)
    X, y, qid, _ = plan.load()
    unused = (
        []
        if options.keeps_table
        else remarks(sources[0].schema, source, options, roles, sources[0].schema.names)
    )
    reading = {
        "features": names,
        "embedding": None,
        "label": roles.label,
        "qid": roles.qid,
        "item_id": row_id(options),
        "encoded": "yes",
    }
    has_items = getattr(options, "wants_items", False) and options.item_id in sources[0].schema.names
    return Rows(
        source,
        X,
        y,
        qid,
        [],
        weight=plan.weights(),
        item_ids=texts_of(sources, options.item_id) if has_items else None,
        reading=reading,
        remarks=unused,
        table=table,
    )


def table_to_encode(sources: Sequence[TableFile], names: Sequence[str], options: argparse.Namespace) -> Any:
    """Return some columns as they are; one of numbers that something turned into text is an error."""
    for one in sources:
        check_columns(one, names, "a column of the first table")
        for name in names:
            where = number_text_problem(one, name)
            if where is not None and name not in options.texts:
                learns = hasattr(options, "category")  # a model knows what its columns are
                taken = f"add --category {name} where these are names, or --id {name} to leave them out"
                raise InvalidInputError(
                    where,
                    f"correct the entry (an empty one is missing); {taken}."
                    if learns
                    else "write numbers there, as in the training table (an empty entry is missing).",
                )
    return _one_below_the_other(sources, names)


def _one_below_the_other(sources: Sequence[TableFile], names: Sequence[str]) -> Any:
    """Make one Arrow table of some columns; what a column holds must be the same in all sources, but for its width."""
    pa = import_pyarrow()
    tables = [
        pa.Table.from_batches([batch.data for batch in one.batches(names)]) for one in sources if one.n_rows
    ]
    try:
        return pa.concat_tables(tables, promote_options="permissive")
    except pa.ArrowException as error:
        kinds = [(source, name, source.schema.field(name).type) for source in sources for name in names]
        first = {name: (source, kind) for source, name, kind in reversed(kinds)}
        source, name, kind = next(other for other in kinds if other[2] != first[other[1]][1])
        raise InvalidInputError(
            f"Column {name!r} holds {first[name][1]} in {first[name][0].name}, and {kind} in {source.name}.",
            "write it alike in all files; --category takes columns of CSV files as text.",
        ) from error


def learned(rows: Rows, options: argparse.Namespace) -> Rows:
    """Learn from the rows what is to be done with each column, and do it."""
    file = options.items or rows.source
    for option in ("category", "words"):
        for name in listed(getattr(options, option)) or ():
            if name not in rows.table.column_names:
                raise InvalidInputError(
                    f"{file} has no column {name!r} to learn from, which --{option} names.",
                    columns_hint(name, rows.table.column_names),
                )
    crosses = listed(options.cross) or []
    encoder = TableEncoder(
        categories=listed(options.category) or [], words=listed(options.words) or [], crosses=crosses
    )
    try:
        encoder.fit(rows.table, qid=rows.qid)
    except InvalidInputError as error:
        raise error.restated(f"{file}: {error.problem}") from error
    return encoded(rows, encoder)


def encoded(rows: Rows, encoder: TableEncoder) -> Rows:
    """Do with the columns of a table what was learned for training's."""
    try:
        X = encoder.transform(_as_learned(rows.table, encoder))
    except InvalidInputError as error:
        raise error.restated(f"{rows.source}: {error.problem}") from error
    names = [str(name) for name in encoder.get_feature_names_out()]
    return replace(rows, X=X, names=names, encoder=encoder)


def _as_learned(table: Any, encoder: TableEncoder) -> Any:
    """Return the table with what another model takes as text as this one takes it, where it can be read so."""
    pa = import_pyarrow()
    kinds = {"number": pa.float64(), "flag": pa.bool_(), "date": pa.timestamp("us")}
    for step in encoder.columns_:
        name, kind = step["name"], kinds.get(step["kind"])
        at = table.schema.get_field_index(name)
        if kind is None or at < 0 or not pa.types.is_string(table.schema.field(at).type):
            continue
        texts = table.column(at)
        known = pa.compute.if_else(pa.compute.is_in(texts, pa.array(NULLS)), None, texts)
        with suppress(pa.ArrowInvalid):  # the encoder says what is wrong
            table = table.set_column(at, name, pa.compute.cast(known, kind))
    return table


def numbers_of_table(rows: Rows, names: Sequence[str]) -> Rows:
    """Take columns of numbers of a table that was kept as it is, for a model without an encoder."""
    X = np.column_stack([column.values for column in read_columns(rows.table, names)]).astype(np.float64)
    return replace(rows, X=X, names=list(names))


def encoding_lines(rows: Rows) -> list[str]:
    """Say what was done with each column, a line for each."""
    return [] if rows.encoder is None else list(rows.encoder.describe())


def names_to_encode(source: TableFile, roles: Roles, options: argparse.Namespace) -> list[str]:
    """Return the columns that an encoder takes."""
    if roles.features is not None:
        return list(roles.features)
    return list(decided(source.schema, source.name, options).features)
