"""Listed pairs: pairs are held out, and scored by their order."""

from __future__ import annotations

from copy import copy
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from rankwise.arrays import AnyArray, Bools, Floats, Ints, Matrix, Rows
from rankwise.data.queries import Queries, one_query
from rankwise.data.validation import Preferences
from rankwise.exceptions import InvalidInputError, NoPairsError
from rankwise.metrics import Evaluator, Metric
from rankwise.metrics.pairwise import LOG_LOSS, contradicted
from rankwise.pairs.factor import Factor, factor_of
from rankwise.pairs.figures import PairEvaluation
from rankwise.pairs.graph import PairGraph
from rankwise.pairs.known_columns import differing_pairs
from rankwise.pairs.labels import Cost, Ties
from rankwise.pairs.pairs import FoldGraphs, Pairs
from rankwise.pairs.plan import Plan, Scorer, Units
from rankwise.pairs.preferences import PreferenceGraph, preference_graph


class PreferencePairs(Pairs):
    """A list of preferences; `groups` of pairs are not divided between folds.

    Comparisons of the same two rows are not, either, and rows that share one of `row_codes` count as the same.
    """

    entries: ClassVar[str] = "pairs"
    fit_method: ClassVar[str] = "fit_pairs"
    has_blocks: ClassVar[bool] = False
    several_outputs = False
    n_outputs = 1
    row_weight = entry_weight = None
    row_codes: Ints | None = None

    def __init__(
        self, preferences: Preferences, whole: PreferenceGraph, groups: Queries | None = None
    ) -> None:
        self.preferences, self.whole, self.groups = preferences, whole, groups
        self.n_rows, self.n_entries = whole.n_rows, whole.winner.size
        self.queries = one_query(self.n_rows)  # any two rows may be compared
        self.has_magnitudes = bool(np.any(whole.difference != 1))
        sizes = whole.component_sizes
        self.attributes = {
            "n_queries_": 1,
            "n_pairs_": whole.n_pairs,
            "n_ignored_queries_": 0,
            "n_components_": sizes.size,
            "n_unpaired_rows_": self.n_rows - int(sizes.sum()),
        }

    @classmethod
    def listed(
        cls,
        listed: Preferences,
        n_rows: int,
        ties: Ties,
        cost: Cost,
        groups: Queries | None = None,
        n_threads: int = 1,
    ) -> PreferencePairs:
        """Build the graph of a checked list of pairs."""
        graph = preference_graph(n_rows=n_rows, ties=ties, cost=cost, n_threads=n_threads, **vars(listed))
        if graph.n_pairs == 0:
            raise NoPairsError(
                "Every pair with a positive weight is a tie (magnitude 0), so there is no order to learn.",
                "pass at least one pair with a positive magnitude and weight.",
            )
        return cls(listed, graph, groups)

    # --- what trains ---

    def only(self, trained: Bools) -> Self:
        part = copy(self)
        part.whole = replace(self.whole, pair_weight=self.whole.pair_weight * trained)
        return part

    def has_pairs(self, output: int) -> bool:
        return bool(self.whole.is_ordered.any())

    def graph(self, output: int = 0) -> PreferenceGraph:
        return self.whole

    def margins(self, output: int = 0) -> PreferenceGraph:
        return self.whole.ordered()

    # --- held-out pairs ---

    def units(self, cv: object = "auto", *, whole_components: bool = False) -> Units:
        """Return groups, connected components of the rows, or all comparisons of the same two rows."""
        name = cv if isinstance(cv, str) else ""
        if self.groups is not None and name != "leave-pair-out":
            return self._units(self.groups.codes, "groups")
        several = name == "auto" and whole_components and self.whole.component_sizes.size > 1
        if self.groups is None and (several or name == "leave-query-out"):
            return self._units(self._components, "connected components")
        winner, loser, n_rows = self.whole.winner, self.whole.loser, np.int64(self.n_rows)
        if self.row_codes is not None:
            winner, loser = self.row_codes[winner], self.row_codes[loser]
        return self._units(np.minimum(winner, loser) * n_rows + np.maximum(winner, loser), "pairs")

    def _units(self, key: Ints, name: str) -> Units:
        codes = np.unique(key, return_inverse=True)[1].reshape(-1).astype(np.int64, copy=False)
        return Units.of_codes(codes, self.whole.pair_weight, name)

    @property
    def _components(self) -> Ints:
        """The connected component of the rows that each pair is in."""
        winner, ones = self.whole.winner, np.ones(self.whole.winner.size)  # weight 0 joins rows as well
        edges = sp.coo_array((ones, (winner, self.whole.loser)), shape=(self.n_rows, self.n_rows))
        return np.asarray(connected_components(edges, directed=False)[1][winner], dtype=np.int64)

    def for_splitter(
        self, splitter: object, *, asks_for_groups: bool
    ) -> tuple[AnyArray, Floats | None, AnyArray | None]:
        groups = None if self.groups is None else np.asarray(self.groups)
        return self._edges, None, groups

    @property
    def _edges(self) -> Ints:
        return np.column_stack([self.whole.winner, self.whole.loser])

    @property
    def _scoring_weight(self) -> Floats:
        """The caller's weight, and nothing where a pair has no winner."""
        given = self.preferences.weight
        return np.where(self.whole.is_ordered, 1.0 if given is None else given, 0.0)

    def scorer(self, metric: Metric, output: int, entries: Ints, fold: Ints | None = None) -> Scorer:
        compared = self.whole.winner[entries], self.whole.loser[entries]
        return pair_scorer(metric, self._scoring_weight[entries], compared, fold=fold)

    def one_pair(self, output: int) -> Ints:
        return np.flatnonzero(self.whole.is_ordered)[:1]

    def in_lockstep(self, plan: Plan, output: int) -> PreferenceFolds:
        return PreferenceFolds(self, plan, output)

    # --- public calls ---

    def training(
        self, X: Matrix, entries: Rows | None = None, *, copies: bool = True
    ) -> tuple[Matrix, dict[str, Any]]:
        own, listed = slice(None) if entries is None else entries, self.preferences
        beside = {"magnitude": listed.magnitude, "weight": listed.weight}
        return X, {
            "pairs": self._edges[own],
            **{name: None if values is None else values[own] for name, values in beside.items()},
        }

    def validation(self, X: Matrix, entries: Rows | None = None) -> tuple[Any, ...]:
        own, weight = slice(None) if entries is None else entries, self._scoring_weight
        return X, self._edges[own], weight[own]

    def tested(self, X: Matrix, entries: Rows) -> Matrix:
        return X

    def values(self, scores: Floats, entries: Rows | None = None) -> Floats:
        own = slice(None) if entries is None else entries
        return np.asarray(scores[self.whole.winner[own]] - scores[self.whole.loser[own]])

    def evaluation(self, metric: Metric, fold: Ints | None, n_folds: int, seed: int) -> PairEvaluation:
        weight = self._scoring_weight
        return PairEvaluation(metric, weight if fold is None else weight * (fold >= 0), self.units().codes)

    def of_equal_rows(self, codes: Ints) -> Self:
        pairs = copy(self)
        pairs.row_codes = codes
        return pairs

    # --- exact hold-out ---

    def factored(self, graph: PairGraph, plan: Plan | None) -> tuple[Factor, Ints | None]:
        """Take rows as units where no two folds share one: a system of their size however many pairs there are."""
        whole, group = self.whole, None if plan is None else plan.groups
        if whole.winner.size < whole.n_rows or (plan is not None and plan.overlaps):
            return factor_of(whole, by_products=True), group
        if group is None:
            return factor_of(whole), None
        of_row = np.full(whole.n_rows, -1, dtype=np.int64)
        of_row[whole.winner] = group
        of_row[whole.loser] = group
        is_whole = (of_row[whole.winner] == group).all() and (of_row[whole.loser] == group).all()
        return (factor_of(whole), of_row) if is_whole else (factor_of(whole, by_products=True), group)

    def exact_method(self, plan: Plan) -> str:
        return "units"

    @property
    def has_closed_form(self) -> bool:
        return True

    def ties_without(self, plan: Plan, code: Ints | None, X: Matrix | None) -> Ints:
        winner, loser = self.whole.winner, self.whole.loser
        if X is not None:
            differs = differing_pairs(X, winner, loser, plan.groups, self.whole.pair_weight > 0)
        else:
            assert code is not None
            differs = np.asarray(code[winner] != code[loser])
        return np.where(differs, np.arange(differs.size), -1)[plan.scored]


