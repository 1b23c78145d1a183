"""Training data after validation, on its way to graphs."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from rankwise.arrays import Bools, Floats, Ints, Rows
from rankwise.data.queries import Queries
from rankwise.data.validation import Preferences
from rankwise.design import Design, matrix_rows
from rankwise.exceptions import NoPairsError
from rankwise.pairs.labels import (
    Cost,
    LabelGraph,
    Levels,
    QueryWeight,
    Ties,
    find_levels,
    label_graph,
    laplacian_depends_on_labels,
)
from rankwise.pairs.preferences import PreferenceGraph, preference_graph

__all__ = ["PairData", "TrainingData", "TrainingProblem", "code_rows"]


_BLOCK = 1 << 18  # entries of X that are looked at together


@dataclass(frozen=True)
class PairData:
    """A design and a list of pairs, after validation; `groups` of pairs are not divided between folds."""

    design: Design
    preferences: Preferences
    graph: PreferenceGraph
    groups: Queries | None = None

    several_outputs = False
    n_outputs = 1

    @classmethod
    def listed(
        cls, design: Design, listed: Preferences, ties: Ties, cost: Cost, groups: Queries | None = None
    ) -> PairData:
        """Build the graph of a checked list of pairs."""
        graph = preference_graph(
            listed.winner,
            listed.loser,
            design.shape[0],
            magnitude=listed.magnitude,
            weight=listed.weight,
            ties=ties,
            cost=cost,
            n_threads=design.n_threads,
        )
        if graph.n_pairs == 0:
            raise NoPairsError(
                "Every pair that weighs something is a tie (magnitude 0), so nothing says which row is better.",
                "pass at least one pair with a positive magnitude and weight.",
            )
        return cls(design, listed, graph, groups)

    @property
    def attributes(self) -> dict[str, object]:
        """What a fit says about its pairs."""
        return {
            "n_queries_": 1,
            "n_pairs_": self.graph.n_pairs,
            "n_ignored_queries_": 0,
            "n_components_": self.graph.n_components,
            "n_unpaired_rows_": self.graph.n_unpaired_rows,
        }

    @cached_property
    def row_codes(self) -> Ints:
        """Numbers of the rows, which equal rows share."""
        return code_rows(self.design)

    @property
    def scoring_weight(self) -> Floats:
        """What each pair weighs in scoring: the caller's weight, and nothing where it has no winner."""
        weight = self.preferences.weight
        return np.where(self.graph.is_ordered, 1.0 if weight is None else weight, 0.0)

    @property
    def components(self) -> Ints:
        """The connected component of the rows that each pair is in."""
        winner, loser, n_rows = self.preferences.winner, self.preferences.loser, self.design.shape[0]
        edges = sp.coo_array((np.ones(winner.size), (winner, loser)), shape=(n_rows, n_rows))
        return np.asarray(connected_components(edges, directed=False)[1][winner], dtype=np.int64)

    def graph_of(self, output: int = 0, trained: Bools | None = None) -> PreferenceGraph:
        """Return the graph, or that of some of the pairs."""
        graph = self.graph
        return graph if trained is None else replace(graph, pair_weight=graph.pair_weight * trained)

    def graphs(self, trained: Bools | None = None) -> list[PreferenceGraph]:
        """Return the graph, alone."""
        return [self.graph_of(0, trained)]

    def has_pairs(self, output: int, trained: Bools) -> bool:
        """Tell whether some of the pairs have a winner."""
        return bool((self.graph.is_ordered & trained).any())


