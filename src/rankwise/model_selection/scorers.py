"""Scorers for scikit-learn that evaluate inside queries."""

from __future__ import annotations

from typing import ClassVar

from sklearn.base import BaseEstimator

from rankwise.arrays import ArrayLike, Labels, MatrixLike
from rankwise.exceptions import MissingQueriesError
from rankwise.metrics import Metric, get_metric
from rankwise.model_selection.rankers import predict_scores
from rankwise.model_selection.splitters import ROUTING_HINT

__all__ = ["RankingScorer", "make_ranking_scorer"]


class RankingScorer(BaseEstimator):  # type: ignore[misc]
    """A scorer for scikit-learn that evaluates inside queries; made by `make_ranking_scorer`.

    Parameters
    ----------
    metric : str or Metric
        As for `rankwise.metrics.get_metric`.
    global_ranking : bool, default=False
        Whether all rows form one ranking, so that no query ids are needed.

    Examples
    --------
    >>> from rankwise import RankRLS
    >>> from rankwise.model_selection import make_ranking_scorer
    >>> model = RankRLS().fit([[0.0], [1.0], [2.0]], [0, 1, 2])
    >>> make_ranking_scorer("concordance", global_ranking=True)(model, [[5.0], [6.0]], [0, 1])
    1.0
    """

    __metadata_request__score: ClassVar[dict[str, bool]] = {"qid": True}

    def __init__(self, metric: str | Metric, *, global_ranking: bool = False) -> None:
        self.metric = metric
        self.global_ranking = global_ranking

    def __call__(
        self,
        estimator: BaseEstimator,
        X: MatrixLike,
        y: Labels,
        qid: ArrayLike | None = None,
        **kwargs: ArrayLike | None,
    ) -> float:
        """Score an estimator: higher is better, so errors come with a minus sign."""
        return self.score(estimator, X, y, qid=qid, **kwargs)

    def score(
        self,
        estimator: BaseEstimator,
        X: MatrixLike,
        y: Labels,
        qid: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> float:
        """Score an estimator: higher is better, so errors come with a minus sign."""
        if qid is None and not self.global_ranking:
            raise MissingQueriesError(
                f"The scorer {self.metric!r} was called without query ids.",
                f"{ROUTING_HINT}; where all rows really form one ranking, say "
                f"make_ranking_scorer({self.metric!r}, global_ranking=True).",
            )
        metric: Metric = get_metric(self.metric)
        extra = {} if sample_weight is None else {"sample_weight": sample_weight}
        value = float(metric(y, predict_scores(estimator, X, qid), qid, **extra))
        return value if metric.greater_is_better else -value


def make_ranking_scorer(metric: str | Metric, *, global_ranking: bool = False) -> RankingScorer:
    """Make a scorer for `GridSearchCV`, `cross_validate` and the like.

    Parameters
    ----------
    metric : str or Metric
        A name of `rankwise.metrics.METRICS`, for example ``"ndcg@10"``, or ``get_metric("ndcg@10", gain="linear")``.
    global_ranking : bool, default=False
        Whether all rows form one ranking. If not, calling the scorer without `qid` is an error.

    Examples
    --------
    >>> make_ranking_scorer("ndcg@10")
    RankingScorer(metric='ndcg@10')
    """
    get_metric(metric)
    return RankingScorer(metric, global_ranking=global_ranking)
