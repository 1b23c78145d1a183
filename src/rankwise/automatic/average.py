"""A ranker whose scores are the mean of those of several."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Never, Self

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from rankwise.arrays import ArrayLike, Floats, Labels, MatrixLike
from rankwise.data.validation import check_qid, check_weights
from rankwise.estimators.base import RankingMixin, require_finite
from rankwise.estimators.parameters import refuse_unknown
from rankwise.exceptions import InvalidInputError
from rankwise.model_selection import fit_ranker, predict_scores
from rankwise.pairs.figures import spread_inside
from rankwise.persistence import features_taken


class AverageRanker(RankingMixin, BaseEstimator):  # type: ignore[misc]
    """Rank by the mean of the scores of several rankers, each divided by how far its scores spread inside queries.

    Models that err in different ways, such as a linear one, curves and a kernel, are often better together than the
    best of them. `AutoRanker` makes one of those that it cannot tell apart.

    Parameters
    ----------
    rankers : sequence of estimators
        Rankers, or pipelines that end in one; each is cloned and fitted to the same rows.

    Attributes
    ----------
    rankers_ : list of estimators
        The fitted rankers.
    weights_ : (rankers,) float64
        The factors on their scores: shares of 1, divided by the spread of the scores.
    fitted_with_qid_ : bool
    n_features_in_, feature_names_in_, n_queries_
        As in `RankRLS`.

    Examples
    --------
    >>> import numpy as np
    >>> from rankwise import AverageRanker, KernelRankRLS, RankRLS
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(100, 3))
    >>> y = X[:, 0] + np.sin(3 * X[:, 1])
    >>> model = AverageRanker([RankRLS(), KernelRankRLS("rbf")]).fit(X, y, qid=np.arange(100) // 10)
    >>> scores = sum(w * one.predict(X) for w, one in zip(model.weights_, model.rankers_))
    >>> bool(np.allclose(model.predict(X), scores))
    True
    """

    __metadata_request__predict: ClassVar[dict[str, bool]] = {"qid": True}

    n_queries_: int
    rankers_: list[BaseEstimator]
    weights_: Floats

    _takes_outputs = False

    def __init__(self, rankers: Sequence[BaseEstimator] = ()) -> None:
        self.rankers = rankers

    def fit(
        self,
        X: MatrixLike,
        y: Labels,
        qid: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        **unknown: Never,
    ) -> Self:
        """Fit every ranker.

        Parameters
        ----------
        X, y, qid, sample_weight
            As in `RankRLS.fit`.
        """
        refuse_unknown("fit", unknown)
        is_list = isinstance(self.rankers, (list, tuple))
        if not is_list or not self.rankers:
            raise InvalidInputError(
                f"rankers is {'empty' if is_list else 'not a list'}.",
                "pass at least one, such as [RankRLS(), RankSVM()].",
            )
        fitted = [fit_ranker(clone(one), X, y, qid, sample_weight) for one in self.rankers]
        scores = [predict_scores(one, X, qid) for one in fitted]
        queries, weight = check_qid(qid, len(scores[0])), check_weights(sample_weight, len(scores[0]))
        _keep(self, fitted, [spread_inside(own, queries.codes, weight) for own in scores])
        self.fitted_with_qid_, self.n_queries_ = qid is not None, len(queries)
        return self

    def predict(self, X: MatrixLike, qid: ArrayLike | None = None, **unknown: Never) -> Floats:
        """Return a score for each row of X: higher is better.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (rows, features)
        qid : array-like of shape (rows,), optional
            For rankers that scale columns inside queries.
        """
        refuse_unknown("predict", unknown)
        check_is_fitted(self)
        scores = np.stack([predict_scores(one, X, qid) for one in self.rankers_])  # of one shape
        parts = zip(self.weights_.tolist(), scores, strict=True)
        return require_finite(np.asarray(sum(weight * own for weight, own in parts)))

    def _scores_of(self, X: MatrixLike, qid: ArrayLike | None) -> Floats:
        return self.predict(X, qid)


def mean_of(rankers: Sequence[BaseEstimator], spreads: Sequence[float]) -> AverageRanker:
    """Return the mean of fitted rankers of rankwise, whose scores spread so far inside queries."""
    mean = AverageRanker([clone(one) for one in rankers])
    _keep(mean, rankers, spreads)
    last = rankers[0][-1] if isinstance(rankers[0], Pipeline) else rankers[0]
    mean.fitted_with_qid_, mean.n_queries_ = last.fitted_with_qid_, last.n_queries_
    return mean


def _keep(mean: AverageRanker, fitted: Sequence[BaseEstimator], spreads: Sequence[float]) -> None:
    """Take fitted rankers for those of a mean."""
    mean.rankers_ = list(fitted)
    # who says nothing of any row adds nothing
    mean.weights_ = np.array([0.0 if spread == 0 else 1 / (len(spreads) * spread) for spread in spreads])
    mean.n_features_in_ = features_taken(fitted[0]) or int(fitted[0].n_features_in_)
    if hasattr(mean, "feature_names_in_"):  # of an earlier fit
        del mean.feature_names_in_
    if hasattr(fitted[0], "feature_names_in_"):
        mean.feature_names_in_ = fitted[0].feature_names_in_
