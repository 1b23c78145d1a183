"""Fitting one additive model: first curves alone, then the best pairs of columns, then curves and surfaces together.

Pairs of columns are ranked by the estimated gain of a surface beyond their curves. Where the curves are fitted, the
loss still has a slope g and a curvature h in every row's score. A surface of constant pieces over the cells of two
columns, each moved by ``-g/h`` of its cell, would lower the loss by about ``Σ g²/(2h)``; the part that a sum of two
curves could achieve is subtracted (the idea of FAST, Lou and others 2013). One compiled pass computes the sums over the
cells of all pairs.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from rankwise import _core
from rankwise.additive.coordinates import (
    PenaltyCoordinates,
    Rescaled,
    Rounds,
    adapted_scale,
)
from rankwise.additive.knots import SAMPLED_ROWS, KnotPlan, plan_knots
from rankwise.additive.training import LossSolver, Training, sample_of
from rankwise.arrays import AnyArray, Floats, Ints, Matrix
from rankwise.data.queries import Queries
from rankwise.design import AdditiveDesign
from rankwise.design.terms import Curve, Surface, Terms
from rankwise.fitting.problem import Problem
from rankwise.metrics import Metric
from rankwise.pairs.pairs import Pairs
from rankwise.pairs.plan import Plan, Scorer
from rankwise.solvers.solution import Solution, Status

# Times the tolerance; adapted penalties move models by little, which loose fits would hide.
_LOOSE, _LOOSE_ADAPTED = 10, 3
_TIGHT = 1e-5  # a start that is this good is the solution
_PAIRS = 4096  # whose sums are held at a time
_JITTER = 1e-9
MOST_BINS = 16  # cells of a side when pairs are ranked


@dataclass(frozen=True)
class Layout:
    """The coordinates of a penalty, and the training rows' design in them."""

    coordinates: PenaltyCoordinates
    design: AdditiveDesign

    def encoded(self, X: Matrix) -> AdditiveDesign:
        """Return the design of other rows."""
        return AdditiveDesign.encode(X, self.coordinates.terms, self.coordinates, self.design.n_threads)


@dataclass
class Blueprint:
    """The training rows, knots and penalty that all candidate models share.

    Attributes
    ----------
    columns : Blueprints
    plan : KnotPlan
    """

    columns: Blueprints
    plan: KnotPlan

    @cached_property
    def curves(self) -> Layout:
        """The layout of the curves alone."""
        return self.layout(())

    def layout(self, pairs: Sequence[tuple[int, int]]) -> Layout:
        """Return the layout of all curves and of surfaces for these pairs of sides."""
        columns, coordinates = self.columns, self.coordinates(pairs)
        design = AdditiveDesign.encode(columns.X, coordinates.terms, coordinates, columns.n_threads)
        return Layout(coordinates, design)

    def coordinates(self, pairs: Sequence[tuple[int, int]]) -> PenaltyCoordinates:
        """Return the coordinates in which the penalty of these terms is a plain ridge."""
        plan, columns = self.plan, self.columns
        terms = Terms(plan.curves, tuple(Surface(plan.sides[a], plan.sides[b]) for a, b in pairs))
        return PenaltyCoordinates(terms, plan.masses, plan.side_masses, columns.penalty, columns.directions)

    def forget_curves(self) -> None:
        """Release the codes of the curves and the cells that ranked pairs, before surfaces are encoded."""
        for name in ("curves", "_cells"):
            self.__dict__.pop(name, None)

    def rank_pairs(self, slope: Floats, curvature: Floats) -> RankedPairs:
        """Rank the pairs of sides that may get a surface by their estimated gain, from the slopes of the loss."""
        sides = list(self._coarse.values())
        is_constant = np.isin([side.column for side in sides], self.plan.constant)
        found = rank_pairs(sides, is_constant, self._cells, slope, curvature, self.columns.n_threads)
        return RankedPairs(np.array(list(self._coarse), dtype=np.int64)[found.pairs], found.gains)

    @cached_property
    def _coarse(self) -> dict[int, Curve]:
        """The coarse knots by which pairs are ranked, for each side that may be part of a surface."""
        fixed = self.columns.directions
        sides = {n: coarse(side) for n, side in enumerate(self.plan.sides) if side.column not in fixed}
        return {number: side for number, side in sides.items() if side is not None}

    @cached_property
    def _cells(self) -> npt.NDArray[np.uint8]:
        X = self.columns.X
        cells = np.empty((len(self._coarse), X.shape[0]), dtype=np.uint8)
        for row, side in zip(cells, self._coarse.values(), strict=True):
            row[:] = cells_of(side, X[:, side.column])
        return cells


