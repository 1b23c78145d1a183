"""Choosing alpha for a margin problem: every split walks the grid from the largest alpha down, each fit warm."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from rankwise.arrays import Floats
from rankwise.design import Design
from rankwise.pairs.graph import MarginPairs
from rankwise.selection.grids import alphas_beyond, worth_keeping
from rankwise.selection.margin_fit import MarginFit
from rankwise.selection.scorers import Judge
from rankwise.solvers.solution import Solution, Status

__all__ = ["AlphaChoice", "Split", "choose_alpha"]


@dataclass(frozen=True)
class Split:
    """What is trained on and what judges, for one output; `share` is how much it says beside other splits."""

    pairs: MarginPairs
    judging: Design
    judge: Judge
    share: float = 1.0


@dataclass(frozen=True)
class AlphaChoice:
    """What the splits said about the grid, and the model.

    Attributes
    ----------
    grid : (alphas,) float64
        In increasing order; it may have grown.
    errors : (alphas,) float64
        The mean over the splits, lower is better; NaN where an interruption came first.
    best : int
        The chosen alpha; of equally good ones the largest.
    solution : Solution
    n_judged : int
        How many splits were walked to the end.
    """

    grid: Floats
    errors: Floats
    best: int
    solution: Solution
    n_judged: int


def choose_alpha(
    fit: MarginFit,
    design: Design,
    splits: Sequence[Split],
    grid: Floats,
    whole: MarginPairs | None,
    default: tuple[float, ...] = (),
) -> AlphaChoice:
    """Choose by the mean error of the splits, and fit all pairs.

    On Ctrl-C the choice is made by the splits that are done, and the first split's model is kept.

    Parameters
    ----------
    fit : MarginFit
    design : Design
    splits : sequence of Split
    grid : (alphas,) float64
        In increasing order.
    whole : MarginPairs or None
        What the final model is fitted to; None to keep the first split's.
    default : tuple of float
        A grid that goes on where the best is at its end; empty where the grid is taken as it is.
    """
    paths: list[tuple[Floats, list[Solution]]] = []
    is_interrupted = False
    n_judged = 0
    for split in splits:
        errors, solutions = _walk(fit, design, split, grid, must_start=not paths)
        is_interrupted = len(solutions) < grid.size or solutions[-1].status is Status.INTERRUPTED
        if not is_interrupted or not paths:
            paths.append((errors, solutions))
        if is_interrupted:
            break
        n_judged += 1
    shares = [split.share for split in splits[: len(paths)]]
    errors = np.average([own for own, _ in paths], axis=0, weights=shares)
    while (
        default
        and not is_interrupted
        and (more := alphas_beyond(grid, errors[:, None], default, small_is_cheap=False)) is not None
    ):
        extended = [
            _walk_on(fit, design, split, grid, path, more) for split, path in zip(splits, paths, strict=True)
        ]
        models = [solution for _, solutions in extended for solution in solutions]
        is_interrupted = len(models) < len(paths) * (grid.size + more.size) or any(
            solution.status is Status.INTERRUPTED for solution in models
        )
        if is_interrupted:
            break  # the choice is made on the grid as it was
        paths, grid = extended, np.union1d(grid, more)
        errors = np.average([own for own, _ in paths], axis=0, weights=shares)
    if default:
        kept = worth_keeping(grid, errors[:, None], default)
        grid, errors = grid[kept], errors[kept]
        paths = [
            (
                own[kept],
                [solution for solution, is_kept in zip(solutions, kept[::-1], strict=False) if is_kept],
            )
            for own, solutions in paths
        ]
    best = int(grid.size - 1 - np.nanargmin(errors[::-1]))
    found = [solutions[grid.size - 1 - best] for _, solutions in paths]
    if is_interrupted:
        return AlphaChoice(grid, errors, best, replace(found[0], status=Status.INTERRUPTED), n_judged)
    if whole is None:
        return AlphaChoice(grid, errors, best, found[0], n_judged)
    # The splits' models share most of their pairs with the final one: their mean is a good start.
    start = np.mean([solution.coef for solution in found], axis=0)
    try:
        solution = fit.solve(design, whole, float(grid[best]), start=start)
    except KeyboardInterrupt:
        solution = replace(found[0], status=Status.INTERRUPTED)
    return AlphaChoice(grid, errors, best, solution, n_judged)


def _walk_on(
    fit: MarginFit,
    design: Design,
    split: Split,
    grid: Floats,
    path: tuple[Floats, list[Solution]],
    more: Floats,
) -> tuple[Floats, list[Solution]]:
    """Fit alphas beyond either end of a grid that was walked, and put them to the rest."""
    errors, solutions = path
    above, below = more[more > grid[-1]], more[more < grid[0]]
    if above.size:
        found, models = _walk(fit, design, split, above, must_start=False, start=solutions[0].coef)
        errors, solutions = np.concatenate([errors, found]), models + solutions
    if below.size:
        found, models = _walk(fit, design, split, below, must_start=False, start=solutions[-1].coef)
        errors, solutions = np.concatenate([found, errors]), solutions + models
    return errors, solutions


def _walk(
    fit: MarginFit,
    design: Design,
    split: Split,
    grid: Floats,
    *,
    must_start: bool,
    start: Floats | None = None,
) -> tuple[Floats, list[Solution]]:
    """Fit every alpha, largest first; return errors in the order of the grid, and solutions in that of the walk."""
    solutions: list[Solution] = []
    for alpha in grid[::-1]:
        start = solutions[-1].coef if solutions else start
        try:
            solutions.append(fit.solve(design, split.pairs, float(alpha), start=start, title="selecting"))
        except KeyboardInterrupt:
            if must_start and not solutions:
                raise  # there is no model to keep
            break
        if solutions[-1].status is Status.INTERRUPTED:
            break
    errors = np.full(grid.size, np.nan)
    if solutions:
        scores = split.judging.dot(np.column_stack([solution.coef for solution in solutions]))
        judged = split.judge.errors(np.ascontiguousarray(scores.T))
        errors[grid.size - len(solutions) :] = judged[::-1]
    return errors, solutions
