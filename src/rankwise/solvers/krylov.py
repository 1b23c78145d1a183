"""Conjugate gradients, Lanczos vectors, and the curvature that preconditions margin problems.

Many columns: conjugate gradients on the normal equations, one product ``X'LXv`` an iteration.

Departs from the large-scale RankRLS paper in stopping by the relative residual instead of SciPy's rule, and in
solving several outputs in lockstep with block products. That residual is in the units of the largest column: where
columns differ in scale, `rankwise.solvers.choose` has the run made without their units.

The Krylov space of the normal equations, from which every alpha and every iteration can be read.

``K_t = span{b, Hb, ..., H^(t-1) b}`` does not depend on alpha. With an orthonormal basis ``V`` of it and
``T = V'HV`` tridiagonal, the t-th iterate of conjugate gradients for ``(H + αI) w = b`` is
``V (T + αI)^-1 ‖b‖ e_1``: a t × t solve for every alpha (docs/mathematics.md, section 3).

Several right-hand sides have several spaces. They are built in lockstep, one *column* each, so that one block
product serves all of them.

Preconditioning of margin problems: which way to step, whatever the scales and correlations of the columns.

The Hessian of a mean loss over pairs is ``X'BX + 2αI``, where B is the Laplacian of the pairs that curve: those inside
their margin, or near its kink. B changes with every step and is never formed. But the graph that has the same degrees
``r`` (the diagonal of B) and otherwise joins the rows of a query at random has the Laplacian ``diag(r) - rr'/Σr``, and
``X'(diag(r) - rr'/Σr)X`` takes a single pass. On 5,000 rows × 136 heavy-tailed columns that leaves condition numbers of
1 to 5, where the squared loss of all pairs leaves 20 to 390: rows of the tail are outside the margin, and do not curve.

A preconditioner changes no model: minimum, penalty and certificate are those of the columns as they are.

The whole matrix where it costs no more than some iterations, else its diagonal, which takes out the scales of the
columns but not their correlations, and that only where the steepest column is steep enough to need it. Either is formed
only once a solver has gone on for some iterations without: on independent columns of one scale it is done by then, in
the time that forming the matrix would take.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import scipy.linalg

from rankwise.arrays import Floats, Ints
from rankwise.objectives import QuadraticObjective, SquaredObjective
from rankwise.pairs.blocks import QueryBlocks
from rankwise.solvers.solution import Monitor, Solution, Status

# Below this tolerance the recurrence's residual drifts from the true one: measure before believing it.
_TRUSTED_TOLERANCE = 1e-9


def conjugate_gradients(
    objective: QuadraticObjective,
    alpha: float,
    *,
    tol: float = 1e-5,
    max_iter: int | None = None,
    start: Floats | None = None,
    monitor: Monitor | None = None,
) -> Solution:
    """Solve ``(H + αI) w = b``; where it is singular, from ``w = 0`` this ends in the least-norm solution.

    Parameters
    ----------
    tol : float
        Stop when ``‖b - (H + αI)w‖ <= tol ‖b‖`` for every output.
    max_iter : int, optional
        At most this many iterations; by default more than exact arithmetic could need.
    start : array, optional
        Where to start instead of at 0; costs one more product.
    monitor : Monitor, optional
        Told the coefficients and the relative residual after every iteration; may stop.
    """
    rhs = objective.rhs
    limit = max(1000, 2 * objective.n_features) if max_iter is None else max_iter
    coef = np.zeros_like(rhs) if start is None else start.copy()
    residual = rhs.copy() if start is None else rhs - objective.product(coef) - alpha * coef
    direction, rho = residual.copy(), dots(residual, residual)
    gap, best = relative_residual(residual, rhs), np.inf
    history: list[float] = []
    # With b = 0 nothing pulls any row, and w = 0 is the minimum.
    status = Status.CONVERGED if gap <= tol else Status.MAX_ITER
    while status is Status.MAX_ITER and len(history) < limit:
        image = objective.product(direction) + alpha * direction
        curvature = dots(direction, image)
        active = (curvature > 0) & (rho > 0)
        step = np.divide(rho, curvature, out=np.zeros_like(rho), where=active)
        coef += step * direction
        residual -= step * image
        gap = relative_residual(residual, rhs)
        history.append(gap)
        if not np.any(active):
            status = Status.STAGNATED
        if monitor is not None and monitor(coef, gap, len(history)):
            status = Status.STOPPED
        elif gap <= tol and tol >= _TRUSTED_TOLERANCE:
            status = Status.CONVERGED
        elif gap <= tol:
            residual = rhs - objective.product(coef) - alpha * coef
            gap = history[-1] = relative_residual(residual, rhs)
            if gap <= tol:
                status = Status.CONVERGED
            elif gap > 0.5 * best:
                status = Status.STAGNATED
            best = gap
            direction, rho = residual.copy(), dots(residual, residual)  # start over from the true residual
        else:
            rho, previous = dots(residual, residual), rho
            direction *= np.divide(rho, previous, out=np.zeros_like(rho), where=previous > 0)
            direction += residual
    return Solution(coef, status, n_iter=len(history), certificate=gap, history=history)


class RoughStep(NamedTuple):
    """A step that solves Newton's equation about, what its directions moved, and ``-g - Hd``."""

    step: Floats
    moved: Floats
    residual: Floats
    n_iter: int


