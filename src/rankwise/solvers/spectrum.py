"""The extreme eigenvalues of ``H + αI``, by which gradient descent with momentum sets its pace.

Three estimators (docs/mathematics.md, section 5):

- `power_spectrum`, the paper's Algorithm 1 as it must have been meant. Departs from it as printed in iterating with
  ``X'LX`` instead of ``X'X`` and in running for twenty steps instead of none. Its largest eigenvalue comes from below,
  and twenty shifted steps do not find the smallest: whoever uses it must be able to recover.
- `lanczos_estimate`, the safe one, by a bound that holds with a stated probability over its random start. The Lanczos
  vectors are ``p_j(H)`` times the first, for polynomials that the run knows. They are orthonormal, so the leading
  eigenvector has no more than length 1 among them: the first one's component along it is at most
  ``(Σ_j p_j(κ₁)²)^-1/2``. A random vector hardly ever has a tiny component, and beyond the Ritz values ``p_j`` grows
  fast: that bounds κ₁. (The largest Ritz value plus its residual norm, which bounds *an* eigenvalue, was below the
  largest one in 3 to 5 of 100 runs on evenly spread spectra.)
- `RunningSpectrum`, the on-line one: bounds of a sum whose parts come one after the other. The largest eigenvalue of
  a sum is at most the sum of the parts' largest ones. Parts of one source have much the same leading eigenvector, so
  each starts where the last one ended.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from math import exp, inf, log, pi, sqrt

import numpy as np
import scipy.linalg

from rankwise.arrays import Floats
from rankwise.runtime.memory import fits
from rankwise.solvers.lanczos import Lanczos, basis_bytes
from rankwise.solvers.scales import column_norms

__all__ = ["RunningSpectrum", "Spectrum", "lanczos_estimate", "lanczos_spectrum", "power_spectrum"]

Product = Callable[[Floats], Floats]

_POWER_STEPS = 20  # what the paper prints
_MOST_STEPS = 200
_ACCURACY = 0.0098  # 1 %, less some rounding
_RISK = 1e-4  # that a random vector has too small a component for the bound to hold
_BASIS_SHARE = 0.25  # of the free memory, for the basis of a run
_LOCAL_STEPS = 12  # on one part of a sum
_LOCAL_ACCURACY = 0.05
_FRESH = 0.1  # how much of a part's starting vector is random


@dataclass(frozen=True)
class Spectrum:
    """Estimates of the extreme eigenvalues of ``H + αI``.

    Attributes
    ----------
    largest, smallest : float
    n_iter : int
        Steps of the estimator.
    history : list of (float, float)
        Both estimates after each step.
    """

    largest: float
    smallest: float
    n_iter: int = 0
    history: list[tuple[float, float]] = field(default_factory=list)


@dataclass(frozen=True)
class _Ends:
    """The extreme Ritz values of a Krylov space, and how far from an eigenvalue the largest can be."""

    largest: float
    smallest: float
    residual: float
    top: Floats  # the largest one's vector in the basis of the space


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
        Start half way between it and a random vector, where there is a penalty: what the space then knows about
        ``(H + αI) w = rhs`` is worth more than the few steps that this start takes longer. A random vector's component
        is no likelier to be tiny for what is added to it, so the bound holds with the same probability.

    Returns
    -------
    spectrum : Spectrum
    run : Lanczos
        The space that it was found in.
    """
    start, share = _random(product, (n_features,), alpha, seed), 1.0
    if rhs is not None and alpha > 0 and rhs.any():
        start = rhs / column_norms(rhs) + start / sqrt(n_features)
        share = 1 / float(column_norms(start))
    run = _started(start, _MOST_STEPS)
    history: list[tuple[float, float]] = []
    while True:
        image = product(run.vectors[:, 0])
        if not np.isfinite(image).all():
            return Spectrum(inf, inf), run
        run.advance(image[:, None])
        ends = _ends(run)
        allowed = ends.largest + accuracy * (ends.largest + alpha)
        ended = run.off_diagonal[-1][0] == 0 or run.n_steps >= min(_MOST_STEPS, n_features)
        bound = allowed if ended else _bound(run, ends.largest, allowed, share)
        history.append((bound + alpha, ends.smallest + alpha))
        if bound <= allowed:
            return Spectrum(*history[-1], run.n_steps, history), run


def lanczos_spectrum(
    product: Product, n_features: int, alpha: float, *, accuracy: float = _ACCURACY, seed: int = 0
) -> Spectrum:
    """Return the estimate of `lanczos_estimate` alone, from a random start."""
    return lanczos_estimate(product, n_features, alpha, accuracy=accuracy, seed=seed)[0]


