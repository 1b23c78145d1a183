"""``rankwise predict``: one score per line."""

from __future__ import annotations

import argparse

import numpy as np

from rankwise.cli.applicable import check_applicable
from rankwise.cli.columns import recall
from rankwise.cli.inputs import read_rows
from rankwise.cli.models import fit_columns, read_model
from rankwise.cli.outputs import output_stream
from rankwise.cli.printing import print_facts, print_json, show_warnings
from rankwise.cli.scoring import score

__all__ = ["run"]

_LINES_AT_ONCE = 65536


def run(options: argparse.Namespace) -> int:
    """Score rows and write the scores."""
    show_warnings()
    check_applicable(options)
    saved = read_model(options.model)
    reading, first = recall(options, saved.notes), saved.notes.get("first_column")
    rows = fit_columns(read_rows(options.data, reading, needs_labels=False, first_column=first), saved)
    values = score(saved, rows)
    written = _ranks(values, rows.queries.codes) if options.ranks else values
    with output_stream(options.output) as stream:
        for start in range(0, written.size, _LINES_AT_ONCE):
            lines = written[start : start + _LINES_AT_ONCE].tolist()
            stream.write("".join(f"{value!r}\n" for value in lines).encode())
    what = "ranks" if options.ranks else "scores"
    if options.json:
        data = {"model": saved.path, "data": rows.facts(), "output": options.output, what: int(written.size)}
        print_json(data)
    elif options.output != "-":
        print_facts({"wrote": f"{options.output}: {written.size:,} {what} of {rows.source}"}, to_error=True)
    return 0


def _ranks(scores: np.ndarray, codes: np.ndarray) -> np.ndarray:
    """Return ranks inside queries: 1 is best, tied rows share the smallest."""
    order = np.lexsort((-scores, codes))
    new_query = np.concatenate(([True], codes[order][1:] != codes[order][:-1]))
    new_score = new_query | np.concatenate(([True], scores[order][1:] != scores[order][:-1]))
    position = np.arange(order.size)
    start = np.maximum.accumulate(np.where(new_query, position, 0))
    first = np.maximum.accumulate(np.where(new_score, position, 0))
    ranks = np.empty(order.size, dtype=np.int64)
    ranks[order] = first - start + 1
    return ranks
