"""Linear RankRLS that chooses its own regularisation, for little more than the price of one fit."""

from __future__ import annotations

from typing import Any, Never

import numpy as np

from rankwise.data.validation import check_choice, check_count
from rankwise.estimators.linear_rls import LinearRankRLS
from rankwise.estimators.pairwise import PreferenceRanker
from rankwise.estimators.paths import PathReader
from rankwise.estimators.refusals import refuse_unknown
from rankwise.exceptions import InvalidInputError
from rankwise.metrics import Metric, get_metric
from rankwise.problems.training import TrainingData, TrainingProblem
from rankwise.selection.closed_form import (
    ExactChoice,
    check_exact_method,
    choose_by_pairs,
    choose_by_rows,
    exact_attributes,
    is_exact,
)
from rankwise.selection.cv import (
    folds_of_pairs,
    folds_of_rows,
    groups_of_pairs,
    scoring_rows,
    scoring_share,
)
from rankwise.selection.grids import POWERS_OF_TWO, warn_of_edges
from rankwise.selection.held_out import EvalSetSystems, HeldOutSystems, PairFoldSystems, RowFoldSystems
from rankwise.selection.hold_out_plan import EXACT_CV, check_cv_parameter, plan_hold_out
from rankwise.selection.krylov_fit import warn_interrupted
from rankwise.selection.nested import check_can_nest, check_nested, nested_score, row_indexer
from rankwise.selection.reading import AVERAGING, METHODS, check_alphas, check_powers
from rankwise.selection.surface import SurfaceSearch, table_tolerance, warn_unfinished
from rankwise.selection.surface_report import surface_attributes
from rankwise.threads import one_blas_thread

__all__ = ["RankRLSCV"]

_MAX_ITER = 1000


