"""What the linear RankRLS estimators share: parameters, labels on their way to graphs, prediction."""

from __future__ import annotations

import warnings
from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from rankwise.data.validation import check_choice, check_importance
from rankwise.design import Design, as_design
from rankwise.estimators.base import Ranker
from rankwise.estimators.pairwise import NEAR_TIE
from rankwise.estimators.selection import judge_rows, read_eval_set
from rankwise.estimators.training import TrainingData
from rankwise.exceptions import InvalidInputError
from rankwise.metrics import Metric
from rankwise.pairs.graph import Floats
from rankwise.pairs.labels import COSTS, QUERY_WEIGHTS, TIES
from rankwise.resampling import Judge

__all__ = ["LinearRankRLS", "check_count", "check_number"]


class LinearRankRLS(Ranker):
    """The part of `RankRLS` and `RankRLSCV` that does not depend on how alpha is found."""

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
        design = as_design(self._check_matrix(X, reset=False), self.n_threads)
        return design.dot(np.ascontiguousarray(self.coef_.T))

    def _training_data(
        self, X: Any, y: Any, qid: Any, sample_weight: Any, query_importance: Any
    ) -> TrainingData:
        """Pass everything through the door, and set the attributes that describe it."""
        X, y, queries, row_weight = self._check_fit_input(X, y, qid, sample_weight)
        importance = check_importance(query_importance, queries)
        data = TrainingData(
            as_design(X, self.n_threads),
            y,
            queries,
            row_weight,
            importance,
            ties=self.ties,
            cost=self.cost,
            query_weight=self.query_weight,
        )
        self._warn_about_near_ties(data)
        self._forget("n_components_", "n_unpaired_rows_")
        self.fitted_with_qid_ = qid is not None
        self.n_queries_ = len(queries)
        pairs = np.array([levels.n_pairs for levels in data.levels])
        ignored = np.array([int((~levels.ordered).sum()) for levels in data.levels])
        self.n_pairs_ = pairs if data.several_outputs else int(pairs[0])
        self.n_ignored_queries_ = ignored if data.several_outputs else int(ignored[0])
        return data

    def _eval_set(self, data: TrainingData, eval_set: Any, metric: Metric) -> tuple[Design, list[Judge]]:
        X, y, queries = read_eval_set(
            eval_set,
            lambda X, y: self._check_matrix(X, y, reset=False),
            with_qid=self.fitted_with_qid_,
            n_outputs=len(data.columns),
        )
        labels = [y] if y.ndim == 1 else list(np.ascontiguousarray(y.T))
        judges = [judge_rows(metric, column, queries, self.n_threads, "eval_set") for column in labels]
        return as_design(X, self.n_threads), judges

    def _check_loss_parameters(self) -> None:
        check_choice("query_weight", self.query_weight, QUERY_WEIGHTS)
        check_choice("ties", self.ties, TIES)
        check_choice("cost", self.cost, COSTS)
        if self.cost == "relative" and self.ties == "include":
            raise InvalidInputError(
                "cost='relative' divides by the difference of the labels, which is 0 for tied rows.",
                "set ties='exclude'.",
            )
        check_number("tol", self.tol, minimum=0, remedy="use a small positive number such as 1e-5")
        check_count("max_iter", self.max_iter)
        check_count("n_threads", self.n_threads)
        if not isinstance(self.random_state, Integral) or self.random_state < 0:
            raise InvalidInputError(
                f"random_state={self.random_state!r} is not a seed.",
                "use an integer such as 0; the same data then give the same folds.",
            )

    def _warn_about_near_ties(self, data: TrainingData) -> None:
        if self.cost != "relative":
            return
        for levels in data.levels:
            gaps = np.diff(levels.value)[levels.query[1:] == levels.query[:-1]]
            if gaps.size and gaps.min() < NEAR_TIE * gaps.max():
                warnings.warn(
                    f"Labels that differ by only {gaps.min():.3g} weigh 1/difference² in cost='relative' and "
                    "dominate the fit. Hint: round the labels, or use cost='magnitude'.",
                    UserWarning,
                    stacklevel=4,
                )


def check_number(name: str, value: object, *, minimum: float, remedy: str) -> None:
    """Raise unless `value` is a finite real number of at least `minimum`."""
    if not isinstance(value, Real) or isinstance(value, bool) or not minimum <= float(value) < np.inf:
        raise InvalidInputError(
            f"{name}={value!r} is not a finite number of at least {minimum}.", f"{remedy}."
        )


def check_count(name: str, value: object, *, optional: bool = True) -> None:
    """Raise unless `value` is a positive integer, or None where that is the default."""
    if value is None and optional:
        return
    if not isinstance(value, Integral) or isinstance(value, bool) or value < 1:
        remedy = "use None for the default" if optional else "use a positive integer"
        raise InvalidInputError(f"{name}={value!r} is not a positive integer.", f"{remedy}.")
