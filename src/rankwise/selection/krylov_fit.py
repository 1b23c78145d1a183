"""A Krylov run as the estimators use it: memory decided first, progress shown, interruption survived."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from rankwise.arrays import Floats
from rankwise.exceptions import caller_level
from rankwise.memory import check_columns_fit, fits
from rankwise.metrics import Metric
from rankwise.progress import ProgressLine
from rankwise.solvers.dual_surface import DualSurfaceRun
from rankwise.solvers.lanczos import STORED_TOGETHER, basis_bytes
from rankwise.solvers.surface import Surface, SurfaceRun

__all__ = ["KrylovFit", "warn_interrupted"]

_EXPECTED_STEPS = 100  # a search rarely takes more; one that does may still start over without a basis
_SHARE_OF_SCORES = 0.1  # of the free memory, for what more alphas would be scored by
# Of a step: the right-hand side, the basis vectors before and now, their image, and what is left of it.
_VECTORS = 5


class KrylovFit:
    """One run of `SurfaceRun`, or of `DualSurfaceRun`, and the coefficients that can be read from it.

    Parameters
    ----------
    system : System
        Of the kind that `run` takes.
    alphas : (alphas,) float64
        In increasing order.
    tol : float
    max_iter : int
    column_scale : (features,) float64, optional
        Where the system is in scaled coordinates ``w = column_scale * u``.
    run : type
    widens : bool
        Whether alphas may be added later, if the scores of the rows to score by fit in memory.
    """

    def __init__(
        self,
        system: Any,
        alphas: Floats,
        *,
        tol: float,
        max_iter: int,
        column_scale: Floats | None = None,
        run: type[SurfaceRun | DualSurfaceRun] = SurfaceRun,
        widens: bool = False,
    ) -> None:
        n_features, columns = system.rhs.shape
        if run is SurfaceRun:  # the other's vectors have a number per row, and rows are in memory
            check_columns_fit(n_features, _VECTORS * columns)
        self._step_bytes = basis_bytes(n_features, columns, 1)
        expected = min(max_iter, n_features + 1, _EXPECTED_STEPS)
        self.keeps_basis = fits(expected * self._step_bytes)
        kept = 8 * expected * sum(rows.size for rows in system.row_columns)
        self.widens = widens and fits(kept, _SHARE_OF_SCORES)
        self._start = partial(run, system, tol=tol, keep_scores=self.widens)
        self._run: SurfaceRun | DualSurfaceRun = self._start(alphas, keep_basis=self.keeps_basis)
        self._max_iter = max_iter
        self._scale = column_scale
        self.was_interrupted = False
        self._outgrown = False

    @property
    def surfaces(self) -> Sequence[Surface]:
        """The tables, output by output."""
        return self._run.surfaces

    @property
    def extremes(self) -> tuple[float, float]:
        """How far a kernel's spectrum reaches at least, both ways."""
        assert isinstance(self._run, DualSurfaceRun)
        return self._run.extremes

    @property
    def n_steps(self) -> int:
        """How many iterations every table has."""
        return min(len(surface.errors) for surface in self._run.surfaces)

    @property
    def n_products(self) -> int:
        """Vectors that were multiplied by the Hessian."""
        return self._run.space.n_steps * self._run.space.n_columns

    def advance(
        self, is_done: Callable[[Sequence[Surface]], bool], title: str, metric: Metric | None = None
    ) -> bool:
        """Grow the tables until the rule is satisfied; on Ctrl-C keep what there is.

        Parameters
        ----------
        is_done : callable
        title : str
            What this is called while it runs.
        metric : Metric, optional
            What the tables hold, where there is a scorer.

        Returns
        -------
        bool
            Whether it ended before `max_iter`.
        """
        ended = self._advance(is_done, title, metric)
        if self._outgrown:
            # Vectors of a basis that was kept orthogonal cannot be made again one by one, so the run starts anew.
            self._outgrown = self.keeps_basis = False
            self._run = self._start(self.surfaces[0].alphas, keep_basis=False)
            ended = self._advance(is_done, title, metric)
        return ended

    def _advance(
        self, is_done: Callable[[Sequence[Surface]], bool], title: str, metric: Metric | None
    ) -> bool:
        with ProgressLine(title) as progress:

            def show(surfaces: Sequence[Surface]) -> None:
                progress.update(f"iteration {len(surfaces[0].errors)}{_best(surfaces, metric)}")

            def is_over(surfaces: Sequence[Surface]) -> bool:
                self._outgrown = self.keeps_basis and self._is_full()
                return self._outgrown or is_done(surfaces)

            try:
                return self._run.advance(is_over, self._max_iter, show)
            except KeyboardInterrupt:
                if self.n_steps == 0:
                    raise
                self.was_interrupted = True
        warn_interrupted(f"after {self.n_steps} iterations; the best model so far is kept")
        return True

    def _is_full(self) -> bool:
        """Tell whether the next vectors would not fit; they are stored several at a time."""
        if self.n_steps % STORED_TOGETHER:
            return False
        return not fits(STORED_TOGETHER * self._step_bytes)

    def widen(self, alphas: Floats) -> None:
        """Add alphas to the tables, without products."""
        self._run.widen(alphas)

    def coefficients(self, column: int, alpha: float, steps: int) -> Floats:
        """Return the coefficients of an alpha after some iterations."""
        coef = self._run.coefficients(column, alpha, steps)
        return coef if self._scale is None else coef * self._scale

    def path(self, column: int, alpha: float) -> Floats:
        """Return the coefficients of an alpha after every iteration, (iterations, features)."""
        if self.keeps_basis and isinstance(self._run, SurfaceRun):
            path = self._run.space.path(column, alpha, self.n_steps)
            return path if self._scale is None else path * self._scale
        return np.array([self.coefficients(column, alpha, step) for step in range(1, self.n_steps + 1)])


def _best(surfaces: Sequence[Surface], metric: Metric | None) -> str:
    """Name the best value of the last iteration, as the metric counts; the tables hold what is to be minimised."""
    if metric is None:
        return ""
    value = float(np.mean([np.min(surface.errors[-1]) for surface in surfaces]))
    return f", {metric.name} {-value if metric.greater_is_better else value:.4f}"


def warn_interrupted(what: str) -> None:
    """Say that Ctrl-C ended a search, and what is left of it."""
    warnings.warn(
        f"Interrupted {what}. Hint: call fit again without interrupting it for the final one.",
        ConvergenceWarning,
        stacklevel=caller_level(),
    )
