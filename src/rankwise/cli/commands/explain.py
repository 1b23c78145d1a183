"""``rankwise explain``: what each column contributes to the scores of rows, or to the difference of two."""

from __future__ import annotations

import argparse

import numpy as np

from rankwise.cli.applicable import check_applicable
from rankwise.cli.columns import recall
from rankwise.cli.inputs import Rows, read_rows
from rankwise.cli.models import fit_columns, read_model
from rankwise.cli.outputs import output_stream
from rankwise.cli.printing import print_facts, print_json, show_warnings, write
from rankwise.cli.scoring import score
from rankwise.exceptions import InvalidInputError
from rankwise.explanations import Explanation, explain, explain_pair

__all__ = ["run"]


def run(options: argparse.Namespace) -> int:
    """Explain the best rows of a query, or why one stands above another."""
    show_warnings()
    check_applicable(options)
    saved = read_model(options.model)
    reading = recall(options, saved.notes, encoders=[saved.encoder])
    reading.wants_items = True
    first = saved.notes.get("first_column")
    rows = fit_columns(read_rows(options.data, reading, needs_labels=False, first_column=first), saved)
    called = _called(rows)
    # Of a table that was encoded, what its own columns contribute.
    is_table = rows.table is not None and saved.encoder is not None
    model, X = (saved.whole, rows.table) if is_table else (saved.model, rows.X)
    names = None if is_table else saved.names(rows)
    if options.pair is not None:
        i, j = (_row(one, called, rows, options.query) for one in options.pair)
        found = [explain_pair(model, X, i, j, rows.qid, feature_names=names)]
        titles = [f"{called[i]} against {called[j]}"]
    else:
        one = None if options.item is None else _row(options.item, called, rows, options.query)
        own = (
            _query(rows, options.query)
            if one is None
            else np.flatnonzero(rows.queries.codes == rows.queries.codes[one])
        )
        order = own[np.argsort(-score(saved, rows)[own], kind="stable")].tolist()
        shown = order[: options.top] if one is None else [one]
        found = explain(model, X, rows.qid, rows=shown, feature_names=names)
        titles = [f"{called[number]}, rank {order.index(number) + 1}" for number in shown]
    found = [Explanation(t, one.total, one.constant, one.parts) for t, one in zip(titles, found, strict=True)]
    if options.output is not None:
        # No script runs and nothing is fetched, whatever the names of columns hold.
        page = (
            "<!doctype html><meta charset=utf-8>"
            "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">"
            "<title>Explanation</title>" + "".join(one.to_html(options.parts) for one in found)
        )
        with output_stream(options.output) as stream:
            stream.write(page.encode())
        print_facts({"wrote": f"{options.output}: {len(found)} of {rows.source}"}, to_error=True)
    elif options.json:
        print_json(
            {
                "model": saved.path,
                "explanations": [
                    {
                        "title": one.title,
                        "total": one.total,
                        "constant": one.constant,
                        "parts": [
                            {"name": part.name, "contribution": part.contribution} for part in one.parts
                        ],
                    }
                    for one in found
                ],
            }
        )
    else:
        write("\n\n".join(one.text(options.parts) for one in found))
    return 0


def _called(rows: Rows) -> list[str]:
    ids = rows.item_ids
    return [
        f"row {number}" if ids is None or not str(ids[number]) else str(ids[number])
        for number in range(rows.X.shape[0])
    ]


def _row(given: str, called: list[str], rows: Rows, query: str | None) -> int:
    """Return the row of an item, which may stand in several queries, or that of a number."""
    own = range(len(called)) if query is None else _query(rows, query).tolist()
    found = [number for number in own if called[number] == given]
    if len(found) == 1:
        return found[0]
    if not found and given.isdecimal() and int(given) in own:
        return int(given)
    problem = "names several rows" if found else "is neither the id nor the number of a row"
    where = rows.source if query is None else f"query {query}"
    remedy = f"use the number of a row, from {own[0]} to {own[-1]}"
    raise InvalidInputError(
        f"{given} {problem} of {where}.",
        f"{remedy}, or say which query with --query." if found and query is None else f"{remedy}.",
    )


def _query(rows: Rows, given: str | None) -> np.ndarray:
    queries = rows.queries
    if given is None:
        return np.flatnonzero(queries.codes == 0)
    for code, known in enumerate(queries.ids.tolist()):
        if str(known) == given:
            return np.flatnonzero(queries.codes == code)
    raise InvalidInputError(f"{rows.source} has no query {given}.", "`rankwise inspect` shows what it has.")
