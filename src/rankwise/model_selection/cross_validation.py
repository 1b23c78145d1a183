"""Rankers of any package with query ids: fits, scores, cross-validation, and scorers for scikit-learn."""

from __future__ import annotations

from collections.abc import Iterable
from copy import deepcopy
from inspect import Parameter, signature
from numbers import Integral
from typing import Any, ClassVar, TypeVar

import numpy as np
import sklearn
from sklearn.base import BaseEstimator, clone
from sklearn.model_selection import KFold, check_cv, cross_validate

from rankwise.arrays import ArrayLike, Floats, Ints, Labels, MatrixLike, shape_of
from rankwise.data.containers import as_array, readable
from rankwise.data.validation import check_numbers, check_qid
from rankwise.exceptions import InvalidInputError, MissingQueriesError
from rankwise.metrics import Metric, get_metric
from rankwise.model_selection.splitters import ROUTING_HINT, QueryKFold
from rankwise.selection.plan import TimeFolds, read_splits

# Packages whose rankers take groups of rows that stand together.
GROUPED = frozenset({"lightgbm", "xgboost", "catboost"})

Fitted = TypeVar("Fitted", bound=BaseEstimator)


def predict_scores(estimator: BaseEstimator, X: MatrixLike, qid: ArrayLike | None = None) -> Floats:
    """Return the scores of rows by a ranker or a pipeline; steps that ask for `qid`, such as `QueryScaler`, get it.

    scikit-learn's global configuration is left as it is.

    Parameters
    ----------
    estimator : fitted estimator
    X : array-like, sparse matrix or data frame of shape (rows, features)
    qid : array-like of shape (rows,), optional

    Examples
    --------
    >>> import numpy as np
    >>> import sklearn
    >>> from sklearn.pipeline import make_pipeline
    >>> from rankwise import RankRLS
    >>> from rankwise.model_selection import fit_ranker, predict_scores
    >>> from rankwise.preprocessing import QueryScaler
    >>> X, qid = np.array([[1.0], [3.0], [20.0], [60.0]]), ["a", "a", "b", "b"]
    >>> with sklearn.config_context(enable_metadata_routing=True):
    ...     model = make_pipeline(QueryScaler(), RankRLS()).fit(X, [0, 1, 0, 1], qid=qid)
    >>> scores = predict_scores(model, X, qid)
    >>> bool(np.isclose(scores[1] - scores[0], scores[3] - scores[2]))
    True
    """
    rows = readable("X", X)
    _check_has(estimator, "predict")
    with sklearn.config_context(enable_metadata_routing=True):
        wanted = qid is not None and hasattr(estimator, "get_metadata_routing")
        if wanted and estimator.get_metadata_routing().consumes("predict", ["qid"]):
            scores: Floats = estimator.predict(rows, qid=qid)
        else:
            scores = estimator.predict(rows)
    return scores


def fit_ranker(
    estimator: Fitted,
    X: MatrixLike,
    y: Labels,
    qid: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
) -> Fitted:
    """Fit a ranker of any package; those of LightGBM, XGBoost and CatBoost get their rows grouped by query.

    LightGBM takes sizes of groups, XGBoost sorted ids, CatBoost ids of rows that stand together; LightGBM and XGBoost
    take weights of queries, which are then the means of their rows' weights.

    Parameters
    ----------
    estimator : estimator
    X, y, qid, sample_weight : array-like
        Without `qid` all rows form one ranking.

    Returns
    -------
    estimator
        The same, fitted.

    Examples
    --------
    >>> from rankwise import RankRLS
    >>> from rankwise.model_selection import fit_ranker  # an LGBMRanker goes as well
    >>> fit_ranker(RankRLS(), [[0.0], [1.0], [2.0]], [0, 1, 2], ["a", "a", "a"]).n_queries_
    1
    """
    _check_has(estimator, "fit")
    package = type(estimator).__module__.split(".")[0]
    if package not in GROUPED:
        wanted = {"qid": qid, "sample_weight": sample_weight}
        given = {name: value for name, value in wanted.items() if value is not None}
        _check_takes(estimator, given)
        with sklearn.config_context(enable_metadata_routing=True):
            estimator.fit(X, y, **given)
        return estimator
    labels = as_array("y", y)
    queries = check_qid(qid, labels.shape[0])
    order, codes = queries.order, queries.codes[queries.order]
    weight = None if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)[order]
    own: dict[str, object]
    if package == "catboost":
        own = {} if weight is None else {"group_weight": _means(codes, weight)[codes]}
        own |= {"group_id": codes, "verbose": False}
    elif package == "lightgbm":
        own = (
            {"group": queries.sizes} if weight is None else {"group": queries.sizes, "sample_weight": weight}
        )
    else:
        own = {"qid": codes} if weight is None else {"qid": codes, "sample_weight": _means(codes, weight)}
    _check_takes(estimator, own)
    rows: Any = X
    estimator.fit(rows.iloc[order] if hasattr(rows, "iloc") else rows[order], labels[order], **own)
    return estimator


def _means(codes: Ints, values: Floats) -> Floats:
    return np.bincount(codes, values) / np.bincount(codes)


