"""Margin losses with a proved gap: truncated Newton steps, and L-BFGS on the smoothed hinge.

Proof of how far a minimum of ``F(w) = loss(w) + α‖w‖²`` still is, and the rule for stopping.

See docs/mathematics.md, section 6.2.

If ``loss(v) >= g'v + s`` for every v, the minimum is at least ``min_v g'v + s + α‖v‖² = s - ‖g‖²/(4α)``. Gradients of a
convex loss are such planes, and so are convex combinations of them: `LowerBound` keeps the best combination of its
own plane and each new one, so that the bound never falls and costs one vector. The first plane is 0: no loss of pairs
is negative, so the bound is not either, and a gap is never more than the objective.

For a smooth loss at w the plane is ``g = ∇loss(w)``, ``s = loss(w) - g'w``, and the gap is
``‖∇loss(w) + 2αw‖²/(4α)``: the duality gap and the bound of strong convexity at once.

**When to stop.** ``F(w) - bound <= tol (F(0) - bound)``: what may still be gained is at most the share `tol` of what
there was to gain. The rule has no units: X scaled by c under an alpha scaled by c² stops at the same place. And it
never takes ``w = 0`` for the minimum while anything pulls. Gains may be far below the rounding errors of F itself
(where alpha is large beside the columns); so gradients measure the gap as well, and convexity the gain:
``F(0) - F(w) >= α‖w‖² - ∇F(w)'w``, of which nothing cancels.

Truncated Newton with a line search, for smooth losses of linear scores: squared hinge, logistic.

Preconditioned conjugate gradients solve Newton's equation inexactly (Chapelle and Keerthi's PRSVM is a Newton method of
this kind; LIBLINEAR went from a trust region to a line search, too). Departures: products are made in score space,
``X'(D(Xd))``, so that the scores of the step come with it and a trial reads no data; and the search stops at a proved
gap, ``‖∇F‖²/(4α)`` or better, instead of a relative gradient.

Limited-memory BFGS: directions from the last few steps, and a line search that reads no data.

The hinge, smoothed just enough: L-BFGS on the Huberised hinge, with a proved gap of the hinge itself.

The Huberised hinge φ_δ rounds the kink of ``max(0, t)`` off over ``0 <= t <= δ``. Its slopes ``a = φ_δ'(t)`` lie
between 0 and 1, so they are feasible dual variables of the *original* problem: ``(1/N) Σ ω a z - ‖g‖²/(4α)`` with
``g = (1/N) X'A'Ωa`` is a lower bound of its minimum, from what the gradient needs anyway.

At the minimum of φ_δ the gap is ``(1/N) Σ ω t (1 - t/δ)`` over the pairs with ``0 < t < δ``: with a density p of pairs
near the kink about ``p δ²/6``. So δ shrinks with the *root* of the gap, and with many pairs the problem hardly becomes
harder.

Each iteration reads the data twice (``X d`` and ``X'u``); the line search moves along scores and reads nothing.
A start from a few steps of RankRLS did not pay: 5 reads for it saved as many. For columns of different scales, and
correlated ones, L-BFGS takes its first guess of the Hessian from `rankwise.solvers.krylov`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from rankwise.arrays import Floats
from rankwise.objectives import MarginObjective, MarginPoint
from rankwise.pairs.graph import SmoothedHinge
from rankwise.solvers.krylov import Curvature, Preconditioner, newton_step
from rankwise.solvers.solution import Monitor, Solution, Status

_GAP_ROUNDING = 8 * np.finfo(np.float64).eps  # share of F(0) that the difference of two values may be off by


class LowerBound:
    """The best lower bound so far on the minimum of ``loss(w) + α‖w‖²`` of a loss that is never negative."""

    def __init__(self, alpha: float) -> None:
        self._alpha = alpha
        self._plane: Floats | None = None
        self._offset = 0.0
        self.value = 0.0

    def add(self, plane: Floats, offset: float) -> None:
        """Take in a plane: ``loss(v) >= plane'v + offset`` for every v."""
        if self._plane is None:
            self._plane = np.zeros_like(plane)
        # max over 0 <= θ <= 1 of (1-θ) s + θ s' - ‖(1-θ) g + θ g'‖²/(4α), a parabola in θ
        step = plane - self._plane
        curvature = float(step @ step)
        slope = 4 * self._alpha * (offset - self._offset) / 2 - float(self._plane @ step)
        if slope <= 0:
            return
        share = min(slope / curvature, 1.0) if curvature > 0 else 1.0
        self._plane += share * step
        self._offset += share * (offset - self._offset)
        self.value = max(self.value, self._offset - float(self._plane @ self._plane) / (4 * self._alpha))


