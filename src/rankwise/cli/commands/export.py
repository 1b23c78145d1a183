"""``rankwise export``: a model for other programs."""

from __future__ import annotations

import argparse
import json
import sys
from typing import Any

from rankwise.cli.columns import recall
from rankwise.cli.mistakes import UsageError
from rankwise.cli.models import SavedModel, read_model
from rankwise.cli.outputs import output_stream
from rankwise.cli.printing import print_facts, print_json
from rankwise.data.columns import column_name
from rankwise.exporters import export

__all__ = ["run"]


def run(options: argparse.Namespace) -> int:
    """Write the model as the target reads it."""
    if options.to == "onnx" and options.output == "-" and sys.stdout.isatty():
        raise UsageError("ONNX is no text to look at.", "name a file: -o model.onnx.")
    saved = read_model(options.model)
    reading = recall(options, saved.notes, encoders=[saved.encoder])
    made = export(
        saved.whole,
        options.to,
        feature_names=_names(saved, options.feature_names),
        name=options.name,
        table=options.table,
        qid=reading.qid,
        error=options.error,
        bounds=dict(options.bounds or []),
        nonnegative=options.nonnegative,
        filled=options.filled,
        whole_query=options.whole_query,
    )
    content = made if isinstance(made, bytes) else made.encode()
    facts = {"wrote": f"{options.output}: {saved.path} for {options.to}, {len(content):,} bytes"}
    document: dict[str, Any] = {
        "model": saved.path,
        "output": options.output,
        "format": options.to,
        "bytes": len(content),
    }
    if options.to == "json":
        document["weights"] = len(json.loads(content).get("weights", ()))
    with output_stream(options.output) as stream:
        stream.write(content)
    if options.json:
        print_json(document)
    elif options.output != "-":
        print_facts(facts, to_error=True)
    return 0


def _names(saved: SavedModel, given: str | None) -> list[str] | None:
    if given is not None:
        return [name.strip() for name in given.split(",")]
    if saved.encoder is not None:
        return None
    first = saved.notes.get("first_column")
    return saved.notes.get("feature_names") or [column_name(j, first) for j in range(saved.n_columns)]
