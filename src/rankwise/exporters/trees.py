"""Curves and surfaces as regression trees: steps fine enough that scores differ by no more than is said.

Search engines score trees quickly, and nothing else that is not linear. A tree of one column halves an interval until
its function varies by no more than twice the error; a tree of a pair of columns halves rectangles. A value goes left
where it is smaller than the threshold; thresholds are numbers of single precision, as engines hold them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from rankwise.arrays import Floats
from rankwise.exceptions import Change, InvalidInputError
from rankwise.formula.formula import Column, Formula, Surface, Table, Term
from rankwise.formula.steps import Affine, Clip, Curve, Levels, Pieces, Stairs

__all__ = ["Bounds", "Leaf", "Split", "Tree", "leaves_of", "trees_of"]

_MANY = 200_000  # leaves that an engine still loads
_PROBES = 9  # places at which a function is looked at inside an interval


@dataclass(frozen=True)
class Leaf:
    """What is added."""

    value: float


@dataclass(frozen=True)
class Split:
    """Go left where a column is smaller than the threshold; `missing_left` is None where it cannot be missing."""

    input: int
    threshold: float
    left: Tree
    right: Tree
    missing_left: bool = False


Tree = Leaf | Split
Bounds = Mapping[int, tuple[float, float]]


def trees_of(formula: Formula, error: float | None, bounds: Bounds) -> tuple[list[Tree], float]:
    """Return the trees of a formula, the constant among them, and by how much their sum may differ from the score.

    Parameters
    ----------
    error : float, optional
        By default a thousandth of how far the terms spread, or a hundredth where there are surfaces.
    bounds : mapping from column to (low, high)
        What values a column can have, where a term goes on without end.
    """
    columns: dict[int, list[Term]] = {}
    for term in formula.terms:
        columns.setdefault(term.column.number, []).append(term)
    builder = _Builder(formula, bounds)
    curves = [(at, _function(terms), builder.edges(at, terms)) for at, terms in columns.items()]
    spreads = [float(np.ptp(f(np.asarray(edges)))) if edges else 0.0 for _, f, edges in curves]
    spreads += [float(np.ptp(np.asarray(surface.values))) for surface in formula.surfaces]
    finest = 1000 if not formula.surfaces else 100
    whole = sum(spreads) / finest if error is None else float(error)
    # The leaves of a surface grow with the square of spread / error: this share has the fewest for a given sum.
    powers = np.asarray(spreads) ** (2 / 3)
    shares = whole * powers / max(powers.sum(), np.finfo(float).tiny)
    trees: list[Tree] = [Leaf(formula.constant)] if formula.constant else []
    trees += [
        builder.curve(at, f, edges, share) for (at, f, edges), share in zip(curves, shares, strict=False)
    ]
    of_surfaces = shares[len(curves) :]
    trees += [builder.surface(surface, e) for surface, e in zip(formula.surfaces, of_surfaces, strict=True)]
    return trees, whole


def leaves_of(tree: Tree, table: Table, rows: npt.NDArray[np.int64]) -> Floats:
    """Return what a tree adds to the scores of some rows; columns are compared in single precision."""
    if isinstance(tree, Leaf):
        return np.full(rows.size, tree.value)
    x = table.values(Column(tree.input))[rows].astype(np.float32)
    left = x < np.float32(tree.threshold)
    left[np.isnan(x)] = tree.missing_left
    found = np.empty(rows.size)
    found[left] = leaves_of(tree.left, table, rows[left])
    found[~left] = leaves_of(tree.right, table, rows[~left])
    return found


def _function(terms: Sequence[Term]) -> Callable[[Floats], Floats]:
    """Return the sum of terms of one column as a function of its values."""

    def f(x: Floats) -> Floats:
        table = Table(np.asarray(x, dtype=np.float64)[:, None])
        columns = [Column(0, term.column.steps) for term in terms]
        return np.asarray(sum(t.weight * table.values(c) for t, c in zip(terms, columns, strict=True)))

    return f


class _Builder:
    """Builds trees, and counts their leaves."""

    def __init__(self, formula: Formula, bounds: Bounds) -> None:
        self._formula, self._bounds, self._n_leaves = formula, bounds, 0

    def edges(self, number: int, terms: Sequence[Term]) -> list[float]:
        """Return where the function of a column bends or jumps; outside of these it must be constant."""
        found: set[float] = set()
        endless = False
        for term in terms:
            back = _Back()
            is_bounded = False
            for step in term.column.steps:
                if isinstance(step, Affine):
                    back.through(step)
                elif isinstance(step, Curve):
                    found |= back.places(step.knots)
                    is_bounded = True
                elif isinstance(step, Stairs | Pieces):
                    found |= back.places(step.edges if isinstance(step, Stairs) else step.breaks)
                    flat = isinstance(step, Stairs) or not any(
                        any(step.coefficients[end][:-1]) for end in (0, -1)
                    )
                    is_bounded = is_bounded or flat
                elif isinstance(step, Clip):
                    found |= back.places((step.low, step.high))
                    is_bounded = True
                elif isinstance(step, Levels):
                    places = back.places([level for level in step.levels if not isinstance(level, str)])
                    near = [np.nextafter(np.float32(value), np.float32(np.inf)) for value in places]
                    found |= places | {float(value) for value in near}
                    is_bounded = True
            endless |= not is_bounded
        if endless:
            if number not in self._bounds:
                raise InvalidInputError(
                    f"Column {self._formula.names[number]!r} enters without end, and trees have one.",
                    "say what values it can have, bounds={name: (low, high)}, or export to what takes weights.",
                    Change("bounds", "trees"),
                )
            low, high = self._bounds[number]
            found = {edge for edge in found if low < edge < high} | {float(low), float(high)}
        return sorted(_single(edge) for edge in found)

    def curve(self, number: int, f: Callable[[Floats], Floats], edges: list[float], error: float) -> Tree:
        """Return the tree of a function of one column."""
        ends = np.unique(edges)
        if ends.size == 0:
            return Leaf(float(f(np.zeros(1))[0]))
        # Intervals are halved together, as long as one varies too much. An edge belongs to the interval that it begins.
        low, high = ends[:-1], ends[1:]
        kept: list[tuple[Floats, Floats]] = []
        while low.size:
            last = np.maximum(low, _before(high))
            values = f(np.linspace(low, last, _PROBES).ravel()).reshape(_PROBES, -1)
            middle = ((low + high) / 2).astype(np.float32).astype(np.float64)
            fine = (np.ptp(values, axis=0) <= 2 * error) | (middle <= low) | (middle >= high)
            kept.append((low[fine], (values.max(axis=0) + values.min(axis=0))[fine] / 2))
            low, high = (
                np.concatenate((low[~fine], middle[~fine])),
                np.concatenate((middle[~fine], high[~fine])),
            )
            self._count(kept[-1][0].size + low.size)
        outside = f(np.array([_before(ends[:1])[0], ends[-1]]))
        starts = np.concatenate([[ends[-1]], *(part[0] for part in kept)])
        values = np.concatenate([outside[1:], *(part[1] for part in kept)])
        order = np.argsort(starts)
        cells: list[Tree] = [Leaf(float(value)) for value in (outside[0], *values[order])]
        tree = _joined(number, starts[order].tolist(), cells)
        if not self._formula.takes_missing:
            return tree
        with np.errstate(invalid="ignore"):
            gone = float(f(np.array([np.nan]))[0])
        lowest = -float(np.finfo(np.float32).max)
        return tree if np.isnan(gone) else Split(number, lowest, Leaf(gone), tree, missing_left=True)

    def surface(self, surface: Surface, error: float) -> Tree:
        """Return the tree of a function of two columns."""
        if any(column.steps for column in surface.columns):
            raise InvalidInputError(
                "A surface of columns that are prepared first does not become trees.",
                "train on the columns as they come, or export to SQL, C, JavaScript, Python or ONNX.",
            )
        shape = (len(surface.knots[0]), len(surface.knots[1]))
        if np.asarray(surface.values).shape != shape:
            return self._with_gaps(surface, shape, error)
        first, second = (sorted({_single(k) for k in knots}) for knots in surface.knots)
        a, b = (column.number for column in surface.columns)
        wide, high = ([(k[0], k[0]), *pairwise(k), (k[-1], k[-1])] for k in (first, second))
        cells = iter(self._rectangles(surface, [(*x, *y) for x in wide for y in high], error))
        rows = [_joined(b, second, [next(cells) for _ in high]) for _ in wide]
        return _joined(a, first, rows)

    def _rectangles(
        self, surface: Surface, cells: Sequence[tuple[float, float, float, float]], error: float
    ) -> list[Tree]:
        """Return the trees of rectangles, all halved together. Bilinear functions have their extremes in corners."""
        box = np.asarray(cells, dtype=np.float64)
        x, y = box[:, [0, 0, 1, 1]], box[:, [2, 3, 2, 3]]
        corners = surface.apply(x.ravel(), y.ravel()).reshape(-1, 4)
        along_first = np.abs(corners[:, 2:] - corners[:, :2]).max(axis=1) >= np.abs(
            corners[:, 1::2] - corners[:, ::2]
        ).max(axis=1)
        at = np.where(along_first, 0, 2)
        every = np.arange(len(box))
        low, high = box[every, at], box[every, at + 1]
        middle = ((low + high) / 2).astype(np.float32).astype(np.float64)
        fine = (np.ptp(corners, axis=1) <= 2 * error) | (middle <= low) | (middle >= high)
        self._count(len(box))
        out: list[Tree] = [Leaf(float(v)) for v in (corners.max(axis=1) + corners.min(axis=1)) / 2]
        coarse = np.flatnonzero(~fine)
        if coarse.size:
            left, right = box[coarse].copy(), box[coarse].copy()
            own = np.arange(coarse.size)
            left[own, at[coarse] + 1] = middle[coarse]
            right[own, at[coarse]] = middle[coarse]
            halves = self._rectangles(surface, np.concatenate((left, right)).tolist(), error)
            for place, number in enumerate(coarse.tolist()):
                column = surface.columns[0 if along_first[number] else 1].number
                out[number] = Split(column, float(middle[number]), halves[place], halves[place + coarse.size])
        return out

    def _with_gaps(self, surface: Surface, shape: tuple[int, int], error: float) -> Tree:
        """Return the tree of a surface with values of its own where one or both columns are missing."""
        grid, lowest = np.asarray(surface.values), -float(np.finfo(np.float32).max)
        a, b = (column.number for column in surface.columns)

        def line(values: Floats, number: int, knots: Sequence[float]) -> Tree:
            curve = Curve(tuple(knots), tuple(values.tolist()))
            ends = [_single(k) for k in knots]
            return self.curve(number, lambda x: curve.apply(x, None), ends, error)

        plain = Surface(
            surface.columns, surface.knots, tuple(map(tuple, grid[: shape[0], : shape[1]].tolist()))
        )
        tree = self.surface(plain, error)
        if grid.shape[1] > shape[1]:
            tree = Split(b, lowest, line(grid[: shape[0], -1], a, surface.knots[0]), tree, missing_left=True)
        if grid.shape[0] > shape[0]:
            gone = line(grid[-1, : shape[1]], b, surface.knots[1])
            if grid.shape[1] > shape[1]:
                gone = Split(b, lowest, Leaf(float(grid[-1, -1])), gone, missing_left=True)
            tree = Split(a, lowest, gone, tree, missing_left=True)
        return tree

    def _count(self, n_leaves: int) -> None:
        self._n_leaves += n_leaves
        if self._n_leaves > _MANY:
            raise InvalidInputError(
                f"The trees would have more than {_MANY:,} leaves.",
                "allow a larger error (error=).",
                Change("error"),
            )


class _Back:
    """The way back from a value through the affine steps before it."""

    def __init__(self) -> None:
        self._steps: list[Affine] = []

    def through(self, step: Affine) -> None:
        self._steps.append(step)

    def places(self, values: Sequence[float]) -> set[float]:
        found = np.asarray(values, dtype=np.float64)
        for step in reversed(self._steps):
            found = (found - step.shift) / step.scale + step.center
        return set(found.tolist())


def _before(edges: Floats) -> Floats:
    """Return the number of single precision before each."""
    return np.asarray(np.nextafter(edges.astype(np.float32), np.float32(-np.inf)), dtype=np.float64)


def _single(edge: float) -> float:
    """Return the smallest number of single precision that is not below an edge."""
    found = np.float32(edge)
    return float(found if float(found) >= edge else np.nextafter(found, np.float32(np.inf)))


def _joined(number: int, edges: Sequence[float], cells: Sequence[Tree]) -> Tree:
    """Return a balanced tree over cells that edges part."""
    if len(cells) == 1:
        return cells[0]
    middle = len(edges) // 2
    left = _joined(number, edges[:middle], cells[: middle + 1])
    right = _joined(number, edges[middle + 1 :], cells[middle + 1 :])
    return Split(number, edges[middle], left, right)