@dataclass
class Blueprints:
    """The blueprints of some training rows for any numbers of knots.

    Attributes
    ----------
    X : (rows, columns) array
    queries : Queries
    weight : (rows,) float64 or None
        Row weights.
    levels : collection of int
        The columns that are categories.
    penalty : str
    directions : dict of column to 1 or -1
        The directions of the curves that must be monotone.
    n_threads : int
    """

    X: AnyArray
    queries: Queries
    weight: Floats | None
    levels: Collection[int]
    penalty: str
    directions: dict[int, int]
    n_threads: int
    _kept: dict[tuple[int, int], Blueprint] = field(default_factory=dict)

    def at(self, n_knots: int, surface_knots: int) -> Blueprint:
        """Return the blueprint with at most these numbers of knots for curves and surfaces."""
        key = n_knots, surface_knots
        if key not in self._kept:
            plan = plan_knots(self.X, self.queries, *key, levels=self.levels, weight=self.weight)
            self._kept[key] = Blueprint(self, plan)
        return self._kept[key]

    def forget(self, n_knots: int, surface_knots: int) -> None:
        """Release the blueprint with these numbers of knots."""
        self._kept.pop((n_knots, surface_knots), None)


@dataclass
class AdditiveFit:
    """Models of given training pairs: curves, then surfaces in decreasing order of their estimated gain.

    Attributes
    ----------
    blueprint : Blueprint
    training : Training
    is_loose : bool
        Whether models are compared, with looser tolerances than that of the training. The codes of the curves are
        then kept beside those of surfaces.
    """

    blueprint: Blueprint
    training: Training
    is_loose: bool = False
    _solvers: dict[tuple[tuple[int, int], ...], tuple[Layout, LossSolver]] = field(default_factory=dict)

    def solve(
        self,
        alpha: float,
        pairs: Sequence[tuple[int, int]] = (),
        start: Floats | None = None,
        before: Floats | None = None,
        *,
        by_terms: bool = False,
    ) -> tuple[Layout, Solution]:
        """Fit curves and these surfaces together; a shorter `start` is one of fewer surfaces.

        The penalty is adapted to the model `before`, if there is one: to its steps, or to its terms.
        """
        key = tuple(pairs)
        if key not in self._solvers:
            # Numbers of surfaces are tried one after the other, and the codes of each are as large as the rows.
            self._solvers = {k: kept for k, kept in self._solvers.items() if self.is_loose and not k}
            if key and not self.is_loose:
                self.blueprint.forget_curves()
            layout = self.blueprint.layout(key) if key else self.blueprint.curves
            self._solvers[key] = layout, self.training.on(layout.design, layout.coordinates.nonnegative)
        layout, solver = self._solvers[key]
        if before is None:
            if start is not None:
                start = np.append(start, np.zeros(layout.coordinates.n_coordinates - start.size))
            return layout, self._moved(solver, alpha, start, _LOOSE)
        scale = adapted_scale(before, layout.coordinates.sizes if by_terms else None)
        rescaled = layout.design.within(Rescaled(layout.coordinates, scale))
        adapted = self.training.on(rescaled, layout.coordinates.nonnegative)
        solution = self._moved(adapted, alpha, before / scale, _LOOSE_ADAPTED)
        return layout, replace(solution, coef=scale * solution.coef)

    def _moved(self, solver: LossSolver, alpha: float, start: Floats | None, loose: float) -> Solution:
        """Solve, tightening a loose tolerance until the solution leaves the start: else two settings look equal."""
        tol = self.training.tol * (loose if self.is_loose else 1)
        solution = solver(alpha, start, tol)
        may_stay = not self.is_loose or start is None
        while not may_stay and (solution.status, solution.n_iter) == (Status.CONVERGED, 0) and tol > _TIGHT:
            tol /= 10
            solution = solver(alpha, start, tol)
        return solution

    def solve_adapting(
        self,
        alpha: float,
        rounds: Rounds,
        pairs: Sequence[tuple[int, int]] = (),
        start: Floats | None = None,
    ) -> tuple[Layout, Solution]:
        """Fit curves and these surfaces, then refit them in rounds, each with the penalty adapted to the last model."""
        layout, solution = self.solve(alpha, pairs, start)
        for number in range(sum(rounds)):
            by_terms = number >= rounds.steps
            layout, solution = self.solve(alpha, pairs, before=solution.coef, by_terms=by_terms)
        return layout, solution

    def best_pairs(
        self, alpha: float, n_pairs: int, start: Floats | None = None
    ) -> tuple[list[tuple[int, int]], Floats]:
        """Fit the curves; return the pairs of columns with the largest gains, and the curves' coefficients."""
        _, solution = self.solve(alpha, (), start)
        return self.rank_pairs(solution.coef).best(n_pairs), solution.coef

    def rank_pairs(self, coef: Floats) -> RankedPairs:
        """Rank the pairs of sides where the curves have these coefficients."""
        return self.blueprint.rank_pairs(*self.training.slopes(self.blueprint.curves.design.dot(coef)))