def power_spectrum(
    product: Product, n_features: int, alpha: float, *, n_iter: int = _POWER_STEPS, seed: int = 0
) -> Spectrum:
    """Estimate both ends by power iteration, the smallest on the spectrum shifted by the largest."""
    pair = _random(product, (n_features, 2), alpha, seed)
    pair /= column_norms(pair)
    history: list[tuple[float, float]] = []
    for _ in range(n_iter):
        image = product(pair) + alpha * pair
        if not np.isfinite(image).all():
            return Spectrum(inf, inf)
        largest = float(column_norms(image[:, 0]))
        smallest = float(pair[:, 1] @ image[:, 1])  # the Rayleigh quotient
        history.append((largest, smallest))
        image[:, 1] -= largest * pair[:, 1]
        norm = column_norms(image)
        if not norm.all():
            break  # H + αI is a multiple of the identity, or the largest is the smallest already
        pair = image / norm
    return Spectrum(*history[-1], len(history), history)


class RunningSpectrum:
    """Bounds on the ends of the spectrum of a sum, refreshed with every part.

    Attributes
    ----------
    largest : float
        At least the largest eigenvalue of the sum of the parts so far, where each part's leading eigenvector was found;
        where not, the descent recovers.
    smallest : float
        The sum of the parts' smallest Ritz values: an estimate.
    history : list of (float, float)
        Both after each part.
    """

    def __init__(self, n_features: int, *, seed: int = 0) -> None:
        self.largest = self.smallest = 0.0
        self.history: list[tuple[float, float]] = []
        self._rng = np.random.default_rng(seed)
        self._top = np.zeros(n_features)

    def refresh(self, product: Product) -> None:
        """Add a part, given its products ``H_part v``."""
        n_features = self._top.size
        fresh = self._rng.normal(size=n_features)
        run = _started(self._top + _FRESH * fresh / np.linalg.norm(fresh), _LOCAL_STEPS)
        while True:
            image = product(run.vectors[:, 0])
            if not np.isfinite(image).all():
                self.largest = self.smallest = inf
                return
            run.advance(image[:, None])
            ends = _ends(run)
            settled = run.n_steps > 1 and ends.residual <= _LOCAL_ACCURACY * ends.largest
            if settled or run.off_diagonal[-1][0] == 0 or run.n_steps >= min(_LOCAL_STEPS, n_features):
                break
        self.largest += ends.largest + ends.residual
        self.smallest += max(ends.smallest, 0.0)
        self.history.append((self.largest, self.smallest))
        if run.keep_basis:
            self._top = run.combine(0, ends.top)

    def of(self, alpha: float) -> Spectrum:
        """Return the bounds for ``H + αI``."""
        history = [(largest + alpha, smallest + alpha) for largest, smallest in self.history]
        return Spectrum(self.largest + alpha, self.smallest + alpha, len(history), history)


def _random(product: Product, shape: tuple[int, ...], alpha: float, seed: int) -> Floats:
    """Return random vectors; without a penalty in the range of H, for nothing else ever moves the coefficients."""
    vectors = np.random.default_rng(seed).normal(size=shape)
    image = product(vectors) if alpha == 0 else vectors
    return image if image.any(axis=0).all() and np.isfinite(image).all() else vectors


def _started(vector: Floats, steps: int) -> Lanczos:
    n_bytes = basis_bytes(vector.size, 1, min(steps, vector.size))
    return Lanczos(vector[:, None], keep_basis=fits(n_bytes, _BASIS_SHARE))


def _bound(run: Lanczos, largest: float, allowed: float, share: float) -> float:
    """Return where the polynomials reach the inverse of the component that the start has but for a small risk.

    A component of a random vector of length `share` is about normal with variance share²/n, so it is below
    ``risk share √(π/2n)`` with the probability `risk` at most, whatever it is added to.
    """
    diagonal = [float(a[0]) for a in run.diagonal]
    off_diagonal = [float(beta[0]) for beta in run.off_diagonal]
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


def _ends(run: Lanczos) -> _Ends:
    diagonal = np.array([a[0] for a in run.diagonal])
    off_diagonal = np.array([beta[0] for beta in run.off_diagonal])
    values, vectors = scipy.linalg.eigh_tridiagonal(diagonal, off_diagonal[:-1], check_finite=False)
    residual = float(off_diagonal[-1] * abs(vectors[-1, -1]))
    return _Ends(float(values[-1]), float(values[0]), residual, vectors[:, -1])
