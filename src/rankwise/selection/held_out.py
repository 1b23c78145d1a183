"""What scores the cells of a regularisation surface: rows of their own, folds of rows, folds of pairs.

A systems makes the Krylov systems of a search, one after the other, so that only one is in memory at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from rankwise.arrays import Floats, Rows
from rankwise.data.queries import Queries, encode_queries
from rankwise.design import Design
from rankwise.exceptions import Change, NoPairsError
from rankwise.metrics import Metric
from rankwise.objectives import QuadraticObjective, ScaledObjective, SquaredObjective, prior_scale
from rankwise.pairs.graph import PairGraph
from rankwise.pairs.labels import LabelGraph
from rankwise.problems.training import PairData, TrainingData, TrainingProblem
from rankwise.selection.pair_systems import FoldPairs, LeftOutPairs
from rankwise.selection.reading import difference_scorer, row_scorer
from rankwise.selection.row_systems import EvaluationRows, FoldRows, Pooling
from rankwise.selection.scorers import Scorer
from rankwise.solvers.choose import require_diagonal
from rankwise.solvers.surface import System

__all__ = [
    "EvalSetSystems",
    "HeldOutSystem",
    "HeldOutSystems",
    "PairFoldSystems",
    "RowFoldSystems",
    "n_outputs",
    "scaled_objective",
]


@dataclass(frozen=True)
class HeldOutSystem:
    """A system to run, and what came of it.

    Attributes
    ----------
    system : System
    column_scale : (features,) float64 or None
        Where the system is in scaled coordinates.
    columns : sequence of int
        The column that holds the model of each of the system's outputs.
    """

    system: System
    column_scale: Floats | None
    columns: Sequence[int]


class HeldOutSystems(Protocol):
    """Makes the systems of a search."""

    def systems(self, power: float) -> Iterator[HeldOutSystem]:
        """Make the systems under a value of `scaling`, all outputs in their order."""


@dataclass(frozen=True)
class EvalSetSystems:
    """Rows of their own, with one scorer per output; outputs that share a graph run in lockstep."""

    problem: TrainingProblem
    rows: Design
    scorers: Sequence[Scorer]

    def systems(self, power: float) -> Iterator[HeldOutSystem]:
        """Make one system a graph."""
        first = 0
        for graph in self.problem.graphs():
            objective, scale = scaled_objective(self.problem.design, graph, power)
            columns = range(n_outputs(graph))
            scorers = self.scorers[first : first + len(columns)]
            first += len(columns)
            yield HeldOutSystem(EvaluationRows(objective, self.rows, scorers, scale), scale, columns)


@dataclass(frozen=True)
class RowFoldSystems:
    """Every fold is scored by the rows it does not see; the folds of an output run in lockstep.

    With a single fold, its column is a model fitted on the other rows.

    Attributes
    ----------
    fold : (rows,) int32
        -1 for rows that no fold holds out.
    scored : (rows to score by,) int64
        Held-out rows, all or some.
    averaging : {"folds", "pooled"}
    """

    data: TrainingData
    fold: npt.NDArray[np.int32]
    scored: Rows
    metric: Metric
    averaging: str
    n_threads: int | None

    def systems(self, power: float) -> Iterator[HeldOutSystem]:
        """Make one system an output."""
        data, fold = self.data, self.fold
        for output in range(len(data.columns)):
            whole = data.graph(output, data.row_weight)
            graphs = self.fold_graphs(output)
            _, scale = scaled_objective(data.design, whole, power)
            scorer, pooling = self.scorer_of(output), self.pooling(output)
            system = FoldRows(data.design, whole, graphs, fold, self.scored, scorer, scale, pooling)
            yield HeldOutSystem(system, scale, [0])

    def fold_graphs(self, output: int) -> Iterator[LabelGraph]:
        """Make one graph per fold, one after the other, in which the fold's own rows weigh nothing."""
        weight = np.ones(self.fold.size) if self.data.row_weight is None else self.data.row_weight
        for c in range(int(self.fold.max(initial=-1)) + 1):
            yield self.data.graph(output, self._left_weight(output, weight, c))

    def _left_weight(self, output: int, weight: Floats, number: int) -> Floats:
        """Return the row weights that a fold trains with."""
        left: Floats = weight * (self.fold != number)
        if self.data.levels[output].reweighted(left).n_pairs == 0:
            raise NoPairsError(
                f"Without its held-out rows, fold {number} has no two rows of a query with different labels to "
                "train on.",
                "use more folds, cv=sklearn.model_selection.KFold(5) to hold rows of every query out, or an "
                "eval_set.",
                Change("cv"),
                Change("eval_set"),
            )
        return left

    def scorer_of(self, output: int) -> Callable[[Rows], Scorer]:
        """Return what makes the scorer of some held-out rows."""
        labels = self.data.columns[output]

        def make(rows: Rows) -> Scorer:
            queries = _scoring_queries(self.data.queries, self.fold, rows, pooled=self.is_pooled)
            weight = self.data.row_weight
            return row_scorer(
                self.metric,
                labels[rows],
                queries,
                self.n_threads,
                "what was held out",
                None if weight is None else weight[rows],
            )

        return make

    @property
    def is_pooled(self) -> bool:
        """Whether rows of different folds are compared: those of one ranking only."""
        return self.averaging == "pooled" and len(self.data.queries) == 1

    def pooling(self, output: int) -> Pooling | None:
        """Return what makes the scores of different folds comparable, where they are compared."""
        if not self.is_pooled:
            return None
        return Pooling.of_folds(self.fold, self.data.columns[output], self.data.row_weight)


