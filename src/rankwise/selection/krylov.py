"""Regularisation surfaces: the held-out error of every alpha after every iteration, from one Krylov run.

Conjugate gradients for every alpha run side by side on the coefficients of one Lanczos process. With
``T + αI = LDL'`` updated step by step, one product ``X_val v_k`` moves the validation scores of every alpha, and
the residual norm of each alpha comes for free (docs/mathematics.md, section 3). No coefficient vector is
formed before the end; then one is, for the cell of the table that was chosen.

The surface of a kernel comes from products with it alone.
Lanczos on the symmetric ``H = FKF'`` started at t builds the space of the dual variables b. In the kernel's own space
the functions ``Z'F'b`` are the Krylov space that conjugate gradients on ``(Z'LZ + αI) w = Z'r`` builds, and its
iterates are the ones wanted: the minimum of the objective over the space, which is what early stopping regularises
by. They come from the same run. With ``U'HU = T = Q diag(θ) Q'`` and β the length of the next step,
``b = U Q θ^-1/2 y`` where

    (diag(θ) + β² hh' + αI) y = ‖t‖ θ^1/2 Q'e_1          h = θ^-1/2 Q'e_k

so all alphas cost two decompositions of steps × steps per iteration; rows are scored by their scores under the basis
vectors. (A Cholesky factor of T would do in exact arithmetic; where t is mostly outside the kernel's range, T is nearly
singular from the first steps on, and the factor's rounding errors grow exponentially.) Conjugate gradients on
``(H + αI) b = t`` itself, the Galerkin solution of the same space, would minimise the error instead of the objective,
and diverge where labels cannot be interpolated and alpha is 0.

An alpha has converged by the relative residual of the normal equations in the kernel's space, as in a linear model:
``‖F'(t - (H + αI) b)‖_K / ‖F't‖_K``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
import scipy.linalg

from rankwise.arrays import Floats, Ints
from rankwise.design import Design
from rankwise.fitting.problem import KernelProblem
from rankwise.metrics import Metric
from rankwise.objectives import SquaredObjective
from rankwise.pairs.factor import ColumnFactor, factor_of
from rankwise.pairs.graph import PairGraph
from rankwise.pairs.pairs import FoldGraphs
from rankwise.pairs.plan import Scorer, oriented
from rankwise.runtime.memory import check_columns_fit, fits
from rankwise.runtime.progress import ProgressLine
from rankwise.selection.result import EQUAL, Choice
from rankwise.solvers.choose import column_scale
from rankwise.solvers.krylov import STORED_TOGETHER, Lanczos, basis_bytes
from rankwise.solvers.scales import differ_in_scale, unit_free

_EXPECTED_STEPS = 100  # a search rarely takes more; one that does may still start over without a basis
_SHARE_OF_SCORES = 0.1  # of the free memory, for what more alphas would be scored by
# Of a step: the right-hand side, the basis vectors before and now, their image, and what is left of it.
_VECTORS = 5


@dataclass
class Table:
    """The errors of one output by iteration and alpha, and when each alpha converged.

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

    def absorb(self, other: Self) -> Ints:
        """Take over the alphas of another one, of the same rows after the same steps; return the order of all."""
        order = np.argsort(np.concatenate([self.alphas, other.alphas]))
        self.alphas = np.concatenate([self.alphas, other.alphas])[order]
        self.converged_at = np.concatenate([self.converged_at, other.converged_at])[order]
        self.errors = [
            np.concatenate([own, more])[order] for own, more in zip(self.errors, other.errors, strict=True)
        ]
        return order

    def best_cell(self, candidates: Sequence[int] | None = None) -> Choice:
        """Return the cell of least error: of equals the earliest, then the largest alpha."""
        chosen = range(self.alphas.size) if candidates is None else candidates
        table = self.table[list(chosen)]
        is_best = table <= table.min() + EQUAL
        step = int(np.argmax(is_best.any(axis=0)))
        row = int(np.flatnonzero(is_best[:, step])[-1])
        return Choice(float(self.alphas[chosen[row]]), step + 1, float(table[row, step]))

    def best_errors(self, candidates: Sequence[int]) -> Floats:
        """Return the errors of the cells that `best_cell` takes of each alpha alone."""
        table = self.table[list(candidates)]
        steps = np.argmax(table <= table.min(axis=1, keepdims=True) + EQUAL, axis=1)
        return np.take_along_axis(table, steps[:, None], axis=1)[:, 0]

    def best_converged(self, candidates: Sequence[int]) -> Choice:
        """Return the alpha of least error where each has converged; of equals the largest alpha."""
        steps = [int(self.converged_at[i]) or len(self.errors) for i in candidates]
        cells = [
            Choice(float(self.alphas[i]), step, float(self.errors[step - 1][i]))
            for i, step in zip(candidates, steps, strict=True)
        ]
        least = min(cell.error for cell in cells)
        return [cell for cell in cells if cell.error <= least + EQUAL][-1]