@dataclass(frozen=True)
class Split:
    """A train-test split: training pairs and the scorer of the held-out rows or pairs.

    Attributes
    ----------
    training : Training
    scorer : Scorer
    X : (rows, columns) array or None
        The rows that the scorer takes; None where they are among the rows of the design.
    """

    training: Training
    scorer: Scorer
    X: npt.NDArray[np.floating] | None = None


@dataclass(frozen=True)
class AdditiveProblem:
    """Training data, the knots of their columns, and the loss of a pair.

    Attributes
    ----------
    data : Problem
        Its design is that of the curves where anything is held out.
    blueprints : Blueprints
    loss : str
    tol : float
    max_iter : int or None
    """

    data: Problem
    blueprints: Blueprints
    loss: str
    tol: float
    max_iter: int | None

    def splits(self, plan: Plan, metric: Metric) -> list[Split]:
        """Return the splits: one with an eval set, else one per fold that can be scored."""
        found = self.data.pairs.held_out(plan, metric)
        if plan.has_eval_set:
            return [Split(self.training(), found[0].scorer, plan.eval_rows.stored())]
        return [Split(self.training(trained), scorer) for _, trained, scorer in found]

    def sample(self, blueprint: Blueprint) -> AdditiveFit | None:
        """Return a fit on a sample of whole queries, or of rows of one ranking, that selects pairs of columns.

        None for small data and for listed pairs: all rows then select the pairs.
        """
        sample = sample_of(self.data.pairs, SAMPLED_ROWS)
        if sample is None:
            return None
        rows, pairs = sample
        own = Blueprint(replace(blueprint.columns, X=blueprint.columns.X[rows]), blueprint.plan)
        return AdditiveFit(own, replace(self, data=Problem(own.curves.design, pairs)).training())

    def training(self, trained: Pairs | None = None) -> Training:
        """Return the training loss of all pairs, or of the training pairs of a split."""
        return Training(trained or self.data.pairs, self.loss, self.tol, self.max_iter)


@dataclass(frozen=True)
class RankedPairs:
    """Pairs of sides, the one with the largest gain first.

    Attributes
    ----------
    pairs : (pairs, 2) int64
        Numbers of sides, the smaller first.
    gains : (pairs,) float64
        About how much the mean loss would fall.
    """

    pairs: Ints
    gains: Floats

    def best(self, n_pairs: int) -> list[tuple[int, int]]:
        """Return the first pairs."""
        return [(a, b) for a, b in self.pairs[:n_pairs].tolist()]


def coarse(side: Curve) -> Curve | None:
    """Return a side with few enough values to rank pairs by; None for categories of many levels.

    Those are paired only where the caller lists them: their grids are large and mostly empty.
    """
    if side.n_values <= MOST_BINS:
        return side
    if side.is_levels:
        return None
    kept = np.linspace(0, side.knots.size - 1, MOST_BINS - side.has_missing).round().astype(np.int64)
    return replace(side, knots=side.knots[kept])


