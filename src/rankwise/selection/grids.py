"""Grids of alphas: validation, extension where the best alpha lies at an end, and choice of the best."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from rankwise.arrays import ArrayLike, Bools, Floats, Ints
from rankwise.fitting.notices import Notice
from rankwise.selection.result import EQUAL, Choice, Selection

POWERS_OF_TWO = tuple(2.0**power for power in range(-10, 11))  # the default of least squares

_FEW = 4  # alphas that somebody picked, not a grid to be searched
WORTH = 1e-3  # of the best value in the default grid: what an alpha beyond must gain
_NOTICEABLE = 0.01  # of the best value: a gain at the end of a grid that is worth a word


def is_default_grid(alphas: Floats, default: tuple[float, ...]) -> bool:
    """Tell whether a checked grid is the default one, which may grow; one that somebody chose is taken as it is."""
    return np.array_equal(alphas, np.sort(default))


def alphas_beyond(
    grid: Floats, errors: Floats, default: tuple[float, ...], *, small_is_cheap: bool
) -> Floats | None:
    """Return alphas to score beyond an end of the grid at which some output is best; None to stop.

    Upwards, the extension continues while alphas are equally good: the grid may lie where alphas are too small to
    change a ranking, and large alphas are fitted quickly. Downwards, a few more are scored if that is cheap, or if
    all alphas of the grid are equally good. Each side of the default grid gains at most as many values as it has.

    Parameters
    ----------
    grid : (alphas,) float64
        The alphas that were scored, in increasing order, all positive.
    errors : (alphas, outputs) float64
        NaN where an alpha was not scored for an output.
    default : tuple of float
        The grid that is extended, in geometric progression.
    small_is_cheap : bool
        Whether a small alpha costs no more than a large one.
    """
    size = len(default)
    ratio = round((max(default) / min(default)) ** (1 / (size - 1)), 9)  # 2 or 10, not nearly so
    step = ratio ** np.arange(1.0, max(1, size // 4) + 1)
    best = np.nanmin(errors, axis=0)
    at_top = errors[-1] == best
    is_alone, all_equal = (errors[1:] > best).all(axis=0), (errors == best).all(axis=0)
    may_look = small_is_cheap and grid[0] == min(default)
    at_bottom = (errors[0] == best) & (is_alone | all_equal | may_look)
    more = np.concatenate(
        [grid[0] / step[::-1] if at_bottom.any() else [], grid[-1] * step if at_top.any() else []]
    )
    reach = ratio ** (size + 0.5)
    more = more[(more > min(default) / reach) & (more < max(default) * reach)]
    return more if more.size else None


def worth_keeping(grid: Floats, errors: Floats, default: tuple[float, ...]) -> Bools:
    """Tell which of the alphas that were scored belong to the grid: the default ones, and up to one beyond the best.

    Alphas beyond an end that are only as good, or hardly better, are dropped.
    """
    first, last = int(np.searchsorted(grid, min(default))), int(np.searchsorted(grid, max(default)))
    low, high = first, last
    for column in errors.T:
        inside = np.nanmin(column[first : last + 1])
        if np.nanmin(column) >= inside - WORTH * abs(inside):
            continue
        best = np.flatnonzero(column == np.nanmin(column))
        nearest = best[np.argmin(np.maximum(np.maximum(first - best, best - last), 0))]
        if nearest < first:
            low = min(low, max(nearest - 1, 0))
        elif nearest > last:
            high = max(high, min(nearest + 1, grid.size - 1))
    places = np.arange(grid.size)
    return np.asarray((places >= low) & (places <= high))


def best_positions(errors: Floats) -> Ints:
    """Return the position of each column's least error; of equally good ones the last, the simplest model."""
    is_best = errors <= np.nanmin(errors, axis=0) + EQUAL
    return np.asarray(errors.shape[0] - 1 - np.argmax(is_best[::-1], axis=0), dtype=np.int64)


class AlphaModels(Protocol):
    """Converged models of all alphas and their errors on held-out rows."""

    def errors(self, alphas: Floats) -> Floats:
        """Return the held-out errors, (alphas, outputs); NaN where an alpha was not tried."""

    def model(self, output: int, alpha: float) -> Floats:
        """Return a model."""


def choose_among(
    models: AlphaModels,
    alphas: Floats,
    default: tuple[float, ...] = POWERS_OF_TWO,
    *,
    small_is_cheap: bool = True,
) -> Selection:
    """Choose the best alpha of each output, beyond the default grid where that is best at its end."""
    grid, errors = alphas, models.errors(alphas)
    if is_default_grid(alphas, default):
        while (more := alphas_beyond(grid, errors, default, small_is_cheap=small_is_cheap)) is not None:
            wider = np.concatenate([grid, more])
            order = np.argsort(wider)
            grid, errors = wider[order], np.concatenate([errors, models.errors(more)])[order]
        kept = worth_keeping(grid, errors, default)
        grid, errors = grid[kept], errors[kept]
    chosen = [
        Choice(float(grid[position]), 0, float(errors[position, output]))
        for output, position in enumerate(best_positions(errors))
    ]
    fitted = [models.model(output, choice.alpha) for output, choice in enumerate(chosen)]
    return Selection(fitted, chosen, grid, errors)


def notices_of_edges(
    asked: ArrayLike, grid: Floats, errors: Floats, default: tuple[float, ...] = POWERS_OF_TWO
) -> list[Notice]:
    """Say it where the best alpha of the only output is at an end of the grid, and the step to it gained noticeably.

    Parameters
    ----------
    asked : array-like
        The grid that somebody chose, or the default one: beyond its ends nothing was worth keeping.
    """
    may_grow = is_default_grid(np.unique(asked), default)
    instead = "scale the columns" if may_grow else "leave alphas out: the default grid goes on by itself"
    errors = errors.ravel()
    if errors.size > grid.size or grid.size <= _FEW:
        return []
    notices = []
    for end, last, before in (("smallest", 0, 1), ("largest", -1, -2)):
        if may_grow and grid[last] == np.sort(default)[last]:
            continue
        gained = errors[before] - errors[last]
        if errors[last] == np.nanmin(errors) and gained > _NOTICEABLE * abs(errors[last]):
            what = f"The best alpha is the {end} of the grid, {grid[last]:g}, and one beyond may be better"
            notices.append(Notice(what, f"extend alphas there, or {instead}", UserWarning))
    return notices