class RowTable(Table):
    """A table, and the scores of some rows for every alpha, moved along as the Krylov spaces grow.

    Parameters
    ----------
    row_column : (rows,) int64
        The column that scores each row; rows of one column stand together.
    n_columns : int
    """

    def __init__(self, alphas: Floats, tol: float, row_column: Ints, n_columns: int) -> None:
        super().__init__(alphas, tol)
        shape = (alphas.size, row_column.size)
        self.scores = np.zeros(shape)
        self._direction = np.zeros(shape)
        bounds = np.searchsorted(row_column, np.arange(n_columns + 1))
        self._rows = [slice(int(a), int(b)) for a, b in pairwise(bounds)]
        self._pivot = np.ones((n_columns, alphas.size))
        self._zeta = np.zeros((n_columns, alphas.size))
        self.residual = np.ones((n_columns, alphas.size))  # ‖b - (H + αI)w‖ / ‖b‖

    def move(self, space: Lanczos, step: int, row_scores: Floats) -> None:
        """Take in a step that `space` has completed, in the scores of active alphas.

        Parameters
        ----------
        step : int
            From 1.
        row_scores : (rows,) float64
            The rows' inner products with the basis vectors of that step, each with its own column's.
        """
        active = self.n_active
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

    def absorb(self, other: Self) -> Ints:
        """Take over its scores and its place in the space as well."""
        order = super().absorb(other)
        self.scores = np.concatenate([self.scores, other.scores])[order]
        self._direction = np.concatenate([self._direction, other._direction])[order]
        self._pivot = np.concatenate([self._pivot, other._pivot], axis=1)[:, order]
        self._zeta = np.concatenate([self._zeta, other._zeta], axis=1)[:, order]
        self.residual = np.concatenate([self.residual, other.residual], axis=1)[:, order]
        return order


class Rule(NamedTuple):
    """When a run may end.

    Attributes
    ----------
    candidates : sequence of int
        The positions of the alphas that matter.
    patience : int or None
        Stop after this many iterations in which none of their cells improved; None: once all of them have converged.
    steps : int or None
        Stop after this many iterations in any case.
    """

    candidates: Sequence[int] = ()
    patience: int | None = None
    steps: int | None = None

    def is_met(self, tables: Sequence[Table]) -> bool:
        """Tell whether the run may end."""
        if self.steps is not None:
            return len(tables[0].errors) >= self.steps
        if self.patience is None:
            return all(bool((table.converged_at[list(self.candidates)] > 0).all()) for table in tables)
        return all(
            bool(table.errors) and len(table.errors) - table.best_cell(self.candidates).step >= self.patience
            for table in tables
        )


