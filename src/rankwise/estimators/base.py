"""Base classes of rankers: methods of a fitted model, and `fit` and `fit_pairs`, which validate the data."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from os import PathLike
from types import ModuleType
from typing import BinaryIO, ClassVar, Never, Self

import numpy as np
import numpy.typing as npt
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted, column_or_1d

from rankwise.arrays import ArrayLike, Floats, Importance, Labels, Matrix, MatrixLike, RandomSource
from rankwise.data.containers import as_array
from rankwise.data.preferences import row_numbers
from rankwise.data.queries import ranks_inside
from rankwise.data.validation import (
    check_alphas,
    check_choice,
    check_importance,
    check_labelled,
    check_labels,
    check_pairs,
    check_qid,
    check_rows,
    check_weights,
    pairs_of_eval_set,
    read_seed,
    rows_of_eval_set,
)
from rankwise.design import Design, as_design, shifted_design
from rankwise.estimators.parameters import (
    BaseEstimator,
    check_parameters,
    estimator,
    parameter,
    refuse_unknown,
)
from rankwise.exceptions import InvalidInputError, MissingQueriesError, caller_level
from rankwise.fitting.notices import Notice
from rankwise.fitting.problem import Problem
from rankwise.metrics import Metric, concordance, preference_error
from rankwise.pairs.labelled import LabelPairs, row_scorer
from rankwise.pairs.labels import Cost, Ties
from rankwise.pairs.listed import PreferencePairs, pair_scorer
from rankwise.pairs.plan import Plan
from rankwise.runtime.threads import one_blas_thread
from rankwise.selection.grids import POWERS_OF_TWO, notices_of_edges
from rankwise.selection.plan import NAMED_CV, SCORED_ENTRIES, Exact, held_out_share, notices_of_time, plan_of
from rankwise.selection.result import WRITTEN, Selection, one_or_all, resolve_scoring

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
        """Return a score for each row of X."""

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
            return self._cluster.ranked(self, X, qid)  # type: ignore[no-any-return]
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
        labels = as_array("y", y)
        if labels.shape[:1] != scores.shape[:1] or labels.size != scores.size:
            raise InvalidInputError(
                f"y has shape {labels.shape}, but the scores have shape {scores.shape}.",
                "pass one label for each row of X, and a column of labels for each output.",
            )
        per_output = [
            concordance(label, score, qid, sample_weight=sample_weight)
            for label, score in zip(np.atleast_2d(labels.T), np.atleast_2d(scores.T), strict=True)
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
            JSON values to keep beside the model.
        """
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
        if is_on_cluster(X) and not self._takes_missing:
            return self._cluster.check_rows(self, X, reset=reset)  # type: ignore[no-any-return]
        return None

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
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = self._takes_missing
        return tags


