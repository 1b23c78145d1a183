"""Stochastic learning from successive blocks of rows: one read of the data instead of one per iteration.

The minimum over everything so far is remembered by where it is and by the *diagonal* of its curvature D. A block then
asks for the step u that minimises

    loss of the block at w + u   +   u'(D + αI)u

by a few iterations of conjugate gradients on the block in memory. No step size is needed: the curvature of the block
is exact, and the remembered curvature limits the step. Blocks are whole queries, or rows of one ranking joined by
their running means (`rankwise.objectives`).

The choice was made by measurement: after one read of rows like RCV1 it was closer to
the minimum than block dual coordinate ascent, which forgets the past but for αI, and than averaged stochastic
gradients; remembering the leading eigenvectors beside the diagonal gained nothing.

One read does not reach a tight tolerance. `stochastic` continues with conjugate gradients from where the read has
ended, which needed fewer reads than further reads of the methods above.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from rankwise.arrays import Floats
from rankwise.objectives import BalancedObjective, QuadraticObjective, parts_of
from rankwise.solvers.krylov import conjugate_gradients
from rankwise.solvers.scales import unit_free
from rankwise.solvers.solution import Monitor, Solution, Status

# On each block; more fit the block better, and the whole hardly. For text 3 would do, but not where columns are alike.
_LOCAL_ITERATIONS = 6


@dataclass(frozen=True)
class Memory:
    """The summary of the blocks read so far.

    Attributes
    ----------
    coef : (features,) or (features, outputs) float64
        The minimum, approximately.
    curvature : (features,) float64
        The diagonal of the sum of their Hessians, without the penalty's.
    """

    coef: Floats
    curvature: Floats

    @classmethod
    def empty(cls, shape: tuple[int, ...]) -> Memory:
        """Return the memory before the first block."""
        return cls(np.zeros(shape), np.zeros(shape[0]))

    def learn(self, part: QuadraticObjective, alpha: float) -> Memory:
        """Return the memory after one more block."""
        total = self.curvature + part.diagonal()
        # At the old minimum the past pulls nowhere.
        local = BalancedObjective(part, self.curvature + alpha, unit_free(total, alpha), self.coef)
        step = conjugate_gradients(local, local.floor, tol=0.0, max_iter=_LOCAL_ITERATIONS).coef
        return Memory(local.to_coef(step), total)


def stochastic(
    objective: QuadraticObjective,
    alpha: float,
    *,
    tol: float = 1e-5,
    max_iter: int | None = None,
    monitor: Monitor | None = None,
) -> Solution:
    """Solve ``(H + αI) w = b``: one read in blocks, then conjugate gradients from there.

    Without a penalty the first read is left out, because its result need not lie in the span of the rows, as the
    solution of least norm does.

    Parameters
    ----------
    max_iter : int, optional
        At most this many reads; with 1 the answer is that of a single read.
    monitor : Monitor, optional
        Told the coefficients after every read; may stop.
    """
    if alpha == 0:
        return conjugate_gradients(objective, alpha, tol=tol, max_iter=max_iter, monitor=monitor)
    memory = Memory.empty(objective.rhs.shape)
    for part in parts_of(objective):
        memory = memory.learn(part, alpha)
    if monitor is not None and monitor(memory.coef, np.inf, 1):
        return Solution(memory.coef, Status.STOPPED, n_iter=1, certificate=np.inf)

    later = None if monitor is None else lambda coef, gap, n_iter: monitor(coef, gap, n_iter + 1)
    left = None if max_iter is None else max_iter - 1
    solution = conjugate_gradients(objective, alpha, tol=tol, max_iter=left, start=memory.coef, monitor=later)
    return replace(solution, n_iter=solution.n_iter + 1, history=[np.inf, *solution.history])
