"""Gradient descent with momentum (the eGDM paper): one product ``X'LXv`` an iteration, and no inner products.

    w ← w - (1 - μ) η ((H + αI) w - b) + μ (w - w_before)

*GDM* takes η and μ as given. The paper leaves them open; here μ is 0.9, and η the largest with which no eigenvalue is
slower than it need be, under a bound of the spectrum that takes no iteration: its trace. *eGDM* sets both by the ends
κ₁ and κ_n of the spectrum, equation 11.

Departs from the paper's Algorithm 2 as printed, which does not converge: the step starts from ``w`` (missing there),
and the spectrum is that of ``X'LX + αI`` (see `rankwise.solvers.spectrum`). Added to it:

- A step that is too long makes the residual grow without end. Its growth from one iteration to the next tells
  the eigenvalue to blame (equation 10, with its sign corrected), and the descent starts again from its best
  point at the pace that this eigenvalue allows. What is returned has never diverged.
- Where κ₁ is bounded by Lanczos, the descent starts at the Galerkin solution in the space that the bound was found
  in, which takes no product.
- An overestimated κ_n is stable, but slow: the residual then falls more slowly than √μ an iteration. How much more
  tells which eigenvalue is left, and κ_n is lowered to it, never below α.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import ceil, exp, inf, isfinite, log, sqrt

import numpy as np

from rankwise.arrays import Floats
from rankwise.objectives import QuadraticObjective
from rankwise.objectives.parts import parts_of
from rankwise.solvers.scales import is_out_of_range, powers_of_two
from rankwise.solvers.solution import Monitor, Solution, Status
from rankwise.solvers.spectrum import RunningSpectrum, Spectrum, lanczos_estimate, power_spectrum

__all__ = ["MOMENTUM", "estimated_descent", "gradient_descent"]

MOMENTUM = 0.9

_MOST_ITERATIONS = 100_000
_MOST_RESTARTS = 100
_OVERFLOW = 1e6  # what a step is divided by that leads beyond all numbers
_IDLE = 500  # iterations without a new best point, after which rounding is to blame
_VANISHING = 1e-10  # κ_n / κ₁ below which an estimate is of an eigenvalue 0, in whose direction nothing pulls
_GUESS = 0.01  # κ_n / κ₁ where nothing is known: the descent itself corrects it


@dataclass(frozen=True)
class _Pace:
    """How far a step goes: ``step = (1 - μ) η``."""

    step: float
    momentum: float

    @property
    def rate(self) -> float:
        """The factor an iteration that no eigenvalue in the planned range exceeds."""
        return sqrt(self.momentum)

    def eigenvalue_of(self, factor: float) -> float:
        """Return the eigenvalue whose component changes by a (real) factor an iteration, from equation 10."""
        return (1 + self.momentum - factor - self.momentum / factor) / self.step

    def slower(self, growth: float) -> _Pace:
        """Return a pace that is stable where this one grows by a factor an iteration, with alternating signs."""
        if not isfinite(growth):
            return replace(self, step=self.step / _OVERFLOW)
        guilty = self.eigenvalue_of(-max(growth, 1.0))
        return replace(self, step=min(self.step / 1.1, (1 + self.rate) ** 2 / (1.05 * guilty)))


@dataclass(frozen=True)
class _Start:
    """A point, and its gradient, which took no product."""

    coef: Floats
    gradient: Floats


def _best_pace(largest: float, smallest: float) -> _Pace:
    root = sqrt(largest / smallest)
    momentum = ((root - 1) / (root + 1)) ** 2
    return _Pace((1 - momentum) / (sqrt(largest) * sqrt(smallest)), momentum)


def gradient_descent(
    objective: QuadraticObjective,
    alpha: float,
    *,
    learning_rate: float | None = None,
    momentum: float = MOMENTUM,
    tol: float = 1e-5,
    max_iter: int | None = None,
    monitor: Monitor | None = None,
) -> Solution:
    """GDM: solve ``(H + αI) w = b`` with a fixed η and μ.

    Parameters
    ----------
    learning_rate : float, optional
        η. By default ``(1 + √μ)² / ((1 - μ) κ)`` with κ the trace of ``H + αI`` over the columns that matter, which no
        eigenvalue exceeds. Too large a value is found out, and shrunk.
    momentum : float
        μ, at least 0 and below 1.
    monitor : Monitor, optional
        Told every iterate and its relative residual; may stop. A point that is worse than ``w = 0``, as momentum
        has some on its way and divergence nothing else, is shown at the length at which it is best.
    """
    if learning_rate is None:
        bound = float(objective.diagonal().sum()) + alpha
        if is_out_of_range(bound, objective.rhs):
            return Solution(np.zeros_like(objective.rhs), Status.OUT_OF_RANGE, certificate=inf)
        step = (1 + sqrt(momentum)) ** 2 / bound if bound > 0 else 1.0
    else:
        step = (1 - momentum) * learning_rate
    return _Descent(objective, alpha, _Pace(step, momentum), None).run(tol, max_iter, monitor=monitor)


def estimated_descent(
    objective: QuadraticObjective,
    alpha: float,
    *,
    estimator: str = "lanczos",
    tol: float = 1e-5,
    max_iter: int | None = None,
    seed: int = 0,
    monitor: Monitor | None = None,
) -> Solution:
    """eGDM: solve ``(H + αI) w = b`` with η and μ from the spectrum.

    Parameters
    ----------
    estimator : {"lanczos", "power", "blocks"}
        The safe one; the paper's; or the on-line one, which reads the data once, a block of rows at a time.
    monitor : Monitor, optional
        As in `gradient_descent`.
    """
    before = objective.n_products
    spectrum, start = _estimate(objective, alpha, estimator, seed)
    if is_out_of_range(spectrum.largest, objective.rhs):
        return Solution(np.zeros_like(objective.rhs), Status.OUT_OF_RANGE, certificate=inf)
    if monitor is not None:
        start = None  # whoever watches chooses among the early iterates, which that start would leave out
    solution = _Descent(objective, alpha, None, spectrum).run(tol, max_iter, start, monitor)
    return replace(solution, n_products=objective.n_products - before)


def _estimate(
    objective: QuadraticObjective, alpha: float, estimator: str, seed: int
) -> tuple[Spectrum, _Start | None]:
    """Return the spectrum, and where to start where that is better than 0."""
    n_features, rhs = objective.n_features, objective.rhs
    if estimator == "lanczos":
        # Several outputs have several spaces, and the estimate has one: it is started at random.
        columns = rhs.reshape(n_features, -1)
        toward = columns[:, 0] if columns.shape[1] == 1 else None
        spectrum, run = lanczos_estimate(objective.product, n_features, alpha, seed=seed, rhs=toward)
        if not run.keep_basis or not isfinite(spectrum.largest):
            return spectrum, None
        coef, residual = run.restricted_solution(rhs, alpha)
        return spectrum, _Start(coef, -residual)
    if estimator == "power":
        return power_spectrum(objective.product, n_features, alpha, seed=seed), None
    running = RunningSpectrum(n_features, seed=seed)
    for part in parts_of(objective):
        running.refresh(part.product)
    return running.of(alpha), None


class _Descent:
    """The iteration, and what it learns about the spectrum on its way."""

    def __init__(
        self, objective: QuadraticObjective, alpha: float, pace: _Pace | None, spectrum: Spectrum | None
    ) -> None:
        self._objective, self._alpha = objective, alpha
        self._unit = powers_of_two(objective.rhs)  # the squares of residuals are then in range
        self._rhs = objective.rhs / self._unit
        self._norm = np.linalg.norm(self._rhs, axis=0)
        self.history: list[float] = []
        self.n_restarts = 0
        self._spectrum: Spectrum | None = None
        if spectrum is not None:
            is_known = spectrum.smallest > _VANISHING * spectrum.largest
            guess = spectrum if is_known else replace(spectrum, smallest=_GUESS * spectrum.largest)
            self._set_spectrum(guess)
        if pace is not None:
            self._pace = pace

    @np.errstate(over="ignore", invalid="ignore")  # a step that is far too long is noticed below
    def run(  # noqa: C901 - the steps of one method, in the order of its paper
        self,
        tol: float,
        max_iter: int | None,
        start: _Start | None = None,
        monitor: Monitor | None = None,
    ) -> Solution:
        """Descend, from 0 unless told where to start."""
        before = self._objective.n_products
        coef, gradient = np.zeros_like(self._rhs), -self._rhs
        if start is not None and self._error(start.gradient / self._unit) < self._error(gradient):
            coef, gradient = start.coef / self._unit, start.gradient / self._unit
            if self._error(gradient) <= tol:
                gradient = self._gradient(coef)  # a recurrence that promises so much is asked again
        best, best_gradient, previous = coef, gradient, coef
        best_error = error = self._error(gradient)
        idle, since = 0, 0  # iterations since the best point, and since the pace was set
        limit = _MOST_ITERATIONS if max_iter is None else max_iter
        status = Status.CONVERGED if error <= tol else Status.MAX_ITER
        while status is Status.MAX_ITER and len(self.history) < limit:
            pace = self._pace
            following = coef - pace.step * gradient + pace.momentum * (coef - previous)
            gradient = self._gradient(following)
            coef, previous = following, coef
            error = self._error(gradient)
            self.history.append(error)
            since += 1
            idle += 1
            if error < best_error:
                best, best_gradient, best_error, idle = coef, gradient, error, 0
            if monitor is not None and monitor(self._shown(coef, gradient), error, len(self.history)):
                status = Status.STOPPED
                break
            is_idle = idle >= _IDLE + 10 * self._window
            if error <= tol:
                status = Status.CONVERGED
            # An eigenvalue just beyond the pace may neither grow nor fall.
            elif self._diverges(error, best_error, since) or (is_idle and best_error > self._rounding(best)):
                if self.n_restarts >= _MOST_RESTARTS:
                    status = Status.STAGNATED if isfinite(error) else Status.OUT_OF_RANGE
                    break
                self._slow_down(best_error, since)
                coef, previous, gradient = best, best, best_gradient
                since = idle = 0
            elif is_idle:
                status = Status.STAGNATED
            elif since >= 2 * self._window and best_error > self._rounding(best) and self._lags_behind():
                since = 0
        best = best * self._unit
        return Solution(
            best,
            status if np.isfinite(best).all() else Status.OUT_OF_RANGE,
            n_iter=len(self.history),
            n_products=self._objective.n_products - before,
            certificate=best_error,
            history=self.history,
            spectrum=self._spectrum,
            n_restarts=self.n_restarts,
        )

    def _gradient(self, coef: Floats) -> Floats:
        gradient: Floats = self._objective.product(coef) + self._alpha * coef - self._rhs
        return gradient

    def _error(self, gradient: Floats) -> float:
        """Return the relative residual, the largest over the outputs."""
        size = np.linalg.norm(gradient, axis=0)
        ratio = float(
            np.max(np.divide(size, self._norm, out=np.zeros_like(size), where=self._norm > 0), initial=0.0)
        )
        return ratio if isfinite(ratio) else inf

    def _rounding(self, coef: Floats) -> float:
        """Return about the smallest relative residual there: products have no more digits."""
        largest = (1 + self._pace.rate) ** 2 / self._pace.step
        return 4 * float(np.finfo(np.float64).eps) * self._error(largest * coef)

    def _shown(self, coef: Floats, gradient: Floats) -> Floats:
        """Return an iterate as it is or, where it is worse than 0, shortened: it ranks as it did, and is bounded."""
        pull = np.einsum("i...,i...->...", coef, self._rhs)
        curvature = np.einsum("i...,i...->...", coef, gradient + self._rhs)  # w'(H + αI)w
        is_worse = ~(curvature <= 2 * pull)
        best = np.divide(
            pull, curvature, out=np.zeros_like(pull), where=(curvature > 0) & np.isfinite(curvature)
        )
        shown = coef * np.where(is_worse, np.maximum(best, 0.0), 1.0)
        return np.nan_to_num(shown * self._unit, nan=0.0, posinf=0.0, neginf=0.0)

    def _set_spectrum(self, spectrum: Spectrum) -> None:
        # H = 0, or nothing but rounding, which may even be negative: any pace will do.
        largest = spectrum.largest if spectrum.largest > 0 else 1.0
        smallest = spectrum.smallest if 0 < spectrum.smallest <= largest else largest
        self._spectrum = replace(spectrum, largest=largest, smallest=smallest)
        self._pace = _best_pace(largest, smallest)

    @property
    def _window(self) -> int:
        """Iterations in which the residual should fall twentyfold."""
        return ceil(3 / (1 - self._pace.rate))

    def _diverges(self, error: float, best_error: float, since: int) -> bool:
        # Momentum lets the residual rise by about the root of the condition number before it falls, but not later.
        if not error <= 100 / (1 - self._pace.rate) * best_error:
            return True
        return since >= 2 * self._window and error > 2 * best_error and self._fall() > 0

    def _fall(self) -> float:
        """Return by how much the logarithm of the residual changed an iteration, over the last window."""
        window = self._window
        return log(self.history[-1] / self.history[-1 - window]) / window

    def _slow_down(self, best_error: float, since: int) -> None:
        before = self.history[-2] if since > 1 else best_error
        self.n_restarts += 1
        slower = self._pace.slower(self.history[-1] / before)
        if self._spectrum is None:
            self._pace = slower
            return
        # (1 + √μ)² = step κ₁ at the best pace: what the step may be says what κ₁ is.
        largest = (1 + slower.rate) ** 2 / slower.step
        self._set_spectrum(replace(self._spectrum, largest=largest))

    def _lags_behind(self) -> bool:
        """Tell whether the pace was changed because the last window fell far behind the plan."""
        if self._spectrum is None:
            return False
        fall = self._fall()
        floor = max(self._alpha, np.finfo(np.float64).eps * self._spectrum.largest)
        planned = log(max(self._pace.rate, np.finfo(np.float64).tiny))  # one eigenvalue: at once
        if fall <= 0.5 * planned or self._spectrum.smallest <= floor * (1 + 1e-9):
            return False
        left = self._pace.eigenvalue_of(exp(fall))
        smallest = max(floor, min(0.8 * left, 0.5 * self._spectrum.smallest), 0.05 * self._spectrum.smallest)
        self._set_spectrum(replace(self._spectrum, smallest=smallest))
        return True
