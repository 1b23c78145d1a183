"""Linear RankSVM: pairs with margins, in linearithmic time."""

from __future__ import annotations

import numpy as np

from rankwise.arrays import ArrayLike, Floats, RandomSource
from rankwise.estimators.linear import LinearRanker
from rankwise.estimators.margin_ranker import MarginRanker
from rankwise.fitting.margins import margins_of
from rankwise.fitting.problem import Problem
from rankwise.metrics import Metric
from rankwise.pairs.plan import Plan
from rankwise.selection.path import EvalSetMonitor, set_apart
from rankwise.selection.result import Selection

__all__ = ["RankSVM"]


class RankSVM(MarginRanker, LinearRanker):
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
        "bundle" (cutting planes with line search). For the smooth losses: "newton" (L-BFGS, the default) or "bundle".
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
    early_stopping, patience, scoring, validation_fraction : default=False, 10, "pairwise_error", 0.1
        As in `RankRLS`: stop when held-out rows are no longer ranked better, and keep the best iterate.
    positive, prior, column_penalty : default=False, None, None
        As in `RankRLS`: signs of coefficients, a model to stay near, and factors on `alpha`. Where one of those is 0,
        `duality_gap_` is proved against models in which its coefficient is at most ten times as large, or as where it
        begins to matter.
    random_state, n_threads : default=0, None
        As in `RankRLS`: the seed of the rows that early stopping holds out, and the number of threads.

    Attributes
    ----------
    coef_ : ndarray of shape (features,), or (outputs, features)
    duality_gap_ : float, or ndarray of shape (outputs,)
        The objective at `coef_` is at most this much above its minimum: proved, not estimated, and not relative.
    n_iter_ : int
    n_reads_ : int
        How many times the solvers read X.
    n_queries_, n_pairs_, n_ignored_queries_, n_features_in_, feature_names_in_
        As in `RankRLS`; ignored queries play no part at all.
    solver_, loss_ : str
        The solver and the loss that were used.
    best_iteration_, history_
        With early stopping, as in `RankRLS`.

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

    def __init__(
        self,
        alpha: float = 1e-4,
        *,
        loss: str = "hinge",
        query_weight: str = "equal",
        solver: str = "auto",
        tol: float = 1e-3,
        max_iter: int | None = None,
        warm_start: bool = False,
        early_stopping: bool = False,
        patience: int = 10,
        scoring: str | Metric = "pairwise_error",
        validation_fraction: float = 0.1,
        positive: bool | ArrayLike = False,
        prior: ArrayLike | None = None,
        column_penalty: ArrayLike | None = None,
        random_state: RandomSource = 0,
        n_threads: int | None = None,
    ) -> None:
        self._store(locals())

    def _learn(self, problem: Problem, eval_set: Plan | None) -> None:
        """Solve the problem of every output."""
        design, pairs = problem.design, problem.pairs
        design.expect_products()
        monitors = []
        if self.early_stopping:
            pairs, rows, scorers = set_apart(problem, self._watched(problem, eval_set), self._metric)
            monitors = [EvalSetMonitor(rows, [own], self.patience) for own in scorers]
        margins = [margins_of(pairs, self.loss, output) for output in range(pairs.n_outputs)]
        reads, fit = design.reads, self._margin_fit(margins[0], self._restriction())
        starts = self._starts(len(margins), design.shape[1])
        solutions = self._solve(fit, design, pairs, margins, starts, monitors)
        chosen = [choice for one in monitors for choice in one.choices(float(self.alpha))]
        histories = [one.history[0] for one in monitors] or None
        selection = Selection([solution.coef for solution in solutions], chosen, histories=histories)
        self._keep_solutions(selection, fit, solutions, design.reads - reads, problem)

    def _starts(self, n_outputs: int, n_features: int) -> list[Floats | None]:
        if self.warm_start and hasattr(self, "coef_"):
            last = np.atleast_2d(self.coef_)
            if last.shape == (n_outputs, n_features):
                return list(last.copy())
        return [None] * n_outputs
