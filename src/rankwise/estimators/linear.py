"""What linear estimators share: labels on their way to pairs, evaluation sets, prediction."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.utils.validation import check_is_fitted

from rankwise.arrays import Floats
from rankwise.data.validation import check_importance, check_weights_of_queries
from rankwise.design import Design, as_design, shifted_design
from rankwise.estimators.base import Ranker
from rankwise.estimators.refusals import require_finite
from rankwise.exceptions import InvalidInputError
from rankwise.memory import check_columns_fit
from rankwise.metrics import Metric
from rankwise.problems.training import TrainingData
from rankwise.selection.reading import read_eval_set, row_scorer
from rankwise.selection.scorers import Scorer
from rankwise.threads import blas_held

__all__ = ["LinearRanker"]

_VANISHING = 1e-290  # products below have fewer digits than other numbers, or none
_MANY_ENTRIES = 1 << 13  # below, OpenBLAS takes no second thread, and holding it would be a tenth of the time


class LinearRanker(Ranker):
    """A ranker whose scores are ``X @ coef_``; subclasses say by `ties`, `cost` and `query_weight` which pairs."""

    def predict(self, X: Any) -> Floats:
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
        checked = self._check_matrix(X, reset=False, look_at_values=not issparse(X))
        design, coef = as_design(checked, self.n_threads), np.ascontiguousarray(self.coef_.T)
        with np.errstate(over="ignore", invalid="ignore"):
            if design.nnz < _MANY_ENTRIES:
                scores = design.dot(coef)
            else:
                with blas_held():
                    scores = design.dot(coef)
        if not np.isfinite(scores).all():
            self._check_matrix(X, reset=False)
        _check_not_vanished(scores, checked, coef)
        return require_finite(scores)

    def _check_matrix(self, X: Any, y: Any = None, *, reset: bool, **options: Any) -> Any:
        checked = super()._check_matrix(X, y, reset=reset, **options)
        if reset:
            check_columns_fit(self.n_features_in_)
        return checked

    def _training_data(
        self, X: Any, y: Any, qid: Any, sample_weight: Any, query_importance: Any
    ) -> TrainingData:
        """Pass everything through validation, and set the attributes that describe it."""
        X, y, queries, row_weight = self._check_fit_input(X, y, qid, sample_weight)
        if self.query_weight == "equal":
            check_weights_of_queries(row_weight, queries)
        importance = check_importance(query_importance, queries)
        data = TrainingData(
            self._design(X),
            y,
            queries,
            row_weight,
            importance,
            ties=self.ties,
            cost=self.cost,
            query_weight=self.query_weight,
        )
        self._forget("n_components_", "n_unpaired_rows_")
        self.fitted_with_qid_ = qid is not None
        self.n_queries_ = len(queries)
        pairs = np.array([levels.n_pairs for levels in data.levels])
        ignored = np.array([int((~levels.ordered).sum()) for levels in data.levels])
        self.n_pairs_ = pairs if data.several_outputs else int(pairs[0])
        self.n_ignored_queries_ = ignored if data.several_outputs else int(ignored[0])
        return data

    def _eval_set(self, data: TrainingData, eval_set: Any, metric: Metric) -> tuple[Design, list[Scorer]]:
        X, y, queries = read_eval_set(
            eval_set,
            lambda X, y: self._check_matrix(X, y, reset=False),
            with_qid=self.fitted_with_qid_,
            n_outputs=len(data.columns),
        )
        labels = [y] if y.ndim == 1 else list(np.ascontiguousarray(y.T))
        scorers: list[Scorer] = [
            row_scorer(metric, column, queries, self.n_threads, "eval_set") for column in labels
        ]
        return shifted_design(X, data.design.shift, self.n_threads), scorers


def _check_not_vanished(scores: Floats, X: Any, coef: Floats) -> None:
    """Raise where scores are zero, or rounding errors, because products of two numbers that are not zero vanish."""
    if np.abs(scores).max(initial=0.0) >= _VANISHING or not coef.any():
        return
    values = X.data if issparse(X) else X
    if not isinstance(values, np.ndarray):
        return  # an operator does not show its numbers
    largest = float(np.abs(values).max(initial=0.0))
    if 0 < largest < _VANISHING / float(np.abs(coef).max()):
        raise InvalidInputError(
            f"The scores of rows without a value larger than {largest:.1e} are too small for floating-point numbers.",
            "bring X to values around 1, for example with sklearn.preprocessing.MaxAbsScaler, and fit again.",
        )
