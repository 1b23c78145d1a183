"""Rows or pairs as additive models see them: what trains on them, and what is held out to score by."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rankwise.additive.choosing import Split
from rankwise.additive.fitting import Blueprints
from rankwise.additive.training import MarginTraining, SquaredTraining, Training
from rankwise.arrays import Bools, Floats
from rankwise.data.queries import Queries, one_query
from rankwise.metrics import Metric
from rankwise.pairs.graph import MarginPairs, PairGraph
from rankwise.problems.training import PairData, TrainingData, TrainingProblem
from rankwise.selection.alpha_path import scored_folds
from rankwise.selection.cv_pairs import PairPlan
from rankwise.selection.margin_fit import MarginFit, label_margins, listed_margins
from rankwise.selection.scorers import EvalSet, scorer_of_pairs
from rankwise.selection.systems import HeldOut
from rankwise.solvers.choose import choose_margin_solver

__all__ = ["AdditiveProblem"]


@dataclass(frozen=True)
class AdditiveProblem:
    """Training data, the knots of their columns, and what a pair costs.

    Attributes
    ----------
    data : TrainingData or PairData
        Its design is that of the curves.
    blueprints : Blueprints
    loss : str
    tol : float
    max_iter : int or None
    """

    data: TrainingProblem
    blueprints: Blueprints
    loss: str
    tol: float
    max_iter: int | None

    @property
    def queries(self) -> Queries:
        """What terms are to tell rows apart in."""
        return queries_of(self.data)

    @property
    def row_weight(self) -> Floats | None:
        """What rows weigh; of listed pairs, all alike."""
        return None if isinstance(self.data, PairData) else self.data.row_weight

    def training(self) -> Training:
        """Return what trains on everything."""
        if isinstance(self.data, PairData):
            return self._on_pairs(self.data)
        return self._on_rows(self.data, self.data.row_weight)

    def splits(self, held_out: HeldOut, metric: Metric) -> list[Split]:
        """Return the splits: one with an eval set, else one per fold that can be scored."""
        data = self.data
        if isinstance(held_out, EvalSet):
            return [Split(self.training(), held_out.scorers[0], X=held_out.rows.stored())]
        if isinstance(held_out, PairPlan):
            assert isinstance(data, PairData)
            splits, out = [], held_out.left_out
            for fold in held_out.folds_that_score(data):
                scorer = scorer_of_pairs(data, out.scoring(fold), metric)
                training = self._on_pairs(data, out.trained(fold, len(data.preferences)))
                splits.append(Split(training, scorer, np.arange(data.design.shape[0])))
            return splits
        assert isinstance(data, TrainingData)
        return [
            Split(self._on_rows(data, weight), scorer, rows, share=scorer.n_counted)
            for weight, rows, scorer in scored_folds(data, held_out, metric, 0)
        ]

    def _on_rows(self, data: TrainingData, row_weight: Floats | None) -> Training:
        if self.loss == "squared":
            return self._squares(data.graph(0, row_weight))
        return self._margins(label_margins(data, 0, row_weight))

    def _on_pairs(self, data: PairData, trained: Bools | None = None) -> Training:
        if self.loss != "squared":
            return self._margins(listed_margins(data.graph, self.loss, trained))
        return self._squares(data.graphs(trained)[0])

    def _squares(self, graph: PairGraph) -> SquaredTraining:
        return SquaredTraining(graph, self.tol, self.max_iter)

    def _margins(self, pairs: MarginPairs) -> MarginTraining:
        solver = choose_margin_solver(self.loss, pairs, self.tol)
        second = "smoothing" if solver == "bundle" else None
        return MarginTraining(pairs, MarginFit(self.loss, solver, self.tol, self.max_iter, second))


def queries_of(data: TrainingProblem) -> Queries:
    """Return the queries of labelled rows; listed pairs may compare any two."""
    return one_query(data.design.shape[0]) if isinstance(data, PairData) else data.queries
