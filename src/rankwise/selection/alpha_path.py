"""Choosing alpha for a margin problem: all splits walk the grid together, from the largest alpha down, warm."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np

from rankwise.arrays import Floats, Rows
from rankwise.design import Design
from rankwise.exceptions import InvalidInputError, NoPairsError, UndefinedMetricError
from rankwise.metrics import Metric
from rankwise.pairs.graph import MarginPairs, PairGraph
from rankwise.problems.training import PairData, TrainingData, TrainingProblem
from rankwise.selection.cv import RowPlan
from rankwise.selection.cv_pairs import PairPlan
from rankwise.selection.grids import alphas_beyond, best_positions, is_default_grid, worth_keeping
from rankwise.selection.margin_fit import label_margins, listed_margins
from rankwise.selection.result import Choice, Selection, on_one_grid
from rankwise.selection.scorers import EvalSet, MetricScorer, Scorer, row_scorer, scorer_of_pairs
from rankwise.selection.systems import HeldOut
from rankwise.solvers.preconditioner import Curvature
from rankwise.solvers.solution import Solution, Status

__all__ = ["AlphaPath", "Split", "choose_on_path", "scored_folds", "splits_of"]

# The walk ends where every alpha down to a hundredth of the best one was worse than it by more than a standard error of
# the difference over the splits.
_HOPELESS_RANGE = 99.0
# Only noise tells alphas apart while the loss is nearly linear, and the gain grows as 1/alpha: meanwhile the gain must
# have grown by less than this share of what alpha fell by.
_LINEAR = 0.1


class PathFit(Protocol):
    """What fits pairs at one alpha: `MarginFit`, or `SquaredFit` for graphs."""

    def solve(
        self,
        design: Design,
        pairs: Any,
        alpha: float,
        *,
        start: Floats | None = None,
        curvature: Curvature | None = None,
        title: str = "fitting",
    ) -> Solution:
        """Find the minimum."""


@dataclass(frozen=True)
class Split:
    """What is trained on and what it is scored by, for one output; `share` is how much it says beside other splits."""

    pairs: MarginPairs | PairGraph
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

    fit: PathFit
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


def splits_of(
    data: TrainingProblem, held_out: HeldOut, whole: Sequence[MarginPairs], metric: Metric, loss: str
) -> list[list[Split]]:
    """Return the splits of every output: one with an eval set, else one per fold."""
    if isinstance(held_out, EvalSet):
        outputs = zip(whole, held_out.scorers, strict=True)
        return [[Split(pairs, held_out.rows, scorer)] for pairs, scorer in outputs]
    if isinstance(held_out, PairPlan):
        assert isinstance(data, PairData)
        return _pair_splits(data, held_out, metric, loss)
    assert isinstance(data, TrainingData)
    return _row_splits(data, held_out, metric)


def scored_folds(
    data: TrainingData, plan: RowPlan, metric: Metric, output: int
) -> Iterator[tuple[Floats, Rows, MetricScorer]]:
    """Yield the weights that a fold trains with, the rows that score it, and their scorer.

    Folds that cannot be scored are not trained, where others can be.
    """
    weight = np.ones(plan.fold.size) if data.row_weight is None else data.row_weight
    problem: InvalidInputError | None = None
    n_scored = 0
    for fold in range(plan.n_folds):
        rows = plan.scored[plan.fold[plan.scored] == fold]
        try:
            labels, queries = data.columns[output][rows], data.queries.subset(rows)
            scorer = row_scorer(metric, labels, queries, data.design.n_threads, weight=weight[rows])
        except (NoPairsError, UndefinedMetricError) as error:
            problem = error
            continue
        n_scored += 1
        yield weight * (plan.fold != fold), rows, scorer
    if problem is not None and not n_scored:
        raise problem


def _row_splits(data: TrainingData, plan: RowPlan, metric: Metric) -> list[list[Split]]:
    """Return the splits of every output, which share the rows to score by."""
    splits: list[list[Split]] = []
    scoring: dict[int, Design] = {}
    for output in range(len(data.columns)):
        splits.append([])
        for weight, rows, scorer in scored_folds(data, plan, metric, output):
            fold = int(plan.fold[rows[0]])
            scoring[fold] = scoring.get(fold) or data.design.rows(rows)
            pairs = label_margins(data, output, weight)
            splits[-1].append(Split(pairs, scoring[fold], scorer, scorer.n_counted))
    return splits


def _pair_splits(data: PairData, plan: PairPlan, metric: Metric, loss: str) -> list[list[Split]]:
    """Return the splits of listed pairs."""
    splits = []
    for fold in plan.folds_that_score(data):
        trained = plan.left_out.trained(fold, len(data.preferences))
        scorer = scorer_of_pairs(data, plan.left_out.scoring(fold), metric)
        splits.append(Split(listed_margins(data.graph, loss, trained), data.design, scorer))
    return [splits]


def choose_on_path(
    paths: Sequence[AlphaPath],
    grid: Floats,
    whole: Sequence[MarginPairs | PairGraph] | None,
    default: tuple[float, ...],
) -> tuple[Selection, list[Solution], str]:
    """Choose alpha for every output by the mean error of its splits, and fit all pairs.

    On Ctrl-C the choice is made among the alphas that all splits have scored, and the first split's model is kept; the
    text that is returned says so.

    Parameters
    ----------
    paths : sequence of AlphaPath
        Output by output.
    grid : (alphas,) float64
        In increasing order.
    whole : sequence of MarginPairs or PairGraph, or None
        What the final models are fitted to; None to keep the first split's.
    default : tuple of float
        A grid that goes on where the best is at its end.
    """
    default = default if is_default_grid(grid, default) else ()
    found: list[Selection] = []
    solutions: list[Solution] = []
    note = ""
    for output, path in enumerate(paths):
        one, solution = _choose(path, grid, None if whole is None else whole[output], default)
        found.append(one)
        solutions.append(solution)
        if solution.status is Status.INTERRUPTED:
            if len(found) < len(paths):
                raise KeyboardInterrupt  # there is no model of the other outputs
            n_scored = sum(own.size == len(path.splits) for own in path.errors.values())
            note = f", interrupted after {n_scored} of {grid.size} alphas"
    alphas, tables = on_one_grid(*zip(*(one.table for one in found), strict=True))
    models, chosen = [one.models[0] for one in found], [one.chosen[0] for one in found]
    return Selection(models, chosen, alphas, np.column_stack(tables)), solutions, note


def _choose(
    path: AlphaPath, grid: Floats, whole: MarginPairs | PairGraph | None, default: tuple[float, ...]
) -> tuple[Selection, Solution]:
    """Do so for one output."""
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
    best = int(best_positions(errors[:, None])[0])
    choice = Choice(float(grid[best]), 0, float(errors[best]))
    solutions = path.solutions[choice.alpha]
    solution = solutions[0]
    if not path.is_interrupted and whole is not None:
        # The splits' models share most of their pairs with the final one: their mean is a good start.
        start = np.mean([one.coef for one in solutions], axis=0)
        try:
            solution = path.fit.solve(path.design, whole, choice.alpha, start=start, curvature=path.curvature)
        except KeyboardInterrupt:
            path.is_interrupted = True
    if path.is_interrupted:
        solution = replace(solution, status=Status.INTERRUPTED)
    return Selection([solution.coef], [choice], grid, errors[:, None]), solution
