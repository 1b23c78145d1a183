"""What a Krylov run multiplies and is scored by: equations, and an eval set, held-out rows or held-out pairs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from rankwise.arrays import Floats, Ints
from rankwise.design import Design
from rankwise.metrics import Metric
from rankwise.pairs.graph import PairGraph
from rankwise.problems.training import PairData, TrainingData, TrainingProblem
from rankwise.selection.cv import Plan
from rankwise.selection.equations import Coordinates, Equations, Product, one_vector
from rankwise.selection.held_out import HeldOut, held_out_scorer, trained_on
from rankwise.selection.scorers import EvalSet, Scorer, pair_scorer

__all__ = ["HeldOutSystem", "held_out_systems", "n_outputs"]


@dataclass(frozen=True)
class HeldOutSystem:
    """A `rankwise.selection.krylov_run.System`: equations, and the rows or pairs that score them.

    Attributes
    ----------
    row_columns : sequence of (rows,) int64
        For each output, the column that scores each of its rows; rows of one column stand together.
    read : callable
        Reads the scores of held-out rows off a product, output by output.
    scorers : sequence of Scorer
        One per output; without any, nothing is scored, and only residuals are looked at.
    shift : (rows,) float64 or None
        What is added to scores before they are scored.
    """

    equations: Equations
    row_columns: Sequence[Ints]
    read: Callable[[Product], Sequence[Floats]]
    scorers: Sequence[Scorer] = ()
    shift: Floats | None = None

    @classmethod
    def unscored(cls, equations: Equations) -> HeldOutSystem:
        """Return a system without rows to score it by."""
        n_columns = equations.rhs.shape[1]
        return cls(equations, [np.empty(0, dtype=np.int64)] * n_columns, partial(_no_scores, n_columns))

    @classmethod
    def on_rows(cls, equations: Equations, rows: Design, scorers: Sequence[Scorer]) -> HeldOutSystem:
        """Return a system that is scored by rows of their own; one column per output."""
        row_columns = [np.full(rows.shape[0], column, dtype=np.int64) for column in range(len(scorers))]
        return cls(equations, row_columns, partial(_scores_of_rows, rows), scorers)

    @property
    def rhs(self) -> Floats:
        """The right-hand sides, (unknowns, columns)."""
        return self.equations.rhs

    def multiply(self, vectors: Floats) -> tuple[Floats, Sequence[Floats]]:
        """Return the image of the vectors, and the scores of what is held out, output by output."""
        product = self.equations.multiply(vectors)
        return product.image, self.read(product)

    def errors(self, output: int, scores: Floats) -> Floats:
        """Score (alphas, rows) scores of an output; lower is better."""
        if not self.scorers:
            return np.zeros(scores.shape[0])
        return self.scorers[output].errors(scores if self.shift is None else scores + self.shift)

    def sizes(self) -> Floats | None:
        """Return about the diagonal of the matrix."""
        return self.equations.sizes()

    def model(self, column: int, solution: Floats) -> Floats:
        """Return what a solution of a column, or each row of a path of them, stands for."""
        return self.equations.model(column, solution)


def _no_scores(n_outputs: int, product: Product) -> list[Floats]:
    return [np.empty(0)] * n_outputs


def _scores_of_rows(rows: Design, product: Product) -> list[Floats]:
    return list(rows.dot(one_vector(product.models)).reshape(rows.shape[0], -1).T)


def held_out_systems(
    problem: TrainingProblem,
    held_out: HeldOut,
    metric: Metric,
    averaging: str,
    coordinates: Coordinates,
) -> Iterator[HeldOutSystem]:
    """Make the systems of all outputs in their order, one after the other, so that only one is in memory at a time.

    Outputs that share a graph run in lockstep where rows of their own score them, and else the folds of an output.
    With a single fold, its column is a model fitted on the other rows or pairs.
    """
    if isinstance(held_out, EvalSet):
        first, rows = 0, coordinates.against(held_out.rows)
        for graph in problem.graphs():
            last = first + n_outputs(graph)
            yield HeldOutSystem.on_rows(coordinates.of_graph(graph), rows, held_out.scorers[first:last])
            first = last
    elif isinstance(problem, PairData):
        yield _of_pairs(problem, held_out, metric, averaging, coordinates)
    else:
        is_pooled = averaging == "pooled" and len(problem.queries) == 1
        for output in range(problem.n_outputs):
            yield _of_rows(problem, held_out, output, metric, coordinates, is_pooled=is_pooled)


def _of_rows(
    data: TrainingData, plan: Plan, output: int, metric: Metric, coordinates: Coordinates, *, is_pooled: bool
) -> HeldOutSystem:
    """Score training rows, each under the model of the fold that does not see it.

    Where rows of different folds are compared (pooled), training rows score on average what their labels are.
    """
    rows, column = plan.held[plan.is_scored], plan.fold[plan.is_scored]
    scorer = held_out_scorer(data, plan, output, metric, rows, pooled=is_pooled)
    means = labels = None
    if is_pooled:
        trains = plan.groups[:, None] != np.arange(plan.n_folds)
        weight = trains * (1.0 if data.row_weight is None else data.row_weight[:, None])
        share = weight / weight.sum(axis=0)
        means, labels = coordinates.means(share), (data.columns[output] @ share)[column]

    def read(product: Product) -> list[Floats]:
        found = product.scores
        assert found is not None
        own = found[rows] if found.ndim == 1 else found[rows, column]
        if means is not None:
            own -= (means * product.models).sum(axis=0)[column]
        return [own]

    folds = (trained_on(data, plan, output, fold) for fold in range(plan.n_folds))
    graphs = (data.graph_of(output, trained) for trained in folds)
    equations = coordinates.of_folds(data.graph_of(output), graphs, plan)
    return HeldOutSystem(equations, [column], read, [scorer], labels)


def _of_pairs(
    data: PairData, plan: Plan, metric: Metric, averaging: str, coordinates: Coordinates
) -> HeldOutSystem:
    """Score training pairs, each under the model of the fold that does not see it."""
    for fold in range(plan.n_folds):
        trained_on(data, plan, 0, fold)  # raises where nothing is left
    pair, column = plan.held[plan.is_scored], plan.fold[plan.is_scored]
    winner, loser = data.graph.winner[pair], data.graph.loser[pair]
    by_fold = None if averaging == "pooled" else column
    scorer = pair_scorer(metric, data.scoring_weight[pair], fold=by_fold)

    def read(product: Product) -> list[Floats]:
        assert product.scores is not None
        return [product.scores[winner, column] - product.scores[loser, column]]

    return HeldOutSystem(coordinates.of_pairs(data.graph, plan), [column], read, [scorer])


def n_outputs(graph: PairGraph) -> int:
    """Return how many outputs share a graph."""
    return 1 if graph.pull.ndim == 1 else int(graph.pull.shape[1])
