"""``rankwise report``: one HTML page about a model."""

from __future__ import annotations

import argparse
from pathlib import Path

from rankwise.cli.applicable import check_applicable
from rankwise.cli.columns import recall
from rankwise.cli.inputs import read_rows
from rankwise.cli.mistakes import UsageError
from rankwise.cli.models import fit_columns, read_model
from rankwise.cli.outputs import output_stream
from rankwise.cli.printing import print_facts, show_warnings
from rankwise.cli.scoring import score
from rankwise.report import Report
from rankwise.report.markup import without_folders

__all__ = ["run"]

_NAMED = 3  # files that a title names


def run(options: argparse.Namespace) -> int:
    """Evaluate the model and write the page."""
    show_warnings()
    check_applicable(options)
    if options.items is not None and options.metrics not in {None, "pairwise_error"}:
        raise UsageError(
            "--metrics: preferences are scored by the pairwise error alone.", "leave --metrics out."
        )
    saved = read_model(options.model)
    other = None if options.against is None else read_model(options.against)
    used = [one for one in (saved, other) if one is not None]
    options = recall(options, *(one.notes for one in used), encoders=[one.encoder for one in used])
    options.wants_items = "item_id" in options.recalled or "item_id" in options.given
    read = read_rows(options.data, options, first_column=saved.notes.get("first_column"))
    rows = fit_columns(read, saved)
    commands = [without_folders(str(line)) for line in (saved.notes.get("command"), options.line) if line]
    settings = {
        key: without_folders(str(saved.notes[name]))
        for key, name in (("trained on", "train"), ("validated on", "valid"), ("chosen by", "metric"))
        if saved.notes.get(name)
    }
    if saved.encoder is not None:
        settings["columns"] = "; ".join(saved.encoder.describe())
    metrics = None if options.metrics is None else options.metrics.split(",")
    # A magnitude of 0 is a tie: nobody won, so nothing can be contradicted.
    decided = slice(None) if rows.magnitude is None else rows.magnitude > 0
    report = Report(
        saved.model,
        rows.X,
        rows.y,
        rows.qid,
        pairs=None if rows.pairs is None else rows.pairs[decided],
        weight=None if rows.weight is None else rows.weight[decided],
        metrics=metrics,
        feature_names=saved.names(rows),
        row_names=None if rows.item_ids is None else list(rows.item_ids),
        title=options.title or f"{Path(options.model).name} on {_short_source(options.data)}",
        command=commands,
        settings=settings,
        source=_source(options),
        choice={**saved.notes, "judged_by": without_folders(str(saved.notes.get("judged_by") or ""))},
        against=None if other is None else score(other, fit_columns(read, other)),
        against_name=None if other is None else Path(other.path).name,
        own_name=Path(options.model).name,
        calibration=saved.calibration,
    )
    page = report.html().encode()
    with output_stream(options.output) as stream:
        stream.write(page)
    if options.output != "-":
        print_facts({"wrote": f"{options.output} ({len(page) / 1000:,.0f} kB): open it in a browser"})
    return 0


def _file_name(path: str) -> str:
    return "standard input" if path == "-" else Path(path).name


def _short_source(paths: list[str]) -> str:
    names = [_file_name(path) for path in paths]
    if len(names) > _NAMED:
        return f"{', '.join(names[: _NAMED - 1])} and {len(names) - _NAMED + 1} more"
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def _source(options: argparse.Namespace) -> str:
    files = ", ".join(_file_name(path) for path in options.data)
    return files if options.items is None else f"{files}, between the items of {_file_name(options.items)}"
