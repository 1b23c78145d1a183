"""Pairs of labels inside queries: rows are held out, and metrics score them query by query."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from typing import Any, ClassVar, Self

import numpy as np
import scipy.stats

from rankwise.arrays import AnyArray, Bools, Floats, Ints, Matrix, Rows, is_sparse
from rankwise.data.queries import Queries, encode_queries
from rankwise.exceptions import MissingQueriesError, NoPairsError
from rankwise.metrics import Metric
from rankwise.pairs.blocks import Folds, laplacian
from rankwise.pairs.factor import Factor, factor_of
from rankwise.pairs.figures import RowEvaluation
from rankwise.pairs.graph import PairGraph
from rankwise.pairs.known_columns import codes_of_groups
from rankwise.pairs.labels import (
    Cost,
    LabelGraph,
    Levels,
    QueryWeight,
    Ties,
    find_levels,
    label_graph,
    laplacian_depends_on_labels,
    pair_scale,
    ranked,
)
from rankwise.pairs.pairs import ComparedRows, FoldGraphs, Pairs
from rankwise.pairs.plan import Plan, Scorer, Units
from rankwise.pairs.violations import ViolationSweep

# Rows of one ranking that make a block, whose difference is one observation for standard errors.
_BLOCK_ROWS = 30
_BLOCKS = 100  # at most, in each fold


class LabelPairs(Pairs):
    """Labels of rows, and which pairs they induce.

    Parameters
    ----------
    may_be_empty : bool
        Whether an output may have no pairs.

    Attributes
    ----------
    y : (rows,) or (rows, outputs) float64
    columns : list of (rows,) float64
        The labels, output by output.
    importance : (queries,) float64 or None
        A factor on the weight of each query's pairs.
    entry_weight : (rows,) float64 or None
        The weight of each row with that of its query: what weighs nothing is not there when folds are assigned.
    row_codes : (rows,) int64 or None
        Numbers that equal rows of one ranking share, if folds are to divide none.
    """

    entries: ClassVar[str] = "rows"
    fit_method: ClassVar[str] = "fit"
    has_blocks: ClassVar[bool] = True
    has_magnitudes = False

    def __init__(
        self,
        y: Floats,
        queries: Queries,
        row_weight: Floats | None,
        importance: Floats | None,
        ties: Ties,
        cost: Cost,
        query_weight: QueryWeight,
        n_threads: int = 1,
        *,
        may_be_empty: bool = False,
    ) -> None:
        self.y, self.queries, self.importance, self.n_threads = y, queries, importance, n_threads
        self._settings = self.ties, self.cost, self.query_weight = ties, cost, query_weight
        if importance is not None and not importance.all():
            # A query of no importance is left out: its rows neither train nor score.
            weight = np.ones(queries.n_rows) if row_weight is None else row_weight
            row_weight = weight * (importance[queries.codes] > 0)
        self.row_weight = self.entry_weight = row_weight
        if importance is not None:
            own = importance[queries.codes]
            self.entry_weight = own if row_weight is None else own * row_weight
        self.n_rows = self.n_entries = y.shape[0]
        self.several_outputs = y.ndim == 2
        self.columns: list[Floats] = list(np.ascontiguousarray(y.T)) if self.several_outputs else [y]
        self.n_outputs = len(self.columns)
        self._levels: list[Levels] = [find_levels(c, queries, row_weight) for c in self.columns]
        self._is_part = False
        self.row_codes: Ints | None = None
        for output, levels in enumerate(self._levels):
            if levels.n_pairs == 0 and not may_be_empty:
                which = f"output {output} of y" if self.several_outputs else "y"
                raise NoPairsError(
                    f"No query has two different labels in {which}, so there are no pairs to learn from.",
                    "every query has a single row: check that qid groups the rows that compete."
                    if queries.sizes.max(initial=0) <= 1
                    else "check that y holds the labels and that qid groups rows with different labels.",
                )
        n_queries, n_pairs = len(queries), [levels.n_pairs for levels in self._levels]
        n_ignored = [n_queries - int(np.count_nonzero(levels.ordered)) for levels in self._levels]
        several = self.several_outputs
        self.attributes = {
            "n_queries_": n_queries,
            "n_pairs_": np.array(n_pairs) if several else n_pairs[0],
            "n_ignored_queries_": np.array(n_ignored) if several else n_ignored[0],
        }

    # --- what trains ---

    def only(self, trained: Bools) -> Self:
        part = copy(self)
        weight = np.asarray((1.0 if self.row_weight is None else self.row_weight) * trained)
        part.__dict__.update(row_weight=weight, _is_part=True)
        return part

    def levels(self, output: int) -> Levels:
        """Return the levels of the labels of an output."""
        levels = self._levels[output]
        return levels.reweighted(self.row_weight) if self._is_part else levels

    def has_pairs(self, output: int) -> bool:
        return bool(self.levels(output).n_pairs > 0)

    def graph(self, output: int = 0) -> LabelGraph:
        return label_graph(
            self.columns[output],
            self.queries,
            *self._settings,
            row_weight=self.row_weight,
            query_importance=self.importance,
            levels=self.levels(output),
            n_threads=self.n_threads,
        )

    def graphs(self) -> Sequence[PairGraph]:
        graphs = [self.graph(output) for output in range(self.n_outputs)]
        may_share = self.several_outputs and not self._is_part
        is_shared = may_share and not laplacian_depends_on_labels(*self._settings)
        return [graphs[0].with_outputs(graphs)] if is_shared else graphs

    def margins(self, output: int = 0) -> ViolationSweep:
        levels = self.levels(output)
        return ViolationSweep.from_levels(
            levels,
            self.queries,
            row_weight=self.row_weight,
            scale=pair_scale(levels, self.query_weight, self.importance),
            n_threads=self.n_threads,
        )

    def draw_rows(self, at_most: int) -> Rows | None:
        # Drawn at random: steps of equal length may meet the same place of every query.
        rng, queries = np.random.default_rng(0), self.queries
        chosen = np.flatnonzero(self._levels[0].ordered)
        if chosen.size < 2:
            rows = np.sort(rng.choice(self.n_rows, at_most, replace=False))
        else:
            drawn = rng.permutation(chosen)
            n_drawn = 1 + int(np.searchsorted(np.cumsum(queries.sizes[drawn]), at_most))
            is_drawn = np.zeros(len(queries), dtype=np.bool_)
            is_drawn[drawn[:n_drawn]] = True
            rows = np.flatnonzero(is_drawn[queries.codes])
        return None if rows.size > self.n_rows // 2 else rows  # of a huge query

    def subset(self, rows: Rows) -> LabelPairs:
        weight, importance = self.row_weight, self.importance
        weight = None if weight is None else weight[rows]
        importance = None if importance is None else importance[np.unique(self.queries.codes[rows])]
        queries = self.queries.subset(rows)
        return LabelPairs(self.y[rows], queries, weight, importance, *self._settings, self.n_threads)

    # --- held-out rows ---

    def units(self, cv: object = "auto", *, whole_components: bool = False) -> Units | None:
        if isinstance(cv, str) and cv == "leave-pair-out":
            return None
        units = units_of_rows(self.y, self.queries, self.entry_weight)
        code = self.row_codes if isinstance(cv, str) and cv == "auto" else None
        return units if code is None else units.joined(code)

    def for_splitter(
        self, splitter: object, *, asks_for_groups: bool
    ) -> tuple[AnyArray, Floats | None, AnyArray | None]:
        groups = self.queries.codes if len(self.queries) > 1 else None
        if groups is None and asks_for_groups:
            raise MissingQueriesError(
                f"cv={splitter} splits by query, and there is one ranking.",
                "pass qid, or use cv=5 or sklearn.model_selection.KFold(5), which split rows.",
            )
        return np.zeros((self.n_rows, 1)), self.y, groups

    def scorer(self, metric: Metric, output: int, entries: Ints, fold: Ints | None = None) -> Scorer:
        labels, weight = self.columns[output], self.row_weight
        metric = metric.settled(labels if weight is None else labels[weight > 0])
        queries = self.queries.subset(entries)
        if fold is not None:
            queries = encode_queries(self.queries.codes[entries] * (int(fold.max(initial=0)) + 1) + fold)
        own = None if weight is None else weight[entries]
        return row_scorer(metric, labels[entries], queries, self.n_threads, weight=own, rows=entries)

    def one_pair(self, output: int) -> Ints:
        levels = self._levels[output]
        of_query = levels.order[self.queries.codes[levels.order] == np.argmax(levels.ordered)]
        rows = of_query if self.row_weight is None else of_query[self.row_weight[of_query] > 0]
        return np.asarray(rows[[0, -1]])  # the lowest and the highest label

    def in_lockstep(self, plan: Plan, output: int) -> LabelFolds:
        return LabelFolds(self, plan, output)

    def pooled_shares(self, plan: Plan, output: int) -> tuple[Floats, Floats] | None:
        trains = np.column_stack([plan.trained(fold) for fold in range(plan.n_folds)])
        weight = trains * (1.0 if self.row_weight is None else self.row_weight[:, None])
        share = weight / weight.sum(axis=0)
        return share, self.columns[output] @ share

    # --- public calls ---

    def training(
        self, X: Matrix, entries: Rows | None = None, *, copies: bool = True
    ) -> tuple[Matrix, dict[str, Any]]:
        y, queries, weight = self.y, self.queries, self.row_weight
        if entries is not None and copies:
            X, y, queries = X[entries], y[entries], queries.subset(entries)
            weight = None if weight is None else weight[entries]
        elif entries is not None:
            weight = np.zeros(self.n_rows)
            weight[entries] = 1.0 if self.row_weight is None else self.row_weight[entries]
        return X, {"y": y, "qid": queries if len(self.queries) > 1 else None, "sample_weight": weight}

    def validation(self, X: Matrix, entries: Rows | None = None) -> tuple[Any, ...]:
        if entries is None:
            return X, self.y, self.queries
        return X[entries], self.y[entries], self.queries.subset(entries)

    def tested(self, X: Matrix, entries: Rows) -> Matrix:
        rows: Matrix = X[entries]
        return rows

    def values(self, scores: Floats, entries: Rows | None = None) -> Floats:
        return scores

    def evaluation(self, metric: Metric, fold: Ints | None, n_folds: int, seed: int) -> RowEvaluation:
        units, none = self.units(), np.zeros(self.n_rows, np.int64)
        assert units is not None
        n_blocks = int(np.clip(units.n_units // (n_folds * _BLOCK_ROWS), 1, _BLOCKS))
        block = none if len(self.queries) > 1 else np.maximum(units.folds(n_blocks, seed + 2), 0)
        fold = none if fold is None else fold
        return RowEvaluation(metric, self.y, self.queries, self.row_weight, fold, block.astype(np.int64))

    def with_ranks(self) -> LabelPairs:
        y, settings = ranked(self.y, self.row_weight), (*self._settings, self.n_threads)
        return LabelPairs(y, self.queries, self.row_weight, self.importance, *settings)

    def of_equal_rows(self, codes: Ints) -> Self:
        same = copy(self)
        same.__dict__.update(row_codes=codes)
        return same

    # --- exact hold-out ---

    def factored(self, graph: PairGraph, plan: Plan | None) -> tuple[Factor, Ints | None]:
        return factor_of(graph), None if plan is None else plan.groups

    def exact_method(self, plan: Plan) -> str:
        if not self._divides(plan):
            return "units"
        return "rows" if self.has_closed_form else "refit"

    def _divides(self, plan: Plan) -> bool:
        """Tell whether a fold holds out some rows of a query and trains on others."""
        key = plan.fold * len(self.queries) + self.queries.codes[plan.held]
        both, n_held = np.unique(key, return_counts=True)
        return bool((n_held != self.queries.sizes[both % len(self.queries)]).any())

    @property
    def has_closed_form(self) -> bool:
        has_no_ties = all(levels.value.size == self.n_rows for levels in self._levels)
        is_ridge = self.cost == "magnitude" and (self.ties == "include" or has_no_ties)
        weight, codes = self.entry_weight, self.queries.codes
        present = codes if weight is None else codes[weight > 0]
        return bool(is_ridge and self.query_weight == "size" and (present == present[0]).all())

    def compared(self) -> list[ComparedRows] | None:
        rows = np.arange(self.n_rows) if self.row_weight is None else np.flatnonzero(self.row_weight > 0)
        if len(self.queries) > 1 or self.cost == "relative":
            return None
        if self.ties == "exclude" and any(np.unique(y[rows]).size < rows.size for y in self.columns):
            return None
        weight = np.ones(rows.size) if self.row_weight is None else self.row_weight[rows]
        return [ComparedRows(y[rows], weight, self.cost, self.query_weight, rows) for y in self.columns]

    def ridge_labels(self, outputs: Sequence[int]) -> tuple[Floats, Floats]:
        weight = np.ones(self.n_rows) if self.row_weight is None else self.row_weight
        return np.column_stack([self.columns[output] for output in outputs]), weight

    def ties_without(self, plan: Plan, code: Ints | None, X: Matrix | None) -> Ints:
        group = plan.groups
        is_whole = not self._divides(plan)
        if X is not None:
            code = self._known_codes(X, group, code, is_whole=is_whole)
        assert code is not None
        model_of = self.queries.codes if is_whole else group
        key = (model_of * (code.max(initial=0) + 1) + code)[plan.scored]
        _, first, inverse = np.unique(key, return_index=True, return_inverse=True)
        return np.asarray(plan.scored[first[inverse.reshape(-1)]])

    def _known_codes(self, X: Matrix, group: Ints, code: Ints | None, *, is_whole: bool) -> Ints | None:
        """Number rows so that those share one that cannot differ by the model without their group."""
        queries = self.queries
        trains = np.ones(self.n_rows, dtype=np.bool_) if self.row_weight is None else self.row_weight > 0
        if is_whole:
            return codes_of_groups(X, queries.order[queries.offsets[:-1]][queries.codes], group, trains)
        first = np.unique(group, return_index=True)[1][:3]
        if first.size < 3:
            return code
        # At most one of three rows is of the fold without which a column is constant.
        rows = X[first]
        return codes_of_groups(
            X, np.median(rows.toarray() if is_sparse(rows) else rows, axis=0), group, trains
        )


class LabelFolds(FoldGraphs):
    """The graphs of folds of rows, in which a fold's own rows weigh nothing.

    Graphs are kept only where the compiled product cannot make them, for the relative coupling and for rows in several
    folds: eight of a large data set would take as much memory as the data.
    """

    def __init__(self, pairs: LabelPairs, plan: Plan, output: int) -> None:
        super().__init__(pairs, plan, output)
        self._blocks, self._n_threads = pairs.graph(output).blocks, pairs.n_threads
        self._kept: list[PairGraph] = []
        pull, degree, scale = [], [], []
        for graph in self.graphs():
            assert graph.blocks is not None
            pull.append(graph.pull)
            degree.append(graph.blocks.degree)
            scale.append(graph.blocks.scale)
            if graph.blocks.coupling == "relative" or plan.overlaps:
                self._kept.append(graph)
        self.pull = np.column_stack(pull)
        # Only rows that are scored need held-out scores.
        fold = plan.groups.astype(np.int32)
        self._folds = Folds(fold, np.column_stack(degree), np.column_stack(scale), plan.scored)
        self.fused = None if self._kept else (self._blocks, self._folds)

    def laplacian(self, v: Floats) -> Floats:
        if self._kept:
            own = zip(self._kept, np.ascontiguousarray(v.T), strict=True)
            return np.column_stack([graph.laplacian(column) for graph, column in own])
        return laplacian(self._blocks, v, n_threads=self._n_threads, folds=self._folds)

    def values(self, scores: Floats) -> Floats:
        """Return the scores of held-out rows."""
        return np.asarray(scores[self._entries] if scores.ndim == 1 else scores[self._entries, self._column])


def row_scorer(
    metric: Metric,
    labels: Floats,
    queries: Queries,
    n_threads: int | None,
    what: str = "the held-out part",
    weight: Floats | None = None,
    rows: Rows | None = None,
) -> Scorer:
    """Prepare a metric on the rows to score by; by their weights, if it takes weights."""
    try:
        evaluator = metric.prepare(
            labels, queries, sample_weight=weight if metric.takes_weights else None, n_threads=n_threads
        )
    except NoPairsError as error:
        raise NoPairsError(
            f"{what} has no two rows of a query with different labels, so it cannot score a ranking.",
            "give it more rows, or use fewer folds.",
        ) from error
    return Scorer(evaluator, metric.greater_is_better, rows)


def units_of_rows(labels: Floats, queries: Queries, weight: Floats | None = None) -> Units:
    """Return whole queries as units, or the rows where there is one query only.

    Rows of one ranking are dealt by label, so that folds have like labels, as scikit-learn's StratifiedKFold does, and
    queries that have pairs before the others. Queries that weigh nothing, and in one ranking such rows, are not there.
    """
    weighs = np.ones(labels.shape[0], dtype=np.bool_) if weight is None else weight > 0
    rows = np.flatnonzero(weighs)
    own = queries.codes[rows]
    codes, first = np.unique(own, return_index=True)
    if codes.size == 1:
        rank = scipy.stats.rankdata(labels[rows].reshape(rows.size, -1), axis=0).sum(axis=1)
        by_label = rows[np.argsort(rank, kind="stable")]  # equal ones as they stand
        return Units(np.arange(labels.shape[0]), by_label, weighs, rows.size, "rows")
    grouped = labels[rows[np.argsort(own, kind="stable")]].reshape(own.size, -1)
    start = np.searchsorted(np.sort(own), codes)
    is_constant = np.maximum.reduceat(grouped, start) == np.minimum.reduceat(grouped, start)
    # In order of appearance, for names do not matter; those without a pair last, so that every fold has pairs.
    order = codes[np.lexsort((first, is_constant.all(axis=1)))]
    return Units(queries.codes, order, weighs, codes.size, "queries")
