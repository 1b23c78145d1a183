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
from dataclasses import dataclass, field

import numpy as np

from rankwise.arrays import Floats
from rankwise.metrics import Evaluator, Metric
from rankwise.two_sided.sides import Basis, find_basis

__all__ = ["HELD_OUT", "Table", "held_out_values"]

HELD_OUT = ("leave-row-out", "leave-column-out", "leave-entry-out", "leave-both-out")
_ROUNDING = 1e-13  # of the largest label
_TIE = 1e-11  # of the largest score of a row: smaller differences are rounding errors
_NOTHING = 1e-13  # of the largest score of the table: a row with smaller ones only has no scores


class _Target:
    """A right-hand side in the two bases."""

    def __init__(self, Y: Floats, rows: Basis, columns: Basis) -> None:
        U, V = rows.vectors, columns.vectors
        in_rows = U.T @ Y
        self.inner = in_rows @ V  # A
        self.beside_rows = _cleared(Y @ V - U @ self.inner, Y)
        self.beside_rows[rows.rest == 0] = 0.0
        self.beside_columns = _cleared(Y - (Y @ V) @ V.T, Y)
        self.beside_columns[:, columns.rest == 0] = 0.0


def _cleared(part: Floats, whole: Floats) -> Floats:
    """Set rounding errors to zero, because a small alpha would magnify them."""
    part[np.abs(part) <= _ROUNDING * np.abs(whole).max(initial=0.0)] = 0.0
    return part


@dataclass(frozen=True)
class _Solved:
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
        return self.rotated @ columns.vectors.T + self.outside

    def total(self, columns: Basis) -> float:
        return float((self.rotated @ columns.vectors.sum(axis=0)).sum() + self.outside.sum())


@dataclass
class Table:
    """A complete table with the bases of its sides.

    Attributes
    ----------
    Y : (rows, columns) float64
    Z : (columns, features) float64
        Features of columns.
    rows : Basis
    one_ranking : bool
        Whether all entries are one ranking; else columns are ranked for each row.
    """

    Y: Floats
    Z: Floats
    rows: Basis
    one_ranking: bool
    columns: Basis = field(init=False)

    def __post_init__(self) -> None:
        self.columns = find_basis(self.Z, centred=not self.one_ranking)
        centre = self.Y.mean() if self.one_ranking else self.Y.mean(axis=1, keepdims=True)
        self._targets = [_Target(self.Y - centre, self.rows, self.columns)]
        if self.one_ranking:
            self._targets.append(_Target(np.ones(self.Y.shape), self.rows, self.columns))
        self._squares = np.square(self.rows.vectors)

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
        _, solved = self._solve(alpha)
        weighted = solved[0].weighted
        if self.one_ranking:
            totals = [one.total(self.columns) for one in solved]
            weighted = weighted - totals[0] / totals[1] * solved[1].weighted
        left = self.rows.rotation * np.sqrt(self.rows.values)
        right = self.columns.rotation * np.sqrt(self.columns.values)
        return np.asarray(left @ weighted @ right.T)

    def fitted(self, alpha: float) -> Floats:
        """Return each row's coefficients of the columns' rotated features, with no row left out."""
        _, solved = self._solve(alpha)
        found = [self._function(one) for one in solved]
        if self.one_ranking:
            totals = [one.total(self.columns) for one in solved]
            found[0] -= totals[0] / totals[1] * found[1]
        return found[0]

    def without_row(self, alpha: float) -> Floats:
        """Return the same for each row by the model of the other rows."""
        G, solved = self._solve(alpha)
        leverage = self.rows.rest[:, None] / alpha + self._squares @ G  # the diagonal blocks of S, times V
        roots = np.sqrt(self.columns.values)
        own = roots * (self._squares @ (self.rows.values[:, None] * G)) / leverage
        found = [self._function(one) - own * one.rotated for one in solved]
        if self.one_ranking:
            ones = solved[1]
            totals = [
                one.total(self.columns)
                - (ones.rotated * one.rotated / leverage).sum(axis=1)
                - alpha * (ones.outside * one.outside).sum(axis=1)
                for one in solved
            ]
            found[0] -= (totals[0] / totals[1])[:, None] * found[1]
        return found[0]

    def _function(self, solved: _Solved) -> Floats:
        inner = self.rows.values[:, None] * solved.weighted * np.sqrt(self.columns.values)
        return np.asarray(self.rows.vectors @ inner)

    def without_entry(self, alpha: float) -> Iterator[Floats]:
        """Yield for each row the scores of its entries (second axis) by the models without one of them (first)."""
        G, solved = self._solve(alpha)
        X = self.columns.vectors * np.sqrt(self.columns.values)
        leverage = self.rows.rest[:, None] / alpha + self._squares @ G
        own = self._squares @ (self.rows.values[:, None] * G)
        diagonal = self.columns.rest / alpha + leverage @ np.square(self.columns.vectors).T
        dual = [one.dual(self.columns) for one in solved]
        scores = [self._function(one) @ X.T for one in solved]
        if self.one_ranking:
            total, ones = dual[1].sum(), dual[1]
            beta = dual[0].sum() / total
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
    if cv == "leave-row-out":
        evaluator = metric.prepare(table.Y.ravel(), np.repeat(np.arange(table.Y.shape[0]), table.Y.shape[1]))
        coordinates = table.columns.coordinates(table.Z)
        values = []
        for at, alpha in enumerate(alphas):
            values.append(_per_row(evaluator, _rounded(table.without_row(alpha) @ coordinates.T)))
            reach((at + 1) / alphas.size)
        return np.array(values)
    compared = [_Comparisons(table.Y, metric) for _ in alphas]
    if cv == "leave-entry-out":
        for at, (alpha, one) in enumerate(zip(alphas, compared, strict=True)):
            for row, scores in enumerate(table.without_entry(alpha)):
                one.add_row(row, scores)
            reach((at + 1) / alphas.size)
    else:
        m = table.Y.shape[1]
        for column in range(m):
            others = np.arange(m) != column
            part = Table(table.Y[:, others], table.Z[others], table.rows, table.one_ranking)
            coordinates = part.columns.coordinates(table.Z)
            for alpha, one in zip(alphas, compared, strict=True):
                functions = part.fitted(alpha) if cv == "leave-column-out" else part.without_row(alpha)
                one.add_column(column, functions @ coordinates.T)
            reach((column + 1) / m)
    return np.array([one.values() for one in compared])


