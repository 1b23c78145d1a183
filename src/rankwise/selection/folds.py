"""Assigning queries, rows or pairs to folds, by what they hold instead of by their order.

What is assigned is sorted, and each run of as many neighbours as there are folds in random order: so folds have
nearly equal sizes and like labels. The order, and with it the folds, must not depend on anything that a model does not
depend on: the order of rows, of columns and of outputs, the names of queries, the unit and the zero of a label or of a
column, and rows that weigh nothing, which are not assigned at all. It goes

1. by weight (of a query, its total: a row of weight 2 is two rows), or, for the rows of one ranking, by label;
2. by a profile of the labels, ``Σ exp(label - the query's mean)``, symmetric in outputs;
3. only between those that are still equal, by the content of X: each column divided by its spread inside queries and
   weighted by ``exp(2 · its correlation with the labels)``, added up. That needs no order of columns, and tells two
   columns apart where labels do. Only rows that agree in this as well are assigned as they stand.

Numbers that differ by rounding count as equal.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import overload

import numpy as np
import numpy.typing as npt

from rankwise.arrays import Floats, Ints
from rankwise.data.queries import Queries
from rankwise.design import Design
from rankwise.pairs.labels import label_graph
from rankwise.problems.training import PairData, TrainingData, TrainingProblem

__all__ = ["FoldAssigner", "PairAssigner", "assigner_of", "pair_assigner"]


# Of the largest number: what rounding may add to sums that are equal otherwise.
_ROUNDING = 1e-11


class FoldAssigner:
    """Assigns whole queries to folds, or the rows where there is one query only; rows that weigh nothing are not there.

    Attributes
    ----------
    n_units : int
        How many queries, or rows of one ranking, there are to assign.
    unit : str
        "queries" or "rows".
    """

    def __init__(
        self, design: Design, labels: Floats, queries: Queries, weight: Floats | None = None
    ) -> None:
        self._design, self._all = design, queries
        self._n_rows = labels.shape[0]
        columns = labels.reshape(self._n_rows, -1)
        self._weight = np.ones(self._n_rows) if weight is None else weight
        self._rows = np.flatnonzero(self._weight > 0)  # everything below is theirs alone
        self._labels, self._queries = columns, queries
        if self._rows.size < self._n_rows:
            self._labels, self._queries = columns[self._rows], queries.subset(self._rows)
            self._weight = self._weight[self._rows]
        is_one = len(self._queries) == 1
        self.n_units, self.unit = (self._rows.size, "rows") if is_one else (len(self._queries), "queries")

    def folds(self, n_folds: int, seed: int) -> npt.NDArray[np.int32]:
        """Assign to folds. Queries that weigh nothing, and in one ranking such rows, get fold -1."""
        rng = np.random.default_rng(seed)
        if self.unit == "rows":
            assigned = np.full(self._n_rows, -1, dtype=np.int32)
            assigned[self._rows] = _assign(self._rows_in_order, n_folds, rng)
            return assigned
        # All rows of a query, those that weigh nothing too: it is held out as a whole.
        of_query = np.full(len(self._all), -1, dtype=np.int32)
        own = _assign(self._queries_in_order, n_folds, rng)
        of_query[self._all.codes[self._rows]] = own[self._queries.codes]
        return of_query[self._all.codes]

    def share(self, share: float, seed: int) -> npt.NDArray[np.bool_]:
        """Choose a share, as `folds` assigns it."""
        held = np.zeros(self._n_rows, dtype=np.bool_)
        held[self._rows] = self.folds(_share_as_folds(share, self.n_units), seed)[self._rows] == 0
        return held

    def sample(self, at_most: int, seed: int) -> npt.NDArray[np.bool_]:
        """Choose about so many rows: whole queries drawn at random, and of a huge one an even sample of its labels."""
        rng = np.random.default_rng(seed)
        sizes, codes = self._queries.sizes, self._queries.codes
        cap = at_most if self.unit == "rows" else max(2, at_most // 10)  # no query is to be the whole sample
        drawn = self._queries_in_order[rng.permutation(sizes.size)]
        rows_so_far = np.cumsum(np.minimum(sizes[drawn], cap))
        drawn = drawn[: max(1, int(np.searchsorted(rows_so_far, at_most, side="right")))]
        is_whole = np.zeros(sizes.size, dtype=np.bool_)
        is_whole[drawn[sizes[drawn] <= cap]] = True
        chosen = np.zeros(self._n_rows, dtype=np.bool_)
        chosen[self._rows] = is_whole[codes]
        for query in drawn[sizes[drawn] > cap]:
            members = self._rows_in_order[codes[self._rows_in_order] == query]
            even = np.linspace(0, members.size - 1, cap).round().astype(np.int64)
            chosen[self._rows[members[even]]] = True
        return chosen

    @cached_property
    def _rows_in_order(self) -> Ints:
        """The rows by their labels, whatever their query."""
        middle = np.zeros(self._rows.size)
        for column in self._labels.T:
            _, level, counts = np.unique(column, return_inverse=True, return_counts=True)
            twice_the_rank = 2 * np.cumsum(counts) - counts  # in the middle of its level: whole numbers
            middle += twice_the_rank[level.reshape(-1)]
        # Rows count alike here; weights tell only those apart that hold the same.
        alike = np.ones(self._rows.size)
        profile = self._profile(alike)
        return _in_order([middle, profile], lambda: [self._content(profile, alike), self._weight])

    @cached_property
    def _queries_in_order(self) -> Ints:
        """The queries by their size, largest first, and by their labels."""
        weight = self._weight
        profile = self._profile(weight)

        def content() -> list[Floats]:
            seen = self._content(profile, weight)
            inside = self._centred(seen, weight)
            return [self._total(weight * key) for key in (inside**2, inside * profile, seen)]

        return _in_order([-self._total(weight), self._total(weight * profile)], content)

    def _profile(self, weight: Floats) -> Floats:
        """Return ``Σ exp(label - the query's mean)``, over outputs, each in units of its own."""
        profile = np.zeros(self._rows.size)
        for column in self._labels.T:
            unit = max(float(np.abs(column).max()), np.finfo(np.float64).tiny)
            centred = self._centred(column / unit, weight)
            largest = float(np.abs(centred).max())
            profile += np.exp(centred / largest) if largest > 0 else 1.0
        return profile

    def _content(self, profile: Floats, weight: Floats) -> Floats:
        """Return what X holds, a number per row."""
        n_rows = self._n_rows
        codes, weights, pull = np.zeros(n_rows, dtype=np.int64), np.zeros(n_rows), np.zeros(n_rows)
        codes[self._rows], weights[self._rows] = self._queries.codes, weight
        pull[self._rows] = weight * self._centred(profile, weight)
        return _content(self._design, codes, weights, pull)[self._rows]

    def _total(self, per_row: Floats) -> Floats:
        return _sums(self._queries.codes, per_row, len(self._queries))

    def _centred(self, per_row: Floats, weight: Floats) -> Floats:
        mean = self._total(weight * per_row) / self._total(weight)
        return np.asarray(per_row - mean[self._queries.codes])


class PairAssigner:
    """Assigns listed pairs to folds, those of one unit together, as `FoldAssigner` assigns the rows of a query.

    Units are sorted by weight and magnitude, then by the content of the rows they compare, which depends neither on the
    order of the pairs nor on that of the rows. Units that weigh nothing come last, where they change nothing.

    Attributes
    ----------
    n_units : int
        How many units have a pair that weighs something.
    unit : str
        What they are, such as "pairs".
    """

    def __init__(
        self,
        design: Design,
        winner: Ints,
        loser: Ints,
        codes: Ints,
        weight: Floats | None = None,
        magnitude: Floats | None = None,
        unit: str = "pairs",
    ) -> None:
        self._design, self._winner, self._loser, self.codes = design, winner, loser, codes
        self._weight = np.ones(winner.size) if weight is None else weight
        self._wanted = self._weight if magnitude is None else self._weight * magnitude
        self.n_units, self.unit = int(np.count_nonzero(np.bincount(codes[self._weight > 0]))), unit

    def folds(self, n_folds: int, seed: int) -> npt.NDArray[np.int32]:
        """Assign to folds."""
        rng, sizes = np.random.default_rng(seed), _sums(self.codes, self._weight)
        order = _in_order([-sizes, _sums(self.codes, self._wanted)], self._content)
        return _assign(order, n_folds, rng)[self.codes]

    def share(self, share: float, seed: int) -> npt.NDArray[np.bool_]:
        """Choose a share, as `folds` assigns it."""
        return np.asarray(self.folds(_share_as_folds(share, self.n_units), seed) == 0)

    def _content(self) -> list[Floats]:
        n_rows, winner, loser, weight = self._design.shape[0], self._winner, self._loser, self._weight
        won, lost = _sums(winner, self._wanted, n_rows), _sums(loser, self._wanted, n_rows)
        degree = _sums(winner, weight, n_rows) + _sums(loser, weight, n_rows)
        seen = _content(self._design, np.zeros(n_rows, dtype=np.int64), degree, won - lost)
        difference = seen[winner] - seen[loser]
        keys = (seen[winner] + seen[loser], np.abs(difference), difference)
        return [_sums(self.codes, weight * key) for key in keys]


@overload
def assigner_of(data: TrainingData) -> FoldAssigner: ...


@overload
def assigner_of(data: PairData) -> PairAssigner: ...


def assigner_of(data: TrainingProblem) -> FoldAssigner | PairAssigner:
    """Return what assigns training rows, or pairs with all comparisons of the same two rows together."""
    if isinstance(data, TrainingData):
        return FoldAssigner(data.design, data.y, data.queries, data.fold_weight)
    winner, loser = data.preferences.winner, data.preferences.loser
    n_rows = np.int64(data.design.shape[0])
    return _assigner_by(data, np.minimum(winner, loser) * n_rows + np.maximum(winner, loser))


def pair_assigner(cv: object, data: PairData, *, whole_components: bool) -> PairAssigner:
    """Return what assigns groups, connected components or the couples of rows that are compared."""
    if data.groups is not None and cv != "leave-pair-out":
        return _assigner_by(data, data.groups.codes, "groups")
    several = cv == "auto" and whole_components and data.graph.n_components > 1
    if data.groups is None and (several or cv == "leave-query-out"):
        return _assigner_by(data, data.components, "connected components")
    return assigner_of(data)


def _assigner_by(data: PairData, key: Ints, unit: str = "pairs") -> PairAssigner:
    """Return what assigns pairs to folds, those of equal keys together."""
    graph, codes = data.graph, np.unique(key, return_inverse=True)[1].reshape(-1).astype(np.int64, copy=False)
    weight, wanted = graph.pair_weight, graph.difference
    return PairAssigner(data.design, graph.winner, graph.loser, codes, weight, wanted, unit)


def _share_as_folds(share: float, n_units: int) -> int:
    """Return how many folds make one of them the wanted share, if there are that many units."""
    return min(max(2, round(1 / share)), max(n_units, 2))


def _content(design: Design, codes: Ints, weight: Floats, pull: Floats) -> Floats:
    """Return a number per row from the content of its columns, 0 on average.

    Parameters
    ----------
    codes : (rows,) int64
        The query of each row: a column's spread is taken inside queries.
    weight : (rows,) float64
    pull : (rows,) float64
        The labels, weighted and centred inside queries.
    """
    blocks = label_graph(pull, Queries(codes, np.arange(int(codes.max()) + 1)), row_weight=weight).blocks
    size = np.sqrt(np.divide(pull**2, weight, out=np.zeros_like(pull), where=weight > 0).sum())
    with np.errstate(over="ignore", invalid="ignore"):
        covariance, squares = design.tdot(pull), design.gram_diagonal(blocks)
        if squares is None:  # an operator: one unit for all columns
            squares = np.full(covariance.size, np.abs(covariance).max(initial=0.0) ** 2)
        spread = np.sqrt(np.maximum(squares, 0.0))
        inverse = np.divide(1.0, spread, out=np.zeros_like(spread), where=spread > 0)
        correlation = covariance * inverse * (1.0 / size if size > 0 else 0.0)
        seen = np.nan_to_num(
            design.dot(np.exp(2.0 * np.clip(np.nan_to_num(correlation), -1.0, 1.0)) * inverse)
        )
    return np.asarray(seen - np.average(seen, weights=weight))


def _sums(unit: Ints, values: Floats, n_units: int = 0) -> Floats:
    """Add up the values of each unit."""
    return np.bincount(unit, weights=values, minlength=n_units).astype(np.float64, copy=False)


def _in_order(keys: Sequence[Floats], more: Callable[[], Sequence[Floats]]) -> Ints:
    """Sort by the first key, ties by the next; `more` keys are made only where some are equal in all of them."""
    places = [_places(key) for key in keys]
    order = np.lexsort(places[::-1])
    if np.all([np.diff(place[order]) == 0 for place in places], axis=0).any():
        places += [_places(key) for key in more()]
        order = np.lexsort(places[::-1])
    return order.astype(np.int64, copy=False)


def _places(values: Floats) -> Ints:
    """Return the place of each value in increasing order; those that differ by rounding share one."""
    order = np.argsort(values, kind="stable")
    steps = np.diff(values[order]) > _ROUNDING * np.abs(values).max(initial=0.0)
    places = np.empty(values.size, dtype=np.int64)
    places[order] = np.concatenate([[0], np.cumsum(steps)])
    return places


def _assign(order: Ints, n_folds: int, rng: np.random.Generator) -> npt.NDArray[np.int32]:
    n_runs = -(-order.size // n_folds)
    order_of_folds = rng.permuted(np.tile(np.arange(n_folds, dtype=np.int32), (n_runs, 1)), axis=1)
    fold = np.empty(order.size, dtype=np.int32)
    fold[order] = order_of_folds.ravel()[: order.size]
    return fold
