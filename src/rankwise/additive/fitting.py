"""Fitting one additive model: first curves alone, then the best pairs of columns, then curves and surfaces together."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from rankwise.additive.coordinates import (
    PLAIN,
    PenaltyCoordinates,
    Rescaled,
    Rounds,
    adapted_scale,
    selecting_scale,
)
from rankwise.additive.interactions import RankedPairs, cells_of, coarse, rank_pairs
from rankwise.additive.knots import KnotPlan, plan_knots
from rankwise.additive.training import LossSolver, Training
from rankwise.arrays import AnyArray, Floats
from rankwise.data.queries import Queries
from rankwise.design import AdditiveDesign
from rankwise.design.terms import Curve, Surface, Terms
from rankwise.solvers.solution import Solution, Status

_TIGHT = 1e-5  # a start that is this good is the solution

__all__ = ["AdditiveFit", "Blueprint", "Blueprints", "Layout", "as_pairs", "encode"]


def encode(X: AnyArray, terms: Terms, coordinates: PenaltyCoordinates, n_threads: int) -> AdditiveDesign:
    """Return the design of rows: the weights of the terms, in the coordinates of the penalty."""
    return AdditiveDesign.encode(X, terms, coordinates, n_threads)


@dataclass(frozen=True)
class Layout:
    """Terms in the coordinates of their penalty, and the training rows' design."""

    terms: Terms
    coordinates: PenaltyCoordinates
    design: AdditiveDesign


@dataclass
class Blueprint:
    """The training rows, knots and penalty that all candidate models share.

    Attributes
    ----------
    X : (rows, columns) array
    plan : KnotPlan
    penalty : str
    directions : dict of column to 1 or -1
        The directions of the curves that must be monotone.
    n_threads : int
    """

    X: AnyArray
    plan: KnotPlan
    penalty: str
    directions: dict[int, int]
    n_threads: int
    _side_masses: dict[int, Floats] = field(init=False)

    def __post_init__(self) -> None:
        pairs = zip(self.plan.sides, self.plan.side_masses, strict=True)
        self._side_masses = {side.column: mass for side, mass in pairs}

    @cached_property
    def curves(self) -> Layout:
        """The layout of the curves alone."""
        return self.layout(())

    def layout(self, pairs: Sequence[tuple[int, int]]) -> Layout:
        """Return the layout of all curves and of surfaces for these pairs of sides."""
        terms = self.terms(pairs)
        coordinates = self.coordinates(terms)
        return Layout(terms, coordinates, encode(self.X, terms, coordinates, self.n_threads))

    def terms(self, pairs: Sequence[tuple[int, int]]) -> Terms:
        """Return all curves, and surfaces for these pairs of sides."""
        sides = self.plan.sides
        return Terms(self.plan.curves, tuple(Surface(sides[a], sides[b]) for a, b in pairs))

    def coordinates(self, terms: Terms) -> PenaltyCoordinates:
        """Return the coordinates in which the penalty is a plain ridge."""
        return PenaltyCoordinates(terms, self.plan.masses, self._side_masses, self.penalty, self.directions)

    def sizes(self, pairs: Sequence[tuple[int, int]]) -> list[int]:
        """Return the number of coordinates of every curve, and of surfaces for these pairs of sides."""
        return self.coordinates(self.terms(pairs)).sizes

    def forget_curves(self) -> None:
        """Release the codes of the curves and the cells that ranked pairs, before surfaces are encoded."""
        for name in ("curves", "_cells"):
            self.__dict__.pop(name, None)

    def rank_pairs(self, slope: Floats, curvature: Floats) -> RankedPairs:
        """Rank the pairs of sides that may get a surface by their estimated gain, from the slopes of the loss."""
        sides = list(self._coarse.values())
        is_constant = np.isin([side.column for side in sides], self.plan.constant)
        found = rank_pairs(sides, is_constant, self._cells, slope, curvature, self.n_threads)
        return RankedPairs(np.array(list(self._coarse), dtype=np.int64)[found.pairs], found.gains)

    @cached_property
    def _coarse(self) -> dict[int, Curve]:
        """The coarse knots by which pairs are ranked, for each side that may be part of a surface."""
        free = {n: side for n, side in enumerate(self.plan.sides) if side.column not in self.directions}
        found = {number: coarse(side) for number, side in free.items()}
        return {number: side for number, side in found.items() if side is not None}

    @cached_property
    def _cells(self) -> npt.NDArray[np.uint8]:
        cells = np.empty((len(self._coarse), self.X.shape[0]), dtype=np.uint8)
        for row, side in zip(cells, self._coarse.values(), strict=True):
            row[:] = cells_of(side, self.X[:, side.column])
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
    penalty, directions, n_threads
        As in `Blueprint`.
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
            self._kept[key] = Blueprint(self.X, plan, self.penalty, self.directions, self.n_threads)
        return self._kept[key]

    def forget(self, n_knots: int, surface_knots: int) -> None:
        """Release the blueprint with these numbers of knots."""
        self._kept.pop((n_knots, surface_knots), None)


