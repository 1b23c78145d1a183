"""Model selection that keeps queries whole and hands `qid` to everyone who needs it."""

from __future__ import annotations

import heapq
import sys
import warnings
from collections.abc import Iterable, Iterator
from copy import deepcopy
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import sklearn
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from sklearn.base import BaseEstimator, clone
from sklearn.model_selection import GroupKFold, KFold, cross_validate

from rankwise.arrays import AnyArray, ArrayLike, Estimator, Labels, MatrixLike
from rankwise.data.containers import unmasked
from rankwise.data.preferences import check_pairs
from rankwise.data.validation import check_choice, check_qid
from rankwise.exceptions import InvalidInputError, MissingQueriesError
from rankwise.metrics import Metric, get_metric

__all__ = [
    "PreferenceKFold",
    "QueryKFold",
    "RankingScorer",
    "cross_validate_ranker",
    "fit_ranker",
    "make_ranking_scorer",
    "predict_scores",
]

# Packages whose rankers take groups of rows that stand together.
_GROUPED = frozenset({"lightgbm", "xgboost", "catboost"})

Positions = npt.NDArray[np.int64]

_ROUTING_HINT = (
    "pass qid= and call sklearn.set_config(enable_metadata_routing=True) first (scikit-learn drops qid "
    "silently otherwise), or use rankwise.model_selection.cross_validate_ranker"
)


class QueryKFold(GroupKFold):  # type: ignore[misc]
    """Split into folds of whole queries.

    A `GroupKFold` whose groups are the query ids: under metadata routing one ``qid=`` serves the estimator,
    the scorer and this splitter. Ids may be anything hashable.

    Without routing, scikit-learn's ``cross_val_score(..., groups=qid)`` and its relatives hand the ids to the splitter
    alone: a ranker is then fitted and scored without them, as if all rows were one ranking. This splitter warns of
    that; scikit-learn's own cannot.

    Parameters
    ----------
    n_splits : int, default=5
    shuffle : bool, default=False
        Whether queries are assigned at random instead of by size.
    random_state : int, default=None

    Examples
    --------
    >>> import numpy as np
    >>> from rankwise.model_selection import QueryKFold
    >>> qid = np.array(["a", "a", "b", "b", "c", "c"])
    >>> for train, test in QueryKFold(3).split(np.zeros((6, 1)), groups=qid):
    ...     print(sorted(set(qid[train].tolist())), sorted(set(qid[test].tolist())))
    ['a', 'b'] ['c']
    ['a', 'c'] ['b']
    ['b', 'c'] ['a']
    """

    __metadata_request__split: ClassVar[dict[str, str]] = {"groups": "qid"}

    def split(self, X: Any, y: npt.ArrayLike | None = None, groups: Any = None) -> Any:
        """Return an iterator over training and test rows, with every query on one side.

        Parameters
        ----------
        X : array-like of shape (rows, features)
        y : ignored
        groups : array-like of shape (rows,)
            The query ids.
        """
        if groups is None:
            raise MissingQueriesError("QueryKFold got no query ids.", f"{_ROUTING_HINT}.")
        # Who calls is all that can be known here: the estimator is out of sight, and so are the ids to an estimator.
        caller = str(sys._getframe(1).f_globals.get("__name__", ""))  # noqa: SLF001
        if caller.startswith("sklearn.") and not sklearn.get_config()["enable_metadata_routing"]:
            warnings.warn(
                "scikit-learn passes groups= to the splitter alone: rankers are fitted and scored without query ids, "
                f"as if all rows were one ranking. Hint: {_ROUTING_HINT}.",
                UserWarning,
                stacklevel=2,
            )
        n_rows = X.shape[0] if hasattr(X, "shape") else len(X)
        queries = check_qid(groups, n_rows, name="groups")
        if len(queries) < self.n_splits:
            raise InvalidInputError(
                f"{len(queries)} queries cannot make {self.n_splits} folds.",
                f"use n_splits <= {len(queries)}."
                if len(queries) > 1
                else "with one query, split rows with sklearn.model_selection.KFold.",
            )
        return super().split(np.zeros((n_rows, 1)), None, queries.codes)


