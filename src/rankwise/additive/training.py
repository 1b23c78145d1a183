"""Training losses of additive models: means over pairs, for any design.

All losses are weighted means over pairs here, the squared loss included, so that an alpha has a similar effect in each.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np
import numpy.typing as npt

from rankwise.arrays import Floats, Ints
from rankwise.design import Design
from rankwise.exceptions import NoPairsError
from rankwise.fitting.margins import MarginFit
from rankwise.losses import LOSSES as ALL_LOSSES
from rankwise.objectives import MarginObjective, SquaredObjective
from rankwise.pairs.pairs import Pairs
from rankwise.solvers.bounded import Bounds, minimise_bounded
from rankwise.solvers.choose import (
    SOLVERS,
    SolverOptions,
    choose_margin_solver,
    choose_solver,
    fits_direct,
    matrix_reads,
)
from rankwise.solvers.direct import DirectFactor
from rankwise.solvers.krylov import PLAIN, Curvature
from rankwise.solvers.solution import Solution

LOSSES = ("squared_hinge", "squared", "hinge")

# Minimises the mean loss of one design plus ``alpha ‖u‖²``: takes alpha, a start, and the tolerance.
LossSolver = Callable[[float, Floats | None, float], Solution]
# Rows of which a preconditioner is made: of 60,000 search results with 80 surfaces, 2 and 3 for each coordinate saved
# as many products, and 2 took less time.
_SAMPLED, _ROWS_A_COORDINATE = 1000, 2


def sample_of(pairs: Pairs, n_rows: int) -> tuple[Ints, Pairs] | None:
    """Draw about `n_rows` rows and return them and their pairs; None if half of all rows are fewer or have no pairs."""
    rows = None if pairs.n_rows < 2 * n_rows else pairs.draw_rows(n_rows)
    if rows is None:
        return None
    try:
        return rows, pairs.subset(rows)
    except NoPairsError:  # labels so rare that none was drawn
        return None


@dataclass(frozen=True)
class Training:
    """Training pairs and their loss.

    Attributes
    ----------
    pairs : Pairs
    loss : str
        One of `LOSSES`.
    tol : float
        The tolerance of the final model.
    max_iter : int or None
    """

    pairs: Pairs
    loss: str
    tol: float
    max_iter: int | None

    @cached_property
    def graph(self) -> Any:
        """The graph of the squared loss, or the pairs with their margins."""
        return self.pairs.graph() if self.loss == "squared" else self.pairs.margins()

    @cached_property
    def margin_fit(self) -> MarginFit:
        """The solver of losses with margins."""
        solver = choose_margin_solver(self.loss, self.graph, self.tol)
        second = "smoothing" if solver == "bundle" else None
        return MarginFit(self.loss, solver, self.tol, self.max_iter, second)

    def on(self, design: Design, nonnegative: npt.NDArray[np.bool_]) -> LossSolver:
        """Return a solver for a design; the coordinates in `nonnegative` are constrained to be at least 0."""
        if nonnegative.any():
            objective: Any = MarginObjective(design, self.graph, ALL_LOSSES[self.loss])
            return partial(self._bounded, objective, Bounds.not_negative(nonnegative))
        if self.loss == "squared":
            return _SquaredSolver(self, SquaredObjective(design, self.graph)).solve
        return partial(self._solve, design, self._curvature(design))

    def _bounded(
        self, objective: Any, bounds: Bounds, alpha: float, start: Floats | None, tol: float
    ) -> Solution:
        return minimise_bounded(objective, alpha, bounds, tol=tol, max_iter=self.max_iter, start=start)

    def _solve(
        self, design: Design, curvature: Curvature | None, alpha: float, start: Floats | None, tol: float
    ) -> Solution:
        fit = self.margin_fit if tol == self.tol else replace(self.margin_fit, tol=tol)
        return fit.solve(design, self.graph, alpha, start=start, curvature=curvature)

    def _curvature(self, design: Design) -> Curvature | None:
        """Return a preconditioner made of a sample of the rows; None if that needs more than half of them.

        It is formed once the iterations have taken as long as it would take.
        """
        n_rows, n_features = design.shape
        n_sampled = max(_SAMPLED, _ROWS_A_COORDINATE * n_features)
        sample = sample_of(self.pairs, n_sampled) if fits_direct(n_features) else None
        if sample is None:
            return None
        rows, pairs = sample
        part = design.gathered(rows)
        cost = int(matrix_reads(part) / 2 * rows.size / n_rows)
        objective, patience = SquaredObjective(part, pairs.graph()), max(cost, PLAIN)
        return Curvature(objective, is_whole=True, update_after=2 * cost, patience=patience, sample=rows)

    def slopes(self, scores: Floats) -> tuple[Floats, Floats]:
        """Return slope and curvature of the mean loss in every row's score; the kink of a hinge counts as rounded."""
        point: Any = ALL_LOSSES[self.loss](self.graph, scores)
        if self.loss == "squared":
            curvature = 2 * self.graph.degrees()
        elif self.loss == "hinge":
            curvature = point.smoothed_hessian_diagonal(1.0)
        else:
            curvature = point.hessian_diagonal()
        return point.gradient / self.graph.weight, curvature / self.graph.weight


# How many alphas are counted on once a second one is asked for: a search tries those on both sides of the best.
_MORE_ALPHAS = 4


class _SquaredSolver:
    """Keeps the Gram matrix, after which an alpha costs a factorisation; large problems iterate.

    Where one alpha alone is found faster by iterating, the matrix is formed for the second: more follow.
    """

    def __init__(self, training: Training, objective: SquaredObjective) -> None:
        self._training, self._objective = training, objective
        self._factor: DirectFactor | None = None
        self._n_alphas = 1

    def solve(self, alpha: float, start: Floats | None, tol: float) -> Solution:
        objective = self._objective
        # The mean of the pairs is minimised, where RankRLS has their sum.
        total = alpha * objective.graph.weight
        if self._factor is None:
            has_blocks, n_alphas = objective.graph.blocks is not None, self._n_alphas
            self._n_alphas = _MORE_ALPHAS
            if choose_solver(objective.design, forms_matrix=has_blocks, n_alphas=n_alphas) != "direct":
                options = SolverOptions(tol=tol, max_iter=self._training.max_iter)
                return SOLVERS["cg"](objective, total, options)
            self._factor = DirectFactor(objective)
        return self._factor.solve(total)