def newton_step(
    product: Callable[[Floats], tuple[Floats, Floats]],
    gradient: Floats,
    precondition: Callable[[Floats], Floats],
    *,
    forcing: float,
    most: float = np.inf,
) -> RoughStep:
    """Solve ``Hd = -g`` by conjugate gradients, until a share `forcing` of the gradient is left.

    Parameters
    ----------
    product : callable
        Returns ``Hd``, and something else that is linear in d, such as scores.
    most : float
        The most iterations.
    """
    step, moved, residual = np.zeros_like(gradient), np.zeros(()), -gradient
    direction = precondition(residual)
    rho = float(residual @ direction)
    target, n_iter = forcing**2 * rho, 0
    while rho > target and n_iter < min(2 * gradient.size + 10, most):
        image, moves = product(direction)
        share = rho / float(direction @ image)
        step += share * direction
        moved = moved + share * moves
        residual -= share * image
        solved = precondition(residual)
        before, rho = rho, float(residual @ solved)
        direction = solved + rho / before * direction
        n_iter += 1
    return RoughStep(step, moved, residual, n_iter)


def dots(a: Floats, b: Floats) -> Floats:
    """Return the inner product of two vectors, or of each two columns."""
    return np.asarray(np.einsum("i...,i...->...", a, b))


def relative_residual(residual: Floats, rhs: Floats) -> float:
    """Return the length of a residual as a share of that of the right-hand side, the largest over the outputs."""
    error, norm = np.linalg.norm(residual, axis=0), np.linalg.norm(rhs, axis=0)
    return float(np.max(np.divide(error, norm, out=np.zeros_like(norm), where=norm > 0), initial=0.0))


_ROUNDING = 1e-10  # of the largest Ritz value
# Basis vectors that are stored together: few enough that what one product reads is in cache for the next.
STORED_TOGETHER = 4


def basis_bytes(n_features: int, columns: int, steps: int) -> int:
    """How much memory a stored basis takes."""
    return 8 * n_features * columns * steps


