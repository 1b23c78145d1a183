"""The interface of pairs: training graphs, held-out entries and their scorers.

There are two implementations, for labels inside queries (`rankwise.pairs.labelled`) and for a list of preferences
(`rankwise.pairs.listed`). Code above this package works with either.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, NamedTuple, Protocol, Self

import numpy as np

from rankwise.arrays import AnyArray, Bools, Floats, Ints, Matrix, Rows
from rankwise.data.queries import Queries
from rankwise.exceptions import NoPairsError, UndefinedMetricError
from rankwise.metrics import Metric
from rankwise.pairs.blocks import Folds, QueryBlocks
from rankwise.pairs.factor import Factor
from rankwise.pairs.figures import Evaluation
from rankwise.pairs.graph import MarginPairs, PairGraph
from rankwise.pairs.plan import Plan, Scorer, Units

_NEGLIGIBLE = 1e-13  # of the weight of pairs is rounding


@dataclass(frozen=True)
class ComparedRows:
    """One ranking in which every two rows are compared, tied or not: the labels and alphas of models without two rows.

    The formulas are in `rankwise.holdout.leave_pair_out`.

    Attributes
    ----------
    y : (rows,) float64
    weight : (rows,) float64
        Positive.
    cost : {"magnitude", "unit"}
    query_weight : {"size", "pairs", "equal"}
    rows : (rows,) int64 or None
        Their numbers in the design; the others weigh nothing.
    """

    y: Floats
    weight: Floats
    cost: str
    query_weight: str
    rows: Rows | None = None

    @cached_property
    def level(self) -> Rows:
        """The level of each row's label, from the lowest."""
        return np.unique(self.y, return_inverse=True)[1].astype(np.int64)

    @cached_property
    def labels(self) -> Floats:
        """Targets of the equivalent ridge regression: centred y, or the weight of the rows below minus above."""
        if self.cost != "unit":
            return np.asarray(self.y - self.weight @ self.y / self.weight.sum())
        of_level = np.bincount(self.level, weights=self.weight)
        below = np.cumsum(of_level) - of_level
        return np.asarray((2 * below + of_level - of_level.sum())[self.level])

    @cached_property
    def _opponents(self) -> Floats:
        """The weight of each row's pairs with different labels."""
        of_level = np.bincount(self.level, weights=self.weight)
        return np.asarray(self.weight * (of_level.sum() - of_level)[self.level])

    @property
    def is_even(self) -> bool:
        """Whether all pairs with different labels change alpha alike."""
        if self.query_weight == "size":
            return True
        varies = np.ptp(self.weight) > 0
        return not varies and (self.query_weight == "pairs" or np.ptp(self._opponents) == 0)

    def alpha_factor(self, i: Rows, j: Rows) -> Floats:
        """Return the factor of alpha when i and j are held out; 0 where no pair with weight remains."""
        total = float(self.weight.sum())
        w_i, w_j = self.weight[i], self.weight[j]
        if self.query_weight == "size":
            return np.ones(np.broadcast_shapes(i.shape, j.shape))
        factor = total / np.maximum(total - w_i - w_j, self.weight.min())
        if self.query_weight == "pairs":
            return np.asarray(factor)
        ordered = float(self._opponents.sum()) / 2
        left = ordered - self._opponents[i] - self._opponents[j] + w_i * w_j
        return np.asarray(factor * np.where(left > _NEGLIGIBLE * ordered, left / ordered, 0.0))


class HeldOut(NamedTuple):
    """The training pairs of a fold, which is everything where an evaluation set scores, and the scorer."""

    fold: int
    trained: Pairs
    scorer: Scorer


class FoldGraphs:
    """The graphs of all folds side by side: column c of a block of vectors (rows, folds) sees that of fold c.

    Attributes
    ----------
    pull : (rows, folds) float64
        ``r = A'Ωz``.
    fused : (QueryBlocks, Folds) or None
        With which a design multiplies in one pass over its rows; None where it cannot.
    """

    pull: Floats
    fused: tuple[QueryBlocks, Folds] | None = None

    def __init__(self, pairs: Pairs, plan: Plan, output: int) -> None:
        self._pairs, self._plan, self._output = pairs, plan, output
        self._entries, self._column = plan.held[plan.is_scored], plan.fold[plan.is_scored]

    def graphs(self) -> Iterator[PairGraph]:
        """Yield the graph that each fold trains on; raise where one is empty."""
        for fold in range(self._plan.n_folds):
            yield self._pairs.without(self._plan, fold, self._output).graph(self._output)

    def laplacian(self, v: Floats) -> Floats:
        """Apply each fold's ``L`` to its own column."""
        raise NotImplementedError

    def values(self, scores: Floats) -> Floats:
        """Return the value of each held-out entry that is scored, from (rows, folds) scores or each row's own."""
        raise NotImplementedError


