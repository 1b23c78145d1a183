"""The validation error of every alpha at every iteration, from one Krylov run.

Conjugate gradients for every alpha run side by side on the coefficients of one Lanczos process. With
``T + αI = LDL'`` updated step by step, one product ``X_val v_k`` moves the validation scores of every alpha, and
the residual norm of each alpha comes for free (docs/mathematics.md, section 3). No coefficient vector is
formed before the end; then one is, for the cell of the table that was chosen.

Tikhonov regularisation (each alpha converged), early stopping (alpha = 0) and the hybrid of the large-scale
RankRLS paper are three ways to read the table.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from rankwise.arrays import Floats
from rankwise.solvers.lanczos import Lanczos

__all__ = ["EQUAL", "Choice", "KrylovRun", "Readout", "Surface", "SurfaceRun", "System"]

EQUAL = 1e-12  # errors that differ by less are equally good: sums of weights round in the order of the rows


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


class Choice(NamedTuple):
    """An alpha, an iteration (0 where models have converged), and the held-out error there."""

    alpha: float
    step: int
    error: float


@dataclass
class Surface:
    """The table of errors of one output, and what was learned while it grew.

    Attributes
    ----------
    alphas : (alphas,) float64
        In increasing order.
    tol : float
        The relative residual at which an alpha has converged; its column stays as it is from then on.
    errors : list of (alphas,) float64
        One entry per iteration; lower is better.
    converged_at : (alphas,) int64
        The iteration at which each alpha met the tolerance in every column; 0 while it has not.
    """

    alphas: Floats
    tol: float
    errors: list[Floats] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.converged_at = np.zeros(self.alphas.size, dtype=np.int64)

    @property
    def table(self) -> Floats:
        """The errors, alphas × iterations."""
        return np.array(self.errors).T if self.errors else np.empty((self.alphas.size, 0))

    @property
    def n_active(self) -> int:
        """Alphas up to the largest that has not converged still move."""
        open_ones = np.flatnonzero(self.converged_at == 0)
        return int(open_ones[-1]) + 1 if open_ones.size else 0

    def record(self, active_errors: Floats, residual: Floats) -> None:
        """Add an iteration: the errors of the active alphas, and the residuals of all, (columns, alphas)."""
        previous = self.errors[-1] if self.errors else np.zeros(self.alphas.size)
        row = previous.copy()
        row[: active_errors.size] = active_errors
        step = len(self.errors) + 1
        met = (residual <= self.tol).all(axis=0) & (self.converged_at == 0)
        self.converged_at[met] = step
        self.errors.append(row)

    def repeat(self) -> None:
        """Add an iteration in which nothing moved."""
        self.errors.append(self.errors[-1])

    def absorb(self, other: Surface) -> None:
        """Take over the alphas of another one, of the same rows after the same steps."""
        order = np.argsort(np.concatenate([self.alphas, other.alphas]))
        self.alphas = np.concatenate([self.alphas, other.alphas])[order]
        self.converged_at = np.concatenate([self.converged_at, other.converged_at])[order]
        self.errors = [
            np.concatenate([own, more])[order] for own, more in zip(self.errors, other.errors, strict=True)
        ]

    def best_cell(self, candidates: Sequence[int] | None = None) -> Choice:
        """Return the cell of least error: of equals the earliest, then the largest alpha."""
        chosen = range(self.alphas.size) if candidates is None else candidates
        table = self.table[list(chosen)]
        is_best = table <= table.min() + EQUAL
        step = int(np.argmax(is_best.any(axis=0)))
        row = int(np.flatnonzero(is_best[:, step])[-1])
        return Choice(float(self.alphas[chosen[row]]), step + 1, float(table[row, step]))

    def best_converged(self, candidates: Sequence[int]) -> Choice:
        """Return the alpha of least error where each has converged; of equals the largest alpha."""
        steps = [int(self.converged_at[i]) or len(self.errors) for i in candidates]
        cells = [
            Choice(float(self.alphas[i]), step, float(self.errors[step - 1][i]))
            for i, step in zip(candidates, steps, strict=True)
        ]
        least = min(cell.error for cell in cells)
        return [cell for cell in cells if cell.error <= least + EQUAL][-1]


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

    def model(self, column: int, solution: Floats) -> Floats:
        """Return the coefficients that a solution of a column, or each row of a path of them, stands for."""


Rule = Callable[[Sequence[Surface]], bool]


class KrylovRun(ABC):
    """One Krylov run whose tables can be read at any time, and which can go on where it stopped.

    Parameters
    ----------
    system : System
    alphas : (alphas,) float64
        In increasing order.
    tol : float
    keep_basis : bool
        Whether the basis is stored (see `Lanczos`).
    keep_scores : bool
        Whether the rows' inner products with the basis are stored, so that `widen` needs no products.

    Attributes
    ----------
    space : Lanczos
    surfaces : list of Surface
        The tables, output by output.
    """

    def __init__(
        self,
        system: System,
        alphas: Floats,
        *,
        tol: float,
        keep_basis: bool = True,
        keep_scores: bool = False,
    ) -> None:
        self._system = system
        self.space = Lanczos(system.rhs, keep_basis=keep_basis)
        self.surfaces = [Surface(alphas, tol) for _ in system.row_columns]
        self._begin(alphas, keep_scores=keep_scores)

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

    def advance(
        self, is_done: Rule, max_iter: int, on_step: Callable[[Sequence[Surface]], None] | None = None
    ) -> bool:
        """Take steps until the rule is satisfied, every alpha has converged, or `max_iter` steps are taken.

        Return whether it ended before that limit.
        """
        while not is_done(self.surfaces) and any(surface.n_active for surface in self.surfaces):
            if self.space.n_steps >= max_iter:
                return False
            self._step()
            if on_step is not None:
                on_step(self.surfaces)
        return True

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
    def _begin(self, alphas: Floats, *, keep_scores: bool) -> None:
        """Prepare for the first step."""

    @abstractmethod
    def _step(self) -> None:
        """Take a step, and record it in every table."""

    @abstractmethod
    def _weights(self, column: int, alpha: float, steps: int) -> Floats:
        """Return how the basis vectors add up to the solution of an alpha after some steps."""


class SurfaceRun(KrylovRun):
    """In the coefficients of columns."""

    def _begin(self, alphas: Floats, *, keep_scores: bool) -> None:
        self._kept: list[Sequence[Floats]] | None = [] if keep_scores else None
        columns = self.space.n_columns
        self._readouts = [Readout(alphas, row_column, columns) for row_column in self._system.row_columns]

    def path(self, column: int, alpha: float) -> Floats:  # noqa: D102 - as in KrylovRun, by one product
        if not self.space.keep_basis:
            return super().path(column, alpha)
        return self._system.model(column, self.space.path(column, alpha, self.n_steps))

    def _weights(self, column: int, alpha: float, steps: int) -> Floats:
        return self.space.projected_solution(column, alpha, steps)

    def widen(self, alphas: Floats) -> None:
        """Add alphas to the tables; needs `keep_scores`."""
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
        surface.record(self._system.errors(output, readout.scores[:active]), readout.residual)
