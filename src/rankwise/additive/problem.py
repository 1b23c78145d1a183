"""Rows or pairs as additive models see them: what trains on them, and what is held out to score by."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from rankwise.additive.fitting import AdditiveFit, Blueprint, Blueprints
from rankwise.additive.knots import SAMPLED_ROWS
from rankwise.additive.settings import Split
from rankwise.additive.training import MarginTraining, SquaredTraining, Training
from rankwise.arrays import Bools
from rankwise.data.queries import Queries, one_query
from rankwise.exceptions import NoPairsError
from rankwise.fitting.margins import MarginFit, margins_of
from rankwise.metrics import Metric
from rankwise.problems.training import PairData, TrainingProblem
from rankwise.selection.held_out import HeldOut, splits_of
from rankwise.selection.scorers import EvalSet
from rankwise.solvers.choose import choose_margin_solver

__all__ = ["AdditiveProblem"]


@dataclass(frozen=True)
class AdditiveProblem:
    """Training data, the knots of their columns, and what a pair costs.

    Attributes
    ----------
    data : TrainingData or PairData
        Its design is that of the curves where anything is held out.
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

    def splits(self, held_out: HeldOut, metric: Metric) -> list[Split]:
        """Return the splits: one with an eval set, else one per fold that can be scored."""
        if isinstance(held_out, EvalSet):
            return [Split(self.training(), held_out.scorers[0], X=held_out.rows.stored())]
        every = np.arange(self.data.design.shape[0])
        return [
            Split(
                self.training(own.trained),
                own.scorer,
                own.rows if isinstance(own.rows, np.ndarray) else every,
                share=own.share,
            )
            for own in splits_of(self.data, held_out, metric, 0)
        ]

    def sample(self, blueprint: Blueprint) -> AdditiveFit | None:
        """Return the fit of some whole queries, of rows where there is one ranking, to choose pairs of columns by.

        None where there are few enough rows, or listed pairs: then everything chooses.
        """
        data, n_rows = self.data, self.data.design.shape[0]
        if isinstance(data, PairData) or n_rows < 2 * SAMPLED_ROWS:
            return None
        # Drawn at random: steps of equal length may meet the same place of every query.
        rng, queries = np.random.default_rng(0), data.queries
        chosen = np.flatnonzero(data.levels[0].ordered)
        if chosen.size < 2:
            rows = np.sort(rng.choice(n_rows, SAMPLED_ROWS, replace=False))
        else:
            drawn = rng.permutation(chosen)
            n_drawn = 1 + int(np.searchsorted(np.cumsum(queries.sizes[drawn]), SAMPLED_ROWS))
            is_drawn = np.zeros(len(queries), dtype=np.bool_)
            is_drawn[drawn[:n_drawn]] = True
            rows = np.flatnonzero(is_drawn[queries.codes])
        if rows.size > n_rows // 2:  # of a huge query
            return None
        own = replace(blueprint, X=blueprint.X[rows])
        try:
            part = replace(
                data,
                design=own.curves.design,
                y=data.y[rows],
                queries=queries.subset(rows),
                row_weight=None if data.row_weight is None else data.row_weight[rows],
                importance=None
                if data.importance is None
                else data.importance[np.unique(queries.codes[rows])],
            )
        except NoPairsError:  # labels so rare that none was drawn
            return None
        return AdditiveFit(own, replace(self, data=part).training())

    def training(self, trained: Bools | None = None) -> Training:
        """Return what trains on everything, or on what a split leaves."""
        if self.loss == "squared":
            return SquaredTraining(self.data.graph_of(0, trained), self.tol, self.max_iter)
        pairs = margins_of(self.data, self.loss, 0, trained)
        solver = choose_margin_solver(self.loss, pairs, self.tol)
        second = "smoothing" if solver == "bundle" else None
        return MarginTraining(pairs, MarginFit(self.loss, solver, self.tol, self.max_iter, second))


def queries_of(data: TrainingProblem) -> Queries:
    """Return the queries of labelled rows; listed pairs may compare any two."""
    return one_query(data.design.shape[0]) if isinstance(data, PairData) else data.queries
