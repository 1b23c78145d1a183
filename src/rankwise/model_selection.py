"""Model selection that keeps queries whole and hands `qid` to everyone who needs it."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import sklearn
from sklearn.base import BaseEstimator
from sklearn.model_selection import GroupKFold, cross_validate

from rankwise.data.validation import check_qid
from rankwise.exceptions import InvalidInputError, MissingQueriesError
from rankwise.metrics import Metric, get_metric

__all__ = ["QueryKFold", "RankingScorer", "cross_validate_ranker", "make_ranking_scorer"]

_ROUTING_HINT = (
    "pass qid= and call sklearn.set_config(enable_metadata_routing=True) first (scikit-learn drops qid "
    "silently otherwise), or use rankwise.model_selection.cross_validate_ranker"
)


class QueryKFold(GroupKFold):  # type: ignore[misc]
    """Split into folds of whole queries.

    A `GroupKFold` whose groups are the query ids: under metadata routing one ``qid=`` serves the estimator,
    the scorer and this splitter. Ids may be anything hashable.

    Parameters
    ----------
    n_splits : int, default=5
    shuffle : bool, default=False
        Whether queries are dealt out at random instead of by size.
    random_state : int, default=None
    """

    __metadata_request__split: ClassVar[dict[str, str]] = {"groups": "qid"}

    def split(self, X: Any, y: Any = None, groups: Any = None) -> Any:
        """Yield training and test rows, with every query on one side.

        Parameters
        ----------
        X : array-like of shape (rows, features)
        y : ignored
        groups : array-like of shape (rows,)
            The query ids.
        """
        if groups is None:
            raise MissingQueriesError("QueryKFold got no query ids.", f"{_ROUTING_HINT}.")
        n_rows = X.shape[0] if hasattr(X, "shape") else len(X)
        queries = check_qid(groups, n_rows)
        if len(queries) < self.n_splits:
            raise InvalidInputError(
                f"{len(queries)} queries cannot make {self.n_splits} folds.",
                f"use n_splits <= {len(queries)}."
                if len(queries) > 1
                else "with one query, split rows with sklearn.model_selection.KFold.",
            )
        yield from super().split(np.zeros((n_rows, 1)), None, queries.codes)


class RankingScorer(BaseEstimator):  # type: ignore[misc]
    """A scorer for scikit-learn that evaluates inside queries; made by `make_ranking_scorer`.

    Parameters
    ----------
    metric : str
        A name of `rankwise.metrics.METRICS`.
    global_ranking : bool, default=False
        Whether all rows form one ranking, so that no query ids are needed.
    """

    __metadata_request__score: ClassVar[dict[str, bool]] = {"qid": True}

    def __init__(self, metric: str, *, global_ranking: bool = False) -> None:
        self.metric = metric
        self.global_ranking = global_ranking

    def __call__(self, estimator: Any, X: Any, y: Any, qid: Any = None, **kwargs: Any) -> float:
        """Score an estimator: higher is better, so errors come with a minus sign."""
        return self.score(estimator, X, y, qid=qid, **kwargs)

    def score(self, estimator: Any, X: Any, y: Any, qid: Any = None, sample_weight: Any = None) -> float:
        """Score an estimator: higher is better, so errors come with a minus sign."""
        if qid is None and not self.global_ranking:
            raise MissingQueriesError(
                f"The scorer {self.metric!r} was called without query ids.",
                f"{_ROUTING_HINT}; where all rows really form one ranking, say "
                f"make_ranking_scorer({self.metric!r}, global_ranking=True).",
            )
        metric: Metric = get_metric(self.metric)
        extra = {} if sample_weight is None else {"sample_weight": sample_weight}
        value = float(metric(y, estimator.predict(X), qid, **extra))
        return value if metric.greater_is_better else -value


def make_ranking_scorer(metric: str, *, global_ranking: bool = False) -> RankingScorer:
    """Make a scorer for `GridSearchCV`, `cross_validate` and the like.

    Parameters
    ----------
    metric : str
        A name of `rankwise.metrics.METRICS`, for example ``"ndcg@10"``.
    global_ranking : bool, default=False
        Whether all rows form one ranking. If not, calling the scorer without `qid` is an error.

    Examples
    --------
    >>> make_ranking_scorer("ndcg@10")
    RankingScorer(metric='ndcg@10')
    """
    get_metric(metric)
    return RankingScorer(metric, global_ranking=global_ranking)


def cross_validate_ranker(
    estimator: Any,
    X: Any,
    y: Any,
    qid: Any = None,
    *,
    scoring: str | list[str] = "concordance",
    cv: Any = 5,
    **options: Any,
) -> dict[str, Any]:
    """Cross-validate a ranker or a pipeline that ends in one, with whole queries in each fold.

    scikit-learn's global configuration is left as it is.

    Parameters
    ----------
    estimator : estimator
    X, y, qid : array-like
        Without `qid` all rows form one ranking, and folds are made of rows.
    scoring : str or list of str, default="concordance"
        Names of `rankwise.metrics.METRICS`.
    cv : int or splitter, default=5
        A number of folds, or a splitter that takes the query ids as groups.
    **options
        Passed to `sklearn.model_selection.cross_validate`.

    Returns
    -------
    dict
        As `sklearn.model_selection.cross_validate`: ``test_<metric>``, or ``test_score`` for one metric,
        with errors as negative numbers.
    """
    names = [scoring] if isinstance(scoring, str) else list(scoring)
    scorers = {name: make_ranking_scorer(name, global_ranking=qid is None) for name in names}
    if isinstance(cv, int):
        cv = (
            QueryKFold(cv)
            if qid is not None
            else sklearn.model_selection.KFold(cv, shuffle=True, random_state=0)
        )
    with sklearn.config_context(enable_metadata_routing=True):
        return dict(
            cross_validate(
                estimator,
                X,
                y,
                cv=cv,
                scoring=scorers[scoring] if isinstance(scoring, str) else scorers,
                params={} if qid is None else {"qid": qid},
                **options,
            )
        )
