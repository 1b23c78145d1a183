"""Kernel rankers: the dual of the 2007 and 2009 papers, its reduced sets, and losses with margins."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field, replace
from typing import Any

import numpy as np
from sklearn.utils import Tags
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.validation import check_is_fitted

from rankwise.arrays import ArrayLike, Floats, Matrix, MatrixLike, Rows
from rankwise.data.containers import as_array
from rankwise.data.validation import check_alphas, check_precomputed, read_seed
from rankwise.design import DenseDesign, Design, as_design, matrix_rows, whole_entries
from rankwise.estimators.base import Ranker, SelectionMixin, require_finite
from rankwise.estimators.linear import (
    MARGIN_GRID,
    MarginMixin,
    RankRLS,
    RankRLSCV,
    RankSVM,
    RankSVMCV,
    SquaresMixin,
)
from rankwise.estimators.parameters import BaseEstimator, estimator, one_of, parameter
from rankwise.exceptions import InvalidInputError
from rankwise.fitting.notices import notices_of_extremes
from rankwise.fitting.problem import KernelProblem, Problem
from rankwise.fitting.squares import KernelLeastSquares
from rankwise.holdout.spaces import KernelSpace
from rankwise.kernels import (
    KERNELS,
    Basis,
    Kernel,
    basis_size,
    choose_basis,
    kernel_scores,
    resolve_gamma,
)
from rankwise.metrics import Metric
from rankwise.pairs.plan import Plan
from rankwise.runtime.memory import MemoryBudget
from rankwise.runtime.threads import one_blas_thread
from rankwise.selection.exact import choose_exactly
from rankwise.selection.krylov import DualCoordinates
from rankwise.selection.plan import Exact
from rankwise.selection.result import Selection, on_one_grid, outputs_of
from rankwise.selection.surface import AVERAGING, EXACT, METHODS, SurfaceSearch
from rankwise.solvers.choose import SOLVERS


@estimator()
class KernelMixin(BaseEstimator):
    """Adds a kernel, its reduced set, and scores that are kernel values times `dual_coef_`."""

    _coefficients = "dual_coef_"

    kernel: str | Callable[..., ArrayLike] = parameter(
        StrOptions(set(KERNELS)), callable, default="rbf", kw_only=False
    )
    gamma: str | float = "scale"
    kernel_params: Mapping[str, object] | None = parameter(Mapping, None, default=None)
    basis: Basis = None
    memory_limit: int | None = parameter("count", None, default=None)

    dual_coef_: Floats = field(init=False)
    X_fit_: Matrix | None = field(init=False)
    gamma_: float = field(init=False)
    basis_: Rows | None = field(init=False)

    @one_blas_thread
    def predict(self, X: MatrixLike) -> Floats:
        """Return a score for each row of X: higher is better, and only differences inside a query mean anything.

        Parameters
        ----------
        X : array-like, sparse matrix, data frame or LinearOperator of shape (rows, features)
            For ``kernel="precomputed"`` the kernel between these rows and all training rows.

        Returns
        -------
        scores : ndarray of shape (rows,), or (rows, outputs) for several outputs
        """
        check_is_fitted(self)
        rows = as_design(self._check_rows(X, reset=False), self.n_threads)
        dual = np.ascontiguousarray(self.dual_coef_.T)
        with np.errstate(over="ignore", invalid="ignore"):
            return require_finite(kernel_scores(self.kernel_, rows, self.X_fit_, self.basis_, dual))

    def _kernel_problem(
        self, problem: Problem, gamma: str | float, like: KernelProblem | None = None
    ) -> KernelProblem:
        """Resolve the kernel and the reduced set.

        Parameters
        ----------
        like : KernelProblem, optional
            That of another gamma, whose reduced set serves again.
        """
        design, row_weight = problem.design, problem.pairs.row_weight
        if not design.has_rows and self.kernel != "precomputed":
            raise InvalidInputError(
                f"kernel={self.kernel!r} needs the rows of X, which a LinearOperator does not have.",
                "pass a matrix, or kernel='precomputed' and an operator that multiplies by the kernel.",
            )
        X = whole_entries(design.stored())
        kernel = Kernel(self.kernel, self.kernel_params or {})
        if kernel.takes("gamma") and "gamma" not in kernel.parameters:
            own = {"gamma": resolve_gamma(gamma, X, row_weight)}
            kernel = Kernel(self.kernel, {**kernel.parameters, **own})
        if kernel.is_precomputed:
            X = X.toarray() if hasattr(X, "toarray") else X
            check_precomputed(X)
        basis = None if like is None else like.basis
        if self.basis is not None and like is None:
            basis = choose_basis(self.basis, kernel, X, read_seed(self.random_state), row_weight)
        return KernelProblem(kernel, X, basis, MemoryBudget(self.memory_limit), design.n_threads)

    def _keep_kernel(self, problem: KernelProblem) -> None:
        """Set the attributes that describe the kernel and the reduced set."""
        self.kernel_, self.basis_ = problem.kernel, problem.basis
        if problem.kernel.takes("gamma"):
            self.gamma_ = problem.kernel.parameters["gamma"]
        rows = slice(None) if self.basis_ is None else self.basis_
        kept = None if self.kernel_.is_precomputed else problem.X[rows]
        # Rows that lie in memory as a file can hold them, so that a copy predicts the same bits.
        self.X_fit_ = np.asarray(kept, order="A") if isinstance(kept, np.ndarray) else kept

    def _learn_mapped(self, problem: Problem, plan: Plan | None = None) -> None:
        """Solve margins on the explicit features of the kernel, and keep the models by their dual coefficients.

        For classes that also have `MarginMixin`.
        """
        kernel = self._kernel_problem(problem, self.gamma)
        feature_map, Z = kernel.mapped()
        if plan is not None and plan.has_eval_set:
            rows = kernel.features_of(matrix_rows(plan.eval_rows), feature_map)
            plan = replace(plan, eval_rows=DenseDesign(rows, kernel.n_threads))
        found = self._solve_margins(Problem(DenseDesign(Z, kernel.n_threads), problem.pairs), plan=plan)
        models = outputs_of([feature_map.dual_coefficients(np.column_stack(found.models))])
        notices = notices_of_extremes(kernel.kernel, {"between basis rows": feature_map.extremes})
        self._keep_kernel(kernel)
        self._keep(replace(found, models=models, notices=[*notices, *found.notices]), problem)

    def _require_matrix(self, design: Design, by_default: str) -> str:
        """Return the solver to take; operators are only multiplied by."""
        is_operator = not design.has_rows
        solver = str(("cg" if is_operator else by_default) if self.solver == "auto" else self.solver)
        if is_operator and solver != "cg":
            raise InvalidInputError(
                f"solver={self.solver!r} needs the kernel as a matrix.", "use solver='cg' with an operator."
            )
        return solver

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()  # type: ignore[misc]
        tags.input_tags.pairwise = isinstance(self.kernel, str) and self.kernel == "precomputed"
        return tags


@estimator(RankRLS)
class KernelRankRLS(KernelMixin, SquaresMixin, Ranker):
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
        combination of shifted rows. Others, such as "poly", depend on the origin of the columns.
    gamma : {"scale", "auto"} or float, default="scale"
        "scale" is 1 / (the sum of the columns' variances), "auto" is 1 / columns.
    kernel_params : dict, default=None
        Further parameters of the kernel, such as ``{"degree": 2, "coef0": 0}`` of "poly".
    alpha : float, default=1.0
        The penalty; larger is simpler. With 0, of all functions of least loss the smallest.
    basis : int, tuple (method, int) or array of row indices, default=None
        A reduced set: the model is a combination of the kernels at these rows only. A number chooses rows at random,
        ``("kmeans", 200)`` those nearest to the centres of clusters.
    query_weight, ties, cost
        As in `RankRLS`.
    solver : {"auto", "direct", "eigen", "cg"}, default="auto"
        All give the same model. "cg" only multiplies by the kernel, and makes it again row by row where it does not
        fit in memory; the others hold a matrix of rows × rows, or of rows × basis.
    memory_limit : int, default=None
        Bytes that may be allocated; by default 80 % of the available memory. Larger allocations are not attempted.
    tol, max_iter
        As in `RankRLS`, for ``solver="cg"``.
    random_state : int, RandomState, Generator or None, default=0
        Seed of the choice of the reduced set.
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

    alpha: float = parameter("not negative", default=1.0)
    solver: str = one_of(SOLVERS, default="auto")

    def _learn(self, problem: Problem, eval_set: Plan | None) -> None:
        """Solve every graph's problem; several graphs are several outputs."""
        kernel = self._kernel_problem(problem, self.gamma)
        self._keep_kernel(kernel)
        solver = self.solver if kernel.basis is not None else self._require_matrix(problem.design, "direct")
        fit = KernelLeastSquares(solver, float(self.alpha), self.tol, self.max_iter)
        dual = fit.solve(problem.design, kernel, problem.pairs.graphs())
        facts = {"solver_": fit.solver, "n_iter_": fit.n_iter}
        self._keep(Selection(outputs_of(dual), (), facts=facts, notices=fit.notices), problem)


