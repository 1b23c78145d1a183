"""Learning from preferences and scoring by them: what every estimator that takes lists of pairs shares."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any, Never, Self

from rankwise.arrays import Floats
from rankwise.data.preferences import Preferences, check_pairs
from rankwise.design import Design, shifted_design
from rankwise.estimators.base import Ranker
from rankwise.estimators.refusals import refuse_unknown
from rankwise.exceptions import InvalidInputError, NoPairsError, caller_level
from rankwise.metrics import Metric, preference_error
from rankwise.pairs.graph import PairGraph
from rankwise.pairs.preferences import PreferenceGraph, preference_graph
from rankwise.problems.training import PairData
from rankwise.selection.reading import preference_scorer, read_pair_eval_set
from rankwise.selection.scorers import PreferenceScorer
from rankwise.threads import one_blas_thread

__all__ = ["NEAR_TIE", "PairwiseRanker", "PreferenceRanker"]

# Differences below this share of the largest one dominate the relative cost.
NEAR_TIE = 1e-4


class PreferenceRanker(Ranker):
    """A ranker that takes lists of pairs: their way in, and what its scores say about pairs."""

    def score_pairs(self, X: Any, pairs: Any, weight: Any = None) -> float:
        """Return the share of the pairs that the scores order right; tied scores count one half.

        This is one minus the pairwise error of equation 2 of the large-scale RankRLS paper (as printed there, with
        its sign reversed, it counts the agreements).

        Parameters
        ----------
        X : array-like, sparse matrix, data frame or LinearOperator of shape (rows, features)
        pairs : array-like of int of shape (pairs, 2)
            Row numbers of winner and loser.
        weight : float or array-like of shape (pairs,), optional
        """
        scores = self.predict(X)
        _require_one_output(scores)
        return 1.0 - preference_error(scores, pairs, weight)

    def predict_pairs(self, X_a: Any, X_b: Any) -> Floats:
        """Return how much each row of `X_a` is preferred to the same row of `X_b`.

        Parameters
        ----------
        X_a, X_b : array-like, sparse matrix or data frame of shape (pairs, features)

        Returns
        -------
        ndarray of shape (pairs,)
            The difference of the scores: positive where A is preferred, negative where B is.
        """
        scores_a, scores_b = self.predict(X_a), self.predict(X_b)
        if scores_a.shape != scores_b.shape:
            raise InvalidInputError(
                f"X_a has {scores_a.shape[0]} rows and X_b has {scores_b.shape[0]}.",
                "row k of both is pair k; to compare one row with many, repeat it.",
            )
        difference: Floats = scores_a - scores_b
        return difference

    def _pair_data(self, X: Any, pairs: Any, magnitude: Any, weight: Any) -> PairData:
        """Pass everything through validation, and set the attributes that describe it."""
        design = self._design(self._check_matrix(X, reset=True))
        preferences = check_pairs(pairs, design.shape[0], magnitude, weight)
        self._warn_about_small_magnitudes(preferences)
        graph = self._preference_graph(preferences, design)
        self.n_pairs_ = graph.n_pairs
        self.n_components_ = graph.n_components
        self.n_unpaired_rows_ = graph.n_unpaired_rows
        self.n_queries_ = 1
        self.n_ignored_queries_ = 0
        self.fitted_with_qid_ = False
        return PairData(design, preferences, graph)

    def _pair_eval_set(
        self, data: PairData, eval_set: Any, metric: Metric
    ) -> tuple[Design, list[PreferenceScorer]]:
        X, pairs = read_pair_eval_set(eval_set, lambda X: self._check_matrix(X, reset=False))
        design = shifted_design(X, data.design.shift, self.n_threads)
        return design, [preference_scorer(metric, pairs, "eval_set")]

    def _preference_graph(self, preferences: Preferences, design: Design) -> PreferenceGraph:
        graph = preference_graph(
            preferences.winner,
            preferences.loser,
            design.shape[0],
            magnitude=preferences.magnitude,
            weight=preferences.weight,
            ties=self.ties,
            cost=self.cost,
            n_threads=design.n_threads,
        )
        if graph.n_pairs == 0:
            raise NoPairsError(
                "Every pair that weighs something is a tie (magnitude 0), so nothing says which row is better.",
                "pass at least one pair with a positive magnitude and weight.",
            )
        return graph

    def _warn_about_small_magnitudes(self, preferences: Preferences) -> None:
        if self.cost != "relative" or preferences.magnitude is None:
            return
        positive = preferences.magnitude[preferences.magnitude > 0]
        if positive.size and positive.min() < NEAR_TIE * positive.max():
            warnings.warn(
                f"Pairs of a magnitude of only {positive.min():.3g} weigh 1/magnitude² in cost='relative' and dominate "
                "the fit. Hint: round the magnitudes, or use cost='magnitude'.",
                UserWarning,
                stacklevel=caller_level(),
            )


class PairwiseRanker(PreferenceRanker):
    """A ranker that also learns from explicit preferences.

    A subclass checks its parameters in `_check_parameters`, and finds its model in `_learn`.
    """

    @one_blas_thread
    def fit_pairs(
        self, X: Any, pairs: Any, magnitude: Any = None, weight: Any = None, **unknown: Never
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
            By how much the winner is preferred, 1 by default; 0 says that the two tie. It is the wanted difference with
            ``cost="magnitude"``; with "unit" that is 1 for every pair that does not tie; with "relative" the pair also
            weighs ``weight / magnitude²``. Ties take no part with ``ties="exclude"``.
        weight : float or array-like of shape (pairs,), optional
            How much each pair weighs, 1 by default; 0 leaves it out.

        Returns
        -------
        self
            Beside the model itself, with ``n_pairs_`` (pairs that have a winner and weigh something), ``n_components_``
            (connected components among the rows in pairs: how rows of different components compare was never said, and
            follows from the features alone) and ``n_unpaired_rows_`` (rows in no pair). ``n_queries_`` is 1: any two
            rows may be compared.

        Examples
        --------
        >>> from rankwise import RankRLS
        >>> X = [[0.0, 1.0], [1.0, 0.0], [2.0, 2.0], [0.0, 0.0], [3.0, 1.0]]
        >>> model = RankRLS(alpha=0.1).fit_pairs(X, [[1, 0], [2, 0], [4, 3]])
        >>> model.n_components_
        2
        >>> model.score_pairs(X, [[1, 0], [2, 0], [4, 3]])
        1.0
        """
        refuse_unknown("fit_pairs", unknown)
        self._check_parameters()
        data = self._pair_data(X, pairs, magnitude, weight)
        self._learn(data.design, data.graphs())
        return self

    def _check_parameters(self) -> None:
        """Raise unless the parameters make sense."""
        raise NotImplementedError

    def _learn(self, design: Design, graphs: Sequence[PairGraph]) -> None:
        """Find the model, and set the attributes that describe it."""
        raise NotImplementedError


def _require_one_output(scores: Floats) -> None:
    if scores.ndim != 1:
        raise InvalidInputError(
            f"The model has {scores.shape[1]} outputs, and a pair is scored by one.",
            "fit one model per output, or use preference_error on a column of predict(X).",
        )
