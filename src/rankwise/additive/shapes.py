"""Fitted curves and surfaces as tables, with the importance of each term."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from rankwise.additive.fitting import Layout
from rankwise.additive.purification import purified, with_knots_of_surfaces
from rankwise.arrays import Floats, InMemory, Ints
from rankwise.data.queries import Queries
from rankwise.design import AdditiveDesign
from rankwise.design.cells import Cells
from rankwise.design.term_scores import predict
from rankwise.design.terms import Curve, Terms

__all__ = [
    "FittedCurve",
    "FittedSurface",
    "FittedTerms",
    "each_term_alone",
    "spread_inside_queries",
    "term_masses",
]

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
        terms, values = with_knots_of_surfaces(layout.terms, layout.coordinates.exact_values(coef))
        shares = term_masses(X, terms, row_weight, n_threads)
        masses = [shares[terms.values_of(number)] for number in range(len(terms.all_terms))]
        values, _ = purified(terms, values, masses)
        rows = _whole_queries(queries, _LOOKED_AT)
        weight = None if row_weight is None else row_weight[rows]
        spread = spread_inside_queries(X[rows], terms, values, queries.subset(rows), weight, n_threads)
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


def term_masses(X: InMemory, terms: Terms, weight: Floats | None, n_threads: int) -> Floats:
    """Return the share of the rows' weight that every value of the terms gets."""
    n_rows = X.shape[0]
    share = np.full(n_rows, 1.0 / n_rows) if weight is None else weight / weight.sum()
    total, cells = np.zeros(terms.n_values), Cells(terms)
    for first in range(0, n_rows, _ENCODED_ROWS):
        rows = slice(first, first + _ENCODED_ROWS)
        total += AdditiveDesign.encode(X[rows], terms, None, n_threads, cells).tdot(share[rows])
    return total


def each_term_alone(X: Any, terms: Terms, values: Floats, n_threads: int) -> Iterator[Floats]:
    """Yield the contribution of each term to the scores of the rows of X: curves, then surfaces."""
    for number, term in enumerate(terms.all_terms):
        alone = Terms((term,)) if isinstance(term, Curve) else Terms((), (term,))
        yield predict(X, alone, values[terms.values_of(number)], n_threads)


def spread_inside_queries(
    X: InMemory, terms: Terms, values: Floats, queries: Queries, weight: Floats | None, n_threads: int
) -> Floats:
    """Return the standard deviation of the contributions of each term about the mean of each query."""
    n_rows, n_queries = X.shape[0], len(queries)
    share = np.full(n_rows, 1.0 / n_rows) if weight is None else weight / weight.sum()
    of_query = np.bincount(queries.codes, share, n_queries)
    spread = np.zeros(len(terms.all_terms))
    for number, added in enumerate(each_term_alone(X, terms, values, n_threads)):
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