class RankRLSCV(PathReader, PreferenceRanker, LinearRankRLS):
    """`RankRLS` with its regularisation chosen on held-out rows.

    Every alpha of the grid and every iteration of conjugate gradients share one Krylov space, so one run
    gives the validation error of them all. The three methods of the large-scale RankRLS paper are three ways
    to read that table.

    Parameters
    ----------
    alphas : array-like, default=2^-10, 2^-9, ..., 2^10
        The grid; order and duplicates do not matter. The default grid goes on where the best value lies at its end
        and still becomes better, by at most as many values again on either side; another one is taken as it is, and a
        best alpha at its end is warned of.
    cv : "auto", "leave-query-out", "leave-pair-out", int, splitter or list of (train, test), default="auto"
        Folds of whole queries, of rows where there is one ranking, or of pairs in `fit_pairs`. The two names are exact
        and take one decomposition for every alpha: each query, or each pair of rows of one global ranking, is scored
        by the converged models that did not see it. "auto" makes 5 folds; with ``method="tikhonov"`` and few columns or
        rows it is exact instead, and leaves out queries, pairs up to 2000 rows, else 10 folds of rows. Leave-pair-out
        has a closed form for every `query_weight` and any row weights, except for rows that weigh differently with ties
        left out or ``cost="relative"``, which moreover takes a decomposition for each pair of levels; where that keeps
        "auto" from it, `cv_` says so. A scikit-learn splitter must put each row into at most one test set. Not used
        where there is an `eval_set`.
    nested : bool or int, default=False
        Also estimate the score of the whole procedure, choice included, on so many outer folds (True: 5).
    scoring : str or Metric, default="pairwise_error"
        A name of `rankwise.metrics.METRICS`. Errors are minimised and gains maximised.
    method : {"auto", "hybrid", "tikhonov", "early-stopping"}, default="auto"
        "tikhonov" lets every alpha converge and chooses among them; "early-stopping" uses no penalty and chooses the
        iteration; "hybrid" chooses both, and is the fastest. "auto" is "tikhonov" where hold-out is exact, which
        knows no other, and else "hybrid".
    averaging : {"folds", "pooled"}, default="folds"
        For folds of rows of one ranking, and of pairs: average the folds' errors, or score all that was held out
        together. Pooled scores of rows are shifted so that a fold's training rows score on average what their labels
        are.
    scaling : float or list of float, default=0.0
        Penalise ``w'D^(2 scaling)w``, ``D = diag(X'LX)``, instead of ``w'w``: a prior that expects smaller
        coefficients of columns that vary much. 0 is off, 0.25 often helps on text. From a list the best is
        chosen.
    query_weight, ties, cost
        As in `RankRLS`.
    patience : int, default=10
        Stop when no cell of the table has become better for so many iterations.
    judge_rows : int, default=20000
        With folds, at most about so many held-out rows (whole queries) or pairs score each iteration; a fixed
        choice, which `cv_` names.
    tol : float, default=1e-5
        The relative residual at which an alpha has converged.
    max_iter : int, default=None
        The most iterations; by default 1000.
    random_state : int, default=0
        Seeds the folds and the choice of scoring rows.
    n_threads : int, default=None
        As in `RankRLS`.

    Attributes
    ----------
    alpha_ : float, or ndarray of shape (outputs,)
        The chosen alpha; 0 after early stopping.
    best_iteration_ : int, or ndarray of shape (outputs,)
    best_score_ : float, or ndarray of shape (outputs,)
        The value of `scoring` in the chosen cell. It is optimistic: the choice was made on the same rows.
    alphas_ : ndarray of shape (alphas,)
        The grid, in increasing order, with what came to it.
    surface_ : ndarray of shape (alphas, iterations), or (outputs, alphas, iterations)
        The value of `scoring` for every alpha after every iteration. Exact hold-out has no iterations, and so neither
        this, nor `unpenalised_`, `best_iteration_` and `keeps_basis_`.
    unpenalised_ : ndarray of shape (iterations,), or (outputs, iterations)
        The same without penalty (alpha = 0), whether or not 0 is in the grid: what early stopping reads.
    cv_errors_ : ndarray of shape (alphas,), or (alphas, outputs)
        The value of `scoring` for each alpha, at the iteration the method would choose for it.
    choices_ : dict
        For each method, the ``(alpha, iteration, value)`` it reads from the surface; a list over outputs if
        there are several. "tikhonov" is exact only where the run went on until every alpha converged.
    scaling_ : float
    method_ : str
    nested_score_ : float, or ndarray of shape (outputs,)
        Only with `nested`: the value on outer folds that took no part in the choice.
    cv_ : str
        What scored the models, in words.
    n_iter_ : int
        Iterations of the selection.
    n_products_ : int
        Products of the Hessian with a vector, in selection and refit together.
    keeps_basis_ : bool
        Whether the Krylov basis was stored; if it would not have fitted in memory, a short recurrence ran.
    coef_, n_queries_, n_pairs_, n_ignored_queries_, n_features_in_, feature_names_in_
        As in `RankRLS`; after `fit_pairs` also ``n_components_`` and ``n_unpaired_rows_``.

    Examples
    --------
    >>> import numpy as np
    >>> from rankwise import RankRLSCV
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(300, 5))
    >>> y = X[:, 0] - 2 * X[:, 1] + rng.normal(size=300)
    >>> model = RankRLSCV().fit(X, y, qid=np.arange(300) // 10)
    >>> model.surface_.shape[0]
    21
    >>> bool(model.best_score_ < 0.3)
    True
    """

    def __init__(
        self,
        alphas: Any = POWERS_OF_TWO,
        *,
        cv: Any = "auto",
        scoring: str | Metric = "pairwise_error",
        nested: Any = False,
        method: str = "auto",
        averaging: str = "folds",
        scaling: Any = 0.0,
        query_weight: str = "size",
        ties: str = "include",
        cost: str = "magnitude",
        patience: int = 10,
        judge_rows: int = 20_000,
        tol: float = 1e-5,
        max_iter: int | None = None,
        random_state: int = 0,
        n_threads: int | None = None,
    ) -> None:
        self.alphas = alphas
        self.cv = cv
        self.scoring = scoring
        self.nested = nested
        self.method = method
        self.averaging = averaging
        self.scaling = scaling
        self.query_weight = query_weight
        self.ties = ties
        self.cost = cost
        self.patience = patience
        self.judge_rows = judge_rows
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state
        self.n_threads = n_threads

    @one_blas_thread
    def fit(
        self,
        X: Any,
        y: Any,
        qid: Any = None,
        sample_weight: Any = None,
        query_importance: Any = None,
        eval_set: Any = None,
        **unknown: Never,
    ) -> RankRLSCV:
        """Choose the regularisation and fit the model.

        Parameters
        ----------
        X, y, qid, sample_weight, query_importance
            As in `RankRLS.fit`.
        eval_set : tuple (X, y) or (X, y, qid), optional
            Rows to score by, instead of folds; the model is then fitted on X, y alone.
        """
        refuse_unknown("fit", unknown)
        self._check_parameters()
        data = self._training_data(X, y, qid, sample_weight, query_importance)
        metric = get_metric(self.scoring)
        check_can_nest(self.nested, data.design, eval_set)
        if eval_set is not None:
            rows, scorers = self._eval_set(data, eval_set, metric)
            self.cv_ = f"an evaluation set of {rows.shape[0]} rows"
            self._select(data, EvalSetSystems(data, rows, scorers), refit=False)
        else:
            self._fit_held_out(data, metric)
        self._forget("nested_score_")
        if self.nested:
            self.nested_score_ = nested_score(self, data, metric, row_indexer(data.design))
        return self

    def _fit_held_out(self, data: TrainingData, metric: Metric) -> None:
        """Choose by what `cv` says, exactly or by folds in lockstep."""
        alphas = check_alphas(self.alphas)
        takes_exact, why_not = is_exact(self.cv, self.method, data, metric, alphas.size)
        if not takes_exact:
            fold, words = folds_of_rows(self.cv, data, self.random_state)
            scored, how_many = scoring_rows(data, fold, self.judge_rows, self.random_state)
            self.cv_ = words + how_many + why_not
            systems = RowFoldSystems(data, fold, scored, metric, self.averaging, self.n_threads)
            self._select(data, systems, refit=True)
            return
        plan = plan_hold_out(
            self.cv,
            data,
            metric,
            self.random_state,
            rank=min(data.design.shape),
            n_alphas=alphas.size,
            is_pooled=self.averaging == "pooled",
        )
        self.cv_ = plan.words
        choice = choose_by_rows(data, plan, metric, alphas, check_powers(self.scaling))
        self._keep_exact(choice, several=data.several_outputs)

    @one_blas_thread
    def fit_pairs(
        self,
        X: Any,
        pairs: Any,
        magnitude: Any = None,
        weight: Any = None,
        eval_set: Any = None,
        groups: Any = None,
        **unknown: Never,
    ) -> RankRLSCV:
        """Choose the regularisation and fit the model to preferences: a list of pairs instead of labels.

        `scoring` must be "pairwise_error" or "concordance". Pairs that tie (magnitude 0) train, but score nothing.

        Parameters
        ----------
        X, pairs, magnitude, weight
            As in `RankRLS.fit_pairs`.
        eval_set : tuple (X, pairs) or (X, pairs, weight), optional
            What to score by instead of folds; the pairs are row numbers of the X beside them. The model is then fitted
            on the training pairs alone.
        groups : array-like of shape (pairs,), optional
            What must not be divided between folds, such as prompts or raters; anything hashable. Without it, the folds
            that are made of a number `cv` keep all comparisons of the same two rows together. A splitter in `cv`, such
            as `rankwise.model_selection.PreferenceKFold`, splits the list of pairs, and gets the groups. Exactly and
            in turn, ``cv="leave-query-out"`` holds out each group, or without groups each connected component of the
            rows, and "leave-pair-out" all comparisons of each two rows.

        Examples
        --------
        >>> import numpy as np
        >>> from rankwise import RankRLSCV
        >>> from rankwise.model_selection import PreferenceKFold
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
        data = self._pair_data(X, pairs, magnitude, weight)
        metric = get_metric(self.scoring)
        if self.nested:
            raise InvalidInputError("nested is for labelled rows.", "use nested=False with fit_pairs.")
        systems: HeldOutSystems
        if eval_set is not None:
            rows, scorers = self._pair_eval_set(data, eval_set, metric)
            self.cv_ = f"an evaluation set of {scorers[0].winner.size} pairs"
            systems = EvalSetSystems(data, rows, scorers)
        elif isinstance(self.cv, str) and self.cv in EXACT_CV:
            group, self.cv_ = groups_of_pairs(self.cv, data, groups)
            options = (self.averaging, check_alphas(self.alphas), check_powers(self.scaling))
            return self._keep_exact(choose_by_pairs(data, group, metric, *options), several=False)
        else:
            left_out, words = folds_of_pairs(self.cv, data, groups, self.random_state)
            left_out, how_many = scoring_share(data, left_out, self.judge_rows, self.random_state)
            self.cv_ = words + how_many
            systems = PairFoldSystems(data, left_out, metric, self.averaging)
        return self._select(data, systems, refit=eval_set is None)

    def _select(self, problem: TrainingProblem, systems: HeldOutSystems, *, refit: bool) -> RankRLSCV:
        """Search under every value of `scaling`, and keep the model of the best."""
        grid = check_alphas(self.alphas)
        self.method_ = "hybrid" if self.method == "auto" else self.method
        search = SurfaceSearch.over_grid(
            problem,
            self.method_,
            grid,
            patience=self.patience,
            tol=table_tolerance(problem.design, self.method_, self.tol),
            max_iter=_MAX_ITER if self.max_iter is None else self.max_iter,
            metric=get_metric(self.scoring),
            default=POWERS_OF_TWO,
        )
        trials = search.run_all(check_powers(self.scaling), systems)
        best = min(trials, key=lambda trial: trial.error)
        self.n_products_ = sum(fit.n_products for trial in trials for fit in trial.fits)
        if refit:
            try:
                search.refit(best)
                self.n_products_ += sum({id(fit): fit.n_products for fit, _ in best.columns}.values())
            except KeyboardInterrupt:
                warn_interrupted("before the refit; the first fold's model, fitted without its rows, is kept")
        self._set(surface_attributes(search, best, grid, get_metric(self.scoring)))
        if not best.converged:
            warn_unfinished(search)
        if self.method_ != "early-stopping":
            warn_of_edges(self.alphas, self.alphas_, self.cv_errors_, get_metric(self.scoring))
        coef = best.coefficients()
        self.coef_ = np.array(coef) if problem.several_outputs else coef[0]
        self._models = best.columns
        return self

    def _keep_exact(self, choice: ExactChoice, *, several: bool) -> RankRLSCV:
        """Keep a choice by exact hold-out, which has no surface."""
        self._forget("surface_", "unpenalised_", "best_iteration_", "keeps_basis_")
        self._set(exact_attributes(choice, several=several))
        warn_of_edges(self.alphas, self.alphas_, self.cv_errors_, get_metric(self.scoring))
        self.method_, self._models = "tikhonov", []
        return self

    def _check_parameters(self) -> None:
        self._check_loss_parameters()
        check_choice("method", self.method, ("auto", *METHODS))
        check_choice("averaging", self.averaging, AVERAGING)
        check_nested(self.nested)
        get_metric(self.scoring)
        for name in ("patience", "judge_rows"):
            check_count(name, getattr(self, name), optional=False)
        check_cv_parameter(self.cv)
        check_exact_method(self.cv, self.method)
        check_alphas(self.alphas)
        check_powers(self.scaling)