@dataclass(frozen=True)
class ScoredGraph:
    """The subject of a surface: a graph, or its folds in lockstep, and the entries that score their models.

    Attributes
    ----------
    graph : PairGraph
        Of everything that trains, held out or not.
    folds : FoldGraphs or None
        Then there is a column per fold, and held-out entries score, each under the model that does not see it.
    rows : Design or None
        Rows of their own that score, as models multiply them.
    scorers : sequence of Scorer
        One per output; without any, nothing is scored, and only residuals are looked at.
    columns : (entries,) int64 or None
        The column that scores each held-out entry.
    means : (unknowns of a model, columns) float64 or None
        The factors whose products with models add up to the mean score of each column's training rows.
    labels : (entries,) float64 or None
        The mean label of each entry's training rows, where scores are shifted to it.
    """

    graph: PairGraph
    folds: FoldGraphs | None = None
    rows: Design | None = None
    scorers: Sequence[Scorer] = ()
    columns: Ints | None = None
    means: Floats | None = None
    labels: Floats | None = None

    def row_columns(self, n_columns: int) -> list[Ints]:
        """Return for each output the column that scores each of its entries; those of one column stand together."""
        if self.columns is not None:
            return [self.columns]
        n_rows = 0 if self.rows is None else self.rows.shape[0]
        return [np.full(n_rows, column, dtype=np.int64) for column in range(n_columns)]

    def values(self, models: Floats, scores: Floats | None, n_outputs: int) -> list[Floats]:
        """Return the values of the entries, output by output, under models that give training rows some scores."""
        if self.rows is not None:
            return list(self.rows.dot(_one_vector(models)).reshape(self.rows.shape[0], -1).T)
        if self.folds is None:
            return [np.empty(0)] * n_outputs
        assert scores is not None
        values = self.folds.values(scores)
        if self.means is not None:
            values -= (self.means * models).sum(axis=0)[self.columns]
        return [values]

    def errors(self, output: int, values: Floats) -> Floats:
        """Score (alphas, entries) values of an output; lower is better."""
        if not self.scorers:
            return np.zeros(values.shape[0])
        if self.rows is not None:
            return self.scorers[output].errors_of_rows(values)
        return self.scorers[output].errors(values if self.labels is None else values + self.labels)


