"""Places, tiers and the probability of being first."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.linalg as la
from scipy import stats
from scipy.optimize import minimize_scalar

from rankwise.arrays import Bools, Floats, Ints
from rankwise.leaderboards.contest import Contest, Fit

__all__ = ["Shrunk", "draw_places", "guaranteed_places", "p_values", "rank_in", "shrink", "tiers"]

_DRAWS = 1000
_PENALTIES = (1e-3, 1e5)


@dataclass
class Shrunk:
    """Strengths under the penalty with the largest marginal likelihood, and their posterior covariance."""

    strength: Floats
    covariance: Floats
    penalty: float


def shrink(contest: Contest, fit: Fit, covariance: Floats) -> Shrunk:
    """Choose the penalty of places by marginal likelihood, with the log-likelihood divided by the design effect.

    Strengths have a normal prior of variance 1/penalty; coefficients of contest columns a flat one. Directions that
    the battles do not measure contribute the same to every penalty.
    """
    n = contest.n_items
    model = contest.model_covariance(fit)
    effect = max(float(np.trace(covariance[:n, :n]) / max(np.trace(model[:n, :n]), 1e-300)), 1e-3)
    best: dict[str, Fit] = {"last": fit}

    def negative(log_penalty: float) -> float:
        penalty = float(np.exp(log_penalty))
        found = contest.fit(penalty, best["last"].theta, effect)
        best["last"] = found
        matrix = found.hessian / effect
        at = np.arange(contest.n_penalised)
        matrix[at, at] += penalty
        determinant = float(np.linalg.slogdet(matrix)[1])
        kept = found.theta[: contest.n_penalised]
        return (
            found.rates.loss / effect
            + 0.5 * penalty * float(kept @ kept)
            - 0.5 * contest.n_penalised * log_penalty
            + 0.5 * determinant
        )

    low, high = np.log(_PENALTIES)
    found = minimize_scalar(negative, bounds=(low, high), method="bounded", options={"xatol": 0.05})
    penalty = float(np.exp(found.x))
    chosen = contest.fit(penalty, best["last"].theta, effect)
    expand = (contest.centring() @ contest.expand())[:n]
    return Shrunk(expand @ chosen.theta, contest.model_covariance(chosen)[:n, :n], penalty)


def rank_in(values: Floats, component: Ints) -> Ints:
    """Return places from 1 along the last axis, largest value first, separately in each component."""
    places = np.empty(values.shape, np.int64)
    for one in range(int(component.max()) + 1):
        members = np.flatnonzero(component == one)
        order = np.argsort(-values[..., members], axis=-1, kind="stable")
        own = np.empty(order.shape, np.int64)
        np.put_along_axis(own, order, np.broadcast_to(np.arange(1, members.size + 1), order.shape), -1)
        places[..., members] = own
    return places


def draw_places(shrunk: Shrunk, component: Ints, degrees: float, rng: np.random.Generator) -> Ints:
    """Return the places of all items in each of 1,000 draws around the shrunk strengths."""
    values, vectors = la.eigh(shrunk.covariance)
    factor = vectors * np.sqrt(np.maximum(values, 0))
    noise = rng.normal(size=(_DRAWS, values.size)) @ factor.T
    if np.isfinite(degrees):
        noise /= np.sqrt(rng.chisquare(degrees, size=(_DRAWS, 1)) / degrees)
    return rank_in(shrunk.strength + noise, component)


def p_values(strength: Floats, covariance: Floats, component: Ints, degrees: float) -> Floats:
    """Return two-sided p-values of all differences; 1 between components and of an item with itself."""
    own = covariance.diagonal()
    variance = np.maximum(own[:, None] + own - 2 * covariance, 0)
    gap = np.abs(strength[:, None] - strength)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(variance > 0, gap / np.sqrt(variance), 0.0)
    p: Floats = 2 * (stats.t.sf(ratio, degrees) if np.isfinite(degrees) else stats.norm.sf(ratio))
    p[component[:, None] != component] = 1.0
    np.fill_diagonal(p, 1.0)
    return p


def _holm(p: Floats, error: float) -> Bools:
    """Tell which hypotheses along the last axis Holm's procedure rejects."""
    order = np.argsort(p, axis=-1)
    ranked = np.take_along_axis(p, order, -1)
    rejected = np.logical_and.accumulate(ranked <= error / np.arange(p.shape[-1], 0, -1), axis=-1)
    found = np.zeros(p.shape, bool)
    np.put_along_axis(found, order, rejected, -1)
    return found


def guaranteed_places(strength: Floats, p: Floats, component: Ints, error: float) -> tuple[Ints, Ints]:
    """Return the first and last place of each item by Holm's procedure over its own differences."""
    low, high = np.empty(strength.size, np.int64), np.empty(strength.size, np.int64)
    for one in range(int(component.max()) + 1):
        members = np.flatnonzero(component == one)
        inside = p[np.ix_(members, members)]
        others = ~np.eye(members.size, dtype=bool)
        different = np.zeros(inside.shape, bool)
        if members.size > 1:
            different[others] = _holm(inside[others].reshape(members.size, -1), error).ravel()
        above = strength[members] > strength[members][:, None]
        low[members] = 1 + (different & above).sum(axis=1)
        high[members] = members.size - (different & ~above).sum(axis=1)
    return low, high


def tiers(strength: Floats, p: Floats, component: Ints, error: float) -> Ints:
    """Return tiers: one more than the highest tier of the items that are significantly better (Holm over all pairs)."""
    a, b = np.triu_indices(strength.size, 1)
    inside = component[a] == component[b]
    a, b = a[inside], b[inside]
    different = np.zeros(p.shape, bool)
    different[a, b] = _holm(p[a, b], error) if a.size else False
    different |= different.T
    tier = np.ones(strength.size, np.int64)
    for item in np.argsort(-strength, kind="stable"):
        better = different[item] & (strength > strength[item])
        tier[item] = 1 + tier[better].max() if better.any() else 1
    return tier
