"""Kernel least squares at one alpha: the dual of all rows, or the linear problem of a reduced set."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from rankwise.arrays import Floats
from rankwise.design import DenseDesign, Design
from rankwise.fitting.notices import Notice, notices_of_extremes, notices_of_linear, notices_of_residual
from rankwise.kernels import Kernel
from rankwise.objectives import QuadraticObjective, SquaredObjective
from rankwise.pairs.factor import factor_of
from rankwise.pairs.graph import PairGraph
from rankwise.problems.kernel import KernelProblem
from rankwise.solvers.choose import SOLVERS, SolverOptions
from rankwise.solvers.direct import DualObjective, DualSpectrum, is_positive
from rankwise.solvers.solution import Status

__all__ = ["KernelLeastSquares"]


@dataclass
class KernelLeastSquares:
    """Fit a kernel model at one alpha.

    Attributes
    ----------
    solver : {"auto", "direct", "eigen", "cg"}
        "auto" is replaced by the solver that was used.
    n_iter : int
        The most iterations so far.
    notices : list of Notice
    """

    solver: str
    alpha: float
    tol: float
    max_iter: int | None
    n_iter: int = 0
    notices: list[Notice] = field(default_factory=list)

    def solve(self, design: Design, problem: KernelProblem, graphs: Sequence[PairGraph]) -> list[Floats]:
        """Return the dual coefficients of each graph."""
        self.notices += notices_of_linear(problem)
        if problem.basis is not None:
            return self._solve_reduced(problem, graphs)
        self.solver = "direct" if self.solver == "auto" else self.solver
        return [self._solve_dual(design, problem, graph) for graph in graphs]

    def _solve_dual(self, design: Design, problem: KernelProblem, graph: PairGraph) -> Floats:
        if self.solver == "cg":
            factor = factor_of(graph, by_products=True)
            objective = DualObjective(problem.products(design), factor, graph.pull)
            return objective.dual_coefficients(self._iterated(objective))
        if (X := problem.unlike_columns()) is not None:
            factor = factor_of(graph)
            spectrum = DualSpectrum.of_features(factor.apply(X))
            return factor.transposed(spectrum.solve(factor.target(graph.pull), self.alpha))
        copies = (2 if self.solver == "direct" else 4) + (2 if graph.blocks is None else 0)
        objective = DualObjective(DenseDesign(problem.matrix(copies)), factor_of(graph), graph.pull)
        return objective.dual_coefficients(self._solve_matrix(objective, problem.kernel))

    def _solve_matrix(self, objective: DualObjective, kernel: Kernel) -> Floats:
        matrix, is_sure = objective.matrix(), kernel.is_surely_positive
        if self.solver == "direct" and self.alpha > 0 and (is_sure or is_positive(matrix)):
            return SOLVERS["direct"](objective, self.alpha, SolverOptions()).coef
        spectrum = DualSpectrum.of_matrix(matrix)
        self.notices += notices_of_extremes(kernel, {"on the pairs": spectrum.extremes})
        return spectrum.solve(objective.rhs, self.alpha)

    def _solve_reduced(self, problem: KernelProblem, graphs: Sequence[PairGraph]) -> list[Floats]:
        """Solve the linear problems on the explicit features."""
        feature_map = problem.feature_map()
        self.notices += notices_of_extremes(problem.kernel, {"between basis rows": feature_map.extremes})
        self.solver = "direct" if self.solver == "auto" else self.solver
        features = DenseDesign(problem.features(feature_map), problem.n_threads)
        dual = []
        for graph in graphs:
            objective = SquaredObjective(features, graph)
            if self.solver == "cg":
                coef = self._iterated(objective)
            else:
                coef = SOLVERS[self.solver](objective, self.alpha, SolverOptions()).coef
            dual.append(feature_map.dual_coefficients(coef))
        return dual

    def _iterated(self, objective: QuadraticObjective) -> Floats:
        options = SolverOptions(tol=self.tol, max_iter=self.max_iter)
        solution = SOLVERS["cg"](objective, self.alpha, options)
        self.n_iter = max(self.n_iter, solution.n_iter)
        if solution.status is not Status.SINGULAR:
            self.notices += notices_of_residual("cg", solution, self.tol, "or use a larger alpha")
        return solution.coef
