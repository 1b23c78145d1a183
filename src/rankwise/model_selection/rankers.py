"""Rankers of any package, fitted and asked for scores with query ids."""

from __future__ import annotations

from collections.abc import Iterable
from inspect import Parameter, signature
from typing import Any, TypeVar

import numpy as np
import sklearn
from sklearn.base import BaseEstimator

from rankwise.arrays import ArrayLike, Floats, Ints, Labels, MatrixLike
from rankwise.data.containers import as_array, readable
from rankwise.data.validation import check_qid
from rankwise.exceptions import InvalidInputError

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
