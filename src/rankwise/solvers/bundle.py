"""Cutting planes: the loss is approached from below by planes, whose minimum with ``α‖w‖²`` is a small dual problem.

Plain form (``line_search=False``): the bundle method of the RankSVM paper (BMRM of Teo et al.): each iteration adds the plane
at the minimiser of the model, and stops at ``min_i F(w_i) - model minimum <= tol``, within O(1/(α tol)) iterations.

The default departs from the paper in three ways:

- After OCAS (Franc and Sonnenburg), the objective is minimised along the line from the best point to the model's
  minimiser, and the plane is taken beside that point. Scores are linear in w, so a trial on the line reads no data.
- Large problems search the line on a subsample of the rows, which only decides where to look: values, planes and the gap are
  always those of all rows.
- Planes that did not matter for a while are dropped; so memory is bounded, and a plane costs one vector of coefficients.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from rankwise.objectives import MarginObjective
from rankwise.pairs.graph import Floats
from rankwise.solvers.simplex_qp import minimise_on_simplex
from rankwise.solvers.solution import Monitor, Solution, Status

__all__ = ["minimise_by_planes"]

_BEYOND = 0.1  # where the plane is taken: this share of the way from the best point to the model's minimiser
_IDLE = 20  # iterations after which a plane of weight 0 is dropped
_MOST_PLANES = 500
_MAX_ITER = 100_000
_TRIALS = 12
_QP_SHARE = 0.01  # of the gap, to which the dual problem is solved


@dataclass
class _Planes:
    """The model: ``loss(w) >= max_i a_i'w + b_i``.

    Attributes
    ----------
    offset : (planes,) float64
        ``b``.
    gram : (planes, planes) float64
        ``A'A``.
    weight : (planes,) float64
        The dual solution.
    """

    alpha: float
    drops: bool
    vectors: list[Floats] = field(default_factory=list)
    offset: Floats = field(default_factory=lambda: np.empty(0))
    gram: Floats = field(default_factory=lambda: np.empty((0, 0)))
    weight: Floats = field(default_factory=lambda: np.empty(0))
    idle: Floats = field(default_factory=lambda: np.empty(0))

    def add(self, vector: Floats, offset: float) -> None:
        """Take in ``loss(w) >= vector'w + offset``."""
        products = np.array([float(vector @ other) for other in (*self.vectors, vector)])
        size = len(self.vectors)
        gram = np.empty((size + 1, size + 1))
        gram[:size, :size] = self.gram
        gram[size, :] = gram[:, size] = products
        self.gram = gram
        self.vectors.append(vector)
        self.offset = np.append(self.offset, offset)
        self.weight = np.append(self.weight, 0.0 if size else 1.0)
        self.idle = np.append(self.idle, 0.0)

    def minimise(self, tol: float) -> tuple[Floats, float]:
        """Minimise ``model(w) + α‖w‖²``; return w and a lower bound of the minimum."""
        H = self.gram / (2 * self.alpha)
        self.weight = minimise_on_simplex(H, self.offset, self.weight, tol)
        self.idle = np.where(self.weight > 0, 0.0, self.idle + 1)
        value = float(self.weight @ (self.offset - H @ self.weight / 2))  # feasible, so a bound, exact or not
        combined = np.zeros_like(self.vectors[0])
        for share, vector in zip(self.weight, self.vectors, strict=True):
            if share > 0:
                combined += share * vector
        if self.drops:
            self._drop(combined)
        return combined / (-2 * self.alpha), value

    def _drop(self, combined: Floats) -> None:
        kept = np.flatnonzero(self.idle <= _IDLE)
        if kept.size > _MOST_PLANES:
            # The combination of all planes is a plane, and alone proves the current bound.
            offset = float(self.weight @ self.offset)
            kept = np.sort(np.argsort(-self.weight, kind="stable")[: _MOST_PLANES // 2])
            self._keep(kept)
            self.add(combined, offset)
            self.weight = np.zeros(self.weight.size)
            self.weight[-1] = 1.0
        elif kept.size < self.offset.size:
            self._keep(kept)

    def _keep(self, kept: Floats) -> None:
        self.vectors = [self.vectors[i] for i in kept]
        self.gram = self.gram[np.ix_(kept, kept)]
        self.offset, self.weight, self.idle = self.offset[kept], self.weight[kept], self.idle[kept]


def minimise_by_planes(
    objective: MarginObjective,
    alpha: float,
    *,
    tol: float = 1e-3,
    max_iter: int | None = None,
    start: Floats | None = None,
    monitor: Monitor | None = None,
    line_search: bool = True,
) -> Solution:
    """Minimise ``loss + α‖w‖²`` to an absolute duality gap of `tol`."""
    limit = _MAX_ITER if max_iter is None else max_iter
    reads = objective.n_reads
    planes = _Planes(alpha, drops=line_search)
    coef = np.zeros(objective.n_features) if start is None else start.copy()
    scores = objective.scores(coef)
    point = objective.at_scores(scores)
    best = _Best(coef, scores, float(point.value) + alpha * float(coef @ coef))
    gap, bound = np.inf, -np.inf
    history: list[float] = []
    status = Status.MAX_ITER
    while len(history) < limit:
        # 1. The plane at the point: a'w + (loss(v) - a'v).
        plane = objective.pull_back(point.score_gradient)
        planes.add(plane, float(point.value) - float(point.score_gradient @ scores))
        # 2. The minimum of the model, and what it proves.
        target, model = planes.minimise(_QP_SHARE * max(min(gap, best.value - bound), tol))
        bound = max(bound, model)
        # 3. The new point; plain: the model's minimiser, else beside the minimum of the line to it.
        target_scores = objective.scores(target)
        if line_search:
            length = _search(objective, best, target, target_scores, alpha)
            length = (1 - _BEYOND) * length + _BEYOND
        else:
            length = 1.0
        coef = best.coef + length * (target - best.coef)
        scores = best.scores + length * (target_scores - best.scores)
        point = objective.at_scores(scores)
        value = float(point.value) + alpha * float(coef @ coef)
        if value < best.value:
            best = _Best(coef, scores, value)
        gap = best.value - bound
        history.append(gap)
        if gap <= tol:
            status = Status.CONVERGED
            break
        if monitor is not None and monitor(best.coef, gap, len(history)):
            status = Status.STOPPED
            break
    return Solution(
        best.coef,
        status,
        n_iter=len(history),
        n_reads=objective.n_reads - reads,
        certificate=gap,
        history=history,
    )


@dataclass(frozen=True)
class _Best:
    coef: Floats
    scores: Floats
    value: float


def _search(objective, best, target, target_scores, alpha):
    df = target_scores - best.scores
    dw = target - best.coef
    cross, square = float(best.coef @ dw), float(dw @ dw)
    lo, hi = 0.0, None
    k=1.0
    slo=None
    for _ in range(_TRIALS):
        p = objective.at_scores(best.scores + k*df)
        s = float(p.score_gradient @ df) + 2*alpha*(cross + k*square)
        if s<0: lo,slo=k,s
        else: hi,shi=k,s
        if hi is None: k*=2
        else:
            if hi-lo<0.05*hi: break
            k = (lo+hi)/2 if slo is None else lo - slo*(hi-lo)/(shi-slo)
            k=np.clip(k,lo+0.1*(hi-lo),hi-0.1*(hi-lo))
    return k
