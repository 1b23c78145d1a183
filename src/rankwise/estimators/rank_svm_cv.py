"""RankSVM with its regularisation chosen on held-out rows, by warm starts along the grid."""

from __future__ import annotations

from rankwise.arrays import ArrayLike, RandomSource
from rankwise.data.validation import check_alphas
from rankwise.estimators.linear import LinearRanker
from rankwise.estimators.margin_ranker import MARGIN_GRID, MarginRanker
from rankwise.fitting.margins import margins_of
from rankwise.fitting.problem import Problem
from rankwise.metrics import Metric
from rankwise.pairs.plan import Plan
from rankwise.selection.path import choose_on_paths, margin_problems, paths_of

__all__ = ["RankSVMCV"]


class RankSVMCV(MarginRanker, LinearRanker):
    """`RankSVM` with alpha chosen on held-out rows, or on held-out pairs.

    The grid is walked from the largest alpha to the smallest, each fit starting from the one before, and only as long
    as that can help: the walk ends where every alpha down to a hundredth of the best one had a larger held-out error,
    by more than the standard error of the difference over the folds. (With an `eval_set`, and where alphas are so large
    that the loss is nearly linear, the walk goes on.)

    Parameters
    ----------
    alphas : array-like, default=1e-1, 1e-2, ..., 1e-6
        The grid; the default one goes on beyond its ends as in `RankRLSCV`.
    cv : "auto", "time", int or splitter, default="auto"
        Folds of whole queries, or of rows where there is one ranking, or of listed pairs; "auto" makes 5. "time" is
        that of `RankRLSCV`. Not used where `fit` gets an `eval_set`.
    scoring : "auto", str or Metric, default="auto"
        As in `RankRLSCV`. "auto" is the pairwise error, and for ``loss="logistic"`` the log-loss of the held-out pairs:
        the order alone says nothing about the scale of the probabilities that `predict_pairs` returns.
    random_state : default=0
        As in `RankRLSCV`; by default all held-out rows or pairs score.
    loss, query_weight, solver, tol, max_iter, positive, prior, column_penalty, n_threads
        As in `RankSVM`.

    Attributes
    ----------
    alpha_ : float, or ndarray of shape (outputs,)
        The chosen alpha; of equally good ones the largest.
    alphas_, best_score_, cv_
        As in `RankRLSCV`.
    cv_errors_ : ndarray of shape (alphas,), or (alphas, outputs)
        The value of `scoring` for each alpha, averaged over held-out queries, or over the folds of one ranking or of
        pairs; NaN for those that the walk did not come to, or that came to the grid for another output.
    n_reads_ : int
        How many times the solvers read X, selection and refit together.
    coef_, duality_gap_, n_iter_, solver_, n_queries_, n_pairs_, n_ignored_queries_, n_features_in_
        As in `RankSVM`.

    Examples
    --------
    >>> import numpy as np
    >>> from rankwise import RankSVMCV
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(300, 5))
    >>> y = X[:, 0] - 2 * X[:, 1] + rng.normal(size=300)
    >>> model = RankSVMCV().fit(X, y, qid=np.arange(300) // 10)
    >>> model.cv_errors_.shape
    (6,)
    >>> bool(model.best_score_ < 0.3)
    True
    """

    _grid = MARGIN_GRID

    def __init__(
        self,
        alphas: ArrayLike = MARGIN_GRID,
        *,
        cv: object = "auto",
        scoring: str | Metric = "auto",
        loss: str = "hinge",
        query_weight: str = "equal",
        solver: str = "auto",
        tol: float = 1e-3,
        max_iter: int | None = None,
        positive: bool | ArrayLike = False,
        prior: ArrayLike | None = None,
        column_penalty: ArrayLike | None = None,
        random_state: RandomSource = 0,
        n_threads: int | None = None,
    ) -> None:
        self._store(locals())

    def _learn(self, problem: Problem, eval_set: Plan | None) -> None:
        """Walk the grid with all splits of every output, and fit all pairs with the alpha they choose."""
        design, pairs = problem.design, problem.pairs
        design.expect_products()
        whole = [margins_of(pairs, self.loss, output) for output in range(pairs.n_outputs)]
        plan = self._held_out(problem, eval_set)
        reads, fit = design.reads, self._margin_fit(whole[0], self._restriction())
        paths = paths_of(margin_problems(fit, problem, whole), problem, plan, self._metric)
        selection, solutions = choose_on_paths(paths, check_alphas(self.alphas), MARGIN_GRID)
        self.cv_ = plan.description
        self._keep_solutions(selection, fit, solutions, design.reads - reads, problem)
