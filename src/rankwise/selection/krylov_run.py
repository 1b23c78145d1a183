"""The validation error of every alpha at every iteration, from one Krylov run.

Conjugate gradients for every alpha run side by side on the coefficients of one Lanczos process. With
``T + αI = LDL'`` updated step by step, one product ``X_val v_k`` moves the validation scores of every alpha, and
the residual norm of each alpha comes for free (docs/mathematics.md, section 3). No coefficient vector is
formed before the end; then one is, for the cell of the table that was chosen.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import cached_property
from itertools import pairwise
from typing import ClassVar, Protocol

import numpy as np
import numpy.typing as npt

from rankwise.arrays import Floats
from rankwise.metrics import Metric
from rankwise.pairs.plan import oriented
from rankwise.runtime.memory import check_columns_fit, fits
from rankwise.runtime.progress import ProgressLine
from rankwise.selection.tables import Rule, Surface
from rankwise.solvers.krylov import STORED_TOGETHER, Lanczos, basis_bytes
from rankwise.solvers.scales import column_norms, differ_in_scale, unit_free

__all__ = ["KrylovRun", "Readout", "SurfaceRun", "System"]

_EXPECTED_STEPS = 100  # a search rarely takes more; one that does may still start over without a basis
_SHARE_OF_SCORES = 0.1  # of the free memory, for what more alphas would be scored by
# Of a step: the right-hand side, the basis vectors before and now, their image, and what is left of it.
_VECTORS = 5


class Readout:
    """The scores of some rows for every alpha, moved along as the Krylov spaces grow.

    Parameters
    ----------
    alphas : (alphas,) float64
        In increasing order.
    row_column : (rows,) int64
        The column that scores each row; rows of one column stand together.
    n_columns : int
    """

    def __init__(self, alphas: Floats, row_column: npt.NDArray[np.int64], n_columns: int) -> None:
        self.alphas = alphas
        shape = (alphas.size, row_column.size)
        self.scores = np.zeros(shape)
        self._direction = np.zeros(shape)
        bounds = np.searchsorted(row_column, np.arange(n_columns + 1))
        self._rows = [slice(int(a), int(b)) for a, b in pairwise(bounds)]
        self._pivot = np.ones((n_columns, alphas.size))
        self._zeta = np.zeros((n_columns, alphas.size))
        self.residual = np.ones((n_columns, alphas.size))  # ‖b - (H + αI)w‖ / ‖b‖

    def move(self, space: Lanczos, step: int, row_scores: Floats, active: int) -> None:
        """Take in a step that `space` has completed.

        Parameters
        ----------
        step : int
            From 1.
        row_scores : (rows,) float64
            The rows' inner products with the basis vectors of that step, each with its own column's.
        active : int
            Only the first so many alphas still move; the others have converged.
        """
        a, beta_next = space.diagonal[step - 1], space.off_diagonal[step - 1]
        beta = space.off_diagonal[step - 2] if step > 1 else np.zeros_like(a)
        for column, rows in enumerate(self._rows):
            pivot, zeta = self._pivot[column, :active], self._zeta[column, :active]
            if step == 1:
                pivot[:] = a[column] + self.alphas[:active]
                zeta[:] = space.start_norm[column]
            else:
                ratio = beta[column] / pivot
                pivot[:] = a[column] + self.alphas[:active] - ratio * beta[column]
                zeta *= -ratio
            # A pivot that is not positive is rounding after the column has ended: nothing is left to add.
            usable = (pivot > 0) & (zeta != 0)
            inverse = np.divide(1.0, pivot, out=np.zeros_like(pivot), where=usable)
            zeta[~usable] = 0.0
            pivot[~usable] = 1.0
            direction = self._direction[:active, rows]
            direction *= -beta[column]
            direction += row_scores[rows]
            direction *= inverse[:, None]
            self.scores[:active, rows] += zeta[:, None] * direction
            start = space.start_norm[column]
            self.residual[column, :active] = (
                beta_next[column] * np.abs(zeta * inverse) / start if start > 0 else 0.0
            )

    def absorb(self, other: Readout) -> None:
        """Take over the alphas of another one, of the same rows after the same steps."""
        order = np.argsort(np.concatenate([self.alphas, other.alphas]))
        self.alphas = np.concatenate([self.alphas, other.alphas])[order]
        self.scores = np.concatenate([self.scores, other.scores])[order]
        self._direction = np.concatenate([self._direction, other._direction])[order]
        self._pivot = np.concatenate([self._pivot, other._pivot], axis=1)[:, order]
        self._zeta = np.concatenate([self._zeta, other._zeta], axis=1)[:, order]
        self.residual = np.concatenate([self.residual, other.residual], axis=1)[:, order]


class System(Protocol):
    """Normal equations with rows to score them by: one right-hand side per column, one table per output."""

    @property
    def rhs(self) -> Floats:
        """The right-hand sides, (features, columns)."""

    @property
    def row_columns(self) -> Sequence[npt.NDArray[np.int64]]:
        """For each output, the column that scores each of its rows; rows of one column stand together."""

    def multiply(self, vectors: Floats) -> tuple[Floats, Sequence[Floats]]:
        """Return ``H @ vectors`` and, for each output, the rows' scores under their own column's vector."""

    def errors(self, output: int, scores: Floats) -> Floats:
        """Score (alphas, rows) scores of an output; lower is better."""

    def sizes(self) -> Floats | None:
        """Return about the diagonal of H, where unknowns belong to columns."""

    def model(self, column: int, solution: Floats) -> Floats:
        """Return the coefficients that a solution of a column, or each row of a path of them, stands for."""


class KrylovRun(ABC):
    """One Krylov run, as long as it takes and as memory allows, whose tables can be read at any time.

    Parameters
    ----------
    system : System
    alphas : (alphas,) float64
        In increasing order.
    tol : float
    max_iter : int
    widens : bool
        Whether alphas may be added later, if the inner products with the basis of the rows to score by fit in memory.
    keep_basis : bool or None
        Whether the basis is stored (see `Lanczos`); None where memory decides, also later.

    Attributes
    ----------
    space : Lanczos
        Started anew where its basis did not fit.
    surfaces : list of Surface
        The tables, output by output.
    """

    # Whether there is an unknown for each column; else for each row, and rows are in memory.
    _solves_columns: ClassVar[bool] = False

    def __init__(
        self,
        system: System,
        alphas: Floats,
        *,
        tol: float,
        max_iter: int,
        widens: bool = False,
        keep_basis: bool | None = None,
    ) -> None:
        n_unknowns, columns = system.rhs.shape
        if self._solves_columns:
            check_columns_fit(n_unknowns, _VECTORS * columns)
        self._system, self._tol, self._max_iter = system, tol, max_iter
        self._step_bytes = basis_bytes(n_unknowns, columns, 1)
        expected = min(max_iter, n_unknowns + 1, _EXPECTED_STEPS)
        if keep_basis is None:
            keep_basis = fits(expected * self._step_bytes)
        kept = 8 * expected * sum(rows.size for rows in system.row_columns)
        self.widens = widens and fits(kept, _SHARE_OF_SCORES)
        self._start(alphas, keep_basis=keep_basis)

    def _start(self, alphas: Floats, *, keep_basis: bool) -> None:
        self.space = Lanczos(self._system.rhs, keep_basis=keep_basis)
        self.surfaces = [Surface(alphas, self._tol) for _ in self._system.row_columns]
        self._begin(alphas)

    @property
    def n_steps(self) -> int:
        """How many iterations every table has."""
        return min(len(surface.errors) for surface in self.surfaces)

    @property
    def n_products(self) -> int:
        """Vectors that were multiplied."""
        return self.space.n_steps * self.space.n_columns

    @property
    def extremes(self) -> tuple[float, float]:
        """How far the spectrum reaches at least, both ways, where it may be negative; else 0."""
        return 0.0, 0.0

    def advance(self, is_done: Rule, title: str = "", metric: Metric | None = None) -> bool:
        """Take steps until the rule is satisfied or every alpha has converged.

        `title` and the values of `metric`, where there is a scorer, are shown while it runs. Return whether it ended
        before `max_iter`.
        """
        with ProgressLine(title) as progress:
            while not is_done(self.surfaces) and any(surface.n_active for surface in self.surfaces):
                if self._outgrows_memory():
                    # Vectors that were kept orthogonal cannot be made again one by one, so it starts anew.
                    self._start(self.surfaces[0].alphas, keep_basis=False)
                if self.space.n_steps >= self._max_iter:
                    return False
                self._step()
                if progress.is_shown:
                    self._show(progress, metric)
        return True

    def _outgrows_memory(self) -> bool:
        """Tell whether the next basis vectors, which are stored several at a time, would not fit."""
        stores_more = self.space.keep_basis and self.n_steps % STORED_TOGETHER == 0
        return stores_more and not fits(STORED_TOGETHER * self._step_bytes)

    def _show(self, progress: ProgressLine, metric: Metric | None) -> None:
        """Show how far it has come."""
        best = ""
        if metric is not None:
            error = float(np.mean([np.min(surface.errors[-1]) for surface in self.surfaces]))
            best = f", {metric.name} {oriented(error, greater_is_better=metric.greater_is_better):.4f}"
        progress.update(f"iteration {self.n_steps}{best}")

    def coefficients(self, column: int, alpha: float, steps: int) -> Floats:
        """Return the model of an alpha after some steps; without a stored basis, by another run."""
        weights = self._weights(column, alpha, steps)
        if self.space.keep_basis:
            found = self.space.combine(column, weights)
        else:
            found = self.space.replay(lambda v: self._system.multiply(v)[0], column, weights)
        return self._system.model(column, found)

    def path(self, column: int, alpha: float) -> Floats:
        """Return the models of an alpha after every step, (steps, features)."""
        return np.array([self.coefficients(column, alpha, step) for step in range(1, self.n_steps + 1)])

    @abstractmethod
    def widen(self, alphas: Floats) -> None:
        """Add alphas to the tables, as if they had been there from the start."""

    @abstractmethod
    def _begin(self, alphas: Floats) -> None:
        """Prepare for the first step."""

    @abstractmethod
    def _step(self) -> None:
        """Take a step, and record it in every table."""

    @abstractmethod
    def _weights(self, column: int, alpha: float, steps: int) -> Floats:
        """Return how the basis vectors add up to the solution of an alpha after some steps."""


class SurfaceRun(KrylovRun):
    """In the coefficients of columns."""

    _solves_columns = True

    def _begin(self, alphas: Floats) -> None:
        self._kept: list[Sequence[Floats]] | None = [] if self.widens else None
        columns = self.space.n_columns
        self._readouts = [Readout(alphas, row_column, columns) for row_column in self._system.row_columns]

    def path(self, column: int, alpha: float) -> Floats:  # noqa: D102 - as in KrylovRun, by one product
        if not self.space.keep_basis:
            return super().path(column, alpha)
        return self._system.model(column, self.space.path(column, alpha, self.n_steps))

    def _weights(self, column: int, alpha: float, steps: int) -> Floats:
        return self.space.projected_solution(column, alpha, steps)

    def widen(self, alphas: Floats) -> None:
        """Add alphas to the tables; needs `widens`."""
        assert self._kept is not None
        for output, (readout, surface) in enumerate(zip(self._readouts, self.surfaces, strict=True)):
            others = Readout(alphas, self._system.row_columns[output], self.space.n_columns)
            added = Surface(alphas, surface.tol)
            for step, row_scores in enumerate(self._kept, 1):
                self._record(output, step, row_scores[output], others, added)
            readout.absorb(others)
            surface.absorb(added)

    def _step(self) -> None:
        image, row_scores = self._system.multiply(self.space.vectors)
        self.space.advance(image)
        if self._kept is not None:
            self._kept.append([np.array(scores) for scores in row_scores])
        for output, (readout, surface) in enumerate(zip(self._readouts, self.surfaces, strict=True)):
            self._record(output, self.space.n_steps, row_scores[output], readout, surface)

    def _record(self, output: int, step: int, row_scores: Floats, readout: Readout, surface: Surface) -> None:
        active = surface.n_active
        if active == 0:
            surface.repeat()
            return
        readout.move(self.space, step, row_scores, active)
        residual = readout.residual
        if (residual[:, :active] <= surface.tol).any() and self._column_sizes is not None:
            residual = np.maximum(residual, self._without_units(self._column_sizes, readout, step))
        surface.record(self._system.errors(output, readout.scores[:active]), residual)

    @cached_property
    def _column_sizes(self) -> Floats | None:
        """What residuals are measured by; None where columns have like scales, and the plain ones do."""
        sizes = self._system.sizes()
        least = float(self._readouts[0].alphas[0])
        return sizes if sizes is not None and differ_in_scale(sizes, least) else None

    def _without_units(self, sizes: Floats, readout: Readout, step: int) -> Floats:
        """Return the relative residuals in the norm of ``(diag(H) + α)^-1``, (columns, alphas)."""
        if step < self.space.n_steps:
            return np.full_like(readout.residual, np.inf)  # the direction is gone; a later step will tell
        found = np.zeros_like(readout.residual)
        for position, alpha in enumerate(readout.alphas):
            scale = unit_free(sizes, float(alpha))[:, None]
            whole, left = column_norms(scale * self._system.rhs), column_norms(scale * self.space.vectors)
            units = np.divide(self.space.start_norm, whole, out=np.zeros_like(whole), where=whole > 0)
            found[:, position] = readout.residual[:, position] * left * units
        return found
