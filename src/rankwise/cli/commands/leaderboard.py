"""``rankwise leaderboard``: rank items from battles."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from rankwise.cli.options import names
from rankwise.cli.printing import output_stream, print_json, print_table, remark, write

_TEXTS = ("item", "against", "effect")
_SHARES = ("strength", "value", "low", "high", "p_first")
_IDS = ("model_a", "model_b", "item_a", "item_b", "winner", "loser", "item")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.epilog = (
        "examples:\n"
        "  rankwise leaderboard battles.csv\n"
        "  rankwise leaderboard battles.csv --style length --order --cluster judge -o board.html\n"
        "  rankwise leaderboard games.csv --ties davidson --json"
    )
    parser.add_argument("data", metavar="BATTLES", nargs="+", help="tables of battles; - is standard input")
    add = parser.add_argument
    add("-o", "--output", metavar="FILE", help="write one HTML page about the board; - is standard output")
    add("-f", "--force", action="store_true", help="replace an existing file")
    add("--json", action="store_true", help="print the board as JSON")
    add("--items", metavar="FILE", help="a table of items with a column item and columns of numbers")
    add("--style", type=names, metavar="A,B", help="adjust for columns of battles: x, or x_a minus x_b")
    add("--order", action="store_true", help="estimate the advantage of the item that is shown first")
    ties = "a tie is half a win, or an outcome (half)"
    add("--ties", choices=("half", "davidson"), default="half", help=ties)
    add("--cluster", metavar="COLUMN", help="judges, prompts or users, whose battles are not independent")
    add("--suggest", type=int, metavar="N", help="propose N pairs of items to compare next")


def run(options: argparse.Namespace) -> int:
    """Fit the board, print it and write the page."""
    from rankwise.leaderboards import BradleyTerry
    from rankwise.runtime.progress import ProgressLine

    model = BradleyTerry(ties=options.ties, first_advantage=options.order)
    items = None if options.items is None else _read([options.items])
    with ProgressLine("ranking") as progress:
        progress.update("reading battles")
        battles = _read(options.data)
        progress.update(f"{battles.num_rows:,} battles")
        model.fit(battles, style=options.style, items=items, cluster=options.cluster)
    if options.ties == "half":
        model.find_flips()
    found = model.diagnostics_
    if found["unused_columns"]:
        remark(f"columns that were not used: {', '.join(found['unused_columns'])}")
    suggested = [] if options.suggest is None else model.suggest(options.suggest)
    pairs = [{"item": a, "against": b} for a, b in suggested]
    board, effects = _rows(model.table_), _rows(model.effects_)
    if options.json:
        print_json({"board": board, "effects": effects, "diagnostics": found, "suggested": pairs})
    elif options.output != "-":
        _print(board, effects, pairs)
        for key in ("never_lost", "never_won", "never_played"):
            if found[key]:
                write(f"{key.replace('_', ' ')}: {', '.join(map(str, found[key]))}")
    if options.output is not None:
        short = ", ".join("standard input" if path == "-" else Path(path).name for path in options.data)
        page = model.to_html(title=f"Leaderboard of {short}")
        with output_stream(options.output) as stream:
            stream.write(page.encode())
        if options.output != "-" and not options.json:
            write(f"wrote {options.output}: open it in a browser")
    return 0


def _read(paths: list[str]) -> Any:
    """Read tables as one; columns of ids stay text."""
    from rankwise.data.tables import arrow_table, open_tables

    files = open_tables(paths, _IDS)
    return arrow_table(files, files[0].schema.names)


def _rows(table: dict[str, Any]) -> list[dict[str, Any]]:
    columns = (column.tolist() for column in table.values())
    return [dict(zip(table, row, strict=True)) for row in zip(*columns, strict=True)]


def _print(*tables: list[dict[str, Any]]) -> None:
    """Print the board, effects and suggested pairs, where there are some."""
    for rows in filter(None, tables):
        head = [key for key in rows[0] if key != "error"]
        cells = [[_shown(key, one[key]) for key in head] for one in rows]
        print_table(head, cells, left=[at for at, key in enumerate(head) if key in _TEXTS])
        write()


def _shown(key: str, value: Any) -> str:
    if key in _TEXTS:
        return str(value)
    written = f"{value:.3f}" if key in _SHARES else f"{value:,.9g}"
    return written.replace("nan", "-")
