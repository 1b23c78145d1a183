"""What a Krylov run multiplies and is scored by: equations, and an eval set, held-out rows or held-out pairs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

import numpy as np

from rankwise.arrays import Floats, Ints, Rows
from rankwise.design import Design
from rankwise.exceptions import Change, NoPairsError
from rankwise.metrics import Metric
from rankwise.pairs.graph import PairGraph
from rankwise.pairs.labels import LabelGraph
from rankwise.problems.training import PairData, TrainingData, TrainingProblem
from rankwise.selection.cv import RowPlan
from rankwise.selection.cv_pairs import PairPlan
from rankwise.selection.equations import Coordinates, Equations, Product
from rankwise.selection.scorers import EvalSet, Scorer, difference_scorer, row_scorer

__all__ = [
    "EvalRows",
    "HeldOut",
    "HeldOutSystem",
    "fold_graph",
    "held_out_scorer",
    "held_out_systems",
    "n_outputs",
    "require_training_pairs",
]

HeldOut = EvalSet | RowPlan | PairPlan


class _Readout(Protocol):
    """Reads the scores of held-out rows off a product."""

    @property
    def row_columns(self) -> Sequence[Ints]:
        """For each output, the column that scores each of its rows; rows of one column stand together."""

    def scores(self, product: Product) -> list[Floats]:
        """Return the scores, output by output."""

    def errors(self, output: int, scores: Floats) -> Floats:
        """Score (alphas, rows) scores of an output; lower is better."""


class HeldOutSystem:
    """A `rankwise.solvers.surface.System`: equations, and the rows or pairs that score them.

    Parameters
    ----------
    equations : Equations
    readout : optional
        Without one nothing is scored, and only residuals are looked at.
    """

    def __init__(self, equations: Equations, readout: _Readout | None = None) -> None:
        self._equations = equations
        self.rhs = equations.rhs
        self._readout: _Readout = _Unscored(self.rhs.shape[1]) if readout is None else readout
        self.row_columns = self._readout.row_columns
        self.n_outputs = len(self.row_columns)
        self.n_products = 0
        self.model = self.dual_coefficients = equations.model

    def multiply(self, vectors: Floats) -> tuple[Floats, Sequence[Floats]]:
        """Return the image of the vectors, and the scores of what is held out, output by output."""
        self.n_products += vectors.shape[1]
        product = self._equations.multiply(vectors)
        return product.image, self._readout.scores(product)

    def errors(self, output: int, scores: Floats) -> Floats:
        """Score (alphas, rows) scores of an output."""
        return self._readout.errors(output, scores)


class _Unscored:
    def __init__(self, n_outputs: int) -> None:
        self.row_columns = [np.empty(0, dtype=np.int64)] * n_outputs

    def scores(self, product: Product) -> list[Floats]:
        return [np.empty(0)] * len(self.row_columns)

    def errors(self, output: int, scores: Floats) -> Floats:
        return np.zeros(scores.shape[0])


class EvalRows:
    """Rows of their own; one column per output."""

    def __init__(self, rows: Design, scorers: Sequence[Scorer]) -> None:
        self._rows, self._scorers = rows, scorers
        self.row_columns = [np.full(rows.shape[0], column, dtype=np.int64) for column in range(len(scorers))]

    def scores(self, product: Product) -> list[Floats]:
        """Return the scores, output by output."""
        return list(self._rows.dot(product.models).reshape(self._rows.shape[0], -1).T)

    def errors(self, output: int, scores: Floats) -> Floats:
        """Score (alphas, rows) scores of an output."""
        return self._scorers[output].errors(scores)


class _FoldedRows:
    """Training rows, each under the model of the fold that does not see it.

    Where rows of different folds are compared (`pooled`), training rows score on average what their labels are.
    """

    def __init__(
        self, data: TrainingData, plan: RowPlan, output: int, metric: Metric, pooled: Coordinates | None
    ) -> None:
        self._rows = plan.scored[np.argsort(plan.fold[plan.scored], kind="stable")]
        self._column = plan.fold[self._rows]
        self.row_columns = [self._column]
        self._scorer = held_out_scorer(data, plan, output, metric, self._rows, pooled=pooled is not None)
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
        return self._scorer.errors(scores if self._means is None else scores + self._label)


class _FoldedPairs:
    """Training pairs, each under the model of the fold that does not see it."""

    def __init__(self, data: PairData, plan: PairPlan, metric: Metric, averaging: str) -> None:
        out = plan.left_out
        pair, fold = out.pair[out.is_scored], out.fold[out.is_scored]
        self._winner, self._loser, self._column = data.graph.winner[pair], data.graph.loser[pair], fold
        self.row_columns = [fold]
        by_fold = None if averaging == "pooled" else fold
        self._scorer = difference_scorer(metric, data.scoring_weight[pair], fold=by_fold)

    def scores(self, product: Product) -> list[Floats]:
        found = product.scores
        assert found is not None
        return [found[self._winner, self._column] - found[self._loser, self._column]]

    def errors(self, output: int, scores: Floats) -> Floats:
        return self._scorer.errors(scores)


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
        yield HeldOutSystem(coordinates.of_pairs(problem.graph, held_out.left_out), pairs)
    else:
        assert isinstance(problem, TrainingData)
        pooled = coordinates if averaging == "pooled" and len(problem.queries) == 1 else None
        for output in range(len(problem.columns)):
            whole = problem.graph(output, problem.row_weight)
            graphs = (fold_graph(problem, held_out, output, fold) for fold in range(held_out.n_folds))
            scored = _FoldedRows(problem, held_out, output, metric, pooled)
            yield HeldOutSystem(coordinates.of_folds(whole, graphs, held_out.fold, held_out.scored), scored)


def fold_graph(data: TrainingData, plan: RowPlan, output: int, fold: int) -> LabelGraph:
    """Return what a fold trains on: the graph in which its own rows weigh nothing."""
    return data.graph(output, require_training_pairs(data, plan, output, fold))


def require_training_pairs(data: TrainingData, plan: RowPlan, output: int, fold: int) -> Floats:
    """Return the row weights that a fold trains with; raise where they leave no pair."""
    left: Floats = (1.0 if data.row_weight is None else data.row_weight) * (plan.fold != fold)
    if data.levels[output].reweighted(left).n_pairs == 0:
        raise NoPairsError(
            f"Without its held-out rows, fold {fold} has no two rows of a query with different labels to train on.",
            "use more folds, cv=sklearn.model_selection.KFold(5) to hold rows of every query out, or an eval_set.",
            Change("cv"),
            Change("eval_set"),
        )
    return left


def held_out_scorer(
    data: TrainingData, plan: RowPlan, output: int, metric: Metric, rows: Rows, *, pooled: bool = False
) -> Scorer:
    """Prepare the metric on some held-out rows."""
    queries = plan.scoring_queries(data.queries, rows, pooled=pooled)
    weight = None if data.row_weight is None else data.row_weight[rows]
    return row_scorer(metric, data.columns[output][rows], queries, data.design.n_threads, weight=weight)


def n_outputs(graph: PairGraph) -> int:
    """Return how many outputs share a graph."""
    return 1 if graph.pull.ndim == 1 else int(graph.pull.shape[1])


def _require_pairs(data: PairData, plan: PairPlan) -> None:
    """Raise where a fold has nothing to train on."""
    out = plan.left_out
    lacking = np.bincount(out.fold[data.graph.is_ordered[out.pair]], minlength=out.n_folds)
    if (lacking >= data.graph.n_pairs).any():
        raise NoPairsError(
            f"Without its held-out pairs, fold {int(np.argmax(lacking))} has none to train on.",
            "use more folds, or hold less out.",
        )
