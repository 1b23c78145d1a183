"""Boosted regression trees on the ranks of labels, kept as plain arrays of nodes.

scikit-learn grows the trees; a model holds their nodes as arrays, so that files need no class of scikit-learn and
execute nothing, and `predict` walks through them.
"""

from __future__ import annotations

from typing import Any, ClassVar, Never, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.utils.validation import check_is_fitted
from threadpoolctl import threadpool_limits

from rankwise.arrays import ArrayLike, Floats, Ints, Labels, MatrixLike
from rankwise.data.queries import Queries
from rankwise.data.validation import check_numbers, check_qid, check_weights
from rankwise.estimators.base import RankingMixin
from rankwise.estimators.parameters import refuse_unknown
from rankwise.pairs.labels import ranked

_STAGES = (40, 60, 90, 135, 200, 300, 450)  # numbers of trees that an evaluation set chooses from
_PATIENCE = 2  # stages without a gain after which growing stops
_BLOCK = 1 << 16  # rows times trees that are walked through at a time
# Numbers in X up to which one thread grows trees: more of them wait for each other longer than they work.
_FEW_ENTRIES = 1 << 20


class BoostedTrees(RankingMixin, BaseEstimator):  # type: ignore[misc]
    """Boosted trees that predict the rank of a label, less the mean rank of its query.

    Parameters
    ----------
    n_trees : int, default=100
        Not used with an evaluation set, which chooses the number.
    n_leaves : int, default=31
    random_state : int, default=0
    n_threads : int, default=None

    Attributes
    ----------
    features_, thresholds_, values_ : (nodes,) arrays
        The column that a node splits, the largest value that goes left, and the score that a leaf adds; a leaf has
        column -1.
    children_ : (nodes, 2) int64
        Left and right; a child comes after its parent.
    missing_left_ : (nodes,) bool
        Whether missing values go left.
    roots_ : (trees,) int64
    baseline_ : float
    n_queries_ : int
    """

    __metadata_request__predict: ClassVar[dict[str, bool]] = {}

    features_: Ints
    thresholds_: Floats
    values_: Floats
    children_: Ints
    missing_left_: Ints
    roots_: Ints
    baseline_: float
    n_queries_: int

    _takes_missing = True
    _takes_outputs = False

    def __init__(
        self,
        n_trees: int = 100,
        *,
        n_leaves: int = 31,
        random_state: int = 0,
        n_threads: int | None = None,
    ) -> None:
        self.n_trees = n_trees
        self.n_leaves = n_leaves
        self.random_state = random_state
        self.n_threads = n_threads

    def fit(
        self,
        X: MatrixLike,
        y: Labels,
        qid: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        eval_set: tuple[Any, ...] | None = None,
        **unknown: Never,
    ) -> Self:
        """Grow the trees.

        Parameters
        ----------
        X, y, qid, sample_weight
            As in `RankRLS.fit`.
        eval_set : tuple (X, y) or (X, y, qid), optional
            Rows whose squared error chooses the number of trees, in place of `n_trees`.
        """
        refuse_unknown("fit", unknown)
        rows = np.asarray(self._check_rows(X, reset=True))
        queries, weight = check_qid(qid, len(rows)), check_weights(sample_weight, len(rows))
        target = _target(check_numbers("y", y, len(rows)).reshape(-1), queries, weight)
        is_small = rows.size <= _FEW_ENTRIES
        with threadpool_limits(1 if is_small else self.n_threads):
            # A column without any value splits nothing, and scikit-learn fails on it.
            counted = rows if weight is None else rows[weight > 0]
            filled = np.where(np.isnan(counted).all(axis=0), 0.0, rows)
            if eval_set is None:
                self._keep_nodes(self._grower().fit(filled, target, sample_weight=weight), self.n_trees)
            else:
                self._stop_early(filled, target, weight, *eval_set)
        self.fitted_with_qid_, self.n_queries_ = qid is not None, len(queries)
        return self

    def _grower(self) -> HistGradientBoostingRegressor:
        return HistGradientBoostingRegressor(
            max_iter=self.n_trees,
            max_leaf_nodes=self.n_leaves,
            early_stopping=False,
            random_state=self.random_state,
        )

    def _stop_early(
        self, X: Floats, target: Floats, weight: Floats | None, X_scored: MatrixLike, y: Labels, *qid: Any
    ) -> None:
        """Grow trees in stages, and keep those of the stage with the least squared error inside queries."""
        rows = np.asarray(self._check_rows(X_scored, reset=False))
        queries = check_qid(qid[0] if qid else None, len(rows))
        wanted = _target(check_numbers("y of eval_set", y, len(rows)).reshape(-1), queries, None)
        grower = self._grower().set_params(warm_start=True)
        best, least, worse = 0, np.inf, 0
        for n_trees in _STAGES:
            grower.set_params(max_iter=n_trees).fit(X, target, sample_weight=weight)
            error = float(np.mean(_centred(wanted - grower.predict(rows), queries, None) ** 2))
            best, least, worse = (n_trees, error, 0) if error < least else (best, least, worse + 1)
            if worse == _PATIENCE:
                break
        self._keep_nodes(grower, best)

    def _keep_nodes(self, grower: HistGradientBoostingRegressor, n_trees: int) -> None:
        trees = [trees[0].nodes for trees in grower._predictors[:n_trees]]  # noqa: SLF001 - there is no public way
        nodes = np.concatenate(trees)
        first = np.cumsum([0, *(len(tree) for tree in trees)])
        shift = np.repeat(first[:-1], np.diff(first))
        is_leaf = nodes["is_leaf"].astype(np.bool_)
        self.features_ = np.where(is_leaf, -1, nodes["feature_idx"].astype(np.int64))
        self.thresholds_ = nodes["num_threshold"].astype(np.float64)
        self.values_ = nodes["value"].astype(np.float64)
        self.children_ = np.column_stack(
            [np.where(is_leaf, 0, nodes[side].astype(np.int64) + shift) for side in ("left", "right")]
        )
        self.missing_left_ = nodes["missing_go_to_left"].astype(np.int64)
        self.roots_ = first[:-1].astype(np.int64)
        self.baseline_ = float(np.squeeze(grower._baseline_prediction))  # noqa: SLF001

    @property
    def n_trees_(self) -> int:
        """How many trees there are."""
        return int(self.roots_.size)

    def predict(self, X: MatrixLike) -> Floats:  # noqa: D102 - as in RankingMixin
        check_is_fitted(self)
        rows = np.asarray(self._check_rows(X, reset=False))
        scores = np.empty(len(rows))
        step = max(1, _BLOCK // max(self.roots_.size, 1))
        for start in range(0, len(rows), step):
            scores[start : start + step] = self._leaves(rows[start : start + step])
        return scores

    def _leaves(self, rows: Floats) -> Floats:
        """Walk rows through all trees at once, one level at a time, and add up their leaves."""
        at = np.tile(self.roots_, len(rows))
        row = np.repeat(np.arange(len(rows)), self.roots_.size)
        walking = np.flatnonzero(self.features_[at] >= 0)
        while walking.size:
            node = at[walking]
            value = rows[row[walking], self.features_[node]]
            goes_left = np.where(
                np.isnan(value), self.missing_left_[node] > 0, value <= self.thresholds_[node]
            )
            at[walking] = node = self.children_[node, np.where(goes_left, 0, 1)]
            walking = walking[self.features_[node] >= 0]
        return np.asarray(self.values_[at].reshape(len(rows), -1).sum(axis=1) + self.baseline_)


def _target(y: Floats, queries: Queries, weight: Floats | None) -> Floats:
    """Return the ranks of labels, less the mean of their query."""
    return _centred(ranked(y, weight), queries, weight)


def _centred(values: Floats, queries: Queries, weight: Floats | None) -> Floats:
    share = np.ones(values.size) if weight is None else weight
    total = np.bincount(queries.codes, share)
    mean = np.bincount(queries.codes, share * values) / np.where(total > 0, total, 1.0)
    return np.asarray(values - mean[queries.codes])
