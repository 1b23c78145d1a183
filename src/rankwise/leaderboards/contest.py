"""The Bradley-Terry likelihood of a board, its minimum, its covariance, and the battles that decide an order.

Conventions: parameters θ are the strengths s, the coefficients β of contest columns and, in Davidson's model of ties,
η = log ν. With ``z = s_a − s_b + x'β`` the probabilities of win, tie and loss are proportional to
``(e^z, e^{η + z/2}, 1)``, without the tie where a tie is half a win. The objective is
``Σ w [log(normaliser) − y z − η·(y = ½)] + penalty/2 s'Ps``, y ∈ {1, ½, 0}. P is the identity; for features F of
items it is ``(I + FF')⁻¹``, which is the ridge ``‖t‖² + ‖γ‖²`` on ``s = t + Fγ`` after t and γ are minimised out.
In both models the derivative in z is ``y − q``, q the expected score ``P(win) + P(tie)/2``.

Strengths have mean zero in every component: the matrix ``means`` of averages in components is added to the Hessian and
subtracted from its inverse. A cell is a group of equal battles.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.linalg as la
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from rankwise.arrays import Bools, Floats, Ints
from rankwise.exceptions import InvalidInputError
from rankwise.leaderboards.battles import Battles

_STEPS = 100
_SMALL = 1e-7  # the last step of Newton's method; the error after it is about its square
_FEW = 5  # points won or lost; with fewer, the sandwich of an item covers too little (0 % if it never lost)
_LARGEST = 500.0  # a coefficient in standard units beyond this one is infinite
_FEWER = 3  # times that a refit tries 2 % fewer battles
_LEAST = 1e-6  # penalty: with 0, an item that loses its last defeat would have no finite strength


@dataclass
class Rates:
    """Probabilities of a cell, and derivatives of its log-likelihood in z, or in z and η."""

    loss: float
    expected: Floats  # score of the first item
    tie: Floats  # probability of a tie; zeros where ties are half wins
    slope: list[Floats]  # z; η
    curvature: list[Floats]  # zz; zη, ηη


@dataclass
class Fit:
    """A minimum: parameters, the Hessian of the loss, and the inverse of the penalised one for centred strengths."""

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
    score: Floats
    weight: Floats
    columns: Floats
    prior: Floats
    cluster: Ints | None
    davidson: bool
    component: Ints

    @classmethod
    def of(
        cls, battles: Battles, features: Floats, *, davidson: bool = False, first_advantage: bool = False
    ) -> Contest:
        """Aggregate battles to cells, where no column or cluster sets them apart."""
        n, (chosen, group) = len(battles.items), battles.grouped()
        first, second, columns = battles.first[chosen], battles.second[chosen], battles.style[chosen]
        if first_advantage:
            columns = np.column_stack([np.ones(first.size), columns])
        prior, component = np.eye(n), np.zeros(n, np.int64)
        if features.shape[1]:  # which join all components
            prior = la.inv(prior + features @ features.T)
        else:
            graph = sp.coo_array((np.ones(first.size), (first, second)), shape=(n, n))
            component = connected_components(graph, directed=False)[1].astype(np.int64)
            by_size = np.argsort(-np.bincount(component), kind="stable")
            component = np.argsort(by_size)[component]
        score, weight = battles.score[chosen], np.bincount(group, battles.weight).astype(float)
        return cls(n, first, second, score, weight, columns, prior, battles.cluster, davidson, component)

    def __post_init__(self) -> None:
        """Derive the totals that every step uses."""
        self.size = self.n_items + self.columns.shape[1] + self.davidson
        self.points, self.tied = self.weight * self.score, self.weight * (self.score == 0.5)
        same = self.component[:, None] == self.component
        self.means: Floats = same / same.sum(axis=1, keepdims=True)

    def summed(self, mine: Floats, theirs: Floats) -> Floats:
        """Return for each item the sum of `mine` where it is first and of `theirs` where it is second."""
        n = self.n_items
        sums: Any = np.bincount(self.first, mine, n) + np.bincount(self.second, theirs, n)
        return np.asarray(sums, dtype=np.float64)

    def won_and_lost(self) -> tuple[Floats, Floats]:
        """Return the points that each item won and lost."""
        lost = self.weight - self.points
        return self.summed(self.points, lost), self.summed(lost, self.points)

    def margins(self, theta: Floats) -> Floats:
        """Return z of each cell."""
        n, k = self.n_items, self.columns.shape[1]
        z: Floats = theta[self.first] - theta[self.second]
        return z + self.columns @ theta[n : n + k] if k else z

    def probabilities(self, z: Floats, theta: Floats) -> tuple[Floats, Floats, Floats]:
        """Return the log of the normaliser, the expected score and the probability of a tie."""
        small = np.exp(-np.abs(z))
        normaliser = np.maximum(z, 0) + np.log1p(small)  # log(1 + e^z), three times as fast as logaddexp
        if not self.davidson:
            return normaliser, np.where(z > 0, 1.0, small) / (1 + small), np.zeros(z.size)
        normaliser = np.logaddexp(normaliser, theta[-1] + z / 2)
        tie = np.exp(theta[-1] + z / 2 - normaliser)
        return normaliser, np.exp(z - normaliser) + tie / 2, tie

    def rates(self, theta: Floats) -> Rates:
        """Return loss and derivatives at parameters."""
        z = self.margins(theta)
        normaliser, q, tie = self.probabilities(z, theta)
        loss = float(self.weight @ normaliser - self.points @ z)
        slope, curvature = [self.points - self.weight * q], [self.weight * (q - tie / 4 - q**2)]
        if self.davidson:
            loss -= float(theta[-1] * self.tied.sum())
            slope.append(self.tied - self.weight * tie)
            curvature += [self.weight * tie * (0.5 - q), self.weight * tie * (1 - tie)]
        return Rates(loss, q, tie, slope, curvature)

    def gradient(self, slope: list[Floats]) -> Floats:
        """Return the gradient of the log-likelihood."""
        items = self.summed(slope[0], -slope[0])
        return np.concatenate([items, slope[0] @ self.columns, [one.sum() for one in slope[1:]]])

    def gram(self, parts: list[Floats]) -> Floats:
        """Return the sum over cells of ``[d, e] [[zz, zη], [zη, ηη]] [d, e]'``, d and e the gradients of z and η."""
        n, k, weight = self.n_items, self.columns.shape[1], parts[0]
        matrix = np.zeros((self.size, self.size))
        between = np.bincount(self.first * n + self.second, weight, n * n).reshape(n, n)
        matrix[:n, :n] = np.diag(self.summed(weight, weight)) - between - between.T
        for at in range(k):
            column = weight * self.columns[:, at]
            matrix[n + at, : n + k] = np.append(self.summed(column, -column), column @ self.columns)
        matrix[: n + k, n : n + k] = matrix[n : n + k, : n + k].T
        if self.davidson:
            matrix[-1, :-1] = matrix[:-1, -1] = self.gradient([parts[1]])
            matrix[-1, -1] = parts[2].sum()
        return matrix

    def penalised(self, hessian: Floats, penalty: float) -> Floats:
        """Add the penalty and the means of components."""
        matrix = hessian.copy()
        matrix[: self.n_items, : self.n_items] += penalty * self.prior + self.means
        return matrix

    def fit(
        self, penalty: float, start: Floats | None = None, scale: float = 1.0, small: float = _SMALL
    ) -> Fit:
        """Minimise ``loss / scale + penalty/2 s'Ps`` by Newton's method with halved steps, down to a small step."""
        n, theta = self.n_items, np.zeros(self.size) if start is None else start.copy()
        if start is None and self.davidson:
            theta[-1] = np.log((2 * self.tied.sum() + 1) / (self.weight - self.tied).sum())

        def at(theta: Floats) -> tuple[Rates, Floats, float]:
            rates, pull = self.rates(theta), penalty * self.prior @ theta[:n]
            return rates, pull, rates.loss / scale + 0.5 * float(pull @ theta[:n])

        rates, pull, value = at(theta)
        for _ in range(_STEPS):
            gradient = self.gradient(rates.slope) / scale
            gradient[:n] -= pull
            step = _solved(self.penalised(self.gram(rates.curvature) / scale, penalty), gradient)
            length = 1.0
            while True:
                rates, pull, new = at(theta + length * step)
                if new <= value + 1e-12 * abs(value) or length < 1e-10:
                    break
                length /= 2
            theta, value = theta + length * step, new
            if np.abs(step).max() < small * max(1.0, np.abs(theta).max()):
                break
            if np.abs(theta).max() > _LARGEST and self.size > n:
                raise _infinite()
        hessian = self.gram(rates.curvature)
        inverse = la.inv(self.penalised(hessian / scale, penalty))
        inverse[:n, :n] -= self.means / (1 + penalty)
        return Fit(theta, hessian, inverse, rates, penalty)

    def covariance(self, fit: Fit) -> tuple[Floats, Floats]:
        """Return the sandwich covariance of θ, and the part of it that sums of clusters (CR1) estimate.

        Where items have few points, the model's variance takes the place of squared residuals. Where a tie is half a
        win, the variance of a result is ``q (1 − q) − P(tie)/4``; the tie's part is averaged over the board.
        """
        few = np.min(self.won_and_lost(), axis=0) < _FEW
        replaced = few[self.first] | few[self.second]
        part = 0.0 if self.davidson else self.tied.sum() / (4 * fit.rates.curvature[0].sum())
        model = [max(1 - part, 0.1) * one for one in fit.rates.curvature]
        clustered = np.zeros((self.size, self.size))
        if self.cluster is None:
            parts = zip(model, self._squares(fit.rates), strict=True)
            middle = self.gram([np.where(replaced, expected, squares) for expected, squares in parts])
        else:
            clustered = self._clustered(fit.rates, ~replaced)
            middle = clustered + self.gram([one * replaced for one in model])
        return self.sandwich(fit, middle), fit.inverse @ clustered @ fit.inverse

    def sandwich(self, fit: Fit, middle: Floats) -> Floats:
        """Return the covariance of θ, given that of the gradient, with the squared bias of the penalty.

        The bias is ``penalty · C P s``. The strengths of the fit, whose squares are too large by their errors, stand
        for the true ones.
        """
        n, s, total = self.n_items, fit.theta[: self.n_items], middle.copy()
        total[:n, :n] += fit.penalty**2 * float(s @ self.prior @ s) / n * self.prior
        covariance: Floats = fit.inverse @ total @ fit.inverse
        return covariance

    def difference_variance(self, covariance: Floats) -> Floats:
        """Return the variance of z in each cell for a covariance of θ."""
        n, k = self.n_items, self.columns.shape[1]
        a, b, own = self.first, self.second, covariance.diagonal()
        variance: Floats = own[a] + own[b] - 2 * covariance[a, b]
        if k:
            beside = covariance[:n, n : n + k]
            rest = 2 * (beside[a] - beside[b]) + self.columns @ covariance[n : n + k, n : n + k]
            variance = variance + (rest * self.columns).sum(axis=1)
        return variance

    def held_out(self, fit: Fit) -> tuple[Floats, Floats]:
        """Leave out one battle of each cell, by one Newton step in z; return its log-loss and expected score."""
        variance, q = self.difference_variance(fit.inverse), fit.rates.expected
        leverage = np.minimum(variance * fit.rates.curvature[0] / self.weight, 0.99)
        left = self.margins(fit.theta) - variance * (self.score - q) / (1 - leverage)
        normaliser, expected, _ = self.probabilities(left, fit.theta)
        tie = fit.theta[-1] * (self.score == 0.5) if self.davidson else 0.0
        return normaliser - self.score * left - tie, expected

    def _squares(self, rates: Rates) -> list[Floats]:
        """Return the sums over the battles of a cell of the squares and products of their slopes."""
        residuals = [self.score - rates.expected, (self.score == 0.5) - rates.tie]
        products = [residuals[0] ** 2, residuals[0] * residuals[1], residuals[1] ** 2]
        return [self.weight * one for one in products[: 3 if self.davidson else 1]]

    def _clustered(self, rates: Rates, counted: Bools) -> Floats:
        """Return the sum over clusters of the products of their slopes."""
        assert self.cluster is not None
        groups = int(self.cluster.max()) + 1
        slope = rates.slope[0] * counted
        rows, n = np.tile(self.cluster, 2), self.n_items
        items = sp.csr_array(
            (np.append(slope, -slope), (rows, np.append(self.first, self.second))), shape=(groups, n)
        )
        beside = [slope * column for column in self.columns.T] + [one * counted for one in rates.slope[1:]]
        rest = np.array([np.bincount(self.cluster, one, groups) for one in beside]).reshape(-1, groups)
        sums = sp.hstack([items, sp.csr_array(rest.T)], format="csr")
        middle: Floats = (sums.T @ sums).toarray() * (groups / (groups - 1))
        return middle


