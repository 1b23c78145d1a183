"""Kernel RankSVM: the linear solvers on the explicit features of a kernel."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from rankwise.arrays import ArrayLike, RandomSource
from rankwise.design import DenseDesign
from rankwise.estimators.kernel_ranker import KernelRanker
from rankwise.estimators.margin_ranker import MarginRanker
from rankwise.fitting.margins import margins_of
from rankwise.fitting.notices import notices_of_extremes
from rankwise.kernels.basis import Basis
from rankwise.pairs.plan import Plan
from rankwise.problems.problem import Problem
from rankwise.selection.result import Selection, outputs_of

__all__ = ["KernelRankSVM"]


class KernelRankSVM(MarginRanker, KernelRanker):
    """Rank by a function of a kernel's space, fitted with a pairwise loss that stops at a margin.

    Minimises the objective of `RankSVM` over functions ``f(x) = Σ a_i k(x, x_i)`` with the penalty ``alpha ‖f‖²`` of
    the kernel's space. The kernel becomes an explicit feature map, exact where the basis holds all rows, and the linear
    solvers run on it.

    Parameters
    ----------
    kernel, gamma, degree, coef0, kernel_params, basis, memory_limit, random_state, n_threads
        As in `KernelRankRLS`; a precomputed kernel must be a matrix. Without a `basis` all rows are one, which takes
        memory of a few matrices of rows × rows.
    alpha : float, default=1e-4
        The penalty, positive; larger is simpler.
    loss, query_weight, solver, tol, max_iter
        As in `RankSVM`.

    Attributes
    ----------
    duality_gap_, n_iter_, n_reads_, solver_, loss_
        As in `RankSVM`; reads are reads of the feature map.
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

    def __init__(
        self,
        kernel: str | Callable[..., ArrayLike] = "rbf",
        *,
        gamma: str | float = "scale",
        degree: float = 3,
        coef0: float = 1,
        kernel_params: Mapping[str, object] | None = None,
        alpha: float = 1e-4,
        basis: Basis = None,
        loss: str = "hinge",
        query_weight: str = "equal",
        solver: str = "auto",
        memory_limit: int | None = None,
        tol: float = 1e-3,
        max_iter: int | None = None,
        random_state: RandomSource = 0,
        n_threads: int | None = None,
    ) -> None:
        self._store(locals())

    def _learn(self, problem: Problem, eval_set: Plan | None) -> None:
        """Solve the problem of every output on the explicit features."""
        pairs = problem.pairs
        margins = [margins_of(pairs, self.loss, output) for output in range(pairs.n_outputs)]
        kernel = self._problem(problem, self.gamma)
        self._keep_kernel(kernel)
        if kernel.basis is None:
            kernel = kernel.with_all_rows()
        feature_map = kernel.feature_map()
        features = DenseDesign(kernel.features(feature_map), kernel.n_threads)
        fit = self._margin_fit(margins[0])
        solutions = self._solve(fit, features, pairs, margins)
        dual = feature_map.dual_coefficients(np.column_stack([solution.coef for solution in solutions]))
        indefinite = notices_of_extremes(kernel.kernel, {"between basis rows": feature_map.extremes})
        selection = Selection(outputs_of([dual]), (), notices=indefinite)
        self._keep_solutions(selection, fit, solutions, features.reads, problem)