class PreferenceKFold(BaseEstimator):  # type: ignore[misc]
    """Split a list of pairs into folds, so that what is tested was not seen in training.

    Parameters
    ----------
    n_splits : int, default=5
    by : {"pairs", "items", "components", "groups"}, default="pairs"
        What stays on one side:

        - "pairs": all comparisons of the same two items. The items themselves are on both sides: it estimates how well
          new comparisons of known items are predicted.
        - "items": the items. They are assigned to folds; a fold tests the pairs inside it and trains on the pairs that
          have no item in it. Pairs between folds are in neither, so that only about one pair in `n_splits` is ever
          tested: it estimates how well comparisons of new items are predicted.
        - "components": connected components of the pairs. No pair is lost, but there must be enough components, as with
          answers that are compared only with other answers to the same prompt.
        - "groups": the groups given to `split`, such as prompts or annotators.
    random_state : int, default=0
        Seed of the assignment.

    Examples
    --------
    >>> from rankwise.model_selection import PreferenceKFold
    >>> pairs = [[0, 1], [1, 0], [2, 3], [4, 2], [5, 6]]
    >>> for train, test in PreferenceKFold(3, by="components").split(pairs):
    ...     print(train, test)
    [2 3 4] [0 1]
    [0 1 4] [2 3]
    [0 1 2 3] [4]
    """

    def __init__(self, n_splits: int = 5, *, by: str = "pairs", random_state: int | None = 0) -> None:
        self.n_splits = n_splits
        self.by = by
        self.random_state = random_state

    def get_n_splits(
        self, X: MatrixLike | None = None, y: Labels | None = None, groups: ArrayLike | None = None
    ) -> int:
        """Return the number of folds."""
        return self.n_splits

    def split(
        self, X: MatrixLike, y: Labels | None = None, groups: ArrayLike | None = None
    ) -> Iterator[tuple[Positions, Positions]]:
        """Yield training and test pairs, as positions in the list.

        Parameters
        ----------
        X : array-like of int of shape (pairs, 2)
            The list of pairs: row numbers of winner and loser.
        y : ignored
        groups : array-like of shape (pairs,), optional
            For ``by="groups"``; anything hashable.
        """
        check_choice("by", self.by, ("pairs", "items", "components", "groups"))
        if not isinstance(self.n_splits, Integral) or self.n_splits < 2:
            raise InvalidInputError(f"n_splits={self.n_splits!r} makes no folds.", "use 2 or more.")
        edges = np.asarray(unmasked("pairs", X))
        preferences = check_pairs(edges, int(edges.max(initial=0)) + 1 if edges.dtype.kind in "iuf" else 0)
        ends = np.column_stack([preferences.winner, preferences.loser])
        items, ends = np.unique(ends, return_inverse=True)
        ends = ends.reshape(-1, 2)
        if self.by == "items":
            fold_of_item = self._assign(np.ones(items.size), "items")
            fold = fold_of_item[ends]
            for c in range(self.n_splits):
                inside = fold == c
                yield self._sides(~inside.any(axis=1), inside.all(axis=1))
            return
        unit = self._units(ends, items.size, groups)
        fold_of_pair = self._assign(np.bincount(unit), self.by)[unit]
        for c in range(self.n_splits):
            yield self._sides(fold_of_pair != c, fold_of_pair == c)

    def _units(self, ends: Positions, n_items: int, groups: ArrayLike | None) -> Positions:
        """Return the number of what each pair must not be torn from."""
        if self.by == "groups":
            if groups is None:
                raise InvalidInputError(
                    "by='groups' was asked, and no groups were given.", "pass groups= to split."
                )
            return check_qid(groups, ends.shape[0], name="groups", what="group", beside="pairs").codes
        if self.by == "components":
            edges = coo_array((np.ones(len(ends)), (ends[:, 0], ends[:, 1])), shape=(n_items, n_items))
            component: Positions = connected_components(edges, directed=False)[1][ends[:, 0]].astype(np.int64)
            return component
        low, high = ends.min(axis=1), ends.max(axis=1)
        same_two: Positions = np.unique(low * n_items + high, return_inverse=True)[1].reshape(-1)
        return same_two

    def _assign(self, sizes: AnyArray, what: str) -> Positions:
        """Assign units to folds, the largest first, each to the fold that has least; equals in random order."""
        if sizes.size < self.n_splits:
            raise InvalidInputError(
                f"{sizes.size} {what} cannot make {self.n_splits} folds.",
                f"use n_splits <= {sizes.size}." if sizes.size > 1 else "split by='items' or by='pairs'.",
            )
        order = np.random.default_rng(self.random_state).permutation(sizes.size)
        order = order[np.argsort(-sizes[order], kind="stable")]
        fold = np.empty(sizes.size, dtype=np.int64)
        load = [(0.0, c) for c in range(self.n_splits)]  # a heap: the least loaded fold first
        for unit in order:
            least, c = load[0]
            fold[unit] = c
            heapq.heapreplace(load, (least + float(sizes[unit]), c))
        return fold

    def _sides(
        self, train: npt.NDArray[np.bool_], test: npt.NDArray[np.bool_]
    ) -> tuple[Positions, Positions]:
        if not train.any() or not test.any():
            raise InvalidInputError(
                f"A fold has {int(test.sum())} pairs to test and {int(train.sum())} to train on.",
                "use fewer folds, or split by='pairs'.",
            )
        return np.flatnonzero(train), np.flatnonzero(test)


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
        estimator: Estimator,
        X: MatrixLike,
        y: npt.ArrayLike,
        qid: npt.ArrayLike | None = None,
        **kwargs: Any,
    ) -> float:
        """Score an estimator: higher is better, so errors come with a minus sign."""
        return self.score(estimator, X, y, qid=qid, **kwargs)

    def score(
        self,
        estimator: Estimator,
        X: MatrixLike,
        y: npt.ArrayLike,
        qid: npt.ArrayLike | None = None,
        sample_weight: npt.ArrayLike | None = None,
    ) -> float:
        """Score an estimator: higher is better, so errors come with a minus sign."""
        if qid is None and not self.global_ranking:
            raise MissingQueriesError(
                f"The scorer {self.metric!r} was called without query ids.",
                f"{_ROUTING_HINT}; where all rows really form one ranking, say "
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


def predict_scores(estimator: Estimator, X: MatrixLike, qid: npt.ArrayLike | None = None) -> Any:
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
    X = unmasked("X", X)
    with sklearn.config_context(enable_metadata_routing=True):
        wanted = qid is not None and hasattr(estimator, "get_metadata_routing")
        if wanted and estimator.get_metadata_routing().consumes("predict", ["qid"]):
            return estimator.predict(X, qid=qid)
        return estimator.predict(X)


def fit_ranker(estimator: Any, X: Any, y: Any, qid: Any = None, sample_weight: Any = None) -> Any:
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
    package = type(estimator).__module__.split(".")[0]
    if package not in _GROUPED:
        wanted = {"qid": qid, "sample_weight": sample_weight}
        given = {name: value for name, value in wanted.items() if value is not None}
        with sklearn.config_context(enable_metadata_routing=True):
            return estimator.fit(X, y, **given)
    labels = np.asarray(unmasked("y", y))
    queries = check_qid(qid, labels.shape[0])
    order, codes = queries.order, queries.codes[queries.order]
    rows = X.iloc[order] if hasattr(X, "iloc") else X[order]
    weight = None if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)[order]
    if package == "catboost":
        of_query = None if weight is None else _means(codes, weight)[codes]
        own = {} if of_query is None else {"group_weight": of_query}
        return estimator.fit(rows, labels[order], group_id=codes, verbose=False, **own)
    if package == "lightgbm":
        own = {} if weight is None else {"sample_weight": weight}
        return estimator.fit(rows, labels[order], group=queries.sizes, **own)
    own = {} if weight is None else {"sample_weight": _means(codes, weight)}
    return estimator.fit(rows, labels[order], qid=codes, **own)