@dataclass(frozen=True)
class StoppingRule:
    """When a gap is small enough (see the module's docstring).

    Attributes
    ----------
    tol : float
        A share of the gain; of F itself where `is_absolute`, as in the RankSVM paper.
    at_zero : float
        ``F(0)``.
    """

    tol: float
    at_zero: float
    alpha: float
    is_absolute: bool = False

    @property
    def rounding(self) -> float:
        """How much the difference of two values may be off by."""
        return _GAP_ROUNDING * self.at_zero

    def gap(self, value: float, bound: float) -> float:
        """Return the gap that two values prove, plus their rounding errors."""
        return max(value - bound, 0.0) + self.rounding

    def gap_of_slope(self, gradient: Floats) -> float:
        """Return the gap that the gradient of F proves: ``‖∇F‖²/(4α)``."""
        return float(gradient @ gradient) / (4 * self.alpha)

    def decrease(self, value: float, coef: Floats, gradient: Floats | None = None) -> float:
        """Return ``F(0) - F(w)``; more exactly where ``∇F(w)`` is known and values have no digits left for it."""
        from_values = self.at_zero - value - self.rounding
        if gradient is None:
            return max(from_values, 0.0)
        return max(from_values, self.alpha * float(coef @ coef) - float(gradient @ coef), 0.0)

    def allowed(self, gap: float, decrease: float) -> float:
        """Return the gap that is small enough, where this is the gap and so much was gained since 0."""
        return self.tol if self.is_absolute else self.tol * (gap + decrease)


def solve_linear_limit(objective: MarginObjective, rule: StoppingRule, gradient: Floats) -> Solution | None:
    """Return ``w = -g₀/(2α)`` where it is the minimum: alpha so large that the loss is as good as linear up to there.

    For the hinge it is the exact minimum where no pair reaches its margin. Costs two reads, and none where the slope of
    the loss at 0 alone says that pairs do.
    """
    alpha = rule.alpha
    if float(gradient @ gradient) > 2 * alpha * rule.at_zero:
        return None
    coef = gradient / (-2 * alpha) + 0.0  # not -0
    point = objective.at_scores(objective.scores(coef))
    change = objective.pull_back(point.score_gradient) - gradient
    gap = rule.gap_of_slope(change)
    decrease = rule.decrease(float(point.value) + alpha * float(coef @ coef), coef, change)
    if gap > rule.allowed(gap, decrease):
        return None
    return Solution.proved(coef, Status.CONVERGED, [gap], decrease, n_iter=1)


_MAX_ITER = 1000
# Newton's equation is solved to this share of the gradient, or better once little remains: the gap then falls faster
# from step to step, and ends well below a tight tolerance. Down to 1e-3 it takes no more reads.
_FORCING = 0.3
_ROUNDING = 4 * np.finfo(np.float64).eps  # share of the value below which a decrease cannot be seen
_STEADY = 0.9  # share of the gradient that may remain after a step whose decrease cannot be seen


def minimise_by_newton(
    objective: MarginObjective,
    alpha: float,
    *,
    tol: float = 1e-3,
    is_absolute: bool = False,
    max_iter: int | None = None,
    start: Floats | None = None,
    curvature: Curvature | None = None,
    monitor: Monitor | None = None,
) -> Solution:
    """Minimise ``mean loss + α‖w‖²`` until the duality gap is at most `tol` times the gain (`StoppingRule`)."""
    limit = _MAX_ITER if max_iter is None else max_iter
    coef, scores, point, at_zero = _begin(objective, start)
    rule = StoppingRule(tol, at_zero, alpha, is_absolute)
    # Counted again where it is asked for: to keep this point would take ten vectors of the rows' length.
    preconditioner = Preconditioner(
        curvature, alpha, lambda: objective.at_scores(objective.zero_scores()).score_hessian_diagonal()
    )
    value = float(point.value) + alpha * float(coef @ coef)
    bound = LowerBound(alpha)
    gradient = _gradient(point, coef, alpha, bound)
    history: list[float] = []
    status = Status.MAX_ITER
    while True:
        gap = min(rule.gap(value, bound.value), rule.gap_of_slope(gradient))
        decrease = rule.decrease(value, coef, gradient)
        history.append(gap)
        if gap <= rule.allowed(gap, decrease):
            status = Status.CONVERGED
        elif monitor is not None and monitor(coef, gap, len(history) - 1):
            status = Status.STOPPED
        if status is not Status.MAX_ITER or len(history) > limit:
            break
        if preconditioner.is_due:
            preconditioner.update(point.score_hessian_diagonal())
        step = newton_step(
            partial(_product, objective, point, alpha),
            gradient,
            preconditioner.solve,
            forcing=min(_FORCING, (gap / (gap + decrease)) ** 0.25),  # the gap falls as the gradient's square
            most=preconditioner.n_plain,
        )
        slope, curved = float(step.step @ gradient), float(step.step @ (-gradient - step.residual))
        preconditioner.learn(step.step, curved, step.n_iter)
        at = _line(partial(_loss_at, objective), coef, step.step, scores, step.moved, alpha)
        trial = search_line(at, value, slope, 1.0)
        if trial is not None:
            new_coef = coef + trial.length * step.step
            new_gradient = _gradient(trial.point, new_coef, alpha, bound)
            # Values no longer tell, but slopes do: where X is large and alpha small, they still are the whole gap.
            cannot_be_seen = -slope - curved / 2 <= _ROUNDING * abs(value)
        if trial is None or (
            cannot_be_seen and np.linalg.norm(new_gradient) > _STEADY * np.linalg.norm(gradient)
        ):
            # Pairs that contradict each other exactly leave slopes that are rounding errors alone.
            status = Status.CONVERGED if gap <= rule.rounding else Status.STAGNATED
            break
        coef, gradient = new_coef, new_gradient
        scores, point = scores + trial.length * step.moved, trial.point
        value = float(point.value) + alpha * float(coef @ coef)
    return Solution.proved(coef, status, history, decrease)


