"""Choosing alpha for a margin problem: all splits walk the grid together, from the largest alpha down, warm."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, field, replace

import numpy as np

from rankwise.arrays import Floats
from rankwise.design import Design
from rankwise.pairs.graph import MarginPairs
from rankwise.selection.grids import alphas_beyond, worth_keeping
from rankwise.selection.margin_fit import MarginFit
from rankwise.selection.scorers import Scorer
from rankwise.solvers.preconditioner import Curvature
from rankwise.solvers.solution import Solution, Status
from rankwise.solvers.surface import EQUAL

__all__ = ["AlphaChoice", "AlphaPath", "Split", "choose_alpha"]

# The walk ends where every alpha down to a hundredth of the best one was worse than it by more than a standard error of
# the difference over the splits.
_HOPELESS_RANGE = 99.0
# Only noise tells alphas apart while the loss is nearly linear, and the gain grows as 1/alpha: meanwhile the gain must
# have grown by less than this share of what alpha fell by.
_LINEAR = 0.1


@dataclass(frozen=True)
class Split:
    """What is trained on and what it is scored by, for one output; `share` is how much it says beside other splits."""

    pairs: MarginPairs
    scoring: Design
    scorer: Scorer
    share: float = 1.0


@dataclass
class AlphaPath:
    """What the splits of one output say about the alphas that were tried; more can be tried at either end.

    Attributes
    ----------
    curvature : Curvature or None
        Of all rows, for the final model. Every split follows its own: a few rows of the tail may matter that another
        split holds out.
    errors : dict of alpha to (splits,) float64
        Lower is better.
    solutions : dict of alpha to list of Solution
        One per split.
    is_interrupted : bool
        Whether Ctrl-C came; what was not finished then is left out, unless nothing was.
    """

    fit: MarginFit
    design: Design
    splits: Sequence[Split]
    curvature: Curvature | None
    errors: dict[float, Floats] = field(default_factory=dict)
    solutions: dict[float, list[Solution]] = field(default_factory=dict)
    is_interrupted: bool = False

    def __post_init__(self) -> None:
        self._curvatures = [None if self.curvature is None else copy(self.curvature) for _ in self.splits]

    def walk(self, alphas: Sequence[float], *, to_the_end: bool = False) -> None:
        """Try alphas one after the other, until Ctrl-C or, unless `to_the_end`, until smaller ones cannot win."""
        for alpha in alphas:
            self.score(alpha)
            if self.is_interrupted or (self.is_hopeless and not to_the_end):
                return

    def score(self, alpha: float) -> None:
        """Fit every split, starting from its model of the nearest alpha, and score it by the held-out rows."""
        errors: list[float] = []
        solutions: list[Solution] = []
        for number, split in enumerate(self.splits):
            try:
                solution = self.fit.solve(
                    self.design,
                    split.pairs,
                    alpha,
                    start=self._start(alpha, number),
                    curvature=self._curvatures[number],
                    title="selecting",
                )
            except KeyboardInterrupt:
                if not self.solutions and not solutions:
                    raise  # there is no model to keep
                self.is_interrupted = True
                break
            solutions.append(solution)
            errors.append(float(split.scorer.errors(split.scoring.dot(solution.coef)[None, :])[0]))
            self.is_interrupted = solution.status is Status.INTERRUPTED
            if self.is_interrupted:
                break
        if not self.is_interrupted or not self.solutions:
            self.errors[alpha], self.solutions[alpha] = np.array(errors), solutions

    def mean_errors(self, grid: Floats) -> Floats:
        """Return the mean over the splits for each alpha; NaN for those that were not tried."""
        return np.array([self._mean(alpha) if alpha in self.errors else np.nan for alpha in grid.tolist()])

    def _mean(self, alpha: float) -> float:
        own = self.errors[alpha]
        return float(np.average(own, weights=[split.share for split in self.splits[: own.size]]))

    @property
    def is_hopeless(self) -> bool:
        """Whether smaller alphas have been worse for so long that still smaller ones cannot win."""
        if len(self.splits) < 2:
            return False  # one evaluation set says nothing about its noise
        tried = sorted(self.errors, reverse=True)
        best = min(tried, key=self._mean)  # the largest of equals
        last = tried[-1]
        smaller = [alpha for alpha in tried if alpha < best]
        if len(smaller) < 2 or best < _HOPELESS_RANGE * last:
            return False
        worse = np.array([self.errors[alpha] - self.errors[best] for alpha in smaller])
        noise = worse.std(axis=1, ddof=1) / np.sqrt(len(self.splits))
        growth = self._gain(last) / self._gain(best)
        return bool(np.all(worse.mean(axis=1) > noise) and growth < _LINEAR * best / last)

    def _gain(self, alpha: float) -> float:
        return float(np.mean([solution.gain for solution in self.solutions[alpha]]))

    def _start(self, alpha: float, number: int) -> Floats | None:
        if not self.solutions:
            return None
        nearest = min(self.solutions, key=lambda other: abs(np.log(other / alpha)))
        return self.solutions[nearest][number].coef


@dataclass(frozen=True)
class AlphaChoice:
    """What the splits found about the grid, and the model.

    Attributes
    ----------
    grid : (alphas,) float64
        In increasing order; it may have grown.
    errors : (alphas,) float64
        The mean over the splits, lower is better; NaN where the walk ended before.
    best : int
        The chosen alpha; of equally good ones the largest.
    solution : Solution
    n_scored : int
        How many alphas all splits scored.
    """

    grid: Floats
    errors: Floats
    best: int
    solution: Solution
    n_scored: int


def choose_alpha(
    path: AlphaPath, grid: Floats, whole: MarginPairs | None, default: tuple[float, ...] = ()
) -> AlphaChoice:
    """Choose by the mean error of the splits, and fit all pairs.

    On Ctrl-C the choice is made among the alphas that all splits have scored, and the first split's model is kept.

    Parameters
    ----------
    path : AlphaPath
    grid : (alphas,) float64
        In increasing order.
    whole : MarginPairs or None
        What the final model is fitted to; None to keep the first split's.
    default : tuple of float
        A grid that goes on where the best is at its end; empty where the grid is taken as it is.
    """
    path.walk(grid[::-1].tolist())
    errors = path.mean_errors(grid)
    while (
        default
        and not path.is_interrupted
        and (more := alphas_beyond(grid, errors[:, None], default, small_is_cheap=False)) is not None
    ):
        path.walk(more[more > grid[-1]].tolist(), to_the_end=True)
        path.walk(more[more < grid[0]][::-1].tolist(), to_the_end=True)
        if path.is_interrupted:
            break  # the choice is made on the grid as it was
        grid = np.union1d(grid, more)
        errors = path.mean_errors(grid)
    if default:
        kept = worth_keeping(grid, errors[:, None], default)
        grid, errors = grid[kept], errors[kept]
    best = int(np.flatnonzero(errors <= np.nanmin(errors) + EQUAL)[-1])
    found = path.solutions[float(grid[best])]
    n_scored = sum(own.size == len(path.splits) for own in path.errors.values())
    if path.is_interrupted:
        return AlphaChoice(grid, errors, best, replace(found[0], status=Status.INTERRUPTED), n_scored)
    if whole is None:
        return AlphaChoice(grid, errors, best, found[0], n_scored)
    # The splits' models share most of their pairs with the final one: their mean is a good start.
    start = np.mean([solution.coef for solution in found], axis=0)
    try:
        solution = path.fit.solve(
            path.design, whole, float(grid[best]), start=start, curvature=path.curvature
        )
    except KeyboardInterrupt:
        solution = replace(found[0], status=Status.INTERRUPTED)
    return AlphaChoice(grid, errors, best, solution, n_scored)