def _solved(matrix: Floats, right: Floats) -> Floats:
    try:
        factor = la.cho_factor(matrix, check_finite=False)
    except la.LinAlgError as error:
        raise _infinite() from error
    pivots = factor[0].diagonal()
    if pivots.min() < 1e-7 * pivots.max():  # singular up to rounding
        raise _infinite()
    solution: Floats = la.cho_solve(factor, right, check_finite=False)
    return solution


def _infinite() -> InvalidInputError:
    return InvalidInputError(
        "A coefficient of a contest column has no finite estimate, because the columns predict results perfectly or "
        "repeat each other.",
        "leave out a column of style, or first_advantage.",
    )


class FlipSearch:
    """Cells of a contest, with the influence of their battles on a fitted board.

    Parameters
    ----------
    battles : Battles
    contest : Contest
        Of the same battles.
    fit : Fit
    """

    def __init__(self, battles: Battles, contest: Contest, fit: Fit) -> None:
        _, group = battles.grouped()
        self.contest, self.units = contest, np.bincount(group, battles.units).astype(np.int64)
        self.penalty = max(fit.penalty, _LEAST)
        self.fit = contest.fit(self.penalty, fit.theta)
        self.variance = contest.difference_variance(self.fit.inverse)
        by_group = np.argsort(group, kind="stable")
        self.rows = np.repeat(battles.row[by_group], battles.units[by_group])
        self.starts = np.cumsum(self.units) - self.units

    def find(self, upper: int, lower: int) -> Ints | None:
        """Return the rows of battles whose removal lets `lower` overtake `upper`; None where none is enough."""
        along = self.contest.margins(self.fit.inverse[upper] - self.fit.inverse[lower])
        slope, curvature = (one[0] / self.units for one in (self.fit.rates.slope, self.fit.rates.curvature))
        influence = along * slope / (1 - np.minimum(curvature * self.variance, 0.99))
        helpful = np.flatnonzero(influence > 0)
        order = helpful[np.argsort(-influence[helpful], kind="stable")]
        sizes = self.units[order]
        before, most = np.cumsum(sizes) - sizes, int(sizes.sum())

        def removed(count: int) -> tuple[Ints, Ints]:
            """Return the groups of the first battles, and how many of each."""
            taken = np.clip(count - before, 0, sizes)
            return order[taken > 0], taken[taken > 0]

        def is_exchanged(count: int, *, refit: bool = True) -> bool:
            theta = (self._refitted if refit else self._one_step)(*removed(count))
            return bool(theta[lower] > theta[upper])

        low, high = 0, most
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if is_exchanged(middle, refit=False) else (middle, high)
        found, step = max(high, 1), max(1, high // 25)
        while not is_exchanged(found):
            if found == most:
                return None
            found, step = min(most, found + step), 2 * step
        for _ in range(_FEWER):
            fewer = found - max(1, found // 50)
            if fewer < 1 or not is_exchanged(fewer):
                break
            found = fewer
        spans = zip(*removed(found), strict=True)
        return np.concatenate([self.rows[self.starts[g] : self.starts[g] + taken] for g, taken in spans])

    def _part(self, groups: Ints, share: Floats) -> Contest:
        """Return the contest of some groups with a share of their battles."""
        kept = {name: getattr(self.contest, name)[groups] for name in ("first", "second", "score", "columns")}
        return replace(self.contest, **kept, weight=self.contest.weight[groups] * share)

    def _one_step(self, groups: Ints, taken: Ints) -> Floats:
        """Return θ after removing battles, by one Newton step with the Hessian of the rest."""
        part = self._part(groups, taken / self.units[groups])
        rates = part.rates(self.fit.theta)
        matrix = self.contest.penalised(self.fit.hessian - part.gram(rates.curvature), self.penalty)
        step: Floats = la.solve(matrix, part.gradient(rates.slope), assume_a="pos")
        return self.fit.theta - step

    def _refitted(self, groups: Ints, taken: Ints) -> Floats:
        share = np.ones(self.units.size)
        share[groups] -= taken / self.units[groups]
        return self._part(np.arange(share.size), share).fit(self.penalty, self.fit.theta).theta
