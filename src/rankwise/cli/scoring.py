"""Scores of rows that were read, by a model that was read."""

from __future__ import annotations

import warnings

import numpy as np
import numpy.typing as npt

from rankwise.cli.inputs import Rows
from rankwise.cli.models import SavedModel
from rankwise.exceptions import InvalidInputError
from rankwise.model_selection import predict_scores

__all__ = ["score"]


def score(saved: SavedModel, rows: Rows) -> npt.NDArray[np.float64]:
    """Return one score per row; a model that scales inside queries needs their ids."""
    with warnings.catch_warnings():
        # Columns were brought into the model's order by their names, which scikit-learn does not see.
        warnings.filterwarnings("ignore", "X does not have valid feature names", UserWarning)
        scores = np.asarray(predict_scores(saved.model, rows.X, rows.qid), dtype=np.float64)
    if scores.ndim != 1:
        raise InvalidInputError(
            f"{saved.path} has {scores.shape[1]} outputs.", "save one output a model, and name that file."
        )
    return scores
