"""Least squares at one alpha, of columns or of a kernel: choice of the solver, and notices about the solution."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import scipy.linalg

from rankwise.arrays import Floats
from rankwise.design import DenseDesign, Design
from rankwise.exceptions import UnsuitableSolverError
from rankwise.fitting.notices import (
    DUAL_SCALES,
    Notice,
    notices_of_extremes,
    notices_of_residual,
    notices_of_scales,
    require_range,
)
from rankwise.fitting.problem import KernelProblem, Restriction
from rankwise.kernels import Kernel
from rankwise.objectives import (
    MatrixQuadratic,
    MinimisedObjective,
    QuadraticObjective,
    ScaledObjective,
    SquaredObjective,
    prior_scale,
)
from rankwise.pairs.factor import factor_of
from rankwise.pairs.graph import PairGraph
from rankwise.solvers.bounded import Bounds, minimise_bounded, polished
from rankwise.solvers.choose import (
    SOLVERS,
    SolverOptions,
    choose_solver,
    fits_direct,
    matrix_bytes,
    require_diagonal,
)
from rankwise.solvers.direct import DualObjective, DualSpectrum, is_positive
from rankwise.solvers.scales import differ_in_scale
from rankwise.solvers.solution import Solution, Status

# Names of the solver of signed coefficients, which nobody chooses: with the matrix ``X'LX``, and without.
BOUNDED_MATRIX, BOUNDED = "bounded", "bounded-cg"


@dataclass(frozen=True)
class LeastSquares:
    """How a least-squares model is fitted at one alpha.

    Attributes
    ----------
    solver : str
        A name of `SOLVERS`, or "auto".
    restriction : Restriction or None
        Prior knowledge of the coefficients; with signs, the solver is "bounded".
    """

    solver: str
    alpha: float
    penalty_power: float = 0.0
    options: SolverOptions = field(default_factory=SolverOptions)
    restriction: Restriction | None = None

    def resolved(self, design: Design, *, forms_matrix: bool) -> LeastSquares:
        """Return the same with "auto" decided; raise where the solver cannot be used."""
        n_features = design.shape[1]
        by_diagonal = self.solver in {"gdm", "stochastic"}
        if self.penalty_power != 0 or by_diagonal:
            require_diagonal(design)
        if self.solver == "auto":
            solver = choose_solver(design, forms_matrix=forms_matrix)
            if self.restriction is not None and self.restriction.is_signed:
                solver = BOUNDED_MATRIX if solver == "direct" else BOUNDED
            return replace(self, solver=solver)
        if self.solver in {"direct", "eigen"}:
            why, most = "", design.widest_matrix
            if not fits_direct(n_features):
                why = f"which takes about {matrix_bytes(n_features) / 2**30:.1f} GiB, more than is free"
            elif n_features > most:
                why = f"added up from every worker, and {most:.0f} columns are the limit"
            if why:
                raise UnsuitableSolverError(
                    f"solver={self.solver!r} forms a matrix of {n_features} × {n_features}, {why}.",
                    "use solver='cg', which needs only a few vectors of that length.",
                )
        return self

    def scaled(self, objective: QuadraticObjective) -> QuadraticObjective:
        """Return an objective in the units of columns that `penalty_power` gives them."""
        if self.penalty_power == 0:
            return objective
        return ScaledObjective(objective, prior_scale(objective, self.penalty_power))

    def solve(self, objective: QuadraticObjective) -> Solution:
        """Find the minimum of an objective plus the penalty; `notices` reports solutions that miss the tolerance."""
        moved, known = self.scaled(objective), self.restriction
        inner, bounds = moved, None
        if known is not None:  # in coordinates in which the penalty is ``α‖u‖²``
            assert isinstance(objective, SquaredObjective)
            known, free = known.with_penalties(objective.design, objective.graph.laplacian, self.alpha)
            origin, scale = known.origin(objective.n_features), known.scale(objective.n_features)
            if isinstance(moved, ScaledObjective):
                scale = scale * moved.column_scale
            inner = moved = ScaledObjective(objective, scale, origin)
            if known.is_signed:
                bounds = known.bounds(origin, scale)
                free = free[np.isinf(bounds.lower[free]) & np.isinf(bounds.upper[free])]
            if free.size:
                inner = MinimisedObjective(moved, free)
        if bounds is not None:
            solution = self._solve_bounded(inner, bounds)
        else:
            with np.errstate(
                over="ignore", invalid="ignore"
            ):  # the solvers notice, and say so by their status
                solution = SOLVERS[self.solver](inner, self.alpha, self.options)
            require_range(solution)
        coef = inner.completed(solution.coef) if isinstance(inner, MinimisedObjective) else solution.coef
        if bounds is None:  # what a minimum gained over u = 0 is b'u
            solution = replace(solution, gain=float(np.abs((moved.rhs * coef).sum())))
        coef = moved.to_coef(coef) if isinstance(moved, ScaledObjective) else coef
        return replace(solution, coef=coef if known is None else known.signed(coef))

    def _solve_bounded(self, moved: QuadraticObjective, bounds: Bounds) -> Solution:
        """Solve output by output; `tol` bounds the residual, and the gap falls with its square."""
        rhs = moved.rhs if moved.rhs.ndim == 2 else moved.rhs[:, None]
        matrix = moved.matrix() if self.solver == BOUNDED_MATRIX else None
        sizes = moved.sizes() if matrix is None else np.diagonal(matrix)
        is_alike = matrix is None and (sizes is None or not differ_in_scale(sizes, self.alpha))
        found = []
        for column in rhs.T:
            own: QuadraticObjective
            if matrix is None:
                own = ScaledObjective(moved, np.ones(moved.n_features))
                own.rhs = column
            else:
                own = MatrixQuadratic(matrix, column)
            solution = minimise_bounded(
                own,
                self.alpha,
                bounds,
                tol=self.options.tol**2,
                max_iter=self.options.max_iter,
                diagonal=None if sizes is None or is_alike else 2 * sizes,
            )
            found.append(solution if matrix is None else polished(solution, own, self.alpha, bounds))
        worst = next((one for one in found if not one.status.is_good), found[0])
        coef = found[0].coef if moved.rhs.ndim == 1 else np.column_stack([one.coef for one in found])
        return replace(worst, coef=coef, n_iter=max(one.n_iter for one in found))

    def notices(self, solutions: Sequence[Solution]) -> list[Notice]:
        """Return notices about solutions that miss the tolerance or are not unique."""
        return [notice for one in solutions for notice in self._notices(one)]

    def _notices(self, solution: Solution) -> list[Notice]:
        if solution.status is not Status.SINGULAR:
            remedy = "use a larger alpha, or scale the columns"
            return notices_of_residual(self.solver, solution, self.options.tol, remedy)
        remedy = "alpha > 0" if self.alpha == 0 else "a larger alpha, or bring the columns to like scales"
        what = (
            f"X has no more than {solution.rank} independent directions inside queries, fewer than its "
            f"{solution.coef.shape[0]} columns, and alpha={self.alpha} does not choose between the "
            "solutions: the one of least norm was taken"
        )
        return [Notice(what, f"use {remedy}", scipy.linalg.LinAlgWarning)]


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
        self.notices += notices_of_scales(problem.linear_rows, DUAL_SCALES)
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
        feature_map, Z = problem.mapped()
        self.notices += notices_of_extremes(problem.kernel, {"between basis rows": feature_map.extremes})
        self.solver = "direct" if self.solver == "auto" else self.solver
        features = DenseDesign(Z, problem.n_threads)
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