@estimator()
class Ranker(RankingMixin, BaseEstimator):
    """The base of the estimators: everything that does not depend on how a model is found."""

    # Whether solvers end by a proved gap, which takes a penalty: alpha must not be 0.
    _has_gap: ClassVar[bool] = False
    # Where the coefficients of a model are kept, if it has some.
    _coefficients: ClassVar[str] = "coef_"

    random_state: RandomSource = parameter("random_state", np.random.Generator, default=0)
    n_threads: int | None = parameter("count", None, default=None)

    @one_blas_thread
    def fit(
        self,
        X: MatrixLike,
        y: Labels,
        qid: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        query_importance: Importance | None = None,
        eval_set: object = None,
        **unknown: Never,
    ) -> Self:
        """Fit the model; a ranker that chooses its regularisation does so first.

        Parameters
        ----------
        X : array-like, sparse matrix, data frame or LinearOperator of shape (rows, features)
            For ``kernel="precomputed"`` the kernel between all pairs of rows. Additive rankers and `AutoRanker` take
            missing values and no operator.
        y : array-like of shape (rows,) or (rows, outputs)
            Labels: grades or real-valued scores, higher is better. Additive rankers and `AutoRanker` have one output.
        qid : array-like of shape (rows,), optional
            The query of each row; anything hashable, in any order. Without it all rows form one ranking.
        sample_weight : array-like of shape (rows,), optional
            A pair weighs the product of its rows' weights: weight 2 equals duplication, 0 removal.
        query_importance : dict or array-like of shape (rows,), optional
            A factor on the weight of every pair of a query. Not for `AutoRanker`.
        eval_set : tuple (X, y) or (X, y, qid), optional
            Rows to score by. A ranker that chooses takes them instead of `cv`; early stopping, and
            ``interactions="auto"``, instead of a share of the training data. The model is fitted on X, y alone. For a
            precomputed kernel the kernel between these rows and the training rows.
        """
        self._check_call("fit", unknown, eval_set)
        try:
            problem = self._labelled(X, y, qid, sample_weight, query_importance)
            self._describe(problem.pairs.attributes, with_qid=qid is not None)
            self._learn(problem, None if eval_set is None else self._labelled_eval_set(problem, eval_set))
        finally:
            self._free_workers(X)
        return self

    @one_blas_thread
    def fit_pairs(
        self,
        X: MatrixLike,
        pairs: ArrayLike | MatrixLike | None = None,
        magnitude: ArrayLike | None = None,
        weight: ArrayLike | None = None,
        eval_set: object = None,
        groups: ArrayLike | None = None,
        **unknown: Never,
    ) -> Self:
        """Fit the model to preferences: a list of pairs instead of labels.

        Each pair weighs `weight`; `query_weight` plays no part. A pair may come several times, which adds up its
        weights, and may contradict another one, which is noise. For preferred and rejected rows as two matrices see
        `rankwise.data.stack_preferred`, for clicks `rankwise.data.pairs_from_clicks`. `scoring` must be
        "pairwise_error" or "concordance".

        Parameters
        ----------
        X : array-like, sparse matrix, data frame or LinearOperator of shape (rows, features)
        pairs : array-like of int of shape (pairs, 2)
            Row numbers of winner and loser. For `AutoRanker` also the rows that lost, a matrix or table with the
            columns of X, where row k of X won against row k of them; without it X is a table of duels, with columns
            such as ``winner_age`` and ``loser_age``.
        magnitude : float or array-like of shape (pairs,), optional
            By how much the winner is preferred, 1 by default; 0 is a tie, which metrics do not count. For
            `RankRLS` it is the wanted difference with ``cost="magnitude"``; with "unit" that is 1 for every pair that
            does not tie; with "relative" the pair also weighs ``weight / magnitude²``; ties take no part with
            ``ties="exclude"``. For `RankSVM` it is the margin of the pair, and ties take no part; not for
            ``loss="logistic"``, which has no margins.
        weight : float or array-like of shape (pairs,), optional
            How much each pair weighs, 1 by default; 0 leaves it out.
        eval_set : tuple (X, pairs) or (X, pairs, weight), optional
            Validation data, as in `fit`; the pairs are row numbers of the X beside them. By default early stopping
            holds out `validation_fraction` of the couples of rows that are compared, chosen by the content of the two
            rows and `random_state`, with all comparisons of a couple.
        groups : array-like of shape (pairs,), optional
            Groups that stay whole in the folds of a ranker that chooses, such as prompts or raters; anything
            hashable. Without it, the folds that are made of a number `cv` keep all comparisons of the same two rows
            together. A splitter in `cv`, such as `rankwise.model_selection.PreferenceKFold`, splits the list of pairs,
            and gets the groups. For least squares, exactly and in turn, ``cv="leave-query-out"`` holds out each group,
            or without groups each connected component of the rows, and "leave-pair-out" all comparisons of each two
            rows, which count alike whatever they weigh, unless ``averaging="pooled"``. With a kernel "auto" leaves out
            groups or components where there are several, with ``solver="cg"`` 5 folds of them.

        Returns
        -------
        self
            Beside the model itself, with ``n_pairs_`` (pairs that have a winner and weigh something, held out or not),
            ``n_components_`` (connected components among the rows in pairs: no pair compares rows of different
            components, whose order follows from the features alone) and ``n_unpaired_rows_`` (rows in no pair).
            ``n_queries_`` is 1: any two rows may be compared.

        Examples
        --------
        >>> import numpy as np
        >>> from rankwise import RankRLS, RankRLSCV
        >>> from rankwise.model_selection import PreferenceKFold
        >>> X = np.array([[0.0, 1.0], [1.0, 0.0], [2.0, 2.0], [0.0, 0.0], [3.0, 1.0]])
        >>> model = RankRLS(alpha=0.1).fit_pairs(X, [[1, 0], [2, 0], [4, 3]])
        >>> model.n_components_, model.score_pairs(X, [[1, 0], [2, 0], [4, 3]])
        (2, 1.0)
        >>> rng = np.random.default_rng(0)
        >>> X = rng.normal(size=(100, 5))
        >>> noisy = X[:, 0] + rng.normal(size=100)
        >>> pairs = [(i, j) for i, j in rng.integers(100, size=(500, 2)) if noisy[i] > noisy[j]]
        >>> model = RankRLSCV(cv=PreferenceKFold(3, by="items")).fit_pairs(X, pairs)
        >>> bool(model.best_score_ < 0.4)
        True
        """
        self._check_call("fit_pairs", unknown, eval_set, groups)
        try:
            problem = self._listed(X, pairs, magnitude, weight, groups)
            self._describe(problem.pairs.attributes, with_qid=False)
            self._learn(problem, None if eval_set is None else self._listed_eval_set(problem, eval_set))
        finally:
            self._free_workers(X)
        return self

    def _free_workers(self, X: MatrixLike) -> None:
        """Free the rows that a fit left on the workers of a cluster."""
        if is_on_cluster(X):
            self._cluster.release_clusters()

    @abstractmethod
    def _learn(self, problem: Problem, eval_set: Plan | None) -> None:
        """Select the hyperparameters, fit, and store the model."""

    def _check_parameters(self) -> None:
        """Raise unless arguments of `__init__` make sense."""
        check_parameters(self)
        if isinstance(getattr(self, "cv", None), str):  # which has a method split, too
            check_choice("cv", self.cv, NAMED_CV)
        if getattr(self, "alphas", None) is not None:
            check_alphas(self.alphas, positive=self._has_gap)
        resolve_scoring(getattr(self, "scoring", "auto"))
        ties, cost = self._which_pairs()
        if ties == "include" and cost == "relative":
            raise InvalidInputError(
                "cost='relative' divides by the difference of the labels, which is 0 for tied rows.",
                "set ties='exclude'.",
            )

    # --- training data on its way in ---

    def _labelled(
        self,
        X: MatrixLike,
        y: Labels,
        qid: ArrayLike | None,
        sample_weight: ArrayLike | None,
        query_importance: Importance | None,
        *,
        is_part: bool = False,
        reset: bool = True,
    ) -> Problem:
        """Pass everything through validation; a part of the data may be one row, and have neither pairs nor weight."""
        self._require_labels(y)
        if is_on_cluster(X):
            X, y, qid, sample_weight, query_importance = self._cluster.training_data(
                self, X, y, qid, sample_weight, query_importance
            )
        rows, labels = self._check_labelled(X, y, reset=reset, min_rows=1 if is_part else 2)
        queries = check_qid(qid, labels.shape[0])
        weights = check_weights(sample_weight, labels.shape[0], may_all_be_zero=is_part)
        importance = check_importance(query_importance, queries)
        design = self._design(rows)
        options = (*self._which_pairs(), self.query_weight, design.n_threads)
        pairs = LabelPairs(labels, queries, weights, importance, *options, may_be_empty=is_part)
        return Problem(design, pairs)

    def _listed(
        self,
        X: MatrixLike,
        pairs: ArrayLike | MatrixLike | None,
        magnitude: ArrayLike | None,
        weight: ArrayLike | None,
        groups: ArrayLike | None = None,
    ) -> Problem:
        """Pass listed pairs through validation, and set the attributes that describe them."""
        design = self._design(self._check_rows(X, reset=True))
        n_rows = design.shape[0]
        listed = check_pairs(pairs, n_rows, magnitude, weight)
        undivided = None
        if groups is not None:
            undivided = check_qid(groups, len(listed), name="groups", what="group", beside="pairs")
        settings = (*self._which_pairs(), undivided, design.n_threads)
        return Problem(design, PreferencePairs.listed(listed, n_rows, *settings))

    def _describe(self, attributes: Mapping[str, object], *, with_qid: bool) -> None:
        """Set the attributes that describe the pairs."""
        self._forget("n_components_", "n_unpaired_rows_")
        self.__dict__.update(attributes, fitted_with_qid_=with_qid)

    def _require_labels(self, y: Labels | None) -> None:
        """Raise unless there are labels, and the ranker learns from labels."""
        if y is None:
            raise InvalidInputError(
                f"{type(self).__name__} requires y to be passed, but the target y is None.",
                "pass the labels that the rows are to be ranked by.",
            )

    def _design(self, X: Matrix) -> Design:
        """Return the design of checked rows to train on: as they are, unless a subclass knows better."""
        return as_design(X, self.n_threads)

    def _which_pairs(self) -> tuple[Ties, Cost]:
        """Return which pairs are meant by `ties` and `cost`."""
        return self.ties, self.cost

    # --- what models are scored by ---

    @property
    def _metric(self) -> Metric:
        return resolve_scoring(getattr(self, "scoring", "auto"), getattr(self, "loss", None))

    @property
    def _looks_at_eval_set(self) -> bool:
        return hasattr(self, "cv") or bool(getattr(self, "early_stopping", False))

    def _check_call(
        self, method: str, unknown: Iterable[str], eval_set: object, groups: ArrayLike | None = None
    ) -> None:
        """Raise unless parameters make sense, and where something was passed that nothing would look at."""
        refuse_unknown(method, unknown)
        self._check_parameters()
        given = (("eval_set", eval_set, self._looks_at_eval_set), ("groups", groups, hasattr(self, "cv")))
        for name, value, is_used in given:
            if value is not None and not is_used:
                raise InvalidInputError(
                    f"{name} was passed, but is not used.",
                    "leave it out, use a ranker that chooses alpha, such as RankRLSCV, or set early_stopping=True.",
                )

    def _labelled_eval_set(self, problem: Problem, eval_set: object) -> Plan:
        """Pass rows to score by through validation."""
        rows, labels, qid = rows_of_eval_set(eval_set, with_qid=self.fitted_with_qid_)
        X, y = self._check_labelled(rows, labels, reset=False)
        columns = [y] if y.ndim == 1 else list(np.ascontiguousarray(y.T))
        if len(columns) != problem.pairs.n_outputs:
            raise InvalidInputError(
                f"eval_set has {len(columns)} outputs, but y has {problem.pairs.n_outputs}.",
                "give both the same columns of labels.",
            )
        queries, threads = check_qid(qid, y.shape[0]), problem.design.n_threads
        scorers = [row_scorer(self._metric, column, queries, threads, "eval_set") for column in columns]
        design = shifted_design(X, problem.design.shift, threads)
        return Plan.of_eval_set(design, scorers, f"an evaluation set of {y.shape[0]} rows")

    def _listed_eval_set(self, problem: Problem, eval_set: object) -> Plan:
        """Pass pairs to score by through validation."""
        rows, pairs, weight = pairs_of_eval_set(eval_set)
        X = self._check_rows(rows, reset=False)
        listed = check_pairs(pairs, X.shape[0], weight=weight)
        design = shifted_design(X, problem.design.shift, problem.design.n_threads)
        own = np.ones(len(listed)) if listed.weight is None else listed.weight
        scorer = pair_scorer(self._metric, own, (listed.winner, listed.loser), what="eval_set")
        return Plan.of_eval_set(design, [scorer], f"an evaluation set of {len(listed)} pairs")

    def _watched(self, problem: Problem, eval_set: Plan | None) -> Plan:
        """Return the validation data of early stopping: an eval set, or a share of the data."""
        if eval_set is not None:
            return eval_set
        return held_out_share(problem.pairs, self.validation_fraction, read_seed(self.random_state))

    # --- results of a fit ---

    def _keep(self, found: Selection, problem: Problem) -> None:
        """Set the models and further attributes, of which none of another fit lingers, and issue warnings."""
        several, notices = problem.pairs.several_outputs, list(found.notices)
        coef = np.ascontiguousarray(one_or_all(found.models, several))
        if not np.isfinite(coef).all():
            raise InvalidInputError(
                "The coefficients are too large for floating-point numbers.",
                "bring X, y and the weights to values around 1.",
            )
        self._forget(*WRITTEN)
        setattr(self, self._coefficients, coef)
        self.__dict__.update(found.attributes(self._metric, several=several))
        # Who has alphas chose one; unless all stopped early instead, on the way to the model of alpha = 0.
        if hasattr(self, "alphas") and any(choice.alpha > 0 for choice in found.chosen):
            default = type(self).alphas  # type: ignore[attr-defined]
            notices += notices_of_edges(self.alphas, *found.table, default)
        say(notices)

    def _forget(self, *attributes: str) -> None:
        """Delete the attributes that another kind of fit has set."""
        for name in attributes:
            self.__dict__.pop(name, None)