def _per_row(evaluator: Evaluator, scores: Floats) -> Floats:
    return np.asarray(evaluator.per_query(scores.ravel()).values)


def _rounded(scores: Floats) -> Floats:
    """Centre the scores of each row, and round them so that equal columns tie."""
    scores = scores - scores.mean(axis=1, keepdims=True)
    size: Floats = np.abs(scores).max(axis=1, keepdims=True)
    size[size <= _NOTHING * size.max()] = np.inf
    return np.asarray(np.round(scores / size, 11))


class _Comparisons:
    """Held-out entries compared with the other entries of their rows."""

    def __init__(self, Y: Floats, metric: Metric) -> None:
        self.Y, self.metric = Y, metric
        self.wrong = np.zeros(Y.shape[0])
        self.pairs = np.zeros(Y.shape[0])
        self.place = np.zeros(Y.shape)
        self._tie_cost = float(metric.options.get("ties", 0.5)) if metric.takes_weights else 0.5

    def add_column(self, column: int, scores: Floats) -> None:
        """Compare a column that was held out with all columns, in every row."""
        size = np.abs(scores - scores.mean(axis=1, keepdims=True)).max(axis=1)
        size[size <= _NOTHING * size.max()] = np.inf
        above = _sign(scores[:, [column]] - scores, size[:, None])
        wanted = np.sign(self.Y[:, [column]] - self.Y)
        self.wrong += self._mistakes(above, wanted)
        self.pairs += (wanted != 0).sum(axis=1)
        self.place[:, column] = above.sum(axis=1)

    def add_row(self, row: int, scores: Floats) -> None:
        """Compare every entry of a row with the others; row k of the scores is by the model without entry k."""
        size = np.abs(scores - scores.mean(axis=1, keepdims=True)).max(axis=1)
        above = _sign(scores.diagonal()[:, None] - scores, size[:, None])
        wanted = np.sign(self.Y[row][:, None] - self.Y[row])
        self.wrong[row] = self._mistakes(above, wanted).sum()
        self.pairs[row] = (wanted != 0).sum()
        self.place[row] = above.sum(axis=1)

    def _mistakes(self, above: Floats, wanted: Floats) -> Floats:
        product = above * wanted
        ties = (above == 0) & (wanted != 0)
        return np.asarray((product < 0).sum(axis=1) + self._tie_cost * ties.sum(axis=1), dtype=np.float64)

    def values(self) -> Floats:
        if self.metric.takes_weights and self.metric.base_name != "auc":
            share = np.divide(
                self.wrong, self.pairs, out=np.full(self.pairs.size, np.nan), where=self.pairs > 0
            )
            low, high = self.metric.bounds
            return np.asarray(high - (high - low) * share if self.metric.greater_is_better else share)
        rows, columns = self.Y.shape
        return _per_row(self.metric.prepare(self.Y.ravel(), np.repeat(np.arange(rows), columns)), self.place)


def _sign(difference: Floats, size: Floats) -> Floats:
    return np.where(np.abs(difference) <= _TIE * size, 0.0, np.sign(difference))
