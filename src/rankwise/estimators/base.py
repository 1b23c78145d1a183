"""What all rankers share: labels and pairs through validation, scores, ranks, and the score of the scores."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from os import PathLike
from typing import Any, BinaryIO, ClassVar, Never

import numpy as np
import numpy.typing as npt
import scipy.sparse.linalg
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from rankwise.arrays import ArrayLike, Floats, Labels, Matrix, MatrixLike
from rankwise.data.containers import check_magnitude, check_total, is_on_cluster, unmasked
from rankwise.data.matrices import check_labelled, check_labels, check_rows, largest
from rankwise.data.preferences import check_pairs
from rankwise.data.queries import ranks_inside
from rankwise.data.validation import check_importance, check_qid, check_weights, check_weights_of_queries
from rankwise.design import Design, as_design
from rankwise.estimators.refusals import refuse_unknown, warn_of_near_ties
from rankwise.exceptions import InvalidInputError, MissingQueriesError, NoPairsError
from rankwise.metrics import Metric, concordance, preference_error
from rankwise.pairs.labels import Cost, Ties
from rankwise.pairs.preferences import preference_graph
from rankwise.problems.training import PairData, TrainingData, TrainingProblem
from rankwise.selection.result import WRITTEN, Selection, one_or_all
from rankwise.selection.scorers import EvalSet, pair_eval_set, row_eval_set

__all__ = ["Ranker"]

# What holds the model of a fit, whichever class it is of.
_MODELS = ("coef_", "dual_coef_", "values_", "best_estimator_")
# Larger weights leave less room for the squares of columns.
_MUCH_WEIGHT = 1e8

Importance = Mapping[Any, float] | ArrayLike


class Ranker(BaseEstimator, ABC):  # type: ignore[misc]
    """The base of the estimators: everything that does not depend on how a model is found."""

    # qid is requested by default, so that one `qid=` reaches every ranker inside a pipeline or a search.
    __metadata_request__fit: ClassVar[dict[str, bool]] = {"qid": True}
    __metadata_request__score: ClassVar[dict[str, bool]] = {"qid": True}

    # Whether columns are multiplied with each other whatever alpha is, so that they must not vanish.
    _squares_columns: ClassVar[bool] = True
    # Whether columns are multiplied by anything at all, so that they must not be too large.
    _multiplies_columns: ClassVar[bool] = True
    # Where the coefficients of a model are kept, if it has some.
    _coefficients: ClassVar[str] = "coef_"
    # Whether X may be rows of a Dask cluster.
    _takes_clusters: ClassVar[bool] = False

    n_features_in_: int
    feature_names_in_: npt.NDArray[np.object_]
    n_iter_: int
    solver_: str
    fitted_with_qid_: bool
    n_queries_: int
    n_pairs_: int | npt.NDArray[np.int64]
    n_ignored_queries_: int | npt.NDArray[np.int64]

    @abstractmethod
    def predict(self, X: MatrixLike) -> Floats:
        """Return a score for each row of X: higher is better."""

    @abstractmethod
    def _check_parameters(self) -> None:
        """Raise unless the arguments of `__init__` make sense."""

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
        labels, columns = np.asarray(unmasked("y", y)), scores.reshape(scores.shape[0], -1)
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

    def _scores_of(self, X: MatrixLike, qid: ArrayLike | None) -> Floats:
        """Return a score for each row, for `rank` and `score`; most rankers look at one row at a time."""
        scores: Floats = self.predict(X)
        return scores

    def save(
        self, file: str | PathLike[str] | BinaryIO, *, notes: Mapping[str, object] | None = None
    ) -> None:
        """Write the fitted model to a file that `rankwise.load` reads; see `rankwise.save`.

        Parameters
        ----------
        file : path or binary stream
        notes : mapping, optional
            Anything JSON can say, kept in the header beside the model.
        """
        # Files know every estimator, so they stand in a room above; the facade leads to it.
        from rankwise.persistence import save  # noqa: PLC0415 - only who saves a model pays for it

        save(self, file, notes=notes)

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
        return 1.0 - preference_error(scores, pairs, weight)

    def predict_pairs(self, X_a: MatrixLike, X_b: MatrixLike) -> Floats:
        """Return how much each row of `X_a` is preferred to the same row of `X_b`.

        Parameters
        ----------
        X_a, X_b : array-like, sparse matrix or data frame of shape (pairs, features)

        Returns
        -------
        ndarray of shape (pairs,)
            The difference of the scores: positive where A is preferred, negative where B is. After a fit with
            ``loss="logistic"`` the probability that A is preferred.
        """
        scores_a, scores_b = self.predict(X_a), self.predict(X_b)
        if scores_a.shape != scores_b.shape:
            raise InvalidInputError(
                f"X_a has {scores_a.shape[0]} rows and X_b has {scores_b.shape[0]}.",
                "row k of both is pair k; to compare one row with many, repeat it.",
            )
        difference: Floats = scores_a - scores_b
        return difference

    def _require_qid(self, qid: ArrayLike | None, problem: str, hint: str) -> None:
        check_is_fitted(self)
        if qid is None and self.fitted_with_qid_:
            raise MissingQueriesError(f"The model was fitted with query ids, and {problem}", hint)

    # --- training data on its way in ---

    def _design(self, X: Matrix) -> Design:
        """Return the design of checked rows to train on: as they are, unless a subclass knows better."""
        return as_design(X, self.n_threads)

    def _which_pairs(self) -> tuple[Ties, Cost]:
        """Return which pairs are meant by `ties` and `cost`."""
        return self.ties, self.cost

    def _training_data(
        self,
        X: MatrixLike,
        y: Labels,
        qid: ArrayLike | None,
        sample_weight: ArrayLike | None,
        query_importance: Importance | None,
    ) -> TrainingData:
        """Pass everything through validation, and set the attributes that describe it."""
        self._forget("n_components_", "n_unpaired_rows_")
        self._require_labels(y)
        if is_on_cluster(X):
            X, y, qid, sample_weight, query_importance = self._cluster.training_data(
                self, X, y, qid, sample_weight, query_importance
            )
        checked, labels = self._check_labelled(X, y, reset=True)
        n_rows = labels.shape[0]
        queries = check_qid(qid, n_rows)
        row_weight = check_weights(sample_weight, n_rows)
        if row_weight is not None:
            total, most = float(row_weight.sum()), float(row_weight.max())
            check_total("y times sample_weight", total * largest(labels), "use labels and weights around 1.")
            is_matrix = not isinstance(checked, scipy.sparse.linalg.LinearOperator) and not is_on_cluster(X)
            if most > _MUCH_WEIGHT and self._multiplies_columns and is_matrix:
                check_magnitude(checked, float(np.sqrt(_MUCH_WEIGHT / most)))
        if self.query_weight == "equal":
            check_weights_of_queries(row_weight, queries)
        importance = check_importance(query_importance, queries)
        ties, cost = self._which_pairs()
        pairs = (ties, cost, self.query_weight)
        data = TrainingData(self._design(checked), labels, queries, row_weight, importance, *pairs)
        if cost == "relative":
            for levels in data.levels:
                gaps = np.diff(levels.value)[levels.query[1:] == levels.query[:-1]]
                warn_of_near_ties(gaps, "Labels that differ by", "difference", "labels")
        self.fitted_with_qid_, self.n_queries_ = qid is not None, len(queries)
        several = data.several_outputs
        ignored = [int((~levels.ordered).sum()) for levels in data.levels]
        self.n_pairs_ = one_or_all([int(levels.n_pairs) for levels in data.levels], several)
        self.n_ignored_queries_ = one_or_all(ignored, several)
        return data

    def _pair_data(
        self, X: MatrixLike, pairs: ArrayLike, magnitude: ArrayLike | None, weight: ArrayLike | None
    ) -> PairData:
        """Pass listed pairs through validation, and set the attributes that describe them."""
        design = self._design(self._check_rows(X, reset=True))
        listed = check_pairs(pairs, design.shape[0], magnitude, weight)
        ties, cost = self._which_pairs()
        if cost == "relative" and listed.magnitude is not None:
            positive = listed.magnitude[listed.magnitude > 0]
            warn_of_near_ties(positive, "Pairs of a magnitude of", "magnitude", "magnitudes")
        graph = preference_graph(
            listed.winner,
            listed.loser,
            design.shape[0],
            magnitude=listed.magnitude,
            weight=listed.weight,
            ties=ties,
            cost=cost,
            n_threads=design.n_threads,
        )
        if graph.n_pairs == 0:
            raise NoPairsError(
                "Every pair that weighs something is a tie (magnitude 0), so nothing says which row is better.",
                "pass at least one pair with a positive magnitude and weight.",
            )
        self.n_pairs_, self.n_components_ = graph.n_pairs, graph.n_components
        self.n_unpaired_rows_ = graph.n_unpaired_rows
        self.n_queries_, self.n_ignored_queries_, self.fitted_with_qid_ = 1, 0, False
        return PairData(design, listed, graph)

    def _eval_set(self, data: TrainingProblem, eval_set: object, metric: Metric) -> EvalSet:
        """Pass rows or pairs to score by through validation."""
        if isinstance(data, PairData):
            return pair_eval_set(eval_set, data, metric, self._check_rows)
        return row_eval_set(eval_set, data, metric, self._check_labelled, with_qid=self.fitted_with_qid_)

    # --- what a fit leaves ---

    def _write(self, selection: Selection, metric: Metric, *, several: bool) -> None:
        """Set the attributes of a selection and of its models; nothing of another one lingers beside them."""
        self._forget(*WRITTEN)
        self._keep_models(selection.models, several=several)
        self._set(selection.attributes(metric, several=several))

    def _keep_models(self, models: Sequence[Floats], *, several: bool) -> None:
        """Keep the coefficients of every output."""
        setattr(self, self._coefficients, np.ascontiguousarray(one_or_all(models, several)))

    def _store(self, parameters: Mapping[str, object]) -> None:
        """Keep the arguments of `__init__` as they are, under their names."""
        self._set({name: value for name, value in parameters.items() if name != "self"})

    def _set(self, attributes: Mapping[str, object]) -> None:
        """Set what a fit says about itself."""
        for name, value in attributes.items():
            setattr(self, name, value)

    def _forget(self, *attributes: str) -> None:
        """Drop what another kind of fit set, so that it does not linger beside this one."""
        for name in attributes:
            self.__dict__.pop(name, None)

    # --- matrices and labels through validation ---

    def _require_labels(self, y: Labels | None) -> None:
        if y is None:
            raise InvalidInputError(
                f"{type(self).__name__} requires y to be passed, but the target y is None.",
                "pass the labels that the rows are to be ranked by.",
            )

    @property
    def _cluster(self) -> Any:
        """What knows about Dask; nobody imports it before Dask data arrive."""
        from rankwise.distributed import boundary  # noqa: PLC0415 - an optional dependency

        return boundary

    def _check_rows(self, X: MatrixLike, *, reset: bool, look_at_values: bool = True) -> Matrix:
        """Return a checked matrix; `reset` takes its columns for those of the model."""
        if is_on_cluster(X):
            return self._cluster.check_rows(self, X, reset=reset)  # type: ignore[no-any-return]
        may_vanish = not self._squares_columns
        return check_rows(self, X, reset=reset, look_at_values=look_at_values, may_vanish=may_vanish)

    def _check_labelled(
        self, X: MatrixLike, y: Labels, *, reset: bool, min_rows: int = 2
    ) -> tuple[Matrix, Floats]:
        """Return a checked matrix and the labels of its rows."""
        if is_on_cluster(X):
            rows: Any = self._cluster.check_rows(self, X, reset=reset)
            return rows, check_labels(y, rows.shape[0])
        may_vanish = not self._squares_columns
        return check_labelled(self, X, y, reset=reset, min_rows=min_rows, may_vanish=may_vanish)

    def __sklearn_is_fitted__(self) -> bool:
        """Tell whether there is a model: a fit that was interrupted early leaves attributes and none."""
        return any(hasattr(self, name) for name in _MODELS)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.target_tags.multi_output = True
        tags.target_tags.single_output = True
        tags.input_tags.sparse = True
        return tags
