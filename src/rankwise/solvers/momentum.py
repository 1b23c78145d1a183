"""Gradient descent with momentum, and the estimates of the spectrum that set its steps.

The extreme eigenvalues of ``H + αI``, by which gradient descent with momentum sets its pace.

Three estimators (docs/mathematics.md, section 5):

- `power_spectrum`, the paper's Algorithm 1 as it must have been meant. Departs from it as printed in iterating with
  ``X'LX`` instead of ``X'X`` and in running for twenty steps instead of none. Its largest eigenvalue comes from below,
  and twenty shifted steps do not find the smallest: its callers must be able to recover.
- `lanczos_estimate`, the safe one, by a bound that holds with a stated probability over its random start. The Lanczos
  vectors are ``p_j(H)`` times the first, for polynomials that the run knows. They are orthonormal, so the leading
  eigenvector has no more than length 1 among them: the first one's component along it is at most
  ``(Σ_j p_j(κ₁)²)^-1/2``. A random vector hardly ever has a tiny component, and beyond the Ritz values ``p_j`` grows
  fast: that bounds κ₁. (The largest Ritz value plus its residual norm, which bounds *an* eigenvalue, was below the
  largest one in 3 to 5 of 100 runs on evenly spread spectra.)
- `block_spectrum`, the on-line one: bounds of a sum whose parts come one after the other. The largest eigenvalue of
  a sum is at most the sum of the parts' largest ones. Parts of one source have much the same leading eigenvector, so
  each starts where the last one ended.

Gradient descent with momentum (the eGDM paper): one product ``X'LXv`` an iteration, and no inner products.

    w ← w - (1 - μ) η ((H + αI) w - b) + μ (w - w_before)

*GDM* takes η and μ as given. The paper leaves them open; here μ is 0.9, and η the largest with which no eigenvalue is
slower than it need be, under a bound of the spectrum that takes no iteration: its trace. *eGDM* sets both by the ends
κ₁ and κ_n of the spectrum, equation 11.

Departs from the paper's Algorithm 2 as printed, which does not converge: the step starts from ``w`` (missing there),
and the spectrum is that of ``X'LX + αI``. Added to it:

- A step that is too long makes the residual grow without end. Its growth from one iteration to the next tells
  the eigenvalue to blame (equation 10, with its sign corrected), and the descent starts again from its best
  point at the pace that this eigenvalue allows. The returned point has never diverged.
- Where κ₁ is bounded by Lanczos, the descent starts at the Galerkin solution in the space that the bound was found in.
- An overestimated κ_n is stable, but slow: the residual then falls more slowly than √μ an iteration. How much more
  tells which eigenvalue is left, and κ_n is lowered to it, never below α.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from math import ceil, exp, inf, isfinite, log, pi, sqrt
from typing import NamedTuple

import numpy as np
import scipy.linalg

from rankwise.arrays import Floats
from rankwise.objectives import QuadraticObjective, parts_of
from rankwise.runtime.memory import fits
from rankwise.solvers.krylov import Lanczos, basis_bytes, dots, relative_residual
from rankwise.solvers.solution import Monitor, Solution, Status

Product = Callable[[Floats], Floats]


class Spectrum(NamedTuple):
    """Estimates of the extreme eigenvalues of ``H + αI``."""

    largest: float
    smallest: float


_POWER_STEPS = 20  # as the paper prints
_MOST_STEPS = 200
_ACCURACY = 0.0098  # 1 %, less some rounding
_RISK = 1e-4  # that a random vector has too small a component for the bound to hold
_BASIS_SHARE = 0.25  # of the free memory, for the basis of a run
_LOCAL_STEPS = 12  # on one part of a sum
_LOCAL_ACCURACY = 0.05
_FRESH = 0.1  # how much of a part's starting vector is random


def lanczos_estimate(
    product: Product,
    n_features: int,
    alpha: float,
    *,
    accuracy: float = _ACCURACY,
    seed: int = 0,
    rhs: Floats | None = None,
) -> tuple[Spectrum, Lanczos]:
    """Bound the largest eigenvalue from above, closely; estimate the smallest, from above too.

    Parameters
    ----------
    product : callable
        Applies ``H`` to a vector.
    accuracy : float
        Stop when the bound is at most this share above the eigenvalue.
    rhs : (features,) float64, optional
        If there is a penalty, start half way between it and a random vector: the space then contains a good solution
        of ``(H + αI) w = rhs``, which saves more steps than this start costs. Adding a fixed vector does not make
        a random vector's component more likely to be tiny, so the bound holds with the same probability.

    Returns
    -------
    spectrum : Spectrum
    run : Lanczos
        The space that it was found in.
    """
    start, share = _random(product, (n_features,), alpha, seed), 1.0
    if rhs is not None and alpha > 0 and rhs.any():
        start = rhs / np.linalg.norm(rhs) + start / sqrt(n_features)
        share = 1 / float(np.linalg.norm(start))
    run = _started(start, _MOST_STEPS)
    for ends in _grow(run, product, _MOST_STEPS):
        allowed = ends.largest + accuracy * (ends.largest + alpha)
        bound = allowed if ends.is_last else _bound(run, ends.largest, allowed, share)
        if bound <= allowed:
            break
    return Spectrum(bound + alpha, ends.smallest + alpha), run


def power_spectrum(
    product: Product, n_features: int, alpha: float, *, n_iter: int = _POWER_STEPS, seed: int = 0
) -> Spectrum:
    """Estimate both ends by power iteration, the smallest on the spectrum shifted by the largest."""
    pair = _random(product, (n_features, 2), alpha, seed)
    pair /= np.linalg.norm(pair, axis=0)
    for _ in range(n_iter):
        image = product(pair) + alpha * pair
        largest = float(np.linalg.norm(image[:, 0]))
        smallest = float(pair[:, 1] @ image[:, 1])  # the Rayleigh quotient
        image[:, 1] -= largest * pair[:, 1]
        norm = np.linalg.norm(image, axis=0)
        if not norm.all():
            break  # H + αI is a multiple of the identity, or the largest is the smallest already
        pair = image / norm
    return Spectrum(largest, smallest)


def block_spectrum(
    parts: Iterable[QuadraticObjective], n_features: int, alpha: float, *, seed: int = 0
) -> Spectrum:
    """Bound the ends of the spectrum of a sum, whose parts are read one after the other.

    The largest eigenvalue is bounded where each part's leading eigenvector was found; where not, the descent recovers.
    The smallest is the sum of the parts' smallest Ritz values: an estimate.
    """
    rng, top = np.random.default_rng(seed), np.zeros(n_features)
    largest = smallest = alpha
    for part in parts:
        fresh = rng.normal(size=n_features)
        run = _started(top + _FRESH * fresh / np.linalg.norm(fresh), _LOCAL_STEPS)
        for ends in _grow(run, part.product, _LOCAL_STEPS):
            if run.n_steps > 1 and ends.residual <= _LOCAL_ACCURACY * ends.largest:
                break
        largest += ends.largest + ends.residual
        smallest += max(ends.smallest, 0.0)
        if run.keep_basis:
            top = run.combine(0, ends.top)
    return Spectrum(largest, smallest)


class _Ends(NamedTuple):
    """The extreme Ritz values of a Krylov space, and how far from an eigenvalue the largest can be."""

    largest: float
    smallest: float
    residual: float
    top: Floats  # the largest one's vector in the basis of the space
    is_last: bool


def _grow(run: Lanczos, product: Product, most: int) -> Iterator[_Ends]:
    """Take steps, and yield what each shows of the spectrum."""
    is_last = False
    while not is_last:
        image = product(run.vectors[:, 0])
        run.advance(image[:, None])
        a, beta = run.tridiagonal(0)
        values, vectors = scipy.linalg.eigh_tridiagonal(a, beta[:-1])
        is_last = beta[-1] == 0 or run.n_steps >= min(most, image.size)
        residual = float(beta[-1] * abs(vectors[-1, -1]))
        yield _Ends(float(values[-1]), float(values[0]), residual, vectors[:, -1], is_last)


def _random(product: Product, shape: tuple[int, ...], alpha: float, seed: int) -> Floats:
    """Return random vectors; without a penalty in the range of H, for nothing else ever moves the coefficients."""
    vectors = np.random.default_rng(seed).normal(size=shape)
    image = product(vectors) if alpha == 0 else vectors
    return image if image.any(axis=0).all() else vectors


def _started(vector: Floats, steps: int) -> Lanczos:
    n_bytes = basis_bytes(vector.size, 1, min(steps, vector.size))
    return Lanczos(vector[:, None], keep_basis=fits(n_bytes, _BASIS_SHARE))


def _bound(run: Lanczos, largest: float, allowed: float, share: float) -> float:
    """Return where the polynomials reach the inverse of the component that the start has but for a small risk.

    A component of a random vector of length `share` is about normal with variance share²/n, so it is below
    ``risk share √(π/2n)`` with the probability `risk` at most, whatever it is added to.
    """
    diagonal, off_diagonal = (part.tolist() for part in run.tridiagonal(0))
    wanted = 0.5 * log(2 * run.vectors.shape[0] / pi) - log(_RISK) - log(share)

    def reaches(x: float) -> bool:
        logs, ratio = [0.0], x - diagonal[0]
        for step, beta in enumerate(off_diagonal):
            if ratio <= 0:
                return False  # rounding, at a Ritz value
            logs.append(logs[-1] + log(ratio / beta))
            if step + 1 < len(diagonal):
                ratio = x - diagonal[step + 1] - beta * (beta / ratio)
        largest = max(logs)
        return largest + 0.5 * log(sum(exp(2 * (value - largest)) for value in logs)) >= wanted

    low, high = largest, allowed
    while not reaches(high):
        low, high = high, high + 2 * (high - low)
    for _ in range(20):
        middle = (low + high) / 2
        low, high = (low, middle) if reaches(middle) else (middle, high)
    return high


MOMENTUM = 0.9

_MOST_ITERATIONS = 100_000
_MOST_RESTARTS = 100
_OVERFLOW = 1e6  # divisor of a step that overflows
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
        step = (1 + sqrt(momentum)) ** 2 / bound if bound > 0 else 1.0
    else:
        step = (1 - momentum) * learning_rate
    return _Descent(objective, alpha, _Pace(step, momentum)).run(tol, max_iter, monitor)


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
    n_features, start = objective.n_features, None
    if estimator == "lanczos":
        # Several outputs have several spaces, and the estimate has one: it is started at random.
        columns = objective.rhs.reshape(n_features, -1)
        toward = columns[:, 0] if columns.shape[1] == 1 else None
        spectrum, run = lanczos_estimate(objective.product, n_features, alpha, seed=seed, rhs=toward)
        # Whoever watches chooses among the early iterates, which that start would leave out.
        if run.keep_basis and monitor is None:
            start = run.galerkin_solution(objective.rhs, alpha)
    elif estimator == "power":
        spectrum = power_spectrum(objective.product, n_features, alpha, seed=seed)
    else:
        spectrum = block_spectrum(parts_of(objective), n_features, alpha, seed=seed)
    return _Descent(objective, alpha, spectrum).run(tol, max_iter, monitor, start)


class _Descent:
    """The iteration, and its running estimates of the spectrum."""

    def __init__(self, objective: QuadraticObjective, alpha: float, pace: _Pace | Spectrum) -> None:
        self._objective, self._alpha, self._rhs = objective, alpha, objective.rhs
        self.history: list[float] = []
        self._n_restarts = 0
        self._spectrum: Spectrum | None = None
        if isinstance(pace, _Pace):
            self._pace = pace
        else:
            largest, smallest = pace
            is_known = smallest > _VANISHING * largest
            self._set_spectrum(largest, smallest if is_known else _GUESS * largest)

    @np.errstate(over="ignore", invalid="ignore")  # a step that is far too long is noticed below
    def run(  # noqa: C901 - the steps of one method, in the order of its paper
        self, tol: float, max_iter: int | None, monitor: Monitor | None, start: Floats | None = None
    ) -> Solution:
        """Descend, from 0 or a start that is better."""
        coef, gradient = np.zeros_like(self._rhs), -self._rhs
        if start is not None:
            at_start = self._gradient(start)
            if self._error(at_start) < self._error(gradient):
                coef, gradient = start, at_start
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
                if self._n_restarts >= _MOST_RESTARTS:
                    status = Status.STAGNATED
                    break
                self._slow_down(best_error, since)
                coef, previous, gradient = best, best, best_gradient
                since = idle = 0
            elif is_idle:
                status = Status.STAGNATED
            elif since >= 2 * self._window and best_error > self._rounding(best) and self._lags_behind():
                since = 0
        return Solution(best, status, n_iter=len(self.history), certificate=best_error, history=self.history)

    def _gradient(self, coef: Floats) -> Floats:
        gradient: Floats = self._objective.product(coef) + self._alpha * coef - self._rhs
        return gradient

    def _error(self, gradient: Floats) -> float:
        """Return the relative residual, the largest over the outputs."""
        ratio = relative_residual(gradient, self._rhs)
        return ratio if isfinite(ratio) else inf

    def _rounding(self, coef: Floats) -> float:
        """Return about the smallest relative residual there: products have no more digits."""
        largest = (1 + self._pace.rate) ** 2 / self._pace.step
        return 4 * float(np.finfo(np.float64).eps) * self._error(largest * coef)

    def _shown(self, coef: Floats, gradient: Floats) -> Floats:
        """Return an iterate as it is or, where it is worse than 0, shortened: it ranks as it did, and is bounded."""
        pull = dots(coef, self._rhs)
        curvature = dots(coef, gradient + self._rhs)  # w'(H + αI)w
        is_worse = ~(curvature <= 2 * pull)
        best = np.divide(
            pull, curvature, out=np.zeros_like(pull), where=(curvature > 0) & np.isfinite(curvature)
        )
        shown = coef * np.where(is_worse, np.maximum(best, 0.0), 1.0)
        return np.nan_to_num(shown, nan=0.0, posinf=0.0, neginf=0.0)

    def _set_spectrum(self, largest: float, smallest: float) -> None:
        # H = 0, or nothing but rounding, which may even be negative: any pace will do.
        largest = largest if largest > 0 else 1.0
        smallest = smallest if 0 < smallest <= largest else largest
        self._spectrum = Spectrum(largest, smallest)
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
        self._n_restarts += 1
        slower = self._pace.slower(self.history[-1] / before)
        if self._spectrum is None:
            self._pace = slower
            return
        # (1 + √μ)² = step κ₁ at the best pace: what the step may be says what κ₁ is.
        self._set_spectrum((1 + slower.rate) ** 2 / slower.step, self._spectrum.smallest)

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
        self._set_spectrum(self._spectrum.largest, smallest)
        return True
