"""Rankers that may stop early: `fit` and `fit_pairs` at one alpha, with or without held-out rows that are watched."""

from __future__ import annotations

from abc import abstractmethod
from typing import Never, Self

from rankwise.arrays import ArrayLike, Labels, MatrixLike
from rankwise.estimators.base import Importance, Ranker
from rankwise.estimators.refusals import refuse_unknown
from rankwise.exceptions import InvalidInputError
from rankwise.metrics import Metric, get_metric
from rankwise.problems.training import PairData, TrainingProblem
from rankwise.selection.cv import held_out_rows
from rankwise.selection.cv_pairs import held_out_pairs
from rankwise.selection.systems import HeldOut
from rankwise.threads import one_blas_thread

__all__ = ["StoppingRanker"]


class StoppingRanker(Ranker):
    """A ranker of one alpha, which held-out rows or pairs may stop early."""

    @one_blas_thread
    def fit(
        self,
        X: MatrixLike,
        y: Labels,
        qid: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        query_importance: Importance | None = None,
        eval_set: object = None,
        **unknown: Never,
    ) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : array-like, sparse matrix, data frame or LinearOperator of shape (rows, features)
            For `AdditiveRanker` no operator; NaN counts as missing there, and a sparse matrix becomes an array.
        y : array-like of shape (rows,) or (rows, outputs)
            Labels: grades or real-valued scores, higher is better.
        qid : array-like of shape (rows,), optional
            The query of each row; anything hashable, in any order. Without it all rows form one ranking.
        sample_weight : array-like of shape (rows,), optional
            A pair weighs the product of its rows' weights: weight 2 equals duplication, 0 removal.
        query_importance : dict or array-like of shape (rows,), optional
            A factor on the weight of every pair of a query.
        eval_set : tuple (X, y) or (X, y, qid), optional
            The rows that early stopping watches, or ``interactions="auto"`` of `AdditiveRanker`; by default a share
            of the training data.
        """
        refuse_unknown("fit", unknown)
        self._check_parameters()
        self._refuse_unwatched(eval_set)
        self._learn(self._training_data(X, y, qid, sample_weight, query_importance), eval_set)
        return self

    @one_blas_thread
    def fit_pairs(
        self,
        X: MatrixLike,
        pairs: ArrayLike,
        magnitude: ArrayLike | None = None,
        weight: ArrayLike | None = None,
        eval_set: object = None,
        **unknown: Never,
    ) -> Self:
        """Fit the model to preferences: a list of pairs instead of labels.

        Each pair weighs `weight`; `query_weight` plays no part. A pair may come several times, which adds up its
        weights, and may contradict another one, which is noise. For preferred and rejected rows as two matrices see
        `rankwise.data.stack_preferred`, for clicks `rankwise.data.pairs_from_clicks`.

        Parameters
        ----------
        X : array-like, sparse matrix, data frame or LinearOperator of shape (rows, features)
        pairs : array-like of int of shape (pairs, 2)
            Row numbers of winner and loser.
        magnitude : float or array-like of shape (pairs,), optional
            By how much the winner is preferred, 1 by default; 0 says that the two tie. For `RankRLS` it is the wanted
            difference with ``cost="magnitude"``; with "unit" that is 1 for every pair that does not tie; with
            "relative" the pair also weighs ``weight / magnitude²``; ties take no part with ``ties="exclude"``. For
            `RankSVM` it is the margin of the pair, and ties take no part; not for ``loss="logistic"``, which has no
            margins.
        weight : float or array-like of shape (pairs,), optional
            How much each pair weighs, 1 by default; 0 leaves it out.
        eval_set : tuple (X, pairs) or (X, pairs, weight), optional
            What early stopping watches, or ``interactions="auto"``; the pairs are row numbers of the X beside them. By
            default a share of the training pairs is held out: `validation_fraction` of the couples of rows that are
            compared, chosen by the content of the two rows and `random_state`, with all comparisons of a couple.
            `scoring` must be "pairwise_error" or "concordance".

        Returns
        -------
        self
            Beside the model itself, with ``n_pairs_`` (pairs that have a winner and weigh something, held out or not),
            ``n_components_`` (connected components among the rows in pairs: how rows of different components compare
            was never said, and follows from the features alone) and ``n_unpaired_rows_`` (rows in no pair).
            ``n_queries_`` is 1: any two rows may be compared.

        Examples
        --------
        >>> import numpy as np
        >>> from rankwise import RankRLS, RankSVM
        >>> X = np.array([[0.0, 1.0], [1.0, 0.0], [2.0, 2.0], [0.0, 0.0], [3.0, 1.0]])
        >>> model = RankRLS(alpha=0.1).fit_pairs(X, [[1, 0], [2, 0], [4, 3]])
        >>> model.n_components_
        2
        >>> model.score_pairs(X, [[1, 0], [2, 0], [4, 3]])
        1.0
        >>> model = RankSVM(0.01, loss="logistic").fit_pairs(X, [[1, 0], [2, 0], [4, 3]])
        >>> bool(model.predict_pairs(X[[4]], X[[0]])[0] > 0.5)
        True
        >>> X = np.random.default_rng(0).normal(size=(100, 5))
        >>> pairs = [(i, j) if X[i, 0] > X[j, 0] else (j, i) for i, j in zip(range(99), range(1, 100))]
        >>> model = RankRLS(0.0, early_stopping=True).fit_pairs(X[:60], pairs[:59], eval_set=(X, pairs[60:]))
        >>> model.score_pairs(X, pairs[60:]) == 1 - min(model.history_)
        True
        """
        refuse_unknown("fit_pairs", unknown)
        self._check_parameters()
        self._refuse_unwatched(eval_set)
        self._learn(self._pair_data(X, pairs, magnitude, weight), eval_set)
        return self

    @abstractmethod
    def _learn(self, data: TrainingProblem, eval_set: object) -> None:
        """Fit, watched by an eval set or by a share of the data where that is asked for, and keep the model."""

    def _held_out(self, data: TrainingProblem, eval_set: object, metric: Metric) -> HeldOut:
        """Return what early stopping watches."""
        if eval_set is not None:
            return self._eval_set(data, eval_set, metric)
        if isinstance(data, PairData):
            return held_out_pairs(data, self.validation_fraction, self.random_state)
        return held_out_rows(data, self.validation_fraction, self.random_state)

    @property
    def _watches(self) -> bool:
        return bool(self.early_stopping)

    def _refuse_unwatched(self, eval_set: object) -> None:
        if eval_set is not None and not self._watches:
            raise InvalidInputError(
                "eval_set was passed, but nothing looks at it.",
                f"set early_stopping=True, or use {type(self).__name__}CV to choose alpha on it.",
            )

    @property
    def _metric(self) -> Metric:
        return get_metric(self.scoring)