class Surface(ABC):
    """Tables of errors, output by output, that one Krylov run fills as long as it takes and as memory allows.

    Parameters
    ----------
    scored : ScoredGraph
    rhs : (unknowns, columns) float64
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
    tables : list of Table
        Output by output.
    """

    # Whether there is an unknown for each column; else for each row, and rows are in memory.
    _solves_columns: ClassVar[bool] = False

    def __init__(
        self,
        scored: ScoredGraph,
        rhs: Floats,
        alphas: Floats,
        *,
        tol: float,
        max_iter: int,
        widens: bool = False,
        keep_basis: bool | None = None,
    ) -> None:
        n_unknowns, columns = rhs.shape
        if self._solves_columns:
            check_columns_fit(n_unknowns, _VECTORS * columns)
        self._scored, self._rhs, self._tol, self._max_iter = scored, rhs, tol, max_iter
        self._step_bytes = basis_bytes(n_unknowns, columns, 1)
        expected = min(max_iter, n_unknowns + 1, _EXPECTED_STEPS)
        if keep_basis is None:
            keep_basis = fits(expected * self._step_bytes)
        self._row_columns = scored.row_columns(columns)
        kept = 8 * expected * sum(rows.size for rows in self._row_columns)
        self.widens = widens and fits(kept, _SHARE_OF_SCORES)
        self._start(alphas, keep_basis=keep_basis)

    def _start(self, alphas: Floats, *, keep_basis: bool) -> None:
        self.space = Lanczos(self._rhs, keep_basis=keep_basis)
        self.tables = [self._table(output, alphas) for output in range(len(self._row_columns))]
        self._values: list[list[Floats]] = []  # of the entries, by step, then by output

    @property
    def n_steps(self) -> int:
        """How many iterations every table has."""
        return min(len(table.errors) for table in self.tables)

    @property
    def n_products(self) -> int:
        """Vectors that were multiplied."""
        return self.space.n_steps * self.space.n_columns

    @property
    def extremes(self) -> tuple[float, float]:
        """How far the spectrum reaches at least, both ways, where it may be negative; else 0."""
        return 0.0, 0.0

    def advance(self, rule: Rule, title: str = "", metric: Metric | None = None) -> bool:
        """Take steps until the rule is met or every alpha has converged.

        `title` and the values of `metric`, where there is a scorer, are shown while it runs. Return whether it ended
        before `max_iter`.
        """
        with ProgressLine(title) as progress:
            while not rule.is_met(self.tables) and any(table.n_active for table in self.tables):
                if self._outgrows_memory():
                    # Vectors that were kept orthogonal cannot be made again one by one, so it starts anew.
                    self._start(self.tables[0].alphas, keep_basis=False)
                if self.space.n_steps >= self._max_iter:
                    return False
                image, models, scores = self._multiply(self.space.vectors)
                values = self._scored.values(models, scores, len(self.tables))
                self.space.advance(image)
                self._values.append([np.array(own) for own in values])
                for output, table in enumerate(self.tables):
                    self._record(output, self.space.n_steps, table)
                if self._solves_columns and not self.widens:
                    self._values[-1] = []  # each step moves the scores before
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
            error = float(np.mean([np.min(table.errors[-1]) for table in self.tables]))
            best = f", {metric.name} {oriented(error, greater_is_better=metric.greater_is_better):.4f}"
        progress.update(f"iteration {self.n_steps}{best}")

    def coefficients(self, column: int, alpha: float, steps: int) -> Floats:
        """Return the model of an alpha after some steps; without a stored basis, by another run."""
        weights = self._weights(column, alpha, steps)
        if self.space.keep_basis:
            found = self.space.combine(column, weights)
        else:
            found = self.space.replay(lambda v: self._multiply(v)[0], column, weights)
        return self._model(column, found)

    def widen(self, alphas: Floats) -> None:
        """Add alphas to the tables, as if they had been there from the start; needs `widens`."""
        for output, table in enumerate(self.tables):
            added = self._table(output, alphas)
            for step in range(1, self.space.n_steps + 1):
                self._record(output, step, added)
            table.absorb(added)

    def _record(self, output: int, step: int, table: Table) -> None:
        """Score an output after some steps."""
        if table.n_active == 0:
            table.repeat()
        else:
            scores, residual = self._scores(output, step, table)
            table.record(self._scored.errors(output, scores), residual)

    def _table(self, output: int, alphas: Floats) -> Table:
        """Return the empty table of an output."""
        return Table(alphas, self._tol)

    @abstractmethod
    def _multiply(self, vectors: Floats) -> tuple[Floats, Floats, Floats | None]:
        """Return the image of (unknowns, columns) vectors, the models they stand for, and scores of training rows.

        Scores are (rows, columns), or those of each row under its own fold's model where that is all that was computed;
        None where they were not computed.
        """

    @abstractmethod
    def _model(self, column: int, solution: Floats) -> Floats:
        """Return the coefficients that a solution of a column stands for."""

    @abstractmethod
    def _scores(self, output: int, step: int, table: Any) -> tuple[Floats, Floats]:
        """Return the scores of an output's entries after a step, (active alphas, entries), and all residuals."""

    @abstractmethod
    def _weights(self, column: int, alpha: float, steps: int) -> Floats:
        """Return how the basis vectors add up to the solution of an alpha after some steps."""


@dataclass(frozen=True)
class ColumnCoordinates:
    """Coordinates of a surface: coefficients of the columns of X, in the units that `penalty_power` gives them."""

    design: Design
    power: float = 0.0

    def surface(self, scored: ScoredGraph, alphas: Floats, **options: Any) -> ColumnSurface:
        """Return an empty surface."""
        return ColumnSurface(self, scored, alphas, **options)

    def means(self, share: Floats) -> Floats:
        """Return the factors whose products with models add up to the mean scores of rows by these shares."""
        return self.design.tdot(share)

    def against(self, rows: Design) -> Design:
        """Return the matrix that maps models to scores of other rows."""
        return rows


