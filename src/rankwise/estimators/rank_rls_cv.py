"""Linear RankRLS that chooses its own regularisation, for little more than the price of one fit."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from rankwise.data.validation import check_choice, check_count
from rankwise.estimators.folds import check_cv, deal_cv
from rankwise.estimators.linear_rls import LinearRankRLS
from rankwise.estimators.selection import METHODS, best_cells, check_alphas
from rankwise.estimators.surface_search import SurfaceSearch, Trial
from rankwise.estimators.training import TrainingData
from rankwise.exceptions import InvalidInputError
from rankwise.metrics import Metric, get_metric
from rankwise.pairs.graph import Floats

__all__ = ["RankRLSCV"]

_GRID = tuple(2.0**power for power in range(-10, 11))
_MAX_ITER = 1000
_AVERAGING = ("folds", "pooled")


class RankRLSCV(LinearRankRLS):
    """`RankRLS` with its regularisation chosen on held-out rows.

    Every alpha of the grid and every iteration of conjugate gradients share one Krylov space, so one run
    gives the validation error of them all. The three methods of the large-scale RankRLS paper are three ways
    to read that table.

    Parameters
    ----------
    alphas : array-like, default=2^-10, 2^-9, ..., 2^10
        The grid; order and duplicates do not matter.
    cv : "auto", int or splitter, default="auto"
        Folds of whole queries, or of rows where there is one ranking; "auto" makes 5. A scikit-learn splitter
        must put each row into at most one test set. Not used where `fit` gets an `eval_set`.
    scoring : str or Metric, default="pairwise_error"
        A name of `rankwise.metrics.METRICS`. Errors are minimised and gains maximised.
    method : {"hybrid", "tikhonov", "early-stopping"}, default="hybrid"
        "tikhonov" lets every alpha converge and chooses among them; "early-stopping" uses no penalty and
        chooses the iteration; "hybrid" chooses both, and is the fastest.
    averaging : {"folds", "pooled"}, default="folds"
        For folds of rows of one ranking: average the folds' errors, or rank all held-out rows together.
    scaling : float or list of float, default=0.0
        Penalise ``w'D^(2 scaling)w``, ``D = diag(X'LX)``, instead of ``w'w``: a prior that expects smaller
        coefficients of columns that vary much. 0 is off, 0.25 often helps on text. From a list the best is
        chosen.
    query_weight, ties, cost
        As in `RankRLS`.
    patience : int, default=10
        Stop when no cell of the table has become better for so many iterations.
    judge_rows : int, default=20000
        With folds, at most about so many held-out rows judge each iteration (whole queries; a fixed choice).
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
        As in `RankRLS`.

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
        powers = self._check_parameters()
        grid = check_alphas(self.alphas)
        data = self._training_data(X, y, qid, sample_weight, query_importance)
        search = self._search(data, grid)
        if eval_set is not None:
            rows, judges = self._eval_set(data, eval_set, search.metric)
            self.cv_ = f"an evaluation set of {rows.shape[0]} rows"
            trials = [search.judged_by_rows(power, rows, judges) for power in powers]
        else:
            fold, self.cv_ = deal_cv(self.cv, data, self.random_state)
            trials = [search.judged_by_folds(power, fold) for power in powers]
        best = min(trials, key=lambda trial: trial.error)
        self.n_products_ = sum(fit.n_products for trial in trials for fit in trial.fits)
        if eval_set is None:
            search.refit(best)
            self.n_products_ += sum({id(fit): fit.n_products for fit, _ in best.lanes}.values())
        self._report(search, best, np.searchsorted(search.alphas, grid).tolist())
        coef = best.coefficients(search.alphas)
        self.coef_ = np.array(coef) if data.several_outputs else coef[0]
        self._lanes = best.lanes
        return self

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
        fit, lane = self._lanes[output]
        return fit.path(lane, float(alpha))

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = super().__getstate__()
        return {**state, "_lanes": None} if "_lanes" in state else state

    def _report(self, search: SurfaceSearch, best: Trial, grid: list[int]) -> None:
        """Set the attributes that describe the choice; `grid` holds the caller's alphas among all."""
        several = search.data.several_outputs
        sign = -1.0 if search.metric.greater_is_better else 1.0  # tables hold errors, attributes values
        n_iter = max(len(surface.errors) for surface in best.surfaces)
        tables = np.full((len(best.surfaces), len(grid), n_iter), np.nan)
        for table, surface in zip(tables, best.surfaces, strict=True):
            table[:, : len(surface.errors)] = sign * surface.table[grid]
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
        self.surface_ = tables if several else tables[0]
        self.cv_errors_ = sign * (np.array(per_alpha) if several else np.array(per_alpha)[:, 0])
        self.choices_ = choices if several else {method: found[0] for method, found in choices.items()}
        self.alpha_ = one_or_all([search.alphas[cell.alpha_index] for cell in best.cells], float)
        self.best_iteration_ = one_or_all([cell.step for cell in best.cells], int)
        self.best_score_ = one_or_all([sign * cell.error for cell in best.cells], float)
        self.scaling_ = best.power
        self.n_iter_ = n_iter
        self.keeps_basis_ = all(fit.keeps_basis for fit in best.fits)
        if not best.converged:
            warnings.warn(
                f"method={self.method!r} stopped at max_iter={search.max_iter} iterations before it was done. "
                "Hint: raise max_iter or tol, or use method='hybrid'.",
                ConvergenceWarning,
                stacklevel=3,
            )

    def _search(self, data: TrainingData, grid: Floats) -> SurfaceSearch:
        # 0 is always in the table, so that early stopping can be read beside the other methods.
        alphas = np.union1d([0.0], grid)
        positions = np.searchsorted(alphas, grid).tolist()
        return SurfaceSearch(
            data,
            get_metric(self.scoring),
            self.method,
            alphas,
            [0] if self.method == "early-stopping" else positions,
            patience=self.patience,
            tol=self.tol,
            max_iter=_MAX_ITER if self.max_iter is None else self.max_iter,
            n_threads=self.n_threads,
            averaging=self.averaging,
            judge_rows=self.judge_rows,
            seed=self.random_state,
        )

    def _check_parameters(self) -> list[float]:
        """Check what the estimator was given; return the values of `scaling` to try."""
        self._check_loss_parameters()
        check_choice("method", self.method, METHODS)
        check_choice("averaging", self.averaging, _AVERAGING)
        get_metric(self.scoring)
        for name in ("patience", "judge_rows"):
            check_count(name, getattr(self, name), optional=False)
        check_cv(self.cv)
        powers = np.atleast_1d(np.asarray(self.scaling, dtype=np.float64)).ravel()
        if powers.size == 0 or not np.isfinite(powers).all():
            raise InvalidInputError(
                f"scaling={self.scaling!r} is not a number or a list of numbers.", "use 0 (off) or 0.25."
            )
        return [float(power) for power in powers]