class Lanczos:
    """Lanczos tridiagonalisation of ``H``, started at each column of `rhs`.

    The caller multiplies: it asks for `vectors`, applies ``H`` to them, and hands the image to `advance`.

    Parameters
    ----------
    rhs : (features, columns) float64
    keep_basis : bool
        Store the basis and reorthogonalise against all of it. Without it, orthogonality is lost after some
        forty steps, convergence takes up to 1.7 times the products, and coefficients need a `replay`.
    """

    def __init__(self, rhs: Floats, *, keep_basis: bool = True) -> None:
        self.keep_basis = keep_basis
        self.start_norm = np.linalg.norm(rhs, axis=0)
        self._rhs, self.n_columns = rhs, int(rhs.shape[1])
        self.vectors = _normalised(rhs, self.start_norm)
        self._previous = np.zeros_like(self.vectors)
        self.diagonal: list[Floats] = []  # a_1, a_2, ...: one entry per column
        self.off_diagonal: list[Floats] = []  # beta_2, beta_3, ...: beta_(k+1) joins steps k and k+1
        self._chunks: list[Floats] = []
        self._largest = np.zeros_like(self.start_norm)

    @property
    def n_steps(self) -> int:
        """How many steps are complete."""
        return len(self.off_diagonal)

    def advance(self, image: Floats) -> None:
        """Complete a step, given ``H @ vectors``."""
        current = self.vectors
        a = np.einsum("ij,ij->j", current, image)
        beta = self.off_diagonal[-1] if self.off_diagonal else np.zeros_like(a)
        rest = image - a * current - beta * self._previous
        norm_before = np.linalg.norm(image, axis=0)
        if self.keep_basis:
            self._store(current)
            rest = self._orthogonalise(rest)
        norm = np.linalg.norm(rest, axis=0)
        self._largest = np.maximum(self._largest, norm_before)
        # What is left after an invariant subspace is complete is rounding: the column has ended.
        norm = np.where(norm > 1e-14 * self._largest, norm, 0.0)
        self._previous = current
        self.vectors = _normalised(rest, norm)
        self.diagonal.append(a)
        self.off_diagonal.append(norm)  # last: an interruption before this line leaves n_steps as it was

    def combine(self, column: int, weights: Floats) -> Floats:
        """Return the basis vectors of a column, weighted and added up."""
        coef = np.zeros(self._rhs.shape[0])
        for index, chunk in enumerate(self._chunks):
            part = weights[index * STORED_TOGETHER : (index + 1) * STORED_TOGETHER]
            coef += part @ chunk[column, : part.size]
        return coef

    def replay(self, product: Callable[[Floats], Floats], column: int, weights: Floats) -> Floats:
        """Return `combine` without a stored basis: build the space once more and add up as it goes."""
        again = Lanczos(self._rhs, keep_basis=False)
        coef = np.zeros(self._rhs.shape[0])
        for weight in weights:
            coef += weight * again.vectors[:, column]
            again.advance(product(again.vectors))
        return coef

    def tridiagonal(self, column: int, steps: int | None = None) -> tuple[Floats, Floats]:
        """Return ``a_1, ...`` and ``beta_2, ...`` of a column after some steps, up to where it has ended."""
        a = np.array([d[column] for d in self.diagonal[:steps]])
        beta = np.array([b[column] for b in self.off_diagonal[:steps]])
        ended = np.flatnonzero(beta == 0)
        size = (int(ended[0]) + 1 if ended.size else a.size) if self.start_norm[column] > 0 else 0
        return a[:size], beta[:size]

    def projected_solution(self, column: int, alpha: float, steps: int) -> Floats:
        """Solve ``(T + αI) y = ‖b‖ e_1`` for the first steps; by the pseudo-inverse if rounding makes it singular."""
        a, beta = self.tridiagonal(column, steps)
        if not a.size:
            return a
        values, vectors = scipy.linalg.eigh_tridiagonal(a + alpha, beta[:-1], check_finite=False)
        kept = values > values.size * np.finfo(np.float64).eps * max(values[-1], 0.0)
        inverse = np.divide(vectors[0], values, out=np.zeros_like(values), where=kept)
        return np.asarray(self.start_norm[column] * (vectors @ inverse))

    def galerkin_solution(self, rhs: Floats, alpha: float) -> Floats:
        """Return the best solution of ``(H + αI) w = b`` in the space of the first column, for any right-hand sides.

        Directions in which ``H + αI`` is nothing but rounding are left alone, so that without a penalty the solution
        stays in the range of H. Needs the stored basis.
        """
        a, beta = self.tridiagonal(0)
        basis = np.concatenate([chunk[0] for chunk in self._chunks])[: a.size]
        values, vectors = scipy.linalg.eigh_tridiagonal(a + alpha, beta[:-1], check_finite=False)
        inverse = np.divide(1.0, values, out=np.zeros_like(values), where=values > _ROUNDING * values[-1])
        ritz = vectors.T @ basis
        return np.asarray(ritz.T @ (inverse * (ritz @ rhs).T).T)

    def _store(self, vectors: Floats) -> None:
        position = self.n_steps % STORED_TOGETHER
        if self.n_steps // STORED_TOGETHER == len(self._chunks):
            self._chunks.append(np.empty((self.n_columns, STORED_TOGETHER, vectors.shape[0])))
        self._chunks[self.n_steps // STORED_TOGETHER][:, position] = vectors.T

    def _orthogonalise(self, rest: Floats) -> Floats:
        """Remove the component along the basis; twice if the first pass removed most of the vector."""
        columns = np.ascontiguousarray(rest.T)
        norm = np.linalg.norm(columns, axis=1)
        for _ in range(2):
            for index, chunk in enumerate(self._chunks):
                used = min(self.n_steps + 1 - index * STORED_TOGETHER, STORED_TOGETHER)
                for column in range(self.n_columns):
                    basis = chunk[column, :used]
                    columns[column] -= (basis @ columns[column]) @ basis
            shrunk = np.linalg.norm(columns, axis=1)
            if np.all(shrunk > 0.7 * norm):
                break
            norm = shrunk
        return np.ascontiguousarray(columns.T)


def _normalised(vectors: Floats, norm: Floats) -> Floats:
    return np.where(norm > 0, vectors / np.where(norm > 0, norm, 1.0), 0.0)


# At least, where the whole matrix is to pay: kernel maps of as many columns as rows took up to ten times as long.
ROWS_A_COLUMN = 4

_JITTER = 1e-13  # of a matrix of unit diagonal, so that duplicated columns have a factor
_STEADY = 3.0  # factor by which the share may change before the matrix is factored again
_OTHERS = 0.05  # of the curvature at 0, for the rows that curve nowhere near now but may later
_UPDATE_AFTER = 8  # iterations, at least
# Iterations without. On independent columns (1,000 × 20 to 20,000 × 50) a tolerance of 1e-3 takes 5 to 17 in all
# and no matrix; on correlated ones and on scales of two decades 73 to 490, and with the matrix then 9 to 15 more.
PLAIN = 16
# Times the penalty: below, the diagonal does not pay. On text it takes 0 to 60 % more reads.
_STEEP = 1e7


class Curvature:
    """The estimate of ``X'BX``, kept from one alpha to the next.

    Parameters
    ----------
    objective : SquaredObjective
        The design, and all pairs. Where they are listed and not those of queries, the estimate is their squared loss,
        as much of it as there is curvature.
    is_whole : bool
        Whether to form the matrix; else its diagonal.
    update_after, patience : int
        How many iterations cost as much as an update, and how many are made before the first one.
    sample : (rows,) int64, optional
        The rows of the objective, where these are some of all.
    """

    def __init__(
        self,
        objective: SquaredObjective,
        *,
        is_whole: bool,
        update_after: int = 0,
        patience: int = PLAIN,
        sample: Ints | None = None,
    ) -> None:
        self._objective, self._is_whole, self._sample = objective, is_whole, sample
        self.n_features, self.patience = objective.n_features, patience
        self.can_follow = objective.graph.blocks is not None
        self.update_after = max(update_after, _UPDATE_AFTER)
        self.hessian: Floats | None = None

    def follow(self, rows: Floats) -> None:
        """Estimate from the diagonal of B, a value per row."""
        objective, blocks = self._objective, self._objective.graph.blocks
        if self._sample is not None:
            own = rows[self._sample]
            rows = own * (rows.sum() / max(own.sum(), np.finfo(np.float64).tiny))
        if blocks is None:
            # The squared loss of all pairs has degrees that add up to twice their weight.
            hessian = objective.matrix() if self._is_whole else objective.diagonal()
            hessian = hessian * (float(rows.sum()) / (2 * objective.graph.weight))
        else:
            joined = _joined_at_random(blocks, rows)
            design = objective.design
            gram = design.gram_matrix(joined) if self._is_whole else design.gram_diagonal(joined)
            assert gram is not None  # the storage gives its diagonal
            hessian = gram
        self.hessian = hessian


class Preconditioner:
    """``P = share · X'BX + 2αI`` as a solver uses it; P is the identity where nothing is known.

    Parameters
    ----------
    curvature : Curvature or None
    at_zero : callable
        Gives the diagonal of B at ``w = 0``, where all pairs are inside their margin.
    """

    def __init__(self, curvature: Curvature | None, alpha: float, at_zero: Callable[[], Floats]) -> None:
        self._curvature, self._alpha, self._at_zero = curvature, alpha, at_zero
        self._share, self._age = 1.0, 0
        self._inverse: Callable[[Floats], Floats] | None = None
        self.is_identity = True
        self._patience = PLAIN if curvature is None else curvature.patience
        if curvature is not None and curvature.hessian is not None:
            self._engage(curvature)

    @property
    def n_plain(self) -> float:
        """How many iterations may be made before it is worth knowing something; infinite where something is known."""
        waits = self._curvature is not None and self.is_identity
        return self._patience - self._age if waits else np.inf

    @property
    def is_due(self) -> bool:
        """Whether enough iterations have passed that an update pays for itself."""
        if self._curvature is None or self._age < self._patience:
            return False
        return self.is_identity or self._curvature.can_follow

    def update(self, rows: Floats) -> None:
        """Follow the diagonal of B, unless too few rows curve to tell the matrix from it."""
        curvature = self._curvature
        assert curvature is not None
        at_zero = self._at_zero()
        if np.count_nonzero(rows) >= curvature.n_features:
            curvature.follow(rows + _OTHERS * at_zero)
            self._share, self._inverse = 1.0, None
        elif self.is_identity:
            curvature.follow(at_zero)
        if self.is_identity:
            self._engage(curvature)
        else:
            self._age, self._patience = 0, 2 * self._patience

    def _engage(self, curvature: Curvature) -> None:
        """Use the known curvature if that can save time."""
        hessian = curvature.hessian
        assert hessian is not None
        if hessian.ndim == 1 and hessian.max(initial=0.0) <= _STEEP * 2 * self._alpha:
            self._curvature = None
        else:
            self.is_identity, self._age, self._patience = False, 0, curvature.update_after

    def solve(self, gradient: Floats) -> Floats:
        """Return ``P⁻¹ g``."""
        if self.is_identity:
            return gradient.copy()
        if self._inverse is None:
            assert self._curvature is not None
            assert self._curvature.hessian is not None
            self._inverse = self._factor(self._curvature.hessian)
        return self._inverse(gradient)

    def learn(self, step: Floats, curvature: float, n_iter: int = 1) -> None:
        """Record the curvature of the objective along a step, penalty included, and the cost of that step."""
        self._age += n_iter
        if self.is_identity:
            return
        assert self._curvature is not None
        hessian = self._curvature.hessian
        assert hessian is not None
        whole = float(step @ (hessian @ step if hessian.ndim == 2 else hessian * step))
        penalty = 2 * self._alpha * float(step @ step)
        if whole <= np.finfo(np.float64).eps * penalty:
            return
        share = float(np.clip((curvature - penalty) / whole, self._share / 10, self._share * 10))
        if not 1 / _STEADY < share / self._share < _STEADY:
            self._share, self._inverse = share, None

    def _factor(self, hessian: Floats) -> Callable[[Floats], Floats]:
        if hessian.ndim == 1:
            diagonal = self._share * np.maximum(hessian, 0.0) + 2 * self._alpha
            return lambda gradient: gradient / diagonal
        scale = 1 / np.sqrt(self._share * np.maximum(np.diagonal(hessian), 0.0) + 2 * self._alpha)
        # With a unit diagonal, columns of any scales keep their digits.
        scaled = self._share * hessian * scale * scale[:, None]
        np.fill_diagonal(scaled, 1.0)
        jitter = _JITTER
        while True:
            try:
                factor = scipy.linalg.cho_factor(scaled + jitter * np.eye(scale.size), check_finite=False)
                break
            except scipy.linalg.LinAlgError:
                jitter *= 100
        return lambda gradient: scale * scipy.linalg.cho_solve(factor, scale * gradient, check_finite=False)


def _joined_at_random(blocks: QueryBlocks, rows: Floats) -> QueryBlocks:
    """Return the graph of the same queries whose Laplacian is ``diag(r) - rr'/Σr`` in each."""
    weight = rows[blocks.order]
    weight = np.maximum(weight, 1e-12 * weight.max(initial=0.0))  # a query of weight 0 has no mean
    start = blocks.query_start
    n_queries = start.size - 1
    total = np.bincount(np.repeat(np.arange(n_queries), np.diff(start)), weights=weight, minlength=n_queries)
    return replace(
        blocks,
        segment_start=start,
        query_segment=np.arange(n_queries + 1, dtype=np.int64),
        degree=np.ones(n_queries),
        scale=np.divide(1.0, total, out=np.zeros_like(total), where=total > 0),
        coupling="all",
        row_weight=weight,
        level_value=None,
    )
