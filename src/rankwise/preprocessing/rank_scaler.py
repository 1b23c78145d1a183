"""Columns by the place of their values among those of training."""

from __future__ import annotations

from typing import Self

import numpy as np
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted, validate_data

from rankwise.arrays import AnyArray, ArrayLike, Floats, MatrixLike
from rankwise.data.containers import unmasked
from rankwise.data.validation import check_count, check_weights

__all__ = ["RankScaler", "mid_ranks"]

# Places from 0 to 1 vary by 1/√12; so scaled, a column without ties varies by 1, as a standardised one does.
_UNIT = float(np.sqrt(12.0))


class RankScaler(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Replace every value by its place among the values of the training rows, with lines between them.

    Long tails become short, and an outlier is merely the largest. Values beyond those of training count as the smallest
    or the largest.

    Parameters
    ----------
    n_knots : int, default=256
        At most so many values of a column are remembered, evenly spread over its rows.

    Attributes
    ----------
    knots_, places_ : list of ndarray
        For each column the values that are remembered, and what they become; from -√3 to √3.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Examples
    --------
    >>> from rankwise.preprocessing import RankScaler
    >>> scaler = RankScaler().fit([[1.0], [2.0], [1000.0], [5.0]])
    >>> scaler.transform([[1.0], [2.0], [3.5], [5.0], [10000.0]]).round(2).ravel().tolist()
    [-1.3, -0.43, 0.0, 0.43, 1.3]
    """

    knots_: list[Floats]
    places_: list[Floats]

    def __init__(self, n_knots: int = 256) -> None:
        self.n_knots = n_knots

    def fit(self, X: MatrixLike, y: object = None, sample_weight: ArrayLike | None = None) -> Self:
        """Remember the values of every column.

        Parameters
        ----------
        X : array-like of shape (rows, features)
        y : ignored
        sample_weight : array-like of shape (rows,), optional
        """
        check_count("n_knots", self.n_knots, optional=False)
        rows = self._check(X, reset=True)
        weight = check_weights(sample_weight, rows.shape[0])
        self.knots_, self.places_ = [], []
        for column in rows.T:
            values, places = mid_ranks(column.astype(np.float64, copy=False), weight)
            if values.size > self.n_knots:
                wanted = np.linspace(places[0], places[-1], self.n_knots)
                kept = np.unique(np.searchsorted(places, wanted).clip(0, places.size - 1))
                values, places = values[kept], places[kept]
            self.knots_.append(values)
            self.places_.append((places - 0.5) * _UNIT)
        return self

    def transform(self, X: MatrixLike) -> AnyArray:
        """Replace values by their places.

        Parameters
        ----------
        X : array-like of shape (rows, features)
        """
        check_is_fitted(self)
        rows = self._check(X, reset=False)
        out: AnyArray = np.empty_like(rows)
        for at, (knots, places) in enumerate(zip(self.knots_, self.places_, strict=True)):
            out[:, at] = np.interp(rows[:, at], knots, places)
        return out

    def _check(self, X: MatrixLike, *, reset: bool) -> AnyArray:
        checked: AnyArray = validate_data(self, unmasked("X", X), dtype=(np.float64, np.float32), reset=reset)
        return checked

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def mid_ranks(values: Floats, weight: Floats | None) -> tuple[Floats, Floats]:
    """Return the different values in increasing order, and the middle of the place of each, from 0 to 1.

    A row of weight 2 is two rows, and one of weight 0 is none.
    """
    if weight is not None:
        values, weight = values[weight > 0], weight[weight > 0]
    found, at = np.unique(values, return_inverse=True)
    amount = np.bincount(at.reshape(-1), weight).astype(np.float64)
    places = (np.cumsum(amount) - amount / 2) / amount.sum()
    return found, places
