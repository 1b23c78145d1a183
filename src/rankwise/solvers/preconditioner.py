"""Preconditioning of margin problems: which way to step, whatever the scales and correlations of the columns.

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

import numpy as np
import scipy.linalg

from rankwise.arrays import Floats
from rankwise.objectives import SquaredObjective
from rankwise.pairs.blocks import QueryBlocks

__all__ = ["ROWS_A_COLUMN", "Curvature", "Preconditioner"]

# At least, where the whole matrix is to pay: kernel maps of as many columns as rows took up to ten times as long.
ROWS_A_COLUMN = 4

_JITTER = 1e-13  # of a matrix of unit diagonal, so that duplicated columns have a factor
_STEADY = 3.0  # factor by which the share may change before the matrix is factored again
_OTHERS = 0.05  # of the curvature at 0, for the rows that curve nowhere near now but may later
_UPDATE_AFTER = 8  # iterations, at least
# Iterations without. On independent columns (1,000 × 20 to 20,000 × 50) a tolerance of 1e-3 takes 5 to 17 in all
# and no matrix; on correlated ones and on scales of two decades 73 to 490, and with the matrix then 9 to 15 more.
_PLAIN = 16
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
    update_after : int
        How many iterations cost as much as an update.
    """

    def __init__(self, objective: SquaredObjective, *, is_whole: bool, update_after: int = 0) -> None:
        self._objective, self._is_whole = objective, is_whole
        self.n_features = objective.n_features
        self.can_follow = objective.graph.blocks is not None
        self.update_after = max(update_after, _UPDATE_AFTER)
        self.hessian: Floats | None = None

    def follow(self, rows: Floats) -> None:
        """Estimate from the diagonal of B, a value per row."""
        objective, blocks = self._objective, self._objective.graph.blocks
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
        # Squares that overflow say nothing about the scales.
        self.hessian = hessian if np.isfinite(hessian).all() else np.zeros(objective.n_features)


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
        self._patience = _PLAIN
        if curvature is not None and curvature.hessian is not None:
            self._engage(curvature)

    @property
    def n_plain(self) -> float:
        """How many iterations may be made before it is worth knowing something; infinite where something is known."""
        waits = self._curvature is not None and self.is_identity
        return self._patience - self._age if waits else np.inf

    @property
    def is_due(self) -> bool:
        """Whether so many iterations were made that an update costs no more."""
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
        """Use what is known, where that can pay."""
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
        """Take note that the objective curves by so much along a step, penalty included, and what that step took."""
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
    return QueryBlocks(
        order=blocks.order,
        query_start=start,
        segment_start=start,
        query_segment=np.arange(n_queries + 1, dtype=np.int64),
        degree=np.ones(n_queries),
        scale=np.divide(1.0, total, out=np.zeros_like(total), where=total > 0),
        coupling="all",
        row_weight=weight,
    )