class PreferenceFolds(FoldGraphs):
    """The graphs of folds of pairs.

    The held-out pairs of all folds are one graph over (row, fold), which is taken away from the whole graph in
    every column; a product with k columns so costs one product of the whole with k columns and one of the
    pairs with a single column.
    """

    def __init__(self, pairs: PreferencePairs, plan: Plan, output: int) -> None:
        super().__init__(pairs, plan, output)
        list(self.graphs())  # raises where nothing is left
        self._graph, n_folds = pairs.whole, plan.n_folds
        own = self._graph.chosen(plan.held)
        # Row i as fold c sees it stands at i * n_folds + c, where it stands in an array (rows, folds), too.
        self._own = replace(
            own,
            n_rows=own.n_rows * n_folds,
            winner=own.winner * n_folds + plan.fold,
            loser=own.loser * n_folds + plan.fold,
        )
        self.pull = self._graph.pull[:, None] - self._own.pull.reshape(-1, n_folds)
        self._scored = self._graph.chosen(self._entries)

    def laplacian(self, v: Floats) -> Floats:
        own = self._own.laplacian(np.ascontiguousarray(v).reshape(-1))
        return self._graph.laplacian(v) - own.reshape(v.shape)

    def values(self, scores: Floats) -> Floats:
        """Return the differences of held-out pairs."""
        one, other = self._scored.winner, self._scored.loser
        return np.asarray(scores[one, self._column] - scores[other, self._column])


