"""Fitted curves and surfaces as tables, with the importance of each term.

A sum of a surface and two curves can be written in many ways, because an effect of one column may be part of either.
Surfaces are therefore *purified*: 0 on average along each of their lines under the training rows. Their main effects
are added to the curves of their columns, which get the surface's knots beside their own, so the scores do not change. A
column that is constant inside every query has no curve; its main effect, which no pair sees, is dropped.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from rankwise.additive.fitting import Layout
from rankwise.arrays import Floats, InMemory, Ints
from rankwise.data.queries import Queries
from rankwise.design import AdditiveDesign
from rankwise.design.additive import Cells
from rankwise.design.terms import Curve, Terms, predict

Labels = Callable[[Curve], list[str] | None]

_ENCODED_ROWS = 1 << 14  # at a time: the codes of all are as large as X
_LOOKED_AT = 20_000  # rows whose spread inside queries tells how much a term matters


@dataclass(frozen=True, eq=False)
class FittedCurve:
    """The contribution of one column to the score.

    Attributes
    ----------
    column : int
    name : str
    knots : (k,) float64
        Increasing; the value is linear between them and constant outside. For a category, its levels.
    values : (k,) float64
        The contribution at each knot.
    missing : float
        The contribution where the column is missing, or, for a category, where no level matches; 0, the average, if
        no training row was like that.
    is_levels : bool
    shares : (k,) float64
        The share of the training rows at each knot; with the share of missing entries, they sum to 1.
    importance : float
        The spread inside queries: the standard deviation of its contributions about the mean of each query.
    labels : list of str or None
        The knots as the table has them: levels, dates, or True and False; None for numbers.
    """

    column: int
    name: str
    knots: Floats
    values: Floats
    missing: float
    is_levels: bool
    shares: Floats
    importance: float
    labels: list[str] | None = None


@dataclass(frozen=True, eq=False)
class FittedSurface:
    """The joint contribution of two columns to the score, beyond their curves.

    Attributes
    ----------
    columns : (int, int)
    names : (str, str)
    knots : pair of float64 arrays
        The knots of the first and of the second column.
    values : (k, l) float64
        Bilinear between the knots.
    missing : (bool, bool)
        Whether the last line of `values` along an axis is the contribution of missing entries; otherwise a missing
        entry contributes 0.
    is_levels : (bool, bool)
    importance : float
    labels : (list of str or None, list of str or None)
        As in `FittedCurve`.
    """

    columns: tuple[int, int]
    names: tuple[str, str]
    knots: tuple[Floats, Floats]
    values: Floats
    missing: tuple[bool, bool]
    is_levels: tuple[bool, bool]
    importance: float
    labels: tuple[list[str] | None, list[str] | None] = (None, None)


class FittedTerms(NamedTuple):
    """Terms with their values, the share of the training rows at each value, and the importance of each term."""

    terms: Terms
    values: Floats
    shares: Floats
    importances: Floats

    @classmethod
    def of_solution(
        cls,
        layout: Layout,
        coef: Floats,
        X: InMemory,
        queries: Queries,
        row_weight: Floats | None,
        n_threads: int,
    ) -> FittedTerms:
        """Purify the solution of a solver."""
        terms, values = with_knots_of_surfaces(
            layout.coordinates.terms, layout.coordinates.exact_values(coef)
        )
        weight = np.ones(X.shape[0]) if row_weight is None else row_weight
        shares = term_masses(X, terms, weight, n_threads)
        masses = [shares[terms.values_of(number)] for number in range(len(terms.all_terms))]
        values, _ = purified(terms, values, masses)
        rows = _whole_queries(queries, _LOOKED_AT)
        spread = spread_inside_queries(X[rows], terms, values, queries.subset(rows), weight[rows], n_threads)
        return cls(terms, values, shares, spread)

    def curves(self, names: Sequence[str], label: Labels) -> list[FittedCurve]:
        """Return the curves; `names` are those of the columns of X, and `label` writes knots as people do."""
        found = []
        for number, curve in enumerate(self.terms.curves):
            own, n_knots = self.terms.values_of(number), curve.knots.size
            values, shares = self.values[own], self.shares[own]
            found.append(
                FittedCurve(
                    curve.column,
                    names[curve.column],
                    curve.knots,
                    values[:n_knots],
                    float(values[n_knots]) if curve.has_missing else 0.0,
                    curve.is_levels,
                    shares[:n_knots],
                    float(self.importances[number]),
                    label(curve),
                )
            )
        return found

    def surfaces(self, names: Sequence[str], label: Labels) -> list[FittedSurface]:
        """Return the surfaces, the most important first."""
        found = []
        for number, surface in enumerate(self.terms.surfaces, start=len(self.terms.curves)):
            first, second = surface.first, surface.second
            grid = self.values[self.terms.values_of(number)].reshape(first.n_values, second.n_values)
            found.append(
                FittedSurface(
                    (first.column, second.column),
                    (names[first.column], names[second.column]),
                    (first.knots, second.knots),
                    grid,
                    (first.has_missing, second.has_missing),
                    (first.is_levels, second.is_levels),
                    float(self.importances[number]),
                    (label(first), label(second)),
                )
            )
        return sorted(found, key=lambda surface: -surface.importance)


def term_masses(X: InMemory, terms: Terms, weight: Floats, n_threads: int) -> Floats:
    """Return the share of the rows' weight that every value of the terms gets."""
    n_rows = X.shape[0]
    share = weight / weight.sum()
    total, cells = np.zeros(terms.n_values), Cells(terms)
    for first in range(0, n_rows, _ENCODED_ROWS):
        rows = slice(first, first + _ENCODED_ROWS)
        total += AdditiveDesign.encode(X[rows], terms, None, n_threads, cells).tdot(share[rows])
    return total


