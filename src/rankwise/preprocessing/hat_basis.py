"""Columns spread over knots: what an additive model is linear in, for pipelines of one's own."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Self

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted, validate_data

from rankwise.additive.knots import plan_knots
from rankwise.arrays import AnyArray, ArrayLike, MatrixLike, is_sparse
from rankwise.data.arguments import check_names, list_names
from rankwise.data.containers import unmasked
from rankwise.data.queries import one_query
from rankwise.data.validation import check_count, check_weights
from rankwise.design.hats import hat_matrix
from rankwise.design.terms import Terms
from rankwise.exceptions import InvalidInputError

__all__ = ["HatBasis"]


class HatBasis(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Spread every column over knots: a number becomes the weights of the two knots that it lies between.

    A linear model of the weights is a sum of piecewise linear curves. `AdditiveRanker` does this by itself, without
    ever expanding the matrix, penalises differences of neighbouring knots and adds surfaces; this is the plain
    transformer for other models.

    Parameters
    ----------
    n_knots : int, default=8
        The most knots of a column: its extremes, its frequent values, and quantiles of the rest.
    categorical : list of int, default=None
        Columns that hold codes of categories; they become one column per level.

    Attributes
    ----------
    terms_ : Terms
        The knots, column by column; columns that are constant have none.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (features,)
        Only where X has string column names.

    Examples
    --------
    >>> import numpy as np
    >>> from rankwise.preprocessing import HatBasis
    >>> X = np.array([[0.0], [1.0], [2.0], [10.0]])
    >>> basis = HatBasis(n_knots=3).fit(X)
    >>> basis.get_feature_names_out().tolist()
    ['x0=0', 'x0=1', 'x0=10']
    >>> basis.transform([[0.5], [7.0], [99.0]]).toarray().round(2).tolist()
    [[0.5, 0.5, 0.0], [0.0, 0.33, 0.67], [0.0, 0.0, 1.0]]
    """

    terms_: Terms

    def __init__(self, n_knots: int = 8, *, categorical: Sequence[int] | None = None) -> None:
        self.n_knots = n_knots
        self.categorical = categorical

    def fit(self, X: MatrixLike, y: object = None, sample_weight: ArrayLike | None = None) -> Self:
        """Find the knots.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (rows, features)
            NaN counts as missing, and gets a column of its own.
        y : ignored
        sample_weight : array-like of shape (rows,), optional
        """
        check_count("n_knots", self.n_knots, optional=False)
        rows = self._check(X, reset=True)
        n_rows, n_columns = rows.shape
        levels = [] if self.categorical is None else list_names("categorical", self.categorical)
        if not all(isinstance(column, (int, np.integer)) and 0 <= column < n_columns for column in levels):
            raise InvalidInputError(
                f"categorical={self.categorical!r} names columns that X does not have.",
                f"use numbers from 0 to {n_columns - 1}.",
            )
        weight = check_weights(sample_weight, n_rows)
        plan = plan_knots(rows, one_query(n_rows), max(self.n_knots, 2), 2, levels=levels, weight=weight)
        self.terms_ = Terms(plan.curves)
        return self

    def transform(self, X: MatrixLike) -> sp.csr_matrix:
        """Spread rows.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (rows, features)

        Returns
        -------
        CSR matrix of shape (rows, knots of all columns)
            Of float64. What is missing where the training rows had nothing missing has no weight at all.
        """
        check_is_fitted(self)
        return hat_matrix(self._check(X, reset=False), self.terms_)

    def get_feature_names_out(self, input_features: Iterable[str] | None = None) -> AnyArray:
        """Return a name for each knot, such as ``price=9.99``.

        Parameters
        ----------
        input_features : array-like of str, optional
            The names of the columns; by default those of the fit, or x0, x1, ...
        """
        check_is_fitted(self)
        given = input_features if input_features is not None else getattr(self, "feature_names_in_", None)
        names = (
            [f"x{column}" for column in range(self.n_features_in_)]
            if given is None
            else check_names("input_features", given)
        )
        if len(names) != self.n_features_in_:
            raise InvalidInputError(
                f"input_features should have length equal to number of features ({self.n_features_in_}), "
                f"got {len(names)}.",
                "give one name per column.",
            )
        out = []
        for curve in self.terms_.curves:
            out += [f"{names[curve.column]}={knot:.12g}" for knot in curve.knots]
            out += [f"{names[curve.column]}=missing"] * curve.has_missing
        return np.array(out, dtype=object)

    def _check(self, X: MatrixLike, *, reset: bool) -> AnyArray:
        checked = validate_data(
            self,
            unmasked("X", X),
            accept_sparse="csr",
            dtype=(np.float64, np.float32),
            ensure_all_finite="allow-nan",
            reset=reset,
        )
        rows: AnyArray = checked.toarray() if is_sparse(checked) else checked
        return rows

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = True
        tags.transformer_tags.preserves_dtype = []
        return tags
