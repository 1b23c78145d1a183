"""A Krylov run as a selection uses it: memory decided first, progress shown, interruption survived."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from rankwise.arrays import Floats
from rankwise.memory import check_columns_fit, fits
from rankwise.metrics import Metric
from rankwise.progress import ProgressLine
from rankwise.selection.scorers import oriented
from rankwise.selection.systems import HeldOutSystem
from rankwise.solvers.dual_surface import DualSurfaceRun
from rankwise.solvers.lanczos import STORED_TOGETHER, basis_bytes
from rankwise.solvers.surface import KrylovRun, Surface, SurfaceRun

__all__ = ["KrylovFit", "are_stale", "have_converged", "have_steps"]

_EXPECTED_STEPS = 100  # a search rarely takes more; one that does may still start over without a basis
_SHARE_OF_SCORES = 0.1  # of the free memory, for what more alphas would be scored by
# Of a step: the right-hand side, the basis vectors before and now, their image, and what is left of it.
_VECTORS = 5


Rule = Callable[[Sequence[Surface]], bool]


def have_converged(candidates: Sequence[int], surfaces: Sequence[Surface]) -> bool:
    """Tell whether all of some alphas have converged."""
    return all(bool((surface.converged_at[list(candidates)] > 0).all()) for surface in surfaces)


def are_stale(candidates: Sequence[int], patience: int, surfaces: Sequence[Surface]) -> bool:
    """Tell whether no cell of some alphas has beaten the best one for so many iterations."""
    return all(
        bool(surface.errors) and len(surface.errors) - surface.best_cell(candidates).step >= patience
        for surface in surfaces
    )


def have_steps(steps: int, surfaces: Sequence[Surface]) -> bool:
    """Tell whether so many iterations were made."""
    return len(surfaces[0].errors) >= steps


class KrylovFit:
    """One run, as long as it takes and as memory allows.

    Parameters
    ----------
    alphas : (alphas,) float64
        In increasing order.
    run : type
        That takes the system's unknowns.
    widens : bool
        Whether alphas may be added later, if the scores of the rows to score by fit in memory.

    Attributes
    ----------
    run : KrylovRun
        Started anew where the basis did not fit.
    """

    def __init__(
        self,
        system: HeldOutSystem,
        alphas: Floats,
        run: type[SurfaceRun | DualSurfaceRun],
        *,
        tol: float,
        max_iter: int,
        widens: bool = False,
    ) -> None:
        n_unknowns, columns = system.rhs.shape
        if run is SurfaceRun:  # the other's vectors have a number per row, and rows are in memory
            check_columns_fit(n_unknowns, _VECTORS * columns)
        self._step_bytes = basis_bytes(n_unknowns, columns, 1)
        expected = min(max_iter, n_unknowns + 1, _EXPECTED_STEPS)
        self.keeps_basis = fits(expected * self._step_bytes)
        kept = 8 * expected * sum(rows.size for rows in system.row_columns)
        self.widens = widens and fits(kept, _SHARE_OF_SCORES)
        self._max_iter = max_iter
        self._start = partial(run, system, tol=tol, keep_scores=self.widens)
        self.run: KrylovRun = self._start(alphas, keep_basis=self.keeps_basis)
        self.was_interrupted = self._fills_memory = False

    def advance(self, is_done: Rule, title: str, metric: Metric | None = None) -> bool:
        """Grow the tables until the rule is satisfied; on Ctrl-C keep what there is.

        `title` and the values of `metric`, where there is a scorer, are shown while it runs. Return whether it ended
        before `max_iter`.
        """
        is_over = partial(self._is_over, is_done)
        with ProgressLine(title) as progress:
            show = partial(_show, progress, metric) if progress.is_shown else None
            try:
                ended = self.run.advance(is_over, self._max_iter, show)
                if self._fills_memory:
                    # Vectors of a basis that was kept orthogonal cannot be made again one by one, so it starts anew.
                    self.keeps_basis = False
                    self.run = self._start(self.run.surfaces[0].alphas, keep_basis=False)
                    ended = self.run.advance(is_over, self._max_iter, show)
            except KeyboardInterrupt:
                if self.run.n_steps == 0:
                    raise
                self.was_interrupted = ended = True
        return ended

    def _is_over(self, is_done: Rule, surfaces: Sequence[Surface]) -> bool:
        """Tell whether the next basis vectors, which are stored several at a time, would not fit; else ask the rule."""
        stores_more = self.keeps_basis and len(surfaces[0].errors) % STORED_TOGETHER == 0
        self._fills_memory = stores_more and not fits(STORED_TOGETHER * self._step_bytes)
        return self._fills_memory or is_done(surfaces)


def _show(progress: ProgressLine, metric: Metric | None, surfaces: Sequence[Surface]) -> None:
    """Show how far a run has come."""
    best = ""
    if metric is not None:
        error = float(np.mean([np.min(surface.errors[-1]) for surface in surfaces]))
        best = f", {metric.name} {oriented(error, greater_is_better=metric.greater_is_better):.4f}"
    progress.update(f"iteration {len(surfaces[0].errors)}{best}")
