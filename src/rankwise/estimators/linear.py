"""Rankers whose scores are sums of weighted columns."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from scipy.sparse import issparse
from sklearn.utils.validation import check_is_fitted

from rankwise.arrays import Floats, Matrix, MatrixLike
from rankwise.design import Design, as_design, comparing_design
from rankwise.estimators.base import Ranker
from rankwise.estimators.checks import read_restriction
from rankwise.estimators.fitted import is_on_cluster
from rankwise.estimators.refusals import require_finite
from rankwise.exceptions import InvalidInputError
from rankwise.problems.restriction import Restriction
from rankwise.runtime.memory import check_columns_fit
from rankwise.runtime.threads import blas_held

__all__ = ["LinearRanker"]

_VANISHING = 1e-290  # products below have fewer digits than other numbers, or none
_MANY_ENTRIES = 1 << 13  # below, OpenBLAS takes no second thread, and holding it would be a tenth of the time


class LinearRanker(Ranker):
    """A ranker whose scores are ``X @ coef_``."""

    # It needs only products with X, which workers of a cluster can do.
    _takes_clusters: ClassVar[bool] = True

    coef_: Floats

    def predict(self, X: MatrixLike) -> Floats:  # noqa: D102 - as in FittedRanker
        if is_on_cluster(X):
            check_is_fitted(self)
            lazy: Any = self._cluster.predicted(self, X)
            return lazy  # type: ignore[no-any-return]
        quick = self._quick_scores(X)
        if quick is not None:
            return quick
        check_is_fitted(self)
        # A sparse product multiplies every value, so that one that is not finite shows in the scores.
        checked = self._check_rows(X, reset=False, look_at_values=not issparse(X))
        design, coef = as_design(checked, self.n_threads), np.ascontiguousarray(self.coef_.T)
        with np.errstate(over="ignore", invalid="ignore"):
            if design.nnz < _MANY_ENTRIES:
                scores = design.dot(coef)
            else:
                with blas_held():
                    scores = design.dot(coef)
        if not np.isfinite(scores).all():
            self._check_rows(X, reset=False)
        _check_not_vanished(scores, checked, coef)
        return require_finite(scores)

    def _quick_scores(self, X: MatrixLike) -> Floats | None:
        """Return the scores of a small plain array; None where something has to be looked at.

        One query of some rows is what a service scores at a time, and the checks of scikit-learn take ten times as
        long as the product. A value that is not finite shows in the scores, and one that vanished makes them 0.
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
        return scores if np.isfinite(scores).all() and np.abs(scores).max() >= _VANISHING else None

    def _design(self, X: Matrix) -> Design:
        check_columns_fit(self.n_features_in_)
        return comparing_design(X, self.n_threads)

    def _restriction(self) -> Restriction | None:
        """Return what `positive`, `prior` and `column_penalty` say of the coefficients; None where nothing."""
        known = (self.positive, self.prior, self.column_penalty)
        found = read_restriction(self.n_features_in_, *known)
        solver = getattr(self, "solver", "auto")
        if found is None or solver == "auto":
            return found
        if found.is_signed:
            raise InvalidInputError(f"solver={solver!r} knows no signs.", "use solver='auto' with positive.")
        if self._has_gap and found.unpenalised is not None:
            raise InvalidInputError(
                f"solver={solver!r} proves its gap by a penalty, and column_penalty is 0 for some columns.",
                "use solver='auto', or a small penalty such as 1e-6 for them.",
            )
        return found

    def _refuse_restriction(self, what: str, remedy: str) -> None:
        """Raise where a parameter says something of the coefficients."""
        for name in ("positive", "prior", "column_penalty"):
            value = getattr(self, name)
            if value is not None and value is not False:
                raise InvalidInputError(f"{name} does not go with {what}.", remedy)


def _check_not_vanished(scores: Floats, X: Matrix, coef: Floats) -> None:
    """Raise where scores are zero, or rounding errors, because products of two numbers that are not zero vanish."""
    if np.abs(scores).max(initial=0.0) >= _VANISHING or not coef.any():
        return
    values = getattr(X, "data", None) if issparse(X) else X
    if not isinstance(values, np.ndarray):
        return  # an operator does not show its numbers
    largest = float(np.abs(values).max(initial=0.0))
    if 0 < largest < _VANISHING / float(np.abs(coef).max()):
        raise InvalidInputError(
            f"The scores of rows without a value larger than {largest:.1e} are too small for floating-point numbers.",
            "bring X to values around 1, for example with sklearn.preprocessing.MaxAbsScaler, and fit again.",
        )
