"""Linear RankSVM: pairs with margins, in linearithmic time, at one alpha or with alpha chosen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import zip_longest
from typing import ClassVar

import numpy as np
from scipy.special import expit

from rankwise.arrays import ArrayLike, Floats, Labels, MatrixLike
from rankwise.data.validation import check_alphas
from rankwise.estimators.base import Ranker
from rankwise.estimators.linear import LinearMixin
from rankwise.estimators.parameters import (
    COUNT,
    POSITIVE,
    POSITIVE_SHARE,
    SHARE,
    SPLITTERS,
    BaseEstimator,
    estimator,
    one_of,
    parameter,
)
from rankwise.estimators.rank_rls import RankRLS, RankRLSCV
from rankwise.exceptions import InvalidInputError, UnsuitableSolverError
from rankwise.fitting.margins import MarginFit, curvature_of, margins_of
from rankwise.fitting.problem import Problem, Restriction
from rankwise.losses import LOSSES, MARGIN_LOSSES
from rankwise.metrics import Metric
from rankwise.pairs.graph import MarginPairs
from rankwise.pairs.labels import QUERY_WEIGHTS, Cost, QueryWeight, Ties
from rankwise.pairs.pairs import Pairs
from rankwise.pairs.plan import Plan
from rankwise.selection.path import EvalSetMonitor, choose_on_paths, margin_problems, paths_of, set_apart
from rankwise.selection.result import Selection, one_or_all
from rankwise.solvers.choose import MARGIN_SOLVERS
from rankwise.solvers.solution import Solution

MARGIN_GRID = tuple(10.0**-power for power in range(1, 7))  # the default of `alphas`


@estimator()
class MarginMixin(BaseEstimator):
    """Adds pairs with margins, their solvers, and the attributes of their solutions."""

    # Ties have no winner, and a listed pair's magnitude is its margin.
    ties: ClassVar[Ties] = "exclude"
    cost: ClassVar[Cost] = "magnitude"
    _has_gap = True
    loss: str = one_of(MARGIN_LOSSES, default="hinge")
    query_weight: QueryWeight = one_of(QUERY_WEIGHTS, default="equal")
    solver: str = one_of(MARGIN_SOLVERS, default="auto")
    tol: float = parameter(SHARE, default=1e-3)
    max_iter: int | None = parameter(COUNT, None, default=None)

    def predict_pairs(self, X: MatrixLike, pairs: ArrayLike | MatrixLike) -> Floats:  # noqa: D102 - as in RankingMixin
        difference = super().predict_pairs(X, pairs)  # type: ignore[misc]  # of Ranker
        return np.asarray(expit(difference)) if LOSSES[self.loss_].is_probability else difference

    predict_pairs.__doc__ = Ranker.predict_pairs.__doc__

    def _check_parameters(self) -> None:
        super()._check_parameters()  # type: ignore[misc]
        if self.solver != "auto" and self.loss not in MARGIN_SOLVERS[self.solver].losses:
            able = [name for name, solver in MARGIN_SOLVERS.items() if self.loss in solver.losses]
            raise UnsuitableSolverError(
                f"solver={self.solver!r} cannot minimise loss={self.loss!r}.",
                f"use solver='auto' or one of {', '.join(map(repr, able))}.",
            )

    def _require_labels(self, y: Labels | None) -> None:
        if LOSSES[self.loss].is_probability:
            raise InvalidInputError(
                "loss='logistic' is a model of listed pairs, and labels induce too many to list.",
                "use fit_pairs with the pairs that were observed, or loss='squared_hinge' for labels.",
            )
        super()._require_labels(y)  # type: ignore[misc]

    def _fit_margins(
        self,
        problem: Problem,
        restriction: Restriction | None = None,
        starts: Sequence[Floats | None] = (),
        monitors: Sequence[EvalSetMonitor] = (),
    ) -> Selection:
        """Solve the problem of every output."""
        design, pairs, alpha = problem.design, problem.pairs, float(self.alpha)
        margins, fit, reads = *self._margins(pairs, restriction), design.reads
        solutions: list[Solution] = []
        for output, (own, start, monitor) in enumerate(zip_longest(margins, starts, monitors)):
            curvature = curvature_of(design, pairs.graph(output))
            solutions.append(fit.solve(design, own, alpha, start=start, curvature=curvature, watcher=monitor))
        found = Selection([solution.coef for solution in solutions], ())
        return self._described(found, fit, solutions, problem, reads)

    def _choose_margins(
        self, problem: Problem, plan: Plan, restriction: Restriction | None = None
    ) -> Selection:
        """Walk the grid with all splits of every output, and fit all pairs with the alpha they choose."""
        margins, fit, reads = *self._margins(problem.pairs, restriction), problem.design.reads
        paths = paths_of(margin_problems(fit, problem, margins), problem, plan, self._metric)
        found, solutions = choose_on_paths(paths, check_alphas(self.alphas), MARGIN_GRID)
        self.cv_ = plan.description
        return self._described(found, fit, solutions, problem, reads)

    def _margins(self, pairs: Pairs, known: Restriction | None) -> tuple[list[MarginPairs], MarginFit]:
        margins = [margins_of(pairs, self.loss, output) for output in range(pairs.n_outputs)]
        options = (self.loss, self.solver, float(self.tol), self.max_iter, known)
        return margins, MarginFit.of_pairs(margins[0], *options)

    def _described(
        self, found: Selection, fit: MarginFit, solutions: Sequence[Solution], problem: Problem, reads: int
    ) -> Selection:
        """Add the attributes of the solutions, and notices about those that did not converge."""
        gaps = [float(solution.certificate) for solution in solutions]
        facts = {
            "solver_": fit.solver,
            "loss_": fit.loss,
            "n_reads_": problem.design.reads - reads,
            "n_iter_": max(1, *(solution.n_iter for solution in solutions)),
            "duality_gap_": one_or_all(gaps, problem.pairs.several_outputs),
        }
        return replace(found.with_facts(**facts), notices=fit.notices(solutions))


@estimator(RankRLS)
class RankSVM(MarginMixin, LinearMixin, Ranker):
    """Rank by a linear function fitted with a pairwise loss that stops at a margin.

    Minimises the weighted mean over the pairs i > j that the labels order inside each query,
    ``(Σ ω loss) / (Σ ω) + alpha ‖w‖²`` with ``f = Xw`` and ``t = 1 - (f_i - f_j)``; `rankwise.objectives` states the
    weights ``ω``. Note that `RankRLS` minimises a sum instead: its `alpha` is on another scale. Time grows as
    ``rows · log(rows)``, however many different labels there are.

    Parameters
    ----------
    alpha : float, default=1e-4
        The penalty on ``‖w‖²``, positive; larger is simpler.
    loss : {"hinge", "squared_hinge", "logistic"}, default="hinge"
        ``max(0, t)``, its square, or ``log(1 + exp(f_j - f_i))``. The last is the model of Bradley and Terry for
        `fit_pairs` only; `predict_pairs` then returns probabilities.
    query_weight : {"size", "pairs", "equal"}, default="equal"
        Whether a query's total weight grows with its rows, its pairs, or not at all.
    solver : {"auto", "smoothing", "bundle", "newton"}, default="auto"
        All find the same minimum. For the hinge: "smoothing" (L-BFGS on a hinge with a rounded kink, the default) or
        "bundle" (cutting planes with line search). For the smooth losses: "newton" (the default) or "bundle".
        Where rounding stops "bundle", because some columns are much larger than others, the default solver goes on
        from there; `solver_` names the last one.
    tol : float, default=1e-3
        Stopping tolerance, below 1: stop once the objective minus its proved lower bound is at most `tol` times the
        objective at ``w = 0`` minus that bound. The rule does not depend on units, and does not accept ``w = 0``
        unless it is the minimum.
    max_iter : int, default=None
        The most iterations; by default enough to converge.
    warm_start : bool, default=False
        Start from the coefficients of the last fit.
    early_stopping : bool, default=False
        Stop the solver when held-out rows are no longer ranked better, and keep its best iterate.
    patience, scoring, validation_fraction
        As in `RankRLS`.
    positive, prior
        As in `RankRLS`.
    column_penalty
        As in `RankRLS`. In place of 0 stands next to nothing of the curvature of the column, and `duality_gap_` is that
        of this objective.
    random_state, n_threads
        As in `RankRLS`.

    Attributes
    ----------
    coef_ : ndarray of shape (features,), or (outputs, features)
    duality_gap_ : float, or ndarray of shape (outputs,)
        The objective at `coef_` is at most this much above its minimum: proved, not estimated, and not relative.
    n_iter_ : int
    n_reads_ : int
        How many times the solvers read X.
    n_queries_, n_pairs_, n_features_in_, feature_names_in_, n_components_, n_unpaired_rows_
        As in `RankRLS`.
    n_ignored_queries_ : int, or ndarray of shape (outputs,)
        Queries without such a pair, which play no part.
    solver_ : str
        The solver that was used.
    loss_ : str
        The loss that was used.
    best_iteration_, history_
        As in `RankRLS`.

    Examples
    --------
    >>> import numpy as np
    >>> from rankwise import RankSVM
    >>> X = np.array([[0.0, 1.0], [1.0, 0.0], [2.0, 2.0], [0.0, 0.0], [3.0, 1.0]])
    >>> y = [0, 1, 2, 0, 3]
    >>> qid = ["a", "a", "a", "b", "b"]
    >>> model = RankSVM(alpha=0.01).fit(X, y, qid=qid)
    >>> model.rank(X, qid=qid).tolist()
    [3, 2, 1, 2, 1]
    >>> bool(model.duality_gap_ <= 1e-3)
    True
    """

    alpha: float = parameter(POSITIVE, default=1e-4, kw_only=False)
    warm_start: bool = parameter("boolean", default=False)
    early_stopping: bool = parameter("boolean", default=False)
    patience: int = parameter(COUNT, default=10)
    scoring: str | Metric = "pairwise_error"
    validation_fraction: float = parameter(POSITIVE_SHARE, default=0.1)

    def _learn(self, problem: Problem, eval_set: Plan | None) -> None:
        """Solve the problem of every output."""
        design, pairs, monitors = problem.design, problem.pairs, []
        design.expect_products()
        if self.early_stopping:
            pairs, rows, scorers = set_apart(problem, self._watched(problem, eval_set), self._metric)
            monitors = [EvalSetMonitor(rows, [own], self.patience) for own in scorers]
        starts = self._starts(pairs.n_outputs, design.shape[1])
        found = self._fit_margins(Problem(design, pairs), self._restriction(), starts, monitors)
        chosen = [choice for one in monitors for choice in one.choices(float(self.alpha))]
        histories = [one.history[0] for one in monitors] or None
        self._keep(replace(found, chosen=chosen, histories=histories), problem)

    def _starts(self, n_outputs: int, n_features: int) -> list[Floats | None]:
        if self.warm_start and hasattr(self, "coef_"):
            last = np.atleast_2d(self.coef_)
            if last.shape == (n_outputs, n_features):
                return list(last.copy())
        return [None] * n_outputs


@estimator(RankSVM, RankRLSCV)
class RankSVMCV(MarginMixin, LinearMixin, Ranker):
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
    loss, query_weight, solver, tol, max_iter, positive, prior, column_penalty
        As in `RankSVM`.
    random_state
        As in `RankRLSCV`; by default all held-out rows or pairs score.
    n_threads
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

    alphas: ArrayLike = parameter(default=MARGIN_GRID, kw_only=False)
    cv: object = parameter(*SPLITTERS, default="auto")
    scoring: str | Metric = "auto"

    def _learn(self, problem: Problem, eval_set: Plan | None) -> None:
        """Choose alpha, and fit all pairs with it."""
        problem.design.expect_products()
        plan = self._plan(problem, eval_set)
        self._keep(self._choose_margins(problem, plan, self._restriction()), problem)
