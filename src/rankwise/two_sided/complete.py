"""Complete tables: the model and its exact hold-out predictions from two decompositions.

With ``D = U diag(l) U'`` for rows, ``T = V diag(s) V'`` for columns (centred if columns are ranked for each row) and
``A = U'YV``, the dual coefficients of an alpha are ``U (G∘A) V'`` with ``G = 1 / (l s' + alpha)``, plus the part of Y
outside the two bases divided by alpha. Everything here is for tables in which columns are ranked for each row, or all
entries in one ranking; for rows that are ranked for each column, the caller transposes the table.

One ranking of all entries has an intercept: with ``S = (K + alpha I)⁻¹`` the coefficients are ``Sy - β S1``, where β
makes their sum zero. The vector of ones is then a second right-hand side.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from rankwise.arrays import Floats, Ints
from rankwise.metrics import Evaluator, Metric
from rankwise.two_sided.sides import Basis, find_basis

_ROUNDING = 1e-13  # of the largest label
_DOMINANT = 0.9  # alpha / (alpha + the largest eigenvalue), above which scores are a small part of the labels
_TIE = 1e-11  # of the largest score of a row: smaller differences are rounding errors
_NOTHING = 1e-13  # of the largest score of the table: a row with smaller ones only has no scores


class _Target:
    """A right-hand side in the two bases."""

    def __init__(self, Y: Floats, rows: Basis, columns: Basis) -> None:
        self.Y, U, V = Y, rows.vectors, columns.vectors
        in_rows = U.T @ Y
        self.inner = in_rows @ V  # A
        self.projected = Y @ V
        self.beside_rows = _cleared(self.projected - U @ self.inner, Y)
        self.beside_rows[rows.rest == 0] = 0.0
        self.beside_columns = _cleared(Y - self.projected @ V.T, Y)
        self.beside_columns[:, columns.rest == 0] = 0.0


def _cleared(part: Floats, whole: Floats) -> Floats:
    """Set rounding errors to zero, because a small alpha would magnify them."""
    part[np.abs(part) <= _ROUNDING * np.abs(whole).max(initial=0.0)] = 0.0
    return part


class _Solved(NamedTuple):
    """The coefficients of one right-hand side at one alpha.

    Attributes
    ----------
    weighted : (row rank, column rank) float64
        ``G∘A``.
    rotated : (rows, column rank) float64
        The dual coefficients times V.
    outside : (rows, columns) float64
        The dual coefficients beside V.
    """

    weighted: Floats
    rotated: Floats
    outside: Floats

    def dual(self, columns: Basis) -> Floats:
        """Return the dual coefficients."""
        return self.rotated @ columns.vectors.T + self.outside


class Table:
    """A complete table with the bases of its sides.

    Parameters
    ----------
    Y : (rows, columns) float64
    Z : (columns, features) float64
        Features of columns.
    rows : Basis
    one_ranking : bool
        Whether all entries are one ranking; else columns are ranked for each row.
    """

    def __init__(self, Y: Floats, Z: Floats, rows: Basis, *, one_ranking: bool) -> None:
        self.Y, self.Z, self.rows, self.one_ranking = Y, Z, rows, one_ranking
        self.columns = find_basis(Z, centred=not one_ranking)
        targets = [Y - Y.mean(), np.ones(Y.shape)] if one_ranking else [Y - Y.mean(axis=1, keepdims=True)]
        self._targets = [_Target(target, rows, self.columns) for target in targets]
        self._squares = np.square(rows.vectors)

    def _solve(self, alpha: float) -> tuple[Floats, list[_Solved]]:
        G = 1.0 / (np.outer(self.rows.values, self.columns.values) + alpha)
        solved = []
        for target in self._targets:
            weighted = G * target.inner
            rotated = target.beside_rows / alpha + self.rows.vectors @ weighted
            solved.append(_Solved(weighted, rotated, target.beside_columns / alpha))
        return G, solved

    def model(self, alpha: float) -> Floats:
        """Return the coefficients of products of features, (row features, column features)."""
        left = self.rows.rotation * np.sqrt(self.rows.values)
        right = self.columns.rotation * np.sqrt(self.columns.values)
        return np.asarray(left @ self._weighted(alpha) @ right.T)

    def fitted(self, alpha: float) -> Floats:
        """Return each row's coefficients of the columns' rotated features, with no row left out."""
        return self._function(self._weighted(alpha))

    def _weighted(self, alpha: float) -> Floats:
        _, solved = self._solve(alpha)
        if not self.one_ranking:
            return solved[0].weighted
        totals = self._totals(solved[1].dual(self.columns))
        return np.asarray(solved[0].weighted - totals[0] / totals[1] * solved[1].weighted)

    def _totals(self, ones: Floats) -> list[float]:
        """Return the sums of the dual coefficients, ``1'Sy = y'S1``; those of y may be large and cancel."""
        return [float(np.vdot(ones, target.Y)) for target in self._targets]

    def without_row(self, alpha: float) -> Floats:
        """Return the same for each row by the model of the other rows."""
        G, solved = self._solve(alpha)
        leverage = self.rows.rest[:, None] / alpha + self._squares @ G  # the diagonal blocks of S, times V
        roots = np.sqrt(self.columns.values)
        if alpha * G.min(initial=1.0) < _DOMINANT:
            pairs = zip(self._targets, solved, strict=True)
            found = [(target.projected - one.rotated / leverage) / roots for target, one in pairs]
        else:  # the same without a difference of labels, beside which the scores are small
            own = roots * (self._squares @ (self.rows.values[:, None] * G)) / leverage
            found = [self._function(one.weighted) - own * one.rotated for one in solved]
        if self.one_ranking:
            ones = solved[1]
            whole = self._totals(ones.dual(self.columns))
            totals = [
                total
                - (ones.rotated * one.rotated / leverage).sum(axis=1)
                - alpha * (ones.outside * one.outside).sum(axis=1)
                for total, one in zip(whole, solved, strict=True)
            ]
            found[0] -= (totals[0] / totals[1])[:, None] * found[1]
        return found[0]

    def _function(self, weighted: Floats) -> Floats:
        inner = self.rows.values[:, None] * weighted * np.sqrt(self.columns.values)
        return np.asarray(self.rows.vectors @ inner)

    def without_entry(self, alpha: float) -> Iterator[Floats]:
        """Yield for each row the scores of its entries (second axis) by the models without one of them (first)."""
        G, solved = self._solve(alpha)
        X = self.columns.vectors * np.sqrt(self.columns.values)
        leverage = self.rows.rest[:, None] / alpha + self._squares @ G
        own = self._squares @ (self.rows.values[:, None] * G)
        diagonal = self.columns.rest / alpha + leverage @ np.square(self.columns.vectors).T
        dual = [one.dual(self.columns) for one in solved]
        scores = [self._function(one.weighted) @ X.T for one in solved]
        if self.one_ranking:
            ones = dual[1]
            along, total = self._totals(ones)
            beta = along / total
            dual[0], scores[0] = dual[0] - beta * ones, scores[0] - beta * scores[1]
            diagonal -= np.square(ones) / total
        change = dual[0] / diagonal
        for row in range(self.Y.shape[0]):
            effect = (X * own[row]) @ X.T
            if self.one_ranking:
                effect -= np.outer(dual[1][row] / total, scores[1][row])
            yield scores[0][row] - change[row][:, None] * effect


def held_out_values(
    table: Table, cv: str, metric: Metric, alphas: Floats, reach: Callable[[float], None]
) -> Floats:
    """Return the metric of every alpha and row on held-out predictions, (alphas, rows); NaN where it is undefined.

    Leave-row-out scores a row by the model of the other rows. The others compare an entry with the other entries of its
    row, all scored by the model without that entry, without its column, or without its row and its column. Metrics that
    count pairs are the share of these comparisons; other metrics take as the score of an entry its place among them.
    """
    n, m = table.Y.shape
    if cv == "leave-row-out":
        evaluator = _evaluator(table.Y, metric)
        coordinates = table.columns.coordinates(table.Z)
        values = []
        for at, alpha in enumerate(alphas):
            scores, size = _centred(table.without_row(alpha) @ coordinates.T)
            values.append(
                evaluator.per_query(np.round(scores / size, 11).ravel()).values
            )  # equal columns tie
            reach((at + 1) / alphas.size)
        return np.array(values)
    compared = [_Comparisons(table.Y, metric) for _ in alphas]
    if cv == "leave-entry-out":
        for at, (alpha, one) in enumerate(zip(alphas, compared, strict=True)):
            for row, scores in enumerate(table.without_entry(alpha)):
                one.add(np.full(m, row), np.arange(m), scores)
            reach((at + 1) / alphas.size)
    else:
        for column in range(m):
            others = np.arange(m) != column
            part = Table(table.Y[:, others], table.Z[others], table.rows, one_ranking=table.one_ranking)
            coordinates = part.columns.coordinates(table.Z)
            for alpha, one in zip(alphas, compared, strict=True):
                functions = part.fitted(alpha) if cv == "leave-column-out" else part.without_row(alpha)
                one.add(np.arange(n), np.full(n, column), functions @ coordinates.T)
            reach((column + 1) / m)
    return np.array([one.values() for one in compared])


def _centred(scores: Floats) -> tuple[Floats, Floats]:
    """Return centred scores of each row, and their size; infinite where they are rounding errors."""
    centred = scores - scores.mean(axis=1, keepdims=True)
    size = np.abs(centred).max(axis=1, keepdims=True)
    size[size <= _NOTHING * size.max()] = np.inf
    return centred, size


class _Comparisons:
    """Held-out entries compared with the other entries of their rows."""

    def __init__(self, Y: Floats, metric: Metric) -> None:
        self.Y, self.metric = Y, metric
        self.wrong, self.pairs = np.zeros((2, Y.shape[0]))
        self.place = np.zeros(Y.shape)
        self._tie_cost = float(metric.options.get("ties", 0.5)) if metric.takes_weights else 0.5

    def add(self, rows: Ints, columns: Ints, scores: Floats) -> None:
        """Compare entries that were held out; each has a line of scores of its row."""
        lines = np.arange(len(scores))
        scores, size = _centred(scores)
        above = scores[lines, columns][:, None] - scores
        above = np.where(np.abs(above) <= _TIE * size, 0.0, np.sign(above))
        wanted = np.sign(self.Y[rows, columns][:, None] - self.Y[rows])
        ties = (above == 0) & (wanted != 0)
        wrong = (above * wanted < 0).sum(axis=1) + self._tie_cost * ties.sum(axis=1)
        np.add.at(self.wrong, rows, wrong)
        np.add.at(self.pairs, rows, (wanted != 0).sum(axis=1))
        self.place[rows, columns] = above.sum(axis=1)

    def values(self) -> Floats:
        """Return the metric of each row."""
        if self.metric.takes_weights and self.metric.base_name != "auc":
            with np.errstate(invalid="ignore"):  # rows without pairs
                share = self.wrong / self.pairs
            low, high = self.metric.bounds
            return np.asarray(high - (high - low) * share if self.metric.greater_is_better else share)
        return _evaluator(self.Y, self.metric).per_query(self.place.ravel()).values


def _evaluator(Y: Floats, metric: Metric) -> Evaluator:
    return metric.prepare(Y.ravel(), np.repeat(np.arange(Y.shape[0]), Y.shape[1]))
