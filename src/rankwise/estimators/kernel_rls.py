"""Kernel RankRLS: the dual of the 2007 and 2009 RankRLS papers, and its reduced-set approximation."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from rankwise.arrays import ArrayLike, Floats
from rankwise.data.validation import check_choice, check_number
from rankwise.design import DenseDesign, Design
from rankwise.estimators.checks import check_running, check_squared_loss
from rankwise.estimators.kernel_ranker import KernelRanker
from rankwise.kernels import Kernel
from rankwise.objectives import QuadraticObjective, SquaredObjective
from rankwise.pairs.factor import factor_of
from rankwise.pairs.graph import PairGraph
from rankwise.problems.kernel import Basis, KernelProblem, warn_if_indefinite
from rankwise.problems.training import PairData, TrainingData
from rankwise.selection.reduced_set import KernelProgress
from rankwise.selection.result import outputs_of
from rankwise.selection.solving import warn_unsolved
from rankwise.solvers.choose import SOLVERS, SolverOptions
from rankwise.solvers.dual import DualObjective, DualSpectrum, is_positive
from rankwise.solvers.nystrom import SampledSpectrum, preconditioned_gradients
from rankwise.solvers.solution import Status

__all__ = ["KernelRankRLS"]

_DIRECT_COLUMNS = 5000  # up to so many features of a reduced set their Gram matrix is formed


class KernelRankRLS(KernelRanker):
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
        kernel: str | Callable[..., ArrayLike] = "rbf",
        *,
        gamma: str | float = "scale",
        degree: float = 3,
        coef0: float = 1,
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
        random_state: int = 0,
        n_threads: int | None = None,
    ) -> None:
        self._store(locals())

    def _learn(self, data: TrainingData | PairData) -> None:
        """Solve every graph's problem; several graphs are several outputs."""
        problem = self._problem(data, self.gamma)
        self._keep_kernel(problem)
        self.n_iter_ = 0
        if problem.basis is None:
            self.solver_ = self._require_matrix(data.design, "direct")
            dual = [self._fit_all(data.design, problem, graph) for graph in data.graphs()]
        else:
            dual = self._fit_reduced(problem, data.graphs())
        self._keep_models(outputs_of(dual), several=data.several_outputs)

    def _check_parameters(self) -> None:
        check_squared_loss(self.query_weight, self.ties, self.cost)
        check_running(self.tol, self.max_iter, self.n_threads, self.random_state, example="1e-5")
        self._check_kernel_parameters()
        check_choice("solver", self.solver, ("auto", *SOLVERS))
        check_number("alpha", self.alpha, minimum=0, remedy="use 0 or a positive number")

    def _fit_all(self, design: Design, problem: KernelProblem, graph: PairGraph) -> Floats:
        """Solve the dual of a graph."""
        if self.solver_ == "cg":
            factor = factor_of(graph, by_products=True)
            objective = DualObjective(problem.products(design), factor, graph.pull)
            return objective.dual_coefficients(self._iterate(objective))
        copies = (2 if self.solver_ == "direct" else 4) + (2 if graph.blocks is None else 0)
        objective = DualObjective(DenseDesign(problem.matrix(copies)), factor_of(graph), graph.pull)
        return objective.dual_coefficients(self._solve_matrix(objective, problem.kernel))

    def _solve_matrix(self, objective: DualObjective, kernel: Kernel) -> Floats:
        alpha = float(self.alpha)
        matrix = objective.matrix()
        if self.solver_ == "direct" and alpha > 0 and (kernel.is_surely_positive or is_positive(matrix)):
            return SOLVERS["direct"](objective, alpha, SolverOptions()).coef
        spectrum = DualSpectrum.of_matrix(matrix)
        if not kernel.is_surely_positive:
            warn_if_indefinite(spectrum)
        return spectrum.solve(objective.rhs, alpha)

    def _fit_reduced(self, problem: KernelProblem, graphs: Sequence[PairGraph]) -> list[Floats]:
        """Solve the linear problems of all graphs on the explicit features."""
        feature_map = problem.feature_map()
        few = feature_map.n_features <= _DIRECT_COLUMNS
        self.solver_ = ("direct" if few else "cg") if self.solver == "auto" else self.solver
        progress = KernelProgress("fitting", problem.n_rows)
        with progress:
            features = problem.features(feature_map, progress.rows)
        dual = []
        for graph in graphs:
            with progress:
                objective = SquaredObjective(features, graph)
                if self.solver_ != "cg":
                    coef = SOLVERS[self.solver_](objective, float(self.alpha), SolverOptions()).coef
                elif graph.blocks is None:
                    coef = self._iterate(objective)
                else:
                    sample = SampledSpectrum.of_rows(features, graph.blocks, self.random_state)
                    coef = self._iterate(objective, sample, progress)
            dual.append(feature_map.dual_coefficients(coef))
        return dual

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
            warn_unsolved("cg", solution, self.tol, "or use a larger alpha")
        return solution.coef
