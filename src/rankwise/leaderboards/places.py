"""Places, tiers and the probability of being first."""

from __future__ import annotations

import numpy as np
import scipy.linalg as la
from scipy.optimize import minimize_scalar
from scipy.special import stdtr

from rankwise.arrays import Floats, Ints
from rankwise.leaderboards.contest import Contest, Fit
from rankwise.metrics import holm

_DRAWS = 1000
_PENALTIES = (1e-3, 1e5)
_LOOSE = 1e-3  # the last step of fits that are compared


def shrink(contest: Contest, fit: Fit, covariance: Floats) -> Fit:
    """Fit with the penalty of the largest marginal likelihood, the log-likelihood divided by the design effect.

    Strengths have a normal prior of variance 1/penalty; coefficients of contest columns a flat one. Directions that
    the battles do not measure contribute the same to every penalty.
    """
    n = contest.n_items
    expected = contest.sandwich(fit, fit.hessian)  # if the model is right
    effect = max(float(np.trace(covariance[:n, :n]) / np.trace(expected[:n, :n])), 1e-3)
    last = fit

    def negative(log_penalty: float) -> float:
        nonlocal last
        penalty = float(np.exp(log_penalty))
        last = contest.fit(penalty, last.theta, effect, _LOOSE)
        matrix, s = last.hessian / effect, last.theta[:n]
        matrix[:n, :n] += penalty * contest.prior
        half = float(np.linalg.slogdet(matrix)[1] - n * log_penalty) / 2
        return last.rates.loss / effect + penalty / 2 * float(s @ contest.prior @ s) + half

    bounds = (np.log(_PENALTIES[0]), np.log(_PENALTIES[1]))
    found = minimize_scalar(negative, bounds=bounds, method="bounded", options={"xatol": 0.1})
    return contest.fit(float(np.exp(found.x)), last.theta, effect)


def rank_in(values: Floats, component: Ints) -> Ints:
    """Return places from 1 along the last axis, largest value first, separately in each component."""
    order = np.lexsort((-values, np.broadcast_to(component, values.shape)), axis=-1)
    counts = np.bincount(component)
    place = np.concatenate([np.arange(1, count + 1) for count in counts])
    places = np.empty(values.shape, np.int64)
    np.put_along_axis(places, order, np.broadcast_to(place, order.shape), -1)
    return places


def draw_places(strength: Floats, covariance: Floats, component: Ints, degrees: float, seed: int) -> Ints:
    """Return the places of all items in each of 1,000 draws around shrunken strengths."""
    rng = np.random.default_rng(seed)
    values, vectors = la.eigh(covariance)
    noise = rng.normal(size=(_DRAWS, values.size)) @ (vectors * np.sqrt(np.maximum(values, 0))).T
    if np.isfinite(degrees):
        noise /= np.sqrt(rng.chisquare(degrees, size=(_DRAWS, 1)) / degrees)
    return rank_in(strength + noise, component)


def satterthwaite(variance: Floats, clustered: Floats, degrees: float) -> Floats:
    """Return degrees of freedom of variances of which a part has some, from clusters, and the rest counts as known."""
    share = np.divide(clustered, variance, out=np.zeros(variance.shape), where=variance > 0)
    return degrees / np.maximum(share, 1e-6) ** 2


def variances(covariance: Floats, a: Ints, b: Ints) -> Floats:
    """Return the variances of differences of items."""
    own = covariance.diagonal()
    return np.maximum(own[a] + own[b] - 2 * covariance[a, b], 0)


def p_values(
    strength: Floats, covariance: Floats, clustered: Floats, component: Ints, degrees: float
) -> Floats:
    """Return two-sided p-values of all differences; 1 between components and of an item with itself."""
    a, b = np.ogrid[: strength.size, : strength.size]
    variance = variances(covariance, a, b)
    own_degrees = satterthwaite(variance, variances(clustered, a, b), degrees)
    known = (component[:, None] == component) & (variance > 0) & (a != b)
    gap = np.abs(strength[:, None] - strength)
    ratio = np.divide(gap, np.sqrt(variance), out=np.zeros(gap.shape), where=known)
    p: Floats = 2 * stdtr(own_degrees, -ratio)  # the normal distribution for infinite degrees
    return p


def guaranteed_places(strength: Floats, p: Floats, component: Ints, error: float) -> tuple[Ints, Ints]:
    """Return the first and last place of each item by Holm's procedure over its own differences."""
    low, high = np.ones(strength.size, np.int64), np.bincount(component)[component]
    for item in range(strength.size):
        others = np.flatnonzero((component == component[item]) & (np.arange(strength.size) != item))
        different = others[holm(p[item, others]) <= error]
        low[item] += (strength[different] > strength[item]).sum()
        high[item] -= (strength[different] < strength[item]).sum()
    return low, high


def tiers(strength: Floats, p: Floats, component: Ints, error: float) -> Ints:
    """Return tiers: one more than the highest tier of the items that are significantly better (Holm over all pairs)."""
    a, b = np.triu_indices(strength.size, 1)
    inside = component[a] == component[b]
    a, b = a[inside], b[inside]
    different = np.zeros(p.shape, bool)
    different[a, b] = holm(p[a, b]) <= error
    different |= different.T
    tier = np.ones(strength.size, np.int64)
    for item in np.argsort(-strength, kind="stable"):
        better = different[item] & (strength > strength[item])
        tier[item] = 1 + tier[better].max(initial=0)
    return tier