@estimator(KernelRankRLS, RankRLSCV)
class KernelRankRLSCV(KernelMixin, SquaresMixin, SelectionMixin, Ranker):
    """`KernelRankRLS` with alpha, and gamma, chosen on rows that the model did not see.

    One symmetric eigendecomposition per gamma gives the held-out predictions of every alpha, without refitting: exact
    leave-query-out, leave-pair-out, and k-fold. Where the kernel is too large to be decomposed, ``solver="cg"`` chooses
    by products with it alone.

    Parameters
    ----------
    kernel : str or callable, default="rbf"
        As in `KernelRankRLS`.
    alphas : array-like, default=2^-10, 2^-9, ..., 2^10
        The grid; the default one goes on beyond its ends as in `RankRLSCV`.
    gamma : "scale", "auto", float, or a list of those, default="scale"
        As in `KernelRankRLS`; from a list the best is chosen.
    cv : "auto", "time", "leave-query-out", "leave-pair-out", int or splitter, default="auto"
        As in `RankRLSCV`. "auto" leaves out queries where there are several; in one ranking pairs, up to 2000 rows, and
        else makes 10 folds; where leave-pair-out has no closed form, or not at a fair price, `cv_` says so. Where
        some rows are equal and more than half differ, it makes folds that do not divide equal rows.
    averaging, scoring
        As in `RankRLSCV`; leave-pair-out takes metrics that count pairs.
    kernel_params, basis, query_weight
        As in `KernelRankRLS`.
    ties, cost
        As in `KernelRankRLS`. Leave-pair-out has no closed form with ties left out or ``cost="relative"``.
    solver : {"auto", "eigen", "cg"}, default="auto"
        "eigen" decomposes a matrix of rows × rows, or of basis × basis. "cg" multiplies by the kernel, which may be a
        LinearOperator, a precomputed matrix on disk (`numpy.memmap`), or made again block by block where it does not
        fit in memory: folds or an `eval_set` score, 5 folds by default, every alpha at every iteration as in
        `RankRLSCV`. It takes no `basis`. "auto" is "cg" for operators only.
    method : {"auto", "hybrid", "tikhonov", "early-stopping"}, default="auto"
        As in `RankRLSCV`, for ``solver="cg"``; "auto" is "hybrid" there and else "tikhonov".
    memory_limit
        As in `KernelRankRLS`.
    patience, tol, max_iter
        As in `RankRLSCV`, for ``solver="cg"``.
    random_state, n_threads
        As in `KernelRankRLS`.

    Attributes
    ----------
    alpha_, alphas_, best_score_, cv_, method_
        As in `RankRLSCV`.
    gamma_ : float
        One for all outputs.
    cv_errors_ : ndarray of shape (alphas,) or (alphas, outputs); a first axis where `gamma` is a list
        The held-out value of `scoring`; NaN where the grid went on for another gamma only.
    surface_, unpenalised_, choices_, best_iteration_, n_products_, keeps_basis_
        As in `RankRLSCV`; only with ``solver="cg"``.
    solver_, n_iter_, dual_coef_, basis_, X_fit_, n_queries_, n_pairs_, n_ignored_queries_, n_features_in_
        As in `KernelRankRLS`.

    Examples
    --------
    >>> import numpy as np
    >>> from rankwise import KernelRankRLSCV
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-2, 2, size=(120, 1))
    >>> y = np.abs(X[:, 0]) + 0.1 * rng.normal(size=120)
    >>> model = KernelRankRLSCV(gamma=[0.1, 1.0]).fit(X, y, qid=np.arange(120) // 10)
    >>> model.cv_
    'leave-query-out over 12 queries'
    >>> model.cv_errors_.shape, bool(model.best_score_ < 0.15)
    ((2, 21), True)
    """

    averaging: str = one_of(AVERAGING, default="folds")
    gamma: Any = "scale"  # or a list
    solver: str = one_of(("eigen", "cg"), default="auto")
    method: str = one_of(METHODS, default="auto")
    patience: int = parameter("count", default=10)

    def _learn(self, problem: Problem, eval_set: Plan | None) -> None:
        """Choose alpha under every gamma, and keep the best."""
        self.solver_ = self._require_matrix(problem.design, "eigen")
        by_default = "tikhonov" if self.solver_ == "eigen" else "hybrid"
        self.method_ = by_default if self.method == "auto" else self.method
        alphas = check_alphas(self.alphas)
        exact = None
        if self.solver_ == "eigen":
            n_rows = problem.design.shape[0]
            rank = n_rows if self.basis is None else basis_size(self.basis, n_rows)
            exact = Exact(rank, alphas.size, refits=True, is_pooled=self.averaging == "pooled")
        elif self.basis is not None:
            raise InvalidInputError(
                "solver='cg' multiplies by the kernel of all rows, but basis selects some of them.",
                "use solver='eigen' with a basis.",
            )
        plan = self._plan(problem.with_equal_rows_together(), eval_set, exact, whole_components=True)
        problems: list[KernelProblem] = []
        tried: list[Selection] = []
        is_one = isinstance(self.gamma, str) or as_array("gamma", self.gamma).ndim == 0
        gammas = [self.gamma] if is_one else list(self.gamma)
        if not gammas:
            raise InvalidInputError(
                "gamma is an empty list.", "use 'scale', or a list such as [0.01, 0.1, 1]."
            )
        for gamma in gammas:
            problems.append(self._kernel_problem(problem, gamma, *problems[:1]))
            tried.append(self._choose_alpha(problems[-1], problem, plan, alphas))
        best = int(np.argmin([one.error for one in tried]))
        alphas, errors = on_one_grid([one.table for one in tried])
        self._keep_kernel(problems[best])
        self._keep(tried[best], problem)
        shown = replace(tried[best], alphas=alphas, errors=errors[0] if is_one else np.array(errors))
        self.__dict__.update(shown.attributes(self._metric, several=problem.pairs.several_outputs))

    def _choose_alpha(self, kernel: KernelProblem, problem: Problem, plan: Plan, alphas: Floats) -> Selection:
        """Choose alpha for one kernel: by products with it, or from one decomposition."""
        if self.solver_ == "eigen":
            options = (self._metric, self.averaging, alphas)
            return choose_exactly(KernelSpace(kernel), problem, plan, *options).with_facts(n_iter_=0)
        tol = float(self.tol) if self.method_ == "tikhonov" else min(float(self.tol), EXACT)
        search = SurfaceSearch(self._metric, self.method_, self.averaging, self.patience, tol, self.max_iter)
        dual = DualCoordinates(kernel, kernel.products(problem.design))
        selection, best = search.choose(problem, plan, alphas, [dual])
        indefinite = notices_of_extremes(kernel.kernel, {"on the pairs": best.extremes})
        return replace(selection, notices=[*selection.notices, *indefinite])


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
    gamma, kernel_params
        As in `KernelRankRLS`.
    alpha : float, default=1e-4
        The penalty, positive; larger is simpler.
    basis
        As in `KernelRankRLS`. By default all rows, which takes the memory of a few matrices of rows × rows.
    loss, query_weight, solver, tol, max_iter
        As in `RankSVM`.
    memory_limit, random_state, n_threads
        As in `KernelRankRLS`.

    Attributes
    ----------
    duality_gap_, n_iter_, solver_, loss_
        As in `RankSVM`.
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

    alpha: float = parameter("positive", default=1e-4)

    def _learn(self, problem: Problem, eval_set: Plan | None) -> None:
        """Solve the problem of every output on the explicit features."""
        self._learn_mapped(problem)


