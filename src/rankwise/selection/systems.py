"""What a Krylov run multiplies and is scored by: equations, and an eval set, held-out rows or held-out pairs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from rankwise.arrays import Floats, Ints
from rankwise.design import Design
from rankwise.metrics import Metric
from rankwise.pairs.graph import PairGraph
from rankwise.pairs.pairs import FoldGraphs
from rankwise.pairs.plan import Plan, Scorer
from rankwise.problems.problem import Problem
from rankwise.selection.equations import Coordinates, Equations, Product, one_vector

__all__ = ["HeldOutSystem", "held_out_systems", "n_outputs"]


@dataclass(frozen=True)
class HeldOutSystem:
    """A `rankwise.selection.krylov_run.System`: equations, and the entries that score them.

    Attributes
    ----------
    row_columns : sequence of (entries,) int64
        For each output, the column that scores each of its entries; those of one column stand together.
    rows : Design or None
        Rows of their own that score.
    folds : FoldGraphs or None
        Training rows or pairs score, each under the model of the fold that does not see it.
    scorers : sequence of Scorer
        One per output; without any, nothing is scored, and only residuals are looked at.
    means : (unknowns of a model, columns) float64 or None
        What is multiplied with models, and added up, to give the mean score of each column's training rows.
    labels : (entries,) float64 or None
        The mean label of each entry's training rows, where scores are shifted to it.
    """

    equations: Equations
    row_columns: Sequence[Ints]
    rows: Design | None = None
    folds: FoldGraphs | None = None
    scorers: Sequence[Scorer] = ()
    means: Floats | None = None
    labels: Floats | None = None

    @classmethod
    def unscored(cls, equations: Equations) -> HeldOutSystem:
        """Return a system without rows to score it by."""
        return cls(equations, [np.empty(0, dtype=np.int64)] * equations.rhs.shape[1])

    @classmethod
    def on_rows(cls, equations: Equations, rows: Design, scorers: Sequence[Scorer]) -> HeldOutSystem:
        """Return a system that is scored by rows of their own; one column per output."""
        row_columns = [np.full(rows.shape[0], column, dtype=np.int64) for column in range(len(scorers))]
        return cls(equations, row_columns, rows, scorers=scorers)

    @property
    def rhs(self) -> Floats:
        """The right-hand sides, (unknowns, columns)."""
        return self.equations.rhs

    def multiply(self, vectors: Floats) -> tuple[Floats, Sequence[Floats]]:
        """Return the image of the vectors, and the values of what is held out, output by output."""
        product = self.equations.multiply(vectors)
        return product.image, self._values(product)

    def _values(self, product: Product) -> list[Floats]:
        if self.rows is not None:
            return list(self.rows.dot(one_vector(product.models)).reshape(self.rows.shape[0], -1).T)
        if self.folds is None:
            return [np.empty(0)] * len(self.row_columns)
        assert product.scores is not None
        values = self.folds.values(product.scores)
        if self.means is not None:
            values -= (self.means * product.models).sum(axis=0)[self.row_columns[0]]
        return [values]

    def errors(self, output: int, values: Floats) -> Floats:
        """Score (alphas, entries) values of an output; lower is better."""
        if not self.scorers:
            return np.zeros(values.shape[0])
        if self.rows is not None:
            return self.scorers[output].errors_of_rows(values)
        return self.scorers[output].errors(values if self.labels is None else values + self.labels)

    def sizes(self) -> Floats | None:
        """Return about the diagonal of the matrix."""
        return self.equations.sizes()

    def model(self, column: int, solution: Floats) -> Floats:
        """Return what a solution of a column, or each row of a path of them, stands for."""
        return self.equations.model(column, solution)


def held_out_systems(
    problem: Problem, plan: Plan, metric: Metric, averaging: str, coordinates: Coordinates
) -> Iterator[HeldOutSystem]:
    """Make the systems of all outputs in their order, one after the other, so that only one is in memory at a time.

    Outputs that share a graph run in lockstep where rows of their own score them, and else the folds of an output.
    With a single fold, its column is a model fitted on the other rows or pairs.
    """
    pairs = problem.pairs
    if plan.has_eval_set:
        first, rows = 0, coordinates.against(plan.eval_rows)
        for graph in pairs.graphs():
            last = first + n_outputs(graph)
            yield HeldOutSystem.on_rows(coordinates.of_graph(graph), rows, plan.scorers[first:last])
            first = last
        return
    is_pooled = averaging == "pooled" and pairs.can_pool()
    entries, column = plan.held[plan.is_scored], plan.fold[plan.is_scored]
    for output in range(pairs.n_outputs):
        scorer = pairs.scorer(metric, output, entries, None if is_pooled else column)
        means = labels = None
        shares = pairs.pooled_shares(plan, output) if is_pooled else None
        if shares is not None:
            means, labels = coordinates.means(shares[0]), shares[1][column]
        folds = pairs.in_lockstep(plan, output)
        equations = coordinates.of_folds(pairs.graph(output), folds)
        yield HeldOutSystem(equations, [column], None, folds, [scorer], means, labels)


def n_outputs(graph: PairGraph) -> int:
    """Return how many outputs share a graph."""
    return 1 if graph.pull.ndim == 1 else int(graph.pull.shape[1])
