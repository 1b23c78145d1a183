"""Scores of rows that were read, by a model that was read."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from rankwise.cli.inputs import Rows
from rankwise.cli.models import SavedModel
from rankwise.exceptions import InvalidInputError
from rankwise.model_selection import predict_scores

__all__ = ["score"]


def score(saved: SavedModel, rows: Rows) -> npt.NDArray[np.float64]:
    """Return one score per row; a model that scales inside queries needs their ids."""
    scores = np.asarray(predict_scores(saved.model, rows.X, rows.qid), dtype=np.float64)
    if scores.ndim != 1:
        raise InvalidInputError(
            f"{saved.path} has {scores.shape[1]} outputs.", "save one output a model, and name that file."
        )
    return scores
