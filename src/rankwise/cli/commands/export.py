"""``rankwise export``: a model for other programs; for now the weights of a linear one, as JSON."""

from __future__ import annotations

import argparse
import json
from typing import Any

import numpy as np
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, RobustScaler, StandardScaler

import rankwise
from rankwise.cli.models import read_model
from rankwise.cli.outputs import output_stream
from rankwise.cli.printing import print_facts, print_json
from rankwise.data.tables.numbered_columns import column_name
from rankwise.exceptions import InvalidInputError
from rankwise.formula.view import Doubles, ModelView

__all__ = ["fold", "run"]


def run(options: argparse.Namespace) -> int:
    """Write the weights, with the scaling folded in."""
    saved = read_model(options.model)
    view = ModelView.of(saved.model)
    if view.weights is None:
        raise InvalidInputError(
            f"{saved.path} holds a {type(view.ranker).__name__}, which has no weight for each column.",
            "export a linear model (--method rls or svm); kernels can be used through Python: rankwise.load.",
        )
    weights, intercept = fold(view)
    first = saved.notes.get("first_column")
    names = saved.notes.get("feature_names") or [column_name(j, first) for j in range(weights.size)]
    document: dict[str, Any] = {
        "format": "rankwise linear weights",
        "rankwise": rankwise.__version__,
        "score": "intercept + sum of weight * value over columns; higher is better inside a query",
        "intercept": intercept,
        "weights": {name: float(weight) for name, weight in zip(names, weights, strict=True)},
    }
    with output_stream(options.output) as stream:
        stream.write((json.dumps(document, indent=1, ensure_ascii=False) + "\n").encode())
    if options.json:
        print_json(
            {
                "model": saved.path,
                "output": options.output,
                "format": options.to,
                "weights": int(weights.size),
            }
        )
    elif options.output != "-":
        print_facts({"wrote": f"{options.output}: {weights.size:,} weights of {saved.path}"}, to_error=True)
    return 0


def fold(view: ModelView) -> tuple[Doubles, float]:
    """Return weights and an intercept that act on the columns as they come."""
    assert view.weights is not None
    weights, intercept = view.weights.copy(), 0.0
    for step in reversed(view.steps):
        scale, shift = _affine(step)
        intercept += float(weights @ shift)
        weights = weights * scale
    return weights, intercept


def _affine(step: Any) -> tuple[Doubles, Doubles]:
    """Return (a, b) where a step turns x into a * x + b."""
    n = int(step.n_features_in_)
    one, zero = np.ones(n), np.zeros(n)
    if isinstance(step, MinMaxScaler) and not step.clip:
        return step.scale_, step.min_
    if isinstance(step, MaxAbsScaler) and not getattr(step, "clip", False):
        return 1 / step.scale_, zero
    if isinstance(step, StandardScaler):
        scale = one if step.scale_ is None else 1 / step.scale_
        return scale, zero if not step.with_mean else -step.mean_ * scale
    if isinstance(step, RobustScaler):
        scale = one if step.scale_ is None else 1 / step.scale_
        return scale, zero if step.center_ is None else -step.center_ * scale
    raise InvalidInputError(
        f"{type(step).__name__} looks at more than one value of a row or a query, so it cannot be folded into weights.",
        "fit with --scaling standard, max-abs or none to export.",
    )
