"""Rows that are read and let go block by block: files that do not fit in memory."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

import numpy as np
import scipy.sparse as sp

from rankwise.arrays import AnyArray
from rankwise.cli.columns import roles_of
from rankwise.cli.encoding import names_to_encode
from rankwise.cli.inputs import ids_of, open_reader
from rankwise.cli.row_ids import text_columns
from rankwise.cli.rows import Rows
from rankwise.data.query_ids import decode_ids
from rankwise.data.svmlight import text_blocks
from rankwise.data.tables import TableReader, import_pyarrow, open_tables
from rankwise.exceptions import InvalidInputError

__all__ = ["streamed_tables", "streamed_text"]

_BLOCK = 1 << 26  # bytes that are scored at a time


def streamed_text(
    options: argparse.Namespace, first_column: object, *, needs_queries: bool
) -> Iterator[Rows]:
    """Yield the rows of text, queries whole.

    Parameters
    ----------
    options : Namespace
        What the group "reading" of the arguments holds.
    first_column : {0, 1} or None
        What the first column is called, where a model knows it.
    needs_queries : bool
        Whether a query that comes again after others is an error.
    """
    reader = open_reader(options.data, options, first_column)
    source = ", ".join(one.name for one in reader.sources)
    seen = _Seen(source, needs_queries=needs_queries)
    for block in text_blocks(reader, _BLOCK):
        n_rows, qid = block.labels.size, None
        if block.runs is not None:
            texts = block.runs.texts()
            seen.add(texts)
            qid = block.runs.repeat(decode_ids(texts), n_rows)
        items = ids_of(reader.take_comments(n_rows)) if reader.keeps_comments else None
        yield Rows(
            source, block.matrix(reader.n_columns), block.labels, qid, None, reader.base, item_ids=items
        )


def streamed_tables(options: argparse.Namespace, *, needs_queries: bool) -> Iterator[Rows]:
    """Yield the rows of tables, queries whole; see `streamed_text`. Labels are not read."""
    source = ", ".join("standard input" if path == "-" else path for path in options.data)
    seen = _Seen(source, needs_queries=needs_queries)
    blocks = (_encodable if options.keeps_table else _read)(options.data, source, options)
    for rows in _whole_queries(blocks):
        if rows.qid is not None:
            seen.add(rows.qid[_run_start(rows.qid)].tolist())
        yield rows


class _Seen:
    """The queries that have come, where none may come again."""

    def __init__(self, source: str, *, needs_queries: bool) -> None:
        self._source, self._needs_queries = source, needs_queries
        self._ids: set[object] = set()

    def add(self, ids: Iterable[object]) -> None:
        if not self._needs_queries:
            return
        for one in ids:
            if one in self._ids:
                raise InvalidInputError(
                    f"{self._source}: query {one} comes again after others, and its rows are needed together.",
                    "bring the rows of a query together, or leave --stream out.",
                )
            self._ids.add(one)


def _read(files: list[str], source: str, options: argparse.Namespace) -> Iterator[Rows]:
    sources = open_tables(files, text_columns(options), stream=True)
    schema = sources[0].schema
    roles = roles_of(schema, source, options, needs_labels=False)
    plan = TableReader(
        sources,
        None,
        roles.qid,
        # By default all numbers are features but the label, which is not read.
        roles.features,
        roles.embedding,
        missing=options.missing,
        item_id=_item_column(schema.names, options),
        weight=roles.label if roles.features is None else None,
    )
    for (X, _, qid, names), items in plan.blocks(plan.rows_in(_BLOCK)):
        yield Rows(source, X, None, qid, names, item_ids=items)


def _encodable(files: list[str], source: str, options: argparse.Namespace) -> Iterator[Rows]:
    """Yield the columns that an encoder takes, as they are."""
    pa = import_pyarrow()
    sources = open_tables(files, text_columns(options), stream=True)
    schema = sources[0].schema
    roles = roles_of(schema, source, options, needs_labels=False)
    names = names_to_encode(sources[0], roles, options)
    plan = TableReader(sources, None, roles.qid, [])
    item = _item_column(schema.names, options)
    others = [name for name in dict.fromkeys((roles.qid, item)) if name is not None and name not in names]
    for one in sources:
        for batch in one.batches([*names, *others]):
            qid = plan.ids_in(batch)
            items = None if item is None else batch.texts(item)
            table = pa.Table.from_batches([batch.data]).select(names)
            empty = np.empty((table.num_rows, 0))
            yield Rows(source, empty, None, qid, [], item_ids=items, table=table)


def _item_column(names: Sequence[str], options: argparse.Namespace) -> str | None:
    return options.item_id if options.wants_items and options.item_id in names else None


def _whole_queries(blocks: Iterable[Rows]) -> Iterator[Rows]:
    """Yield the same rows, cut between queries."""
    waiting: Rows | None = None
    for block in blocks:
        rows = block if waiting is None else _joined(waiting, block)
        if rows.qid is None:
            yield rows
            continue
        cut = int(_run_start(rows.qid)[-1])
        if cut:
            yield _part(rows, slice(0, cut))
        waiting = _part(rows, slice(cut, rows.qid.size))
    if waiting is not None:
        yield waiting


def _run_start(qid: AnyArray) -> AnyArray:
    return np.concatenate(([0], np.flatnonzero(qid[1:] != qid[:-1]) + 1))


def _part(rows: Rows, part: slice) -> Rows:
    def cut(array: AnyArray | None) -> AnyArray | None:
        return None if array is None else array[part]

    table = None if rows.table is None else rows.table.slice(part.start, part.stop - part.start)
    return replace(rows, X=rows.X[part], qid=cut(rows.qid), item_ids=cut(rows.item_ids), table=table)


def _joined(first: Rows, second: Rows) -> Rows:
    def join(one: AnyArray | None, other: AnyArray | None) -> AnyArray | None:
        return None if one is None or other is None else np.concatenate((one, other))

    X = (
        sp.vstack([first.X, second.X], format="csr")
        if sp.issparse(first.X)
        else np.concatenate((first.X, second.X))
    )
    table = (
        None
        if first.table is None
        else import_pyarrow().concat_tables([first.table, second.table], promote_options="permissive")
    )
    return replace(
        second,
        X=X,
        qid=join(first.qid, second.qid),
        item_ids=join(first.item_ids, second.item_ids),
        table=table,
    )
