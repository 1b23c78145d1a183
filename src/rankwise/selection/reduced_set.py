"""All alphas of a reduced set in lockstep, by preconditioned conjugate gradients: scored by folds or rows of their own.

For basis and rows so many that features are made again whenever they are needed: one read of the kernel an iteration
serves every alpha. The sample that preconditions the whole problem preconditions its folds as well.
"""

from __future__ import annotations

import warnings
from types import TracebackType
from typing import Self

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from rankwise.arrays import Floats
from rankwise.exceptions import caller_level
from rankwise.metrics import Metric
from rankwise.objectives import SquaredObjective
from rankwise.pairs.labels import LabelGraph
from rankwise.problems.kernel import KernelProblem
from rankwise.problems.training import TrainingData
from rankwise.progress import ProgressLine
from rankwise.selection.closed_form import choose_among
from rankwise.selection.cv import RowPlan
from rankwise.selection.result import Selection
from rankwise.selection.scorers import EvalSet
from rankwise.selection.systems import fold_graph, held_out_scorer
from rankwise.solvers.nystrom import SampledSpectrum, preconditioned_gradients

__all__ = ["KernelProgress", "ReducedPath"]


class KernelProgress:
    """Says how many kernel rows have been made, and where an iteration stands; may be entered more than once."""

    def __init__(self, title: str, n_rows: int) -> None:
        self._title, self._n_rows = title, n_rows
        self.__enter__()

    def rows(self, made: int) -> None:
        """Take note of rows made in the current read."""
        self._line.update(f"{self._state}kernel rows {made} of {self._n_rows}")

    def iterations(self, number: int, residual: float) -> None:
        """Take note of an iteration and its largest relative residual."""
        self._state = f"iteration {number}, relative residual {residual:.1e}; "
        self._line.update(self._state.rstrip("; "))

    def __enter__(self) -> Self:
        self._line, self._state = ProgressLine(self._title), ""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._line.__exit__(kind, error, trace)


class ReducedPath:
    """The path over alphas of a reduced set.

    Parameters
    ----------
    problem : KernelProblem
    data : TrainingData
    held_out : RowPlan or EvalSet
    metric : Metric
    tol, max_iter
        Of the iteration.
    seed : int
        Of the sample that preconditions.
    """

    def __init__(
        self,
        problem: KernelProblem,
        data: TrainingData,
        held_out: RowPlan | EvalSet,
        metric: Metric,
        *,
        tol: float,
        max_iter: int | None,
        seed: int,
    ) -> None:
        self._problem, self._data, self._held_out, self._metric = problem, data, held_out, metric
        self._tol, self._max_iter, self._seed = tol, max_iter, seed
        self._feature_map = problem.feature_map()
        self._progress = KernelProgress("selecting", problem.n_rows)
        with self._progress:
            self._features = problem.features(self._feature_map, self._progress.rows)
        self._n_iter, self._worst = 0, 0.0
        self._samples: dict[int, SampledSpectrum] = {}
        self._found: dict[tuple[int, float], Floats] = {}

    def choose(self, alphas: Floats) -> Selection:
        """Choose the best alpha of each output, and make its model."""
        selection = choose_among(self, alphas, small_is_cheap=False).with_facts(n_iter_=self._n_iter)
        if self._worst > self._tol:
            warnings.warn(
                f"solver='cg' stopped after {self._n_iter} iterations at a relative residual of {self._worst:.1e} "
                f"(tol={self._tol}). Hint: raise max_iter or tol, or leave the smallest alphas out.",
                ConvergenceWarning,
                stacklevel=caller_level(),
            )
        return selection

    def errors(self, alphas: Floats) -> Floats:
        """Return the held-out errors, (alphas, outputs)."""
        return np.column_stack([self._errors(output, alphas) for output in range(len(self._data.columns))])

    def model(self, output: int, alpha: float) -> Floats:
        """Return the model of all rows."""
        if (output, alpha) not in self._found:
            self._fit_whole(output, np.array([alpha]))
        return np.ascontiguousarray(self._found[output, alpha])

    def _errors(self, output: int, alphas: Floats) -> Floats:
        data, held_out = self._data, self._held_out
        if isinstance(held_out, EvalSet):
            dual = self._fit_whole(output, alphas)
            return held_out.scorers[output].errors(self._problem.scores(held_out.rows, dual).T)
        scored = held_out.scored
        scores = np.empty((alphas.size, scored.size))
        for fold in range(held_out.n_folds):
            coef = self._solve(fold_graph(data, held_out, output, fold), output, alphas)
            own = held_out.fold[scored] == fold
            scores[:, own] = self._features.rows(scored[own]).dot(coef).T
        return held_out_scorer(data, held_out, output, self._metric, scored).errors(scores)

    def _fit_whole(self, output: int, alphas: Floats) -> Floats:
        """Fit all rows; return and keep the dual coefficients, (basis, alphas)."""
        dual = self._feature_map.dual_coefficients(self._solve(self._whole(output), output, alphas))
        self._found.update(
            {(output, float(alpha)): column for alpha, column in zip(alphas, dual.T, strict=True)}
        )
        return dual

    def _whole(self, output: int) -> LabelGraph:
        return self._data.graph(output, self._data.row_weight)

    def _solve(self, graph: LabelGraph, output: int, alphas: Floats) -> Floats:
        """Return the coefficients of the features, (features, alphas)."""
        with self._progress:
            if output not in self._samples:
                sample = SampledSpectrum.of_rows(self._features, self._whole(output).blocks, self._seed)
                assert sample is not None
                self._samples[output] = sample
            solution = preconditioned_gradients(
                SquaredObjective(self._features, graph),
                alphas,
                self._samples[output],
                tol=self._tol,
                max_iter=self._max_iter,
                report=self._progress.iterations,
            )
        self._n_iter = max(self._n_iter, solution.n_iter)
        self._worst = max(self._worst, solution.certificate)
        return solution.coef