def _loss_at(objective: MarginObjective, scores: Floats) -> tuple[float, Floats, MarginPoint]:
    """Return the loss at scores, its gradient there, and the point."""
    point = objective.at_scores(scores)
    return float(point.value), point.score_gradient, point


def _product(
    objective: MarginObjective, point: MarginPoint, alpha: float, v: Floats
) -> tuple[Floats, Floats]:
    """Apply the Hessian of the objective, and return how v moves the scores."""
    moved = objective.scores(v)
    return objective.pull_back(point.score_hessian_product(moved)) + 2 * alpha * v, moved


def _begin(objective: MarginObjective, start: Floats | None) -> tuple[Floats, Floats, MarginPoint, float]:
    """Return the coefficients to start at, their scores, the loss there, and its value at 0."""
    scores = objective.zero_scores()
    point = objective.at_scores(scores)
    at_zero = float(point.value)
    if start is None:
        return np.zeros(objective.n_features), scores, point, at_zero
    scores = objective.scores(start)
    return start.copy(), scores, objective.at_scores(scores), at_zero


def _gradient(point: MarginPoint, coef: Floats, alpha: float, bound: LowerBound) -> Floats:
    plane = point.gradient
    bound.add(plane, point.offset)
    return plane + 2 * alpha * coef


_SUFFICIENT = 1e-4  # Wolfe's first condition: share of the predicted decrease
_FLAT = 0.9  # Wolfe's second: share of the slope that may remain
_TRIALS = 30
_LINE_ROUNDING = 1e-14  # share of the value below which a difference says nothing, and the slopes decide


class LbfgsMemory:
    """The two-loop recursion of Nocedal over the last `size` steps."""

    def __init__(self, size: int) -> None:
        self._steps: deque[tuple[Floats, Floats, float]] = deque(maxlen=size)

    def add(self, step: Floats, change: Floats) -> None:
        """Remember a step and the change of the gradient over it; a step without curvature says nothing."""
        curvature = float(step @ change)
        if curvature > np.finfo(np.float64).eps * np.linalg.norm(step) * np.linalg.norm(change):
            self._steps.append((step, change, curvature))

    def forget(self) -> None:
        """Start over."""
        self._steps.clear()

    def __len__(self) -> int:
        return len(self._steps)

    def direction(self, gradient: Floats, preconditioner: Preconditioner) -> Floats:
        """Return minus the inverse Hessian's estimate times the gradient; without memory the preconditioner's."""
        q = -gradient
        shares = []
        for step, change, curvature in reversed(self._steps):
            share = float(step @ q) / curvature
            shares.append(share)
            q -= share * change
        q = preconditioner.solve(q)
        if self._steps:
            step, change, curvature = self._steps[-1]
            q *= curvature / float(change @ preconditioner.solve(change))
        for (step, change, curvature), share in zip(self._steps, reversed(shares), strict=True):
            q += (share - float(change @ q) / curvature) * step
        return q


class Trial(NamedTuple):
    """A point on a line: how far, the value and the slope there, and whatever else was found."""

    length: float
    value: float
    slope: float
    point: Any


