"""Pairs of rows compared by a ranker: by how much the first is preferred, and how probably."""

from __future__ import annotations

from sklearn.utils.validation import check_is_fitted

from rankwise.arrays import ArrayLike, Floats, Ints, MatrixLike
from rankwise.automatic.calibration import Calibration, calibrate
from rankwise.data.duels import duel_sides
from rankwise.estimators.base import Ranker
from rankwise.exceptions import InvalidInputError

__all__ = ["CalibratedRanker"]


class CalibratedRanker(Ranker):
    """A ranker that turns differences of scores into probabilities."""

    calibration_: list[list[float]]
    log_loss_: float

    def predict_pairs(self, X: MatrixLike, pairs: ArrayLike | MatrixLike | None = None) -> Floats:
        """Return how much the first row of each pair is preferred to the second: positive where the first is.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (rows, features)
        pairs : array-like of int of shape (pairs, 2), or a matrix or table with the columns of X, optional
            What `fit_pairs` takes: row numbers of X; or the second rows, where row k of X is compared with row k of it.
            Without it X is a table of duels, with columns such as ``winner_age`` and ``loser_age``.
        """
        return super().predict_pairs(*(duel_sides(X) if pairs is None else (X, pairs)))

    def predict_pairs_proba(self, X: MatrixLike, pairs: ArrayLike | MatrixLike | None = None) -> Floats:
        """Return the probability that the first row of each pair is preferred, calibrated on held-out pairs.

        Parameters
        ----------
        X, pairs
            As in `predict_pairs`.
        """
        check_is_fitted(self)
        if not hasattr(self, "calibration_"):
            raise InvalidInputError(
                "Probabilities are calibrated on held-out pairs, and there were none.",
                "use fit_pairs, without an eval_set.",
            )
        return Calibration(*self.calibration_)(self.predict_pairs(X, pairs))

    def _calibrate(self, differences: Floats, weight: Floats, fold: Ints) -> None:
        """Learn probabilities from the held-out differences of the pairs."""
        found, self.log_loss_ = calibrate(differences, weight, fold, self.calibration)
        self.calibration_ = [found.knots, found.probabilities]