def _check_has(estimator: object, method: str) -> None:
    if isinstance(estimator, type) or not hasattr(estimator, method):
        raise InvalidInputError(f"{estimator!r} has no {method}.", "pass a ranker, such as RankRLS().")


def _check_takes(estimator: BaseEstimator, names: Iterable[str]) -> None:
    """Raise unless `fit` has arguments of these names, which only rankers have for queries."""
    parameters = signature(estimator.fit).parameters
    takes_any = any(one.kind is Parameter.VAR_KEYWORD for one in parameters.values())
    for name in names:
        if name not in parameters and not takes_any:
            raise InvalidInputError(
                f"{type(estimator).__name__}.fit takes no {name}.",
                "pass a ranker such as RankRLS() or LGBMRanker(), or leave queries and weights out.",
            )


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
                f"{ROUTING_HINT}; if all rows form one ranking, pass "
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


class _Grouped(BaseEstimator):  # type: ignore[misc]
    """A ranker of another package with the `fit(X, y, qid)` of those here, for scikit-learn's cross-validation."""

    __metadata_request__fit: ClassVar[dict[str, bool]] = {"qid": True}

    def __init__(self, estimator: BaseEstimator | None = None) -> None:
        self.estimator = estimator

    def fit(self, X: MatrixLike, y: Labels, qid: ArrayLike | None = None) -> _Grouped:
        """Fit a copy."""
        self.estimator_ = fit_ranker(clone(self.estimator), X, y, qid)
        return self

    def predict(self, X: MatrixLike) -> Floats:
        """Return scores."""
        scores: Floats = self.estimator_.predict(X)
        return scores


def cross_validate_ranker(
    estimator: object,
    X: MatrixLike,
    y: Labels,
    qid: ArrayLike | None = None,
    *,
    scoring: str | Metric | Iterable[str | Metric] = "concordance",
    cv: object = 5,
    **options: object,
) -> dict[str, Any]:
    """Cross-validate a ranker or a pipeline that ends in one, with whole queries in each fold.

    scikit-learn's global configuration is left as it is.

    Parameters
    ----------
    estimator : estimator
        Also an LGBMRanker, XGBRanker or CatBoostRanker: its rows are grouped and its groups counted for it, and under
        ``return_estimator=True`` it stands in the attribute ``estimator_``.
    X, y, qid : array-like
        Without `qid` all rows form one ranking, and folds are made of rows.
    scoring : str, Metric or list of them, default="concordance"
        As for `rankwise.metrics.get_metric`.
    cv : int, "time" or splitter, default=5
        A number of folds of whole queries, or a splitter; one that takes groups gets the query ids. "time" sorts
        queries by their ids and scores each of 5 folds by a model of earlier queries.
    **options
        Passed to `sklearn.model_selection.cross_validate`.

    Returns
    -------
    dict
        As `sklearn.model_selection.cross_validate`: ``test_<metric>``, or ``test_score`` for one metric,
        with errors as negative numbers.

    Examples
    --------
    >>> import numpy as np
    >>> from rankwise import RankRLS
    >>> from rankwise.model_selection import cross_validate_ranker
    >>> rng = np.random.default_rng(0)
    >>> X, qid = rng.normal(size=(60, 2)), np.arange(60) // 6
    >>> y = np.digitize(X[:, 0], [0, 1])
    >>> found = cross_validate_ranker(RankRLS(), X, y, qid, scoring=["ndcg@3", "pairwise_error"])
    >>> found["test_ndcg@3"].shape, bool((found["test_pairwise_error"] <= 0).all())
    ((5,), True)
    """
    X = readable("X", X)  # before scikit-learn takes rows of it
    if type(estimator).__module__.split(".")[0] in GROUPED:
        estimator = _Grouped(estimator)
    chosen = [scoring] if isinstance(scoring, (str, Metric)) else list(scoring)
    metrics = [get_metric(metric) for metric in chosen]
    if any(metric.base_name == "err" for metric in metrics):  # whose largest grade is that of all folds
        labels = check_numbers("y", y)
        metrics = [metric.settled(labels) for metric in metrics]
    scorers = {metric.name: make_ranking_scorer(metric, global_ranking=qid is None) for metric in metrics}
    if cv is None or isinstance(cv, Integral):  # what scikit-learn would make of them divides queries
        n_folds = 5 if cv is None else int(cv)
        cv = QueryKFold(n_folds) if qid is not None else KFold(n_folds, shuffle=True, random_state=0)
    elif isinstance(cv, str) and cv == "time":
        groups = None if qid is None else check_qid(qid, shape_of(X)[0]).codes
        cv = list(read_splits(TimeFolds(), range(shape_of(X)[0]), None, groups, "rows"))
    elif not hasattr(cv, "split"):
        cv = list(read_splits(check_cv(cv), range(shape_of(X)[0]), None, None, "rows"))
    with sklearn.config_context(enable_metadata_routing=True):
        if qid is not None and hasattr(cv, "set_split_request"):
            cv = deepcopy(cv).set_split_request(groups="qid")
        return dict(
            cross_validate(
                estimator,
                X,
                y,
                cv=cv,
                scoring=scorers[metrics[0].name] if isinstance(scoring, (str, Metric)) else scorers,
                params={} if qid is None else {"qid": qid},
                **options,
            )
        )