def cells_of(side: Curve, x: npt.NDArray[np.floating]) -> npt.NDArray[np.uint8]:
    """Return the value of a curve that is nearest to each entry: its cell."""
    knots = side.knots
    # NaN sorts behind everything.
    if side.is_levels:
        cells = np.minimum(np.searchsorted(knots, x), knots.size - 1)
        is_missing = knots[cells] != x
    else:
        cells = np.searchsorted((knots[1:] + knots[:-1]) / 2, x)
        is_missing = np.isnan(x)
    cells[is_missing] = knots.size if side.has_missing else 0
    return cells.astype(np.uint8)


def rank_pairs(
    sides: Sequence[Curve],
    is_constant: npt.NDArray[np.bool_],
    cells: npt.NDArray[np.uint8],
    slope: Floats,
    curvature: Floats,
    n_threads: int = 1,
) -> RankedPairs:
    """Rank pairs of columns by their gain, all but those of two columns that are constant inside queries.

    Parameters
    ----------
    sides : sequence of Curve
        `coarse` curves, of at most `MOST_BINS` values.
    is_constant : (sides,) bool
        Which sides are constant inside every query.
    cells : (sides, rows) uint8
        `cells_of` each of them.
    slope, curvature : (rows,) float64
        The first and second derivative of the mean loss with respect to every row's score.
    """
    width = max((side.n_values for side in sides), default=0)
    first, second = np.array(np.triu_indices(len(sides), 1), dtype=np.int64)
    seen = ~(is_constant[first] & is_constant[second])
    first, second = first[seen], second[seen]
    gains = np.zeros(first.size)
    for start in range(0, first.size, _PAIRS):
        pairs = slice(start, start + _PAIRS)
        G, H = pair_histograms(cells, slope, curvature, first[pairs], second[pairs], n_threads)
        gains[pairs] = _gains(G[:, :width, :width], H[:, :width, :width])
    # Gains that differ by rounding count as equal, so that the order of rows never decides between pairs.
    largest = max(gains.max(initial=0.0), np.finfo(np.float64).tiny)
    order = np.argsort(-np.round(gains / largest, 6), kind="stable")
    return RankedPairs(np.column_stack([first, second])[order], gains[order])


def pair_histograms(
    bins: npt.NDArray[np.uint8], g: Floats, h: Floats, first: Ints, second: Ints, n_threads: int = 1
) -> tuple[Floats, Floats]:
    """Return the sums of g and of h by the bins of listed pairs of columns, each (pairs, MOST_BINS, MOST_BINS)."""
    out = np.empty((first.size, 2 * MOST_BINS * MOST_BINS))
    _core.pair_histograms(bins, g, h, first, second, out, n_threads)
    sums = out.reshape(first.size, MOST_BINS, MOST_BINS, 2)
    return sums[..., 0], sums[..., 1]


def _gains(g: Floats, h: Floats) -> Floats:
    """Return half of ``Σ h r²`` over the cells of each pair, r the moves ``-g/h`` less their two main effects."""
    n_pairs, n_first, n_second = g.shape
    system = np.zeros((n_pairs, n_first + n_second, n_first + n_second))
    rows, columns = h.sum(axis=2), h.sum(axis=1)
    np.einsum("pii->pi", system[:, :n_first, :n_first])[:] = rows
    np.einsum("pii->pi", system[:, n_first:, n_first:])[:] = columns
    system[:, :n_first, n_first:] = h
    system[:, n_first:, :n_first] = h.transpose(0, 2, 1)
    scale = np.maximum(rows.sum(axis=1), np.finfo(np.float64).tiny)
    np.einsum("pii->pi", system)[:] += (
        _JITTER * scale[:, None]
    )  # a constant may stand in either, and lines be empty
    wanted = np.concatenate([g.sum(axis=2), g.sum(axis=1)], axis=1)
    effect = np.linalg.solve(system, wanted[:, :, None])[:, :, 0]
    left = g - h * (effect[:, :n_first, None] + effect[:, None, n_first:])
    moves = np.divide(left**2, h, out=np.zeros_like(g), where=h > 1e-12 * scale[:, None, None])
    return np.asarray(moves.sum(axis=(1, 2)) / 2)
