"""``rankwise inspect``: what a data file or a model file holds."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

import numpy as np

from rankwise.cli.applicable import check_applicable, check_data_only
from rankwise.cli.encoding import encoding_lines
from rankwise.cli.inputs import Rows, read_rows
from rankwise.cli.printing import print_facts, print_json, print_table, remark, write
from rankwise.cli.streams import MODEL_START, begins_model
from rankwise.data.columns import column_name
from rankwise.data.summary import DataSummary, summarise
from rankwise.data.wording import how_many

__all__ = ["run"]


def run(options: argparse.Namespace) -> int:
    """Tell models from data, and look."""
    if len(options.data) == 1 and _is_model(options.data[0]):
        check_data_only(options)
        return _inspect_model(options.data[0], as_json=options.json)
    check_applicable(options)
    rows = read_rows(options.data, options, needs_labels=False)
    for text in rows.remarks:
        remark(text)
    summary = summarise(rows.X, rows.y, rows.queries if rows.pairs is None else None)
    if options.json:
        print_json(
            {
                "file": rows.source,
                **_as_json(summary),
                "first_column": rows.first_column,
                "preferences": None if rows.pairs is None else len(rows.pairs),
                "encoding": encoding_lines(rows) or None,
            }
        )
        return 0
    facts: dict[str, object] = {
        "file": rows.source,
        "rows": f"{summary.rows:,}",
        "columns": f"{summary.columns:,}"
        + ("" if rows.first_column is None else f", counted from {rows.first_column}"),
        "filled cells": _percent(summary.filled),
    }
    if rows.pairs is not None:
        facts["preferences"] = f"{len(rows.pairs):,}"
    elif rows.weight is not None:
        facts["weights"] = f"{rows.weight.min():g} to {rows.weight.max():g}"
    if rows.y is not None:
        low, middle, high = summary.sizes
        facts["queries"] = f"{summary.queries:,}" if rows.qid is not None else "none: one ranking"
        facts["rows a query"] = f"{low:,} to {high:,}, median {middle:g}"
        facts["ordered pairs"] = f"{summary.pairs:,}"
    print_facts(facts)
    _print_encoding(rows)
    if summary.labels:
        write("\nlabels")
        print_table(
            ["label", "rows", ""],
            [[n, f"{c:,}", _percent(c / summary.rows)] for n, c in summary.labels],
            indent="  ",
        )
    write("\nproblems" if summary.problems else "\nno problems found")
    for problem in summary.problems:
        write(f"  {problem}")
    return 0


def _print_encoding(rows: Rows) -> None:
    if rows.encoder is not None:
        _print_lines("how fit would read the columns", encoding_lines(rows))


def _print_lines(title: str, lines: list[str]) -> None:
    write(f"\n{title}")
    for line in lines:
        write(f"  {line}")


def _percent(share: float) -> str:
    """Write a share of all; 0 or 100 % only where it is exactly that."""
    if share in {0.0, 1.0}:
        return f"{share:.0%}"
    for digits in (1, 2, 3):
        shown = f"{share:.{digits}%}"
        if 0 < float(shown[:-1]) < 100:
            return shown
    return f"{share:.2g} of all" if share < 0.5 else f"all but {1 - share:.2g}"


def _is_model(path: str) -> bool:
    if path == "-":
        # Looked at, and left there for whoever reads it.
        return begins_model(sys.stdin.buffer.peek(MODEL_START)[:MODEL_START])  # type: ignore[union-attr]
    if not Path(path).is_file():
        return False
    with Path(path).open("rb") as stream:
        return begins_model(stream.read(MODEL_START))


def _as_json(summary: DataSummary) -> dict[str, object]:
    found = {name: getattr(summary, name) for name in summary.__dataclass_fields__}
    found["labels"] = [{"label": name, "rows": count} for name, count in summary.labels]
    return found


def _inspect_model(path: str, *, as_json: bool) -> int:
    from rankwise.cli.models import read_model  # noqa: PLC0415
    from rankwise.formula.view import ModelView  # noqa: PLC0415

    saved = read_model(path)
    view = ModelView.of(saved.model)
    ranker = view.ranker
    facts: dict[str, Any] = {
        "file": saved.path,
        "model": view.describe(),
        "columns": saved.n_columns,
        "rankwise": saved.header["rankwise"],
    }
    alpha = getattr(ranker, "alpha_", getattr(ranker, "alpha", None))
    if alpha is not None:
        facts["alpha"] = alpha
    # The figure by which it was chosen among others, where there were any; its alpha was chosen by another one.
    judge = saved.chooser or ranker
    for key, part, name in (
        ("queries", ranker, "n_queries_"),
        ("pairs", ranker, "n_pairs_"),
        ("held_out_value", judge, "best_score_"),
        ("judged_by", judge, "cv_"),
    ):
        if hasattr(part, name):
            facts[key] = getattr(part, name)
    facts.update(
        {key: saved.notes[key] for key in ("train", "valid", "metric", "command") if saved.notes.get(key)}
    )
    weights: Any = getattr(ranker, "coef_", None)
    weights = weights if np.ndim(weights) == 1 else None
    largest = [] if weights is None else np.argsort(-np.abs(weights), kind="stable")[:10].tolist()
    own, first = saved.notes.get("feature_names"), saved.notes.get("first_column")
    taken = own or [column_name(j, first) for j in range(saved.n_columns)]
    # Steps before the ranker may make several columns of one.
    is_same = weights is None or weights.size == len(taken)
    names = taken if is_same else list(map(str, saved.model[:-1].get_feature_names_out(taken)))
    encoding = None if saved.encoder is None else saved.encoder.describe()
    if as_json:
        print_json(
            {
                **facts,
                "first_column": first,
                "encoding": encoding,
                "largest_weights": {names[j]: float(weights[j]) for j in largest}
                if weights is not None
                else None,
            }
        )
        return 0
    if encoding is not None:
        facts["columns"] = f"{saved.encoder.n_features_in_:,} of a table, {saved.n_columns:,} as numbers"
    print_facts({key.replace("_", " "): _shown(value) for key, value in facts.items()})
    if encoding is not None:
        _print_lines("how it reads the columns", encoding)
    if weights is not None:
        write(f"\nlargest of {how_many(weights.size, 'weights')}" + (", after scaling" if view.steps else ""))
        print_table(["column", "weight"], [[names[j], f"{weights[j]:+.4g}"] for j in largest], indent="  ")
    return 0


def _shown(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.6g}"
    return f"{value:,}" if isinstance(value, (int, np.integer)) else str(value)