def _line(
    evaluate: Callable[[Floats], tuple[float, Floats, Any]],
    coef: Floats,
    direction: Floats,
    scores: Floats,
    moved: Floats,
    alpha: float,
) -> Callable[[float], Trial]:
    """Return the objective along a line, on which scores are linear, so that no data are read."""
    penalty, cross, square = (
        alpha * float(a @ b) for a, b in ((coef, coef), (coef, direction), (direction, direction))
    )

    def at(length: float) -> Trial:
        value, gradient, point = evaluate(scores + length * moved)
        value += penalty + length * (2 * cross + length * square)
        return Trial(length, value, float(gradient @ moved) + 2 * (cross + length * square), point)

    return at


def search_line(at: Callable[[float], Trial], value: float, slope: float, first: float) -> Trial | None:
    """Find a step that satisfies Wolfe's conditions for a convex function with ``value`` and ``slope < 0`` at 0.

    The bracket shrinks by the secant of the slopes, which for a piecewise quadratic is nearly Newton's step. Near the
    minimum values are equal but for rounding long before slopes are; as Hager and Zhang do, the slopes then decide
    alone. Returns None where no step decreases the value: rounding errors have the last word then.
    """
    rounding = _LINE_ROUNDING * abs(value)
    low, low_slope, high, high_slope = 0.0, slope, np.inf, np.inf
    length = first
    best: Trial | None = None
    for _ in range(_TRIALS):
        trial = at(length)
        promised = -_SUFFICIENT * length * slope
        decreases = trial.value <= value + (rounding if promised < rounding else -promised)
        if trial.value < value and (best is None or trial.value < best.value):
            best = trial
        if decreases and abs(trial.slope) <= -_FLAT * slope:
            return trial
        if decreases and trial.slope < 0:
            low, low_slope = length, trial.slope
        else:
            high, high_slope = length, trial.slope
        if np.isinf(high):
            length = 10 * low  # the slope is less than a tenth flatter, so that its zero lies further still
            continue
        secant = low - low_slope * (high - low) / (high_slope - low_slope) if high_slope > 0 else low
        margin = 0.1 * (high - low)
        length = float(np.clip(secant, low + margin, high - margin))
        if high - low <= 1e-12 * high:
            break
    return best


_MEMORY = 20  # steps that the quasi-Newton method remembers
_AIM = 0.25  # the share of the gap aimed at that the smoothing may cost in the end
_LARGEST_CUT = 0.1  # of δ at a time
# Times what the preconditioner estimates to remain: with 1, δ falls so fast that a tolerance of 1e-7 is not met; 1e4
# took a quarter more reads than 1 for 1e-3.
_CAUTION = 300.0
_WARM_WIDTH = 0.1  # of the mean margin: δ where a start is given
_NARROWEST = 1e-9  # δ, in units of the mean margin, below which slopes are rounding errors
_NEARLY_ALL = 0.999_999_999  # share of the margins: if so many are violated, the loss may be linear
_MAX_SMOOTHED = 10_000
# If neither gap nor slope falls by this share in so many iterations, rounding is to blame.
_PROGRESS, _PATIENCE = 1e-3, 100