@estimator()
class SelectionMixin(BaseEstimator):
    """Adds the choice of alpha on held-out rows or pairs."""

    alphas: ArrayLike = POWERS_OF_TWO
    cv: object = parameter("splitter", default="auto")
    scoring: str | Metric = "pairwise_error"

    def _plan(
        self,
        problem: Problem,
        eval_set: Plan | None,
        exact: Exact | None = None,
        *,
        samples: bool = True,
        whole_components: bool = False,
    ) -> Plan:
        """Return the hold-out of a selection: an eval set, or the plan of `cv`, as `plan_of` reads it."""
        if exact is not None and getattr(self, "method", "auto") not in {"auto", "tikhonov"}:
            without_a_basis = ", or solver='cg' without a basis" if hasattr(self, "solver") else ""
            raise InvalidInputError(
                f"method={self.method!r} stops early, but the decomposition of cv={self.cv!r:.80} does not.",
                f"use method='auto'{without_a_basis}, or a number of folds.",
            )
        plan = eval_set or plan_of(
            self.cv,
            problem.pairs,
            self._metric,
            read_seed(self.random_state),
            limit=SCORED_ENTRIES if samples else None,
            exact=exact,
            whole_components=whole_components,
        )
        say(notices_of_time(plan, problem.pairs, exact))
        self.cv_ = plan.description
        return plan


def say(notices: Sequence[Notice]) -> None:
    """Issue the warnings of a fit."""
    for what, remedy, category in notices:
        warnings.warn(f"{what}. Hint: {remedy}.", category, stacklevel=caller_level())
