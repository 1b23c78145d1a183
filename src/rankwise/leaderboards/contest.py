"""The Bradley-Terry likelihood of a board, its minimum and its covariance.

Conventions: the objective is ``Σ w [log(1 + e^z) − y z] + penalty/2 (‖t‖² + ‖γ‖²)`` with ``z = s_a − s_b + x'β`` and
strengths ``s = t + Fγ``: free effects t, and features F of items in standard units. Coefficients β of contest columns
have no penalty. With Davidson's model of ties the probabilities of win, tie and loss are proportional to
``(e^{z/2}, e^η, e^{−z/2})``; the objective is jointly convex in (t, β, η), and ``ν = e^η``.

Without contest columns and clusters, battles are aggregated to one cell for each ordered pair of items.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg as la
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components
from scipy.special import expit

from rankwise.arrays import Bools, Floats, Ints
from rankwise.exceptions import InvalidInputError
from rankwise.leaderboards.battles import Battles

__all__ = ["Contest", "Fit", "Rates"]

_STEPS = 100
_SMALL = 1e-10  # of the last step of Newton's method, on the scale of strengths
_FEW = (
    5  # points won or lost; with fewer, the sandwich of an item covers far too little (0 % if it never lost)
)
_LARGEST = 500.0  # a coefficient in standard units beyond this one is infinite


@dataclass
class Rates:
    """First and second derivatives of the log-likelihood in z and η, summed over the battles of a cell."""

    loss: float
    probability: Floats  # of each outcome: (cells,) with half ties, (3, cells) with Davidson's
    slope: Floats
    curvature: Floats
    slope_tie: Floats | None = None
    curvature_mixed: Floats | None = None
    curvature_tie: Floats | None = None


@dataclass
class Fit:
    """A minimum: parameters, the Hessian of the loss, and the inverse of the penalised one."""

    theta: Floats
    hessian: Floats
    inverse: Floats
    rates: Rates
    penalty: float


@dataclass
class Contest:
    """Cells of battles and the model that is fitted to them."""

    n_items: int
    first: Ints
    second: Ints
    wins: Floats
    ties: Floats
    losses: Floats
    columns: Floats
    features: Floats
    cluster: Ints | None
    davidson: bool
    component: Ints

    @classmethod
    def of(cls, battles: Battles, features: Floats, *, davidson: bool, first_advantage: bool) -> Contest:
        """Aggregate battles to cells, where no column or cluster sets them apart."""
        n = len(battles.items)
        columns = battles.style
        outcome = [battles.weight * (battles.score == value) for value in (1.0, 0.5, 0.0)]
        first, second = battles.first, battles.second
        if columns.shape[1] == 0 and battles.cluster is None:
            key = first * n + second
            outcome = [np.bincount(key, one, n * n) for one in outcome]
            there = np.flatnonzero(outcome[0] + outcome[1] + outcome[2])
            outcome = [one[there] for one in outcome]
            first, second = there // n, there % n
            columns = np.empty((there.size, 0))
        if first_advantage:
            columns = np.column_stack([np.ones(first.size), columns])
        graph = sp.coo_array((np.ones(first.size), (first, second)), shape=(n, n))
        component = (
            np.zeros(n, np.int64) if features.shape[1] else connected_components(graph, directed=False)[1]
        )
        wins, ties, losses = outcome
        return cls(
            n, first, second, wins, ties, losses, columns, features, battles.cluster, davidson,
            component.astype(np.int64),
        )  # fmt: skip

    @property
    def total(self) -> Floats:
        """The weight of each cell."""
        return self.wins + self.ties + self.losses

    @property
    def points(self) -> Floats:
        """Points of the first item in each cell."""
        return self.wins + 0.5 * self.ties

    @property
    def n_penalised(self) -> int:
        """The number of free effects and coefficients of features."""
        return self.n_items + int(self.features.shape[1])

    def won_and_lost(self) -> tuple[Floats, Floats]:
        """Return the points that each item won and lost."""
        mine, theirs = self.points, self.total - self.points
        return _summed(self.first, mine, self.second, theirs, self.n_items), _summed(
            self.first, theirs, self.second, mine, self.n_items
        )

    def expand(self) -> Floats:
        """Return the matrix from parameters (t, γ, β, η) to (s, β, η)."""
        n, f = self.n_items, self.features.shape[1]
        rest = self.columns.shape[1] + self.davidson
        matrix = np.zeros((n + rest, n + f + rest))
        matrix[:n, :n] = np.eye(n)
        matrix[:n, n : n + f] = self.features
        matrix[n:, n + f :] = np.eye(rest)
        return matrix

    def centring(self) -> Floats:
        """Return the projection of (s, β, η) on strengths with mean zero in every component."""
        size = self.n_items + self.columns.shape[1] + self.davidson
        matrix = np.eye(size)
        matrix[: self.n_items, : self.n_items] -= self.means()
        return matrix

    def means(self) -> Floats:
        """Return the matrix that replaces strengths with their mean in each component."""
        same = self.component[:, None] == self.component
        averages: Floats = same / same.sum(axis=1, keepdims=True)
        return averages

    def margins(self, theta: Floats) -> Floats:
        """Return z of each cell."""
        n, f, k = self.n_items, self.features.shape[1], self.columns.shape[1]
        strength = theta[:n] + self.features @ theta[n : n + f]
        z: Floats = strength[self.first] - strength[self.second]
        return z + self.columns @ theta[n + f : n + f + k] if k else z

    def rates(self, z: Floats, eta: float = 0.0) -> Rates:
        """Return loss and derivatives at z."""
        if not self.davidson:
            p = expit(z)
            loss = float(self.total @ np.logaddexp(0, z) - self.points @ z)
            return Rates(loss, p, self.points - self.total * p, self.total * p * (1 - p))
        logits = np.stack([z / 2, np.full_like(z, eta), -z / 2])
        top = logits.max(axis=0)
        parts = np.exp(logits - top)
        whole = parts.sum(axis=0)
        p = parts / whole
        loss = float(self.total @ (np.log(whole) + top))
        loss -= float((self.wins - self.losses) @ z) / 2 + eta * float(self.ties.sum())
        lead = p[0] - p[2]
        return Rates(
            loss,
            p,
            (self.wins - self.losses - self.total * lead) / 2,
            self.total * (p[0] + p[2] - lead**2) / 4,
            self.ties - self.total * p[1],
            -self.total * p[1] * lead / 2,
            self.total * p[1] * (1 - p[1]),
        )

    def gram(self, weight: Floats, mixed: Floats | None = None, tie: Floats | None = None) -> Floats:
        """Return ``Σ weight d d'`` over cells in (s, β, η), d the derivative of z and η."""
        n, k = self.n_items, self.columns.shape[1]
        size = n + k + self.davidson
        matrix = np.zeros((size, size))
        between = np.bincount(self.first * n + self.second, weight, n * n).reshape(n, n)
        matrix[:n, :n] = -(between + between.T)
        matrix[np.arange(n), np.arange(n)] += self.pull(weight, sign=1.0)
        for at in range(k):
            weighted = weight * self.columns[:, at]
            matrix[:n, n + at] = matrix[n + at, :n] = self.pull(weighted)
            matrix[n + at, n : n + k] = matrix[n : n + k, n + at] = weighted @ self.columns
        if mixed is not None and tie is not None:
            side = np.concatenate([self.pull(mixed), mixed @ self.columns])
            matrix[-1, :-1] = matrix[:-1, -1] = side
            matrix[-1, -1] = tie.sum()
        return matrix

    def pull(self, weight: Floats, sign: float = -1.0) -> Floats:
        """Return for each item the sum over cells where it is first, minus (or plus) that where it is second."""
        return _summed(self.first, weight, self.second, sign * weight, self.n_items)

    def gradient(self, rates: Rates) -> Floats:
        """Return the gradient of the log-likelihood in (t, γ, β, η)."""
        items = self.pull(rates.slope)
        parts = [items, self.features.T @ items, rates.slope @ self.columns]
        if rates.slope_tie is not None:
            parts.append(np.array([rates.slope_tie.sum()]))
        return np.concatenate(parts)

    def hessian(self, rates: Rates) -> Floats:
        """Return the Hessian of the loss in (t, γ, β, η)."""
        return self.lifted(self.gram(rates.curvature, rates.curvature_mixed, rates.curvature_tie))

    def lifted(self, matrix: Floats) -> Floats:
        """Bring a quadratic form in (s, β, η) to (t, γ, β, η)."""
        if not self.features.shape[1]:
            return matrix
        expand = self.expand()
        lifted: Floats = expand.T @ matrix @ expand
        return lifted

    def ridge(self, penalty: float, hessian: Floats) -> Floats:
        """Add the penalty, and for boards without features a term that fixes the mean of each component."""
        matrix = hessian.copy()
        at = np.arange(self.n_penalised)
        matrix[at, at] += penalty
        if not self.features.shape[1]:
            matrix[: self.n_items, : self.n_items] += self.means()
        return matrix

    def fit(self, penalty: float, start: Floats | None = None, scale: float = 1.0) -> Fit:
        """Minimise ``loss / scale + penalty/2 (‖t‖² + ‖γ‖²)`` by Newton's method with halved steps."""
        size = self.n_penalised + self.columns.shape[1] + self.davidson
        theta = np.zeros(size) if start is None else start.copy()
        kept = np.zeros(size)
        kept[: self.n_penalised] = penalty
        if start is None and self.davidson:
            theta[-1] = np.log((2 * self.ties.sum() + 1) / (self.wins + self.losses).sum())
        rates = self._at(theta)
        value = rates.loss / scale + 0.5 * kept @ theta**2
        for _ in range(_STEPS):
            gradient = self.gradient(rates) / scale - kept * theta
            matrix = self.ridge(penalty, self.hessian(rates) / scale)
            step = _solved(matrix, gradient)
            size_of_step = 1.0
            while True:
                trial = theta + size_of_step * step
                rates = self._at(trial)
                new = rates.loss / scale + 0.5 * kept @ trial**2
                if new <= value + 1e-12 * abs(value) or size_of_step < 1e-10:
                    break
                size_of_step /= 2
            theta, value = trial, new
            if np.abs(step).max() < _SMALL * max(1.0, np.abs(theta).max()):
                break
            if np.abs(theta).max() > _LARGEST and self.columns.shape[1] + self.davidson:
                raise _infinite()
        hessian = self.hessian(rates)
        return Fit(theta, hessian, la.inv(self.ridge(penalty, hessian / scale)), rates, penalty)

    def covariance(self, fit: Fit) -> Floats:
        """Return the sandwich covariance of (s, β, η), with the model's variance where items have few points."""
        won, lost = self.won_and_lost()
        few = (won < _FEW) | (lost < _FEW)
        replaced = few[self.first] | few[self.second]
        rates = fit.rates
        spread = self._spread(rates)
        model = (rates.curvature, rates.curvature_mixed, rates.curvature_tie)
        if self.cluster is None:
            chosen = [
                None if one is None or two is None else np.where(replaced, one, two)
                for one, two in zip(model, spread, strict=True)
            ]
            middle = self.gram(chosen[0], *chosen[1:])  # type: ignore[arg-type]
        else:
            middle = self._clustered(rates, ~replaced)
            middle += self.gram(*(None if one is None else one * replaced for one in model))  # type: ignore[arg-type]
            n_clusters = int(self.cluster.max()) + 1
            middle *= n_clusters / (n_clusters - 1)
        meat = self.lifted(middle)
        at = np.arange(self.n_penalised)
        meat[at, at] += fit.penalty
        inverse = self.centring() @ self.expand() @ fit.inverse
        covariance: Floats = inverse @ meat @ inverse.T
        return covariance

    def model_covariance(self, fit: Fit) -> Floats:
        """Return the inverse of the penalised Hessian in (s, β, η), for strengths with mean zero."""
        expand = self.centring() @ self.expand()
        covariance: Floats = expand @ fit.inverse @ expand.T
        return covariance

    def difference_variance(self, inverse: Floats) -> Floats:
        """Return the variance of z in each cell for a covariance of (s, β, η)."""
        n, k = self.n_items, self.columns.shape[1]
        a, b = self.first, self.second
        own = inverse.diagonal()
        variance: Floats = own[a] + own[b] - 2 * inverse[a, b]
        if k:
            beside = inverse[:n, n : n + k]
            variance = variance + 2 * ((beside[a] - beside[b]) * self.columns).sum(axis=1)
            variance += ((self.columns @ inverse[n : n + k, n : n + k]) * self.columns).sum(axis=1)
        return variance

    def _at(self, theta: Floats) -> Rates:
        return self.rates(self.margins(theta), float(theta[-1]) if self.davidson else 0.0)

    def outcome_slopes(self, rates: Rates) -> list[tuple[Floats, Floats, Floats | None]]:
        """Return for each outcome its weight and the derivatives in z and η of one battle."""
        p = rates.probability
        if not self.davidson:
            return [(self.wins, 1 - p, None), (self.ties, 0.5 - p, None), (self.losses, -p, None)]
        lead = (p[0] - p[2]) / 2
        return [
            (self.wins, 0.5 - lead, -p[1]),
            (self.ties, -lead, 1 - p[1]),
            (self.losses, -0.5 - lead, -p[1]),
        ]

    def _spread(self, rates: Rates) -> list[Floats | None]:
        parts = self.outcome_slopes(rates)
        squares: list[Floats | None] = [sum(w * g * g for w, g, _ in parts)]  # type: ignore[list-item]
        if not self.davidson:
            return [*squares, None, None]
        mixed: Any = sum(w * g * e for w, g, e in parts if e is not None)
        return [*squares, mixed, sum(w * e * e for w, _, e in parts if e is not None)]

    def _clustered(self, rates: Rates, counted: Bools) -> Floats:
        assert self.cluster is not None
        slope, n = rates.slope * counted, self.n_items
        n_clusters = int(self.cluster.max()) + 1
        rows = np.concatenate([self.cluster, self.cluster])
        parts = sp.csr_array(
            (np.concatenate([slope, -slope]), (rows, np.concatenate([self.first, self.second]))),
            shape=(n_clusters, n),
        )
        beside = [np.bincount(self.cluster, slope * column, n_clusters) for column in self.columns.T]
        if rates.slope_tie is not None:
            beside.append(np.bincount(self.cluster, rates.slope_tie * counted, n_clusters))
        sums = sp.hstack([parts, sp.csr_array(np.array(beside).T)]).tocsr() if beside else parts
        middle: Floats = (sums.T @ sums).toarray()
        return middle


def _summed(first: Ints, mine: Floats, second: Ints, theirs: Floats, n_items: int) -> Floats:
    sums: Any = np.bincount(first, mine, n_items) + np.bincount(second, theirs, n_items)
    return np.asarray(sums, dtype=np.float64)


def _solved(matrix: Floats, right: Floats) -> Floats:
    try:
        solution: Floats = la.cho_solve(la.cho_factor(matrix, check_finite=False), right, check_finite=False)
    except la.LinAlgError as error:
        raise _infinite() from error
    return solution


def _infinite() -> InvalidInputError:
    return InvalidInputError(
        "A coefficient of a contest column has no finite estimate, because the columns predict results perfectly or "
        "repeat each other.",
        "leave out a column of style, or first_advantage.",
    )