class ColumnSurface(Surface):
    """In the coefficients of columns: ``X'LX``, of one graph or of every fold at once, reading X once."""

    _solves_columns = True

    def __init__(
        self, coordinates: ColumnCoordinates, scored: ScoredGraph, alphas: Floats, **options: Any
    ) -> None:
        design, graph, folds = coordinates.design, scored.graph, scored.folds
        self._design, self._folds = design, folds
        self._objective = SquaredObjective(design, graph)
        power = coordinates.power
        self._units = None if power == 0 else column_scale(design, graph, power)
        self._held_out = np.zeros(design.shape[0])
        self._fused = None
        if folds is None:
            rhs = self._objective.rhs
        else:
            rhs = design.tdot(folds.pull)
            self._fused = None if folds.fused is None else design.gram_product(*folds.fused)
        super().__init__(scored, self._scaled(rhs.reshape(rhs.shape[0], -1)), alphas, **options)

    def _scaled(self, vectors: Floats) -> Floats:
        return vectors if self._units is None else vectors * self._units[:, None]

    def _multiply(self, vectors: Floats) -> tuple[Floats, Floats, Floats | None]:
        models, scores = self._scaled(vectors), None
        if self._folds is None:
            image = self._objective.product(_one_vector(models)).reshape(models.shape)
        elif self._fused is not None:
            scores = self._held_out
            image = self._fused(models, scores)
        else:
            scores = self._design.dot(models)
            image = self._design.tdot(self._folds.laplacian(scores))
        return self._scaled(image), models, scores

    def _model(self, column: int, solution: Floats) -> Floats:
        return solution if self._units is None else solution * self._units

    def _table(self, output: int, alphas: Floats) -> RowTable:
        return RowTable(alphas, self._tol, self._row_columns[output], self.space.n_columns)

    def _weights(self, column: int, alpha: float, steps: int) -> Floats:
        return self.space.projected_solution(column, alpha, steps)

    def _scores(self, output: int, step: int, table: RowTable) -> tuple[Floats, Floats]:
        table.move(self.space, step, self._values[step - 1][output])
        active, residual = table.n_active, table.residual
        if (residual[:, :active] <= table.tol).any() and self._column_sizes is not None:
            residual = np.maximum(residual, self._without_units(self._column_sizes, table, step))
        return table.scores[:active], residual

    @cached_property
    def _column_sizes(self) -> Floats | None:
        """The column scales in which residuals are measured; None where columns have similar scales."""
        sizes = self._objective.sizes()
        sizes = sizes if self._units is None else sizes * self._units**2
        return sizes if differ_in_scale(sizes, float(self.tables[0].alphas[0])) else None

    def _without_units(self, sizes: Floats, table: RowTable, step: int) -> Floats:
        """Return the relative residuals in the norm of ``(diag(H) + α)^-1``, (columns, alphas)."""
        if step < self.space.n_steps:
            return np.full_like(table.residual, np.inf)  # the direction is gone; a later step will tell
        found = np.zeros_like(table.residual)
        for position, alpha in enumerate(table.alphas):
            scale = unit_free(sizes, float(alpha))[:, None]
            whole, left = (np.linalg.norm(scale * one, axis=0) for one in (self._rhs, self.space.vectors))
            units = np.divide(self.space.start_norm, whole, out=np.zeros_like(whole), where=whole > 0)
            found[:, position] = table.residual[:, position] * left * units
        return found


def _projected(a: Floats, beta: Floats, start: float, alphas: Floats, steps: int) -> tuple[Floats, Floats]:
    """Solve the projected problems of all alphas: the basis vectors' weights, (steps, alphas), and relative residuals.

    `a` and `beta` are those of ``T`` (`Lanczos.tridiagonal`); the last beta joins the last step to the next.
    """
    weights, size = np.zeros((steps, alphas.size)), a.size
    if size == 0:
        return weights, np.zeros(alphas.size)
    theta, Q = scipy.linalg.eigh_tridiagonal(a, beta[:-1], check_finite=False)
    # Ritz values that rounding cannot tell from zero: functions that are zero everywhere.
    kept = theta > 10 * size * np.finfo(np.float64).eps * max(theta[-1], 0.0)
    if not kept.any():
        return weights, np.zeros(alphas.size)
    root = np.sqrt(theta[kept])
    last, first = Q[-1, kept] / root, start * root * Q[0, kept]
    values, vectors = scipy.linalg.eigh(
        np.diag(theta[kept]) + np.outer(beta[-1] * last, beta[-1] * last), check_finite=False
    )
    shifted = np.maximum(values, 0.0)[:, None] + alphas
    y = vectors @ ((vectors.T @ first)[:, None] / np.maximum(shifted, np.finfo(np.float64).tiny))
    weights[:size] = (Q[:, kept] / root) @ y
    # What is left points along the step to come, whose length the largest eigenvalue bounds.
    bound = float((a + beta + np.append(0.0, beta[:-1])).max())
    left = beta[-1] * np.abs(last @ y) * np.sqrt(bound)
    return weights, np.asarray(left / (start * np.sqrt(a[0])))