class Pairs(Protocol):
    """Pairs over the rows of a design, with one set of wanted differences per output.

    Attributes
    ----------
    entries : str
        The kind of held-out entries: "rows" or "pairs".
    fit_method : {"fit", "fit_pairs"}
        The method of rankers that takes such pairs.
    has_magnitudes : bool
        Whether listed pairs ask for other margins than 1.
    has_blocks : bool
        Whether pairs are inside queries, so that graphs have blocks.
    queries : Queries
        The queries of the rows; a single query where any two rows may be compared.
    row_weight : (rows,) float64 or None
    entry_weight : (entries,) float64 or None
        Entries of weight 0 score nothing.
    several_outputs : bool
        Whether labels were passed as columns.
    attributes : dict
        The attributes that describe the pairs in a fitted estimator; arrays over outputs where there are several.
    """

    entries: ClassVar[str]
    fit_method: ClassVar[str]
    has_blocks: ClassVar[bool]
    has_magnitudes: bool

    queries: Queries
    row_weight: Floats | None
    entry_weight: Floats | None
    n_rows: int
    n_entries: int
    n_outputs: int
    several_outputs: bool
    attributes: dict[str, object]

    # --- what trains ---

    def only(self, trained: Bools) -> Self:
        """Return the same without the entries that are not trained on."""

    def has_pairs(self, output: int) -> bool:
        """Tell whether some pair of an output has a winner."""

    def graph(self, output: int = 0) -> PairGraph:
        """Return the graph of an output."""

    def graphs(self) -> Sequence[PairGraph]:
        """Return one graph for all outputs where they can share it, else one per output."""
        return [self.graph(output) for output in range(self.n_outputs)]

    def margins(self, output: int = 0) -> MarginPairs:
        """Return the pairs of an output with their margins."""

    def draw_rows(self, at_most: int) -> Rows | None:
        """Draw about `at_most` rows, in whole queries; None where the sample would not be representative."""
        return None

    def subset(self, rows: Rows) -> Pairs:
        """Return the pairs of some rows alone, where `draw_rows` draws or `exact_method` refits."""
        raise NotImplementedError

    # --- held-out entries ---

    def units(self, cv: object = "auto", *, whole_components: bool = False) -> Units | None:
        """Return the units that folds do not divide; None if `cv` leaves out every pair of rows, without a list."""

    def for_splitter(
        self, splitter: object, *, asks_for_groups: bool
    ) -> tuple[AnyArray, Floats | None, AnyArray | None]:
        """Return X, y and groups as scikit-learn's splitters take them."""

    def scorer(self, metric: Metric, output: int, entries: Ints, fold: Ints | None = None) -> Scorer:
        """Prepare a metric on some entries; where each has a fold, whose models differ, fold by fold."""

    def one_pair(self, output: int) -> Ints:
        """Return the entries of some pair of an output that has a winner: two rows, or the pair itself."""

    def in_lockstep(self, plan: Plan, output: int) -> FoldGraphs:
        """Return the graphs of all folds, as columns."""

    def pooled_shares(self, plan: Plan, output: int) -> tuple[Floats, Floats] | None:
        """Return each row's share of the training weight of each fold, (rows, folds), and the folds' mean labels.

        Scores of different folds are comparable once the mean score of the training rows equals their mean label. None
        where entries are differences, which need no such shift.
        """
        return None

    # --- public calls ---

    def training(
        self, X: Matrix, entries: Rows | None = None, *, copies: bool = True
    ) -> tuple[Matrix, dict[str, Any]]:
        """Return the rows and the further arguments of a ranker's `fit_method` that train on some entries, or on all.

        Without `copies` no rows are copied, and those that are held out weigh nothing.
        """

    def validation(self, X: Matrix, entries: Rows | None = None) -> tuple[Any, ...]:
        """Return some entries, or all, as rankers take an `eval_set`."""

    def tested(self, X: Matrix, entries: Rows) -> Matrix:
        """Return the rows that `values` needs the scores of."""

    def values(self, scores: Floats, entries: Rows | None = None) -> Floats:
        """Return the values of entries: scores of rows, or winner minus loser."""

    def evaluation(self, metric: Metric, fold: Ints | None, n_folds: int, seed: int) -> Evaluation:
        """Prepare a metric for the values of all entries; where they are in folds, of those that have one (not -1)."""

    def with_ranks(self) -> Pairs:
        """Return the same with ranks for labels, which have no long tails; listed pairs have no labels."""
        return self

    def of_equal_rows(self, codes: Ints) -> Pairs:
        """Return the same with units that take rows with the same code for one row."""

    # --- exact hold-out ---

    def factored(self, graph: PairGraph, plan: Plan | None) -> tuple[Factor, Ints | None]:
        """Return a factor of a graph that mixes no two folds, and the fold of each of its units.

        Units are the entries where folds overlap.
        """

    def exact_method(self, plan: Plan) -> str:
        """Return the method that holds out folds exactly.

        "units" where no pair joins a fold to the entries it trains on; "rows" of one ranking that is ridge regression
        with a free intercept; else "refit".
        """

    @property
    def has_closed_form(self) -> bool:
        """Whether any folds are held out exactly without refits."""

    def compared(self) -> list[ComparedRows] | None:
        """Return, for each output, the ranking in which every two rows are compared; None for other pairs."""
        return None

    def ridge_labels(self, outputs: Sequence[int]) -> tuple[Floats, Floats]:
        """Return labels (rows, outputs) and row weights, where `exact_method` is not by units."""
        raise NotImplementedError

    def ties_without(self, plan: Plan, code: Ints | None, X: Matrix | None) -> Ints:
        """Return for each scored entry the one whose value it takes by the model without its fold.

        That is the first of the entries with which it ties, for closed forms subtract a residual from each entry's own
        label or difference, and leave its rounding. -1 stands for a pair of rows that tie, whose value is 0.

        Parameters
        ----------
        code : (rows,) int64 or None
            Numbers that equal rows share; needed without X, and with fewer than three folds.
        X : matrix or None
            Given where models have a coefficient for each column: columns that differ in one fold alone are unknown to
            the model without it.
        """

    # --- derived methods ---

    def without(self, plan: Plan, fold: int, output: int) -> Self:
        """Return the pairs that a fold trains on; raise where none has a winner."""
        trained = self.only(plan.trained(fold))
        if not trained.has_pairs(output):
            raise NoPairsError(
                f"Without its held-out {self.entries}, fold {fold} has no pair with a winner to train on.",
                "use more folds, cv=sklearn.model_selection.KFold(5), an eval_set, or hold less out.",
            )
        return trained

    @property
    def can_pool(self) -> bool:
        """Whether entries of all folds can be scored together."""
        return len(self.queries) == 1

    def held_out(self, plan: Plan, metric: Metric, output: int = 0) -> list[HeldOut]:
        """Return the training pairs and the scorer of each fold that can be scored, or of the evaluation set.

        Raise an error where one of them leaves nothing to train on.
        """
        if plan.has_eval_set:
            return [HeldOut(0, self, plan.scorers[output])]
        scorers: list[tuple[int, Scorer]] = []
        problem: NoPairsError | UndefinedMetricError | None = None
        for fold in range(plan.n_folds):
            try:
                scorers.append((fold, self.scorer(metric, output, plan.scoring(fold))))
            except (NoPairsError, UndefinedMetricError) as error:
                problem = error
        if problem is not None and not scorers:
            raise problem
        return [HeldOut(fold, self.without(plan, fold, output), scorer) for fold, scorer in scorers]

    def require_pairs_left(self, plan: Plan) -> None:
        """Raise where a fold leaves nothing to train on: its model is 0, and closed forms leave rounding alone."""
        for output in range(self.n_outputs):
            # Only folds that hold out part of any one pair can hold out all of them.
            for fold in np.unique(plan.fold[np.isin(plan.held, self.one_pair(output))]).tolist():
                self.without(plan, fold, output)
