"""``rankwise explain``: how much each column adds to the scores of rows, or to the difference of two."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from rankwise.cli.options import add_data, add_output, add_reading, positive
from rankwise.cli.printing import output_stream, print_facts, print_json, write
from rankwise.exceptions import InvalidInputError, visible

if TYPE_CHECKING:
    from rankwise.cli.reading import Data


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.epilog = (
        "examples:\n"
        "  rankwise explain model.rw test.txt --query 7\n"
        "  rankwise explain model.rw items.csv --query shoes --pair B17 B42 -o why.html"
    )
    add_data(parser, model=True)
    add_output(parser, "an HTML page instead of text")
    parser.add_argument("--query", metavar="ID", help="the query (the first, or that of the item)")
    parser.add_argument("--top", type=positive, default=3, metavar="N", help="explain the first N rows (3)")
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--item", metavar="A", help="explain this row: an id, or a number from 0")
    which.add_argument("--pair", nargs=2, metavar=("A", "B"), help="explain why A ranks above B")
    parser.add_argument("--json", action="store_true", help="print JSON")
    add_reading(parser)


def run(options: argparse.Namespace) -> int:
    """Explain the best rows of a query, or the difference of two rows."""
    from dataclasses import replace

    import numpy as np

    from rankwise.cli.reading import naming, read_data, read_model, score
    from rankwise.explanations import explain, explain_pair

    model = read_model(options.model)
    data = read_data(options.data, options, model, needs_labels=False, wants_items=True)
    called = _row_names(data)
    names = model.names()
    if options.pair is not None:
        i, j = (_row(one, called, data, options.query) for one in options.pair)
        with naming(data.source):
            found = [explain_pair(model.estimator, data.X, i, j, data.qid, feature_names=names)]
        titles = [f"{called[i]} against {called[j]}"]
    else:
        one = None if options.item is None else _row(options.item, called, data, options.query)
        codes = data.queries.codes
        rows = _rows_of(data, options.query) if one is None else np.flatnonzero(codes == codes[one]).tolist()
        order = sorted(rows, key=score(model, data).__getitem__, reverse=True)
        shown = order[: options.top] if one is None else [one]
        with naming(data.source):
            found = explain(model.estimator, data.X, data.qid, rows=shown, feature_names=names)
        titles = [f"{called[number]}, rank {order.index(number) + 1}" for number in shown]
    found = [replace(one, title=title) for title, one in zip(titles, found, strict=True)]
    if options.output is not None:
        # No script runs and nothing is fetched, whatever the names of columns contain.
        page = (
            "<!doctype html><meta charset=utf-8>"
            "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">"
            "<title>Explanation</title>" + "".join(one.to_html() for one in found)
        )
        with output_stream(options.output) as stream:
            stream.write(page.encode())
        print_facts({"wrote": f"{options.output}: {len(found)} rows of {data.source}"}, to_error=True)
    elif options.json:
        explained = [
            {
                "title": one.title,
                "total": one.total,
                "constant": one.constant,
                "parts": [{"name": part.name, "contribution": part.contribution} for part in one.parts],
            }
            for one in found
        ]
        print_json({"model": model.path, "explanations": explained})
    else:
        write(visible("\n\n".join(one.text() for one in found)))
    return 0


def _row_names(data: Data) -> list[str]:
    ids = [""] * data.shape[0] if data.item_ids is None else [str(one) for one in data.item_ids]
    return [one or f"row {number}" for number, one in enumerate(ids)]


def _row(given: str, called: list[str], data: Data, query: str | None) -> int:
    """Return the row with an id, which may occur in several queries, or with a number."""
    own = range(len(called)) if query is None else _rows_of(data, query)
    found = [number for number in own if called[number] == given]
    if len(found) == 1:
        return found[0]
    if not found and given.isdecimal() and int(given) in own:
        return int(given)
    problem = "names several rows" if found else "is neither the id nor the number of a row"
    raise InvalidInputError(
        f"{given} {problem} of {data.source if query is None else f'query {query}'}.",
        f"use a row number from {own[0]} to {own[-1]}{', or name the query with --query' if found else ''}.",
    )


def _rows_of(data: Data, query: str | None) -> list[int]:
    import numpy as np

    known = [str(one) for one in data.queries.ids.tolist()]
    if query is not None and query not in known:
        raise InvalidInputError(f"{data.source} has no query {query}.", "see `rankwise inspect`.")
    found: list[int] = np.flatnonzero(
        data.queries.codes == (0 if query is None else known.index(query))
    ).tolist()
    return found