@dataclass(frozen=True)
class PairFoldSystems:
    """Every fold is scored by pairs it does not see; the folds run in lockstep.

    With a single fold, its column is a model fitted on the other pairs.

    Attributes
    ----------
    left_out : LeftOutPairs
    averaging : {"folds", "pooled"}
        Average the errors of the folds, or of all held-out pairs.
    """

    data: PairData
    left_out: LeftOutPairs
    metric: Metric
    averaging: str

    def systems(self, power: float) -> Iterator[HeldOutSystem]:
        """Make the one system."""
        data, out = self.data, self.left_out
        masked = data.graph.masked(out.fold, out.n_folds, out.pair)
        if (masked.n_pairs == 0).any():
            raise NoPairsError(
                f"Without its held-out pairs, fold {int(np.argmin(masked.n_pairs))} has none to train on.",
                "use more folds, or hold less out.",
            )
        _, scale = scaled_objective(data.design, data.graph, power)
        weight = data.scoring_weight[out.pair[out.is_scored]]
        fold = out.fold[out.is_scored]
        scorer = difference_scorer(
            self.metric, weight, "what was held out", None if self.averaging == "pooled" else fold
        )
        yield HeldOutSystem(FoldPairs(data.design, masked, out, scorer, scale), scale, [0])


def scaled_objective(
    design: Design, graph: PairGraph, power: float
) -> tuple[QuadraticObjective, Floats | None]:
    """Return a graph's objective under a value of `scaling`, and the scale of its columns."""
    objective = SquaredObjective(design, graph)
    if power == 0:
        return objective, None
    require_diagonal(design)
    scale = prior_scale(objective, power)
    return ScaledObjective(objective, scale), scale


def n_outputs(graph: PairGraph) -> int:
    """Return how many outputs share a graph."""
    return 1 if graph.pull.ndim == 1 else int(graph.pull.shape[1])


def _scoring_queries(queries: Queries, fold: npt.NDArray[np.int32], rows: Rows, *, pooled: bool) -> Queries:
    """Rows are compared inside a query and, unless pooled, inside a fold: folds have different models."""
    if pooled:
        return queries.subset(rows)
    return encode_queries(queries.codes[rows] * (int(fold.max(initial=0)) + 1) + fold[rows])
