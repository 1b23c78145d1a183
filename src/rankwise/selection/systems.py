"""What a Krylov run multiplies and is scored by: equations, and an eval set, held-out rows or held-out pairs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence

import numpy as np

from rankwise.arrays import Floats, Ints
from rankwise.design import Design
from rankwise.exceptions import NoPairsError
from rankwise.metrics import Metric
from rankwise.pairs.graph import PairGraph
from rankwise.problems.training import PairData, TrainingData, TrainingProblem
from rankwise.selection.cv import RowPlan
from rankwise.selection.cv_pairs import PairPlan
from rankwise.selection.equations import Coordinates, Equations, Product, one_vector
from rankwise.selection.held_out import HeldOut, held_out_scorer, training_weights
from rankwise.selection.scorers import EvalSet, Scorer, difference_scorer

__all__ = ["EvalRows", "HeldOutSystem", "held_out_systems", "n_outputs"]


class HeldOutSystem:
    """A `rankwise.solvers.surface.System`: equations, and the rows or pairs that score them.

    Without a `readout` nothing is scored, and only residuals are looked at.
    """

    def __init__(self, equations: Equations, readout: _Readout | None = None) -> None:
        self._equations, self._readout = equations, readout
        self.rhs = equations.rhs
        unscored = [np.empty(0, dtype=np.int64)] * self.rhs.shape[1]
        self.row_columns = unscored if readout is None else readout.row_columns
        self.model = equations.model

    def multiply(self, vectors: Floats) -> tuple[Floats, Sequence[Floats]]:
        """Return the image of the vectors, and the scores of what is held out, output by output."""
        product = self._equations.multiply(vectors)
        if self._readout is None:
            return product.image, [np.empty(0)] * len(self.row_columns)
        return product.image, self._readout.scores(product)

    def errors(self, output: int, scores: Floats) -> Floats:
        """Score (alphas, rows) scores of an output."""
        return np.zeros(scores.shape[0]) if self._readout is None else self._readout.errors(output, scores)


class _Readout(ABC):
    """Reads the scores of held-out rows off a product, and scores them.

    Attributes
    ----------
    row_columns : sequence of (rows,) int64
        For each output, the column that scores each of its rows; rows of one column stand together.
    """

    row_columns: Sequence[Ints]
    _scorers: Sequence[Scorer]

    @abstractmethod
    def scores(self, product: Product) -> list[Floats]:
        """Return the scores, output by output."""

    def errors(self, output: int, scores: Floats) -> Floats:
        """Score (alphas, rows) scores of an output; lower is better."""
        return self._scorers[output].errors(scores)


class EvalRows(_Readout):
    """Rows of their own; one column per output."""

    def __init__(self, rows: Design, scorers: Sequence[Scorer]) -> None:
        self._rows, self._scorers = rows, scorers
        self.row_columns = [np.full(rows.shape[0], column, dtype=np.int64) for column in range(len(scorers))]

    def scores(self, product: Product) -> list[Floats]:
        """Return the scores, output by output."""
        return list(self._rows.dot(one_vector(product.models)).reshape(self._rows.shape[0], -1).T)


class _FoldedRows(_Readout):
    """Training rows, each under the model of the fold that does not see it.

    Where rows of different folds are compared (`pooled`), training rows score on average what their labels are.
    """

    def __init__(
        self, data: TrainingData, plan: RowPlan, output: int, metric: Metric, pooled: Coordinates | None
    ) -> None:
        self._rows = plan.scored[np.argsort(plan.fold[plan.scored], kind="stable")]
        self._column = plan.fold[self._rows]
        self.row_columns = [self._column]
        self._scorers = [held_out_scorer(data, plan, output, metric, self._rows, pooled=pooled is not None)]
        self._means: Floats | None = None
        if pooled is not None:
            trains = plan.fold[:, None] != np.arange(plan.n_folds)
            weight = trains * (1.0 if data.row_weight is None else data.row_weight[:, None])
            share = weight / weight.sum(axis=0)
            self._means = pooled.means(share)
            self._label = (data.columns[output] @ share)[self._column]

    def scores(self, product: Product) -> list[Floats]:
        found = product.scores
        assert found is not None
        own = found[self._rows] if found.ndim == 1 else found[self._rows, self._column]
        if self._means is not None:
            own -= (self._means * product.models).sum(axis=0)[self._column]
        return [own]

    def errors(self, output: int, scores: Floats) -> Floats:
        return super().errors(output, scores if self._means is None else scores + self._label)


class _FoldedPairs(_Readout):
    """Training pairs, each under the model of the fold that does not see it."""

    def __init__(self, data: PairData, plan: PairPlan, metric: Metric, averaging: str) -> None:
        pair, fold = plan.pair[plan.is_scored], plan.fold[plan.is_scored]
        self._winner, self._loser, self._column = data.graph.winner[pair], data.graph.loser[pair], fold
        self.row_columns = [fold]
        by_fold = None if averaging == "pooled" else fold
        self._scorers = [difference_scorer(metric, data.scoring_weight[pair], fold=by_fold)]

    def scores(self, product: Product) -> list[Floats]:
        found = product.scores
        assert found is not None
        return [found[self._winner, self._column] - found[self._loser, self._column]]


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
            yield HeldOutSystem(coordinates.of_graph(graph), EvalRows(rows, held_out.scorers[first:last]))
            first = last
    elif isinstance(held_out, PairPlan):
        assert isinstance(problem, PairData)
        _require_pairs(problem, held_out)
        pairs = _FoldedPairs(problem, held_out, metric, averaging)
        yield HeldOutSystem(coordinates.of_pairs(problem.graph, held_out), pairs)
    else:
        assert isinstance(problem, TrainingData)
        pooled = coordinates if averaging == "pooled" and len(problem.queries) == 1 else None
        for output in range(problem.n_outputs):
            whole = problem.graph_of(output)
            graphs = (
                problem.graph_of(output, training_weights(problem, held_out, output, fold))
                for fold in range(held_out.n_folds)
            )
            scored = _FoldedRows(problem, held_out, output, metric, pooled)
            yield HeldOutSystem(coordinates.of_folds(whole, graphs, held_out.fold, held_out.scored), scored)


def n_outputs(graph: PairGraph) -> int:
    """Return how many outputs share a graph."""
    return 1 if graph.pull.ndim == 1 else int(graph.pull.shape[1])


def _require_pairs(data: PairData, plan: PairPlan) -> None:
    """Raise where a fold has nothing to train on."""
    is_ordered = data.graph.is_ordered[plan.pair]
    lacking = np.bincount(plan.fold[is_ordered], minlength=plan.n_folds)
    if (lacking >= data.graph.n_pairs).any():
        raise NoPairsError(
            f"Without its held-out pairs, fold {int(np.argmax(lacking))} has none to train on.",
            "use more folds, or hold less out.",
        )
