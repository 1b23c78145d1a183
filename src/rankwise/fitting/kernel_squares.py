"""Kernel least squares at one alpha: the dual of all rows, or the linear problem of a reduced set."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np

from rankwise.arrays import Floats
from rankwise.design import DenseDesign, Design
from rankwise.fitting.notices import Notice, notices_of_extremes, notices_of_linear, notices_of_residual
from rankwise.kernels import Kernel
from rankwise.objectives import QuadraticObjective, SquaredObjective
from rankwise.pairs.factor import factor_of
from rankwise.pairs.graph import PairGraph
from rankwise.problems.kernel import KernelProblem
from rankwise.runtime.progress import ProgressLine
from rankwise.solvers.choose import SOLVERS, SolverOptions
from rankwise.solvers.dual import DualObjective, DualSpectrum, is_positive
from rankwise.solvers.nystrom import SampledSpectrum, preconditioned_gradients
from rankwise.solvers.solution import Solution, Status

__all__ = ["KernelLeastSquares", "KernelProgress"]

_DIRECT_COLUMNS = 5000  # up to so many features of a reduced set their Gram matrix is formed


class KernelProgress(ProgressLine):
    """Says how many kernel rows have been made, and where an iteration stands."""

    def __init__(self, title: str, n_rows: int) -> None:
        super().__init__(title)
        self._n_rows, self._state = n_rows, ""

    def rows(self, made: int) -> None:
        """Take note of rows made in the current read."""
        self.update(f"{self._state}kernel rows {made} of {self._n_rows}")

    def iterations(self, number: int, residual: float) -> None:
        """Take note of an iteration and its largest relative residual."""
        self._state = f"iteration {number}, relative residual {residual:.1e}; "
        self.update(self._state.rstrip("; "))


@dataclass
class KernelLeastSquares:
    """How a kernel model is fitted at one alpha.

    Attributes
    ----------
    solver : {"auto", "direct", "eigen", "cg"}
        "auto" becomes what was used.
    seed : int
        Of the sample that preconditions.
    n_iter : int
        The most iterations so far.
    notices : list of Notice
    """

    solver: str
    alpha: float
    tol: float
    max_iter: int | None
    seed: int
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
        if self.solver == "auto":
            self.solver = "direct" if feature_map.n_features <= _DIRECT_COLUMNS else "cg"
        dual = []
        with KernelProgress("fitting", problem.n_rows) as progress:
            features = problem.features(feature_map, progress.rows)
            for graph in graphs:
                objective = SquaredObjective(features, graph)
                if self.solver != "cg":
                    coef = SOLVERS[self.solver](objective, self.alpha, SolverOptions()).coef
                elif graph.blocks is None:
                    coef = self._iterated(objective)
                else:
                    sample = SampledSpectrum.of_rows(features, graph.blocks, self.seed)
                    coef = self._iterated(objective, sample, progress)
                dual.append(feature_map.dual_coefficients(coef))
        return dual

    def _iterated(
        self,
        objective: QuadraticObjective,
        sample: SampledSpectrum | None = None,
        progress: KernelProgress | None = None,
    ) -> Floats:
        solution: Solution
        if sample is None or progress is None:
            options = SolverOptions(tol=self.tol, max_iter=self.max_iter)
            solution = SOLVERS["cg"](objective, self.alpha, options)
        else:
            running = partial(preconditioned_gradients, tol=self.tol, max_iter=self.max_iter)
            solution = running(objective, np.array([self.alpha]), sample, report=progress.iterations)
            solution = replace(solution, coef=solution.coef.reshape(objective.rhs.shape))
        self.n_iter = max(self.n_iter, solution.n_iter)
        if solution.status is not Status.SINGULAR:
            self.notices += notices_of_residual("cg", solution, self.tol, "or use a larger alpha")
        return solution.coef
