"""What all rankers share: input through validation, scores, ranks, and the score of the scores."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Never

import numpy as np
import numpy.typing as npt
import scipy.sparse
import scipy.sparse.linalg
import scipy.stats
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted, validate_data

import rankwise
from rankwise.arrays import Floats
from rankwise.data.containers import (
    check_magnitude,
    check_not_tiny,
    check_total,
    is_moderate,
    is_plain,
    unmasked,
)
from rankwise.data.queries import Queries
from rankwise.data.store.mapped import MappedMatrix
from rankwise.data.validation import check_qid, check_weights
from rankwise.design import Design, comparing_design
from rankwise.estimators.refusals import in_our_words, refuse_unknown
from rankwise.exceptions import InvalidInputError, MissingQueriesError
from rankwise.metrics import concordance

__all__ = ["Ranker"]

# Larger weights leave less room for the squares of columns.
_MUCH_WEIGHT = 1e8


class Ranker(BaseEstimator):  # type: ignore[misc]
    """The base of the estimators: everything that does not depend on how a model is found."""

    # qid is requested by default, so that one `qid=` reaches every ranker inside a pipeline or a search.
    __metadata_request__fit: ClassVar[dict[str, bool]] = {"qid": True}
    __metadata_request__score: ClassVar[dict[str, bool]] = {"qid": True}

    # Whether columns are multiplied with each other whatever alpha is, so that they must not vanish.
    _squares_columns: ClassVar[bool] = True

    fitted_with_qid_: bool
    n_queries_: int
    n_pairs_: Any  # one number, or one per output
    n_ignored_queries_: Any

    def predict(self, X: Any) -> Floats:
        """Return a score for each row of X: higher is better.

        Only differences between rows of one query mean anything.

        Parameters
        ----------
        X : array-like, sparse matrix, data frame or LinearOperator of shape (rows, features)

        Returns
        -------
        scores : ndarray of shape (rows,), or (rows, outputs) for several outputs
        """
        raise NotImplementedError

    def rank(self, X: Any, qid: Any = None, **unknown: Never) -> npt.NDArray[np.int64]:
        """Return the rank of each row inside its query: 1 is best, tied rows share the smallest rank.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (rows, features)
        qid : array-like of shape (rows,), optional
            Required if the model was fitted with query ids; one constant id ranks all rows together. Without queries
            in the fit, all rows are ranked together by default.
        """
        refuse_unknown("rank", unknown)
        check_is_fitted(self)
        if qid is None and self.fitted_with_qid_:
            raise MissingQueriesError(
                "The model was fitted with query ids, and rank was called without them; scores of different queries "
                "cannot be compared.",
                "pass qid= to rank; where the rows are all of one query, a constant such as qid=np.zeros(len(X)).",
            )
        scores = self._scores(X, qid)
        queries = check_qid(qid, scores.shape[0])
        if scores.ndim == 1:
            return _ranks(scores, queries)
        return np.column_stack([_ranks(column, queries) for column in scores.T])

    def score(self, X: Any, y: Any, qid: Any = None, sample_weight: Any = None, **unknown: Never) -> float:
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
        check_is_fitted(self)
        if qid is None and self.fitted_with_qid_:
            raise MissingQueriesError(
                "The model was fitted with query ids, and score was called without them; the result would "
                "be a global score, which means something else.",
                "pass qid= to score; inside Pipeline or GridSearchCV first call "
                "sklearn.set_config(enable_metadata_routing=True), or use "
                "rankwise.model_selection.cross_validate_ranker.",
            )
        scores = self._scores(X, qid)
        labels = np.asarray(unmasked("y", y))
        columns = scores.reshape(scores.shape[0], -1)
        if labels.shape != scores.shape and labels.reshape(labels.shape[0], -1).shape != columns.shape:
            raise InvalidInputError(
                f"y has shape {labels.shape}, but the scores have shape {scores.shape}.",
                "pass one label for each row of X, and a column of labels for each output.",
            )
        per_output = [
            concordance(label, score, qid, sample_weight=sample_weight)
            for label, score in zip(labels.reshape(columns.shape).T, columns.T, strict=True)
        ]
        return float(np.mean(per_output))

    def _scores(self, X: Any, qid: Any) -> Floats:
        """Return a score for each row, for `rank` and `score`; most rankers look at one row at a time."""
        return self.predict(X)

    def save(self, file: Any, *, notes: Mapping[str, Any] | None = None) -> None:
        """Write the fitted model to a file that `rankwise.load` reads; see `rankwise.save`.

        Parameters
        ----------
        file : path or binary stream
        notes : mapping, optional
            Anything JSON can say, kept in the header beside the model.
        """
        # Files know every estimator, so they stand in a room above; the facade leads to it.
        rankwise.save(self, file, notes=notes)

    def _design(self, X: Any) -> Design:
        """Return the design of checked rows to train on."""
        return comparing_design(X, self.n_threads)

    def _check_fit_input(
        self, X: Any, y: Any, qid: Any, sample_weight: Any
    ) -> tuple[Any, Floats, Queries, Floats | None]:
        """Pass training data through validation."""
        if y is None:
            raise InvalidInputError(
                f"{type(self).__name__} requires y to be passed, but the target y is None.",
                "pass the labels that the rows are to be ranked by.",
            )
        X, y = self._check_matrix(X, y, reset=True)
        n_rows = X.shape[0]
        queries = check_qid(qid, n_rows)
        row_weight = check_weights(sample_weight, n_rows)
        if row_weight is not None:
            total, largest = float(row_weight.sum()), float(row_weight.max())
            check_total("y times sample_weight", total * _largest(y), "use labels and weights around 1.")
            if largest > _MUCH_WEIGHT and not isinstance(X, scipy.sparse.linalg.LinearOperator):
                check_magnitude(X, float(np.sqrt(_MUCH_WEIGHT / largest)))
        return X, y, queries, row_weight

    def _set(self, attributes: Mapping[str, Any]) -> None:
        """Set what a fit says about itself."""
        for name, value in attributes.items():
            setattr(self, name, value)

    def _forget(self, *attributes: str) -> None:
        """Drop what another kind of fit set, so that it does not linger beside this one."""
        for name in attributes:
            self.__dict__.pop(name, None)

    def _check_matrix(
        self, X: Any, y: Any = None, *, reset: bool, min_rows: int = 2, look_at_values: bool = True
    ) -> Any:
        X, y = unmasked("X", X), unmasked("y", y)
        if isinstance(X, scipy.sparse.linalg.LinearOperator):
            return self._check_operator(X, y, reset=reset)
        if reset and is_plain(X, y, min_rows):
            self.n_features_in_ = X.shape[1]
            self._forget("feature_names_in_")
            if self._squares_columns:
                check_not_tiny(X)
            return X, _check_label_size(y.astype(np.float64, copy=False))
        options: dict[str, Any] = {
            "accept_sparse": "csr",
            "accept_large_sparse": True,
            "dtype": (np.float64, np.float32),
            "reset": reset,
        }
        # What is on disk is known since it was written; looking again is a pass over the disk.
        on_disk = isinstance(X, MappedMatrix) and X.is_on_disk
        moderate = X.is_finite if on_disk else look_at_values and is_moderate(X)
        if moderate or not look_at_values:
            options["ensure_all_finite"] = False
        if y is not None:
            options.update(multi_output=True, y_numeric=True, ensure_min_samples=min_rows)
        try:
            with np.errstate(invalid="ignore"):  # scikit-learn adds up numbers, which may be very large
                checked = validate_data(self, X, **({} if y is None else {"y": y}), **options)
            X, y = (checked, None) if y is None else (checked[0], np.asarray(checked[1], dtype=np.float64))
        except ValueError as error:
            fitted = () if reset else getattr(self, "feature_names_in_", ())
            raise in_our_words(error, X, fitted) from error
        if (reset or y is not None) and not moderate and not on_disk:
            check_magnitude(X)
        if reset and self._squares_columns:
            check_not_tiny(X)
        return X if y is None else (X, _check_label_size(y))

    def _check_operator(self, X: Any, y: Any, *, reset: bool) -> Any:
        if reset:
            self.n_features_in_ = int(X.shape[1])
        elif X.shape[1] != self.n_features_in_:
            raise InvalidInputError(
                f"X has {X.shape[1]} columns, but the model was fitted with {self.n_features_in_}.",
                "score rows that have the columns of the training data.",
            )
        if y is None:
            return X
        try:
            labels = np.asarray(y, dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise InvalidInputError(
                f"y must be numbers ({error}).", "encode grades as numbers first."
            ) from error
        if labels.ndim not in {1, 2} or labels.shape[0] != X.shape[0] or not np.isfinite(labels).all():
            raise InvalidInputError(
                f"y must hold one finite number a row ({X.shape[0]}), got shape {labels.shape}.",
                "drop rows whose label is missing.",
            )
        return X, _check_label_size(labels)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.target_tags.multi_output = True
        tags.target_tags.single_output = True
        tags.input_tags.sparse = True
        return tags


def _ranks(scores: Floats, queries: Queries) -> npt.NDArray[np.int64]:
    order = np.lexsort((-scores, queries.codes))
    start_of_query = queries.offsets[queries.codes[order]]
    position = np.arange(order.size) - start_of_query
    tied = np.zeros(order.size, dtype=np.bool_)
    tied[1:] = (scores[order[1:]] == scores[order[:-1]]) & (position[1:] > 0)
    first_of_tie = np.maximum.accumulate(np.where(tied, 0, np.arange(order.size)))
    ranks = np.empty(order.size, dtype=np.int64)
    ranks[order] = first_of_tie - start_of_query + 1
    return ranks


def _largest(y: Floats) -> float:
    return max(float(y.max(initial=0.0)), -float(y.min(initial=0.0)))


def _check_label_size(y: Floats) -> Floats:
    check_total(
        "y",
        _largest(y),
        "divide y by a constant; if the number stands for a missing label, drop the rows that have it.",
    )
    return y
