"""Knots of curves: quantiles of the training rows, and a knot for every value that many rows have."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from rankwise.arrays import AnyArray, Floats, Ints
from rankwise.data.queries import Queries
from rankwise.design.terms import Curve

# Knots, and the pairs of columns that get a surface, are chosen by about so many rows where there are twice as many.
SAMPLED_ROWS = 1 << 17

# The most levels of a categorical column; rarer ones share the value of missing entries.
MANY_LEVELS = 1024
_GATHERED = 16  # columns at a time
_FIRST_LOOK = 4096  # rows


@dataclass(frozen=True)
class KnotPlan:
    """The curves of the columns that vary inside queries, and the sides of surfaces.

    Attributes
    ----------
    curves : tuple of Curve
    sides : tuple of Curve
        The sides of surfaces, with fewer knots: the columns of the curves, and those that vary between queries only.
    masses : tuple of (n_values,) float64
        The approximate weight of the rows at each value of a curve: that of an interval goes half to either knot.
    side_masses : dict of column to (n_values,) float64
        The same for the sides.
    constant : (columns,) int64
        Columns that are the same in all rows of each query: no ranking inside queries depends on them alone, so that
        they get no curve.
    """

    curves: tuple[Curve, ...]
    sides: tuple[Curve, ...]
    masses: tuple[Floats, ...]
    side_masses: dict[int, Floats]
    constant: Ints


def plan_knots(
    X: AnyArray,
    queries: Queries,
    n_knots: int,
    n_side_knots: int,
    *,
    levels: Collection[int] = (),
    weight: Floats | None = None,
) -> KnotPlan:
    """Choose the knots of every column.

    Parameters
    ----------
    X : (rows, columns) floating
        May hold NaN.
    queries : Queries
    n_knots, n_side_knots : int
        The most knots of a curve, and of a side of a surface; at least 2.
    levels : collection of int
        The columns that are categories.
    weight : (rows,) float64, optional
        A row of weight 2 counts as two; rows of weight 0 are not there.
    """
    rows = slice(None) if weight is None else np.flatnonzero(weight > 0)
    own = None if weight is None else weight[rows]
    codes = queries.codes[rows]
    order = None if (codes[1:] >= codes[:-1]).all() else np.argsort(codes, kind="stable")
    codes = codes if order is None else codes[order]
    is_inside = codes[1:] == codes[:-1]
    curves: list[Curve] = []
    sides: list[Curve] = []
    masses: list[Floats] = []
    side_masses: list[Floats] = []
    constant: list[int] = []
    is_thinned = weight is None and X.shape[0] >= 2 * SAMPLED_ROWS
    for column, looked_at in _columns(_thinned(X), slice(None)) if is_thinned else _columns(X, rows):
        whole = X[:, column] if is_thinned else looked_at
        is_constant = _is_constant(whole if order is None else whole[order], is_inside)
        if is_constant:
            constant.append(column)
        is_repeated = is_thinned and not np.isnan(looked_at[-1])
        # Rare levels too.
        x = whole if column in levels else looked_at[: looked_at.size - is_repeated]
        is_missing = np.isnan(x)
        has_missing = bool(is_missing.any())
        seen = ~is_missing if has_missing else slice(None)
        values, mass = _distinct(x[seen], None if own is None else own[seen])
        absent = float(is_missing.sum() if own is None else own[is_missing].sum())
        if is_constant and values.size + has_missing < 2:
            continue
        made = [(curves, masses, n_knots), (sides, side_masses, n_side_knots)]
        for target, spread, n_most in made[is_constant:]:
            is_levels = column in levels
            is_knot = _most_frequent(mass) if is_levels else _knots_among(mass, n_most)
            is_cut = is_levels and not is_knot.all()
            curve = Curve(column, values[is_knot], is_levels=is_levels, has_missing=has_missing or is_cut)
            target.append(curve)
            at_knots = mass[is_knot] if is_levels else _mass_at_knots(mass, is_knot)
            left = absent + (float(mass[~is_knot].sum()) if is_cut else 0.0)
            spread.append(np.append(at_knots, left) if curve.has_missing else at_knots)
    by_column = {side.column: mass for side, mass in zip(sides, side_masses, strict=True)}
    return KnotPlan(tuple(curves), tuple(sides), tuple(masses), by_column, np.array(constant, dtype=np.int64))


def _thinned(X: AnyArray) -> AnyArray:
    """Return a sample of rows, the least and the most of each column, and its first missing entry or the least."""
    # At random: every second row may be every second place of a query.
    rows = np.sort(np.random.default_rng(0).choice(X.shape[0], SAMPLED_ROWS, replace=False))
    return np.vstack([X[rows], np.fmin.reduce(X), np.fmax.reduce(X), np.minimum.reduce(X)])


def _columns(X: AnyArray, rows: slice | Ints) -> Iterator[tuple[int, AnyArray]]:
    """Yield the columns of some rows, gathered several at a time: those of a row share a line of the cache."""
    for first in range(0, X.shape[1], _GATHERED):
        block = np.ascontiguousarray(X[rows, first : first + _GATHERED].T)
        yield from enumerate(block, first)


def _knots_among(mass: Floats, n_knots: int) -> npt.NDArray[np.bool_]:
    """Choose which of the distinct values become knots by their weights: extremes, frequent values, and quantiles.

    Plain quantiles would fall together where many rows have one value, such as 0, and leave the others few knots.
    """
    if mass.size <= n_knots:
        return np.ones(mass.size, dtype=np.bool_)
    is_knot = np.zeros(mass.size, dtype=np.bool_)
    is_knot[[0, -1]] = True
    # A value as frequent as an average interval between knots gets its own knot, which leaves fewer rows to the others.
    while True:
        n_left = n_knots - int(is_knot.sum())
        if n_left <= 0:
            return is_knot
        rest = np.where(is_knot, 0.0, mass)
        cumulative = np.cumsum(rest)
        heavy = np.flatnonzero(rest > cumulative[-1] / (n_left + 1))
        if not heavy.size:
            break
        is_knot[heavy[np.argsort(-rest[heavy], kind="stable")][:n_left]] = True
    wanted = cumulative[-1] * np.arange(1, n_left + 1) / (n_left + 1)
    # The tolerance keeps weights that are multiples of each other at the same knots.
    is_knot[np.searchsorted(cumulative, wanted * (1 - 1e-12))] = True
    return is_knot


def _mass_at_knots(mass: Floats, is_knot: npt.NDArray[np.bool_]) -> Floats:
    at = np.flatnonzero(is_knot)
    if at.size < 2:
        return mass[at]
    cumulative = np.cumsum(mass)
    inside = np.diff(cumulative[at]) - mass[at[1:]]
    out = mass[at].copy()
    out[:-1] += inside / 2
    out[1:] += inside / 2
    return out


def _most_frequent(mass: Floats) -> npt.NDArray[np.bool_]:
    is_kept = np.zeros(mass.size, dtype=np.bool_)
    is_kept[np.argsort(-mass, kind="stable")[:MANY_LEVELS]] = True
    return is_kept


def _distinct(x: AnyArray, weight: Floats | None) -> tuple[Floats, Floats]:
    """Return the different values in increasing order, and the weight of each."""
    if weight is None:
        values, mass = np.unique(x, return_counts=True)
    else:
        values, place = np.unique(x, return_inverse=True)
        mass = np.bincount(place, weight)
    return values.astype(np.float64) + 0.0, mass.astype(np.float64)  # not -0


def _is_constant(x: AnyArray, is_inside: npt.NDArray[np.bool_]) -> bool:
    """Tell whether a column, in the order of queries, never changes inside one; NaN equals NaN."""
    for last in (_FIRST_LOOK, x.size):  # most columns show it at once
        now, before = x[:last][1:], x[:last][:-1]
        changes = (now != before) & is_inside[: now.size]
        if changes.any() and (changes & ~(np.isnan(now) & np.isnan(before))).any():
            return False
    return True
