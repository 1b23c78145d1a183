"""Methods of fitted rankers: prediction, ranks, evaluation and saving to a file."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from os import PathLike
from types import ModuleType
from typing import Any, BinaryIO, ClassVar, Never

import numpy as np
import numpy.typing as npt
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted, column_or_1d

from rankwise.arrays import ArrayLike, Floats, Labels, Matrix, MatrixLike
from rankwise.data.containers import as_array
from rankwise.data.preferences import row_numbers
from rankwise.data.queries import ranks_inside
from rankwise.data.validation import check_labelled, check_labels, check_pairs, check_qid, check_rows
from rankwise.estimators.parameters import refuse_unknown
from rankwise.exceptions import InvalidInputError, MissingQueriesError
from rankwise.metrics import concordance, preference_error

__all__ = ["RankingMixin", "is_on_cluster", "require_finite"]

# What holds the model of a fit, whichever class it is of.
_MODELS = ("coef_", "dual_coef_", "values_", "best_estimator_", "rankers_")


def is_on_cluster(X: object) -> bool:
    """Tell whether this is a Dask collection, or rows that `rankwise.distributed` knows; Dask is not imported."""
    return hasattr(type(X), "__dask_graph__") or type(X).__module__.startswith("rankwise.distributed.")


def require_finite(scores: Floats) -> Floats:
    """Return scores; raise where rows are so large that they have none."""
    if not np.isfinite(scores).all():
        row = int(np.argmin(np.isfinite(scores.reshape(scores.shape[0], -1)).all(axis=1)))
        raise InvalidInputError(
            f"The score of row {row} is too large for floating-point numbers.",
            "score rows that are like those of the training data; if a number stands for a missing value, replace it.",
        )
    return scores


class RankingMixin(ABC):
    """Adds ranks, scores of rankings and of pairs, and saving to an estimator that has `predict`."""

    # qid is requested by default, so that one `qid=` reaches every ranker inside a pipeline or a search.
    __metadata_request__fit: ClassVar[dict[str, bool]] = {"qid": True}
    __metadata_request__score: ClassVar[dict[str, bool]] = {"qid": True}

    # Whether X may be rows of a Dask cluster.
    _takes_clusters: ClassVar[bool] = False
    # Whether values of X may be missing, and whether y may have several columns.
    _takes_missing: ClassVar[bool] = False
    _takes_outputs: ClassVar[bool] = True

    n_features_in_: int
    feature_names_in_: npt.NDArray[np.object_]
    fitted_with_qid_: bool
    # Of some rankers.
    n_iter_: int
    solver_: str
    n_reads_: int
    duality_gap_: float | Floats
    loss_: str
    n_queries_: int
    n_pairs_: int | npt.NDArray[np.int64]
    n_ignored_queries_: int | npt.NDArray[np.int64]
    n_components_: int
    n_unpaired_rows_: int
    alpha_: float | Floats
    alphas_: Floats
    best_iteration_: int | npt.NDArray[np.int64]
    best_score_: float | Floats
    choices_: dict[str, object]
    cv_: str
    cv_errors_: Floats
    history_: list[float] | list[list[float]]
    keeps_basis_: bool
    method_: str
    n_products_: int
    penalty_power_: float
    surface_: Floats
    unpenalised_: Floats

    @abstractmethod
    def predict(self, X: MatrixLike) -> Floats:
        """Return a score for each row of X: higher is better, and only differences inside a query mean anything.

        Parameters
        ----------
        X : array-like, sparse matrix, data frame or LinearOperator of shape (rows, features)
            For ``kernel="precomputed"`` the kernel between these rows and all training rows. Additive rankers count NaN
            as missing, and take no operator.

        Returns
        -------
        scores : ndarray of shape (rows,), or (rows, outputs) for several outputs
        """

    def rank(self, X: MatrixLike, qid: ArrayLike | None = None, **unknown: Never) -> npt.NDArray[np.int64]:
        """Return the rank of each row inside its query: 1 is best, tied rows share the smallest rank.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (rows, features)
        qid : array-like of shape (rows,), optional
            Required if the model was fitted with query ids; one constant id ranks all rows together. Without queries
            in the fit, all rows are ranked together by default.
        """
        refuse_unknown("rank", unknown)
        self._require_qid(
            qid,
            "rank was called without them; scores of different queries cannot be compared.",
            "pass qid= to rank; where the rows are all of one query, a constant such as qid=np.zeros(len(X)).",
        )
        if is_on_cluster(X):
            ranks: Any = self._cluster.ranked(self, X, qid)
            return ranks  # type: ignore[no-any-return]
        return self._ranks_of(self._scores_of(X, qid), qid)

    def _ranks_of(self, scores: Floats, qid: ArrayLike | None) -> npt.NDArray[np.int64]:
        queries = check_qid(qid, scores.shape[0])
        if scores.ndim == 1:
            return ranks_inside(scores, queries.codes)
        return np.column_stack([ranks_inside(column, queries.codes) for column in scores.T])

    def score(
        self,
        X: MatrixLike,
        y: Labels,
        qid: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        **unknown: Never,
    ) -> float:
        """Return the concordance: the share of ordered pairs inside queries that the scores order alike.

        Tied scores count one half; queries without an ordered pair are left out; queries are averaged. A
        pair weighs the product of its rows' weights. For several outputs, the mean over outputs.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (rows, features)
        y : array-like of shape (rows,) or (rows, outputs)
        qid : array-like of shape (rows,), optional
            Required if the model was fitted with query ids.
        sample_weight : array-like of shape (rows,), optional
        """
        refuse_unknown("score", unknown)
        self._require_qid(
            qid,
            "score was called without them; the result would be a global score, which means something else.",
            "pass qid= to score; inside Pipeline or GridSearchCV first call sklearn.set_config("
            "enable_metadata_routing=True), or use rankwise.model_selection.cross_validate_ranker.",
        )
        if is_on_cluster(X):
            X, y, qid, sample_weight = self._cluster.scored_data(X, y, qid, sample_weight)
        scores = np.asarray(self._scores_of(X, qid))
        labels, columns = as_array("y", y), scores[:, None] if scores.ndim == 1 else scores
        if labels.shape != scores.shape and (
            labels.size == 0 or labels.ndim == 0 or labels.reshape(labels.shape[0], -1).shape != columns.shape
        ):
            raise InvalidInputError(
                f"y has shape {labels.shape}, but the scores have shape {scores.shape}.",
                "pass one label for each row of X, and a column of labels for each output.",
            )
        per_output = [
            concordance(label, score, qid, sample_weight=sample_weight)
            for label, score in zip(labels.reshape(columns.shape).T, columns.T, strict=True)
        ]
        return float(np.mean(per_output))

    def _scores_of(self, X: MatrixLike, qid: ArrayLike | None) -> Floats:
        """Return a score for each row, for `rank` and `score`; most rankers look at one row at a time."""
        scores: Floats = self.predict(X)
        return scores

    def save(
        self, path: str | PathLike[str] | BinaryIO, *, notes: Mapping[str, object] | None = None
    ) -> None:
        """Write the fitted model to a file that `rankwise.load` reads; see `rankwise.save`.

        Parameters
        ----------
        path : path or binary stream
        notes : mapping, optional
            Anything JSON can say, kept in the header beside the model.
        """
        # Files know every estimator, so they stand in a room above; the facade leads to it.
        from rankwise.persistence import save  # noqa: PLC0415 - only who saves a model pays for it

        save(self, path, notes=notes)

    def score_pairs(self, X: MatrixLike, pairs: ArrayLike, weight: ArrayLike | None = None) -> float:
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
        if scores.ndim != 1:
            raise InvalidInputError(
                f"The model has {scores.shape[1]} outputs, and a pair is scored by one.",
                "fit one model per output, or use preference_error on a column of predict(X).",
            )
        return 1.0 - preference_error(pairs, scores, weight)

    def predict_pairs(self, X: MatrixLike, pairs: ArrayLike | MatrixLike) -> Floats:
        """Return how much the first row of each pair is preferred to the second.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (rows, features)
        pairs : array-like of int of shape (pairs, 2), or a matrix or data frame with the columns of X
            Row numbers, as `fit_pairs` takes them; or the second rows themselves, where row k of X is compared with
            row k of `pairs`.

        Returns
        -------
        ndarray of shape (pairs,)
            The difference of the scores: positive where the first is preferred, negative where the second is. After a
            fit with ``loss="logistic"`` the probability that the first is preferred.
        """
        edges = row_numbers(X, pairs)
        if edges is not None:
            scores = self.predict(X)
            checked = check_pairs(edges, scores.shape[0])
            return np.asarray(scores[checked.winner] - scores[checked.loser])
        first, second = self.predict(X), self.predict(pairs)
        if first.shape != second.shape:
            raise InvalidInputError(
                f"There are {first.shape[0]} first rows and {second.shape[0]} second ones.",
                "row k of both is pair k; or pass an integer array of shape (pairs, 2) of row numbers of X.",
            )
        return np.asarray(first - second)

    def _require_qid(self, qid: ArrayLike | None, problem: str, hint: str) -> None:
        check_is_fitted(self)
        if qid is None and self.fitted_with_qid_:
            raise MissingQueriesError(f"The model was fitted with query ids, and {problem}", hint)

    def _check_rows(self, X: MatrixLike, *, reset: bool, look_at_values: bool = True) -> Matrix:
        """Return a checked matrix; `reset` takes its columns for those of the model."""
        rows = self._read_rows(X, reset=reset)
        if rows is None:
            rows = check_rows(
                self, X, reset=reset, look_at_values=look_at_values, missing=self._takes_missing
            )
        return rows

    def _check_labelled(
        self, X: MatrixLike, y: Labels, *, reset: bool, min_rows: int = 2
    ) -> tuple[Matrix, Floats]:
        """Return a checked matrix and the labels of its rows."""
        rows = self._read_rows(X, reset=reset)
        if rows is not None:
            labels = check_labels(y, rows.shape[0])
        else:
            rows, labels = check_labelled(
                self, X, y, reset=reset, min_rows=min_rows, missing=self._takes_missing
            )
        if self._takes_outputs:
            return rows, labels
        if labels.ndim == 2 and labels.shape[1] > 1:
            raise InvalidInputError(
                f"y has {labels.shape[1]} columns, and {type(self).__name__} learns from one.",
                "fit one model per column of labels.",
            )
        return rows, column_or_1d(labels, warn=True)

    def _read_rows(self, X: MatrixLike, *, reset: bool) -> Matrix | None:
        """Return rows that scikit-learn cannot read, such as those of a cluster; None for others."""
        rows: Any = None
        if is_on_cluster(X) and not self._takes_missing:
            rows = self._cluster.check_rows(self, X, reset=reset)
        return rows  # type: ignore[no-any-return]

    @property
    def _cluster(self) -> ModuleType:
        """Return the module that handles Dask data; it is imported only when such data are passed."""
        from rankwise.distributed import boundary  # noqa: PLC0415 - an optional dependency

        return boundary

    def __sklearn_is_fitted__(self) -> bool:
        """Tell whether there is a model: a fit that was interrupted early leaves attributes and none."""
        return any(hasattr(self, name) for name in _MODELS)

    def __sklearn_tags__(self) -> Tags:
        tags: Tags = super().__sklearn_tags__()  # type: ignore[misc]  # of BaseEstimator
        tags.target_tags.required = True
        tags.target_tags.multi_output = self._takes_outputs
        tags.target_tags.single_output = True
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = self._takes_missing
        return tags