@dataclass
class TrainingData:
    """A design and its labels, after validation.

    Attributes
    ----------
    columns : list of (rows,) float64
        The labels, output by output.
    n_outputs, several_outputs : int, bool
        How many there are, and whether y has columns.
    levels : list of Levels
        Their levels, output by output.
    fold_weight : (rows,) float64 or None
        What each row weighs when folds are assigned: rows and queries that weigh nothing are not there.
    attributes : dict
        What a fit says about its queries and pairs; an array over outputs where y has columns.
    """

    design: Design
    y: Floats
    queries: Queries
    row_weight: Floats | None
    importance: Floats | None
    ties: Ties
    cost: Cost
    query_weight: QueryWeight

    def __post_init__(self) -> None:
        if self.importance is not None and not self.importance.all():
            # A query of no importance is left out: its rows neither train nor score.
            weight = np.ones(self.queries.n_rows) if self.row_weight is None else self.row_weight
            self.row_weight = weight * (self.importance[self.queries.codes] > 0)
        self.fold_weight = self.row_weight
        if self.importance is not None:
            own = self.importance[self.queries.codes]
            self.fold_weight = own if self.row_weight is None else own * self.row_weight
        self.several_outputs = self.y.ndim == 2
        self.columns: list[Floats] = (
            list(np.ascontiguousarray(self.y.T)) if self.several_outputs else [self.y]
        )
        self.n_outputs = len(self.columns)
        self.levels: list[Levels] = [find_levels(c, self.queries, self.row_weight) for c in self.columns]
        for output, levels in enumerate(self.levels):
            if levels.n_pairs == 0:
                which = f"output {output} of y" if self.several_outputs else "y"
                raise NoPairsError(
                    f"No query has two different labels in {which}, so nothing says which row is better.",
                    "every query has a single row: check that qid groups the rows that compete."
                    if self.queries.sizes.max(initial=0) <= 1
                    else "check that y holds the labels and that qid groups rows with different labels.",
                )
        n_queries, n_pairs = len(self.queries), [levels.n_pairs for levels in self.levels]
        n_ignored = [n_queries - int(np.count_nonzero(levels.ordered)) for levels in self.levels]
        several = self.several_outputs
        self.attributes: dict[str, object] = {
            "n_queries_": n_queries,
            "n_pairs_": np.array(n_pairs) if several else n_pairs[0],
            "n_ignored_queries_": np.array(n_ignored) if several else n_ignored[0],
        }

    @cached_property
    def row_codes(self) -> Ints:
        """Numbers of the rows, which equal rows share."""
        return code_rows(self.design)

    def weight_of(self, trained: Bools | None) -> Floats | None:
        """Return the row weights, 0 where rows are not trained on; None where all weigh 1."""
        if trained is None:
            return self.row_weight
        return np.asarray((1.0 if self.row_weight is None else self.row_weight) * trained)

    def levels_of(self, output: int, trained: Bools | None = None) -> Levels:
        """Return the levels of an output, of all rows or of some."""
        levels = self.levels[output]
        return levels if trained is None else levels.reweighted(self.weight_of(trained))

    def has_pairs(self, output: int, trained: Bools) -> bool:
        """Tell whether some of the rows have a pair of an output."""
        return bool(self.levels_of(output, trained).n_pairs > 0)

    def graph_of(self, output: int, trained: Bools | None = None) -> LabelGraph:
        """Build the graph of one output, of all rows or of some."""
        return label_graph(
            self.columns[output],
            self.queries,
            levels=self.levels_of(output, trained),
            row_weight=self.weight_of(trained),
            **self._options(),
        )

    def graphs(self, trained: Bools | None = None) -> list[LabelGraph]:
        """Return one graph for all outputs where they can share it, else one per output; so of some rows."""
        may_share = trained is None and self.several_outputs
        if may_share and not laplacian_depends_on_labels(self.ties, self.cost, self.query_weight):
            return [label_graph(self.y, self.queries, row_weight=self.row_weight, **self._options())]
        return [self.graph_of(output, trained) for output in range(self.n_outputs)]

    def graph_of_rows(self, output: int, rows: Rows) -> LabelGraph:
        """Build the graph of some rows alone, as if the others were not there."""
        weight = None if self.row_weight is None else self.row_weight[rows]
        options = self._options()
        if self.importance is not None:
            options["query_importance"] = self.importance[np.unique(self.queries.codes[rows])]
        return label_graph(
            self.columns[output][rows], self.queries.subset(rows), row_weight=weight, **options
        )

    def _options(self) -> dict[str, Any]:
        return {
            "ties": self.ties,
            "cost": self.cost,
            "query_weight": self.query_weight,
            "query_importance": self.importance,
            "n_threads": self.design.n_threads,
        }


TrainingProblem = TrainingData | PairData


def code_rows(design: Design) -> Ints:
    """Number the rows so that equal rows share a number: their scores are equal, whatever a formula rounds.

    Rows are told apart by a random projection, formed for each row in the same way wherever it stands; a product by
    BLAS would not be. Nobody can look into an operator, whose rows all count as different.
    """
    n_rows, n_columns = design.shape
    if not design.has_rows:
        return np.arange(n_rows)
    X, direction = matrix_rows(design), np.random.default_rng(0).normal(size=n_columns)
    if not isinstance(X, np.ndarray):
        return _codes(X @ direction)
    content = np.empty(n_rows)
    step = max(1, _BLOCK // n_columns)
    for first in range(0, n_rows, step):
        content[first : first + step] = (X[first : first + step] * direction).sum(axis=1)
    return _codes(content)


def _codes(content: Floats | Ints) -> Ints:
    return np.unique(content, return_inverse=True)[1].reshape(-1).astype(np.int64, copy=False)
