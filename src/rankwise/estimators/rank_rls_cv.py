"""Linear RankRLS that chooses its own regularisation, for little more than the price of one fit."""

from __future__ import annotations

import warnings
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from rankwise.data.validation import check_choice, check_count, check_number
from rankwise.design import Design
from rankwise.estimators.folds import check_cv, folds_of_pairs, folds_of_rows, judging_share
from rankwise.estimators.juries import EvaluationJury, Jury, PairFoldJury, RowFoldJury
from rankwise.estimators.linear_rls import LinearRankRLS
from rankwise.estimators.pairwise import PreferenceRanker
from rankwise.estimators.selection import METHODS, best_cells, check_alphas, check_powers
from rankwise.estimators.surface_search import EXACT, SurfaceSearch, Trial
from rankwise.estimators.training import TrainingProblem
from rankwise.exceptions import InvalidInputError
from rankwise.metrics import Metric, get_metric
from rankwise.pairs.graph import Floats
from rankwise.solvers.choose import choose_solver

__all__ = ["RankRLSCV"]

_GRID = tuple(2.0**power for power in range(-10, 11))
_MAX_ITER = 1000
_AVERAGING = ("folds", "pooled")


class RankRLSCV(PreferenceRanker, LinearRankRLS):
    """`RankRLS` with its regularisation chosen on held-out rows.

    Every alpha of the grid and every iteration of conjugate gradients share one Krylov space, so one run
    gives the validation error of them all. The three methods of the large-scale RankRLS paper are three ways
    to read that table.

    Parameters
    ----------
    alphas : array-like, default=2^-10, 2^-9, ..., 2^10
        The grid; order and duplicates do not matter.
    cv : "auto", int, splitter or list of (train, test), default="auto"
        Folds of whole queries, of rows where there is one ranking, or of pairs in `fit_pairs`; "auto" makes 5. A
        scikit-learn splitter must put each row into at most one test set. Not used where there is an `eval_set`.
    scoring : str or Metric, default="pairwise_error"
        A name of `rankwise.metrics.METRICS`. Errors are minimised and gains maximised.
    method : {"hybrid", "tikhonov", "early-stopping"}, default="hybrid"
        "tikhonov" lets every alpha converge and chooses among them; "early-stopping" uses no penalty and
        chooses the iteration; "hybrid" chooses both, and is the fastest.
    averaging : {"folds", "pooled"}, default="folds"
        For folds of rows of one ranking, and of pairs: average the folds' errors, or judge all that was held out
        together.
    scaling : float or list of float, default=0.0
        Penalise ``w'D^(2 scaling)w``, ``D = diag(X'LX)``, instead of ``w'w``: a prior that expects smaller
        coefficients of columns that vary much. 0 is off, 0.25 often helps on text. From a list the best is
        chosen.
    query_weight, ties, cost
        As in `RankRLS`.
    patience : int, default=10
        Stop when no cell of the table has become better for so many iterations.
    judge_rows : int, default=20000
        With folds, at most about so many held-out rows (whole queries) or pairs judge each iteration; a fixed
        choice.
    tol : float, default=1e-5
        The relative residual at which an alpha has converged.
    max_iter : int, default=None
        The most iterations; by default 1000.
    random_state : int, default=0
        Seeds the folds and the choice of judging rows.
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
        The grid, in increasing order.
    surface_ : ndarray of shape (alphas, iterations), or (outputs, alphas, iterations)
        The value of `scoring` for every alpha after every iteration.
    unpenalised_ : ndarray of shape (iterations,), or (outputs, iterations)
        The same without penalty (alpha = 0), whether or not 0 is in the grid: what early stopping reads.
    cv_errors_ : ndarray of shape (alphas,), or (alphas, outputs)
        The value of `scoring` for each alpha, at the iteration the method would choose for it.
    choices_ : dict
        For each method, the ``(alpha, iteration, value)`` it reads from the surface; a list over outputs if
        there are several. "tikhonov" is exact only where the run went on until every alpha converged.
    scaling_ : float
    cv_ : str
        What judged the models, in words.
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
        alphas: Any = _GRID,
        *,
        cv: Any = "auto",
        scoring: str | Metric = "pairwise_error",
        method: str = "hybrid",
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

    def fit(
        self,
        X: Any,
        y: Any,
        qid: Any = None,
        sample_weight: Any = None,
        query_importance: Any = None,
        eval_set: Any = None,
    ) -> RankRLSCV:
        """Choose the regularisation and fit the model.

        Parameters
        ----------
        X, y, qid, sample_weight, query_importance
            As in `RankRLS.fit`.
        eval_set : tuple (X, y) or (X, y, qid), optional
            Rows that judge, instead of folds; the model is then fitted on X, y alone.
        """
        self._check_parameters()
        data = self._training_data(X, y, qid, sample_weight, query_importance)
        metric = get_metric(self.scoring)
        jury: Jury
        if eval_set is not None:
            rows, judges = self._eval_set(data, eval_set, metric)
            self.cv_ = f"an evaluation set of {rows.shape[0]} rows"
            jury = EvaluationJury(data, rows, judges)
        else:
            fold, self.cv_ = folds_of_rows(self.cv, data, self.random_state)
            options = (self.averaging, self.judge_rows, self.random_state, self.n_threads)
            jury = RowFoldJury(data, fold, metric, *options)
        return self._select(data, jury, refit=eval_set is None)

    def fit_pairs(
        self,
        X: Any,
        pairs: Any,
        magnitude: Any = None,
        weight: Any = None,
        eval_set: Any = None,
        groups: Any = None,
    ) -> RankRLSCV:
        """Choose the regularisation and fit the model to preferences: a list of pairs instead of labels.

        `scoring` must be "pairwise_error" or "concordance". Pairs that tie (magnitude 0) train, but do not judge.

        Parameters
        ----------
        X, pairs, magnitude, weight
            As in `RankRLS.fit_pairs`.
        eval_set : tuple (X, pairs) or (X, pairs, weight), optional
            What judges, instead of folds; the pairs are row numbers of the X beside them. The model is then fitted on
            the training pairs alone.
        groups : array-like of shape (pairs,), optional
            What must not be divided between folds, such as prompts or judges; anything hashable. Without it, the folds
            that are made of a number `cv` keep all comparisons of the same two rows together. A splitter in `cv`, such
            as `rankwise.model_selection.PreferenceKFold`, splits the list of pairs, and gets the groups.

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
        self._check_parameters()
        data = self._pair_data(X, pairs, magnitude, weight)
        metric = get_metric(self.scoring)
        jury: Jury
        if eval_set is not None:
            rows, judges = self._pair_eval_set(eval_set, metric)
            self.cv_ = f"an evaluation set of {judges[0].winner.size} pairs"
            jury = EvaluationJury(data, rows, judges)
        else:
            left_out, self.cv_ = folds_of_pairs(self.cv, data, groups, self.random_state)
            left_out = judging_share(data, left_out, self.judge_rows, self.random_state)
            jury = PairFoldJury(data, left_out, metric, self.averaging)
        return self._select(data, jury, refit=eval_set is None)

    def coef_path(self, alpha: float, output: int = 0) -> Floats:
        """Return the coefficients of any alpha after every iteration, (iterations, features).

        They are formed on demand from the Krylov space of the fit, which is not saved with the model.

        Parameters
        ----------
        alpha : float
            Need not be in the grid.
        output : int, default=0
        """
        check_is_fitted(self)
        if getattr(self, "_lanes", None) is None:
            raise InvalidInputError(
                "This model was loaded or copied, and the Krylov space of its fit did not come along.",
                "call fit again, or RankRLS(alpha, solver='cg', max_iter=iteration).fit for one vector.",
            )
        check_number("alpha", alpha, minimum=0, remedy="use 0 or a positive number")
        if not isinstance(output, Integral) or not 0 <= output < len(self._lanes):
            raise InvalidInputError(
                f"output={output!r} is not one of the {len(self._lanes)} outputs.", "outputs count from 0."
            )
        fit, lane = self._lanes[output]
        return fit.path(lane, float(alpha))

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = super().__getstate__()
        return {**state, "_lanes": None} if "_lanes" in state else state

    def _select(self, problem: TrainingProblem, jury: Jury, *, refit: bool) -> RankRLSCV:
        """Search under every value of `scaling`, and keep the model of the best."""
        grid = check_alphas(self.alphas)
        search = self._search(problem, grid)
        trials = self._trials(search, jury)
        best = min(trials, key=lambda trial: trial.error)
        self.n_products_ = sum(fit.n_products for trial in trials for fit in trial.fits)
        if refit:
            try:
                search.refit(best)
                self.n_products_ += sum({id(fit): fit.n_products for fit, _ in best.lanes}.values())
            except KeyboardInterrupt:
                _warn_interrupted(
                    "before the refit; the first fold's model, fitted without its rows, is kept"
                )
        self._report(search, best, np.searchsorted(search.alphas, grid).tolist())
        coef = best.coefficients(search.alphas)
        self.coef_ = np.array(coef) if problem.several_outputs else coef[0]
        self._lanes = best.lanes
        return self

    def _trials(self, search: SurfaceSearch, jury: Jury) -> list[Trial]:
        """Search under one value of `scaling` after the other, until Ctrl-C says that it is enough."""
        trials: list[Trial] = []
        for power in check_powers(self.scaling):
            try:
                trials.append(search.run(power, jury))
            except KeyboardInterrupt:
                if not trials:
                    raise
                _warn_interrupted(f"before scaling={power:g} was judged; the best model so far is kept")
                break
            if trials[-1].was_interrupted:
                break
        return trials

    def _report(self, search: SurfaceSearch, best: Trial, grid: list[int]) -> None:
        """Set the attributes that describe the choice; `grid` holds the caller's alphas among all."""
        several = search.problem.several_outputs
        sign = (
            -1.0 if get_metric(self.scoring).greater_is_better else 1.0
        )  # tables hold errors, attributes values
        n_iter = max(len(surface.errors) for surface in best.surfaces)
        tables = np.full((len(best.surfaces), search.alphas.size, n_iter), np.nan)
        for table, surface in zip(tables, best.surfaces, strict=True):
            table[:, : len(surface.errors)] = sign * surface.table
        per_alpha = [[best_cells(self.method, [s], [i])[0].error for s in best.surfaces] for i in grid]
        choices = {
            method: [
                (float(search.alphas[cell.alpha_index]), cell.step, sign * cell.error)
                for cell in best_cells(method, best.surfaces, [0] if method == "early-stopping" else grid)
            ]
            for method in METHODS
        }

        def one_or_all(values: Any, as_type: Any) -> Any:
            return np.array(values) if several else as_type(values[0])

        self.alphas_ = search.alphas[grid]
        self.surface_ = tables[:, grid] if several else tables[0, grid]
        self.unpenalised_ = tables[:, 0] if several else tables[0, 0]
        self.cv_errors_ = sign * (np.array(per_alpha) if several else np.array(per_alpha)[:, 0])
        self.choices_ = choices if several else {method: found[0] for method, found in choices.items()}
        self.alpha_ = one_or_all([search.alphas[cell.alpha_index] for cell in best.cells], float)
        self.best_iteration_ = one_or_all([cell.step for cell in best.cells], int)
        self.best_score_ = one_or_all([sign * cell.error for cell in best.cells], float)
        self.scaling_ = best.power
        self.n_iter_ = n_iter
        self.keeps_basis_ = all(fit.keeps_basis for fit in best.fits)
        if not best.converged:
            other = "" if self.method == "hybrid" else ", or use method='hybrid'"
            warnings.warn(
                f"method={self.method!r} stopped at max_iter={search.max_iter} iterations before it was done. "
                f"Hint: raise max_iter or tol{other}.",
                ConvergenceWarning,
                stacklevel=4,
            )

    def _table_tolerance(self, design: Design) -> float:
        """Return the residual at which an alpha's column of the table may stay as it is.

        A relative residual says little where columns have very different scales: the large ones dominate it.
        Only Tikhonov on a design too wide to go on to the end needs to stop there.
        """
        runs_long = self.method == "tikhonov" and choose_solver(design) != "direct"
        return float(self.tol) if runs_long else min(float(self.tol), EXACT)

    def _search(self, problem: TrainingProblem, grid: Floats) -> SurfaceSearch:
        # 0 is always in the table, so that early stopping can be read beside the other methods.
        alphas = np.union1d([0.0], grid)
        positions = np.searchsorted(alphas, grid).tolist()
        return SurfaceSearch(
            problem,
            self.method,
            alphas,
            [0] if self.method == "early-stopping" else positions,
            patience=self.patience,
            tol=self._table_tolerance(problem.design),
            max_iter=_MAX_ITER if self.max_iter is None else self.max_iter,
        )

    def _check_parameters(self) -> None:
        self._check_loss_parameters()
        check_choice("method", self.method, METHODS)
        check_choice("averaging", self.averaging, _AVERAGING)
        get_metric(self.scoring)
        for name in ("patience", "judge_rows"):
            check_count(name, getattr(self, name), optional=False)
        check_cv(self.cv)
        check_alphas(self.alphas)
        check_powers(self.scaling)


def _warn_interrupted(what: str) -> None:
    warnings.warn(
        f"Interrupted {what}. Hint: call fit again without interrupting it for the final one.",
        ConvergenceWarning,
        stacklevel=5,
    )
