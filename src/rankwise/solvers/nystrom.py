"""Conjugate gradients for reduced sets, preconditioned by the problem of a sample of the rows.

Departs from FALKON (Rudi, Carratino and Rosasco, 2017) in the sample: whole queries, or every so many rows of large
ones, each centred as the problem itself is, because the landmarks alone would leave most queries with a single row; in
diagonalising the sample's matrix instead of two Cholesky factors, so that one preconditioner serves every alpha; and in
running all alphas and outputs in lockstep, with one product of a block an iteration, which the converged ones leave.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from rankwise.arrays import Floats
from rankwise.design import Design
from rankwise.objectives import QuadraticObjective
from rankwise.pairs.blocks import QueryBlocks, sampled
from rankwise.runtime.decompositions import diagonalise
from rankwise.solvers.solution import Solution, Status

__all__ = ["SampledSpectrum", "preconditioned_gradients"]

# Rows of the sample. Measured on 30,000 rows, 300 and 1000 basis rows, one ranking to 3000 queries, alphas from 2^-10
# to 2^10: 1 and 2 rows a column run into the limit of iterations, 4 take about 20, 8 take 12 to 15, 16 take 8 to 10.
# The sample's own cost passes what it saves between 4 (one alpha) and 16 (the grid).
_ROWS_A_COLUMN = 8
# The preconditioner's norm knows no units of columns, and its square is about the share of the gain that is left: ten
# times the tolerance in it adds no iteration where columns have like scales, and the ones that are missing elsewhere.
_UNIT_FREE = 10.0
_LIMIT = 200  # iterations; a few tens are usual


@dataclass(frozen=True)
class SampledSpectrum:
    """``Z'LZ`` as a sample of the rows sees it, diagonalised."""

    values: Floats
    vectors: Floats

    @classmethod
    def of_rows(cls, design: Design, blocks: QueryBlocks, seed: int) -> SampledSpectrum | None:
        """Estimate the matrix from so many rows a column; None where the storage cannot give it."""
        H = design.gram_matrix(sampled(blocks, _ROWS_A_COLUMN * design.shape[1], seed))
        if H is None:
            return None
        values, vectors = diagonalise(H)
        return cls(np.maximum(values, 0.0), vectors)

    def solve(self, block: Floats, alphas: Floats) -> Floats:
        """Return ``(H + α_c I)^-1 v_c``, column by column."""
        # Directions that the sample does not see are not blown up without a bound where alpha is 0. Where it is not,
        # only rounding is: with columns of different scales, small eigenvalues need not be noise.
        eps = float(np.finfo(np.float64).eps)
        floor = np.where(alphas > 0, eps, eps**0.5) * self.values.max(initial=0.0)
        shifted = np.maximum(self.values[:, None] + alphas, np.maximum(floor, np.finfo(np.float64).tiny))
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
        Stop when ``‖b - (H + αI)w‖ <= tol ‖b‖`` in every column, and ten times `tol` in the preconditioner's norm.
    report : callable
        Gets the iteration and the largest relative residual.

    Returns
    -------
    Solution
        With coefficients (features, outputs · alphas): the alphas of the first output, then of the next.
    """
    products_before = objective.n_products
    rhs = objective.rhs.reshape(objective.n_features, -1)
    shift = np.tile(alphas, rhs.shape[1])
    residual = np.repeat(rhs, alphas.size, axis=1)
    norm = np.linalg.norm(residual, axis=0)
    coef = np.zeros_like(residual)
    direction = preconditioner.solve(residual, shift)
    rho = np.einsum("ic,ic->c", residual, direction)
    whole = rho.copy()
    error = (norm > 0).astype(np.float64)
    history = [float(error.max())]
    for iteration in range(1, (_LIMIT if max_iter is None else max_iter) + 1):
        if history[-1] <= tol:
            break
        moving = np.flatnonzero(error > tol)  # the others have converged, and take no more products
        p, alpha = direction[:, moving], shift[moving]
        image = objective.product(p) + alpha * p
        curvature = np.einsum("ic,ic->c", p, image)
        before = rho[moving]
        step = np.divide(before, curvature, out=np.zeros_like(before), where=curvature > 0)
        coef[:, moving] += step * p
        residual[:, moving] -= step * image
        scaled = preconditioner.solve(residual[:, moving], alpha)
        rho[moving] = np.einsum("ic,ic->c", residual[:, moving], scaled)
        unit_free = np.sqrt(np.maximum(rho[moving], 0.0) / whole[moving])
        plain = np.linalg.norm(residual[:, moving], axis=0) / norm[moving]
        error[moving] = np.maximum(plain, unit_free / _UNIT_FREE)
        history.append(float(error.max()))
        report(iteration, history[-1])
        p *= np.divide(rho[moving], before, out=np.zeros_like(before), where=before > 0)
        direction[:, moving] = p + scaled
    return Solution(
        coef,
        Status.CONVERGED if history[-1] <= tol else Status.MAX_ITER,
        n_iter=len(history) - 1,
        n_products=objective.n_products - products_before,
        certificate=history[-1],
        history=history[1:],
    )
