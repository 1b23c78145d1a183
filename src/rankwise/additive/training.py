"""Training losses of additive models: means over pairs, for any design.

All losses are weighted means over pairs here, the squared loss included, so that an alpha has a similar effect in each.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from rankwise.arrays import Floats, Ints
from rankwise.design import Design
from rankwise.exceptions import NoPairsError
from rankwise.fitting.margins import MarginFit
from rankwise.losses import HingeLoss, SquaredHingeLoss, SquaredLoss
from rankwise.objectives import MarginObjective, SquaredObjective
from rankwise.pairs.graph import MarginPairs, PairGraph
from rankwise.pairs.pairs import Pairs
from rankwise.solvers.bounded import Bounds, minimise_bounded
from rankwise.solvers.choose import SOLVERS, SolverOptions, choose_solver, fits_direct, matrix_reads
from rankwise.solvers.direct import DirectFactor
from rankwise.solvers.krylov import PLAIN, Curvature
from rankwise.solvers.solution import Solution

LOSSES = ("squared_hinge", "squared", "hinge")

# Minimises the mean loss of one design plus ``alpha ‖u‖²``: takes alpha, a start, and a tolerance that replaces that of
# the training.
LossSolver = Callable[[float, Floats | None, float | None], Solution]
# Rows of which a preconditioner is made: on 60,000 search results and 20 surfaces at alpha 1e-5, 802 reads became 56.
_SAMPLED, _ROWS_A_COORDINATE = 1000, 3
_Mask = npt.NDArray[np.bool_]


def sample_of(pairs: Pairs, n_rows: int) -> tuple[Ints, Pairs] | None:
    """Draw about so many rows and return them and their pairs; None where that is no small part, or has no pairs."""
    rows = None if pairs.n_rows < 2 * n_rows else pairs.draw_rows(n_rows)
    if rows is None:
        return None
    try:
        return rows, pairs.subset(rows)
    except NoPairsError:  # labels so rare that none was drawn
        return None


class Training(Protocol):
    """Training pairs and their loss."""

    def on(self, design: Design, nonnegative: _Mask) -> LossSolver:
        """Return a solver for a design; the coordinates in `nonnegative` are constrained to be at least 0."""

    def slopes(self, scores: Floats) -> tuple[Floats, Floats]:
        """Return slope and curvature of the mean loss with respect to every row's score."""


@dataclass(frozen=True)
class MarginTraining:
    """Hinge or squared hinge over pairs with margins.

    Attributes
    ----------
    pairs : MarginPairs
    fit : MarginFit
    labels : Pairs
        The same pairs, of which a sample is drawn.
    """

    pairs: MarginPairs
    fit: MarginFit
    labels: Pairs

    def on(self, design: Design, nonnegative: _Mask) -> LossSolver:
        """Return a solver for a design."""
        if nonnegative.any():
            objective = MarginObjective(design, self.pairs, SquaredHingeLoss)
            return _bounded(objective, nonnegative, self.fit.tol, self.fit.max_iter)
        return partial(self._solve, design, self._curvature(design))

    def _solve(
        self,
        design: Design,
        curvature: Curvature | None,
        alpha: float,
        start: Floats | None,
        tol: float | None,
    ) -> Solution:
        fit = self.fit if tol is None else replace(self.fit, tol=tol)
        return fit.solve(design, self.pairs, alpha, start=start, curvature=curvature)

    def _curvature(self, design: Design) -> Curvature | None:
        """Return a preconditioner made of a sample of the rows; None where this is no small part of them.

        It is formed once so many iterations were made that they took as long.
        """
        n_rows, n_features = design.shape
        n_sampled = max(_SAMPLED, _ROWS_A_COORDINATE * n_features)
        sample = sample_of(self.labels, n_sampled) if fits_direct(n_features) else None
        if sample is None:
            return None
        rows, pairs = sample
        part = design.gathered(rows)
        cost = int(matrix_reads(part) / 2 * rows.size / n_rows)
        objective, patience = SquaredObjective(part, pairs.graph()), max(cost, PLAIN)
        return Curvature(objective, is_whole=True, update_after=2 * cost, patience=patience, sample=rows)

    def slopes(self, scores: Floats) -> tuple[Floats, Floats]:
        """Return slope and curvature of the mean loss; the kink of a hinge counts as rounded."""
        weight = self.pairs.weight
        if self.fit.loss == "hinge":
            point = HingeLoss(self.pairs, scores)
            return point.gradient / weight, point.smoothed_hessian_diagonal(1.0) / weight
        smooth = SquaredHingeLoss(self.pairs, scores)
        return smooth.gradient / weight, smooth.hessian_diagonal() / weight


@dataclass(frozen=True)
class SquaredTraining:
    """The squared loss over a graph, as a mean."""

    graph: PairGraph
    tol: float
    max_iter: int | None

    def on(self, design: Design, nonnegative: _Mask) -> LossSolver:
        """Return a solver for a design."""
        if nonnegative.any():
            graph: Any = self.graph
            objective = MarginObjective(design, graph, SquaredLoss)
            return _bounded(objective, nonnegative, self.tol, self.max_iter)
        return _SquaredSolver(self, SquaredObjective(design, self.graph)).solve

    def slopes(self, scores: Floats) -> tuple[Floats, Floats]:
        """Return slope and curvature of the mean loss."""
        point = SquaredLoss(self.graph, scores)
        return point.gradient / self.graph.weight, 2 * self.graph.degrees() / self.graph.weight


def _bounded(objective: Any, nonnegative: _Mask, own_tol: float, max_iter: int | None) -> LossSolver:
    """Return a solver of a smooth loss with some coordinates at least 0."""

    def solve(alpha: float, start: Floats | None, tol: float | None) -> Solution:
        return minimise_bounded(
            objective,
            alpha,
            Bounds.not_negative(nonnegative),
            tol=own_tol if tol is None else tol,
            max_iter=max_iter,
            start=start,
        )

    return solve


# How many alphas are counted on once a second one is asked for: a search tries those on both sides of the best.
_MORE_ALPHAS = 4


class _SquaredSolver:
    """Keeps the Gram matrix, after which an alpha costs a factorisation; large problems iterate.

    Where one alpha alone is found faster by iterating, the matrix is formed for the second: more follow.
    """

    def __init__(self, training: SquaredTraining, objective: SquaredObjective) -> None:
        self._training, self._objective = training, objective
        self._factor: DirectFactor | None = None
        self._n_alphas = 1

    def solve(self, alpha: float, start: Floats | None = None, tol: float | None = None) -> Solution:
        objective, training = self._objective, self._training
        # The mean of the pairs is minimised, where RankRLS has their sum.
        total = alpha * training.graph.weight
        if self._factor is None:
            has_blocks, n_alphas = training.graph.blocks is not None, self._n_alphas
            self._n_alphas = _MORE_ALPHAS
            if choose_solver(objective.design, forms_matrix=has_blocks, n_alphas=n_alphas) != "direct":
                options = SolverOptions(tol=training.tol if tol is None else tol, max_iter=training.max_iter)
                return SOLVERS["cg"](objective, total, options)
            self._factor = DirectFactor(objective)
        return self._factor.solve(total)
