"""The Krylov space of the normal equations, from which every alpha and every iteration can be read.

``K_t = span{b, Hb, ..., H^(t-1) b}`` does not depend on alpha. With an orthonormal basis ``V`` of it and
``T = V'HV`` tridiagonal, the t-th iterate of conjugate gradients for ``(H + αI) w = b`` is
``V (T + αI)^-1 ‖b‖ e_1``: a t × t solve for every alpha (docs/mathematics.md, section 3).

Several right-hand sides have several spaces. They are built in lockstep, one *column* each, so that one block
product serves all of them.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import scipy.linalg

from rankwise.arrays import Floats
from rankwise.solvers.scales import column_norms

__all__ = ["STORED_TOGETHER", "Lanczos", "basis_bytes"]

# Basis vectors that are stored together: few enough that what one product reads is in cache for the next.
STORED_TOGETHER = 4
_ROUNDING = 1e-10  # of the largest Ritz value


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
        self.start_norm = column_norms(rhs)
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
        norm_before = column_norms(image)
        if self.keep_basis:
            self._store(current)
            rest = self._orthogonalise(rest)
        norm = column_norms(rest)
        self._largest = np.maximum(self._largest, norm_before)
        # What is left after an invariant subspace is complete is rounding: the column has ended.
        norm = np.where(norm > 1e-14 * self._largest, norm, 0.0)
        self._previous = current
        self.vectors = _normalised(rest, norm)
        self.diagonal.append(a)
        self.off_diagonal.append(norm)  # last: an interruption before this line leaves n_steps as it was

    def path(self, column: int, alpha: float, steps: int) -> Floats:
        """Return the iterates of an alpha after every one of the first steps, (steps, features)."""
        weights = np.zeros((steps, steps))
        for step in range(1, steps + 1):
            weights[step - 1, :step] = self.projected_solution(column, alpha, step)
        return self.combine(column, weights)

    def combine(self, column: int, weights: Floats) -> Floats:
        """Return the basis vectors of a column, weighted and added up; several rows of weights make several sums."""
        coef = np.zeros((*weights.shape[:-1], self._rhs.shape[0]))
        for index, chunk in enumerate(self._chunks):
            part = weights[..., index * STORED_TOGETHER : (index + 1) * STORED_TOGETHER]
            coef += part @ chunk[column, : part.shape[-1]]
        return coef

    def replay(self, product: Callable[[Floats], Floats], column: int, weights: Floats) -> Floats:
        """Return `combine` without a stored basis: build the space once more and add up as it goes."""
        again = Lanczos(self._rhs, keep_basis=False)
        coef = np.zeros(self._rhs.shape[0])
        for weight in weights:
            coef += weight * again.vectors[:, column]
            again.advance(product(again.vectors))
        return coef

    def projected_solution(self, column: int, alpha: float, steps: int) -> Floats:
        """Solve ``(T + αI) y = ‖b‖ e_1`` for the first steps."""
        a = np.array([d[column] for d in self.diagonal[:steps]]) + alpha
        beta = np.array([b[column] for b in self.off_diagonal[: max(steps - 1, 0)]])
        ended = np.flatnonzero(beta == 0)
        size = int(ended[0]) + 1 if ended.size else steps
        y = np.zeros(steps)
        if size and self.start_norm[column] > 0:
            y[:size] = self.start_norm[column] * _solve_tridiagonal(a[:size], beta[: size - 1])
        return y

    def restricted_solution(self, rhs: Floats, alpha: float) -> tuple[Floats, Floats]:
        """Return the Galerkin solution of ``(H + αI) w = b`` in the first column's space, and its residual.

        Any right-hand side may be asked for, or several as columns, and none costs a product: with the residual of the
        Lanczos recurrence, ``HV = VT + β v e_k'``. Needs the stored basis. Directions in which ``H + αI`` is nothing
        but rounding are left alone, so that without a penalty the solution stays in the range of H.
        """
        sides = rhs.reshape(rhs.shape[0], -1)
        basis = [
            chunk[0, : self.n_steps - index * STORED_TOGETHER] for index, chunk in enumerate(self._chunks)
        ]
        projected = np.concatenate([vectors @ sides for vectors in basis])
        diagonal = np.array([a[0] for a in self.diagonal])
        off_diagonal = np.array([beta[0] for beta in self.off_diagonal])
        values, vectors = scipy.linalg.eigh_tridiagonal(diagonal, off_diagonal[:-1], check_finite=False)
        shifted = values + alpha
        kept = shifted > _ROUNDING * shifted.max()
        inverse = np.divide(1.0, shifted, out=np.zeros_like(shifted), where=kept)
        weights = vectors @ (inverse[:, None] * (vectors.T @ projected))
        image = (alpha + diagonal)[:, None] * weights
        beta = off_diagonal[:, None]
        image[1:] += beta[:-1] * weights[:-1]
        image[:-1] += beta[:-1] * weights[1:]
        coef = np.zeros_like(sides)
        residual = sides - self.vectors[:, :1] * (beta[-1] * weights[-1])
        for index, chunk in enumerate(basis):
            part = slice(index * STORED_TOGETHER, (index + 1) * STORED_TOGETHER)
            coef += chunk.T @ weights[part]
            residual -= chunk.T @ image[part]
        return coef.reshape(rhs.shape), residual.reshape(rhs.shape)

    def _store(self, vectors: Floats) -> None:
        position = self.n_steps % STORED_TOGETHER
        if self.n_steps // STORED_TOGETHER == len(self._chunks):
            self._chunks.append(np.empty((self.n_columns, STORED_TOGETHER, vectors.shape[0])))
        self._chunks[self.n_steps // STORED_TOGETHER][:, position] = vectors.T

    def _orthogonalise(self, rest: Floats) -> Floats:
        """Remove what points along the basis; twice where the first pass removed most of it."""
        columns = np.ascontiguousarray(rest.T)
        norm = column_norms(columns.T)
        for _ in range(2):
            for index, chunk in enumerate(self._chunks):
                used = min(self.n_steps + 1 - index * STORED_TOGETHER, STORED_TOGETHER)
                for column in range(self.n_columns):
                    basis = chunk[column, :used]
                    columns[column] -= (basis @ columns[column]) @ basis
            shrunk = column_norms(columns.T)
            if np.all(shrunk > 0.7 * norm):
                break
            norm = shrunk
        return np.ascontiguousarray(columns.T)


def _solve_tridiagonal(diagonal: Floats, off_diagonal: Floats) -> Floats:
    """Return the first column of the inverse; of the pseudo-inverse where rounding made it singular."""
    if diagonal.size == 1:
        return np.divide(1.0, diagonal, out=np.zeros(1), where=diagonal > 0)
    first = np.zeros(diagonal.size)
    first[0] = 1.0
    bands = np.zeros((2, diagonal.size))
    bands[1], bands[0, 1:] = diagonal, off_diagonal
    try:
        solution: Floats = scipy.linalg.solveh_banded(bands, first, check_finite=False)
    except np.linalg.LinAlgError:
        values, vectors = scipy.linalg.eigh_tridiagonal(diagonal, off_diagonal, check_finite=False)
        kept = values > values.size * np.finfo(np.float64).eps * values.max(initial=0.0)
        solution = vectors @ np.divide(vectors[0], values, out=np.zeros_like(values), where=kept)
    return solution


def _normalised(vectors: Floats, norm: Floats) -> Floats:
    # Not times the inverse, which of the smallest numbers is infinite.
    return np.where(norm > 0, vectors / np.where(norm > 0, norm, 1.0), 0.0)
