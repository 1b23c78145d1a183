"""``rankwise predict``: one score per line, or tables and runs that name queries and items."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from rankwise.cli.applicable import check_applicable
from rankwise.cli.columns import recall
from rankwise.cli.inputs import Rows, kind_of, read_rows
from rankwise.cli.mistakes import UsageError
from rankwise.cli.models import SavedModel, fit_columns, read_model, remark_on_queries
from rankwise.cli.outputs import output_stream, score_target
from rankwise.cli.printing import print_facts, print_json, show_warnings
from rankwise.cli.scoring import score
from rankwise.cli.streaming import streamed_tables, streamed_text
from rankwise.data.queries import ranks_inside
from rankwise.data.runs import save_run
from rankwise.data.tables import import_pyarrow
from rankwise.data.wording import how_many
from rankwise.runtime.memory import available_memory

__all__ = ["run"]

_LINES_AT_ONCE = 65536
_PARSED = 8  # times its size, what a file takes in memory with its scaled copy


def run(options: argparse.Namespace) -> int:
    """Score rows and write the scores."""
    show_warnings()
    check_applicable(options)
    target = score_target(options)
    if target != "scores" and options.ranks:
        raise UsageError(
            "--ranks is for one number per line; tables and runs have ranks anyway.", "leave it out."
        )
    if target == "parquet" and options.output == "-":
        raise UsageError("Parquet is no text to look at.", "name a file: -o ranked.parquet.")
    saved = read_model(options.model)
    reading = recall(options, saved.notes, encoders=[saved.encoder])
    reading.wants_items = target != "scores"
    writer = _Writer(target, options)
    with output_stream(options.output) as stream:
        for rows in _blocks(options, reading, saved):
            if writer.n_rows == 0 and (options.ranks or target != "scores"):
                remark_on_queries(rows, saved, reading.qid, "ranked")
            scores = score(saved, rows)
            if rows.pairs is not None and options.items is None:
                rows, scores = _differences(rows, scores, target)  # noqa: PLW2901
            writer.write(stream, rows, scores)
        writer.close(stream)
    what = "ranks" if options.ranks else "scores"
    if options.json:
        data = {"model": saved.path, "data": writer.facts, "output": options.output, what: writer.n_rows}
        print_json(data)
    elif options.output != "-":
        print_facts(
            {"wrote": f"{options.output}: {how_many(writer.n_rows, what)} of {writer.facts['file']}"},
            to_error=True,
        )
    return 0


def _differences(
    rows: Rows, scores: npt.NDArray[np.float64], target: str
) -> tuple[Rows, npt.NDArray[np.float64]]:
    """Return by how much the first of each duel is preferred."""
    if target != "scores":
        raise UsageError(
            f"{rows.source} lists duels, which are no rankings of items.",
            "write one number per line: -o scores.txt, or nothing for standard output.",
        )
    assert rows.pairs is not None
    first, second = rows.pairs.T
    kept = replace(rows, X=rows.X[: len(rows.pairs)], pairs=None, magnitude=None, weight=None)
    return kept, scores[first] - scores[second]


def _blocks(options: argparse.Namespace, reading: argparse.Namespace, saved: SavedModel) -> Iterator[Rows]:
    """Yield the rows as the model takes them: all at once, or blocks of whole queries."""
    first = saved.notes.get("first_column")
    kinds = {kind_of(path, options.format) for path in options.data}
    can_stream = kinds in ({"text"}, {"table"}) and options.items is None
    if options.stream and not can_stream:
        raise UsageError(
            "--stream is for text and tables of rows.", "leave it out; a store is read where it lies."
        )
    sizes = [Path(path).stat().st_size for path in options.data if Path(path).is_file()]
    if not can_stream or (not options.stream and _PARSED * sum(sizes) < available_memory()):
        yield fit_columns(read_rows(options.data, reading, needs_labels=False, first_column=first), saved)
        return
    needs_queries = saved.scales_inside_queries or options.ranks or reading.wants_items
    if kinds == {"table"}:
        blocks = streamed_tables(reading, needs_queries=needs_queries)
    else:
        # Later blocks may have columns that the first has not.
        reading.columns = reading.columns or saved.n_columns
        blocks = streamed_text(reading, first, needs_queries=needs_queries)
    for rows in blocks:
        yield fit_columns(rows, saved)


class _Writer:
    """Writes scores block by block, and counts them."""

    def __init__(self, target: str, options: argparse.Namespace) -> None:
        self._target, self._options = target, options
        self.n_rows = 0
        self.facts: dict[str, Any] = {}
        self._queries = 0
        self._parquet: Any = None

    def write(self, stream: BinaryIO, rows: Rows, scores: npt.NDArray[np.float64]) -> None:
        queries = rows.queries
        if self._target == "scores":
            written = ranks_inside(scores, queries.codes) if self._options.ranks else scores
            for start in range(0, written.size, _LINES_AT_ONCE):
                lines = written[start : start + _LINES_AT_ONCE].tolist()
                stream.write("".join(f"{value!r}\n" for value in lines).encode())
        else:
            self._write_named(stream, rows, scores)
        self.n_rows += scores.size
        self._queries += len(queries)
        self.facts = rows.facts() | {"rows": self.n_rows}
        if rows.qid is not None:
            self.facts["queries"] = self._queries

    def _write_named(self, stream: BinaryIO, rows: Rows, scores: npt.NDArray[np.float64]) -> None:
        own = rows.item_ids
        numbers = np.arange(self.n_rows, self.n_rows + scores.size)
        items = [str(one) or f"row{number}" for one, number in zip(own, numbers, strict=True)] if own is not None else [
            f"row{number}" for number in numbers
        ]  # fmt: skip
        qid = ["1"] * scores.size if rows.qid is None else [str(one) for one in rows.qid.tolist()]
        codes = rows.queries.codes
        ranks = ranks_inside(scores, codes)
        if self._target == "trec":
            # Lines of a run stand in their order, and no two have the same rank.
            order = np.lexsort((np.arange(scores.size), -scores, codes))
            place = np.arange(scores.size) - rows.queries.offsets[codes[order]] + 1
            chosen = order.tolist()
            save_run(
                [qid[at] for at in chosen], [items[at] for at in chosen], place.tolist(), scores[order], stream,
                tag=self._options.tag,
            )  # fmt: skip
        elif self._target in _SEPARATORS:
            between, cell = _SEPARATORS[self._target]
            if self.n_rows == 0:
                stream.write(between.join(("qid", "item", "rank", "score\n")).encode())
            lines = zip(
                map(cell, qid), map(cell, items), map(str, ranks), map(repr, scores.tolist()), strict=True
            )
            stream.write("".join(f"{between.join(line)}\n" for line in lines).encode())
        else:
            pa = import_pyarrow()
            table = pa.table({"qid": qid, "item": items, "rank": ranks, "score": scores})
            if self._parquet is None:
                import pyarrow.parquet  # noqa: PLC0415 - only where Parquet is written

                self._parquet = pyarrow.parquet.ParquetWriter(stream, table.schema)
            self._parquet.write_table(table)

    def close(self, stream: BinaryIO) -> None:
        if self._parquet is not None:
            self._parquet.close()


def _tsv_cell(text: str) -> str:
    return text.replace("\t", " ").replace("\n", " ").replace("\r", " ")


def _csv_cell(text: str) -> str:
    text = _tsv_cell(text)  # one line per row, whatever an id holds
    doubled = text.replace('"', '""')
    return f'"{doubled}"' if any(sign in text for sign in ',"') else text


_SEPARATORS = {"tsv": ("\t", _tsv_cell), "csv": (",", _csv_cell)}