def _means(codes: Positions, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    return np.bincount(codes, values) / np.bincount(codes)


class _Grouped(BaseEstimator):  # type: ignore[misc]
    """A ranker of another package with the `fit(X, y, qid)` of those here, for scikit-learn's cross-validation."""

    __metadata_request__fit: ClassVar[dict[str, bool]] = {"qid": True}

    def __init__(self, estimator: Any = None) -> None:
        self.estimator = estimator

    def fit(self, X: Any, y: Any, qid: Any = None) -> _Grouped:
        """Fit a copy."""
        self.estimator_ = fit_ranker(clone(self.estimator), X, y, qid)
        return self

    def predict(self, X: Any) -> Any:
        """Return scores."""
        return self.estimator_.predict(X)


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
    cv : int or splitter, default=5
        A number of folds of whole queries, or a splitter; one that takes groups gets the query ids.
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
    X = unmasked("X", X)  # before scikit-learn takes rows of it
    if type(estimator).__module__.split(".")[0] in _GROUPED:
        estimator = _Grouped(estimator)
    chosen = [scoring] if isinstance(scoring, (str, Metric)) else list(scoring)
    metrics = [get_metric(metric) for metric in chosen]
    scorers = {metric.name: make_ranking_scorer(metric, global_ranking=qid is None) for metric in metrics}
    if cv is None or isinstance(cv, Integral):  # what scikit-learn would make of them divides queries
        n_folds = 5 if cv is None else int(cv)
        cv = QueryKFold(n_folds) if qid is not None else KFold(n_folds, shuffle=True, random_state=0)
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
