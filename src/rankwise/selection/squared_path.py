"""Least squares alpha by alpha, where coefficients are restricted: what no surface and no closed form can follow."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from rankwise.arrays import Floats
from rankwise.cached import cached_property
from rankwise.design import Design
from rankwise.metrics import Metric
from rankwise.objectives import SquaredObjective
from rankwise.pairs.graph import PairGraph
from rankwise.problems.training import PairData, TrainingData
from rankwise.selection.alpha_path import Split, scored_folds
from rankwise.selection.cv_pairs import PairPlan
from rankwise.selection.scorers import EvalSet, scorer_of_pairs
from rankwise.selection.solving import LeastSquares
from rankwise.selection.systems import HeldOut
from rankwise.solvers.preconditioner import Curvature
from rankwise.solvers.solution import Solution

__all__ = ["SquaredFit", "squared_splits"]


@dataclass
class SquaredFit:
    """Fits graphs at one alpha after the other; what was formed of a graph is kept."""

    fit: LeastSquares
    _objectives: dict[int, _Kept] = field(default_factory=dict)

    def solve(
        self,
        design: Design,
        pairs: PairGraph,
        alpha: float,
        *,
        start: Floats | None = None,
        curvature: Curvature | None = None,
        title: str = "",
    ) -> Solution:
        """Find the minimum; there is nothing to start from."""
        if id(pairs) not in self._objectives:
            self._objectives[id(pairs)] = _Kept(design, pairs)
        return replace(self.fit, alpha=alpha).solve(self._objectives[id(pairs)])


class _Kept(SquaredObjective):
    """An objective that forms its matrix once."""

    @cached_property
    def _matrix(self) -> Floats:
        return super().matrix()

    def matrix(self) -> Floats:
        return self._matrix


def squared_splits(
    data: TrainingData | PairData, held_out: HeldOut, metric: Metric
) -> tuple[list[list[Split]], list[PairGraph]]:
    """Return the splits of every output, and the graphs of all of the data, one per output."""
    whole: list[PairGraph]
    if isinstance(data, PairData):
        whole = [data.graph]
    else:
        whole = [data.graph(output, data.row_weight) for output in range(len(data.columns))]
    if isinstance(held_out, EvalSet):
        outputs = zip(whole, held_out.scorers, strict=True)
        return [[Split(graph, held_out.rows, scorer)] for graph, scorer in outputs], whole
    if isinstance(held_out, PairPlan):
        assert isinstance(data, PairData)
        own = []
        for fold in held_out.folds_that_score(data):
            trained = held_out.left_out.trained(fold, len(data.preferences))
            graph = replace(data.graph, pair_weight=np.where(trained, data.graph.pair_weight, 0.0))
            own.append(
                Split(graph, data.design, scorer_of_pairs(data, held_out.left_out.scoring(fold), metric))
            )
        return [own], whole
    assert isinstance(data, TrainingData)
    splits: list[list[Split]] = []
    for output in range(len(data.columns)):
        splits.append([])
        for weight, rows, scorer in scored_folds(data, held_out, metric, output):
            splits[-1].append(
                Split(data.graph(output, weight), data.design.rows(rows), scorer, scorer.n_counted)
            )
    return splits, whole
