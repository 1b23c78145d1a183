"""Choosing alpha on a reduced set that is so large that its features are made again whenever they are needed.

All alphas go in lockstep, by preconditioned conjugate gradients: one read of the kernel per iteration serves every
alpha. The sample that preconditions the whole problem preconditions its folds as well.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from rankwise.arrays import Floats
from rankwise.fitting.kernel_squares import KernelProgress
from rankwise.fitting.notices import Notice, notices_of_extremes
from rankwise.metrics import Metric
from rankwise.objectives import SquaredObjective
from rankwise.pairs.labels import LabelGraph
from rankwise.problems.kernel import KernelProblem
from rankwise.problems.training import TrainingData
from rankwise.selection.grids import choose_among
from rankwise.selection.held_out import HeldOut, held_out_scorer, trained_on
from rankwise.selection.result import Selection
from rankwise.selection.scorers import EvalSet
from rankwise.solvers.nystrom import SampledSpectrum, preconditioned_gradients

__all__ = ["choose_on_reduced_set"]


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
    with KernelProgress("selecting", problem.n_rows) as progress:
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
    progress: KernelProgress
    tol: float
    max_iter: int | None
    seed: int
    n_iter: int = 0
    worst: float = 0.0

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
