"""``rankwise inspect``: the contents of a data file or a model file."""

from __future__ import annotations

import argparse
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

from rankwise.cli.options import add_columns, add_reading
from rankwise.cli.printing import print_facts, print_json, print_table, write

if TYPE_CHECKING:
    from rankwise.cli.reading import Data


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.epilog = "examples:\n  rankwise inspect train.txt\n  rankwise inspect model.rw"
    parser.add_argument("data", metavar="FILE", nargs="+", help="a model file, or files of rows")
    parser.add_argument("--json", action="store_true", help="print JSON")
    add_columns(parser)
    add_reading(parser)


def run(options: argparse.Namespace) -> int:
    """Print the contents of a data file or a model file."""
    from rankwise.cli.reading import is_model, naming, read_data
    from rankwise.data.summary import summarise

    if len(options.data) == 1 and is_model(options.data[0]):
        return _inspect_model(options.data[0], as_json=options.json)
    data = read_data(options.data, options, needs_labels=False)
    with naming(data.source):
        data, encoding = _encoded(data, options)
    summary = summarise(data.X, data.y, data.queries if data.pairs is None else None)
    roles = {} if data.roles is None else data.roles.saved()
    if options.json:
        more = {
            "preferences": None if data.pairs is None else len(data.pairs),
            "roles": roles or None,
            "encoding": encoding or None,
        }
        print_json({"file": data.source, **asdict(summary), "first_column": data.first_column, **more})
        return 0
    counted = "" if data.first_column is None else f", counted from {data.first_column}"
    facts: dict[str, Any] = {
        "file": data.source,
        "rows": f"{summary.rows:,}",
        "columns": f"{summary.columns:,}{counted}",
        "non-zero cells": _percent(summary.filled),
    }
    if data.roles is not None:
        facts["roles"] = _roles(data)
    if data.pairs is not None:
        facts["preferences"] = f"{len(data.pairs):,}"
    elif data.weight is not None:
        facts["weights"] = f"{data.weight.min():g} to {data.weight.max():g}"
    if data.y is not None:
        low, middle, high = summary.sizes
        facts["queries"] = f"{summary.queries:,}" if data.qid is not None else "none: one ranking"
        facts["rows per query"] = f"{low:,} to {high:,}, median {middle:g}"
        facts["ordered pairs"] = f"{summary.pairs:,}"
    if encoding:
        facts["fit reads"] = encoding
    print_facts(facts)
    if summary.labels:
        write("\nlabels")
        lines = [[name, f"{count:,}", _percent(count / summary.rows)] for name, count in summary.labels]
        print_table(["label", "rows", ""], lines, indent="  ")
    write("\nproblems" if summary.problems else "\nno problems found")
    for problem in summary.problems:
        write(f"  {problem}")
    return 0


def _encoded(data: Data, options: argparse.Namespace) -> tuple[Data, list[str]]:
    """Encode a table as `fit` would."""
    from rankwise.preprocessing import TableEncoder

    if not hasattr(data.X, "column_names"):
        return data, []
    encoder = TableEncoder(categories=options.categories, words=options.words, crosses=options.crosses)
    X = encoder.fit(data.X, qid=data.qid).transform(data.X)
    names = [str(name) for name in encoder.get_feature_names_out()]
    return replace(data, X=X, names=names), encoder.describe()


def _roles(data: Data) -> str:
    from rankwise.data.columns import some_names

    roles = data.roles
    assert roles is not None
    named = {"label": roles.label, "qid": roles.qid, "weight": roles.weight, "id": some_names(roles.ids)}
    parts = [f"{role}={name}" for role, name in named.items() if name]
    unused = [*roles.queries, *roles.unused]
    parts += [f"not used: {some_names(unused)}"] if unused else []
    return ", ".join([*parts, f"{len(roles.features) or data.shape[1]:,} features"])


def _percent(share: float) -> str:
    """Format a share; 0 or 100 % only where it is exactly that."""
    digits = next((n for n in (1, 2, 3) if 0 < float(f"{100 * share:.{n}f}") < 100), 1)
    return f"{share:.0%}" if share in {0.0, 1.0} else f"{share:.{digits}%}"


def _inspect_model(path: str, *, as_json: bool) -> int:
    from rankwise.cli.reading import read_model

    model = read_model(path)
    view = model.view
    facts: dict[str, Any] = {
        "file": model.path,
        "model": view.describe(),
        "columns": model.n_features,
        "rankwise": model.header["rankwise"],
    }
    facts |= view.results(model.estimator)
    facts |= {
        key: model.notes[key] for key in ("train", "valid", "metric", "command") if model.notes.get(key)
    }
    roles = model.roles.saved()
    facts |= {key: roles[key] for key in ("label", "qid", "ids") if key in roles}
    encoding = None if model.encoder is None else list(model.encoder.describe())
    weights = view.weights(model.names())
    largest = dict(sorted(weights.items(), key=lambda one: -abs(one[1]))[:10])
    if as_json:
        more = {"first_column": model.first_column, "encoding": encoding, "largest_weights": largest or None}
        print_json({**facts, **more})
        return 0
    if encoding is not None:
        facts["columns"] = [f"{model.n_features:,} of a table", *encoding]
    print_facts({key.replace("_", " "): _shown(value) for key, value in facts.items()})
    if weights:
        write(f"\nlargest of {len(weights):,} weights" + (", after scaling" if view.steps else ""))
        rows = [[name, f"{weight:+.4g}"] for name, weight in largest.items()]
        print_table(["column", "weight"], rows, indent="  ")
    return 0


def _shown(value: object) -> object:
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, tuple):
        return ", ".join(map(str, value))
    return f"{value:,}" if isinstance(value, int) else value
