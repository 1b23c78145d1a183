"""Cutting planes for margin losses, with the quadratic program over their weights.

The small quadratic program of the bundle method: ``min ½ x'Hx - b'x`` over the simplex ``x >= 0, Σx = 1``.

A primal active-set method: minimise over the face where x is positive, walk until a coordinate hits zero and leaves,
and when the face is done let in the coordinate that promises most. From the last solution it needs a few steps.

Gram matrices of cutting planes are nearly singular, since late planes resemble each other. Each face therefore
carries a tiny proximal term at the current x, which does not move the solution: steps become shorter, not wrong.

Cutting planes: planes approach the loss from below, and their minimum with ``α‖w‖²`` is a small dual problem.

Plain form (``line_search=False``): the bundle method of the RankSVM paper (BMRM of Teo et al.): each iteration adds
the plane at the minimiser of the model, and with ``is_absolute`` stops at ``min_i F(w_i) - model minimum <= tol``,
within O(1/(α tol)) iterations.

The default departs from the paper in three ways:

- After OCAS (Franc and Sonnenburg), the objective is minimised along the line from the best point to the model's
  minimiser. Scores are linear in w, so a trial on the line reads no data. The plane is taken at that minimum, where
  its value is needed anyway: OCAS takes it a tenth of the way further on, which costs a second count of all pairs and
  took more steps.
- Large rankings search the line on a subsample of the rows, which only decides where to look: values, planes and the
  gap are always those of all rows.
- Planes that did not matter for a while are dropped; so memory is bounded: a plane costs one vector of coefficients.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache

import numpy as np
import numpy.typing as npt
from scipy.optimize import brentq

from rankwise.arrays import Floats
from rankwise.objectives import MarginObjective
from rankwise.solvers.krylov import Curvature
from rankwise.solvers.newton import StoppingRule, solve_linear_limit
from rankwise.solvers.solution import Monitor, Solution, Status

_PROXIMAL = 1e-11  # after scaling H to unit size
_RELATIVE_GAP = 1e-15
_SIMPLEX_PATIENCE = 10  # finished faces without a smaller gap or value, after which rounding is to blame
_ROUNDING = 1e-16
_STEPS_A_COORDINATE = 20


def minimise_on_simplex(H: Floats, b: Floats, start: Floats) -> Floats:
    """Return the minimiser, near rounding.

    Parameters
    ----------
    H : (k, k) float64
        Symmetric, positive semidefinite.
    b : (k,) float64
    start : (k,) float64
        A point of the simplex.
    """
    # Shifting b by a constant and scaling both change nothing: Σx = 1.
    unit = max(float(np.diagonal(H).max()), float(np.ptp(b)))
    if unit <= 0 or not np.isfinite(unit):  # nothing to decide, or an overflow before
        return start
    H, b, x = H / unit, (b - b.max()) / unit, start
    is_free = x > 0
    best, best_gap, lowest, stale = x, np.inf, np.inf, 0
    for _ in range(_STEPS_A_COORDINATE * b.size + 100):
        free = np.flatnonzero(is_free)
        gradient = H @ x - b
        # On a face's minimum the gradient is constant: without that constant, repeated steps refine each other.
        step = _face_step(H, gradient - float(x @ gradient), free)
        length, leaves = _longest(x[free], step)
        x = x.copy()
        x[free] = np.maximum(x[free] + length * step, 0.0)
        if leaves is not None:
            x[free[leaves]] = 0.0
            is_free[free[leaves]] = False
        x /= x.sum()
        if leaves is not None:
            continue
        gradient = H @ x - b
        gap = float(x @ gradient) - float(gradient.min())
        value = float(x @ (gradient - b)) / 2
        stale = 0 if gap < best_gap or value < lowest - _ROUNDING else stale + 1
        lowest = min(lowest, value)
        if gap < best_gap:
            best, best_gap = x, gap
        if gap <= _RELATIVE_GAP or stale >= _SIMPLEX_PATIENCE:
            break
        is_free[int(np.argmin(gradient))] = True  # where the gap is widest; it may be free already
    return best


def _face_step(H: Floats, gradient: Floats, free: npt.NDArray[np.int64]) -> Floats:
    """Return the step to the minimum on a face, with ``Σ step = 0``."""
    system = np.ones((free.size + 1, free.size + 1))
    system[:-1, :-1] = H[np.ix_(free, free)] + _PROXIMAL * np.eye(free.size)
    system[-1, -1] = 0.0
    return np.asarray(np.linalg.solve(system, np.append(-gradient[free], 0.0))[:-1])


def _longest(x: Floats, step: Floats) -> tuple[float, int | None]:
    """Return how far x may go (at most 1), and which coordinate stops it."""
    falling = step < 0
    ratio = np.divide(x, -step, out=np.full(x.size, np.inf), where=falling)
    first = int(np.argmin(ratio))
    return (float(ratio[first]), first) if ratio[first] < 1 else (1.0, None)


# If the plane at the line's minimum raises the model at its minimiser by less than this share of the gap, the plane is
# taken there: it raises the model by the whole gap, and the paper's bound on the iterations holds.
_CUT = 0.5
_IDLE = 20  # iterations after which a plane of weight 0 is dropped
_MOST_PLANES = 500
_MAX_ITER = 100_000
# Of a line search, as a share of the length: a hundredth took a third of the reads that a tenth of a bracket did where
# alpha is small, for the first models reach far beyond the minimum.
_PRECISION = 0.01
_SAMPLE = 4_000  # rows on which a line is searched first
# If the gap falls by less than this share in so many iterations, rounding is to blame: O(1/tol) iterations do better.
_PROGRESS, _PATIENCE = 1e-3, 100


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
        self.vectors.append(vector)
        products = np.array([float(vector @ other) for other in self.vectors])
        self.gram = np.block([[self.gram, products[:-1, None]], [products]])
        self.offset = np.append(self.offset, offset)
        self.weight = np.append(self.weight, 0.0 if self.weight.size else 1.0)
        self.idle = np.append(self.idle, 0.0)

    def minimise(self) -> tuple[Floats, float]:
        """Minimise ``model(w) + α‖w‖²``; return w and a lower bound of the minimum."""
        H = self.gram / (2 * self.alpha)
        self.weight = minimise_on_simplex(H, self.offset, self.weight)
        self.idle = np.where(self.weight > 0, 0.0, self.idle + 1)
        combined = np.zeros_like(self.vectors[0])
        for share, vector in zip(self.weight, self.vectors, strict=True):
            if share > 0:
                combined += share * vector
        # Feasible, so a bound, exact or not. Not by H: where planes are steep, its entries have nothing left to cancel.
        value = float(self.weight @ self.offset - combined @ combined / (4 * self.alpha))
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

    def _keep(self, kept: npt.NDArray[np.int64]) -> None:
        self.vectors = [self.vectors[i] for i in kept]
        self.gram = self.gram[np.ix_(kept, kept)]
        self.offset, self.weight, self.idle = self.offset[kept], self.weight[kept], self.idle[kept]


def minimise_by_planes(  # noqa: C901, PLR0912, PLR0915 - the steps of one method, in the order of its paper
    objective: MarginObjective,
    alpha: float,
    *,
    tol: float = 1e-3,
    is_absolute: bool = False,
    max_iter: int | None = None,
    start: Floats | None = None,
    curvature: Curvature | None = None,  # not used: the model's own minimum needs no preconditioning
    monitor: Monitor | None = None,
    line_search: bool = True,
) -> Solution:
    """Minimise ``loss + α‖w‖²`` until the duality gap is at most `tol` times the gain (`StoppingRule`)."""
    limit = _MAX_ITER if max_iter is None else max_iter
    planes = _Planes(alpha, drops=line_search)
    coef = np.zeros(objective.n_features)
    scores = objective.scores(coef)
    point = objective.at_scores(scores)
    rule = StoppingRule(tol, float(point.value), alpha, is_absolute)
    # The plane at 0 proves the limit of a large alpha, where values have no digits left for what can be gained.
    origin = objective.pull_back(point.score_gradient)
    found = solve_linear_limit(objective, rule, origin)
    if found is not None:
        return found
    planes.add(origin, point.offset)
    if start is not None:
        coef, scores = start.copy(), objective.scores(start)
        point = objective.at_scores(scores)
        planes.add(objective.pull_back(point.score_gradient), point.offset)
    best = _Best(coef, scores, float(point.value) + alpha * float(coef @ coef))
    search = _LineSearch(objective, alpha) if line_search else None
    gap, decrease, bound = np.inf, 0.0, 0.0  # no loss of pairs is negative
    milestone, reached = np.inf, 0
    history: list[float] = []
    status = Status.MAX_ITER
    while len(history) < limit:
        # 1. The minimum of the model, and the bound it proves.
        target, model = planes.minimise()
        bound = max(bound, model)
        # 2. The new point; plain: the model's minimiser, else the minimum of the line to it.
        target_scores = objective.scores(target)
        direction, moved = target - best.coef, target_scores - best.scores
        is_plain = search is None
        if search is not None:
            length = search.length(best, direction, moved)
            coef, scores = best.coef + length * direction, best.scores + length * moved
            point = objective.at_scores(scores)
            value = float(point.value) + alpha * float(coef @ coef)
            if value < best.value:
                best = _Best(coef, scores, value)
            else:
                search.look_closer()
            at_target = point.offset + float(point.score_gradient @ target_scores)
            cut = at_target + alpha * float(target @ target) - model
            is_plain = cut < _CUT * (best.value - model)
        if is_plain:
            scores, point = target_scores, objective.at_scores(target_scores)
            value = float(point.value) + alpha * float(target @ target)
            if value < best.value:
                best = _Best(target, target_scores, value)
        # 3. The gap.
        gap, decrease = rule.gap(best.value, bound), rule.decrease(best.value, best.coef)
        history.append(gap)
        if gap <= (1 - _PROGRESS) * milestone:
            milestone, reached = gap, len(history)
        if gap <= rule.allowed(gap, decrease):
            status = Status.CONVERGED
        elif len(history) - reached >= _PATIENCE:
            status = Status.STAGNATED
        elif monitor is not None and monitor(best.coef, gap, len(history)):
            status = Status.STOPPED
        if status is not Status.MAX_ITER:
            break
        # 4. The plane at the point: a'w + (loss(v) - a'v).
        planes.add(objective.pull_back(point.score_gradient), point.offset)
    return Solution.proved(best.coef, status, history, decrease, n_iter=len(history))


@dataclass(frozen=True)
class _Best:
    """The best point so far."""

    coef: Floats
    scores: Floats
    value: float


class _LineSearch:
    """Finds where along a line the objective is least, looking at a sample of the rows as long as that helps."""

    def __init__(self, objective: MarginObjective, alpha: float) -> None:
        self._objective, self._alpha = objective, alpha
        self._n_sampled = _SAMPLE
        self._sample = objective.sample(_SAMPLE)

    def look_closer(self) -> None:
        """Take a larger sample: this one no longer tells which way is down."""
        if self._sample is not None:
            self._n_sampled *= 4
            self._sample = self._objective.sample(self._n_sampled)

    def length(self, best: _Best, direction: Floats, moved: Floats) -> float:
        """Return how far to go from the best point: to the zero of the slope, about."""
        cross, square = float(best.coef @ direction), float(direction @ direction)
        scores, objective = best.scores, self._objective
        if self._sample is not None:
            rows, objective = self._sample
            scores, moved = scores[rows], moved[rows]

        @cache
        def slope(length: float) -> float:
            loss = float(objective.at_scores(scores + length * moved).score_gradient @ moved)
            return loss + 2 * self._alpha * (cross + length * square)

        if slope(0.0) >= 0:
            return 0.0
        far = 1.0
        while slope(far) < 0:
            far *= 2
        return float(brentq(slope, 0.0, far, rtol=_PRECISION))
