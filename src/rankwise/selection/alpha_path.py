"""Choosing alpha one fit after the other: all splits walk the grid together, from the largest alpha down, warm.

For margins, and for least squares whose coefficients are restricted: what no surface and no closed form can follow.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Protocol

import numpy as np

from rankwise.arrays import Floats
from rankwise.design import Design
from rankwise.fitting.margins import MarginFit, curvature_of, margins_of
from rankwise.fitting.squares import LeastSquares
from rankwise.metrics import Metric
from rankwise.objectives import SquaredObjective
from rankwise.pairs.graph import MarginPairs
from rankwise.pairs.pairs import Pairs
from rankwise.pairs.plan import Plan, Scorer
from rankwise.problems.problem import Problem
from rankwise.selection.grids import choose_among
from rankwise.selection.result import Selection, on_one_grid
from rankwise.solvers.solution import Solution

__all__ = [
    "AlphaPath",
    "PathSplit",
    "choose_on_paths",
    "margin_problems",
    "paths_of",
    "squared_problems",
]

# The walk ends where every alpha down to a hundredth of the best one was worse than it by more than a standard error of
# the difference over the splits.
_HOPELESS_RANGE = 99.0
# Only noise tells alphas apart while the loss is nearly linear, and the gain grows as 1/alpha: meanwhile the gain must
# have grown by less than this share of what alpha fell by.
_LINEAR = 0.1


class Solve(Protocol):
    """Finds the minimum of one problem at an alpha, from wherever it starts."""

    def __call__(self, alpha: float, *, start: Floats | None = None, title: str = "fitting") -> Solution:
        """Find it; `title` is shown meanwhile."""


# Gets an output and the pairs that are trained on.
Problems = Callable[[int, Pairs], Solve]


@dataclass(frozen=True)
class PathSplit:
    """A problem that is prepared for the solver, and the rows that score it."""

    solve: Solve
    scored: Design
    scorer: Scorer
    share: float = 1.0


@dataclass
class AlphaPath:
    """What the splits of one output say about the alphas that were tried; more can be tried at either end.

    Attributes
    ----------
    whole : Solve or None
        Fits the final model; None to keep the first split's.
    tried : dict of alpha to (splits,) float64
        Their errors; lower is better.
    solutions : dict of alpha to list of Solution
        One per split.
    solution : Solution or None
        The final one.
    """

    splits: Sequence[PathSplit]
    whole: Solve | None = None
    tried: dict[float, Floats] = field(default_factory=dict)
    solutions: dict[float, list[Solution]] = field(default_factory=dict)
    solution: Solution | None = None

    def errors(self, alphas: Floats) -> Floats:
        """Try alphas, the first time from the largest on until smaller ones cannot win; NaN where none was tried."""
        goes_on = bool(self.tried)
        above = alphas[alphas > max(self.tried)] if goes_on else alphas[:0]
        for alpha in [*above.tolist(), *np.setdiff1d(alphas, above)[::-1].tolist()]:
            self._try(alpha)
            if self.is_hopeless and not goes_on:
                break
        found = [self._mean(alpha) if alpha in self.tried else np.nan for alpha in alphas.tolist()]
        return np.array(found)[:, None]

    def model(self, output: int, alpha: float) -> Floats:
        """Fit all pairs."""
        solutions = self.solutions[alpha]
        self.solution = solutions[0]
        if self.whole is not None:
            # The splits' models share most of their pairs with the final one: their mean is a good start.
            start = np.mean([one.coef for one in solutions], axis=0)
            self.solution = self.whole(alpha, start=start)
        return self.solution.coef

    def _try(self, alpha: float) -> None:
        """Fit every split, starting from its model of the nearest alpha, and score it by the held-out rows."""
        errors: list[float] = []
        solutions: list[Solution] = []
        for number, split in enumerate(self.splits):
            solution = split.solve(alpha, start=self._start(alpha, number), title="selecting")
            solutions.append(solution)
            errors.append(float(split.scorer.errors_of_rows(split.scored.dot(solution.coef)[None, :])[0]))
        self.tried[alpha], self.solutions[alpha] = np.array(errors), solutions

    def _mean(self, alpha: float) -> float:
        return float(np.average(self.tried[alpha], weights=[split.share for split in self.splits]))

    @property
    def is_hopeless(self) -> bool:
        """Whether smaller alphas have been worse for so long that still smaller ones cannot win."""
        if len(self.splits) < 2:
            return False  # one evaluation set says nothing about its noise
        tried = sorted(self.tried, reverse=True)
        best = min(tried, key=self._mean)  # the largest of equals
        last = tried[-1]
        smaller = [alpha for alpha in tried if alpha < best]
        if len(smaller) < 2 or best < _HOPELESS_RANGE * last:
            return False
        worse = np.array([self.tried[alpha] - self.tried[best] for alpha in smaller])
        noise = worse.std(axis=1, ddof=1) / np.sqrt(len(self.splits))
        # No quotient of the two: where columns say nothing, both are 0.
        is_flat = self._gain(last) < _LINEAR * best / last * self._gain(best)
        return bool(np.all(worse.mean(axis=1) > noise) and is_flat)

    def _gain(self, alpha: float) -> float:
        return float(np.mean([solution.gain for solution in self.solutions[alpha]]))

    def _start(self, alpha: float, number: int) -> Floats | None:
        if not self.solutions:
            return None
        nearest = min(self.solutions, key=lambda other: abs(np.log(other / alpha)))
        return self.solutions[nearest][number].coef


def margin_problems(fit: MarginFit, problem: Problem, whole: Sequence[MarginPairs]) -> Problems:
    """Return the problems of margins; `whole` are all pairs, output by output."""
    pairs = problem.pairs
    curvatures = [curvature_of(problem.design, pairs.graph(output)) for output in range(pairs.n_outputs)]

    def prepared(output: int, trained: Pairs) -> Solve:
        margins = whole[output] if trained is pairs else margins_of(trained, fit.loss, output)
        # Every split follows a curvature of its own: a few rows of the tail may matter that another one holds out.
        return partial(fit.solve, problem.design, margins, curvature=copy(curvatures[output]))

    return prepared


def squared_problems(fit: LeastSquares, problem: Problem) -> Problems:
    """Return the problems of least squares; there is nothing to start from."""

    def prepared(output: int, trained: Pairs) -> Solve:
        objective = _Squares(problem.design, trained.graph(output))

        def solve(alpha: float, **_: object) -> Solution:
            return replace(fit, alpha=alpha).solve(objective)

        return solve

    return prepared


class _Squares(SquaredObjective):
    """An objective that forms its matrix once, for all alphas."""

    @cached_property
    def _matrix(self) -> Floats:
        return super().matrix()

    def matrix(self) -> Floats:
        return self._matrix


def paths_of(prepared: Problems, problem: Problem, plan: Plan, metric: Metric) -> list[AlphaPath]:
    """Return the path of every output."""
    scored: dict[int, Design] = {}
    paths, pairs, design = [], problem.pairs, problem.design
    for output in range(pairs.n_outputs):
        splits = []
        for fold, trained, scorer in pairs.held_out(plan, metric, output):
            if fold not in scored:
                own = design if scorer.rows is None else design.rows(scorer.rows)
                scored[fold] = plan.eval_rows if plan.has_eval_set else own
            splits.append(PathSplit(prepared(output, trained), scored[fold], scorer, scorer.share))
        paths.append(AlphaPath(splits, None if plan.has_eval_set else prepared(output, pairs)))
    return paths


def choose_on_paths(
    paths: Sequence[AlphaPath], grid: Floats, default: tuple[float, ...]
) -> tuple[Selection, list[Solution]]:
    """Choose alpha for every output by the mean error of its splits, and fit all pairs.

    The grid, in increasing order, goes on at its ends where it is the default.
    """
    found: list[Selection] = []
    solutions: list[Solution] = []
    for path in paths:
        found.append(choose_among(path, grid, default, small_is_cheap=False))
        assert path.solution is not None
        solutions.append(path.solution)
    alphas, tables = on_one_grid([one.table for one in found])
    models, chosen = [one.models[0] for one in found], [one.chosen[0] for one in found]
    return Selection(models, chosen, alphas, np.column_stack(tables)), solutions