@estimator(KernelRankRLS, KernelRankSVM, RankSVM, RankSVMCV)
class KernelRankSVMCV(MarginMixin, KernelMixin, SelectionMixin, Ranker):
    """`KernelRankSVM` with alpha chosen on held-out rows, or on held-out pairs.

    The kernel map is computed once for all alphas and folds, as in section 4.2 of the 2009 paper; on its features the
    grid is walked as in `RankSVMCV`. A fold's model is that of `KernelRankSVM` on its training rows alone: functions of
    least norm have no part that only held-out rows could see.

    Parameters
    ----------
    kernel
        As in `KernelRankSVM`.
    alphas : array-like, default=1e-1, 1e-2, ..., 1e-6
        The grid; the default one goes on beyond its ends as in `RankRLSCV`.
    gamma
        As in `KernelRankSVM`. Chosen once from all rows, for every fold.
    cv, scoring
        As in `RankSVMCV`; "auto" divides equal rows as little as in `KernelRankRLSCV`.
    kernel_params
        As in `KernelRankSVM`.
    basis
        As in `KernelRankSVM`. Chosen once from all rows, for every fold.
    loss, query_weight, solver, tol, max_iter
        As in `RankSVM`.
    memory_limit
        As in `KernelRankSVM`.
    random_state : int, RandomState, Generator or None, default=0
        Seed of the folds and of the choice of the reduced set.
    n_threads
        As in `KernelRankSVM`.

    Attributes
    ----------
    alpha_, alphas_, best_score_, cv_, cv_errors_
        As in `RankSVMCV`.
    duality_gap_, n_iter_, solver_, loss_
        As in `KernelRankSVM`.
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

    alphas: ArrayLike = MARGIN_GRID
    scoring: str | Metric = "auto"

    def _learn(self, problem: Problem, eval_set: Plan | None) -> None:
        """Walk the grid on the explicit features, and fit all pairs with the alpha that the splits choose."""
        self._learn_mapped(problem, self._plan(problem.with_equal_rows_together(), eval_set))
