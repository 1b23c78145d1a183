"""A ranker that chose everything by itself, as plain values beside the model that it chose."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import BaseEstimator

from rankwise.automatic.leaderboard import Leaderboard
from rankwise.json_values import Json
from rankwise.metrics import Metric
from rankwise.persistence.models import read_step, without_runs, write_step
from rankwise.persistence.parameters import unfit_parameter
from rankwise.persistence.reader import Reader
from rankwise.persistence.transformers import parameters_of
from rankwise.persistence.values import features_taken, wrong
from rankwise.persistence.writer import Writer
from rankwise.preprocessing import TableEncoder

if TYPE_CHECKING:
    from rankwise.automatic.ranker import AutoRanker

__all__ = ["read_automatic", "write_automatic"]

_ATTRIBUTES = {
    "best_score_": float,
    "calibration_": list,
    "cv_": str,
    "fitted_with_qid_": bool,
    "is_dense_": bool,
    "log_loss_": float,
    "metric_": Metric,
    "n_components_": int,
    "n_features_in_": int,
    "n_ignored_queries_": int,
    "n_pairs_": int,
    "n_queries_": int,
    "n_unpaired_rows_": int,
    "nested_error_": float,
    "nested_score_": float,
    "skipped_": list,
    "stopped_": str,
}

_PARTS = ("parameters", "attributes", "leaderboard")


def write_automatic(model: AutoRanker, writer: Writer) -> dict[str, Json]:
    """Return the JSON of everything but the chosen model, which is written as any other; rivals are not kept."""
    parameters = {**parameters_of(model), "rivals": (), "encoder": "auto"}
    attributes = {name: getattr(model, name) for name in _ATTRIBUTES if hasattr(model, name)}
    board = model.leaderboard_
    return {
        "encoder": None if model.encoder_ is None else write_step(model.encoder_, "encoder/", writer),
        "features": None if model.encoder_ is not None else _names(model),
        "parameters": writer.write(parameters, "automatic/parameters"),
        "attributes": writer.write(attributes, "automatic"),
        "leaderboard": writer.write(
            {
                "rows": board.as_dicts(times=False),  # the same data give the same file
                "metric": board.metric,
                "greater_is_better": board.greater_is_better,
                "judged_by": board.judged_by,
                "constant": board.constant,
                "is_clear": board.is_clear,
            },
            "leaderboard",
        ),
    }


def read_automatic(
    kind: type[AutoRanker], written: object, chosen: BaseEstimator, reader: Reader
) -> AutoRanker:
    """Make the ranker that some JSON describes, around the model that it chose."""
    parts: list[Any] = (
        [reader.read(written.get(part)) for part in _PARTS] if isinstance(written, dict) else []
    )
    if not isinstance(written, dict) or not all(isinstance(part, dict) for part in parts):
        raise wrong("what chose the model has no parameters, attributes or leaderboard")
    parameters, attributes, board = parts
    if not set(parameters) <= set(kind().get_params(deep=False)) or unfit_parameter(parameters) is not None:
        raise wrong("AutoRanker cannot have all of its parameters")
    model = kind(**without_runs(parameters))
    for name, value in attributes.items():
        if name not in _ATTRIBUTES or not isinstance(value, _ATTRIBUTES[name]):
            raise wrong(f"{name!r:.80} is no attribute of AutoRanker")
        setattr(model, name, value)
    model.leaderboard_ = _read_board(board)
    model.encoder_ = None if written.get("encoder") is None else read_step(written["encoder"], reader)
    if not isinstance(model.encoder_, TableEncoder | None):
        raise wrong("its encoder is none")
    first = chosen.steps[0][1] if hasattr(chosen, "steps") else chosen
    if model.encoder_ is not None:
        if len(model.encoder_.get_feature_names_out()) != features_taken(first):
            raise wrong("the chosen model takes other columns than its encoder gives")
        first = model.encoder_
    if features_taken(model) != features_taken(first):
        raise wrong("the chosen model takes other columns")
    _name_columns(model, first, written.get("features"))
    model.best_estimator_ = chosen
    return model


def _names(model: AutoRanker) -> list[Json] | None:
    """Return what the columns were called, which the chosen model does not know: it was fitted to an array."""
    own = getattr(model, "feature_names_in_", None)
    return None if own is None else [str(name) for name in own]


def _name_columns(model: AutoRanker, first: BaseEstimator, names: object) -> None:
    """Say what the columns are called: as the first step that sees them has it, or as the file has it."""
    if hasattr(first, "feature_names_in_"):
        model.feature_names_in_ = first.feature_names_in_
    elif names is not None:
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            raise wrong("the names of its columns are none")
        if len(names) != features_taken(first) or len(set(names)) != len(names):
            raise wrong("its columns do not have a name each")
        model.feature_names_in_ = np.array(names, dtype=object)


def _read_board(board: dict[str, Any]) -> Leaderboard:
    rows = board.pop("rows", None)
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise wrong("its leaderboard has no rows")
    try:
        found = Leaderboard.from_dicts(rows, **board)
        str(found)
    except (TypeError, ValueError) as error:
        raise wrong(f"its leaderboard is none ({error})") from error
    if sum(entry.is_chosen is True for entry in found) != 1:
        raise wrong("its leaderboard does not say what was chosen")
    return found
