"""Kernel RankRLS: the dual of the 2007 and 2009 RankRLS papers, and its reduced-set approximation."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import ClassVar

from sklearn.utils._param_validation import StrOptions

from rankwise.arrays import ArrayLike, RandomSource
from rankwise.estimators.base import Constraints, say
from rankwise.estimators.kernel_ranker import KernelRanker
from rankwise.fitting.problem import Problem
from rankwise.fitting.squares import KernelLeastSquares
from rankwise.kernels.basis import Basis
from rankwise.pairs.plan import Plan
from rankwise.selection.result import outputs_of
from rankwise.solvers.choose import SOLVERS

__all__ = ["KernelRankRLS"]


class KernelRankRLS(KernelRanker):
    """Rank by a function of a kernel's space, fitted with the pairwise squared loss.

    Minimises the objective of `RankRLS` over functions ``f(x) = Σ a_i k(x, x_i)`` with the penalty
    ``alpha ‖f‖²`` of the kernel's space.

    Parameters
    ----------
    kernel : str or callable, default="rbf"
        "linear", "poly", "rbf", another name of `sklearn.metrics.pairwise.pairwise_kernels`, "precomputed" (X is
        then the kernel matrix, or a LinearOperator that multiplies by it), or a function of two matrices that
        returns the kernel values between their rows. Columns far from zero are shifted in "linear" and "rbf", which
        changes no ranking, except by "linear" with a reduced set of no more rows than columns: that one is a
        combination of shifted rows. In others, such as "poly", where a column is belongs to the model.
    gamma : {"scale", "auto"} or float, default="scale"
        "scale" is 1 / (the sum of the columns' variances), "auto" is 1 / columns.
    kernel_params : dict, default=None
        Further parameters of the kernel, such as ``{"degree": 2, "coef0": 0}`` of "poly".
    alpha : float, default=1.0
        The penalty; larger is simpler. With 0, of all functions of least loss the smallest.
    basis : int, tuple (method, int) or array of row indices, default=None
        A reduced set: the model is a combination of the kernels at these rows only. A number chooses rows at random,
        ``("kmeans", 200)`` those nearest to the centres of clusters, ``("leverage", 200)`` by leverage.
    query_weight, ties, cost
        As in `RankRLS`.
    solver : {"auto", "direct", "eigen", "cg"}, default="auto"
        All give the same model. "cg" only multiplies by the kernel, and makes it again row by row where it does not
        fit in memory; the others hold a matrix of rows × rows, or of rows × basis.
    memory_limit : int, default=None
        Bytes that may be allocated; by default 80 % of the available memory. Larger allocations are not attempted.
    tol, max_iter
        Of solver "cg", as in `RankRLS`.
    random_state : int, RandomState, Generator or None, default=0
        Seeds the choice of the reduced set.
    n_threads : int, default=None
        As in `RankRLS`.

    Attributes
    ----------
    dual_coef_ : ndarray of shape (basis,), or (outputs, basis)
        Scores are the kernel values with the basis rows times these.
    basis_ : ndarray of shape (basis,) or None
        The rows of the reduced set.
    X_fit_ : matrix of shape (basis, features) or None
        Those rows; None for a precomputed kernel.
    gamma_ : float
        Only for kernels that have it.
    solver_, n_iter_, n_queries_, n_pairs_, n_ignored_queries_, n_features_in_, feature_names_in_
        As in `RankRLS`.

    Examples
    --------
    >>> import numpy as np
    >>> from rankwise import KernelRankRLS, RankRLS
    >>> X = np.linspace(-2, 2, 40)[:, None]
    >>> y = np.abs(X[:, 0])
    >>> model = KernelRankRLS("rbf", gamma=1.0, alpha=0.01).fit(X, y)
    >>> bool(model.score(X, y) > 0.95 > RankRLS().fit(X, y).score(X, y))
    True
    """

    _parameter_constraints: ClassVar[Constraints] = {
        **KernelRanker._parameter_constraints,
        "solver": [StrOptions({"auto", *SOLVERS})],
    }

    def __init__(
        self,
        kernel: str | Callable[..., ArrayLike] = "rbf",
        *,
        gamma: str | float = "scale",
        kernel_params: Mapping[str, object] | None = None,
        alpha: float = 1.0,
        basis: Basis = None,
        query_weight: str = "size",
        ties: str = "include",
        cost: str = "magnitude",
        solver: str = "auto",
        memory_limit: int | None = None,
        tol: float = 1e-5,
        max_iter: int | None = None,
        random_state: RandomSource = 0,
        n_threads: int | None = None,
    ) -> None:
        self._store(locals())

    def _learn(self, problem: Problem, eval_set: Plan | None) -> None:
        """Solve every graph's problem; several graphs are several outputs."""
        kernel = self._problem(problem, self.gamma)
        self._keep_kernel(kernel)
        solver = self.solver if kernel.basis is not None else self._require_matrix(problem.design, "direct")
        fit = KernelLeastSquares(solver, float(self.alpha), self.tol, self.max_iter)
        dual = fit.solve(problem.design, kernel, problem.pairs.graphs())
        self._keep_models(outputs_of(dual), {"solver_": fit.solver, "n_iter_": fit.n_iter}, problem)
        say(fit.notices)
