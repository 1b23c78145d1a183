"""Losses with margins at one alpha: which solver, with progress shown and iterates watched."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from rankwise.arrays import Floats
from rankwise.design import Design, Products
from rankwise.exceptions import InvalidInputError
from rankwise.fitting.notices import Notice, require_range
from rankwise.fitting.problem import Restriction
from rankwise.losses import LOSSES
from rankwise.objectives import MarginObjective, SquaredObjective
from rankwise.pairs.graph import MarginPairs, PairGraph
from rankwise.pairs.pairs import Pairs
from rankwise.runtime.progress import ProgressLine
from rankwise.solvers.bounded import minimise_bounded
from rankwise.solvers.choose import MARGIN_SOLVERS, choose_margin_solver, matrix_reads
from rankwise.solvers.krylov import ROWS_A_COLUMN, Curvature
from rankwise.solvers.solution import Monitor, Solution, Status

_MATRIX_READS = 20  # at most, where the whole matrix of the curvature is to pay
_FIRST_TRY = 60  # iterations of the solver that "auto" tries first; text takes it 10 to 50


def margins_of(pairs: Pairs, loss: str, output: int = 0) -> MarginPairs:
    """Return the pairs of an output with their margins; raise where the loss has none and magnitudes are given."""
    if LOSSES[loss].is_probability and pairs.has_magnitudes:
        raise InvalidInputError(
            "loss='logistic' has no margins, so magnitudes would be ignored.",
            "pass the certainty of a preference as weight, and a tie as two opposite pairs of half the weight.",
        )
    return pairs.margins(output)


def curvature_of(design: Design, graph: PairGraph) -> Curvature | None:
    """Return the preconditioner of margin problems over these pairs; None if the storage has none."""
    if not design.has_rows:
        return None
    n_rows, n_features = design.shape
    reads = matrix_reads(design, forms_matrix=graph.blocks is not None)
    is_whole = n_rows >= ROWS_A_COLUMN * n_features and reads <= _MATRIX_READS
    # 13 iterations at 5,000 rows × 136, where it takes the time of 9 to 25
    update_after = 2 * reads if is_whole else 0
    return Curvature(SquaredObjective(design, graph), is_whole=is_whole, update_after=int(update_after))


class Watcher(Monitor, Protocol):
    """A monitor that keeps the best iterate of each output by a judgement of its own, such as held-out rows."""

    coef: list[Floats]
    gap: float


@dataclass
class MarginFit:
    """Settings that all margin problems of a fit share.

    Attributes
    ----------
    loss : str
        One of `rankwise.losses.MARGIN_LOSSES`.
    solver : str
        A name of `MARGIN_SOLVERS`.
    second : str or None
        The solver that goes on, here and in later calls, where rounding stops the first, or where `is_brief` and the
        first needs more than `_FIRST_TRY` iterations.
    tol : float
        The largest duality gap, as a share of the possible gain over 0 (`rankwise.solvers.newton`).
    restriction : Restriction or None
        Prior knowledge of the coefficients; solvers see coordinates in which the penalty is ``α‖u‖²``.
    """

    loss: str
    solver: str
    tol: float
    max_iter: int | None
    second: str | None = None
    restriction: Restriction | None = None
    is_brief: bool = False  # whether the first solver only gets a short try

    @classmethod
    def of_pairs(
        cls,
        pairs: MarginPairs,
        loss: str,
        solver: str,
        tol: float,
        max_iter: int | None,
        restriction: Restriction | None = None,
    ) -> MarginFit:
        """Decide "auto" by the pairs."""
        second, is_brief = None, False
        if restriction is not None and restriction.is_signed:
            solver = "bounded"
        elif solver == "auto":
            solver = choose_margin_solver(loss, pairs, tol)
            # Steep planes lose their digits sooner than steep slopes: columns of 1e5 at alpha 1e-4 are too much.
            # Over few pairs a narrow kink does: of 36 fits of 1,800 pairs, two came no nearer than 4e-7 and 2e-6.
            second = {"bundle": "smoothing", "smoothing": "bundle"}.get(solver)
            is_brief = solver == "bundle"
        elif solver == "bundle":  # the inner products of its planes lose columns that are 1e5 times smaller
            second = "newton" if LOSSES[loss].is_smooth else "smoothing"
        return cls(loss, solver, tol, max_iter, second, restriction, is_brief)

    def solve(
        self,
        design: Design,
        pairs: MarginPairs,
        alpha: float,
        *,
        start: Floats | None = None,
        curvature: Curvature | None = None,
        watcher: Watcher | None = None,
        title: str = "fitting",
    ) -> Solution:
        """Minimise the mean loss plus ``alpha ‖w‖²``."""
        with np.errstate(over="ignore"):
            total = pairs.weight
        if not 0 < total < np.inf:
            raise InvalidInputError(
                f"The weights of all pairs add up to {total}: they overflow or underflow.",
                "use weights around 1; only their ratios matter.",
            )
        known = self.restriction
        if known is not None and known.has_free_columns:
            zeros = np.zeros(pairs.n_rows)  # where every margin is missed
            inside = pairs.at(zeros)
            known, _ = known.with_penalties(design, lambda v: inside.laplacian(v) / total, alpha)
        remote = None if self.solver == "bounded" else design.counting(pairs)
        products, pairs = remote or (design, pairs)
        overflows = np.errstate(over="ignore", invalid="ignore")  # looked at below
        with ProgressLine(title) as progress, overflows:
            monitor = _Shown(progress, watcher, known)
            if known is not None:
                start = None if start is None else known.to_own(start)
                # The curvature is that of the columns as they are.
                curvature = curvature if known.penalty is None else None
            objective = self._objective(products, pairs, known)
            if self.solver == "bounded":
                assert known is not None
                n_features = objective.n_features
                bounds = known.bounds(known.origin(n_features), known.scale(n_features))
                solution = minimise_bounded(
                    objective,
                    alpha,
                    bounds,
                    tol=self.tol,
                    max_iter=self.max_iter,
                    start=start,
                    monitor=monitor,
                )
            else:
                solution = self._solve(objective, alpha, start, curvature, monitor)
            if known is not None:
                solution = replace(solution, coef=known.to_coef(solution.coef))
            require_range(solution)
            if watcher is not None:
                if solution.status is not Status.STOPPED:  # the last iterate was not shown
                    watcher(solution.coef, solution.certificate, solution.n_iter)
                solution = replace(solution, coef=watcher.coef[0], certificate=watcher.gap)
        return solution

    def _solve(
        self,
        objective: MarginObjective,
        alpha: float,
        start: Floats | None,
        curvature: Curvature | None,
        monitor: _Shown,
    ) -> Solution:
        """Solve; where the first solver comes no further, the second goes on from there."""
        options = {"tol": self.tol, "max_iter": self.max_iter, "curvature": curvature, "monitor": monitor}
        solve = MARGIN_SOLVERS[self.solver].minimise
        if self.second is None:
            return solve(objective, alpha, start=start, **options)
        limit = min(_FIRST_TRY, self.max_iter or _FIRST_TRY) if self.is_brief else self.max_iter
        first = solve(objective, alpha, start=start, **{**options, "max_iter": limit})
        comes_no_further = first.status is Status.STAGNATED or (
            self.is_brief and first.status is Status.MAX_ITER
        )
        left = None if self.max_iter is None else self.max_iter - first.n_iter
        if not comes_no_further or (left is not None and left <= 0):
            return first
        second = MARGIN_SOLVERS[self.second].minimise(
            objective, alpha, start=first.coef, **{**options, "max_iter": left}
        )
        self.solver, self.second = self.second, None
        best = min(first, second, key=lambda solution: solution.certificate)
        return replace(best, n_iter=first.n_iter + second.n_iter)

    def notices(self, solutions: Sequence[Solution]) -> list[Notice]:
        """Return notices about solutions that do not meet the tolerance."""
        return [self._notice(one) for one in solutions if not one.status.is_good]

    def _notice(self, solution: Solution) -> Notice:
        gain = solution.gain
        share = f", {solution.certificate / gain:.1e} of what can be gained" if gain > 0 else ""
        what = (
            f"solver={self.solver!r} stopped after {solution.n_iter} iterations at a duality gap of "
            f"{solution.certificate:.1e}{share} (tol={self.tol}): {solution.status.value}"
        )
        remedy = "raise max_iter or tol, use a larger alpha, or scale the columns"
        if self.solver == "smoothing" and solution.status is Status.STAGNATED:
            remedy = f"use solver='bundle', which can prove smaller gaps; or {remedy}"
        return Notice(what, remedy)

    def _objective(self, design: Products, pairs: MarginPairs, known: Restriction | None) -> MarginObjective:
        base = scale = None
        if known is not None:
            base = None if known.prior is None or not known.prior.any() else design.dot(known.prior)
            scale = None if known.penalty is None else known.scale(design.shape[1])
        return MarginObjective(design, pairs, LOSSES[self.loss], base, scale)


@dataclass
class _Shown:
    """A monitor that shows the progress and calls the user's monitor."""

    progress: ProgressLine
    watcher: Watcher | None
    restriction: Restriction | None = None

    def __call__(self, coef: Floats, gap: float, n_iter: int) -> bool:
        coef = coef if self.restriction is None else self.restriction.to_coef(coef)
        self.progress.update(f"iteration {n_iter}, gap {gap:.2g}")
        return n_iter > 0 and self.watcher is not None and self.watcher(coef, gap, n_iter)
