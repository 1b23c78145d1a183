"""What the linear RankRLS estimators share: the parameters of their loss."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from rankwise.data.validation import check_choice, check_count, check_number, check_seed
from rankwise.estimators.linear import LinearRanker
from rankwise.estimators.pairwise import NEAR_TIE
from rankwise.exceptions import InvalidInputError, caller_level
from rankwise.pairs.labels import COSTS, QUERY_WEIGHTS, TIES
from rankwise.problems.training import TrainingData

__all__ = ["LinearRankRLS"]


class LinearRankRLS(LinearRanker):
    """The part of `RankRLS` and `RankRLSCV` that does not depend on how alpha is found."""

    def _training_data(
        self, X: Any, y: Any, qid: Any, sample_weight: Any, query_importance: Any
    ) -> TrainingData:
        data = super()._training_data(X, y, qid, sample_weight, query_importance)
        self._warn_about_near_ties(data)
        return data

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
        check_seed(self.random_state)

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
                    stacklevel=caller_level(),
                )
