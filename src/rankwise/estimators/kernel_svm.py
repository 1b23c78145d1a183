"""Kernel RankSVM: the linear solvers on the explicit features of a kernel."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from rankwise.arrays import ArrayLike
from rankwise.design import DenseDesign
from rankwise.estimators.base import Ranker
from rankwise.estimators.kernel_rls import KernelMixin, KernelRankRLS
from rankwise.estimators.parameters import POSITIVE, SPLITTERS, estimator, parameter
from rankwise.estimators.rank_svm import MARGIN_GRID, MarginMixin, RankSVM, RankSVMCV
from rankwise.fitting.notices import notices_of_extremes
from rankwise.fitting.problem import KernelProblem, Problem
from rankwise.metrics import Metric
from rankwise.pairs.plan import Plan
from rankwise.selection.result import Selection, outputs_of

__all__ = ["KernelRankSVM", "KernelRankSVMCV"]


@estimator(KernelRankRLS, RankSVM)
class KernelRankSVM(MarginMixin, KernelMixin, Ranker):
    """Rank by a function of a kernel's space, fitted with a pairwise loss that stops at a margin.

    Minimises the objective of `RankSVM` over functions ``f(x) = Σ a_i k(x, x_i)`` with the penalty ``alpha ‖f‖²`` of
    the kernel's space. The kernel becomes an explicit feature map, exact where the basis holds all rows, and the linear
    solvers run on it.

    Parameters
    ----------
    kernel
        As in `KernelRankRLS`; a precomputed one must be a matrix.
    gamma, kernel_params, memory_limit, random_state, n_threads
        As in `KernelRankRLS`.
    basis
        As in `KernelRankRLS`. Without it all rows are one, which takes memory of a few matrices of rows × rows.
    alpha : float, default=1e-4
        The penalty, positive; larger is simpler.
    loss, query_weight, solver, tol, max_iter
        As in `RankSVM`.

    Attributes
    ----------
    duality_gap_, n_iter_, solver_, loss_
        As in `RankSVM`.
    n_reads_ : int
        How many times the solvers read the feature map.
    dual_coef_, basis_, X_fit_, gamma_
        As in `KernelRankRLS`.
    n_queries_, n_pairs_, n_ignored_queries_, n_features_in_, feature_names_in_
        As in `RankSVM`.

    Examples
    --------
    >>> import numpy as np
    >>> from rankwise import KernelRankSVM, RankSVM
    >>> X = np.linspace(-2, 2, 40)[:, None]
    >>> y = np.abs(X[:, 0])
    >>> model = KernelRankSVM("rbf", gamma=1.0).fit(X, y)
    >>> bool(model.score(X, y) > 0.95 > RankSVM().fit(X, y).score(X, y))
    True
    """

    alpha: float = parameter(POSITIVE, default=1e-4)

    def _learn(self, problem: Problem, eval_set: Plan | None) -> None:
        """Solve the problem of every output on the explicit features."""
        mapped = _Mapped(self._kernel_problem(problem, self.gamma))
        found = self._fit_margins(Problem(mapped.features, problem.pairs))
        self._keep_kernel(mapped.given)
        self._keep(mapped.dual(found), problem)


@estimator(KernelRankRLS, KernelRankSVM, RankSVM, RankSVMCV)
class KernelRankSVMCV(MarginMixin, KernelMixin, Ranker):
    """`KernelRankSVM` with alpha chosen on held-out rows, or on held-out pairs.

    The kernel map is computed once for all alphas and folds, as in section 4.2 of the 2009 paper; on its features the
    grid is walked as in `RankSVMCV`. A fold's model is that of `KernelRankSVM` on its training rows alone: functions of
    least norm have no part that only held-out rows could see.

    Parameters
    ----------
    kernel, kernel_params, memory_limit, n_threads
        As in `KernelRankSVM`.
    gamma, basis
        As in `KernelRankSVM`. It is that of all rows, in every fold.
    alphas : array-like, default=1e-1, 1e-2, ..., 1e-6
        The grid; the default one goes on beyond its ends as in `RankRLSCV`.
    cv, scoring
        As in `RankSVMCV`.
    random_state : int, RandomState, Generator or None, default=0
        Seed of the folds and of the choice of the reduced set.
    loss, query_weight, solver, tol, max_iter
        As in `RankSVM`.

    Attributes
    ----------
    alpha_, alphas_, best_score_, cv_, cv_errors_
        As in `RankSVMCV`.
    duality_gap_, n_iter_, solver_, loss_
        As in `KernelRankSVM`.
    n_reads_ : int
        How many times the solvers read the feature map, selection and refit together.
    dual_coef_, basis_, X_fit_, gamma_
        As in `KernelRankRLS`.
    n_queries_, n_pairs_, n_ignored_queries_, n_features_in_, feature_names_in_
        As in `RankSVM`.

    Examples
    --------
    >>> import numpy as np
    >>> from rankwise import KernelRankSVMCV
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-2, 2, size=(120, 1))
    >>> y = np.abs(X[:, 0]) + 0.1 * rng.normal(size=120)
    >>> model = KernelRankSVMCV(gamma=1.0, cv=3).fit(X, y, qid=np.arange(120) // 10)
    >>> model.cv_, bool(model.best_score_ < 0.15)
    ('3 folds of queries', True)
    """

    _grid = MARGIN_GRID

    alphas: ArrayLike = MARGIN_GRID
    cv: object = parameter(*SPLITTERS, default="auto")
    scoring: str | Metric = "auto"

    def _learn(self, problem: Problem, eval_set: Plan | None) -> None:
        """Walk the grid on the explicit features, and fit all pairs with the alpha that the splits choose."""
        plan = self._plan(problem, eval_set)
        mapped = _Mapped(self._kernel_problem(problem, self.gamma))
        if plan.has_eval_set:
            rows = mapped.kernel.features_of(plan.eval_rows, mapped.feature_map)
            plan = replace(plan, eval_rows=DenseDesign(rows, mapped.given.n_threads))
        found = self._choose_margins(Problem(mapped.features, problem.pairs), plan)
        self._keep_kernel(mapped.given)
        self._keep(mapped.dual(found), problem)


class _Mapped:
    """The explicit features of a kernel, of the reduced set or of all rows as one."""

    def __init__(self, given: KernelProblem) -> None:
        self.given, self.kernel = given, given if given.basis is not None else given.with_all_rows()
        self.feature_map = self.kernel.feature_map()
        self.features = DenseDesign(self.kernel.features(self.feature_map), given.n_threads)

    def dual(self, found: Selection) -> Selection:
        """Return a selection with dual coefficients, and notices about the kernel."""
        models = outputs_of([self.feature_map.dual_coefficients(np.column_stack(found.models))])
        notices = notices_of_extremes(self.given.kernel, {"between basis rows": self.feature_map.extremes})
        return replace(found, models=models, notices=[*notices, *found.notices])