class AdditiveFit:
    """Models of given training pairs: curves, then surfaces in decreasing order of their estimated gain.

    Parameters
    ----------
    blueprint : Blueprint
    training : Training
    tol, adapted_tol : float, optional
        Looser tolerances than that of the training, for models that are compared; the second for adapted penalties.
    """

    def __init__(
        self,
        blueprint: Blueprint,
        training: Training,
        tol: float | None = None,
        adapted_tol: float | None = None,
    ) -> None:
        self._blueprint, self._training = blueprint, training
        self._tol, self._adapted_tol = tol, adapted_tol
        self._solvers: dict[tuple[tuple[int, int], ...], tuple[Layout, LossSolver]] = {}

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
            self._solvers = {(): self._solvers[()]} if key and () in self._solvers else {}
            layout = self._blueprint.layout(key) if key else self._blueprint.curves
            self._solvers[key] = layout, self._training.on(layout.design, layout.coordinates.nonnegative)
        layout, solver = self._solvers[key]
        if start is not None:
            start = np.append(start, np.zeros(layout.coordinates.n_coordinates - start.size))
        if before is None:
            return layout, _moved(solver, alpha, start, self._tol)
        scale = selecting_scale(before, layout.coordinates.sizes) if by_terms else adapted_scale(before)
        rescaled = layout.design.within(Rescaled(layout.coordinates, scale))
        adapted = self._training.on(rescaled, layout.coordinates.nonnegative)
        solution = _moved(adapted, alpha, (before if start is None else start) / scale, self._adapted_tol)
        return layout, replace(solution, coef=scale * solution.coef)

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

    def solve_with_best(
        self,
        alpha: float,
        n_pairs: int,
        start: Floats | None = None,
        rounds: Rounds = PLAIN,
        sample: Callable[[], AdditiveFit | None] = lambda: None,
    ) -> tuple[Layout, Solution]:
        """Fit the curves, rank the pairs of columns, and refit the curves with the `n_pairs` best surfaces.

        If `sample` returns a fit on some of the rows, this fit ranks the pairs. It is released before all rows are
        encoded.
        """
        if n_pairs == 0:
            return self.solve_adapting(alpha, rounds, (), start)
        pairs, curves = (sample() or self).best_pairs(alpha, n_pairs, start)
        self.release_curves()
        return self.solve_adapting(alpha, rounds, pairs, curves)

    def best_pairs(
        self, alpha: float, n_pairs: int, start: Floats | None = None
    ) -> tuple[list[tuple[int, int]], Floats]:
        """Fit the curves; return the pairs of columns with the largest gains, and the curves' coefficients."""
        _, solution = self.solve(alpha, (), start)
        return as_pairs(self.rank_pairs(solution.coef), n_pairs), solution.coef

    def release_curves(self) -> None:
        """Release the codes of curves alone before those of surfaces are made."""
        self._solvers.clear()
        self._blueprint.forget_curves()

    def rank_pairs(self, coef: Floats) -> RankedPairs:
        """Rank the pairs of sides where the curves have these coefficients."""
        return self._blueprint.rank_pairs(*self._training.slopes(self._blueprint.curves.design.dot(coef)))


def _moved(solver: LossSolver, alpha: float, start: Floats | None, tol: float | None) -> Solution:
    """Solve, tightening a loose tolerance until the solution leaves the start: else two settings would look equal."""
    solution = solver.solve(alpha, start, tol)
    while tol is not None and start is not None and _is_start(solution) and tol > _TIGHT:
        tol /= 10
        solution = solver.solve(alpha, start, tol)
    return solution


def _is_start(solution: Solution) -> bool:
    return solution.status is Status.CONVERGED and solution.n_iter == 0


def as_pairs(ranked: RankedPairs, n_pairs: int) -> list[tuple[int, int]]:
    """Return the first of the ranked pairs."""
    return [(int(a), int(b)) for a, b in ranked.pairs[:n_pairs]]
