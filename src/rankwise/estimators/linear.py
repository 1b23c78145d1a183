"""Rankers whose scores are sums of weighted columns."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import field
from typing import ClassVar

import numpy as np
import numpy.typing as npt
from scipy.sparse import issparse
from sklearn.utils.validation import check_is_fitted

from rankwise.arrays import ArrayLike, Floats, Matrix, MatrixLike
from rankwise.data.validation import check_numbers
from rankwise.design import Design, as_design, comparing_design
from rankwise.estimators.base import is_on_cluster, require_finite
from rankwise.estimators.parameters import BaseEstimator, estimator
from rankwise.exceptions import InvalidInputError
from rankwise.fitting.problem import Restriction
from rankwise.losses import HingeLoss
from rankwise.runtime.memory import check_columns_fit
from rankwise.runtime.threads import blas_held

_MANY_ENTRIES = 1 << 13  # below, OpenBLAS takes no second thread, and holding it would be a tenth of the time


@estimator()
class LinearMixin(BaseEstimator):
    """Adds scores ``X @ coef_``, and signs, a prior and penalties of coefficients."""

    # It needs only products with X, which workers of a cluster can do.
    _takes_clusters: ClassVar[bool] = True

    positive: bool | ArrayLike = False
    prior: ArrayLike | None = None
    column_penalty: ArrayLike | None = None

    coef_: Floats = field(init=False)

    def predict(self, X: MatrixLike) -> Floats:
        """Return a score for each row of X: higher is better, and only differences inside a query mean anything.

        Parameters
        ----------
        X : array-like, sparse matrix, data frame or LinearOperator of shape (rows, features)
            A Dask collection has lazy scores, a Dask array.

        Returns
        -------
        scores : ndarray of shape (rows,), or (rows, outputs) for several outputs
        """
        if is_on_cluster(X):
            check_is_fitted(self)
            return self._cluster.predicted(self, X)  # type: ignore[no-any-return]
        quick = self._quick_scores(X)
        if quick is not None:
            return quick
        check_is_fitted(self)
        # A sparse product multiplies every value, so that one that is not finite shows in the scores.
        checked = self._check_rows(X, reset=False, look_at_values=not issparse(X))
        design, coef = as_design(checked, self.n_threads), np.ascontiguousarray(self.coef_.T)
        held = blas_held() if design.nnz >= _MANY_ENTRIES else nullcontext()
        with np.errstate(over="ignore", invalid="ignore"), held:
            scores = design.dot(coef)
        if not np.isfinite(scores).all():
            self._check_rows(X, reset=False)
        return require_finite(scores)

    def _quick_scores(self, X: MatrixLike) -> Floats | None:
        """Return the scores of a small plain array; None where something has to be looked at.

        One query of some rows is what a service scores at a time, and the checks of scikit-learn take ten times as
        long as the product. A value that is not finite shows in the scores.
        """
        coef = self.__dict__.get("coef_")
        if (
            coef is None
            or type(X) is not np.ndarray
            or X.ndim != 2
            or X.dtype != np.float64
            or not X.flags.c_contiguous
            or X.shape[1] != self.n_features_in_
            or not 0 < X.size < _MANY_ENTRIES
            or "feature_names_in_" in self.__dict__
        ):
            return None
        with np.errstate(over="ignore", invalid="ignore"):
            scores: Floats = X @ np.ascontiguousarray(coef.T)
        return scores if np.isfinite(scores).all() else None

    def _design(self, X: Matrix) -> Design:
        check_columns_fit(self.n_features_in_)
        return comparing_design(X, self.n_threads)

    def _restriction(self) -> Restriction | None:
        """Return the restriction by `positive`, `prior` and `column_penalty`; None without one."""
        prior, penalty = self._one_per_column("prior"), self._one_per_column("column_penalty")
        signs = self._signs()
        if signs is None and prior is None and penalty is None:
            return None
        if penalty is not None and (penalty.min() < 0 or not penalty.any()):
            raise InvalidInputError(
                "column_penalty is negative, or 0 everywhere.",
                "use positive numbers, and 0 for free columns.",
            )
        found, solver = Restriction(signs, prior, penalty), getattr(self, "solver", "auto")
        if (found.is_signed or found.has_free_columns) and getattr(self, "loss", None) == HingeLoss.name:
            what = "signs of coefficients" if found.is_signed else "columns without a penalty"
            raise InvalidInputError(f"loss='hinge' does not support {what}.", "use loss='squared_hinge'.")
        if solver == "auto":
            return found
        if found.is_signed:
            raise InvalidInputError(
                f"solver={solver!r} does not support signs.", "use solver='auto' with positive."
            )
        if self._has_gap and solver == "bundle" and found.has_free_columns:
            raise InvalidInputError(
                "solver='bundle' proves its gap by a penalty, and column_penalty is 0 for some columns.",
                "use solver='auto', or a small penalty such as 1e-6 for them.",
            )
        return found

    def _signs(self) -> npt.NDArray[np.int64] | None:
        if self.positive is None or isinstance(self.positive, bool | np.bool_):
            return np.ones(self.n_features_in_, dtype=np.int64) if self.positive else None
        signs = self._one_per_column("positive")
        if signs is None or not np.isin(signs, (-1, 0, 1)).all():
            raise InvalidInputError("positive has other entries than 1, -1 and 0.", "use 0 for any sign.")
        return signs.astype(np.int64) if signs.any() else None

    def _one_per_column(self, name: str) -> Floats | None:
        given: ArrayLike | None = getattr(self, name)
        return None if given is None else check_numbers(name, given, self.n_features_in_, "column")

    def _refuse_restriction(self, what: str, remedy: str) -> None:
        """Raise where a parameter says something of the coefficients."""
        if self._restriction() is not None:
            raise InvalidInputError(f"{what} does not support positive, prior or column_penalty.", remedy)
