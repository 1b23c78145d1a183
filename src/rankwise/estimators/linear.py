"""Rankers whose scores are sums of weighted columns."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.sparse import issparse
from sklearn.utils.validation import check_is_fitted

from rankwise.arrays import Floats, Matrix, MatrixLike
from rankwise.design import Design, as_design
from rankwise.estimators.base import Ranker
from rankwise.estimators.refusals import require_finite
from rankwise.memory import check_columns_fit
from rankwise.selection.result import one_or_all
from rankwise.threads import blas_held

__all__ = ["LinearRanker"]

_MANY_ENTRIES = 1 << 13  # below, OpenBLAS takes no second thread, and holding it would be a tenth of the time


class LinearRanker(Ranker):
    """A ranker whose scores are ``X @ coef_``."""

    coef_: Floats

    def predict(self, X: MatrixLike) -> Floats:
        """Return a score for each row of X: higher is better.

        Only differences between rows of one query mean anything.

        Parameters
        ----------
        X : array-like, sparse matrix, data frame or LinearOperator of shape (rows, features)

        Returns
        -------
        scores : ndarray of shape (rows,), or (rows, outputs) for several outputs
        """
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
        return require_finite(scores)

    def _design(self, X: Matrix) -> Design:
        check_columns_fit(self.n_features_in_)
        return super()._design(X)

    def _keep_models(self, models: Sequence[Floats], *, several: bool) -> None:
        self.coef_ = np.ascontiguousarray(one_or_all(models, several))
