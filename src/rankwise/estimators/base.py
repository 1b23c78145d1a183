"""Base class of rankers: `fit` and `fit_pairs` validate the data, build a problem and fit a model to it."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import ClassVar, Never, Self

import numpy as np
from sklearn.base import BaseEstimator

from rankwise.arrays import ArrayLike, Floats, Importance, Labels, Matrix, MatrixLike, RandomSource
from rankwise.data.validation import (
    check_alphas,
    check_choice,
    check_importance,
    check_pairs,
    check_qid,
    check_weights,
    pairs_of_eval_set,
    read_seed,
    rows_of_eval_set,
)
from rankwise.design import Design, as_design, shifted_design
from rankwise.estimators.fitted import RankingMixin, is_on_cluster
from rankwise.estimators.parameters import check_parameters, estimator, parameter, refuse_unknown
from rankwise.exceptions import InvalidInputError, caller_level
from rankwise.fitting.notices import Notice
from rankwise.fitting.problem import Problem
from rankwise.metrics import Metric
from rankwise.pairs.labelled import LabelPairs, row_scorer
from rankwise.pairs.labels import Cost, Ties
from rankwise.pairs.listed import PreferencePairs, pair_scorer
from rankwise.pairs.pairs import Pairs
from rankwise.pairs.plan import Plan
from rankwise.runtime.threads import one_blas_thread
from rankwise.selection.grids import POWERS_OF_TWO, notices_of_edges
from rankwise.selection.plan import (
    NAMED_CV,
    SCORED_ENTRIES,
    Exact,
    held_out_share,
    notices_of_time,
    plan_of,
)
from rankwise.selection.result import WRITTEN, Selection, one_or_all, resolve_scoring

__all__ = ["Ranker", "say"]

# Differences below this share of the largest one dominate the relative cost.
_NEAR_TIE = 1e-4


@estimator()
class Ranker(RankingMixin, BaseEstimator):  # type: ignore[misc]
    """The base of the estimators: everything that does not depend on how a model is found."""

    # Whether solvers end by a proved gap, which takes a penalty: alpha must not be 0.
    _has_gap: ClassVar[bool] = False
    # Where the coefficients of a model are kept, if it has some.
    _coefficients: ClassVar[str] = "coef_"
    # Whether folds of pairs that nobody named divide no connected component of the rows.
    _whole_components: ClassVar[bool] = False
    # The default of `alphas`, for those who choose.
    _grid: ClassVar[tuple[float, ...]] = POWERS_OF_TWO

    random_state: RandomSource = parameter("random_state", np.random.Generator, default=0)
    n_threads: int | None = None

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
        refuse_unknown("fit", unknown)
        self._check_parameters()
        self._refuse_unused(eval_set)
        try:
            problem = self._labelled(X, y, qid, sample_weight, query_importance)
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
            By how much the winner is preferred, 1 by default; 0 says that the two tie, which scores nothing. For
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
            ``n_components_`` (connected components among the rows in pairs: how rows of different components compare
            was never said, and follows from the features alone) and ``n_unpaired_rows_`` (rows in no pair).
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
        refuse_unknown("fit_pairs", unknown)
        self._check_parameters()
        self._refuse_unused(eval_set, groups)
        try:
            problem = self._listed(X, pairs, magnitude, weight, groups)
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
    ) -> Problem:
        """Pass everything through validation, and set the attributes that describe it."""
        self._require_labels(y)
        if is_on_cluster(X):
            X, y, qid, sample_weight, query_importance = self._cluster.training_data(
                self, X, y, qid, sample_weight, query_importance
            )
        rows, labels = self._check_labelled(X, y, reset=True)
        queries = check_qid(qid, labels.shape[0])
        weights = check_weights(sample_weight, labels.shape[0]), check_importance(query_importance, queries)
        design = self._design(rows)
        ties, cost = self._which_pairs()
        pairs = LabelPairs(labels, queries, *weights, ties, cost, self.query_weight, design.n_threads)
        problem = Problem(design, pairs)
        self._describe(problem, with_qid=qid is not None)
        return problem

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
        problem = Problem(design, PreferencePairs.listed(listed, n_rows, *settings))
        self._describe(problem, with_qid=False)
        return problem

    def _describe(self, problem: Problem, *, with_qid: bool) -> None:
        self._forget("n_components_", "n_unpaired_rows_")
        self.__dict__.update(problem.pairs.attributes, fitted_with_qid_=with_qid)
        if self._which_pairs()[1] == "relative":
            _warn_of_near_ties(problem.pairs)

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

    def _refuse_unused(self, eval_set: object, groups: ArrayLike | None = None) -> None:
        """Raise where something was passed that nothing would look at."""
        if eval_set is not None and not self._looks_at_eval_set:
            stop = "set early_stopping=True, or " if hasattr(self, "early_stopping") else ""
            raise InvalidInputError(
                "eval_set was passed, but is not used.",
                f"{stop}use a ranker that chooses alpha on it, such as RankRLSCV.",
            )
        if groups is not None and not hasattr(self, "cv"):
            raise InvalidInputError(
                "groups was passed, but there are no folds.",
                "leave it out, or use a ranker that chooses alpha on folds, such as RankRLSCV.",
            )

    def _labelled_eval_set(self, problem: Problem, eval_set: object) -> Plan:
        """Pass rows to score by through validation."""
        rows, labels, qid = rows_of_eval_set(eval_set, with_qid=self.fitted_with_qid_)
        X, y = self._check_labelled(rows, labels, reset=False)
        given = 1 if y.ndim == 1 else y.shape[1]
        if given != problem.pairs.n_outputs:
            raise InvalidInputError(
                f"eval_set has {given} outputs, but y has {problem.pairs.n_outputs}.",
                "give both the same columns of labels.",
            )
        queries, threads = check_qid(qid, y.shape[0]), problem.design.n_threads
        columns = [y] if y.ndim == 1 else list(np.ascontiguousarray(y.T))
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

    def _plan(self, problem: Problem, eval_set: Plan | None, exact: Exact | None = None) -> Plan:
        """Return the hold-out of a selection: an eval set, or the plan of `cv`, exact if there is a decomposition."""
        if eval_set is not None:
            return eval_set
        plan = plan_of(
            self.cv,
            problem.pairs,
            self._metric,
            read_seed(self.random_state),
            limit=SCORED_ENTRIES,
            exact=exact,
            whole_components=self._whole_components,
        )
        say(notices_of_time(plan, problem.pairs, exact))
        return plan

    # --- results of a fit ---

    def _keep(self, best: Selection, problem: Problem, beside: Selection | None = None) -> None:
        """Set the fitted attributes of a selection, optionally with further tables, and issue its warnings."""
        written, several = best if beside is None else beside, problem.pairs.several_outputs
        attributes, notices = written.attributes(self._metric, several=several), list(best.notices)
        # Who has alphas chose one; unless all stopped early instead, on the way to the model of alpha = 0.
        if hasattr(self, "alphas") and any(choice.alpha > 0 for choice in best.chosen):
            notices += notices_of_edges(self.alphas, *best.table, self._grid)
        self._keep_models(written.models, attributes, problem)
        say(notices)

    def _keep_models(
        self, models: Sequence[Floats], attributes: Mapping[str, object], problem: Problem
    ) -> None:
        """Set the coefficients of every output and further attributes; nothing of another fit lingers there."""
        coef = np.ascontiguousarray(one_or_all(models, problem.pairs.several_outputs))
        if not np.isfinite(coef).all():
            raise InvalidInputError(
                "The coefficients are too large for floating-point numbers.",
                "bring X, y and the weights to values around 1.",
            )
        self._forget(*WRITTEN)
        setattr(self, self._coefficients, coef)
        self.__dict__.update(attributes)

    def _forget(self, *attributes: str) -> None:
        """Delete the attributes that another kind of fit has set."""
        for name in attributes:
            self.__dict__.pop(name, None)


def _warn_of_near_ties(pairs: Pairs) -> None:
    """Say it where the relative cost is all about a few small differences."""
    parts, (what, by, which) = pairs.near_ties()
    for differences in parts:
        if differences.size and differences.min() < _NEAR_TIE * differences.max():
            seen = (
                f"{what} only {differences.min():.3g} weigh 1/{by}² in cost='relative' and dominate the fit"
            )
            say([Notice(seen, f"round the {which}, or use cost='magnitude'", UserWarning)])


def say(notices: Sequence[Notice]) -> None:
    """Issue the warnings of a fit."""
    for what, remedy, category in notices:
        warnings.warn(f"{what}. Hint: {remedy}.", category, stacklevel=caller_level())
