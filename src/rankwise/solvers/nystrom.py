"""Conjugate gradients for reduced sets, preconditioned by the problem of a sample of the rows.

Departs from FALKON (Rudi, Carratino and Rosasco, 2017) in the sample: whole queries, or every so many rows of large
ones, each centred as the problem itself is, because the landmarks alone would leave most queries with a single row; in
diagonalising the sample's matrix instead of two Cholesky factors, so that one preconditioner serves every alpha; and in
running all alphas and outputs in lockstep, with one product of a block an iteration.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy.linalg

from rankwise.blocks import QueryBlocks, sampled
from rankwise.design import Design
from rankwise.objectives import QuadraticObjective
from rankwise.pairs.graph import Floats
from rankwise.solvers.solution import Solution, Status

__all__ = ["SampledSpectrum", "preconditioned_gradients"]

_ROWS_A_COLUMN = 4  # of the sample: its matrix is then within a factor of about two of the whole one
_LIMIT = 200  # iterations; a few tens are usual


@dataclass(frozen=True)
class SampledSpectrum:
    """``Z'LZ`` as a sample of the rows sees it, diagonalised."""

    values: Floats
    vectors: Floats

    @classmethod
    def of_rows(cls, design: Design, blocks: QueryBlocks, seed: int) -> SampledSpectrum | None:
        """Estimate the matrix from about four rows a column; None where the storage cannot give it."""
        H = design.gram_matrix(sampled(blocks, _ROWS_A_COLUMN * design.shape[1], seed))
        if H is None:
            return None
        values, vectors = scipy.linalg.eigh(H, check_finite=False, driver="evd")
        return cls(np.maximum(values, 0.0), vectors)

    def solve(self, block: Floats, alphas: Floats) -> Floats:
        """Return ``(H + α_c I)^-1 v_c``, column by column."""
        # Directions that the sample does not see are not blown up without a bound where alpha is 0.
        floor = np.finfo(np.float64).eps ** 0.5 * self.values.max(initial=0.0)
        shifted = np.maximum(self.values[:, None] + alphas, max(floor, np.finfo(np.float64).tiny))
        return np.asarray(self.vectors @ ((self.vectors.T @ block) / shifted))


def preconditioned_gradients(
    objective: QuadraticObjective,
    alphas: Floats,
    preconditioner: SampledSpectrum,
    *,
    tol: float = 1e-5,
    max_iter: int | None = None,
    report: Callable[[int, float], None] = lambda _iteration, _residual: None,
) -> Solution:
    """Solve ``(H + αI) w = b`` for every alpha and output in lockstep, from ``w = 0``.

    Parameters
    ----------
    tol : float
        Stop when ``‖b - (H + αI)w‖ <= tol ‖b‖`` in every column.
    report : callable
        Gets the iteration and the largest relative residual.

    Returns
    -------
    Solution
        With coefficients (features, outputs · alphas): the alphas of the first output, then of the next.
    """
    before = objective.n_products
    rhs = objective.rhs.reshape(objective.n_features, -1)
    shift = np.tile(alphas, rhs.shape[1])
    residual = np.repeat(rhs, alphas.size, axis=1)
    norm = np.linalg.norm(residual, axis=0)
    coef = np.zeros_like(residual)
    direction = preconditioner.solve(residual, shift)
    rho = np.einsum("ic,ic->c", residual, direction)
    history = [float((norm > 0).any())]
    status = Status.MAX_ITER
    for iteration in range(1, (_LIMIT if max_iter is None else max_iter) + 1):
        if history[-1] <= tol:
            status = Status.CONVERGED
            break
        image = objective.product(direction) + shift * direction
        curvature = np.einsum("ic,ic->c", direction, image)
        step = np.divide(rho, curvature, out=np.zeros_like(rho), where=curvature > 0)
        coef += step * direction
        residual -= step * image
        error = np.linalg.norm(residual, axis=0)
        history.append(float(np.divide(error, norm, out=np.zeros_like(norm), where=norm > 0).max()))
        report(iteration, history[-1])
        scaled = preconditioner.solve(residual, shift)
        rho_next = np.einsum("ic,ic->c", residual, scaled)
        direction *= np.divide(rho_next, rho, out=np.zeros_like(rho), where=rho > 0)
        direction += scaled
        rho = rho_next
    if history[-1] <= tol:
        status = Status.CONVERGED
    return Solution(
        coef,
        status,
        n_iter=len(history) - 1,
        n_products=objective.n_products - before,
        certificate=history[-1],
        history=history[1:],
    )
