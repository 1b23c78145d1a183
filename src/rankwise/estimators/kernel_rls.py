"""Kernel RankRLS: the dual of the 2007 and 2009 RankRLS papers, and its reduced-set approximation."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Never

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from rankwise.arrays import Floats
from rankwise.data.validation import check_choice, check_number
from rankwise.design import DenseDesign, Design
from rankwise.estimators.kernel_ranker import KernelRanker
from rankwise.estimators.linear_rls import LinearRankRLS
from rankwise.estimators.pairwise import PairwiseRanker
from rankwise.estimators.refusals import refuse_unknown
from rankwise.exceptions import InvalidInputError, caller_level
from rankwise.kernels import Kernel
from rankwise.objectives import QuadraticObjective, SquaredObjective
from rankwise.pairs.factor import factor_of
from rankwise.pairs.graph import PairGraph
from rankwise.problems.kernel import KernelProblem, warn_if_indefinite
from rankwise.selection.kernel_progress import KernelProgress
from rankwise.solvers.choose import SOLVERS, SolverOptions
from rankwise.solvers.dual import DualObjective, DualSpectrum, is_positive
from rankwise.solvers.nystrom import SampledSpectrum, preconditioned_gradients
from rankwise.solvers.solution import Status
from rankwise.threads import one_blas_thread

__all__ = ["KernelRankRLS"]

_DIRECT_COLUMNS = 5000  # up to so many features of a reduced set their Gram matrix is formed


class KernelRankRLS(PairwiseRanker, KernelRanker, LinearRankRLS):
    """Rank by a function of a kernel's space, fitted with the pairwise squared loss.

    Minimises the objective of `RankRLS` over functions ``f(x) = Σ a_i k(x, x_i)`` with the penalty
    ``alpha ‖f‖²`` of the kernel's space.

    Parameters
    ----------
    kernel : str or callable, default="rbf"
        "linear", "poly", "rbf", another name of `sklearn.metrics.pairwise.pairwise_kernels`, "precomputed" (X is
        then the kernel matrix, or a LinearOperator that multiplies by it), or a function of two matrices that
        returns the kernel values between their rows. Columns far from zero are shifted where that changes no
        ranking, in "linear" and "rbf"; in others, such as "poly", where a column is belongs to the model.
    gamma : {"scale", "auto"} or float, default="scale"
        "scale" is 1 / (the sum of the columns' variances), "auto" is 1 / columns.
    degree, coef0 : default=3, 1
        Of the polynomial kernel.
    kernel_params : dict, default=None
        Further parameters of the kernel.
    alpha : float, default=1.0
        The penalty; larger is simpler. With 0, of all functions of least loss the smallest.
    basis : int, tuple (method, int) or array of row indices, default=None
        A reduced set: the model is a combination of the kernels at these rows only. A number chooses rows at random,
        ``("kmeans", 200)`` those nearest to the centres of clusters, ``("leverage", 200)`` by leverage.
    query_weight, ties, cost
        As in `RankRLS`.
    solver : {"auto", "direct", "eigen", "cg"}, default="auto"
        All give the same model. "cg" only multiplies by the kernel, and makes it again row by row where it does not
        fit in memory; the others hold a matrix of rows × rows, or of basis × basis. For a reduced set it is
        preconditioned by the problem of a sample of the rows, and shows its progress on a terminal.
    memory_limit : int, default=None
        Bytes that may be allocated; by default 80 % of what is available. Nothing larger is tried.
    tol, max_iter
        Of solver "cg", as in `RankRLS`.
    random_state : int, default=0
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

    def __init__(
        self,
        kernel: str | Callable[..., Any] = "rbf",
        *,
        gamma: Any = "scale",
        degree: float = 3,
        coef0: float = 1,
        kernel_params: dict[str, Any] | None = None,
        alpha: float = 1.0,
        basis: Any = None,
        query_weight: str = "size",
        ties: str = "include",
        cost: str = "magnitude",
        solver: str = "auto",
        memory_limit: int | None = None,
        tol: float = 1e-5,
        max_iter: int | None = None,
        random_state: int = 0,
        n_threads: int | None = None,
    ) -> None:
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.kernel_params = kernel_params
        self.alpha = alpha
        self.basis = basis
        self.query_weight = query_weight
        self.ties = ties
        self.cost = cost
        self.solver = solver
        self.memory_limit = memory_limit
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
        **unknown: Never,
    ) -> KernelRankRLS:
        """Fit the model.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (rows, features)
            For ``kernel="precomputed"`` the kernel between all pairs of rows.
        y, qid, sample_weight, query_importance
            As in `RankRLS.fit`.
        """
        refuse_unknown("fit", unknown)
        self._check_parameters()
        data = self._training_data(X, y, qid, sample_weight, query_importance)
        self._learn(data.design, data.graphs(), data.row_weight)
        if data.several_outputs:
            self.dual_coef_ = np.atleast_2d(self.dual_coef_)  # y may have a single column
        return self

    def _learn(self, design: Design, graphs: Sequence[PairGraph], row_weight: Floats | None = None) -> None:
        """Solve every graph's problem; several graphs are several outputs."""
        problem = self._problem(design, row_weight, self.gamma)
        self.n_iter_ = 0
        fit = self._fit_all(design, problem) if problem.basis is None else self._fit_reduced(design, problem)
        dual = [fit(graph) for graph in graphs]
        self.dual_coef_ = np.ascontiguousarray((np.column_stack(dual) if len(dual) > 1 else dual[0]).T)

    def _check_parameters(self) -> None:
        self._check_loss_parameters()
        self._check_kernel_parameters()
        check_choice("solver", self.solver, ("auto", *SOLVERS))
        check_number("alpha", self.alpha, minimum=0, remedy="use 0 or a positive number")

    def _fit_all(self, design: Design, problem: KernelProblem) -> Callable[[PairGraph], Floats]:
        """Return what solves the dual of a graph."""
        is_operator = not design.has_rows
        self.solver_ = ("cg" if is_operator else "direct") if self.solver == "auto" else self.solver
        if is_operator and self.solver_ != "cg":
            raise InvalidInputError(
                f"solver={self.solver!r} needs the kernel as a matrix.", "use solver='cg' with an operator."
            )

        def fit(graph: PairGraph) -> Floats:
            if self.solver_ == "cg":
                factor = factor_of(graph, by_products=True)
                objective = DualObjective(problem.products(design), factor, graph.pull)
                return objective.dual_coefficients(self._iterate(objective))
            copies = (2 if self.solver_ == "direct" else 4) + (2 if graph.blocks is None else 0)
            kernel = DenseDesign(problem.matrix(copies))
            objective = DualObjective(kernel, factor_of(graph), graph.pull)
            return objective.dual_coefficients(self._solve_matrix(objective, problem.kernel))

        return fit

    def _solve_matrix(self, objective: DualObjective, kernel: Kernel) -> Floats:
        alpha = float(self.alpha)
        matrix = objective.matrix()
        if self.solver_ == "direct" and alpha > 0 and (kernel.is_surely_positive or is_positive(matrix)):
            return SOLVERS["direct"](objective, alpha, SolverOptions()).coef
        spectrum = DualSpectrum.of_matrix(matrix)
        if not kernel.is_surely_positive:
            warn_if_indefinite(spectrum)
        return spectrum.solve(objective.rhs, alpha)

    def _fit_reduced(self, design: Design, problem: KernelProblem) -> Callable[[PairGraph], Floats]:
        """Return what solves the linear problem of a graph on the explicit features."""
        feature_map = problem.feature_map()
        few = feature_map.n_features <= _DIRECT_COLUMNS
        self.solver_ = ("direct" if few else "cg") if self.solver == "auto" else self.solver
        progress = KernelProgress("fitting", problem.n_rows)
        with progress:
            features = problem.features(feature_map, progress.rows)

        def fit(graph: PairGraph) -> Floats:
            with progress:
                objective = SquaredObjective(features, graph)
                if self.solver_ == "cg":
                    sample = None
                    if graph.blocks is not None:
                        sample = SampledSpectrum.of_rows(features, graph.blocks, self.random_state)
                    return feature_map.dual_coefficients(self._iterate(objective, sample, progress))
                solution = SOLVERS[self.solver_](objective, float(self.alpha), SolverOptions())
                return feature_map.dual_coefficients(solution.coef)

        return fit

    def _iterate(
        self,
        objective: QuadraticObjective,
        sample: SampledSpectrum | None = None,
        progress: KernelProgress | None = None,
    ) -> Floats:
        if sample is None or progress is None:
            options = SolverOptions(tol=self.tol, max_iter=self.max_iter)
            solution = SOLVERS["cg"](objective, float(self.alpha), options)
        else:
            solution = preconditioned_gradients(
                objective,
                np.array([float(self.alpha)]),
                sample,
                tol=self.tol,
                max_iter=self.max_iter,
                report=progress.iterations,
            )
            solution = replace(solution, coef=solution.coef.reshape(objective.rhs.shape))
        self.n_iter_ = max(self.n_iter_, solution.n_iter)
        if not solution.status.is_good and solution.status is not Status.SINGULAR:
            warnings.warn(
                f"solver='cg' stopped after {solution.n_iter} iterations at a relative residual of "
                f"{solution.certificate:.1e} (tol={self.tol}): {solution.status.value}. Hint: raise max_iter "
                "or tol, or use a larger alpha.",
                ConvergenceWarning,
                stacklevel=caller_level(),
            )
        return solution.coef
