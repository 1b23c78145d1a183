"""Boosted regression trees on the ranks of labels, kept as plain arrays of nodes.

scikit-learn grows the trees; a model holds their nodes as arrays, so that files need no class of scikit-learn and
execute nothing, and `predict` walks through them.
"""

from __future__ import annotations

from contextlib import nullcontext
from typing import ClassVar, Never, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.utils.validation import check_is_fitted
from threadpoolctl import threadpool_limits

from rankwise.arrays import ArrayLike, Floats, Ints, Labels, MatrixLike
from rankwise.automatic.scaling import ranked
from rankwise.data.validation import check_numbers, check_qid, check_weights
from rankwise.estimators.fitted import RankingMixin, refuse_unknown

__all__ = ["BoostedTrees"]

_MOST_TREES = 600
_PATIENCE = 20  # trees without a gain after which growing stops
_BLOCK = 1 << 16  # rows times trees that are walked through at a time


class BoostedTrees(RankingMixin, BaseEstimator):  # type: ignore[misc]
    """Boosted trees that predict the rank of a label, less the mean rank of its query.

    Parameters
    ----------
    n_trees : int or None, default=100
        None grows trees until a tenth of the rows, held out, no longer improves.
    n_leaves : int, default=31
    learning_rate : float, default=0.1
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
        n_trees: int | None = 100,
        *,
        n_leaves: int = 31,
        learning_rate: float = 0.1,
        random_state: int = 0,
        n_threads: int | None = None,
    ) -> None:
        self.n_trees = n_trees
        self.n_leaves = n_leaves
        self.learning_rate = learning_rate
        self.random_state = random_state
        self.n_threads = n_threads

    def fit(
        self,
        X: MatrixLike,
        y: Labels,
        qid: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        **unknown: Never,
    ) -> Self:
        """Grow the trees.

        Parameters
        ----------
        X, y, qid, sample_weight
            As in `RankRLS.fit`.
        """
        refuse_unknown("fit", unknown)
        rows = np.asarray(self._check_rows(X, reset=True))
        queries, weight = check_qid(qid, len(rows)), check_weights(sample_weight, len(rows))
        target = ranked(check_numbers("y", y, len(rows)).reshape(-1), weight)
        share = np.ones(len(rows)) if weight is None else weight
        total = np.bincount(queries.codes, share)
        mean = np.bincount(queries.codes, share * target) / np.where(total > 0, total, 1.0)
        grower = HistGradientBoostingRegressor(
            max_iter=_MOST_TREES if self.n_trees is None else int(self.n_trees),
            max_leaf_nodes=self.n_leaves,
            learning_rate=self.learning_rate,
            early_stopping=self.n_trees is None,
            n_iter_no_change=_PATIENCE,
            random_state=self.random_state,
        )
        counted = rows if weight is None else rows[weight > 0]
        rows = np.where(np.isnan(counted).all(axis=0), 0.0, rows)  # scikit-learn cannot bin empty columns
        limit = nullcontext() if self.n_threads is None else threadpool_limits(self.n_threads)
        with limit:
            grower.fit(rows, target - mean[queries.codes], sample_weight=weight)
        self._keep_nodes(grower)
        self.fitted_with_qid_, self.n_queries_ = qid is not None, len(queries)
        return self

    def _keep_nodes(self, grower: HistGradientBoostingRegressor) -> None:
        trees = [trees[0].nodes for trees in grower._predictors]  # noqa: SLF001 - there is no public way
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
        """Walk all rows through all trees at once, one level at a time, and add up their leaves."""
        at = np.tile(self.roots_, (len(rows), 1))
        while True:
            feature = self.features_[at]
            is_inner = feature >= 0
            if not is_inner.any():
                return np.asarray(self.values_[at].sum(axis=1) + self.baseline_)
            value = np.take_along_axis(rows, np.maximum(feature, 0), axis=1)
            goes_left = np.where(np.isnan(value), self.missing_left_[at] > 0, value <= self.thresholds_[at])
            at = np.where(is_inner, self.children_[at, np.where(goes_left, 0, 1)], at)
