"""Probabilities that one row beats another, learned from held-out differences of scores."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import expit
from sklearn.utils.validation import check_is_fitted

from rankwise.arrays import ArrayLike, Floats, Ints, MatrixLike
from rankwise.data.preferences import duel_sides
from rankwise.estimators.base import Ranker
from rankwise.exceptions import InvalidInputError

# Factors of differences in units of their spread; beyond, probabilities are 0 and 1 in all but name.
_FACTORS = (-7.0, 7.0)


class Calibration:
    """A monotone map from a difference of scores to the probability that the first wins; of 0 it is one half.

    Exchanging the two rows gives one minus the probability, so that Platt's sigmoid has no offset, and isotonic
    regression is fitted to every pair and its reverse.

    Parameters
    ----------
    knots, probabilities : list of float
        For isotonic regression; a single knot is the factor of the sigmoid.
    """

    def __init__(self, knots: Sequence[float], probabilities: Sequence[float] = ()) -> None:
        self.knots = [float(knot) for knot in knots]
        self.probabilities = [float(value) for value in probabilities]

    def __call__(self, differences: Floats) -> Floats:
        """Return probabilities."""
        if not self.probabilities:
            return np.asarray(expit(self.knots[0] * differences))
        return np.interp(differences, self.knots, self.probabilities)

    @classmethod
    def sigmoid(cls, won: Floats, weight: Floats) -> Calibration:
        """Fit Platt's sigmoid to the differences of winners and losers."""
        spread = float(np.sqrt(np.average(won**2, weights=weight))) or 1.0

        def loss(exponent: float) -> float:
            return float(np.average(np.logaddexp(0.0, -np.exp(exponent) * won / spread), weights=weight))

        found = minimize_scalar(loss, bounds=_FACTORS, method="bounded")
        return cls([float(np.exp(found.x)) / spread])

    @classmethod
    def isotonic(cls, won: Floats, weight: Floats) -> Calibration:
        """Fit isotonic regression to every pair and its reverse."""
        from sklearn.isotonic import IsotonicRegression  # noqa: PLC0415 - for preferences only

        both = np.concatenate([won, -won])
        labels = np.concatenate([np.ones(won.size), np.zeros(won.size)])
        # A pair more on either side of every value, so that no probability is 0 or 1.
        edge = 1.0 / (won.size + 2.0)
        fitted = IsotonicRegression(y_min=edge, y_max=1 - edge).fit(
            both, labels, sample_weight=np.concatenate([weight, weight])
        )
        return cls(fitted.X_thresholds_, fitted.y_thresholds_)


def calibrate(won: Floats, weight: Floats, fold: Ints, method: str) -> tuple[Calibration, float]:
    """Learn probabilities from held-out differences, and return their log-loss on folds that took no part.

    Parameters
    ----------
    won : (pairs,) float64
        Scores of winners less those of losers, by models that did not see the pair.
    weight : (pairs,) float64
    fold : (pairs,) int64
    method : {"sigmoid", "isotonic"}
    """
    fit: Any = Calibration.sigmoid if method == "sigmoid" else Calibration.isotonic
    losses = np.zeros(won.size)
    for number in np.unique(fold):
        test = fold == number
        others = ~test & (weight > 0)
        own = fit(won[others], weight[others]) if others.any() else Calibration([0.0])
        # Of few pairs the sigmoid may be a step, which gives a lost pair a probability of 0.
        losses[test] = -np.log(np.maximum(own(won[test]), np.finfo(np.float64).eps))
    counted = weight > 0
    return fit(won[counted], weight[counted]), float(np.average(losses[counted], weights=weight[counted]))


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
