"""Pairs of rows compared by a ranker: by how much the first is preferred, and how probably."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import check_is_fitted

from rankwise.arrays import ArrayLike, Floats, Ints, MatrixLike
from rankwise.automatic.calibration import Calibration, calibrate
from rankwise.data.duels import duel_sides
from rankwise.data.preferences import check_pairs
from rankwise.estimators.base import Ranker
from rankwise.exceptions import InvalidInputError
from rankwise.preprocessing.table_columns import is_table_like

__all__ = ["CalibratedRanker"]


class CalibratedRanker(Ranker):
    """A ranker that turns differences of scores into probabilities."""

    calibration_: list[list[float]]
    log_loss_: float

    def predict_pairs(self, X: MatrixLike, other: ArrayLike | MatrixLike | None = None) -> Floats:
        """Return how much one row of each pair is preferred to the other: positive where the first is.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (rows, features)
        other : array-like of int of shape (pairs, 2), or a matrix or table with the columns of X, optional
            What `fit_pairs` takes: row numbers of X; or the second rows, where row k of X is compared with row k of it.
            Without it X is a table of duels, with columns such as ``winner_age`` and ``loser_age``.
        """
        if other is None:
            X, other = duel_sides(X)
        scores = self.predict(X)
        edges = np.asarray(None if is_table_like(other) or sp.issparse(other) else other)
        is_listed = edges.ndim == 2 and edges.shape[1] == 2 and edges.dtype.kind in "iu"
        # Whole numbers in two columns may also be rows of a model of two columns.
        if is_listed and (self.n_features_in_ != 2 or edges.shape[0] != scores.shape[0]):
            pairs = check_pairs(edges, scores.shape[0])
            return np.asarray(scores[pairs.winner] - scores[pairs.loser])
        others = self.predict(other)
        if scores.shape != others.shape:
            raise InvalidInputError(
                f"There are {scores.shape[0]} first rows and {others.shape[0]} second ones.",
                "row k of both is pair k; or pass an integer array of shape (pairs, 2) of row numbers of X.",
            )
        return np.asarray(scores - others)

    def predict_pairs_proba(self, X: MatrixLike, other: ArrayLike | MatrixLike | None = None) -> Floats:
        """Return the probability that the first row of each pair is preferred, calibrated on held-out pairs.

        Parameters
        ----------
        X, other
            As in `predict_pairs`.
        """
        check_is_fitted(self)
        if not hasattr(self, "calibration_"):
            raise InvalidInputError(
                "Probabilities are calibrated on held-out pairs, and there were none.",
                "use fit_pairs, without an eval_set.",
            )
        return Calibration(*self.calibration_)(self.predict_pairs(X, other))

    def _calibrate(self, differences: Floats, weight: Floats, fold: Ints) -> None:
        """Learn probabilities from the held-out differences of the pairs."""
        found, self.log_loss_ = calibrate(differences, weight, fold, self.calibration)
        self.calibration_ = [found.knots, found.probabilities]
