"""The hinge, smoothed just enough: L-BFGS on the Huberised hinge, with a proved gap of the hinge itself.

The Huberised hinge φ_δ rounds the kink of ``max(0, t)`` off over ``0 <= t <= δ``. Its slopes ``a = φ_δ'(t)`` lie
between 0 and 1, so they are feasible dual variables of the *original* problem: ``(1/N) Σ ω a z - ‖g‖²/(4α)`` with
``g = (1/N) X'A'Ωa`` is a lower bound of its minimum, from what the gradient needs anyway.

At the minimum of φ_δ the gap is ``(1/N) Σ ω t (1 - t/δ)`` over the pairs with ``0 < t < δ``: with a density p of pairs
near the kink about ``p δ²/6``. So δ shrinks with the *root* of the gap, and with many pairs the problem hardly becomes
harder.

Each iteration reads the data twice (``X d`` and ``X'u``); the line search moves along scores and reads nothing.
A start from a few steps of RankRLS did not pay: 5 reads for it saved as many. For columns of different scales, and
correlated ones, L-BFGS takes its first guess of the Hessian from `rankwise.solvers.preconditioner`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from rankwise.arrays import Floats
from rankwise.objectives import HingeObjective, HingePoint
from rankwise.pairs.graph import SmoothedHinge
from rankwise.solvers.certificate import LowerBound, StoppingRule, solve_linear_limit
from rankwise.solvers.lbfgs import LbfgsMemory, Trial, search_line
from rankwise.solvers.preconditioner import Curvature, Preconditioner
from rankwise.solvers.solution import Monitor, Solution, Status

__all__ = ["minimise_smoothed"]

_MEMORY = 20  # steps that the quasi-Newton method remembers
_AIM = 0.25  # the share of the gap aimed at that the smoothing may cost in the end
_LARGEST_CUT = 0.1  # of δ at a time
# Times what the preconditioner estimates to remain: with 1, δ falls so fast that a tolerance of 1e-7 is not met; 1e4
# took a quarter more reads than 1 for 1e-3.
_CAUTION = 300.0
_WARM_WIDTH = 0.1  # of the mean margin: δ where a start is given
_NARROWEST = 1e-9  # δ, in units of the mean margin, below which slopes are rounding errors
_NEARLY_ALL = 0.999_999_999  # share of the margins: if so many are violated, the loss may be linear
_MAX_ITER = 10_000
# If neither gap nor slope falls by this share in so many iterations, rounding is to blame.
_PROGRESS, _PATIENCE = 1e-3, 100


@dataclass(frozen=True)
class _Point:
    """Where the search stands: the hinge and its smoothed form at the same scores."""

    hinge: HingePoint
    smooth: SmoothedHinge


def minimise_smoothed(  # noqa: C901, PLR0912, PLR0915 - the steps of one method, in the order of its paper
    objective: HingeObjective,
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
    limit = _MAX_ITER if max_iter is None else max_iter
    reads = objective.n_reads
    scores = objective.zero_scores()
    hinge = objective.at_scores(scores)
    rule = StoppingRule(tol, float(hinge.value), alpha, is_absolute)
    # At 0 every pair curves, by a width of twice the margin. Counted again where it is asked for, as in `newton.py`.
    preconditioner = Preconditioner(
        curvature,
        alpha,
        lambda: objective.at_scores(objective.zero_scores()).smoothed_hessian_diagonal(2 * rule.at_zero),
    )
    coef = np.zeros(objective.n_features) if start is None else start.copy()
    if start is not None:
        scores = objective.scores(coef)
        hinge = objective.at_scores(scores)
    if hinge.offset >= _NEARLY_ALL * rule.at_zero:
        found = solve_linear_limit(objective, rule, objective.pull_back(hinge.score_gradient))
        if found is not None:
            return replace(found, n_reads=objective.n_reads - reads)
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
        value = smooth.value + penalty
        cross, square = float(coef @ direction), float(direction @ direction)

        def at(
            length: float,
            scores: Floats = scores,
            moved: Floats = moved,
            width: float = width,
            penalty: float = penalty,
            cross: float = cross,
            square: float = square,
        ) -> Trial[_Point]:
            hinge = objective.at_scores(scores + length * moved)
            smooth = hinge.smoothed(width)
            return Trial(
                length,
                smooth.value + penalty + alpha * length * (2 * cross + length * square),
                float(smooth.gradient @ moved) + 2 * alpha * (cross + length * square),
                _Point(hinge, smooth),
            )

        # Without any idea of the curvature: where the slope, if it stayed, would use up what there is to gain.
        is_blind = len(memory) == 0 and preconditioner.is_identity
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
        hinge, smooth = trial.point.hinge, trial.point.smooth
        loss_gradient = objective.pull_back(smooth.gradient)
        change = loss_gradient + 2 * alpha * coef - gradient
        memory.add(step, change)
        preconditioner.learn(step, float(step @ change))
    return Solution(
        best,
        status,
        n_iter=len(history) - 1,
        n_reads=objective.n_reads - reads,
        certificate=history[-1],
        gain=history[-1] + decrease,
        history=history,
    )


def _remaining(gradient: Floats, rule: StoppingRule, preconditioner: Preconditioner) -> float:
    if preconditioner.is_identity:
        return rule.gap_of_slope(gradient)
    return _CAUTION * float(gradient @ preconditioner.solve(gradient)) / 2