def pair_scorer(
    metric: Metric,
    weight: Floats,
    compared: tuple[Ints, Ints],
    *,
    what: str = "the held-out part",
    fold: Ints | None = None,
) -> Scorer:
    """Prepare a metric on pairs to score by; with `fold`, every fold counts the same, else every weight does."""
    if metric.base_name not in {"pairwise_error", "concordance", "log_loss"}:
        raise InvalidInputError(
            f"scoring={metric.name!r} needs rows with labels, and pairs have none.",
            "use scoring='pairwise_error' or 'concordance' with fit_pairs.",
        )
    if not (weight > 0).any():
        raise NoPairsError(
            f"{what} has no pair with a winner and a positive weight, so it cannot score a ranking.",
            "give it more pairs, or use fewer folds.",
        )
    total = np.full(weight.size, weight.sum())
    if fold is not None:
        by_fold = np.bincount(fold, weights=weight)
        total = by_fold[fold] * int((by_fold > 0).sum())
    share = np.divide(weight, total, out=np.zeros(weight.size), where=weight > 0)

    def values(differences: Floats, n_threads: int) -> Floats:
        if metric == LOG_LOSS:  # differences of scores are log-odds
            lost = [float((share * np.logaddexp(0.0, -column)).sum()) for column in differences.T]
        else:
            ties = float(metric.options["ties"])
            lost = [contradicted(column, share, ties) for column in differences.T]
        found = np.array(lost)[:, None]
        return 1.0 - found if metric.greater_is_better else found

    evaluator = Evaluator(one_query(weight.size), np.ones(1, dtype=np.bool_), 1, values)
    return Scorer(evaluator, metric.greater_is_better, compared=compared)