def spread_inside_queries(
    X: InMemory, terms: Terms, values: Floats, queries: Queries, weight: Floats, n_threads: int
) -> Floats:
    """Return the standard deviation of the contributions of each term about the mean of each query."""
    n_queries, share = len(queries), weight / weight.sum()
    of_query = np.bincount(queries.codes, share, n_queries)
    spread = np.zeros(len(terms.all_terms))
    for number, term in enumerate(terms.all_terms):
        alone = Terms((term,)) if isinstance(term, Curve) else Terms((), (term,))
        added = predict(X, alone, values[terms.values_of(number)], n_threads)
        mean = np.bincount(queries.codes, share * added, n_queries)
        mean = np.divide(mean, of_query, out=np.zeros_like(mean), where=of_query > 0)
        spread[number] = np.sqrt(share @ (added - mean[queries.codes]) ** 2)
    return spread


def _whole_queries(queries: Queries, at_most: int) -> Ints:
    """Return about `at_most` evenly chosen rows: whole queries, or rows of the query if there is only one."""
    if queries.n_rows <= at_most:
        return np.arange(queries.n_rows)
    if len(queries) == 1:
        return np.linspace(0, queries.n_rows - 1, at_most).astype(np.int64)
    every = -(-queries.n_rows // at_most)
    return np.flatnonzero(queries.codes % every == 0)


def main_effects(grid: Floats, mass: Floats) -> tuple[Floats, Floats]:
    """Return a and b so that ``grid - a[:, None] - b`` has the mean 0 along every line, weighted by `mass`.

    This is the weighted least-squares fit of a sum of two curves; lines without mass get 0.
    """
    n_first, n_second = grid.shape
    system = np.zeros((n_first + n_second,) * 2)
    system[:n_first, :n_first] = np.diag(mass.sum(axis=1))
    system[n_first:, n_first:] = np.diag(mass.sum(axis=0))
    system[:n_first, n_first:] = mass
    system[n_first:, :n_first] = mass.T
    wanted = np.concatenate([(mass * grid).sum(axis=1), (mass * grid).sum(axis=0)])
    found = np.linalg.lstsq(system, wanted, rcond=1e-12)[0]
    return found[:n_first], found[n_first:]


def purified(terms: Terms, values: Floats, masses: Sequence[Floats]) -> tuple[Floats, float]:
    """Return the values of terms whose surfaces hold no main effect and whose terms are all 0 on average.

    Parameters
    ----------
    terms : Terms
        Curves have the knots of surfaces among others (`with_knots_of_surfaces`).
    values : (n_values,) float64
    masses : sequence of (n_values of the term,) float64
        The weight that the training rows give to each value, term by term.

    Returns
    -------
    values : (n_values,) float64
    constant : float
        The constant subtracted from the score of every row.
    """
    values = values.copy()
    curve_of = {curve.column: (number, curve) for number, curve in enumerate(terms.curves)}
    for number, surface in enumerate(terms.surfaces, start=len(terms.curves)):
        shape = surface.first.n_values, surface.second.n_values
        grid = values[terms.values_of(number)].reshape(shape)
        effects = main_effects(grid, masses[number].reshape(shape))
        grid -= effects[0][:, None] + effects[1]
        for side, effect in zip((surface.first, surface.second), effects, strict=True):
            if side.column in curve_of:
                place, curve = curve_of[side.column]
                values[terms.values_of(place)] += _on_curve(side, effect, curve)
    constant = 0.0
    for number in range(len(terms.curves)):
        own = values[terms.values_of(number)]
        mean = float(np.average(own, weights=masses[number]))
        own -= mean
        constant += mean
    return values, constant


def with_knots_of_surfaces(terms: Terms, values: Floats) -> tuple[Terms, Floats]:
    """Add the knots of the surfaces of its column to every curve, without changing its function."""
    sides: dict[int, Curve] = {}
    for surface in terms.surfaces:
        sides |= {side.column: side for side in (surface.first, surface.second)}
    curves, parts = [], []
    for number, curve in enumerate(terms.curves):
        own, side = values[terms.values_of(number)], sides.get(curve.column)
        finer = curve
        if side is not None and not curve.is_levels:
            finer = replace(curve, knots=np.union1d(curve.knots, side.knots))
        curves.append(finer)
        parts.append(_on_curve(curve, own, finer))
    parts.append(values[terms.offsets[len(terms.curves)] :])
    return Terms(tuple(curves), terms.surfaces), np.concatenate(parts)


def _on_curve(side: Curve, effect: Floats, curve: Curve) -> Floats:
    """Read a curve of few knots at the values of a curve of more."""
    if side.is_levels or side.n_values == curve.n_values:
        return effect
    ids, weights = side.weights(curve.knots)
    read = (weights * effect[ids]).sum(axis=1)
    return np.append(read, effect[-1]) if curve.has_missing else read
