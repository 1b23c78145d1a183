"""All alphas of a reduced set in lockstep, by preconditioned conjugate gradients: scored by folds or rows of their own.

For basis and rows so many that features are made again whenever they are needed: one read of the kernel an iteration
serves every alpha. The sample that preconditions the whole problem preconditions its folds as well.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from rankwise.arrays import Floats
from rankwise.design import Design
from rankwise.exceptions import caller_level
from rankwise.kernels import FeatureMap
from rankwise.metrics import Metric
from rankwise.objectives import SquaredObjective
from rankwise.pairs.labels import LabelGraph
from rankwise.problems.kernel import KernelProblem
from rankwise.problems.training import TrainingData
from rankwise.selection.held_out import RowFoldSystems
from rankwise.selection.kernel_choice import KernelChoice, choose_among
from rankwise.selection.kernel_progress import KernelProgress
from rankwise.selection.scorers import Scorer
from rankwise.solvers.nystrom import SampledSpectrum, preconditioned_gradients
from rankwise.solvers.solution import Solution

__all__ = ["ReducedPath"]


@dataclass
class ReducedPath:
    """The path over alphas of a reduced set.

    Attributes
    ----------
    alphas : (alphas,) float64
    tol, max_iter
        Of the iteration.
    seed : int
        Of the sample that preconditions.
    """

    problem: KernelProblem
    data: TrainingData
    metric: Metric
    alphas: Floats
    tol: float
    max_iter: int | None
    seed: int

    def __post_init__(self) -> None:
        self.feature_map: FeatureMap = self.problem.feature_map()
        self.progress = KernelProgress("selecting", self.problem.n_rows)
        with self.progress:
            self.features = self.problem.features(self.feature_map, self.progress.rows)
        self.n_iter = 0
        self.worst = 0.0
        self._samples: dict[int, SampledSpectrum] = {}

    def scored_by_folds(self, systems: RowFoldSystems) -> KernelChoice:
        """Scorer every fold by the rows it does not see, and fit all rows with the alphas chosen."""
        fold, scored = systems.fold, systems.scored

        def errors(output: int, alphas: Floats) -> Floats:
            scores = np.empty((alphas.size, scored.size))
            for number, graph in enumerate(systems.fold_graphs(output)):
                coef = self._solve(graph, output, alphas)
                own = fold[scored] == number
                scores[:, own] = self.features.rows(scored[own]).dot(coef).T
            return systems.scorer_of(output)(scored).errors(scores)

        return self._choose(
            errors, lambda output, alpha: self._dual(self._whole(output), output, np.array([alpha]))[:, 0]
        )

    def scored_by_rows(self, rows: Design, scorers: Sequence[Scorer]) -> KernelChoice:
        """Scorer by rows of their own."""
        found: dict[tuple[int, float], Floats] = {}

        def errors(output: int, alphas: Floats) -> Floats:
            dual = self._dual(self._whole(output), output, alphas)
            found.update(
                {(output, float(alpha)): column for alpha, column in zip(alphas, dual.T, strict=True)}
            )
            return scorers[output].errors(self.problem.scores(rows, dual).T)

        return self._choose(errors, lambda output, alpha: np.ascontiguousarray(found[output, alpha]))

    def _choose(
        self, errors: Callable[[int, Floats], Floats], dual_of: Callable[[int, float], Floats]
    ) -> KernelChoice:
        sign = -1.0 if self.metric.greater_is_better else 1.0
        outputs = range(len(self.data.columns))

        def scorer(alphas: Floats) -> Floats:
            return sign * np.column_stack([errors(output, alphas) for output in outputs])

        choice = choose_among(self.alphas, scorer, self.metric, dual_of, small_is_cheap=False)
        choice.extra["n_iter_"] = self.n_iter
        if self.worst > self.tol:
            warnings.warn(
                f"solver='cg' stopped after {self.n_iter} iterations at a relative residual of {self.worst:.1e} "
                f"(tol={self.tol}). Hint: raise max_iter or tol, or leave the smallest alphas out.",
                ConvergenceWarning,
                stacklevel=caller_level(),
            )
        return choice

    def _dual(self, graph: LabelGraph, output: int, alphas: Floats) -> Floats:
        return self.feature_map.dual_coefficients(self._solve(graph, output, alphas))

    def _whole(self, output: int) -> LabelGraph:
        return self.data.graph(output, self.data.row_weight)

    def _solve(self, graph: LabelGraph, output: int, alphas: Floats) -> Floats:
        """Return the coefficients of the features, (features, alphas)."""
        with self.progress:
            if output not in self._samples:
                sample = SampledSpectrum.of_rows(self.features, self._whole(output).blocks, self.seed)
                assert sample is not None
                self._samples[output] = sample
            solution: Solution = preconditioned_gradients(
                SquaredObjective(self.features, graph),
                alphas,
                self._samples[output],
                tol=self.tol,
                max_iter=self.max_iter,
                report=self.progress.iterations,
            )
        self.n_iter = max(self.n_iter, solution.n_iter)
        self.worst = max(self.worst, solution.certificate)
        return solution.coef
