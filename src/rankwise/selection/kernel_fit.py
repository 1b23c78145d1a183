"""Kernel least squares: the dual of all rows, or the linear problem of a reduced set; at one alpha, or a path of them.

On a reduced set all alphas go in lockstep, by preconditioned conjugate gradients, for basis and rows so many that
features are made again whenever they are needed: one read of the kernel per iteration serves every alpha. The sample
that preconditions the whole problem preconditions its folds as well.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import ClassVar

import numpy as np

from rankwise.arrays import Floats
from rankwise.design import DenseDesign, Design
from rankwise.kernels import Kernel
from rankwise.metrics import Metric
from rankwise.objectives import QuadraticObjective, SquaredObjective
from rankwise.pairs.factor import factor_of
from rankwise.pairs.graph import PairGraph
from rankwise.pairs.labels import LabelGraph
from rankwise.problems.kernel import KernelProblem
from rankwise.problems.training import TrainingData
from rankwise.runtime.progress import ProgressLine
from rankwise.selection.grids import choose_among
from rankwise.selection.held_out import HeldOut, held_out_scorer, trained_on
from rankwise.selection.result import Notice, Selection
from rankwise.selection.scorers import EvalSet
from rankwise.selection.solving import notices_of_extremes, notices_of_residual
from rankwise.solvers.choose import SOLVERS, SolverOptions
from rankwise.solvers.dual import DualObjective, DualSpectrum, is_positive
from rankwise.solvers.nystrom import SampledSpectrum, preconditioned_gradients
from rankwise.solvers.solution import Solution, Status

__all__ = ["KernelLeastSquares", "choose_on_reduced_set"]

_DIRECT_COLUMNS = 5000  # up to so many features of a reduced set their Gram matrix is formed


class _Progress(ProgressLine):
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
        if problem.basis is not None:
            return self._solve_reduced(problem, graphs)
        self.solver = "direct" if self.solver == "auto" else self.solver
        return [self._solve_dual(design, problem, graph) for graph in graphs]

    def _solve_dual(self, design: Design, problem: KernelProblem, graph: PairGraph) -> Floats:
        if self.solver == "cg":
            factor = factor_of(graph, by_products=True)
            objective = DualObjective(problem.products(design), factor, graph.pull)
            return objective.dual_coefficients(self._iterated(objective))
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
        with _Progress("fitting", problem.n_rows) as progress:
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
        progress: _Progress | None = None,
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


def choose_on_reduced_set(
    problem: KernelProblem,
    data: TrainingData,
    held_out: HeldOut,
    metric: Metric,
    alphas: Floats,
    *,
    tol: float,
    max_iter: int | None,
    seed: int,
) -> Selection:
    """Choose the best alpha of each output by folds or rows of their own, and make its model."""
    with _Progress("selecting", problem.n_rows) as progress:
        path = _ReducedPath(problem, data, held_out, metric, progress, tol, max_iter, seed)
        selection = choose_among(path, alphas, small_is_cheap=False).with_facts(n_iter_=path.n_iter)
    notices = notices_of_extremes(problem.kernel, {"between basis rows": path.feature_map.extremes})
    if path.worst > tol:
        what = (
            f"solver='cg' stopped after {path.n_iter} iterations at a relative residual of {path.worst:.1e} "
            f"(tol={tol})"
        )
        notices.append(Notice(what, "raise max_iter or tol, or leave the smallest alphas out"))
    return replace(selection, notices=notices)


@dataclass
class _ReducedPath:
    """The path over alphas; `worst` is the largest relative residual that was left."""

    problem: KernelProblem
    data: TrainingData
    held_out: HeldOut
    metric: Metric
    progress: _Progress
    tol: float
    max_iter: int | None
    seed: int
    n_iter: int = 0
    worst: float = 0.0
    is_interrupted: ClassVar[bool] = False  # Ctrl-C ends it without a model

    def __post_init__(self) -> None:
        self.feature_map = self.problem.feature_map()
        self._features = self.problem.features(self.feature_map, self.progress.rows)
        self._samples: dict[int, SampledSpectrum] = {}
        self._found: dict[tuple[int, float], Floats] = {}

    def errors(self, alphas: Floats) -> Floats:
        """Return the held-out errors, (alphas, outputs)."""
        return np.column_stack([self._errors(output, alphas) for output in range(self.data.n_outputs)])

    def model(self, output: int, alpha: float) -> Floats:
        """Return the model of all rows."""
        if (output, alpha) not in self._found:
            self._fit_whole(output, np.array([alpha]))
        return np.ascontiguousarray(self._found[output, alpha])

    def _errors(self, output: int, alphas: Floats) -> Floats:
        data, held_out = self.data, self.held_out
        if isinstance(held_out, EvalSet):
            dual = self._fit_whole(output, alphas)
            return held_out.scorers[output].errors(self.problem.scores(held_out.rows, dual).T)
        scored = held_out.scored
        scores = np.empty((alphas.size, scored.size))
        for fold in range(held_out.n_folds):
            graph = data.graph_of(output, trained_on(data, held_out, output, fold))
            own = held_out.groups[scored] == fold
            scores[:, own] = self._features.rows(scored[own]).dot(self._solve(graph, output, alphas)).T
        return held_out_scorer(data, held_out, output, self.metric, scored).errors(scores)

    def _fit_whole(self, output: int, alphas: Floats) -> Floats:
        """Fit all rows; return and keep the dual coefficients, (basis, alphas)."""
        coef = self._solve(self.data.graph_of(output), output, alphas)
        dual = self.feature_map.dual_coefficients(coef)
        self._found.update(
            {(output, float(alpha)): column for alpha, column in zip(alphas, dual.T, strict=True)}
        )
        return dual

    def _solve(self, graph: LabelGraph, output: int, alphas: Floats) -> Floats:
        """Return the coefficients of the features, (features, alphas)."""
        if output not in self._samples:
            whole = self.data.graph_of(output).blocks
            sample = SampledSpectrum.of_rows(self._features, whole, self.seed)
            assert sample is not None
            self._samples[output] = sample
        objective = SquaredObjective(self._features, graph)
        solution = preconditioned_gradients(
            objective,
            alphas,
            self._samples[output],
            tol=self.tol,
            max_iter=self.max_iter,
            report=self.progress.iterations,
        )
        self.n_iter = max(self.n_iter, solution.n_iter)
        self.worst = max(self.worst, solution.certificate)
        return solution.coef