def minimise_smoothed(  # noqa: C901, PLR0912, PLR0915 - the steps of one method, in the order of its paper
    objective: MarginObjective,
    alpha: float,
    *,
    tol: float = 1e-3,
    is_absolute: bool = False,
    max_iter: int | None = None,
    start: Floats | None = None,
    curvature: Curvature | None = None,
    monitor: Monitor | None = None,
) -> Solution:
    """Minimise ``mean hinge + α‖w‖²`` until the duality gap is at most `tol` times the gain (`StoppingRule`)."""
    limit = _MAX_SMOOTHED if max_iter is None else max_iter
    coef, scores, hinge, at_zero = _begin(objective, start)
    rule = StoppingRule(tol, at_zero, alpha, is_absolute)
    # At 0 every pair curves, by a width of twice the margin. Counted again where it is asked for, as in `newton.py`.
    preconditioner = Preconditioner(
        curvature,
        alpha,
        lambda: objective.at_scores(objective.zero_scores()).smoothed_hessian_diagonal(2 * rule.at_zero),
    )
    if hinge.offset >= _NEARLY_ALL * rule.at_zero:
        found = solve_linear_limit(objective, rule, objective.pull_back(hinge.score_gradient))
        if found is not None:
            return found
    memory, bound = LbfgsMemory(_MEMORY), LowerBound(alpha)
    width = rule.at_zero * (1.0 if start is None else _WARM_WIDTH)
    smooth = hinge.smoothed(width)
    loss_gradient = objective.pull_back(smooth.gradient)
    best, lowest = coef, np.inf
    next_look = np.inf  # when so little remains to be minimised, look again at what the smoothing costs
    milestone, reached = np.full(2, np.inf), 0
    history: list[float] = []
    status = Status.MAX_ITER
    while True:
        # 1. What is proved. The hinge itself is counted only where it decides something: when to stop, or whether the
        # smoothing costs more than what remains to be minimised. Else it is at most δ/2 more.
        penalty = alpha * float(coef @ coef)
        bound.add(loss_gradient, smooth.active)
        gradient = loss_gradient + 2 * alpha * coef
        # What remains to be minimised: as the preconditioner estimates it, which decides how to go on, not when to end.
        unsolved = _remaining(gradient, rule, preconditioner)
        hoped = smooth.value + penalty
        is_close = hoped - bound.value <= rule.allowed(hoped - bound.value, rule.at_zero - hoped)
        is_flat = unsolved < min(width / 4, next_look)  # smoothing by δ never costs more than a quarter of δ
        loss = float(hinge.value) if is_close or is_flat else smooth.value + width / 2
        if loss + penalty < lowest:
            best, lowest = coef, loss + penalty
        gap, decrease = rule.gap(lowest, bound.value), rule.decrease(lowest, best)
        history.append(gap)
        # Where columns are steep, the slope falls long before the gap does.
        proofs = np.array([gap, rule.gap_of_slope(gradient)])
        if np.any(proofs <= (1 - _PROGRESS) * milestone):
            milestone, reached = np.minimum(proofs, milestone), len(history)
        if gap <= rule.allowed(gap, decrease):
            status = Status.CONVERGED
        elif len(history) - reached >= _PATIENCE:
            status = Status.STAGNATED
        elif monitor is not None and monitor(best, gap, len(history) - 1):
            status = Status.STOPPED
        if status is not Status.MAX_ITER or len(history) > limit:
            break
        # 2. Smooth less, once the smoothing costs as much as what remains to be minimised.
        if is_flat:
            rounded_off = max(loss - smooth.active - float(smooth.gradient @ scores), 0.0)
            # Not by the gap, which may be proved much later.
            aim = _AIM * rule.allowed(rounded_off + unsolved, decrease)
            next_look = unsolved / 4
            if rounded_off > max(aim, unsolved) and width > _NARROWEST * rule.at_zero:
                cut = np.sqrt(max(aim, 0.01 * rounded_off) / rounded_off)
                width *= float(np.clip(0.9 * cut, _LARGEST_CUT, 0.5))
                smooth = hinge.smoothed(width)
                loss_gradient = objective.pull_back(smooth.gradient)
                gradient = loss_gradient + 2 * alpha * coef
                next_look, milestone[1] = np.inf, np.inf
        # 3. A step.
        if preconditioner.is_due:
            preconditioner.update(hinge.smoothed_hessian_diagonal(width))
        direction = memory.direction(gradient, preconditioner)
        slope = float(gradient @ direction)
        if slope >= 0:
            memory.forget()
            direction = memory.direction(gradient, preconditioner)
            slope = float(gradient @ direction)
        moved = objective.scores(direction)
        at = _line(partial(_smoothed_at, objective, width), coef, direction, scores, moved, alpha)
        # Without any idea of the curvature: where the slope, if it stayed, would use up what there is to gain.
        is_blind = len(memory) == 0 and preconditioner.is_identity
        value = smooth.value + penalty
        trial = search_line(at, value, slope, -min(gap, value) / slope if is_blind else 1.0)
        if trial is None:
            if len(memory) == 0:
                status = Status.STAGNATED
                break
            memory.forget()
            continue
        step = trial.length * direction
        coef = coef + step
        scores = scores + trial.length * moved
        hinge, smooth = trial.point
        loss_gradient = objective.pull_back(smooth.gradient)
        change = loss_gradient + 2 * alpha * coef - gradient
        memory.add(step, change)
        preconditioner.learn(step, float(step @ change))
    return Solution.proved(best, status, history, decrease)


def _smoothed_at(
    objective: MarginObjective, width: float, scores: Floats
) -> tuple[float, Floats, tuple[MarginPoint, SmoothedHinge]]:
    """Return the smoothed hinge at scores, its gradient there, and both hinges."""
    hinge = objective.at_scores(scores)
    smooth = hinge.smoothed(width)
    return smooth.value, smooth.gradient, (hinge, smooth)


def _remaining(gradient: Floats, rule: StoppingRule, preconditioner: Preconditioner) -> float:
    if preconditioner.is_identity:
        return rule.gap_of_slope(gradient)
    return _CAUTION * float(gradient @ preconditioner.solve(gradient)) / 2
