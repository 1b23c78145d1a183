"""Kernel least squares at one alpha: the dual of all rows, or the linear problem of a reduced set."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from rankwise.arrays import Floats
from rankwise.design import DenseDesign, Design
from rankwise.kernels import Kernel
from rankwise.objectives import QuadraticObjective, SquaredObjective
from rankwise.pairs.factor import factor_of
from rankwise.pairs.graph import PairGraph
from rankwise.problems.kernel import KernelProblem, warn_if_indefinite
from rankwise.selection.reduced_set import KernelProgress
from rankwise.selection.solving import warn_unsolved
from rankwise.solvers.choose import SOLVERS, SolverOptions
from rankwise.solvers.dual import DualObjective, DualSpectrum, is_positive
from rankwise.solvers.nystrom import SampledSpectrum, preconditioned_gradients
from rankwise.solvers.solution import Status

__all__ = ["KernelLeastSquares"]

_DIRECT_COLUMNS = 5000  # up to so many features of a reduced set their Gram matrix is formed


@dataclass
class KernelLeastSquares:
    """How a kernel model is fitted at one alpha.

    Attributes
    ----------
    solver : {"auto", "direct", "eigen", "cg"}
        "auto" becomes what was used.
    alpha, tol, max_iter
    seed : int
        Of the sample that preconditions.
    n_iter : int
        The most iterations so far.
    """

    solver: str
    alpha: float
    tol: float
    max_iter: int | None
    seed: int
    n_iter: int = 0

    def solve(self, design: Design, problem: KernelProblem, graphs: Sequence[PairGraph]) -> list[Floats]:
        """Return the dual coefficients of each graph."""
        if problem.basis is not None:
            return self._solve_reduced(problem, graphs)
        self.solver = "direct" if self.solver == "auto" else self.solver
        return [self._solve_dual(design, problem, graph) for graph in graphs]

    def _solve_dual(self, design: Design, problem: KernelProblem, graph: PairGraph) -> Floats:
        if self.solver == "cg":
            factor = factor_of(graph, by_products=True)
            objective = DualObjective(problem.products(design), factor, graph.pull)
            return objective.dual_coefficients(self._iterate(objective))
        copies = (2 if self.solver == "direct" else 4) + (2 if graph.blocks is None else 0)
        objective = DualObjective(DenseDesign(problem.matrix(copies)), factor_of(graph), graph.pull)
        return objective.dual_coefficients(self._solve_matrix(objective, problem.kernel))

    def _solve_matrix(self, objective: DualObjective, kernel: Kernel) -> Floats:
        matrix = objective.matrix()
        is_sure = kernel.is_surely_positive
        if self.solver == "direct" and self.alpha > 0 and (is_sure or is_positive(matrix)):
            return SOLVERS["direct"](objective, self.alpha, SolverOptions()).coef
        spectrum = DualSpectrum.of_matrix(matrix)
        if not is_sure:
            warn_if_indefinite(spectrum)
        return spectrum.solve(objective.rhs, self.alpha)

    def _solve_reduced(self, problem: KernelProblem, graphs: Sequence[PairGraph]) -> list[Floats]:
        """Solve the linear problems on the explicit features."""
        feature_map = problem.feature_map()
        if self.solver == "auto":
            self.solver = "direct" if feature_map.n_features <= _DIRECT_COLUMNS else "cg"
        progress = KernelProgress("fitting", problem.n_rows)
        with progress:
            features = problem.features(feature_map, progress.rows)
        dual = []
        for graph in graphs:
            with progress:
                objective = SquaredObjective(features, graph)
                if self.solver != "cg":
                    coef = SOLVERS[self.solver](objective, self.alpha, SolverOptions()).coef
                elif graph.blocks is None:
                    coef = self._iterate(objective)
                else:
                    sample = SampledSpectrum.of_rows(features, graph.blocks, self.seed)
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
            solution = SOLVERS["cg"](objective, self.alpha, options)
        else:
            alphas, report = np.array([self.alpha]), progress.iterations
            solution = preconditioned_gradients(
                objective, alphas, sample, tol=self.tol, max_iter=self.max_iter, report=report
            )
            solution = replace(solution, coef=solution.coef.reshape(objective.rhs.shape))
        self.n_iter = max(self.n_iter, solution.n_iter)
        if not solution.status.is_good and solution.status is not Status.SINGULAR:
            warn_unsolved("cg", solution, self.tol, "or use a larger alpha")
        return solution.coef
