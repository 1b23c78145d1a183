"""``rankwise predict``: one score per line, or tables and runs with queries, items and ranks."""

from __future__ import annotations

import argparse
import csv
import io
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from rankwise.cli.options import add_data, add_output, add_reading
from rankwise.cli.printing import output_stream, print_facts
from rankwise.exceptions import InvalidInputError

if TYPE_CHECKING:
    from rankwise.arrays import AnyArray, Floats
    from rankwise.cli.reading import Data

_LINES_AT_ONCE = 65536
_ENDINGS = {".csv": "csv", ".tsv": "tsv", ".parquet": "parquet", ".run": "trec", ".trec": "trec"}
_OTHERS = {".xlsx", ".xls", ".json", ".arrow", ".feather", ".store"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.epilog = (
        "examples:\n"
        "  rankwise predict model.rw test.txt -o scores.txt\n"
        "  rankwise predict model.rw test.txt -o ranked.run\n"
        "  rankwise predict model.rw items.parquet --id sku -o ranked.tsv\n"
        "  zcat test.txt.gz | rankwise predict model.rw - > scores.txt"
    )
    add_data(parser, model=True)
    add_output(parser, "one score per line; or, by its ending, a .csv, .tsv, .parquet or .run", default="-")
    parser.add_argument(
        "--to",
        choices=("scores", "csv", "tsv", "parquet", "trec"),
        help="the format, unless the ending determines it",
    )
    parser.add_argument(
        "--ranks", action="store_true", help="write ranks inside each query instead of scores: 1 is best"
    )
    add_reading(parser)


def run(options: argparse.Namespace) -> int:
    """Score rows and write the scores."""
    from rankwise.cli.reading import kind_of, read_blocks, read_data, read_model, score

    target = _target(options)
    model = read_model(options.model)
    kinds = {kind_of(path, options.format) for path in options.data}
    is_plain = (
        target == "scores" and not options.ranks and not model.view.needs_queries and options.items is None
    )
    with output_stream(options.output) as stream:
        if is_plain and "store" not in kinds:
            n_rows = sum(
                _write_numbers(stream, _one_per_line(block, score(model, block)))
                for block in read_blocks(options.data, options, model)
            )
        else:
            data = read_data(options.data, options, model, needs_labels=False, wants_items=target != "scores")
            scores = score(model, data)
            n_rows = _write(stream, data, scores, target, ranks=options.ranks)
    if options.output != "-":
        what = "ranks" if options.ranks else "scores"
        print_facts(
            {"wrote": f"{options.output}: {n_rows:,} {what} of {', '.join(options.data)}"}, to_error=True
        )
    return 0


def _target(options: argparse.Namespace) -> str:
    ending = Path(options.output).suffix.lower()
    if options.to is None and ending in _OTHERS:
        raise InvalidInputError(
            f"{options.output}: predict does not write {ending} files.",
            "end it in .csv, .tsv, .parquet or .run, or in .txt for one score per line.",
        )
    target: str = options.to or _ENDINGS.get(ending, "scores")
    if target != "scores" and options.ranks:
        raise InvalidInputError("Tables and runs have ranks already.", "leave --ranks out.")
    if target == "parquet" and options.output == "-":
        raise InvalidInputError("Parquet output is binary.", "write it to a file with -o ranked.parquet.")
    return target


def _one_per_line(data: Data, scores: Floats) -> Floats:
    """Return the score of each row, or the difference of each duel."""
    if data.pairs is None or not data.is_duels:
        return scores
    return scores[data.pairs[:, 0]] - scores[data.pairs[:, 1]]


def _write(stream: BinaryIO, data: Data, scores: Floats, target: str, *, ranks: bool) -> int:
    """Write scores, ranks, differences of duels, or a table; return the number of lines."""
    from rankwise.data.queries import ranks_inside

    if data.is_duels:
        if target != "scores":
            raise InvalidInputError(
                f"{data.source} lists duels, which are not rankings of items.",
                "write one number per line: -o scores.txt.",
            )
        return _write_numbers(stream, _one_per_line(data, scores))
    if target == "scores":
        return _write_numbers(stream, ranks_inside(scores, data.queries.codes) if ranks else scores)
    return _write_table(stream, data, scores, target)


def _write_numbers(stream: BinaryIO, values: AnyArray) -> int:
    for start in range(0, values.size, _LINES_AT_ONCE):
        lines = values[start : start + _LINES_AT_ONCE].tolist()
        stream.write("".join(f"{value!r}\n" for value in lines).encode())
    return int(values.size)


def _one_line(text: str) -> str:
    """Keep one line per row, whatever an id contains."""
    return text.encode(errors="backslashreplace").decode().translate({9: " ", 10: " ", 13: " "})


def _write_table(stream: BinaryIO, data: Data, scores: Floats, target: str) -> int:
    import numpy as np

    from rankwise.data.queries import ranks_inside
    from rankwise.data.tables import import_pyarrow

    codes = data.queries.codes
    ids = [""] * scores.size if data.item_ids is None else [str(one) for one in data.item_ids]
    items = [_one_line(one) or f"row{number}" for number, one in enumerate(ids)]
    qid = ["1"] * scores.size if data.qid is None else [_one_line(str(one)) for one in data.qid.tolist()]
    if target == "trec":  # lines in order, and no rank twice
        order = np.lexsort((np.arange(scores.size), -scores, codes))
        place = np.arange(scores.size) - data.queries.offsets[codes[order]] + 1
        odd = next((one for one in (*qid, *items) if one.split() != [one]), None)
        if odd is not None or len({*zip(qid, items, strict=True)}) < scores.size:
            problem = "has an item of a query once, and here one comes twice"
            raise InvalidInputError(
                f"A TREC run {problem if odd is None else f'has ids without spaces, unlike {odd!r}'}.",
                "give the rows other ids with --id, or write a .tsv or .parquet file.",
            )
        stream.writelines(
            f"{qid[at]} Q0 {items[at]} {rank} {score!r} rankwise\n".encode()
            for at, rank, score in zip(order.tolist(), place.tolist(), scores[order].tolist(), strict=True)
        )
        return int(scores.size)
    columns = {
        "qid": qid,
        "item": items,
        "rank": ranks_inside(scores, codes).tolist(),
        "score": scores.tolist(),
    }
    if target == "parquet":
        pa = import_pyarrow()
        pa.parquet.write_table(pa.table(columns), stream)
    else:
        text = io.StringIO()
        writer = csv.writer(text, delimiter="\t" if target == "tsv" else ",", lineterminator="\n")
        writer.writerows([list(columns), *zip(*columns.values(), strict=True)])
        stream.write(text.getvalue().encode())
    return int(scores.size)