@dataclass(frozen=True)
class DualCoordinates:
    """Coordinates of a surface: variables b of the dual, whose models are ``F'b``; only products with the kernel."""

    problem: KernelProblem
    kernel: Design

    def surface(self, scored: ScoredGraph, alphas: Floats, **options: Any) -> DualSurface:
        """Return an empty surface."""
        return DualSurface(self, scored, alphas, **options)

    def means(self, share: Floats) -> Floats:
        """Return the mean rows of the kernel, which is symmetric."""
        return self.kernel.dot(share)

    def against(self, rows: Design) -> Design:
        """Return the kernel between other rows and the training rows."""
        return self.problem.against(rows)


class DualSurface(Surface):
    """In the dual variables of a kernel: right-hand sides ``t``, products ``FKF'v``; scores are kept in any case."""

    def __init__(
        self, coordinates: DualCoordinates, scored: ScoredGraph, alphas: Floats, **options: Any
    ) -> None:
        self._kernel = coordinates.kernel
        graphs = [scored.graph] if scored.folds is None else list(scored.folds.graphs())
        self._factor = ColumnFactor([factor_of(graph, by_products=True) for graph in graphs])
        targets = [one.target(graph.pull) for one, graph in zip(self._factor.factors, graphs, strict=True)]
        super().__init__(scored, np.column_stack(targets), alphas, **options)

    def _multiply(self, vectors: Floats) -> tuple[Floats, Floats, Floats | None]:
        models = self._factor.transposed(vectors)
        scores = self._kernel.dot(models)
        return self._factor.apply(scores), models, scores

    def _model(self, column: int, solution: Floats) -> Floats:
        return self._factor.model(column, solution)

    @property
    def extremes(self) -> tuple[float, float]:
        """How far the spectrum of ``FKF'`` reaches at least, both ways; negative directions take no part."""
        low = high = 0.0
        for column in range(self.space.n_columns):
            a, beta = self.space.tridiagonal(column)
            if a.size:
                theta = scipy.linalg.eigvalsh_tridiagonal(a, beta[:-1], check_finite=False)
                low, high = min(low, float(theta[0])), max(high, float(theta[-1]))
        return low, high

    def _solved(self, column: int, alphas: Floats, steps: int) -> tuple[Floats, Floats]:
        start = float(self.space.start_norm[column])
        return _projected(*self.space.tridiagonal(column, steps), start, alphas, steps)

    def _weights(self, column: int, alpha: float, steps: int) -> Floats:
        return self._solved(column, np.array([alpha]), steps)[0][:, 0]

    def _scores(self, output: int, step: int, table: Table) -> tuple[Floats, Floats]:
        # Entries of an output are scored by its own column, or by the column of their fold.
        row_column = self._row_columns[output]
        columns = np.unique(row_column) if row_column.size else np.array([output])
        solved = [self._solved(column, table.alphas, step) for column in columns]
        values, active = np.array([kept[output] for kept in self._values[:step]]), table.n_active
        scores = np.empty((active, row_column.size))
        for column, (weights, _) in zip(columns, solved, strict=True):
            rows = row_column == column
            scores[:, rows] = weights[:, :active].T @ values[:, rows]
        return scores, np.array([found for _, found in solved])


Coordinates = ColumnCoordinates | DualCoordinates


def _one_vector(models: Floats) -> Floats:
    """Return a single column as a vector, on which the kernels are faster."""
    return models[:, 0] if models.shape[1] == 1 else models
